#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Time and memory of the gradient of a GRU in JAX: lax.scan, nested jax.checkpoint, jax.checkpoint of the step with
policies, Equinox's checkpointed scan, and neap.jax.scan with several budgets. The loss is summed in the carry, so no
outputs are stacked. Memory is what XLA allocates for temporaries (memory_analysis().temp_size_in_bytes; inputs and
outputs excluded). Every round runs all settings in turn; ratios to the first setting are medians of the ratios per
round. With --compile nothing runs. Prints a table.
    jax_scans.py [--rounds 5] [--steps 2000] [--units 256] [--batch 32] [--compile] SETTING...
SETTING: lax, step, step:POLICY (of jax.checkpoint_policies), nested:LENGTH, nested:LENGTH:LENGTH, equinox:CHECKPOINTS,
neap:MEMORY, neap:MEMORY:static
"""
import argparse
import statistics
import time

import jax
import jax.numpy as jnp

import neap.jax as nj

INPUTS = 64


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in (("rounds", 5), ("steps", 2000), ("units", 256), ("batch", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--compile", action="store_true", help="compile only, and print memory and seconds")
    parser.add_argument("settings", nargs="*", default=["lax", "nested:40", "equinox:60", "neap:16M", "neap:4M"])
    return parser.parse_args()


def nested(*lengths):
    """A scan in segments of segments; the first length is the innermost one."""
    def scan(step, carry, xs):
        inner = step
        for _ in lengths:
            inner = jax.checkpoint(lambda carry, rows, step=inner: jax.lax.scan(step, carry, rows))
        return jax.lax.scan(inner, carry, xs.reshape(-1, *lengths[::-1], *xs.shape[1:]))
    return scan


def equinox(checkpoints):
    def scan(step, carry, xs):
        import equinox.internal as eqxi
        return eqxi.scan(step, carry, xs, kind="checkpointed", checkpoints=checkpoints)
    return scan


def scan_of(setting):
    name, *more = setting.split(":")
    if name == "lax":
        return jax.lax.scan
    if name == "step":
        policy = getattr(jax.checkpoint_policies, more[0]) if more else None
        return lambda step, carry, xs: jax.lax.scan(jax.checkpoint(step, policy=policy), carry, xs)
    if name == "nested":
        return nested(*map(int, more))
    if name == "equinox":
        return equinox(int(more[0]))
    return lambda step, carry, xs: nj.scan(step, carry, xs, memory=more[0], static="static" in more)


def gru(p, h, x):
    a, b = x @ p["wi"] + p["b"], h @ p["wh"]
    (ar, az, an), (br, bz, bn) = jnp.split(a, 3, 1), jnp.split(b, 3, 1)
    z = jax.nn.sigmoid(az + bz)
    return (1 - z) * jnp.tanh(an + jax.nn.sigmoid(ar + br) * bn) + z * h


def gradient(scan):
    def loss(p, h, xs):
        def step(carry, x):
            h, total = carry
            h = gru(p, h, x)
            return (h, total + jnp.square(h).mean()), None
        return scan(step, (h, jnp.zeros(())), xs)[0][1]
    return jax.value_and_grad(loss)


def arguments(given):
    keys = jax.random.split(jax.random.key(0), 3)
    units = given.units
    p = {"wi": jax.random.normal(keys[0], (INPUTS, 3 * units)) / 8,
         "wh": jax.random.normal(keys[1], (units, 3 * units)) / units ** 0.5, "b": jnp.zeros(3 * units)}
    return p, jnp.zeros((given.batch, units)), jax.random.normal(keys[2], (given.steps, given.batch, INPUTS))


def main():
    given = options()
    values = arguments(given)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), values)
    compiled, results = {}, {}
    print(f"{'setting':<44} {'temporary':>10} {'trace':>7} {'compile':>8}", flush=True)
    for setting in given.settings:
        start = time.process_time()
        lowered = jax.jit(gradient(scan_of(setting))).lower(*shapes)
        middle = time.process_time()
        compiled[setting] = lowered.compile()
        end = time.process_time()
        memory = compiled[setting].memory_analysis().temp_size_in_bytes
        print(f"{setting:<44} {memory / 1e6:7.2f} MB {middle - start:5.2f} s {end - middle:6.2f} s", flush=True)
    if given.compile:
        return
    seconds = {setting: [] for setting in given.settings}
    for turn in range(given.rounds + 1):
        for setting, run in compiled.items():
            start = time.process_time()
            results[setting] = jax.block_until_ready(run(*values))
            if turn:  # the first round allocates
                seconds[setting].append(time.process_time() - start)
    first = given.settings[0]
    print(f"{'setting':<44} {'CPU time':>9} {'ratio':>6} {'difference':>11}")
    for setting in given.settings:
        ratio = statistics.median(a / b for a, b in zip(seconds[setting], seconds[first]))
        apart = max(float(abs(a - b).max() / abs(b).max())
                    for a, b in zip(jax.tree.leaves(results[setting]), jax.tree.leaves(results[first])))
        print(f"{setting:<44} {statistics.median(seconds[setting]):7.2f} s {ratio:6.2f} {apart:11.1e}")


if __name__ == "__main__":
    main()
