#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
neap.jax.scan compared with the best nested jax.checkpoint at equal memory, in ten cases, and with lax.scan. Candidates
are all nestings of one and two levels of equal segments of a few lengths; among those whose memory is at most the
case's share of the memory of lax.scan, the fastest is used. neap gets the largest budget at which its memory is at most
1% above the memory of this candidate. Memory is what XLA allocates for temporaries. Times are CPU times, medians of
rounds in turn; ratios are medians of the ratios per round. The loss is summed in the carry.
    jax_scan_checkpoints.py [--rounds N] [--only NUMBER,NUMBER] [--steps T]
"""
import argparse
import statistics
import time

import jax
import jax.numpy as jnp

import neap.jax as nj
from jax_scans import gru, nested

INPUTS = 32
LENGTHS = (10, 20, 40, 80)  # of segments


def lstm(p, state, x):
    h, c = state
    i, f, g, o = jnp.split(x @ p["wi"] + h @ p["wh"] + p["b"], 4, 1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def rnn(p, h, x):
    return jnp.tanh(x @ p["wi"] + h @ p["wh"] + p["b"])


def normed(p, h, x):
    """A residual cell with layer norm and GELU."""
    y = (h - h.mean(1, keepdims=True)) / jnp.sqrt(h.var(1, keepdims=True) + 1e-5)
    return h + 0.1 * jax.nn.gelu(x @ p["wi"] + y @ p["wh"] + p["b"])


@jax.custom_jvp
def spike(v):
    return (v > 0).astype(v.dtype)


spike.defjvp(lambda v, dv: (spike(*v), dv[0] / (1 + jnp.abs(v[0])) ** 2))


def lif(p, state, x):
    v, z = state
    v = 0.9 * v * (1 - z) + x @ p["wi"] + z @ p["wh"]
    return v, spike(v - 1)


def ode(p, y, x):
    """A Runge-Kutta step of a neural ODE."""
    def slope(y):
        return jnp.tanh(y @ p["wh"] + p["b"])
    k1 = slope(y)
    k2 = slope(y + 0.05 * k1)
    k3 = slope(y + 0.05 * k2)
    return y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.1 * k3)) + 0.01 * x @ p["wi"]


# Name: cell, matrices per weight, arrays of the state (0: not a tuple), units, batch, share of the memory of lax.scan.
CASES = {
    "GRU 128, batch 16": (gru, 3, 0, 128, 16, 0.05), "GRU 256, batch 32": (gru, 3, 0, 256, 32, 0.05),
    "GRU 256, batch 32, less": (gru, 3, 0, 256, 32, 0.03), "GRU 64, batch 64": (gru, 3, 0, 64, 64, 0.05),
    "LSTM 128, batch 16": (lstm, 4, 2, 128, 16, 0.05), "LSTM 256, batch 8": (lstm, 4, 2, 256, 8, 0.1),
    "RNN 256, batch 32": (rnn, 1, 0, 256, 32, 0.1), "layer norm 128, batch 32": (normed, 1, 0, 128, 32, 0.05),
    "LIF 256, batch 32": (lif, 1, 2, 256, 32, 0.1), "neural ODE 64, batch 64": (ode, 1, 0, 64, 64, 0.05)}


def problem(case, steps):
    """Returns the gradient as a function of a scan, and its arguments."""
    cell, matrices, arrays, units, batch, _ = case
    keys = jax.random.split(jax.random.key(0), 3)
    p = {"wi": jax.random.normal(keys[0], (INPUTS, matrices * units)) / INPUTS ** 0.5,
         "wh": jax.random.normal(keys[1], (units, matrices * units)) / units ** 0.5, "b": jnp.zeros(matrices * units)}
    h = jnp.zeros((batch, units))

    def gradient(scan):
        def loss(p, start, xs):
            def step(carry, x):
                state = cell(p, carry[0], x)
                return (state, carry[1] + jnp.square(state[0] if arrays else state).mean()), None
            return scan(step, (start, jnp.zeros(())), xs)[0][1]
        return jax.value_and_grad(loss)
    return gradient, (p, (h,) * arrays if arrays else h, jax.random.normal(keys[2], (steps, batch, INPUTS)))


def compiled(gradient, scan, values):
    made = jax.jit(gradient(scan)).lower(*values).compile()
    return made, made.memory_analysis().temp_size_in_bytes


def seconds(run, values):
    start = time.process_time()
    jax.block_until_ready(run(*values))
    return time.process_time() - start


def best_nested(gradient, values, steps, most):
    """Returns the fastest candidate within ``most`` bytes: its lengths, compiled function and bytes."""
    candidates = [(a,) for a in LENGTHS] + [(a, b) for a in LENGTHS for b in (5, 10)]
    found = []
    for lengths in candidates:
        product = lengths[0] * (lengths[1] if len(lengths) > 1 else 1)
        if steps % product == 0 and product < steps:
            made, memory = compiled(gradient, nested(*lengths), values)
            if memory <= most:
                seconds(made, values)
                found.append((min(seconds(made, values) for _ in range(2)), lengths, made, memory))
    return min(found, key=lambda one: one[0])[1:]


def best_neap(gradient, values, most):
    """Returns neap's function with the largest budget whose memory is at most ``most``, and its bytes."""
    budget = 1.15 * most
    while True:
        made, memory = compiled(gradient, lambda *given: nj.scan(*given, memory=int(budget)), values)
        if memory <= 1.01 * most:
            return made, memory
        budget *= 0.96


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    only = [int(x) for x in given.only.split(",") if x]
    print(f"{'case':<26} {'lax.scan':>10} {'nested':>9} {'neap':>9}  {'segments':<9} {'neap/nested':>11} "
          f"{'neap/lax':>9}")
    for number, (name, case) in enumerate(CASES.items()):
        if only and number not in only:
            continue
        gradient, values = problem(case, given.steps)
        plain, whole = compiled(gradient, jax.lax.scan, values)
        lengths, other, memory = best_nested(gradient, values, given.steps, case[-1] * whole)
        ours, own = best_neap(gradient, values, memory)
        times = [[seconds(run, values) for run in (plain, other, ours)] for _ in range(given.rounds + 1)][1:]
        segments = "x".join(map(str, lengths))
        print(f"{name:<26} {whole / 1e6:7.1f} MB {memory / 1e6:6.2f} MB {own / 1e6:6.2f} MB  {segments:<9} "
              f"{statistics.median(c / b for _, b, c in times):11.2f} "
              f"{statistics.median(c / a for a, _, c in times):9.2f}", flush=True)


if __name__ == "__main__":
    main()
