#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Memory of an autograd graph in addition to the storages that it saves: the constants GRAPH of neap.torch.measure, compared with
resident memory. For each kind of step, graphs are recorded and kept until the process has grown by 60 MB; the same is done for
states. Each kind runs in a separate process.
    graph_bytes.py [--group 20]
Prints a table; "ratio" is the modelled bytes divided by the measured ones. For jemalloc, set LD_PRELOAD.
"""
import argparse
import subprocess
import sys

import torch

from highwater import _status

ENOUGH = 60e6  # bytes


def steps():
    """Steps by name, and their initial states."""
    torch.manual_seed(0)
    gru, lstm, rnn = torch.nn.GRUCell(4, 8), torch.nn.LSTMCell(4, 8), torch.nn.RNNCell(4, 8)
    norm, linear, gain = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Parameter(torch.ones(8))
    zeros = torch.zeros(1, 8)

    def same(h):
        return h, h
    return {
        "GRU cell": (lambda s, x, t: same(gru(x, s)), zeros),
        "LSTM cell": (lambda s, x, t: same(lstm(x, s)), (zeros, zeros.clone())),
        "RNN cell": (lambda s, x, t: same(rnn(x, s)), zeros),
        "linear, norm, relu": (lambda s, x, t: same(norm(linear(s)).relu()), zeros),
        "six operations": (lambda s, x, t: same(((s * gain).sin().exp().log1p().sigmoid() * s).softmax(1)), zeros),
        "slices and cat": (lambda s, x, t: same(torch.cat([s[:, :4] * gain[:4], s[:, 4:]], 1)), zeros),
        "sum": (lambda s, x, t: same(s + gain), zeros),
        "20 states": (lambda s, x, t: same(tuple(part * gain for part in s)), tuple(zeros.clone() for _ in range(20))),
    }


def grown(make):
    """Bytes per object that ``make`` returns, measured while many are kept; and one such object."""
    kept = [make() for _ in range(20)]
    before, count = _status("VmRSS"), 0
    while _status("VmRSS") - before < ENOUGH:
        kept += [make() for _ in range(50)]
        count += 50
    return (_status("VmRSS") - before) / count, kept[-1]


def run(name, group):
    """A row of the table."""
    from neap.torch.runs import Run
    from neap.torch.trees import flatten
    torch.set_num_threads(1)
    step, start = steps()[name]
    leaves, shape = flatten(start)
    params = [cell.cell_contents for cell in step.__closure__]
    params = [one for part in params for one in
              (part.parameters() if isinstance(part, torch.nn.Module) else [part] if isinstance(part, torch.Tensor) else [])]
    x = torch.randn(1, 4)
    run = Run(step, 1 << 30, shape, None, None, lambda t: x, params, {p.data_ptr() for p in params} | {x.data_ptr()}, False)
    run.emitting = False
    first = run.state(leaves)
    for _ in range(3):
        run.record(first, 0, group, False, 1 << 60)
    graph, (_, _, nbytes) = grown(lambda: run.record(first, 0, group, False, 1 << 60))
    state, one = grown(lambda: run.state([leaf.clone() for leaf in leaves]))
    own = run.state_bytes(one)[0]
    print(f"| {name} | {graph:.0f} | {nbytes} | {nbytes / graph:.2f} | {state:.0f} | {own} | {own / state:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--group", type=int, default=20, help="steps per graph [20]")
    given = parser.parse_args()
    print("| step | graph, bytes | modelled | ratio | state, bytes | modelled | ratio |\n|---|---|---|---|---|---|---|", flush=True)
    for name in steps():
        subprocess.run([sys.executable, __file__, "--one", name, str(given.group)], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run(sys.argv[2], int(sys.argv[3]))
    else:
        main()
