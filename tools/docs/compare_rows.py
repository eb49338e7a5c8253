#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Converts the output of `neap compare --json` to a Markdown table for docs/measurements.md. "predicted" is the time of the plan
with the step costs measured around the sweep, "written" the bytes written to slow memory; the reference is called store-all.
    neap compare ... --json | compare_rows.py
"""
import json
import sys

COLUMNS = ("strategy", "fast memory", "slow memory", "predicted", "measured", "measured / predicted",
           "measured per step", "overhead over store-all", "parameters", "written", "waiting", "gradient hash")


def short(value, units, base):
    """Three digits of a value in the unit in which it is below 1000."""
    while value >= 999.5 and len(units) > 1:
        value, units = value / base, units[1:]
    return f"{float(f'{value:.3g}'):g} {units[0]}"


def size(count):
    return short(count, ("B", "KiB", "MiB", "GiB"), 1024) if count else "none"


def seconds(value):
    return short(1e9 * value, ("ns", "us", "ms", "s"), 1000)


def cells(run):
    overhead = run.get("overhead")
    name = "store-all" if run.get("role") == "reference" else f"`{run['strategy']}`"
    chosen = run.get("chosen")
    return (f"{name}: `{chosen}`" if chosen else name, size(run["arena_bytes"]), size(run["slow_bytes"]), seconds(run["expected"]),
            seconds(run["seconds"]), f"{run['ratio']:.2f}", seconds(run["seconds_per_step"]),
            "" if overhead is None else f"{100 * overhead:.1f}%", " ".join(f"{key}={value}" for key, value in run["params"].items()),
            size(sum(tier["written"] for tier in run["tiers"])), seconds(run["stall_measured"]), run["grad_hash"])


def main():
    runs = [run for run in json.load(sys.stdin)["runs"] if run["feasible"]]
    for row in (COLUMNS, ["---"] * len(COLUMNS), *map(cells, runs)):
        print("| " + " | ".join(row) + " |")


main()
