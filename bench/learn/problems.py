# SPDX-License-Identifier: Apache-2.0
"""The data sets, one function per row: training and test samples as padded arrays, the same for every program.

Generated data has a fixed seed of its own; the seeds of a run change initial weights and the order of the samples.
"""
import dataclasses
import functools
import gzip
import importlib.util
import os
import re
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
NEAP = os.path.abspath(os.environ.get("NEAP_BIN", os.path.join(ROOT, "build", "neap")))
SCHEDULE = "cooldown"  # neap's default schedule of the learning rate
DT = 4e-3  # seconds per step of spoken digits: 150 steps for the longest recording that is used
LONGEST = 0.6  # seconds; keeps nine recordings of ten, and halves the padding


class Missing(Exception):
    """Data that is not on this machine, and how to get it."""


@dataclasses.dataclass
class Part:
    x: np.ndarray  # (samples, steps, features), 0 behind the end of a sample
    lengths: np.ndarray  # (samples)
    y: np.ndarray  # (samples) or (samples, steps) classes; (samples, 1) or (samples, steps, 1) numbers


@dataclasses.dataclass
class Problem:
    train: Part
    test: Part
    epochs: int
    units: int = 64
    measure: str = "accuracy"  # "accuracy", or "mse" or "nats", the loss
    per_step: bool = False  # a target per step
    normalise: bool = True  # features: mean 0, deviation 1 over the training samples
    kind: str = "numbers"  # what neap reads: "numbers", "next" (no targets), "text" or "spikes"
    text: tuple = ()  # of kind "text": the text to learn from, and the one to test on
    dt: float = 1e-3  # seconds per step
    cells: tuple = ("gru", "lstm", "lif")
    readout: str = "last"  # of PyTorch's model for a target per sample: the last state, or the "mean" over steps
    spikes: tuple = ()  # of kind "spikes": times and channels of each sample, of both parts

    @property
    def classes(self):
        """0: the targets are numbers."""
        return 0 if self.measure == "mse" else int(self.train.y.max()) + 1

    @property
    def higher_is_better(self):
        return self.measure == "accuracy"

    def quick(self):
        """One epoch of 24 training samples, which are the test samples too, to try that everything runs."""
        at = np.arange(24) if self.text else np.linspace(0, len(self.train.y) - 1, 24).astype(int)
        few = Part(self.train.x[at], self.train.lengths[at], self.train.y[at])
        spikes = [self.spikes[0][i] for i in at] if self.spikes else []
        return dataclasses.replace(self, train=few, test=few, epochs=1, units=8, text=self.text[:1] * 2,
                                   spikes=(spikes, spikes))


def package_file(package, *path):
    """A file that a package brings; the package itself is not imported, so that it needs none of its dependencies."""
    found = importlib.util.find_spec(package)
    path = os.path.join(os.path.dirname(found.origin), *path) if found else ""
    if not os.path.exists(path):
        name = {"sklearn": "scikit-learn"}.get(package, package)
        raise Missing(f"the data is part of the package {name}: pip install --no-deps {name}")
    return path


def series(name, epochs):
    """A data set of series that comes with sktime, split as published."""
    package_file("sktime", "datasets", "data", name, f"{name}_TRAIN.ts")
    sys.path.insert(0, os.path.join(ROOT, "examples"))
    import series as example  # reads these files, too
    (train, first), (test, second) = (example.read(name, part) for part in ("TRAIN", "TEST"))
    classes = sorted(set(first))
    parts = (Part(*example.pad(x), np.searchsorted(classes, y)) for x, y in ((train, first), (test, second)))
    return Problem(*parts, epochs=epochs)


def whole(x, y, train, **more):
    """A problem whose samples are equally long; the first `train` of them are training samples."""
    lengths = np.full(len(x), x.shape[1])
    return Problem(*(Part(x[at], lengths[at], y[at]) for at in (slice(train), slice(train, None))), **more)


def vowels():
    return series("JapaneseVowels", 30)


def motions():
    return series("BasicMotions", 60)


def digits():
    """Images of 8 x 8 pixels, a pixel per step."""
    with gzip.open(package_file("sklearn", "datasets", "data", "digits.csv.gz"), "rt", encoding="ascii") as file:
        table = np.loadtxt(file, delimiter=",")
    table = np.random.default_rng(1).permutation(table)
    return whole(table[:1040, :64, None], table[:1040, 64].astype(int), 640, epochs=20)


def sines():
    """The sum of three sines, whose six coefficients are the inputs of every step."""
    rng, steps = np.random.default_rng(1), 100
    a = rng.standard_normal((360, 6))
    phase = 2 * np.pi * np.arange(steps)[:, None] * np.arange(1, 4) / steps
    y = a @ np.concatenate([np.sin(phase), np.cos(phase)], axis=1).T
    return whole(np.repeat(a[:, None], steps, 1), y[..., None], 270, epochs=20, measure="mse", per_step=True)


def pairs(seed=1):
    """Two numbers per step."""
    return np.random.default_rng(seed).standard_normal((160, 60, 2))


def line():
    """y = 2x + 1 of the first of two numbers."""
    x = pairs() * 1.7
    return whole(x, 2 * x[..., :1] + 1, 90, epochs=60, units=32, measure="mse", per_step=True)


def larger():
    """Which of two numbers is the larger one."""
    x = pairs(2)
    return whole(x, (x[..., 1] > x[..., 0]).astype(int), 90, epochs=30, units=32, per_step=True)


