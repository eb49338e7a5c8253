#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--precision bf16` and `--products tiles`: one gradient for all plans and numbers of threads, near that of float; the model in
plain C computes the same weights as the processor's instructions; what cannot compute so is rejected with one line that names it."""
import json
import os
import re
import sys

from harness import Folder, Tap, neap, neap_json

DATA = "randman:steps=150,samples=16,units=12,classes=3"
SHORT = "randman:steps=70,samples=10,units=12,classes=3"
BF16 = ["--precision", "bf16"]
NETS = ["lstm:35,li", "gru:33,rnn:20:dropout=0.2,li"]


def has_instructions(flag):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return flag in file.read()


HAS = has_instructions("avx512_bf16")
ISA = {} if HAS else {"NEAP_ISA": "lowered"}
TILES = ["--products", "tiles"]
MANY_SPIKES = "lif:35r:scale=20,lif:20:scale=20,li"
TILES_ISA = {} if has_instructions("avx512dq") else {"NEAP_ISA": "lowered"}

# Options, environment, and the words of the line.
REFUSED_TILES = [
    (["--net", "lif:9,li", "--precision", "double"], {}, "--precision float or bf16"),
    (["--net", "lif:9,li"], {"NEAP_ISA": "plain"}, "AVX-512"),
    (["--net", "lif:conv=1x3:channels=2:shape=1x1x12,li:density=0.5"], TILES_ISA, "no weights of"),
]
REFUSED = [
    (["--net", "lif:9r,li"], ISA, "layer 0 of 'lif:9r,li' is lif"),
    (["--net", "lstm:9,egru:7,li"], ISA, "layer 1 of 'lstm:9,egru:7,li' is egru"),
    (["--net", "gru:9,integrator:7,li"], ISA, "layer 1 of .* is integrator"),
    (["--net", "lstm:9:density=0.5,li"], ISA, "density"),
    (["--net", "gru:9,gru:7,li:from=layer0+layer1"], ISA, "from"),
    (["--net", "rnn:9,li:learn=tau"], ISA, "learn"),
    (["--net", "lstm:9,li"], {"NEAP_ISA": "plain"}, "AVX512-BF16"),
    (["--net", "lstm:9,li"], {"NEAP_ISA": "avx2"}, "AVX512-BF16.*|does not support"),
]


def gradients(net):
    found = {}
    for precision in "bf16", "float":
        for threads in 1, 3:
            run = neap_json("compare", DATA, "--net", net, "--memory", "600K", "--threads", threads, "--precision", precision,
                            "--strategy", "bptt", "--strategy", "standard", "--strategy", "revolve", "--strategy", "auto", env=ISA)
            found.setdefault(precision, set()).update(r["grad_hash"] for r in run["runs"] if r["grad_hash"])
    if len(found["bf16"]) != 1 or len(found["float"]) != 1:
        return f"several gradients: {found}"
    return "bf16 computes the gradients of float" if found["bf16"] == found["float"] else None


def tiles(net, options):
    """One gradient for all plans and numbers of threads and for the model in plain C, which is not that of chains."""
    found = {}
    for products, threads, isa in (("tiles", 1, TILES_ISA), ("tiles", 3, {"NEAP_ISA": "lowered"}), ("chains", 2, TILES_ISA)):
        run = neap_json("compare", SHORT, "--net", net, "--memory", "900K", "--threads", threads, "--products", products, *options,
                        "--strategy", "bptt", "--strategy", "revolve", env=ISA if options and not HAS else isa)
        found.setdefault(products, set()).update(r["grad_hash"] for r in run["runs"] if r["grad_hash"])
    if len(found["tiles"]) != 1 or len(found["chains"]) != 1:
        return f"several gradients: {found}"
    return "tiles compute the gradients of chains" if found["tiles"] == found["chains"] else None


