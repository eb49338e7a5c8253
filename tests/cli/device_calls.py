#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The n-th call of the CUDA driver fails in a training, or the n-th piece of work of a device: the run ends with the weights of the
processor, or with one line and no model of its own. With the fake CUDA driver.
    device_calls.py [all]    some n by chance, more of the first ones; all: 441 n of each kind
"""
import os
import random
import shutil
import sys

from device import DEVICE, FAKE, ISA, said, weights
from harness import Folder, Tap, neap

DATA = "randman:steps=70,samples=6,units=8,classes=3"
TRAIN = ["train", DATA, "--net", "lif:9r:scale=3,li", "--threads", "1", "--batch", "6", "--epochs", "1", "--memory", "8K", "--quiet",
         "--validation", "0"]
OUT_OF_MEMORY = 2
LAUNCH_FAILED = 719


def train(folder, out, side, env, **driver):
    settings = ",".join(f"{key}={value}" for key, value in driver.items())
    return neap(*TRAIN, *side, "--out", out, env=dict(env, FAKE_CUDA=settings), cwd=folder, timeout=120)


class Calls:
    def __init__(self, folder, slow):
        self.folder = folder
        self.side = [*DEVICE, "--slow", slow]
        self.report = os.path.join(folder, "counts")
        self.right = None
        self.counts = {}

    def count(self):
        """A run without failures: its weights, and the number of calls and pieces of work."""
        for out, side, env in ("right", [], ISA), ("whole", self.side, FAKE):
            done = train(self.folder, out, side, env, **({"report": self.report} if side != [] else {}))
            if done.returncode:
                return said(done)
        self.right = weights(os.path.join(self.folder, "right"))
        with open(self.report, encoding="ascii") as file:
            self.counts = {name: int(number) for name, number in (line.split() for line in file)}
        if weights(os.path.join(self.folder, "whole")) != self.right:
            return "weights differ without a failure"
        return None if self.counts["alive"] == 0 else f"not freed at the end: {self.counts}"

    def fails(self, kind, number, **more):
        """The number-th fails."""
        out = os.path.join(self.folder, "failing")
        shutil.rmtree(out, ignore_errors=True)
        done = train(self.folder, out, self.side, FAKE, **{kind: number, **more})
        lines = [line for line in done.stderr.splitlines() if line.startswith("neap")]
        if done.returncode == 0:
            return None if weights(out) == self.right else f"{number}: other weights"
        if done.returncode not in (1, 2) or len(lines) != 1:
            return f"{number}: {len(lines)} lines, {said(done)}"
        if os.path.exists(os.path.join(out, "model.safetensors")) and weights(out) != self.right:
            return f"{number}: a model with other weights after {lines[0]}"
        return None

    def some(self, kind, numbers, more):
        for number in numbers:
            wrong = self.fails(kind, number, **more)
            if wrong:
                return wrong
        return None


WEIGHTS = 8 * 9 * 4  # bytes of the weights of the first layer


def copies(calls):
    """Each copy of the weights of a layer fails, to the device and back: no file has weights that are not those of the device."""
    for number in range(1, 7):
        wrong = calls.fails("fail_copy", number, copy_bytes=WEIGHTS)
        if wrong:
            return wrong
    return None


def main():
    every = sys.argv[1:] == ["all"]
    dice = random.Random(int(os.environ.get("NEAP_SEED", os.getpid())))
    with Tap() as tap, Folder() as folder:
        calls = Calls(folder, "pinned:64K,/var/tmp" if every else "pinned:64K")
        tap.run("no call fails: the weights of the processor, and all is freed", calls.count)
        tap.run("copies of weights fail: one line and no model", copies, calls)
        for kind, name, more in (("fail", "calls", {}), ("fail", "calls", {"code": OUT_OF_MEMORY}), ("fail_job", "jobs", {})):
            most = calls.counts.get(name, 0)
            if most < 100:
                tap.run(f"{kind}: {most} in a run", lambda: "too few")
                continue
            chosen = [*dice.sample(range(1, 60), 40 if every else 4), *dice.sample(range(60, most), 400 if every else 8), most]
            tap.run(f"{kind} {more}: recovered, or one line ({most})", calls.some, kind, chosen, more)


if __name__ == "__main__":
    sys.exit(main())
