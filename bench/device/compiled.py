#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiled groups as CUDA graphs, compared with calls of the compiled functions without graphs: bits of the gradients, and
microseconds per step of forward and backward passes, for a GRU with 256 units and a batch of 32.
    compiled.py [--steps T] [--device cuda]
"""
import argparse
import time
import warnings

import torch

import neap.torch as nt
import neap.torch.compiled.groups as groups


class Gru(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(64, 256)

    def forward(self, h, x, t):
        h = self.cell(x, h)
        return h, h[:, 0]


def passed(scan, cell, h, x):
    """Gradients, and seconds of the second pass."""
    for _ in range(2):
        cell.zero_grad(set_to_none=True)
        if x.is_cuda:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        scan(h, x)[1].sin().sum().backward()
        if x.is_cuda:
            torch.cuda.synchronize()
    return [p.grad.clone() for p in cell.parameters()], time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=4096)
    parser.add_argument("--device", default="cuda")
    asked = parser.parse_args()
    h, x = torch.zeros(32, 256, device=asked.device), torch.randn(asked.steps, 32, 64, device=asked.device)
    own, rows = groups.graphs_of, {}
    for name, found in (("calls", lambda device: None), ("graphs", own)):
        groups.graphs_of = found
        cell = Gru().to(asked.device)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows[name] = passed(nt.Scan(cell, compile=True, group=8, memory="64M"), cell, h, x)
        for one in caught:
            print(f"{name}: {one.message}")
        print(f"{name}: {1e6 * rows[name][1] / asked.steps:.1f} us per step, forward and backward (20 or less is right)")
    equal = all(map(torch.equal, rows["calls"][0], rows["graphs"][0]))
    print(f"gradients of graphs and of calls: {'equal' if equal else 'FAIL: differ'}")


if __name__ == "__main__":
    main()
