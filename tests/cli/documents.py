#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every block of README.md and docs/: shell commands run one after the other as they stand, C compiles,
JSON is JSON; Python's are those of tests/python/test_docs.py. What only shows output is fenced as
text. Commands that need minutes, published recordings or another tool are not run here: their
options are those that `neap COMMAND --help` knows, and the files of this tree that they name are there.
    documents.py [all]    all: the tool's commands over the spoken digits, too, where they are (NEAP_DATA)
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

from event_files import evt3
from harness import NEAP, SOURCE, Folder, Tap, data_dir, encode, need, neap, write_recordings
from ranks import ENV, MPI

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

# Pages of measurements: minutes to hours, or recordings. `make bench` and the long suite run them.
MEASURED = ("docs/performance.md", "docs/measurements.md", "docs/planning-benchmark.md", "docs/study.md", "docs/speech.md",
            "docs/learning.md", "docs/compare-checkpoint.md", "docs/compare-jax.md", "docs/compare-petsc.md", "docs/jax.md",
            "docs/long-contexts.md")
# First words of commands that build, install or fetch, or run what they built: tests of their own, or another machine's.
ELSEWHERE = ("make", "cd", "pip", "git", "sudo", "apt", "apt-get", "arecord", "ssh", "srun", "sbatch", "cc", "mpicc", "gfortran", "meson", "ninja", "man", "perf", "bench/", "./", "timeout")
# What a page's commands read that nobody can bring here: published data sets, a folder of recordings.
BRINGS = re.compile(r"\b(N-MNIST|DvsGesture|n-cars|n-tidigits|commands|SHD|SSC|fsdd)\b|\.\.\.")
DIGITS = os.path.join(data_dir() or "", "data/fsdd") if "all" in sys.argv else ""
# Programs of the reader.
YOURS = ("mine.c",)
# Pages whose data sets the lines of Python take for granted (tests/python/test_docs.py).
GIVEN = ("docs/data.md", "docs/events.md", "docs/weights.md", "docs/python.md")
SHELLS, SHOWN = ("sh", "bash", "console"), ("text", "json", "toml", "diff")
# What stands around the lines of C that are no whole program.
AROUND = """#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <neap/neap.h>
#include <neap/train.h>
#define hash_of(...) ((uint64_t)(__VA_ARGS__, 1))
extern __typeof__(((struct neap_sweep_options *)0)->leave) leave;
%s
void lines(struct neap_sweep_options options, struct neap_file_options files, double *parameters, int ranks, int rank);
void lines(struct neap_sweep_options options, struct neap_file_options files, double *parameters, int ranks, int rank)
{
%s
}
"""


def blocks(text):
    """(line, language, code) of fenced blocks, and of indented ones, whose language is None."""
    lines, i = text.split("\n"), 0
    while i < len(lines):
        start = i
        if lines[i].lstrip().startswith("```"):
            pad, language = len(lines[i]) - len(lines[i].lstrip()), lines[i].strip()[3:].strip()
            i += 1
            while not lines[i].lstrip().startswith("```"):
                i += 1
            yield start + 1, language, "\n".join(line[pad:] for line in lines[start + 1:i])
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()) and not in_list(lines, i):
            while i + 1 < len(lines) and (lines[i + 1].startswith("    ") or not lines[i + 1].strip()):
                i += 1
            yield start + 1, None, "\n".join(line[4:] for line in lines[start:i + 1]).rstrip()
        i += 1


def in_list(lines, i):
    """Whether an indented line goes on with an item of a list."""
    while i and (not lines[i].strip() or lines[i].startswith(" ")):
        i -= 1
    return re.match(r"([-*+]|\d+\.) ", lines[i]) is not None


def commands(code):
    """The commands of a block: continued lines joined, without comments."""
    for line in re.sub(r"\\\n\s*", "", code).splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip().removeprefix("$ ")
        if line:
            yield line


