#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A spiking network in plain JAX: leaky integrate-and-fire neurons with recurrent weights and a surrogate gradient learn
to tell two spike rates apart, with a memory budget for the backward pass. Prints the loss before and after training.
"""
import argparse

import jax
import jax.numpy as jnp

import neap.jax as nj

parser = argparse.ArgumentParser(description=__doc__)
for name, value in (("steps", 5000), ("hidden", 64), ("inputs", 20), ("batch", 16), ("updates", 20)):
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--memory", default="2M", help="memory budget (default 2M)")
given = parser.parse_args()


@jax.custom_jvp
def spike(v):
    """A step function with the derivative of a fast sigmoid."""
    return (v > 0).astype(v.dtype)


spike.defjvp(lambda v, dv: (spike(*v), dv[0] / (1 + 10 * jnp.abs(v[0])) ** 2))


def network(p, spikes):
    """Returns the mean of a leaky readout over time. spikes: [T, batch, inputs], as bytes."""
    def step(carry, x):
        v, z, out, total = carry
        v = 0.95 * v * (1 - z) + x.astype(v.dtype) @ p["in"] + z @ p["recurrent"]
        z = spike(v - 1)
        out = 0.95 * out + 0.05 * (z @ p["out"])
        return (v, z, out, total + out / len(spikes)), None
    rest, none = jnp.zeros((spikes.shape[1], given.hidden)), jnp.zeros((spikes.shape[1], 2))
    (_, _, _, mean), _ = nj.scan(step, (rest, rest, none, none), spikes, memory=given.memory)
    return mean


def loss(p, spikes, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(10 * network(p, spikes)), labels[:, None], 1).mean()


@jax.jit
def update(p, spikes, labels):
    value, gradient = jax.value_and_grad(loss)(p, spikes, labels)
    norm = jnp.sqrt(sum((g ** 2).sum() for g in gradient.values()))
    return value, {name: p[name] - 0.1 * g / (norm + 1e-6) for name, g in gradient.items()}


keys = jax.random.split(jax.random.key(0), 4)
p = {"in": 0.3 * jax.random.normal(keys[0], (given.inputs, given.hidden)),
     "recurrent": 0.1 / given.hidden ** 0.5 * jax.random.normal(keys[1], (given.hidden, given.hidden)),
     "out": jax.random.normal(keys[2], (given.hidden, 2)) / given.hidden ** 0.5}
labels = jnp.arange(given.batch) % 2
rate = jnp.where(labels == 1, 0.06, 0.04)[:, None]
spikes = jax.random.bernoulli(keys[3], rate, (given.steps, given.batch, given.inputs)).astype(jnp.uint8)

print(nj.report(update, p, spikes, labels))
values = []
for _ in range(given.updates):
    value, p = update(p, spikes, labels)
    values.append(float(value))
print(f"loss {values[0]:.3f} before, {min(values):.3f} after {given.updates} updates")