def adding():
    """The sum of the two numbers, one in each half of the sample, that a second feature marks."""
    rng, samples, steps = np.random.default_rng(1), 1160, 200
    x = np.zeros((samples, steps, 2))
    x[..., 0] = rng.uniform(size=(samples, steps))
    rows = np.arange(samples)
    first, second = rng.integers(0, steps // 2, samples), rng.integers(steps // 2, steps, samples)
    x[rows, first, 1] = x[rows, second, 1] = 1
    return whole(x, (x[rows, first, 0] + x[rows, second, 0])[:, None], 960, epochs=20, units=32, measure="mse",
                 cells=("gru", "lstm"))  # a leaky membrane does not remember 100 steps: no LIF learns it


def following():
    """The next value of a noisy oscillation of its own frequency and phase."""
    rng, steps = np.random.default_rng(1), 61
    time = np.arange(steps)
    frequency, phase = rng.uniform(0.1, 0.6, (160, 1)), rng.uniform(0, 2 * np.pi, (160, 1))
    x = (np.sin(frequency * time + phase) + 0.1 * rng.standard_normal((160, steps)))[..., None]
    problem = whole(x, x, 90, epochs=30, units=32, measure="mse", per_step=True, kind="next")
    mean, deviation = problem.train.x.mean(), problem.train.x.std()
    for part in (problem.train, problem.test):  # the loss is of normalised values
        z = (part.x - mean) / deviation
        part.x, part.y, part.lengths = z[:, :-1], z[:, 1:], part.lengths - 1
    return problem


STEPS_OF_TEXT = 32


def characters():
    """The next character of a text; every fifth paragraph is for the test, less characters that only it has."""
    path = os.environ.get("NEAP_TEXT", "/usr/share/common-licenses/GPL-3")
    if not os.path.exists(path):
        raise Missing(f"'{path}' is missing: set NEAP_TEXT to a text of 20 KB or more")
    with open(path, encoding="utf-8") as file:
        paragraphs = file.read().split("\n\n")
    text = "\n\n".join(p for i, p in enumerate(paragraphs) if i % 5 < 4)
    known = sorted(set(text))
    texts = text, "".join(c for c in "\n\n".join(paragraphs[4::5]) if c in known)
    return Problem(*(text_part(t, known) for t in texts), epochs=25, measure="nats", per_step=True, normalise=False,
                   kind="text", text=texts)


def text_part(text, known):
    """Samples of 32 characters; what does not fill one is left out by both."""
    code = np.searchsorted(known, list(text))
    n = (len(code) - 1) // STEPS_OF_TEXT
    x, y = (code[at:at + n * STEPS_OF_TEXT].reshape(n, STEPS_OF_TEXT) for at in (0, 1))
    return Part(np.eye(len(known), dtype=np.float32)[x], np.full(n, STEPS_OF_TEXT), y)


def speech():
    """Recordings 5 to 11 of each digit and speaker as spikes in 128 channels; 3 and 4 are the test samples."""
    folder = os.path.join(os.environ.get("NEAP_DATA", os.path.join(ROOT, "..", "shared")), "data", "fsdd")
    if not os.path.isdir(folder):
        raise Missing(f"'{folder}' is missing: set NEAP_DATA to a folder that has data/fsdd/train and data/fsdd/test "
                      "(docs/first-network.md shows where to get the recordings)")
    read = [recordings(os.path.join(folder, "train"), range(5, 12)), recordings(os.path.join(folder, "test"), (3, 4))]
    return Problem(*(part for part, _ in read), epochs=12, normalise=False, kind="spikes", dt=DT, readout="mean",
                   spikes=tuple(spikes for _, spikes in read))


def recordings(folder, numbers):
    """A Part of 0 and 1, and the spikes that it was made of."""
    import tempfile
    import h5py
    with tempfile.TemporaryDirectory() as links:
        for name in sorted(os.listdir(folder)):
            match = re.fullmatch(r"\d+_[a-z]+_(\d+)\.wav", name)
            if match and int(match.group(1)) in numbers:
                os.symlink(os.path.realpath(os.path.join(folder, name)), os.path.join(links, name))
        out = os.path.join(links, "spikes.h5")
        subprocess.run([NEAP, "encode", links, "--out", out, "--label", "([0-9]+)_.*", "--quiet"], check=True,
                       stdout=subprocess.DEVNULL)
        with h5py.File(out) as file:
            keep = np.flatnonzero(file["extra/duration"][:] < LONGEST)
            keep = np.random.default_rng(1).permutation(keep)  # not digit by digit: --quick takes the first ones
            spikes = [(file["spikes/times"][i], file["spikes/units"][i]) for i in keep]
            durations, y = file["extra/duration"][:][keep], file["labels"][:][keep].astype(int)
    lengths = np.ceil(durations / DT - 1e-6).astype(int)
    x = np.zeros((len(y), lengths.max(), 128), np.float32)
    for i, (times, channels) in enumerate(spikes):
        x[i, np.minimum((times / DT + 1e-6).astype(int), lengths[i] - 1), channels] = 1  # a channel spikes once a step
    return Part(x, lengths, y), [(t, c, d) for (t, c), d in zip(spikes, durations)]


# Name -> what it is, and the function that makes it.
ROWS = {
    "vowels": ("JapaneseVowels, 7 to 29 steps of 12 features", vowels),
    "motions": ("BasicMotions, 100 steps of 6 features", motions),
    "digits": ("scikit-learn's digits as 64 steps of a pixel", digits),
    "sines": ("sum of three sines, per step", sines),
    "line": ("y = 2x + 1, per step", line),
    "larger": ("the larger of two numbers, per step", larger),
    "adding": ("adding problem, 200 steps", adding),
    "next": ("next value of a series", following),
    "text": ("next character of a text", characters),
    "speech": ("spoken digits, up to 150 steps of 128 channels", speech),
}


@functools.lru_cache(maxsize=None)
def problem(name, quick=False):
    made = ROWS[name][1]()
    return made.quick() if quick else made
