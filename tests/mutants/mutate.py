#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Mutants: changes one operator, constant or condition of a file at a time, and runs the tests that
belong to its folder. A mutant that no test notices shows what is not tested, unless it is
equivalent or merely slower. Works on a copy of the committed tree in FOLDER (build-mutants).

    mutate.py COUNT [--seed N] [--only PATH] [--folder FOLDER] [--patience N] [--longest S] [--list]
    mutate.py --again FILE [--shortest S] [--sanitize]

Prints one line per mutant, and at the end how many died. Survivors are appended to FOLDER/survivors.txt; --again
FILE runs the mutants of such a file once more, for example with the tests that were left out (--shortest).
tests/mutants/equivalents.txt lists mutants whose program does the same, with reasons: they are not run and not counted.
A reason that begins with "Search margin" admits other plans that are as good: such mutants are counted separately.
A row names the file and the function, since the same line can occur several times:

    PATH FUNCTION
    -LINE
    +CHANGED LINE
    = reason
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
from affected import TESTS, introspected, names_of_commands, names_of_folder, row_of  # noqa: E402

SLOW = {"test_plan_large", "test_alloc"}  # no mutant that others miss dies here alone
SECONDS = 400  # of a test run; a mutant that takes longer is late: it died of slowness
EQUIVALENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalents.txt")

