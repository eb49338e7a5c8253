#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where outputs go: files whole or not at all; devices, FIFOs and links stay what they are."""
import json
import os
import resource
import stat
import subprocess

from harness import NEAP, Folder, Tap, neap

PLAN = ["plan", "--steps", "1000", "--state", "1K", "--tape", "1K", "--memory", "64K",
        "--strategy", "revolve"]
TRAIN = ["train", "randman:samples=40,steps=20", "--net", "lif:8r,li", "--memory", "1M",
         "--epochs", "1"]
TRAINED = []  # the folder of a run that is predicted with
COMPARE = ["compare", "randman:samples=40,steps=20", "--net", "lif:8r,li", "--memory", "1M",
           "--strategy", "standard"]


def outputs(folder):
    """(arguments but for the path, what the text holds) of every command that writes one."""
    yield PLAN + ["--save"], "neap plan 1"
    yield PLAN + ["--draw"], "<svg"
    yield COMPARE + ["--trace"], "traceEvents"
    yield TRAIN + ["--out", os.path.join(folder, "run"), "--trace"], "traceEvents"
    yield ["calibrate", "randman:samples=40,steps=20", "--net", "lif:8r,li", "--out"], "advance"
    yield ["predict", TRAINED[0], "randman:samples=40,steps=20", "--out"], "sample,label"


def remove(folder):
    subprocess.run(["rm", "-rf", os.path.join(folder, "run")], check=True)


def device(folder):
    """A device is written to, and stays; one that is full is an error of one line."""
    for name, minor, code in (("null", 3, 0), ("full", 7, 1)):
        path = os.path.join(folder, name)
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
            open(path, "w").close()
        except OSError:
            return "skip: devices cannot be made here"
        for args, _ in outputs(folder):
            done = neap(*args, path)
            if done.returncode != code:
                return f"{args[0]} {args[-1]} {name}: exit {done.returncode} {done.stderr}"
            if code and "No space left" not in done.stderr.splitlines()[-1]:
                return f"{args[0]} {args[-1]} {name}: {done.stderr}"
            if not stat.S_ISCHR(os.stat(path).st_mode):
                return f"{args[0]} {args[-1]} replaced the device"
            remove(folder)
    left = [name for name in os.listdir(folder) if name not in ("null", "full")]
    return f"left behind: {left}" if left else None


def fifo(folder):
    """The reader of a FIFO gets one whole text."""
    path = os.path.join(folder, "fifo")
    os.mkfifo(path)
    for args, holds in outputs(folder):
        reader = subprocess.Popen(["cat", path], stdout=subprocess.PIPE, text=True)
        done = neap(*args, path)
        text = reader.communicate(timeout=60)[0]
        if done.returncode != 0 or holds not in text or text.count(holds) != 1:
            return f"{args[0]} {args[-1]}: exit {done.returncode} {done.stderr} {text[:100]}"
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return f"{args[0]} {args[-1]} replaced the FIFO"
        remove(folder)
    return None


def link(folder):
    """A link stays a link; what it points to is replaced, also where it is not there yet."""
    os.makedirs(os.path.join(folder, "far"))
    for there in (False, True):
        for args, holds in outputs(folder):
            path, target = os.path.join(folder, "link"), os.path.join(folder, "far", "target")
            os.symlink("far/target", path)
            if there:
                with open(target, "w") as f:
                    f.write("before")
                os.chmod(target, 0o640)
            done = neap(*args, path)
            if done.returncode != 0 or not os.path.islink(path):
                return f"{args[0]} {args[-1]}: exit {done.returncode} {done.stderr}"
            if holds not in open(target).read():
                return f"{args[0]} {args[-1]}: the target is not written"
            if there and stat.S_IMODE(os.stat(target).st_mode) != 0o640:
                return f"{args[0]} {args[-1]}: other permissions"
            if os.listdir(os.path.join(folder, "far")) != ["target"]:
                return f"left behind: {os.listdir(os.path.join(folder, 'far'))}"
            os.remove(path)
            os.remove(target)
            remove(folder)
    os.symlink("loop", os.path.join(folder, "loop"))
    done = neap(*PLAN, "--save", os.path.join(folder, "loop"))
    return None if done.returncode == 2 else f"a loop: exit {done.returncode} {done.stderr}"


def standard_output(folder):
    """"-" is standard output, which then holds the text alone."""
    for args, holds in outputs(folder):
        if args[0] in ("compare", "train"):
            continue
        done = neap(*args, "-", cwd=folder)
        if done.returncode != 0 or holds not in done.stdout[:2000]:
            return f"{args[0]} {args[-1]} -: {done.stdout[:100]} {done.stderr}"
        if args[0] == "calibrate":
            json.loads(done.stdout)
        if os.path.exists(os.path.join(folder, "-")):
            return "a file '-' was made"
    return None


def a_full_disk(folder):
    """A file that cannot grow is as it was before, and nothing is left beside it."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
    for name in "kept", "kept.npz":
        why = no_room(folder, name, limit)
        if why:
            return why
    return None


def no_room(folder, name, limit):
    path = os.path.join(folder, name)
    predict = ["predict", TRAINED[0], "randman:samples=400,steps=20", "--out"]
    for args, _ in ((predict, 0),) if name != "kept" else ((predict, 0), (PLAN + ["--actions", "--save"], 0), (PLAN + ["--draw"], 0),
                    (COMPARE + ["--chunk", "1", "--repeats", "3", "--trace"], 0)):
        with open(path, "w") as f:
            f.write("before")
        done = subprocess.run([NEAP, *args, path], preexec_fn=limit, capture_output=True, text=True,
                              check=False)
        if done.returncode != 1 or "File too large" not in done.stderr.splitlines()[-1]:
            return f"{args[0]} {args[-1]}: exit {done.returncode} {done.stderr}"
        if open(path).read() != "before" or os.listdir(folder) != [name]:
            return f"{args[0]} {args[-1]}: {os.listdir(folder)}"
    os.remove(path)
    return None


def main():
    with Tap() as tap, Folder() as top:
        TRAINED.append(os.path.join(top, "trained"))
        assert neap(*TRAIN, "--out", TRAINED[0]).returncode == 0
        for case in (device, fifo, link, standard_output, a_full_disk):
            with Folder() as folder:
                why = case(folder) if case is device else None
                name = case.__doc__.split(";")[0].split(",")[0].rstrip(".")
                if why and why.startswith("skip: "):
                    tap.skip(name, why[6:])
                elif case is device:
                    tap.check(name, why)
                else:
                    tap.run(name, case, folder)


main()
