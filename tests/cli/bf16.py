#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--precision bf16`: one gradient for all plans and numbers of threads, near that of float; the model in plain C computes the
same weights as the processor's instructions; what cannot compute with bfloat16 is rejected with one line that names it."""
import os
import re
import sys

from harness import Folder, Tap, neap, neap_json

DATA = "randman:steps=150,samples=16,units=12,classes=3"
BF16 = ["--precision", "bf16"]
NETS = ["lstm:35,li", "gru:33,rnn:20:dropout=0.2,li"]


def has_instructions():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "avx512_bf16" in file.read()


HAS = has_instructions()
ISA = {} if HAS else {"NEAP_ISA": "lowered"}

# Options, environment, and the words of the line.
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


def refused(folder, more, env, words):
    done = neap("train", DATA, *more, *BF16, "--epochs", 1, "--out", os.path.join(folder, "refused"), env=env)
    lines = done.stderr.strip().splitlines()
    if done.returncode != 2 or len(lines) != 1 or not re.search(words, lines[0]):
        return f"exit {done.returncode}: {done.stderr}"
    return "a folder is left" if os.path.exists(os.path.join(folder, "refused")) else None


def main():
    with Tap() as tap, Folder() as folder:
        for net in NETS:
            tap.run(f"one gradient of {net}", gradients, net)
        tap.run("weights and losses", losses, folder)
        for more, env, words in REFUSED:
            tap.run(f"rejected: {' '.join(more)} {env}", refused, folder, more, env, words)
        if not HAS:
            tap.run("rejected: this processor", refused, folder, ["--net", "lstm:9,li"], {}, "no AVX512-BF16")
        return tap.failed


if __name__ == "__main__":
    sys.exit(main())
