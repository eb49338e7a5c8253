#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A time loop whose tapes are many times the memory it is given. A GRU cell of 256 units and 32
sequences saves 262 kB a step; at 100,000 steps that are 26 GB. neap.torch.Scan runs it within a
budget, with files. Its time is compared with as many steps of the plain loop, which is timed over
few steps right before and after it, by processor time, and by the clock on the wall. Resident
memory is the growth of the process's peak.
    scan_long.py [--steps 100000] [--memory 1G] [--slow FOLDER] [--threads N]
Python has to find neap: install the package, or set PYTHONPATH to the build folder's python.
"""
import argparse
import tempfile
import time

import torch

import neap.torch as nt

SHORT = 700   # steps of the plain loop, whose tapes are 183 MB
INPUTS = 1000  # rows of inputs, which repeat


def clock():
    """Seconds now: of the processor, and on the wall."""
    return torch.tensor([time.process_time(), time.perf_counter()], dtype=torch.float64)


def resident(name):
    """Bytes of this process: VmHWM, its peak, or VmRSS."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


class Loop:
    """The cell, its inputs and the loss: mean squares of all states."""

    def __init__(self, units=256, batch=32):
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(64, units)
        self.x, self.h = torch.randn(INPUTS, batch, 64), torch.zeros(batch, units)

    def step(self, h, x, _):
        h = self.cell(x, h)
        return h, h

    def plain(self):
        """Seconds a step of the plain loop, of the processor and on the wall."""
        self.cell.zero_grad(set_to_none=True)
        begin = clock()
        h, total = self.h, 0
        for t in range(SHORT):
            h, out = self.step(h, self.x[t % INPUTS], t)
            total = total + out.square().mean()
        total.backward()
        return (clock() - begin) / SHORT

    def plains(self):
        """The medians of three of them."""
        return torch.stack([self.plain() for _ in range(3)]).median(dim=0).values

    def scan(self, steps, **given):
        """Seconds a step through neap, and its report."""
        self.cell.zero_grad(set_to_none=True)
        scan = nt.Scan(self.step, reduce=lambda out, t: out.square().mean(), **given)
        begin = clock()
        scan(self.h, lambda t: self.x[t % INPUTS], steps)[1].backward()
        return (clock() - begin) / steps, scan.report()


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000, help="[100000]")
    parser.add_argument("--memory", default="1G", help="the budget [1G]")
    parser.add_argument("--slow", help="folder of slow memory [a temporary one]")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch [1]")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    loop = Loop()
    loop.plain()
    before, held = loop.plains(), resident("VmRSS")
    with tempfile.TemporaryDirectory(dir=given.slow) as folder:
        seconds, report = loop.scan(given.steps, memory=given.memory, slow=folder)
    after = loop.plains()
    print(report)
    for kind, a, b, own in zip(("processor", "wall"), before, after, seconds):
        print(f"{kind:10s} plain loop {1e3 * a:.3f} ms a step before, {1e3 * b:.3f} after; neap {1e3 * own:.3f}, "
              f"{2 * own / (a + b):.2f} times as long; the plan says {1 + report.plan.overhead:.2f}")
    said = report.plan.seconds / given.steps
    print(f"the plan counts on {1e3 * said:.3f} ms a step, as steps cost in a scan: {seconds[0] / said:.2f} times as long by "
          f"the processor, {seconds[1] / said:.2f} on the wall")
    print(f"{seconds[1] * given.steps:.0f} s in all; the process grew by {(resident('VmHWM') - held) / 1e6:.0f} MB, "
          f"of which the budget is {report.memory / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
