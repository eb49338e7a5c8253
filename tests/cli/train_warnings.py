#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Warnings of `neap train` and `neap compare`: each one if the data or the net asks for it, and none if not."""
import csv
import json
import os
import sys
import tempfile

from harness import Folder, Tap, encode, neap, neap_json, need, write_recordings

need("numpy")
import numpy as np  # noqa: E402

TRAIN = ["--net", "gru:8,li", "--epochs", "1", "--memory", "4M", "--threads", "1"]
WARNINGS = {  # what one line has, by name
    "few": "the validation set has ", "single": "so every net is right and nothing is learned",
    "whole": "but stored as real numbers", "axes": "If the axes are (sample, feature, time)",
    "one-hot": "y is one-hot", "series": "If it is one series, store", "chance": "nothing was learned from the inputs", "nothing": "training samples have no spike",
    "constant": "the same value"}
UNLEARNED = ["--lr", "0"]


def series(samples=300, steps=9, features=2):
    return np.random.default_rng(1).normal(size=(samples, steps, features))


def learned(samples=300):
    """Two classes that a net tells apart at once, six samples of ten of class 0."""
    y = (np.arange(samples) % 10 >= 6).astype(int)
    return {"x": series(samples) + 4.0 * y[:, None, None], "y": y}


def cases():
    """Name, arrays, options, names of the warnings, and what else the lines have."""
    x, two = series(), np.arange(300) % 2
    stepped = np.tile(two[:, None], 9)
    names = np.where(np.arange(300) % 10 < 6, "sit", "walk")
    yield "learned", learned(), ["--epochs", "4", "--lr", "0.02"], [], []
    yield "a", learned(100), ["--lr", "0.05", "--epochs", "6"], ["few"], [
        "has 10 samples, too few to choose the best epoch (--validation-least 30), so model.safetensors will have the weights "
        "of the last epoch. Add samples, or pass --validation 0.3 (now 0.1)"]
    yield "of one", learned(10), ["--lr", "0.05", "--epochs", "20"], ["few"], ["has 1 sample, too few"]
    yield "of none", learned(100), ["--lr", "0.05", "--epochs", "6", "--validation", "0"], [], []
    yield "enough", learned(100), ["--lr", "0.05", "--epochs", "6", "--validation-least", "10"], [], []
    yield "zeros", {"x": x, "y": two * 0}, [], ["single"], ["all training samples have class 0, so"]
    yield "threes", {"x": x, "y": two * 0 + 3}, [], ["single"], ["all training samples have class 3, so"]
    yield "named", {"x": x, "y": np.full(300, "walk")}, [], ["single"], ["have class 0 'walk', so"]
    yield "one of steps", {"x": x, "y": stepped * 0}, [], ["single"], ["all training steps have class 0, so"]
    yield "reals", {"x": x, "y": two.astype(float)}, [], ["whole"], [
        "y has 2 different values, all whole (0, 1)", "store integers: y.astype(int); if not, --loss mse"]
    yield "reals of steps", {"x": x, "y": np.where(np.arange(9) > 7, np.nan, stepped * 2.0)[..., None]}, [], ["whole"], ["(0, 2)"]
    yield "reals, large net", {"x": x, "y": (np.arange(300) % 20).astype(float)}, ["--no-normalise-targets"], ["whole"], [
        "y has 20 different values, all whole (", ", ...)"]
    yield "meant", {"x": x, "y": two.astype(float)}, ["--loss", "mse"], [], []
    yield "halves", {"x": x, "y": two / 2}, [], [], []
    yield "signed", {"x": x, "y": two * 2.0 - 1}, [], ["whole"], [
        "all whole (-1, 1)", "integers from 0 on: numpy.unique(y, return_inverse=True)[1]"]
    yield "many", {"x": x, "y": (np.arange(300) % 21).astype(float)}, [], [], []
    pairs = np.stack([two, 1 - two], 1).astype(float)
    yield "pairs", {"x": x, "y": pairs}, [], ["one-hot"], ["y is one-hot, 2 numbers of which one is 1", "y.argmax(-1)"]
    yield "pairs of steps", {"x": x, "y": np.tile(pairs[:, None], (1, 9, 1))}, [], ["one-hot"], []
    masked = np.ones((300, 9))
    masked[:, 0] = 0
    yield "first steps masked", {"x": x, "y": x, "mask": masked}, [], [], []
    yield "first steps are NaN", {"x": x, "y": np.where(masked[..., None] > 0, x, np.nan)}, [], [], []
    yield "first steps are one-hot", {"x": x, "y": np.where(masked[..., None] > 0, x, pairs[:, None])}, [], [], []
    yield "pairs of steps, masked", {"x": x, "y": np.tile(pairs[:, None], (1, 9, 1)), "mask": masked}, [], ["one-hot"], []
    yield "whole but for masked steps", {"x": x, "y": np.where(masked > 0, stepped * 2.0, 0.5)[..., None], "mask": masked}, [], ["whole"], ["(0, 2)"]
    yield "whole in masked steps alone", {"x": x, "y": np.where(masked > 0, x[..., 0], stepped)[..., None], "mask": masked}, [], [], []
    yield "pairs meant", {"x": x, "y": pairs}, ["--loss", "mse"], [], []
    yield "shares", {"x": x, "y": np.stack([two / 2, 1 - two / 2], 1)}, [], [], []
    yield "a column", {"x": x[:, 0, :1] + 4.0 * two[:, None], "y": two}, ["--lr", "0.05", "--epochs", "6"], ["series"], [
        "x has 300 samples of 1 step with 1 feature", "x.reshape(1, -1, 1)", "y.reshape(1, -1)"]
    yield "a column of numbers", {"x": x[:, 0, :1], "y": x[:, 1, 0]}, [], ["series"], ["y.reshape(1, -1, 1)"]
    wide = series(300, 3, 500)
    yield "swapped", {"x": wide, "y": two}, ["--lr", "0.02", "--epochs", "3"], ["axes"], [
        "x has shape (300, 3, 500): 500 features in 3 steps. If", "store x.transpose(0, 2, 1)"]
    yield "swapped, one feature", {"x": wide[:, :1], "y": two}, ["--lr", "0.02", "--epochs", "3"], ["axes"], [
        "x has shape (300, 1, 500): 500 features in 1 step. If"]
    yield "wide", {"x": series(300, 9, 35) + two[:, None, None], "y": two}, ["--lr", "0.02", "--epochs", "3"], [], []
    yield "static", {"x": series(300, 1, 40) + 3 * two[:, None, None], "y": two}, [
        "--encode", "rate:repeat=20", "--lr", "0.02", "--epochs", "8"], [], []
    still = learned()
    still["x"] = np.concatenate([still["x"], np.full((300, 9, 1), 9.81), np.zeros((300, 9, 1))], 2)
    yield "still", {**still, "features": np.array(["ax", "ay", "az", "b"])}, ["--epochs", "4", "--lr", "0.02"], ["constant"], [
        "feature 2 'az' has the same value, 9.81, in all steps of the training data (2 of 4 features have one value), so nothing can be learned",
        "remove it from x (neap encode: --drop az)"]
    yield "zero", {**still, "x": still["x"][:, :, [3, 0, 1]]}, ["--epochs", "4", "--lr", "0.02"], ["constant"], [
        "feature 0 has the same value, 0, in all steps of the training data (1 of 3 features has one value)", "Check it, or remove it from x"]
    margin = np.concatenate([still["x"][:, :, :2]] * 7 + [np.zeros((300, 9, 6))], 2)
    yield "margin", {**still, "x": margin}, ["--epochs", "4", "--lr", "0.02"], [], []
    yield "all still", {"x": np.ones((300, 9, 20)), "y": two}, [], ["constant"], [
        "each feature has the same value in all steps of the training data, so nothing can be learned from the inputs"]
    walk = {"x": np.cumsum(x + 0.6 * (two[:, None, None] - 0.5), 1), "y": two}
    yield "no spikes", walk, ["--net", "lif:8,li", "--encode", "delta:threshold=9"], ["nothing"], [
        "the inputs of 64 training samples have no spike, so nothing can be learned. The largest change from a step to the next "
        "is 1.5. Lower the threshold of --encode, such as --encode delta:threshold=0.2"]
    yield "spikes", walk, ["--net", "lif:32,li", "--encode", "delta", "--epochs", "8", "--lr", "0.02"], [], []
    yield "chance", {**learned(), "y": names}, UNLEARNED, ["chance"], [
        "and always answering class 0 'sit' gives 6", "Increase --epochs (now 1) or --lr (now 0)"]
    rare = np.random.default_rng(1).random((300, 60)) < 0.025  # steps whose class the input shows; of the others, 8 of 10 have class 0
    shown = {"x": 4.0 * rare[..., None], "y": (rare | (np.random.default_rng(2).random((300, 60)) < 0.2)).astype(int)}
    yield "shown by few", shown, ["--epochs", "4", "--lr", "0.02", "--batch", "8"], [], []
    yield "chance of steps", {"x": x, "y": np.where(np.arange(9) % 3 > 0, 1, stepped * 0)}, UNLEARNED, ["chance"], [
        "answering class 1 gives 66.7%"]


