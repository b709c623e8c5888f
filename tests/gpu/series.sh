#!/usr/bin/env bash
# A profile series on a GPU machine, after `make`: whether it ranks the sizes of a matrix product's blocks as the program's own
# times do, and whether the program's result stays. About 20 s.
#   tests/gpu/series.sh [OUT] [N]     OUT: where files go (default build/gpu); N: rows of the matrices (2048)
export LC_ALL=C
. "$(dirname "$0")/gpu.inc"
n=${1:-2048}
blocks="32 64 128 256 512 1024"
failures=0
fail() { echo "FAILED: $*" && failures=$((failures + 1)); }

cd "$work" || exit 1
nvcc -O2 -std=c++17 -arch="$arch" -o series "$here/series.cu" || { echo "cannot build series"; exit 1; }

# shellcheck disable=SC2086
timeout 60 ./series "$n" $blocks >native.out 2>native.err || fail "natively: exit code $?: $(cat native.out)"
begin=$(now)
timeout 60 "$kprof" series -k multiply --vary "block=$(echo $blocks | tr ' ' ,),2048" -f -o "$out/series.kprof" \
    --log-file "$out/series.report" -- ./series "$n" >kprof.out 2>kprof.err || fail "under kprof: exit code $?: $(tail -3 kprof.err)"
echo "series of 7 variants: $(since "$begin" 1) s with the program's start"
head -1 native.out | cmp -s - kprof.out || fail "another result: $(cat native.out kprof.out)"
"$kprof" report --page series --csv "$out/series.kprof" >"$out/series.csv" || fail "the page"
cat "$out/series.report"

# Both rank the same: of two sizes whose own times differ by more than 5 %, the series has the same one in front; and what it
# calls best is within 5 % of the best by the program's own times.
python3 - native.err "$out/series.csv" <<'EOF' || fail "another ranking"
import csv, re, sys
own = {int(b): float(us) for b, us in re.findall(r"block (\d+): ([\d.]+) us", open(sys.argv[1]).read())}
rows = [r for r in csv.DictReader(open(sys.argv[2])) if r["Variant"].startswith("block=")]
seen = {int(r["Variant"][6:]): float(r["Duration (ns)"]) / 1000 for r in rows if not r["Not Counted"]}
print("block   events, us   series, us   ratio")
for b in own:
    print(f"{b:5}   {own[b]:10.1f}   {seen.get(b, float('nan')):10.1f}   {seen.get(b, float('nan')) / own[b]:5.2f}")
wrong = [f"{a} and {b}" for a in own for b in own if own[a] * 1.05 < own[b] and not seen[a] < seen[b]]
best = min(seen, key=seen.get)
if own[best] > 1.05 * min(own.values()):
    wrong.append(f"the series calls {best} best, the events {min(own, key=own.get)}")
if 2048 in seen or "more than the 1024" not in next(r["Not Counted"] for r in rows if r["Variant"] == "block=2048"):
    wrong.append("blocks of 2048 threads are not refused")
sys.exit("; ".join(wrong) or 0)
EOF

# Shared memory and the carve-out: what occupancy says is what was set.
timeout 60 "$kprof" series -k multiply --vary shared=0,64K,200K --vary carveout=0,100 -f -o "$out/shared.kprof" \
    --log-file "$out/shared.report" -- ./series "$n" >kprof.out 2>kprof.err || fail "shared: exit code $?: $(tail -3 kprof.err)"
head -1 native.out | cmp -s - kprof.out || fail "shared: another result"
cat "$out/shared.report"
"$kprof" report --json "$out/shared.kprof" >"$out/shared.json"
python3 - "$out/shared.json" <<'EOF' || fail "shared: settings"
import json, sys
variants = json.load(open(sys.argv[1]))["launches"][0]["profile_series"]["variants"]
wrong = []
for v in variants:
    m = {x["name"]: x["value"] for x in v["metrics"]}
    print(v["name"], v["note"] or "", *(f"{k}={m.get(k)}" for k in ("launch__shared_mem_per_block_dynamic", "launch__shared_mem_config_size",
          "launch__occupancy_limit_shared_mem", "sm__maximum_warps_per_active_cycle_pct")))
    if v["note"]:
        wrong.append(f"{v['name']}: {v['note']}")
configs = {v["name"]: {x["name"]: x["value"] for x in v["metrics"]}.get("launch__shared_mem_config_size") for v in variants}
if not (configs.get("shared=0 carveout=0") or 0) < (configs.get("shared=0 carveout=100") or 0):
    wrong.append(f"the carve-out has no effect: {configs}")
sys.exit("; ".join(wrong) or 0)
EOF

[ $failures -eq 0 ] && echo "all right" && exit 0
exit 1
