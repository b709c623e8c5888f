#!/bin/sh
# The Markdown documents: their tables match the code, their links and paths exist, the options and variables that they
# name are kprof's, and their commands on recorded sessions work. The README's picture shows the actual output.
. "$(dirname "$0")/e2e.inc"
release_only "documents are of no build"
kprof=$(realpath "$build/kprof")
build=$(realpath "$build")
programs=$build/programs
cd "$source" || exit 1
documents="README.md CONTRIBUTING.md CHANGELOG.md examples/README.md $(echo docs/*.md docs/internals/*.md)"

[ "$(wc -c <README.md)" -le 12288 ] || fail "README.md has more than 12 KB: $(wc -c <README.md)"
[ "$(wc -c <CHANGELOG.md)" -le 4096 ] || fail "CHANGELOG.md has more than 4 KB: $(wc -c <CHANGELOG.md)"

# --- what `make demo` fetches ---
for word in 'apt-get' git 'ca-certificates' 'Python 3' SQLite PCRE2 libdw libunwind 'CUDA 13'; do
    sed -n '/^## Two commands/,/^## /p' README.md | grep -q "$word" || fail "README.md says nothing of $word, which make demo fetches"
done

# --- tables that are made of the code: `make tables` writes them ---
for file in $documents; do
    tools/gen_tables.sh "$kprof" "$file" >"$tmp/made" || fail "gen_tables.sh $file"
    diff "$file" "$tmp/made" >"$tmp/diff" || { fail "$file is stale, run make tables"; cat "$tmp/diff"; }
done
tools/gen_locks.sh | diff docs/locks.md - || fail "docs/locks.md is stale, run make tables"
tools/gen_waits.sh | diff docs/waits.md - || fail "docs/waits.md is stale, run make tables"
tools/gen_limits.sh | diff docs/limits.md - || fail "docs/limits.md is stale, run make tables"
[ "$(wc -c <docs/limits.md)" -le 12288 ] || fail "docs/limits.md has more than 12 KB: $(wc -c <docs/limits.md)"

# --- reasons: code uses each that is printed ---
# Prints the reasons of a file that no code uses; limits are for the document alone.
unused_reasons() {
    sed -n 's/^KP_REASON(\([A-Z0-9_]*\),.*/KP_REASON_\1/p' "$1" | grep -v '^KP_REASON_L_' | sort >"$tmp/reasons"
    grep -rhow 'KP_REASON_[A-Z0-9_]*' --include='*.c' --include='*.h' preload collectors cmd report | sort -u |
        comm -23 "$tmp/reasons" -
}
expect "reasons that no code uses" "$(unused_reasons report/model/reasons.def)" ""
{ cat report/model/reasons.def; echo 'KP_REASON(NOBODY, "nobody", VALUE, "x", "", "")'; } >"$tmp/more.def"
expect "a reason that no code uses is seen" "$(unused_reasons "$tmp/more.def")" KP_REASON_NOBODY

# --- waits: code asks each row, and the table has all limits ---
# Prints the rows of a file that no code asks.
unused_waits() {
    sed -n 's/^KP_\(WAIT\|SPAN\)(\([A-Z_]*\),.*/KP_\1_\2/p' "$1" | sort >"$tmp/waits"
    grep -rhowE 'KP_(WAIT|SPAN)_[A-Z_]*' --include='*.c' base collectors cupti preload | sort -u | comm -23 "$tmp/waits" -
}
expect "waits that no code asks" "$(unused_waits base/waits.def)" ""
{ cat base/waits.def; echo 'KP_WAIT(NOBODY, 1, 1, 1, "x", "y")'; } >"$tmp/more.def"
expect "a wait that no code asks is seen" "$(unused_waits "$tmp/more.def")" KP_WAIT_NOBODY
# An age of a window and of an answer, and a period of CUPTI's threads, are not waits.
expect "times beside the table" "$(grep -rlE '\b[A-Z_]*_MS *= *[0-9]' --include='*.[ch]' base collectors cupti preload | sort | tr '\n' ' ')" \
    "collectors/run/collector.c cupti/pcsamp.c preload/gate/window_facts.c "

for table in statuses queries diff_flags report_flags sets sections rules; do
    expect "tables $table of the manual" "$(grep -c "^<!-- table $table:" docs/manual.md)" 1
