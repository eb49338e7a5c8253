#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every figure that a page marks is what its command prints, or what another page says. Marks are comments of HTML, below
the paragraph or table that they speak of:

    <!-- figures: COMMAND
    a sweep takes {90 ms} => makespan +([0-9.]+ ms)
    {18} of {24} steps => forward +(\\d+) .* (\\d+) with => exact
    -->
    <!-- copied: docs/measurements.md
    takes {11.8} times => | PyTorch 2.15, loop | ... {11.8}x
    -->
    <!-- rows: COMMAND -->
    <!-- cells: COMMAND
    fast memory, slow memory => exact
    async, stream: slow memory => within 4
    -->
    <!-- given: 256 units; 32 sequences -->

Left stands what the page says, its figures in braces and "..." for some text between. Right stands a pattern on what the
command prints, a group a figure, or what the other page says. Last comes how near they have to be:
    exact       the same digits, after rounding to those of the page; where nothing is said, this holds
    within F    up to a factor F; of times, where nothing is said, 4
    inverse     as exact, one divided by it
    any         whatever it is
    over F      of percents more or less than a whole: the wholes up to a factor F
`figures (long): COMMAND` runs with `all` alone, `figures (by hand, many minutes): COMMAND` never; its lines may end after what
the page says. `list` prints all commands. Times ask for a machine with nothing else at work.
`rows`: the command prints each row of the table above. `cells`: it prints a table of Markdown with these columns, whose rows
begin with the same words; later lines speak of some rows alone; what is the same text is near. `given` are numbers that say
what was done or follow from others. In the pages of COMPLETE no other number stands.
    page_figures.py [all|list] [PAGE...]
"""
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

from harness import NEAP, SOURCE, Folder, Tap, data_dir

COMPLETE = ("README.md", "docs/performance.md")
MARK = re.compile(r"<!-- (figures|rows|cells|copied|given)( \([^)]*\))?: ?(.*?)-->", re.DOTALL)
CODE = re.compile(r"^```.*?^```|^    .*?$|^#.*?$|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.,/-])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?")
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "B": 1, "bytes": 1, "KB": 1e3, "kB": 1e3, "MB": 1e6,
         "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "%": 1, "x": 1}
TIMES = ("ns", "us", "ms", "s", "min")


def flat(text):
    return " ".join(text.split())


def read(name):
    with open(os.path.join(SOURCE, name)) as file:
        return file.read()


def pattern(says):
    """A pattern that finds what a page says; its groups are the figures."""
    parts = re.split(r"(\{[^}]*\}|\.\.\.)", flat(says))
    return re.compile("".join(".{0,400}?" if part == "..." else f"({re.escape(part[1:-1])})" if part.startswith("{")
                              else re.escape(part) for part in parts))


def value(text):
    """(number, unit or None, digits behind the point) of a figure."""
    match = NUMBER.match(text.strip())
    if not match:
        raise AssertionError(f"'{text}' is no figure")
    number, unit = match.group(0).replace(",", ""), text.strip()[match.end():].strip() or None
    if unit not in UNITS and unit is not None:
        raise AssertionError(f"'{text}': the unit is none of {', '.join(UNITS)}")
    return float(number), unit, len(number.partition("e")[0].partition(".")[2])


def differs(said, found, near):
    """None, or how a figure of a page differs from what was found."""
    number, unit, digits = value(said)
    other, its, _ = value(found)
    if unit in UNITS and its in UNITS:
        other *= UNITS[its] / UNITS[unit]
    elif its is None and unit in UNITS:
        other /= UNITS[unit]
    kind, _, factor = (near or ("within 4" if unit in TIMES else "exact")).partition(" ")
    if kind == "exact":
        good = abs(other - number) <= 0.5 * 10 ** -digits * (1 + 1e-9)
    elif kind == "inverse":
        good = abs(1 / other - number) <= 0.5 * 10 ** -digits * (1 + 1e-9)
    elif kind in ("within", "over"):
        low, high = sorted((1 + number / 100, 1 + other / 100) if kind == "over" else (number, other))
        good = 0 < low and high <= low * float(factor)
    else:
        raise AssertionError(f"'{near}' is no way to compare")
    return None if good else f"the page says {said}, found was {found} ({kind} {factor})"


def run(folder, command):
    """What a command prints, in a folder with the tree's scripts and the tool."""
    done = subprocess.run(["bash", "-o", "pipefail", "-ec", command], cwd=folder, stdin=subprocess.DEVNULL, timeout=3600, capture_output=True,
                          text=True, errors="replace", env=ENVIRONMENT)
    assert done.returncode == 0, f"{command}: exit {done.returncode}: {done.stderr[-600:]}"
    return done.stdout + done.stderr


