#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_leaks.json: networks whose time constants are learned, differentiated by PyTorch.

A decay a step is the sigmoid of a parameter of each unit; autograd goes through it step by step.
test_torch.c compares loss, spikes and gradients. Usage: make_torch_leaks.py [torch_leaks.json]
"""
import math
import sys

import torch

from make_torch_cells import DT, Adlif, Alif, Cubalif, Spiking, run, write


def logits(n, tau):
    """Of decays about exp(-DT/tau), of six decimals."""
    decay = math.exp(-DT / tau)
    p = math.log(decay / (1 - decay)) + 0.5 * torch.randn(n)
    return (torch.round(p * 1e6) / 1e6).requires_grad_()


def learned(cell, of):
    """Parameters in place of the cell's decays; of: {(tensor's name, attribute): time constant}."""
    cell.leaks = {name: logits(cell.n, tau) for (name, _), tau in of.items()}
    begin = cell.start

    def start():
        for name, attribute in of:
            setattr(cell, attribute, torch.sigmoid(cell.leaks[name]))
        begin()

    cell.start = start
    return cell


class Lif(Spiking):
    """All four resets; a hard one to 0.1."""

    def __init__(self, *args, reset, **more):
        super().__init__(*args, **more)
        self.reset = reset

    def begin(self):
        pass

    def step(self, x, margins):
        last = self.y.detach() if self.detach else self.y
        u = self.beta * self.u + x @ self.w + self.b + (0 if self.v is None else self.y @ self.v)
        u = u - last if self.reset == "subtract" else u * (1 - last) if self.reset == "zero" else u
        margins.append((u.detach() - 1).abs().min().item())
        self.y = self.spike(u - 1)
        now = self.y.detach() if self.detach else self.y
        self.u = (1 - now) * u + 0.1 * now if self.reset == "hard" else u - now if self.reset == "soft" else u
        return self.y


def lif(*args, **more):
    return learned(Lif(*args, **more), of={("leak", "beta"): 10e-3})


def nets():
    yield lambda: run(
        "leaks of lif, late resets", "lif:14r:tau=10ms:learn=tau,"
        "lif:9r:tau=10ms:learn=tau:reset=zero:delay=1,li:learn=tau",
        [lif(14, 10, True, 1.0, reset="subtract"), lif(9, 14, True, 1.5, reset="zero", delay=True)],
        10, 3, [50, 31, 70], 0.08, logits(3, 20e-3))
    yield lambda: run(
        "leaks of lif, resets at once", "lif:14r:tau=10ms:learn=tau:reset=hard:reset_value=0.1,"
        "lif:9r:tau=10ms:learn=tau:reset=soft:surrogate=superspike:width=0.2,li:learn=tau",
        [lif(14, 10, True, 1.0, reset="hard"), lif(9, 14, True, 1.5, reset="soft", kind="superspike", width=0.2)],
        10, 3, [50, 31, 70], 0.08, logits(3, 20e-3))
    yield lambda: run(
        "leaks of lif, detached", "lif:14r:tau=10ms:learn=tau:reset=zero:detach=1,"
        "lif:9:tau=10ms:learn=tau:detach=1,li",
        [lif(14, 10, True, 1.0, reset="zero", detach=True), lif(9, 14, False, 1.5, reset="subtract", detach=True)],
        10, 3, [50, 31], 0.08)
    yield lambda: run(
        "leaks of cubalif", "cubalif:14r:learn=tau,cubalif:9:learn=tau:detach=1:delay=1,li:learn=tau",
        [learned(Cubalif(14, 10, True, 0.5, tau=1, tau_syn=1), of={("leak", "beta"): 10e-3, ("leak_syn", "alpha"): 4e-3}),
         learned(Cubalif(9, 14, False, 0.6, tau=1, tau_syn=1, detach=True, delay=True),
                 of={("leak", "beta"): 8e-3, ("leak_syn", "alpha"): 3e-3})],
        10, 3, [50, 31, 70], 0.08, logits(3, 20e-3))
    yield lambda: run(
        "leaks of alif", "alif:14r:adapt=0.3:learn=tau,alif:9r:adapt=0.15:learn=tau:detach=1,li",
        [learned(Alif(14, 10, True, 1.5, tau=1, tau_adapt=1, adapt=0.3),
                 of={("leak", "beta"): 10e-3, ("leak_adapt", "rho"): 30e-3}),
         learned(Alif(9, 14, True, 2.0, tau=1, tau_adapt=1, adapt=0.15, detach=True),
                 of={("leak", "beta"): 15e-3, ("leak_adapt", "rho"): 12e-3})],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "leaks of adlif", "adlif:14r:a=0.1:b=0.3:learn=tau,adlif:9r:a=-0.05:b=0.2:learn=tau:detach=1:delay=1,li",
        [learned(Adlif(14, 10, True, 18, tau=1, tau_adapt=1, a=0.1, b=0.3),
                 of={("leak", "alpha"): 10e-3, ("leak_adapt", "rho"): 30e-3}),
         learned(Adlif(9, 14, True, 20, tau=1, tau_adapt=1, a=-0.05, b=0.2, detach=True, delay=True),
                 of={("leak", "alpha"): 8e-3, ("leak_adapt", "rho"): 12e-3})],
        10, 3, [50, 31, 70], 0.08)


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_leaks.json")
