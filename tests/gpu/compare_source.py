"""What kprof counts, samples and names by instruction beside ncu: compare_source.py FILE.kprof... FILE.ncu-rep...

Launches are matched by order. Prints a line a launch, of the first session: totals of SASS metrics, the mixes of opcodes and
categories, the shares of stall reasons, and the order of the lines by samples. What differs among ncu's own runs
is no measure of it; samples are compared with the nearest run, and the spread of each side's runs is printed.
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
MANY = 2000    # samples, from which on chance alone moves a share by a point


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


def share(stalls, reason):
    return stalls[reason] / (sum(stalls.values()) or 1)


def top(lines, n=5):
    """Lines by samples, without those that have too few to be told apart from the next."""
    total = sum(lines.values())
    return [k for k, v in lines.most_common(n) if total and v >= 0.02 * total]


def spread(runs, launch):
    """How far the stall shares of the runs are apart at most, of one launch."""
    return max((share_gap(a[launch][4], b[launch][4]) for i, a in enumerate(runs) for b in runs[:i]), default=0)


def compare_counts(good, mine, others, launch):
    """Totals and mixes of a launch; what differs, with what ncu's other runs say."""
    wrong = []
    a = mine[launch]
    for metric in TOTALS:
        found = [o[launch][1][metric] for o in others if o[launch][1][metric] is not None]
        if not found:
            continue
        if len(set(found)) > 1:
            good["totals that ncu repeats otherwise"] += 1
            continue
        good["totals"] += 1
        same = a[1].get(metric) is not None and float(a[1][metric]) == found[0]
        good["totals equal"] += same
        if not same:
            wrong.append(f"{metric}: {a[1].get(metric)} / {' '.join(str(f) for f in found)}")
    for mix in MIXES:
        found = [o[launch][2][mix] for o in others if mix in o[launch][2]]
        if not found:
            continue
        if any(f != found[0] for f in found):
            good["mixes that ncu repeats otherwise"] += 1
            continue
        good["mixes"] += 1
        good["mixes equal"] += a[2].get(mix) == found[0]
        if a[2].get(mix) != found[0]:
            wrong.append(f"{mix}: {a[2].get(mix)} / {found[0]}")
    return wrong


def main():
    sessions = [ours(p) for p in sys.argv[1:] if p.endswith(".kprof")]
    reports = [theirs(p) for p in sys.argv[1:] if not p.endswith(".kprof")]
    print(f"launches of kprof: {[len(s) for s in sessions]}, of ncu: {[len(r) for r in reports]}")
    good = collections.Counter()
    launches = min(len(s) for s in sessions + reports)
    for i in range(launches):
        name, _, _, lines, stalls = sessions[0][i]
        wrong = compare_counts(good, sessions[0], reports, i)
        near = min(reports, key=lambda r: share_gap(stalls, r[i][4]))
        gap, itself, own = share_gap(stalls, near[i][4]), spread(reports, i), spread(sessions, i)
        their_lines = [r[i][3] for r in reports]
        ranking, rankings = top(lines), [top(t) for t in their_lines]
        enough = min(sum(r[i][4].values()) for r in sessions + reports) >= LEAST
        if enough:
            good["launches"] += 1
            good["stalls within"] += gap <= POINTS
            good["stalls within spread"] += gap <= max(POINTS, itself)
            if min(sum(r[i][4].values()) for r in sessions + reports) >= MANY:
                good["many"] += 1
                good["many within"] += gap <= POINTS
                good["many, theirs within"] += itself <= POINTS
            good["their stalls within"] += itself <= POINTS
            good["lines equal"] += ranking in rankings
            good["their lines equal"] += all(r == rankings[0] for r in rankings)
        print(f"{re.sub(r'[(<].*', '', name):32.32} samples {sum(stalls.values()):8.0f} / {sum(near[i][4].values()):8.0f}"
              f"  stall shares differ by {100 * gap:5.1f} points (ncu's runs {100 * itself:4.1f}, kprof's {100 * own:4.1f})"
              f"  lines {'same' if ranking in rankings else 'DIFFER'}{'' if enough else '  too few samples'}")
        for text in wrong:
            print("    " + text[:230])
        if ranking not in rankings:
            print(f"    lines {ranking} / {rankings}")
        if enough and gap > POINTS:
            for reason in sorted(set(stalls) | set(near[i][4]),
                                 key=lambda k: -abs(share(stalls, k) - share(near[i][4], k)))[:4]:
                print(f"    {reason:24} kprof " + " ".join(f"{100 * share(s[i][4], reason):5.1f}" for s in sessions)
                      + "  ncu " + " ".join(f"{100 * share(r[i][4], reason):5.1f}" for r in reports))
    print(f"| totals of SASS metrics equal | {good['totals equal']} of {good['totals']} |")
    print(f"| mixes of opcodes equal | {good['mixes equal']} of {good['mixes']} |")
    print(f"| totals, mixes that differ among ncu's own runs, left out above | {good['totals that ncu repeats otherwise']}, "
          f"{good['mixes that ncu repeats otherwise']} |")
    print(f"| stall shares within 3 points of an ncu run | {good['stalls within']} of {good['launches']} launches |")
    print(f"| the same of launches with at least {MANY} samples (ncu's own runs) | {good['many within']} "
          f"({good['many, theirs within']}) of {good['many']} launches |")
    print(f"| the same, or within ncu's own spread | {good['stalls within spread']} of {good['launches']} launches |")
    print(f"| five hottest lines in the order of an ncu run | {good['lines equal']} of {good['launches']} launches |")
    print(f"| ncu's own runs: shares within 3 points, lines in one order | {good['their stalls within']}, "
          f"{good['their lines equal']} of {good['launches']} launches |")


if __name__ == "__main__":
    main()
