#!/bin/sh
# Usage: libunwind.sh OUTPUT-FOLDER
# Makes OUTPUT-FOLDER/include and OUTPUT-FOLDER/lib with libunwind's static archives, as libkprof.so needs them: code
# for a shared object, which distributions' archives are not, nothing of liblzma, and tools/libunwind_compat.h forced in.
# The source is the folder LIBUNWIND_SRC, or else the distribution's source package. CC is the compiler.
set -eu
mkdir -p "$1"
output=$(cd "$1" && pwd)
tools=$(cd "$(dirname "$0")" && pwd)
work=$output/work

say() { echo "libunwind: $*" >&2; }

# The machine's own lists of packages, read as lists of sources; into a folder of ours, as they may not name sources.
source_lists() {
    mkdir -p "$work/parts"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" > "$work/parts/${list##*/}"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n 's/^deb \(.*\)/deb-src \1/p' "$list" > "$work/parts/${list##*/}.list"
    done
}

in_apt() {
    apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User= "$@" > "$work/apt.log" 2>&1
}

fetch() {
    command -v apt-get >/dev/null && command -v dpkg-source >/dev/null ||
        { say "no apt-get and dpkg-source to fetch the source with: set LIBUNWIND_SRC to a folder of libunwind's source"; exit 1; }
    say "fetching the source package"
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
    source_lists
    in_apt update || say "some package lists could not be read"
    (cd "$work" && in_apt source libunwind) || { cat "$work/apt.log" >&2; exit 1; }
}

rm -rf "$work"
mkdir -p "$work/build"
source=${LIBUNWIND_SRC:-}
if [ -z "$source" ]; then
    fetch
    source=$(echo "$work"/libunwind-*/)
fi
[ -x "$source/configure" ] || { say "$source has no configure"; exit 1; }
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
