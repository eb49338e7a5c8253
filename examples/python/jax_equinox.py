#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
An Equinox module as the step: a GRU over a long sequence, with a memory budget for its gradient, compared with
jax.lax.scan. The step closes over the module, and gradients flow to its arrays.
"""
import argparse
import functools

import equinox as eqx
import jax
import jax.numpy as jnp

import neap.jax as nj

parser = argparse.ArgumentParser(description=__doc__)
for name, value in (("steps", 2000), ("hidden", 64), ("batch", 16)):
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--memory", default="4M", help="memory budget (default 4M)")
given = parser.parse_args()


class Model(eqx.Module):
    """A GRU and a readout of its last state."""

    cell: eqx.nn.GRUCell
    readout: eqx.nn.Linear

    def __init__(self, key):
        one, other = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(8, given.hidden, key=one)
        self.readout = eqx.nn.Linear(given.hidden, 1, key=other)

    def __call__(self, xs, scan):
        def step(h, x):
            return jax.vmap(self.cell)(x, h), None
        last, _ = scan(step, jnp.zeros((xs.shape[1], given.hidden)), xs)
        return jax.vmap(self.readout)(last)


def gradient(scan):
    return eqx.filter_jit(eqx.filter_value_and_grad(lambda model, xs: (model(xs, scan) ** 2).mean()))


model = Model(jax.random.key(0))
xs = jax.random.normal(jax.random.key(1), (given.steps, given.batch, 8))
value, bounded = gradient(functools.partial(nj.scan, memory=given.memory))(model, xs)
_, plain = gradient(jax.lax.scan)(model, xs)
apart = max(float(abs(a - b).max() / abs(b).max()) for a, b in zip(jax.tree.leaves(bounded), jax.tree.leaves(plain)))
print(f"{given.steps} steps in {given.memory}: loss {value:.6f}, largest relative difference to lax.scan {apart:.1e}")
