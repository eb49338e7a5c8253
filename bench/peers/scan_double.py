#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Memory and time of a gradient penalty through time: as in WGAN-GP, the loss contains the norm of the gradient of a first
loss with respect to the inputs, so training differentiates the loop twice. The cell is a GRU of 64 units with batch size
32; it runs in a plain loop and as a neap.torch.scan with double_backward=True, without a budget and with several budgets.
Columns: peak of live bytes in PyTorch's allocator, in addition to inputs and parameters, for the forward and first backward
pass (first) and including the second backward pass (both); states and adjoints that the second pass stores, and its largest
graph of one step, according to the report; growth of resident memory of the process; CPU time per step, one thread, median of
three runs.
    scan_double.py [--steps 600] [--memory 1M,4M,16M]
Each row is a separate process. Python must find neap: install the package, or set PYTHONPATH to the folder `python` of the
build.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings

import torch

import neap.torch as nt
from highwater import growth
from live_bytes import top

BATCH, INPUTS, UNITS = 32, 8, 64


class Penalty:
    """The cell, its inputs, and the two passes."""

    def __init__(self, steps, memory):
        torch.manual_seed(0)
        self.cell, self.memory = torch.nn.GRUCell(INPUTS, UNITS), memory
        self.x, self.h = torch.randn(steps, BATCH, INPUTS, requires_grad=True), torch.zeros(BATCH, UNITS)

    def step(self, h, x, _):
        h = self.cell(x, h)
        return h, h

    def loss(self):
        """The sum of squares of all states, summed per step: no output is stored."""
        if self.memory != "plain":
            memory = None if self.memory == "none" else self.memory
            return nt.scan(self.step, self.h, self.x, memory=memory, double_backward=True,
                           reduce=lambda out, t: out.square().sum())[1]
        h, total = self.h, 0
        for x in self.x.unbind(0):
            h = self.cell(x, h)
            total = total + h.square().sum()
        return total

    def first(self):
        """The gradient of the first loss."""
        return torch.autograd.grad(self.loss(), self.x)[0]

    def both(self):
        """Gradients of the penalty with respect to the parameters."""
        found, = torch.autograd.grad(self.loss(), self.x, create_graph=True)
        return torch.autograd.grad((found.norm(2, -1) - 1).square().mean(), list(self.cell.parameters()))


def seconds(work):
    """CPU time of a call: the median of three."""
    rows = []
    for _ in range(3):
        begin = time.process_time()
        work()
        rows.append(time.process_time() - begin)
    return statistics.median(rows)


def row(steps, memory):
    """Memory and time of one row."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    Penalty(40, memory).both()
    work = Penalty(steps, memory)
    grown = growth(work.both)
    told = nt.report()
    work.first()  # measures the cost of a step if it is not known yet
    return {"first": top(work.first), "both": top(work.both), "grown": grown, "kept": told.double_kept,
            "graph": told.double_tape, "seconds": [seconds(work.first) / steps, seconds(work.both) / steps],
            "sum": float(sum(x.double().abs().sum() for x in work.both()))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--steps", type=int, default=600, help="steps of the sequence [600]")
    parser.add_argument("--memory", default="1M,4M,16M", help="memory budgets [1M,4M,16M]")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        print(json.dumps(row(given.steps, given.row)))
        return
    print(f"2T states: {2 * given.steps * BATCH * UNITS * 4 / 1e6:.1f} MB")
    print("memory     first, MB  both, MB  kept, MB  graph, MB  process, MB  first, us  both, us  sum of gradients")
    for memory in ("plain", "none", *given.memory.split(",")):
        done = subprocess.run([sys.executable, __file__, "--steps", str(given.steps), "--row", memory], check=True,
                              stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout)
        print(f"{memory:10s} {found['first'] / 1e6:9.1f} {found['both'] / 1e6:9.1f} {found['kept'] / 1e6:9.1f} "
              f"{found['graph'] / 1e6:10.2f} {found['grown'] / 1e6:12.1f} {1e6 * found['seconds'][0]:10.0f} "
              f"{1e6 * found['seconds'][1]:9.0f}  {found['sum']:.6f}")


if __name__ == "__main__":
    main()
