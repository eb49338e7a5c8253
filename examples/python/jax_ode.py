#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
An oscillator in JAX (FitzHugh-Nagumo, Runge-Kutta steps of fixed length): computes the gradient of its misfit to
observations with respect to parameters and initial state inside jit, with a memory budget. The gradient is compared
with finite differences.
"""
import argparse

import jax
import jax.numpy as jnp

import neap.jax as nj

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--memory", default="64K", help="memory budget (default 64K)")
given = parser.parse_args()
jax.config.update("jax_enable_x64", True)
DT = 0.02


def slope(p, y):
    """v' = v - v^3/3 - w + I, w' = (v + a - b w) / 12.5."""
    v, w = y
    return jnp.stack([v - v ** 3 / 3 - w + p["current"], (v + p["a"] - p["b"] * w) / 12.5])


def runge_kutta(p, y):
    k1 = slope(p, y)
    k2 = slope(p, y + DT / 2 * k1)
    k3 = slope(p, y + DT / 2 * k2)
    return y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + slope(p, y + DT * k3))


def misfit(p, start, observed):
    def step(carry, target):
        y, total = carry
        y = runge_kutta(p, y)
        return (y, total + DT / 2 * (y[0] - target) ** 2), None
    (_, total), _ = nj.scan(step, (start, jnp.zeros(())), observed, memory=given.memory)
    return total


truth = {"a": jnp.array(0.7), "b": jnp.array(0.8), "current": jnp.array(0.5)}
guess = {"a": jnp.array(0.6), "b": jnp.array(0.8), "current": jnp.array(0.55)}
start = jnp.array([-1.0, 1.0])
_, observed = jax.lax.scan(lambda y, _: (runge_kutta(truth, y),) * 2, start, None, length=given.steps)
observed = observed[:, 0]

told = nj.report(jax.value_and_grad(misfit, argnums=(0, 1)), guess, start, observed)
value, (by_parameter, by_start) = told.compiled(guess, start, observed)
print(told)
print(f"misfit {value:.6f}, gradient with respect to the initial state {by_start}")
for name, gradient in by_parameter.items():
    h = 1e-6
    low, high = ({**guess, name: guess[name] + sign * h} for sign in (-1, 1))
    difference = (jax.jit(misfit)(high, start, observed) - jax.jit(misfit)(low, start, observed)) / (2 * h)
    print(f"{name:<8} gradient {gradient:.6f}, finite difference {difference:.6f}")