def options_hold(line):
    """None, or what `--help` does not know of a command of the tool."""
    words = shlex.split(line.split(" | ")[0])
    tool = next((i for i, word in enumerate(words) if word in ("neap", "build/neap", "neap-mpi")), None)
    for word in words[:1]:
        if re.match(r"(tools|examples|bench)/", word) and not os.path.exists(os.path.join(SOURCE, word)):
            return f"{word} is not there"
    for word in words[1:] if words and words[0] in ("cc", "mpicc", "gfortran", "sbatch") else ():
        if word.endswith((".c", ".f90", ".slurm")) and ")" not in word and word not in YOURS and not os.path.exists(os.path.join(SOURCE, word)):
            return f"{word} is not in the folder of the source code"
    if tool is None or tool + 1 == len(words) or words[tool + 1] in ("help", "--version", "-v"):
        return None
    done = neap(words[tool + 1], "--help")
    if done.returncode != 0:
        return f"neap {words[tool + 1]}: {done.stderr}"
    for word in words[tool + 2:]:
        option = word.split("=")[0]
        if option.startswith("--") and not re.search(re.escape(option) + r"\b", done.stdout):
            return f"neap {words[tool + 1]} has no {option}"
    return None


class Bench:
    """A folder with what the commands of a page name."""

    def __init__(self, folder, fixtures, page):
        self.folder = folder
        shutil.copytree(fixtures, folder, symlinks=True)
        if page == "docs/data.md":
            for name in ("train.h5", "test.h5"):
                shutil.copy(os.path.join(folder, "series.h5"), os.path.join(folder, name))
        with open(os.path.join(SOURCE, page)) as file:
            if re.search(r"--out run\b", file.read()):
                shutil.rmtree(os.path.join(folder, "run"))
        self.env = dict(os.environ, PATH=folder + "/build:" + os.environ["PATH"], **ENV)

    def run(self, line):
        made = re.search(r"neap encode .*--out (\S+)", line)
        if made and os.path.exists(os.path.join(self.folder, made.group(1))):
            os.remove(os.path.join(self.folder, made.group(1)))  # it stood in for this one
        tests = sorted(glob.glob(os.path.join(self.folder, "fsdd/test/*.wav")))
        for path in re.findall(r"fsdd/test/\w+\.wav", line):  # of which a part may be here
            if tests and not os.path.exists(os.path.join(self.folder, path)):
                line = line.replace(path, tests[0])
        line = line.replace("/scratch", os.path.join(self.folder, "scratch"))
        if not re.search(r"--(epochs|resume)\b", line):  # an epoch shows that the command works; the default is 20
            line = line.replace("neap train ", "neap train --epochs 1 ")
        cwd = SOURCE if re.match(r"(tools)/", line) else self.folder
        done = subprocess.run(["bash", "-ec", line], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, timeout=240,
                              capture_output=True, text=True, errors="replace")
        return None if done.returncode == 0 else f"{line}: exit {done.returncode}: {done.stderr[-600:]}"


