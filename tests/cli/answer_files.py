#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`neap predict` on several files, on folders, and on a table of many recordings; names of outputs that are numbers."""
import csv
import io
import json
import os
import sys

from harness import Folder, Tap, encode, neap, need, write_recordings

need("numpy")
import numpy as np  # noqa: E402

TRAIN = ["--epochs", "1", "--memory", "4M", "--threads", "1", "-q"]


def rows(folder, *args):
    done = neap("predict", *args, "--threads", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    head, *lines = list(csv.reader(io.StringIO(done.stdout)))
    return head, lines, done.stderr


def objects(folder, *args):
    done = neap("predict", *args, "--json", "--threads", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def prepare(folder):
    """Recordings, a table of recordings, and models of both."""
    rng = np.random.default_rng(1)
    write_recordings(os.path.join(folder, "sounds"), classes=2, each=3)
    encode(os.path.join(folder, "sounds"), os.path.join(folder, "sounds.h5"))
    os.makedirs(os.path.join(folder, "mixed", ".hidden"))
    os.mkdir(os.path.join(folder, "mixed", "deep"))
    os.mkdir(os.path.join(folder, "empty"))
    for name in "deep/b.wav", "a.WAV", ".hidden/c.wav", ".d.wav":
        os.link(os.path.join(folder, "sounds", "0_a_0.wav"), os.path.join(folder, "mixed", name))
    for name in "notes.txt", "deep/LICENSE", "../empty/notes.txt":
        open(os.path.join(folder, "mixed", name), "w").close()
    table = [[name, *map(repr, rng.normal(size=2)), t / 9, t * 2.5] for name, length in (("one", 5), ("t, wo", 7), ("three", 4)) for t in range(length)]
    for name, keep in {"table.csv": range(5), "order.csv": (3, 2, 0, 1), "apart.csv": range(5), "single.csv": (1, 2)}.items():
        lines = sorted(table, key=lambda row: row[3]) if name == "apart.csv" else table[:5] if name == "single.csv" else table
        with open(os.path.join(folder, name), "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([[line[k] for k in keep] for line in [["who", "x", "y", "speed", "far"], *lines]])
    for name, columns in ("speeds", ["--target", "speed,far"]), ("speed", ["--target", "speed", "--drop", "far"]):
        for args in (["encode", "table.csv", "--out", name + ".h5", "--sample-column", "who", *columns],
                     ["train", name + ".h5", "--net", "gru:4,li", *TRAIN, "--out", "run-" + name]):
            done = neap(*args, cwd=folder)
            assert done.returncode == 0, done.stderr
    done = neap("train", "sounds.h5", "--net", "lif:8,li", *TRAIN, "--out", "run-sounds", cwd=folder)
    assert done.returncode == 0, done.stderr


def several(folder):
    """One line per file with its name, the same answers as one by one, samples counted over all files."""
    names = [f"sounds/{k}_{'ab'[n % 2]}_{n}.wav" for k in (1, 0) for n in range(3)]
    head, got, said = rows(folder, "run-sounds", *names)
    alone = [rows(folder, "run-sounds", name) for name in names]
    want = [[name, str(i), *lines[0][1:]] for i, (name, (_, lines, _)) in enumerate(zip(names, alone))]
    if head != ["file", *alone[0][0]] or got != want or said:
        return f"{head} {got} {said}"
    given = objects(folder, "--from", "run-sounds", *names)
    if [(line["file"], line["sample"]) for line in given] != [(name, i) for i, name in enumerate(names)]:
        return str(given)
    _, decisions, _ = rows(folder, "run-sounds", *names[:2], "--every", "100ms", "--level", "0.02")
    return None if [line[0] for line in decisions] == [name for name in names[:2] for _ in range(3)] else str(decisions)


def folders(folder):
    """Files of a folder by their names; others are counted, hidden ones are not looked at."""
    _, got, said = rows(folder, "run-sounds", "mixed")
    if [line[:2] for line in got] != [["mixed/a.WAV", "0"], ["mixed/deep/b.wav", "1"]] or said != "2 files of other kinds skipped\n":
        return f"{got} {said}"
    _, got, _ = rows(folder, "run-sounds", "mixed/", "sounds/1_a_0.wav")
    return None if [line[0] for line in got] == ["mixed/a.WAV", "mixed/deep/b.wav", "sounds/1_a_0.wav"] else str(got)


def refused(folder, *needles, args):
    done = neap("predict", *args, cwd=folder)
    good = done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout and all(needle in done.stderr for needle in needles)
    return None if good else f"{done.returncode}: {done.stderr}{done.stdout}"


def half_written(folder):
    """A file that cannot be read is skipped and reported by its name; if all are such, --out is not written."""
    open(os.path.join(folder, "empty.wav"), "w").close()
    done = neap("predict", "run-sounds", "sounds/0_a_0.wav", "empty.wav", "--out", "half.csv", cwd=folder)
    if done.returncode != 0 or "1 of 2 files skipped" not in done.stderr or not os.path.exists(os.path.join(folder, "half.csv")) or \
            done.stdout != "half.csv: answers for 1 sample in 1 file\n":
        return done.stderr + done.stdout
    done = neap("predict", "run-sounds", "empty.wav", "empty.wav", cwd=folder)
    if done.returncode != 2 or not done.stderr.startswith("neap predict: none of the 2 files can be used. The first: 'empty.wav'"):
        return done.stderr
    done = neap("predict", "run-sounds", "empty.wav", "--out", "none.csv", cwd=folder)
    return None if done.returncode == 2 and "empty.wav" in done.stderr and not os.path.exists(os.path.join(folder, "none.csv")) else done.stderr


def split(folder):
    """A table of many recordings: the answers to the samples of the encoded table, with their names."""
    _, want, _ = rows(folder, "run-speeds", "speeds.h5")
    for name in "table.csv", "order.csv":
        head, got, said = rows(folder, "run-speeds", name)
        if [[line[0], *line[2:]] for line in got] != want or [line[1] for line in got] != ["one"] * 5 + ["t, wo"] * 7 + ["three"] * 4 or \
                "'who'" in said or head != ["sample", "recording", "step", "speed", "far"]:
            return f"{name}: {head} {got} {said}"
    neap("predict", "run-speeds", "table.csv", "--out", "named.npz", cwd=folder)
    with np.load(os.path.join(folder, "named.npz")) as arrays:
        if arrays["recording"].tolist() != [line[1] for line in rows(folder, "run-speeds", "table.csv")[1]]:
            return str(arrays["recording"])
    given = objects(folder, "run-speeds", "table.csv")
    if given[5]["recording"] != "t, wo" or given[5]["names"] != ["speed", "far"]:
        return str(given[5])
    for order, named in ((["table.csv", "single.csv"], True), (["single.csv", "table.csv"], False)):
        head, _, said = rows(folder, "run-speeds", *order)
        if ("recording" in head) != named or ("samples have names" in said) == named:
            return f"{order}: {head} {said}"
    head, got, _ = rows(folder, "run-speeds", "single.csv")
    return None if head == ["sample", "step", "speed", "far"] and got == want[:5] else f"{head} {got}"


def names(folder):
    """One output has the name of its target, also of arrays with `outputs`; arrays without have numbers."""
    found = [rows(folder, "run-speed", "speed.h5")[0]]
    rng = np.random.default_rng(1)
    for name, more in ("named", {"outputs": np.array(["a", "b"])}), ("bare", {}), ("wrong", {"outputs": np.array(["a"])}):
        np.savez(os.path.join(folder, name + ".npz"), x=rng.normal(size=(40, 5, 2)), y=rng.normal(size=(40, 2)), **more)
        done = neap("train", name + ".npz", "--net", "gru:4,li", *TRAIN, "--out", "run-" + name, cwd=folder)
        assert done.returncode == 0, done.stderr
        found.append(rows(folder, "run-" + name, name + ".npz")[0])
    return None if found == [["sample", "step", "speed"], ["sample", "a", "b"], ["sample", "0", "1"], ["sample", "0", "1"]] else str(found)


def main():
    with Tap() as tap, Folder() as folder:
        tap.run(prepare.__doc__, prepare, folder)
        for test in several, folders, half_written, split, names:
            tap.run(test.__doc__, test, folder)
        for args, needles in ((["run-sounds", "empty"], ("'empty' contains texts, but the model was trained on sound", "neap encode")),
                              (["run-sounds", "mixed", "--out", "x.npz"], ("'x.npz'", "--out FILE.csv")),
                              (["run-sounds", "mixed", "--plot", "x.svg"], ("--plot", "one file")),
                              (["run-sounds", "mixed", "--sample", "0"], ("--sample",)),
                              (["run-sounds"], ("DATA is missing",)), (["--from", "run-sounds"], ("DATA is missing",)),
                              (["--from", "run-sounds", "run-speed", "table.csv"], ("both RUN 'run-speed' and --from",)),
                              (["run-sounds", "sounds/0_a_0.wav", "absent.wav"], ("cannot read 'absent.wav'",)),
                              (["run-speeds", "apart.csv"], ("'one' is in rows above already", "sort them by sample", "number the blocks"))):
            tap.check("predict " + " ".join(args), refused(folder, *needles, args=args))


if __name__ == "__main__":
    sys.exit(main())
