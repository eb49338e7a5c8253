#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/pytorch.md as a program: a time loop whose tapes do not fit. The process may take 128 MB more than it has;
autograd's loop runs out of memory within it, and the same cell goes through neap.torch.scan to its gradient.
    examples/pages/pytorch.py [STEPS]    (default: 2000)
It wants PyTorch and neap's Python package (pip install .); without one of them it says so, and ends with code 77.
"""
# %% What is here
import resource
import sys

try:
    import torch

    import neap
    import neap.torch as nt
except ImportError as error:
    print(f"pytorch.py: {error}: nothing to show", file=sys.stderr)
    sys.exit(77)

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
ROOM = 128 << 20
torch.set_num_threads(1)
torch.manual_seed(0)
gru, readout = torch.nn.GRUCell(16, 128), torch.nn.Linear(128, 2)
parameters = [*gru.parameters(), *readout.parameters()]


def step(h, x, t):
    """(state, input, t) -> (state, output)"""
    h = gru(x, h)
    return h, h


def loss_of(out, t):
    """What a step adds to the loss."""
    return readout(out).pow(2).mean()


def loop(x):
    """The loop as people write it."""
    h, loss = torch.zeros(32, 128), 0
    for t in range(len(x)):
        h, out = step(h, x[t], t)
        loss = loss + loss_of(out, t)
    return loss


def scan(x, memory):
    """The same by neap."""
    return nt.scan(step, torch.zeros(32, 128), x, memory=memory, reduce=loss_of, params=parameters)[1]


def gradient(loss):
    for p in parameters:
        p.grad = None
    loss.backward()
    return [p.grad.clone() for p in parameters]


# %% A short sequence fits both ways: the same gradient, bit for bit
x = torch.randn(STEPS, 32, 16)
plain, planned = gradient(loop(x[:200])), gradient(scan(x[:200], "16M"))
if not all(map(torch.equal, plain, planned)):
    sys.exit("200 steps: other bits")
print("200 steps: the same bits")

# %% The whole one, with a limit on what the process may take from here on
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    gradient(loop(x))
    print(f"{STEPS} steps fit into {ROOM >> 20} MB: take more of them")
except (RuntimeError, MemoryError) as error:
    said = (str(error).splitlines() or [type(error).__name__])[0]
    print(f"{STEPS} steps by autograd within {ROOM >> 20} MB: no memory ({said})")

# %% By neap: an eighth of that
whole = gradient(scan(x, "16M"))
print(f"{STEPS} steps by neap: a gradient of norm {sum(g.pow(2).sum() for g in whole).sqrt():.6f}")
print(nt.report())

# %% A budget that is too small is refused, with one that is large enough
try:
    scan(x, "1K")
except neap.BudgetError as error:
    print(error)
