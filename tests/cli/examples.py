#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples are whole programs over public headers: they build with nothing but what
pkg-config says, and the tables that they print keep what they claim. The recipe digits.sh runs."""
import glob
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import SOURCE, NEAP, Folder, Tap, neap_json, write_recordings

BUILD = os.path.dirname(NEAP)
LIBRARY = os.path.join(BUILD, "src")
SNAPSHOTS = 10 * 8000 + 8000 + 4032  # ten states of 03_wave, its adjoint, a tape


def flags():
    """What pkg-config says of the library in the build folder."""
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(BUILD, "meson-private"))
    said = subprocess.run(["pkg-config", "--cflags", "--libs", "neap"], env=env, check=True,
                          capture_output=True, text=True).stdout.split()
    own = {"-I": os.path.join(SOURCE, "include"), "-L": LIBRARY}
    return [flag[:2] + own.get(flag[:2], flag[2:]) for flag in said] + \
        [flag + folder for flag, folder in own.items()]


def build(source, program):
    text = open(source).read()
    foreign = [h for h in re.findall(r"#include\s+(\S+)", text)
               if "/" in h and not re.fullmatch(r"<neap/\w+\.h>", h) or h.startswith('"')]
    if foreign:
        return f"includes {foreign}"
    compiler = ["mpicc"] if "<mpi.h>" in text else os.environ.get("CC", "cc").split()
    done = subprocess.run(
        [*compiler, "-O1", source, *flags(), "-lm", f"-Wl,-rpath,{LIBRARY}",
         "-o", program, *os.environ.get("NEAP_CFLAGS", "").split()],
        capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def run(program, *args):
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def wave(program, strategies):
    rows = {row[0]: row for row in map(str.split, run(program, "--steps", "4000").splitlines())
            if len(row) == 8 and re.fullmatch(r"[0-9a-f]{16}", row[7])}
    if set(rows) != set(strategies):
        return f"rows {sorted(rows)}"
    for name, (_, _, planned, measured, _, forward, _, gradient) in rows.items():
        if gradient != rows["bptt"][7]:
            return f"{name}: another gradient"
        if name != "bptt" and not int(measured) <= int(planned) <= SNAPSHOTS:
            return f"{name}: {measured} of {planned} bytes, budget {SNAPSHOTS}"
        if int(forward) < 4000:
            return f"{name}: {forward} steps forward"
    return None


def layers(program):
    rows = [row for row in map(str.split, run(program).splitlines())
            if len(row) == 8 and re.fullmatch(r"[0-9a-f]{16}", row[7])]
    if len(rows) < 5 or len({row[7] for row in rows}) != 1:
        return f"rows {rows}"
    for budget, planned, measured, arena, *_ in rows:
        most = int(budget) if budget != "none" else int(arena)
        if not int(measured) <= int(arena) <= most or measured != planned:
            return f"budget {budget}: {planned} planned, {measured} measured, arena {arena}"
    return None if int(rows[-1][0]) < int(rows[1][0]) / 2 else "the least budget saves little"


def branches(program):
    rows = [row for row in map(str.split, run(program).splitlines())
            if len(row) == 7 and re.fullmatch(r"[0-9a-f]{16}", row[6])]
    if len(rows) != 7 or len({row[6] for row in rows}) != 1:
        return f"rows {rows}"
    for budget, planned, measured, *_ in rows:
        if measured != planned or int(measured) > int(budget) > 0:
            return f"budget {budget}: {planned} planned, {measured} measured"
    sent = [int(row[5]) for row in rows[1:]]
    return None if not any(sent[::2]) and all(sent[1::2]) else f"bytes written: {sent}"


def journal(program, folder):
    """Killed at moments drawn at random, started again each time: what one run in peace prints."""
    whole = run(program, "--steps", "400000")
    start = time.monotonic()
    if run(program, "--steps", "400000", "--journal", folder, "--every", "0.001") != whole:
        return "another gradient with a journal"
    most = time.monotonic() - start
    draw = random.Random(3)
    for kills in range(20):
        process = subprocess.Popen([program, "--steps", "400000", "--journal", folder, "--every",
                                    "0.001"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        try:
            out, said = process.communicate(timeout=most * (0.4 + draw.random()))
        except subprocess.TimeoutExpired:
            process.kill()
            out, said = process.communicate()
        if process.returncode == 0:
            if out != whole:
                return f"after {kills} kills: {out}"
            if set(os.listdir(folder)) & {"neap.journal", "neap.slow"}:
                return "files are left"
        elif process.returncode != -signal.SIGKILL:
            return f"{process.returncode}: {said}"
    out = run(program, "--steps", "400000", "--journal", folder)
    return None if out == whole else f"at last: {out}"


def usage(program):
    for args in (["--steps", "3"], ["--steps"], ["--what", "1"]):
        done = subprocess.run([program, *args], capture_output=True, text=True)
        if done.returncode != 2 or done.stderr.count("\n") != 1:
            return f"{args}: {done.returncode}, {done.stderr}"
    return None


def page(folder, name, tells, data=None, times=2):
    """A script of a teaching page runs as it stands, most often twice in the same folder, and prints what the page contains."""
    env = dict(os.environ, NEAP_BIN=NEAP)
    env.pop("NEAP_DATA", None)  # tones are quicker
    script, out = os.path.join(SOURCE, "examples", "pages", name + ".py"), os.path.join(folder, name)
    os.makedirs(out)
    for _ in range(times):
        done = subprocess.run([sys.executable, script, *([data] if data else []), out], env=env, capture_output=True, text=True,
                              timeout=240)
        if done.returncode:
            return f"{done.returncode}: {done.stderr[-600:]}"
        for tell in tells:
            if not re.search(tell, done.stdout, re.MULTILINE):
                return f"it does not tell '{tell}':\n{done.stdout}"
    told = [float(share) for share in re.findall(r"^(?:events|classes): (\d+)%", done.stdout, re.MULTILINE)]
    missed = [float(share) for share in re.findall(r"(\d+)% of the variance", done.stdout)]
    return f"accuracies {told}, missed {missed}" if min(told, default=100) < 85 or max(missed, default=0) > 40 else None


def no_tool(folder):
    """Without a tool that works a script ends with the tool's line and code, and without a trace of Python."""
    script = os.path.join(SOURCE, "examples", "pages", "concepts.py")
    done = subprocess.run([sys.executable, script, os.path.join(folder, "absent")], env=dict(os.environ, NEAP_BIN=NEAP),
                          capture_output=True, text=True)
    return None if done.returncode in (1, 2) and done.stderr.count("\n") == 1 else f"{done.returncode}: {done.stderr}"


