#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Training on two threads against one, for each way in which inputs arrive: generated spikes (randman), recordings (SHD layout,
written here with h5py), numbers (arrays) and long samples whose inputs are read in windows or stay in memory. The runs of one
and of two threads alternate; prints the median seconds per epoch of both, their ratio, the seconds spent waiting for inputs and
the CPU time of both, and whether the weights are equal. Run it on a machine with nothing else to do.
    two_threads.py NEAP [ROUNDS]        exits with 1 where a ratio is below TARGET or weights differ
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np

TARGET = 1.7
SAMPLES, CHANNELS, CLASSES = 1024, 256, 8
LONG = "randman:steps=50000,spikes=200,units=100,samples=142"


def recordings(path):
    import h5py
    r = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        kinds = {"times": np.float16, "units": np.uint16}
        rows = {name: file.create_dataset(f"spikes/{name}", (SAMPLES,), dtype=h5py.vlen_dtype(np.dtype(kind)))
                for name, kind in kinds.items()}
        for i in range(SAMPLES):
            count = r.integers(3000, 6000)
            rows["times"][i] = np.sort(r.uniform(0, 0.8, count)).astype(np.float16)
            rows["units"][i] = r.integers(0, CHANNELS, count).astype(np.uint16)
        file.attrs["inputs"] = CHANNELS
        file["labels"] = r.integers(0, CLASSES, SAMPLES).astype(np.uint16)


def arrays(path):
    r = np.random.default_rng(2)
    np.savez(path, x=r.normal(size=(SAMPLES, 200, 40)).astype(np.float32), y=r.integers(0, CLASSES, SAMPLES))


def train(neap, data, options, threads, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = tempfile.mkdtemp(dir=folder) + "/run"
    done = subprocess.run([neap, "train", data, *options, "--batch", "64", "--threads", str(threads), "--out", out, "--quiet",
                           "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"two_threads.py: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), cpu


def main():
    neap, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        spikes, numbers = os.path.join(folder, "recordings.h5"), os.path.join(folder, "numbers.npz")
        recordings(spikes)
        arrays(numbers)
        lif = ["--net", "lif:256r,li"]
        standard = [*lif, "--strategy", "standard", "--epochs", "1"]
        cases = {"randman": ("randman", [*lif, "--epochs", "6"]), "recordings": (spikes, [*lif, "--epochs", "3"]),
                 "numbers": (numbers, ["--net", "lstm:128,li", "--epochs", "3"]),
                 "long, in memory": (LONG, [*standard, "--memory", "256M", "--inputs", "256M"]),
                 "long, in windows": (LONG, [*standard, "--memory", "256M", "--inputs", "16M"])}
        print(f"{'inputs':18} {'1 thread':>10} {'2 threads':>10} {'ratio':>6} {'waited':>7} {'CPU 1':>7} {'CPU 2':>7}")
        for name, (data, options) in cases.items():
            runs = {1: [], 2: []}
            for _ in range(rounds):
                for threads in runs:
                    runs[threads].append(train(neap, data, options, threads, folder))
            seconds = {k: statistics.median(r["seconds_per_epoch"] for r, _ in v) for k, v in runs.items()}
            cpu = {k: statistics.median(c for _, c in v) for k, v in runs.items()}
            waited = statistics.median(r["input_wait"] for r, _ in runs[2])
            hashes = {r["weights_hash"] for v in runs.values() for r, _ in v}
            ratio = seconds[1] / seconds[2]
            failed |= ratio < TARGET or len(hashes) != 1
            print(f"{name:18} {seconds[1]:8.2f} s {seconds[2]:8.2f} s {ratio:6.2f} {waited:5.2f} s {cpu[1]:5.1f} s {cpu[2]:5.1f} s"
                  + ("" if len(hashes) == 1 else "  weights differ"))
    return failed


if __name__ == "__main__":
    sys.exit(main())
