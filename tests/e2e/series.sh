#!/bin/sh
# Profile series: a launch is repeated with other block sizes, shared memory and carve-outs. The program sees only its
# own launch; the report shows the variants, the fastest of them, and why others cannot run.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }
p=$programs/p_series
export KPROF_PAGE=series

says() { # NAME TEXT
    grep -qF -- "$2" "$tmp/report" || { fail "$1: not in the report: $2" && show; }
}

launched() { # GRID BLOCK SHARED NAME: how often the driver ran that
    grep -c "^launch .* grid=$1 block=$2 shared=$3 .* name=$4\$" "$tmp/kprof.log"
}

# Blocks of another size have fewer or more threads in x, and the grid follows.
export FAKE_BEST_BLOCK=64 KPROF_KERNEL_NAME=increment
KPROF_VARY=block=64,256,48,100,2048 KPROF_LAUNCH_COUNT=1 KPROF_EXPORT=$tmp/a.kprof both "blocks" "$p"
says blocks "Best: block=64, 1 us, -50.0% against the program's own"
says blocks "The results of variants are not checked."
says blocks "block=2048: its registers or __launch_bounds__ do not allow so many threads: 2048, at most 1024"
for shape in 8,1,1:64,1,1 2,1,1:256,1,1 11,1,1:48,1,1 6,1,1:100,1,1; do
    [ "$(launched "${shape%:*}" "${shape#*:}" 0 increment)" -gt 1 ] || fail "blocks: no grid ${shape%:*} of blocks ${shape#*:}"
done
expect "blocks: refused ones" "$(grep -c 'block=2048,' "$tmp/kprof.log")" 0
expect "blocks: profiled" "$(account profiled)" 1

# The stored session shows the same again.
grep -v '^==KPROF==' "$tmp/report" >"$tmp/first"
env -u KPROF_PAGE "$build/kprof" report --page series "$tmp/a.kprof" | grep -v '^==KPROF==' >"$tmp/again"
cmp -s "$tmp/first" "$tmp/again" || fail "stored: another series: $(diff "$tmp/first" "$tmp/again" | head -5)"
"$build/kprof" report --page details "$tmp/a.kprof" | grep -q 'Section: Profile Series' || fail "stored: not on the page details"
"$build/kprof" report --csv --page series "$tmp/a.kprof" >"$tmp/csv"
"$build/kprof" report --json "$tmp/a.kprof" >"$tmp/json"
python3 - "$tmp/csv" "$tmp/json" <<'EOF' || fail "stored: CSV and JSON"
import csv, json, sys
rows = {r["Variant"]: r for r in csv.DictReader(open(sys.argv[1]))}
assert list(rows) == ["the program's own"] + ["block=%d" % n for n in (64, 256, 48, 100, 2048)], list(rows)
assert rows["block=256"]["Duration (ns)"] == "4000" and rows["block=256"]["Change (%)"] == "100", rows["block=256"]
assert [n for n, r in rows.items() if r["Best"]] == ["block=64"]
assert "at most 1024" in rows["block=2048"]["Not Counted"] and rows["block=2048"]["Not Counted Reason"] == "variant-threads" and rows["block=2048"]["Duration (ns)"] == "n/a"
session = json.load(open(sys.argv[2]))
series = session["launches"][0]["profile_series"]
assert series["best"] == "block=64" and series["checked"] is False
ns = {v["name"]: {m["name"]: m["value"] for m in v["metrics"]}.get("gpu__time_duration.sum") for v in series["variants"]}
assert ns == {"block=64": 1000, "block=256": 4000, "block=48": 1250, "block=100": 1562.5, "block=2048": None}, ns
by_name = {m["name"]: m["value"] for m in series["variants"][0]["metrics"]}
assert by_name["launch__grid_size"] == 8 and by_name["launch__block_size"] == 64
own = {m["name"]: m["value"] for m in session["launches"][0]["metrics"]}
assert own["gpu__time_duration.sum"] == 2000 and own["launch__grid_size"] == 4
EOF

# Each block of the kernel appends what depends on all before it: any trace of a variant shows in what the program prints.
# The launch has two dimensions, dynamic shared memory and a carve-out of its own.
export KPROF_KERNEL_NAME=append
KPROF_VARY='block=64,8x8,6;shared=0,1K,64K,300K;carveout=60' both "shared" "$p"
for shape in 3,2,1:16,4,1 6,1,1:8,8,1; do
    [ "$(launched "${shape%:*}" "${shape#*:}" 65536 append)" -gt 1 ] || fail "shared: no grid ${shape%:*} of blocks ${shape#*:}"
done
says shared "block=64 shared=0 carveout=60: it has less dynamic shared memory than the program's own launch with the same number"
says shared "block=64 shared=300K carveout=60: it needs more shared memory than a block can have: 307200 bytes, 0 of them"
says shared "block=6 shared=1K carveout=60: its threads are not a multiple of the block's other dimensions; write it as XxYxZ"

# Each launch that is asked for has a series; those of graphs, and of other windows, are as ever.
KPROF_KERNEL_NAME='' KPROF_VARY=block=32 both "all" "$p"
expect "all: series" "$(grep -c 'Section: Profile Series' "$tmp/report")" 3
KPROF_KERNEL_NAME='' KPROF_VARY=block=32 both "many" "$programs/p_many" 4
KPROF_KERNEL_NAME='' KPROF_VARY=block=32 both "graphs" "$programs/p_nodes"
KPROF_KERNEL_NAME='' KPROF_VARY=block=32 both "legacy" "$programs/p_legacy"
says legacy "the CUDA function that launches it has no block size"

# A variant that the kernel cannot run with breaks the program's context, which one line says.
unset KPROF_KERNEL_NAME
KPROF_KERNEL_NAME=wide_only KPROF_VARY=block=64 both "wide" "$p" wide_only
KPROF_KERNEL_NAME=wide_only KPROF_VARY=block=32,64 profiled "$p" wide_only
[ "$kprof_code" = 2 ] || fail "broken: exit code $kprof_code"
grep -q "the variant block=32 of a launch broke the program's context" "$tmp/kprof.err" "$tmp/report" || { fail "broken: no line" && show; }

# The command: one launch, and the page, unless told otherwise.
command_says() { # TEXT COMMAND...
    text=$1
    shift
    env -u KPROF_PAGE -u KPROF_KERNEL_NAME LD_LIBRARY_PATH="$build/fake" KPROF_LOG_FILE="$tmp/report" \
        timeout "$limit" "$@" >"$tmp/kprof.out" 2>"$tmp/kprof.err"
    kprof_code=$?
    cat "$tmp/kprof.err" >>"$tmp/report"
    says "$*" "$text"
}
plain "$p"
command_says "Best: block=64," "$build/kprof" series -k increment --vary block=64 --vary block=256 -- "$p"
cmp -s "$tmp/plain.out" "$tmp/kprof.out" || fail "command: other output"
expect "command: variants" "$(grep -c '^ *block=' "$tmp/report")" 2
expect "command: profiled" "$(account profiled)" 1
command_says "nothing to vary: add --vary" "$build/kprof" series -k increment -- "$p"
[ "$kprof_code" = 2 ] || fail "command: exit code $kprof_code without --vary"
command_says "unknown kind of variant 'blocks'; did you mean 'block'?" "$build/kprof" series --vary blocks=64 -- "$p"
command_says "block=0: write threads, such as 128, or 16x8" "$build/kprof" series --vary block=0 -- "$p"
command_says "vary needs replay-mode auto or kernel" "$build/kprof" series --vary block=64 --replay-mode rotate -- "$p"
finish
