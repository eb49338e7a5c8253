#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train --from RUN`, `--fresh-readout` and `--freeze`: what is kept, what learns, what is refused."""
import json
import os

from harness import Folder, Tap, neap, neap_json

NET = ["--net", "lif:48r,lif:32r,li", "--scale", "2", "--batch", "16", "--seed", "5", "--warmup", "5"]
DATA = "randman:classes=4,samples=300,units=40,steps=60,part=train"
SIX = "randman:classes=6,samples=300,units=40,steps=60,part=train"
LAYERS = ["layer0.weight", "layer0.recurrent", "layer0.bias", "layer1.weight", "layer1.recurrent", "layer1.bias",
          "readout.weight", "readout.bias"]


def weights(run, file="last"):
    """The bytes of all tensors of a run's file by their names."""
    with open(os.path.join(run, file + ".safetensors"), "rb") as f:
        whole = f.read()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:8 + length])
    return {name: whole[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


def tune(run, out, *more, data=DATA):
    return neap_json("train", data, "--from", run, "--epochs", "1", "--memory", "2M", "--out", out, *more)


def same(a, b):
    return [name for name in LAYERS if a.get(name) == b.get(name)]


def begins_there(folder, run):
    """With a rate of 0 nothing moves: the weights are those of the file, --from takes all settings of the net."""
    out = os.path.join(folder, "still")
    tune(run, out, "--lr", "0")
    if weights(out, "model") != weights(run, "model"):
        return "other weights"
    now = json.load(open(os.path.join(out, "run.json")))
    was = json.load(open(os.path.join(run, "run.json")))
    for key in ("net", "scale", "net_seed", "dt", "reset"):
        if now["settings"][key] != was["settings"][key]:
            return f"{key} is {now['settings'][key]}"
    if now["sweep"]["from"] != run:
        return f"from {now['sweep']['from']}"
    file = os.path.join(run, "model.safetensors")
    tune(file, os.path.join(folder, "of-file"), "--lr", "0", "--precision", "double")
    return None


def freezes(folder, run):
    """The same bits for every strategy and number of threads; frozen tensors stay, and have no moments."""
    first, was = None, weights(run, "model")
    for i, more in enumerate(([], ["--threads", "1"], ["--strategy", "revolve", "--memory", "100K"],
                              ["--strategy", "standard"])):
        out = os.path.join(folder, f"frozen{i}")
        tune(run, out, "--freeze", "layer0,layer1.bias", *more)
        now = weights(out)
        if same(was, now) != LAYERS[:3] + ["layer1.bias"]:
            return f"{more}: kept {same(was, now)}"
        if any("moments" in name or "layer0" in name for name in now if name.startswith("optimizer")):
            return "moments of layer0"
        if first and now != first:
            return f"{more}: other weights"
        first = now
    return None


def resumes(folder, run):
    whole, parts = os.path.join(folder, "whole"), os.path.join(folder, "parts")
    tune(run, whole, "--epochs", "3", "--freeze", "layer0,layer1", "--schedule", "constant")
    tune(run, parts, "--freeze", "layer0,layer1", "--schedule", "constant")
    done = neap("train", "--resume", "--out", parts, "--epochs", "3")
    if done.returncode != 0 or weights(whole) != weights(parts):
        return f"other weights: {done.stderr}"
    done = neap("train", "--resume", "--out", parts, "--epochs", "4", "--freeze", "layer0")
    if done.returncode != 2 or "--freeze layer0,layer1, not layer0" not in done.stderr:
        return done.stderr
    with open(os.path.join(parts, "run.json"), "rb") as f:
        before = f.read()
    for more, says in (["--from", parts], f"not {parts}"), (["--fresh-readout"], "was started without it"):
        done = neap("train", "--resume", "--out", parts, "--epochs", "4", *more)
        with open(os.path.join(parts, "run.json"), "rb") as f:
            if done.returncode != 2 or says not in done.stderr or f.read() != before:
                return f"{more}: {done.returncode} {done.stderr}"
    done = neap("train", "--resume", "--out", parts, "--epochs", "4", "--from", run)  # as it was started
    return None if done.returncode == 0 else done.stderr


def fresh(folder, run):
    out = os.path.join(folder, "six")
    tune(run, out, "--fresh-readout", "--freeze", "layer0,layer1", data=SIX)
    now = weights(out)
    if same(weights(run, "model"), now) != LAYERS[:6] or len(now["readout.bias"]) != 6 * 4:
        return "other layers moved, or the readout has no six classes"
    return None


def earlier_version(folder):
    """A model without a rule of initial weights learns as before there was one, also in the bias of its lstm."""
    run, old = os.path.join(folder, "gated"), os.path.join(folder, "old.safetensors")
    neap_json("train", DATA, "--net", "lstm:12,li", "--epochs", "1", "--memory", "2M", "--out", run)
    with open(os.path.join(run, "model.safetensors"), "rb") as f:
        whole = f.read()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:8 + length])
    net = json.loads(header["__metadata__"]["neap.net"])
    if net.pop("init") != "auto":
        return f"{net}"
    header["__metadata__"]["neap.net"] = json.dumps(net)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(old, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + whole[8 + length:])
    hashes = [tune(model, os.path.join(folder, f"tuned{i}"), *more)["weights_hash"]
              for i, (model, more) in enumerate(((old, ()), (run, ("--init", "normal")), (run, ())))]
    return None if hashes[0] == hashes[1] != hashes[2] else f"{hashes}"


