#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of a forward and backward pass of nt.lif on a GPU, compared with a plain PyTorch loop and with a loop of compiled steps.
    layers.py [--units 512] [--batch 64] [--steps 1000] [--inputs 700] [--device cuda] [--no-compile]
A layer of recurrent LIF neurons, whose outputs a linear readout of 20 classes sums over time. The rows PASS if nt.lif is at least 50
times faster than the loop, and 5 times faster than the compiled one.
"""
import argparse
import math
import statistics
import time

import torch

import neap.torch as nt

BETA = math.exp(-1e-3 / 20e-3)


class Spike(torch.autograd.Function):
    """A spike with the triangle of nt.lif as its derivative."""

    @staticmethod
    def forward(ctx, u):
        ctx.save_for_backward(u)
        return (u > 1).to(u.dtype)

    @staticmethod
    def backward(ctx, gradient):
        u, = ctx.saved_tensors
        return gradient * torch.clamp(1 - (u - 1).abs() / 0.5, min=0)


def move(u, s, arrived, v):
    u = BETA * u + arrived + s @ v.t() - s
    return u, Spike.apply(u)


def loop(step):
    def run(x, w, v):
        arrived = torch.nn.functional.linear(x, w)
        u = s = x.new_zeros(x.shape[1], v.shape[0])
        found = []
        for row in arrived:
            u, s = step(u, s, row, v)
            found.append(s)
        return torch.stack(found)
    return run


def seconds(run, x, w, v, read, device):
    """Median of 3 passes after one, and the sum of the spikes."""
    found = []
    for _ in range(4):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        spikes = run(x, w, v)
        torch.autograd.grad((spikes.sum(0) @ read).square().sum(), (w, v))
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return statistics.median(found[1:]), float(spikes.detach().sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, value in ("units", 512), ("batch", 64), ("steps", 1000), ("inputs", 700):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", action="store_true")
    asked = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    where = dict(device=asked.device)
    x = (torch.rand(asked.steps, asked.batch, asked.inputs, **where) < 0.02).float()
    w = (torch.randn(asked.units, asked.inputs, **where) * 0.12).requires_grad_()
    v = (torch.randn(asked.units, asked.units, **where) * 0.3 / math.sqrt(asked.units)).requires_grad_()
    read = torch.randn(asked.units, 20, **where)
    own, spikes = seconds(lambda *given: nt.lif(*given)[0], x, w, v, read, asked.device)
    print(f"nt.lif: {1e3 * own:.2f} ms per pass, {spikes:.0f} spikes (torch {torch.__version__})")
    programs = [("loop", loop(move), 50)]
    if not asked.no_compile:
        programs.append(("loop of compiled steps", loop(torch.compile(move)), 5))
    for name, run, least in programs:
        other, count = seconds(run, x, w, v, read, asked.device)
        print(f"{'PASS' if other >= least * own else 'FAIL'}: {name}: {1e3 * other:.2f} ms, {other / own:.1f} times as long ({least} or more "
              f"is right), {count:.0f} spikes")


if __name__ == "__main__":
    main()
