#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Appends the rows of one run of `make bench` to a history file, and prints which of them changed by more than the noise.

    bench_history.py HISTORY COMMIT < ROWS

ROWS is the output of tools/bench.sh: a line "# MACHINE", the names of the columns, and CSV; it is printed as it is. A row is
compared with the last runs of the same benchmark, case, strategy and machine in HISTORY (CSV, created if missing): with
their median, if it differs by more than the noise. The noise is the largest of 5%, half the spread of the repetitions of this
run, and half the range of the medians of those runs: a change that is reported was never seen between runs of the past.
"""
import csv
import os
import statistics
import sys
import time

RUNS = 5       # runs of the past that count; chosen
NOISE = 0.05   # least relative noise: cores change their pace by as much from minute to minute; chosen
COLUMNS = ["time", "commit", "machine", "benchmark", "case", "strategy", "median_seconds", "spread"]


def changes(past, rows):
    """The lines to print about `rows`, each a dictionary with COLUMNS, given the rows of earlier runs, oldest first."""
    lines, known = [], 0
    for row in rows:
        key = [row[name] for name in ("machine", "benchmark", "case", "strategy")]
        before = [float(old["median_seconds"]) for old in past
                  if [old[name] for name in ("machine", "benchmark", "case", "strategy")] == key][-RUNS:]
        if not before:
            continue
        known += 1
        middle, now = statistics.median(before), float(row["median_seconds"])
        noise = max(NOISE, float(row["spread"]) / 2, (max(before) - min(before)) / 2 / middle)
        if abs(now / middle - 1) > noise:
            word = "slower" if now > middle else "faster"
            lines.append(f"{row['benchmark']} {row['case']} {row['strategy']}: {abs(now / middle - 1):.0%} {word} "
                         f"({middle:.3g} s before, {now:.3g} s now; noise {noise:.0%}, {len(before)} earlier runs)")
    if not known:
        return ["no earlier run on this machine"]
    return lines or [f"no row of {known} changed by more than the noise"]


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    path, commit = sys.argv[1:]
    machine, names, rows, now = "unknown", None, [], time.strftime("%Y-%m-%d %H:%M:%S")
    for line in sys.stdin:
        print(line, end="", flush=True)
        cells = line.rstrip("\n").split(",")
        if line.startswith("#"):
            machine = line[1:].strip()
        elif names is None:
            names = cells
        elif len(cells) == len(names):  # a run that was interrupted may end within a row
            row = dict(zip(names, cells), time=now, commit=commit, machine=machine)
            rows.append({name: row[name] for name in COLUMNS})
    past = []
    try:
        if os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                past = [row for row in csv.DictReader(file) if row.get("spread")]  # whole rows
        with open(path, "a", newline="", encoding="utf-8") as file:
            out = csv.DictWriter(file, COLUMNS)
            if file.tell() == 0:
                out.writeheader()
            out.writerows(rows)
    except OSError as error:
        print(f"bench_history: {path}: {error.strerror}; the rows are not kept", file=sys.stderr)
        return 1
    for line in changes(past, rows):
        print(f"# {line}")
    print(f"# history: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
