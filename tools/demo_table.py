#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of the demo: what two runs of `neap train --json` used and reached.

    demo_table.py ALL.json SMALL.json BUDGET
"""
import json
import sys


def size(count):
    """A number of bytes, with three digits."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            value = count / (1 << shift)
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{count} B"


def compared(name, one, two):
    """A row of two numbers of bytes. The process is not measured where there is no /proc."""
    if not one or not two:
        return name, "not measured", "not measured", ""
    return name, size(one), size(two), f"{one / two:.0f} times less"


def table(one, two, budget):
    """The lines of the table, and whether both runs have the same weights."""
    same = one["weights_hash"] == two["weights_hash"]
    seconds = one["seconds"], two["seconds"]
    rows = [("", "storing everything", f"with {budget}", ""),
            compared("memory of a backward pass", one["peak_measured"], two["peak_measured"]),
            compared("memory of the whole process", one["process"]["measured"], two["process"]["measured"]),
            ("training time", *(f"{each:.1f} s" for each in seconds), f"{100 * (seconds[1] / seconds[0] - 1):+.0f}%"),
            ("test accuracy (chance: 25%)", *(f"{100 * run['test']['accuracy']:.1f}%" for run in (one, two)), ""),
            ("hash of the weights", one["weights_hash"], two["weights_hash"], "identical" if same else "DIFFERENT")]
    return [f"{a:<30}{b:>20}{c:>20}  {d}".rstrip() for a, b, c, d in rows], same


def main(first, second, budget):
    runs = []
    for name in (first, second):
        with open(name) as file:
            runs.append(json.load(file))
    lines, same = table(*runs, budget)
    print("\n".join(lines))
    if not same:
        sys.exit("demo: the two runs ended with different weights, which is a bug. Please report the lines above")


if __name__ == "__main__":
    main(*sys.argv[1:])
