#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_cell_files.json: networks of the cell files in examples/cells, run and differentiated by PyTorch.

The cells are written here from their equations; autograd differentiates them, with the same surrogate. test_torch.c
compares loss, spikes and gradients. Usage: make_torch_cell_files.py [torch_cell_files.json]
"""
import math
import sys

import torch

from make_torch_cells import DT, Spiking, run, write


class FromFile(Spiking):
    """Cells that reset at once: `seen` is the argument of the surrogate derivative."""

    def __init__(self, *args, **more):
        params = {key: more.pop(key) for key in list(more) if key not in ("detach", "delay", "kind", "width")}
        super().__init__(*args, **more)
        for key, value in params.items():
            setattr(self, key, value)

    def step(self, x, margins):
        current = x @ self.w + self.b
        if self.v is not None:
            current = current + self.y @ self.v
        seen = self.membrane(current)
        margins.append(seen.detach().abs().min().item())
        self.y = self.spike(seen)
        self.reset(self.y.detach() if self.detach else self.y)
        return self.y


class Seadlif(FromFile):
    def begin(self):
        self.q = torch.zeros(self.n)

    def membrane(self, current):
        alpha = math.exp(-DT / self.tau)
        self.u = alpha * self.u + (1 - alpha) * (current - self.q)
        return self.u - 1

    def reset(self, s):
        beta = math.exp(-DT / self.tau_adapt)
        self.u = self.u * (1 - s)
        self.q = beta * self.q + (1 - beta) * (self.a * self.u + self.b_ * self.y)


class Izhikevich(FromFile):
    def begin(self):
        self.u = torch.full((self.n,), -65.0)
        self.r = torch.full((self.n,), -13.0)

    def membrane(self, current):
        v, r = self.u, self.r
        new = v + 0.04 * v ** 2 + 5 * v + 140 - r + self.gain * current
        self.u = torch.where(new < 60, new, torch.full_like(new, 60))
        self.r = r + 0.02 * (0.2 * v - r)
        return (self.u - 30) / 20

    def reset(self, s):
        self.u = (1 - s) * self.u - 65 * s
        self.r = self.r + 8 * s


class Eif(FromFile):
    def begin(self):
        pass

    def membrane(self, current):
        drive = 0.2 * torch.exp(torch.clamp((self.u - 1) / 0.2, max=10))
        self.u = self.u + DT / self.tau * (drive - self.u) + current
        return self.u - 2

    def reset(self, s):
        self.u = (1 - s) * self.u


def file(name):
    return f"examples/cells/{name}.cell"


def nets():
    yield lambda: run(
        "seadlif.cell", f"{file('seadlif')}:12r:tau=10ms:tau_adapt=40ms:a=2:b=3,"
        f"{file('seadlif')}:7:tau=15ms:tau_adapt=60ms:a=0.5:b=1:detach=1:delay=1,li:tau=20ms",
        [Seadlif(12, 10, True, 20, tau=10e-3, tau_adapt=40e-3, a=2, b_=3),
         Seadlif(7, 12, False, 25, tau=15e-3, tau_adapt=60e-3, a=0.5, b_=1, detach=True, delay=True)],
        10, 3, [40, 21], 0.1)
    yield lambda: run(
        "eif.cell", f"{file('eif')}:12r:tau=12ms:width=0.8,{file('eif')}:7r:tau=20ms:detach=1:delay=1,li:tau=20ms",
        [Eif(12, 10, True, 2, tau=12e-3, width=0.8), Eif(7, 12, True, 2.5, tau=20e-3, detach=True, delay=True)],
        10, 3, [40, 21], 0.1)
    yield lambda: run(
        "izhikevich.cell", f"{file('izhikevich')}:10r:gain=20,li:tau=20ms",
        [Izhikevich(10, 10, True, 2, gain=20)], 10, 3, [30, 21], 0.1)


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_cell_files.json")
