#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Memory and time of one forward and backward pass against the length of the sequence, in three ways: plain autograd,
which stores all saved tensors; torch.utils.checkpoint over segments of about the square root of the length;
neap.torch.Scan with a budget. The cell is a GRU of 256 units with 32 sequences. Each point is a process of its own.

Two measures of memory, which are different things. `counted`: bytes of the states, saved tensors, the gradient with
respect to the state and gradients of parameters that are kept at a time. neap's are those of its report, which the
budget limits; the others' follow from the saved tensors of a step, counted by hooks, and the number of steps and
segments that are kept at a time. `process`: the peak of resident memory beyond what was resident before the loop,
with all that PyTorch and the C library's allocator use in addition. Times are CPU time, one thread.
    memory_against_length.py [--memory 64M] [--slow FOLDER] [--most 4G] [--save FILE] [--from FILE] [--svg FILE]
Prints a table; --save stores what was measured as JSON, --from reads that instead of measuring, --svg draws it. Plain
autograd is left out where its saved tensors exceed --most. Python must find neap: install the package, or set
PYTHONPATH to the build folder's python.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.dont_write_bytecode = True
import figure  # noqa: E402

LENGTHS = (300, 1000, 3000, 10_000, 30_000, 100_000)
WAYS = {"plain autograd": "RED", "torch.utils.checkpoint": "ORANGE", "neap": "BLUE"}  # and colours
ROWS = 1000  # of inputs, which repeat


def resident(name):
    """Bytes of this process: VmHWM, its peak, or VmRSS."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def chunk(cell, x, h, t0, t1):
    """The state after the steps [t0, t1), and their loss."""
    total = h.new_zeros(())
    for t in range(t0, t1):
        h = cell(x[t % ROWS], h)
        total = total + h.square().mean()
    return h, total


def saved_bytes(cell, x, h):
    """Bytes of the tensors that autograd saves for one step, without parameters and inputs."""
    import torch
    known = {p.untyped_storage().data_ptr() for p in (*cell.parameters(), x)}
    kept = {}

    def pack(tensor):
        at = tensor.untyped_storage().data_ptr()
        if at not in known and at not in kept:
            kept[at] = (tensor.untyped_storage().nbytes(), tensor)  # the tensor, so that its place is not used again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        chunk(cell, x, h, 0, 20)
    return sum(size for size, _ in kept.values()) // 20


def run(way, steps, memory, slow):
    """One forward and backward."""
    import torch
    from torch.utils.checkpoint import checkpoint
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cell, x, h = torch.nn.GRUCell(64, 256), torch.randn(ROWS, 32, 64), torch.zeros(32, 256)
    chunk(cell, x, h, 0, 20)[1].backward()
    if way == "torch.utils.checkpoint":  # what it imports is no part of a step
        checkpoint(chunk, cell, x, h, 0, 2, use_reentrant=False)[1].backward()
    tape = saved_bytes(cell, x, h) if way != "neap" else 0
    held, begin = resident("VmRSS"), time.process_time()
    if way == "plain autograd":
        loss, counted = chunk(cell, x, h, 0, steps)[1], steps * tape
    elif way == "torch.utils.checkpoint":
        loss, width = 0, int(steps ** 0.5) + 1
        counted = min(width, steps) * tape + -(-steps // width) * h.nbytes
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
    seconds, process = time.process_time() - begin, max(0, resident("VmHWM") - held)
    counted = scan.report().counted_peak if way == "neap" else counted + 2 * sum(p.nbytes for p in cell.parameters())
    print(json.dumps({"seconds": seconds, "process": process, "counted": counted}))


def measured(given):
    """Rows with way, steps, counted and process in bytes, seconds."""
    for way in WAYS:
        stored = 0
        for before, steps in zip((0, *LENGTHS), LENGTHS):
            if way == "plain autograd" and before and stored * steps // before > given.most_bytes:
                continue
            with tempfile.TemporaryDirectory(dir=given.slow) as folder:
                done = subprocess.run([sys.executable, __file__, "--one", way, str(steps), given.memory, folder],
                                      stdout=subprocess.PIPE, text=True, check=True)
            row = json.loads(done.stdout)
            stored = row["counted"]
            yield {"way": way, "steps": steps, **row}


def draw(rows, path, budget):
    """Counted bytes with the budget, memory of the process, time per step, against the number of steps."""
    def lines(value, key):
        return [figure.Line(way, colour, [(row["steps"], value(row)) for row in rows if row["way"] == way and row[key]])
                for way, colour in WAYS.items()]
    figure.draw(path, "Memory and time against sequence length", [
        figure.Panel("Counted bytes (budget)", "MB", "steps", lines(lambda row: row["counted"] / 1e6, "counted"),
                     rule=("neap's budget", budget / 1e6)),
        figure.Panel("Process memory added", "MB", "steps", lines(lambda row: row["process"] / 1e6, "process")),
        figure.Panel("CPU time per step", "ms", "steps",
                     lines(lambda row: 1e3 * row["seconds"] / row["steps"], "seconds"), log=False)])


def main():
    from neap.units import size
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--memory", default="64M", help="neap's budget [64M]")
    parser.add_argument("--slow", help="folder of neap's files [a temporary one]")
    parser.add_argument("--most", default="4G", help="saved tensors that plain autograd may store [4G]")
    parser.add_argument("--save", metavar="FILE", help="store what was measured, as JSON")
    parser.add_argument("--from", metavar="FILE", dest="stored", help="do not measure: read what --save stored")
    parser.add_argument("--svg", metavar="FILE", help="draw into this file")
    given = parser.parse_args()
    given.most_bytes = size(given.most, "--most")
    found = {"memory": given.memory, "rows": []}
    if given.stored:
        with open(given.stored, encoding="utf-8") as file:
            found = json.load(file)
    print("| way | steps | counted | process | per step |\n|---|---|---|---|---|")
    for row in found["rows"] if given.stored else measured(given):
        if not given.stored:
            found["rows"].append(row)
        if given.save:  # each row at once: measuring takes many minutes
            with open(given.save, "w", encoding="utf-8") as file:
                file.write(json.dumps(found, indent=1) + "\n")
        print(f"| {row['way']} | {row['steps']:,} | {(row['counted'] or math.nan) / 1e6:,.0f} MB | "
              f"{row['process'] / 1e6:,.0f} MB | {1e3 * row['seconds'] / row['steps']:.2f} ms |", flush=True)
    if given.svg:
        draw(found["rows"], given.svg, size(found["memory"], "--memory"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5])
    else:
        main()