done
# A stale table is seen, and so is one that nobody makes.
sed 's/^| 80 | `damage`/| 80 | `damages`/' docs/manual.md >"$tmp/stale.md"
tools/gen_tables.sh "$kprof" "$tmp/stale.md" | diff -q - "$tmp/stale.md" >/dev/null && fail "a stale table is not seen"
printf '<!-- table nonesuch: x -->\n<!-- end -->\n' >"$tmp/none.md"
tools/gen_tables.sh "$kprof" "$tmp/none.md" >/dev/null 2>"$tmp/said" && fail "a table that nobody makes is let through"
grep -q nonesuch "$tmp/said" || fail "a table that nobody makes is not named: $(cat "$tmp/said")"

# The statuses of failures: all, in their order, and no others.
"$kprof" --list-words | sed -n 's/^status\t//p' >"$tmp/statuses"
expect "statuses in the manual" "$(sed -n 's/^| \([0-9][0-9]*\) | `\([a-z-]*\)` | \(.*\) |$/\1\t\2\t\3/p' docs/manual.md)" \
    "$(cat "$tmp/statuses")"

# --- links: files, and headings of the documents ---
slugs() { sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'; }
for file in $documents; do
    for link in $(grep -oE '\]\([^)]+\)' "$file" | sed 's/^](//; s/)$//'); do
        case $link in http*) continue ;; esac
        target=${link%%#*}
        path=$file
        [ -z "$target" ] || path=$(dirname "$file")/$target
        [ -e "$path" ] || { fail "$file: no file $link"; continue; }
        case $link in *'#'*) slugs "$path" | grep -qx -e "${link#*#}" || fail "$file: no heading $link" ;; esac
    done
done

# --- paths in backticks: files of the repository, wherever a document names one ---
folders='base|cmd|collectors|cupti|docs|examples|packaging|preload|report|tests|tools'
for file in $documents; do
    for path in $(grep -oE '`('"$folders"')/[A-Za-z0-9_./*{},-]*`' "$file" | tr -d '`' | sort -u); do
        # NAME stands for one of many, as in test_NAME.c
        case $path in *[A-Z]*) path=$(echo "$path" | sed 's/[A-Z][A-Z]*/*/g') ;; esac
        ls -d $path >/dev/null 2>&1 || case $path in *RESULTS* | *README*) ;; *) fail "$file: there is no $path" ;; esac
    done
done
[ "$(grep -oE '`('"$folders"')/[A-Za-z0-9_./-]*`' docs/adding.md | sort -u | wc -l)" -gt 20 ] || fail "docs/adding.md names few paths"

# --- `make goldens`, which the recipes end with, runs the test of each expected text ---
# The variables of the make that runs this test would have it print more.
goldens=$(env -u MAKEFLAGS -u MAKELEVEL make -s list-goldens) || fail "make list-goldens"
for file in tests/golden/*; do
    tests=$(grep -lF "\"$file\"" tests/unit/*/*.c) || continue
    found=
    for test in $tests; do
        case " $goldens " in *" $(basename "$test" .c) "*) found=1 ;; esac
    done
    [ -n "$found" ] || fail "make goldens does not write $file anew"
done
[ "$(echo "$goldens" | wc -w)" -gt 15 ] || fail "make goldens runs few tests: $goldens"

# --- the way of a launch as functions: each is defined in its file ---
sed -n '/^<!-- functions of one launch/,/^<!-- end/s@^ *\([a-z][A-Za-z_]*\)  *\([a-z/_]*\.c\)  *[0-9].*@\1 \2@p' docs/architecture.md >"$tmp/functions"
# Whether a file defines a function: that begins at the left edge, and its line is no declaration.
defines() { # FILE FUNCTION
    grep -E "^[A-Za-z].*\b$2\(" "$1" | grep -qv ';$'
}
while read -r function file; do
    defines "$file" "$function" || fail "docs/architecture.md: $file does not define $function"
done <"$tmp/functions"
expect "functions of one launch" "$(wc -l <"$tmp/functions")" \
    "$(sed -n '/^<!-- functions of one launch/,/^<!-- end/p' docs/architecture.md | grep -c '\.c  ')"
expect "lines of the drawing between which one thread is alone" \
    "$(sed -n '/^```text/,/^```$/p' docs/architecture.md | grep '^=' | awk '{ print length }' | tr '\n' ' ')" "100 100 100 100 "
[ "$(wc -l <"$tmp/functions")" -gt 40 ] || fail "docs/architecture.md tells the way of a launch in few functions"

