#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The overhead of neap.torch for a very small step: CPU time per step in addition to a plain loop, in microseconds.

An RNNCell of 4 units, batch size 1, one thread; forward and backward pass. Every round runs all settings in turn; differences
are relative to the plain loop of the same round. Prints a table of medians and of the fastest rounds. "A graph per step" is a
loop that only detaches the state after each step and calls the autograd engine for each graph; it is a lower bound for scans
with groups of 1.
    scan_overhead.py [--rounds 15] [--steps 1000]
"""
import argparse
import gc
import statistics
import time

import torch

import neap.torch as nt
from neap.torch.seeding import played

SETTINGS = {
    "no budget, groups of 20": dict(),
    "no budget, groups of 1": dict(group=1),
    "budget, groups of 20": dict(memory="1T"),
    "budget, groups of 1": dict(memory="1T", group=1),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in (("rounds", 15), ("steps", 1000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cell, x, h0 = torch.nn.RNNCell(4, 4), torch.randn(options.steps, 1, 4), torch.zeros(1, 4)

    def step(h, i, t):
        return cell(i, h), None

    def plain():
        h = h0
        for t in range(options.steps):
            h, _ = step(h, x[t], t)
        h.sum().backward()

    def cut():
        tapes, h = [], h0
        for t in range(options.steps):
            first = h.detach().requires_grad_()
            h, _ = step(first, x[t], t)
            tapes.append((first, h))
        params, adjoint, sums = list(cell.parameters()), torch.ones_like(h0), []
        while tapes:
            first, last = tapes.pop()
            adjoint, *sums = played([last, *params[:len(sums)]], [adjoint, *sums], [first, *params])

    def scanned(scan):
        return lambda: scan(h0, x)[0].sum().backward()
    works = {"plain loop": plain, "a graph per step": cut}
    works.update((name, scanned(nt.Scan(step, params=cell, **given))) for name, given in SETTINGS.items())
    rows = {name: [] for name in works}
    for _ in range(options.rounds + 1):
        for name, work in works.items():
            gc.collect()
            begin = time.process_time()
            work()
            rows[name].append(1e6 * (time.process_time() - begin) / options.steps)
    print("| setting | us per step | in addition to the plain loop, median | fastest round, in addition to the plain loop |\n"
          "|---|---|---|---|")
    base = rows["plain loop"][1:]
    for name, row in rows.items():
        more = statistics.median(a - b for a, b in zip(row[1:], base))
        print(f"| {name} | {statistics.median(row[1:]):.0f} | {more:.0f} | {min(row[1:]) - min(base):.0f} |")


if __name__ == "__main__":
    main()
