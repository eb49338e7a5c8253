#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one network in neap and in other frameworks and prints time and memory as Markdown.

Every framework gets neap's data and weights. Loss and gradients are compared in double
precision; then steps (forward and backward) are timed in single precision, framework and
neap in turns, medians and ratios round by round. Memory is how far the high-water mark
rises in the first whole step; inputs and weights are there before. With --rows each row
is kept as it is measured, and the same command goes on where it was stopped.
"""
import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

import cases
import tables
from pairs import Absent, Bench
from process import Broken
from rows import Rows, key

HERE = os.path.dirname(os.path.abspath(__file__))

# Module -> cell that it shares with neap.
FRAMEWORKS = {"torch": "subtract", "debian": "subtract", "snntorch": "subtract, detached",
              "norse": "hard, detached", "spikingjelly": "hard", "spyx": "subtract"}
# The modules for cells that PyTorch has itself.
GATED = {"torch": "gated", "debian": "gated_debian"}
# The parts of PyTorch's memory that neap also runs within.
LOOP_FRACTION, GATED_FRACTION = 50, 10


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def describe():
    root = os.path.join(HERE, "..", "..")
    done = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "of this tree"


class Run:
    """Goes through the rows that are asked for; those that are there are passed over."""

    def __init__(self, options):
        self.o, self.rows = options, Rows(options.rows)
        self.about = {"machine": f"{cpu()}, {os.cpu_count()} processors", "neap": describe()}
        self.begun = time.monotonic()
        self.absent, self.wanted, self.late = [], set(), 0

    def may_begin(self):
        if self.o.most and time.monotonic() - self.begun > self.o.most:
            self.late += 1
            return False
        return True

    def frameworks(self, case):
        if case["kind"] != "lif":
            return {GATED[name]: case["kind"] for name in GATED if self.has(name)}
        return {name: cell for name, cell in FRAMEWORKS.items() if self.has(name)}

    def has(self, name):
        return (not self.o.only or name in self.o.only) and (name != "debian" or self.o.system_python)

    def ways(self, bench, framework, cell):
        """[version, ways], from rows of before where there are some: starting a framework takes seconds."""
        known = self.rows.ways(framework)
        if known is None:
            known = list(bench.ways(framework, cell))
        return known

    def units(self, case, framework, cell, ways):
        """What is to be measured of a framework."""
        base = {"case": case, "framework": framework, "cell": cell}
        for way in ways[1]:
            if self.o.ways and way not in self.o.ways:
                continue
            plain = framework == "torch" and way == "eager"
            gated = framework in GATED.values()
            if not self.o.no_check:
                yield dict(base, way=way, what="check")
            if self.o.rounds:
                yield dict(base, way=way, what="time", threads=2)
            if self.o.rounds and plain:
                yield dict(base, way=way, what="time", threads=1)
            if self.o.rounds and (plain or gated):
                yield dict(base, way=way, what="time", threads=2,
                           fraction=self.o.fraction or (GATED_FRACTION if gated else LOOP_FRACTION))

    def measure(self, bench, unit, ways):
        row = dict(unit, ways=ways, name=ways[0] if len(ways[1]) == 1 else f"{ways[0]}, {unit['way']}", **self.about)
        try:
            if unit["what"] == "check":
                row.update(bench.check(unit["framework"], unit["cell"], unit["way"]))
            else:
                row.update(bench.time(unit["framework"], unit["cell"], unit["way"], unit["threads"],
                                      unit.get("fraction")))
        except Broken as error:
            row["error"] = str(error)
        self.rows.add(row)
        say(f"{unit['case']['name']}: {tables.line(row)}")

    def framework(self, bench, framework, cell):
        try:
            ways = self.ways(bench, framework, cell)
        except (Absent, Broken) as error:
            self.absent.append(str(error))
            say(f"left out: {error}")
            return
        for unit in self.units(bench.case, framework, cell, ways):
            self.wanted.add(key(unit))
            if not self.rows.has(unit) and self.may_begin():
                self.measure(bench, unit, ways)

    def case(self, case, folder):
        bench = Bench(self.o.helper, self.o.system_python, case, folder, self.o.rounds)
        for framework, cell in self.frameworks(case).items():
            self.framework(bench, framework, cell)

    def document(self):
        asked = [row for row in self.rows.all if key(row) in self.wanted]
        return tables.document(asked, self.absent)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", default=os.path.join(HERE, "../../build/bench/peers/peerstep"), metavar="FILE",
                        help="neap's half (default: of build/)")
    parser.add_argument("--full", action="store_true", help="other sizes and activities, too")
    parser.add_argument("--steps", type=int, default=250, metavar="T", help="length of sequences (default 250)")
    parser.add_argument("--hidden", type=int, default=512, metavar="N", help="units (default 512)")
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="sequences (default 64)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="the median of so many steps (default 5); 0: compare losses and gradients only")
    parser.add_argument("--case", metavar="WORD", help="only cases with this in their name")
    parser.add_argument("--only", action="append", metavar="NAME", choices=sorted(FRAMEWORKS),
                        help="only this framework; may be repeated: " + ", ".join(FRAMEWORKS))
    parser.add_argument("--ways", action="append", metavar="WAY", help="only this way to write it; may be repeated")
    parser.add_argument("--fraction", type=int, metavar="N",
                        help="neap also runs within 1/N of what PyTorch takes (default: 50 for its loop, 10 for "
                        "its LSTM and GRU)")
    parser.add_argument("--no-check", action="store_true", help="do not compare losses and gradients")
    parser.add_argument("--system-python", default="", metavar="FILE", help="an interpreter with another PyTorch")
    parser.add_argument("--rows", metavar="FILE",
                        help="rows as JSON lines: those that are there are not measured again, others are added")
    parser.add_argument("--most", type=float, default=0, metavar="SECONDS",
                        help="begin no row after so long; the same command goes on (0: no limit)")
    return parser.parse_args()


def main():
    options = arguments()
    run = Run(options)
    folder = tempfile.mkdtemp(prefix="neap-peers-")
    try:
        for index, case in enumerate(cases.chosen(options.full, options.steps, options.hidden, options.batch)):
            if options.case and options.case not in case["name"]:
                continue
            part = os.path.join(folder, str(index))
            os.mkdir(part)
            run.case(case, part)
            shutil.rmtree(part)
    except Broken as error:
        say(f"beside.py: {error}")
        return 1
    except KeyboardInterrupt:
        say("beside.py: interrupted")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if run.late:
        say(f"beside.py: {run.late} rows are left; run it again to go on")
    print(run.document(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
