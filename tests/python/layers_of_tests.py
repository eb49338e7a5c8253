# SPDX-License-Identifier: Apache-2.0
"""Layers of unequal widths in NumPy, alone and as two branches, and the same reversed without neap.
As a program: a sweep with a journal in a folder, which prints its result.
    layers_of_tests.py FOLDER
"""
import json
import sys
import time

import numpy as np

WIDTHS = (8, 28, 48, 16, 40, 10, 24, 48, 6, 20, 44, 12, 4, 32, 16, 26, 8)
OTHER = (20, 44, 12, 36, 8)
BATCH = 16
FLAGS = {"tape_holds_output": True, "backward_needs_input": True}


def drawn(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


class Layers:
    """x_{i+1} = tanh(x_i W_i + b_i). ``lean``: the tape of a layer is its output and nothing else;
    otherwise it has the input and the derivative, in two fields."""

    def __init__(self, widths=WIDTHS, seed=1, lean=True):
        self.widths, self.lean = widths, lean
        sizes = list(zip(widths, widths[1:]))
        self.w = [drawn(seed + i, m, n) / np.sqrt(m) for i, (m, n) in enumerate(sizes)]
        self.b = [drawn(seed + 50 + i, n) * 0.1 for i, (_, n) in enumerate(sizes)]
        self.dw, self.db = [np.zeros_like(w) for w in self.w], [np.zeros_like(b) for b in self.b]
        self.passed = 0
        self.target = drawn(seed + 99, BATCH, widths[-1])

    @property
    def gathered(self):
        return [*self.dw, *self.db]

    def states(self):
        return [(BATCH, n) for n in self.widths]

    def tapes(self):
        if self.lean:
            return [(BATCH, n) for n in self.widths[1:]]
        return [np.dtype([("x", float, (BATCH, m)), ("d", float, (BATCH, n))])
                for m, n in zip(self.widths, self.widths[1:])]

    def advance(self, i, x, y, first=False):
        np.tanh(x @ self.w[i] + self.b[i], out=y)
        self.passed += first

    def record(self, i, x, y, tape, first=False):
        self.advance(i, x, y, first)
        if not self.lean:
            tape["x"], tape["d"] = x, 1 - y * y

    def turn(self, x, dx):
        dx[:] = (x - self.target) / BATCH
        return 0.5 * float(((x - self.target) ** 2).sum()) / BATCH

    def backward(self, i, x, tape, dy, dx):
        x, d = (x, 1 - tape * tape) if self.lean else (tape["x"], tape["d"])
        dz = dy * d
        self.db[i] += dz.sum(0)
        self.dw[i] += x.T @ dz
        np.matmul(dz, self.w[i].T, out=dx)


class Pair:
    """Two branches whose ends are multiplied."""

    def __init__(self):
        self.parts = [Layers(WIDTHS, 1), Layers(OTHER, 200)]

    @property
    def gathered(self):
        return [array for part in self.parts for array in part.gathered]

    def advance(self, b, i, x, y):
        self.parts[b].advance(i, x, y)

    def record(self, b, i, x, y, tape):
        self.parts[b].record(i, x, y, tape)

    def turn(self, xs, dxs):
        dxs[0][:], dxs[1][:] = xs[1], xs[0]
        return float((xs[0] * xs[1]).sum())

    def backward(self, b, i, x, tape, dy, dx):
        self.parts[b].backward(i, x, tape, dy, dx)


def start(model):
    return drawn(7, BATCH, model.widths[0])


def stages(neap, model, **more):
    """The chain of a model, with its work as seconds."""
    work = [1e-8 * m * n for m, n in zip(model.widths, model.widths[1:])]
    flags = FLAGS if model.lean else {}
    return neap.ArrayStages(model.states(), model.tapes(), advance=work,
                            backward=[2 * second for second in work] + [1e-7], **flags, **more)


def plain_forward(model, x, tapes=None):
    """The last state; with every tape gathered where a list is given."""
    for i, n in enumerate(model.widths[1:]):
        y = np.empty((BATCH, n))
        if tapes is None:
            model.advance(i, x, y)
        else:
            tape = y if model.lean else np.empty((), model.tapes()[i])
            model.record(i, x, y, tape)
            tapes.append((x, tape))
        x = y
    return x


def plain_backward(model, tapes, dx):
    for i in reversed(range(len(tapes))):
        x, tape = tapes[i]
        before = np.empty_like(x)
        model.backward(i, x, tape, dx.copy(), before)
        dx = before
    return dx


def plain(model):
    """(loss, dx0) of a loop that keeps every tape; the model gathers its gradients."""
    tapes = []
    x = plain_forward(model, start(model), tapes)
    dx = np.empty_like(x)
    loss = model.turn(x, dx)
    return loss, plain_backward(model, tapes, dx)


class Tardy(Layers):
    """Slow enough to be killed on its way."""

    def advance(self, i, x, y, first=False):
        time.sleep(2e-3)
        super().advance(i, x, y, first)


if __name__ == "__main__":
    import neap
    tardy = Tardy()
    result = neap.sweep(tardy, start(tardy), stages=stages(neap, tardy), memory="36K", strategy="chain",
                        journal=sys.argv[1], journal_seconds=-1)
    print(json.dumps({"loss": result.loss.hex(), "dx0": result.dx0.tobytes().hex(),
                      "gathered": [array.tobytes().hex() for array in tardy.gathered],
                      "spared": result.stats.spared}))
