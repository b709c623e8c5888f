#!/bin/sh
# The man pages and completions: every flag, variable and command of kprof is in them, and they have no faults.
. "$(dirname "$0")/e2e.inc"
docs=$build/docs
[ -e "$docs/kprof.1" ] || { echo "skipped: no $docs, run make docs"; exit 77; }
kprof=$(realpath "$build/kprof")

pages="kprof.1 kprof-report.1 kprof-diff.1 kprof-doctor.1 libkprof.7"
# What the pages have paragraphs for.
for page in $pages; do
    sed -n '/^\.TP$/{n;p;}' "$docs/$page" >"$tmp/$page"
done
# FILE PATTERN WHAT
has() { grep -qE -e "$2" "$1" || fail "$(basename "$1"): $3 is missing"; }
needs() { command -v "$1" >/dev/null || { echo "without $1: $2 is not checked"; false; }; }

# Flags as a user sees them, not as the generator does.
# Behind them --help has those of ncu, which no document lists but coming-from-ncu.md.
help() { "$kprof" --help | sed '/^The options of ncu/,$d'; }
flags=$(help | sed -n 's/^  *\(-[a-z], *\)\{0,1\}--\([a-z-]*\).*/\2/p')
commands=$("$kprof" --list-words | sed -n 's/^command.//p')
[ "$(echo "$flags" | wc -l)" -gt 20 ] || fail "--help shows few flags: $flags"
for flag in $flags; do
    roff=$(echo "$flag" | sed 's/-/\\\\-/g')
    has "$docs/kprof.bash" "^--$flag " "--$flag"
    has "$docs/_kprof" "--$flag(=|\[|})" "--$flag"
    # A command's flag is told of with the command.
    if echo "$commands" | grep -qx -e "$flag"; then
        has "$tmp/kprof.1" "^.fBkprof $roff.fR" "the command $flag"
    else
        has "$tmp/kprof.1" "^(.fB.-[a-z].fR, )?.fB.-.-$roff.fR" "--$flag"
    fi
done
for command in $commands; do
    has "$tmp/kprof.1" "^.fBkprof $(echo "$command" | sed 's/-/\\\\-/g').fR" "the command $command"
done
for letter in $(help | sed -n 's/^  *-\([a-z]\),.*/\1/p'); do
    has "$tmp/kprof.1" "^.fB.-$letter.fR, " "-$letter"
    has "$docs/kprof.bash" " -$letter " "-$letter"
done
# The pages of the commands: each flag that the command takes, and none that it refuses.
for command in report diff; do
    taken=0
    for flag in $flags; do
        case $flag in help | version) continue ;; esac
        roff=$(echo "$flag" | sed 's/-/\\\\-/g')
        said=$("$kprof" "$command" "--$flag" 2>&1 </dev/null)
        case $said in
        *"unknown option --$flag"* | *"has no option --$flag"*)
            ! grep -qE "^(.fB.-[a-z].fR, )?.fB.-.-$roff.fR" "$tmp/kprof-$command.1" || fail "kprof-$command.1: --$flag is refused"
            ;;
        *)
            taken=$((taken + 1))
            has "$tmp/kprof-$command.1" "^(.fB.-[a-z].fR, )?.fB.-.-$roff.fR" "--$flag"
            ;;
        esac
    done
    [ $taken -gt 8 ] || fail "kprof $command takes $taken options"
done
for command in report diff doctor; do
    has "$docs/kprof.1" "^.BR kprof.-$command \(1\)" "the page of kprof $command"
done
# The library's side: the names under which the rows reach the environment.
# Those for kprof's own developers are in no document.
rows=$(awk 'BEGIN { RS = "\nKP_" } /^(OPTION|CHOICES*)\(/ && !/[ ,]TOOLS,/ { split($0, part, "\""); print part[2] }' "$source/report/options/options.def")
expect "rows of options.def" "$(echo "$rows" | wc -l)" "$("$kprof" --list-words | grep -c ^option)"
for row in $rows; do
    has "$tmp/libkprof.7" "^.fBKPROF_$(echo "$row" | tr a-z- A-Z_).fR=" "the variable of $row"
