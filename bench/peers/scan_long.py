#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A time loop whose saved tensors are many times larger than its memory budget. A GRU cell of 256 units with batch size 32 saves
262 kB per step, 26 GB for 100,000 steps. neap.torch.Scan runs it with a budget and files. Its CPU time and wall-clock time per
step are compared with the plain loop, which is timed over few steps directly before and after. Memory is the growth of the peak
resident memory of the process.
    scan_long.py [--steps 100000] [--memory 1G] [--slow FOLDER] [--threads N]
Python must find neap: install the package, or set PYTHONPATH to the folder `python` of the build.
"""
import argparse
import tempfile
import time

import torch

import neap.torch as nt

SHORT = 700   # steps of the plain loop; its saved tensors take 183 MB
INPUTS = 1000  # rows of inputs, used repeatedly


def clock():
    """The current CPU time and wall-clock time in seconds."""
    return torch.tensor([time.process_time(), time.perf_counter()], dtype=torch.float64)


def resident(name):
    """Resident memory of this process in bytes: VmHWM (peak) or VmRSS (current)."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


class Loop:
    """The cell, its inputs and the loss: the mean square of all states."""

    def __init__(self, units=256, batch=32):
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(64, units)
        self.x, self.h = torch.randn(INPUTS, batch, 64), torch.zeros(batch, units)

    def step(self, h, x, _):
        h = self.cell(x, h)
        return h, h

    def plain(self):
        """CPU time and wall-clock time per step of the plain loop, in seconds."""
        self.cell.zero_grad(set_to_none=True)
        begin = clock()
        h, total = self.h, 0
        for t in range(SHORT):
            h, out = self.step(h, self.x[t % INPUTS], t)
            total = total + out.square().mean()
        total.backward()
        return (clock() - begin) / SHORT

    def plains(self):
        """The medians of three such measurements."""
        return torch.stack([self.plain() for _ in range(3)]).median(dim=0).values

    def scan(self, steps, **given):
        """CPU time and wall-clock time per step with neap, and its report."""
        self.cell.zero_grad(set_to_none=True)
        scan = nt.Scan(self.step, reduce=lambda out, t: out.square().mean(), **given)
        begin = clock()
        scan(self.h, lambda t: self.x[t % INPUTS], steps)[1].backward()
        return (clock() - begin) / steps, scan.report()


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000, help="steps of the sequence [100000]")
    parser.add_argument("--memory", default="1G", help="memory budget [1G]")
    parser.add_argument("--slow", help="folder for slow memory [a temporary one]")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch threads [1]")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    loop = Loop()
    loop.plain()
    before, held = loop.plains(), resident("VmRSS")
    with tempfile.TemporaryDirectory(dir=given.slow) as folder:
        seconds, report = loop.scan(given.steps, memory=given.memory, slow=folder)
    after = loop.plains()
    print(report)
    for kind, a, b, own in zip(("CPU time", "wall-clock"), before, after, seconds):
        print(f"{kind:10s} plain loop {1e3 * a:.3f} ms per step before, {1e3 * b:.3f} after; neap {1e3 * own:.3f}, "
              f"{2 * own / (a + b):.2f} times the plain loop; planned {1 + report.plan.overhead:.2f}")
    said = report.plan.seconds / given.steps
    print(f"planned time per step, from costs measured in a scan: {1e3 * said:.3f} ms; measured / planned: "
          f"{seconds[0] / said:.2f} (CPU time), {seconds[1] / said:.2f} (wall-clock)")
    print(f"{seconds[1] * given.steps:.0f} s in total; the process grew by {(resident('VmHWM') - held) / 1e6:.0f} MB, "
          f"of which the budget is {report.memory / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
