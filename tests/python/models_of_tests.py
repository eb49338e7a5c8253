# SPDX-License-Identifier: Apache-2.0
"""Lorenz-96 in NumPy, with a forcing whose gradient it gathers, and the same reversed without neap.
As a program: a sweep with a journal in a folder, which prints its result.
    models_of_tests.py FOLDER
"""
import json
import sys
import time

import numpy as np

N, DT = 16, 0.002
STEPS = 120  # of the program


def start():
    return 8 + 0.01 * np.arange(N, dtype=float)


def slope(x, force):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8 + force


def turned(dx, x):
    """The transpose of slope's derivative at x, applied to dx."""
    a, b = dx * np.roll(x, 1), dx * (np.roll(x, -1) - np.roll(x, 2))
    return np.roll(a, 1) - np.roll(a, -2) + np.roll(b, -1) - dx


class Lorenz96:
    """Euler steps; a step's tape is the state before it."""

    def __init__(self):
        self.force, self.given, self.passed = np.zeros(N), np.zeros(N), 0
        self.gathered = [self.force]

    def advance(self, x, t0, t1, first=False):
        for _ in range(t0, t1):
            x += DT * slope(x, self.given)
        self.passed += first * (t1 - t0)

    def record(self, x, t0, t1, tape, first=False):
        for t in range(t1 - t0):
            tape[t] = x
            x += DT * slope(x, self.given)
        self.passed += first * (t1 - t0)

    def turn(self, x, dx):
        dx[:] = x
        return 0.5 * float((x * x).sum())

    def backward(self, dx, t1, t0, tape):
        for t in reversed(range(t1 - t0)):
            self.force += DT * dx
            dx += DT * turned(dx, tape[t])


def plain(x0, steps, force=0.0, at=0):
    """(loss, dx0, gradient of the force) of a loop that keeps every state."""
    model, x, dx = Lorenz96(), x0.copy(), np.empty_like(x0)
    model.given[at] += force
    tape = np.empty((steps, N))
    model.record(x, 0, steps, tape)
    loss = model.turn(x, dx)
    model.backward(dx, steps, 0, tape)
    return loss, dx, model.force


class Tardy(Lorenz96):
    """Slow enough to be killed on its way."""

    def advance(self, x, t0, t1, first=False):
        time.sleep(5e-4 * (t1 - t0))
        super().advance(x, t0, t1, first)


if __name__ == "__main__":
    import neap
    tardy = Tardy()
    result = neap.sweep(tardy, start(), steps=STEPS, memory="8K", strategy="revolve",
                        journal=sys.argv[1], journal_seconds=-1)
    print(json.dumps({"loss": result.loss.hex(), "dx0": result.dx0.tobytes().hex(),
                      "force": tardy.force.tobytes().hex(), "spared": result.stats.spared}))
