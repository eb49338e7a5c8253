#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Files that earlier builds wrote (tests/compat): models, snapshots, plans, chains and a journal. Runs
were trained with the instruction set avx2, and go on with it alone.
"""
import json
import lzma
import os
import shutil
import sys

from harness import SOURCE, Folder, Tap, neap, neap_json

OLD = os.path.join(SOURCE, "tests", "compat")
DATA = "randman:classes=3,units=10,steps=40,samples=60,part=train"
TRAIN = ["--net", "lif:8r,li", "--batch", "8", "--memory", "64K", "--epochs", "60", "--seed", "3"]
WEIGHTS = "914071022de83995"
LONG = "randman:steps=100000,spikes=400,samples=8,units=20"
SWEEP = ["--net", "lif:16r,li", "--batch", "4", "--memory", "300K", "--strategy", "standard",
         "--no-reference"]
GRADIENTS = "a9a5cc5ff65a0ea8"
PLANS = {"auto": (3000, 5000), "double": (3984, 5000), "layers": (19, 194)}


def resume(run, *given):
    done = neap("train", *given, "--out", run, "--resume", "--json", env={"NEAP_ISA": "avx2"})
    if done.returncode:
        return done.stderr
    found = json.loads(done.stdout)["weights_hash"]
    return None if found == WEIGHTS else found


def copy(folder, name, to):
    target = os.path.join(folder, to)
    shutil.copytree(os.path.join(OLD, name), target)
    return target


def evaluates():
    done = neap_json("eval", os.path.join(OLD, "ended"), DATA)
    found = done["confusion"]
    return None if found == [[14, 6, 0], [5, 15, 0], [18, 2, 0]] else str(found)


def resumes(folder, *given):
    run = copy(folder, "interrupted", "run" + str(len(given)))
    return resume(run, *given)


def has_ended(folder):
    return resume(copy(folder, "ended", "ended"))


def loads(name):
    plan = neap_json("plan", "--load", os.path.join(OLD, name + ".plan"))["plans"][0]
    found = (plan["makespan"], plan["peak_bytes"])
    return None if found == PLANS[name] else str(found)


def plans(folder, name):
    """A chain file, and a plan of it as the build of today saves it."""
    path = os.path.join(folder, "saved.plan")
    more = ["--tier", "disk:write=100,read=100"] if name == "layers" else []
    done = neap("plan", "--chain", os.path.join(OLD, name + ".json"), "--memory", "64K", *more,
                "--strategy", "auto", "--save", path)
    return None if done.returncode == 0 else done.stderr


def journal(folder):
    path = os.path.join(folder, "journal")
    os.mkdir(path)
    with open(os.path.join(path, "neap.journal"), "wb") as file:
        file.write(lzma.open(os.path.join(OLD, "neap.journal.xz")).read())
    done = neap("compare", LONG, *SWEEP, "--journal", path, "--json")
    if done.returncode == 2:  # a line that refuses it would do
        return None if len(done.stderr.splitlines()) == 1 else done.stderr
    return None if done.returncode == 0 and GRADIENTS in done.stdout else done.stderr


def trainings(tap, folder):
    cases = [("a run that has ended", has_ended, ()),
             ("a snapshot, by its folder alone", resumes, ()),
             ("a snapshot, with its options", resumes, (DATA, *TRAIN))]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        has_avx2 = " avx2 " in file.read()
    for name, check, given in cases:
        if has_avx2:
            tap.run(name, check, folder, *given)
        else:
            tap.skip(name, "the processor has no AVX2")


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("a model", evaluates)
        trainings(tap, folder)
        for name in PLANS:
            tap.run(f"{name}.plan", loads, name)
        for name in ("layers", "chain"):
            tap.run(f"{name}.json", plans, folder, name)
        tap.run("a journal", journal, folder)


if __name__ == "__main__":
    sys.exit(main())
