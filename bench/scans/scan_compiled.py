#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""neap.torch.scan(compile=True) for four cells: seconds until the first result, and CPU time per step, forward and
backward, of all settings in turns (medians). "compiled" is a plain loop over groups of 8 steps, each compiled by
torch.compile, with autograd around them; it stores everything. The small budget is 1/10 of the tapes of the scan that
stores everything, in addition to gradients of parameters, one state and one adjoint. Needs PyTorch 2.
    scan_compiled.py [--rounds N] [--steps T] [CELL ...]    cells: rnn, lif, gru, gla
    scan_compiled.py --first CELL    only the seconds until the first result of a scan with a budget
Kernels are compiled unless PyTorch's cache on disk has them (TORCHINDUCTOR_CACHE_DIR).
"""
import argparse
import statistics
import time

import torch

import neap.torch as nt

GROUP = 8


class Spike(torch.autograd.Function):
    """A step function whose gradient is that of a fast sigmoid."""

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, gradient):
        v, = ctx.saved_tensors
        return gradient / (1 + 10 * v.abs()) ** 2


def gru(batch=32, units=256, features=64):
    cell = torch.nn.GRUCell(features, units)

    def step(h, x, t):
        h = cell(x, h)
        return h, h
    return step, torch.randn(batch, units), (batch, features), list(cell.parameters())


def rnn(batch=1, units=4, features=4):
    cell = torch.nn.RNNCell(features, units)

    def step(h, x, t):
        h = cell(x, h)
        return h, h
    return step, torch.randn(batch, units), (batch, features), list(cell.parameters())


def lif(batch=16, units=64, features=32):
    given, recurrent = torch.nn.Linear(features, units), torch.nn.Linear(units, units, bias=False)

    def step(state, x, t):
        v, z = state
        v = 0.9 * v * (1 - z) + given(x) + recurrent(z)
        z = Spike.apply(v - 1.0)
        return (v, z), z
    start = torch.randn(batch, units), torch.zeros(batch, units)
    return step, start, (batch, features), [*given.parameters(), *recurrent.parameters()]


def gla(batch=4, width=32, tokens=64):
    """A chunk of gated linear attention with one decay per token (docs/long-contexts.md)."""
    qkv, decay = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, 1)

    def step(S, x, t):
        q, k, v = qkv(x).chunk(3, 2)
        L = torch.nn.functional.logsigmoid(decay(x) + 4).cumsum(1)
        later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        scores = q @ k.transpose(1, 2) * (L - L.transpose(1, 2)).masked_fill(later, -torch.inf).exp()
        o = scores @ v + (q * L.exp()) @ S
        return S * L[:, -1:].exp() + (k * (L[:, -1:] - L).exp()).transpose(1, 2) @ v, o
    return step, torch.zeros(batch, width, width), (batch, tokens, width), [*qkv.parameters(), *decay.parameters()]


def grouped(step):
    """Returns a loop over compiled groups of GROUP steps."""
    @torch.compile(dynamic=False)
    def group(state, xs):
        outputs = []
        for t in range(GROUP):
            state, output = step(state, xs[t], t)
            outputs.append(output)
        return state, torch.stack(outputs)

    def loop(start, x):
        state, outputs = start, []
        for xs in x.split(GROUP):
            state, output = group(state, xs)
            outputs.append(output)
        return torch.cat(outputs)
    return loop


def plain(step):
    def loop(state, x):
        outputs = []
        for t in range(len(x)):
            state, output = step(state, x[t], t)
            outputs.append(output)
        return torch.stack(outputs)
    return loop


def scanned(step, params, **options):
    scan = nt.Scan(step, params=params, **options)

    def loop(start, x):
        return scan(start, x)[1]
    loop.scan = scan
    return loop


def gradients(loop, start, x, params):
    """Returns the gradients, and the CPU seconds of a forward and a backward pass."""
    begin = time.process_time()
    found = torch.autograd.grad(loop(start, x).square().mean(), params)
    return found, time.process_time() - begin


def first(name, *given):
    begin = time.perf_counter()
    found, _ = gradients(*given)
    print(f"{name}: first pass after {time.perf_counter() - begin:.1f} s", flush=True)
    return found


def apart(found, wanted):
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(found, wanted))


def first_only(cell, steps):
    torch.manual_seed(0)
    step, start, shape, params = cell()
    first("  scan, 1T", scanned(step, params, compile=True, group=GROUP, memory="1T"), start, torch.randn(steps, *shape), params)


def measured(cell, steps, rounds):
    torch.manual_seed(0)
    step, start, shape, params = cell()
    x = torch.randn(steps, *shape)
    loops = {"plain": plain(step), "compiled": grouped(step), "scan": scanned(step, params, compile=True, group=GROUP)}
    wanted = first("  plain", loops["plain"], start, x, params)
    first("  compiled", loops["compiled"], start, x, params)
    found = first("  scan", loops["scan"], start, x, params)
    told = loops["scan"].scan.report()
    ample = scanned(step, params, compile=True, group=GROUP, memory="1T")
    first("  scan, 1T", ample, start, x, params)
    state = sum(s.numel() * s.element_size() for s in (start if isinstance(start, tuple) else (start,)))
    tape = ample.scan.report().tape
    memory = 2 * sum(p.numel() * p.element_size() for p in params) + tape * (steps // GROUP) // 10 + 2 * (state + 1000)
    loops["1/10"] = scanned(step, params, compile=True, group=GROUP, memory=memory)
    again = first("  scan, 1/10", loops["1/10"], start, x, params)
    print(f"  gradients: {apart(found, wanted):.0e} from autograd; budgets bit-identical: "
          f"{all(map(torch.equal, found, again))}")
    told = loops["1/10"].scan.report()
    print(f"  tape {tape / GROUP:.0f} bytes per step, state {told.state}; 1/10: {told.plan.chosen}, budget {memory}, "
          f"peak {told.counted_peak + told.charged}, {told.extra_steps} extra steps, planned {told.plan.overhead:.0%}")
    rows = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            rows[name].append(gradients(loop, start, x, params)[1])
    for name, row in rows.items():
        times = [statistics.median([a / b for a, b in zip(row, rows[base])]) for base in ("plain", "compiled")]
        print(f"  {name}: {1e6 * statistics.median(row) / steps:.1f} us per step, {times[0]:.2f} x plain, "
              f"{times[1]:.2f} x compiled", flush=True)


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--steps", type=int, default=800)
parser.add_argument("--first", action="store_true")
parser.add_argument("cells", nargs="*", default=["rnn", "lif", "gru", "gla"])
given = parser.parse_args()
torch.set_num_threads(1)
for name in given.cells:
    print(name, flush=True)
    steps = given.steps // GROUP * GROUP
    if given.first:
        first_only(globals()[name], steps)
    else:
        measured(globals()[name], steps, given.rounds)
