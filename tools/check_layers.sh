#!/bin/sh
# Fails on an include that breaks the layering: a folder includes itself and the folders to its right, CUPTI's and
# PerfWorks' headers are cupti/'s alone, and report/ knows nothing of CUDA.
exec awk '
BEGIN {
    n = split("preload collectors cupti report", order, " ")
    for (i = 1; i <= n; i++)
        rank[order[i]] = i
    for (i = 1; i <= n; i++) {
        command = "find " order[i] " -name \"*.[chS]\" -o -name \"*.def\""
        while ((command | getline file) > 0)
            check(file, i)
        close(command)
    }
    printf "check-layers: %d files, %d faults\n", files, faults
    exit faults > 0
}
function fault(file, why) {
    printf "%s:%d: %s: %s\n", file, line, why, target
    faults++
}
function check(file, own,    text, folder) {
    files++
    line = 0
    while ((getline text < file) > 0) {
        line++
        if (text !~ /^[ \t]*#[ \t]*include/)
            continue
        target = text
        gsub(/^[^<"]*[<"]|[>"].*$/, "", target)
        folder = target
        sub(/\/.*/, "", folder)
        if (folder in rank && rank[folder] < own)
            fault(file, order[own] "/ includes what is to its left")
        else if (folder == "tests")
            fault(file, "the product includes a test file")
        else if (text ~ /"/ && target !~ /\//)
            fault(file, "not a path from the root of the repository")
        if (order[own] != "cupti" && target ~ /^(cupti|nvperf)[^\/]*\.h/)
            fault(file, "a vendor header outside cupti/")
        if (order[own] == "report" && target ~ /^(cu[a-z_]*(Typedefs|Profiler)?\.h|cuda.*\.h|nv.*\.h|crt\/)/)
            fault(file, "a CUDA header in report/")
    }
    close(file)
}'
