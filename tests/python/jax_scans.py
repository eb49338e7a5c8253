# SPDX-License-Identifier: Apache-2.0
"""Random steps for neap.jax.scan: each is compared with jax.lax.scan, and over plans to the last bit.

    jax_scans.py --count N [--first SEED] [--seed N]
"""
import argparse
import random

import jax
import jax.numpy as jnp
import numpy as np

import neap
import neap.jax as nj
from jax_steps import PARTS, extra

TOLERANCE = {"float32": 1e-6, "float64": 1e-12}
KEYLESS = [name for name in sorted(PARTS) if name != "noise"]


def numbers(x):
    """An array of numbers for a leaf; for random keys their data, for float0 zeros."""
    if x.dtype == jax.dtypes.float0:
        return np.zeros(x.shape)
    return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)


def bits(tree):
    return b"".join(numbers(x).tobytes() for x in jax.tree.leaves(tree))


def close(found, wanted, tolerance):
    """Asserts equal structure, shapes and dtypes, and values that differ by ``tolerance`` of the largest one."""
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, a.dtype, b.shape, b.dtype)
        x, y = numbers(a), numbers(b)
        if x.size:
            assert np.abs(x - y.astype(x.dtype) if x.dtype != bool else x != y).max() <= \
                tolerance * max(1, np.abs(y).max()), (np.abs(x - y).max(), np.abs(y).max())


class Case:
    """A random step, its arguments, a loss, and a transformation around them, as a function of a seed."""

    def __init__(self, seed, dtype=None):
        pick = random.Random(seed)
        self.b, self.n, self.i = pick.randint(1, 3), pick.choice([4, 6]), pick.randint(1, 4)
        self.steps = pick.choice([1, 2, 7, 16, 23, 41])
        self.parts = ["dense", *pick.sample(sorted(PARTS), pick.randint(1, 3))]
        self.output = pick.choice(["none", "state", "tuple", "whole", "integers"])
        self.inputs, self.reverse = pick.choice(["array", "tree", "none"]), pick.random() < 0.3
        self.closed = pick.choice(["params", "derived", "table"])
        self.around = pick.choice(["jit", "jit", "none", "vmap", "vmap params", "nested", "inside", "remat",
                                   "remat step"])
        self.last = pick.choice(["sum", "outputs", "both"]) if self.output not in ("none", "integers") else "sum"
        self.dtype, self.pick, self.key = dtype or pick.choice(["float32", "float64"]), pick, jax.random.key(seed)

    def describe(self):
        return (f"{self.parts} T={self.steps} output={self.output} inputs={self.inputs} closed={self.closed} "
                f"around={self.around} loss={self.last} {self.dtype}{' reverse' if self.reverse else ''}")

    def arguments(self):
        keys, shape = iter(jax.random.split(self.key, 20)), (self.b, self.n)
        p = {f"w{k}": jax.random.normal(next(keys), (self.n, self.n), self.dtype) / self.n
             for k in range(len(self.parts))}
        p["v"] = jax.random.normal(next(keys), (self.i, self.n), self.dtype)
        s = {"h": jax.random.normal(next(keys), shape, self.dtype),
             **extra(self.parts, next(keys), shape, self.dtype)}
        x = jax.random.normal(next(keys), (self.steps, self.b, self.i), self.dtype)
        return p, s, {"array": x, "tree": {"a": x, "i": jnp.arange(self.steps)}, "none": None}[self.inputs]

    def step(self, p):
        """The step; what it closes over depends on parameters, on nothing, or is a table of integers."""
        table = jnp.arange(12) % 3
        if self.closed == "derived":
            p = {**p, "w0": jnp.sin(p["w0"]) @ p["w0"].T, "v": jax.nn.relu(p["v"])}

        def step(state, given):
            s = dict(state)
            x = {"array": lambda: given, "tree": lambda: given["a"] * (given["i"] % 2),
                 "none": lambda: jnp.ones((self.b, self.i), self.dtype)}[self.inputs]()
            for k, name in enumerate(self.parts):
                PARTS[name](p, s, x, k)
            if self.closed == "table":
                s["h"] = s["h"] * (1 - 0.1 * table[self.b].astype(self.dtype))
            if self.around == "inside":
                s["h"] = jax.lax.scan(lambda h, _: (jnp.sin(h @ p["w0"]), None), s["h"], None, length=2)[0]
            h = s["h"]
            return s, {"none": None, "state": h, "tuple": (h, {"a": h * 2, "b": None}),
                       "whole": (jnp.argmax(h, 1), h), "integers": jnp.argmax(h, 1)}[self.output]
        return jax.checkpoint(step) if self.around == "remat step" else step

    def loss(self, scan, p, moved, s, x, **options):
        last, out = scan(self.step(p), {**s, **moved}, x, self.steps, reverse=self.reverse, **options)

        def total(tree):
            rows = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]
            return sum(jnp.sin(jnp.abs(x) + x.real).sum() for x in rows)
        value = {"sum": lambda: total(last), "outputs": lambda: total(out), "both": lambda: total((last, out))}
        return value[self.last]() + (p["w0"] ** 2).sum(), (last, out)

    def run(self, scan, **options):
        """Loss, results and gradients of parameters, initial carry and xs, under the transformation."""
        p, s, x = self.arguments()
        moved = {name: leaf for name, leaf in s.items() if jnp.issubdtype(leaf.dtype, jnp.inexact)}
        floats = x if self.inputs != "tree" else x["a"]

        def loss(p, moved, floats):
            given = floats if self.inputs != "tree" else {**x, "a": floats}
            if self.around == "nested":  # the scan is the step of a scan
                def outer(moved, _):
                    value, (last, out) = self.loss(scan, p, moved, s, given, **options)
                    return {name: last[name] * 0.5 for name in moved}, (value, out)
                moved, (values, out) = jax.lax.scan(outer, moved, None, length=2)
                return values.sum(), out
            return self.loss(scan, p, moved, s, given, **options)

        one = jax.checkpoint(loss) if self.around == "remat" else loss
        whole = jax.value_and_grad(one, argnums=(0, 1) if x is None else (0, 1, 2), has_aux=True)
        if self.around.startswith("vmap"):
            axes = (0, None, None) if self.around == "vmap params" else (None, 0, None)
            whole = jax.vmap(whole, in_axes=axes)
            stacked = [jax.tree.map(lambda leaf: jnp.stack([leaf, leaf * 0.5]), tree) if axis == 0 else tree
                       for tree, axis in zip((p, moved), axes)]
            return jax.jit(whole)(*stacked, floats)
        return (whole if self.around == "none" else jax.jit(whole))(p, moved, floats)


