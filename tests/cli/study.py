# SPDX-License-Identifier: Apache-2.0
"""neap study: points, figures, report, going on after a kill, bad input."""
import csv
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

from harness import NEAP, Folder, Tap, neap

HELP = " ".join(subprocess.run([NEAP, "study", "--help"], capture_output=True, text=True).stdout.split())  # lines end anywhere
EXPERIMENTS = HELP.split("(default: all): ", 1)[1].split("; with --device", 1)[0]
EXPERIMENTS = [name.strip("' ") for name in EXPERIMENTS.split(",")]


def rows_of(folder, name):
    with open(os.path.join(folder, name + ".csv"), encoding="utf-8") as file:
        return list(csv.DictReader(file))


def panels_of(root):
    """The lines of each panel of a figure: those between one frame and the next."""
    panels = []
    for mark in root:
        if mark.tag.endswith("rect") and mark.get("fill") == "none":
            panels.append([])
        elif mark.tag.endswith("polyline") and panels:
            panels[-1].append(mark)
    return panels


def study(folder, *args, **more):
    return neap("study", *args, "--tiny", "--out", folder, **more)


def finding(report, name, root):
    """The line below a figure is one sentence with numbers, or its title has them, and is in the figure."""
    title, rest = report.split(f"({name})\n", 1)
    caption = title.rsplit("![", 1)[1].rstrip("]") if name.startswith("schedules-") else rest.split("\n")[1]
    assert any(c.isdigit() for c in caption) and "nan" not in caption and "inf" not in caption, (name, caption)
    if not name.startswith("schedules-"):
        assert caption.endswith(".") and "![" not in caption, (name, caption)
    drawn = " ".join("".join(text.itertext()) for text in root.iter() if text.tag.endswith("text"))
    assert caption.replace("`", "") in drawn, (name, caption, drawn[:300])


def every_experiment(folder):
    done = study(folder)
    assert done.returncode == 0 and done.stdout == "", done
    report = open(os.path.join(folder, "report.md"), encoding="utf-8").read()
    assert "Not measured" not in report, report
    assert "processors" in report, report
    for name in EXPERIMENTS:
        assert f"## {name}:" in report, name
        assert rows_of(folder, name), name
    for name in os.listdir(folder):
        assert not name.endswith(".part"), name
        if name.endswith(".svg"):
            root = xml.etree.ElementTree.parse(os.path.join(folder, name)).getroot()
            assert root.tag.endswith("svg"), name
            assert f"({name})" in report, f"{name} is not in the report"
            finding(report, name, root)
            crowd = [len({line.get("stroke") for line in panel}) for panel in panels_of(root)]
            assert not crowd or max(crowd) <= 5, (name, crowd)


def columns(folder):
    for name in EXPERIMENTS:
        rows = rows_of(folder, name)
        names = list(rows[0])
        assert names[0] == "point" and "strategy" in names, names
        for row in rows:
            assert None not in row and None not in row.values(), (name, row)


def memory_is_exact(folder):
    checked = 0
    for name in EXPERIMENTS:
        for row in rows_of(folder, name):
            if row.get("peak_measured") and row.get("tapes") == "vary":
                assert row["strategy"] == "reference" or \
                    int(row["peak_measured"]) <= int(row["memory"]), (name, row)
            elif row.get("peak_measured") and row.get("peak_bytes") and row.get("chosen") != "replay":
                assert row["peak_measured"] == row["peak_bytes"], (name, row)
                checked += 1
    assert checked > 10, checked


def exponents(folder):
    report = open(os.path.join(folder, "report.md"), encoding="utf-8").read()
    for strategy, expected in (("bptt", 1), ("standard", 0.5), ("double", 0.25), ("stream", 0)):
        line = [x for x in report.splitlines() if x.startswith(f"| `{strategy}` |") and " of " in x][0]
        fitted = float(line.split("|")[3])
        assert abs(fitted - expected) < 0.02, line


def gradients_are_one(folder):
    """Every strategy has the bits of store-all; a truncated pass does not."""
    for name in EXPERIMENTS:
        hashes = {}
        for row in rows_of(folder, name):
            if row.get("grad_hash"):
                hashes.setdefault(row["point"], {}).setdefault(row["strategy"], row["grad_hash"])
        for point, found in hashes.items():
            cut = found.pop("truncated", None)
            assert len(set(found.values())) == 1, (name, point, found)
            assert cut not in found.values(), (name, point, cut)


def weights_stay(folder):
    rows = [row for row in rows_of(folder, "stability") if row["what"] == "updates"]
    assert int(rows[-1]["updates"]) >= 20 and int(rows[-1]["recoveries"]) >= 10, rows[-1]
    assert all(row["differing"] == "0" for row in rows), rows
    errors = [float(row["error"]) for row in rows_of(folder, "stability") if row["error"]]
    assert errors and max(errors) < 1e-5, errors


