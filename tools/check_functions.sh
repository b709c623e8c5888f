#!/bin/sh
# Fails on a function of more than 50 lines, or of a cyclomatic complexity above 20 (a switch counts its cases). Also
# fails on a file that pmccabe cannot follow, because its functions would go uncounted.
#   check_functions.sh FILE...
command -v pmccabe >/dev/null || { echo "check-functions: pmccabe is missing; make setup-checks installs it"; exit 1; }
told=$(mktemp) || exit 1
trap 'rm -f "$told"' EXIT
pmccabe "$@" 2>"$told" | awk -F '\t' '
    $2 > 20 || $5 > 50 { print $6 ": " $7 ": complexity " $2 ", " $5 " lines"; n++ }
    END { print "check-functions: " NR " functions, " n + 0 " too large"; exit n > 0 || !NR }'
code=$?
if [ -s "$told" ]; then
    cat "$told"
    echo "check-functions: pmccabe cannot follow these files"
    exit 1
fi
exit $code
