# First file: the output of `kprof --list-words`. Second: a template, in which these lines are replaced:
#   @options GROUP@       man: the options of a group of options.def
#   @environment GROUP@   man: the same as environment variables
#   @option NAME@         man: one option
#   @taken NAME@          man: the options that another sub-command accepts
#   @own NAME@            man: the flags that no other command has
#   @query-commands@      man: sub-commands that list something
#   @query-options@       man: the flags that only these accept
#   @command NAME@ … @end@  the template's text on another sub-command; each needs such a part, which is left out while
#                         there is no such command. Within it @takes@ lists the options that the command accepts, and
#                         @own@ the flags that no other command has
#   @statuses@            man: exit statuses of kinds of failure, with `strict`
#   @bash-table@          bash: one line per flag
#   @zsh-specs@           zsh: the arguments of _arguments for a run, for the queries and for each other command
# Replaced anywhere: @VERSION@, @DATE@, @COMMANDS@ (all), @QUERIES@ (those that list something).

function wrong(text)
{
    print template ": " text > "/dev/stderr"
    failed = 1
    exit 1
}

# The rows, in the order of the table.
FNR == NR {
    split($0, f, "\t")
    if (f[1] == "option") {
        flag[++n] = f[2]; letter[n] = f[3]; env[n] = f[4]; kind[n] = f[5]
        value[n] = f[6]; fallback[n] = f[7]; group[n] = f[8]; help[n] = f[9]
    } else if (f[1] == "query") {
        is_query[f[2]] = 1; query[++queries] = f[2]; query_value[queries] = f[3]; query_help[queries] = f[4]
    } else if (f[1] == "command") {
        is_command[f[2]] = 1; command[++commands] = f[2]
    } else if (f[1] == "own") {
        own_of[++owns] = f[2]; own[owns] = f[3]; own_value[owns] = f[4]; own_help[owns] = f[5]
    } else if (f[1] == "status") {
        status[++statuses] = f[2]; status_name[statuses] = f[3]; status_text[statuses] = f[4]
    } else if (f[1] == "takes") {
        takes[f[2], f[3]] = 1
    }
    next
}

# --- man ---

function roff(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return text
}

