#!/bin/sh
# Profile series with limits of registers: the driver's JIT compiles the kernel again, and what the program sees of its
# modules, its function and the device's memory stays. Kernels that cannot be compiled so are told with the reason.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
p=$programs/p_registers
export KPROF_PAGE=series KPROF_SET=basic KPROF_VARY=registers=8,16,32,128

says() { # NAME TEXT
    grep -qF -- "$2" "$tmp/report" || { fail "$1: not in the report: $2" && show; }
}

# Modules that are loaded and never unloaded, and linkers that are made and never destroyed.
left() { # LOG
    awk '$1 == "calls" {n[$3] = $4}
         END {print n["cuModuleLoadData"] + n["cuModuleLoadDataEx"] - n["cuModuleUnload"], n["cuLinkCreate_v2"] - n["cuLinkDestroy"]}' "$1"
}

# Limits that reached the linker for the program's kernels; 0 is none.
limits() {
    sed -n 's/^jit .* limit=\([0-9]*\) .*/\1/p' "$tmp/kprof.log" | sort -nu | tr '\n' ' '
}

# Registers that launches with a limit had: LIMIT:REGISTERS of each.
ran() {
    sed -n 's/^limited .* limit=\([0-9]*\) registers=\([0-9]*\) .*/\1:\2/p' "$tmp/kprof.log" | sort -nu | tr '\n' ' '
}

# Text, a fat binary, a library's kernel, and its function: the PTX is found, though its text is gone by then. PTX for one
# architecture alone is compiled for that.
for case in text fatbin library function twins accelerated constant; do
    KPROF_EXPORT=$tmp/$case.kprof both "$case" "$p" $case
    expect "$case: limits" "$(limits)" "0 8 16 32 128 "
    expect "$case: left" "$(left "$tmp/kprof.log")" "$(left "$tmp/plain.log")"
    says "$case" "registers=8: the JIT refuses it: ptxas fatal   : Register limit too low"
    says "$case" "registers=16: the JIT takes 24 registers all the same"
    expect "$case: profiled" "$(account profiled)" 1
    [ $case = constant ] || expect "$case: ran" "$(ran)" "16:24 32:32 128:72 "
    [ $case = constant ] || says "$case" "registers=128: the limit had no effect: the JIT takes 72 registers without one, too"
done
says constant "registers=128: the limit had no effect: the JIT takes 40 registers without one, too"
expect "constant: others than the program's" "$(grep '^constant' "$tmp/kprof.log" | grep -vc 'value=5')" 0

# The launch is as the program's own otherwise: its shared memory, and the settings of the function.
KPROF_VARY='registers=32' both "settings" "$p" text
expect "settings" "$(sed -n 's/^limited .* registers=32 //p' "$tmp/kprof.log" | sort -u)" "shared=1024 most=2048 carveout=40"
KPROF_VARY='registers=32,64;shared=1K,4K;block=64' both "combined" "$p" text
expect "combined: shared memory" "$(sed -n 's/^limited .* \(registers=.*\) most=.*/\1/p' "$tmp/kprof.log" | sort -u | tr '\n' ' ')" \
    "registers=32 shared=1024 registers=32 shared=4096 registers=64 shared=1024 registers=64 shared=4096 "
expect "combined: compiled" "$(grep -c '^jit .* limit=[1-9]' "$tmp/kprof.log")" 2
expect "combined: blocks" "$(grep -c '^launch .* grid=8,1,1 block=64,1,1 .* name=wide_increment' "$tmp/kprof.log")" "$(grep -c '^limited' "$tmp/kprof.log")"