def digits(folder):
    """The recipe, on tones: every settings runs, and a speaker held out is in one set alone."""
    recordings, work = os.path.join(folder, "recordings"), os.path.join(folder, "digits")
    script = os.path.join(SOURCE, "examples", "digits.sh")
    env = dict(os.environ, NEAP=NEAP, DIGITS=work)
    for part in ("train", "test"):
        write_recordings(os.path.join(recordings, part), classes=2)
    names = re.search(r"RECORDINGS \[([a-z|]+)\]", open(script).read()).group(1).split("|")
    for settings in names:
        for more in ([], ["--without", "b"]):
            run = f"{settings}{'-without-b' if more else ''}"
            done = subprocess.run([script, recordings, settings, *more, "--epochs", "1"], env=env,
                                  capture_output=True, text=True, timeout=120)
            if done.returncode:
                return f"{settings} {more}: {done.stderr}"
            result = json.load(open(os.path.join(work, run, "run.json")))
            if result["data"]["samples"] != (6 if more else 12):
                return f"{run}: {result['data']}"
            tested = neap_json("eval", os.path.join(work, run),
                               os.path.join(work, "only-b.h5" if more else "test.h5"))
            if tested["samples"] != (6 if more else 12):
                return f"{run}: tested on {tested['samples']}"
    for bad in ([], [recordings, "deepest"], [recordings, "small", "--without"]):
        done = subprocess.run([script, *bad], env=env, capture_output=True, text=True)
        if done.returncode != 2 or done.stderr.count("\n") != 1:
            return f"{bad}: {done.returncode}, {done.stderr}"
    return None


