#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`neap calibrate --device`, with the fake CUDA driver: what it measures, and that plan, train and compare use its chain file.
"""
import json
import os
import re
import sys

from device import DATA, DEVICE, FAKE, NET, said
from harness import Folder, Tap, neap, neap_json

CALIBRATE = ["calibrate", DATA, *NET, "--batch", "8", "--memory", "200K", "--slow", "pinned:1M", "--repeats", "3", *DEVICE]


def reports(folder):
    found = neap_json(*CALIBRATE, env=FAKE, cwd=folder)["device"]
    rates = [found[name]["median"] for name in ("to_device", "from_device", "device_to_device")]
    if "fake device" not in found["about"] or min(rates) <= 0 or found["launch"]["median"] <= 0:
        return f"{found}"
    done = neap(*CALIBRATE, env=FAKE, cwd=folder)
    for row in (r"cuda:0 \(fake device.*\), [\d.]+ MiB of 64 MiB free$", r"  from pinned memory +[\d.]+ [KMG]iB/s", r"  to pinned memory +",
                r"  device to device +", r"  launch +[\d.]+ [mun]?s", r"pinned memory of cuda:0, records"):
        if not re.search("^" + row, done.stdout, re.M):
            return f"no {row}: {done.stdout} {said(done)}"
    without = [option for option in CALIBRATE if option not in (*DEVICE, "--slow", "pinned:1M")]
    return None if neap_json(*without, cwd=folder)["device"] is None else "a device without --device"


def used(folder):
    done = neap(*CALIBRATE, "--out", "chain.json", env=FAKE, cwd=folder)
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


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("the card, its rates and the cost of a launch", reports, folder)
        tap.run("plan, train and compare use the chain file", used, folder)


if __name__ == "__main__":
    sys.exit(main())
