# SPDX-License-Identifier: Apache-2.0
"""neap's half of a row: writes the samples as files, trains with default settings, reads the score of the test samples.

All samples are learned from (--validation 0), as PyTorch's half does; nothing else is set but the size of the net, the
number of epochs and the loss of numbers.
"""
import json
import os
import subprocess
import tempfile

import numpy as np

from problems import NEAP, STEPS_OF_TEXT


def write_numbers(path, problem, part):
    arrays = {"x": part.x, "lengths": part.lengths}
    if problem.kind == "next":
        arrays = {"x": np.concatenate([part.x, part.y[:, -1:]], 1)}
    else:
        arrays["y"] = part.y
        if problem.classes:
            arrays["classes"] = np.array([str(c) for c in range(problem.classes)])
    np.savez(path, **arrays)
    return path


def write_spikes(path, part, spikes):
    import h5py
    with h5py.File(path, "w") as file:
        times, units = (file.create_dataset(f"spikes/{name}", len(spikes), h5py.vlen_dtype(kind))
                        for name, kind in (("times", "f4"), ("units", "u2")))
        for i, (t, c, _) in enumerate(spikes):
            times[i], units[i] = t, c
        file["labels"] = part.y
        file.attrs["inputs"] = part.x.shape[2]
        file["extra/duration"] = np.array([d for _, _, d in spikes])
    return path


def write(problem, folder):
    """Names of the training and the test set, as `neap train` takes them."""
    names = []
    for i, part in enumerate((problem.train, problem.test)):
        path = os.path.join(folder, f"part{i}")
        if problem.kind == "text":
            with open(path, "w", encoding="utf-8") as file:
                file.write(problem.text[i][:len(part.y) * STEPS_OF_TEXT + 1])
            names.append(f"text:steps={STEPS_OF_TEXT}:{path}")
        elif problem.kind == "spikes":
            names.append(write_spikes(path + ".h5", part, problem.spikes[i]))
        else:
            names.append(write_numbers(path + ".npz", problem, part))
    return names


def options(problem):
    found = ["--loss", "mse"] if problem.measure == "mse" else []
    if problem.kind == "next":
        found.append("--next-step")
    if problem.kind == "spikes":
        found += ["--dt", f"{1000 * problem.dt:g}ms"]
    return found


def run(problem, cell, seed, more=()):
    with tempfile.TemporaryDirectory() as folder:
        train, test = write(problem, folder)
        command = [NEAP, "train", train, "--test", test, "--net", f"{cell}:{problem.units},li", "--epochs",
                   str(problem.epochs), "--seed", str(seed), "--validation", "0", "--memory", "256M", "--threads", "1",
                   "--out", os.path.join(folder, "run"), "--quiet", "--json", *options(problem), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip() or done.returncode}")
        result = json.loads(done.stdout)["test"]
        return result["accuracy"] if problem.measure == "accuracy" else result["loss"]