def findings(case, plans=3):
    """Asserts that the gradients are those of lax.scan, and bit-identical over ``plans`` plans."""
    wanted, seen = case.run(jax.lax.scan), set()
    try:
        case.run(nj.scan, memory=1)
        least = 1  # nothing to compute
    except neap.BudgetError as error:
        least = error.least
    for i in range(plans):
        options = {"memory": least} if i == 0 else {
            "memory": int(least * case.pick.choice([1.2, 1.5, 2, 4, 30])),
            "tape": case.pick.choice(["all", "state", "auto"]),
            "strategy": case.pick.choice(["auto", "auto", "mixed", "revolve", "online"]),
            "group": case.pick.choice([None, None, 1, 3])}
        if options.get("strategy", "auto") == "auto" and case.pick.random() < 0.3:
            options.update(static=True, unroll=case.pick.choice([1, 2]))
        print(options)
        try:
            found = case.run(nj.scan, **options)
        except neap.BudgetError as error:
            options["memory"] = error.least
            found = case.run(nj.scan, **options)
        close(found, wanted, TOLERANCE[case.dtype] * 4)
        if not options.get("static"):  # another program for each length of a group
            seen.add(bits(found))
    assert len(seen) <= 1, f"{len(seen)} different results"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("count", 10), ("first", 0), ("seed", -1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    failed = 0
    for seed in [given.seed] if given.seed >= 0 else range(given.first, given.first + given.count):
        case = Case(seed)
        print(f"seed {seed}: {case.describe()}", flush=True)
        try:
            findings(case)
        except Exception as error:  # noqa: BLE001
            if given.seed >= 0:
                raise
            failed += 1
            print(f"FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)
    print(f"{failed} failed")


if __name__ == "__main__":
    main()
