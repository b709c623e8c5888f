#!/usr/bin/env python3
"""Follows the recipes of docs/adding.md in a copy of the tree: applies each, builds, and runs the test that shows it.

apply.py [NAME]...   of tests/recipes/NAME.recipe; without a name all of them. `make check-recipes` runs it, after a build.

A recipe begins with `# ` and the heading that it follows. Each heading of the document has one. Then come steps, in order:

@@ FILE after|before|at TEXT   the lines up to the next step go after, before, or in place of the one line with TEXT
                               (TEXT >> OTHER: the first line with OTHER after that one)
@@ FILE new                    they are a new file
@@ passes TEST...              builds, and runs tests: build/tests/NAME, or a script of tests/e2e/; CASES=PATTERN: only those
@@ fails TEST WITH TEXT        does the same, and the test fails with TEXT: it notices what the recipe has not done yet
@@ anew TEST: GOLDEN...        runs the test with KP_TEST_UPDATE: it changes these files of tests/golden/, and no others
@@ without WHY                 the only step of a recipe that nothing here follows yet
@@ prints TEXT FROM COMMAND    builds, and a command prints TEXT, an expression

KP_RECIPES is another folder of recipes. The copy keeps what a recipe has changed, so that a later one builds on it."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
# What a build made; without the tests' logs, packages and other variants.
BUILT = ("obj/release", "include-c", "libunwind", "fake", "programs", "e2e", "docs", "*.a", "kprof", "*.so", "cuda.mk")


class Wrong(Exception):
    pass


def headings():
    return re.findall(r"^## (.*)$", open(SOURCE + "/docs/adding.md").read(), re.M)


def read_recipe(path):
    """Returns the heading, and the steps: (words, lines)."""
    lines = open(path).read().split("\n")
    steps = []
    for line in lines[1:-1]:
        if line.startswith("@@ "):
            steps.append((line[3:], []))
        elif steps:
            steps[-1][1].append(line)
    return lines[0][2:], steps


def copy_tree(to):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCE, capture_output=True, text=True, check=True).stdout
    paths = [name for name in names.split("\0") if name and os.path.exists(os.path.join(SOURCE, name))]
    paths += [os.path.relpath(p, SOURCE) for b in BUILT for p in glob.glob(f"{SOURCE}/build/{b}")]
    subprocess.run(["cp", "-a", "--parents", *paths, to], cwd=SOURCE, check=True)


def build(folder, *targets):
    done = subprocess.run(
        ["make", "--no-print-directory", f"-j{os.cpu_count()}", "all", *targets],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Wrong("does not build:\n" + (done.stdout + done.stderr)[-3000:])


def environment(folder):
    return {
        **os.environ,
        "KP_TEST_BUILD": folder + "/build",
        "KP_TEST_SRC": folder,
        "KP_REAL_CUPTI": re.search(r"^CUPTI_LIBDIR := (.*)$", open(folder + "/build/cuda.mk").read(), re.M)[1],
        "KP_HOST_ANSWERS": SOURCE + "/build/host-answers",
    }


def run_tests(folder, tests, **env):
    """Builds and runs them; the exit status of the runner, and what they have said."""
    env.update({"KP_TEST_CASES": t[len("CASES="):] for t in tests if t.startswith("CASES=")})
    tests = [t for t in tests if not t.startswith("CASES=")]
    build(folder, *[t for t in tests if t.startswith("build/")])
    env = {**environment(folder), **env}
    done = subprocess.run(["tools/run_tests.sh", "600", folder + "/logs", *tests], cwd=folder, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def insert(folder, path, how, text, lines):
    path = os.path.join(folder, path)
    if how == "new":
        if os.path.exists(path):
            raise Wrong(f"{path} is there already")
        open(path, "w").write("\n".join(lines) + "\n")
        return
    old = open(path).read().split("\n")
    anchor, _, text = text.rpartition(" >> ")
    start = [i for i, line in enumerate(old) if anchor in line] if anchor else [-1]
    if len(start) != 1:
        raise Wrong(f"{path}: {len(start)} lines with {anchor}")
    at = [i for i, line in enumerate(old) if text in line and i > start[0]]
    at = at[:1] if anchor else at
    if len(at) != 1:
        raise Wrong(f"{path}: {len(at)} lines with {text}")
    first, last = {"after": (at[0] + 1, at[0] + 1), "before": (at[0], at[0]), "at": (at[0], at[0] + 1)}[how]
    open(path, "w").write("\n".join(old[:first] + lines + old[last:]))


def goldens(folder):
    return {os.path.basename(p): open(p, "rb").read() for p in glob.glob(folder + "/tests/golden/*")}


def run_step(folder, words, lines):
    kind, _, rest = words.partition(" ")
    if kind in ("passes", "fails"):
        test, _, wanted = rest.partition(" WITH ")
        code, said = run_tests(folder, test.split())
        if kind == "passes" and code:
            raise Wrong(f"{test} fails:\n{said[-1500:]}")
        if kind == "fails" and (not code or wanted not in said):
            raise Wrong(f"{test} does not fail with {wanted}:\n{said[-1500:]}")
    elif kind == "anew":
        test, _, names = rest.partition(": ")
        before = goldens(folder)
        run_tests(folder, test.split(), KP_TEST_UPDATE="1")
        changed = {name for name, text in goldens(folder).items() if before.get(name) != text}
        if changed != set(names.split()):
            raise Wrong(f"{test} writes anew: {' '.join(sorted(changed))}")
    elif kind == "prints":
        wanted, _, command = rest.partition(" FROM ")
        build(folder)
        done = subprocess.run(command, shell=True, cwd=folder, env=environment(folder), capture_output=True, text=True)
        if not re.search(wanted, done.stdout + done.stderr):
            raise Wrong(f"does not print {wanted}:\n{(done.stdout + done.stderr)[-3000:]}")
    else:
        how, _, text = rest.partition(" ")
        insert(folder, kind, how, text, lines)


def follow(folder, path):
    heading, steps = read_recipe(path)
    if heading not in headings():
        raise Wrong(f"docs/adding.md has no heading {heading}")
    if len(steps) == 1 and steps[0][0].startswith("without "):
        return steps[0][0]
    if not any(words.startswith(("passes", "prints")) for words, _ in steps):
        raise Wrong("no step shows that it works")
    if not os.path.exists(folder + "/Makefile"):
        copy_tree(folder)
    for words, lines in steps:
        try:
            run_step(folder, words, lines)
        except (Wrong, OSError) as wrong:
            raise Wrong(f"{words}: {wrong}") from wrong
    return "followed"


def main():
    paths = sorted(glob.glob(os.environ.get("KP_RECIPES", SOURCE + "/tests/recipes") + "/*.recipe"))
    missing = set(headings()) - {read_recipe(path)[0] for path in paths}
    failed = len(missing)
    for heading in sorted(missing):
        print(f"recipes: {heading}: docs/adding.md has it, tests/recipes has not")
    folder = tempfile.mkdtemp()
    try:
        for path in paths:
            name = os.path.basename(path)[: -len(".recipe")]
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            try:
                print(f"recipes: {name}: {follow(folder, path)}", flush=True)
            except Wrong as wrong:
                print(f"recipes: {name}: {wrong}", flush=True)
                failed += 1
    finally:
        shutil.rmtree(folder)
    print(f"recipes: {len(paths)}, {failed} failed")
    return failed > 0


sys.exit(main())