def warned(folder, name, arrays, options, wanted, texts):
    path = os.path.join(folder, name + ".npz")
    np.savez(path, **arrays)
    done = neap("train", path, *TRAIN, *options, "--out", os.path.join(folder, name))
    lines = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    found = [key for key, text in WARNINGS.items() for line in lines if text in line]
    if arrays["y"].dtype.kind == "f" and "chance" not in wanted:  # a few updates teach numbers next to nothing
        found, lines = [key for key in found if key != "chance"], [line for line in lines if WARNINGS["chance"] not in line]
    missing = [text for text in texts if not any(text in line for line in lines)]
    if "nothing" in found and "is silent" in done.stderr:
        return done.stderr
    if done.returncode != 0 or sorted(found) != sorted(wanted) or len(lines) != len(wanted) or missing:
        return f"{done.returncode}, {found}, lacks {missing}: {done.stderr}"
    return None


def weights(run, name):
    """Names and bytes of a file's weights, without the moments of last.safetensors; its header and the rest."""
    with open(os.path.join(run, name), "rb") as file:
        whole = file.read()
    end = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:end])
    ranges = {key: entry["data_offsets"] for key, entry in header.items() if key != "__metadata__" and "moment" not in key}
    return {key: whole[end + a:end + b] for key, (a, b) in ranges.items()}, header, whole[end:]


