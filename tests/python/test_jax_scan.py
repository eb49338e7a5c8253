# SPDX-License-Identifier: Apache-2.0
"""neap.jax.scan: tables of plans, agreement with lax.scan, budgets, transformations, reports, and what is rejected."""
import functools
import os
import random

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import pytest  # noqa: E402

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import neap  # noqa: E402
import neap.jax as nj  # noqa: E402
from jax_scans import bits, close  # noqa: E402
from neap.jax.planning import NOMINAL, ROWS, Sizes, planned  # noqa: E402

jax.config.update("jax_enable_x64", True)

B, N, T = 3, 8, 40
W = 0.4 * jax.random.normal(jax.random.key(1), (N, N))
H = jnp.ones((B, N)) * 0.1
X = jax.random.normal(jax.random.key(2), (T, B, N))


def tanh(w):
    return lambda h, x: (jnp.tanh(h @ w + x), h.sum(1))


def loss(scan, w=W, h=H, x=X, **options):
    last, out = scan(tanh(w), h, x, **options)
    return (last ** 2).sum() + (out ** 3).mean()


def gradients(scan, **options):
    return jax.jit(jax.value_and_grad(functools.partial(loss, scan, **options), argnums=(0, 1, 2)))(W, H, X)


class Walker:
    """Executes a table with numbers of steps in place of states, and checks every row."""

    def __init__(self, made):
        self.made, self.slots, self.tapes, self.live = made, {}, {}, 0
        self.forward = 0
        self.reversed = made.steps

    def rows(self, rows, recompute):
        for load, save, begin, first, end, back in rows.tolist():
            if load >= 0:
                assert recompute
                self.live = self.slots[load]
            if save >= 0:
                assert save < self.made.table.slots
                self.slots[save] = self.live
            if end > begin:
                assert self.live == begin
            for t in range(begin, end):
                self.forward += 1
                if t >= first:
                    assert t - first < self.made.table.places
                    self.tapes[t - first] = t
            self.live = end if end > begin else self.live
            for t in range(end - 1, back - 1, -1):
                assert self.tapes.pop(t - first) == t == self.reversed - 1
                self.reversed = t

    def walk(self):
        self.rows(self.made.table.forward, False)
        assert self.live == self.made.steps
        self.rows(self.made.table.backward, True)
        assert self.reversed == 0 and not self.tapes
        again = self.made.steps if self.made.keeps == "state" else 0
        assert self.forward + again - self.made.steps == self.made.recomputed


@pytest.mark.parametrize("seed", range(30))
def test_tables(seed):
    pick = random.Random(seed)
    steps = pick.choice([1, 2, 3, 17, 100, 333])
    sizes = Sizes(*(pick.choice(some) for some in ((0, 8, 1000), (0, 8, 1000), (0, 100, 5000), (0, 700))))
    options = {"strategy": pick.choice(["auto", "auto", "standard", "mixed", "online", "revolve"]),
               "group": pick.choice([None, None, 1, 7]), "tape": pick.choice(["auto", "all", "state"])}
    if options["strategy"] == "auto" and seed % 3 == 0:
        options["host"] = 50_000
    try:
        planned(steps, sizes, 0, **options)
        least = 0
    except neap.BudgetError as error:
        least = error.least
    for memory in (least, 2 * least, 100 * least):
        try:
            made = planned(steps, sizes, memory, **options)
        except neap.BudgetError as error:  # pools of these strategies cannot always be separate
            assert options["strategy"] not in ("auto", "revolve"), error
            continue
        assert made.peak <= memory or memory == 0
        Walker(made).walk()
    with pytest.raises(neap.BudgetError):
        planned(steps, Sizes(8, 8, 100, 0), 100)


def test_tables_of_long_scans():
    """The table of many steps stays short; more memory means less time."""
    seconds = []
    for memory in (1 << 20, 16 << 20, 64 << 20):
        made = planned(10**5, Sizes(16384, 16384, 16384, 0), memory)
        assert made.table.rows <= ROWS and made.peak <= memory
        seconds.append(made.seconds)
    assert seconds == sorted(seconds, reverse=True)
    with pytest.raises(neap.UsageError, match="rows"):
        planned(10**5, Sizes(16, 16, 16, 0), 1000, strategy="revolve", group=1)


def test_all_tapes_if_they_fit():
    made = planned(100, Sizes(10, 10, 50, 0), 10_000)
    assert (made.recomputed, made.table.rows, made.keeps) == (0, 2, "all")


def test_states_instead_of_residuals():
    """Large residuals: storing states and recomputing each step once is faster than few residuals."""
    made = planned(1000, Sizes(1000, 1000, 10**6, 0), 3_200_000)
    assert made.keeps == "state" and planned(1000, made.sizes, 3_200_000, tape="all").seconds > made.seconds
    assert made.recomputed == 1000


