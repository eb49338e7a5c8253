#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Mutants: changes one operator, constant or condition of a file at a time, and runs the tests that
belong to its folder. A mutant that no test notices shows what is not tested, unless it is
equivalent or merely slower. Works on a copy of the committed tree in FOLDER (build-mutants).

    mutate.py COUNT [--seed N] [--only PATH] [--folder FOLDER] [--patience N] [--longest S] [--list]

Prints a line a mutant, and at the end how many died. Survivors stand in FOLDER/survivors.txt.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from affected import COMMANDS, TESTS, introspected, names_of_folder  # noqa: E402

SLOW = {"test_plan_large", "test_alloc"}  # no mutant that others miss dies here alone
SECONDS = 400  # of a test run; a mutant that takes longer is late: it died of slowness

CHANGES = [
    (r"<=", "<"), (r">=", ">"), (r"(?<![<\->])<(?![<=])", "<="), (r"(?<![->])>(?![>=])", ">="),
    (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"), (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"), (r"(?<= )\*(?= )", "/"), (r"(?<= )/(?= )", "*"), (r"\+\+", "--"),
    (r"\+=", "-="), (r"-=", "+="), (r"(?<= )%(?= )", "/"), (r"(?<= )\|(?= )", "&"),
    (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "2"),
    (r"(?<![\w.])([2-9]|[1-9]\d+)(?![\w.])", None), (r"(?<![\w.])(\d+\.\d+)(?![\w])", None),
    (r"\bif \((?!!)", "if (!"), (r"\bfmin\b", "fmax"), (r"\bfmax\b", "fmin"),
]


