#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of a time loop with neap.torch, plain autograd and torch.utils.checkpoint.

A GRU cell of 256 units with batch size 32, forward and backward pass of 700 steps on one thread. Every round runs all
settings in turn; ratios are medians of the ratios per round. Prints a table.
    scans.py [--rounds 5] [--steps 700] [--units 256] [--batch 32] [--only NAME,NAME]
"""
import argparse
import statistics
import time

import torch
from torch.utils.checkpoint import checkpoint

import neap.torch as nt

PIECE = 27  # steps per checkpointed segment: about the square root of the number of steps


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in (("rounds", 5), ("steps", 700), ("units", 256), ("batch", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", default="", help="names of settings as in the table")
    return parser.parse_args()


class Loop:
    """The cell, its inputs, and one forward and backward pass in several ways."""

    def __init__(self, steps, units, batch):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.cell = torch.nn.GRUCell(64, units)
        self.x, self.h = torch.randn(steps, batch, 64), torch.zeros(batch, units)
        self.report = None

    def step(self, h, x, t):
        h = self.cell(x, h)
        return h, h

    def plain(self):
        h, rows = self.h, []
        for x in self.x.unbind(0):
            h, out = self.step(h, x, 0)
            rows.append(out)
        torch.stack(rows).pow(2).mean().backward()

    def checkpoint(self):
        def piece(h, part):
            rows = []
            for x in part.unbind(0):
                h, out = self.step(h, x, 0)
                rows.append(out)
            return h, torch.stack(rows)
        h, rows = self.h, []
        for part in self.x.split(PIECE):
            h, out = checkpoint(piece, h, part, use_reentrant=False)
            rows.append(out)
        torch.cat(rows).pow(2).mean().backward()

    def scan(self, **given):
        made = nt.Scan(self.step, **given)

        def once():
            made(self.h, self.x)[1].pow(2).mean().backward()
            return made.report()
        return once


def settings(loop, tapes):
    tenth, fiftieth = tapes // 10, tapes // 50
    return {
        "plain": loop.plain, "checkpoint": loop.checkpoint,
        "groups of 1": loop.scan(group=1), "groups of 5": loop.scan(group=5), "groups of 20": loop.scan(group=20),
        "a tenth, groups of 1": loop.scan(group=1, memory=tenth),
        "a tenth, groups of 5": loop.scan(group=5, memory=tenth), "a tenth": loop.scan(memory=tenth),
        "a fiftieth": loop.scan(memory=fiftieth),
    }


def main():
    given = options()
    loop = Loop(given.steps, given.units, given.batch)
    tapes = given.steps * given.batch * given.units * 4 * 8  # about eight arrays of the size of the state per step
    rows = {name: run for name, run in settings(loop, tapes).items()
            if name == "plain" or not given.only or name in given.only.split(",")}
    seconds, told, bits = {name: [] for name in rows}, {}, {}
    for number in range(given.rounds + 1):
        for name, run in rows.items():
            loop.cell.zero_grad(set_to_none=True)
            begin = time.process_time()
            told[name] = run()
            if number:  # round 0 measures the cost of a step and is not timed
                seconds[name].append(time.process_time() - begin)
            else:
                bits[name] = [p.grad.clone() for p in loop.cell.parameters()]
    print("| setting | CPU time | relative to the plain loop | planned | strategy | counted peak | bit-identical |")
    print("|---|---|---|---|---|---|---|")
    for name in rows:
        ratio = statistics.median(a / b for a, b in zip(seconds[name], seconds["plain"]))
        same = all(map(torch.equal, bits[name], bits["plain"]))
        report = told[name]
        planned = ["", "", ""] if report is None else [
            f"{1 + report.plan.overhead:.2f}" if report.memory else "",
            f"{report.plan.chosen}, groups of {report.group}", f"{report.counted_peak / 1e6:.1f} MB"]
        print(f"| {name} | {statistics.median(seconds[name]):.2f} s | {ratio:.2f} | {' | '.join(planned)} | "
              f"{'yes' if same else 'no'} |")


main()
