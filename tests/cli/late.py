#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A disk that hangs under `neap compare` and `neap train`: they end, and the bits are the same."""
import os
import sys
import time

from harness import Folder, Tap, neap, neap_json

HANGIO = sys.argv[1]
DATA = "randman:steps=2000,spikes=40,samples=16,units=20"
NET = ["--net", "lif:32r,li", "--batch", "8", "--memory", "60K"]
STRATEGIES = ["--strategy", "remote", "--strategy", "stream", "--no-reference"]


def hanging(what):
    return {"NEAP_IO": "threads", "LD_PRELOAD": HANGIO, "NEAP_HANG": what}


def compare(slow, chain, *more, env=None):
    return neap_json("compare", DATA, *NET, *STRATEGIES, "--slow", slow, "--chain", chain, *more,
                     env=env or {"NEAP_IO": "threads"})["runs"]


def a_disk_hangs(slow, chain, what, gone):
    clean = compare(slow, chain)
    start = time.time()
    hung = compare(slow, chain, "--patience", "300ms", env=hanging(what))
    if time.time() - start > 60:
        return f"took {time.time() - start:.0f} s"
    if {r["grad_hash"] for r in hung} != {clean[0]["grad_hash"]}:
        return "other gradients"
    late = [r["late"] for r in hung]
    if any(r["late"] for r in clean) or sum(late) < 1 or (gone and sum(late) < 2):
        return f"{late} late"
    return None if sum(r["recoveries"] for r in hung) >= 1 else "no recoveries"


def verbose_says_it(slow, chain):
    done = neap("compare", DATA, *NET, *STRATEGIES, "--slow", slow, "--chain", chain, "--patience",
                "300ms", "--verbose", env=hanging("read:2:1"))
    return None if " transfers late" in done.stdout else done.stdout + done.stderr


def train(slow, chain, folder):
    def weights(name, env, *more):
        result = neap_json("train", DATA, *NET, "--epochs", "1", "--strategy", "remote", "--slow",
                           slow, "--chain", chain, "--out", os.path.join(folder, name), *more,
                           env=env)
        return result["weights_hash"], result["late"]
    clean = weights("clean", {"NEAP_IO": "threads"})
    hung = weights("hung", hanging("read:5:2"), "--patience", "300ms")
    if clean[1] != 0 or hung[1] < 1:
        return f"{clean[1]} and {hung[1]} late"
    return None if clean[0] == hung[0] else "other weights"


def measured(slow, trouble, rows, lost):
    """Slow memory fails while it is measured: measured again, or done without."""
    plain = ["--strategy", "standard", "--no-reference", "--slow", slow]
    done = neap_json("compare", DATA, *NET, *plain,
                     env={"NEAP_IO": "threads", "LD_PRELOAD": HANGIO, trouble: rows})
    clean = neap_json("compare", DATA, *NET, "--strategy", "standard", "--no-reference")
    if done["runs"][0]["grad_hash"] != clean["runs"][0]["grad_hash"]:
        return "other gradients"
    said = done["tiers_lost"]
    return None if len(said) == lost and len(done["tiers"]) == 1 - lost else str(said)


def trained(slow, folder):
    """The same for training, which says so on the console."""
    done = neap("train", DATA, *NET, "--epochs", "1", "--slow", slow, "--out",
                os.path.join(folder, "lost"),
                env={"NEAP_IO": "threads", "LD_PRELOAD": HANGIO, "NEAP_EIO": "write:1:1000000"})
    if done.returncode != 0 or "going on without it" not in done.stderr:
        return f"{done.returncode} {done.stderr}"
    return None


def values(slow, chain):
    for good in ("0", "inf", "2min", "0.5s"):
        compare(slow, chain, "--patience", good)
    for bad in ("-1", "soon", "1e99"):
        done = neap("compare", DATA, *NET, "--patience", bad)
        lines = done.stderr.splitlines()
        if done.returncode != 2 or len(lines) != 1 or "--patience" not in lines[0]:
            return f"{bad}: {done.returncode} {done.stderr}"
    return None


with Tap() as tap, Folder() as folder:
    slow = os.path.join("/var/tmp", os.path.basename(folder))
    os.mkdir(slow)
    try:
        chain = os.path.join(folder, "chain.json")
        done = neap("calibrate", DATA, *NET, "--slow", slow, "--out", chain)
        assert done.returncode == 0, done.stderr
        for what in ("read:3:1", "write:3:1"):
            tap.run(f"{what}: it is given up", a_disk_hangs, slow, chain, what, False)
        for what in ("read:3:1000000", "write:1:1000000"):
            tap.run(f"{what}: the tier is gone", a_disk_hangs, slow, chain, what, True)
        tap.run("compare --verbose tells", verbose_says_it, slow, chain)
        tap.run("training goes on", train, slow, chain, folder)
        for trouble in ("NEAP_EIO", "NEAP_SHORT"):
            for what in ("read:2:1", "write:3:1"):
                tap.run(f"{trouble} {what} while it is measured", measured, slow, trouble, what, 0)
            for what in ("read:1:1000000", "write:1:1000000"):
                tap.run(f"{trouble} {what} all the while", measured, slow, trouble, what, 1)
        tap.run("training without the tier", trained, slow, folder)
        tap.run("values of --patience", values, slow, chain)
    finally:
        os.rmdir(slow)
