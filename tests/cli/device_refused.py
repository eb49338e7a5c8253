#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a device does not do, by option and cell, with the fake CUDA driver: one line that names it, exit code 2 and no folder. All other
options of `neap train` give the weights of the processor.
    device_refused.py [all]    options that work: two of them by chance; all: each
"""
import json
import os
import random
import re
import sys

from device import DEVICE, FAKE, ISA, said, weights
from harness import SOURCE, Folder, Tap, neap, neap_json

DATA = "randman:steps=40,samples=12,units=10,classes=3"
RUN = ["--threads", "1", "--batch", "6", "--epochs", "1", "--memory", "1M", "--quiet"]
WORKS = {"lif", "cubalif", "alif", "adlif", "rnn", "lstm", "gru", "egru"}
NET = ["--net", "lif:9r,lif:7,li"]

# Options, and the words of the line.
REFUSED = [
    (["--net", "lif:conv=1x3:channels=2:shape=1x1x10,li"], "'conv'"),
    (["--net", "lif:9,li:pool=1x3:shape=1x1x9"], "'pool'"),
    (["--net", "lif:9:norm=batch,li"], "'norm'"),
    ([*NET, "--precision", "double"], "'precision=double'"),
    (["--net", "lstm:9,li", "--precision", "bf16"], "'precision=bf16'"),
    ([*NET, "--products", "tiles"], "'products=tiles'"),
    ([*NET, "--freeze", "layer0"], "'freeze'"),
    (["--net", "lif:5000,li"], "at most 4096"),
    (["--net", "lstm:9,lif:7,li"], "layers of lstm and of lif"),
    (["--net", "li"], "no hidden layer"),
    (["--net", "cell lif;state u;u=0.9*u+in;spike u-1:9,li"], "a layer of lif.cell"),
    ([*NET, "--memory-total", "1G"], "--memory-total"),
    (["--net", "alif:9r,li", "--strategy", "replay"], "replay: needs a log"),
]
ACCEPTED = [
    *([*NET, "--reset", kind] for kind in ("subtract", "zero", "hard", "soft")),
    *([*NET, "--readout", kind] for kind in ("mean", "sum", "last", "max", "step", "softmax")),
    *([*NET, "--optimizer", kind] for kind in ("sgd", "adam", "adamw")),
    *([*NET, "--schedule", kind] for kind in ("constant", "cosine")),
    *([*NET, *more] for more in (["--detach"], ["--dense"], ["--surrogate", "boxcar"], ["--group", "2"], ["--clip", "0.1"], ["--gain", "0"],
                                 ["--rate-lower", "50Hz"], ["--rate-upper", "5Hz"], ["--dt", "2ms"], ["--freeze", "layer1"], ["--euler"],
                                 ["--max-steps", "17"], ["--shift", "2", "--jitter", "2ms"], ["--weight-decay", "0.01", "--optimizer", "adamw"],
                                 ["--inputs", "20K"], ["--loss", "mse"], ["--init", "torch"], ["--dropout", "0.2"])),
    *([*NET, "--surrogate", kind] for kind in ("superspike", "sigmoid", "atan", "gaussian", "slayer", "double_gaussian")),
    ["--net", "lif:9:surrogate=superspike:support=0.5,li"],
    ["--net", "lif:9r:surrogate=double_gaussian:reset=zero,alif:7r:surrogate=sigmoid:support=1,li"],
    [*NET, "--density", "0.5"],
    ["--net", "lif:9:density=0.5,alif:7r:density=0.2:dropout=0.3,li", "--optimizer", "adamw", "--clip", "0.1"],
    ["--net", "egru:9:surrogate=slayer,egru:7:surrogate=gaussian:support=0.5,li"],
    *(["--net", net] for net in ("rnn:9,li", "lstm:9,rnn:5:activation=relu,li", "gru:9,egru:6,li", "egru:9:surrogate=atan,li")),
    ["--net", "gru:9:dropout=0.3,lstm:7:dropout=0.5,li"],
    ["--net", "lstm:9:density=0.5,egru:7:density=0.3:dropout=0.2,li:density=0.5", "--optimizer", "adamw", "--weight-decay", "0.1", "--clip", "0.1"],
    ["--net", "lif:9,lif:7:delay=1,li"],
    ["--net", "gru:9,lstm:7:delay=1,li:delay=1"],
    [*NET, "--learn", "tau"],
    ["--net", "lif:9,lif:7r:delay=2,li"],
    ["--net", "lif:9:dropout=0.3,cubalif:7:delay=0..50,li:delay=0..9"],
    ["--net", "lstm:9,li:learn=tau", "--optimizer", "adamw", "--weight-decay", "0.1"],
    ["--net", "egru:9,gru:9,li", "--learn", "tau"],
    ["--net", "lif:9,lif:9:density=0.5:delay=2,li:density=0.5"],
    ["--net", "lif:9,lif:7r:delay=0..40:learn,li:delay=0..3:learn", "--clip", "0.1", "--lr", "0.1", "--epochs", "3"],
    ["--net", "lif:9:dropout=0.3,alif:7:delay=1..9:learn:density=0.6,li", "--optimizer", "sgd", "--weight-decay", "0.1", "--lr", "1", "--epochs", "2"],
    ["--net", "alif:9r:learn=all,adlif:7:learn=tau,li", "--freeze", "layer0.leak", "--optimizer", "adamw", "--weight-decay", "0.1"],
    ["--net", "cubalif:9:tau=5ms..25ms:tau_syn=2ms..9ms,lif:7:tau=3ms..30ms:learn=tau,li"],
    ["--net", "lstm:9,li", "--freeze", "layer0.recurrent", "--clip", "0.1", "--rate-upper", "5Hz"],
]


def cells():
    """All hidden cells: rows of the table of cells."""
    with open(os.path.join(SOURCE, "src/nn/cells/cells.h"), encoding="utf-8") as file:
        rows = re.findall(r"X\((\w+), ([^)]*)\)", file.read())
    return [name for name, traits in rows if "NEAP__" in traits and "READOUT" not in traits]


def refused(folder, more, words):
    done = neap("train", DATA, *RUN, *more, *DEVICE, "--out", "x", env=FAKE, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning")]
    if done.returncode != 2 or len(lines) != 1 or not re.search(words, lines[0]):
        return f"{len(lines)} lines, {said(done)}"
    return "a folder is there" if os.path.exists(os.path.join(folder, "x")) else None


# Names of devices with clusters, what the driver is, the network, and the words of the line.
CLUSTERS = [
    ("cuda:clusters=3", "major=9", "lif:9r,li", "2, 4, 8 or 16 blocks"),
    ("cuda:0:clusters=", "major=9", "lif:9r,li", "2, 4, 8 or 16 blocks"),
    ("cuda:clusters=8", "major=8", "lif:9r,li", "compute capability 9.0"),
    ("cuda:clusters=8", "major=9", "lif:9,li", "after it. Pass the device without 'clusters': --device cuda"),
    ("cuda:clusters=8", "major=9", "lif:9r,lif:9:density=0.5,li", "no such layer of density 1, below another of density 1"),
    ("cuda:clusters=8", "major=9", "lif:9r,li:delay=2", "below another of density 1, without delays above 1 step before and after it"),
    ("cuda:clusters=4", "major=9", "lif:512r,li", "the smallest has 512 units. Pass a larger number, up to clusters=16, or the device without 'clusters': --device cuda"),
    ("cuda:1:clusters=8", "major=9", "lif:9r,li", "device 'cuda:1': the number of devices is 1"),
]


def refused_clusters(folder, device, driver, net, words):
    done = neap("train", DATA, *RUN, "--net", net, "--device", device, "--out", "x", env=dict(FAKE, FAKE_CUDA=driver), cwd=folder)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning")]
    if done.returncode != 2 or len(lines) != 1 or words not in lines[0]:
        return f"{len(lines)} lines, {said(done)}"
    return "a folder is there" if os.path.exists(os.path.join(folder, "x")) else None


# Costs with which a replay is much faster than recording again.
COSTS = {"advance": 1e-4, "record": 1e-2, "backward": 1e-4, "replay": 1e-6}
LOGGED = ["randman:steps=200,samples=12,units=30,classes=3,spikes=30", "--net", "lif:40r:scale=5:width=2,li", "--threads", "1"]


def replays(folder):
    """`replay` and `auto`, which chooses it by its costs, have the gradients of the other plans of the device and of the processor."""
    path = os.path.join(folder, "chain.json")
    done = neap("calibrate", *LOGGED, "--memory", "1M", *DEVICE, "--repeats", "2", "--out", path, env=FAKE, cwd=folder)
    if done.returncode or "replay, per step" not in done.stdout:
        return said(done)
    with open(path, encoding="utf-8") as file:
        chain = json.load(file)
    chain.update(COSTS, device="cuda")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(chain, file)
    there = neap_json("compare", *LOGGED, "--memory", "100K", "--chain", path, *DEVICE, "--strategy", "replay", "--strategy", "auto",
                      "--strategy", "standard", env=FAKE, cwd=folder)
    here = neap_json("compare", *LOGGED, "--memory", "100K", "--strategy", "standard", env=ISA, cwd=folder)
    gradients = {run["grad_hash"] for done in (there, here) for run in done["runs"]}
    chosen = [run.get("chosen") for run in there["runs"] if run["strategy"] == "auto"]
    return None if len(gradients) == 1 and chosen == ["replay"] else f"gradients {gradients}, auto chose {chosen}"


def all_cells(folder):
    names = cells()
    if not WORKS < set(names):
        return f"cells are {names}"
    for name in names:
        if name not in WORKS:
            wrong = refused(folder, ["--net", f"{name}:8,li"], f"a layer of {name}, which is not implemented on devices")
            if wrong:
                return f"{name}: {wrong}"
    return None


def same_weights(folder, number, more):
    for out, side, env in (f"c{number}", [], ISA), (f"d{number}", DEVICE, FAKE):
        done = neap("train", DATA, *RUN, *more, *side, "--out", out, env=env, cwd=folder)
        if done.returncode:
            return f"{out}: {said(done)}"
    same = weights(os.path.join(folder, f"c{number}")) == weights(os.path.join(folder, f"d{number}"))
    return None if same else "other weights"


def refused_commands(folder):
    """Other commands refuse the same, and leave nothing."""
    for command in ["compare", DATA, "--net", "brf:8,li"], ["calibrate", DATA, "--net", "brf:8,li", "--out", "x"]:
        done = neap(*command, "--threads", "1", *DEVICE, env=FAKE, cwd=folder)
        if done.returncode != 2 or "a layer of brf" not in done.stderr or os.path.exists(os.path.join(folder, "x")):
            return f"{command[0]}: {said(done)}"
    neap("train", DATA, *RUN, "--net", "brf:8,li", "--out", "brf", cwd=folder)
    for command in "eval", "predict":
        done = neap(command, "brf", DATA, *DEVICE, env=FAKE, cwd=folder)
        if done.returncode != 2 or "a layer of brf" not in done.stderr or done.stdout:
            return f"{command}: {said(done)}"
    return None


def chains(folder):
    """A model with products in tiles is evaluated with chains, and a line tells it."""
    neap("train", DATA, *RUN, "--net", "lif:9r:scale=20,lif:7,li", "--products", "tiles", "--out", "tiles", env=ISA, cwd=folder)
    here = neap("eval", "tiles", DATA, "--json", env=ISA, cwd=folder)
    there = neap("eval", "tiles", DATA, "--json", *DEVICE, env=FAKE, cwd=folder)
    if here.returncode or there.returncode or there.stderr.count("because devices have no tiles") != 1 or "tiles" in here.stderr:
        return f"{said(here)}, {said(there)}"
    losses = [json.loads(done.stdout)["loss"] for done in (here, there)]
    return None if abs(losses[0] - losses[1]) <= 1e-3 * losses[0] else f"losses {losses}"


def main():
    every = sys.argv[1:] == ["all"]
    dice = random.Random(int(os.environ.get("NEAP_SEED", os.getpid())))
    with Tap() as tap, Folder() as folder:
        tap.run("cells: others than those of devices are refused by name", all_cells, folder)
        for more, words in REFUSED:
            tap.run(f"refused: {' '.join(more)}", refused, folder, more, words)
        for row in CLUSTERS:
            tap.run(f"refused: {' '.join(row[:3])}", refused_clusters, folder, *row)
        tap.run("compare, calibrate, eval and predict refuse the same", refused_commands, folder)
        tap.run("eval: tiles become chains", chains, folder)
        tap.run("replay, and auto that chooses it", replays, folder)
        for number, more in enumerate(ACCEPTED if every else dice.sample(ACCEPTED, 2)):
            tap.run(f"works: {' '.join(more)}", same_weights, folder, number, more)


if __name__ == "__main__":
    sys.exit(main())