def auto_reaches_farthest(folder):
    rows = [row for row in rows_of(folder, "howfar") if row["size"] and row["what"] == "steps"]
    for allowed in {row["allowed"] for row in rows}:
        sizes = {row["strategy"]: float(row["size"]) for row in rows if row["allowed"] == allowed}
        assert sizes["auto"] >= 0.98 * max(sizes.values()), sizes


def auto_is_never_slower(folder):
    rows = [row for row in rows_of(folder, "async") if row["axis"] == "tau"]
    for point in {row["point"] for row in rows}:
        times = {row["strategy"]: float(row["predicted"]) for row in rows if row["point"] == point}
        assert times["auto"] <= min(times.values()) * (1 + 1e-9), times


def nothing_twice(folder):
    before = {name: os.stat(os.path.join(folder, name + ".csv")).st_mtime_ns for name in EXPERIMENTS}
    done = study(folder)
    assert done.returncode == 0, done
    for name, when in before.items():
        assert os.stat(os.path.join(folder, name + ".csv")).st_mtime_ns == when, name


def goes_on(folder, number):
    """Killed after some points; those are kept, the rest is added, none twice."""
    path = os.path.join(folder, "asymptotics.csv")
    child = subprocess.Popen([NEAP, "study", "asymptotics", "--tiny", "--out", folder],
                             stderr=subprocess.DEVNULL)
    end = time.time() + 60
    while time.time() < end and child.poll() is None and not os.path.exists(path):
        time.sleep(0.005)
    child.send_signal(number)
    child.wait()
    kept = open(path, encoding="utf-8").read()
    assert kept.endswith("\n") and kept.startswith("point,"), kept[-80:]
    done = study(folder, "asymptotics")
    assert done.returncode == 0, done
    whole = open(path, encoding="utf-8").read()
    assert whole.startswith(kept), "points were measured again"
    points = [row["point"] for row in rows_of(folder, "asymptotics")]
    assert len(points) == len(set(points)) == 78, len(points)


def without_programs(folder):
    """Figures need no other program."""
    done = study(folder, "asymptotics", env={"PATH": "/no-such-folder"})
    assert done.returncode == 0, done
    assert os.path.exists(os.path.join(folder, "asymptotics.csv"))
    assert os.path.exists(os.path.join(folder, "asymptotics.svg"))


def quotes_in_names(folder):
    odd = os.path.join(folder, "it's a folder")
    done = study(odd, "asymptotics", "--png")
    assert done.returncode == 0, done
    for end in (".svg", ".png"):
        assert os.path.exists(os.path.join(odd, "asymptotics" + end)), end


def refuses(word, *args):
    done = neap("study", *args)
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and word in done.stderr, done.stderr


def refuses_scale(folder):
    refuses("other settings", "schedules", "--full", "--out", folder)


def refuses_points(text, word):
    with Folder() as folder:
        path = os.path.join(folder, "schedules.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        refuses(word, "schedules", "--tiny", "--out", folder)
        assert open(path, encoding="utf-8").read() == text


with Tap() as tap:
    with Folder() as folder:
        tap.run("every experiment: points, figures, report", every_experiment, folder)
        tap.run("columns", columns, folder)
        tap.run("memory is as planned, to the byte", memory_is_exact, folder)
        tap.run("exponents", exponents, folder)
        tap.run("one gradient, truncated ones differ", gradients_are_one, folder)
        tap.run("weights stay the same under faults", weights_stay, folder)
        tap.run("auto reaches farthest", auto_reaches_farthest, folder)
        tap.run("auto is never slower, planned", auto_is_never_slower, folder)
        tap.run("what is complete is not run again", nothing_twice, folder)
        tap.run("a folder of another scale", refuses_scale, folder)
    for number in (signal.SIGKILL, signal.SIGINT):
        with Folder() as folder:
            tap.run(f"goes on after signal {int(number)}", goes_on, folder, number)
    with Folder() as folder:
        tap.run("points and figures without other programs", without_programs, folder)
    with Folder() as folder:
        tap.run("a folder with a quote in its name", quotes_in_names, folder)
    tap.run("no folder", refuses, "--out", "schedules")
    tap.run("unknown experiment", refuses, "schedules", "schedule", "--out", "/tmp/never")
    tap.run("an experiment of a device", refuses, "needs a device", "device", "--tiny", "--out", "/tmp/never")
    tap.run("two scales", refuses, "choose one", "--quick", "--full", "--out", "/tmp/never")
    tap.run("a folder that cannot be", refuses, "no-such-folder", "--out", "/no-such-folder/x")
    tap.run("a file for a folder", refuses, "not a folder", "--out", __file__)
    tap.run("points of another version", refuses_points, "point,a,b\n", "columns")
    tap.run("points that end early", refuses_points, "point,a", "not a file of points")
    if len(EXPERIMENTS) < 2:
        sys.exit(1)
