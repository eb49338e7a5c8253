#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one network in neap and in other frameworks and prints time and memory as Markdown.

Every framework gets neap's data and weights. Loss and gradients are compared in double precision. Training steps (forward and
backward pass) are then timed in single precision, framework and neap in turn; the tables show medians, and medians of the
ratios per round. Memory is the increase of the high-water mark during the first step; inputs and weights are already allocated.
With --rows, each row is saved as soon as it is measured, and running the same command again resumes an interrupted run.
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

# Adapter module -> the cell that it has in common with neap.
FRAMEWORKS = {"torch": "subtract", "debian": "subtract", "snntorch": "subtract, detached",
              "norse": "hard, detached", "spikingjelly": "hard", "spyx": "subtract"}
# The modules for cells that are built into PyTorch.
GATED = {"torch": "gated", "debian": "gated_debian"}
# neap also runs with 1/N of PyTorch's memory.
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
    """Measures the requested rows; skips rows that were already measured."""

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
        """[version, ways], from saved rows if possible, because starting a framework takes seconds."""
        known = self.rows.ways(framework)
        if known is None:
            known = list(bench.ways(framework, cell))
        return known

    def units(self, case, framework, cell, ways):
        """The measurements of one framework."""
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
                        help="neap's program for the comparison (default: build/bench/peers/peerstep)")
    parser.add_argument("--full", action="store_true", help="also run further sizes and activities")
    parser.add_argument("--steps", type=int, default=250, metavar="T", help="steps per sequence (default 250)")
    parser.add_argument("--hidden", type=int, default=512, metavar="N", help="hidden units (default 512)")
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="batch size (default 64)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="timed training steps, of which the median is shown (default 5); "
                        "0: only compare losses and gradients")
    parser.add_argument("--case", metavar="WORD", help="only cases whose name contains WORD")
    parser.add_argument("--only", action="append", metavar="NAME", choices=sorted(FRAMEWORKS),
                        help="only this framework; may be repeated: " + ", ".join(FRAMEWORKS))
    parser.add_argument("--ways", action="append", metavar="WAY",
                        help="only this variant of the program; may be repeated")
    parser.add_argument("--fraction", type=int, metavar="N",
                        help="neap also runs with 1/N of PyTorch's memory (default: 50 for its loop, 10 for "
                        "its LSTM, GRU and RNN)")
    parser.add_argument("--no-check", action="store_true", help="do not compare losses and gradients")
    parser.add_argument("--system-python", default="", metavar="FILE", help="a Python interpreter with another version of PyTorch")
    parser.add_argument("--rows", metavar="FILE",
                        help="save rows to FILE as JSON lines; rows in FILE are not measured a second time")
    parser.add_argument("--most", type=float, default=0, metavar="SECONDS",
                        help="start no further row after this time; run the same command again to continue (0: no limit)")
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
        say(f"beside.py: {run.late} rows are not yet measured. Run the same command again to continue")
    print(run.document(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
