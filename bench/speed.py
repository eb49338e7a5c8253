#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Targets of speed: PyTorch, neap and, with --before, an earlier version of neap, in turns in one run.

    bench/speed.py [--before FILE] [--rounds N] [--threads N]... [--only WORD]...

Prints one table in Markdown: time of a training step (forward and backward pass, medians), PyTorch's time divided by neap's
(median over the rounds), the memory by which each process grows in its first step, and whether both versions of neap compute the
same gradients to the bit. PyTorch runs its loop over the steps, or torch.nn.LSTM, GRU and RNN. Python must find PyTorch and
NumPy. FILE is bench/peers/peerstep in the build folder of the earlier version.
"""
import argparse
import os
import platform
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))

import cases  # noqa: E402
from beside import cpu, describe  # noqa: E402
from pairs import Bench  # noqa: E402
from process import Broken  # noqa: E402
from tables import seconds, size  # noqa: E402

# Name, case, precision, target on two threads without AMX. Steps are few where a step of PyTorch's loop takes more than 10 ms.
ROWS = (
    ("`lif`, 512 units, 2% spikes", cases.spiking(512, 0.02, 250), "float", 15),
    ("`lif`, 1024 units, 2% spikes", cases.spiking(1024, 0.02, 100), "float", 8),
    ("`lif`, 2048 units, 2% spikes", cases.spiking(2048, 0.02, 50), "float", 6),
    ("`lif`, 4096 units, 2% spikes", cases.spiking(4096, 0.02, 50), "float", 6),
    ("`lif`, 512 units, 12.5% spikes", cases.spiking(512, 0.125, 250), "float", None),
    ("`lif`, 512 units, 32% spikes", cases.spiking(512, 0.32, 250), "float", None),
    ("`lif`, 512 units, 50% spikes", cases.spiking(512, 0.5, 250), "float", 2.5),
    ("`lstm`, 512 units", cases.gated("lstm", 200), "float", None),
    ("`gru`, 512 units", cases.gated("gru", 200), "float", None),
    ("`rnn`, 512 units", cases.gated("rnn", 200), "float", None),
    ("`lstm`, 512 units, `bf16`", cases.gated("lstm", 200), "bf16", 1),
    ("`gru`, 512 units, `bf16`", cases.gated("gru", 200), "bf16", 1),
    ("`rnn`, 512 units, `bf16`", cases.gated("rnn", 200), "bf16", 1),
)
HEAD = ("network", "threads", "PyTorch", "neap before", "neap", "PyTorch / neap before", "PyTorch / neap", "target", "reached",
        "memory, PyTorch", "memory, before", "memory, neap", "gradients as before")


def cells(found, target, threads):
    """Columns after the number of threads. Targets are for two threads."""
    if isinstance(found, str):
        return [found] + [""] * (len(HEAD) - 3)
    earlier = "before_seconds" in found
    asked = target and threads == 2
    return [seconds(found["seconds"]), seconds(found["before_seconds"]) if earlier else "",
            seconds(found["neap_seconds"]), f"{found['before_ratio']:.1f}x" if earlier else "", f"{found['ratio']:.1f}x",
            f"{target:g}x" if asked else "", ("yes" if round(found["ratio"], 1) >= target else "no") if asked else "",
            size(found["growth"]), size(found["before_growth"]) if earlier else "", size(found["neap_growth"]),
            ("yes" if found["same_bits"] else "no") if earlier else ""]


def measure(options, case, precision, threads, folder):
    cell = "subtract" if case["kind"] == "lif" else case["kind"]
    before = options.before if precision == "float" else None  # earlier versions may not have bfloat16
    bench = Bench(options.helper, "", case, folder, options.rounds, before, precision)
    try:
        return bench.time("torch" if case["kind"] == "lif" else "gated", cell, "eager", threads, None)
    except Broken as error:
        return str(error)[:80]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", default=os.path.join(HERE, "../build/bench/peers/peerstep"), metavar="FILE",
                        help="neap's program for the comparison (default: build/bench/peers/peerstep)")
    parser.add_argument("--before", metavar="FILE", help="the same program of an earlier version")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="timed steps of each program (default 3)")
    parser.add_argument("--threads", action="append", type=int, metavar="N", help="threads; may be repeated (default 2 and 1)")
    parser.add_argument("--only", action="append", metavar="WORD", help="only rows whose name contains WORD; may be repeated")
    options = parser.parse_args()
    print(f"{cpu()}, {os.cpu_count()} processors, Linux {platform.release()}; neap {describe()}\n")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    for name, case, precision, target in ROWS:
        if options.only and not any(word in name for word in options.only):
            continue
        for threads in options.threads or (2, 1):
            with tempfile.TemporaryDirectory(prefix="neap-targets-") as folder:
                found = cells(measure(options, case, precision, threads, folder), target, threads)
            print("| " + " | ".join([f"{name}, {case['steps']} steps", str(threads)] + found) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
