# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: running neap, TAP, small real inputs."""
import importlib.util
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import wave

NEAP = os.environ.get("NEAP_BIN", "")  # empty where the tool is not built
SOURCE = os.environ.get("NEAP_SOURCE", ".")


def over_limit(what, seconds, most):
    """None, or a line where `what` took longer than limits that hold (NEAP_LIMITS, make bench)."""
    if "NEAP_LIMITS" not in os.environ or seconds <= most:
        return None
    return f"{what} took {seconds} s, at most {most} s"


def need(*modules):
    """Goes on with a python3 that has these modules, this one or the system's; none: skipped."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing and sys.executable != "/usr/bin/python3" and os.path.exists("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])  # Debian's packages are for that
    if missing:
        print(f"1..0 # SKIP no {' and no '.join(missing)}")
        sys.exit(0)


ORACLES = os.path.join(SOURCE, "tests", "oracles")  # tables of exact costs


def data_dir():
    """Folder with recordings and trained nets, or None: NEAP_DATA, else ../shared."""
    path = os.environ.get("NEAP_DATA", os.path.join(SOURCE, "..", "shared"))
    return path if os.path.isdir(path) else None


def neap(*args, cwd=None, timeout=300, env=None, stdin=subprocess.DEVNULL):
    """Runs the tool; returns the completed process with text output."""
    full = dict(os.environ, **(env or {}))
    return subprocess.run([NEAP, *map(str, args)], cwd=cwd, env=full, timeout=timeout,
                          stdin=stdin, capture_output=True, text=True, errors="replace")


def resuming(run):
    """What continues the run in a folder, or starts it if it was killed before it had written its options."""
    return ["--resume"] if os.path.exists(os.path.join(run, "run.json")) else []


def neap_json(*args, **more):
    done = neap(*args, "--json", **more)
    if done.returncode != 0:
        raise AssertionError(f"neap {' '.join(map(str, args))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Tap:
    """Counts cases as they run and prints TAP; `with Tap() as tap`."""

    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, problem):
        """problem: None when the case holds, else a line about what is wrong."""
        self.count += 1
        self.failed += problem is not None
        name = name.replace("#", "\\#").replace("\n", " ")[:150]
        print(f"{'not ok' if problem else 'ok'} {self.count} - {name}", flush=True)
        if problem:
            print("# " + str(problem).replace("\n", "\n# "), flush=True)

    def run(self, name, function, *args):
        try:
            problem = function(*args)
        except AssertionError as error:
            problem = str(error) or "assertion"
        except subprocess.TimeoutExpired as error:
            problem = f"timed out: {error}"
        self.check(name, problem)

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        print(f"1..{self.count}", flush=True)
        return False


class Folder:
    """A temporary folder, removed at the end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="neap-test-")

    def __enter__(self):
        return self.path

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)


def write_tone(path, hertz, seconds=0.25, rate=8000, phase=0.0):
    """A wav file: a decaying tone with a harmonic."""
    n = int(seconds * rate)
    frames = bytearray()
    for i in range(n):
        t = i / rate
        x = math.exp(-6 * t) * (math.sin(2 * math.pi * hertz * t + phase)
                                + 0.4 * math.sin(4 * math.pi * hertz * t))
        frames += struct.pack("<h", int(9000 * x))
    with wave.open(path, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(bytes(frames))


def write_recordings(folder, classes=4, each=6):
    """folder/{class}_{speaker}_{n}.wav"""
    os.makedirs(folder, exist_ok=True)
    for k in range(classes):
        for n in range(each):
            write_tone(os.path.join(folder, f"{k}_{'ab'[n % 2]}_{n}.wav"),
                       200 * (1.6 ** k) * (1 + 0.01 * n), phase=0.3 * n)


def encode(folder, out, *more):
    done = neap("encode", folder, "--out", out, "--label", "([0-9]+)_.*", "--speaker",
                "[0-9]+_([a-z]+)_.*", "--channels", "32", *more)
    assert done.returncode == 0, done.stderr
    return out
