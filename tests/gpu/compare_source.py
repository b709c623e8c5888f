"""What kprof counts, samples and names by instruction beside ncu: compare_source.py SESSION REPORT.ncu-rep [AGAIN.ncu-rep]

Launches are matched by order. Prints a line a launch: totals of SASS metrics, the mixes of opcodes and categories, the
shares of stall reasons, and the order of the lines by samples. With a second report, the last lines say as well how ncu
compares with itself.
"""
import collections
import glob
import json
import re
import sqlite3
import sys

for folder in glob.glob("/opt/nvidia/nsight-compute/*/extras/python") + glob.glob(
        "/usr/local/cuda*/nsight-compute*/extras/python"):
    sys.path.insert(0, folder)
import ncu_report

TOTALS = """inst_executed thread_inst_executed thread_inst_executed_true smsp__branch_targets_threads_divergent
memory_l2_theoretical_sectors_global memory_l2_theoretical_sectors_global_ideal memory_l2_theoretical_sectors_local
memory_l1_wavefronts_shared memory_l1_wavefronts_shared_ideal memory_l1_tag_requests_global
derived__memory_l2_theoretical_sectors_global_excessive derived__memory_l1_wavefronts_shared_excessive
derived__avg_thread_executed derived__avg_thread_executed_true derived__memory_l1_conflicts_shared_nway
sass__inst_executed_global_loads sass__inst_executed_global_stores sass__inst_executed_local_loads
sass__inst_executed_local_stores sass__inst_executed_shared_loads sass__inst_executed_shared_stores
derived__local_spilling_requests""".split()
MIXES = ["sass__inst_executed_per_opcode", "sass__inst_executed_per_opcode_category"]
STALL = "smsp__pcsamp_warps_issue_stalled_"
POINTS = 0.03  # by which shares may differ
LEAST = 400    # samples, below which shares are noise


def ours(path):
    db = sqlite3.connect(path)
    launches = []
    for (launch,) in db.execute("SELECT id FROM launch ORDER BY id"):
        metrics = dict(db.execute("SELECT name, value FROM metrics WHERE launch = ?", (launch,)))
        mixes = {name: sorted((v for _, v in json.loads(text)), reverse=True) for name, text in db.execute(
            "SELECT n.name, m.instances FROM metric m JOIN name n ON n.id = m.name WHERE m.launch = ? AND m.instances"
            " IS NOT NULL", (launch,)) if name in MIXES}
        lines, stalls = collections.Counter(), collections.Counter()
        for metric, file, line, value in db.execute(
                "SELECT name, file, line, value FROM line_values WHERE launch = ? AND name LIKE ?",
                (launch, STALL + "%")):
            if not metric.endswith("_not_issued"):
                lines[(file or "?").rsplit("/", 1)[-1], line] += value
                stalls[metric[len(STALL):]] += value
        name = db.execute("SELECT demangled FROM launch WHERE id = ?", (launch,)).fetchone()[0]
        launches.append((name, metrics, mixes, lines, stalls))
    return launches


def theirs(path):
    launches = []
    context = ncu_report.load_report(path)
    for r in range(context.num_ranges()):
        for action in [context.range_by_idx(r).action_by_idx(i) for i in range(context.range_by_idx(r).num_actions())]:
            def value(name):
                try:
                    return action.metric_by_name(name).as_double()
                except Exception:
                    return None
            metrics = {name: value(name) for name in TOTALS}
            mixes = {}
            for name in MIXES:
                m = action.metric_by_name(name)
                if m:
                    mixes[name] = sorted((m.as_double(i) for i in range(m.num_instances())), reverse=True)
            lines, stalls = collections.Counter(), collections.Counter()
            for name in action.metric_names():
                if not name.startswith(STALL) or name.endswith("_not_issued"):
                    continue
                m = action.metric_by_name(name)
                stalls[name[len(STALL):]] += m.as_double()
                where = m.correlation_ids() if m.has_correlation_ids() else None
                for i in range(m.num_instances() if where else 0):
                    if m.as_double(i):
                        source = action.source_info(where.as_uint64(i))
                        at = (source.file_name().rsplit("/", 1)[-1], source.line()) if source else ("?", None)
                        lines[at] += m.as_double(i)
            launches.append((action.name(), metrics, mixes, lines, stalls))
    return launches


