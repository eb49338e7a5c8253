#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`neap study --device`, with the fake CUDA driver: points, figures and report of the experiment of devices, its energy with the fake NVML,
and what is refused.
"""
import csv
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

from device import DEVICE, FAKE, said
from harness import NEAP, Folder, Tap, neap

NVML = dict(FAKE, NEAP_NVML=os.environ["NEAP_FAKE_NVML"])
STRATEGIES = ["reference", "standard", "remote", "hierarchical", "double", "auto"]


def study(folder, *more, env=NVML):
    return neap("study", "--tiny", "--out", folder, *DEVICE, *more, env=env)


def rows_of(folder):
    with open(os.path.join(folder, "device.csv"), encoding="utf-8") as file:
        return list(csv.DictReader(file))


def report_of(folder):
    with open(os.path.join(folder, "report.md"), encoding="utf-8") as file:
        return file.read()


def measures(folder):
    done = study(folder)
    if done.returncode:
        return said(done)
    rows, report = rows_of(folder), report_of(folder)
    for point in sorted({row["point"] for row in rows}):
        found = [row for row in rows if row["point"] == point]
        if [row["strategy"] for row in found] != STRATEGIES:
            return f"{point}: {[row['strategy'] for row in found]}"
        if len({row["grad_hash"] for row in found}) != 1 or not found[0]["grad_hash"]:
            return f"{point}: gradients differ: {found}"
        for row in found[1:]:
            if not 0 < int(row["peak_measured"]) <= int(row["memory"]):
                return f"{point}: a peak of {row['peak_measured']} in {row['memory']} bytes"
        if any(not float(row["seconds"]) > 0 or not float(row["predicted"]) > 0 for row in found):
            return f"{point}: no times: {found}"
        # The fake NVML counts 2.5 J between two readings, and passes of a strategy are between two readings.
        if any(not 0 < float(row["joules"]) <= 2.5 for row in found):
            return f"{point}: energies {[row['joules'] for row in found]}"
        if any(row["device_measured"] != row["device_allocated"] or int(row["device_allocated"]) <= 0 for row in found):
            return f"{point}: memory of the device: {found[0]}"
        if not any(float(row["slow_bytes"]) > 0 for row in found):
            return f"{point}: nothing was offloaded"
    names = re.findall(r"^!\[[\w-]+\]\(([\w-]+)\.svg\)$", report, re.M)
    if names != ["device-time", "device-memory", "device-energy"] or "fake device" not in report or "Not measured" in report:
        return f"{names} {report[:400]}"
    if re.search(r"\bnan\b|\binf\b", report) or "--tiny --device cuda" not in report or "pinned:4G" not in report:
        return report
    for name in names:
        root = xml.etree.ElementTree.parse(os.path.join(folder, name + ".svg")).getroot()
        if not any(mark.tag.endswith("path") for mark in root):
            return f"{name}: no marks"
    return None


def complete(folder):
    """What is complete is not measured once more; a folder is of one device."""
    path = os.path.join(folder, "device.csv")
    before = os.stat(path).st_mtime_ns
    done = study(folder, "device")
    if done.returncode or os.stat(path).st_mtime_ns != before:
        return said(done)
    for other in ["schedules"], ["--device", "cuda:clusters=8"]:
        done = neap("study", "--tiny", "--out", folder, *other, env=NVML)
        if done.returncode != 2 or "other settings" not in done.stderr:
            return said(done)
    return None


def no_counter(folder):
    """Without NVML there is no energy and no figure of it; the point that is missing is measured."""
    rows = [row for row in rows_of(folder) if row["axis"] == "T"]
    with open(os.path.join(folder, "device.csv"), "w", encoding="utf-8", newline="\n") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows({**row, "joules": ""} for row in rows)
    os.remove(os.path.join(folder, "device-energy.svg"))
    done = study(folder, env=dict(FAKE, NEAP_NVML="libnone.so"))
    if done.returncode:
        return said(done)
    if any(row["joules"] for row in rows_of(folder)) or os.path.exists(os.path.join(folder, "device-energy.svg")):
        return "energy without a counter"
    return None if "does not count its energy" in report_of(folder) else report_of(folder)


def interrupted(folder):
    """SIGINT while a point is measured: one line with what to do, and the same command continues."""
    out = os.path.join(folder, "interrupted")
    with subprocess.Popen([NEAP, "study", "--tiny", "--out", out, *DEVICE], env={**os.environ, **NVML}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        while not os.path.exists(os.path.join(out, "study.txt")) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
    lines = [line for line in error.splitlines() if line.startswith("neap study:")]
    if process.returncode != 1 or lines != ["neap study: interrupted. Run the same command again to continue"]:
        return f"exit {process.returncode}: {error}"
    return None


def refused(words, env, *args):
    done = neap("study", "--tiny", "--out", "/tmp/never", *args, env=env)
    lines = done.stderr.splitlines()
    if done.returncode != 2 or len(lines) != 1 or not re.search(words, lines[0]) or os.path.exists("/tmp/never"):
        return said(done)
    return None


def main():
    with Tap() as tap:
        with Folder() as folder:
            tap.run("points, energy, figures and report", measures, folder)
            tap.run("what is complete is not measured once more", complete, folder)
            tap.run("no counter of energy", no_counter, folder)
            tap.run("SIGINT", interrupted, folder)
        tap.run("refused: an experiment of the processor", refused, "'length' runs on the processor.*--device", FAKE, "length", *DEVICE)
        tap.run("refused: an experiment of a device", refused, "'device' needs a device.*--device cuda", FAKE, "device")
        tap.run("refused: no driver", refused, "no CUDA driver", dict(FAKE, NEAP_CUDA_DRIVER="libnone.so"), *DEVICE)
        tap.run("refused: no such device", refused, "cuda:7", FAKE, "--device", "cuda:7")


if __name__ == "__main__":
    sys.exit(main())
