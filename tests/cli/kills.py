#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments, then --resume, until the run ends: `neap train` as it was never
killed. usage: kills.py [KILLS], 200 unless told."""
import os
import random
import signal
import subprocess
import sys
import time

from harness import NEAP, Folder, Tap, neap_json
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

    def start(self, run, more, resume):
        command = [NEAP, "train", DATA, *SETTINGS, *more, "--out", run, "--snapshot",
                   self.random.choice(["1ms", "20ms", "200ms"]), *resume]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def train(self, folder):
        """One training, killed up to ten times; None, or what is wrong."""
        run = os.path.join(folder, f"run{self.runs}")
        resume, kills = [], self.random.randint(1, 10)
        while True:
            process = self.start(run, self.random.choice(CHOICES), resume)
            resume = ["--resume"]
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
                                        "run.json"}
        return f"left behind: {extra}" if extra else None

    def all(self, folder):
        while self.left > 0:
            wrong = self.train(folder)
            if wrong:
                return f"after {self.done} kills: {wrong}"
        return None


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(os.environ.get("NEAP_SEED", "1"))
    with Tap() as tap, Folder() as folder:
        campaign = Campaign(kills, seed)
        campaign.measure(folder)
        start = time.monotonic()
        tap.run(f"neap train, killed {kills} times", campaign.all, folder)
        print(f"# seed {seed}: {campaign.done} kills of {campaign.runs} runs, "
              f"{time.monotonic() - start:.0f} s; one that is left alone: "
              f"{campaign.seconds:.1f} s")


main()
