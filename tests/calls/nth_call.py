#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The n-th call fails: one call of neap's own code at a time (failing.c) in whole commands. Each must
give the right result, or end with exit code 1 or 2 and one line, and leave nothing half-written.

    nth_call.py FAILING.so [CALLS [DRAWN]]     the first CALLS calls of each command, and DRAWN
                                               beyond them; without numbers 16 in all
    nth_call.py FAILING.so libraries [DRAWN]   calls of libraries fail instead; tells what comes of it
"""
import hashlib
import json
import os
import random
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from harness import Folder, Tap, neap, write_recordings  # noqa: E402

FAILING = os.path.abspath(sys.argv[1])
LIBRARIES = sys.argv[2:3] == ["libraries"]
FIRST = 0 if LIBRARIES or len(sys.argv) < 3 else int(sys.argv[2])
DRAWN = int(sys.argv[3]) if len(sys.argv) > 3 else 16
DATA = "randman:classes=3,units=10,steps=40,samples=30"
NET = ["--net", "lif:8r,li", "--batch", "8", "--memory", "64K"]


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def of_train(folder, out):
    return json.loads(out)["weights_hash"], os.path.exists(os.path.join(folder, "run/run.json"))


def of_compare(_, out):
    return sorted({r["grad_hash"] for r in json.loads(out)["runs"] if r["grad_hash"]})


def of_eval(_, out):
    return json.loads(out)["confusion"]


def of_predict(folder, _):
    return digest(os.path.join(folder, "answers.csv"))


def of_encode(folder, _):
    return digest(os.path.join(folder, "out.h5"))


def of_plan(folder, _):
    return digest(os.path.join(folder, "a.plan")), digest(os.path.join(folder, "a.svg"))


def of_calibrate(folder, _):
    with open(os.path.join(folder, "chain.json"), encoding="utf-8") as file:
        return sorted(json.load(file))


COMMANDS = {
    "train": (["train", DATA, *NET, "--epochs", "2", "--out", "run", "--json"], of_train),
    "compare": (["compare", DATA, *NET, "--strategy", "standard", "--strategy", "remote",
                 "--slow", "slow", "--json"], of_compare),
    "encode": (["encode", "recordings", "--out", "out.h5", "--label", "([0-9]+)_.*",
                "--channels", "16", "--json"], of_encode),
    "eval": (["eval", "trained", DATA, "--json"], of_eval),
    "predict": (["predict", "trained", DATA, "--out", "answers.csv"], of_predict),
    "plan": (["plan", "--steps", "300", "--state", "10", "--tape", "40", "--memory", "900",
              "--tier", "disk:write=10,read=10", "--strategy", "auto", "--save", "a.plan",
              "--draw", "a.svg"], of_plan),
    "calibrate": (["calibrate", DATA, *NET, "--repeats", "1", "--timed", "4", "--slow", "slow",
                   "--out", "chain.json"], of_calibrate),
}
OUTPUTS = {"run", "out.h5", "answers.csv", "a.plan", "a.svg", "chain.json", "slow", "calls"}


def fresh(folder, template):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder, symlinks=True)
    os.mkdir(os.path.join(folder, "slow"))


def run(folder, args, n):
    env = {"LD_PRELOAD": FAILING, "NEAP_FAIL": str(n), "NEAP_CALLS": os.path.join(folder, "calls")}
    if LIBRARIES:
        env["NEAP_FAIL_LIBRARIES"] = "1"
    return neap(*args, cwd=folder, env=env, timeout=120)


def left_over(folder, template):
    """Names that are neither inputs nor outputs: parts of files."""
    found = set(os.listdir(folder)) - set(os.listdir(template)) - OUTPUTS
    found |= set(os.listdir(os.path.join(folder, "slow")))
    inside = os.path.join(folder, "run")
    if os.path.isdir(inside):
        begun = os.path.exists(os.path.join(inside, "run.json"))  # without it, the folder cannot be resumed
        found |= {name for name in os.listdir(inside) if not begun or name not in (
            "run.json", "metrics.csv", "costs.csv", "last.safetensors", "model.safetensors")}
    return sorted(found)


def one(folder, template, name, n, right):
    args, result = COMMANDS[name]
    fresh(folder, template)
    done = run(folder, args, n)
    what = f"{name}, call {n}: "
    parts = left_over(folder, template)
    if parts:
        return what + f"left {parts}"
    if done.returncode == 0:
        found = result(folder, done.stdout)
        return None if found == right else what + f"{found}, not {right}"
    said = [line for line in done.stderr.splitlines() if re.match(rf"neap {name}: ", line)]
    if done.returncode not in (1, 2) or len(said) != 1:
        return what + f"exit {done.returncode}: {done.stderr[-500:]!r}"
    return None


def chosen(total, name):
    draw = random.Random(f"{name} {os.environ.get('NEAP_SEED', 1)}")
    first = range(1, min(FIRST, total) + 1)
    rest = range(len(first) + 1, total + 1)
    return [*first, *sorted(draw.sample(rest, min(DRAWN, len(rest))))]


def outcome(folder, template, name, n, right):
    args, result = COMMANDS[name]
    fresh(folder, template)
    done = run(folder, args, n)
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if re.match(rf"neap {name}: ", line)]
        return "refused with one line" if len(said) == 1 else f"{len(said)} lines"
    return "right" if result(folder, done.stdout) == right else "wrong"


def command(folder, template, name):
    args, result = COMMANDS[name]
    fresh(folder, template)
    done = run(folder, args, 0)
    if done.returncode != 0:
        return done.stderr
    right = result(folder, done.stdout)
    with open(os.path.join(folder, "calls"), encoding="utf-8") as file:
        total = int(file.read())
    if LIBRARIES:
        found = [outcome(folder, template, name, n, right) for n in chosen(total, name)]
        print(f"# {name}: {total} calls of libraries, {len(found)} failed: " + ", ".join(
            f"{found.count(kind)} {kind}" for kind in sorted(set(found))), flush=True)
        return None
    wrong = [problem for problem in (one(folder, template, name, n, right)
                                     for n in chosen(total, name)) if problem]
    print(f"# {name}: {total} calls, {len(chosen(total, name))} failed, {len(wrong)} findings",
          flush=True)
    return "\n".join(wrong[:20]) if wrong else None


def main():
    with Tap() as tap, Folder() as top:
        template = os.path.join(top, "template")
        os.mkdir(template)
        write_recordings(os.path.join(template, "recordings"), 2, 2)
        done = neap("train", DATA, *NET, "--epochs", "1", "--out",
                    os.path.join(template, "trained"))
        assert done.returncode == 0, done.stderr
        for name in os.environ.get("NEAP_COMMANDS", " ".join(COMMANDS)).split():
            tap.run(name, command, os.path.join(top, "work"), template, name)


if __name__ == "__main__":
    sys.exit(main())
