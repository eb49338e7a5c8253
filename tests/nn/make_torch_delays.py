#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_delays.json: networks with axonal delays, fixed and learned, differentiated by PyTorch.

A unit's delay is k + f steps, k whole: (1 - f) of an output arrives after k steps and f of it after
k + 1. The outputs of all steps are kept, and autograd goes through f. test_torch.c compares loss,
spikes and gradients. Usage: make_torch_delays.py [torch_delays.json]
"""
import sys

import torch

from make_torch_cells import Adlif, Alif, run, write
from make_torch_leaks import lif


class Delay:
    """Outputs of n units, delayed by `least` to `most` steps; learned, or whole numbers."""

    def __init__(self, n, least, most, learns):
        d = least + (most - least) * torch.rand(n)
        self.learns = learns
        self.d = (torch.round(d * 1e6) / 1e6 if learns else torch.round(d)).requires_grad_(learns)
        if not learns:
            self.d.grad = torch.zeros(n)
        self.past = []

    def __call__(self, x):
        self.past.append(x)
        k = torch.floor(self.d.detach()).to(torch.long)
        return (1 - (self.d - k)) * self.at(k) + (self.d - k) * self.at(k + 1)

    def at(self, steps):
        """The output of each unit so many steps ago."""
        t = len(self.past) - 1
        return torch.stack([self.past[t - s][i] if s <= t else torch.zeros(()) for i, s in enumerate(steps.tolist())])


def behind(delay, layer, below):
    """The layer receives the outputs of the one below through the delay."""
    step, begin = layer.step, below.start

    def start():
        delay.past = []
        begin()

    below.start = start
    layer.step = lambda x, margins: step(delay(x), margins)
    layer.leaks = {**getattr(layer, "leaks", {}), "delay": delay.d}
    return layer



def readout(delay, below):
    """What the readout receives; used as `pool` of run."""
    begin = below.start

    def start():
        delay.past = []
        begin()

    below.start = start
    return lambda y: delay(y)


def finish(result, *delays):
    """Marks what does not learn, and adds the delays of the readout."""
    if result is None:
        return None
    for delay in delays:
        result["tensors"].append({"name": "readout.delay", "values": delay.d.tolist(), "grad": delay.d.grad.tolist()})
    return result


def learned():
    first = lif(14, 10, True, 1.0, reset="subtract")
    second = behind(Delay(14, 0, 9, True), lif(9, 14, True, 3.0, reset="zero"), first)
    late = Delay(9, 2, 6, True)
    return finish(run("learned delays of lif", "lif:14r:tau=10ms:learn=tau,"
                      "lif:9r:tau=10ms:learn=tau:reset=zero:delay=0..9:learn,li:tau=20ms:delay=2..6:learn",
                      [first, second], 10, 3, [50, 31, 70], 0.08, pool=readout(late, second)), late)


def of_alif():
    first = Alif(14, 10, True, 1.5, tau=10e-3, tau_adapt=30e-3, adapt=0.3)
    second = behind(Delay(14, 3, 40, True),
                    Adlif(9, 14, True, 40, tau=8e-3, tau_adapt=12e-3, a=-0.05, b=0.2, detach=True), first)
    return finish(run("learned delays of adlif", "alif:14r:tau=10ms:tau_adapt=30ms:adapt=0.3,"
                      "adlif:9r:tau=8ms:tau_adapt=12ms:a=-0.05:b=0.2:detach=1:delay=3..40:learn,li:tau=20ms",
                      [first, second], 10, 3, [50, 31, 70], 0.08))


def fixed():
    first = Alif(14, 10, True, 1.5, tau=10e-3, tau_adapt=30e-3, adapt=0.3)
    second = Alif(9, 14, False, 4.0, tau=15e-3, tau_adapt=12e-3, adapt=0.15)
    behind(Delay(14, 0, 12, False), second, first)
    late = Delay(9, 5, 5, False)
    result = finish(run("fixed delays", "alif:14r:tau=10ms:tau_adapt=30ms:adapt=0.3,"
                        "alif:9:tau=15ms:tau_adapt=12ms:adapt=0.15:delay=0..12,li:tau=20ms:delay=5",
                        [first, second], 10, 3, [50, 31, 70], 0.08, pool=readout(late, second)))
    return result


def nets():
    yield learned
    yield of_alif
    yield fixed


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_delays.json")
