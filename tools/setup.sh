#!/bin/sh
# Usage: setup.sh build|test|fuzz|checks
# Installs what is missing for the build, also for the tests or the fuzzing, or also for the checks of a change. On
# Debian and its relatives with apt; elsewhere it says what to install.
set -eu
purpose=${1:-build}
cc=${CC:-gcc}
compiler=${cc%% *}

has_command() { command -v "$1" >/dev/null 2>&1; }
# The compiler prints a bare name if it does not find the file. Without a compiler nothing counts as present.
has_library() { [ -e "$($cc -print-file-name="$1" 2>/dev/null)" ]; }
has_file() { [ -e "$1" ]; }
# With what cmocka.h and pcre2.h want before them.
has_header() {
    echo "#include <$1>" |
        $cc -E -include stddef.h -include stdarg.h -include setjmp.h -DPCRE2_CODE_UNIT_WIDTH=8 - >/dev/null 2>&1
}
# pip itself, or the module that can make one.
has_pip() {
    python3 -c 'import sys, importlib.util as u; sys.exit(not (u.find_spec("pip") or u.find_spec("ensurepip")))' 2>/dev/null
}

# The libraries of a clang are next to the headers that it brings.
has_fuzzer() { ls "$(${FUZZ_CC:-clang} -print-resource-dir)"/lib/*/libclang_rt.fuzzer*x86_64.a >/dev/null 2>&1; }

has_browser() { has_command chromium || has_command chromium-browser || has_command google-chrome; }

# What is missing for a purpose; and what only some tests need, which are skipped without it.
missing=
wanted=
need() { # PACKAGE CHECK...
    package=$1
    shift
    "$@" || missing="$missing $package"
}
want() { # PACKAGE CHECK...
    package=$1
    shift
    "$@" || wanted="$wanted $package"
}

for_build() {
    need build-essential has_command gcc
    need build-essential has_command make
    need build-essential has_command objcopy
    [ "$compiler" = gcc ] || need "$compiler" has_command "$compiler"
    need python3 has_command python3
    need python3-venv has_pip
    need libc6-dev has_library libc.a
    need libsqlite3-dev has_library libsqlite3.a
    need libsqlite3-dev has_header sqlite3.h
    need libpcre2-dev has_library libpcre2-8.a
    need libpcre2-dev has_header pcre2.h
    need libdw-dev has_header elfutils/libdwfl.h
}

for_test() {
    for_build
    need libcmocka-dev has_header cmocka.h
    want openmpi-bin has_command mpirun
    want libjemalloc2 has_library libjemalloc.so.2
    want libfaketime has_file /usr/lib/*/faketime/libfaketimeMT.so.1
    want locales has_file /usr/share/i18n/locales/de_DE
}

for_fuzz() {
    for_build
    need clang has_command "${FUZZ_CC:-clang}"
    need libclang-rt-dev has_fuzzer
}

for_checks() {
    for_test
    for_fuzz
    need clang-format has_command "${CLANG_FORMAT:-clang-format}"
    need clang-tidy has_command "${CLANG_TIDY:-clang-tidy}"
    need pmccabe has_command pmccabe
    want chromium has_browser
}

# The words given, each once, in one line.
list() { printf '%s\n' "$@" | sort -u | xargs; }

# Ends with what an administrator has to do, asked only once, for the build and the tests.
give_up() { # WHAT
    if [ -n "$(list $missing)" ]; then
        echo "setup: $1$(list $missing $wanted)" >&2
        exit 1
    fi
    echo "setup: without $(list $wanted) some tests are skipped" >&2
    exit 0
}
ask_root() {
    [ "$purpose" != build ] || [ -z "$missing" ] || look test
    give_up "as root, or by an administrator: apt-get install -y --no-install-recommends "
}

look() {
    missing=
    wanted=
    "for_$1"
}

look "$purpose"
[ -n "$missing$wanted" ] || exit 0
has_command apt-get || give_up "please install what these Debian packages hold: "
as_root=
if [ "$(id -u)" -ne 0 ]; then
    has_command sudo && sudo env apt-get --version >/dev/null || ask_root
    as_root=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Another process may hold the lock, for instance on a machine that has just started. Without a network each of a
# hundred files is tried several times: without apt's seconds of delay in between.
in_apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries::Delay=false \
        "$@" >"$log" 2>&1
}
install() { in_apt install -y --no-install-recommends "$@"; }

all=$(list $missing $wanted)
echo "setup: installing $all"
# The package list of a fresh machine is empty or old: only then is it worth the wait.
install $all && exit 0
in_apt update || :
# Without packages that the mirror does not have.
known=
why=
for package in $all; do
    if in_apt install -s "$package"; then
        known="$known $package"
    else
        why=$(sed -n 's/^E: //p' "$log" | head -n 1)
    fi
done
install $known || why=$(sed -n 's/^E: //p' "$log" | head -n 1)
look "$purpose"
[ -z "$missing$wanted" ] || give_up "please install by other means, as apt cannot (${why:-no error}): "
