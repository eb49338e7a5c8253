#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a first user trips over: lines that say what was meant, and answers under names that stay distinct."""
import csv
import io
import json
import math
import os
import select
import signal
import subprocess
import sys
import time

from harness import NEAP, Folder, Tap, neap, neap_json

TEXT = "ab\\\tc\x01d\u0085\n"
CELLS = "lif:8:reset=hard,li"
TRAIN = ["--net", CELLS, "--epochs", "1", "--memory", "4M", "-q"]


def said(args, *needles, folder):
    """One line and exit code 2; the line has all needles."""
    done = neap(*args, cwd=folder)
    missing = [needle for needle in needles if needle not in done.stderr]
    if done.returncode != 2 or done.stderr.count("\n") != 1 or done.stdout or missing:
        return f"exit {done.returncode}, lacks {missing}: {done.stderr}{done.stdout}"
    return None


def lines(folder):
    """Cases of one line: (arguments, what it says)."""
    yield ["eval", "--from", "net.nir", "--dt", "0.1ms", "text:t.txt"], ("0.001 s", "0.0001 s", "net.nir")
    yield ["predict", "--from", "net.nir", "--dt", "2ms", "text:t.txt"], ("0.001 s", "0.002 s", "net.nir")
    yield ["predict", "tx", "text:t.txt", "--out", "x.csvv"], ("x.csvv", ".csv or .npz")
    yield ["predict", "tx", "text:t.txt", "--json", "--out", "x.csv"], ("x.csv", ".jsonl")
    yield ["predict", "tx", "empty.wav"], ("'empty.wav' is empty",)
    yield ["encode", "sounds", "--out", "x.h5", "--label", "(.*)", "--strict"], ("empty.wav' is empty",)
    yield ["predict", "tx", "the function"], ("neap predict 'tx' text:text.txt",)
    yield ["train", "t.txt"], ("text:t.txt",)
    yield ["train", "text:t.txt", "--rate-upper", "20"], ("has no unit", "20Hz?")
    yield ["train", "text:t.txt", "--rate-upper", "2kHz"], ("between 0Hz and 1000Hz",)
    yield ["train", "text:t.txt", "--learning_rate", "1"], ("use '--lr'.",)
    yield ["train", "text:t.txt", "--surrogate", "fastsigmoid"], ("did you mean 'fast_sigmoid'?",)


def distinct(folder):
    """Control characters as escapes in tables and CSV; as they are in JSON."""
    names = sorted(set(TEXT))
    shown = [{"\x01": "\\x01", "\t": "\\t", "\n": "\\n", "\u0085": "\\xc2\\x85"}.get(c, c) for c in names]
    rows = list(csv.reader(io.StringIO(neap("predict", "tx", "text:t.txt", cwd=folder).stdout)))
    if rows[0][5:] != shown or {row[4] for row in rows[1:]} - set(shown):
        return f"{rows[0]}"
    table = neap("eval", "tx", "text:t.txt", cwd=folder).stdout.split("label")[1].splitlines()[1:]
    if [line.split()[1] for line in table] != shown:
        return f"{table}"
    kinds = neap_json("eval", "tx", "text:t.txt", cwd=folder)["classes"]
    return None if [kind["name"] for kind in kinds] == names else f"{kinds}"