# A paragraph: no line in it is a request.
function roff_text(text)
{
    gsub(/\\/, "\\e", text)
    gsub(/--/, "\\-\\-", text)
    return (text ~ /^[.']/ ? "\\&" : "") text
}

function roff_value(text)
{
    return text == "" ? "" : text ~ /^{/ ? " " roff(text) : " \\fI" roff(text) "\\fR"
}

function roff_default(text)
{
    return text == "" ? "" : " (default " roff(text) ")"
}

function man_option(i,    short)
{
    print ".TP"
    short = letter[i] == "" ? "" : "\\fB\\-" letter[i] "\\fR, "
    print short "\\fB\\-\\-" roff(flag[i]) "\\fR" roff_value(broken(value[i]))
    print roff_text(help[i]) roff_default(fallback[i])
}

function man_options(which,    i)
{
    for (i = 1; i <= n; i++)
        if (group[i] == which)
            man_option(i)
}

function man_one(name,    i)
{
    for (i = 1; i <= n && flag[i] != name; i++)
        ;
    if (i > n)
        wrong("there is no option " name)
    man_option(i)
}

function man_taken(name,    i)
{
    if (!(name in is_command))
        wrong("there is no command " name)
    for (i = 1; i <= n; i++)
        if ((name, flag[i]) in takes)
            man_option(i)
}

# A list of words longer than a line can be broken after each comma.
function broken(list)
{
    if (length(list) > 58)
        gsub(/,/, ", ", list)
    return list
}

function man_environment(which,    i)
{
    for (i = 1; i <= n; i++)
        if (group[i] == which) {
            print ".TP"
            print "\\fB" env[i] "\\fR=" (value[i] == "" ? "{on,off}" : substr(roff_value(broken(value[i])), 2))
            print roff_text(help[i]) roff_default(value[i] == "" ? "off" : fallback[i])
        }
}

function man_queries(of_commands,    i)
{
    for (i = 1; i <= queries; i++)
        if ((query[i] in is_command) == of_commands) {
            print ".TP"
            if (of_commands)
                print "\\fBkprof " roff(query[i]) "\\fR [\\fIoptions\\fR]"
            else
                print "\\fB\\-\\-" roff(query[i]) "\\fR" roff_value(query_value[i])
            print roff_text(query_help[i])
        }
}

function man_statuses(    i)
{
    for (i = 1; i <= statuses; i++) {
        print ".TP"
        print "\\fB" status[i] "\\fR " roff(status_name[i])
        print roff_text(status_text[i])
    }
}

function man_takes(name,    i, list)
{
    for (i = 1; i <= n; i++)
        if ((name, flag[i]) in takes)
            list = list (list == "" ? "" : ",\n") "\\fB\\-\\-" roff(flag[i]) "\\fR"
    print (list == "" ? "none" : list) "."
}

function man_own(name,    i)
{
    for (i = 1; i <= owns; i++)
        if (own_of[i] == name) {
            print ".TP"
            print "\\fB\\-\\-" roff(own[i]) "\\fR" roff_value(own_value[i])
            print roff_text(own_help[i])
        }
}

# --- completions ---

function or_dash(text)
{
    return text == "" ? "-" : text
}

# Commands that accept a flag, in addition to a run and the queries.
function takers(name,    i, list)
{
    for (i = 1; i <= commands; i++)
        if ((command[i], name) in takes)
            list = list (list == "" ? "" : ",") command[i]
    return or_dash(list)
}

function bash_table(    i)
{
    for (i = 1; i <= n; i++)
        print "--" flag[i], letter[i] == "" ? "-" : "-" letter[i], kind[i], or_dash(value[i]), takers(flag[i])
    for (i = 1; i <= queries; i++)
        print "--" query[i], "-", query[i] ~ /^chips?$/ ? "CHIPS" : "QUERY", or_dash(query_value[i]), "-"
    for (i = 1; i <= owns; i++)
        print "--" own[i], "-", "OWN", or_dash(own_value[i]), own_of[i]
}

function zsh_text(text)
{
    gsub(/[][\\]/, "\\\\&", text)
    gsub(/'/, "'\\\\''", text)
    return text
}

# How a value is completed.
function zsh_action(of_kind, of_value)
{
    if (of_kind ~ /^(SET|SECTIONS|RULES|NAMES|CHIPS)$/)
        return "_kprof_values " of_kind
    if (of_value ~ /^{/) {
        gsub(/[{}]/, "", of_value)
        gsub(/,/, " ", of_value)
        return of_kind == "CHOICES" ? "_sequence compadd - " of_value : "(" of_value ")"
    }
    return of_value == "FILE" ? "_files" : of_value == "DIR" ? "_directories"  : " "
}

function zsh_spec(name, short, of_kind, of_value, text,    tail, what)
{
    what = of_value ~ /^{/ ? "value" : of_value
    gsub(/:/, "\\:", what)
    tail = "[" zsh_text(text) "]" (of_value == "" ? "" : ":" what ":" zsh_action(of_kind, of_value))
    if (short == "")
        print "            '--" name (of_value == "" ? "" : "=") tail "'"
    else if (of_value == "")
        print "            '(-" short " --" name ")'{-" short ",--" name "}'" tail "'"
    else
        print "            '(-" short " --" name ")'{-" short "+,--" name "=}'" tail "'"
}

function zsh_specs_of(name,    i, whole)
{
    whole = name == "run" || name == "queries"
    print "    (" name ")"
    print "        specs=("
    for (i = 1; i <= n; i++)
        if (whole || (name, flag[i]) in takes)
            zsh_spec(flag[i], letter[i], kind[i], value[i], help[i])
    for (i = 1; whole && i <= queries; i++)
        if (name == "run" || !(query[i] in is_command))
            zsh_spec(query[i], "", query[i] ~ /^chips?$/ ? "CHIPS" : "QUERY", query_value[i], query_help[i])
    for (i = 1; i <= owns; i++)
        if (own_of[i] == name)
            zsh_spec(own[i], "", "OWN", own_value[i], own_help[i])
    print "        )"
    print "        ;;"
}

function zsh_specs(    i)
{
    zsh_specs_of("run")
    zsh_specs_of("queries")
    for (i = 1; i <= commands; i++)
        if (command[i] != "run" && !(command[i] in is_query))
            zsh_specs_of(command[i])
}

# --- the template ---

function names(only_queries,    i, list)
{
    for (i = 1; i <= commands; i++)
        if (!only_queries || command[i] in is_query)
            list = list (list == "" ? "" : " ") command[i]
    return list
}

{
    gsub(/@VERSION@/, version)
    gsub(/@DATE@/, date)
    gsub(/@COMMANDS@/, names(0))
    gsub(/@QUERIES@/, names(1))
}

/^@end@$/ {
    part = ""
    next
}
part != "" && !(part in is_command) { next }
/^@command [^ ]+@$/ {
    part = substr($2, 1, length($2) - 1)
    described[part] = 1
    next
}
/^@options [^ ]+@$/ { man_options(substr($2, 1, length($2) - 1)); next }
/^@environment [^ ]+@$/ { man_environment(substr($2, 1, length($2) - 1)); next }
/^@query-commands@$/ {
    man_queries(1)
    for (i = 1; i <= queries; i++)
        described[query[i]] = 1
    next
}
/^@query-options@$/ { man_queries(0); next }
/^@takes@$/ { man_takes(part); next }
/^@statuses@$/ { man_statuses(); next }
/^@own@$/ {
    print ".RS"
    man_own(part)
    print ".RE"
    next
}
/^@option [^ ]+@$/ { man_one(substr($2, 1, length($2) - 1)); next }
/^@taken [^ ]+@$/ { man_taken(substr($2, 1, length($2) - 1)); next }
/^@own [^ ]+@$/ { man_own(substr($2, 1, length($2) - 1)); next }
/^@bash-table@$/ { bash_table(); next }
/^@zsh-specs@$/ { zsh_specs(); next }
/^@.*@$/ { wrong("unknown mark " $0) }
{ print }

END {
    if (failed)
        exit 1
    # A template that describes one command describes them all.
    for (any in described)
        for (i = 1; i <= commands; i++)
            if (!(command[i] in described))
                wrong("nothing is said of the command " command[i])
}
