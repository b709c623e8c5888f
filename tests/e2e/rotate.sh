#!/bin/sh
# Rotation: launches of a kernel rotate through groups of counters. Nothing is issued twice, and the report has one
# entry per kernel and shape.
. "$(dirname "$0")/e2e.inc"
one_thread
[ -n "$KP_REAL_CUPTI" ] || { echo "skipped: needs the real CUPTI's metric tables" && exit 77; }

# The L2 counts one of these in a pass.
export KPROF_METRICS=lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,lts__t_sectors_op_read_lookup_hit.sum
export KPROF_SET=basic KPROF_REPLAY_MODE=rotate
p=$programs/p_many

# Launches that reached the driver.
launches() {
    grep -c '^launch ' "$1"
}

both "rotation" "$p" 40
expect "rotation: launches of the driver" "$(launches "$tmp/kprof.log")" "$(launches "$tmp/plain.log")"
expect "rotation: memory saved" "$(awk '$1 == "calls" && $3 == "cuptiCheckpointSave" { n += $4 } END { print n + 0 }' \
    "$tmp/kprof.log")" 0
expect "rotation: entries" "$(grep -c 'CC 9.0$' "$tmp/report")" 2
expect "rotation: heads" "$(grep -c '^    Rotation: .* launches of this kernel and shape' "$tmp/report")" 2
expect "rotation: seen" "$(account seen)" 120
counted=$(account profiled)
[ "$counted" -lt 60 ] || fail "rotation: $counted launches were counted"
expect "rotation: the rest" "$(grep -c "of a kernel and shape that had been counted: $((120 - counted))" "$tmp/report")" 1

# So it is where one pass has all that is wanted, or where that is in each list anyway.
few() { # NAME VARIABLE=VALUE...
    what=$1
    shift
    both "$what" env -u KPROF_METRICS -u KPROF_SET "$@" "$p" 40
    expect "$what: entries" "$(grep -c '^    Rotation: .* of which 3 were counted, all for one group of counters' \
        "$tmp/report")" 2
    expect "$what: profiled" "$(account profiled)" 6
}
few quick KPROF_SET=quick
few canaries KPROF_METRICS=sm__cycles_elapsed.max
expect "canaries: values" "$(grep -c '^    sm__cycles_elapsed.max .*cycle .*[0-9]$' "$tmp/report")" 2

# The stored session says the same, with what each value rests on.
KPROF_EXPORT=$tmp/r.kprof both "stored" "$p" 40
stored --json "$tmp/r.kprof" >"$tmp/json"
python3 - "$tmp/json" <<'END' || fail "stored: the JSON"
import json, sys
session = json.load(open(sys.argv[1]))
session = session.get("sessions", [session])[0]
launches = session["launches"]
assert len(launches) == 2, len(launches)
assert sum(l["rotation"]["launches"] for l in launches) == 120, [l["rotation"] for l in launches]
for l in launches:
    r = l["rotation"]
    assert r["groups_counted"] == r["groups"] > 1, r
    metrics = {m["name"]: m for m in l["metrics"]}
    duration = metrics["gpu__time_duration.sum"]
    assert duration["counted"] == r["counted"], (duration, r)
    assert duration["interval"] is not None and duration["interval"] >= 0
    for m in metrics.values():
        if "counted" in m and m["name"] not in ("gpu__time_duration.sum", "sm__cycles_elapsed.max"):
            assert m["counted"] >= 3, m
    assert "counted" not in metrics["launch__grid_size"]
END
# So does CSV, in columns that only sessions of a rotation have.
for page in details raw; do
    stored --csv --page $page "$tmp/r.kprof" >"$tmp/$page.csv"
done
python3 - "$tmp" <<'END' || fail "stored: the CSV"
import csv, json, sys
folder = sys.argv[1]
session = json.load(open(folder + "/json"))
launches = {str(l["id"]): l for l in session.get("sessions", [session])[0]["launches"]}
entry = {"Launches": "launches", "Launches Counted": "counted", "Groups": "groups", "Groups Counted": "groups_counted"}
value = {"Value Launches": "counted", "Value Deviation": "deviation", "Value Interval": "interval"}
def same(cell, number):
    return cell == "" if number is None else float(cell) == number
rows = list(csv.DictReader(open(folder + "/details.csv")))
for row in rows:
    launch = launches[row["ID"]]
    assert all(row[heading] == str(launch["rotation"][key]) for heading, key in entry.items()), row
