#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--trace FILE`: JSON that parses, events that nest, sums that are the statistics'."""
import json
import os

from harness import Folder, Tap, neap, neap_json

DATA = "randman:steps=600,samples=64,units=40"
NET = ["--net", "lif:64r,li", "--batch", "16"]


def load(path):
    with open(path) as file:
        return json.load(file)


def nests(trace):
    """The events of each track are apart or one within the other."""
    tracks = {}
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for track, events in tracks.items():
        stack = []
        for start, end in sorted(events, key=lambda e: (e[0], -e[1])):
            while stack and stack[-1] <= start + 0.002:
                stack.pop()
            if stack and end > stack[-1] + 0.002:
                return f"an event of track {track} reaches out of the one around it"
            stack.append(end)
    return None


def total(trace, pid, **wanted):
    return sum(e["dur"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == pid
               and all(e[k] == v for k, v in wanted.items())) / 1e6


def near(a, b):
    return abs(a - b) <= 1e-4 + 1e-3 * abs(b)


def compared(slow, path):
    strategies = ["stream", "double", "standard"]
    more = [x for s in strategies for x in ("--strategy", s)]
    result = neap_json("compare", DATA, *NET, "--memory", "512K", "--slow", slow, "--trace", path,
                       "--no-reference", *more)
    trace = load(path)
    runs = {r["strategy"]: r for r in result["runs"] if r["grad_hash"]}
    sweeps = trace["otherData"]["sweeps"]
    if [s["name"] for s in sweeps] != [r["strategy"] for r in result["runs"] if r["grad_hash"]]:
        return f"sweeps of {[s['name'] for s in sweeps]}"
    for pid, sweep in enumerate(sweeps, 1):
        run = runs[sweep["name"]]
        if sweep["dropped"]:
            return "events were dropped"
        for key in ("seconds", "compute", "slowdown", "copies"):
            if not near(sweep[key], run[key]):
                return f"{sweep['name']}: {key} {sweep[key]}, {run[key]} in the table"
        if not near(total(trace, pid, cat="compute"), run["compute"]):
            return f"{sweep['name']}: computing adds up to {total(trace, pid, cat='compute')}"
        for reason, seconds in run["stalls"].items():
            if not near(total(trace, pid, name=f"wait: {reason}"), seconds):
                return f"{sweep['name']}: waits for {reason} do not add up"
        if not near(sum(run["stalls"].values()), run["stall_measured"]):
            return f"{sweep['name']}: reasons do not add up to the stall"
        if run["compute"] + run["copies"] + run["stall_measured"] > run["seconds"] * 1.001:
            return f"{sweep['name']}: more than its seconds"
        sent = sum(e["args"]["bytes"] for e in trace["traceEvents"] if e["pid"] == pid
                   and e.get("cat") == "transfer" and e["name"].startswith("put"))
        if (sent > 0) != (run["slow_bytes"] > 0):
            return f"{sweep['name']}: {sent} bytes were put"
    return nests(trace)


def trained(folder, path, *more):
    done = neap("train", "randman:steps=200,samples=64,units=40", "--net", "lif:32r,li",
                "--epochs", "1", "--batch", "16", "--memory", "256K", "--slow", folder,
                "--out", os.path.join(folder, "run-" + os.path.basename(path)), "--trace", path,
                *more)
    if done.returncode:
        return done.stderr
    trace = load(path)
    if len(trace["otherData"]["sweeps"]) != 1 or not total(trace, 1, cat="compute"):
        return "not one sweep"
    with open(os.path.join(folder, "run-" + os.path.basename(path), "run.json")) as file:
        sweeps = json.load(file)["sweeps"]
    if not near(sum(sweeps["stalls"].values()), sweeps["stall"]):
        return f"run.json: {sweeps}"
    return nests(trace)


def bad_path(folder):
    done = neap("compare", DATA, *NET, "--memory", "512K", "--strategy", "standard", "--trace",
                os.path.join(folder, "none", "t.json"))
    if done.returncode == 0 or "t.json" not in done.stderr and "none" not in done.stderr:
        return f"exit {done.returncode}: {done.stderr}"
    return None if done.stdout == "" else "printed a table"


def main():
    with Tap() as tap, Folder() as folder:
        path = os.path.join(folder, "trace.json")
        tap.run("compare", compared, folder, path)
        tap.run("train, the last batch", trained, folder, os.path.join(folder, "a.json"))
        tap.run("train, batch 2", trained, folder, os.path.join(folder, "b.json"),
                "--trace-batch", "2")
        tap.run("a folder that is not there", bad_path, folder)


main()
