#!/bin/sh
# Usage: gen_docs.sh KPROF TEMPLATE
# Prints a man page or a completion: the template, with the marked places (see gen_docs.awk) filled from what the
# command says about itself (kprof --list-words). SOURCE_DATE_EPOCH gives the page's date.
set -eu
export LC_ALL=C
kprof=$1
template=$2
words=$("$kprof" --list-words)
version=$("$kprof" --version | cut -d' ' -f2)
date=$(date -u -d "@${SOURCE_DATE_EPOCH:?}" +%Y-%m-%d)

printf '%s\n' "$words" | awk -v template="$template" -v version="$version" -v date="$date" \
    -f "$(dirname "$0")/gen_docs.awk" - "$template"