def characters(folder):
    """The loss of a text in nats and bits, the rows of its most frequent characters, and a text by the name of its file alone."""
    text = "".join(chr(256 + k % (k // 40 + 1)) for k in range(2400))
    with open(os.path.join(folder, "kinds.txt"), "w", encoding="utf-8") as out:
        out.write(text)
    neap("train", "text:kinds.txt", *TRAIN, "--out", "kinds", cwd=folder)
    said = neap("eval", "kinds", "kinds.txt", cwd=folder).stdout
    report = neap_json("eval", "kinds", "text:kinds.txt", cwd=folder)
    if f"loss per character: {report['loss']:.4f} nats, which are {report['bits_per_character']:.4f} bits\n" not in said or \
            abs(report["bits_per_character"] * math.log(2) - report["loss"]) > 1e-12:
        return said
    counts = sorted((kind["steps"] for kind in report["classes"]), reverse=True)[:20]
    rows = [int(line.split()[2]) for line in said.split("taken for\n")[1].splitlines()[:20]]
    if sorted(rows, reverse=True) != counts or not said.endswith("\nand 40 less frequent classes; --json has all\n"):
        return said
    plain, named = (neap("predict", "kinds", name, cwd=folder).stdout for name in ("kinds.txt", "text:kinds.txt"))
    return None if plain == named and plain else "answers to the file differ from those to text:FILE"


def comes_next(folder):
    """The last line about a text is about the character after its end: the answer that a longer text has there."""
    neap("train", "text:steps=9:t.txt", *TRAIN, "--out", "nine", cwd=folder)
    for length in (2, 9, 10, 11, 18, 19, 20):  # in front of, at and behind the end of a sample
        for name, end in ("cut", length), ("longer", length + 1):
            with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8", newline="") as file:
                file.write((TEXT * 9)[:end])
        cut, longer = ([row[2:] for row in csv.reader(io.StringIO(neap("predict", "nine", f"text:steps=9:{name}.txt", cwd=folder).stdout))] for name in ("cut", "longer"))
        within = length % 9 != 1 and length > 1  # the longer text has that step in the same sample
        if len(cut) != length + 1 or cut[-1][0] != "" or "" in [row[0] for row in cut[1:-1]] or cut[1:-1] != longer[1:length] or (within and cut[-1][1:] != longer[length][1:]):
            return f"{length}: {cut} {longer}"
    judged = neap_json("eval", "nine", "text:steps=9:cut.txt", cwd=folder)["judged"]
    return None if judged == 19 else str(judged)


def same_dt(folder):
    """The graph's own step may be said."""
    alone, given = (neap("eval", "--from", "net.nir", *more, "text:t.txt", cwd=folder) for more in ([], ["--dt", "1ms"]))
    return None if alone.returncode == 0 and alone.stdout == given.stdout else f"{alone} {given}"


def numbered(folder):
    """Classes without names have their numbers, in JSON as in CSV."""
    data = "randman:classes=3,samples=12,units=9,steps=9"
    neap("train", data, *TRAIN, "--out", "bare", cwd=folder)
    kinds = [kind["name"] for kind in neap_json("eval", "bare", data, cwd=folder)["classes"]]
    answers = [json.loads(line)["name"] for line in neap("predict", "bare", data, "--json", cwd=folder).stdout.splitlines()]
    rows = list(csv.reader(io.StringIO(neap("predict", "bare", data, cwd=folder).stdout)))
    return None if kinds == rows[0][4:] == ["0", "1", "2"] and answers == [row[3] for row in rows[1:]] else f"{kinds} {answers}"


def written(folder):
    """Names without an ending, and those of lines of JSON."""
    for more in (["--out", "plain"], ["--json", "--out", "x.jsonl"], ["--json", "--out", "x.json"]):
        done = neap("predict", "tx", "text:t.txt", *more, cwd=folder)
        if done.returncode != 0 or not os.path.getsize(os.path.join(folder, more[-1])):
            return f"{more}: {done.stderr}"
    return None


def slow_batch(folder, out, *more):
    """A training whose batch takes long, once its first one runs."""
    process = subprocess.Popen(
        [NEAP, "train", "randman:classes=2,samples=128,units=64,steps=60000", "--net", "lif:512r,li", "--epochs", "1",
         "--batch", "128", "--memory", "64M", "--validation", "0", "--threads", "1", "--out", out, *more],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    os.set_blocking(process.stderr.fileno(), False)
    heard(process, "the process uses", 60)  # the last line before the first batch
    time.sleep(0.5)
    return process


def heard(process, text, seconds=20):
    """What standard error says until it has the text; the whole."""
    found, end = "", time.monotonic() + seconds
    while text not in found and time.monotonic() < end:
        if select.select([process.stderr], [], [], 0.05)[0]:
            found += os.read(process.stderr.fileno(), 1 << 16).decode()
    return found


def twice(folder, number):
    """The first signal is answered at once, the second one ends with a line and exit code 1."""
    process = slow_batch(folder, f"twice{number}")
    try:
        process.send_signal(number)
        first = heard(process, "again")
        if "neap train: stopping after this batch; interrupt again to stop immediately\n" not in first:
            return f"first: {first!r}"
        if process.poll() is not None:
            return f"it ended: {process.returncode}"
        process.send_signal(number)
        process.wait(20)
        second = heard(process, "\n")
        return None if process.returncode == 1 and second == "neap train: stopped\n" else f"{process.returncode} {second!r}"
    finally:
        process.kill()
        process.communicate()


def one(folder):
    """One epoch, one batch."""
    process = subprocess.Popen(
        [NEAP, "train", "randman:classes=2,samples=64,units=64,steps=3000", "--net", "lif:64r,li", "--epochs", "90",
         "--batch", "64", "--memory", "64M", "--validation", "0", "--out", "one"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    last = process.communicate(timeout=60)[1].splitlines()[-1]
    counts = last.split("after ")[-1].split(". ")[0].replace(",", "").split()
    good = process.returncode == 1 and counts[1] == ("epoch" if counts[0] == "1" else "epochs") and \
        counts[4] == ("batch" if counts[3] == "1" else "batches")
    return None if good else last


def arrays(folder):
    """An array 'y' that is too short: how many samples 'x' has."""
    try:
        import numpy as np
    except ImportError:
        return None
    x = np.random.default_rng(1).normal(size=(14, 9, 2))
    np.savez(os.path.join(folder, "short.npz"), x=x, y=np.arange(5))
    return said(["train", "short.npz"], "'y' has shape (5) and 'x' has shape (14, 9, 2): 5 targets for 14 samples", folder=folder)


def names_taken(folder):
    """A data set without names of classes is matched by number, which a line says."""
    try:
        import numpy as np
    except ImportError:
        return None
    r = np.random.default_rng(1)
    x, y, names = r.normal(size=(14, 9, 2)), np.arange(14) % 3, np.array(["run", "sit\n", "walk"])
    for name, more in ("named", {"y": names[y]}), ("bare", {"y": y}), ("one", {"y": y * 0}), ("steps", {
            "y": np.tile(y[:, None], 9)}), ("listed", {"y": y, "classes": names}), ("none", {}):
        np.savez(os.path.join(folder, name + ".npz"), x=x + (name != "named"), **more)
    line = "'{}' has no names of classes: its classes 0 to 2 are read as run, sit\\n, walk\n".format
    done = neap("train", "named.npz", "--test", "bare.npz", *TRAIN[:-1], "--out", "by-name", cwd=folder)
    if line("bare.npz") not in done.stderr:
        return f"train: {done.stderr}"
    for command, data, wanted in (("eval", "bare", line("bare.npz")), ("predict", "bare", line("bare.npz")),
                                  ("eval", "one", "'one.npz' has no names of classes: its class 0 is read as run\n"),
                                  ("predict", "named", ""), ("eval", "listed", ""), ("predict", "none", "")):
        done = neap(command, "by-name", data + ".npz", cwd=folder)
        if done.returncode != 0 or done.stderr != wanted:
            return f"{command} {data}: {done.stderr!r}"
    done = neap("eval", "by-name", "bare.npz", "-q", cwd=folder)
    neap("train", "steps.npz", *TRAIN, "--out", "no-names", cwd=folder)
    quiet = neap("predict", "no-names", "steps.npz", cwd=folder)
    return f"{done.stderr}{quiet.stderr}" or None


def main():
    with Tap() as tap, Folder() as folder:
        with open(os.path.join(folder, "t.txt"), "w", encoding="utf-8", newline="") as file:
            file.write(TEXT * 40)
        os.mkdir(os.path.join(folder, "sounds"))
        for name in ("empty.wav", "sounds/empty.wav"):
            open(os.path.join(folder, name), "w").close()
        for args in (["train", "text:steps=20:t.txt", *TRAIN, "--out", "tx"], ["export", "tx", "--nir", "net.nir"]):
            done = neap(*args, cwd=folder)
            tap.check(" ".join(args), None if done.returncode == 0 else done.stderr)
        for args, needles in lines(folder):
            tap.check(" ".join(args), said(args, *needles, folder=folder))
        tap.run("a dt that the graph says", same_dt, folder)
        tap.run("names of control characters", distinct, folder)
        tap.run(characters.__doc__, characters, folder)
        tap.run(comes_next.__doc__, comes_next, folder)
        tap.run("classes without names", numbered, folder)
        tap.run("endings of --out", written, folder)
        tap.run("'y' is too short", arrays, folder)
        tap.run("numbers taken as names", names_taken, folder)
        tap.run("one epoch, one batch", one, folder)
        for number in (signal.SIGINT, signal.SIGTERM):
            tap.run(f"{number.name} twice", twice, folder, number)


if __name__ == "__main__":
    sys.exit(main())