def digits_on_path(folder):
    """Without build/neap, as for a user of the wheel."""
    here = os.path.join(folder, "wheel")
    os.makedirs(os.path.join(here, "examples"))
    shutil.copy(os.path.join(SOURCE, "examples", "digits.sh"), os.path.join(here, "examples"))
    with open(os.path.join(here, "neap"), "w") as file:
        file.write("#!/bin/sh\necho \"$@\" >>log\n")
    os.chmod(os.path.join(here, "neap"), 0o755)
    env = {key: value for key, value in os.environ.items() if key != "NEAP"}
    env["PATH"] = here + ":" + env["PATH"]
    done = subprocess.run(["sh", "examples/digits.sh", "fsdd"], cwd=here, env=env, capture_output=True, text=True)
    said = open(os.path.join(here, "log")).read().split("\n") if not done.returncode else [done.stderr]
    return None if [line.split()[0] for line in said if line] == ["encode", "encode", "train"] else str(said)


def page_help(folder, names):
    """--help prints the arguments, and no folder of that name is created."""
    here = os.path.join(folder, "help")
    os.makedirs(here)
    env = {**os.environ, "PYTHONPATH": os.path.join(BUILD, "python"), "NEAP_LIBRARY": os.path.join(BUILD, "src", "libneap.so")}
    for name in names:
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "examples", "pages", name + ".py"), "--help"], cwd=here,
                              env=env, capture_output=True, text=True)
        if done.returncode or not done.stdout.startswith(f"usage: {name}.py"):
            return f"{name}: {done.returncode}, {done.stdout}{done.stderr}"
    return f"created {os.listdir(here)}" if os.listdir(here) else None


with Tap() as tap, Folder() as folder:
    tap.run("digits.sh: every settings, a speaker held out", digits, folder)
    tap.run("pages/concepts.py", page, folder, "concepts",
            [r"^overhead +25\.0%", r"^turn$", r"^lif:256r,li +36,864 ", r"^lstm:256,li +67,584 "], None, 1)
    tap.run("pages/concepts.py: a folder that is not there", no_tool, folder)
    tap.run("pages: --help", page_help, folder, ["concepts", "first_network"] +
            [name for name, needs in (("own_data", "numpy"), ("pytorch", "torch")) if importlib.util.find_spec(needs)])
    tap.run("digits.sh: neap on the PATH", digits_on_path, folder)
    tap.run("pages/first_network.py", page, folder, "first_network",
            ["^The weights are bit-identical$", r"^accuracy (9|10)\d", "is classified as 0$"], "none")
    if importlib.util.find_spec("numpy"):
        tap.run("pages/own_data.py", page, folder, "own_data",
                ["^events: ", "^classes: ", "^regression: 1600 predictions", "^epoch,updates"])
    else:
        tap.skip("pages/own_data.py", "no numpy")
    if not shutil.which("pkg-config"):
        tap.skip("examples", "there is no pkg-config")
    else:
        programs = {}
        for source in sorted(glob.glob(os.path.join(SOURCE, "examples", "*.c"))):
            name = os.path.basename(source)[:-2]
            programs[name] = os.path.join(folder, name)
            if name in ("10_ranks", "11_wave_ranks") and not shutil.which("mpicc"):
                tap.skip(f"{name} builds", "there is no mpicc")
                continue
            tap.run(f"{name} builds", build, source, programs[name])
        tap.run("03_wave: one gradient in ten snapshots", wave, programs["03_wave"],
                ["bptt", "revolve", "h-revolve", "async", "auto"])
        tap.run("03_wave: bad usage", usage, programs["03_wave"])
        tap.run("04_layers: one gradient at every budget", layers, programs["04_layers"])
        tap.run("07_two_branches: one gradient at every budget", branches,
                programs["07_two_branches"])
        with tempfile.TemporaryDirectory(prefix="neap-test-", dir="/var/tmp") as disk:
            tap.run("06_journal: killed and started again", journal, programs["06_journal"], disk)
