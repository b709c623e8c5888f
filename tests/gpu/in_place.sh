#!/usr/bin/env bash
# `ncu` and `kprof ncu` with the same 20 command lines, on two programs: columns, rows and their order, values. Needs what
# run.sh needs. At most 240 s; lines that no time is left for are listed as such.
#   tests/gpu/in_place.sh [OUT]
# OUT gets what each printed, as LINE.PROGRAM.ncu and LINE.PROGRAM.kprof. The table is the last thing printed, what differs
# stands before it. Clocks are never locked: each run has --clock-control none.
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
unset KPROF_BRIEF_ABOVE COLUMNS # a script that was written for ncu has neither
end=$(($(date +%s) + ${IN_PLACE_SECONDS:-230}))
cd "$work" || exit 1
for program in patterns inplace; do
    nvcc -O2 -lineinfo -arch="$arch" -o $program "$here/$program.cu" || exit 1
done
two=gpu__time_duration.sum,smsp__inst_executed.sum

# An argument `r` after -o or -i is the file of the program: without a dot, so that both add their endings to -o.
lines() {
    cat <<END
-c 3
-c 3 --csv
-c 3 --page raw --csv
-c 1 --set full --page raw --csv
-c 3 --metrics $two
-c 3 --metrics $two --csv
-c 3 --metrics regex:^dram__bytes_(read|write).sum\$ --page raw --csv
-k regex:^(affine|fma_bound)\$ -c 2 --csv
-s 2 -c 2 --csv
-c 2 --section SpeedOfLight --section Occupancy
-c 3 --section LaunchStats --csv
-c 4 --print-summary per-kernel
-c 4 --print-summary per-kernel --csv
-c 4 --print-summary per-gpu --csv
-c 1 --section MemoryWorkloadAnalysis_Tables --print-details all
-c 2 --print-units base
-c 2 --print-metric-name name --csv
-c 1 --section SourceCounters --page source --csv
-c 2 -f -o r
-i r --page session --csv
END
}

number=0
while read -r -a words; do
    number=$((number + 1))
    for program in patterns inplace; do
        left=$((end - $(date +%s)))
        [ $left -gt 0 ] || { echo "LATE $number $program ${words[*]}" >>"$out/in_place.late" && continue; }
        for tool in ncu kprof; do
            command=("$tool") && [ $tool = kprof ] && command=("$kprof" ncu)
            arguments=("${words[@]/%r/r}") run=(./$program)
            for i in "${!arguments[@]}"; do
                [ "${arguments[i]}" = r ] && arguments[i]=$work/$program-$tool
            done
            [ "${words[0]}" = -i ] && run=() && arguments[1]+=$([ $tool = ncu ] && echo .ncu-rep || echo .kprof)
            [ "${words[0]}" = -i ] || arguments=(--clock-control none "${arguments[@]}")
            timeout $((left < 120 ? left / 2 + 1 : 60)) "${command[@]}" "${arguments[@]}" "${run[@]}" >"$out/$number.$program.$tool" 2>"$out/$number.$program.$tool.err" </dev/null
            echo "exit code $?" >"$out/$number.$program.$tool.code"
        done
        echo "$number $program ${words[*]}"
    done
done < <(lines) >"$out/in_place.lines"
python3 "$here/in_place.py" "$out"
