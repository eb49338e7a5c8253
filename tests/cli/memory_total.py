#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole process has a budget: random runs take no more than is said before they start.

    memory_total.py [RUNS [SEED]]
"""
import json
import os
import random
import re
import subprocess
import sys

from harness import NEAP, Folder, Tap

PYTHON = "/usr/bin/python3"  # Debian's has NumPy and h5py
# Arrays are written by a process of their own: what this one takes would count as the runs'.
WRITE = """
import sys, h5py, numpy as np
kind, path = sys.argv[1:]
rng = np.random.default_rng(4)
samples, steps, features = (24, 6000, 40) if kind == "windows" else (96, 300, 64)
arrays = {"x": rng.normal(0, 1, (samples, steps, features)), "y": np.arange(samples) % 3,
          "lengths": rng.integers(steps // 2, steps + 1, samples)}
if path.endswith("npz"):
    (np.savez if kind == "npz" else np.savez_compressed)(path, **arrays)
else:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            packed = {"chunks": (8, steps, features), "compression": 1} if kind == "packed" and name == "x" else {}
            file.create_dataset(name, data=array, **packed)
"""
MIB = 1 << 20
CELLS = ["lif", "alif", "adlif", "seadlif", "brf", "cubalif", "egru", "lstm", "gru", "rnn"]


def drawn(draw, folder, number, most):
    """A run: its subcommand with arguments, but for budgets."""
    units, steps = draw.choice([10, 70, 700, 3000]), draw.choice([20, 200, 1000, 4000])
    batch = draw.choice([1, 7, 32, 128, 512])
    width = draw.choice([8, 32, 128, 400])
    while batch * steps * (width + units) > most or batch * units > 1e6:
        steps = max(steps // 2, 10)
        batch = max(batch // 2, 1)
    layers = ",".join(f"{draw.choice(CELLS)}:{width}{draw.choice(['', 'r'])}"
                      for _ in range(draw.choice([1, 1, 2])))
    samples = max(2 * batch, 8)
    data = (f"randman:units={units},steps={steps},samples={samples},part=train,classes=2,"
            f"spikes={draw.choice([1, 3])}")
    more = ["--net", layers + ",li", "--batch", batch, "--seed", number + 1]
    if draw.random() < 0.3:
        more += ["--slow", draw.choice([folder, "mem:2M"])]
        more += ["--slow-in-memory"]
    if draw.random() < 0.3:
        more += ["--threads", draw.choice([1, 2, 8])]
    if number % 3 == 2:
        return ["compare", data, *more, "--strategy", "auto", "--strategy", "standard",
                "--repeats", 1]
    return ["train", data, *more, "--epochs", 2, "--out", os.path.join(folder, f"run{number}"),
            "--optimizer", draw.choice(["adam", "sgd"])]


def run(arguments):
    """Code, report or None, line of failure, largest resident bytes as the system counts them."""
    child = subprocess.Popen([NEAP, *map(str, arguments), "--json"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, said = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    report = json.loads(out) if child.returncode == 0 else None
    return child.returncode, report, said.strip(), usage.ru_maxrss * 1024


def too_much(report, resident, total):
    process = report["process"]
    peak = max(process["measured"], resident)
    if total and process["most"] > total:
        return f"says {process['most']}, was given {total}"
    parts = sum(process[k] for k in ("arena", "slow", "weights", "gradients", "optimizer",
                                     "scratch", "inputs", "planning", "program"))
    if parts != process["most"]:
        return f"parts are {parts}, {process['most']} in all"
    if peak > process["most"]:
        return f"took {peak / MIB:.1f} MiB, said {process['most'] / MIB:.1f}: {process}"
    return None


def case(draw, folder, number, slack, arguments=None):
    arguments = arguments or drawn(draw, folder, number, 6e7 if len(sys.argv) > 1 else 2e7)
    name = " ".join(map(str, arguments))
    if number % 4 == 3:  # without a total the same is said, of a budget of the arena
        code, report, said, resident = run(arguments + ["--memory", "8M"])
        if code:
            return None if "at least" in said else f"{name}: {said}"
        slack.append(report["process"]["most"] / max(report["process"]["measured"], 1))
        problem = too_much(report, resident, 0)
        return problem and f"{name}: {problem}"
    code, _, said, _ = run(arguments + ["--memory-total", "8M"])
    least = re.search(r"a total of at least (\d+) bytes", said)
    if code not in (1, 2) or not least or "\n" in said:
        return f"{name}: 8 MiB ended with {code}: {said}"
    total = int(int(least.group(1)) * (1 if number % 2 else draw.uniform(1, 4)))
    for _ in range(4):  # what is beside the arena may be named first, then the arena's least
        code, report, said, resident = run(arguments + ["--memory-total", total])
        least = re.search(r"a total of at least (\d+) bytes", said)
        if code == 0 or not least:
            break
        total = int(least.group(1))
    if code:
        return f"{name}: {total} bytes ended with {code}: {said}"
    slack.append(report["process"]["most"] / max(report["process"]["measured"], 1))
    problem = too_much(report, resident, total)
    return problem and f"{name} --memory-total {total}: {problem}"


def dense(folder, kind, budget):
    """Arguments of a run on numbers: arrays in an archive or in HDF5, plain or packed, whole or in windows."""
    path = os.path.join(folder, kind + (".npz" if kind in ("npz", "deflated") else ".h5"))
    if not os.path.exists(path):
        subprocess.run([PYTHON, "-c", WRITE, kind, path], check=True)
    return ["train", path, "--net", "gru:16,li", "--batch", 8 if kind == "windows" else 32, "--epochs", 1,
            *(["--inputs", "2M"] if kind == "windows" else []), "--out", os.path.join(folder, f"run-{kind}{budget}")]


def resumed(folder):
    """A run that goes on keeps its total."""
    out = os.path.join(folder, "resumed")
    data = ["randman:units=10,steps=50,samples=40,part=train", "--net", "lif:8r,li", "--batch", 8]
    code, report, said, _ = run(["train", *data, "--memory-total", "48M", "--epochs", 1,
                                 "--out", out])
    if code or report["process"]["total"] != 48 * MIB:
        return f"{code}: {said}"
    code, report, said, resident = run(["train", "--resume", "--out", out, "--epochs", 2])
    if code or report["process"]["total"] != 48 * MIB:
        return f"resumed, {code}: {said} {report and report['process']}"
    return too_much(report, resident, 48 * MIB)


def measuring(folder):
    """What is measured before a run takes at most 16 MiB beyond the planned arena, whatever the budget."""
    data = ["randman:steps=1500,spikes=40,samples=32,classes=4,part=train", "--net", "lif:256r,li", "--width", 1,
            "--recurrent-scale", 0.1, "--batch", 32, "--memory", "24M", "--slow", folder, "--threads", 1]
    for more in (["compare", *data, "--strategy", "async", "--no-reference"],
                 ["train", *data, "--strategy", "async", "--epochs", 1, "--out", os.path.join(folder, "measured")]):
        code, report, said, resident = run(more)
        if code:
            return f"{more[0]}: {code}: {said}"
        process = report["process"]
        if process["planning"] > 16 * MIB or process["arena"] > 24 * MIB:
            return f"{more[0]}: measuring took {process['planning'] / MIB:.1f} MiB beyond the arena: {process}"
        # A training process reports the budget as its arena; all else may not hide what measuring took.
        others = sum(process[k] for k in ("weights", "gradients", "optimizer", "scratch", "inputs", "program"))
        if max(resident, process["measured"]) > others + report.get("peak_planned", process["arena"]) + 16 * MIB:
            return f"{more[0]}: took {resident / MIB:.1f} MiB: {process}"
    return None


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 17
    slack = []
    with Tap() as tap, Folder() as folder:
        for number in range(runs):
            draw = random.Random(seed * 1000 + number)
            tap.run(f"run {number} takes what was said", case, draw, folder, number, slack)
        able = subprocess.run([PYTHON, "-c", "import h5py"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        for kind in ("npz", "deflated", "h5", "packed", "windows") if able else ():
            for budget in 1, 3:  # the least total, and a budget of the arena
                tap.run(f"numbers, {kind}: takes what was said", case, random.Random(seed), folder, budget, slack,
                        dense(folder, kind, budget))
        if not able:
            tap.skip("numbers take what was said", "no numpy, or no h5py")
        tap.run("a run that goes on keeps its total", resumed, folder)
        tap.run("measuring takes at most 16 MiB beyond the arena", measuring, folder)
        slack.sort()
        if slack:
            print(f"# said over taken: median {slack[len(slack) // 2]:.2f}, "
                  f"least {slack[0]:.2f}, most {slack[-1]:.2f}")
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
