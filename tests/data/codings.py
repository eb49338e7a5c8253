#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Numbers that become spikes, spike for spike as NumPy has them by the formulae of snnTorch's
spikegen, whole and in parts; and as snnTorch itself has them, where NEAP_PYTHON has it.
    codings.py PRINT_SPIKES
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ.get("NEAP_SOURCE", "."), "tests", "cli"))
from harness import Tap, Folder, need  # noqa: E402

need("numpy")

import numpy as np  # noqa: E402

F4 = np.float32


def written(path, coding, *, seed=1, normalise=0, most=0, part=7):
    """Steps and spikes [steps][channels] of each sample, the same whole and in parts; or a line."""
    done = subprocess.run([sys.argv[1], path, coding, *map(str, (seed, normalise, most, part))], capture_output=True,
                          text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0:
        return lines[-1] if lines else f"code {done.returncode} {done.stderr}"
    found = []
    for whole, parts in zip(lines[::2], lines[1::2]):
        if whole != parts:
            return f"in parts: {parts[:80]}, whole: {whole[:80]}"
        steps, *pairs = whole.split()
        found.append((int(steps), [tuple(map(int, pair.split(":"))) for pair in pairs]))
    return found


def compare(found, wanted):
    """wanted: of each sample, an array [steps][channels] of 0 and 1."""
    if isinstance(found, str):
        return found
    for i, ((steps, spikes), array) in enumerate(zip(found, wanted, strict=True)):
        if steps != len(array) or len(set(spikes)) != len(spikes):
            return f"sample {i}: {steps} steps, {len(array)} wanted, {len(spikes)} spikes"
        have = np.zeros(array.shape, int)
        for t, u in spikes:
            have[t, u] += 1
        if not np.array_equal(have, array):
            t, u = np.argwhere(have != array)[0]
            return f"sample {i}, step {t}, channel {u}: {have[t, u]}, wanted {array[t, u]}"
    return None


def split(spikes):
    """1, 0 and -1 as channels of what rises, then of what falls."""
    return np.concatenate([spikes > 0, spikes < 0], axis=1).astype(int)


def delta(x, threshold=0.1, padding=False):
    """spikegen.delta with off_spike."""
    before = np.concatenate([x[:1] if padding else np.zeros_like(x[:1]), x[:-1]])
    return ((x - before) >= F4(threshold)).astype(int) - ((x - before) <= F4(-threshold))


def latency(x, steps, threshold=0.01, tau=0, linear=True, clip=False):
    """spikegen.latency of one row, normalised where tau is 0; spikes beyond the steps are left out."""
    if linear:
        t = tau or steps - 1
        time = np.minimum(F4(-t) * (x - F4(1)), F4(-t * (threshold - 1)))
    else:
        d = np.maximum(x, F4(threshold + 1e-7))
        time = F4(tau or 1) * np.log(d / (d - F4(threshold)))
        if not tau:
            time = time * F4(steps - 1) / time.max()
    array = np.zeros((steps, len(x)), int)
    for f, t in enumerate(np.round(time).astype(int)):
        if t < steps and not (clip and x[f] < F4(threshold)):
            array[t, f] = 1
    return array


def crossing(x, level):
    above = x >= F4(level)
    change = above[1:].astype(int) - above[:-1]
    return np.concatenate([np.zeros((1, x.shape[1]), int), change])


def clipped(x, gain=0.25, offset=0.5):
    return np.clip(gain * x.astype("f8") + offset, 0, 1).astype("f4")


def data(folder):
    r = np.random.default_rng(2)
    x = (np.cumsum(r.normal(size=(5, 60, 6)), 1) * 0.3).astype("f4")
    x[0, :, 0] = np.round(x[0, :, 0])  # changes of 0 and 1 exactly
    lengths = np.array([60, 1, 59, 2, 31])
    path = os.path.join(folder, "x.npz")
    np.savez(path, x=x, y=np.arange(5), lengths=lengths)
    rows = np.concatenate([x[i, :n] for i, n in enumerate(lengths)]).astype("f8")
    normal = ((x.astype("f8") - rows.mean(0)) / rows.std(0)).astype("f4")
    return path, [x[i, :n] for i, n in enumerate(lengths)], [normal[i, :n] for i, n in enumerate(lengths)]


def cases(path, plain, normal):
    """What each coding should make of the samples."""
    yield "delta", written(path, "delta"), [split(delta(x)) for x in plain]
    yield "delta, normalised", written(path, "delta:threshold=0.3", normalise=1), [split(delta(x, 0.3)) for x in normal]
    yield "delta, padded", written(path, "delta:threshold=1,padding=1"), [split(delta(x, 1, True)) for x in plain]
    yield "delta without falls", written(path, "delta:off=0"), [(delta(x) > 0).astype(int) for x in plain]
    yield "delta, rows of 3 steps", written(path, "delta:repeat=3"), [split(delta(np.repeat(x, 3, 0))) for x in plain]
    yield "delta, cut at 20", written(path, "delta", most=20), [split(delta(x[:20])) for x in plain]
    yield "threshold", written(path, "threshold"), [split(crossing(x, 0)) for x in plain]
    yield "threshold, a level", written(path, "threshold:level=0.5,off=0", normalise=1), \
        [(crossing(x, 0.5) > 0).astype(int) for x in normal]
    for name, keys, more in (("linear", "", {}), ("linear, tau", ",tau=4.5", {"tau": 4.5}),
                             ("clip", ",threshold=0.4,clip=1", {"threshold": 0.4, "clip": True}),
                             ("log, tau", ",linear=0,tau=5", {"linear": False, "tau": 5}),
                             ("log, tau, threshold", ",linear=0,tau=5,threshold=0.2", {"linear": False, "tau": 5, "threshold": 0.2})):
        yield f"latency: {name}", written(path, "latency:gain=0.25" + keys, normalise=1), \
            [latency(clipped(x[0]), len(x), **more) for x in normal]
    yield "latency, periods of 8", written(path, "latency:period=8", normalise=1), \
        [np.concatenate([latency(clipped(x[t]), 8)[:len(x) - t] for t in range(0, len(x), 8)]) for x in normal]
    yield "latency, rows of 10 steps, a period each", written(path, "latency:period=10,repeat=10", normalise=1), \
        [np.concatenate([latency(clipped(row), 10) for row in x]) for x in normal]
    yield "latency, cut at 20", written(path, "latency", normalise=1, most=20), \
        [latency(clipped(x[0]), min(20, len(x))) for x in normal]


def lowest(folder):
    """Logarithmic, normalised: as snnTorch, where a feature is below the threshold."""
    x = np.linspace(0, 1, 40, dtype="f4").reshape(1, 1, 40)
    path = os.path.join(folder, "static.npz")
    np.savez(path, x=x, y=[0])
    return compare(written(path, "latency:gain=1,offset=0,linear=0,repeat=50"), [latency(x[0, 0], 50, linear=False)])


def rates(folder):
    """Means of 4000 draws are within 4 deviations; other seeds, samples, steps, features draw others."""
    p = np.array([0, 0.02, 0.3, 0.5, 0.9, 1, -3, 7], "f4")
    path = os.path.join(folder, "rates.npz")
    np.savez(path, x=np.tile(p, (3, 1, 1)), y=[0, 0, 0])
    found = [written(path, "rate:gain=1,offset=0,repeat=4000", seed=seed) for seed in (1, 1, 2)]
    fixed = written(path, "rate:gain=1,offset=0,repeat=4000,seed=2", seed=9)
    if any(isinstance(f, str) for f in found) or found[0] != found[1] or fixed != found[2]:
        return f"draws: {str(found)[:200]}"
    arrays = []
    for _, spikes in found[0] + found[2]:
        array = np.zeros((4000, len(p)), int)
        for t, u in spikes:
            array[t, u] = 1
        arrays.append(array)
    p = np.clip(p, 0, 1).astype("f8")
    off = np.abs(np.mean(arrays, 1) - p) - 4 * np.sqrt(p * (1 - p) / 4000)
    if off.max() > 0:
        return f"means {np.mean(arrays, 1)}"
    middle = np.stack([a[:, k] for a in arrays for k in (2, 3, 4)]).astype("f8")
    most = np.abs(np.corrcoef(middle) - np.eye(len(middle))).max()
    steps = max(abs(np.corrcoef(m[1:], m[:-1])[0, 1]) for m in middle)
    return None if most < 0.08 and steps < 0.08 else f"correlations of {most} and {steps}"


SNNTORCH = """
import json, sys, numpy, torch, snntorch.spikegen as s
x = torch.tensor(numpy.load(sys.argv[1])["x"])
one = (x[:, 0] * 0.25 + 0.5).clamp(0, 1)
print(json.dumps({
    "delta": s.delta(x.transpose(0, 1), threshold=0.25, off_spike=True).transpose(0, 1).tolist(),
    "delta:padding": s.delta(x.transpose(0, 1), threshold=0.25, padding=True, off_spike=True).transpose(0, 1).tolist(),
    "linear": s.latency(one, num_steps=60, normalize=True, linear=True).transpose(0, 1).tolist(),
    "clip": s.latency(one, num_steps=60, normalize=True, linear=True, threshold=0.4, clip=True).transpose(0, 1).tolist(),
    "log": s.latency(one, num_steps=60, tau=5, bypass=True).transpose(0, 1).tolist(),
}))
"""


def snntorch(path):
    """None where the package itself makes the same spikes of 60 steps of all samples."""
    done = subprocess.run([os.environ["NEAP_PYTHON"], "-c", SNNTORCH, path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr[-300:]
    theirs = {name: [np.array(a).astype(int) for a in sets] for name, sets in json.loads(done.stdout).items()}
    codings = {"delta": "delta:threshold=0.25", "delta:padding": "delta:threshold=0.25,padding=1", "linear": "latency",
               "clip": "latency:threshold=0.4,clip=1", "log": "latency:linear=0,tau=5"}
    for name, coding in codings.items():
        wanted = [split(a) if "delta" in name else a for a in theirs[name]]
        problem = compare(written(path, coding), wanted)
        if problem:
            return f"{coding}: {problem}"
    return None


def has_snntorch():
    python = os.environ.get("NEAP_PYTHON")
    return python and subprocess.run([python, "-c", "import snntorch"], capture_output=True, check=False).returncode == 0


REFUSED = {"foo": "'foo' is not one of delta, latency, rate, threshold", "delta:foo=1": "has no key 'foo'; its keys are threshold, off",
           "delta:threshold=x": "threshold=x is not valid; it must be a number between", "delta:off=2": "a whole number between 0 and 1",
           "delta:off=1,off=1": "off is given twice", "delta:off": "KEY=VALUE", "delta:threshold=0": "it must be a number between",
           "rate:seed=-1": "seed=-1", "latency:linear=0,threshold=0": "threshold=0 is not valid with linear=0", "delta:repeat=1e9": "repeat=1e9",
           "delta:repeat=100000000": "more than 400000000"}


def main():
    with Tap() as tap, Folder() as folder:
        path, plain, normal = data(folder)
        for name, found, wanted in cases(path, plain, normal):
            tap.check(name, compare(found, wanted))
        tap.check("latency: log, normalised", lowest(folder))
        tap.check("rate", rates(folder))
        for coding, says in REFUSED.items():
            found = written(path, coding)
            tap.check(f"refused: {coding}", None if isinstance(found, str) and says in found else str(found)[:200])
        steps = os.path.join(folder, "steps.npz")
        np.savez(steps, x=np.zeros((2, 5, 1)), y=np.zeros((2, 5), int))
        found = written(steps, "delta:repeat=2")
        tap.check("refused: rows of 2 steps and targets of steps", None if "targets per step" in found else str(found)[:200])
        if has_snntorch():
            whole = os.path.join(folder, "whole.npz")
            np.savez(whole, x=np.load(path)["x"], y=np.arange(5))
            tap.check("snnTorch makes the same spikes", snntorch(whole))
        else:
            tap.skip("snnTorch makes the same spikes", "no snntorch in NEAP_PYTHON")


main()
