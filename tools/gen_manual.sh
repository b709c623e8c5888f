#!/bin/sh
# Usage: gen_manual.sh KPROF FILE
# Prints a Markdown file with its tables remade from what the command says about itself (kprof --list-words): the table
# of options is between the lines <!-- options --> and <!-- /options -->. `make tables` writes it.
set -eu
export LC_ALL=C
"$1" --list-words | awk '
# Characters with a meaning in Markdown.
function plain(text)
{
    gsub(/[*_|<>\\]/, "\\\\&", text)
    return text
}

function code(text)
{
    return text == "" ? "" : "`" text "`"
}

# Names of other options, and of values before a colon, stand out.
function marked(text, value,    i, n, words, word, tail, line)
{
    n = split(text, words, " ")
    for (i = 1; i <= n; i++) {
        word = words[i]
        tail = ""
        if (match(word, /[,.;:)]+$/)) {
            tail = substr(word, RSTART)
            word = substr(word, 1, RSTART - 1)
        }
        if (((word in flags) && word ~ /-/) || (tail == ":" && index("," value ",", "," word ",")) || word ~ /^(regex|group|breakdown|pmsampling):/)
            word = code(word)
        else
            word = plain(word)
        line = line (i > 1 ? " " : "") word tail
    }
    return line
}

function options(    i, f, value)
{
    print "| flag | environment | default | meaning |"
    print "| --- | --- | --- | --- |"
    for (i = 1; i <= n; i++) {
        split(option[i], f, "\t")
        value = f[6]
        gsub(/[{}]/, "", value)
        print "| " (f[3] == "" ? "" : code("-" f[3]) ", ") code("--" f[2] (f[6] == "" ? "" : " " f[6])) " | " \
            code(f[4]) " |" (f[6] == "" ? " `off`" : f[7] == "" ? "" : " " code(f[7])) " | " marked(f[9], value) " |"
    }
}

FNR == NR {
    split($0, f, "\t")
    if (f[1] == "option") {
        option[++n] = $0
        flags[f[2]] = 1
    }
    next
}

/^<!-- \/options -->$/ { skipping = 0 }
!skipping { print }
/^<!-- options -->$/ { options(); skipping = 1 }
END { exit skipping }
' - "$2"
