#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/own-data.md as a program, with synthetic data: events with one class per sample, real numbers with one class per
sample, and real numbers with targets per step. Each data set is written to a file, a network is trained on it, and its
predictions are read into NumPy.
"""
# %% The tool: NEAP_BIN, or the build folder, or the PATH
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

BUILT = pathlib.Path(__file__).resolve().parent / "../../build/neap"
NEAP = os.environ.get("NEAP_BIN") or (str(BUILT) if BUILT.exists() else "neap")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", nargs="?", type=pathlib.Path, default="own-data", help="gets all output (default: own-data)")
out = parser.parse_args().folder
out.mkdir(exist_ok=True)
rng = np.random.default_rng(1)


def neap(*words):
    """Runs a command of the tool and returns its output; its progress is not shown."""
    print("$ neap", *words, flush=True)
    done = subprocess.run([NEAP, *map(str, words), "--quiet"], stdout=subprocess.PIPE, text=True)
    if done.returncode:  # the tool has printed the reason
        sys.exit(done.returncode)
    return done.stdout


def learn(name, *options):
    """Trains on NAME-train, predicts NAME-test, and returns the predictions."""
    test = next(out.glob(f"{name}-test.*"))
    shutil.rmtree(out / name, ignore_errors=True)
    neap("train", str(test).replace("-test.", "-train."), "--memory", "4M", "--out", out / name, *options)
    neap("predict", out / name, test, "--out", out / f"{name}.npz")
    return np.load(out / f"{name}.npz")


# %% Events: a dot that moves left or right across a camera of 16 by 4 pixels
def dots(samples):
    """x, y, t (microseconds), p of all samples, concatenated; the start of each sample; the classes."""
    labels = rng.integers(0, 2, samples)
    t = np.sort(rng.integers(0, 80_000, (samples, 120)), axis=1)
    way = t * 16 // 80_000
    x = np.where(labels[:, None] == 0, 15 - way, way)
    return {"x": x.ravel(), "y": rng.integers(0, 4, x.size), "t": t.ravel(), "p": rng.integers(0, 2, x.size),
            "offsets": np.arange(0, x.size + 1, 120), "labels": labels, "classes": np.array(["left", "right"]),
            "sensor_size": (16, 4, 2)}


for part, samples in (("train", 160), ("test", 40)):
    np.savez(out / f"dots-{part}-events.npz", **dots(samples))
    (out / f"dots-{part}.h5").unlink(missing_ok=True)
    neap("encode", out / f"dots-{part}-events.npz", "--out", out / f"dots-{part}.h5")
found = learn("dots", "--net", "lif:64r,li", "--scale", 1.5, "--epochs", 10)
print(f"events: {100 * np.mean(found['prediction'] == found['label']):.0f}% of {len(found['label'])} samples, "
      f"scores of {' and '.join(found['names'])}\n")


# %% Numbers with one class per sample: an upward or downward drift with noise, in series of unequal length
def drifts(samples):
    y = rng.integers(0, 2, samples)
    drift = np.cumsum(np.ones((samples, 50, 3)), axis=1) * (y[:, None, None] - 0.5) * 0.05
    return {"x": rng.standard_normal((samples, 50, 3)) + drift, "y": y, "lengths": rng.integers(30, 51, samples)}


for part, samples in (("train", 200), ("test", 60)):
    np.savez(out / f"drifts-{part}.npz", **drifts(samples))
found = learn("drifts", "--net", "gru:32,li", "--epochs", 8)
print(f"classes: {100 * np.mean(found['prediction'] == found['label']):.0f}% of {len(found['label'])} samples\n")


# %% Numbers with targets per step: the mean of the inputs so far
def means(samples):
    x = rng.standard_normal((samples, 40, 1)) + rng.standard_normal((samples, 1, 1))
    return {"x": x, "y": np.cumsum(x, axis=1) / np.arange(1, 41)[:, None]}


for part, samples in (("train", 200), ("test", 40)):
    np.savez(out / f"means-{part}.npz", **means(samples))
found = learn("means", "--net", "gru:32,li", "--readout", "step", "--loss", "mse", "--epochs", 20, "--lr", "5e-3")
wanted = np.load(out / "means-test.npz")["y"]
answers = found["scores"].reshape(wanted.shape)
error, chance = np.mean((answers - wanted) ** 2), np.var(wanted)
print(f"regression: {len(found['sample'])} predictions, one per step; {100 * error / chance:.0f}% of the variance is not explained\n")

# %% Files of a run: settings and results (run.json), metrics per epoch (metrics.csv)
result = json.loads((out / "means" / "run.json").read_text())
print(f"run.json contains {', '.join(list(result)[:6])}, ...")
print((out / "means" / "metrics.csv").read_text().splitlines()[0])
