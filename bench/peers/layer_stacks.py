#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
neap.torch.Sequential compared with torch.utils.checkpoint.checkpoint_sequential at equal memory, for three stacks of unequal
layers. Memory is the peak of live bytes in PyTorch's allocator during one forward and backward pass, in addition to what was
allocated before, according to the profiler's memory events; it includes gradients and temporary memory of the layers. For each
number of segments, neap gets a budget at which its peak is at most 1% above the peak of checkpoint_sequential. Times are CPU
times, medians of rounds in turn. Gradients are compared bit by bit. --compiled: also compares with torch.compile, with several
values of its activation_memory_budget; compilation takes a minute per value and requires a C++ compiler.
    layer_stacks.py [--rounds N] [--only NAME] [--threads N] [--scale X] [--compiled]
Python must find neap: install the package, or set PYTHONPATH to the folder `python` of the build.
"""
import argparse
import statistics
import time

import torch
import torch._functorch.config
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

import neap.torch as nt

import live_bytes


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, m, n, stride=1):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(m, n, 3, stride, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU(inplace=True),
                                  nn.Conv2d(n, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n))
        self.skip = nn.Conv2d(m, n, 1, stride, bias=False) if (m, stride) != (n, 1) else nn.Identity()

    def forward(self, x):
        return torch.relu_(self.body(x) + self.skip(x))


class Attention(nn.Module):
    """A transformer layer; ``wide`` units between its two matrices."""

    def __init__(self, n, wide, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(n, 3 * n), nn.Linear(n, n), heads
        self.mlp = nn.Sequential(nn.LayerNorm(n), nn.Linear(n, wide), nn.GELU(), nn.Linear(wide, n))
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, n // self.heads).permute(2, 0, 3, 1, 4)
        p = torch.softmax(q @ k.transpose(-1, -2) * (n // self.heads) ** -0.5, -1)
        x = x + self.out((p @ v).transpose(1, 2).reshape(b, t, n))
        return x + self.mlp(x)


def resnet(scale):
    """The 16 blocks of ResNet-34 with a quarter of the width; images become smaller."""
    rows, m = [nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True))], 16
    for n, count in ((16, 3), (32, 4), (64, 6), (128, 3)):
        for i in range(count):
            rows.append(Block(m, n, 2 if i == 0 and n > 16 else 1))
            m = n
    rows.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(m, 10)))
    return rows, torch.randn(max(2, int(16 * scale)), 3, 64, 64)


def transformer(scale):
    """12 layers whose inner widths increase from 64 to 1024 and decrease back."""
    wide = [64, 128, 256, 512, 1024, 1024, 512, 256, 128, 64, 512, 1024]
    return [Attention(128, n) for n in wide] + [nn.Linear(128, 32)], torch.randn(max(2, int(8 * scale)), 128, 128)


def pyramid(scale):
    """Dense layers of 64 to 2048 units, twice decreasing and increasing."""
    width = [64, 256, 1024, 2048, 512, 128, 64, 64, 512, 2048, 256, 64, 1024, 128, 64, 32]
    return ([nn.Sequential(nn.Linear(m, n), nn.LayerNorm(n), nn.GELU()) for m, n in zip(width, width[1:])],
            torch.randn(max(2, int(2048 * scale)), 64))


STACKS = {"resnet": resnet, "transformer": transformer, "pyramid": pyramid}


class Stack:
    """Layers, an input, and the compared ways to run them."""

    def __init__(self, name, scale):
        torch.manual_seed(1)
        self.layers, self.x = STACKS[name](scale)
        self.x.requires_grad_()
        self.params = list(nn.Sequential(*self.layers).parameters())
        self.measured, self.over = None, 0

    def once(self, forward):
        """One forward and backward pass."""
        for leaf in (self.x, *self.params):
            leaf.grad = None
        forward(self.x).square().mean().backward()

    def seconds(self, forward):
        begin = time.process_time()
        self.once(forward)
        return time.process_time() - begin

    def top(self, forward):
        """Peak of live bytes."""
        self.once(forward)
        for leaf in (self.x, *self.params):
            leaf.grad = None
        return live_bytes.top(lambda: self.once(forward))

    def gradients(self, forward):
        self.once(forward)
        return [leaf.grad.clone() for leaf in (self.x, *self.params)]

    def neap(self, memory):
        return nt.Sequential(*self.layers, memory=memory)

    def within(self, top):
        """A neap.torch.Sequential whose peak is at most 1% above ``top``, or None. The memory that the profiler
        sees in addition to the budget is nearly the same for all budgets."""
        if not self.measured:
            whole = nt.Sequential(*self.layers)
            self.over = self.top(whole) - whole.report().planned_peak - whole.report().charged
            self.measured = whole._known  # measured costs do not depend on the budget

        def make(memory):
            net = self.neap(memory)
            net._known = self.measured
            return net
        return live_bytes.within(top, top - self.over, make, self.top, tries=6)


SHARES = (1.0, 0.5, 0.2, 0.0)


def compiled(plain, share, stack):
    """The stack compiled with this activation_memory_budget."""
    torch._dynamo.reset()
    torch._functorch.config.activation_memory_budget = share
    found = torch.compile(plain)
    stack.once(found)
    return found


def equal(found, wanted):
    """True if all gradients are bit-identical."""
    return all(torch.equal(a, b) for a, b in zip(found, wanted))


def beside(stack, plain, others, rounds):
    """Prints one row for each of ``others`` (name to forward), compared with neap at equal memory."""
    wanted, ways = stack.gradients(plain), {("plain", None): plain}
    for name, forward in others.items():
        ways["other", name] = forward
        net = stack.within(stack.top(forward))
        if net is not None:
            ways["neap", name] = net
            assert equal(stack.gradients(net), wanted), "the gradient of neap differs from the plain pass"
    taken = {key: [] for key in ways}
    for _ in range(rounds):
        for key, forward in ways.items():
            taken[key].append(stack.seconds(forward))
    base = statistics.median(taken["plain", None])
    for name, forward in others.items():
        bits = "yes" if equal(stack.gradients(forward), wanted) else "no"
        line = f"| {name} | {bits} | {stack.top(forward) / 1e6:.1f} | {statistics.median(taken['other', name]) / base:.2f} "
        net = ways.get(("neap", name))
        if net is None:
            print(line + "| | none found | | |")
            continue
        top, told = stack.top(net), net.report()
        ideal = told.plan.seconds / sum(net._known[next(iter(net._known))].record +
                                        net._known[next(iter(net._known))].backward)
        print(line + f"| {top / 1e6:.1f} | {statistics.median(taken['neap', name]) / base:.2f} | {ideal:.2f} | "
              f"{told.extra_steps} |", flush=True)


def compare(name, options):
    stack = Stack(name, options.scale)
    plain, count = nn.Sequential(*stack.layers), len(stack.layers)
    print(f"\n{name}: {count} layers, plain pass {stack.seconds(plain):.3f} s, peak {stack.top(plain) / 1e6:.1f} MB\n")
    print("| compared with | bit-identical | peak, MB | relative time | neap, peak in MB | neap, relative time | neap, planned | "
          "neap, recomputed layers |")
    print("|---|---|---|---|---|---|---|---|")

    def segments(n):
        return lambda x: checkpoint_sequential(plain, n, x, use_reentrant=False)

    beside(stack, plain, {f"{n} segments": segments(n) for n in sorted({2, 4, count})}, options.rounds)
    for share in SHARES if options.compiled else ():  # each call compiles from scratch
        beside(stack, plain, {f"compiled, {share:g}": compiled(plain, share, stack)}, options.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds, with the programs in turn [5]")
    parser.add_argument("--only", choices=STACKS, help="run only this stack [all]")
    parser.add_argument("--threads", type=int, default=1, help="PyTorch threads [1]")
    parser.add_argument("--compiled", action="store_true", help="also compare with torch.compile")
    parser.add_argument("--scale", type=float, default=1, help="scale of the batch sizes [1]")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {options.threads} thread(s); times relative to the plain pass")
    for name in [options.only] if options.only else STACKS:
        compare(name, options)


if __name__ == "__main__":
    main()
