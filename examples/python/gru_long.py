#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A GRU over a long sequence within a budget, with the gradient of plain autograd. With a folder, states
go to files there.
    gru_long.py [STEPS] [MEMORY] [FOLDER]
"""
import sys
import time

import torch

import neap.torch as nt

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
memory = sys.argv[2] if len(sys.argv) > 2 else "64M"
folder = sys.argv[3] if len(sys.argv) > 3 else None


class Cell(torch.nn.Module):
    """(state, input, t) -> (state, output)"""

    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRUCell(16, 256)

    def forward(self, h, x, t):
        h = self.gru(x, h)
        return h, h[:, :1]


cell = Cell()
scan = nt.Scan(cell, memory=memory, slow=folder)
x = torch.randn(steps, 32, 16)
begin = time.perf_counter()
last, outputs = scan(torch.zeros(32, 256), x)
loss = outputs.pow(2).mean()
loss.backward()
print(f"{steps} steps in {time.perf_counter() - begin:.1f} s, loss {loss.item():.6f}")
print(scan.report())
