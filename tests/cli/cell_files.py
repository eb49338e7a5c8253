#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cells from files: models and runs contain the text, all strategies compute the same gradient in the planned bytes, and what a cell
file cannot do is refused by name."""
import json
import os
import shutil

from harness import SOURCE, Folder, Tap, neap, neap_json

DATA = "randman:steps=60,samples=60,units=30,classes=3"
TRAIN = ["--threads", "1", "--seed", "1", "--memory", "1M", "--batch", "20"]
# Keys of the layer, and a budget below what storing everything needs.
CELLS = {"lif": ("scale=3", "40K"), "alif": ("scale=3", "40K"), "seadlif": ("scale=40:a=2:b=3", "60K"),
         "izhikevich": ("scale=3:gain=50", "200K"), "eif": ("scale=3", "200K")}
ROWS = ("izhikevich", "eif")  # whose tapes all have one size


def train(folder, out, *more, net="lif.cell:20r:scale=3:tau=15ms,li", epochs=2):
    return neap_json("train", DATA, *TRAIN, "--net", net, "--epochs", epochs, "--out", out, *more, cwd=folder)


def every_strategy(folder, name):
    """All plans give one gradient in the budget; they need the planned bytes, if tapes are not lists of spikes."""
    keys, memory = CELLS[name]
    result = neap_json("compare", DATA, "--net", f"{name}.cell:24r:{keys},li", "--memory", memory, "--threads", "1", cwd=folder)
    runs = [run for run in result["runs"] if run["grad_hash"]]
    if len(runs) < 6 or len({run["grad_hash"] for run in runs}) != 1 or not any(run["feasible"] and run["advance_steps"] for run in runs):
        return str(runs)
    for run in runs:
        planned, measured = run["peak_bytes"], run["peak_measured"]
        if measured > max(planned, result["budget"]) or (name in ROWS and measured != planned):
            return f"{run['strategy']}: {measured} bytes, planned {planned}"
    return None


def like_the_built_in_one(folder):
    """lif from a file learns as lif does, from the same rescaled weights; so does a net of two layers."""
    for number, ending in enumerate(("", ".cell")):
        done = neap("train", DATA, *TRAIN, "--net", f"alif{ending}:20r,lif{ending}:15,li", "--epochs", "3", "--out", f"twin{number}",
                    cwd=folder)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("initial weights rescaled", "epoch 3/3"))]
        if number == 0:
            wants = lines
    return None if len(lines) == 2 and lines == wants else f"{lines}, {wants}"


def elsewhere(folder):
    """A model is complete without the cell file, and so is a run that is resumed."""
    train(folder, "run")
    whole = train(folder, "whole", epochs=4)["weights_hash"]
    os.makedirs(os.path.join(folder, "far"))
    shutil.copy(os.path.join(folder, "run", "model.safetensors"), os.path.join(folder, "far"))
    shutil.move(os.path.join(folder, "lif.cell"), os.path.join(folder, "gone"))
    here, far = (neap_json("eval", path, DATA, cwd=folder) for path in ("run", "far/model.safetensors"))
    resumed = neap_json("train", DATA, "--threads", "1", "--resume", "--epochs", "4", "--out", "run", cwd=folder)
    shutil.move(os.path.join(folder, "gone"), os.path.join(folder, "lif.cell"))
    if here.get("accuracy") != far.get("accuracy"):
        return f"{here} {far}"
    return None if resumed["weights_hash"] == whole else f"{resumed['weights_hash']}, {whole}"


def ranges(folder):
    """The range of a parameter is the same in a model as in its file: '0. ..5' does not become '0...5'."""
    with open(os.path.join(folder, "wide.cell"), "w", encoding="ascii") as file:
        file.write("cell wide\nstate u\nparam beta = 0.3 in 0. ..5\nu = 0.1*beta*u + in\nspike u - 1\n")
    train(folder, "wide", net="wide.cell:9:beta=3,li", epochs=1)
    done = neap("eval", "wide", DATA, cwd=folder)
    return None if done.returncode == 0 else done.stderr


def changed(folder):
    """A model whose metadata names a cell file instead of its text: opening it must not read other files."""
    train(folder, "given")
    with open(os.path.join(folder, "given", "model.safetensors"), "rb") as file:
        content = file.read()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    for path in ("lif.cell", "cell=/etc/passwd"):
        net = json.loads(header["__metadata__"]["neap.net"])
        net["net"] = path + net["net"][net["net"].rindex(":20r"):]
        other = json.dumps({**header, "__metadata__": {**header["__metadata__"], "neap.net": json.dumps(net)}}).encode()
        with open(os.path.join(folder, "changed.safetensors"), "wb") as file:
            file.write(len(other).to_bytes(8, "little") + other + content[8 + length:])
        done = neap("eval", "changed.safetensors", DATA, cwd=folder)
        if done.returncode != 2 or "names a cell file instead of containing its text" not in done.stderr:
            return f"{path}: {done.returncode} {done.stderr}"
    return None


def refused(folder):
    train(folder, "model")
    wrong = os.path.join(folder, "wrong.cell")
    with open(wrong, "w", encoding="ascii") as file:
        file.write("cell wrong\nstate u\nu = 0.9*u + input\nspike u - 1\n")
    with open(os.path.join(folder, "power.cell"), "w", encoding="ascii") as file:
        file.write("cell power\nstate u\nu = 0.9*u + in^1.\nspike u - 1\n")
    for command, words in ((["train", DATA, *TRAIN, "--net", "power.cell:9,li", "--out", "x"],
                            "power.cell:3:16: an exponent must be a whole number"),
                           (["export", "model", "--nir", "x.nir"], "layer0 is lif.cell, which NIR cannot express"),
                           (["train", DATA, *TRAIN, "--net", "wrong.cell:9,li", "--out", "x"],
                            "wrong.cell:3:13: unknown name 'input'"),
                           (["train", DATA, *TRAIN, "--net", "lif.cell:9:tau=20,li", "--out", "x"], "Did you mean tau=20ms"),
                           (["train", DATA, *TRAIN, "--net", "lif.cell:9:tau=-1ms,li", "--out", "x"], "not '-1ms'"),
                           (["train", DATA, *TRAIN, "--net", "lif.cell:9:reset=hard,li", "--out", "x"], "no key 'reset'"),
                           (["train", DATA, *TRAIN, "--net", "lif.cell,li", "--out", "x"], "needs a size"),
                           (["train", DATA, *TRAIN, "--net", "no/such.cell:9,li", "--out", "x"], "'no/such.cell': No such file"),
                           (["train", DATA, *TRAIN, "--net", "lif.cell:9", "--out", "x"], "not a readout")):
        done = neap(*command, cwd=folder)
        if done.returncode != 2 or words not in done.stderr or len(done.stderr.splitlines()) != 1:
            return f"{command}: {done.returncode} {done.stderr}"
        if os.path.exists(os.path.join(folder, "x")) or os.path.exists(os.path.join(folder, "x.nir")):
            return f"{command}: left something"
    return None


def main():
    with Tap() as tap, Folder() as folder:
        for name in CELLS:
            shutil.copy(os.path.join(SOURCE, "examples/cells", name + ".cell"), folder)
        for name in CELLS:
            tap.run(f"{name}.cell: every strategy, one gradient", every_strategy, folder, name)
        tap.run("lif.cell learns as lif does", like_the_built_in_one, folder)
        tap.run("a model contains the text of its cell", elsewhere, folder)
        tap.run("ranges of parameters are kept in models", ranges, folder)
        tap.run("a model that names a cell file is refused", changed, folder)
        tap.run("what a cell file cannot do is refused by name", refused, folder)


if __name__ == "__main__":
    main()
