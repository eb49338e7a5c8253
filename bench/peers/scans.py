#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of a time loop with neap.torch, plain autograd and torch.utils.checkpoint.

A GRU cell of 256 units with batch size 32, forward and backward pass of 700 steps on one thread. Every round runs all
settings in turn; ratios are medians of the ratios per round. Prints a table. With --slow, the settings are instead
scans whose tapes are offloaded to host memory and to files in that folder, and the table has wall-clock time and the
growth of the process.
    scans.py [--rounds 5] [--steps 700] [--units 256] [--batch 32] [--only NAME,NAME] [--slow FOLDER]
"""
import argparse
import statistics
import time

import torch
from torch.utils.checkpoint import checkpoint

import neap.torch as nt
from highwater import growth

PIECE = 27  # steps per checkpointed segment: about the square root of the number of steps


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in (("rounds", 5), ("steps", 700), ("units", 256), ("batch", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--only", default="", help="names of settings as in the table")
    parser.add_argument("--slow", help="a folder on a disk")
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


def offloads(loop, tapes, folder):
    """Scans in 1/10 and 3/8 of the memory whose tapes are recomputed, or offloaded. The latter has room for the graphs
    of all tapes, which stay in memory."""
    tenth, more, host = tapes // 10, 3 * tapes // 8, 2 * tapes
    return {
        "plain": loop.plain,
        "1/10, recomputed": loop.scan(memory=tenth), "1/10, host memory": loop.scan(memory=tenth, host=host),
        "1/10, files": loop.scan(memory=tenth, slow=folder),
        "3/8, recomputed": loop.scan(memory=more),
        "3/8, host memory": loop.scan(memory=more, host=host, strategy="stream"),
        "3/8, files": loop.scan(memory=more, slow=folder, strategy="stream"),
        "3/8, host memory for 1/4 and files": loop.scan(memory=more, host=tapes // 4, slow=folder, strategy="stream"),
    }


def offloaded(given):
    """Prints the table of --slow."""
    loop = Loop(given.steps, given.units, given.batch)
    tapes = given.steps * given.batch * given.units * 4 * 8
    rows = {name: run for name, run in offloads(loop, tapes, given.slow).items()
            if name == "plain" or not given.only or name in given.only.split(",")}
    seconds, told, bits, grown = {name: [] for name in rows}, {}, {}, {}
    for number in range(given.rounds + 2):
        for name, run in rows.items():
            loop.cell.zero_grad(set_to_none=True)
            begin = time.perf_counter(), time.process_time()
            if number == given.rounds + 1:  # the last round is not timed
                grown[name] = growth(run)
                continue
            told[name] = run()
            if number:
                seconds[name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
            else:
                bits[name] = [p.grad.clone() for p in loop.cell.parameters()]
    print("| setting | CPU time | relative to the plain loop | wall-clock time | strategy | records of tapes written | "
          "counted peak | process grew by | host memory | bit-identical |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in rows:
        ratio = statistics.median(a[1] / b[1] for a, b in zip(seconds[name], seconds["plain"]))
        wall, cpu = (statistics.median(column) for column in zip(*seconds[name]))
        report, same = told[name], all(map(torch.equal, bits[name], bits["plain"]))
        planned = ["", "", ""] if report is None else [
            f"{report.plan.chosen}, groups of {report.group}",
            f"{report.counts.tape_puts}", f"{report.counted_peak / 1e6:.1f} MB"]
        host = f"{report.host / 1e6:.0f} MB" if report is not None and report.host else ""
        print(f"| {name} | {cpu:.2f} s | {ratio:.2f} | {wall:.2f} s | {' | '.join(planned)} | "
              f"{grown[name] / 1e6:.0f} MB | {host} | {'yes' if same else 'no'} |")


def main():
    given = options()
    if given.slow:
        offloaded(given)
        return
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
