#!/usr/bin/env python3
"""Steps of ResNet-18 long after a rotation has come to its end beside native ones: two processes take turns on the GPU, so
that both meet the same state of the machine.

usage: turns.py LIBRARY [STEPS [TURNS [STEPS_A_TURN]]]

The first process trains STEPS steps with LIBRARY preloaded and a rotation, the second without. Then each of TURNS rounds has
a turn of both, the first one first in every other round. Prints the median time of a step of both, and the ratio of each
round: median, and the 95 % interval of the median by its ranks. A second native process takes part as well: its ratio to the
first one tells what such a comparison can tell. TURNS_CPU=1: CPU time of each thread a step, too. Lines that KPROF_DEBUG asks
for are printed as they come.
"""
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Trainer:
    def __init__(self, steps, **environment):
        self.of = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "bench_resnet.py"), "--steps", str(steps), "--turns"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment})
        self.times = []

    def wait(self, word):
        for line in self.of.stderr:
            if line.startswith(word):
                return line
            if "debug" in line:
                print(line, end="")
        raise SystemExit("turns.py: a trainer ended early, with exit code %s" % self.of.wait())

    def turn(self, steps):
        self.of.stdin.write("%d\n" % steps)
        self.of.stdin.flush()
        return float(self.wait("turn").split()[1]) / steps

    def cpu(self):
        """{thread: seconds of CPU time}"""
        folder = "/proc/%d/task" % self.of.pid
        return {(t, open("%s/%s/comm" % (folder, t)).read().strip()): 1e-9 * int(open("%s/%s/schedstat" % (folder, t)).read().split()[0])
                for t in os.listdir(folder)}

    def end(self):
        self.of.stdin.close()
        for line in self.of.stderr:
            if "debug" in line:
                print(line, end="")
        return self.of.wait()


def interval(values):
    """Ranks of the 95 % interval of the median, by the normal approximation to the binomial distribution."""
    ordered, n = sorted(values), len(values)
    off = 0.98 * n ** 0.5
    return ordered[max(int(n / 2 - off), 0)], ordered[min(int(n / 2 + off), n - 1)]


def main():
    library = sys.argv[1]
    steps, turns, length = (int(sys.argv[i]) if len(sys.argv) > i else by for i, by in ((2, 40), (3, 60), (4, 10)))
    rotated = Trainer(steps, LD_PRELOAD=library, KPROF_REPLAY_MODE="rotate")
    rotated.wait("bench:")
    natives = [Trainer(3), Trainer(3)]
    for native in natives:
        native.wait("bench:")
    trainers = [rotated, *natives]
    for t in trainers:
        t.turn(length)
    before = [t.cpu() for t in trainers]
    for i in range(turns):
        for t in trainers if i % 2 else reversed(trainers):
            t.times.append(t.turn(length))
    if os.environ.get("TURNS_CPU"):
        for t, was in zip(trainers, before):
            used = sorted(((v - was.get(k, 0)) / turns / length * 1e3, k) for k, v in t.cpu().items())
            print("  cpu ms a step %.3f:" % sum(u for u, _ in used), ["%s %.3f" % (k[1], u) for u, k in used[::-1] if u > 0.005])
    codes = [t.end() for t in trainers]
    for name, other in (("rotated", rotated), ("native", natives[1])):
        ratios = [a / b for a, b in zip(other.times, natives[0].times)]
        low, high = interval(ratios)
        print("%s: %.3f ms a step, native %.3f ms; %.4f of native (%.4f to %.4f)" % (
            name, 1e3 * statistics.median(other.times), 1e3 * statistics.median(natives[0].times),
            statistics.median(ratios), low, high))
    return any(codes)


sys.exit(main())
