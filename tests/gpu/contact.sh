#!/usr/bin/env bash
# Small programs of the kinds on which profilers fail: natively, and under kprof in several settings. Prints a table last.
#   tests/gpu/contact.sh OUT [CASE...]     CASE: some of them, by their names; default: all
# The programs are those of tests/gpu/contact/ and of the folder CONTACT_MORE: each source (.cu, .cpp, .py) is a case, but
# those that cases.txt of its folder names otherwise (name, source, arguments; lib*.so: a library for the others). The line
# "LINK: FLAGS" in a source's comment at the top is added to the compiler's flags.
# Environment: SETTINGS (basic quick full rotation timeline preload), LIMIT (seconds a profiled run may take above the native
# time, 25; a case that has used it up has a quarter of it from then on), JOBS (profiled runs at a time on each GPU, 1:
# processes that count on one GPU disturb each other), UNTIL (seconds of runs, 420: what is left then is left out),
# CONTACT (another folder for tests/gpu/contact), NVCC. OUT gets contact.md, the table; contact.json; contact.tar.gz, all logs.
# 45 cases need about 7 minutes on one GPU.
. "$(dirname "$0")/gpu.inc"
nvcc=${NVCC:-nvcc}
bin=$work/bin
logs=$work/logs
mkdir -p "$bin" "$logs"

# Name, source and arguments of all cases of a folder, a line each.
cases_of() { # FOLDER
    local source name
    [ ! -e "$1/cases.txt" ] || sed '/^#/d; /^ *$/d' "$1/cases.txt" | while read -r name source; do
        printf '%s %s/%s\n' "$name" "$1" "$source"
    done
    for source in "$1"/*.cu "$1"/*.cpp "$1"/*.py; do
        [ -e "$source" ] || continue
        name=${source##*/}
        [ -e "$1/cases.txt" ] && grep -q "^[^#]* $name\( \|\$\)" "$1/cases.txt" && continue
        printf '%s %s\n' "${name%.*}" "$source"
    done
}

# Builds a program once, whatever the number of its cases.
build_one() { # PROGRAM SOURCE
    local flags
    flags=$(sed -n '1,5s|^// LINK: *||p' "$2")
    [[ $1 != *.so ]] || flags="$flags -shared -Xcompiler -fPIC"
    # shellcheck disable=SC2086
    $nvcc -std=c++17 -arch="$arch" -O2 -I"$cupti/include" -L"$cupti/lib64" -o "$bin/$1" "$2" $flags -lcuda >"$logs/build.$1" 2>&1 ||
        rm -f "$bin/$1"
}
export -f build_one
export nvcc arch cupti bin logs

for folder in "${CONTACT:-$here/contact}" ${CONTACT_MORE:+"$CONTACT_MORE"}; do
    cases_of "$(cd "$folder" && pwd)"
done >"$work/list"
[ $# = 0 ] || { # the chosen ones, and the libraries
    printf '%s\n' "$@" | awk 'NR == FNR { chosen[$1]; next } $1 in chosen || $1 ~ /\.so$/' - "$work/list" >"$work/chosen"
    for name; do grep -q "^$name " "$work/chosen" || { echo "no case $name" >&2 && exit 2; }; done
    mv "$work/chosen" "$work/list"
}
started=$(now)
while read -r name source _; do
    case $source in
    *.py) ;;
    *) if [[ $name == lib*.so ]]; then echo "$name $source"; else echo "$(basename "${source%.*}") $source"; fi ;;
    esac
done <"$work/list" | sort -u | xargs -r -L 1 -P "$(nproc)" bash -c 'build_one "$@"' build
# A case's command; one whose program is not there does not build.
while read -r name source args; do
    [[ $name != lib*.so ]] || continue
    [[ $source == *.py ]] && command="python3 $source" || command=$bin/$(basename "${source%.*}")
    echo "$name $command $args"
done <"$work/list" >"$work/cases"
echo "built in $(since "$started" 1) s"

python3 "$here/contact.py" --library "$lib" --kprof "$kprof" --cases "$work/cases" --out "$out" --logs "$logs" \
    --limit "${LIMIT:-25}" --until "${UNTIL:-420}" --jobs "${JOBS:-1}" \
    --settings "${SETTINGS:-basic quick full rotation timeline preload}"
code=$?
find "$logs" -type f -size -16M -printf '%P\n' | tar -C "$logs" -czf "$out/contact.tar.gz" -T -
exit $code
