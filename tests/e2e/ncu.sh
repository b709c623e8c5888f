#!/bin/sh
# The command under the name ncu: command lines for ncu (tests/data/ncu-command-lines) start, and do what its manual says.
. "$(dirname "$0")/e2e.inc"
release_only "a sanitiser has to be loaded before the command's library, which command lines for ncu do not say"
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
# The face's own defaults are what is tried.
unset KPROF_BRIEF_ABOVE KPROF_BUDGET COLUMNS
mkdir "$tmp/bin" "$tmp/files" "$tmp/home"
ln -s "$(realpath "$build/kprof")" "$tmp/bin/ncu"
programs=$(realpath "$programs")
fakes=$(realpath "$build/fake")
export HOME="$tmp/home"

ncu() {
    LD_LIBRARY_PATH=$fakes timeout "$limit" "$tmp/bin/ncu" "$@"
}

# --- the files that command lines name ---
cd "$tmp/files" || exit 1
printf -- '--section LaunchStats\n-c 2 -k "regex:axpy|append"\n' >options.txt
printf '%s\n' '[Launch-and-attach]' '# three of them' '--section = Occupancy' '-c = 3' '' '[Import]' '--csv' >own.ncu-cfg
printf '%s\n' '- Original: regex:increment' '- Renamed: Plus One' >names.yaml
mkdir -p sections more/deep
section() { # IDENTIFIER TITLE
    printf 'Identifier: "%s"\nDisplayName: "%s"\nHeader {\n  Metrics {\n    Label: "Threads"\n    Name: "launch__block_size"\n  }\n}\n' "$1" "$2"
}
section Own "Own Section" >sections/own.section
section Deep "Deep Section" >more/deep/deep.section
section Other "Other Section" >more/other.section
ncu -k increment -c 2 -o kept "$programs/p_direct" >/dev/null || fail "files: no session"

# --- programs ---
program_of() { # WORD
    case $1 in
    -) ;;
    direct) echo "$programs/p_direct" ;;
    direct-slow) echo "$tmp/slow.sh" ;;
    nvtx) echo "$programs/p_nvtx" ;;
    ranges) echo "$programs/p_ranges plain" ;;
    shell) echo "$tmp/shell.sh" ;;
    reads) echo "$tmp/reads.sh" ;;
    fails) echo "$tmp/fails.sh" ;;
    *) echo "no-such-program-$1" ;;
    esac
}
printf '#!/bin/sh\n%s\nsleep 30\necho its own end\n' "$programs/p_direct" >"$tmp/slow.sh"
printf '#!/bin/sh\n%s\n' "$programs/p_direct" >"$tmp/shell.sh"
printf '#!/bin/sh\nread -r line || echo nothing read\n' >"$tmp/reads.sh"
printf '#!/bin/sh\nexit 3\n' >"$tmp/fails.sh"
chmod +x "$tmp"/*.sh

# --- checks ---
header='^  [^ ].*, Context [0-9]+, Stream [0-9]+, Device [0-9]+, CC [0-9.]+'
headers() { # FILE
    grep -cE "$header" "$1"
}

launches_in() { # SESSION
    # the ending of a session may be left out; a range is a launch, too
    ncu -i "$1" --page raw --csv --config-file off | csv_rows
}

csv_rows() {
    grep -v '^==' | sed -n 's/^"\([0-9][0-9]*\)",.*/\1/p' | sort -u | wc -l
}

check() { # CASE CHECK
    text=$(echo "${2#*=}" | tr _ ' ')
    case $2 in
    rc=*) ;;
    launches=*) expect "$1: launches" "$(headers out)" "${2#*=}" ;;
    rows=*) expect "$1: rows" "$(csv_rows <out)" "${2#*=}" ;;
    stored=*)
        text=${2#*=}
        expect "$1: stored" "$(launches_in "${text%:*}")" "${text##*:}"
        ;;
    file=*)
        text=${2#*=}
        expect "$1: file" "$(headers "${text%:*}")" "${text##*:}"
        ;;
    wrote=*)
        text=${2#*=}
        grep -q -- "${text#*:}" "${text%%:*}" || fail "$1: ${text%%:*} has no ${text#*:}"
        ;;
    has=*) grep -qF -- "$text" out || grep -qF -- "${2#*=}" out || fail "$1: not there: ${2#*=}" ;;
    lacks=*) ! grep -qF -- "$text" out && ! grep -qF -- "${2#*=}" out || fail "$1: there: ${2#*=}" ;;
    ended) ! grep -q 'its own end' out || fail "$1: the program was not ended" ;;
    *) fail "$1: no such check: $2" ;;
    esac
}

try() { # OPTIONS PROGRAM CHECKS
    name=$(echo "ncu $1" | tr -s ' ' | sed 's/: /:/g; s/ $//')
    in_case "$name" || return 0
    rm -rf "$tmp/here"
    cp -r "$tmp/files" "$tmp/here"
    cd "$tmp/here" || exit 1
    wanted=$(echo " $3 " | sed -n 's/.* rc=\([0-9]*\) .*/\1/p')
    set -f
    eval "set -- \"$3\" $(echo "$1" | sed 's/|/\\|/g; s/\*/\\*/g') $(program_of "$2")"
    set +f
    checks=$1
    shift
    ncu "$@" >out 2>err </dev/null
    expect "$name: exit status" $? "${wanted:-0}"
    for one in $checks; do
        check "$name" "$one"
    done
    [ "$failures" = "${failures_before:-0}" ] || sed 's/^/    /' err | tail -n 5
    failures_before=$failures
}

tried=0
while IFS= read -r line; do
    case $line in '#'* | '') continue ;; esac
    # a | within the options has no blanks around it
    options=${line%% | *}
    [ "${line# | }" = "$line" ] || options=
    rest=${line#*" | "}
    case "${rest%% | *}" in nvtx) LD_LIBRARY_PATH=$fakes "$programs/p_nvtx" >/dev/null; [ $? = 77 ] && continue ;; esac
    try "$options" "${rest%% | *}" "${rest#* | }"
    tried=$((tried + 1))
done <"$source/tests/data/ncu-command-lines"
cd "$source" || exit 1

# --- stderr, which scripts join to stdout, has nothing in front of the header of stored CSV ---
ncu -i examples/h200-demo.kprof --page raw --csv >/dev/null 2>"$tmp/err"
expect "stored CSV: stderr" "$(cat "$tmp/err")" ""
LD_LIBRARY_PATH=$fakes "$build/kprof" report --page raw --csv examples/h200-demo.kprof 2>&1 >/dev/null |
    grep -q '^==KPROF== CSV has one value' || fail "stored CSV: this session has nothing to tell of"

# --- closed stdout: measured all the same ---
ncu -c 2 -o "$tmp/closed" --page details "$programs/p_direct" >&- 2>"$tmp/err"
expect "closed stdout: exit status" $? 0
expect "closed stdout: report on stderr" "$(headers "$tmp/err")" 2
expect "closed stdout: stored" "$(launches_in "$tmp/closed")" 2
grep -q '^==WARNING== stdout is closed' "$tmp/err" || fail "closed stdout: no line says where the report is"
[ "$tried" -ge 60 ] || [ -n "${KP_TEST_CASES:-}" ] || fail "lines: $tried were tried"
finish