# What the table says, again of the stored session.
"$build/kprof" report --csv --page series "$tmp/text.kprof" >"$tmp/csv"
"$build/kprof" report --json "$tmp/text.kprof" >"$tmp/json"
python3 - "$tmp/csv" "$tmp/json" <<'EOF' || fail "stored: CSV and JSON"
import csv, json, sys
rows = {r["Variant"]: r for r in csv.DictReader(open(sys.argv[1]))}
own, few, many = rows["the program's own"], rows["registers=32"], rows["registers=128"]
columns = "Registers Per Thread", "Local Memory Per Thread (byte)", "Register Limit", "Registers Without Limit"
assert [own[c] for c in columns] == ["72", "0", "n/a", "n/a"], own
assert [few[c] for c in columns] == ["32", "160", "32", "72"], few
assert [many[c] for c in columns] == ["72", "0", "128", "72"], many
assert float(few["Theoretical Occupancy (%)"]) == 100 and float(many["Theoretical Occupancy (%)"]) < 50
assert "too low" in rows["registers=8"]["Not Counted"] and rows["registers=8"]["Duration (ns)"] == "n/a"
variants = json.load(open(sys.argv[2]))["launches"][0]["profile_series"]["variants"]
metrics = {v["name"]: {m["name"]: m["value"] for m in v["metrics"]} for v in variants}
assert metrics["registers=16"]["launch__registers_limit"] == 16
assert metrics["registers=16"]["launch__registers_per_thread"] == 24
EOF

# What the program has its own code compiled with is repeated, by value: 1 threads a block, 7 optimization level, 13 line
# information, 14 cache mode. The last one of a kind counts. Its own limit and its logs are not.
for case in options library-options; do
    KPROF_VARY=registers=32,64 both "$case" "$p" $case
    expect "$case: ran" "$(ran)" "32:32 64:64 "
    expect "$case" "$(sed -n 's/^jit .* limit=\([0-9]*\) .* options=\([0-9].*\)/\1 \2/p' "$tmp/kprof.log" | sort -u | tr '\n' ' ')" \
        "0 1:96,7:2,13:1,14:1 32 1:96,7:2,13:1,14:1 64 1:96,7:2,13:1,14:1 "
done

# Launch bounds are stronger than a limit.
both "bounded" "$p" bounded
expect "bounded: ran" "$(ran)" "16:40 32:40 128:40 "
says bounded "registers=32: the limit had no effect: the JIT takes 40 registers without one, too"

# Kernels that would not be the same: none of them runs.
refused() { # CASE WORDS
    both "$1" "$p" "$1"
    says "$1" "registers=32: $2"
    expect "$1: ran" "$(ran)" ""
    expect "$1: left" "$(left "$tmp/kprof.log")" "$(left "$tmp/plain.log")"
    expect "$1: best" "$(grep -c "Best: the program's own" "$tmp/report")" 1
}
refused cubin "its module has no PTX that the JIT could compile"
refused pointer "it calls functions through pointers"
refused variable "it uses the variable g_count of its module, of which the variant would have another copy"
refused texture "its module has a reference to a texture or surface (g_texture)"
refused others "several libraries of the program have a kernel of its name"

# What the driver fails at is the variant's reason, and nothing is left behind.
fails() { # FUNCTION:CODE CASE WORDS
    plain "$p" "$2"
    FAKE_FAIL=$1 KPROF_VARY=registers=32 profiled "$p" "$2"
    says "$1" "registers=32: $3"
    expect "$1: left" "$(left "$tmp/kprof.log")" "$(left "$tmp/plain.log")"
    cmp -s "$tmp/plain.out" "$tmp/kprof.out" || fail "$1: other output"
}
for function in cuLinkAddData_v2 cuLinkComplete; do
    fails $function:999 text "the JIT refuses it: CUDA_ERROR_UNKNOWN"
done
fails cuFuncLoad:999:2 text "its code could not be loaded: CUDA_ERROR_UNKNOWN"
fails cuModuleGetGlobal_v2:500:3 constant "the constant five could not be copied from the program's module"

# Without limits nothing is noted of modules.
KPROF_VARY=block=64 KPROF_DEBUG=window profiled "$p" text
grep -q 'byte of PTX' "$tmp/kprof.err" && fail "unwatched: images are read"
KPROF_VARY=registers=32 KPROF_DEBUG=window profiled "$p" text
grep -q 'cuModuleLoadDataEx: .* byte of PTX' "$tmp/kprof.err" || fail "watched: no line"
finish
