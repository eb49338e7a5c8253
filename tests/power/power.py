#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Power loss: what a command does to its files is recorded (recording.c). For moments in between, the
folder is made as a disk may hold it then: with all that was written, with what was flushed alone,
and with some of the rest, in pieces. After each the command is run again: it must end in the same
bits, or refuse with one line.

    power.py RECORDING.so [MOMENTS]     moments of each command, 0: all of them; 14 unless told
"""
import glob
import json
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from harness import Folder, Tap, neap, resuming, write_recordings  # noqa: E402

RECORDING = os.path.abspath(sys.argv[1])
MOMENTS = int(sys.argv[2]) if len(sys.argv) > 2 else 14
SECTOR = 512
NET = ["--net", "lif:8r,li", "--batch", "8", "--memory", "64K"]
TRAIN = ["train", "randman:classes=3,units=10,steps=40,samples=30", *NET, "--epochs", "3",
         "--snapshot", "1ms", "--out", "run", "--json"]
SWEEP = ["compare", "randman:steps=3000,spikes=40,samples=8,units=20", "--net", "lif:16r,li",
         "--batch", "4", "--memory", "200K", "--strategy", "double", "--slow", "slow",
         "--slow-in-memory", "--no-reference", "--json"]
JOURNAL = ["--journal", "slow", "--journal-every", "5ms"]


class File:
    """Writes and sizes in order, of which the first `flushed` are on the disk for good."""

    def __init__(self, data=b""):
        self.base, self.changes, self.flushed = data, [], 0

    def holds(self, kept):
        data = bytearray(self.base)
        for kind, at, what in kept:
            if kind == "write":
                if len(data) < at:
                    data.extend(bytes(at - len(data)))
                data[at:at + len(what)] = what
            elif at <= len(data):
                del data[at:]
            else:
                data.extend(bytes(at - len(data)))
        return bytes(data)

    def lost(self, draw):
        """Some of what was not flushed, in its order; the last of it maybe cut at a sector."""
        kept = self.changes[:self.flushed]
        late = [c for c in self.changes[self.flushed:] if draw.random() < 0.5]
        if late and late[-1][0] == "write" and draw.random() < 0.5:
            kind, at, what = late[-1]
            late[-1] = (kind, at, what[:draw.randrange(len(what) // SECTOR + 1) * SECTOR])
        return self.holds(kept + late)


class Disk:
    """Folders with their changes of entries, of which the first `flushed` are on the disk."""

    def __init__(self, root):
        self.root, self.inodes, self.entries = root, {}, {}
        for path, _, names in os.walk(root):
            self.entries[path] = {"base": {}, "changes": [], "flushed": 0}
            for name in names:
                whole = os.path.join(path, name)
                with open(whole, "rb") as file:
                    made = File(file.read())
                self.inodes[os.stat(whole).st_ino] = made
                self.entries[path]["base"][name] = made
        for path in list(self.entries):
            if path != root:
                folder = self.entries[os.path.dirname(path)]
                folder["base"][os.path.basename(path)] = path

    def change(self, path, kind, *more):
        self.entries[os.path.dirname(path)]["changes"].append((kind, os.path.basename(path), *more))

    def perform(self, words, data):
        kind = words[0]
        if kind == "create":
            made = self.inodes[int(words[2])] = File()
            self.change(words[1], "add", made)
        elif kind == "make":
            self.change(words[1], "add", words[1])
            self.entries[words[1]] = {"base": {}, "changes": [], "flushed": 0}
        elif kind == "write":
            self.inodes[int(words[1])].changes.append(("write", int(words[2]), data))
        elif kind == "size":
            self.inodes[int(words[1])].changes.append(("size", int(words[2]), None))
        elif kind == "flush":
            file = self.inodes[int(words[1])]
            file.flushed = len(file.changes)
        elif kind == "flush_folder":
            folder = self.entries[words[1]]
            folder["flushed"] = len(folder["changes"])
        elif kind == "rename":
            self.change(words[1], "rename", os.path.basename(words[2]))
        elif kind == "remove":
            self.change(words[1], "remove")

    def names(self, path, count):
        folder = self.entries[path]
        names = dict(folder["base"])
        for change in folder["changes"][:count]:
            if change[0] == "add":
                names[change[1]] = change[2]
            elif change[0] == "remove":
                names.pop(change[1], None)
            elif change[1] in names:
                names[change[2]] = names.pop(change[1])
        return names

    def make(self, to, path, how, draw):
        """The folder `path` as it may be found after the power failed, in the folder `to`."""
        folder = self.entries[path]
        count = {"all": len(folder["changes"]), "flushed": folder["flushed"]}.get(
            how, draw.randint(folder["flushed"], len(folder["changes"])))
        os.makedirs(to)
        for name, what in self.names(path, count).items():
            target = os.path.join(to, name)
            if isinstance(what, str):
                self.make(target, what, how, draw)
                continue
            data = {"all": lambda f=what: f.holds(f.changes),
                    "flushed": lambda f=what: f.holds(f.changes[:f.flushed])}.get(
                        how, lambda f=what: f.lost(draw))()
            with open(target, "wb") as file:
                file.write(data)


def read_record(path):
    with open(path, "rb") as file:
        data = file.read()
    at, events = 0, []
    while at < len(data):
        end = data.index(b"\n", at)
        words = data[at:end].decode().split(" ")
        at = end + 1
        piece = b""
        if words[0] == "write":
            piece = data[at:at + int(words[3])]
            at += int(words[3])
        events.append((words, piece))
    return events


class Scenario:
    """A command; what it is prepared by, what it is run again with (a function of the folder), what it must come to."""

    def __init__(self, name, command, again, result, prepare=None):
        self.name, self.command, self.again = name, command, again
        self.result, self.prepare = result, prepare

    def record(self, top):
        self.root = os.path.realpath(os.path.join(top, self.name))
        self.before = os.path.join(top, self.name + ".before")
        os.makedirs(os.path.join(self.root, "slow"))
        if self.prepare:
            self.prepare(self.root)
        shutil.copytree(self.root, self.before)
        start = Disk(self.root)
        log = os.path.join(top, self.name + ".record")
        done = neap(*self.command, cwd=self.root, env={
            "LD_PRELOAD": RECORDING, "NEAP_RECORD": log, "NEAP_RECORDED": self.root,
            "NEAP_IO": "sync"})
        assert done.returncode == 0, done.stderr
        self.events = read_record(log)
        self.expected = self.result(self.root, done)
        self.start = start
        return self.complete()

    def disk(self, count):
        """The disk after so many events."""
        disk = Disk(self.before)  # the names of the first folder, moved
        moved = [([w.replace(self.root, self.before) for w in words], data)
                 for words, data in self.events[:count]]
        # Inodes of files that were there before are those of the recorded folder.
        disk.inodes = {}
        for path, folder in self.start.entries.items():
            for name, what in folder["base"].items():
                if isinstance(what, File):
                    for number, file in self.start.inodes.items():
                        if file is what:
                            there = disk.entries[path.replace(self.root, self.before)]
                            disk.inodes[number] = there["base"][name]
        for words, data in moved:
            disk.perform(words, data)
        return disk

    def complete(self):
        """The record has everything: carried out, it gives the folder that is there."""
        to = self.root + ".replayed"
        self.disk(len(self.events)).make(to, self.before, "all", random.Random(1))
        for path, _, names in os.walk(self.root):
            for name in names:
                there = os.path.join(path, name)
                with open(there, "rb") as a, open(there.replace(self.root, to), "rb") as b:
                    if a.read() != b.read():
                        return f"{there} is not what was recorded"
        shutil.rmtree(to)
        return None

    def moment(self, top, count, how, draw):
        to = os.path.join(top, "after")
        self.disk(count).make(to, self.before, how, draw)
        try:
            problem = self.check(to, count == len(self.events))
        finally:
            shutil.rmtree(to)
        return problem and f"{self.name}, after {count} of {len(self.events)} events, {how}: " \
                           f"{problem}"

    def check(self, folder, ended):
        if self.again is None:
            return self.result(folder, None, self.expected, ended)
        done = neap(*self.again(folder), cwd=folder, env={"NEAP_IO": "sync"})
        if done.returncode in (1, 2):
            REFUSED.append(done.stderr.strip())
            return None if done.stderr.count("\n") == 1 and not ended else done.stderr
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr}"
        found = self.result(folder, done)
        return None if found == self.expected else f"{found}, not {self.expected}"


REFUSED = []


def weights(_, done):
    return json.loads(done.stdout)["weights_hash"]


def gradients(_, done):
    return [r["grad_hash"] for r in json.loads(done.stdout)["runs"]]


def whole_file(name):
    """Old or new as a whole, and new once the command has ended."""
    def result(folder, _, expected=None, ended=True):
        path = os.path.join(folder, name)
        found = None
        if os.path.exists(path):
            with open(path, "rb") as file:
                found = file.read()
        if expected is None:
            return found
        right = found == expected or (not ended and found == b"old")
        return None if right else f"{name} has {found and len(found)} bytes"
    return result


def old(name):
    def prepare(folder):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"old")
        write_recordings(os.path.join(folder, "sounds"), 2)
    return prepare


def begun(folder):
    first = [a if a != "3" else "1" for a in TRAIN]
    assert neap(*first, cwd=folder).returncode == 0


def train_again(folder):
    return TRAIN + resuming(os.path.join(folder, "run"))


SCENARIOS = [
    Scenario("train", TRAIN, train_again, weights),
    Scenario("resumed", TRAIN + ["--resume"], train_again, weights, begun),
    Scenario("journal", SWEEP + JOURNAL, lambda _: SWEEP + JOURNAL, gradients),
    Scenario("encode", ["encode", "sounds", "--out", "out.h5", "--label", "([0-9]+)_.*",
                        "--force"], None,
             whole_file("out.h5"), old("out.h5")),
    Scenario("plan", ["plan", "--steps", "50", "--memory", "4000", "--state", "64", "--tape", "99",
                      "--strategy", "standard", "--save", "a.plan", "--draw", "a.svg"], None,
             whole_file("a.plan"), old("a.plan")),
]


def run(scenario, top, tap):
    tap.run(f"{scenario.name}: the record is complete", scenario.record, top)
    if not getattr(scenario, "events", None):
        return 0
    n, draw = len(scenario.events), random.Random(scenario.name)
    points = [(count, how) for count in range(n + 1) for how in ("all", "flushed", "some", "some")]
    if MOMENTS:
        ends = [p for p in points if p[0] == n][:2]
        points = draw.sample(points, min(len(points), MOMENTS)) + ends
    problems = [p for p in (scenario.moment(top, count, how, random.Random(f"{count}{how}{k}"))
                            for k, (count, how) in enumerate(points)) if p]
    tap.check(f"{scenario.name}: {len(points)} moments", "\n".join(problems[:10]) or None)
    return len(points)


def main():
    with Tap() as tap, Folder() as top:
        points = sum(run(scenario, top, tap) for scenario in SCENARIOS)
        print(f"# {points} moments, {len(REFUSED)} refused: {sorted(set(REFUSED))[:5]}")
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
