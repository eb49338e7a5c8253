#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Convolutions, pooling and batch normalisation (`--net lif:conv=...`): shapes from files and --shape, the same weights for all plans and threads, models,
runs that are resumed, and errors.
"""
import os

from harness import Folder, Tap, neap, neap_json, need

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

SIDE, STEPS, SAMPLES, CLASSES = 12, 300, 24, 3
NET = ("lif:conv=3:stride=2:pad=1:channels=4:norm=batch:scale=4,"
       "alif:conv=2:pool=3:pool_stride=2:pool_pad=1:pooling=max:channels=6:scale=3:conv_pool=2:conv_pool_stride=1,lif:9:norm=batch,li")


def write_events(path, sensor=True):
    """Samples whose class is the row of the sensor that is active, as `neap encode` writes them or without the sensor's size."""
    pick = np.random.default_rng(3)
    with h5py.File(path, "w") as file:
        times, units = (file.create_dataset(f"spikes/{name}", (SAMPLES,), dtype=h5py.vlen_dtype(np.dtype(kind)))
                        for name, kind in (("times", "f4"), ("units", "u2")))
        for i in range(SAMPLES):
            image = np.full((2, SIDE, SIDE), 0.01)
            image[:, i % CLASSES * 4:i % CLASSES * 4 + 3] = 0.06
            t, u = np.nonzero(pick.random((STEPS, 2 * SIDE * SIDE)) < image.ravel())
            times[i], units[i] = (t + 0.5) * 1e-3, u
        file["labels"] = np.arange(SAMPLES, dtype="u2") % CLASSES
        file["extra/duration"] = np.full(SAMPLES, STEPS * 1e-3)
        file.attrs.update({"inputs": 2 * SIDE * SIDE, "longest": STEPS * 1e-3})
        if sensor:
            names = ("pool", "polarity", "sensor_width", "sensor_height", "crop_x", "crop_y", "columns", "rows")
            file.attrs.update(dict(zip(names, (1, 0, SIDE, SIDE, 0, 0, SIDE, SIDE))))
    return path


def train(data, out, *more, epochs=1):
    return neap_json("train", data, "--net", NET, "--epochs", epochs, "--seed", 2, "--out", out, "--batch", 8, "--validation", 0,
                     "--schedule", "constant", "--warmup", 1, *more)


def same_weights(folder, data):
    """One hash for every plan, budget and number of threads, and a peak within the plan."""
    found, slow = {}, os.path.join(folder, "slow")
    os.mkdir(slow)
    for strategy, memory in (("bptt", "16M"), ("revolve", "600K"), ("periodic", "1M"), ("h-revolve", "600K")):
        for threads in (1, 2):
            out = os.path.join(folder, f"{strategy}{threads}")
            done = train(data, out, "--strategy", strategy, "--memory", memory, "--threads", threads, "--slow", slow)
            found[strategy, threads] = done["weights_hash"]
            if done["peak_measured"] > done["peak_planned"]:
                return f"{strategy}: peak {done['peak_measured']}, planned {done['peak_planned']}"
    return None if len(set(found.values())) == 1 else str(found)


def predictions(model, data):
    done = neap("predict", model, data, "--threads", 1)
    return done.stdout if done.returncode == 0 else done.stderr


def shape_is_kept(folder, sensor, plain):
    """A file of events has its shape; --shape gives the same, and model and run keep it."""
    a, b = os.path.join(folder, "sensor"), os.path.join(folder, "plain")
    first = train(sensor, a, "--memory", "4M")
    second = train(plain, b, "--memory", "4M", "--shape", f"2x{SIDE}x{SIDE}")
    if first["weights_hash"] != second["weights_hash"]:
        return "other weights"
    if predictions(a, plain) != predictions(b, sensor):
        return predictions(a, plain)[:200]
    more = neap_json("train", "--resume", "--out", b, "--epochs", 2)
    whole = train(sensor, os.path.join(folder, "whole"), "--memory", "4M", epochs=2)
    return None if more["weights_hash"] == whole["weights_hash"] else "another net after --resume"


def refused(folder, data, *args):
    *options, says = args
    out = os.path.join(folder, "refused")
    done = neap("train", data, *options, "--out", out)
    if os.path.exists(os.path.join(out, "run.json")):
        return "left run.json"
    if done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1:
        return None
    return f"exit {done.returncode}: {done.stderr}"


def main():
    with Folder() as folder, Tap() as tap:
        sensor = write_events(os.path.join(folder, "sensor.h5"))
        plain = write_events(os.path.join(folder, "plain.h5"), False)
        tap.run("same weights for all plans and threads", same_weights, folder, sensor)
        tap.run("shapes of files, --shape, models and runs", shape_is_kept, folder, sensor, plain)
        tap.run("no shape", refused, folder, plain, "--net", NET, "Pass --shape CHANNELSxHEIGHTxWIDTH")
        tap.run("a shape of another size", refused, folder, plain, "--net", NET, "--shape", "2x9x9", "but receives 288 inputs")
        tap.run("a shape of another size without conv", refused, folder, plain, "--net", "lif:8,li", "--shape", "2x9x9",
                "but receives 288 inputs")
        tap.run("no shape at all", refused, folder, plain, "--net", NET, "--shape", "12x12", "--shape must be CHANNELSxHEIGHTxWIDTH")
        tap.run("a kernel that is too large", refused, folder, sensor, "--net", "lif:conv=13:channels=2,li", "larger than the 12x12 units")
        tap.run("cells without convolutions", refused, folder, sensor, "--net", "gru:conv=3:channels=2,li", "gru has no key 'conv'")


main()