missing = 0
raw = list(csv.DictReader(open(folder + "/raw.csv")))[1:]
means = 0
for row in raw:
    launch = launches[row["ID"]]
    assert all(row[heading] == str(launch["rotation"][key]) for heading, key in entry.items()), row
    for m in launch["metrics"]:
        for heading, key in value.items():
            if "counted" in m:
                assert same(row[m["name"] + " " + heading], m[key]), (m, heading)
                means += 1
durations = [row for row in rows if row["Metric Name"] == "Duration"]
assert len(durations) == 2, durations
for row in durations:
    m = [m for m in launches[row["ID"]]["metrics"] if m["name"] == "gpu__time_duration.sum"][0]
    assert all(same(row[heading], m[key]) for heading, key in value.items()), (row, m)
for row in rows:
    missing += row["Metric Value"] == "n/a"
    assert (row["Metric Value"] == "n/a") == (row["Value Missing"] != ""), row
print("%d rows, %d missing, %d means" % (len(rows), missing, means))
assert means > 100
END
KPROF_REPLAY_MODE=kernel KPROF_CSV=on both "not rotated" "$p" 2
grep -q 'Value Launches\|"Groups"' "$tmp/report" && fail "not rotated: columns of a rotation"
expect "stored: entries" "$("$build/kprof" report "$tmp/r.kprof" | grep -c '^    Rotation: ')" 2

# Nothing is repeated: attributes, loads, unloads, frees and reads leave a window open, and it spans rounds until no kernel
# lacks its group.
KPROF_DEBUG=window both "settings" "$programs/p_settings" 40
expect "settings: entries" "$(grep -c '^    Rotation: 40 launches of this kernel and shape, of which 6 were' "$tmp/report")" 5
expect "settings: windows of two groups" "$(cat "$tmp/report" "$tmp/kprof.err" | grep -c 'closes (rotate)')" 2
expect "settings: the rest" "$(account skipped)" 170



# Kernels that vary on purpose. What mixes groups is refused where launches are of two kinds, or differ too much, and has a
# value where they are alike; what one group counts has a value in any case.
mixed=lts__t_sector_hit_rate.pct
varied() { # HOW SEED
    FAKE_VARY=$1 FAKE_SEED=$2 KPROF_METRICS=$KPROF_METRICS,$mixed KPROF_EXPORT=$tmp/v$1.$2.kprof both "vary $1" "$programs/p_settings" 40
    stored --json "$tmp/v$1.$2.kprof" >"$tmp/v$1.$2.json"
}
varied 0 1
varied modes 1
varied 40 1
varied 4 1
varied 4 2
python3 - "$tmp" "$mixed" <<'END' || fail "vary: values, refusals or intervals"
import json, sys
folder, mixed = sys.argv[1:]
def launches(name):
    session = json.load(open("%s/v%s.json" % (folder, name)))
    session = session.get("sessions", [session])[0]
    return [{m["name"]: m for m in l["metrics"]} for l in session["launches"]]
for name, said in (("0.1", None), ("4.1", None), ("modes.1", "of two kinds"), ("40.1", "mixes groups")):
    for metrics in launches(name):
        m, one = metrics[mixed], metrics["lts__t_sectors_lookup_miss.sum"]
        assert one.get("value") is not None, (name, one)
        assert (m.get("value") is None) == (said is not None), (name, m)
        assert not said or said in json.dumps(m), (name, m)
# An interval holds the mean of another run in 95 of 100 cases: not many less, and not always.
held = total = 0
for a, b in zip(launches("4.1"), launches("4.2")):
    for metric, m in a.items():
        if m.get("counted") == 3 and m.get("interval") and metric in b and b[metric].get("value") is not None:
            total += 1
            held += abs(m["value"] - b[metric]["value"]) <= m["interval"]
print("%d of %d inside" % (held, total))
assert total >= 60 and 0.9 <= held / total <= 0.985, (held, total)
END

# Prints sessions of ranks together.
together() { # FLAGS...
    env -u KPROF_METRICS -u KPROF_SET -u KPROF_REPLAY_MODE "$build/kprof" report --ranks "$@"
}

