#!/bin/sh
# Usage: libunwind.sh OUTPUT-FOLDER
# Makes OUTPUT-FOLDER/include and OUTPUT-FOLDER/lib with the static archives of libunwind that libkprof.so needs: code
# for a shared object, unlike distributions' archives, without liblzma, and with tools/libunwind_compat.h forced in. The
# source is the folder LIBUNWIND_SRC, or else the tarball of the distribution's source package, and only that, because
# mirrors lack other parts of some packages. CC is the compiler.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd)
tools=$(cd "$(dirname "$0")" && pwd)
work=$output/work

say() { echo "libunwind: $*" >&2; }

# The machine's own package lists, read as source lists; in a folder of ours, because they may not name sources.
source_lists() {
    mkdir -p "$work/parts"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/parts/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^deb \(.*\)/deb-src \1/p' "$list" > "$work/parts/${list##*/}.list"
    done
}

in_apt() { # COMMAND OPTION...; its output goes to COMMAND.log
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User= "$@" > "$work/$1.log" 2>&1
}

# One line: what failed, and the workaround.
give_up() {
    say "$*: set LIBUNWIND_SRC to a folder with the source of libunwind (with its script configure)"
    exit 1
}

# The first file that apt could not fetch, or else its message about the source.
why() {
    sed -n 's/^[EW]: //p' source.log update.log | grep -m 1 '^Failed to fetch' || sed -n 's/^E: //p' source.log | head -n 1
}

fetch() {
    command -v apt-get >/dev/null || give_up "no apt-get to fetch the source with"
    say "fetching the source"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    source_lists
    cd "$work"
    # One list may have what another lacks.
    in_apt update || :
    in_apt source --tar-only libunwind || give_up "cannot fetch the source ($(why))"
    tar -xf libunwind_*.orig.tar.* || give_up "cannot unpack the source"
}

rm -rf "$work"
mkdir -p "$work/build"
source=${LIBUNWIND_SRC:-}
if [ -z "$source" ]; then
    fetch
    source=$(echo "$work"/libunwind-*/)
fi
[ -x "$source/configure" ] || give_up "no configure in $source"
source=$(cd "$source" && pwd)
say "building ${source##*/}"
cd "$work/build"
{
    "$source/configure" --disable-shared --enable-static --with-pic --disable-minidebuginfo --disable-zlibdebuginfo \
        --disable-debug-frame --disable-cxx-exceptions --disable-weak-backtrace --disable-coredump --disable-ptrace \
        --disable-setjmp --disable-documentation --disable-tests CC="${CC:-gcc}" &&
        make -j"$(nproc)" -C src libunwind-x86_64.la \
            CFLAGS="-O2 -g -fvisibility=hidden -include $tools/libunwind_compat.h -ffile-prefix-map=$work=."
} > "$output/build.log" 2>&1 || { tail -n 20 "$output/build.log" >&2; exit 1; }
mkdir -p "$output/lib" "$output/include"
cp src/.libs/libunwind-x86_64.a src/.libs/libunwind.a "$output/lib"
cp "$source"/include/libunwind-x86_64.h "$source"/include/libunwind-dynamic.h include/libunwind-common.h \
    include/libunwind.h "$output/include"
rm -rf "$work"