def refuses(folder, run):
    out = os.path.join(folder, "refused")
    for more, said in (([SIX, "--from", run], "--fresh-readout"),
                       ([DATA, "--from", run, "--net", "lif:40r,lif:32r,li"], "Remove --net, or pass the network of the weights: --net lif:48r,lif:32r,li"),
                       ([DATA, "--from", run, "--net", "lif:48r,li"], "--net 'lif:48r,li' does not fit"),
                       ([DATA, "--from", run, "--net", "lif:48r,lif:32r,lif:9,li"], "--net 'lif:48r,lif:32r,lif:9,li' does not fit"),
                       ([DATA, "--from", run, "--density", "0.5"], "the network"),
                       ([DATA, "--from", run, "--freeze", "layer9"], "the network has no 'layer9'"),
                       ([DATA, "--from", run, "--freeze", "layer0,layer1,readout"], "nothing is left to train"),
                       ([DATA, "--from", os.path.join(folder, "nowhere")], "nowhere"),
                       ([DATA, "--from", __file__], "given_weights.py"),
                       ([DATA, "--fresh-readout"], "--from"),
                       (["randman:units=50,classes=4", "--from", run], "50 input channels")):
        done = neap("train", *more, "--out", out)
        if done.returncode != 2 or said not in done.stderr or done.stderr.count("\n") != 1:
            return f"{more}: {done.returncode} {done.stderr}"
        if os.path.exists(out):
            return f"{more}: wrote a folder"
    return None


def characters(folder):
    """A text whose characters are some of the model's is numbered as there, also when it is resumed; another one is refused."""
    for name, letters in ("a", "abcdefgh"), ("c", "bdefgh"), ("z", "yz"):
        with open(os.path.join(folder, name + ".txt"), "w") as out:
            out.write("".join(letters[(7 * i * i + i // 5) % len(letters)] for i in range(4000)))
    options = ["--threads", "1", "--memory", "2M", "--schedule", "constant", "--quiet"]

    def train(text, out, *more):
        return neap("train", "--text", text + ".txt", "--out", out, *options, *more, cwd=folder)
    train("a", "of-a", "--net", "gru:8,li", "--epochs", "1")
    for more in (), ("--fresh-readout",):
        done = train("z", "refused", "--from", "of-a", *more)
        if done.returncode != 2 or "contains 2 characters that the training text does not: 'y', 'z'" not in done.stderr:
            return f"another text {more}: {done.returncode} {done.stderr}"
    for out, epochs, more in ("text-whole", "2", ["--from", "of-a"]), ("text-parts", "1", ["--from", "of-a"]), ("text-parts", "2", ["--resume"]):
        done = train("c", out, "--epochs", epochs, *more)
        if done.returncode:
            return f"{out}: {done.stderr}"
    whole, parts = (weights(os.path.join(folder, out)) for out in ("text-whole", "text-parts"))
    # Rows of characters that do not occur have no gradient.
    start, row = weights(os.path.join(folder, "of-a"))["layer0.weight"], 3 * 8 * 4
    kept = [start[i * row:(i + 1) * row] == whole["layer0.weight"][i * row:(i + 1) * row] for i in range(8)]
    return None if whole == parts and kept == [i in (0, 2) for i in range(8)] else f"same after --resume: {whole == parts}; kept: {kept}"


def main():
    with Tap() as tap, Folder() as folder:
        run = os.path.join(folder, "run")
        neap_json("train", DATA, *NET, "--epochs", "1", "--memory", "2M", "--out", run)
        for name, case in (("--from begins with the weights and the net of a run", begins_there),
                           ("--freeze: what is frozen stays, the same bits in every way", freezes),
                           ("--resume goes on with --freeze", resumes),
                           ("--fresh-readout: other classes", fresh),
                           ("bad input: one line, exit code 2, nothing written", refuses)):
            tap.run(name, case, folder, run)
        tap.run("a model of an earlier version", earlier_version, folder)
        tap.run("characters of a text are those of the model", characters, folder)


if __name__ == "__main__":
    main()
