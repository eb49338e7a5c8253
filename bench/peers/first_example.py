#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of the first example of docs/pytorch.md, forward and backward: the plain loop, and neap.torch.scan without a
budget and with two. Prints the least of REPEATS runs each; only the first one measures the step.
    first_example.py [REPEATS]    (default: 4)
"""
import sys
import time

import torch

import neap.torch as nt

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 4
torch.set_num_threads(1)
torch.manual_seed(0)
gru, readout = torch.nn.GRUCell(8, 32), torch.nn.Linear(32, 2)
x, h0 = torch.randn(2000, 16, 8), torch.zeros(16, 32)


def step(h, x_t, t):
    h = gru(x_t, h)
    return h, h


def plain():
    h, outputs = h0, []
    for x_t in x:
        h = gru(x_t, h)
        outputs.append(h)
    return torch.stack(outputs)


def scan(memory):
    return nt.scan(step, h0, x, memory=memory)[1]


def seconds(forward):
    gru.zero_grad()
    start = time.process_time()
    readout(forward()).pow(2).mean().backward()
    return time.process_time() - start


print(f"plain loop: {min(seconds(plain) for _ in range(REPEATS)):.2f} s")
for memory in (None, "4M", "512K"):
    least = min(seconds(lambda: scan(memory)) for _ in range(REPEATS))
    print(f"memory={memory}: {least:.2f} s, planned overhead {100 * nt.report().plan.overhead:.0f}%")
