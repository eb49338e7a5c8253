#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Exact gradients compared with truncated backpropagation. At the end of a sequence, a GRU must recall the symbol
that was marked near its beginning. Truncated gradients do not reach the mark, so the network does not learn the
task; exact gradients learn it, here with a memory budget. Prints the accuracy for each truncation window; --plot
FILE draws it (requires matplotlib).
"""
import argparse

import torch

import neap.torch as nt

SYMBOLS = 4

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=60, help="steps per sequence (default 60)")
parser.add_argument("--updates", type=int, default=400, help="weight updates for each window (default 400)")
parser.add_argument("--windows", type=int, nargs="*", help="truncation windows in steps (default: 1/8, 1/2 and 3/4 of STEPS)")
parser.add_argument("--memory", default="256K", help="memory budget of the exact gradient (default 256K)")
parser.add_argument("--hidden", type=int, default=32)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--plot", metavar="FILE", help="write a plot to FILE (svg, png or pdf)")
given = parser.parse_args()
torch.set_num_threads(1)  # tensors are small
windows = given.windows or [max(1, given.steps // 8), given.steps // 2, 3 * given.steps // 4]


class Cell(torch.nn.Module):
    """(state, input, t) -> (state, output)"""

    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRUCell(SYMBOLS + 1, given.hidden)
        n = given.hidden  # time constants of 1 to STEPS steps (chrono initialisation, Tallec and Ollivier 2018)
        keep = torch.log(1 + torch.rand(n) * (given.steps - 1))
        self.gru.bias_ih.data[n:2 * n] = keep
        self.gru.bias_hh.data[n:2 * n] = 0

    def forward(self, h, x, t):
        return self.gru(x, h), None


def sequences(count, generator):
    """Random symbols [T, count, SYMBOLS + 1], one of them marked in the first fifth; and the marked symbols."""
    symbols = torch.randint(0, SYMBOLS, (given.steps, count), generator=generator)
    at = torch.randint(0, max(1, given.steps // 5), (count,), generator=generator)
    x = torch.zeros(given.steps, count, SYMBOLS + 1)
    x.scatter_(2, symbols.unsqueeze(2), 1)
    x[at, torch.arange(count), SYMBOLS] = 1
    return x, symbols[at, torch.arange(count)]


def last_state(cell, scan, h, x, window):
    """The final state; its gradient is propagated through `window` steps (None: all steps)."""
    if window is None:
        return scan(h, x)[0]
    with torch.no_grad():
        for t in range(given.steps - window):
            h, _ = cell(h, x[t], t)
    for t in range(max(0, given.steps - window), given.steps):
        h, _ = cell(h, x[t], t)
    return h


def accuracy(window):
    """Accuracy on new sequences after training, and the report of the scan."""
    torch.manual_seed(0)
    cell, readout = Cell(), torch.nn.Linear(given.hidden, SYMBOLS)
    scan = nt.Scan(cell, memory=given.memory)
    optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()], lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    start = torch.zeros(given.batch, given.hidden)
    for _ in range(given.updates):
        x, labels = sequences(given.batch, generator)
        loss = torch.nn.functional.cross_entropy(readout(last_state(cell, scan, start, x, window)), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(cell.parameters(), 1)
        optimizer.step()
    report = scan.report()
    with torch.no_grad():
        x, labels = sequences(1000, generator)
        h = last_state(cell, scan, torch.zeros(1000, given.hidden), x, None)
        return (readout(h).argmax(1) == labels).float().mean().item(), report


def plot(rows, path):
    """Plots accuracy against window; the horizontal line is the exact gradient."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(6, 3.5), constrained_layout=True)
    axes.plot([window for window, _ in rows[:-1]], [100 * share for _, share in rows[:-1]], "o-", label="truncated")
    axes.axhline(100 * rows[-1][1], color="C1", label=f"exact, in {given.memory}")
    axes.axhline(100 / SYMBOLS, color="gray", linestyle=":", label="chance")
    axes.set(xlabel=f"window, of {given.steps} steps", ylabel="accuracy in %", ylim=(0, 103), xlim=(0, given.steps))
    axes.legend()
    figure.savefig(path)
    print(f"plot: {path}")


rows = []
print("window  accuracy")
for window in [*windows, None]:
    share, report = accuracy(window)
    rows.append((window, share))
    print(f"{'exact' if window is None else window:>6}  {100 * share:.1f}%", flush=True)
print(f"chance level {100 / SYMBOLS:.0f}%; report of the exact gradient in {given.memory}:\n{report}")
if given.plot:
    try:
        plot(rows, given.plot)
    except ImportError:
        print("matplotlib is not installed: no plot was written")