def make_fixtures(folder):
    os.makedirs(folder + "/build")
    os.makedirs(folder + "/scratch")
    os.symlink(NEAP, folder + "/build/neap")
    if os.path.isdir(DIGITS):
        os.symlink(DIGITS, folder + "/fsdd")
    write_recordings(folder + "/recordings", classes=3, each=6)
    for name in ("five.wav", "hour.wav"):
        shutil.copy(folder + "/recordings/0_a_0.wav", f"{folder}/{name}")
    for name in ("train.h5", "test.h5", "more.h5", "other.h5", "valid.h5"):
        encode(folder + "/recordings", f"{folder}/{name}")
    done = neap("train", "train.h5", "--net", "lif:16r,li", "--epochs", "1", "--memory", "4M", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    chance = np.random.default_rng(3)
    with h5py.File(folder + "/series.h5", "w") as file:
        file["x"], file["y"] = chance.normal(size=(30, 12, 3)), np.arange(30) % 3
    for name in ("rest", "wave"):
        os.makedirs(f"{folder}/gestures/{name}")
        for sample in range(6):
            np.savetxt(f"{folder}/gestures/{name}/{sample}.csv", chance.normal(size=(9, 2)), delimiter=",",
                       header="x,y", comments="")
    for name in ("left", "right"):
        os.makedirs(f"{folder}/saccades/{name}")
        for sample in range(6):
            events = np.zeros(40, [("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "?")])
            events["x"], events["t"] = chance.integers(0, 34, 40), np.arange(40)
            np.save(f"{folder}/saccades/{name}/r{sample}.npy", events)
    with open(folder + "/recording.raw", "wb") as file:
        file.write(evt3(events, b"% evt 3.0\n% geometry 34x34\n"))
    shutil.copytree(folder + "/saccades/left", folder + "/new-recordings")
    with open(folder + "/readings.csv", "w") as file:
        file.write("id,x,y,state\n" + "".join(f"{row // 8},{row % 5},{row % 3},{row // 8 % 2}\n" for row in range(96)))
    spikes = [np.sort(chance.integers(0, 100000, 50)) for _ in range(20)]
    np.savez(folder + "/events.npz", x=chance.integers(0, 34, 1000), y=chance.integers(0, 34, 1000),
             t=np.concatenate(spikes), p=chance.integers(0, 2, 1000), offsets=np.arange(0, 1001, 50),
             labels=np.arange(20) % 10)
    np.savez(folder + "/texts.npz", units=chance.integers(0, 9, 400), times=np.tile(np.arange(20) * 1000, 20),
             offsets=np.arange(0, 401, 20), labels=["de", "es"] * 10, inputs=[9])
    fields = [("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "?")]
    np.savez(folder + "/train.npz", events=np.zeros(40, fields), offsets=[0, 20, 40], labels=[0, 1],
             classes=["left", "right"], sensor_size=(34, 34, 2))


def shell(bench, page, code):
    for line in commands(code):
        first = next((word for word in line.split() if "=" not in word), "")
        digits = os.path.isdir(DIGITS) and first.endswith("neap") and "fsdd/t" in line
        if page in MEASURED or first.startswith(ELSEWHERE) or BRINGS.search(line) and not digits or first == "mpirun" and MPI is None:
            problem = options_hold(line)
        else:
            problem = options_hold(line) or bench.run(line)
        if problem:
            return problem
    return None


def c_code(folder, code):
    """Compiles a program, or lines of one: functions first, then what stands in a function."""
    cc = os.environ.get("CC", "cc").split()
    if "MPI_" in code:
        cc = [shutil.which("mpicc")]
        if cc == [None]:
            return None
        code = "#include <mpi.h>\n" + code
    path = os.path.join(folder, "block.c")
    for example in glob.glob(os.path.join(SOURCE, "examples/*.c")) + glob.glob(os.path.join(SOURCE, "bench/*/*.c")):
        with open(example) as file:
            if code in file.read():
                return None  # it is a part of a program that is tested as a whole
    if "#include <neap" not in code:
        functions, _, rest = code.rpartition("\n}\n")
        code = AROUND % (functions + "\n}" if functions else "", rest)
    with open(path, "w") as file:
        file.write(code)
    done = subprocess.run([*cc, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-value", "-I",
                           os.path.join(SOURCE, "include"), path], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr


def one(bench, page, language, code):
    if language in SHELLS:
        return shell(bench, page, code)
    if language == "c":
        return c_code(bench.folder, code)
    if language == "json":
        return json.loads(code) is None and "null" or None
    if language == "python" and page not in GIVEN and re.search(r"savez|h5py.File\(.*\"w\"", code):
        done = subprocess.run([sys.executable, "-c", code], cwd=bench.folder, capture_output=True, text=True)
        return None if done.returncode == 0 else done.stderr  # what it writes is for the commands below it
    if language == "python" or language in SHOWN:
        return None
    if language is not None:
        return f"a block in '{language}': it is none of {', '.join((*SHELLS, *SHOWN, 'c', 'python'))}"
    first = next(commands(code), "")
    word = next((word for word in first.split() if "=" not in word), "")
    known = word in ("neap", "neap-mpi", "mpirun", "python3", *ELSEWHERE) or re.match(r"(build|tools|examples|bench)/", word)
    return shell(bench, page, code) if known else "no command: fence it as text, or as its language"


def main():
    pages = ["README.md"] + sorted(
        os.path.relpath(path, SOURCE) for path in glob.glob(os.path.join(SOURCE, "docs/**/*.md"), recursive=True))
    with Tap() as tap, Folder() as folder:
        make_fixtures(os.path.join(folder, "fixtures"))
        for page in pages:
            bench = Bench(os.path.join(folder, page.replace("/", "_")), os.path.join(folder, "fixtures"), page)
            with open(os.path.join(SOURCE, page)) as file:
                for line, language, code in blocks(file.read()):
                    tap.run(f"{page}:{line}: {language or 'indented'}", one, bench, page, language, code)


main()