# --- pages of the inside: a function with its file is defined there, any other name is declared in a file that the page names ---
# Prints what is wrong with a page.
names_of() { # PAGE
    files=$(grep -oE '`[a-z/]+/[a-z_]+\.[ch]`' "$1" | tr -d '`' | sort -u | while read -r f; do [ ! -e "$f" ] || echo "$f"; done)
    sed -n 's/^| `\([a-z_]*\)` | `\([a-z/_]*\.[ch]\)` |.*/\1 \2/p' "$1" >"$tmp/pairs"
    while read -r function file; do
        defines "$file" "$function" || echo "$file does not define $function"
    done <"$tmp/pairs"
    [ "$(wc -l <"$tmp/pairs")" -ge 6 ] || echo "it says where to look in few rows"
    for name in $(grep -oE '`((struct|enum) )?kp_[a-z0-9_]+`' "$1" | sed 's/.* //' | tr -d '`' | sort -u); do
        # shellcheck disable=SC2086 # several files
        grep -qE "^[A-Za-z].*\b$name\b" $files || echo "no file that it names has $name"
    done
    [ "$(wc -l <"$1")" -le 60 ] || echo "it has more than 60 lines"
}
expect "modes of docs/internals/modes.md" "$(sed -n '/^## The modes/,/^## The life/s/^| \([a-z, -]*\) | .*/\1/p' docs/internals/modes.md | grep -vx -e mode -e ---)" \
    "$(sed -n '/^const struct kp_mode kp_modes/,$s/.*\.name = "\([^"]*\)".*/\1/p' preload/mode/modes.c | awk '!said[$0]++')"
for file in docs/internals/*.md; do
    expect "names of $file" "$(names_of "$file")" ""
done
sed 's/`kp_gate_enter_shared` | /`kp_gate_enter_shard` | /; s/`kp_passing_outdate`/`kp_passing_outdates`/' docs/internals/gate.md >"$tmp/page.md"
expect "a page with wrong names" "$(names_of "$tmp/page.md")" "preload/gate/gate.c does not define kp_gate_enter_shard
no file that it names has kp_gate_enter_shard
no file that it names has kp_passing_outdates"

# --- what calls do to a window is what their class does ---
wrong_calls() { # FILE
    awk -F'[(,)]' '
        BEGIN {
            does["passes"] = " PURE CREATE TEXTURE SYNC MODULE LOAD GLOBAL POOL ASK_FREE ASK_POOL SET_FUNCTION SET_KERNEL SET_CACHE MAP ACCESS RELEASE GRAPH_END DOOR "
            does["joins"] = " LAUNCH JOIN JOIN_WORK ALLOC ALLOC_PITCH ALLOC_ASYNC CALL_HOST "
            does["kept"] = " FREE FREE_ASYNC STREAM_END TEXTURE_END SURFACE_END UNLOAD UNLOAD_LIBRARY DOOR "
            does["closes"] = " GATE WORK HOLD MANAGED SET IMAGE CTX_END CAPTURE_BEGIN DOOR "
        }
        FNR == NR { if (/^KP_API/) { gsub(/ /, ""); class[$3] = $4 }; next }
        /^\| `cu/ {
            split($0, column, " [|] "); split(column[2], word, /[ ,]/)
            while (match(column[1], /`cu[A-Za-z]*`/)) {
                name = substr(column[1], RSTART + 1, RLENGTH - 2)
                column[1] = substr(column[1], RSTART + RLENGTH)
                if (!index(does[word[1]], " " class[name] " ") || !class[name]) print name ": " word[1] ", class " class[name]
            }
        }' preload/doors/cuda_api.def "$1"
}
expect "calls of docs/calls.md" "$(wrong_calls docs/calls.md)" ""
sed 's/^\(| `cuTexObjectDestroy`.* | \)kept/\1passes/; s/cuMemAdvise/cuMemAdvice/' docs/calls.md >"$tmp/page.md"
expect "a page with wrong calls" "$(wrong_calls "$tmp/page.md")" "cuMemAdvice: closes, class 
cuTexObjectDestroy: passes, class TEXTURE_END
cuSurfObjectDestroy: passes, class SURFACE_END"

# --- every room has its row ---
sed 's/#.*//' rooms.txt | awk 'NF == 1' | sort >"$tmp/rooms"
sed -n 's/^| `\([a-z/]*\)` |.*/\1/p' docs/architecture.md | sed 's@/$@@' | sort >"$tmp/told"
diff "$tmp/rooms" "$tmp/told" || fail "docs/architecture.md has other rooms than rooms.txt"

# --- options and variables ---
{
    "$kprof" --help | grep -oE -e '--[a-z-]+'
    "$kprof" --list-words | sed -n 's/^own\tdiff\t\([a-z-]*\)\t.*/--\1/p'
} | sort -u >"$tmp/flags"
for file in $documents; do
    sed -n 's/^ \{4,\}\(.* \)\{0,1\}\(build\/\)\{0,1\}kprof / /p' "$file" | sed 's/ -- .*//; s/#.*//' |
        grep -oE -e ' --[a-z-]+' | tr -d ' ' | sort -u >"$tmp/used"
    for flag in $(comm -23 "$tmp/used" "$tmp/flags"); do fail "$file: kprof has no $flag"; done
done
# Also those that no document lists, and some explain.
cat "$source"/report/options/*.def | sed -n 's/^KP_\(OPTION\|CHOICES*\)([^"]* "\([a-z-]*\)".*/KPROF_\2/p' | tr a-z- A-Z_ | sort -u >"$tmp/variables"
for file in $documents; do
    for variable in $(grep -oE 'KPROF_[A-Z]+[A-Z_]*' "$file" | sort -u | comm -23 - "$tmp/variables"); do
        fail "$file: there is no variable $variable"
    done
done

# --- what stands in place of ncu's options: the table's texts are kprof's answers ---
sed -n 's/^| `\(--[a-z-]*\)` | not there: \(.*\) |$/\1 \2/p' docs/coming-from-ncu.md >"$tmp/answers"
answers=0
while read -r flag answer; do
    said=$("$kprof" "$flag" x 2>&1)
    case $said in "==ERROR== unknown option $flag; "*) ;; *) continue ;; esac
    answers=$((answers + 1))
    expect "what kprof says of ncu's $flag" "${said#*; }" "$answer"
