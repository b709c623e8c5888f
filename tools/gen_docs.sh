#!/bin/sh
# Usage: gen_docs.sh KPROF TEMPLATE
# Prints a man page or a completion: the template, with what the command says of itself (kprof --list-words) in the
# places that are marked for it, see gen_docs.awk. SOURCE_DATE_EPOCH gives the page's date.
set -eu
export LC_ALL=C
kprof=$1
template=$2
tab=$(printf '\t')
words=$("$kprof" --list-words)
version=$("$kprof" --version | cut -d' ' -f2)
date=$(date -u -d "@${SOURCE_DATE_EPOCH:?}" +%Y-%m-%d)

fields() { # KIND FIELDS: of the lines of a kind
    printf '%s\n' "$words" | sed -n "s/^$1$tab//p" | cut -f"$2"
}

# Whether a command takes a flag is known to it alone. It is asked by a line that is wrong in any case, so that it does
# nothing else: the flag's value is missing, or an unknown flag follows.
takes() { # COMMAND FLAG VALUE
    if [ -n "$3" ]; then
        said=$("$kprof" "$1" "--$2" 2>&1 </dev/null || true)
    else
        said=$("$kprof" "$1" "--$2" --no-such-flag 2>&1 </dev/null || true)
    fi
    case $said in
    *"option --$2;"*) return 1 ;;
    esac
}

# Lines `takes COMMAND FLAG`, of the commands that are no queries: those take all flags.
all_takes() {
    for command in $(fields command 1); do
        ! fields query 1 | grep -qx "$command" || continue
        fields option 1,5 | while IFS=$tab read -r flag value; do
            ! takes "$command" "$flag" "$value" || printf 'takes\t%s\t%s\n' "$command" "$flag"
        done
    done
}

{ printf '%s\n' "$words"; all_takes; } | awk -v template="$template" -v version="$version" -v date="$date" \
    -f "$(dirname "$0")/gen_docs.awk" - "$template"
