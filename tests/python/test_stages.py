# SPDX-License-Identifier: Apache-2.0
"""neap.sweep over unequal stages, and neap.join: bits, budgets, tiers, journals, what models raise."""
import gc
import json
import os
import signal
import subprocess
import sys
import time
import weakref

import pytest

np = pytest.importorskip("numpy")

import layers_of_tests as layers  # noqa: E402
import neap  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "30"))
RUN = {"chain", "pofo", "auto"}


def bits(model, result):
    dx0 = result[1] if isinstance(result[1], list) else [result[1]]
    return [float(result[0]).hex(), *[x.tobytes() for x in dx0], *[g.tobytes() for g in model.gathered]]


def run(memory=None, kind=layers.Layers, **more):
    model = kind(**{name: more.pop(name) for name in ("lean",) if name in more})
    return model, neap.sweep(model, layers.start(model), stages=layers.stages(neap, model), memory=memory, **more)


def join(memory=None, **more):
    model = layers.Pair()
    starts = [layers.start(part) for part in model.parts]
    return model, neap.join(model, starts, [layers.stages(neap, part) for part in model.parts], memory=memory, **more)


def least(call, **more):
    """A budget that the refusal of a small one names."""
    with pytest.raises(neap.BudgetError, match="at least .*error.least") as caught:
        call(1000, **more)
    return caught.value.least


@pytest.mark.parametrize("lean", [True, False])
def test_bits_over_strategies_and_budgets(scratch, lean):
    model = layers.Layers(lean=lean)
    wanted = bits(model, layers.plain(model))
    made, result = run(lean=lean)
    assert bits(made, result) == wanted and made.passed == len(layers.WIDTHS) - 1
    most, ran = result.stats.peak_measured, set()
    for strategy in neap.strategies():
        for slow in (None, "mem:4M", scratch):
            for part in (1.0, 0.8, 0.6, 0.5):
                try:
                    made, result = run(int(most * part) + 64, lean=lean, strategy=strategy, slow=slow)
                except (neap.BudgetError, neap.UsageError):
                    continue
                ran.add(strategy)
                assert bits(made, result) == wanted
                assert result.stats.peak_measured <= result.stats.peak_planned <= int(most * part) + 64
                assert result.plan.verify().peak == result.stats.peak_planned == result.plan.peak
    assert ran >= RUN, RUN - ran
    assert os.listdir(scratch) == []


def test_finite_differences():
    model, result = run("40K")
    h = 1e-5
    for array, gradient in ((model.w[3], model.dw[3]), (model.b[9], model.db[9])):
        at = np.unravel_index(5, array.shape)
        found = []
        for sign in (1, -1):
            array[at] += sign * h
            x = layers.plain_forward(model, layers.start(model))
            found.append(model.turn(x, np.empty_like(x)))
            array[at] -= sign * h
        assert abs((found[0] - found[1]) / (2 * h) - gradient[at]) <= 1e-6 * abs(gradient[at]) + 1e-10
    x0, found = layers.start(model), []
    for sign in (1, -1):
        x0[2, 3] += sign * h
        x = layers.plain_forward(model, x0)
        found.append(model.turn(x, np.empty_like(x)))
        x0[2, 3] -= sign * h
    assert abs((found[0] - found[1]) / (2 * h) - result.dx0[2, 3]) <= 1e-6 * abs(result.dx0[2, 3]) + 1e-10