done
# The manual's table of options is what the command says: tools/gen_manual.sh writes it.
"$source/tools/gen_manual.sh" "$kprof" "$source/docs/manual.md" >"$tmp/page" || fail "gen_manual.sh"
grep -qx '<!-- options -->' "$tmp/page" || fail "the manual has no table of options"
diff "$source/docs/manual.md" "$tmp/page" || fail "the manual's table of options is stale: make tables"
# The statuses of failures, which the man page repeats: all, and no others. documents.sh looks into the manual.
"$kprof" --list-words | sed -n 's/^status\t//p' >"$tmp/statuses"
[ "$(wc -l <"$tmp/statuses")" -gt 10 ] || fail "--list-words shows few statuses"
expect "statuses in kprof.1" "$(sed -n '/^\.SS With .*strict/,/^\.SH/{/^\.TP$/{n;N;s/\\fB\([0-9]*\)\\fR \(.*\)\n/\1\t\2\t/;s/\\-/-/g;p;}}' "$docs/kprof.1")" \
    "$(cat "$tmp/statuses")"
expect "statuses in --help" "$("$kprof" --help | sed -n 's/^  \([0-9][0-9]\)  \([a-z-]*\) .*/\1 \2/p')" "$(cut -f1,2 "$tmp/statuses" | tr '\t' ' ')"
expect "statuses that stand twice" "$(cut -f1 "$tmp/statuses" | sort | uniq -d)" ""

for page in $pages; do
    has "$docs/$page" "^\.TH .*\"kprof $("$kprof" --version | cut -d' ' -f2)\"" "the version"
    ! grep -nE '^@|@[A-Z]+@' "$docs/$page" || fail "$page: a mark is left"
done

# Faults of form.
if needs groff "the pages' markup"; then
    for page in $pages; do
        said=$(groff -ww -man -Tutf8 "$docs/$page" 2>&1 >"$tmp/text")
        expect "groff on $page" "$said" ""
        [ "$(wc -l <"$tmp/text")" -gt 40 ] || fail "$page is short"
    done
fi
if needs man "the pages as man sees them"; then
    for page in $pages; do
        expect "man on $page" "$(MANROFFSEQ='' MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l "$docs/$page" 2>&1 >/dev/null)" ""
    done
fi
if needs shellcheck "the shell scripts' form"; then
    shellcheck -s bash "$docs/kprof.bash" || fail "shellcheck on the bash completion"
    shellcheck "$source/tools/gen_docs.sh" "$source/tools/gen_manual.sh" "$source/tools/gen_tables.sh" "$source/tools/gen_locks.sh" "$source/tools/gen_limits.sh" \
        "$source/tools/make_deb.sh" || fail "shellcheck"
fi

