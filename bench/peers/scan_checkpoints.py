#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
neap.torch.Scan compared with the best torch.utils.checkpoint setting at equal memory, in ten cases. The time loop is divided into
segments of equal length, and some steps at its end are not checkpointed. Among all such settings whose memory is at most the
case's share of the plain loop's memory, the fastest is used. neap gets a budget at which its memory is at most 1% above the
memory of this setting. Memory is the peak of live bytes according to PyTorch's profiler. Times are CPU times, medians of rounds
in turn; ratios are medians of the ratios per round. The loss is summed per step, so outputs need no memory. Gradients are
compared bit by bit.
    scan_checkpoints.py [--rounds N] [--only NUMBER,NUMBER] [--threads N]
Python must find neap: install the package, or set PYTHONPATH to the folder `python` of the build.
"""
import argparse
import math
import statistics
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import neap.torch as nt

import live_bytes


class Gru(nn.Module):
    """A GRU cell."""

    def __init__(self, inputs, units):
        super().__init__()
        self.cell = nn.GRUCell(inputs, units)

    def forward(self, h, x, _):
        h = self.cell(x, h)
        return h, h


class Lstm(nn.Module):
    """An LSTM cell."""

    def __init__(self, inputs, units):
        super().__init__()
        self.cell = nn.LSTMCell(inputs, units)

    def forward(self, state, x, _):
        h, c = self.cell(x, state)
        return (h, c), h


class Spike(torch.autograd.Function):
    """A step function with the derivative of a fast sigmoid."""

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, grad):
        v, = ctx.saved_tensors
        return grad / (1 + 10 * v.abs()) ** 2


class Lif(nn.Module):
    """Two layers of leaky integrate-and-fire units, the first one recurrent."""

    def __init__(self, inputs, units):
        super().__init__()
        self.first, self.second = nn.Linear(inputs + units, units), nn.Linear(units, units)

    def forward(self, state, x, _):
        v, s, w = state
        v = 0.95 * v * (1 - s) + self.first(torch.cat((x, s), 1))
        s = Spike.apply(v - 1)
        w = 0.95 * w + self.second(s)
        return (v, s, w), w


class ConvLstm(nn.Module):
    """A convolutional LSTM."""

    def __init__(self, inputs, channels):
        super().__init__()
        self.gates = nn.Conv2d(inputs + channels, 4 * channels, 3, 1, 1)

    def forward(self, state, x, _):
        h, c = state
        i, f, g, o = self.gates(torch.cat((x, h), 1)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return (h, c), h.mean((2, 3))


class Ode(nn.Module):
    """A classic Runge-Kutta step for a vector field of two dense layers."""

    def __init__(self, inputs, units):
        super().__init__()
        self.field = nn.Sequential(nn.Linear(units + inputs, 2 * units), nn.Tanh(), nn.Linear(2 * units, units))

    def forward(self, y, x, _):
        def rate(at):
            return self.field(torch.cat((at, x), 1))
        h = 0.1
        a = rate(y)
        b = rate(y + h / 2 * a)
        c = rate(y + h / 2 * b)
        d = rate(y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
        return y, y


# Cell, inputs, units, batch, steps, share of the plain loop's memory (0: the minimum for segments).
SETTINGS = (
    (Gru, 64, 256, 32, 700, 0.25), (Gru, 64, 256, 32, 700, 0), (Gru, 64, 512, 64, 300, 0.5),
    (Gru, 16, 64, 16, 2000, 0.25), (Lstm, 64, 256, 32, 1000, 0.25), (Lstm, 64, 256, 32, 1000, 0),
    (Lif, 128, 256, 64, 1000, 0.1), (Lif, 128, 256, 64, 1000, 0.5), (ConvLstm, 4, 16, 4, 200, 0.25),
    (Ode, 16, 128, 64, 500, 0.1),
)
PLAIN = (0.5, 0.8, 0.95)  # share of the case's memory for the steps at the end that are not checkpointed


class Setting:
    """A cell, inputs, and the compared ways to run the loop."""

    def __init__(self, kind, inputs, units, batch, steps, share):
        torch.manual_seed(1)
        self.cell, self.steps, self.share = kind(inputs, units), steps, share
        if kind is ConvLstm:
            zeros, self.x = torch.zeros(batch, units, 32, 32), torch.randn(steps, batch, inputs, 32, 32)
        else:
            zeros, self.x = torch.zeros(batch, units), torch.randn(steps, batch, inputs)
        self.state = (zeros,) * {Lstm: 2, ConvLstm: 2, Lif: 3}.get(kind, 0) or zeros
        self.params = list(self.cell.parameters())
        self.known = None
        self.name = f"{kind.__name__} {units}, {batch} sequences, {steps} steps"

    def part(self, state, total, x):
        """Runs some steps; returns the state and the loss so far, the sum of squares of all outputs."""
        for t, row in enumerate(x.unbind(0)):
            state, out = self.cell(state, row, t)
            total = total + out.square().sum()
        return state, total

    def plain(self):
        return self.part(self.state, torch.zeros(()), self.x)[1]

    def checkpointed(self, piece, rest):
        """The loop in segments; its last ``rest`` steps are not checkpointed."""
        def forward():
            state, total = self.state, torch.zeros(())
            for part in self.x[:self.steps - rest].split(piece):
                state, total = checkpoint(self.part, state, total, part, use_reentrant=False)
            return self.part(state, total, self.x[self.steps - rest:])[1]
        return forward

    def scan(self, memory=None):
        made = nt.Scan(self.cell, memory=memory, reduce=lambda out, t: out.square().sum())
        made._known = self.known or made._known  # measured costs do not depend on the budget
        self.known = made._known

        def forward():
            return made(self.state, self.x)[1]
        forward.made = made
        return forward

    def once(self, forward):
        for leaf in self.params:
            leaf.grad = None
        forward().backward()

    def seconds(self, forward):
        begin = time.process_time()
        self.once(forward)
        return time.process_time() - begin

    def top(self, forward):
        self.once(forward)
        for leaf in self.params:
            leaf.grad = None
        return live_bytes.top(lambda: self.once(forward))

    def gradients(self, forward):
        self.once(forward)
        return [leaf.grad.clone() for leaf in self.params]

    def best_checkpoints(self, whole):
        """The fastest setting that fits: (segment, rest), peak, forward; and the number of timed settings."""
        pieces = sorted({max(2, round(self.steps / n)) for n in (2, 4, 9, 16, 27, 50)})
        memory = self.share * whole
        if not self.share:
            near = sorted(pieces, key=lambda piece: abs(math.log(piece * piece / self.steps)))[:3]
            memory = min(self.top(self.checkpointed(piece, 0)) for piece in near)
        kept = sum(leaf.nbytes for leaf in (self.state if isinstance(self.state, tuple) else (self.state,)))
        ways = {}
        for piece in pieces:
            for rest in {int(part * self.share * self.steps) for part in PLAIN}:
                # The graph of a segment is created after the graph of the last steps was freed.
                held = max(piece, rest) / self.steps * whole + self.steps / piece * kept
                if held < 1.2 * memory or not self.share:
                    ways[piece, rest] = self.checkpointed(piece, rest)
        times = {key: [] for key in ways}
        for _ in range(2):
            for key, forward in ways.items():
                times[key].append(self.seconds(forward))
        for key in sorted(ways, key=lambda key: min(times[key])):
            top = self.top(ways[key])
            if top <= memory:
                return key, top, ways[key], len(ways)
        raise SystemExit(f"{self.name}: no segment length fits in the memory")

    def within(self, top):
        """neap with a budget at which its peak is at most 1% above ``top``, or None."""
        return live_bytes.within(top, top, self.scan, self.top)


def compare(setting, rounds):
    """Prints the row of a case."""
    whole, wanted = setting.top(setting.plain), setting.gradients(setting.plain)
    (piece, rest), top, pieces, tried = setting.best_checkpoints(whole)
    scan = setting.within(top)
    head = (f"| {setting.name} | {whole / 1e6:.1f} MB | {top / 1e6:.1f} MB | "
            f"{piece}{f', last {rest} plain' if rest else ''} (of {tried}) ")
    if scan is None:
        print(head + "| | none found | | |", flush=True)
        return
    assert all(map(torch.equal, setting.gradients(scan), wanted)), "the gradient of neap differs from the plain loop"
    taken = {way: [] for way in (setting.plain, pieces, scan)}
    for _ in range(rounds):
        for way, seconds in taken.items():
            seconds.append(setting.seconds(way))

    def ratio(way, other):
        return statistics.median(a / b for a, b in zip(taken[way], taken[other]))
    told = scan.made.report()
    print(head + f"| {ratio(pieces, setting.plain):.2f} | {setting.top(scan) / 1e6:.1f} MB | "
          f"{ratio(scan, setting.plain):.2f} | {1 + told.plan.overhead:.2f} | groups of {told.group} | "
          f"{ratio(scan, pieces):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds, with the programs in turn [5]")
    parser.add_argument("--only", default="", help="numbers of cases, from 1 [all]")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch threads [1]")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {options.threads} thread(s)\n")
    print("| cell, sequences, steps | plain loop, peak | checkpoint, peak "
          "| segment, steps not checkpointed (settings that fit) | checkpoint, relative to the plain loop | neap, peak | neap, relative to the plain loop | neap, planned | neap, group "
          "| neap / checkpoint |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for number, row in enumerate(SETTINGS, 1):
        if not options.only or str(number) in options.only.split(","):
            compare(Setting(*row), options.rounds)


if __name__ == "__main__":
    main()