done <"$tmp/answers"
[ $answers -gt 5 ] || fail "docs/coming-from-ncu.md has the answers to $answers options"

# --- commands over recorded sessions: each line of code that names one is run as it stands ---
runs=0
for file in $documents; do
    sed -n 's/^ \{4,\}\(build\/kprof [a-z].*examples\/.*\.kprof.*\)/\1/p' "$file" >"$tmp/commands"
    while read -r command; do
        runs=$((runs + 1))
        command=$kprof${command#build/kprof}
        LC_ALL=C sh -c "$command" >"$tmp/out" 2>"$tmp/err" || fail "$file: $command: $(cat "$tmp/err")"
        [ -s "$tmp/out" ] || fail "$file: $command prints nothing"
    done <"$tmp/commands"
done
[ $runs -gt 5 ] || fail "the documents have only $runs commands over recorded sessions"

# --- commands that run a program: each is run over the fakes, with a program of the tests in its place ---
runs=0
mkdir "$tmp/runs"
for file in $documents; do
    sed -n 's/^ \{4,\}\(.* \)\{0,1\}build\/kprof \(.*\(\.\/program\|python train\.py\)\).*/\2/p' "$file" >"$tmp/commands"
    while read -r command; do
        runs=$((runs + 1))
        line=$(echo "$command" | sed "s@\./program@$programs/p_direct@; s@python train\.py@$programs/p_direct@; s@ examples/@ $source/examples/@")
        (cd "$tmp/runs" && LD_LIBRARY_PATH="$build/fake" sh -c "$kprof $line") >"$tmp/out" 2>"$tmp/err" </dev/null ||
            fail "$file: kprof $command: $(cat "$tmp/err")"
        grep "^==ERROR==" "$tmp/err" && fail "$file: kprof $command"
        grep -q '==KPROF== .* seen' "$tmp/err" || fail "$file: kprof $command: no report"
        rm -f "$tmp/runs"/*
    done <"$tmp/commands"
done
[ $runs -gt 15 ] || fail "the documents run a program in $runs commands only"

# --- the README's picture: its lines, but for `...`, are lines of the output, in this order ---
picture=$(sed -n 's/^<!-- picture: build\/kprof \(.*\) -->$/\1/p' README.md)
# shellcheck disable=SC2086 # words of a command
"$kprof" $picture 2>&1 | sed 's/ *$//' >"$tmp/out"
sed -n '/^<!-- picture/,/^## /s/^    //p' README.md >"$tmp/picture"
[ "$(wc -l <"$tmp/picture")" -gt 20 ] || fail "the README has no picture"
awk 'NR == FNR { out[++n] = $0; next }
    /^ *\.\.\.$/ { next }
    { while (at < n && out[at + 1] != $0) at++; if (at++ >= n) { print "not in the output: " $0; exit 1 } }' "$tmp/out" "$tmp/picture" ||
    fail "the README's picture is not what kprof $picture prints"

finish