def differ(run):
    """Weights of model.safetensors that are not those of last.safetensors."""
    model, last = (weights(run, name + ".safetensors")[0] for name in ("model", "last"))
    return [key for key in model if model[key] != last[key]]


def noise(folder):
    """Labels that nothing explains, and a seed for which the last of six epochs is not the best by ten samples."""
    path = os.path.join(folder, "noise.npz")
    np.savez(path, x=series(100), y=np.random.default_rng(2).integers(0, 2, 100))
    for seed in range(1, 20):
        given = ["train", path, *TRAIN, "--schedule", "constant", "--lr", "0.01", "--epochs", "6", "--seed", seed]
        if neap_json(*given, "--validation-least", "0", "--out", os.path.join(tempfile.mkdtemp(dir=folder), "run"))["best_epoch"] < 6:
            return given
    raise AssertionError("the last epoch is the best for any seed")


def last_epoch(folder):
    """A small validation set chooses no epoch: the last one's weights, in files, reports and lines alike."""
    kept = {}
    given = noise(folder)
    for least, more in ("30", []), ("10", ["--validation-least", "10"]):
        run = os.path.join(folder, "least" + least)
        done = neap(*given, *more, "--out", run)
        results = json.load(open(os.path.join(run, "run.json")))["results"]
        rows = list(csv.DictReader(open(os.path.join(run, "metrics.csv"))))
        best = results["best_epoch"]
        told = float(rows[best - 1]["validation_accuracy"]) == results["best_validation"] == results["validation"]["accuracy"]
        kept[least] = best, bool(differ(run)), "(best)" in done.stdout, told, f"(the model is of epoch {best})" in done.stdout
    chosen = kept["10"][0]
    return None if kept == {"30": (6, False, False, True, True), "10": (chosen, True, True, True, True)} and chosen < 6 else str(kept)


