#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A rollout of a small simulator in JAX: a cart with a pole, controlled by a small network, whose weights are improved by
gradients through all time steps. The rollout is inside vmap (over initial states), grad and jit. Prints the cost before
and after the updates.
"""
import argparse

import jax
import jax.numpy as jnp

import neap.jax as nj

parser = argparse.ArgumentParser(description=__doc__)
for name, value in (("steps", 2000), ("rollouts", 16), ("hidden", 16), ("updates", 20)):
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--memory", default="512K", help="memory budget of all rollouts together (default 512K)")
given = parser.parse_args()
DT, GRAVITY, LENGTH, CART, POLE = 0.005, 9.81, 0.5, 1.0, 0.1


def control(p, s):
    return 20 * jnp.tanh(jnp.tanh(s @ p["w"] + p["b"]) @ p["v"] + s @ p["k"])


def simulate(s, force):
    """One semi-implicit Euler step of position, angle and their velocities; the angle is 0 if the pole is upright."""
    x, a, vx, va = s
    sin, cos = jnp.sin(a), jnp.cos(a)
    push = (force + POLE * LENGTH * va ** 2 * sin) / (CART + POLE)
    turn = (GRAVITY * sin - cos * push) / (LENGTH * (4 / 3 - POLE * cos ** 2 / (CART + POLE)))
    vx, va = vx + DT * (push - POLE * LENGTH * turn * cos / (CART + POLE)), va + DT * turn
    return jnp.stack([x + DT * vx, a + DT * va, vx, va])


def rollout(p, start):
    """Returns the mean cost of one rollout."""
    def step(carry, _):
        s, cost = carry
        force = control(p, s)
        s = simulate(s, force)
        return (s, cost + (1 - jnp.cos(s[1])) + 0.1 * s[0] ** 2 / (1 + s[0] ** 2) + 1e-4 * force ** 2), None
    # Inside vmap, a step sees one rollout: batch= tells the plan how many there are.
    (_, cost), _ = nj.scan(step, (start, jnp.zeros(())), length=given.steps, memory=given.memory, batch=given.rollouts)
    return cost / given.steps


def cost(p, starts):
    return jax.vmap(rollout, in_axes=(None, 0))(p, starts).mean()


@jax.jit
def update(p, starts):
    value, gradient = jax.value_and_grad(cost)(p, starts)
    norm = jnp.sqrt(sum((g ** 2).sum() for g in gradient.values()))
    return value, {name: p[name] - 0.2 * g / (norm + 1e-6) for name, g in gradient.items()}


keys = jax.random.split(jax.random.key(0), 3)
p = {"w": jax.random.normal(keys[0], (4, given.hidden)), "b": jnp.zeros(given.hidden),
     "v": 0.1 * jax.random.normal(keys[1], (given.hidden,)), "k": jnp.array([0.05, 2.0, 0.1, 0.3])}
starts = 0.1 * jax.random.normal(keys[2], (given.rollouts, 4))

print(nj.report(update, p, starts))
values = []
for _ in range(given.updates):
    value, p = update(p, starts)
    values.append(float(value))
print(f"cost {values[0]:.4f} before, {min(values):.4f} after {given.updates} updates")
