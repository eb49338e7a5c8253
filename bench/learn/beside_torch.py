#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the accuracy of neap with default settings with PyTorch and snnTorch.

Each row is a data set and a cell: GRU and LSTM next to PyTorch, LIF next to snnTorch, with the same size, samples,
optimizer, learning rate, schedule, clipping, batch size and number of epochs. Both programs train once per seed and are
scored on the same test samples. A row fails if neap's mean is worse by more than three standard errors of the
difference of the means. Only results are compared, not times, so trainings may share the processors.

    python3 bench/learn/beside_torch.py --results learn.jsonl
    python3 bench/learn/beside_torch.py vowels digits --cell gru --seeds 3

--results keeps the scores; after Ctrl-C the same command continues. Another build of neap, or another version of
PyTorch, is trained from scratch. bench/learn/requirements.txt lists the packages. NEAP_BIN names a build other than
build/neap, NEAP_DATA the folder that has data/fsdd (spoken digits), NEAP_TEXT another text. Exit code 1: a row fails.
"""
import argparse
import concurrent.futures
import hashlib
import importlib.metadata
import multiprocessing
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "peers")]
import problems  # noqa: E402
import score_table  # noqa: E402
from rows import Rows, key  # noqa: E402

FIELDS = ("row", "cell", "program", "seed", "size", "options", "schedule")


def say(text):
    print(text, file=sys.stderr, flush=True)


def neap():
    """neap with the first digits of its checksum, so that a different build is trained from scratch."""
    with open(problems.NEAP, "rb") as file:
        return "neap " + hashlib.sha256(file.read()).hexdigest()[:10]


def other(cell):
    """The program that neap is compared with, and its version."""
    name, package = ("snnTorch", "snntorch") if cell == "lif" else ("PyTorch", "torch")
    return f"{name} {importlib.metadata.version(package).split('+')[0]}"


def installed(cell):
    try:
        other(cell)
    except importlib.metadata.PackageNotFoundError as missing:
        say(f"left out: {cell}: the package {missing.name} is missing: pip install {missing.name}")
        return False
    return True


def measure(unit, quick):
    """The task with its score. Runs in a separate process."""
    problem, begun = problems.problem(unit["row"], quick), time.monotonic()
    if unit["program"].startswith("neap"):
        import neap_side
        more = [] if unit["schedule"] == problems.SCHEDULE else ["--schedule", unit["schedule"]]
        score = neap_side.run(problem, unit["cell"], unit["seed"], [*more, *unit.get("options", "").split()])
    elif unit["cell"] == "lif":
        import snn_side
        score = snn_side.run(problem, unit["seed"], unit["schedule"])
    else:
        import torch_side
        score = torch_side.run(problem, unit["cell"], unit["seed"], unit["schedule"])
    return {**unit, "score": score, "seconds": round(time.monotonic() - begun, 1)}


def cells(options, p):
    return [cell for cell in options.cell if cell in p.cells]


def units(options, found):
    """The requested trainings: both programs in turn, seed by seed, so that a table of few seeds is available early."""
    for name in options.rows:
        if name not in found:
            continue
        p = found[name]
        size = f"{len(p.train.y)}x{p.train.x.shape[1]} samples, {p.units} units, {p.epochs} epochs, {p.readout}"
        for seed in range(1, options.seeds + 1):
            for cell in cells(options, p):
                unit = {"row": name, "cell": cell, "seed": seed, "size": size, "schedule": options.schedule}
                yield {**unit, "program": neap(), **({"options": options.neap} if options.neap else {})}
                yield {**unit, "program": other(cell)}


def train(options, results, wanted):
    left = [unit for unit in wanted if not results.has(unit)]
    pool = concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn"))
    try:
        futures = [pool.submit(measure, unit, options.quick) for unit in left]
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            unit = future.result()
            results.add(unit)
            say(f"[{done}/{len(left)}] {unit['row']} {unit['cell']} seed {unit['seed']}, {unit['program']}: "
                f"{unit['score']:.4g} in {unit['seconds']} s")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def print_table(options, results, wanted, found):
    """Prints the table; returns the number of rows that fail."""
    scores = {}
    keys = {key(unit, FIELDS) for unit in wanted}
    for unit in results.all:
        if key(unit, FIELDS) in keys:
            scores.setdefault((unit["row"], unit["cell"], unit["program"]), []).append(unit["score"])
    failed = 0
    print(score_table.HEAD)
    for name in found:
        for cell in cells(options, found[name]):
            ours, theirs = (scores.get((name, cell, program), []) for program in (neap(), other(cell)))
            text, passed = score_table.line(problems.ROWS[name][0], cell, found[name], ours, theirs,
                                            other(cell).split()[0])
            failed += not passed
            print(text)
    return failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", default=[],
                        help="data sets (default: all): " + ", ".join(problems.ROWS))
    parser.add_argument("--cell", action="append", choices=list(score_table.CELLS),
                        help="only this cell; may be repeated: " + ", ".join(score_table.CELLS))
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="trainings of each program (default 5)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N",
                        help="trainings at the same time, of one thread each (default 2)")
    parser.add_argument("--results", metavar="FILE",
                        help="save scores to FILE as JSON lines; scores in FILE are not measured a second time")
    parser.add_argument("--neap", metavar="OPTIONS",
                        help="additional options for neap train, as one argument: --neap '--readout mean'")
    parser.add_argument("--schedule", default=problems.SCHEDULE, choices=("cooldown", "cosine", "constant"),
                        help=f"learning-rate schedule of both programs (default: neap's default, {problems.SCHEDULE})")
    parser.add_argument("--quick", action="store_true",
                        help="24 samples, 8 units, one epoch: checks that everything runs; the scores are meaningless")
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in problems.ROWS]
    if unknown:
        parser.error(f"'{unknown[0]}' is not a data set; choose from {', '.join(problems.ROWS)}")
    if options.seeds < 1 or options.jobs < 1:
        parser.error(f"--seeds {options.seeds} --jobs {options.jobs}: both must be at least 1")
    options.rows = options.rows or list(problems.ROWS)
    options.cell = options.cell or list(score_table.CELLS)
    return options


def main():
    options = arguments()
    if not os.path.exists(problems.NEAP):
        say(f"beside_torch.py: '{problems.NEAP}' is missing: build neap with make, or set NEAP_BIN")
        return 2
    found, options.cell = {}, [cell for cell in options.cell if installed(cell)]
    for name in options.rows:
        try:
            found[name] = problems.problem(name, options.quick)
        except problems.Missing as missing:
            say(f"left out: {name}: {missing}")
    results, wanted = Rows(options.results, FIELDS), list(units(options, found))
    try:
        train(options, results, wanted)
    except KeyboardInterrupt:
        say("beside_torch.py: interrupted" + (": the same command continues" if options.results else ""))
        return 130
    failed = print_table(options, results, wanted, found)
    if options.quick:
        return 0
    say(f"{failed} rows fail: neap's mean is worse by more than {-score_table.WORST:g} standard errors")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
