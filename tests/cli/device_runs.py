#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs on a device, with the fake CUDA driver: a run goes on with its device or on the other side, with every optimizer; answers per step,
spikes and membranes are those of the processor.
    device_runs.py [all]    one optimizer by chance; all: each
"""
import json
import os
import random
import sys

from device import DEVICE, FAKE, ISA, said, weights
from harness import Folder, Tap, neap

DATA = "randman:steps=40,samples=12,units=10,classes=3"
RUN = ["--net", "lif:9r,li", "--threads", "1", "--batch", "5", "--quiet", "--schedule", "constant"]
OPTIMIZERS = ["sgd", "sgd --momentum 0", "adam", "adamw --weight-decay 0.1"]


def steps(folder, out, *rounds):
    """Sessions of one run: options and environment of each. None, or what went wrong."""
    for number, (more, env) in enumerate(rounds):
        start = ["train", "--out", out, "--resume"] if number else ["train", DATA, *RUN, "--out", out]
        done = neap(*start, *more, env=env, cwd=folder)
        if done.returncode:
            return f"{out}, session {number}: {said(done)}"
    return None


def other_side(folder, optimizer):
    """Three epochs on one side, and as two sessions on both sides: an epoch, then two."""
    options = ["--optimizer", *optimizer.split()]
    name = optimizer.replace(" ", "")
    one, three = ["--epochs", "1"], ["--epochs", "3"]
    here, there = ["--device", "cpu"], DEVICE
    problem = (steps(folder, "whole" + name, ([*options, *three], ISA)) or
               steps(folder, "there" + name, ([*options, *one], ISA), ([*there, *three], FAKE)) or
               steps(folder, "back" + name, ([*options, *one, *there], FAKE), ([*here, *three], ISA)))
    if problem:
        return problem
    found = {run: weights(os.path.join(folder, run + name)) for run in ("whole", "there", "back")}
    return None if len(set(found.values())) == 1 else f"weights differ: {found}"


def keeps_device(folder):
    """The device is a way of running: it is kept, and its budget where the other side has so much."""
    problem = steps(folder, "kept", (["--epochs", "1", *DEVICE, "--slow", "pinned:1M"], FAKE))
    if problem:
        return problem
    with open(os.path.join(folder, "kept", "run.json"), encoding="utf-8") as file:
        if json.load(file)["sweep"]["device"] != "cuda":
            return "run.json has no device"
    done = neap("train", "--out", "kept", "--resume", "--epochs", "2", env=dict(FAKE, NEAP_CUDA_DRIVER="libnone.so"), cwd=folder)
    if done.returncode != 2 or "no CUDA driver" not in done.stderr:
        return f"without a driver: {said(done)}"
    problem = steps(folder, "host", (["--epochs", "1"], ISA), (["--epochs", "2", *DEVICE], dict(FAKE, FAKE_CUDA="bytes=4000000")))
    return problem


def same_outputs(folder):
    """Answers over time, of steps and of sums, and what units did: texts and archives."""
    series = "randman:steps=40,samples=4,units=10,classes=3"
    problem = steps(folder, "model", (["--epochs", "1"], ISA)) or \
        steps(folder, "dense", (["--epochs", "1", "--net", "lstm:5,egru:4,li"], ISA))
    if problem:
        return problem
    archives = ["--spikes", "s.npz", "--membranes", "m.npz"]
    for model, *more in ["model", *archives], ["dense", *archives], ["model", "--every", "5ms"], \
            ["model", "--every", "5ms", "--window", "10ms"]:
        found = []
        for side, env in ([], ISA), (DEVICE, FAKE):
            done = neap("predict", model, series, *more, *side, env=env, cwd=folder)
            if done.returncode:
                return f"{more}: {said(done)}"
            files = [name for name in more if name.endswith(".npz")]
            found.append([done.stdout] + [open(os.path.join(folder, name), "rb").read() for name in files])
        if found[0] != found[1]:
            return f"{more}: {found[1][0][:300]} for {found[0][0][:300]}"
    return None


def no_spikes(folder):
    """A layer whose state has no spikes: one line, and no archive."""
    problem = steps(folder, "hard", (["--net", "lif:9:reset=hard,li", "--epochs", "1"], ISA))
    if problem:
        return problem
    done = neap("predict", "hard", DATA, "--spikes", "none.npz", *DEVICE, env=FAKE, cwd=folder)
    if done.returncode != 2 or "layer0 of" not in done.stderr or os.path.exists(os.path.join(folder, "none.npz")):
        return said(done)
    return None


def main():
    every = sys.argv[1:] == ["all"]
    dice = random.Random(int(os.environ.get("NEAP_SEED", os.getpid())))
    with Tap() as tap, Folder() as folder:
        for optimizer in OPTIMIZERS if every else [dice.choice(OPTIMIZERS)]:
            tap.run(f"a run goes on on the other side, both ways: {optimizer}", other_side, folder, optimizer)
        tap.run("a resumed run keeps its device", keeps_device, folder)
        tap.run("answers over time, spikes and membranes", same_outputs, folder)
        tap.run("spikes that a device does not keep: one line", no_spikes, folder)


if __name__ == "__main__":
    sys.exit(main())
