#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spoken digits end to end, with the default settings; and how far `double` reaches."""
import os

from harness import Folder, Tap, data_dir, neap, neap_json

NAMES = ["--label", "([0-9]+)_.*", "--speaker", "[0-9]+_([a-z]+)_.*"]


def digits(folder, seed):
    run = os.path.join(folder, f"run{seed}")
    result = neap_json("train", os.path.join(folder, "train.h5"), "--test",
                       os.path.join(folder, "test.h5"), "--net", "lif:256r,li", "--dt", "1ms",
                       "--memory", "16M", "--epochs", "30", "--seed", seed, "--out", run,
                       timeout=1800)
    accuracy = neap_json("eval", run, os.path.join(folder, "test.h5"))["accuracy"]
    print(f"# seed {seed}: test accuracy {accuracy:.4f}, peak {result['peak_measured']}")
    if result["peak_measured"] > 16 << 20:
        return f"peak {result['peak_measured']}"
    return None if accuracy >= 0.95 else f"accuracy {accuracy}"


def reach(data, more, times):
    """In the memory of T/times steps of store-all, `double` sweeps all T steps."""
    whole = neap_json("compare", data, *more, "--memory", "8G", "--strategy", "bptt")
    chain, steps = whole["chain"], whole["steps"]
    memory = chain["state"] + chain["adjoint"] + steps // times * chain["tape"] \
        + chain["tape_max"] - chain["tape"]
    result = neap_json("compare", data, *more, "--memory", memory, "--strategy", "double",
                       "--slow", "/var/tmp", "--repeats", 5)
    reference, double = result["runs"]
    print(f"# {steps} steps in the memory of {steps // times}: {memory} bytes, "
          f"{double['params']}, overhead {double['overhead']}")
    if reference["grad_hash"] != double["grad_hash"]:
        return "other gradients"
    return None if double["peak_measured"] <= memory else f"peak {double['peak_measured']}"


with Tap() as tap, Folder() as folder:
    shared = data_dir()
    if shared:
        for part in ("train", "test"):
            done = neap("encode", os.path.join(shared, "data", "fsdd", part), "--out",
                        os.path.join(folder, part + ".h5"), *NAMES)
            tap.check(f"encode {part}", done.stderr if done.returncode else None)
        for seed in (1, 2, 3):
            tap.run(f"digits, seed {seed}", digits, folder, seed)
        for times in (10, 100):
            tap.run(f"{times} times as far, digits at 0.1 ms", reach,
                    os.path.join(folder, "train.h5"), ["--dt", "0.1ms"], times)
    else:
        tap.skip("digits", "no recordings here (NEAP_DATA)")
    for times in (10, 100):
        tap.run(f"{times} times as far, patterns", reach,
                "randman:steps=50000,spikes=1000,samples=32", ["--scale", "2"], times)
