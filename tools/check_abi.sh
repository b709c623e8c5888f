#!/bin/sh
# Usage: check_abi.sh LIBRARY COMMAND SYMBOLS
# Fails if the library, the command or the library of symbols needs more of a system than it may: a library other than
# libc (the command also libdl, where glibc kept dlopen before 2.34; that of symbols libdw), a glibc newer than the
# baseline, an exported name that is not a door.
# Prints what it found.
set -eu
export LC_ALL=C
library=$1
command=$2
symbols=$3
baseline=2.17
# Names that a program may request from us instead of the driver, the runtime or libc.
doors='^(cu[A-Z]|cuda[A-Z]|cupti[A-Z]|nvtx|__cu)[A-Za-z0-9_]*$|^(InitializeInjectionNvtx2|dlclose|dlopen|dlmopen|dlsym|dlvsym|__libc_start_main|exit|_exit|_Exit|quick_exit)$'
faults=0

fault() {
    echo "check-abi: $*" >&2
    faults=$((faults + 1))
}

needed() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
# Lines "VERSION NAME" of the glibc symbols that an object asks for.
glibc_symbols() {
    readelf -W --dyn-syms "$1" | sed -n 's/.* UND \([^@ ]*\)@\{1,2\}GLIBC_\([0-9.]*\).*/\2 \1/p' | sort -V
}

check_object() { # FILE, and libraries that it may need beside libc
    libraries=$(needed "$1" | xargs)
    newest=$(glibc_symbols "$1" | tail -n 1)
    echo "$1: needs ${libraries:-nothing}, newest symbol: ${newest:-none}"
    for name in $libraries; do
        [ "$name" = libc.so.6 ] || [ "$name" = "${2:-}" ] || fault "$1 needs $name"
    done
    glibc_symbols "$1" | while read -r version name; do
        [ "$(printf '%s\n' "$version" "$baseline" | sort -V | tail -n 1)" = "$baseline" ] || echo "$name@$version"
    done > "$1.too-new"
    [ ! -s "$1.too-new" ] || fault "$1 needs more than glibc $baseline: $(xargs < "$1.too-new")"
    rm "$1.too-new"
    readelf -dW "$1" | grep -q TEXTREL && fault "$1 has text relocations"
    readelf -lW "$1" | grep -q 'GNU_STACK.*RWE' && fault "$1 has an executable stack"
    return 0
}

# Names that an older glibc keeps outside libc.so.6: the rows of our table. Allowed, but reported.
late_symbols() {
    rows=$(sed -n 's/^KP_GLIBC_SYMBOL(\([a-z0-9_]*\),.*/\1/p' "$(dirname "$0")/glibc_compat.h")
    glibc_symbols "$1" | cut -d' ' -f2 | grep -Fx "$rows" | xargs
}

check_object "$library"
check_object "$command" libdl.so.2
check_object "$symbols" libdw.so.1

echo "$library: before glibc 2.34 only in a program with libpthread and libdl: $(late_symbols "$library")"
exported=$(nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort -u)
echo "$library: exports $(echo "$exported" | grep -c . || true) names"
for name in $exported; do
    echo "$name" | grep -Eq "$doors" || fault "$library exports $name, which is no door"
done
of_symbols=$(nm -D --defined-only "$symbols" | awk '{print $NF}' | xargs)
[ "$of_symbols" = kp_symbols_resolve_1 ] || fault "$symbols exports $of_symbols"
readelf -dW "$library" | grep -Eq 'BIND_NOW|FLAGS_1.*NOW' && fault "$library binds all its symbols at load"

[ "$faults" -eq 0 ]
