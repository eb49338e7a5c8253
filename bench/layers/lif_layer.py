#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures nt.lif next to a plain PyTorch loop over the same recurrent layer, on the CPU.

    lif_layer.py [--steps 1000] [--batch 64] [--units 512] [--memory 16M] [--threads 1,2] [--rounds 3]

A network of 700 inputs, a recurrent LIF layer and a readout of 20 classes: inputs spike with probability 2% per step,
and the weights are scaled so that units spike in about as many steps. Each round runs a forward and backward pass of
every program in turn, each in its own process, and the table shows the smallest times. All programs compute the same
spikes, and the script checks that they do.
"""
import argparse
import json
import math
import resource
import subprocess
import sys
import time

import torch

INPUTS, CLASSES = 700, 20


class Spike(torch.autograd.Function):
    """The step function with the triangular surrogate derivative."""

    @staticmethod
    def forward(ctx, u):
        ctx.save_for_backward(u)
        return (u > 1).to(u.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1 - (ctx.saved_tensors[0] - 1).abs() / 0.5).clamp(min=0)


def loop(x, w, v, b):
    """The plain loop: products with all inputs at once, then one product with spikes per step."""
    beta, rows = math.exp(-1e-3 / 20e-3), torch.nn.functional.linear(x, w, b)
    u = s = x.new_zeros(x.shape[1], w.shape[0])
    found = []
    for row in rows:
        u = beta * u + row + torch.nn.functional.linear(s, v) - s
        s = Spike.apply(u)
        found.append(s)
    return torch.stack(found)


def times():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def measure(options):
    """Runs one program; prints the smallest times of three passes as JSON."""
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    n = options.units
    x = (torch.rand(options.steps, options.batch, INPUTS) < 0.02).float()
    # Excitation and inhibition balance: the mean is positive, so that units spike.
    w = (torch.randn(n, INPUTS) * 0.13 + 0.001).requires_grad_()
    v = (torch.randn(n, n) * (0.5 / math.sqrt(n))).requires_grad_()
    b = torch.zeros(n, requires_grad=True)
    read = torch.nn.Linear(n, CLASSES)
    labels = torch.randint(CLASSES, (options.batch,))
    rows = []
    for _ in range(options.passes):
        begin = times()
        if options.program == "loop":
            s = loop(x, w, v, b)
        else:
            import neap.torch as nt
            s, _ = nt.lif(x, w, v, b, memory=options.memory if options.program == "budget" else None)
        middle = times()
        torch.nn.functional.cross_entropy(read(s.mean(0)), labels).backward()
        end = times()
        rows.append([middle[i] - begin[i] for i in (0, 1)] + [end[i] - middle[i] for i in (0, 1)])
    print(json.dumps({"rows": [min(column) for column in zip(*rows)], "spikes": int(s.sum()),
                      "rate": float(s.detach().mean()),
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, value in dict(steps=1000, batch=64, units=512, rounds=2, passes=3).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--memory", default="16M")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--program")
    options = parser.parse_args()
    if options.program:
        options.threads = int(options.threads)
        measure(options)
        return
    print("threads  program     forward  backward      both       CPU  times  peak RSS   (seconds, MiB)")
    spikes = {}
    for threads in options.threads.split(","):
        best = {}
        for _ in range(options.rounds):
            for program in ("loop", "layer", "budget"):
                done = subprocess.run([sys.executable, "-W", "ignore", *sys.argv, "--program", program, "--threads",
                                       threads], check=True, capture_output=True, text=True)
                found = json.loads(done.stdout)
                spikes.setdefault(program, set()).add(found["spikes"])
                old = best.get(program, found)
                found["rows"] = [min(a, b) for a, b in zip(found["rows"], old["rows"])]
                best[program] = found
        for program, found in best.items():
            forward, cpu, backward, cpu_back = found["rows"]
            factor = (best["loop"]["rows"][1] + best["loop"]["rows"][3]) / (cpu + cpu_back)
            name = f"nt.lif {options.memory}" if program == "budget" else "nt.lif" if program == "layer" else "loop"
            print(f"{threads:>7}  {name:<11} {forward:7.2f}  {backward:8.2f}  {forward + backward:8.2f}  "
                  f"{cpu + cpu_back:8.2f}  {factor:5.1f}  {found['peak']:8d}")
    if len(spikes["layer"] | spikes["budget"]) != 1:
        sys.exit(f"lif_layer: nt.lif has different spikes in different runs: {spikes}")
    print(f"rate: {found['rate']:.4f} spikes per unit and step; spikes: {spikes['layer'].pop()} in nt.lif, "
          f"{sorted(spikes['loop'])} in the loop")


main()