def lines(body):
    """(what the page says, what says so elsewhere, how near) of a mark's lines."""
    for line in body.strip().splitlines():
        parts = [part.strip() for part in line.split(" => ")]
        if len(parts) > 3:
            raise AssertionError(f"'{line}' is none of SAYS => PATTERN [=> NEAR]")
        yield (*parts, None, None)[:3]


def one(text, says, printed, there, near):
    """Compares the figures of one line with those printed, or said there."""
    here = pattern(says).search(text)
    if not here:
        return f"the page does not say '{says}'"
    other = there.search(printed)
    if not other or other.re.groups != here.re.groups:
        return f"nothing like {there.pattern} with {here.re.groups} figures in:\n{printed[-1500:]}"
    problems = [differs(said, found, near) for said, found in zip(here.groups(), other.groups())]
    return next((problem for problem in problems if problem), None)


def rows(folder, command, table):
    """Whether a command prints each row of a table, as Markdown."""
    printed = run(folder, command).splitlines()
    absent = [row for row in table if row not in printed]
    return "\n".join(["rows that it does not print:", *absent]) if absent or not table else None


def table(text):
    """{first word of a row: {column: cell}} of a table of Markdown."""
    split = [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in text if line.startswith("|")]
    return {re.search(r"[\w-]+", row[0])[0]: dict(zip(split[0], row)) for row in split[2:]}


def nearnesses(said, body):
    """{column: {row: how near}} of a mark's lines."""
    near = {}
    for line in body.strip().splitlines():
        where, _, how = line.rpartition(" => ")
        words, _, columns = where.strip().rpartition(": ")
        for column in columns.split(", "):
            near.setdefault(column, {}).update({word: how.strip() for word in (words.split(", ") if words else said)})
    return near


def cells(column, said, near, printed):
    """None, or how cells of one column differ from those printed."""
    problems = []
    for row, how in near.items():
        here, there = said[row][column], printed.get(row, {}).get(column, "nothing")
        figures = NUMBER.match(here) and NUMBER.match(there)
        why = None if how == "any" or here == there else differs(here, there, how) if figures else f"{here} is not {there}"
        problems += [f"{row}, {column}: {why}"] if why else []
    return "\n".join(problems) or None


def notices():
    """None, or a comparison of which this script does not know better."""
    for said, found, near, same in (("25%", "25.0%", None, True), ("25%", "26%", None, False), ("2.86 MiB", "3000000", None, True),
                                    ("2.86 MiB", "2.9 MiB", None, False), ("1,019 MiB", "1019.4 MiB", None, True),
                                    ("7 ms", "0.02 s", None, True), ("7 ms", "0.03 s", None, False),
                                    ("5.9%", "80%", "over 2", True), ("5.9%", "120%", "over 2", False),
                                    ("1.03", "0.97", "inverse", True), ("1.03", "0.96", "inverse", False)):
        if (differs(said, found, near) is None) != same:
            return f"{said} and {found} ({near}): {'differ' if same else 'are the same'}"
    said = table(["| | a |", "|---|---|", "| `x`, y | 5 |", "| z | none |"])
    if cells("a", said, nearnesses(said, "a => exact\nx: a => within 2")["a"], {"x": {"a": "8"}, "z": {"a": "none"}}) or \
            not cells("a", said, nearnesses(said, "a => exact")["a"], {"x": {"a": "8"}, "z": {"a": "none"}}):
        return "cells of a table"
    found = pattern("keeps {885 MiB} ... in {5 s}").search("It keeps 885 MiB of tapes in 5 s.")
    return None if found and found.groups() == ("885 MiB", "5 s") and unmarked("", "12 and 3,200 steps", [(0, 2)]) else "a pattern"