CHANGES = [
    (r"<=", "<"), (r">=", ">"), (r"(?<![<\->])<(?![<=])", "<="), (r"(?<![->])>(?![>=])", ">="),
    (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"), (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"), (r"(?<= )\*(?= )", "/"), (r"(?<= )/(?= )", "*"), (r"\+\+", "--"),
    (r"\+=", "-="), (r"-=", "+="), (r"(?<= )%(?= )", "/"), (r"(?<= )\|(?= )", "&"),
    (r"(?<=return )0(?=;)", "-1"), (r"(?<!return )(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "2"),
    (r"(?<![\w.])([2-9]|[1-9]\d+)(?![\w.])", None), (r"(?<![\w.])(\d+\.\d+)(?![\w])", None),
    (r"\bif \((?!!)", "if (!"), (r"\bfmin\b", "fmax"), (r"\bfmax\b", "fmin"),
]


# Constants that were chosen or measured only change which plans a search tries, or how fast something is.
TUNED = re.compile(r"\b(chosen|measured)\b", re.IGNORECASE)


DECLARATION = re.compile(r"\s*(static )?(const )?(unsigned )?(char|int|float|double|long|size_t|u?int\d+_t) \**\w+\[")


def code_of(line):
    """The line with comments and strings blanked, so that columns stay."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: " " * len(m.group(0)), line)
    return re.sub(r"/\*.*?\*/|//.*", lambda m: " " * len(m.group(0)), line)


def places(text):
    """All (line, start, end, replacement) of a file; comments and directives are left alone."""
    found, in_comment, comment = [], False, ""
    for number, line in enumerate(text.split("\n")):
        if in_comment or line.lstrip().startswith("/*"):
            comment = comment + line if in_comment else line
            in_comment = "*/" not in line
            continue
        above, comment = comment, "" if not line.startswith("#define") else comment
        if re.match(r"#define \w+ +[-(\d.]", line) and TUNED.search(above + line):
            continue
        if line.startswith(("#include", "#if", "#ifndef", "#endif", "#undef")) or "NEAP_X" in line:
            continue
        code = code_of(line)
        if DECLARATION.match(code):  # a larger array does the same
            sizes, equals, values = code.partition("=")
            code = re.sub(r"\[\d+\]", lambda m: " " * len(m.group(0)), sizes) + equals + values
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


def function_of(lines, number):
    """The name of the function that a line is in; "" outside of functions."""
    for line in lines[number::-1]:
        if line.startswith("}"):
            return ""
        found = re.match(r"(?!#|_)\w[^=;]*?(\w+)\(", line)
        if found:
            return found.group(1)
    return ""


def rows_of(path):
    """(path, function, difference, reason) of each row of a file of mutants; the function may be missing."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            lines = [line for line in block.split("\n") if line and not line.startswith("#")]
            if not lines:
                continue
            name, _, function = lines[0].partition(" ")
            reason = " ".join(line.lstrip("= ") for line in lines[3:])
            rows.append((name, function, "\n".join(lines[1:3]), reason))
    return rows


def place_of(text, row):
    """The place of a row of a file of mutants: (line number, the mutant) or None."""
    name, function, diff, _ = row
    lines, old, new = text.split("\n"), *diff.split("\n")
    number = int(name.split(":")[1]) - 1 if ":" in name else 0
    found = [i for i, line in enumerate(lines) if line.strip() == old[1:] and
             function in ("", function_of(lines, i))]
    if not found:
        return None
    at = min(found, key=lambda i: abs(i - number))
    lines[at] = lines[at].replace(old[1:], new[1:])
    return at, "\n".join(lines)


def matching(line, at):
    depth = 0
    for i in range(at, len(line)):
        depth += {"(": 1, ")": -1}.get(line[i], 0)
        if depth == 0:
            return i
    return None


def run(args, **more):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def tests_of(build, path):
    """Of the tests that belong to the file: the name, and what ninja builds for it."""
    rows, tests = introspected(build), {}
    names = {name for test in row_of(TESTS, path) for name in names_of_folder(rows, test)} - SLOW
    names |= names_of_commands(rows, path)
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


def judge(tree, build, path, seconds, o):
    """'died', 'late', 'survived' or 'no code' (it does not compile). Quick tests come first."""
    tests, end = tests_of(build, path), time.monotonic() + o.patience * SECONDS
    parts = [{}, {}, {}]
    for name, targets in tests.items():
        took = seconds.get(name, 60)
        if not (o.longest and name in seconds and took > o.longest) and took > o.shortest:
            parts[(took > 3) + (took > 20)][name] = targets
    for part in parts:
        targets = sorted({target for needed in part.values() for target in needed})
        if not part:
            continue
        if run(["ninja", "-j", str(os.cpu_count() or 1), "-C", build, *targets]).returncode != 0:
            return "no code"
        try:
            done = run(["meson", "test", "-C", build, "--no-rebuild", "--maxfail", "1",
                        "--timeout-multiplier", str(o.patience), *part],
                       timeout=max(end - time.monotonic(), 1), cwd=tree)
        except subprocess.TimeoutExpired:
            return "late"
        rows = results(build)
        if not o.sanitize:
            seconds.update({name: took for name, result, took in rows if result == "OK"})
        if done.returncode != 0:
            bad = [row[0] for row in rows if row[1] in ("FAIL", "ERROR")]
            return "died: " + bad[0] if bad else "late"
    return "survived"


def prepared(root, o):
    """The copy of the tree and its build folder. The build is inside the tree, as in the tree itself, for ccache."""
    top = os.path.abspath(os.path.join(root, o.folder))
    tree = os.path.join(top, "tree")
    build = os.path.join(tree, "build-sanitize" if o.sanitize else "build")
    if not os.path.isdir(tree):
        os.makedirs(top, exist_ok=True)
        with open(os.path.join(top, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("*\n")
        run(["git", "clone", "-q", root, tree], check=True)
    if not os.path.isdir(build):
        kind = ["--buildtype=plain", "-Doptimization=1", "-Db_sanitize=address,undefined",
                "-Db_lundef=false"] if o.sanitize else ["--buildtype=release"]
        run(["meson", "setup", build, tree, *kind, "-Dnn=enabled", "-Dtool=enabled",
             "-Dtests=enabled"], check=True)
    run(["git", "-C", tree, "checkout", "-q", "."], check=True)
    return top, tree, build


def drawn(tree, o):
    """Mutants in random order: path, line number, function, mutant, difference."""
    files = [f for f in run(["git", "-C", tree, "ls-files", "src/*.c", "src/*.h"]).stdout.split()
             if f.startswith(o.only) and row_of(TESTS, f)]
    everything = []
    for name in files:
        with open(os.path.join(tree, name), encoding="utf-8") as file:
            everything += [(name, place) for place in places(file.read())]
    draw = random.Random(o.seed)
    while everything:
        name, place = everything.pop(draw.randrange(len(everything)))
        with open(os.path.join(tree, name), encoding="utf-8") as file:
            text = file.read()
        mutant, diff = changed(text, place)
        if mutant:
            yield name, place[0] + 1, function_of(text.split("\n"), place[0]), mutant, diff


def listed(tree, path):
    """The mutants of a file, as `drawn`; those whose line has changed are left out, with a message."""
    for row in rows_of(path):
        name = row[0].split(":")[0]
        with open(os.path.join(tree, name), encoding="utf-8") as file:
            text = file.read()
        place = place_of(text, row)
        if place:
            yield name, place[0] + 1, function_of(text.split("\n"), place[0]), place[1], row[2]
        else:
            print(f"gone     {row[0]}  {row[2]!r}", flush=True)


def main():
    parse = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("count", type=int, nargs="?", default=0)
    parse.add_argument("--seed", type=int, default=1)
    parse.add_argument("--only", default="src/", help="files whose path begins so")
    parse.add_argument("--folder", default="build-mutants")
    parse.add_argument("--patience", type=int, default=1, help="times as long, on a busy machine")
    parse.add_argument("--longest", type=float, default=0,
                       help="leave out tests that took longer, in seconds; more mutants survive")
    parse.add_argument("--shortest", type=float, default=-1,
                       help="only tests that took longer, in seconds; for the survivors of --longest")
    parse.add_argument("--again", default="", help="a file of mutants (FOLDER/survivors.txt) instead of COUNT random ones")
    parse.add_argument("--sanitize", action="store_true", help="build with AddressSanitizer and UBSan")
    parse.add_argument("--read", default="", help="PATH:LINE,...: not run, judged by reading")
    parse.add_argument("--list", action="store_true", help="draw, and run nothing")
    o = parse.parse_args()
    if bool(o.count) == bool(o.again):
        parse.error("give either COUNT or --again FILE")
    root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    top, tree, build = prepared(root, o)
    seconds, known = {}, os.path.join(top, "seconds.json")
    if os.path.exists(known):
        with open(known, encoding="utf-8") as file:
            seconds = json.load(file)
    same = {row[:3]: row[3] for row in rows_of(EQUIVALENTS)}
    count = {"died": 0, "late": 0, "survived": 0, "read": 0, "equivalent": 0, "no code": 0}
    margins = 0
    for name, number, function, mutant, diff in (listed(tree, os.path.abspath(o.again)) if o.again
                                                 else drawn(tree, o)):
        if o.count and count["died"] + count["late"] + count["survived"] + count["read"] >= o.count:
            break
        where, path = f"{name}:{number}", os.path.join(tree, name)
        if (name, function, diff) in same:
            print(f"{'same':8} {where}  {diff!r}: {same[name, function, diff]}", flush=True)
            count["equivalent"] += 1
            margins += same[name, function, diff].startswith("Search margin")
            continue
        if o.list:
            print(f"{where} {function}\n{diff}\n")
            count["died"] += 1
            continue
        if where in o.read.split(","):
            print(f"{'read':8} {where}  {diff!r}", flush=True)
            count["read"] += 1
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(mutant)
            verdict = judge(tree, build, name, seconds, o)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        verdict, _, test = verdict.partition(": ")
        count[verdict] += 1
        with open(known, "w", encoding="utf-8") as file:
            json.dump(seconds, file)
        if verdict == "no code":
            continue
        print(f"{verdict:8} {where}  {diff!r}{test and ': ' + test}", flush=True)
        if verdict == "survived" and not o.again:
            with open(os.path.join(top, "survivors.txt"), "a", encoding="utf-8") as file:
                file.write(f"{where} {function}\n{diff}\n\n")
    if not o.list:
        print(f"{count['died']} died, {count['late']} too slow, {count['survived']} survived, "
              f"{count['read']} not run; {count['equivalent']} equivalent ({margins} of them in the margin of a search), "
              f"{count['no code']} did not compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
