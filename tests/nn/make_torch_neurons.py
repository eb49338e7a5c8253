#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_neurons.json: networks of cells with two states of their own, run and differentiated by PyTorch.

The cells are written here from the equations of the papers; autograd differentiates them, with the same surrogate.
test_torch.c compares loss, spikes and gradients. Usage: make_torch_neurons.py [torch_neurons.json]
"""
import math
import sys

import torch

from make_torch_cell_files import Seadlif as FixedSeadlif
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


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_neurons.json")
