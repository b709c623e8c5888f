#!/bin/sh
# Every CPython found here, 3.9 to 3.13: the stacks that preload/who/python.c reads are those that Python itself
# reports, and, if its headers are installed, the table agrees with them. A debug build is reported as one. Prints the
# duration of a walk.
. "$(dirname "$0")/e2e.inc"
unset -f python3 # the interpreters are what is looked at here

versions="9 10 11 12 13"
compile() { ${CC:-cc} -std=gnu11 -D_GNU_SOURCE= -O2 -I"$source" "$@"; }
compile -fPIC -shared -o "$tmp/walk.so" "$source/tests/python/walk.c" "$source/preload/who/python.c" -ldl -lpthread ||
    fail "walk.c does not compile"

# Its minor version, its headers' folder (a debug build's are not those of the table) and its own path, if it is a
# CPython that runs: version managers put stand-ins on the path.
about() {
    "$1" -c 'import os, sys, sysconfig as s
folder = "-" if hasattr(sys, "gettotalrefcount") else s.get_path("include")
sys.implementation.name == "cpython" and print(sys.version_info[1], folder, os.path.realpath(sys.executable))' 2>/dev/null
}

pythons() {
    command -v python3
    for version in $versions; do
        command -v "python3.$version"
        command -v "python3.$version-dbg"
    done
    ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 /usr/bin/python3 2>/dev/null
}

read_stacks() { # MINOR INCLUDE PYTHON
    case " $versions " in *" $1 "*) ;; *) return 0 ;; esac
    timeout "$limit" "$3" "$source/tests/python/stacks.py" "$tmp/walk.so" >"$tmp/out" 2>&1
    code=$?
    sed "s|^|$3: |" "$tmp/out"
    [ $code -eq 0 ] || fail "$3 ended with $code"
    tried=$((tried + 1))
    [ -e "$2/cpython/code.h" ] || return 0
    compile -w -I"$2" -I"$2/internal" -o "$tmp/offsets" "$source/tests/python/offsets.c" || fail "$2 does not compile"
    "$tmp/offsets" || fail "$3: the table is not as its headers say"
}

tried=0
pythons | while read -r python; do about "$python"; done | sort -u >"$tmp/found"
while read -r minor include python; do
    read_stacks "$minor" "$include" "$python" </dev/null
done <"$tmp/found"
[ $tried -gt 0 ] || [ $failures -gt 0 ] || { echo "skipped: no CPython 3.9 to 3.13"; exit 77; }
finish
