# SPDX-License-Identifier: Apache-2.0
"""neap.jax: the same bits over all plans of one size of groups, agreement with lax.scan, budgets,
tiers, and what is refused."""
import gc
import itertools
import os

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

import neap  # noqa: E402
import neap.jax as nj  # noqa: E402
from neap.stores import Store  # noqa: E402

COSTS = (1.0, 1.3, 2.6)
B, N, I = 3, 6, 4
# Strategies that plan chains of equal steps with tapes in fast memory.
RUN = {"bptt", "standard", "remote", "hierarchical", "double", "revolve", "mixed", "online", "async", "multistage",
       "periodic", "disk-revolve", "auto"}


def random(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def gru(params, h, x):
    """Its output is the state."""
    az, ar, an = jnp.split(x @ params["wi"] + params["b"], 3, 1)
    rz, rr, rn = jnp.split(h @ params["wh"], 3, 1)
    z, n = jax.nn.sigmoid(az + rz), jnp.tanh(an + jax.nn.sigmoid(ar + rr) * rn)
    h = n + z * (h - n)
    return h, h


def decay(params, s, x):
    """A state of two arrays, a count of steps and a random key, and an output of two types."""
    key, one = jax.random.split(s["key"])
    kept = jax.random.bernoulli(one, 0.8, (B, N))
    u = jnp.tanh((s["u"] * 0.9 + x @ params["wi"][:, :N]) * kept)
    return {"u": u, "n": s["n"] + 1, "key": key, "m": s["m"] + u.sum()}, (u @ params["wo"], s["n"])


def alone(params, h, x):
    """A state of a tuple, and no output."""
    return h[0] + 0.1 * jnp.sin(h[1] @ params["wh"][:, :N]), h[1] * 0.99 + x @ params["wi"][:, :N]


def params():
    return {"wi": random(1, I, 3 * N), "wh": random(2, N, 3 * N) / 3, "b": random(3, 3 * N), "wo": random(4, N, 2)}


def start(step):
    if step is decay:
        return {"u": random(5, B, N), "n": jnp.zeros((), int), "key": jax.random.key(9), "m": jnp.zeros(())}
    return (random(5, B, N), random(6, B, N)) if step is alone else random(5, B, N)


def loss(p, last, out, target=1.0):
    out = out[0] if isinstance(out, tuple) else out @ p["wo"]
    return ((out - target) ** 2).mean() + sum(
        (x ** 2).sum() for x in jax.tree.leaves(last) if jnp.issubdtype(x.dtype, jnp.inexact))


def last_loss(p, last):
    return (last[0] ** 2).sum() + last[1].mean() + (p["b"] ** 2).sum()


STEPS = {"gru": (gru, loss), "decay": (decay, loss), "alone": (alone, last_loss)}


def plain(step, loss, argnums=0, **more):
    """The same by lax.scan."""
    def whole(p, s, x, *rest):
        def body(c, i):
            answer = step(p, c, i)
            return (answer, None) if step is alone else answer
        last, out = jax.lax.scan(body, s, x)
        return loss(p, last, *(() if step is alone else (out,)), *rest)
    return jax.jit(jax.value_and_grad(whole, argnums=argnums, **more))


def close(found, wanted):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
        assert jnp.abs(a - b).max() <= 1e-6 * jnp.abs(b).max() + 1e-6, jnp.abs(a - b).max()


def same(found, wanted):
    a, b = jax.tree.flatten(found), jax.tree.flatten(wanted)
    assert a[1] == b[1] and all(x.tobytes() == y.tobytes() for x, y in zip(jax.device_get(a[0]), jax.device_get(b[0])))


@pytest.mark.parametrize("name", STEPS)
def test_every_strategy(scratch, name):
    """Of 23 steps in groups of 1, 4 and 23: the last group of four is shorter."""
    step, lost = STEPS[name]
    p, s, x = params(), start(step), random(7, 23, B, I)
    wanted = plain(step, lost)(p, s, x)
    ran = set()
    for group in (1, 4, 23):
        first = nj.value_and_grad(step, lost, group=group)
        reference = first(p, s, x)
        close(reference, wanted)
        extra, state, tape = first.report().charged, first.report().state, first.report().tape
        assert first.report().counted_peak <= first.report().plan.peak
        for strategy in neap.strategies():
            for memory, slow in ((extra + 3 * state + 4 * tape, None), (extra + 8 * state + 7 * tape, "mem:4M")):
                made = nj.value_and_grad(step, lost, group=group, strategy=strategy, memory=memory, slow=slow, costs=COSTS)
                made._known = first._known  # what is compiled does not depend on the plan
                try:
                    found = made(p, s, x)
                except neap.BudgetError as error:
                    if not error.least:
                        continue
                    made = nj.value_and_grad(step, lost, group=group, strategy=strategy, memory=error.least, slow=slow,
                                             costs=COSTS)
                    made._known = first._known
                    found = made(p, s, x)
                same(found, reference)
                ran.add(strategy)
                told = made.report()
                assert told.counted_peak <= told.planned_peak <= told.memory - extra
                assert told.recoveries == told.outgrown == 0 and told.group == group and str(told)
    assert ran >= RUN, RUN - ran


def fused(p, h, x):
    """XLA rounds it otherwise where its tape is kept."""
    u = h * p["a"] + x * p["b"]
    v = u * u + h
    return v * jnp.exp(-u * u) + 0.1 * u * v


def test_steps_that_are_rounded_otherwise_with_a_tape():
    """The bits agree all the same, and what that costs is counted."""
    p = {"a": random(0, 256), "b": random(1, 256)}
    s, x = random(2, 32, 256), random(3, 20, 32, 256)
    first = nj.value_and_grad(fused, lambda p, h: (h ** 2).mean(), group=4)
    reference = first(p, s, x)
    group = next(iter(first._known.values())).groups[4]
    assert first.report().extra_steps == (0 if group.agree else 20)
    for strategy, states, tapes in (("revolve", 3, 1), ("standard", 4, 2), ("mixed", 4, 2)):
        made = nj.value_and_grad(fused, lambda p, h: (h ** 2).mean(), group=4, costs=COSTS, strategy=strategy,
                                 memory=first.report().charged + states * first.report().state + tapes * group.tape)
        same(made(p, s, x), reference)


def test_costs_are_measured_and_kept(scratch):
    p, s, x = params(), start(gru), random(7, 60, B, I)
    made = nj.value_and_grad(gru, loss, memory="20K", slow=scratch)
    reference = nj.value_and_grad(gru, loss, group=2)(p, s, x)
    for _ in range(2):
        value, gradient = made(p, s, x)
    told = made.report()
    assert told.counted_peak <= told.planned_peak <= 20 << 10 and told.plan.seconds > 0 and 1 <= told.group <= 50
    close((value, gradient), reference)
    assert os.listdir(scratch) == []


@pytest.mark.parametrize("strategy", ["revolve", "mixed", "standard"])
def test_counted_peak_is_the_plans(strategy):
    p, s, x = params(), random(5, 40, N), random(7, 24, 40, I)
    tape = nj.value_and_grad(gru, loss, group=3)
    tape(p, s, x)
    told = tape.report()
    made = nj.value_and_grad(gru, loss, group=3, strategy=strategy, costs=COSTS,
                             memory=told.charged + 5 * told.state + 3 * told.tape)
    made._known = tape._known
    made(p, s, x)
    told = made.report()
    assert told.counted_peak == told.planned_peak == told.plan.verify().peak <= told.memory - told.charged
    assert told.extra_steps > 0 and "planned" in str(told)


def test_tape_holds_no_parameters_and_no_inputs():
    """Bytes of a tape, against what the arrays of the step's backward take."""
    def step(p, h, x):
        return jnp.tanh(h @ p["w"] * x)
    p = {"w": random(0, 64, 64)}
    made = nj.value_and_grad(step, lambda p, h: (h ** 2).sum(), group=5)
    made(p, random(1, 8, 64), random(2, 20, 8, 64))
    assert made.report().tape <= 4 * 5 * 8 * 64 * 4  # not 16 KiB of w more, nor 10 KiB of inputs


def test_argnums_and_aux():
    p, s, x = params(), start(gru), random(7, 13, B, I)

    def with_aux(p, last, out, target):
        return loss(p, last, out, target), {"mean": out.mean(), "n": jnp.int32(3)}

    for argnums in (1, (2, 0)):
        (value, aux), found = nj.value_and_grad(gru, with_aux, argnums=argnums, has_aux=True, group=3, memory="20K",
                                                strategy="revolve", costs=COSTS)(p, s, x, 0.5)
        (wanted, other), gradients = plain(gru, with_aux, argnums, has_aux=True)(p, s, x, 0.5)
        close((value, aux, found), (wanted, other, gradients))
        assert jax.tree.structure(found) == jax.tree.structure(gradients)


def test_inputs_of_a_tree_and_none():
    p, s, x = params(), start(gru), random(7, 13, B, I)
    def step(p, h, i):
        return gru(p, h, i["x"] * i["t"])[0]
    def end(p, last):
        return (last ** 2).sum()
    tree = {"x": x, "t": jnp.arange(13), "none": None}
    found = nj.value_and_grad(step, end, group=4, memory="20K", costs=COSTS)(p, s, tree)
    wanted = jax.value_and_grad(lambda p: end(p, jax.lax.scan(lambda h, i: (step(p, h, i), None), s, tree)[0]))(p)
    close(found, wanted)
    def free(p, h, i):
        assert i is None
        return h @ p["wh"][:, :N] * 0.1
    found = nj.value_and_grad(free, end, group=4)(p, s, steps=9)
    wanted = jax.value_and_grad(lambda p: end(p, jax.lax.scan(lambda h, i: (free(p, h, i), None), s, length=9)[0]))(p)
    close(found, wanted)
    shorter = nj.value_and_grad(gru, loss, group=4)
    close(shorter(p, s, x, steps=7), plain(gru, loss)(p, s, x[:7]))


def test_lost_records_are_computed_again(scratch, monkeypatch):
    p, s, x = params(), random(5, 600, N), random(7, 40, 600, I)
    first = nj.value_and_grad(gru, loss, group=1)
    reference = first(p, s, x)

    def run(strategy):
        made = nj.value_and_grad(gru, loss, group=1, strategy=strategy, memory="400K", slow=scratch, costs=COSTS)
        made._known = first._known
        same(made(p, s, x), reference)
        assert os.listdir(scratch) == []
        return made.report()

    assert run("double").recoveries == 0
    wait, get, count = Store.wait, Store.get, itertools.count()

    def failing(self, transfer):
        wait(self, transfer)
        if next(count) % 3 != 2:
            raise neap.CorruptRecord("made up")

    monkeypatch.setattr(Store, "wait", failing)
    for strategy in ("double", "disk-revolve"):
        assert run(strategy).recoveries > 0
    monkeypatch.setattr(Store, "wait", wait)
    monkeypatch.setattr(Store, "get", lambda self, tier, place, tag, *rest: get(self, tier, place, tag + 1, *rest))
    told = run("double")
    assert told.recoveries == told.counts.gets > 0
    monkeypatch.setattr(Store, "get", get)
    monkeypatch.setattr(Store, "format", lambda self, places: self._dead.__setitem__(slice(None), [True]))
    told = run("double")
    assert told.recoveries == told.counts.gets > 0


def test_a_budget_that_cannot_do():
    p, s, x = params(), start(gru), random(7, 20, B, I)
    with pytest.raises(neap.BudgetError, match="are enough") as caught:
        nj.value_and_grad(gru, loss, memory=1000)(p, s, x)
    nj.value_and_grad(gru, loss, memory=caught.value.least, costs=COSTS)(p, s, x)


def test_exceptions_come_out_and_nothing_stays(scratch):
    p, s, x = params(), random(5, 600, N), random(7, 40, 600, I)
    handles = len(os.listdir("/proc/self/fd"))
    armed = [False]

    def check(h):
        if armed[0] and float(h[0, 0]) < 99:
            raise KeyError("half way")
        return h

    def step(p, h, i):
        jax.debug.callback(lambda h: check(h), h)
        return gru(p, h, i)

    made = nj.value_and_grad(step, loss, group=2, strategy="double", memory="1500K", slow=scratch, costs=COSTS)
    reference = made(p, s, x)
    armed[0] = True
    with pytest.raises(Exception, match="half way"):
        made(p, s, x)
        jax.effects_barrier()
    armed[0] = False
    same(made(p, s, x), reference)
    del made
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= handles and os.listdir(scratch) == []

    def broken(p, h, i):
        raise KeyError("traced")
    with pytest.raises(KeyError, match="traced"):
        nj.value_and_grad(broken, loss)(p, s, x)


def test_nothing_leaks():
    p, s, x = params(), start(gru), random(7, 20, B, I)
    made = nj.value_and_grad(gru, loss, group=3, memory="20K", strategy="revolve", costs=COSTS)
    def arrays():
        gc.collect()
        return len(jax.live_arrays())
    for _ in range(2):
        made(p, s, x)
    before = arrays()
    for _ in range(5):
        made(p, s, x)
    assert arrays() <= before


def test_not_inside_a_transformation():
    p, s, x = params(), start(gru), random(7, 5, B, I)
    made = nj.value_and_grad(gru, loss, group=2)
    for wrong in (jax.jit(made), lambda p, s, x: jax.grad(lambda p: made(p, s, x)[0])(p),
                  jax.vmap(made, in_axes=(None, None, 0))):
        with pytest.raises(neap.UsageError, match="outside jit, grad, vmap and scan"):
            wrong(p, s, x if wrong is not jax.vmap else x[None])


@pytest.mark.parametrize("says, call", [
    ("argnums", lambda p, s, x: nj.value_and_grad(gru, loss, argnums=3)),
    ("group", lambda p, s, x: nj.value_and_grad(gru, loss, group=0)),
    ("not a size", lambda p, s, x: nj.value_and_grad(gru, loss, memory="much")),
    ("strategy", lambda p, s, x: nj.value_and_grad(gru, loss, memory="1M", strategy="nonsense")(p, s, x)),
    ("first dimension", lambda p, s, x: nj.value_and_grad(gru, loss)(p, s, (x, x[:3]))),
    ("steps is required", lambda p, s, x: nj.value_and_grad(gru, loss)(p, s)),
    ("but inputs have", lambda p, s, x: nj.value_and_grad(gru, loss)(p, s, x, steps=99)),
    ("must return the next state", lambda p, s, x: nj.value_and_grad(lambda p, s, x: (s, s, s), loss)(p, s, x)),
    ("state of shape", lambda p, s, x: nj.value_and_grad(lambda p, s, x: (s[:1], s), loss)(p, s, x)),
    ("array of integers", lambda p, s, x: nj.value_and_grad(gru, loss, argnums=1)(p, jnp.arange(3), x)),
    ("params", lambda p, s, x: nj.value_and_grad(gru, loss)("text", s, x)),
])
def test_refusals(says, call):
    with pytest.raises(neap.UsageError, match=says):
        call(params(), start(gru), random(7, 6, B, I))


@pytest.mark.parametrize("disturbed", [1, 2, 3])
def test_costs_are_the_least_of_some_runs(monkeypatch, disturbed):
    """Another program that delays one of the measured runs does not change the plan."""
    from neap.jax import gradients
    calls = itertools.count()

    def clock():
        call = next(calls)  # four readings per run
        return call + (1000 if call > 4 * disturbed + 1 else 0)
    monkeypatch.setattr(gradients.time, "perf_counter", clock)
    vg = nj.value_and_grad(gru, lambda p, last, outputs: outputs.sum(), memory="64K", group=5)
    vg(params(), start(gru), random(7, 200, B, I))
    (known,) = vg._known.values()
    assert known.costs == {5: (1, 1, 1)}
