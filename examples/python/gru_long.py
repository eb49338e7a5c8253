#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A GRU on a long sequence with a memory budget; the gradient is the one of plain autograd. With a folder, states are
offloaded to files there. For 100,000 steps plain autograd would store 26 GB: gru_long.py 100000 1G /var/tmp
"""
import argparse
import time

import torch

import neap.torch as nt

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("steps", type=int, nargs="?", default=10_000)
parser.add_argument("memory", nargs="?", default="64M", help="memory budget in bytes, such as 1G (default 64M)")
parser.add_argument("folder", nargs="?", help="folder for offloaded states")
steps, memory, folder = vars(parser.parse_args()).values()


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
