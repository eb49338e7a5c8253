# SPDX-License-Identifier: Apache-2.0
"""neap calibrate: numbers that can be, and a chain file that the other commands read."""
import json
import os
import tempfile

from harness import Tap, neap, neap_json

DATA = "randman:steps=300,samples=16"


def measured(folder):
    path = os.path.join(folder, "chain.json")
    found = neap_json("calibrate", DATA, "--slow", f"{folder},mem:8M", "--slow-in-memory", "--repeats", 3,
                      "--out", path)
    for key in ("advance", "record", "backward", "slot_write", "slot_read"):
        if not found[key]["median"] > 0 or not found[key]["spread"] >= 0:
            return f"{key}: {found[key]}"
    if found["call"]["median"] < 0 or found["chain"]["call"] != found["call"]["median"]:
        return f"call: {found['call']}"
    if len(found["tiers"]) != 2:
        return f"{len(found['tiers'])} tiers"
    for tier in found["tiers"]:
        rates = tier["write"]["median"] > 0 and tier["read"]["median"] > 0
        if not rates or not 0 < tier["slowed"] <= 1 or min(tier["cpu"], tier["cpu_fixed"]) < 0:
            return f"tier: {tier}"
        if tier["write_fixed"] < 0 or tier["read_fixed"] < 0:
            return f"latency: {tier}"
    with open(path) as file:
        if json.load(file) != found["chain"]:
            return "the file is not what --json prints"
    return None


def planned(folder):
    path = os.path.join(folder, "chain.json")
    with open(path) as file:
        chain = json.load(file)
    plan = neap_json("plan", "--chain", path, "--memory", "4M", "--strategy", "bptt")
    for key in ("steps", "state", "tape", "adjoint", "advance", "record", "backward", "call"):
        if plan["chain"].get(key, 0) != chain[key]:
            return f"{key}: planned with {plan['chain'].get(key)}, measured {chain[key]}"
    return None


def used(folder):
    """Given costs are planned with, and change no gradient."""
    path = os.path.join(folder, "chain.json")
    slow = ["--slow", f"{folder},mem:8M", "--slow-in-memory", "--memory", "1M"]
    given = neap_json("compare", DATA, *slow, "--chain", path, "--strategy", "auto")
    free = neap_json("compare", DATA, *slow, "--strategy", "auto")
    with open(path) as file:
        chain = json.load(file)
    for key in ("advance", "record", "backward"):
        if given["chain"][key] != chain[key]:
            return f"{key}: planned with {given['chain'][key]}, measured {chain[key]}"
    hashes = {run["grad_hash"] for run in given["runs"] + free["runs"]}
    if len(hashes) != 1 or None in hashes:
        return f"hashes {hashes}"
    done = neap("train", DATA, *slow, "--chain", path, "--epochs", 1, "--out",
                os.path.join(folder, "run"))
    return None if done.returncode == 0 else done.stderr


def refused(folder):
    """One line, exit 2, and nothing left behind."""
    path = os.path.join(folder, "chain.json")
    lists = os.path.join(folder, "lists.json")
    with open(lists, "w") as file:
        json.dump({"advance": [1, 1], "backward": [1, 1, 1], "state": 8, "tape": 8}, file)
    for args in (["calibrate", "randman", "--out", os.path.join(folder, "none", "x")],
                 ["calibrate", os.path.join(folder, "none.h5")],
                 ["calibrate", "randman", "--repeats", 0],
                 ["compare", DATA, "--chain", lists],
                 ["train", DATA, "--chain", path, "--out", os.path.join(folder, "other")]):
        done = neap(*args)
        if done.returncode != 2 or done.stderr.count("\n") != 1 or done.stdout:
            return f"{args}: exit {done.returncode}, {done.stderr!r}"
    left = set(os.listdir(folder)) - {"chain.json", "lists.json", "run"}
    return f"left {left}" if left else None


with Tap() as tap, tempfile.TemporaryDirectory() as home:
    tap.run("measures steps, copies and two tiers", measured, home)
    tap.run("plan reads the chain file", planned, home)
    tap.run("compare and train plan with it", used, home)
    tap.run("bad input", refused, home)
