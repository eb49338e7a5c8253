#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The memory of a device, with the fake CUDA driver: the default budget, reports in bytes of the device, and the one line for a device
that has too little memory, which names a budget that is enough.
"""
import csv
import os
import re
import sys

from device import DATA, DEVICE, FAKE, NET, said
from harness import Folder, Tap, neap, neap_json

MIB = 1 << 20
TRAIN = ["train", DATA, *NET, "--batch", "8", *DEVICE]


def driver(**settings):
    """The environment in which the fake driver has these settings."""
    return dict(FAKE, FAKE_CUDA=",".join(f"{key}={value}" for key, value in settings.items()))


def default_budget(folder):
    """Half of what is free on the device, not counting what neap itself has there."""
    for command in ["train", "--epochs", "1", "--out", "half"], ["compare", "--repeats", "1", "--strategy", "bptt"]:
        found = neap_json(command[0], *TRAIN[1:], *command[1:], env=driver(bytes=40 * MIB), cwd=folder)
        device = found["device"]
        if command[0] == "compare" and not 19 * MIB < found["budget"] <= 20 * MIB:
            return f"{command[0]}: a budget of {found['budget']}"
        if not 38 * MIB < device["free"] < 40 * MIB or device["total"] != 40 * MIB:
            return f"{command[0]}: {device}"
    done = neap(*TRAIN, "--epochs", "1", "--out", "said", env=driver(bytes=40 * MIB), cwd=folder)
    line = re.search(r"memory budget: 19\.\d MiB \(default: half of the free memory of the device\)", done.stderr)
    return None if line else said(done)


def reports(folder):
    done = neap(*TRAIN, "--epochs", "1", "--memory", "64K", "--slow", "pinned:1M", "--out", "text", env=FAKE, cwd=folder)
    rows = [r"^memory +states and tapes on the device: peak [\d.]+ KiB \(planned [\d.]+ KiB\), allocated ",
            r"^device +cuda:0 \(fake device, compute capability 9\.0, 132 multiprocessors\): peak [\d.]+ KiB of 64 MiB "
            r"\(planned [\d.]+ KiB, [\d.]+ KiB by the driver\)$"]
    for row in rows:
        if not re.search(row, done.stdout, re.M):
            return f"no line {row}: {said(done)} {done.stdout}"
    if not re.search(r"^device: cuda:0 \(fake device.*need [\d.]+ KiB in addition to the memory budget$", done.stderr, re.M):
        return said(done)
    found = neap_json(*TRAIN, "--epochs", "1", "--memory", "64K", "--slow", "pinned:1M", "--out", "json", env=FAKE, cwd=folder)
    device, process = found["device"], found["process"]
    if process["arena"] != 0 or process["slow"] < MIB:
        return f"the process has an arena, or no pinned memory: {process}"
    if not found["arena_bytes"] < device["allocated"] <= device["planned"] * 1.01 + 4096:
        return f"{found['arena_bytes']} bytes of arena, {device}"
    if device["measured"] != device["allocated"] or "fake device" not in device["about"]:
        return f"{device}"
    return None if neap_json("train", *TRAIN[1:-2], "--epochs", "1", "--out", "none", cwd=folder)["device"] is None else "no null"


def dense_bytes(folder):
    """What is planned for rnn, lstm, gru and egru is what is allocated, but for the last page of the arena."""
    found = neap_json("train", DATA, "--threads", "1", "--net", "lstm:40,egru:9,li", "--batch", "24", "--validation", "0", "--epochs", "1",
                      "--memory", "3M", *DEVICE, "--out", "dense", env=FAKE, cwd=folder)["device"]
    return None if 0 <= found["allocated"] - found["planned"] < 4096 and found["measured"] == found["allocated"] else f"{found}"


def one_line(done, words):
    lines = [line for line in done.stderr.splitlines() if line.startswith("neap ")]
    if done.returncode != 2 or len(lines) != 1 or not re.search(words, lines[0]):
        return said(done) + f" ({len(lines)} lines)"
    return None


def named_budget(folder):
    """The line for a budget that is not free names the least one, which is enough; less is not."""
    for command in ["train", "--epochs", "1", "--out", "x"], ["compare", "--repeats", "1"], ["calibrate"]:
        run = [command[0], *TRAIN[1:], *command[1:]]
        done = neap(*run, "--memory", "2G", env=driver(bytes=1700000), cwd=folder)
        wrong = one_line(done, r"a budget of 2 GiB is more than the [\d.]+ KiB of memory that are free on cuda:0\..* at least \d+ bytes")
        if wrong:
            return f"{command[0]}: {wrong}"
    least = int(re.search(r"at least (\d+) bytes", done.stderr)[1])
    if os.path.exists(os.path.join(folder, "x", "model.safetensors")):
        return "a model is there"
    for memory, code in (least, 0), (least // 2, 2):
        done = neap(*TRAIN, "--epochs", "1", "--out", f"m{memory}", "--memory", memory, env=driver(bytes=1700000), cwd=folder)
        if done.returncode != code:
            return f"{memory} bytes: {said(done)}"
    return None


def too_little(folder, bytes_of_device, words):
    done = neap(*TRAIN, "--epochs", "1", "--out", f"little{bytes_of_device}", env=driver(bytes=bytes_of_device), cwd=folder)
    return one_line(done, words)


def energy(folder):
    """The fake NVML counts 2.5 J between readings. Without the library, or if it fails, nothing is printed."""
    for out, env, known in (("e1", {"NEAP_NVML": os.environ["NEAP_FAKE_NVML"]}, 1), ("e2", {"NEAP_NVML": "libnone.so"}, 0),
                            ("e3", {"NEAP_NVML": os.environ["NEAP_FAKE_NVML"], "FAKE_NVML_FAILS": "1"}, 0)):
        done = neap(*TRAIN, "--epochs", "2", "--out", out, env={**FAKE, **env}, cwd=folder)
        if done.returncode:
            return said(done)
        with open(os.path.join(folder, out, "costs.csv"), encoding="ascii", newline="") as file:
            found = [row["joules"] for row in csv.DictReader(file)]
        if found != (["2.500", "2.500"] if known else ["", ""]):
            return f"{out}: costs.csv has {found}"
        if bool(re.search(r"^energy +5 J of the device, 2\.5 J per epoch$", done.stdout, re.M)) != bool(known):
            return f"{out}: {done.stdout}"
    return None


def no_total(folder):
    for command in ["train", "--out", "total"], ["compare"]:
        done = neap(command[0], *TRAIN[1:], *command[1:], "--memory-total", "1G", env=FAKE, cwd=folder)
        wrong = one_line(done, r"--memory-total limits the memory of the process.*--memory")
        if wrong:
            return f"{command[0]}: {wrong}"
    return None


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("the default budget is half of the free memory of the device", default_budget, folder)
        tap.run("reports have the bytes of the device, and those of the process", reports, folder)
        tap.run("layers of lstm and egru: the bytes planned are the bytes allocated", dense_bytes, folder)
        tap.run("a budget that is not free: one line with the least one", named_budget, folder)
        tap.run("no room for a batch: one line", too_little, folder, 1100000, r"a batch needs \d+ bytes of the memory of cuda:0.*--batch")
        tap.run("no room for the device itself: one line", too_little, folder, 1000, r"device 'cuda'.*memory")
        tap.run("--memory-total is refused", no_total, folder)
        tap.run("energy of an epoch, where there is NVML", energy, folder)


if __name__ == "__main__":
    sys.exit(main())