def share_gap(a, b):
    na, nb = sum(a.values()), sum(b.values())
    if not na or not nb:
        return 0 if na == nb else 1
    return max(abs(a[k] / na - b[k] / nb) for k in set(a) | set(b))


def top(lines, n=5):
    """Lines by samples, without those that have too few to be told apart from the next."""
    total = sum(lines.values())
    return [k for k, v in lines.most_common(n) if total and v >= 0.02 * total]


def main():
    mine, other = ours(sys.argv[1]), theirs(sys.argv[2])
    print(f"{len(mine)} launches of kprof, {len(other)} of ncu")
    good = collections.Counter()
    for (name, a, mixes, lines, stalls), (_, b, their_mixes, their_lines, their_stalls) in zip(mine, other):
        wrong = []
        for metric in TOTALS:
            if b[metric] is None or a.get(metric) is None:
                wrong.append(f"{metric}: {a.get(metric)} / {b[metric]}") if b[metric] is not None else None
                continue
            good["totals"] += 1
            same = float(a[metric]) == b[metric]
            good["totals equal"] += same
            if not same:
                wrong.append(f"{metric}: {a[metric]} / {b[metric]}")
        for mix in MIXES:
            good["mixes"] += 1
            same = mixes.get(mix) == their_mixes.get(mix)
            good["mixes equal"] += same
            if not same:
                wrong.append(f"{mix}: {mixes.get(mix)} / {their_mixes.get(mix)}")
        gap = share_gap(stalls, their_stalls)
        if min(sum(stalls.values()), sum(their_stalls.values())) >= LEAST:
            good["stalls"] += 1
            good["stalls within"] += gap <= POINTS
        ranking, their_ranking = top(lines), top(their_lines)
        same = ranking == their_ranking
        if sum(their_lines.values()) >= LEAST:
            good["lines"] += 1
            good["lines equal"] += same
        print(f"{re.sub(r'[(<].*', '', name):32.32} samples {sum(stalls.values()):8.0f} / {sum(their_stalls.values()):8.0f}"
              f"  stall shares differ by {100 * gap:5.1f} points  lines {'same' if same else 'DIFFER'}")
        for text in wrong:
            print("    " + text[:230])
        if not same:
            print(f"    lines {ranking} / {their_ranking}")
    again = theirs(sys.argv[3]) if len(sys.argv) > 3 else []
    itself = collections.Counter()
    for (name, _, _, lines, stalls), (_, _, _, more_lines, more_stalls) in zip(other, again):
        gap = share_gap(stalls, more_stalls)
        if min(sum(stalls.values()), sum(more_stalls.values())) < LEAST:
            continue
        itself["stalls"] += 1
        itself["stalls within"] += gap <= POINTS
        itself["lines"] += 1
        itself["lines equal"] += top(lines) == top(more_lines)
        print(f"{re.sub(r'[(<].*', '', name):32.32} ncu beside itself: stall shares differ by {100 * gap:5.1f} points  lines "
              f"{'same' if top(lines) == top(more_lines) else 'DIFFER'}")
    print(f"| totals of SASS metrics equal | {good['totals equal']} of {good['totals']} |")
    print(f"| mixes of opcodes equal | {good['mixes equal']} of {good['mixes']} |")
    print(f"| stall shares within 3 points | {good['stalls within']} of {good['stalls']} launches |")
    print(f"| five hottest lines in the same order | {good['lines equal']} of {good['lines']} launches |")
    if again:
        print(f"| ncu beside itself: stall shares within 3 points, lines in the same order | {itself['stalls within']} of "
              f"{itself['stalls']}, {itself['lines equal']} of {itself['lines']} launches |")


if __name__ == "__main__":
    main()
