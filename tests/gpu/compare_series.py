"""What kprof and ncu saw over time: compare_series.py SESSION REPORT.ncu-rep

Launches are matched by order, series by metric. The samples of each are put into 20 pieces of its kernel's time; a line a
series says how far the pieces are apart, in points of the series' own range, and draws both. The last lines count.
"""
import glob
import json
import sqlite3
import sys

for folder in glob.glob("/opt/nvidia/nsight-compute/*/extras/python") + glob.glob(
        "/usr/local/cuda*/nsight-compute*/extras/python"):
    sys.path.insert(0, folder)

PIECES = 20
CLOSE = 0.15  # of the range: a sample at a phase's border belongs to either
BLOCKS = " ▁▂▃▄▅▆▇█"


def ours(path):
    db = sqlite3.connect(path)
    return [dict((name, [v for v in json.loads(values) if v is not None]) for name, values in db.execute(
        'SELECT name, "values" FROM series WHERE launch = ?', (launch,)))
            for (launch,) in db.execute("SELECT id FROM launch ORDER BY id").fetchall()]


def theirs(path):
    import ncu_report
    launches, context = [], ncu_report.load_report(path)
    for r in range(context.num_ranges()):
        whole = context.range_by_idx(r)
        for action in [whole.action_by_idx(i) for i in range(whole.num_actions())]:
            series = {}
            for name in action.metric_names():
                if "Triage" not in name and not name.startswith("pmsampling:"):
                    continue
                m = action.metric_by_name(name)
                series[name] = [m.as_double(i) for i in range(m.num_instances())]
            launches.append(series)
    return launches


def without_idle(all_series):
    """The samples of the kernel: those before its first and after its last activity are cut off in all series alike."""
    n = max((len(v) for v in all_series.values()), default=0)
    active = [any(len(v) > i and v[i] for k, v in all_series.items() if "cycles_active" in k) for i in range(n)]
    if True not in active:
        return all_series
    begin, end = active.index(True), n - active[::-1].index(True)
    return {k: v[begin:end] for k, v in all_series.items()}


def pieces(values):
    out = []
    for i in range(PIECES):
        part = values[i * len(values) // PIECES:max((i + 1) * len(values) // PIECES, i * len(values) // PIECES + 1)]
        out.append(sum(part) / len(part) if part else 0)
    return out


def draw(parts, most):
    return "".join(BLOCKS[round(8 * p / most) if most else 0] for p in parts)


def main():
    close = compared = 0
    for launch, (mine, other) in enumerate(zip(ours(sys.argv[1]), theirs(sys.argv[2]))):
        mine, other = without_idle(mine), without_idle(other)
        print(f"launch {launch}: {len(mine)} series of kprof, {len(other)} of ncu, {len(set(mine) & set(other))} of both")
        for name in sorted(set(mine) & set(other)):
            if len(mine[name]) < PIECES or len(other[name]) < PIECES:
                print(f"  {name}: {len(mine[name])} and {len(other[name])} samples, too few")
                continue
            a, b = pieces(mine[name]), pieces(other[name])
            most = max(a + b)
            gaps = sorted(abs(x - y) / most if most else 0 for x, y in zip(a, b))
            compared += 1
            close += gaps[PIECES * 9 // 10 - 1] <= CLOSE
            print(f"  {name:90.90} {len(mine[name]):5} {len(other[name]):5}  {100 * gaps[PIECES * 9 // 10 - 1]:5.1f}"
                  f"  |{draw(a, most)}|{draw(b, most)}|")
    print(f"| series of which nine of ten pieces are within {CLOSE:.0%} of the range | {close} of {compared} |")


if __name__ == "__main__":
    main()