def strip(run):
    """The run as a version without --validation-least would have left it."""
    path = os.path.join(run, "run.json")
    told = json.load(open(path))
    del told["settings"]["validation_least"]
    with open(path, "w") as file:
        json.dump(told, file)
    _, header, data = weights(run, "last.safetensors")
    kept = json.loads(header["__metadata__"]["neap.settings"])
    del kept["validation_least"]
    header["__metadata__"]["neap.settings"] = json.dumps(kept)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(run, "last.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def held_out(folder):
    """A speaker who is held out has too few recordings: the line names the speaker, not --validation."""
    write_recordings(os.path.join(folder, "sounds"), classes=2, each=6)
    data = encode(os.path.join(folder, "sounds"), os.path.join(folder, "sounds.h5"))
    done = neap("train", data, "--holdout", "a", "--net", "lif:8,li", "--epochs", "1", "--memory", "4M", "--threads", "1", "--out",
                os.path.join(folder, "held-out"))
    line = "has 6 samples, too few to choose the best epoch (--validation-least 30), so model.safetensors will have the weights " \
        "of the last epoch. Add recordings of speaker 'a', or hold out another one\n"
    return None if done.returncode == 0 and line in done.stderr else done.stderr


def goes_on_as_begun(folder):
    """A run that an earlier version began chooses the best epoch by any validation set."""
    whole, run = (os.path.join(folder, name) for name in ("chosen", "begun"))
    given = noise(folder)
    neap_json(*given, "--validation-least", "0", "--out", whole)
    done = neap(*given, "--validation-least", "0", "--epochs", "5", "--out", run)
    strip(run)
    done = neap("train", "--resume", "--out", run, "--epochs", "6")
    if done.returncode != 0 or WARNINGS["few"] in done.stderr:
        return done.stderr
    if weights(run, "model.safetensors")[0] != weights(whole, "model.safetensors")[0] or not differ(run):
        return f"other weights: {differ(run)}"
    done = neap("train", "--resume", "--out", run, "--epochs", "7", "--validation-least", "30")
    return None if done.returncode == 2 and "--validation-least 0, not 30" in done.stderr else done.stderr


def resumed(folder):
    """A run that has no epoch left learned what it learned: no word of chance."""
    run = os.path.join(folder, "done")
    first = neap(*noise(folder), "--lr", "0", "--out", run)
    again = neap("train", "--resume", "--out", run)
    return None if (WARNINGS["chance"] in first.stderr, WARNINGS["chance"] in again.stderr) == (True, False) else again.stderr


OVERFLOWS = "; or pass --precision double, since the gradient exceeds the range of single precision before it is clipped\n"


def diverged(folder):
    """A gradient norm or a loss that is nan ends the run: what, where, what to do, and what is kept."""
    data = os.path.join(folder, "long.npz")
    np.savez(data, x=series(64, 400, 3), y=np.arange(64) % 2)
    unstable = "rnn:16:activation=relu:scale=5,li"
    step = ["--lr", "1e6", "--optimizer", "sgd", "--warmup", "0"]
    for number, (net, more, line) in enumerate((
            ("lif:16r:recurrent_scale=1e10,li", [], "the gradient norm is nan in epoch 1, batch 1. The initial weights cause it: "
             "decrease --scale, --recurrent-scale or the size of the inputs\n"),
            ("lif:16r:recurrent_scale=1e10,li", ["--detach"], " in epoch 1, batch 1. The initial weights cause it: remove --detach, "
             "or decrease --scale, --recurrent-scale or the size of the inputs\n"),
            ("lif:16r:recurrent_scale=1e10:detach=1,li", [], " The initial weights cause it: remove detach=1 from --net, or decrease "
             "--scale, --recurrent-scale or the size of the inputs\n"),
            ("lif:16r:recurrent_scale=0.3:surrogate=triangle:width=3,li", ["--detach", "--lr", "0.1", "--warmup", "0", "--clip", "0", "--batch", "8"],
             ". Remove --detach, or lower --lr (now 0.1) or set --clip (now off)" + OVERFLOWS),
            (unstable, [*step, "--detach", "--clip", "0"], " in epoch 1, batch 2. Lower --lr (now 1e+06) or set --clip (now off)\n"),
            (unstable, [*step, "--clip", "0"], " in epoch 1, batch 2. Lower --lr (now 1e+06) or set --clip (now off)\n"),
            (unstable, [*step, "--clip", "1e9", "--snapshot", "1us"], " in epoch 1, batch 2. Lower --lr (now 1e+06) or --clip "
             "(now 1e+09). The last good snapshot is in {}\n"))):
        run = os.path.join(folder, f"diverged{number}")
        done = neap("train", data, "--net", net, *more, "--epochs", "2", "--memory", "40M", "--threads", "1", "-q", "--validation", "0", "--out", run)
        if done.returncode != 1 or done.stderr.count("\n") != 1 or "-nan" in done.stderr or \
                not done.stderr.startswith("neap train: training diverged: the ") or not done.stderr.endswith(line.format(run)):
            return f"{net}: {done.returncode} {done.stderr}"
        if os.path.exists(os.path.join(run, "last.safetensors")) != ("snapshot" in line):
            return f"{net}: {os.listdir(run)}"
    return None


def falling(folder):
    """A note about a loss that was still falling: not with many updates, at a plateau, of one epoch, nor with --quiet."""
    data = os.path.join(folder, "falling.npz")
    wave = np.sin(np.arange(9) * 0.5)[:, None]
    two = np.arange(300) % 2
    np.savez(data, x=series() + wave * two[:, None, None], y=two)
    told = []
    for number, options in enumerate((["--epochs", "4"], ["--epochs", "4", "-q"], ["--epochs", "1"], ["--epochs", "4", "--lr", "0"],
                                      ["--epochs", "4", "--batch", "1"])):
        run = os.path.join(folder, f"falling{number}")
        done = neap("train", data, "--net", "gru:16,li", "--memory", "4M", "--threads", "1", "--schedule", "constant", *options, "--out", run)
        told.append([line for line in done.stderr.splitlines() if "still falling" in line])
    right = len(told[0]) == 1 and "updates, and the training loss was still falling (" in told[0][0] and told[0][0].endswith("increase --epochs (now 4)")
    return None if right and not any(told[1:]) else str(told)


def fell_midway(folder):
    """A note about a schedule that lowered the rate while the loss was falling: also if a resumed run had fallen before, not with a constant
    rate, a plateau, a net that learned its task, or --quiet."""
    data = os.path.join(folder, "midway.npz")
    two = np.arange(300) % 2
    np.savez(data, x=series() + np.sin(np.arange(9) * 0.5)[:, None] * two[:, None, None], y=two)
    told = []
    for number, options in enumerate((["--epochs", "9"], ["--epochs", "9", "-q"], ["--epochs", "9", "--schedule", "constant"], ["--epochs", "9", "--lr", "0"],
                                      ["--epochs", "12", "--lr", "0.02"])):
        run = os.path.join(folder, f"midway{number}")
        done = neap("train", data, *TRAIN[:1], "gru:16,li", *TRAIN[4:], "--validation", "0", "--schedule", "cosine", *options, "--out", run)
        told.append([line for line in done.stderr.splitlines() if "had lowered" in line])
    run = os.path.join(folder, "midway-resumed")
    for args in [data, "--net", "gru:16,li", "--memory", "4M", "--validation", "0", "--schedule", "cosine", "--epochs", "4"], ["--resume", "--epochs", "9"]:
        done = neap("train", *args, "--threads", "1", "--out", run)
    rows = list(csv.DictReader(open(os.path.join(folder, "midway0", "metrics.csv"))))
    want = f"only 90 updates, and the training loss was still falling ({float(rows[5]['train_loss']):.4g} in epoch 6) when --schedule cosine " \
        "had lowered the learning rate: increase --epochs (now 9), decrease --batch (now 32), or pass --schedule constant"
    return None if told == [[want], [], [], [], []] and "had lowered" in done.stderr else f"{told} {done.stderr}"


def compared(folder):
    """`neap compare` names layers whose gradients are nearly all zero, and no others."""
    told = {}
    for net in "lif:16:scale=3,li", "lif:16:scale=3,lif:8:scale=0.001,li", "lif:16:scale=0.001,li", "gru:8,li":
        done = neap("compare", "randman:classes=3,samples=32,units=9,steps=50", "--net", net, "--memory", "4M", "--threads", "1")
        told[net] = [line for line in done.stderr.splitlines() if "warning" in line]
    line = "warning: layer{} (lif) is silent in this batch: no unit spikes, so its gradients are nearly all zero, and equal ones " \
        "show little. Increase its scale (now 0.001) or decrease its threshold (now 1)".format
    return None if list(told.values()) == [[], [line(1)], [line(0)], []] else str(told)


def main():
    with Tap() as tap, Folder() as folder:
        for name, *case in cases():
            tap.run(f"train: {name}", warned, folder, name, *case)
        for test in last_epoch, held_out, goes_on_as_begun, resumed, diverged, falling, fell_midway, compared:
            tap.run(test.__doc__, test, folder)


if __name__ == "__main__":
    sys.exit(main())
