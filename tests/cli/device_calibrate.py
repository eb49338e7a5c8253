#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`neap calibrate --device`, with the fake CUDA driver: what it measures, and that plan, train and compare use its chain file.
"""
import json
import os
import re
import sys

from device import DATA, DEVICE, FAKE, ISA, NET, said, weights
from harness import Folder, Tap, neap, neap_json

OLD = dict(FAKE, FAKE_CUDA="major=8")  # without clusters of blocks
CALIBRATE = ["calibrate", DATA, *NET, "--batch", "8", "--memory", "200K", "--slow", "pinned:1M", "--repeats", "3", "--timed", "16", *DEVICE]


def reports(folder):
    found = neap_json(*CALIBRATE, env=OLD, cwd=folder)["device"]
    rates = [found[name]["median"] for name in ("to_device", "from_device", "device_to_device")]
    if "fake device" not in found["about"] or min(rates) <= 0 or found["launch"]["median"] <= 0:
        return f"{found}"
    done = neap(*CALIBRATE, env=OLD, cwd=folder)
    for row in (r"cuda:0 \(fake device.*\), [\d.]+ MiB of 64 MiB free$", r"  from pinned memory +[\d.]+ [KMG]iB/s", r"  to pinned memory +",
                r"  device to device +", r"  launch +[\d.]+ [mun]?s", r"pinned memory of cuda:0, records"):
        if not re.search("^" + row, done.stdout, re.M):
            return f"no {row}: {done.stdout} {said(done)}"
    without = [option for option in CALIBRATE if option not in (*DEVICE, "--slow", "pinned:1M")]
    return None if neap_json(*without, cwd=folder)["device"] is None else "a device without --device"


def used(folder):
    done = neap(*CALIBRATE, "--out", "chain.json", env=OLD, cwd=folder)
    if done.returncode:
        return said(done)
    path = os.path.join(folder, "chain.json")
    with open(path, encoding="utf-8") as file:
        chain = json.load(file)
    # Costs that nobody measures: they are in the reports of what uses the file.
    chain.update(advance=0.25, record=0.5, backward=1, call=0)
    chain["tiers"][0].update(write=123e6, read=77e6)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(chain, file)
    rates = r"write 123 MB/s, read 77 MB/s"
    for command, words in ((["train", "--epochs", "1", "--out", "run"], [rates, r"per forward and backward pass"]),
                           (["compare", "--strategy", "stream"], [rates, r"advance 250 ms, record 500 ms, backward 1 s"])):
        done = neap(command[0], DATA, *NET, "--batch", "8", "--memory", "20K", "--slow", "pinned:1M", *DEVICE, "--chain", "chain.json",
                    *command[1:], env=FAKE, cwd=folder)
        if done.returncode or any(not re.search(word, done.stdout + done.stderr) for word in words):
            return f"{command[0]}: {done.stdout[:400]} {said(done)}"
    done = neap("plan", "--chain", "chain.json", "--memory", "20K", cwd=folder)
    return None if done.returncode == 0 and re.search(r"stream.* [\d.]+ KiB ", done.stdout) else f"plan: {done.stdout[:500]} {said(done)}"


def clusters(folder):
    """The chain file has what was fastest; train and compare use it, unless the option selects other clusters, with the same bits."""
    data, found = "randman:steps=20,samples=8,units=10,classes=3", []
    options = [*NET, "--batch", "4", "--memory", "200K"]
    for quick in 4, 0:
        env = dict(FAKE, FAKE_CUDA=f"cluster_most=4,slow=40,quick={quick}")
        report = neap_json("calibrate", data, *options, "--repeats", "1", "--timed", "8", *DEVICE, env=env, cwd=folder)
        least = min(report["clusters"], key=lambda row: row["seconds"])
        want = f"cuda:clusters={quick}" if quick else "cuda"
        if [row["device"] for row in report["clusters"]] != ["cuda", "cuda:clusters=2", "cuda:clusters=4"]:
            return f"{report['clusters']}"
        if least["device"] != want or report["chain"]["device"] != want:
            return f"{quick}: {report['clusters']}, {report['chain']['device']}"
        with open(os.path.join(folder, "fast.json"), "w", encoding="utf-8") as file:
            json.dump(report["chain"], file)
        for device in "cuda", "cuda:clusters=2", "cpu":
            out = f"run{len(found)}"
            done = neap("train", data, *options, "--chain", "fast.json", "--epochs", "1", "--device", device, "--out", out,
                        env=dict(FAKE, **ISA), cwd=folder)
            said_so = f"device {want}: clusters were fastest in fast.json" in done.stderr
            if done.returncode or said_so != (device == "cuda" and quick > 0):
                return f"{quick}, {device}: {said(done)}"
            with open(os.path.join(folder, out, "run.json"), encoding="utf-8") as file:
                used = re.search(r'"device":\s*"([^"]*)"', file.read())[1]
            if used != (want if device == "cuda" else device):
                return f"{quick}, {device}: the run has the device {used}"
            found.append(weights(os.path.join(folder, out)))
        done = neap("compare", data, *options, "--chain", "fast.json", "--strategy", "bptt", *DEVICE, env=FAKE, cwd=folder)
        if done.returncode or (f"device {want}:" in done.stderr) != (quick > 0):
            return f"compare: {said(done)}"
    return None if all(row == found[0] for row in found) else "other weights"


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("the card, its rates and the cost of a launch", reports, folder)
        tap.run("plan, train and compare use the chain file", used, folder)
        tap.run("clusters of blocks: what was fastest", clusters, folder)


if __name__ == "__main__":
    sys.exit(main())