def test_bits_over_plans():
    wanted, seen = gradients(jax.lax.scan), set()
    for options in ({"memory": 5000}, {"memory": 9000, "tape": "state"}, {"memory": 10**6},
                    {"memory": 9000, "group": 3, "static": True, "unroll": 2}):
        found = gradients(nj.scan, **options)
        close(found, wanted, 1e-12)
        if "static" not in options:  # another program for each length of a group
            seen.add(bits(found))
    assert len(seen) == 1


def test_without_gradient():
    """The bits of lax.scan, and nothing is planned: no budget is too small."""
    found, wanted = (jax.jit(f)() for f in (functools.partial(loss, nj.scan, memory=1),
                                            functools.partial(loss, jax.lax.scan)))
    assert bits(found) == bits(wanted)
    assert bits(gradients(nj.scan, memory=None)) == bits(gradients(jax.lax.scan))
    last, out = nj.scan(tanh(W), H, X[:0], memory=1)
    assert out.shape == (0, B) and (last == H).all()


def test_types():
    """Weak types, integers, booleans, random keys and several dtypes in carry and output."""
    def run(scan, w, **options):
        def step(c, t):
            x, h, n, key, on = c
            key, one = jax.random.split(key)
            h = jnp.where(on, jnp.tanh(h @ w.astype(h.dtype)), h) + jax.random.normal(one, h.shape, h.dtype) * x
            return (x * 0.9, h, n + t, key, ~on), (n, on, key, h.sum())
        start = 1.0, jnp.ones((B, N), jnp.float32), jnp.int32(0), jax.random.key(3), jnp.array(True)
        (x, h, n, _, _), (ns, ons, keys, sums) = scan(step, start, jnp.arange(T, dtype=jnp.int32), **options)
        return x + h.astype(float).sum() + sums.mean(), (n, ns, ons, jax.random.key_data(keys))
    wanted = jax.jit(jax.value_and_grad(functools.partial(run, jax.lax.scan), has_aux=True))(W)
    found = jax.jit(jax.value_and_grad(functools.partial(run, nj.scan, memory=8000), has_aux=True))(W)
    close(found, wanted, 1e-6)


def test_closed_over_arrays():
    """Gradients flow to what the step closes over; arrays that need none are not included in the budget."""
    data = jnp.ones((1000, B, N))

    def run(w, **options):
        scale = jnp.sin(w.sum())
        return nj.scan(lambda h, t: (jnp.tanh(h @ w + data[t]) * scale, None), H, jnp.arange(30), **options)[0].sum()
    told = nj.report(jax.grad(functools.partial(run, memory=9000)), W)
    assert told.scans[0].sizes.charged == 2 * (W.nbytes + 8)
    close(told.compiled(W), jax.grad(functools.partial(run, memory=None))(W), 1e-12)


def test_second_derivatives():
    def run(w, **options):
        return (nj.scan(tanh(w), H, X[:9], **options)[0] ** 2).sum()
    bounded, plain = functools.partial(run, memory=6000), functools.partial(run, memory=None)
    one = (W,), (jnp.ones_like(W),)
    close(jax.jvp(jax.grad(bounded), *one), jax.jvp(jax.grad(plain), *one), 1e-11)
    with pytest.raises(neap.UsageError, match="jax.jvp\\(jax.grad\\(f\\)"):
        jax.grad(lambda w: jax.grad(bounded)(w).sum())(W)
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(bounded, *one)


def gru(units, batch, steps, scan):
    keys = jax.random.split(jax.random.key(0), 3)
    p = [jax.random.normal(key, (units, 3 * units), jnp.float32) / units for key in keys[:2]]

    def run(p, x):
        def step(c, x):
            h, total = c
            (az, ar, an), (bz, br, bn) = jnp.split(x @ p[0], 3, 1), jnp.split(h @ p[1], 3, 1)
            z = jax.nn.sigmoid(az + bz)
            h = (1 - z) * jnp.tanh(an + jax.nn.sigmoid(ar + br) * bn) + z * h
            return (h, total + (h ** 2).mean()), None
        return scan(step, (jnp.zeros((batch, units), jnp.float32), jnp.float32(0)), x)[0][1]
    return jax.value_and_grad(run), (p, jax.ShapeDtypeStruct((steps, batch, units), jnp.float32))


@pytest.mark.parametrize("memory", [1 << 20, 4 << 20])
def test_xla_keeps_the_budget(memory):
    """What XLA allocates for temporaries is within the budget, and the report shows it."""
    told = nj.report(*_flat(gru(32, 32, 5000, functools.partial(nj.scan, memory=memory))))
    assert told.planned <= memory and 0.7 * memory < told.temporary < 1.05 * memory, (told.planned, told.temporary)
    assert "temporary" in str(told) and told.scans[0].steps == 5000 and told.scans[0].recomputed > 0


def _flat(pair):
    return pair[0], *pair[1]


def test_program_does_not_grow():
    """The traced program has the same equations for 100 and for 10,000 steps."""
    def count(jaxpr):
        return sum(1 + sum(count(getattr(v, "jaxpr", v)) for value in eqn.params.values()
                           for v in (value if isinstance(value, (tuple, list)) else [value])
                           if hasattr(getattr(v, "jaxpr", v), "eqns")) for eqn in jaxpr.eqns)
    sizes = set()
    for steps in (100, 10_000):
        f, arguments = gru(8, 4, steps, functools.partial(nj.scan, memory=30_000))
        sizes.add(count(jax.make_jaxpr(f)(*arguments).jaxpr))
    assert len(sizes) == 1


