#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
An oscillator in NumPy (FitzHugh-Nagumo, Runge-Kutta steps): computes the gradient of its misfit to observations
with respect to parameters and initial state, with a memory budget. Three components of the gradient are compared
with finite differences.
"""
import argparse

import numpy as np

import neap

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=50_000)
parser.add_argument("--memory", default="64K", help="memory budget for states and tapes (default 64K)")
parser.add_argument("--slow", help="folder to offload states to")
given = parser.parse_args()


class Oscillator:
    """v' = v - v^3/3 - w + I, w' = (v + a - b w)/tau. The state is v, w and the misfit so far."""

    dt = 0.02

    def __init__(self, a, b, current, observed):
        self.a, self.b, self.current, self.observed = a, b, current, observed
        self.gradient = np.zeros(3)              # with respect to a, b and I; backward adds to it

    def slope(self, y):
        return np.array([y[0] - y[0] ** 3 / 3 - y[1] + self.current, (y[0] + self.a - self.b * y[1]) / 12.5])

    def slope_turned(self, y, g):
        """The transposed Jacobian of slope at y, times g; adds the gradient with respect to the parameters."""
        self.gradient += g[1] / 12.5, -g[1] * y[1] / 12.5, g[0]
        return np.array([g[0] * (1 - y[0] ** 2) + g[1] / 12.5, -g[0] - g[1] * self.b / 12.5])

    def points(self, y):
        """The four points at which a Runge-Kutta step evaluates the slope, and the slopes."""
        h, at, slopes = self.dt, [y], [self.slope(y)]
        for part in (h / 2, h / 2, h):
            at.append(y + part * slopes[-1])
            slopes.append(self.slope(at[-1]))
        return at, slopes

    def advance(self, x, t0, t1):
        for t in range(t0, t1):
            _, (k1, k2, k3, k4) = self.points(x[:2].copy())
            x[:2] += self.dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            x[2] += self.dt / 2 * (x[0] - self.observed[t]) ** 2

    def record(self, x, t0, t1, tape):
        for t in range(t0, t1):
            tape[t - t0] = x                     # the state before the step
            self.advance(x, t, t + 1)

    def turn(self, x, dx):
        dx[:] = 0, 0, 1
        return x[2]

    def backward(self, dx, t1, t0, tape):
        h = self.dt
        for t in reversed(range(t0, t1)):
            y = tape[t - t0, :2].copy()
            at, slopes = self.points(y)
            after = y + h / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
            dx[0] += dx[2] * h * (after[0] - self.observed[t])
            gk = [h / 6 * dx[:2], h / 3 * dx[:2], h / 3 * dx[:2], h / 6 * dx[:2]]
            dy = dx[:2].copy()
            for i, part in ((3, h), (2, h / 2), (1, h / 2), (0, 0)):
                back = self.slope_turned(at[i], gk[i])
                dy += back
                if i:
                    gk[i - 1] = gk[i - 1] + part * back
            dx[:2] = dy


def misfit(a=0.7, b=0.8, current=0.5, v=-1.0):
    """The loss of one forward run, for finite differences."""
    model, x = Oscillator(a, b, current, observed), np.array([v, 1.0, 0.0])
    model.advance(x, 0, given.steps)
    return x[2]


observed = np.sin(np.arange(given.steps) * 0.003)
model = Oscillator(0.7, 0.8, 0.5, observed)
result = neap.sweep(model, np.array([-1.0, 1.0, 0.0]), steps=given.steps, memory=given.memory, slow=given.slow)
loss, dx0 = result
print(f"loss {loss:.9f}; gradient with respect to a, b, I: {model.gradient}, to the initial v: {dx0[0]:.9g}")
print(f"{given.steps} steps, {given.steps * dx0.nbytes} bytes of tapes, in {result.stats.peak_measured}: "
      f"{result.plan.chosen}, {result.stats.advance_steps + result.stats.record_steps - given.steps} steps recomputed")
for name, at, found in (("a", 0.7, model.gradient[0]), ("current", 0.5, model.gradient[2]), ("v", -1.0, dx0[0])):
    difference = (misfit(**{name: at + 1e-6}) - misfit(**{name: at - 1e-6})) / 2e-6
    print(f"{name}: gradient {found:.9g}, finite difference {difference:.9g}")
    assert abs(found - difference) <= 1e-4 * max(abs(found), 1e-3), name