def code_of(line):
    """The line with comments and strings blanked, so that columns stay."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: " " * len(m.group(0)), line)
    return re.sub(r"/\*.*?\*/|//.*", lambda m: " " * len(m.group(0)), line)


def places(text):
    """All (line, start, end, replacement) of a file; comments and directives are left alone."""
    found, in_comment = [], False
    for number, line in enumerate(text.split("\n")):
        if in_comment or line.lstrip().startswith("/*"):
            in_comment = "*/" not in line
            continue
        if line.startswith(("#include", "#if", "#ifndef", "#endif", "#undef")) or "NEAP_X" in line:
            continue
        code = code_of(line)
        for pattern, to in CHANGES:
            for match in re.finditer(pattern, code):
                found.append((number, match.start(), match.end(), to))
    return found


def changed(text, place):
    number, start, end, to = place
    lines = text.split("\n")
    old = lines[number][start:end]
    if to is None:
        to = repr(float(old) * 1.03) if "." in old else str(int(old) + 1)
    new = lines[number][:start] + to + lines[number][end:]
    if old == "if (":  # the whole condition is negated
        close = matching(lines[number], end - 1)
        if close is None:
            return None, None
        inside = lines[number][end:close]
        new = lines[number][:end] + "!(" + inside + ")" + lines[number][close:]
    diff = f"-{lines[number].strip()}\n+{new.strip()}"
    lines[number] = new
    return "\n".join(lines), diff


def matching(line, at):
    depth = 0
    for i in range(at, len(line)):
        depth += {"(": 1, ")": -1}.get(line[i], 0)
        if depth == 0:
            return i
    return None


def run(args, **more):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def tests_of(build, folder):
    """Of the tests that belong to the folder: the name, and what ninja builds for it."""
    rows, tests = introspected(build), {}
    names = {name for test in TESTS[folder] for name in names_of_folder(rows, test)} - SLOW | set(COMMANDS.get(folder, []))
    for row in rows:
        if row["name"] in names:
            tests[row["name"]] = [os.path.relpath(part, build) for part in row["cmd"]
                                  if part.startswith(build + "/") and "/../" not in part]
            if any(part.startswith("neap@") for part in row["depends"]):
                tests[row["name"]].append("neap")
    return tests


def results(build):
    """Name, result and seconds of each test of the run before."""
    with open(os.path.join(build, "meson-logs", "testlog.json"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [(row["name"].split(" / ")[-1], row["result"], row["duration"]) for row in rows]


def judge(tree, build, folder, seconds, o):
    """'died', 'late', 'survived' or 'no code' (it does not compile). Quick tests come first."""
    tests, end = tests_of(build, folder), time.monotonic() + o.patience * SECONDS
    parts = [{}, {}, {}]
    for name, targets in tests.items():
        took = seconds.get(name, 60)
        if not (o.longest and name in seconds and took > o.longest):
            parts[(took > 3) + (took > 20)][name] = targets
    for part in parts:
        targets = sorted({target for needed in part.values() for target in needed})
        if not part:
            continue
        if run(["ninja", "-C", build, *targets]).returncode != 0:
            return "no code"
        try:
            done = run(["meson", "test", "-C", build, "--no-rebuild", "--maxfail", "1",
                        "--timeout-multiplier", str(o.patience), *part],
                       timeout=max(end - time.monotonic(), 1), cwd=tree)
        except subprocess.TimeoutExpired:
            return "late"
        rows = results(build)
        seconds.update({name: took for name, result, took in rows if result == "OK"})
        if done.returncode != 0:
            return "died" if any(row[1] in ("FAIL", "ERROR") for row in rows) else "late"
    return "survived"


def source_folder(path):
    """src/FOLDER of a path."""
    return "/".join(path.split("/")[:2])


def main():
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("count", type=int)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--only", default="src/", help="files whose path begins so")
    parse.add_argument("--folder", default="build-mutants")
    parse.add_argument("--patience", type=int, default=1, help="times as long, on a busy machine")
    parse.add_argument("--longest", type=float, default=0,
                       help="leave out tests that took longer, in seconds; more mutants survive")
    parse.add_argument("--read", default="", help="PATH:LINE,...: not run, judged by reading")
    parse.add_argument("--list", action="store_true", help="draw, and run nothing")
    o = parse.parse_args()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    top = os.path.abspath(os.path.join(root, o.folder))
    tree, build = os.path.join(top, "tree"), os.path.join(top, "build")
    if not os.path.isdir(tree):
        os.makedirs(top, exist_ok=True)
        with open(os.path.join(top, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")
        run(["git", "clone", "-q", root, tree], check=True)
        run(["meson", "setup", build, tree, "--buildtype=release", "-Dnn=enabled",
             "-Dtool=enabled", "-Dtests=enabled"], check=True)
    run(["git", "-C", tree, "checkout", "-q", "."], check=True)
    files = [f for f in run(["git", "-C", tree, "ls-files", "src/*.c", "src/*.h"]).stdout.split()
             if f.startswith(o.only) and source_folder(f) in TESTS]
    everything = []
    for name in files:
        with open(os.path.join(tree, name), encoding="utf-8") as file:
            everything += [(name, place) for place in places(file.read())]
    draw = random.Random(o.seed)
    seconds, known = {}, os.path.join(top, "seconds.json")
    if os.path.exists(known):
        with open(known, encoding="utf-8") as file:
            seconds = json.load(file)
    count = {"died": 0, "late": 0, "survived": 0, "read": 0, "no code": 0}
    while sum(count.values()) - count["no code"] < o.count and everything:
        name, place = everything.pop(draw.randrange(len(everything)))
        path = os.path.join(tree, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        mutant, diff = changed(text, place)
        if not mutant:
            continue
        if o.list:
            print(f"{name}:{place[0] + 1}\n{diff}")
            count["died"] += 1
            continue
        if f"{name}:{place[0] + 1}" in o.read.split(","):
            print(f"{'read':8} {name}:{place[0] + 1}  {diff!r}", flush=True)
            count["read"] += 1
            continue
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(mutant)
            verdict = judge(tree, build, source_folder(name), seconds, o)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        count[verdict] += 1
        with open(known, "w", encoding="utf-8") as file:
            json.dump(seconds, file)
        if verdict == "no code":
            continue
        print(f"{verdict:8} {name}:{place[0] + 1}  {diff!r}", flush=True)
        if verdict == "survived":
            with open(os.path.join(top, "survivors.txt"), "a", encoding="utf-8") as file:
                file.write(f"{name}:{place[0] + 1}\n{diff}\n\n")
    if not o.list:
        print(f"{count['died']} died, {count['late']} too slow, {count['survived']} survived, "
              f"{count['read']} not run; {count['no code']} did not compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
