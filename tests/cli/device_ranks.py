#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Ranks that mpirun starts, with a device each, of a fake CUDA driver with several: they take turns with all devices, and the weights are
those of one process on the processor.
"""
import os
import re
import sys

from device import DEVICE, FAKE, ISA, said, weights
from harness import Folder, Tap, neap
from ranks import MPI, ours, run

DATA = "randman:classes=4,units=20,samples=54,steps=70"
TRAIN = ["train", DATA, "--net", "lif:24r,li", "--epochs", "2", "--batch", "20", "--group", "4", "--memory", "200K", "--threads", "1",
         "--slow", "pinned:1M"]


def same_weights(folder, devices, ranks, device="cuda"):
    """The driver of each rank writes the name of the device that it opened last."""
    out = f"ranks{ranks}of{devices}{device.replace(':', '-')}"
    env = dict(FAKE, FAKE_CUDA=f"devices={devices},opened={folder}/{out}.opened")
    done = run(ranks, *TRAIN, "--device", device, "--out", out, cwd=folder, env=env)
    if done.returncode:
        return said(done)
    if weights(os.path.join(folder, out)) != weights(os.path.join(folder, "alone")):
        return "other weights"
    with open(os.path.join(folder, f"{out}.opened"), encoding="ascii") as file:
        opened = sorted(set(file.read().split()))
    if opened != sorted(str(n) for n in range(min(devices, ranks))):
        return f"devices {opened} were opened"
    return None if re.search(r"^device +cuda:0 ", done.stdout, re.M) else f"no line of the device: {done.stdout}"


def one_budget(folder):
    """Without --memory, ranks share the memory of a device that they share."""
    done = run(3, *[a for a in TRAIN if a not in ("--memory", "200K")], *DEVICE, "--out", "shared", cwd=folder,
               env=dict(FAKE, FAKE_CUDA="devices=2,bytes=41000000"))
    if done.returncode or not re.search(r"memory budget: 9\.\d+ MiB \(default", done.stderr):
        return said(done)
    return None


def refused(folder):
    done = run(2, *TRAIN, "--net", "brf:8,li", *DEVICE, "--out", "brf", cwd=folder, env=FAKE)
    lines = ours(done)
    if done.returncode != 2 or len(lines) != 1 or "a layer of brf" not in lines[0] or os.path.exists(os.path.join(folder, "brf")):
        return f"{lines} {said(done)}"
    return None


def main():
    if not MPI:
        print("1..0 # SKIP no mpirun")
        return 0
    with Tap() as tap, Folder() as folder:
        done = neap(*TRAIN[:-2], "--out", "alone", env=ISA, cwd=folder)
        tap.run("one process on the processor", lambda: said(done) if done.returncode else None)
        for devices, ranks in (2, 2), (2, 3), (4, 2):
            tap.run(f"{ranks} ranks, {devices} devices", same_weights, folder, devices, ranks)
        tap.run("2 ranks, 2 devices, clusters of blocks", same_weights, folder, 2, 2, "cuda:clusters=4")
        tap.run("the default budget of ranks that share a device", one_budget, folder)
        tap.run("a net that devices do not run: one line", refused, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