def unmarked(page, text, spans):
    """None, or the numbers of a page that no mark speaks of."""
    left = [text[max(0, match.start() - 30):match.end() + 20] for match in NUMBER.finditer(text)
            if not any(start <= match.start() < end for start, end in spans)]
    return "\n".join(["numbers without a mark:", *left]) if left else None


def check(tap, folder, page, every):
    raw = read(page)
    shown = re.sub(r"<!--.*?-->", "", raw, flags=re.DOTALL)
    text, spans = flat(shown), []
    for mark in MARK.finditer(raw):
        (kind, flag, body), above = mark.groups(""), raw[:mark.start()].rstrip().split("\n\n")[-1].splitlines()
        if kind == "rows":
            tap.run(f"{page}: rows: {body}", rows, folder, body, above[2:])
            continue
        if kind == "given":
            for word in body.split(";"):
                found = [match.span() for match in re.finditer(r"(?<![\w.])" + re.escape(flat(word)), text)]
                spans += found
                tap.check(f"{page}: given: {flat(word)}", None if found else "the page does not say it")
            continue
        command, _, body = body.partition("\n")
        command = command.strip()
        skip = "it is started by hand" if "by hand" in flag else "it is long" if "long" in flag and not every else \
            "no recordings are here" if "fsdd" in command and not os.path.isdir(folder + "/fsdd") else \
            "no PyTorch is here" if "PyTorch" in command and importlib.util.find_spec("torch") is None else \
            "no NumPy is here" if "numpy" in command and importlib.util.find_spec("numpy") is None else None
        printed = None
        if kind == "cells":
            if skip:
                tap.skip(f"{page}: {command}", skip)
                continue
            try:
                printed = run(folder, command)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                printed = str(error)
            said, found = table(above), table(printed.splitlines())
            for column, near in nearnesses(said, body).items():
                tap.run(f"{page}: {column}: {command}", cells, column, said, near, found)
            continue
        for says, there, near in lines(body):
            spans += [match.span(group + 1) for match in pattern(says).finditer(text) for group in range(match.re.groups)]
            name = f"{page}: {says}"
            if kind == "copied":
                printed = printed or flat(read(command))
                tap.run(f"{name}: {command}", one, text, says, printed, pattern(there), near)
            elif not pattern(says).search(text):
                tap.check(name, "the page does not say it")
            elif skip:
                tap.skip(f"{name}: {command}", skip)
            else:
                try:
                    printed = printed or run(folder, command)
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    printed = str(error)
                tap.run(f"{name}: {command}", one, text, says, printed, re.compile(there, re.MULTILINE), near)
    if page in COMPLETE:
        bare = flat(CODE.sub(lambda match: re.sub(r"\d", "_", match.group(0)), shown))
        tap.check(f"{page}: every number has a mark", unmarked(page, bare, spans))


def main():
    words = sys.argv[1:]
    pages = [word for word in words if word not in ("all", "list")] or ["README.md"] + sorted(
        os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "docs/*.md")))
    if "list" in words:
        for page in pages:
            for kind, flag, body in MARK.findall(read(page)):
                if kind in ("figures", "rows", "cells"):
                    print(f"{page}{flag}: {body.splitlines()[0].strip()}")
        return
    with Tap() as tap, Folder() as folder:
        tap.run("figures that differ are noticed", notices)
        os.symlink(os.path.dirname(NEAP), folder + "/build")
        for name in ("bench", "benchmarks", "docs", "examples", "tools"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))
        if data_dir() and os.path.isdir(data_dir() + "/data/fsdd"):
            os.symlink(data_dir() + "/data/fsdd", folder + "/fsdd")
        for page in pages:
            check(tap, folder, page, "all" in words)


ENVIRONMENT = dict(os.environ, PATH=os.pathsep.join([os.path.dirname(shutil.which(sys.executable) or sys.executable),
                                                     os.environ["PATH"]]),
                   PYTHONPATH=os.path.join(os.path.dirname(NEAP), "python"),
                   NEAP_LIBRARY=os.path.join(os.path.dirname(NEAP), "src", "libneap.so"))
main()
