# SPDX-License-Identifier: Apache-2.0
"""Random steps for neap.jax: the same bits over all plans of one size of groups, and agreement with lax.scan."""
import os
import random

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import neap  # noqa: E402
import neap.jax as nj  # noqa: E402
from jax_steps import PARTS, extra  # noqa: E402
from test_jax import COSTS, close, same  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "200")) // 40
NO_PLAN = "needs|do not|does not|only|cannot|has no|no strategy"

class Case:
    """A random step and what it is given, as a function of a seed."""

    def __init__(self, seed):
        pick = random.Random(seed)
        self.b, self.n, self.i = pick.randint(1, 3), pick.choice([4, 6]), pick.randint(1, 4)
        self.steps, self.parts = pick.choice([1, 7, 16, 23]), ["dense", *pick.sample(sorted(PARTS), pick.randint(1, 3))]
        self.output = pick.choice(["state", "alone", "tuple", "whole", "view"])
        self.inputs, self.argnums = pick.choice(["array", "tree", "none"]), pick.choice([0, (0, 1), (0, 1, 2), 1])
        self.group, self.aux = pick.choice([1, 4, self.steps, None]), pick.random() < 0.2
        self.key, self.pick = jax.random.key(seed), pick
        if any(name in ("count", "mask", "noise") for name in self.parts) or self.inputs != "array":
            self.argnums = 0

    def describe(self):
        return (f"{self.parts} T={self.steps} output={self.output} inputs={self.inputs} argnums={self.argnums} "
                f"group={self.group}")

    def arguments(self):
        keys = iter(jax.random.split(self.key, 20))
        shape = (self.b, self.n)
        p = {f"w{k}": jax.random.normal(next(keys), (self.n, self.n)) / self.n for k in range(len(self.parts))}
        p["v"] = jax.random.normal(next(keys), (self.i, self.n))
        s = {"h": jax.random.normal(next(keys), shape), **extra(self.parts, next(keys), shape, float)}
        x = jax.random.normal(next(keys), (self.steps, self.b, self.i))
        return p, s, {"array": x, "tree": {"a": x, "i": jnp.arange(self.steps)}, "none": None}[self.inputs]

    def step(self, p, state, given):
        s = dict(state)
        x = {"array": lambda: given, "tree": lambda: given["a"] * (given["i"] % 2),
             "none": lambda: jnp.ones((self.b, self.i))}[self.inputs]()
        for k, name in enumerate(self.parts):
            PARTS[name](p, s, x, k)
        h = s["h"]
        return s if self.output == "alone" else (s, {"state": h, "tuple": (h, {"a": h * 2, "b": None}),
                                                     "whole": (jnp.argmax(h, 1), h), "view": h[:, 1:]}[self.output])

    def loss(self, p, last, *outputs):
        rows = [x for x in jax.tree.leaves((last, outputs)) if jnp.issubdtype(x.dtype, jnp.inexact)]
        value = sum(jnp.sin(jnp.abs(x) + x.real).sum() for x in rows) + (p["w0"] ** 2).sum()
        return (value, len(rows)) if self.aux else value

    def plain(self):
        p, s, x = self.arguments()

        def whole(p, s, x):
            def body(c, i):
                answer = self.step(p, c, i)
                return (answer, None) if self.output == "alone" else answer
            last, out = jax.lax.scan(body, s, x, length=self.steps)
            return self.loss(p, last, *(() if self.output == "alone" else (out,)))
        return jax.jit(jax.value_and_grad(whole, argnums=self.argnums, has_aux=self.aux))(p, s, x)

    def made(self, known, **options):
        """A call with these options, and its report. What is compiled does not depend on the plan."""
        vg = nj.value_and_grad(self.step, self.loss, argnums=self.argnums, has_aux=self.aux, **options)
        if known is not None:
            vg._known = known._known
        p, s, x = self.arguments()
        return vg(p, s, x, steps=self.steps), vg


def findings(case, scratch):
    """What is wrong with a case, as texts."""
    reference, first = case.made(None, group=case.group or case.steps)
    close(reference, case.plain())
    told, pick = first.report(), case.pick
    for memory in (told.charged + 3 * told.state + 2 * told.tape, told.charged + told.state * 8, 1):
        slow = pick.choice([None, None, "mem:4M", scratch])
        options = dict(group=case.group or case.steps, memory=memory, slow=slow, costs=COSTS,
                       strategy=pick.choice(["auto", "revolve", "mixed"] if slow is None else
                                            ["auto", "stream", "disk-revolve"]))
        for _ in range(2):
            try:
                found, made = case.made(first, **options)
            except neap.BudgetError as error:
                assert error.least or any(word in str(error) for word in NO_PLAN.split("|")), error
                if not error.least:
                    break
                options["memory"] = error.least
                continue
            same(found, reference)
            told = made.report()
            assert told.counted_peak + told.charged <= told.memory, options
            break
        else:
            raise AssertionError(f"error.least does not do: {options}")


@pytest.mark.parametrize("seed", range(max(1, MANY)))
def test_random_steps(seed, scratch):
    case = Case(seed)
    print(case.describe())
    findings(case, scratch)
