#!/bin/sh
# Usage: gen_tables.sh KPROF FILE
# Prints a Markdown file with its tables remade. A line `<!-- table NAME ... -->` starts one, `<!-- end -->` ends it;
# the lines between them are replaced. A name is a function below. `make tables` writes the files.
set -eu
export LC_ALL=C
kprof=$1
file=$2
source=$(dirname "$0")/..
tab=$(printf '\t')

words() { "$kprof" --list-words | sed -n "s/^$1$tab//p"; }

# Rows of a table of X-macros: DEF MACRO PARAMETERS FIELDS prints FIELDS of each row of MACRO(PARAMETERS), as C's
# preprocessor sees them, with tabs in place of '|'. The other macros of the table are empty.
rows() {
    {
        grep -oE 'KP_[A-Z_]+\(' "$source/$1" | tr -d '(' | sort -u | grep -vx "$2" | while read -r macro; do
            grep -qE "^#define $macro\b" "$source/$1" || echo "#define $macro(...)"
        done
        echo "#define $2($3) ROW $4 END"
        echo "#include \"$1\""
    } | ${CC:-cc} -E -P -I"$source" - | tr '\n' ' ' | sed 's/ROW /\n/g' |
        sed -n '1d; s/ END .*//; s/"  *"//g; s/"//g; s/ *| */\t/g; p'
}

# Reads fields separated by tabs, prints rows of a Markdown table.
markdown() { sed "s/|/\\\\|/g; s/$tab/ | /g; s/^/| /; s/\$/ |/"; }

statuses() {
    echo '| status | failure | meaning |'
    echo '| --- | --- | --- |'
    words status | awk -F '\t' -v OFS='\t' '{$2 = "`" $2 "`"; print}' | markdown
}

queries() {
    echo '| command or flag | what it does |'
    echo '| --- | --- |'
    words query | awk -F '\t' -v OFS='\t' '{print "`--" $1 ($2 == "" ? "" : " " $2) "`", $3}' | markdown
}

own_flags() { # COMMAND
    echo '| flag | meaning |'
    echo '| --- | --- |'
    words own | awk -F '\t' -v OFS='\t' -v command="$1" \
        '$1 == command {print "`--" $2 ($3 == "" ? "" : " " $3) "`", $4}' | markdown
}

# The options of ncu that are the same in one row, the others in one each.
of_ncu() {
    echo '| ncu | kprof |'
    echo '| --- | --- |'
    words ncu | awk -F '\t' '$2 == "same" && $4 == "" {list = list (list == "" ? "" : ", ") "`--" $1 "`"} END {print list "\tthe same"}' |
        markdown
    words ncu | awk -F '\t' -v OFS='\t' '$2 == "same" && $4 != "" {print "`--" $1 "`", "the same; " $4}
        $2 == "file" {print "`--" $1 ($3 ~ /[*]/ ? "" : " " $3) "`", $4}
        $2 == "as" {print "`--" $1 "`", $4}
        $2 == "any" {print "`--" $1 ($3 ~ /^$|[*]/ ? "" : " " $3) "`", "accepted, without an effect: " $4}
        $2 == "not" {print "`--" $1 "`", "not there: " $4}' | markdown
}

diff_flags() { own_flags diff; }
report_flags() { own_flags report; }

sections() {
    echo '| section | its name in the report | sets |'
    echo '| --- | --- | --- |'
    rows report/define/sections.def KP_SECTION 'id, name, order, sets, ...' 'id | name | sets' |
        awk -F '\t' -v OFS='\t' '{gsub(/,/, ", ", $3); print "`" $1 "`", $2, $3}' | markdown
}

sets() {
    echo '| set | sections |'
    echo '| --- | --- |'
    rows report/define/sections.def KP_SECTION 'id, name, order, sets, ...' 'id | sets' >"$scratch/sections"
    words set | awk -F '\t' -v OFS='\t' '
        NR == FNR { n = split($2, set, ","); for (i = 1; i <= n; i++) in_set[set[i]] = in_set[set[i]] ", `" $1 "`"; next }
        { print "`" $1 "`", substr(in_set[$1], 3) }' "$scratch/sections" - | markdown
}

rules() {
    echo '| rule | section | what it looks at |'
    echo '| --- | --- | --- |'
    rows report/judge/rules.def KP_ABOUT 'id, text' 'id | text' >"$scratch/about"
    rows report/judge/rules.def KP_RULE 'id, section, ...' 'id | section' |
        awk -F '\t' -v OFS='\t' 'NR == FNR {about[$1] = $2; next} {print "`" $1 "`", "`" $2 "`", about[$1]}' \
            "$scratch/about" - | markdown
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
names=$(sed -n 's/^<!-- table \([a-z_]*\).*/\1/p' "$file")
for name in $names; do
    case $name in
    statuses | queries | of_ncu | diff_flags | report_flags | sections | sets | rules) "$name" >"$scratch/table.$name" ;;
    *)
        echo "gen_tables: $file: no table is called $name" >&2
        exit 1
        ;;
    esac
    [ "$(wc -l <"$scratch/table.$name")" -gt 2 ] || { echo "gen_tables: the table $name is empty" >&2; exit 1; }
done
awk -v scratch="$scratch" '
    /^<!-- table / {
        print
        name = $3
        sub(/:.*/, "", name)
        while ((getline line < (scratch "/table." name)) > 0)
            print line
        inside = 1
    }
    /^<!-- end -->$/ { inside = 0 }
    !inside { print }' "$file"
