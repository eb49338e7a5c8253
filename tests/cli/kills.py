#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments, then the same again, until the run ends: `neap train --resume` and
`neap compare --journal` as they were never killed. usage: kills.py [KILLS [train|compare]], 200
and both unless told."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from harness import NEAP, Folder, Tap, neap, neap_json, resuming
from train import DATA, SETTINGS, weights

# What may change from one start to the next of the same training.
CHOICES = (["--memory", "2M"], ["--memory", "700K", "--strategy", "revolve"],
           ["--memory", "2M", "--threads", "1"], ["--memory", "600K", "--strategy", "standard"])


class Campaign:
    def __init__(self, kills, seed):
        self.left, self.done, self.runs, self.whole = kills, 0, 0, None
        self.random = random.Random(seed)

    def measure(self, folder):
        run = os.path.join(folder, "whole")
        start = time.monotonic()
        neap_json("train", DATA, *SETTINGS, "--memory", "2M", "--out", run)
        self.seconds = time.monotonic() - start
        self.whole = weights(run)
        with open(os.path.join(run, "model.safetensors"), "rb") as f:
            self.best = f.read()

    def start(self, run, more):
        command = [NEAP, "train", DATA, *SETTINGS, *more, "--out", run, "--snapshot",
                   self.random.choice(["1ms", "20ms", "200ms"]), *resuming(run)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def train(self, folder):
        """One training, killed up to ten times; None, or what is wrong."""
        run = os.path.join(folder, f"run{self.runs}")
        kills = self.random.randint(1, 10)
        while True:
            process = self.start(run, self.random.choice(CHOICES))
            if kills > 0 and self.left > 0:
                try:
                    process.wait(self.random.random() * self.seconds)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
            _, text = process.communicate(timeout=300)
            if process.returncode == 0:
                break
            if process.returncode != -signal.SIGKILL:
                return f"exit {process.returncode}: {text.decode()}"
            kills -= 1
            self.left -= 1
            self.done += 1
        self.runs += 1
        if weights(run) != self.whole:
            return "other weights after --resume"
        with open(os.path.join(run, "model.safetensors"), "rb") as f:
            if f.read() != self.best:
                return "another model.safetensors"
        extra = set(os.listdir(run)) - {"model.safetensors", "last.safetensors", "metrics.csv",
                                        "costs.csv", "run.json"}
        return f"left behind: {extra}" if extra else None

    def all(self, folder):
        while self.left > 0:
            wrong = self.train(folder)
            if wrong:
                return f"after {self.done} kills: {wrong}"
        return None


LONG = ["randman:steps=12000,samples=64,classes=4,units=50", "--net", "lif:64r,li", "--memory",
        "400K", "--batch", "16", "--no-reference"]


class Sweeps:
    """`neap compare --journal`: one sweep, killed on its way."""

    def __init__(self, kills, seed):
        self.left, self.done, self.ended, self.spared = kills, 0, 0, 0
        self.random = random.Random(seed)

    def sweep(self, disk, chain, strategy):
        command = [NEAP, "compare", *LONG, "--slow", disk, "--chain", chain, "--strategy",
                   strategy, "--json"]
        start = time.monotonic()
        whole = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        most = time.monotonic() - start
        command += ["--journal", disk, "--journal-every", "1ms"]
        for kills in range(self.random.randint(3, 12), -1, -1):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                wait = most * (0.3 + self.random.random()) if kills > 0 else 600
                out, text = process.communicate(timeout=wait)
            except subprocess.TimeoutExpired:
                process.kill()
                out, text = process.communicate()
            if process.returncode == 0:
                break
            if process.returncode != -signal.SIGKILL:
                return f"exit {process.returncode}: {text.decode()}"
            self.left -= 1
            self.done += 1
        run = json.loads(out)["runs"][0]
        self.ended += 1
        self.spared += run.get("spared", 0) > 0
        if run["grad_hash"] != whole["runs"][0]["grad_hash"] or run["loss"] != whole["runs"][0][
                "loss"]:
            return f"{strategy}: another gradient"
        left = set(os.listdir(disk)) & {"neap.journal", "neap.slow"}
        return f"left behind: {left}" if left else None

    def all(self, disk):
        chain = os.path.join(disk, "chain.json")
        done = neap("calibrate", *LONG[:-1], "--slow", disk, "--out", chain)
        if done.returncode != 0:
            return done.stderr
        while self.left > 0:
            wrong = self.sweep(disk, chain, self.random.choice(
                ["auto", "async", "stream", "h-revolve", "revolve", "mixed", "double"]))
            if wrong:
                return f"after {self.done} kills: {wrong}"
        return None if self.spared else "not one went on"


def trainings(tap, folder, kills, seed):
    campaign = Campaign(kills, seed)
    campaign.measure(folder)
    start = time.monotonic()
    tap.run(f"neap train, killed {kills} times", campaign.all, folder)
    print(f"# seed {seed}: {campaign.done} kills of {campaign.runs} runs, "
          f"{time.monotonic() - start:.0f} s; one that is left alone: {campaign.seconds:.1f} s")


def journals(tap, kills, seed):
    sweeps = Sweeps(kills, seed)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="neap-test-", dir="/var/tmp") as disk:
        tap.run(f"neap compare --journal, killed {kills} times", sweeps.all, disk)
    print(f"# seed {seed}: {sweeps.done} kills of {sweeps.ended} sweeps, {sweeps.spared} went on "
          f"at the last start, {time.monotonic() - start:.0f} s")


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    which = sys.argv[2] if len(sys.argv) > 2 else "both"
    seed = int(os.environ.get("NEAP_SEED", "1"))
    with Tap() as tap, Folder() as folder:
        if which in ("train", "both"):
            trainings(tap, folder, kills, seed)
        if which in ("compare", "both"):
            journals(tap, kills, seed)


main()
