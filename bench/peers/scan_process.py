#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Growth of resident memory of a process during the forward and backward pass of a time loop with neap.torch, compared with the
memory budget: 30 settings (cells, batch sizes, lengths, budgets, groups, tiers), each in a separate process, with glibc's
allocator and with jemalloc. Inputs are a table of 1,000 rows that is allocated before; the loss is summed per step, so no outputs
are stored. A setting passes if the process grows by less than its budget + 25% + 20 MB.
    scan_process.py [--only NAME;NAME] [--jemalloc LIBRARY] [--json]
Prints a table. By default jemalloc is searched for; --jemalloc no omits it. Python must find neap: install the package, or set
PYTHONPATH to the folder `python` of the build.
"""
import argparse
import ctypes.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings

import torch

from highwater import growth

ROWS = 1000  # rows of inputs, used repeatedly


class _Spike(torch.autograd.Function):
    """A spike with a surrogate derivative that uses save_for_backward."""

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (1 + ctx.saved_tensors[0].abs()) ** 2


class _SpikeOnContext(_Spike):
    """The same, but the tensor for the backward pass is an attribute of ctx."""

    @staticmethod
    def forward(ctx, v):
        ctx.v = v.detach().clone()
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient / (1 + ctx.v.abs()) ** 2


class Steps:
    """Steps by name: (step, parameters, initial state) for a number of units and a batch size."""

    def __init__(self, inputs, units, batch):
        self.inputs, self.units, self.batch = inputs, units, batch
        self.zeros = torch.zeros(batch, units)

    def gru(self):
        cell = torch.nn.GRUCell(self.inputs, self.units)

        def step(h, x, t):
            h = cell(x, h)
            return h, h
        return step, cell.parameters(), self.zeros

    def rnn(self):
        cell = torch.nn.RNNCell(self.inputs, self.units)

        def step(h, x, t):
            h = cell(x, h)
            return h, h
        return step, cell.parameters(), self.zeros

    def lstm(self):
        cell = torch.nn.LSTMCell(self.inputs, self.units)

        def step(state, x, t):
            state = cell(x, state)
            return state, state[0]
        return step, cell.parameters(), (self.zeros, self.zeros.clone())

    def lif(self, spike=_Spike):
        layer = torch.nn.Linear(self.inputs, self.units)

        def step(v, x, t):
            v = 0.9 * v + layer(x)
            z = spike.apply(v - 1)
            return v - z.detach(), z
        return step, layer.parameters(), self.zeros

    def context(self):
        return self.lif(_SpikeOnContext)

    def dropout(self):
        cell = torch.nn.GRUCell(self.inputs, self.units)

        def step(h, x, t):
            h = torch.nn.functional.dropout(cell(x, h), 0.1)
            return h, h
        return step, cell.parameters(), self.zeros

    def hooks(self):
        """Saved tensors are stored as bfloat16."""
        cell = torch.nn.GRUCell(self.inputs, self.units)

        def step(h, x, t):
            with torch.autograd.graph.saved_tensors_hooks(torch.Tensor.bfloat16, torch.Tensor.float):
                h = torch.tanh(cell(x, h))
            return h, h
        return step, cell.parameters(), self.zeros

    def waves(self):
        """Many operations on each element."""
        gain = torch.nn.Parameter(torch.ones(self.units))

        def step(h, x, t):
            h = (gain * h + x.sum()).sin().mul(0.5).cos().tanh().sigmoid()
            return h, h
        return step, [gain], self.zeros

    def broadcast(self, first=(1,)):
        layer, own = torch.nn.Linear(self.inputs, self.units), torch.nn.Linear(self.units, self.units, bias=False)

        def step(h, x, t):
            h = torch.tanh(own(h) + layer(x))
            return h, h
        return step, [*layer.parameters(), *own.parameters()], torch.zeros(*first, self.units)

    def vector(self):
        return self.broadcast(())

    def views(self):
        """A state that is a view of a quarter of a larger tensor."""
        layer = torch.nn.Linear(self.units, 4 * self.units)

        def step(h, x, t):
            h = torch.tanh(layer(h) + x.sum())[:, :self.units]
            return h, h
        return step, layer.parameters(), self.zeros

    def parts(self):
        """A state of 40 tensors."""
        gain = torch.nn.Parameter(torch.ones(self.units))

        def step(state, x, t):
            state = {name: torch.tanh(gain * part) for name, part in state.items()}
            return state, state["0"]
        return step, [gain], {str(i): self.zeros.clone() for i in range(40)}

    def window(self):
        """Attention to the last 16 states, which are part of the state."""
        query, cell = torch.nn.Linear(self.units, self.units), torch.nn.GRUCell(self.inputs, self.units)

        def step(state, x, t):
            h, last = state
            weights = (last @ query(h)[..., None]).softmax(1)
            h = cell(x, h + (weights * last).sum(1))
            return (h, torch.cat([last[:, 1:], h[:, None]], 1)), h
        return step, [*query.parameters(), *cell.parameters()], (self.zeros, torch.zeros(self.batch, 16, self.units))

    def checkpoints(self):
        """A step that calls torch.utils.checkpoint."""
        from torch.utils.checkpoint import checkpoint
        cell, more = torch.nn.GRUCell(self.inputs, self.units), torch.nn.Linear(self.units, self.units)

        def step(h, x, t):
            h = checkpoint(lambda x, h: torch.tanh(more(cell(x, h))), x, h, use_reentrant=False)
            return h, h
        return step, [*cell.parameters(), *more.parameters()], self.zeros

    def convolution(self):
        layer = torch.nn.Conv2d(4, 4, 3, padding=1)

        def step(h, x, t):
            h = torch.tanh(layer(h))
            return h, h
        return step, layer.parameters(), torch.zeros(self.batch, 4, self.units, self.units)


# name: step, inputs, units, batch, T, budget, further arguments; DISK is replaced by a folder for tiers.
DISK = object()
SETTINGS = {
    "GRU(4, 8), 256K": ("gru", 4, 8, 1, 2_000, "256K", {}),
    "GRU(4, 8), 1M": ("gru", 4, 8, 1, 5_000, "1M", {}),
    "GRU(4, 8), 16M": ("gru", 4, 8, 1, 5_000, "16M", {}),
    "GRU(4, 8), 64M": ("gru", 4, 8, 1, 5_000, "64M", {}),
    "GRU(4, 8), groups of 1": ("gru", 4, 8, 1, 3_000, "32M", {"group": 1, "strategy": "revolve"}),
    "RNN(4, 4), 128K": ("rnn", 4, 4, 1, 2_000, "128K", {}),
    "RNN(4, 4), groups of 50": ("rnn", 4, 4, 4, 8_000, "64M", {"group": 50}),
    "LSTM(4, 8), 4M": ("lstm", 4, 8, 2, 2_000, "4M", {}),
    "LIF(4), 2M": ("lif", 4, 4, 1, 3_000, "2M", {}),
    "LIF(64), batch 16": ("lif", 32, 64, 16, 3_000, "16M", {}),
    "LIF(256), tensors on ctx": ("context", 32, 256, 32, 1_000, "32M", {}),
    "GRU(4, 8), dropout": ("dropout", 4, 8, 1, 2_000, "4M", {}),
    "GRU(4, 8), disk": ("gru", 4, 8, 1, 2_000, "1M", {"slow": DISK}),
    "state of 40 tensors": ("parts", 4, 4, 1, 500, "16M", {}),
    "GRU(64, 256), 8M": ("gru", 64, 256, 32, 500, "8M", {}),
    "GRU(64, 256), 64M": ("gru", 64, 256, 32, 600, "64M", {}),
    "GRU(64, 256), 200M": ("gru", 64, 256, 32, 1_500, "200M", {}),
    "GRU(64, 256), disk": ("gru", 64, 256, 32, 600, "32M", {"slow": DISK}),
    "GRU(64, 256), 128 KiB": ("gru", 64, 256, 128, 300, "64M", {}),
    "GRU(64, 256), 128 KiB, 200M": ("gru", 64, 256, 128, 400, "200M", {}),
    "GRU(64, 256), 128 KiB, disk": ("gru", 64, 256, 128, 300, "64M", {"slow": DISK}),
    "elementwise, 128 KiB": ("waves", 4, 1024, 32, 1_000, "64M", {}),
    "elementwise, 100 KB": ("waves", 4, 1000, 25, 1_000, "64M", {"group": 1}),
    "elementwise, 1 MiB": ("waves", 4, 4096, 64, 200, "100M", {}),
    "zeros(1, 64), batch 256": ("broadcast", 4, 64, 256, 1_000, "8M", {}),
    "zeros(64), batch 256": ("vector", 4, 64, 256, 1_000, "16M", {"strategy": "revolve", "group": 1}),
    "state is a view": ("views", 4, 128, 32, 1_000, "16M", {"strategy": "revolve", "group": 1}),
    "hooks of the step": ("hooks", 8, 128, 64, 800, "32M", {}),
    "checkpoint in the step": ("checkpoints", 8, 128, 64, 600, "32M", {}),
    "attention, batch 8": ("window", 8, 64, 8, 600, "32M", {}),
    "convolution": ("convolution", 4, 32, 8, 300, "64M", {}),
}


def run(name):
    """Runs one forward and backward pass and prints its memory and time."""
    import neap.torch as nt
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kind, inputs, units, batch, steps, memory, more = SETTINGS[name]
    step, params, start = getattr(Steps(inputs, units, batch), kind)()
    params, table = list(params), torch.randn(ROWS, batch, inputs)

    def give(t):
        return table[t % ROWS]

    def loss(output, t):
        return output.square().mean()

    def few():  # starts threads and loads libraries
        state, total = start, 0
        for t in range(5):
            state, output = step(state, give(t), t)
            total = total + loss(output, t)
        total.backward()
        for param in params:
            param.grad = None
    few()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        more = {key: folder if value is DISK else value for key, value in more.items()}
        scan = nt.Scan(step, params=params, memory=memory, reduce=loss, **more)
        begin = time.process_time()
        grown = growth(lambda: scan(start, give, steps)[1].backward())
        seconds = time.process_time() - begin
    told = scan.report()
    print(json.dumps({"grown": grown, "budget": told.memory, "counted": told.counted_peak + told.charged + told.graphs,
                      "group": told.group, "strategy": told.plan.chosen, "seconds": seconds,
                      "warnings": [str(one.message) for one in caught if "heap" in str(one.message)]}))


def measured(name, library):
    """The output of the process of a setting."""
    env = dict(os.environ, **({"LD_PRELOAD": library} if library else {}))
    done = subprocess.run([sys.executable, __file__, "--one", name], stdout=subprocess.PIPE, text=True, env=env)
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--only", default="", help="names of settings as in the table, separated by ;")
    parser.add_argument("--jemalloc", default="", help="file of the jemalloc library; no: without jemalloc [searched for]")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of a table")
    given = parser.parse_args()
    found = given.jemalloc or ctypes.util.find_library("jemalloc") or "no"
    libraries = {platform.libc_ver()[0] or "C library": "", **({} if found == "no" else {"jemalloc": found})}
    if not given.json:
        print("| setting | T | budget | counted |", " | ".join(f"{kind} | ok" for kind in libraries), "|")
        print("|---|---|---|---|" + "---|---|" * len(libraries))
    bad = 0
    for name in SETTINGS:
        if given.only and name not in given.only.split(";"):
            continue
        rows = {kind: measured(name, library) for kind, library in libraries.items()}
        if given.json:
            print(json.dumps({"setting": name, **rows}), flush=True)
            continue
        cells, first = [], next((row for row in rows.values() if row), None)
        for row in rows.values():
            ok = row is not None and row["grown"] < 1.25 * row["budget"] + 20e6
            bad += not ok
            cells += ["failed" if row is None else f"{row['grown'] / 1e6:.1f} MB, {row['seconds']:.0f} s", "yes" if ok else "no"]
        told = ("", "") if first is None else (f"{first['budget'] / 1e6:.2f} MB", f"{first['counted'] / 1e6:.2f} MB")
        print(f"| {name} | {SETTINGS[name][4]:,} | {told[0]} | {told[1]} |", " | ".join(cells), "|", flush=True)
    if not given.json:
        print(f"{bad} settings exceed budget + 25% + 20 MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2])
    else:
        main()
