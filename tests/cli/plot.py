#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`neap plot`: points of the figure, read back through the labels of its axes, are those of metrics.csv;
several runs, logarithmic losses, interrupted runs, PNG, what is refused.
"""
import csv
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

from harness import Folder, Tap, neap

SVG = "{http://www.w3.org/2000/svg}"
PANELS = (("train_loss", "validation_loss"), ("train_accuracy", "validation_accuracy"), ("spikes",))


def train(folder, name, seed, *more):
    done = neap("train", "randman:steps=20,samples=60,classes=2", "--net", "lif:16,li", "--scale", "2", "--epochs", "5",
                "--memory", "4M", "--seed", seed, "-o", os.path.join(folder, name), *more)
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, name)


def rows_of(run):
    with open(os.path.join(run, "metrics.csv"), encoding="utf-8") as file:
        return list(csv.DictReader(file))


def axis(elements, which, log=False):
    """Value of a pixel, from the first and the last label."""
    at = "x" if which == "tick-x" else "y"
    ticks = [(float(e.get(at)), float(e.text)) for e in elements if e.get("class") == which]
    assert len(ticks) >= 2, ticks
    (p, a), (q, b) = ticks[0], ticks[-1]
    if log:
        a, b = math.log10(a), math.log10(b)
    return lambda pixel: (lambda v: 10 ** v if log else v)(a + (pixel - p) / (q - p) * (b - a))


def compare(path, runs, log=False):
    """Every point of every series, through the labels."""
    root = xml.parse(path).getroot()
    panels = [g for g in root.iter(SVG + "g") if g.get("class") == "panel"]
    if len(panels) != len(PANELS):
        return f"{len(panels)} panels"
    to_x = axis(list(root.iter()), "tick-x")
    colours = set()
    for number, (panel, names) in enumerate(zip(panels, PANELS)):
        to_y = axis(list(panel.iter()), "tick-y", log and number == 0)
        groups = {g.get("id"): g for g in panel.iter(SVG + "g") if g.get("class") == "series"}
        if len(groups) != len(names) * len(runs):
            return f"series {sorted(groups)}"
        for r, run in enumerate(runs):
            for name in names:
                group = groups[f"{name}-{r}"]
                colours.add((r, group.get("stroke")))
                points = [p for line in group.iter(SVG + "polyline") for p in line.get("points").split()]
                rows = rows_of(run)
                times = 1 if name.endswith("loss") else 100
                if len(points) != len(rows):
                    return f"{name}: {len(points)} points of {len(rows)}"
                for point, row in zip(points, rows):
                    x, y = map(float, point.split(","))
                    value = times * float(row[name])
                    scale = abs(to_y(y + 1) - to_y(y)) * 0.02 + 1e-9  # labels have two digits of a pixel
                    if abs(to_x(x) - float(row["epoch"])) > 1e-3 or abs(to_y(y) - value) > scale:
                        return f"{name}: ({to_x(x)}, {to_y(y)}) in place of ({row['epoch']}, {value})"
    if len(colours) != len(runs):
        return f"colours {colours}"
    legend = [e.text for e in root.iter(SVG + "text") if e.get("class") == "legend"]
    return None if legend == [os.path.basename(r) for r in runs] + ["training", "validation"] else str(legend)


def one(run):
    done = neap("plot", run)
    path = os.path.join(run, "metrics.svg")
    if done.returncode or done.stderr or done.stdout != path + "\n":
        return f"{done.returncode} {done.stdout} {done.stderr}"
    with open(path, encoding="utf-8") as file:
        if neap("plot", os.path.join(run, "metrics.csv"), "-o", "-").stdout.count("<polyline") != file.read().count("<polyline"):
            return "another figure on standard output"
    return compare(path, [run])


def several(folder, runs):
    done = neap("plot", *runs, cwd=folder)
    if done.stdout != "runs.svg\n":
        return f"{done.stdout} {done.stderr}"
    return compare(os.path.join(folder, "runs.svg"), runs)


def logarithmic(folder, runs):
    out = os.path.join(folder, "log.svg")
    neap("plot", *runs, "--log", "--out", out)
    return compare(out, runs, log=True)


def interrupted(folder, run):
    """A row that a killed run did not finish is no point; nor is a loss that is not finite."""
    cut = os.path.join(folder, "cut")
    os.mkdir(cut)
    with open(os.path.join(run, "metrics.csv"), encoding="utf-8") as file:
        lines = file.readlines()
    text = "".join(lines)
    with open(os.path.join(cut, "metrics.csv"), "w", encoding="utf-8") as file:
        file.write(text[:-20])
    done = neap("plot", cut)
    points = xml.parse(os.path.join(cut, "metrics.svg")).getroot().iter(SVG + "polyline")
    if done.returncode or any(len(p.get("points").split()) != len(lines) - 2 for p in points):
        return f"{done.returncode} {done.stderr}"
    # every place where it may end: a figure, or one line
    for n in range(len(text)):
        with open(os.path.join(cut, "metrics.csv"), "w", encoding="utf-8") as file:
            file.write(text[:n])
        if n % 7 == 0:
            done = neap("plot", cut)
            if done.returncode not in (0, 2) or done.stderr.count("\n") != (done.returncode == 2):
                return f"{n} bytes: {done.returncode} {done.stderr}"
    return None


def png(folder, runs):
    out = os.path.join(folder, "runs.png")
    done = neap("plot", *runs, "-o", out)
    if not shutil.which("rsvg-convert"):
        print("# SKIP of PNG: there is no rsvg-convert")
        return None if done.returncode == 2 and "rsvg-convert" in done.stderr and not os.path.exists(out) else done.stderr
    if done.returncode or [name for name in os.listdir(folder) if "part" in name]:
        return f"{done.stderr} {os.listdir(folder)}"
    with open(out, "rb") as file:
        head = file.read(24)
    size = struct.unpack(">II", head[16:24])
    if head[:8] != b"\x89PNG\r\n\x1a\n" or size[0] < 1000 or size[1] < 1000:
        return f"{head[:8]} {size}"
    try:
        from PIL import Image
    except ImportError:
        print("# SKIP of pixels: there is no PIL")
        return None
    with Image.open(out) as image:
        seen = {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}
    return None if {(0, 0x72, 0xb2), (0xd5, 0x5e, 0)} <= seen else "the colours of two runs are not there"


def refused(folder, run):
    os.mkdir(os.path.join(folder, "empty"))
    for name, text in (("none.csv", "epoch,train_loss\n"), ("words.csv", "epoch,train_loss\n1,high\n"),
                       ("names.csv", "time,loss\n1,2\n"), ("short.csv", "epoch,train_loss\n1\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for arguments, told in (([os.path.join(folder, "absent")], "absent/metrics.csv'"),
                            ([os.path.join(folder, "empty")], "is not the folder of a run: there is no '"),
                            ([os.path.join(folder, "none.csv")], "has no complete epoch yet"),
                            ([os.path.join(folder, "words.csv")], "words.csv: line 2"),
                            ([os.path.join(folder, "names.csv")], "names.csv: line 1"),
                            ([os.path.join(folder, "short.csv")], "short.csv: line 2"),
                            ([run, "-o", "x.pdf"], "has an unknown ending; use .svg or .png"),
                            ([run, "-o", os.path.join(folder, "absent", "x.svg")], "absent/x.svg")):
        done = neap("plot", *arguments, cwd=folder)
        if done.returncode != 2 or told not in done.stderr or done.stderr.count("\n") != 1:
            return f"{arguments}: {done.returncode} {done.stderr}"
    return None


def ended_by_a_signal(folder, run):
    """Ctrl-C at any moment, to the tool or to its whole group: a whole drawing, or nothing beside it."""
    place = os.path.join(folder, "drawn")
    os.mkdir(place)
    stopped = 0
    for kill in os.kill, os.killpg:
        for moment in 0.01, 0.02, 0.04, 0.08, 0.16:
            with subprocess.Popen([os.environ["NEAP_BIN"], "plot", run, "-o", os.path.join(place, "a.png")], text=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True) as child:
                time.sleep(moment)
                kill(child.pid, signal.SIGINT)
                said = child.communicate()[1]
            left = os.listdir(place)
            assert left in ([], ["a.png"]) and (child.returncode == 0) == (left == ["a.png"]), (moment, left)
            assert child.returncode != 1 or said == "neap plot: interrupted\n", said
            stopped += child.returncode != 0
            for name in left:
                os.unlink(os.path.join(place, name))
    assert stopped > 0


def failing_converter(folder, run):
    """What rsvg-convert prints is the reason in one line, and nothing stays."""
    tools, out = os.path.join(folder, "tools"), os.path.join(folder, "failed.png")
    os.mkdir(tools)
    with open(os.path.join(tools, "rsvg-convert"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n[ $1 = --version ] && exit\n"
                   "echo 'Error saving output x.png: IO error: No space left on device' >&2\necho more >&2\nexit 1\n")
    os.chmod(os.path.join(tools, "rsvg-convert"), 0o755)
    done = neap("plot", run, "-o", out, env={"PATH": tools + ":" + os.environ["PATH"]})
    line = f"neap plot: --out: rsvg-convert could not draw '{out}': No space left on device\n"
    left = [name for name in os.listdir(folder) if "failed" in name]
    return None if (done.returncode, done.stderr, left) == (1, line, []) else f"{done.returncode} {done.stderr} {left}"


def main():
    with Tap() as tap, Folder() as folder:
        runs = [train(folder, "first", 1), train(folder, "second", 2)]
        tap.run("one run", one, runs[0])
        tap.run("several runs", several, folder, runs)
        tap.run("logarithmic losses", logarithmic, folder, runs)
        tap.run("an interrupted run", interrupted, folder, runs[0])
        tap.run("PNG", png, folder, runs)
        if shutil.which("rsvg-convert"):
            tap.run("ended by a signal", ended_by_a_signal, folder, runs[0])
        tap.run("a converter that fails", failing_converter, folder, runs[0])
        tap.run("what is refused", refused, folder, runs[0])
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