def test_vmap_and_batch():
    """batch= makes the plan for all examples of a vmap."""
    def run(h, **options):
        return (nj.scan(tanh(W), h, X, **options)[0] ** 2).sum()
    hs = jnp.stack([H * k for k in range(10)])
    told = nj.report(jax.vmap(jax.grad(functools.partial(run, memory=60_000, batch=10))), hs)
    alone = nj.report(jax.grad(functools.partial(run, memory=60_000)), H)
    assert told.scans[0].sizes.state == 10 * alone.scans[0].sizes.state and told.scans[0].peak <= 60_000
    assert told.temporary < 66_000 and told.scans[0].recomputed > alone.scans[0].recomputed
    close(told.compiled(hs), jax.vmap(jax.grad(functools.partial(run, memory=None)))(hs), 1e-12)


def test_sharded():
    """Inputs that are distributed over devices."""
    if len(jax.devices()) < 2:
        pytest.skip("one device")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("batch",))

    def place(x, *axes):
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)))
    h, x = jnp.concatenate([H, H[:1]]), jnp.concatenate([X, X[:, :1]], 1)
    f = jax.jit(jax.value_and_grad(functools.partial(loss, nj.scan, memory=9000), argnums=(0, 1, 2)))
    found = f(place(W), place(h, "batch"), place(x, None, "batch"))
    close(found, jax.value_and_grad(functools.partial(loss, jax.lax.scan), argnums=(0, 1, 2))(W, h, x), 1e-12)


def test_host_memory():
    """Checkpointed states in host memory: the budget limits only the rest."""
    told = nj.report(jax.grad(functools.partial(loss, nj.scan, memory=6000, host=2000, group=1)), W)
    assert told.scans[0].table.slots == 10 and told.scans[0].peak <= 6000
    close(told.compiled(W), jax.grad(functools.partial(loss, jax.lax.scan))(W), 1e-12)


def test_measure():
    costs = nj.measure(tanh(W), H, X, rounds=1)
    assert len(costs) == len(NOMINAL) and min(costs) > 0
    close(gradients(nj.scan, memory=9000, costs=costs), gradients(jax.lax.scan), 1e-12)
    with pytest.raises(neap.UsageError, match="inside a JAX transformation"):
        jax.jit(lambda h: nj.measure(tanh(W), h, X)[0])(H)


def test_least():
    """error.least is sufficient, and one byte less is not."""
    with pytest.raises(neap.BudgetError, match="memory=100 B is too small: 1 KiB are reserved for gradients") as found:
        jax.eval_shape(jax.grad(functools.partial(loss, nj.scan, memory=100)), W)
    least = found.value.least
    jax.eval_shape(jax.grad(functools.partial(loss, nj.scan, memory=least)), W)
    with pytest.raises(neap.BudgetError):
        jax.eval_shape(jax.grad(functools.partial(loss, nj.scan, memory=least - 1)), W)


REJECTED = {
    "carry of shape": lambda: nj.scan(lambda c, x: (c[:1], x), jnp.ones(3), jnp.ones(4)),
    "structure": lambda: nj.scan(lambda c, x: ((c, c), x), jnp.ones(3), jnp.ones(4)),
    "pair": lambda: nj.scan(lambda c, x: c, jnp.ones(3), jnp.ones(4)),
    "not unique, it could be 4 or 5": lambda: nj.scan(lambda c, x: (c, x), jnp.ones(3), jnp.ones(4), length=5),
    "length is required": lambda: nj.scan(lambda c, x: (c, x), jnp.ones(3)),
    "without dimensions": lambda: nj.scan(lambda c, x: (c, x), jnp.ones(3), 1.0, 3),
    "tape='some' is not valid": lambda: nj.scan(tanh(W), H, X, tape="some"),
    "group=0": lambda: nj.scan(tanh(W), H, X, group=0),
    "batch=0": lambda: nj.scan(tanh(W), H, X, batch=0),
    "costs has 2 entries": lambda: nj.scan(tanh(W), H, X, costs=(1, 2)),
    "static=True needs": lambda: nj.scan(tanh(W), H, X, static=True, strategy="mixed"),
    "cannot be combined with host": lambda: nj.scan(tanh(W), H, X, host="1M", strategy="mixed"),
    "host=10 is too small": lambda: gradients(nj.scan, memory=4000, host=10),
    "memory: '1X'": lambda: nj.scan(tanh(W), H, X, memory="1X"),
    "unknown strategy": lambda: gradients(nj.scan, memory=9000, strategy="none"),
}


@pytest.mark.parametrize("text", REJECTED)
def test_rejected(text):
    with pytest.raises(neap.UsageError) as found:
        REJECTED[text]()
    assert text in str(found.value) and "\n" not in str(found.value)
