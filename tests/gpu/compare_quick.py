#!/usr/bin/env python3
"""The rows of kprof's quick set beside ncu's values of the same metrics, for the same program.

usage: compare_quick.py --list                 ncu's metrics, separated by commas
       compare_quick.py KPROF NCU_CSV...       kprof's report and ncu's raw pages (--csv --page raw --print-units base)

The quick set runs once with warm caches: ncu has to run with --cache-control none. Prints, for each row, for how many
kernels it agrees: within 3 %, or no further from the nearest ncu run than the runs are from each other; and the rows that
do not.
"""
import csv
import sys

from compare import TOLERANCE, base_value, read

# Where the one pass has no room for the metric itself, the row shows another counter of the same quantity.
METRICS = {
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "gpc__cycles_elapsed.max",
    "SM Active Cycles": "sm__cycles_active.avg",
    "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
    "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
    "Executed Instructions": "smsp__inst_executed.sum",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "DRAM Throughput": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "Memory Throughput": "dram__bytes.sum.per_second",
    "DRAM Bytes Read": "dram__bytes_read.sum",
    "DRAM Bytes Written": "dram__bytes_write.sum",
    "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
    "L2 Request Hit Rate": "lts__t_request_hit_rate.pct",
    "L2 Cache Sectors": "lts__t_sectors.sum",
    "Tensor Pipe Utilization": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "FMA Pipe Utilization": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
}


def read_ncu(path):
    """[{metric: value}] in launch order."""
    rows = list(csv.reader(line for line in open(path) if line.startswith('"')))
    names = rows[0]
    return [
        {m: float(r[names.index(m)].replace(",", "")) for m in METRICS.values() if m in names}
        for r in rows[2:]
    ]


def main():
    if sys.argv[1:] == ["--list"]:
        print(",".join(METRICS.values()))
        return 0
    kprof, runs = read(sys.argv[1]), [read_ncu(p) for p in sys.argv[2:]]
    if not kprof or any(len(r) != len(kprof) for r in runs):
        print("launches: kprof %d, ncu %s" % (len(kprof), [len(r) for r in runs]))
        return 1
    print("| row of the quick set | kernels | agree |\n| --- | --- | --- |")
    wrong = []
    for label, metric in METRICS.items():
        agree = 0
        for i, (kernel, rows) in enumerate(kprof):
            cell = rows.get(("Quick Look", label))
            mine = base_value(*cell) if cell else None
            others = [r[i][metric] for r in runs]
            near = mine is not None and min(abs(mine - v) for v in others)
            ok = mine is not None and near <= max(TOLERANCE * abs(mine), max(others) - min(others), 0.005)
            agree += ok
            if not ok:
                wrong.append("%-18s %-28s kprof %s, ncu %s" % (kernel, label, cell, " / ".join("%g" % v for v in others)))
        print("| %s | %d | %d |" % (label, len(kprof), agree))
    print("\n".join(wrong))
    return 0


if __name__ == "__main__":
    sys.exit(main())
