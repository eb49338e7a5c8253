#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`--math tf32x3` and `bf16` with the fake CUDA driver: one model for all budgets and tiers, which other math does not give; a run and
its model keep their math on devices; what has no tensor cores is refused in one line.
"""
import json
import os
import sys

from device import DEVICE, FAKE, ISA, said, weights
from harness import Folder, Tap, neap

DATA = "randman:steps=24,samples=8,units=8,classes=2"
RUN = ["--threads", "1", "--batch", "4", "--memory", "1M", "--quiet", "--validation", "0"]
NET = ["--net", "lstm:5,li"]
MATHS = "exact", "tf32x3", "bf16"


def train(out, *more, env=FAKE, cwd=None):
    return neap("train", DATA, *RUN, "--out", out, *more, env=env, cwd=cwd)


def one_model(folder):
    """A model for each math, and the same one with little memory."""
    found = {}
    for math in MATHS:
        for name, more in ("whole", []), ("small", ["--memory", "12K", "--slow", "pinned:1M"]):
            done = train(f"{math}-{name}", *NET, *DEVICE, "--epochs", "1", "--math", math, *more, cwd=folder)
            if done.returncode:
                return f"{math}, {name}: {said(done)}"
            found.setdefault(math, set()).add(weights(os.path.join(folder, f"{math}-{name}")))
    if any(len(models) != 1 for models in found.values()):
        return f"models depend on memory: {found}"
    return None if len(set.union(*found.values())) == 3 else f"math makes no difference: {found}"


def resumed(folder):
    """A run that goes on has the model of one that did not stop; it does not change its math."""
    with open(os.path.join(folder, "bf16-whole", "run.json"), encoding="utf-8") as file:
        if json.load(file)["settings"]["math"] != "bf16":
            return "run.json has no math"
    for name, steps in ("two", [["--epochs", "1"], ["--resume", "--epochs", "2"]]), ("once", [["--epochs", "2"]]):
        for more in steps:
            done = train(name, *NET, *DEVICE, "--schedule", "constant", "--warmup", "0", "--math", "bf16", *more, cwd=folder)
            if done.returncode:
                return f"{name}: {said(done)}"
    if weights(os.path.join(folder, "two")) != weights(os.path.join(folder, "once")):
        return "a run that was resumed has another model"
    done = neap("train", "--resume", "--out", "two", "--epochs", "3", "--quiet", env=FAKE, cwd=folder)
    if done.returncode:
        return said(done)
    done = neap("train", "--resume", "--out", "two", "--epochs", "4", "--math", "exact", env=FAKE, cwd=folder)
    if done.returncode != 2 or "--math bf16, not exact" not in done.stderr:
        return said(done)
    done = neap("train", "--resume", "--out", "two", "--epochs", "4", "--device", "cpu", env=ISA, cwd=folder)
    return None if done.returncode == 2 and "--math bf16 needs a GPU" in done.stderr else said(done)


def evaluated(folder):
    """A model is evaluated with its math on a device, and exactly on the processor."""
    losses = {}
    for name, model, side, env in (("device", "bf16-whole", DEVICE, FAKE), ("cpu", "bf16-whole", [], ISA),
                                   ("exact device", "exact-whole", DEVICE, FAKE), ("exact", "exact-whole", [], ISA)):
        done = neap("eval", model, DATA, "--json", *side, env=env, cwd=folder)
        if done.returncode:
            return f"{name}: {said(done)}"
        losses[name] = json.loads(done.stdout)["loss"]
    if losses["exact"] != losses["exact device"] or losses["device"] == losses["cpu"]:
        return f"losses are {losses}"
    done = neap("predict", "bf16-whole", DATA, *DEVICE, env=FAKE, cwd=folder)
    return said(done) if done.returncode else None


def compared(folder):
    """All strategies have one hash; another one than without."""
    found = {}
    for math in MATHS[:2]:
        done = neap("compare", DATA, *NET, "--batch", "4", "--threads", "1", "--memory", "12K", "--repeats", "1", "--strategy", "bptt", "--strategy",
                    "revolve", "--json", "--math", math, *DEVICE, env=FAKE, cwd=folder)
        if done.returncode:
            return f"{math}: {said(done)}"
        found[math] = {run["grad_hash"] for run in json.loads(done.stdout)["runs"] if run["grad_hash"]}
    return None if all(len(hashes) == 1 for hashes in found.values()) and len(set.union(*found.values())) == 2 else f"hashes are {found}"


REFUSED = [
    ([*NET, "--math", "bf16"], "--math bf16 needs a GPU"),
    ([*NET, "--math", "tf32x3", "--device", "cpu"], "--math tf32x3 needs a GPU"),
    (["--net", "lif:5r,li", "--math", "tf32x3", *DEVICE], "have products for tensor cores, not those of lif"),
    ([*NET, "--math", "fp16", *DEVICE], "exact, tf32x3, bf16"),
]


def refused(folder, more, words):
    done = train("x", *more, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning")]
    if done.returncode != 2 or not lines or words not in done.stderr:
        return f"{len(lines)} lines, {said(done)}"
    return "a folder is there" if os.path.exists(os.path.join(folder, "x")) else None


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("one model for each math", one_model, folder)
        tap.run("a run keeps its math", resumed, folder)
        tap.run("models are evaluated with their math", evaluated, folder)
        tap.run("one hash for all strategies", compared, folder)
        for more, words in REFUSED:
            tap.run(f"refused: {' '.join(more)}", refused, folder, more, words)


if __name__ == "__main__":
    sys.exit(main())