def test_less_memory_costs_stages():
    """Down to the least: never fewer forward stages, never a peak above the budget."""
    model = layers.Layers()
    wanted, steps = bits(model, layers.plain(model)), 0
    most = run()[1].stats.peak_measured
    bottom = least(lambda memory: run(memory, strategy="chain"))
    for memory in (most, (most + bottom) // 2, bottom):
        made, result = run(memory, strategy="chain")
        assert bits(made, result) == wanted and result.stats.arena_bytes <= memory
        now = result.stats.advance_steps + result.stats.record_steps
        assert now >= steps
        steps = now
    assert steps > len(layers.WIDTHS) - 1


def test_a_slow_tier_takes_states(scratch):
    model = layers.Layers(lean=False)
    wanted = bits(model, layers.plain(model))
    bottom = least(lambda memory: run(memory, lean=False))
    moved = 0
    for memory in (bottom, bottom + 8192):
        for slow in (scratch, "mem:1M", ["mem:20K", scratch]):
            made, result = run(memory, lean=False, slow=slow, strategy="pofo")
            assert bits(made, result) == wanted
            moved += sum(result.stats.written)
    assert moved > 0
    made, result = run(bottom + 8192, lean=False, slow="mem:64", strategy="pofo")
    assert bits(made, result) == wanted


def test_flat_stages_and_temporaries():
    """neap.Stages in bytes: arrays are flat; each method may ask for its temporary."""
    sizes, seen = (64, 160, 24), []

    class Flat:
        def advance(self, i, x, y, tmp):
            seen.append((i, x.shape, y.shape, tmp.nbytes))
            y[:] = np.resize(x, y.shape) * 2

        def record(self, i, x, y, tape, tmp):
            assert tape.dtype == np.uint8 and len(tape) == 5
            self.advance(i, x, y, tmp)

        def turn(self, x, dx, tmp):
            assert tmp.nbytes == 99
            dx[:] = 1
            return x.sum()

        def backward(self, i, x, tape, dy, dx, tmp):
            assert x is None
            dx[:] = 0
            for k, d in enumerate(dy):
                dx[k % len(dx)] += 2 * d

    stages = neap.Stages(state=sizes, tape=[5, 5], advance=[1, 1], backward=[2, 2, 1],
                         advance_tmp=[128, 0], record_tmp=[128, 0], backward_tmp=[0, 7, 99])
    loss, dx0 = neap.sweep(Flat(), np.arange(8.0), stages=stages)
    assert loss == 4 * (0 + 1 + 2) and dx0.tolist() == [4, 4, 4] + [0] * 5
    assert (0, (8,), (20,), 128) in seen and (1, (20,), (3,), 0) in seen


def test_saved_plan_and_another_start(tmp_path):
    model, result = run("40K", strategy="chain")
    result.plan.save(tmp_path / "a.plan")
    again, found = run(None, plan=neap.load_plan(tmp_path / "a.plan"))
    assert bits(again, found) == bits(model, result) and found.stats.peak_planned == result.stats.peak_planned
    model = layers.Layers()
    with neap.StageSweep(model, layers.start(model), stages=layers.stages(neap, model), memory="40K") as sweep:
        first, other = sweep.run().loss, sweep.run(layers.start(model) + 1).loss
        assert other != first == sweep.run(layers.start(model)).loss
        with pytest.raises(neap.UsageError, match="x0 has dtype .* and shape"):
            sweep.run(np.zeros(3))
    with pytest.raises(neap.UsageError, match="closed"):
        sweep.run()


def test_trace(tmp_path):
    run("40K", trace=tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())


class Odd(Exception):
    pass


@pytest.mark.parametrize("name", ["advance", "record", "turn", "backward"])
def test_exceptions_come_out_as_they_are(scratch, name):
    model = layers.Layers()
    wanted = bits(model, layers.plain(model))
    model, armed = layers.Layers(), [True]
    kept = getattr(model, name)

    def raising(*arguments):
        if armed[0] and (name == "turn" or arguments[0] == 5):
            raise Odd("half way")
        return kept(*arguments)

    setattr(model, name, raising)
    with neap.StageSweep(model, layers.start(model), stages=layers.stages(neap, model), memory="36K",
                         strategy="chain", slow=scratch) as sweep:
        with pytest.raises(Odd, match="half way"):
            sweep.run()
        armed[0] = False
        for array in model.gathered:
            array[:] = 0
        assert bits(model, sweep.run()) == wanted


def test_ctrl_c_with_a_journal_is_resumed(scratch):
    model = layers.Layers()
    wanted = bits(model, layers.plain(model))
    model = layers.Layers()
    model.turn = lambda x, dx: (os.kill(os.getpid(), signal.SIGINT), layers.Layers.turn(model, x, dx))[1]
    arguments = dict(memory="36K", strategy="chain", journal=scratch)
    with pytest.raises(KeyboardInterrupt):
        neap.sweep(model, layers.start(model), stages=layers.stages(neap, model), **arguments)
    assert "neap.journal" in os.listdir(scratch)
    model, result = run(**arguments)
    assert bits(model, result) == wanted and result.stats.spared > 0 and os.listdir(scratch) == []


def test_kills_are_resumed_to_the_bit(scratch):
    """kill -9 at random moments after the process wrote to its journal; the same command goes on."""
    model = layers.Layers()
    wanted = bits(model, layers.plain(model))
    command = [sys.executable, layers.__file__, scratch]
    journal, pick = os.path.join(scratch, "neap.journal"), np.random.default_rng(7)
    wanted_kills, kills, resumed = int(os.environ.get("NEAP_KILLS", "3")), 0, 0
    for _ in range(20 * wanted_kills):
        began, kill = time.time_ns(), kills < wanted_kills
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while kill and process.poll() is None and (os.stat(journal).st_mtime_ns if os.path.exists(journal) else 0) < began:
            time.sleep(1e-3)
        if kill:
            time.sleep(float(pick.uniform(0, 0.05)))
            process.kill()
        out, _ = process.communicate()
        if process.returncode != 0:
            assert process.returncode == -signal.SIGKILL
            kills += 1
            continue
        found = json.loads(out)
        assert [found["loss"], found["dx0"], *found["gathered"]] == \
            [wanted[0], *[part.hex() for part in wanted[1:]]]
        assert os.listdir(scratch) == []
        resumed += found["spared"] > 0
        if kills >= wanted_kills and resumed:
            break
        kills = min(kills, wanted_kills - 1)  # it was killed before its first commit: once more
    assert kills >= wanted_kills and resumed


def test_random_chains():
    """Widths, kinds of tapes, budgets and tiers at random."""
    for seed in range(MANY):
        pick = np.random.default_rng(seed)
        widths = tuple(int(n) for n in pick.integers(1, 60, pick.integers(2, 14)))
        lean, model = bool(pick.integers(2)), None
        def made():
            return layers.Layers(widths, seed, lean)
        model = made()
        wanted = bits(model, layers.plain(model))
        stages = layers.stages(neap, model)
        bottom = neap.plan(stages=stages).problem.least
        memory = int(bottom * pick.uniform(1.02, 2)) + 1024
        model = made()
        result = neap.sweep(model, layers.start(model), stages=stages, memory=memory,
                            slow=[None, "mem:1M"][pick.integers(2)])
        assert bits(model, result) == wanted and result.stats.peak_measured <= memory


# Joins

def plain_join():
    model = layers.Pair()
    tapes = [[], []]
    ends = [layers.plain_forward(part, layers.start(part), tapes[b]) for b, part in enumerate(model.parts)]
    gradients = [np.empty_like(end) for end in ends]
    loss = model.turn(ends, gradients)
    return bits(model, (loss, [layers.plain_backward(part, tapes[b], gradients[b])
                               for b, part in enumerate(model.parts)]))


def test_join(scratch):
    wanted = plain_join()
    model, result = join()
    assert bits(model, result) == wanted and [dx.shape for dx in result.dx0] == [(16, 8), (16, 20)]
    most, ran = result.stats.peak_measured, set()
    for strategy in ("auto", "chain", "pofo", "join"):
        for slow in (None, "mem:4M", scratch):
            for part in (1.0, 0.8, 0.6):
                try:
                    model, result = join(int(most * part) + 4096, strategy=strategy, slow=slow)
                except (neap.BudgetError, neap.UsageError):
                    continue
                ran.add(strategy)
                assert bits(model, result) == wanted and result.stats.peak_measured <= int(most * part) + 4096
    assert ran >= {"auto", "chain", "join"}
    assert os.listdir(scratch) == []


def test_join_again_with_other_starts_and_a_journal(scratch):
    model = layers.Pair()
    starts, chains = [layers.start(part) for part in model.parts], [layers.stages(neap, p) for p in model.parts]
    with neap.JoinSweep(model, starts, chains) as sweep:
        first = sweep.run().loss
        assert sweep.run([starts[0] + 1, starts[1]]).loss != first == sweep.run(starts).loss
        with pytest.raises(neap.UsageError, match="x0 has length 1, but the sweep has 2 branches"):
            sweep.run(starts[:1])
    model = layers.Pair()
    model.turn = lambda xs, dxs: (os.kill(os.getpid(), signal.SIGINT), layers.Pair.turn(model, xs, dxs))[1]
    with pytest.raises(KeyboardInterrupt):
        neap.join(model, starts, chains, journal=scratch, strategy="chain")
    model, result = join(journal=scratch, strategy="chain")
    assert bits(model, result) == plain_join() and result.stats.spared > 0 and os.listdir(scratch) == []


class Recurrent:
    """Two chains of equal steps, h' = tanh(h W + u_t), each with its own W; the ends are multiplied."""

    STEPS, SHAPE = (23, 14), (8, 16)

    def __init__(self):
        self.w = [layers.drawn(5 + b, 16, 16) / 4 for b in range(2)]
        self.u = [layers.drawn(9 + b, steps, *self.SHAPE) for b, steps in enumerate(self.STEPS)]
        self.gathered = [np.zeros_like(w) for w in self.w]
        self.forward = 0

    def advance(self, b, i, x, y):
        np.tanh(x @ self.w[b] + self.u[b][i], out=y)
        self.forward += 1

    def record(self, b, i, x, y, tape):
        self.advance(b, i, x, y)
        tape["x"], tape["y"] = x, y

    def turn(self, xs, dxs):
        dxs[0][:], dxs[1][:] = xs[1], xs[0]
        return float((xs[0] * xs[1]).sum())

    def backward(self, b, i, x, tape, dy, dx):
        dz = dy * (1 - tape["y"] * tape["y"])
        self.gathered[b] += tape["x"].T @ dz
        np.matmul(dz, self.w[b].T, out=dx)

    def starts(self):
        return [layers.drawn(20 + b, *self.SHAPE) for b in range(2)]

    def chains(self):
        tape = np.dtype([("x", float, self.SHAPE), ("y", float, self.SHAPE)])
        return [neap.ArrayStages([self.SHAPE] * (steps + 1), [tape] * steps, advance=[1.0] * steps,
                                 record=[1.0] * steps, backward=[2.0] * steps + [0.0]) for steps in self.STEPS]

    def plain(self):
        ends, tapes = [], []
        for b, x in enumerate(self.starts()):
            for i in range(self.STEPS[b]):
                y, tape = np.empty_like(x), {}
                self.record(b, i, x, y, tape)
                tapes.append(tape)
                x = y
            ends.append(x)
        dxs = [np.empty_like(x) for x in ends]
        loss = self.turn(ends, dxs)
        for b, i in [(b, i) for b in (1, 0) for i in reversed(range(self.STEPS[b]))]:
            dx = np.empty_like(dxs[b])
            self.backward(b, i, None, tapes.pop(), dxs[b], dx)
            dxs[b] = dx
        return bits(self, (loss, dxs))


def test_join_of_equal_steps_as_planned():
    """A budget of a plan in bytes, with one state and one gradient more, does for the sweep; all gradients are
    bit-equal to those of a loop that keeps every tape."""
    wanted, (a, b) = Recurrent().plain(), Recurrent.STEPS
    state = 8 * 8 * 16
    least = neap.compare((a, b), state=state, tape=2 * state, memory="1G")["join"]
    budgets = [least.peak, least.peak // 2, least.peak // 4, 16 * state, 10 * state]
    for memory in budgets:
        planned = neap.plan((a, b), state=state, tape=2 * state, memory=memory, advance=1, record=1, backward=2)
        assert planned.chosen == "join" and planned.verify().peak == planned.peak <= memory
        for strategy in ("auto", "join"):
            model = Recurrent()
            result = neap.join(model, model.starts(), model.chains(), memory=memory + 2 * state, strategy=strategy)
            assert bits(model, result) == wanted
            assert a + b <= model.forward <= result.stats.advance_steps + result.stats.record_steps
            assert result.stats.peak_measured <= memory + 2 * state
    assert neap.plan((a, b), state=state, tape=2 * state).advance_steps == 0
    refused = pytest.raises(neap.BudgetError, neap.plan, (a, b), state=state, tape=2 * state, memory=5 * state)
    assert refused.value.least == 7 * state  # two adjoints, two checkpoints, the current state and its tape
    assert neap.plan((a, b), state=state, tape=2 * state, memory=7 * state).peak == 7 * state


def test_join_against_pytorch():
    """Stages whose forward and backward are PyTorch's: the gradients of plain autograd, to the bit."""
    torch = pytest.importorskip("torch")
    one = Recurrent()
    w = [torch.tensor(x, requires_grad=True) for x in one.w]
    x0 = [torch.tensor(x, requires_grad=True) for x in one.starts()]

    def step(b, i, h):
        return torch.tanh(h @ w[b] + torch.from_numpy(one.u[b][i]))

    ends = []
    for b, h in enumerate(x0):
        for i in range(one.STEPS[b]):
            h = step(b, i, h)
        ends.append(h)
    loss = (ends[0] * ends[1]).sum()
    loss.backward()
    wanted = [float(loss.detach()).hex(), *[x.grad.numpy().tobytes() for x in (*x0, *w)]]

    class Stages(Recurrent):
        def advance(self, b, i, x, y):
            with torch.no_grad():
                y[:] = step(b, i, torch.tensor(x)).numpy()

        def record(self, b, i, x, y, tape):
            self.advance(b, i, x, y)
            tape["x"] = x

        def turn(self, xs, dxs):
            xs = [torch.tensor(x, requires_grad=True) for x in xs]
            loss = (xs[0] * xs[1]).sum()
            loss.backward()
            dxs[0][:], dxs[1][:] = (x.grad.numpy() for x in xs)
            return float(loss.detach())

        def backward(self, b, i, x, tape, dy, dx):
            h = torch.tensor(tape["x"], requires_grad=True)
            dh, dw = torch.autograd.grad(step(b, i, h), (h, w[b]), torch.tensor(dy))
            dx[:] = dh.numpy()
            self.gathered[b] += dw.numpy()

    for memory, strategy in ((None, "auto"), ("24K", "auto"), ("24K", "join"), ("16K", "join")):
        model = Stages()
        assert bits(model, neap.join(model, model.starts(), model.chains(), memory=memory, strategy=strategy)) == wanted


def test_join_raises_what_the_model_raises():
    model = layers.Pair()
    def raising(b, i, x, tape, dy, dx):
        raise Odd(f"branch {b}")
    model.backward = raising
    starts, chains = [layers.start(part) for part in model.parts], [layers.stages(neap, p) for p in model.parts]
    with pytest.raises(Odd, match="branch"):
        neap.join(model, starts, chains, memory="200K")


def test_refusals():
    model = layers.Layers()
    x0, stages = layers.start(model), layers.stages(neap, model)
    for says, call in (
            ("but the first of the stages' states has", lambda: neap.sweep(model, x0[:3], stages=stages)),
            ("but the first of the stages' states has", lambda: neap.sweep(model, x0.astype("f4"), stages=stages)),
            ("stages is a list. Pass neap.ArrayStages", lambda: neap.sweep(model, x0, stages=[1, 2])),
            ("steps=3, but there are 16 stages. Remove steps, or pass 16", lambda: neap.sweep(model, x0, stages=stages, steps=3)),
            ("advance= cannot be combined with stages", lambda: neap.sweep(model, x0, stages=stages, advance=1)),
            ("gathered", lambda: neap.sweep(type("M", (), dict.fromkeys(
                ("advance", "record", "turn", "backward"), lambda *a: 0))(), x0, stages=stages, journal="/tmp")),
            ("no method record", lambda: neap.sweep(type("M", (), {"advance": lambda *a: 0})(), x0, stages=stages)),
            ("entries", lambda: neap.ArrayStages([(3,)], [(3,)])),
            ("dtype object, but they must be numbers", lambda: neap.ArrayStages([(3,), (3,)], [(3,)], dtype=object)),
            ("2 branches and 1 first states. Pass 1 to 8 branches", lambda: neap.join(layers.Pair(), [x0], [stages, stages])),
            ("or None for no limit", lambda: neap.sweep(model, x0, stages=stages, memory=0))):
        with pytest.raises(neap.UsageError, match=says):
            call()
    with pytest.raises(TypeError, match="unexpected"):
        neap.sweep(model, x0, stages=stages, nonsense=1)
    with pytest.raises(neap.BudgetError):
        neap.sweep(model, x0, stages=stages, memory=100)


def test_nothing_is_left_behind(scratch):
    gone, files = [], 0
    for i in range(30):
        model = layers.Layers()
        gone.append(weakref.ref(model))
        neap.sweep(model, layers.start(model), stages=layers.stages(neap, model), memory="64K", slow=[scratch, "mem:1M"])
        if i == 10:
            files = len(os.listdir("/proc/self/fd"))
    del model
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == files and not any(ref() for ref in gone)
