#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: its table on a small problem, Ctrl-C, and what `make tool` and `make check` do to a build folder."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from harness import NEAP, SOURCE, Folder, Tap

SMALL = {"NEAP_DEMO_SAMPLES": "8", "NEAP_DEMO_EPOCHS": "1", "NEAP_DEMO_BATCH": "8", "NEAP_DEMO_MEMORY": "400K"}
SCRIPT = os.path.join(SOURCE, "tools", "demo.sh")
TABLE = os.path.join(SOURCE, "tools", "demo_table.py")
BUILD = os.path.dirname(os.path.abspath(NEAP))
RUN = {"peak_measured": 400 << 20, "process": {"measured": 500 << 20}, "seconds": 8.0, "test": {"accuracy": 1.0},
       "weights_hash": "00ff"}


def row(text, name):
    """The cells of a row of the table."""
    line = next(line for line in text.splitlines() if line.startswith(name))
    return re.split(r" {2,}", line[len(name):].strip())


def small(folder):
    """Two hashes that are equal, a ratio of memory, the commands, what to do next; nothing is left."""
    done = subprocess.run(["bash", SCRIPT, BUILD], env=dict(os.environ, TMPDIR=folder, **SMALL), capture_output=True, text=True)
    if done.returncode != 0 or os.listdir(folder):
        return f"exit {done.returncode}, left {os.listdir(folder)}: {done.stderr[-500:]}"
    hashes, memory = row(done.stdout, "hash of the weights"), row(done.stdout, "memory of a backward pass")
    if hashes[0] != hashes[1] or hashes[2] != "identical" or not re.fullmatch("[0-9a-f]{16}", hashes[0]):
        return f"hashes: {hashes}"
    if int(memory[2].split()[0]) <= 50 or memory[2].split()[1:] != ["times", "less"]:
        return f"memory: {memory}"
    if done.stdout.count("neap train DATA") != 2 or "docs/pytorch.md" not in done.stdout or "PLANS=1" not in done.stdout:
        return done.stdout
    if "strategy" in done.stdout.split("Next:")[0].split("hash of")[1]:
        return "plans without PLANS=1"
    shown = done.stderr.count("epoch 1/1: ")
    return None if shown == 2 else f"{shown} lines of epochs: {done.stderr}"


def plans(folder):
    """PLANS=1 adds a table of strategies."""
    tiny = dict(SMALL, NEAP_DEMO_STEPS="2000", PLANS="1")
    done = subprocess.run(["bash", SCRIPT, BUILD], env=dict(os.environ, TMPDIR=folder, **tiny), capture_output=True, text=True)
    return None if done.returncode == 0 and "disk-revolve" in done.stdout else done.stdout + done.stderr


def different(folder):
    """Weights that differ are an error."""
    for name, hashed in (("a", "00ff"), ("b", "00fe")):
        with open(os.path.join(folder, name), "w") as file:
            json.dump(dict(RUN, weights_hash=hashed), file)
    done = subprocess.run([sys.executable, "-I", "-S", TABLE, "a", "b", "5M"], cwd=folder, capture_output=True, text=True)
    return None if done.returncode == 1 and "DIFFERENT" in done.stdout and "bug" in done.stderr else done.stdout + done.stderr


def interrupted(folder):
    """Ctrl-C ends it, and its files are gone."""
    demo = subprocess.Popen(["bash", SCRIPT, BUILD], env=dict(os.environ, TMPDIR=folder, NEAP_DEMO_EPOCHS="1000"),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for line in demo.stderr:
        if line.startswith("plan "):
            break
    time.sleep(0.3)  # in the middle of the training
    os.killpg(demo.pid, signal.SIGINT)
    demo.communicate(timeout=100)
    return None if demo.returncode == 130 and not os.listdir(folder) else f"exit {demo.returncode}, left {os.listdir(folder)}"


def made(folder, target, has_tool):
    """What a target of the Makefile asks of meson and ninja, of which there are only stand-ins."""
    for name, answer in (("meson", 0), ("ninja", int(not has_tool))):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\necho {name} "$@" >>{folder}/log\n[ "$3" = -t ] && exit {answer}\nexit 0\n')
        os.chmod(path, 0o755)
    open(os.path.join(folder, "log"), "w").close()
    there = os.environ["PATH"]
    done = subprocess.run(["make", "-C", SOURCE, target, f"BUILD={folder}/b"], capture_output=True, text=True,
                          env=dict(os.environ, PATH=f"{folder}{os.pathsep}{there}", MAKEFLAGS=""))
    with open(os.path.join(folder, "log")) as file:
        return done.returncode, file.read()


def configured(folder):
    """`make tool` keeps a configuration that has the tool, adds it to another, and leaves the rest to `make check`."""
    os.mkdir(os.path.join(folder, "b"))
    if made(folder, "tool", True)[1].count("meson setup") != 1:
        return "a new folder is not set up"
    open(os.path.join(folder, "b", "build.ninja"), "w").close()
    code, log = made(folder, "tool", True)
    if code or "meson" in log or f"ninja -C {folder}/b neap" not in log:
        return f"with the tool: {log}"
    code, log = made(folder, "tool", False)
    if code or f"meson configure {folder}/b -Dnn=enabled -Dtool=enabled\n" not in log:
        return f"without the tool: {log}"
    code, log = made(folder, "full", True)
    if code or "-Dtests=enabled" not in log:
        return f"check after the demo: {log}"
    return None


with Tap() as tap:
    for name, case in (("the table on a small problem", small), ("PLANS=1", plans), ("weights that differ", different),
                       ("Ctrl-C", interrupted), ("any build folder", configured)):
        with Folder() as folder:
            tap.run(name, case, folder)
