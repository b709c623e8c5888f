#!/bin/bash
# Usage: roots.sh [SUITE [ROW...]]
# The README's two commands on bare machines: `make demo` and `make test` of this repository's commit in a Debian that has
# nothing but git, make and certificates (tests/root.sh), a fresh one for each row below, or for the rows named. Prints a table
# for tests/RESULTS.md; ends with 1 where a command or a test has failed. An ordinary user may install nothing: `make demo`
# has to end with one line for the administrator, which is then run as root. Needs root, 2 GB, and ten minutes a row
# on two cores. The logs of what failed stay in the folder ROOTS.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
roots=${ROOTS:-$(mktemp -d)}
suite=${1:-trixie}
[ $# -eq 0 ] || shift

# Whose and where, the umask, HOME (/proc: nobody can write there), and how many loops compete with it.
rows='root    root  /usr/src/libkprof     022 /root       0
      user    kprof /home/kprof/libkprof  022 /home/kprof 0
      private kprof /srv/private/libkprof 077 /proc       0
      own     root  /srv/private/libkprof 077 /proc       0
      busy    kprof /home/kprof/libkprof  022 /home/kprof 4'

in_root() { # USER COMMAND...
    nice "$here/root.sh" run "$root" "$@" </dev/null
}

make_as_told() { # TARGET
    in_root "$user" env HOME="$home" sh -c "umask $mask && cd $folder && make $1" >"$root.$1.log" 2>&1
}

# Makes the target; appends a cell to the row of the table.
cell() { # TARGET
    local start=$SECONDS code=0
    make_as_told "$1" || code=$?
    [ $code -eq 0 ] || failed=1
    table="$table | $code, $((SECONDS - start)) s"
}

# What an administrator is asked for, which is done.
ask() {
    local line
    ! make_as_told demo || return 0
    line=$(sed -n 's/^setup: .*: \(apt-get install .*\)/\1/p' "$root.demo.log")
    [ "$(grep -vc '^make' "$root.demo.log")" = 1 ] && [ -n "$line" ] && in_root root $line >"$root.ask.log" 2>&1
}

compete() { # HOW_MANY
    for loop in $(seq "$1"); do
        nice sh -c 'while :; do :; done' &
        loops="$loops $!"
    done
}

row() { # ROW USER FOLDER UMASK HOME LOAD
    root=$roots/$1 user=$2 folder=$3 mask=$4 home=$5 loops= table="| $suite | $1"
    cp -a "$roots/bare" "$root"
    in_root root useradd -m kprof
    mkdir -p "$root/${folder%/*}"
    [ "$home" != /proc ] || chmod 700 "$root/${folder%/*}"
    "$here/root.sh" copy "$root" "$user" "$folder"
    compete "$6"
    [ "$user" = root ] || ask || { failed=1 table="$table (not one line for the administrator)"; }
    cell demo
    cell test
    [ -z "$loops" ] || kill $loops
    echo "$table | $(grep -E '^[0-9]+ passed' "$root.test.log" | tail -n 1) |"
    rm -rf "$root"
}

failed=0
"$here/root.sh" make "$suite" "$roots/bare" || exit 1
echo "| suite | row | make demo | make test | tests |"
echo "| --- | --- | --- | --- | --- |"
while read -r name rest; do
    case " ${*:-$name} " in *" $name "*) row "$name" $rest ;; esac
done <<<"$rows"
rm -rf "$roots/bare"
[ $failed -eq 0 ] && rm -rf "$roots" || echo "roots: logs are in $roots"
exit $failed