def kept(folder):
    """A run keeps the choice: its model predicts with it, with a note in chains where nothing computes tiles, and a run that is
    resumed has the same."""
    out = os.path.join(folder, "tiles")
    train = ["train", SHORT, "--net", MANY_SPIKES, "--out", out, "--quiet"]
    neap_json(*train, "--epochs", 1, *TILES, env=TILES_ISA)
    log = neap("eval", out, SHORT, env={**TILES_ISA, "NEAP_LOG": "debug"}).stderr
    if "products in tiles by" not in log:
        return f"eval does not compute in tiles: {log}"
    scores = neap_json("eval", out, SHORT, env=TILES_ISA), neap_json("eval", out, SHORT, env={"NEAP_ISA": "lowered"})
    if scores[0]["loss"] != scores[1]["loss"]:
        return f"losses {scores}"
    for command in ["eval", out, SHORT, "--json"], ["predict", out, SHORT]:
        chains = neap(*command, env={"NEAP_ISA": "plain"})
        notes = [line for line in chains.stderr.splitlines() if "with --products chains, because tiles need AVX-512" in line]
        if chains.returncode or len(notes) != 1:
            return f"{command[0]} without AVX-512: {chains.returncode}, {chains.stderr}"
        if command[0] == "eval" and abs(json.loads(chains.stdout)["loss"] - scores[0]["loss"]) > 1e-3 * scores[0]["loss"]:
            return f"losses {scores[0]}, {chains.stdout}"
    other = neap(*train, "--epochs", 2, "--resume", "--products", "chains", env=TILES_ISA)
    if other.returncode != 2 or "--products tiles, not chains" not in other.stderr:
        return f"resumed with chains: {other.returncode}, {other.stderr}"
    same = neap(*train, "--epochs", 2, "--resume", env=TILES_ISA)
    return None if same.returncode == 0 else same.stderr


def losses(folder):
    """The model file has float32 weights; the loss of an evaluation is near that of float."""
    out = os.path.join(folder, "run")
    train = neap_json("train", DATA, "--net", NETS[0], "--epochs", 1, "--out", out, "--quiet", *BF16, env=ISA)
    again = neap_json("train", DATA, "--net", NETS[0], "--epochs", 1, "--out", out + "2", "--threads", 1, "--quiet", *BF16, env=ISA)
    if train["weights_hash"] != again["weights_hash"]:
        return "threads change the weights"
    lowered = neap_json("train", DATA, "--net", NETS[0], "--epochs", 1, "--out", out + "3", "--quiet", *BF16, env={"NEAP_ISA": "lowered"})
    if train["weights_hash"] != lowered["weights_hash"]:
        return "NEAP_ISA=lowered changes the weights"
    scores = neap_json("eval", out, DATA, env=ISA), neap_json("eval", out, DATA, env={"NEAP_ISA": "lowered"})
    return None if scores[0]["loss"] == scores[1]["loss"] else f"losses {scores}"


def refused(folder, choice, more, env, words):
    done = neap("train", DATA, *more, *choice, "--epochs", 1, "--out", os.path.join(folder, "refused"), env=env)
    lines = done.stderr.strip().splitlines()
    if done.returncode != 2 or len(lines) != 1 or not re.search(words, lines[0]):
        return f"exit {done.returncode}: {done.stderr}"
    return "a folder is left" if os.path.exists(os.path.join(folder, "refused")) else None


def main():
    with Tap() as tap, Folder() as folder:
        for net in NETS:
            tap.run(f"one gradient of {net}", gradients, net)
        tap.run("weights and losses", losses, folder)
        tap.run("gradients in tiles", tiles, MANY_SPIKES, [])
        tap.run("gradients in tiles, bf16", tiles, NETS[1], BF16)
        tap.run("a run in tiles", kept, folder)
        for more, env, words in REFUSED:
            tap.run(f"rejected: {' '.join(more)} {env}", refused, folder, BF16, more, env, words)
        for more, env, words in REFUSED_TILES:
            tap.run(f"rejected in tiles: {' '.join(more)} {env}", refused, folder, TILES, more, env, words)
        if not HAS:
            tap.run("rejected: this processor", refused, folder, BF16, ["--net", "lstm:9,li"], {}, "no AVX512-BF16")
        return tap.failed


if __name__ == "__main__":
    sys.exit(main())