# With a key by NVTX path, launches in other ranges have an entry of their own, whatever the number of the step is. It names
# its path, and ranks and diff keep paths apart.
"$programs/p_paths" 0 >/dev/null
if [ $? != 77 ]; then
    in_paths() { # WHICH VALUE...
        which=$1
        shift
        both "paths $which" env KPROF_EXPORT="$tmp/paths.$which.kprof" "$@" "$programs/p_paths" 30
        stored --json "$tmp/paths.$which.kprof" >"$tmp/paths.$which.json"
    }
    in_paths shape KPROF_NVTX=on
    expect "paths: by shape" "$(grep -c '^    Rotation: 120 launches' "$tmp/report")" 1
    in_paths nvtx KPROF_ROTATE_KEY=nvtx RANK=0 FAKE_VARY=4
    expect "paths: notes" "$(tr -s ' \n' ' ' <"$tmp/report" | grep -o 'Note: the launches in [^(]*[^ (]' | grep -o 'in .* layers@conv2d_#\|in no NVTX range')" \
        "in the NVTX ranges step # / backward / layers@conv2d_#
in the NVTX ranges step # / forward / layers@conv2d_#
in no NVTX range"
    expect "paths: launches" "$(sed -n 's/^    Rotation: \([0-9]*\) .*/\1/p' "$tmp/report" | paste -sd' ')" "60 30 30"
    expect "paths: ranges" "$(grep -c '^    NVTX Push/Pop: step # / \(for\|back\)ward / layers@conv2d_#$' "$tmp/report")" 2
    in_paths other KPROF_ROTATE_KEY=nvtx RANK=1 FAKE_VARY=4 FAKE_SEED=2
    expect "paths: put together" "$(together --page details "$tmp"/paths.nvtx.kprof "$tmp/paths.other.kprof" |
        sed -n 's/^    Rotation: \([0-9]*\) .*/\1/p' | paste -sd' ')" "120 60 60"
    "$build/kprof" diff --show all "$tmp/paths.nvtx.kprof" "$tmp/paths.other.kprof" >"$tmp/diff"
    expect "paths: pairs" "$(grep -c 'launch [0-9] of A, [0-9] of B$' "$tmp/diff")" 3
    expect "paths: of each pair" "$(grep -c '^    Note: the launches in \(the NVTX ranges step # / \(for\|back\)ward / layers@conv2d_# (#: any number)\|no NVTX range\)$' "$tmp/diff")" 3
    together --page ranks --csv "$tmp"/paths.nvtx.kprof "$tmp/paths.other.kprof" >"$tmp/ranks.csv"
    expect "paths: by rank" "$(grep -c '"120",.*,"in the NVTX ranges step # / backward / layers@conv2d_#","increment"' "$tmp/ranks.csv")" 1
    # At any width each row says which launches it has: in a column, whose text may lack its beginning, or by a mark that is
    # explained.
    for width in 60 80 120 200; do
        COLUMNS=$width together --page ranks "$tmp"/paths.nvtx.kprof "$tmp/paths.other.kprof" >"$tmp/ranks.$width"
        told=$(tr -s ' \n' ' ' <"$tmp/ranks.$width")
        for where in 'in no NVTX range' 'forward / layers@conv2d_#' 'backward / layers@conv2d_#'; do
            case $told in *"$where"*) ;; *) fail "paths: the ranks at $width columns lack $where"; cat "$tmp/ranks.$width" ;; esac
        done
        marks=0
        [ "$width" -gt 80 ] || marks=3
        expect "paths: marks at $width columns" "$(grep -c '^ .* \[[123]\] .*increment$' "$tmp/ranks.$width")" $marks
        expect "paths: explained at $width columns" "$(grep -c '^ *\[[123]\]: in ' "$tmp/ranks.$width")" $marks
        # the note names the columns that are there
        for column in Avg Min +-; do
            said=0
            case $told in *"$column and Max are of"* | *"$column, Min and Max"* | *"above its $column may"*) said=1 ;; esac
            expect "paths: the note of $column at $width columns" $said "$(grep -c "^ Time (%) .* $column (" "$tmp/ranks.$width")"
        done
        expect "paths: width of $width" "$(awk -v most="$width" 'length > most' "$tmp/ranks.$width" | wc -l)" 0
    done
    "$build/kprof" diff "$tmp/paths.nvtx.kprof" "$tmp/paths.shape.kprof" >"$tmp/diff" 2>&1
    expect "paths: not those of all" "$(grep -c 'Only in A: increment .* in no NVTX range, 30 launches$' "$tmp/diff")" 1
    grep -q 'has the name, grid and note of one of B' "$tmp/diff" || fail "paths: why nothing is paired"
    # What differs says so where several ranges are mixed.
    in_paths modes KPROF_NVTX=on FAKE_VARY=modes KPROF_METRICS="$KPROF_METRICS,$mixed"
    grep -q 'several NVTX ranges, which --rotate-key nvtx' "$tmp/paths.modes.json" || fail "paths: no hint"
    in_paths both KPROF_ROTATE_KEY=nvtx FAKE_VARY=modes KPROF_METRICS="$KPROF_METRICS,$mixed"
    grep -q 'several NVTX ranges' "$tmp/paths.both.json" && fail "paths: a hint at what is done"
fi

# Sessions of ranks are put together: launches add up, values are means over the launches of all, and what one rank lacks comes
# from another. The last rank launches each kernel few times.
rank() { # RANK ROUNDS
    RANK=$1 WORLD_SIZE=3 FAKE_VARY=4 FAKE_SEED=$1 KPROF_EXPORT=$tmp/run.%r.kprof both "rank $1" "$p" "$2"
}
rank 0 40
rank 1 40
rank 2 1
together --json "$tmp"/run.[012].kprof >"$tmp/together.json" || fail "ranks: the status"
together --csv "$tmp"/run.[012].kprof >"$tmp/together.csv" || fail "ranks: the status of CSV"
for r in 0 1 2; do
    stored --json "$tmp/run.$r.kprof" >"$tmp/rank.$r.json"
done
python3 - "$tmp" <<'END' || fail "ranks: what they give together"
import csv, json, sys
folder = sys.argv[1]
def launches(name):
    session = json.load(open("%s/%s.json" % (folder, name)))
    return session, {l["name"]: (l, {m["name"]: m for m in l["metrics"]}) for l in session["launches"]}
whole, together = launches("together")
ranks = [launches("rank.%d" % r)[1] for r in range(3)]
assert whole["session"]["replay"] == "rotation, 3 ranks put together", whole["session"]["replay"]
assert whole["session"]["launches_seen"] == 243, whole["session"]
assert set(together) == set(ranks[0]) and len(together) == 2
filled = means = 0
for name, (launch, metrics) in together.items():
    of = [rank[name] for rank in ranks]
    for key in ("launches", "counted"):
        assert launch["rotation"][key] == sum(l["rotation"][key] for l, _ in of), (key, launch["rotation"])
    for metric, m in metrics.items():
        parts = [values[metric] for _, values in of if "counted" in values.get(metric, {})]
        if not parts or metric.startswith("rank__"):
            continue
        assert m["counted"] == sum(p["counted"] for p in parts), (m, parts)
        mean = sum(p["counted"] * p["value"] for p in parts) / m["counted"]
        squares = sum((p["deviation"] or 0) ** 2 * (p["counted"] - 1) + p["counted"] * (p["value"] - mean) ** 2 for p in parts)
        assert abs(m["value"] - mean) <= 1e-9 * abs(mean), (m, parts)
        assert abs(m["deviation"] - (squares / (m["counted"] - 1)) ** 0.5) <= 1e-6 * abs(mean), (m, parts)
        means += 1
        filled += len(parts) == 2
    ns = [values["gpu__time_duration.sum"]["value"] for _, values in of]
    assert metrics["rank__duration"]["instances"] == [[str(r), ns[r]] for r in range(3)], metrics["rank__duration"]
    assert metrics["rank__launches"]["instances"] == [[str(r), l["rotation"]["launches"]] for r, (l, _) in enumerate(of)]
    imbalance = 100 * (max(ns) / (sum(ns) / 3) - 1)
    assert abs(metrics["rank__imbalance"]["value"] - imbalance) < 1e-6, (metrics["rank__imbalance"], ns)
print("%d means, %d that a rank lacks" % (means, filled))
assert means > filled > 0
for row in csv.DictReader(open(folder + "/together.csv")):
    ranks_of = dict(together[row["Name"]][1]["rank__duration"]["instances"])
    assert float(row["Max (ns)"]) == max(ranks_of.values()) == ranks_of[row["Slowest"]], row
    assert float(row["Min (ns)"]) == min(ranks_of.values()) and row["Ranks"] == "3", row
END
# A slow rank stands out of what its launches vary by; the page comes first, and the sections follow.
RANK=3 WORLD_SIZE=4 FAKE_VARY=4 FAKE_SEED=3 FAKE_SLOW=30 KPROF_EXPORT=$tmp/run.%r.kprof both "slow rank" "$p" 40
together "$tmp"/run.[013].kprof >"$tmp/together" || fail "slow rank: the status"
expect "slow rank: first" "$(sed -n 2p "$tmp/together")" " Kernels by rank"
expect "slow rank: rows" "$(awk '$7 == 3 && $3 == 3 && $8 > 12 && $8 < 26 && $9 > 0 && $9 < 8' "$tmp/together" | wc -l)" 2
expect "slow rank: entries" "$(grep -c '^    Rotation: 120 \|^    Rotation: 240 ' "$tmp/together")" 2
expect "slow rank: by name" "$(together --page ranks --sort name "$tmp"/run.[013].kprof | awk 'NR == 5 { print $NF }')" append
expect "slow rank: the first one" "$(together --page ranks --top 1 "$tmp"/run.[013].kprof | grep -c 'and 1 more: --top 0 lists all')" 1
expect "apart: no ranks" "$("$build/kprof" report --page ranks "$tmp/run.0.kprof" | grep -c '2 launches have no durations by rank')" 1
# Of ranks that took the same none is the slowest: a session beside a copy of it.
for rank in 5 6; do RANK=$rank WORLD_SIZE=7 KPROF_EXPORT=$tmp/same.%r.kprof both "same rank" "$p" 40; done
together --page ranks --csv "$tmp"/same.[56].kprof >"$tmp/same.csv"
expect "same rank" "$(python3 -c 'import csv, sys
print(sorted({(row["Slowest"], row["Imbalance (%)"]) for row in csv.DictReader(open(sys.argv[1]))}))' "$tmp/same.csv")" "[('', '0.00')]"
expect "slow rank: temporary files" "$(find "$tmp" -name ranks.kprof | wc -l)" 0
# The summary page and folded stacks weigh by all launches: increment has twice as many as append.
together --page summary --csv "$tmp"/run.[013].kprof >"$tmp/summary.csv"
together --folded stack "$tmp"/run.[013].kprof >"$tmp/folded"
python3 - "$tmp" <<'END' || fail "weights"
import csv, sys
folder = sys.argv[1]
rows = {r["Name"]: r for r in csv.DictReader(open(folder + "/summary.csv"))}
assert rows["increment"]["Instances"] == "240" and rows["append"]["Instances"] == "120", rows
stacks = dict(line.rsplit(" ", 1) for line in open(folder + "/folded"))
for name, row in rows.items():
    assert abs(float(row["Avg (ns)"]) * float(row["Instances"]) / float(row["Total Time (ns)"]) - 1) < 1e-9, row
    assert abs(float(stacks[name]) / float(row["Total Time (ns)"]) - 1) < 1e-6, (row, stacks)
END
# Without the flag each session is printed by itself, as ever, and a line on stderr tells of it.
expect "ranks: apart" "$("$build/kprof" report "$tmp"/run.[01].kprof 2>"$tmp/hint" | grep -c '^    Rotation: ')" 4
expect "ranks: hint" "$(cat "$tmp/hint")" "==KPROF== These are 2 ranks of a rotation: --ranks puts them together, with one entry for each kernel and shape, and compares the ranks"
"$build/kprof" report --csv "$tmp"/run.[01].kprof 2>"$tmp/hint" >"$tmp/apart.csv"
expect "ranks: no hint beside CSV" "$(cat "$tmp/hint")" ""
# What cannot be put together is refused, with nothing on stdout.
refused() { # WHAT STATUS TEXT FILES...
    what=$1 status=$2 text=$3
    shift 3
    together "$@" >"$tmp/refused.out" 2>"$tmp/refused.err"
    expect "refused, $what: status" $? "$status"
    grep -q "$text" "$tmp/refused.err" || fail "refused, $what: $(cat "$tmp/refused.err")"
    [ ! -s "$tmp/refused.out" ] || fail "refused, $what: printed"
}
KPROF_REPLAY_MODE=kernel KPROF_EXPORT=$tmp/replayed.kprof both "replayed" "$p" 1
"$build/kprof" report "$tmp/run.0.kprof" "$tmp/replayed.kprof" 2>"$tmp/hint" >"$tmp/apart"
expect "replayed: no hint" "$(cat "$tmp/hint")" ""
refused "replayed" 2 'replayed.kprof cannot be put together with others: rotation' "$tmp/run.0.kprof" "$tmp/replayed.kprof"
refused "twice" 2 'both are the same session' "$tmp/run.0.kprof" "$tmp/run.0.kprof"
refused "missing" 2 'one of them is missing' "$tmp/run.0.kprof" "$tmp/none.kprof"
python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("UPDATE launch SET chip = ?", ("GB100",)); d.commit()' \
    "$tmp/run.1.kprof"
refused "chips" 2 'different chips, GH100 and GB100' "$tmp/run.0.kprof" "$tmp/run.1.kprof"
refused "trace" 2 'timelines are not put together' --trace-json "$tmp/trace" "$tmp/run.0.kprof"

# A process that ends without its exit handlers has its entries, too.
for end in _exit quick_exit; do
    both "$end" "$programs/p_exit" $end
    expect "$end: entries" "$(grep -c '^    Rotation: ' "$tmp/report")" 1
    expect "$end: profiled" "$(account profiled)" "$(launches "$tmp/plain.log")"
done

# Fewer launches than groups: what is lacking has its reason.
both "few" "$p" 1
expect "few: entries" "$(grep -c '^    Rotation: ' "$tmp/report")" 2
tr -s ' \n' ' ' <"$tmp/report" | grep -q 'its group of counters was not reached: [12] of [2-9] groups, in 2 launches' || fail "few: no reason for what is lacking"

# The nodes of a graph are launches.
both "graphs" "$programs/p_nodes"
expect "graphs: entries" "$(grep -c 'CC 9.0$' "$tmp/report")" 2
expect "graphs: seen" "$(account seen)" 23

# One group is not called one of several.
KPROF_METRICS="" both "one group" "$p" 5
expect "one group: entries" "$(grep -c '^    Rotation: .* were counted, all for one group of counters' "$tmp/report")" 2

KPROF_METRICS="" KPROF_ROTATE_LAUNCHES=1 both "one launch" "$p" 1
expect "one launch: entries" "$(grep -c '^    Rotation: [12] launch\(es\)* of this kernel and shape, of which 1 was counted,' "$tmp/report")" 2
expect "one launch: of one" "$(grep -c '^    Rotation: 1 launch of' "$tmp/report")" 1

# Shapes that come once each are counted while nothing tells that they go on so; then they pass.
both "shapes" "$programs/p_shapes" 400
expect "shapes: launches of the driver" "$(launches "$tmp/kprof.log")" "$(launches "$tmp/plain.log")"
expect "shapes: seen" "$(account seen)" 5200
# That is told after 160 shapes, when half of them ended 1024 launches ago. A window that is open by then goes on to its end,
# 192 launches; where a busy machine has one end early, that is a later one.
entries=$(grep -c 'CC 9.0$' "$tmp/report")
[ "$entries" -lt 360 ] || fail "shapes: $entries of 401 have an entry"
grep -q 'of a kernel whose shapes change before all groups are counted: [1-9]' <<END || fail "shapes: no reason"
$(tr -s ' \n' ' ' <"$tmp/report")
END
both "few shapes" "$programs/p_shapes" 30
expect "few shapes: entries" "$(grep -c 'CC 9.0$' "$tmp/report")" 31

# Launches that may not be repeated are counted, too: several threads, other processes, blocks of the device's heap.
both "threads" "$programs/p_threads"
both "repeat" "$programs/p_repeat" heap

# The number of groups is known without a GPU.
groups() { # FLAGS...
    "$build/kprof" --list-sets --chip TU102 --cupti-dir "$KP_REAL_CUPTI" "$@" 2>"$tmp/sets.err" |
        awk '$1 == "Set" { n = $4 } $1 == "basic" { print n, $4 }'
}
# It takes seconds for all sets, longer with a sanitiser and for later chips.
if ! sanitised; then
    expect "sets: passes" "$(KPROF_REPLAY_MODE=kernel groups)" "Passes 8"
    case $(groups --replay-mode rotate) in
    "Groups "[7-9] | "Groups 1"[0-4]) ;;
    *) fail "sets: $(groups --replay-mode rotate)" ;;
    esac
fi

KPROF_REPLAY_MODE=rotat profiled "$p" 1
grep -q 'rotate' "$tmp/kprof.err" || fail "a wrong value does not name the nearest"

finish
