#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`neap predict --spikes --membranes --plot`: every cell, spike for spike, against its equations in NumPy and PyTorch; figures,
read back through the labels of their axes.
"""
import csv
import io
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

from harness import NEAP, Folder, Tap, data_dir, need, neap

need("h5py", "numpy", "torch")
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
S, INPUTS, CLASSES, DT = 7, 20, 3, 1e-3
THETA, TAU, TAU_OUT, TAU_ADAPT, TAU_SYN, KAPPA, A, B = 1.0, 9e-3, 15e-3, 40e-3, 4e-3, 0.3, 0.1, 0.2
LENGTHS = (50, 31, 80, 1, 64, 65, 80)
SVG = "{http://www.w3.org/2000/svg}"


def spikes_of_inputs():
    r = np.random.default_rng(5)
    return [(r.random((n, INPUTS)) < 0.12).astype("f8") for n in LENGTHS]


def write_events(path):
    """The samples in the layout of the Heidelberg Digits."""
    with h5py.File(path, "w") as file:
        for name, kind in ("times", "f4"), ("units", "u2"):
            rows = file.create_dataset(f"spikes/{name}", (S,), dtype=h5py.vlen_dtype(kind))
            for i, x in enumerate(spikes_of_inputs()):
                t, u = np.nonzero(x)
                rows[i] = ((t + 0.5) * DT if name == "times" else u).astype(kind)
        file["labels"] = np.arange(S, dtype="u2") % CLASSES
        file["extra/duration"] = np.array(LENGTHS) * DT
        file.attrs["inputs"] = INPUTS
    return path


def tensors(path):
    """Tensors of a safetensors file in double, and its metadata."""
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    meta = head.pop("__metadata__")
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], "f8" if t["dtype"] == "F64" else "f4").reshape(t["shape"])
            .astype("f8") for name, t in head.items()}, meta


def decay(tau):
    return np.exp(-DT / tau)


class Spiking:
    """A layer that spikes, by the equations of docs/cells.md."""

    def __init__(self, w, l, cell, reset):
        self.w, self.v, self.b = w[f"layer{l}.weight"], w.get(f"layer{l}.recurrent"), w[f"layer{l}.bias"][0]
        n = len(self.b)
        self.cell, self.reset = cell, reset
        self.u, self.s, self.a, self.i = (np.zeros(n) for _ in range(4))
        leak = w.get(f"layer{l}.leak")
        self.beta = decay(TAU) if leak is None else 1 / (1 + np.exp(-leak[0]))

    def step(self, x):
        arriving = x @ self.w + self.b + (self.s @ self.v if self.v is not None else 0)
        return getattr(self, self.cell)(arriving)

    def fire(self, u, threshold=THETA):
        s = (u > threshold).astype("f8")
        if self.reset == "hard":
            u = np.where(s > 0, 0.0, u)
        elif self.reset == "soft":
            u = u - THETA * s
        self.u, self.s = u, s
        return s

    def lif(self, arriving):
        u = self.beta * self.u + arriving
        if self.reset == "zero":
            u = (1 - self.s) * u
        return self.fire(u - THETA * self.s if self.reset == "subtract" else u)

    def alif(self, arriving):
        self.a = decay(TAU_ADAPT) * self.a + self.s
        return self.fire(self.beta * self.u + arriving - THETA * self.s, THETA + KAPPA * self.a)

    def adlif(self, arriving):
        self.a = decay(TAU_ADAPT) * self.a + A * self.u + B * self.s
        return self.fire(self.beta * (self.u - self.s) + (1 - self.beta) * (arriving - self.a))

    def seadlif(self, arriving):
        s = self.fire(self.beta * self.u + (1 - self.beta) * (arriving - self.a))
        rho = decay(TAU_ADAPT)
        self.a = rho * self.a + (1 - rho) * (A * self.u + B * s)
        return s

    def brf(self, arriving):
        turn = DT * 50.0
        keep = np.sqrt(1 - turn * turn) - DT * 20.0 - DT * self.a
        self.u, self.i = keep * self.u - turn * self.i + DT * arriving, turn * self.u + keep * self.i
        self.s = (self.u - self.a > THETA).astype("f8")
        self.a = decay(10e-3) * self.a + self.s
        return self.s

    def cubalif(self, arriving):
        self.i = decay(TAU_SYN) * self.i + arriving
        return self.fire(self.beta * self.u + self.i - (THETA * self.s if self.reset == "subtract" else 0))

    def states(self):
        return {"alif": {".adaptation": self.a}, "adlif": {".adaptation": self.a}, "seadlif": {".adaptation": self.a},
                "brf": {".velocity": self.i},
                "cubalif": {".current": self.i}}.get(self.cell, {}) | {"": self.u}


def reference(w, layers, x):
    """Spikes [steps, units] of each layer, states [steps, units] by name."""
    units = [Spiking(w, l, *layer) for l, layer in enumerate(layers)]
    spikes, states, o = [[] for _ in layers], {}, np.zeros(CLASSES)
    kappa = 1 / (1 + np.exp(-w["readout.leak"][0])) if "readout.leak" in w else decay(TAU_OUT)
    for row in x:
        for l, unit in enumerate(units):
            row = unit.step(row)
            spikes[l].append(row)
            for name, value in unit.states().items():
                states.setdefault(f"layer{l}{name}", []).append(value)
        o = kappa * o + (1 - kappa) * (row @ w["readout.weight"] + w["readout.bias"][0])
        states.setdefault("readout", []).append(o)
    return [np.array(s) for s in spikes], {name: np.array(rows) for name, rows in states.items()}


NETS = {  # name: (specification, cell and reset of each layer, more options)
    "two layers, recurrent": ("lif:24r,lif:16:reset=hard,li", (("lif", "subtract"), ("lif", "hard")), []),
    "zero and soft": ("lif:24:reset=zero,lif:16r:reset=soft,li", (("lif", "zero"), ("lif", "soft")), []),
    "alif, recurrent": ("alif:24r:tau_adapt=40ms:adapt=0.3,li", (("alif", "subtract"),), []),
    "adlif over lif": ("lif:24,adlif:16r:tau_adapt=40ms:a=0.1:b=0.2,li", (("lif", "subtract"), ("adlif", "subtract")), []),
    "seadlif over lif": ("lif:24,seadlif:16r:tau_adapt=40ms:a=0.1:b=0.2,li", (("lif", "subtract"), ("seadlif", "hard")), []),
    "brf": ("brf:24r,brf:16,li", (("brf", "subtract"), ("brf", "subtract")), []),
    "cubalif, three resets": ("cubalif:20r:tau_syn=4ms,cubalif:16:tau_syn=4ms:reset=hard,cubalif:12:tau_syn=4ms:reset=soft,li",
                              (("cubalif", "subtract"), ("cubalif", "hard"), ("cubalif", "soft")), []),
    "learned time constants": ("lif:24r,li", (("lif", "subtract"),), ["--learn", "tau"]),
}


def train(folder, data, spec, *more):
    run = os.path.join(folder, f"run{len(os.listdir(folder))}")
    done = neap("train", data, "--net", spec, "--tau", "9ms", "--tau-out", "15ms", "--epochs", 2, "--batch", 4, "--memory", "8M",
                "--gain", 1.5, "--validation", 0, "--out", run, *more)
    assert done.returncode == 0, done.stderr
    return run


def traces(folder, run, data, *more):
    """The arrays of both archives, and what the command printed."""
    paths = [os.path.join(folder, name) for name in ("s.npz", "m.npz")]
    done = neap("predict", run, data, "--spikes", paths[0], "--membranes", paths[1], *more)
    assert done.returncode == 0 and not done.stderr, done
    found = []
    for path in paths:
        with np.load(path, allow_pickle=False) as arrays:
            found.append({name: arrays[name] for name in arrays})
        os.remove(path)
    return (*found, done.stdout)


def dense(spikes, i, layer, steps):
    """The spikes of a sample and layer as [steps, units]."""
    of = (spikes["sample"] == spikes["samples"][i]) & (spikes["layer"] == layer)
    x = np.zeros((steps, spikes["units"][layer]))
    np.add.at(x, (spikes["step"][of], spikes["unit"][of]), 1)
    return x


def in_form(spikes, membranes, lengths):
    """What holds of all archives."""
    keys = [spikes[name] for name in ("unit", "layer", "step", "sample")]
    assert np.array_equal(np.lexsort(keys), np.arange(len(keys[0]))), "not sorted"
    assert len(np.unique(np.stack(keys), axis=1).T) == len(keys[0]), "a spike stands twice"
    for arrays in spikes, membranes:
        assert list(arrays["lengths"]) == list(lengths) and arrays["dt"] == DT and arrays["dt"].shape == (), arrays
    for name, x in membranes.items():
        if name not in ("samples", "lengths", "dt"):
            assert x.shape[:2] == (len(lengths), max(lengths)), (name, x.shape)
            for i, n in enumerate(lengths):
                assert np.isfinite(x[i, :n]).all() and np.isnan(x[i, n:]).all(), (name, i)


def as_equations_say(folder, data, name, precision):
    """Spikes are the same ones, states the same numbers but for rounding."""
    spec, layers, more = NETS[name]
    run = train(folder, data, spec, "--precision", precision, *more)
    w, _ = tensors(os.path.join(run, "model.safetensors"))
    spikes, membranes, lines = traces(folder, run, data)
    assert neap("predict", run, data).stdout == lines, "other answers"
    in_form(spikes, membranes, LENGTHS)
    assert list(spikes["samples"]) == list(range(S)) and list(spikes["layers"]) == [f"layer{l}" for l in range(len(layers))]
    limit, count, checked = (1e-12 if precision == "double" else 1e-5), 0, {"samples", "lengths", "dt"}
    for i, x in enumerate(spikes_of_inputs()):
        wanted, states = reference(w, layers, x)
        for l, s in enumerate(wanted):
            found = dense(spikes, i, l, len(x))
            assert np.array_equal(found, s), f"sample {i}, layer {l}: {np.argwhere(found != s)[:3]}"
            count += int(s.sum())
        for state, rows in states.items():
            found = membranes[state]
            assert found.dtype == ("f8" if precision == "double" else "f4"), found.dtype
            off = np.abs(found[i, :len(x)] - rows).max() / max(1, np.abs(rows).max())
            assert off < limit, f"sample {i}, {state}: off by {off}"
            checked.add(state)
    assert count == len(spikes["unit"]) and count > 50 * len(layers), f"{count} spikes"
    assert set(membranes) == checked, set(membranes) ^ checked


def gates_as_torch(folder, data, cell):
    """Outputs of gated cells are those of PyTorch's modules; they have no spikes."""
    run = train(folder, data, f"{cell}:9,li", "--precision", "double")
    w, _ = tensors(os.path.join(run, "model.safetensors"))
    kind = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell]
    net = kind(INPUTS, 9).double()
    bias = torch.tensor(w["layer0.bias"][0])
    with torch.no_grad():
        net.weight_ih_l0.copy_(torch.tensor(w["layer0.weight"].T))
        net.weight_hh_l0.copy_(torch.tensor(w["layer0.recurrent"].T))
        net.bias_ih_l0.copy_(bias[:len(bias) // 2] if cell == "gru" else bias)
        net.bias_hh_l0.copy_(bias[len(bias) // 2:] if cell == "gru" else 0 * bias)
    path = os.path.join(folder, "m.npz")
    assert neap("predict", run, data, "--membranes", path).returncode == 0
    found = np.load(path)
    assert set(found) == {"samples", "lengths", "dt", "layer0", "readout"} | ({"layer0.cell"} if cell == "lstm" else set()), set(found)
    for i, x in enumerate(spikes_of_inputs()):
        with torch.no_grad():
            h, last = net(torch.tensor(x))
        assert np.abs(found["layer0"][i, :len(x)] - h.numpy()).max() < 1e-12, i
        if cell == "lstm":
            assert np.abs(found["layer0.cell"][i, len(x) - 1] - last[1][0].numpy()).max() < 1e-12, i
    os.remove(path)
    done = neap("predict", run, data, "--spikes", path)
    assert done.returncode == 2 and cell in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done
    assert not os.path.exists(path)


def norse_sample(folder, samples):
    """The LIF neuron that comes with NIR: the spikes and the membrane that Norse published."""
    rows = np.genfromtxt(os.path.join(samples, "lif_norse.csv"), delimiter=",")
    path = os.path.join(folder, "norse.h5")
    with h5py.File(path, "w") as file:
        for name, kind in ("times", "f8"), ("units", "u2"):
            lists = file.create_dataset(f"spikes/{name}", (1,), dtype=h5py.vlen_dtype(kind))
            steps = np.nonzero(rows[:, 0] > 0)[0]
            lists[0] = ((steps + 0.5) * 1e-4 if name == "times" else 0 * steps).astype(kind)
        file["labels"], file["extra/duration"] = np.zeros(1, "u2"), np.array([len(rows) * 1e-4])
        file.attrs["inputs"] = 1
    found = []
    for name in "--spikes", "--membranes":
        out = os.path.join(folder, "norse.npz")
        done = neap("predict", "--from", os.path.join(samples, "lif_norse.nir"), "--dt", "0.1ms", path, name, out)
        assert done.returncode == 0, done.stderr
        found.append(dict(np.load(out)))
        os.remove(out)
    assert list(found[0]["step"]) == list(np.nonzero(rows[:, 2] > 0)[0]) and len(found[0]["step"]), found[0]["step"]
    off = np.abs(found[1]["layer0"][0, :, 0] - rows[:, 1]).max()
    assert off < 1e-7, off


def events_of_egru(folder, data):
    """Events are the units whose cell is above the threshold; a layer without spikes beside it has none."""
    run = train(folder, data, "egru:16:threshold=0.05,gru:8,li")
    spikes, membranes, _ = traces(folder, run, data)
    assert len(spikes["unit"]) > 50 and set(spikes["layer"]) == {0} and list(spikes["units"]) == [16, 8], spikes
    for i, n in enumerate(LENGTHS):
        assert np.array_equal(dense(spikes, i, 0, n), membranes["layer0"][i, :n] > np.float32(0.05)), i


def layers_and_samples(folder, data):
    """--layer and --sample: the same numbers of one layer, one sample; its answer alone."""
    run = train(folder, data, NETS["two layers, recurrent"][0])
    whole, states, lines = traces(folder, run, data)
    for given, number in ("1", 1), ("layer0", 0):
        spikes, membranes, _ = traces(folder, run, data, "--layer", given)
        of = whole["layer"] == number
        assert np.array_equal(spikes["unit"], whole["unit"][of]) and set(spikes["layer"]) == {number}, spikes
        assert set(membranes) == {"samples", "lengths", "dt", f"layer{number}"}, set(membranes)
        assert np.array_equal(membranes[f"layer{number}"], states[f"layer{number}"], equal_nan=True)
    for i in (2, S - 1):
        spikes, membranes, line = traces(folder, run, data, "--sample", i)
        assert line.splitlines() == [lines.splitlines()[0], lines.splitlines()[i + 1]], line
        assert list(spikes["samples"]) == [i] and set(spikes["sample"]) == {i}
        assert np.array_equal(spikes["unit"], whole["unit"][whole["sample"] == i])
        assert np.array_equal(membranes["readout"][0], states["readout"][i, :LENGTHS[i]])
    alone = traces(folder, run, data, "--threads", 1, "--batch", 3)
    assert all(np.array_equal(alone[0][name], whole[name]) for name in whole)
    path = os.path.join(folder, "readout.npz")
    assert neap("predict", run, data, "--membranes", path, "--layer", "readout").returncode == 0
    assert np.array_equal(np.load(path)["readout"], states["readout"], equal_nan=True)


def steps_and_answers(folder):
    """Targets a step, with and without y: the readout's membranes are the scores of the lines; three archives at once."""
    r = np.random.default_rng(3)
    x, lengths = r.normal(size=(5, 40, 4)).astype("f4"), np.array([40, 7, 40, 22, 13])
    path, bare, out = (os.path.join(folder, name) for name in ("rows.h5", "bare.h5", "a.npz"))
    for name, more in (path, {"y": r.integers(0, 3, (5, 40))}), (bare, {}):
        with h5py.File(name, "w") as file:
            for key, value in ({"x": x, "lengths": lengths} | more).items():
                file[key] = value
    run = train(folder, path, "lif:16r,li")
    for data in path, bare:
        spikes, membranes, lines = traces(folder, run, data)
        in_form(spikes, membranes, lengths)
        scores = np.array([row[-3:] for row in csv.reader(io.StringIO(lines))][1:], "f8")
        found = np.concatenate([membranes["readout"][i, :n] for i, n in enumerate(lengths)])
        assert np.array_equal(scores, found.astype("f8")), "other scores"
        assert traces(folder, run, data, "--out", out)[2] == f"{out}: answers for 5 samples\n"
        with np.load(out) as answers:
            assert np.array_equal(answers["scores"], scores)
        os.remove(out)


def long_and_ragged(folder):
    """Samples of many pieces are what they are alone, where nothing is moved."""
    r, lengths, path, out = np.random.default_rng(4), [2500, 3, 3000, 2999, 1], os.path.join(folder, "ragged.h5"), os.path.join(folder, "r.npz")
    with h5py.File(path, "w") as file:
        file["x"], file["y"], file["lengths"] = r.normal(size=(5, 3000, 4)).astype("f4"), np.arange(5) % 3, np.array(lengths)
    for precision in "float", "double":
        run = train(folder, path, "lif:33r,li", "--epochs", 1, "--precision", precision)
        _, membranes, _ = traces(folder, run, path)
        for i, n in enumerate(lengths):
            assert neap("predict", run, path, "--sample", i, "--membranes", out).returncode == 0
            with np.load(out) as alone:
                for name in "layer0", "readout":
                    assert alone[name].shape[1] == n and np.array_equal(alone[name][0], membranes[name][i, :n]), (i, name)
                    assert np.isnan(membranes[name][i, n:]).all(), (i, name)
            os.remove(out)


def axis(elements, which):
    """Value of a pixel, from the first and the last label."""
    at = "x" if which == "tick-x" else "y"
    ticks = [(float(e.get(at)), float(e.text)) for e in elements if e.get("class") == which]
    (p, a), (q, b) = ticks[0], ticks[-1]
    return lambda pixel: a + (pixel - p) / (q - p) * (b - a)


def panels_of(path):
    """The panels of a figure, and the steps of its pixels."""
    root = xml.parse(path).getroot()
    return [list(g.iter()) for g in root.iter(SVG + "g") if g.get("class") == "panel"], axis(list(root.iter()), "tick-x"), root


def strokes(panel, to_step):
    """(step, unit) of all strokes."""
    to_unit, found = axis(panel, "tick-y"), set()
    for e in (e for e in panel if e.get("class") == "spikes"):
        for x, y, high in re.findall(r"M([\d.]+) ([\d.]+)v([\d.]+)", e.get("d")):
            found.add((round(to_step(float(x))), round(to_unit(float(y) + float(high) / 2))))
    return found


def figure(folder, data):
    """The figure of a sample has its very spikes and scores; the others' are not in it."""
    run, path = train(folder, data, NETS["two layers, recurrent"][0]), os.path.join(folder, "f.svg")
    spikes, membranes, lines = traces(folder, run, data)
    for i, more in (0, []), (4, ["--sample", 4]):
        done = neap("predict", run, data, "--plot", path, *more)
        assert done.returncode == 0 and not done.stderr and done.stdout.count("\n") == (2 if more else S + 1), done
        panels, to_ms, root = panels_of(path)
        assert len(panels) == 4, len(panels)
        t, u = np.nonzero(spikes_of_inputs()[i])
        assert strokes(panels[0], to_ms) == set(zip(t, u)), "inputs"
        for l in 0, 1:
            t, u = np.nonzero(dense(spikes, i, l, LENGTHS[i]))
            assert strokes(panels[1 + l], to_ms) == set(zip(t, u)), f"layer {l}"
        to_score = axis(panels[3], "tick-y")
        for c in range(CLASSES):
            group = next(e for e in panels[3] if e.get("id") == f"readout-{c}")
            points = [tuple(map(float, p.split(","))) for e in group.iter(SVG + "polyline") for p in e.get("points").split()]
            wanted = membranes["readout"][i, :LENGTHS[i], c]
            assert len(points) == LENGTHS[i] and [round(to_ms(x)) for x, _ in points] == list(range(LENGTHS[i]))
            found = np.array([to_score(y) for _, y in points])
            assert np.abs(found - wanted).max() < 0.01 * np.abs(membranes["readout"][i, :LENGTHS[i]]).max(), c
        texts = [e.text for e in root.iter(SVG + "text")]
        row = lines.splitlines()[1 + i].split(",")
        assert f"Sample {i} of events.h5: label {row[1]}, prediction {row[3]}" in texts, texts[0]
    answers = os.path.join(folder, "answers.npz")
    drawn = open(path, encoding="utf-8").read()
    done = neap("predict", run, data, "--plot", path, "--sample", 4, "--out", answers)
    assert done.returncode == 0 and done.stdout == f"{answers}: answers for 1 sample\n" and open(path, encoding="utf-8").read() == drawn, done
    os.remove(answers)


def figures_of_numbers(folder):
    """Features and outputs of gated cells are lines, or cells where they are many; long samples are thinned."""
    r, path, out = np.random.default_rng(1), os.path.join(folder, "n.h5"), os.path.join(folder, "n.svg")
    for steps, features, net in (30, 3, "gru:4,li"), (300, 12, "lstm:20,li"), (30000, 2, "lif:6,gru:9,li"), (2, 1, "rnn:1,li"):
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = r.normal(size=(2, steps, features)).astype("f4"), np.arange(2)
        run = train(folder, path, net, "--epochs", 1)
        assert neap("predict", run, path, "--plot", out, "--sample", 1).returncode == 0
        panels, _, root = panels_of(out)
        assert len(panels) == net.count(",") + 2 and os.path.getsize(out) < 1 << 20, (net, os.path.getsize(out))
        lines = [sum(e.get("class") == "series" for e in panel) for panel in panels]
        cells = [sum(len(e.get("d")) for e in panel if e.get("class") == "numbers") for panel in panels]
        assert lines[-1] == 2 and lines[0] == (features if features < 8 else 0) and (cells[0] > 0) == (features > 7), (lines, cells)
        shown = [re.search(r'stroke="(#\w+)"', m)[1] for m in re.findall(r'<line[^>]*/>(?=<text class="legend")', open(out, encoding="utf-8").read())
                 if "#222222" not in m]
        assert len(set(shown)) == len(shown) or len(shown) > 6, (net, shown)
        assert steps < 1000 or "each cell shows several steps or units" in "".join(e.text or "" for e in root.iter(SVG + "text"))
    assert lines == [1, 1, 2] and len(shown) == 4, (lines, shown)
    with h5py.File(path, "w") as file:
        file["x"], file["y"] = r.normal(size=(9, 5, 2)), r.normal(size=(9, 5, 1)) * 100
    run = train(folder, path, "gru:4,li", "--epochs", 1, "--readout", "step")
    assert neap("predict", run, path, "--plot", out).returncode == 0
    assert "readout, as learned" in open(out, encoding="utf-8").read()


def pictures(folder, run, data):
    """A PNG has pixels; a disk that is full leaves none, and what was there; names of classes are text."""
    where = os.path.join(folder, "pictures")
    os.mkdir(where)
    out = os.path.join(where, "f.png")
    done = neap("predict", run, data, "--plot", out)
    if not shutil.which("rsvg-convert"):
        assert done.returncode == 2 and "rsvg-convert" in done.stderr and not done.stdout and not os.listdir(where), done
        return
    with open(out, "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n" and min(struct.unpack(">II", head[16:])) > 1000, head
    for name in "f.png", "f.svg":
        with open(os.path.join(where, name), "w", encoding="ascii") as file:
            file.write("before")
        args = [NEAP, "predict", run, data, "--plot", os.path.join(where, name)]
        done = subprocess.run(args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)), check=False,
                              capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and "--plot" in done.stderr, done
        assert open(os.path.join(where, name), encoding="ascii").read() == "before"
    assert sorted(os.listdir(where)) == ["f.png", "f.svg"], os.listdir(where)
    named = os.path.join(folder, "<&\" named>.h5")
    with h5py.File(named, "w") as file:
        file["x"], file["y"] = np.random.default_rng(2).normal(size=(4, 9, 2)), np.arange(4) % 2
        file["classes"] = np.array(["<b>&amp;\"".encode(), ("zwölf" * 9).encode()])
    path = os.path.join(where, "named.svg")
    run = train(folder, named, "lif:4,li")
    assert neap("predict", run, named, "--plot", path).returncode == 0
    texts = [e.text for e in panels_of(path)[2].iter(SVG + "text")]
    assert 'readout: <b>&amp;"' in texts and any(t.startswith("readout: zwölfzwölf") and t.endswith("...") for t in texts), texts


def in_one_memory(folder):
    """A long sample, read in windows, takes no more memory than a short one."""
    used, path, out = [], os.path.join(folder, "long.h5"), os.path.join(folder, "long.npz")
    for steps in 50000, 1000000:
        x = np.zeros((1, steps, 3), "f4")
        x[0, ::7, 0] = x[0, ::5, 1] = 1
        with h5py.File(path, "w") as file:
            file["x"], file["y"] = x, np.zeros(1, "i4")
        if not used:
            run = train(folder, path, "lif:6:tau=30ms,li", "--epochs", 1, "--classes", 3)
        child = subprocess.Popen([NEAP, "predict", run, path, "--membranes", out, "--spikes", out + ".npz", "--sample", "0", "--plot",
                                  out + ".svg"],
                                 stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        assert status == 0
        with np.load(out) as found:
            assert found["layer0"].shape == (1, steps, 6)
        used.append(usage.ru_maxrss)
    assert used[1] < used[0] + 16000, f"KiB: {used}"


def nothing_left(folder, run, data):
    """A disk that is full and an interrupt leave no file, and those that were there as they were."""
    names, where = ("s.npz", "m.npz"), os.path.join(folder, "out")
    os.mkdir(where)
    args = [NEAP, "predict", run, data, "--spikes", os.path.join(where, "s.npz"), "--membranes", os.path.join(where, "m.npz")]
    for name in names:
        with open(os.path.join(where, name), "w") as file:
            file.write("before")
    done = subprocess.run(args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)), check=False,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "File too large" in done.stderr and done.stderr.count("\n") == 1, done
    child = subprocess.Popen([*args[:3], "randman:samples=100000,units=20,classes=3,steps=100", *args[4:]],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while len(os.listdir(where)) < 4 and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    assert "interrupted" in child.communicate(timeout=60)[1] and child.returncode == 1, child.returncode
    assert sorted(os.listdir(where)) == sorted(names), os.listdir(where)
    assert all(open(os.path.join(where, name)).read() == "before" for name in names)


def no_reader(folder, run):
    """If nobody reads the lines any more, the files are completed, without a message."""
    where = os.path.join(folder, "piped")
    os.mkdir(where)
    child = subprocess.Popen([NEAP, "predict", run, "randman:samples=3000,units=20,classes=3,steps=20", "--spikes", "s.npz",
                              "--membranes", "m.npz", "--plot", "f.svg"], cwd=where, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    child.stdout.close()
    said = child.stderr.read()
    assert child.wait(60) == 0 and said == "", (child.returncode, said)
    assert sorted(os.listdir(where)) == ["f.svg", "m.npz", "s.npz"], os.listdir(where)


def refused(folder, run, data):
    """Bad options end with one line and leave nothing."""
    out = os.path.join(folder, "never.npz")
    for says, more in {"has no layer '2'": ["--spikes", out, "--layer", "2"], "has no layer 'layer'": ["--spikes", out, "--layer", "layer"],
                       "has no layer '-1'": ["--spikes", out, "--layer=-1"], "li (readout)": ["--spikes", out, "--layer", "readout"],
                       "is given for two archives": ["--spikes", out, "--membranes", out], "has no sample 7": ["--sample", "7", "--spikes", out],
                       "use .npz": ["--membranes", "x"], "--layer selects what": ["--layer", "0"],
                       "no/never.npz": ["--spikes", os.path.join(folder, "no", "never.npz")],
                       "/dev/null": ["--membranes", "/dev/null/x.npz"],
                       "use .svg or .png": ["--plot", "x.pdf"], "'-' has an unknown ending": ["--plot", "-"],
                       "--plot: ": ["--plot", os.path.join(folder, "no", "x.svg")]}.items():
        done = neap("predict", run, data, *more)
        assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, (more, done)
        assert not done.stdout and not os.path.exists(out), (more, done.stdout)


def main():
    with Folder() as folder, Tap() as tap:
        data = write_events(os.path.join(folder, "events.h5"))
        for name in NETS:
            for precision in "float", "double":
                tap.run(f"{name}, {precision}", as_equations_say, folder, data, name, precision)
        for cell in "rnn", "lstm", "gru":
            tap.run(f"{cell}: PyTorch's outputs", gates_as_torch, folder, data, cell)
        samples = os.path.join(data_dir() or "", "data", "nir")
        if os.path.exists(os.path.join(samples, "lif_norse.nir")):
            tap.run("Norse's neuron", norse_sample, folder, samples)
        else:
            tap.skip("Norse's neuron", "no samples of NIR here (NEAP_DATA)")
        tap.run("egru: events", events_of_egru, folder, data)
        tap.run("one layer, one sample", layers_and_samples, folder, data)
        tap.run("targets of steps", steps_and_answers, folder)
        tap.run("long samples of many lengths", long_and_ragged, folder)
        tap.run("figure: spikes and scores", figure, folder, data)
        tap.run("figure: numbers", figures_of_numbers, folder)
        tap.run("memory does not grow", in_one_memory, folder)
        run = train(folder, data, NETS["two layers, recurrent"][0])
        tap.run("full disk, interrupt", nothing_left, folder, run, data)
        tap.run("no reader", no_reader, folder, run)
        tap.run("figure: PNG, full disk, names", pictures, folder, run, data)
        tap.run("refused", refused, folder, run, data)
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
