#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Nets on a device, from the command line, with the fake CUDA driver (tests/device): weights, gradients and answers are those of the
processor; a run continues on the other side; what devices do not do is refused in one line.
"""
import hashlib
import json
import os
import random
import re
import sys

from harness import Folder, Tap, neap, neap_json

DATA = "randman:steps=70,samples=24,units=30,classes=3"
NET = ["--net", "lif:24r:scale=3,li", "--threads", "1"]
TRAIN = [*NET, "--batch", "8", "--memory", "1M", "--epochs", "2"]
DEVICE = ["--device", "cuda"]
# The bits of a device are those of AVX-512, on any processor.
ISA = {"NEAP_ISA": "lowered"}
FAKE = dict(ISA, NEAP_CUDA_DRIVER=os.environ["NEAP_FAKE_DRIVER"])


def said(done):
    return f"exit {done.returncode}: {done.stderr.strip()[:300]}"


def weights(run):
    with open(os.path.join(run, "model.safetensors"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def moments(path):
    """How many tensors of an optimizer a snapshot has, and a hash of all tensors."""
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        names = [name for name in head if name.startswith("optimizer.")]
        return len(names), hashlib.sha256(file.read()).hexdigest()


def train(out, *more, env=FAKE, cwd=None):
    return neap("train", DATA, *TRAIN, "--out", out, *more, env=env, cwd=cwd)


def same_weights(folder):
    clusters = ["--device", "cuda:0:clusters=2"]
    for out, more, env in ("cpu", [], ISA), ("device", DEVICE, FAKE), ("clusters", clusters, FAKE), ("sent", [*DEVICE, "--memory", "40K", "--slow", "pinned:1M,/var/tmp"],
                                                                    FAKE):
        done = train(out, *more, env=env, cwd=folder)
        if done.returncode:
            return f"{out}: {said(done)}"
    found = {out: weights(os.path.join(folder, out)) for out in ("cpu", "device", "clusters", "sent")}
    return None if len(set(found.values())) == 1 else f"weights differ: {found}"


OPTIMIZERS = [
    ["--optimizer", "adam", "--weight-decay", "0.01", "--schedule", "cosine", "--warmup", "2"],
    ["--optimizer", "adam", "--clip", "0.01"],
    ["--optimizer", "sgd", "--momentum", "0.9", "--weight-decay", "0.001", "--lr", "0.05", "--freeze", "readout.bias"],
    ["--optimizer", "adamw", "--weight-decay", "0.1", "--clip", "1", "--group", "3"],
    ["--optimizer", "sgd", "--momentum", "0", "--lr", "0.5", "--clip", "0.2", "--batch", "5", "--time-unit", "3ms"],
]


def same_update(folder, number):
    """Two epochs on either side, and of every other row an epoch on one side and the next one on the other: one model and snapshot."""
    options, found = OPTIMIZERS[number], {}
    sides = [("cpu", [], None), ("device", DEVICE, None), ("there", [], DEVICE), ("back", DEVICE, ["--device", "cpu"])]
    for name, first, second in sides[:2 if number % 2 else 4]:
        out = f"{name}-{number}"
        done = train(out, *options, *(["--epochs", "1"] if second is not None else []), *first, env=FAKE if first else ISA, cwd=folder)
        if done.returncode == 0 and second is not None:
            done = train(out, "--resume", *options, *second, env=FAKE if second == DEVICE else ISA, cwd=folder)
        if done.returncode:
            return f"{name}: {said(done)}"
        found[name] = weights(os.path.join(folder, out)), moments(os.path.join(folder, out, "last.safetensors"))
    if len(set(found.values())) != 1:
        return f"models and moments differ: {found}"
    return None if found["cpu"][1][0] else "no moments"


def one_hash(folder):
    what = ["compare", DATA, *NET, "--batch", "8", "--memory", "200K", "--repeats", "1"]
    rows = {}
    for name, more, env in ("cpu", ["--strategy", "bptt"], ISA), ("device", [*DEVICE, "--slow", "pinned:1M"], FAKE):
        done = neap(*what, *more, env=env, cwd=folder)
        if done.returncode:
            return said(done)
        rows[name] = re.findall(r" ([0-9a-f]{16}) ", done.stdout)
    if len(set(rows["cpu"] + rows["device"])) != 1 or len(rows["device"]) < 12:
        return f"{len(rows['device'])} strategies with the hashes {set(rows['cpu'] + rows['device'])}"
    return None


def same_answers(folder):
    for command, more in ("eval", []), ("predict", []):
        found = [neap(command, "cpu", DATA, *more, *side, env=env, cwd=folder) for side, env in (([], ISA), (DEVICE, FAKE))]
        bad = [done for done in found if done.returncode]
        if bad:
            return f"{command}: {said(bad[0])}"
        if found[0].stdout != found[1].stdout:
            return f"{command}: {found[1].stdout[:200]} for {found[0].stdout[:200]}"
    return None


def windows(folder):
    """Inputs that are read in windows of 64 steps, and copied to the device a window ahead."""
    options = ["train", "randman:steps=1000,samples=6,units=20,classes=3", "--net", "lif:9r:scale=3,li", "--batch", "3",
               "--validation", "0", "--epochs", "1", "--threads", "1", "--inputs", "16K", "--memory", "60K", "--quiet"]
    for out, more, env in ("whole", ["--inputs", "1M"], ISA), ("windows", DEVICE, FAKE), ("pinned", [*DEVICE, "--slow", "pinned:1M"], FAKE):
        done = neap(*options, *more, "--out", out, env=env, cwd=folder)
        if done.returncode:
            return f"{out}: {said(done)}"
    found = {out: weights(os.path.join(folder, out)) for out in ("whole", "windows", "pinned")}
    return None if len(set(found.values())) == 1 else f"weights differ: {found}"


def numbers(folder):
    """Numbers as inputs, of samples of different lengths, with dropout: weights, answers and the planned memory of a device."""
    r = random.Random(5)
    with open(os.path.join(folder, "numbers.csv"), "w", encoding="utf-8") as file:
        print("sample,a,b,c,kind", file=file)
        for sample in range(16):
            for t in range(150 - 9 * (sample % 3)):
                print(sample, *(round(r.gauss(sample % 2, 1), 3) for _ in "abc"), "xy"[sample % 2], sep=",", file=file)
    done = neap("encode", "numbers.csv", "--sample-column", "sample", "--target", "kind", "--out", "numbers.h5", cwd=folder)
    if done.returncode:
        return said(done)
    for number, net in enumerate(("lif:20r:dropout=0.3,li", "lstm:9,egru:7,li")):
        found = []
        for out, more, env in ("numbers-host", [], ISA), ("numbers-cuda", DEVICE, FAKE):
            done = neap("train", "numbers.h5", "--net", net, "--batch", "16", "--epochs", "2", "--validation", "0", "--memory", "300K",
                        "--threads", "1", *more, "--out", out + str(number), "--json", env=env, cwd=folder)
            if done.returncode:
                return f"{out}: {said(done)}"
            answers = neap("predict", out + str(number), "numbers.h5", *more, env=env, cwd=folder).stdout
            found.append((weights(os.path.join(folder, out + str(number))), answers))
            device = json.loads(done.stdout)["device"]
            if device and not device["measured"] == device["allocated"] < device["planned"] + 4096:
                return f"{net}: {device}"
        if len(set(found)) != 1 or not found[0][1]:
            return f"{net}: weights or answers differ"
    return None


def random_case(seed):
    """Options of a random training that a device takes, and slow memory."""
    r = random.Random(seed)
    layers, dense = [], seed % 3 == 1
    for _ in range(r.choice((1, 1, 2))):
        if dense:
            cell = r.choice(("rnn", "rnn:activation=relu", "lstm", "gru", "egru", "egru:surrogate=superspike", "egru:threshold=0.1"))
            name, _, more = cell.partition(":")
            layers.append(f"{name}:{r.choice((1, 4, 7, 13))}:scale={r.choice((1, 3))}{':' + more if more else ''}")
            continue
        cell = r.choice(("lif", "lif", "cubalif", "alif", "adlif"))
        reset = ":reset=" + r.choice(("subtract", "zero", "hard", "soft")) if cell == "lif" else ""
        surrogate = r.choice(("", ":surrogate=boxcar", ":surrogate=atan:support=0.7", ":surrogate=superspike", ":surrogate=slayer"))
        density = r.choice(("", "", ":density=0.4"))
        layers.append(f"{cell}:{r.choice((1, 7, 32, 33, 40))}{r.choice(('', 'r'))}:scale={r.choice((1, 3, 5))}{reset}{surrogate}{density}")
    data = f"randman:steps={r.choice((5, 64, 65) if dense else (5, 64, 65, 130))},samples={r.choice((2, 9, 20))},units={r.choice((1, 20))},classes=3"
    options = ["train", data, "--net", ",".join(layers) + ",li" + r.choice(("", ":tau=none")), "--batch", r.choice((1, 4, 16)),
               "--group", r.choice((0, 3)), "--epochs", "2", "--validation", "0", "--memory", "1M", "--threads", "1", "--seed", seed, "--quiet",
               "--readout", r.choice(("mean", "sum", "last", "max", "step", "softmax")),
               "--strategy", r.choice(("auto", "revolve", "double", "stream", "mixed"))]
    options += ["--rate-upper", "20Hz"] if r.random() < 0.3 else []
    options += ["--dropout", "0.3"] if r.random() < 0.3 else []
    options += ["--optimizer", r.choice(("adam", "adamw", "sgd")), "--clip", r.choice((0, 0.01, 1)), "--weight-decay", r.choice((0, 0.1))]
    return options, r.choice(("pinned:1M", "pinned:32K,/var/tmp"))


def random_nets(folder, first, count):
    for seed in range(first, first + count):
        options, slow = random_case(seed)
        for out, more, env in ("host", ["--slow", "mem:1M"], ISA), ("cuda", [*DEVICE, "--slow", slow], FAKE):
            done = neap(*options, *more, "--out", f"{out}{seed}", env=env, cwd=folder)
            if done.returncode:
                return f"seed {seed}, {out}: {' '.join(map(str, options))}: {said(done)}"
        if weights(os.path.join(folder, f"host{seed}")) != weights(os.path.join(folder, f"cuda{seed}")):
            return f"seed {seed}: weights differ: {' '.join(map(str, options))}, {slow}"
    return None


def diverges(folder):
    """Weights that become infinite end the training, in the same line on both sides."""
    found = []
    for out, more, env in ("cpu-huge", [], ISA), ("device-huge", DEVICE, FAKE):
        huge = ["--optimizer", "sgd", "--lr", "1e6", "--weight-decay", "1e6", "--clip", "0", "--warmup", "0"]
        done = train(out, *huge, *more, env=env, cwd=folder)
        found.append((done.returncode, done.stderr.splitlines()[-1].partition(" Lower")[0]))
    return None if found[0] == found[1] and "the largest weight is infinite in epoch 2" in found[0][1] else str(found)


REFUSED = [
    (["--device", "gpu"], {}, r"device 'gpu'.*cuda"),
    (["--device", "cuda:7"], {}, r"cuda:7"),
    (["--device", "cuda"], {"NEAP_CUDA_DRIVER": "libnone.so"}, r"no CUDA driver"),
    (["--device", "cuda", "--net", "brf:8,li"], {}, r"brf, which is not implemented on devices"),
    (["--device", "cuda", "--net", "lif:8,gru:8,li"], {}, r"layers of lif and of gru"),
    (["--device", "cuda", "--net", "lif:8,lif:8:from=input+layer0,li"], {}, r"'from'"),
    (["--device", "cuda", "--precision", "double"], {}, r"precision"),
    (["--slow", "pinned:1M"], {}, r"pinned"),
    (["--device", "cuda", "--memory", "1K"], {}, r"--memory|at least|bytes"),
]


def refused(folder, more, env, words):
    done = train("refused", *more, env={**FAKE, **env}, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning")]
    if done.returncode != 2 or not lines or not re.search(words, lines[-1]):
        return said(done)
    return f"{len(lines)} lines: {done.stderr}" if len(lines) != 1 else None


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("trained on a device, with and without tiers: the weights of the processor", same_weights, folder)
        for number, options in enumerate(OPTIMIZERS):
            tap.run(f"{' '.join(options)}: weights and moments of the processor; the run continues on the other side", same_update, folder,
                    number)
        tap.run("weights that become infinite end the training", diverges, folder)
        tap.run("compare: all strategies have the gradients of the processor", one_hash, folder)
        tap.run("eval and predict: the answers of the processor", same_answers, folder)
        tap.run("inputs in windows: the weights of the processor", windows, folder)
        tap.run("numbers as inputs: weights and answers of the processor, planned bytes", numbers, folder)
        tap.run("random nets: the weights of the processor", random_nets, folder, int(os.environ.get("NEAP_SEED", 0)),
                int(os.environ.get("NEAP_MANY", 5)))
        for more, env, words in REFUSED:
            tap.run(f"refused: {' '.join(more)} {' '.join(env)}", refused, folder, more, env, words)


if __name__ == "__main__":
    sys.exit(main())
