# SPDX-License-Identifier: Apache-2.0
"""What tests of loaded nets share: settings, runs trained by the tool, and what the C code says."""
import json
import os
import shutil
import subprocess

import pytest

from conftest import run_tool

PRINT_NET = os.environ.get("NEAP_PRINT_NET", "")
SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
SETTINGS = {"dt": "0.001", "reset": "subtract", "detach": "0", "surrogate": "triangle", "width": "0.5",
            "height": "1", "support": "0", "threshold": "1", "reset_value": "0", "tau": "0.02", "tau_out": "0.02",
            "euler": "0", "delay": "0", "readout": "mean", "smooth": "0"}
DATA = "randman:steps=60,samples=80,classes=4"


def trained(folder, net, *more, data=DATA):
    """A run in double precision, of one epoch."""
    run = os.path.join(folder, "run")
    run_tool("train", data, "--net", net, "--precision", "double", "--memory", "8M", "--epochs", 1, "--seed", 3,
             "--threads", 1, "--out", run, *more)
    return run


def evaluated(run, data=DATA):
    """What `neap eval --json` prints."""
    return json.loads(run_tool("eval", run, data, "--threads", 1, "--json"))


def printed(run, count, data=DATA):
    """The first samples of the data as the C code runs them, and their loss."""
    if not PRINT_NET:
        pytest.skip("no print_net")
    done = subprocess.run([PRINT_NET, os.path.join(run, "model.safetensors"), data, str(count)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *samples, end = map(json.loads, done.stdout.splitlines())
    return samples, end["loss"]


def recordings(folder, count):
    """So many spoken digits as spikes, in a file; skips where there are none."""
    data = os.path.join(os.environ.get("NEAP_DATA", os.path.join(SOURCE, "..", "shared")), "data", "fsdd", "train")
    if not os.path.isdir(data):
        pytest.skip("no recordings here (NEAP_DATA)")
    names = sorted(os.listdir(data))
    chosen = names[::max(1, len(names) // count)][:count]
    os.mkdir(os.path.join(folder, "sounds"))
    for name in chosen:
        shutil.copy(os.path.join(data, name), os.path.join(folder, "sounds", name))
    path = os.path.join(folder, "digits.h5")
    run_tool("encode", os.path.join(folder, "sounds"), "--out", path, "--label", "([0-9]+)_.*")
    return path
