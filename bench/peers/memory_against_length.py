#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Memory and time of backpropagation through time as functions of the sequence length, in three ways: plain autograd, which
stores all saved tensors; torch.utils.checkpoint with segments of about the square root of the length; and neap.torch.Scan with a
memory budget. The cell is a GRU of 256 units with batch size 32. Each point runs in a separate process; memory is the increase of
peak resident memory since before the loop. Times are CPU times, with one thread.
    memory_against_length.py [--memory 64M] [--slow FOLDER] [--svg FILE] [--most 4G]
Prints a table; --svg writes a plot (requires matplotlib). Points whose saved tensors exceed --most are omitted.
Python must find neap: install the package, or set PYTHONPATH to the folder `python` of the build.
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils.checkpoint import checkpoint

LENGTHS = (300, 1000, 3000, 10_000, 30_000, 100_000)
WAYS = ("autograd alone", "torch.utils.checkpoint", "neap")
TAPE = 262_144  # bytes per step
ROWS = 1000  # rows of inputs, used repeatedly


def resident(name):
    """Resident memory of this process in bytes: VmHWM (peak) or VmRSS (current)."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def chunk(cell, x, h, t0, t1):
    """The state after steps [t0, t1), and the loss of these steps."""
    total = h.new_zeros(())
    for t in range(t0, t1):
        h = cell(x[t % ROWS], h)
        total = total + h.square().mean()
    return h, total


def run(way, steps, memory, slow):
    """One forward and backward pass."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cell, x, h = torch.nn.GRUCell(64, 256), torch.randn(ROWS, 32, 64), torch.zeros(32, 256)
    chunk(cell, x, h, 0, 20)[1].backward()
    if way == "torch.utils.checkpoint":  # its imports are not part of a step
        checkpoint(chunk, cell, x, h, 0, 2, use_reentrant=False)[1].backward()
    held, begin = resident("VmRSS"), time.process_time()
    if way == "autograd alone":
        loss = chunk(cell, x, h, 0, steps)[1]
    elif way == "torch.utils.checkpoint":
        loss, width = 0, int(steps ** 0.5) + 1
        for t in range(0, steps, width):
            h, more = checkpoint(chunk, cell, x, h, t, min(t + width, steps), use_reentrant=False)
            loss = loss + more
    else:
        import neap.torch as nt

        def step(h, row, _):
            h = cell(row, h)
            return h, h
        scan = nt.Scan(step, memory=memory, slow=slow, reduce=lambda out, t: out.square().mean())
        loss = scan(h, lambda t: x[t % ROWS], steps)[1]
    loss.backward()
    print(json.dumps({"seconds": time.process_time() - begin, "bytes": max(0, resident("VmHWM") - held)}))


def measured(given):
    """Rows of (way, steps, bytes, seconds)."""
    for way in WAYS:
        for steps in LENGTHS:
            if way == "autograd alone" and steps * TAPE > given.most_bytes:
                continue
            with tempfile.TemporaryDirectory(dir=given.slow) as folder:
                done = subprocess.run([sys.executable, __file__, "--one", way, str(steps), given.memory, folder],
                                      stdout=subprocess.PIPE, text=True, check=True)
            answer = json.loads(done.stdout)
            yield way, steps, answer["bytes"], answer["seconds"]


def draw(rows, path, budget):
    """Two panels: memory and time per step as functions of the number of steps."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "neap", "font.size": 10})
    from matplotlib import pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
    for way, colour, sign in zip(WAYS, ("#D55E00", "#E69F00", "#0072B2"), "osD"):
        own = [row for row in rows if row[0] == way]
        if not own:
            continue
        left.plot([row[1] for row in own], [row[2] / 1e6 for row in own], color=colour, marker=sign, label=way)
        right.plot([row[1] for row in own], [1e3 * row[3] / row[1] for row in own], color=colour, marker=sign)
    left.set(xscale="log", yscale="log", xlabel="steps", ylabel="memory that it takes (MB)")
    left.axhline(budget / 1e6, color="#999999", linestyle=":", label="budget of neap")
    right.set(xscale="log", xlabel="steps", ylabel="processor time a step (ms)", ylim=(0, None))
    left.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    from neap.units import size
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--memory", default="64M", help="memory budget of neap [64M]")
    parser.add_argument("--slow", help="folder for neap's files [a temporary one]")
    parser.add_argument("--svg", help="write a plot to this file")
    parser.add_argument("--most", default="4G", help="largest total of saved tensors for plain autograd [4G]")
    given = parser.parse_args()
    given.most_bytes = size(given.most, "--most")
    rows = []
    print("| method | steps | memory | time per step |\n|---|---|---|---|")
    for row in measured(given):
        rows.append(row)
        print(f"| {row[0]} | {row[1]:,} | {row[2] / 1e6:,.0f} MB | {1e3 * row[3] / row[1]:.2f} ms |", flush=True)
    if given.svg:
        draw(rows, given.svg, size(given.memory, "--memory"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    else:
        main()
