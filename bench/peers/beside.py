#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one network in neap and in other frameworks and prints time and memory as Markdown.

Every framework gets neap's data and weights. First loss and gradients are compared, in
double precision; then steps (forward and backward) are timed in single precision, all
processes in turns, medians and ratios round by round. Memory is how far the high-water
mark rises in the first whole step; inputs and weights are there before.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import cases
import tables
from process import Broken, Neap, Peer

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE = 0.05  # seconds between steps: threads of the process before go to sleep

# Module -> cell that it shares with neap, and ways beyond two threads.
FRAMEWORKS = {"torch": "subtract", "debian": "subtract", "snntorch": "subtract, detached",
              "norse": "hard, detached", "spikingjelly": "hard", "spyx": "subtract"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


class Row:
    """One framework, way and number of threads; a neap row has no peer."""

    def __init__(self, name, cell, threads, way, run):
        self.name, self.cell, self.threads, self.way, self.run = name, cell, threads, way, run
        self.times, self.losses, self.info = [], [], {}

    def step(self):
        reply = self.run()
        self.times.append(reply["seconds"])
        self.losses.append(reply["loss"])
        time.sleep(PAUSE)


class Comparison:
    def __init__(self, options, case, folder, results):
        self.o, self.case, self.folder, self.results = options, case, folder, results
        self.neap, self.peers, self.rows, self.losses = {}, [], [], {}
        self.out = {"case": case, "rows": []}

    def absent(self, what):
        say(f"left out: {what}")
        if what not in self.results["absent"]:
            self.results["absent"].append(what)

    def cell_folder(self, cell):
        return os.path.join(self.folder, cell.replace(" ", "").replace(",", "-"))

    def export(self, cell):
        import agree
        if cell not in self.losses:
            self.losses[cell] = agree.export(self.o.helper, self.case, cell, self.cell_folder(cell),
                                             not self.o.no_check)

    def open_neap(self, cell, threads=2):
        """neap with this cell, prepared with all tapes kept; None where it has no such cell."""
        key = cell, threads
        if key not in self.neap:
            net = Neap(self.o.helper, self.case, cell, threads=threads)
            net.info = net.prepare("bptt")
            self.neap[key] = net
            row = Row("neap", cell, threads, "bptt", lambda: net.step("bptt"))
            row.info = dict(net.info)
            self.rows.append(row)
            if "spikes" not in self.out and self.case["kind"] == "lif":
                self.out.update(spikes=net.info["spikes"], support=net.info["support"])
        return self.neap[key]

    def python(self, framework):
        return self.o.system_python if framework == "debian" else sys.executable

    def environment(self, framework):
        """The system's PyTorch is twice slower with the default BLAS and two threads."""
        folder = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
        if framework == "debian" and os.path.isdir(folder):
            return {"LD_LIBRARY_PATH": folder}
        return {}

    def open_peer(self, framework, cell, precision):
        peer = Peer(self.python(framework), framework, self.cell_folder(cell), precision, 2,
                    self.environment(framework))
        if peer.absent:
            self.absent(f"{framework} ({peer.absent})")
            peer.close()
            return None
        self.called = peer.hello["version"], len(peer.hello["ways"])
        if peer.hello["version"] not in self.results["versions"]:
            self.results["versions"].append(peer.hello["version"])
        return peer

    def name_of(self, way):
        """Of a row of the framework opened last."""
        version, ways = self.called
        return version if ways == 1 else f"{version}, {way}"

    def ways(self, framework, peer):
        """(way, threads) of a framework; single threads for the plain loop alone."""
        for way in peer.hello["ways"]:
            if self.o.ways and way not in self.o.ways:
                continue
            yield way, 2
            if framework == "torch" and way == "eager":
                yield way, 1

    def check(self, framework, cell):
        """Differences by way."""
        import agree
        found = {}
        if self.o.no_check:
            return found
        peer = self.open_peer(framework, cell, "double")
        for way in peer.hello["ways"] if peer else []:
            if self.o.ways and way not in self.o.ways:
                continue
            try:
                found[way] = agree.check(peer, way, self.cell_folder(cell), self.losses[cell])
                say(f"{self.case['name']}: {framework} {way}: loss and gradients differ by "
                    f"{tables.agreement(found[way])}")
            except Broken as error:
                say(f"{framework} {way}: {error}")
        if peer:
            peer.close()
        return found

    def add(self, framework, cell):
        checks = self.check(framework, cell)
        if not self.o.rounds:
            self.out["rows"] += [{"name": self.name_of(way), "cell": cell, "threads": 2, "check": check}
                                 for way, check in checks.items()]
            return
        peer = self.open_peer(framework, cell, "float")
        if not peer:
            return
        self.peers.append(peer)
        for way, threads in self.ways(framework, peer):
            name = self.name_of(way)
            row = Row(name, cell, threads, way,
                      lambda way=way, threads=threads: peer.ask("step", way, threads=threads))
            row.info = {"check": checks.get(way)}
            try:
                row.info["growth"] = peer.ask("prepare", way, threads=threads)["growth"]
                self.rows.append(row)
            except Broken as error:
                say(f"left out: {name}: {error}")
                self.out["rows"].append({"name": name, "cell": cell, "threads": threads, "error": str(error)})

    def budget(self):
        """neap within a part of what PyTorch's loop takes, where that was measured."""
        base = [row for row in self.rows if row.way == "eager" and row.threads == 2]
        net = self.neap.get(("subtract", 2))
        if not base or not net:
            return
        memory = base[0].info["growth"] // self.o.fraction
        try:
            info = net.prepare("auto", memory)
        except Broken as error:
            say(f"neap within {tables.size(memory)}: {error}")
            return
        row = Row(f"neap within {tables.size(memory)}", "subtract", 2, "auto", lambda: net.step("auto"))
        row.info = info
        self.rows.append(row)

    def lif(self):
        for framework, cell in FRAMEWORKS.items():
            if self.o.only and framework not in self.o.only:
                continue
            if framework == "debian" and not self.o.system_python:
                continue
            self.export(cell)
            if self.o.rounds:
                self.open_neap(cell)
            self.add(framework, cell)
        if ("subtract", 2) in self.neap and (not self.o.only or "torch" in self.o.only):
            self.open_neap("subtract", threads=1)
        self.budget()

    def gated(self):
        """LSTM and GRU: PyTorch alone where neap refuses the cell."""
        import agree
        cell = self.case["kind"]
        os.makedirs(self.cell_folder(cell), exist_ok=True)
        try:
            self.export(cell)
            self.open_neap(cell)
        except Broken as error:
            self.absent(f"neap's half of {self.case['name']} ({error})")
            stand_in = dict(self.case, kind="lif", scale=1, width=1)
            net = Neap(self.o.helper, stand_in, "subtract", "double")
            net.say(f"export {self.cell_folder(cell)}")
            agree.describe(self.case, net.hello, self.cell_folder(cell), shared=False)
            net.close()
        if not self.o.only or "torch" in self.o.only:
            checks = self.o.no_check
            self.o.no_check = checks or cell not in self.losses
            self.add("gated", cell)
            self.o.no_check = checks

    def run(self):
        try:
            (self.lif if self.case["kind"] == "lif" else self.gated)()
            for _ in range(self.o.rounds):
                for row in list(self.rows):
                    try:
                        row.step()
                    except Broken as error:
                        say(f"{row.name}: {error}")
                        self.rows.remove(row)
            self.report()
        finally:
            for process in list(self.neap.values()) + self.peers:
                process.close()
        return self.out

    def report(self):
        """Medians; ratios of the same round. Every row has warmed up when its memory was measured."""
        if not self.o.rounds:
            return
        same = {(row.cell, row.threads): row for row in self.rows if row.way == "bptt"}
        for row in self.rows:
            ours = same.get((row.cell, row.threads))
            entry = {"name": row.name, "cell": row.cell, "threads": row.threads,
                     "seconds": statistics.median(row.times),
                     "spread": (max(row.times) - min(row.times)) / statistics.median(row.times),
                     "loss": row.losses[-1], **row.info}
            if ours:
                entry["neap_seconds"] = statistics.median(ours.times)
                entry["neap_growth"] = ours.info["growth"]
                entry["ratio"] = statistics.median(a / b for a, b in zip(row.times, ours.times))
            self.out["rows"].append(entry)


def merge(old, new):
    """Rows of a file that was written before, where this run has none of the same name."""
    for key in ("versions", "absent"):
        new[key] = sorted(set(new[key]) | set(old[key]))
    for case in old["cases"]:
        same = [c for c in new["cases"] if c["case"] == case["case"]]
        if not same:
            new["cases"].append(case)
            continue
        have = {(row["name"], row["cell"], row["threads"]): row for row in same[0]["rows"]}
        for row in case["rows"]:
            now = have.get((row["name"], row["cell"], row["threads"]))
            if now is None:
                same[0]["rows"].append(row)
            elif row.get("check") and not now.get("check"):
                now["check"] = row["check"]
        for key in ("spikes", "support"):
            if key in case:
                same[0].setdefault(key, case[key])


def describe():
    root = os.path.join(HERE, "..", "..")
    done = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() or "of this tree"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", default=os.path.join(HERE, "../../build/bench/peers/peerstep"), metavar="FILE",
                        help="neap's half (default: of build/)")
    parser.add_argument("--full", action="store_true", help="other sizes and activities, too")
    parser.add_argument("--steps", type=int, default=250, metavar="T", help="length of sequences (default 250)")
    parser.add_argument("--hidden", type=int, default=512, metavar="N", help="units (default 512)")
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="sequences (default 64)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="the median of so many steps (default 5); 0: compare losses and gradients only")
    parser.add_argument("--case", metavar="WORD", help="only cases with this in their name")
    parser.add_argument("--only", action="append", metavar="NAME", choices=sorted(FRAMEWORKS),
                        help="only this framework; may be repeated: " + ", ".join(FRAMEWORKS))
    parser.add_argument("--ways", action="append", metavar="WAY", help="only this way to write it; may be repeated")
    parser.add_argument("--fraction", type=int, default=200, metavar="N",
                        help="neap also runs within 1/N of what PyTorch takes (default 200)")
    parser.add_argument("--no-check", action="store_true", help="do not compare losses and gradients")
    parser.add_argument("--system-python", default="", metavar="FILE", help="an interpreter with another PyTorch")
    parser.add_argument("--json", metavar="FILE", help="results as JSON")
    parser.add_argument("--add", action="store_true", help="keep what that file has beyond this run")
    return parser.parse_args()


def main():
    options = arguments()
    results = {"machine": f"{cpu()}, {os.cpu_count()} processors", "neap": describe(), "versions": [], "absent": [],
               "cases": []}
    folder = tempfile.mkdtemp(prefix="neap-peers-")
    try:
        for index, case in enumerate(cases.chosen(options.full, options.steps, options.hidden, options.batch)):
            if options.case and options.case not in case["name"]:
                continue
            part = os.path.join(folder, str(index))
            os.mkdir(part)
            results["cases"].append(Comparison(options, case, part, results).run())
            shutil.rmtree(part)
    except Broken as error:
        say(f"beside.py: {error}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        if options.add and os.path.exists(options.json):
            with open(options.json, encoding="utf-8") as file:
                merge(json.load(file), results)
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    print(tables.document(results), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
