#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/pytorch.md as a program: a time loop whose saved tensors do not fit in memory. The memory of the process is
limited to 128 MB more than it has at the start. The plain autograd loop runs out of memory; neap.torch.scan computes
the gradient of the same cell.
Requires PyTorch and neap's Python package (pip install .); if one of them is missing, prints this and exits with 77.
"""
# %% Imports
import argparse
import resource
import sys

try:
    import torch

    import neap
    import neap.torch as nt
except ImportError as error:
    print(f"pytorch.py: {error}. Install both with: pip install . torch", file=sys.stderr)
    sys.exit(77)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("steps", nargs="?", type=int, default=400, help="steps of the loop (default: 400)")
STEPS = parser.parse_args().steps
ROOM = 128 << 20
BATCH, WIDTH = 256, 128  # a state takes 128 KiB: what is refused is a tensor, which PyTorch reports, not a small object
torch.set_num_threads(1)
torch.manual_seed(0)
gru, readout = torch.nn.GRUCell(16, WIDTH), torch.nn.Linear(WIDTH, 2)
parameters = [*gru.parameters(), *readout.parameters()]


def step(h, x, t):
    """(state, input, t) -> (state, output)"""
    h = gru(x, h)
    return h, h


def loss_of(out, t):
    """The contribution of a step to the loss."""
    return readout(out).pow(2).mean()


def loop(x):
    """The plain PyTorch loop."""
    h, loss = torch.zeros(BATCH, WIDTH), 0
    for t in range(len(x)):
        h, out = step(h, x[t], t)
        loss = loss + loss_of(out, t)
    return loss


def scan(x, memory):
    """The same loss with neap."""
    return nt.scan(step, torch.zeros(BATCH, WIDTH), x, memory=memory, reduce=loss_of, params=parameters)[1]


def gradient(loss):
    for p in parameters:
        p.grad = None
    loss.backward()
    return [p.grad.clone() for p in parameters]


# %% A short sequence fits both ways: the gradients are bit-identical
x = torch.randn(STEPS, BATCH, 16)
plain, planned = gradient(loop(x[:40])), gradient(scan(x[:40], "16M"))
if not all(map(torch.equal, plain, planned)):
    sys.exit("40 steps: the gradients differ")
print("40 steps: the gradients are bit-identical")

# %% The whole sequence, with a limit on the memory of the process
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    gradient(loop(x))
    print(f"{STEPS} steps fit in {ROOM >> 20} MB: pass a larger number of steps")
except (RuntimeError, MemoryError) as error:
    said = (str(error).splitlines() or [type(error).__name__])[0]
    print(f"{STEPS} steps with plain autograd in {ROOM >> 20} MB: out of memory ({said})")

# %% With neap: a budget of 1/8 of that
whole = gradient(scan(x, "16M"))
print(f"{STEPS} steps with neap: norm of the gradient {sum(g.pow(2).sum() for g in whole).sqrt():.6f}")
print(nt.report())

# %% A budget that is too small is rejected; the error reports the minimum
try:
    scan(x, "1K")
except neap.BudgetError as error:
    print(error)
