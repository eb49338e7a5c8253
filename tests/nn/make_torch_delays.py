#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_delays.json: networks with axonal delays, fixed and learned, differentiated by PyTorch.

A unit's delay is k + f steps, k whole: (1 - f) of an output arrives after k steps and f of it after
k + 1. The outputs of all steps are kept, and autograd goes through f. test_torch.c compares loss,
spikes and gradients. Usage: make_torch_delays.py [torch_delays.json]
"""
import sys

import torch

import make_torch_filters as filters
import make_torch_sources as sources
from make_torch_cells import Adlif, Alif, Cubalif, run, write
from make_torch_leaks import lif


class Delay:
    """Outputs of n units, delayed by `least` to `most` steps; learned, or whole numbers."""

    def __init__(self, n, least, most, learns):
        d = least + (most - least) * torch.rand(n)
        self.learns, self.has_tensor = learns, most > least
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
    if delay.has_tensor:
        layer.leaks = {**getattr(layer, "leaks", {}), "delay": delay.d}
    return layer


class Partly(Delay):
    """The same of `n` outputs; `first` numbers before them and all behind them arrive at once."""

    def __init__(self, first, n, *options):
        super().__init__(n, *options)
        self.first = first

    def __call__(self, x):
        end = self.first + len(self.d)
        return torch.cat([x[:self.first], super().__call__(x[self.first:end]), x[end:]])


def readout(delay, below):
    """What the readout receives; used as `pool` of run."""
    begin = below.start

    def start():
        delay.past = []
        begin()

    below.start = start
    return lambda y: delay(y)


def finish(result, *delays):
    """Adds the delays of the readout; the tensors of norms are behind all delays."""
    if result is None:
        return None
    for delay in delays:
        result["tensors"].append({"name": "readout.delay", "values": delay.d.tolist(), "grad": delay.d.grad.tolist()})
    result["tensors"].sort(key=lambda tensor: ".norm_" in tensor["name"])
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


def convolutions():
    """Delays of the outputs that a convolution and sum pooling receive."""
    a, b = filters.two({"kernel": (3, 3), "channels": 3, "scale": 2.5, "stride": (2, 1), "pad": 1},
                       {"kernel": (2, 3), "channels": 4, "scale": 6, "pad": (0, 2), "size": (2, 1), "pooling": "avg",
                        "windows": ((1, 1), 0), "behind": ((1, 2), "sum", (1, 1), 0)})
    first = filters.convolved(filters.Lif, a, tau=10e-3)
    second = filters.convolved(Alif, b, tau=15e-3, tau_adapt=12e-3, adapt=0.15)
    behind(Delay(first.n, 0, 9, True), filters.normed(second, 4), first)
    late, last = Delay(second.n, 2, 6, True), filters.Pool(b.plane(), True, (1, 2), "sum", ((1, 1), 0))
    late_of = readout(late, second)
    return finish(run("delays of convolutions", "lif:conv=3:stride=2x1:pad=1:channels=3:shape=2x6x5:tau=10ms,"
                      "alif:conv=2x3:pad=0x2:channels=4:pool=2x1:pooling=avg:pool_stride=1:conv_pool=1x2:"
                      "conv_pool_stride=1:norm=batch:tau=15ms:tau_adapt=12ms:adapt=0.15:delay=0..9:learn,"
                      "li:tau=20ms:pool=1x2:pool_stride=1:delay=2..6:learn",
                      [first, second], 60, 3, [30, 21], 0.06, pool=lambda y: last(late_of(y))), late)


def maxima():
    """One delay before maxima of outputs, and before those of sums."""
    a, b = filters.two({"kernel": (2, 2), "channels": 3, "scale": 5},
                       {"kernel": (2, 1), "channels": 4, "scale": 5, "size": (3, 2), "pooling": "max",
                        "windows": ((1, 1), (1, 0))})
    c = filters.Conv(b.plane(), True, (2, 2), 3, 5, pad=1, behind=((2, 2), "max", (1, 1), 0))
    layers = [filters.convolved(filters.Lif, conv, tau=10e-3) for conv in (a, b, c)]
    behind(Delay(layers[0].n, 3, 3, False), layers[1], layers[0])
    behind(Delay(layers[1].n, 2, 2, False), layers[2], layers[1])
    last = filters.Pool(c.plane(), True, (2, 2), "max")
    late_of = readout(Delay(layers[2].n, 4, 4, False), layers[2])
    return run("delays before maxima", "lif:conv=2:channels=3:shape=2x6x5:tau=10ms,"
               "lif:conv=2x1:channels=4:pool=3x2:pooling=max:pool_stride=1:pool_pad=1x0:tau=10ms:delay=3,"
               "lif:conv=2:channels=3:pad=1:conv_pool=2:conv_pooling=max:conv_pool_stride=1:tau=10ms:delay=2,"
               "li:tau=20ms:pool=2:pooling=max:delay=4",
               layers, 60, 3, [30, 21, 25], 0.08, pool=lambda y: last(late_of(y)))


def several():
    """Several sources, of which the layers below are delayed, the inputs and the layers above are not."""
    layers = [sources.Lif(12, 10, True, 1.5, tau=10e-3), sources.Lif(9, 29, False, 2.0, tau=8e-3),
              Cubalif(7, 21, True, 1.5, tau=12e-3, tau_syn=3e-3)]
    behind(Partly(10, 12, 0, 6, True), layers[1], layers[0])
    behind(Partly(0, 21, 0, 9, False), layers[2], layers[0])
    late = Partly(10, 16, 1, 4, True)
    return finish(sources.run("delays of several sources", "lif:12r:tau=10ms,"
                              "lif:9:tau=8ms:from=input+layer0+layer2:delay=0..6:learn,"
                              "cubalif:7r:tau=12ms:tau_syn=3ms:from=layer0+layer1:delay=0..9,"
                              "li:tau=20ms:from=input+layer1+layer2:delay=1..4:learn", layers,
                              [(-1,), (-1, 0, 2), (0, 1), (-1, 1, 2)], 10, 3, [50, 31, 70], 0.08,
                              pool=readout(late, layers[1])), late)


def nets():
    yield learned
    yield of_alif
    yield fixed
    yield convolutions
    yield maxima
    yield several


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_delays.json")