# What bash offers after a line, sorted, in one line.
bash_offers() { # LINE
    (cd "$tmp" && "$bash" --norc -c '
        compopt() { options+=" $*"; }
        source "$1"
        COMP_LINE=$2 COMP_POINT=${#2}
        # As readline cuts a line.
        read -ra COMP_WORDS <<<"$(sed "s/[=:]/ & /g" <<<"$2")"
        [[ $2 == *[[:blank:]=] ]] && [[ $2 != *= ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _kprof "$3"
        printf "%s\n" "${COMPREPLY[@]}" | sort | paste -sd" "
        [[ ! $options ]] || echo "compopt$options"' \
        bash "$completion" "$1" "$kprof") | paste -sd' ' | sed 's/^ *//' | cut -c1-400
}
offers() { expect "bash: [$1]" "$(bash_offers "$1")" "$2"; }
completion=$(realpath "$docs")/kprof.bash
bash=$(command -v bash)
if [ -n "$bash" ]; then
    mkdir "$tmp/folder"
    : >"$tmp/one.kprof"
    : >"$tmp/two.txt"
    offers 'kprof --set ' "$("$kprof" --list-words | sed -n 's/^set.//p' | sort | paste -sd' ')"
    offers 'kprof --set=qu' 'quick'
    offers 'kprof --print-units ' 'auto base'
    offers 'kprof --section LaunchS' 'LaunchStats compopt -o nospace'
    offers 'kprof --section Occupancy,LaunchS' 'Occupancy,LaunchStats compopt -o nospace'
    offers 'kprof --rule TensorC' 'TensorCoreUse compopt -o nospace'
    offers 'kprof --kernel-name ' ''
    offers 'kprof -k ' ''
    offers 'kprof --section-folder ' 'compopt -o dirnames'
    offers 'kprof -o ' 'compopt -o default'
    offers 'kprof --metrics a:b --quie' '--quiet'
    offers 'kprof --quie' '--quiet'
    offers 'kprof query-m' 'query-metrics'
    offers 'kprof list-r' 'list-rules'
    offers 'kprof list-sets --quie' '--quiet'
    offers 'kprof run --quie' '--quiet'
    offers 'kprof run --print-nvtx-rename ' 'kernel none'
    offers 'kprof report --print-u' '--print-units'
    offers 'kprof report --cache-c' ''
    offers 'kprof report --quie' ''
    offers 'kprof report ' 'folder one.kprof compopt -o filenames'
    offers 'kprof report t' 'compopt -o filenames'
    offers 'kprof --quiet -- report --set' 'compopt -o default'
    offers 'kprof --launch-skip 3 ./report --set' 'compopt -o default'
    if [ -n "$KP_REAL_CUPTI" ]; then
        export KPROF_CUPTI_DIR="$KP_REAL_CUPTI"
        offers 'kprof --chip GH10' 'GH100'
        offers 'kprof --metrics x,dram__bytes_rea' 'x,dram__bytes_read compopt -o nospace'
        unset KPROF_CUPTI_DIR
    fi
    "$bash" -n "$docs/kprof.bash" || fail "bash -n"
fi
# Names that a shell would run or expand, of a section file or on the line, are neither run nor offered.
mkdir "$tmp/hostile"
n=0
for name in '$(touch${IFS}ran)' '`touch${IFS}ran`' '$HOME' '*' ';touch${IFS}ran' "'" '${x:=ran}' '<(touch${IFS}ran)' harmless; do
    n=$((n + 1))
    printf 'Identifier: "hostile%s"\nDisplayName: "n"\nOrder: %d\nSets { Sets { Identifier: "hostileset%s" } }\n' "$name" $n "$name" \
        >"$tmp/hostile/$n.section"
done
if [ -n "$bash" ]; then
    export KPROF_SECTION_FOLDER="$tmp/hostile"
    expect "hostile sections" "$("$kprof" --list-words | grep -c '^section.hostile')" 9
    offers 'kprof --section hostile' 'hostileharmless compopt -o nospace'
    offers 'kprof --section=hostile' 'hostileharmless compopt -o nospace'
    offers 'kprof --set hostile' 'hostilesetharmless'
    for word in '$(touch${IFS}ran)' '`touch${IFS}ran`' 'a[$(touch${IFS}ran)]'; do
        for line in "--section $word" "--section $word,hostile" "--set $word" "$word" "--$word" "--set=$word" "$word --set " "report $word" "-- $word"; do
            bash_offers "kprof $line" >"$tmp/offered" 2>&1
        done
    done
    unset KPROF_SECTION_FOLDER
    [ -z "$(find "$tmp" -name ran)" ] || fail "bash: a completion ran what a name says"
fi

# What kprof says of itself reaches the documents: one that has more to say. A command of which the page says nothing
# stops the generator.
cat >"$tmp/kprof" <<END
#!/bin/sh
case \$1 in
--list-words) cat "$tmp/more" ;;
esac
exec "$kprof" "\$@"
END
chmod +x "$tmp/kprof"
generate() { SOURCE_DATE_EPOCH=0 "$source/tools/gen_docs.sh" "$tmp/kprof" "$source/packaging/$1.in"; }
printf 'command\tnonesuch\n' >"$tmp/more"
generate kprof.1 >/dev/null 2>"$tmp/said" && fail "a command without a description is let through"
grep -q nonesuch "$tmp/said" || fail "the command without a description is not named: $(cat "$tmp/said")"
{
    printf 'command\tdiff\n'
    printf 'own\tdiff\tonly-here\t{x,y}\tof [one] it'\''s: \\n\n'
    printf 'own\tdiff\tlimit\t[METRIC:]PERCENT\t.first word\n'
    printf 'option\tpages\tp\tKPROF_PAGES\tCHOICES\t{details,raw}\t\tuser\twhat is printed\n'
} >"$tmp/more"
for page in kprof.1 kprof.bash _kprof; do
    generate $page >"$tmp/more.$page" || fail "gen_docs.sh $page"
done
has "$tmp/more.kprof.1" '^.fB.-.-only.-here.fR \{x,y\}$' "a command's own flag"
has "$tmp/more.kprof.1" "^of \[one\] it's: .en\$" "a backslash"
has "$tmp/more.kprof.1" '^.&\.first word$' "a dot at the start"
has "$tmp/more.kprof.1" '^.fB.-p.fR, .fB.-.-pages.fR ' "an option with a letter"
if [ -n "$bash" ]; then
    completion=$tmp/more.kprof.bash
    offers 'kprof diff --onl' '--only-here'
    offers 'kprof --onl' ''
    offers 'kprof report --onl' ''
    offers 'kprof diff --se' '--section --section-folder --set'
    offers 'kprof diff --only-here ' 'x y'
    offers 'kprof --pages details,r' 'details,raw compopt -o nospace'
    offers 'kprof -p r' 'raw compopt -o nospace'
    offers 'kprof diff o' 'one.kprof compopt -o filenames'
fi

# zsh is asked through a terminal of its own; it waits for what is wanted, at most some seconds.
zsh_says() { # LINE PATTERN: what zsh prints up to that
    timeout 20 zsh -f -c '
        zmodload zsh/zpty
        zpty z "PATH=$3:\$PATH TERM=dumb zsh -f -i"
        zpty -w z "PS1=; fpath=($3 \$fpath); autoload -Uz compinit; compinit -u -D; stty columns 300 rows 200; LISTMAX=0; bindkey ^I list-choices; echo RE""ADY"
        zpty -r -m z out "*READY*" && zpty -n -w z "$1"$'\''\t'\''
        zpty -r -m z out "*$~2*" && print -r -- $out' zsh "$1" "$2" "$tmp/zsh"
}
zsh_offers() { zsh_says "$@" >"$tmp/offered" || fail "zsh: [$1] does not offer $2"; }
if needs zsh "the zsh completion"; then
    mkdir "$tmp/zsh"
    ln -s "$kprof" "$tmp/zsh/kprof"
    cp "$docs/_kprof" "$tmp/zsh/_kprof"
    zsh -n "$tmp/zsh/_kprof" || fail "zsh -n"
    zsh_offers 'kprof --set ' 'basic *full *pmsampling'
    zsh_offers 'kprof --section Occupancy,LaunchSt' 'LaunchStats'
    export KPROF_SECTION_FOLDER="$tmp/hostile"
    zsh_offers 'kprof --section hostile' 'hostileharmless'
    ! grep -q touch "$tmp/offered" || fail "zsh: a name that a shell would run is offered"
    unset KPROF_SECTION_FOLDER
    [ -z "$(find "$tmp" -name ran)" ] || fail "zsh: a completion ran what a name says"
    zsh_offers 'kprof list-' 'list-chips *list-sections *list-sets'
    zsh_offers 'kprof report --' '--print-units *-- auto: units*--set '
    grep -q -e --cache-control "$tmp/offered" && fail "zsh: a flag that kprof report does not take"
    cp "$tmp/more._kprof" "$tmp/zsh/_kprof"
    zsh_offers 'kprof diff --' "--limit *-- .first word*--only-here *-- of ?one? it's: ?n*--set "
    zsh_offers 'kprof --pages details,r' 'raw'
fi

finish
