#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_neurons.json: networks of cells with two states of their own, run and differentiated by PyTorch.

The cells are written here from the equations of the papers; autograd differentiates them, with the same surrogate.
test_torch.c compares loss, spikes and gradients. Usage: make_torch_neurons.py [torch_neurons.json]
"""
import math
import sys

import torch

from make_torch_cell_files import FromFile, Seadlif as FixedSeadlif
from make_torch_cells import DT, run, write
from make_torch_leaks import learned


class Seadlif(FixedSeadlif):
    """With the decays as attributes, which `learned` replaces by parameters."""

    def __init__(self, *args, tau=1, tau_adapt=1, **more):
        super().__init__(*args, **more)
        self.alpha, self.rho = math.exp(-DT / tau), math.exp(-DT / tau_adapt)

    def membrane(self, current):
        self.u = self.alpha * self.u + (1 - self.alpha) * (current - self.q)
        return self.u - 1

    def reset(self, s):
        self.u = self.u * (1 - s)
        self.q = self.rho * self.q + (1 - self.rho) * (self.a * self.u + self.b_ * self.y)


class Brf(FromFile):
    """b and omega as in the authors' equations, with dt in seconds."""

    def __init__(self, *args, omega, b, tau_adapt, learned=False, **more):
        super().__init__(*args, **more)
        self.gamma = math.exp(-DT / tau_adapt)
        self.leaks = {"omega": logs(self.n, omega), "b": logs(self.n, b)} if learned else {}
        self.fixed = omega, b

    def begin(self):
        self.im, self.q = torch.zeros(self.n), torch.zeros(self.n)
        self.omega, self.damping = (torch.exp(p) for p in self.leaks.values()) if self.leaks else self.fixed

    def membrane(self, current):
        omega, q = torch.as_tensor(self.omega), self.q.detach() if self.detach else self.q
        b = (-1 + torch.sqrt(1 - (DT * omega) ** 2)) / DT - self.damping - q
        self.u, self.im = (self.u + DT * (b * self.u - omega * self.im + current),
                          self.im + DT * (omega * self.u + b * self.im))
        return self.u - q - 1

    def reset(self, s):
        self.q = self.gamma * self.q + s


def logs(n, value):
    """Of values about this one, of six decimals."""
    return (torch.round((math.log(value) + 0.3 * torch.randn(n)) * 1e6) / 1e6).requires_grad_()


def numbers(n, value):
    return (torch.round(value * (0.5 + torch.rand(n)) * 1e6) / 1e6).requires_grad_()


def all_learned(cell, a, b, of):
    """Of Seadlif: a and b of each unit, too."""
    own = {"a": numbers(cell.n, a), "b": numbers(cell.n, b)}
    cell = learned(cell, of=of)
    cell.leaks.update(own)
    cell.a, cell.b_ = own["a"], own["b"]
    return cell


def nets():
    yield lambda: run(
        "seadlif", "seadlif:14r:tau=10ms:tau_adapt=30ms:a=2:b=3,"
        "seadlif:9r:tau=8ms:tau_adapt=12ms:a=-0.5:b=2:detach=1:delay=1,li:tau=20ms",
        [Seadlif(14, 10, True, 18, tau=10e-3, tau_adapt=30e-3, a=2, b_=3),
         Seadlif(9, 14, True, 20, tau=8e-3, tau_adapt=12e-3, a=-0.5, b_=2, detach=True, delay=True)],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "leaks of seadlif", "seadlif:14r:a=2:b=3:learn=tau,seadlif:9r:a=0.5:b=2:learn=tau:detach=1:delay=1,li",
        [learned(Seadlif(14, 10, True, 18, a=2, b_=3), of={("leak", "alpha"): 10e-3, ("leak_adapt", "rho"): 30e-3}),
         learned(Seadlif(9, 14, True, 20, a=0.5, b_=2, detach=True, delay=True),
                 of={("leak", "alpha"): 8e-3, ("leak_adapt", "rho"): 12e-3})],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "all of seadlif", "seadlif:14r:learn=all,seadlif:9r:learn=all:detach=1:delay=1:surrogate=slayer:width=0.3,li",
        [all_learned(Seadlif(14, 10, True, 18, a=2, b_=3), 2, 3,
                     of={("leak", "alpha"): 10e-3, ("leak_adapt", "rho"): 30e-3}),
         all_learned(Seadlif(9, 14, True, 20, a=2, b_=2, detach=True, delay=True, kind="slayer", width=0.3), 1, 2,
                     of={("leak", "alpha"): 8e-3, ("leak_adapt", "rho"): 12e-3})],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "brf", "brf:14r:omega=90:b=15:surrogate=double_gaussian,"
        "brf:9r:omega=60:b=30:tau_adapt=20ms:detach=1:delay=1,li:tau=20ms",
        [Brf(14, 10, True, 900, omega=90, b=15, tau_adapt=10e-3, kind="double_gaussian"),
         Brf(9, 14, True, 3000, omega=60, b=30, tau_adapt=20e-3, detach=True, delay=True)],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "frequencies of brf", "brf:14r:learn=tau,brf:9r:learn=all:detach=1:surrogate=slayer:width=0.4,li",
        [Brf(14, 10, True, 900, omega=90, b=15, tau_adapt=10e-3, learned=True),
         Brf(9, 14, True, 3000, omega=60, b=30, tau_adapt=10e-3, learned=True, detach=True, kind="slayer", width=0.4)],
        10, 3, [50, 31, 70], 0.08)


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_neurons.json")
