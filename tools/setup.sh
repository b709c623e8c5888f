#!/bin/sh
# Usage: setup.sh build|test|fuzz|checks
# Installs what is missing for the build, for the tests or the fuzzing too, or for the checks of a change as well. On
# Debian and its relatives with apt, elsewhere it says what to install.
set -eu
purpose=${1:-build}
cc=${CC:-gcc}

has_command() { command -v "$1" >/dev/null 2>&1; }
# The compiler prints a bare name where it does not find the file.
has_library() { [ "$($cc -print-file-name="$1")" != "$1" ]; }
has_file() { [ -e "$1" ]; }
has_header() { echo "#include <$1>" | $cc -E -include stddef.h -include stdarg.h -include setjmp.h - >/dev/null 2>&1; }
# pip itself, or the module that can make one.
has_pip() {
    python3 -c 'import sys, importlib.util as u; sys.exit(not (u.find_spec("pip") or u.find_spec("ensurepip")))' 2>/dev/null
}

# The libraries of a clang lie beside the headers that it brings.
has_fuzzer() { ls "$(${FUZZ_CC:-clang} -print-resource-dir)"/lib/*/libclang_rt.fuzzer*x86_64.a >/dev/null 2>&1; }

has_browser() { has_command chromium || has_command chromium-browser || has_command google-chrome; }

missing=
need() { # a Debian package, and the check that shows that it is there
    package=$1
    shift
    "$@" || missing="$missing $package"
}

need build-essential has_command gcc
need build-essential has_command make
need build-essential has_command objcopy
need python3 has_command python3
need python3-venv has_pip
if has_command "$cc"; then
    need libc6-dev has_library libc.a
    need libsqlite3-dev has_library libsqlite3.a
    need libsqlite3-dev has_header sqlite3.h
    need libdw-dev has_header elfutils/libdwfl.h
else
    missing="$missing libc6-dev libsqlite3-dev libdw-dev"
fi
if [ "$purpose" = test ] || [ "$purpose" = checks ]; then
    need libcmocka-dev has_header cmocka.h
    # 12 MB, a few seconds; elsewhere than on Debian the tests do without.
    if has_command apt-get; then
        need openmpi-bin has_command mpirun
        need libjemalloc2 has_library libjemalloc.so.2
        need libfaketime has_file /usr/lib/*/faketime/libfaketimeMT.so.1
        need locales has_file /usr/share/i18n/locales/de_DE
    fi
fi
if [ "$purpose" = fuzz ] || [ "$purpose" = checks ]; then
    need clang has_command "${FUZZ_CC:-clang}"
    need libclang-rt-dev has_fuzzer
fi
if [ "$purpose" = checks ]; then
    need clang-format has_command "${CLANG_FORMAT:-clang-format}"
    need clang-tidy has_command "${CLANG_TIDY:-clang-tidy}"
    need pmccabe has_command pmccabe
    need chromium has_browser
fi
missing=$(printf '%s\n' $missing | sort -u | xargs)
[ -n "$missing" ] || exit 0

if ! has_command apt-get; then
    echo "setup: please install what these Debian packages hold: $missing" >&2
    exit 1
fi
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
echo "setup: installing $missing"
export DEBIAN_FRONTEND=noninteractive
# Another process may hold the lock, as on a machine that has just started.
apt="$as_root apt-get -q -o DPkg::Lock::Timeout=300"
install="$apt install -y --no-install-recommends $missing"
# The package list of a fresh machine is empty or old: only then is it worth the wait.
$install >/dev/null 2>&1 || { $apt update && $install; }
