# SPDX-License-Identifier: Apache-2.0
"""neap.torch: gradient bits of plain autograd, budgets, and each row of the behaviours that
docs/python.md promises."""
import gc
import os
import random
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.show import show_least  # noqa: E402
from cells_of_tests import COSTS, B, I, N, Gru, case, flat, grads, plain, same, scanned  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "60"))
CELLS = ("gru", "lstm", "twice", "both")
BUDGETS = {"bptt": [None, "1M"], "standard": ["12K"], "revolve": ["8K"], "mixed": ["10K"], "double": ["8K"],
           "auto": [None, "9K", "20K"]}


@pytest.mark.parametrize("cell", CELLS)
def test_bits(cell):
    """Every strategy, groups of 1, 4, 7 and T, of 23 steps."""
    steps, ran = 23, 0
    given = case(cell, steps, 1)
    wanted = grads(plain, *given)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    for strategy, budgets in BUDGETS.items():
        for group in (1, 4, 7, steps):
            for memory in budgets:
                memory = memory and extra + neap.units.size(memory, "memory")
                try:
                    found = grads(scanned(memory=memory, strategy=strategy, group=group), *given)
                except neap.BudgetError as error:
                    if not error.least:
                        assert strategy == "double" or "tier" in str(error), (strategy, str(error))
                        continue
                    found = grads(scanned(memory=error.least, strategy=strategy, group=group), *given)
                same(found, wanted)
                ran += 1
                told = nt.report()
                if memory is not None:
                    assert told.counted_peak <= told.planned_peak
    assert ran >= 20


@pytest.mark.parametrize("kind", ["last", "outputs"])
def test_bits_of_losses(kind):
    for cell in CELLS:
        given = case(cell, 13, 5)
        wanted = grads(plain, *given, kind)
        for group in (1, 5):
            same(grads(scanned(group=group, strategy="revolve", memory="30K"), *given, kind), wanted)
            same(grads(scanned(group=group), *given, kind), wanted)


def test_bits_of_random_cells_and_budgets():
    for seed in range(MANY):
        pick = random.Random(seed)
        cell, steps = pick.choice(CELLS), pick.randint(1, 40)
        given = case(cell, steps, seed, pick.random() < 0.6)
        kind = pick.choice(["both", "last", "outputs"])
        group = pick.choice([None, 1, 2, 3, 5, steps, steps + 3])
        strategy = pick.choice(["auto", "revolve", "mixed", "standard", "bptt"])
        options = dict(group=group, strategy=strategy, memory=pick.choice(["6K", "10K", "20K", "100K"]))
        wanted = grads(plain, *given, kind)
        try:
            found = grads(scanned(**options), *given, kind)
        except neap.BudgetError as error:
            assert error.least > neap.units.size(options["memory"], "memory")
            options["memory"] = error.least
            found = grads(scanned(**options), *given, kind)
        same(found, wanted)
        assert nt.report().counted_peak <= nt.report().planned_peak


@pytest.mark.parametrize("strategy, memory", [("revolve", "12K"), ("mixed", "14K"), ("standard", "20K")])
def test_counted_peak_is_the_plans(strategy, memory):
    given = case("gru", 24, 3)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    for group in (1, 3):
        grads(scanned(memory=extra + neap.units.size(memory, "memory"), strategy=strategy, group=group), *given)
        told = nt.report()
        assert told.counted_peak == told.planned_peak <= neap.units.size(memory, "memory")
        assert told.outgrown == 0 and told.plan.verify().peak == told.planned_peak
        assert "planned" in str(told)


def test_dropout():
    """The generator's state is part of the state, and ends where a plain loop leaves it."""
    given = case("drop", 17, 4)
    wanted = grads(plain, *given)
    for options in (dict(), dict(group=1, strategy="revolve", memory="60K"), dict(group=4, memory="90K")):
        same(grads(scanned(**options), *given), wanted)
    with pytest.raises(neap.UsageError, match="rng=False, but the step draws random numbers"):
        grads(scanned(rng=False), *given)
    same(grads(scanned(rng=True, group=3, strategy="revolve", memory="60K"), *given), wanted)


class Growing(Gru):
    """Keeps more from step 17 on, after the measured steps."""

    def forward(self, h, x, t):
        h = self.cell(x, h)
        for _ in range(40 if 17 <= t < 23 else 0):
            h = torch.tanh(h * 1.01)
        return h, h


def test_a_tape_that_outgrows_the_plan():
    torch.manual_seed(0)
    given = Growing(), torch.randn(B, N), torch.randn(24, B, I), torch.nn.Linear(N, 2)
    wanted = grads(plain, *given)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    for group, memory in ((8, 11000), (4, 9000), (1, 6000)):
        for strategy in ("revolve", "bptt"):
            try:
                found = grads(scanned(group=group, strategy=strategy, memory=extra + memory), *given)
            except neap.BudgetError as error:
                assert strategy == "bptt"
                found = grads(scanned(group=group, strategy=strategy, memory=error.least + 4000), *given)
            same(found, wanted)
            told = nt.report()
            if group > 1:
                assert told.outgrown > 0 and told.recorded_again > 0
            assert told.counted_peak <= told.memory - extra
    last, out = nt.scan(given[0], given[1], given[2], group=1, strategy="revolve", memory=extra + 3000, costs=COSTS)
    with pytest.raises(neap.BudgetError, match="saved tensors of step 22 take") as caught:
        out.sum().backward()
    assert all(p.grad is not None for p in given[0].parameters())  # of the run before
    same(grads(scanned(group=1, strategy="revolve", memory=caught.value.least), *given), wanted)
    same(grads(scanned(group=1, strategy="revolve", memory=extra + 3000, strict=False), *given), wanted)


def test_budget_that_cannot_do():
    made, state, x, _ = case("gru", 20, 1)
    with pytest.raises(neap.BudgetError, match="is too small for strategy 'auto'") as caught:
        nt.scan(made, state, x, memory=1000)
    assert f"{show_least(caught.value.least)} are enough" in str(caught.value)
    nt.scan(made, state, x, memory=caught.value.least)


def test_budget_that_is_slow():
    """The least budget that works is named as slow, where the user's line stands; a larger one is not."""
    made, state, x, _ = case("gru", 200, 1)
    with pytest.raises(neap.BudgetError) as caught:
        nt.scan(made, state, x, memory=1000, costs=COSTS)
    with pytest.warns(RuntimeWarning, match="memory=.* times slower than storing everything") as warned:
        nt.scan(made, state, x, memory=caught.value.least, costs=COSTS)
    assert len(warned) == 1 and warned[0].filename == __file__
    assert "overhead" in str(nt.report())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nt.scan(made, state, x, memory="200K", costs=COSTS)


def test_budget_below_the_gradients():
    made, state, x, _ = case("gru", 20, 1)
    with pytest.raises(neap.BudgetError, match="memory=1000 B is too small.* are reserved for the gradients"):
        nt.scan(made, state, x, memory=1000)


@pytest.mark.parametrize("what", ["state", "output"])
def test_check_of_a_counter(what):
    """A step that counts its calls: found by check, in states and in outputs; a warning where no step is done again."""
    made, state, x, _ = case("gru", 40, 1)
    extra = 2 * sum(p.numel() * 4 for p in made.parameters())
    calls = [0]

    def step(h, row, t):
        calls[0] += 1
        h, out = made(h, row, t)
        factor = 1 + 1e-3 * calls[0]
        return (h * factor, out) if what == "state" else (h, out * factor)
    with pytest.raises(nt.NotDeterministic, match="a different state or output"):
        last, out = nt.scan(step, state, x, memory=extra + 8000, strategy="revolve", check=True)
        out.sum().backward()


def test_check_that_checks_nothing():
    """Said where no step is done again, at the user's line, of a scan that is a module as well."""
    made, state, x, _ = case("gru", 20, 1)
    for call in (lambda: nt.scan(made, state, x, memory="100M", check=True),
                 lambda: nt.Scan(made, memory="100M", check=True)(state, x)):
        with pytest.warns(RuntimeWarning, match="no step is recomputed") as warned:
            call()
        assert warned[0].filename == __file__


def test_buffers_around_a_function():
    """A function that changes buffers of a module around it is refused, however it reaches the module."""
    import functools
    norm, cell = torch.nn.BatchNorm1d(4), torch.nn.GRUCell(4, 4)

    def inner(h, row, norm=norm):
        return norm(cell(row, h))

    def step(h, row, t):
        return inner(h, row), None

    def open_step(norm, h, row, t):
        return norm(cell(row, h)), None
    class Plain:
        def __init__(self):
            self.parts = {"norms": [norm]}

        def step(self, h, row, t):
            return self.parts["norms"][0](cell(row, h)), None
    x, h = torch.randn(9, 6, 4), torch.zeros(6, 4)
    for one in (step, functools.partial(open_step, norm), Plain().step):
        with pytest.raises(neap.UsageError, match="buffer 'BatchNorm1d.num_batches_tracked'.*Pass the step as a"):
            nt.scan(one, h, x, memory="1M")
    norm.eval()  # it changes nothing then
    nt.scan(step, h, x, memory="1M")[0].sum().backward()
    assert norm.running_mean.abs().sum() > 0 and cell.weight_ih.grad is not None


def test_state_that_is_written_to():
    with pytest.raises(RuntimeError, match="step 0 modifies its state or a parameter in place"):
        nt.scan(lambda h, row, t: (h.add_(row), None), torch.zeros(3, requires_grad=True), torch.randn(4, 3), memory="1M")


# Behaviours, one by one

def test_backward_never_called():
    made, state, x, _ = case("gru", 20, 1)
    gc.disable()
    try:
        last, out = nt.scan(made, state, x, memory="20K", costs=COSTS)
        player = weakref.ref(out.grad_fn.player)
        assert player().held > 0
        del last, out
        assert player() is None  # no cycle: gone with the graph
    finally:
        gc.enable()


def test_retained_graph():
    for cell in ("lstm", "drop"):
        made, state, x, _ = case(cell, 20, 1)
        wanted = [*made.parameters(), *flat(state), x]
        last, out = nt.scan(made, state, x, memory="60K", group=3, costs=COSTS)
        loss = out.pow(2).mean() + flat(last)[0].sum()
        before = torch.get_rng_state()
        a = torch.autograd.grad(loss, wanted, retain_graph=True)
        b = torch.autograd.grad(loss, wanted, retain_graph=True)
        c = torch.autograd.grad(loss, wanted)
        same(a, b)
        same(a, c)
        assert nt.report().replays == 2 and torch.equal(before, torch.get_rng_state())
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(loss, wanted)


def test_double_backward_is_refused():
    made, state, x, _ = case("gru", 8, 1)
    _, out = nt.scan(made, state, x)
    found, = torch.autograd.grad(out.pow(2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        found.sum().backward()


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_exceptions_half_way(when):
    class Failing(Gru):
        armed = False

        def forward(self, h, x, t):
            if self.armed and t == 7:
                raise KeyError("half way")
            return super().forward(h, x, t)

    made, x = Failing(), torch.randn(20, B, I)
    run = nt.Scan(made, memory="6K", group=1, strategy="revolve", costs=COSTS)
    made.armed = when == "forward"
    with pytest.raises(KeyError, match="half way"):
        last, out = run(torch.zeros(B, N), x)
        made.armed = True
        out.sum().backward()
    assert all(p.grad is None for p in made.parameters())
    made.armed = False
    if when == "backward":
        out.sum().backward()  # the graph was not freed: it begins anew
        wanted = [p.grad.clone() for p in made.parameters()]
        made.zero_grad()
        plain(made, torch.zeros(B, N), x)[1].sum().backward()
        same([p.grad for p in made.parameters()], wanted)
    made.zero_grad()
    run(torch.zeros(B, N), x)[1].sum().backward()
    assert all(p.grad is not None for p in made.parameters())


def test_changed_in_place():
    made, state, x, _ = case("gru", 12, 1)
    for options in (dict(), dict(memory="8K", strategy="revolve", group=1)):
        for victim in (made.cell.weight_hh, state, x):
            _, out = nt.scan(made, state, x, costs=COSTS, **options)
            with torch.no_grad():
                victim += 1
            with pytest.raises(RuntimeError, match="inplace operation"):
                out.sum().backward()


def test_a_step_that_writes_into_its_state():
    w = torch.nn.Parameter(torch.ones(N))

    def step(h, x, t):
        h += x * w
        return h, None

    for options in (dict(), dict(memory="1K", strategy="revolve", group=1, costs=COSTS)):
        with pytest.raises(RuntimeError, match="inplace|in place"):
            nt.scan(step, torch.zeros(N), torch.randn(9, N), **options)[0].sum().backward()


def test_a_step_that_changes_buffers():
    class Normed(Gru):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(N)

        def forward(self, h, x, t):
            return self.norm(self.cell(x, h)), None

    made = Normed()
    with pytest.raises(neap.UsageError, match="buffer 'norm"):
        nt.scan(made, torch.zeros(B, N), torch.randn(5, B, I))
    made.eval()
    nt.scan(made, torch.zeros(B, N), torch.randn(5, B, I))[0].sum().backward()
    made.train()
    with torch.no_grad():  # a plain loop
        nt.scan(made, torch.zeros(B, N), torch.randn(5, B, I))


def test_captured_tensors():
    torch.manual_seed(2)
    cell, w, x = torch.nn.GRUCell(I, N), torch.randn(N, N, requires_grad=True), torch.randn(15, B, I)

    def step(h, i, t):
        h = cell(i, h @ w)
        return h, h

    wanted = [w, *cell.parameters()]
    _, out = plain(step, torch.zeros(B, N), x)
    a = torch.autograd.grad(out.pow(2).sum(), wanted)
    for options in (dict(), dict(memory="10K"), dict(memory="10K", strategy="revolve", group=1)):
        _, out = nt.scan(step, torch.zeros(B, N), x, costs=COSTS, **options)
        same(torch.autograd.grad(out.pow(2).sum(), wanted), a)

    made = w * 0.5  # not a leaf

    def other(h, i, t):
        h = cell(i, h @ made)
        return h, h

    if hasattr(made.grad_fn, "_sequence_nr"):
        with pytest.raises(neap.UsageError, match="MulBackward0"):
            nt.scan(other, torch.zeros(B, N), x)
    _, out = plain(other, torch.zeros(B, N), x)
    a = torch.autograd.grad(out.pow(2).sum(), wanted, retain_graph=True)
    _, out = nt.scan(other, torch.zeros(B, N), x, params=[made], memory="10K", costs=COSTS)
    same(torch.autograd.grad(out.pow(2).sum(), wanted), a)


def test_no_gradient_needed():
    made, state, x, _ = case("twice", 9, 1, grad=False)
    last, out = plain(made, state, x)
    with torch.no_grad():
        found = nt.scan(made, state, x, memory=1)
    same(flat(found), flat((last, out)))
    assert nt.report().plan is None and "plain loop" in str(nt.report())
    for p in made.parameters():
        p.requires_grad_(False)
    same(flat(nt.scan(made, state, x, memory=1)), flat((last, out)))
    def step(h, i, t):
        return h * 2 + i, h
    assert not nt.scan(step, torch.zeros(3), torch.ones(4, 3))[0].requires_grad


def test_hooks_and_accumulation():
    """Hooks of parameters see one gradient a scan, and may change it."""
    made, state, x, _ = case("gru", 15, 1)
    seen = []
    hook = made.cell.weight_hh.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    results = []
    for run in (plain, scanned(group=2, memory="30K", strategy="revolve")):
        made.zero_grad()
        for scale in (1, 3):
            (run(made, state, x)[1] * scale).pow(2).mean().backward()
        results.append([p.grad.clone() for p in made.parameters()])
    same(results[1], results[0])
    assert len(seen) == 4
    same(seen[2:], seen[:2])
    hook.remove()


def test_reduce():
    made, state, x, _ = case("both", 15, 1)
    target = torch.randn(15, B, N)

    def score(out, t):
        return {"all": (out - target[t]).pow(2).mean(), "first": out[0, 0]}

    def loop(made, state, x):
        total = None
        for t in range(len(x)):
            state, out = made(state, x[t], t)
            row = score(out, t)
            total = row if total is None else {key: total[key] + row[key] for key in row}
        return state, total

    rows = []
    for run in (loop, scanned(reduce=score), scanned(reduce=score, group=2, memory="16K")):
        last, total = run(made, state, x)
        loss = total["all"] * 2 + total["first"] + last.sum()
        rows.append([loss.detach(), *torch.autograd.grad(loss, [*made.parameters(), state, x], allow_unused=True)])
    same(rows[1], rows[0])
    same(rows[2], rows[0])


def test_inputs_as_a_function_and_none():
    made, state, x, _ = case("gru", 15, 1)
    wanted = [*made.parameters(), state]
    a = torch.autograd.grad(plain(made, state, x.detach())[1].sum(), wanted)
    found = nt.scan(made, state, lambda t: x.detach()[t], steps=15, group=4, memory="20K", costs=COSTS)
    same(torch.autograd.grad(found[1].sum(), wanted), a)

    def step(h, nothing, t):
        assert nothing is None
        return torch.tanh(h @ made.cell.weight_hh[:N]), None
    last, out = nt.scan(step, state, steps=9)
    assert out is None
    b = torch.autograd.grad(plain(step, state, None, 9)[0].sum(), state)
    same(torch.autograd.grad(last.sum(), state), b)
    with pytest.raises(neap.UsageError, match="steps is required"):
        nt.scan(step, state)


def test_an_array_that_inputs_are_parts_of_is_no_tape():
    made, state, x, _ = case("gru", 15, 1)
    table, rows = x.detach(), [row.clone() for row in x.detach().unbind(0)]
    base = torch.zeros(100_000)
    peaks = []
    for give in (table.__getitem__, lambda t: {"row": rows[t], "t": t},
                 lambda t: {"row": torch.cat((base[:0], table[t].flatten())).view_as(rows[t])}):
        def step(h, given, t):
            return made(h, given if torch.is_tensor(given) else given["row"], t)
        nt.scan(step, state, give, steps=15, group=3)[1].sum().backward()
        peaks.append(nt.report().counted_peak)
    assert peaks[1] == peaks[2] > peaks[0]  # rows that stand alone may belong to nobody else
    assert peaks[1] - peaks[0] == sum(row.numel() * 4 for row in rows)
    generator = torch.random.get_rng_state()
    nt.scan(made, state, lambda t: table[t] + 0 * torch.rand(()), steps=15, memory="20K", costs=COSTS)
    after = torch.random.get_rng_state()
    torch.random.set_rng_state(generator)
    torch.rand(15)
    assert torch.equal(after, torch.random.get_rng_state())  # as a plain loop leaves it


def test_a_first_state_whose_parts_are_one_tensor():
    torch.manual_seed(2)
    cell, x, zeros = torch.nn.LSTMCell(3, N), torch.randn(30, 4, 3), torch.zeros(4, N)

    def step(state, x, t):
        h, c = cell(x, state)
        return (h, c), h
    for group in (1, 3):
        last, out = nt.scan(step, (zeros, zeros), x, group=group, memory="12K", costs=COSTS, params=cell)
        out.sum().backward()
        told = nt.report()
        assert told.plan.chosen != "bptt" and told.outgrown == told.recorded_again == 0
        assert told.extra_steps == group * told.plan.advance_steps and told.counted_peak <= told.planned_peak


def test_inside_a_checkpoint_and_inside_a_step():
    from torch.utils.checkpoint import checkpoint
    made, state, x, _ = case("gru", 12, 1)
    wanted = [*made.parameters(), state, x]
    a = torch.autograd.grad(plain(made, state, x)[1].pow(2).sum(), wanted)

    def inner(s, i):
        return nt.scan(made, s, i, group=2, memory="20K", costs=COSTS)[1].pow(2).sum()
    same(torch.autograd.grad(checkpoint(inner, state, x, use_reentrant=False), wanted), a)

    def outer(h, i, t):
        last, out = nt.scan(made, h, i, group=1, memory="20K", costs=COSTS)
        return last, out
    loops = plain(lambda h, i, t: plain(made, h, i), state, x.view(4, 3, B, I))
    a = torch.autograd.grad(loops[1].pow(2).sum(), wanted)
    for options in (dict(), dict(memory="60K", strategy="revolve", group=1)):
        _, out = nt.scan(outer, state, x.view(4, 3, B, I), params=made, costs=COSTS, **options)
        found = torch.autograd.grad(out.pow(2).sum(), wanted)
        for p, q in zip(found, a):
            assert torch.allclose(p, q, rtol=1e-5, atol=1e-6)


def test_autocast():
    made, state, x, _ = case("both", 11, 1)
    wanted = [*made.parameters(), state, x]
    rows = []
    for run in (plain, scanned(group=3, memory="30K"), scanned()):
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            out = run(made, state, x)[1]
        rows.append([out.detach(), *torch.autograd.grad(out.float().pow(2).mean(), wanted, allow_unused=True)])
    same(rows[1], rows[0])
    same(rows[2], rows[0])


def test_module_and_measured_costs():
    made, state, x, read = case("gru", 20, 1)
    run = nt.Scan(made, memory="30K")
    assert set(run.state_dict()) == {f"cell.{name}" for name in made.state_dict()}
    wanted = grads(plain, made, state, x, read)
    for _ in range(2):
        same(grads(lambda m, s, i: run(s, i), made, state, x, read), wanted)
    told = run.report()
    assert len(run._known.measured) == 2 and told.counted_peak <= told.planned_peak <= 30 << 10
    assert told.steps == 20 and told.extra_steps >= 0 and told.plan.seconds > 0


@pytest.mark.parametrize("options", [dict(), dict(memory="60K", group=2), dict(memory="8K", strategy="mixed", group=1)])
def test_graphs_that_are_dropped_leave_nothing(options):
    """A scan whose backward never comes, and groups that are measured or do not fit."""
    def tensors():
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())
    made, state, x, _ = case("twice", 20, 1)
    before = tensors()
    for _ in range(3):
        nt.scan(made, state, x, costs=COSTS, **options)
    assert tensors() <= before + 2


class Probing(Gru):
    """Makes graphs that it drops: losses that it only looks at, of other sizes from step to step."""

    def forward(self, h, x, t):
        h = self.cell(x, h)
        for k in range(1 + t % 3):
            wide = torch.tanh(h.repeat(1, 2 + k + t % 5)).sum()
            assert torch.autograd.grad(wide, h, retain_graph=k > 0)[0].isfinite().all()
            del wide
        return h, h


@pytest.mark.parametrize("travel", [False, True])
def test_graphs_that_a_step_drops_are_no_tape(travel, tmp_path):
    torch.manual_seed(2)
    given = torch.randn(B, N), torch.randn(24, B, I), torch.nn.Linear(N, 2)
    made = Gru()
    probing = Probing()
    probing.load_state_dict(made.state_dict())
    options = dict(strategy="stream", slow=str(tmp_path), memory="40K") if travel else {}
    wanted, told = grads(scanned(group=3, costs=COSTS, **options), made, *given), []
    for _ in range(2):
        told.append(nt.report().counted_peak)
        same(grads(scanned(group=3, costs=COSTS, **options), probing, *given), wanted)
    assert told[0] == told[1] == nt.report().counted_peak


def test_nothing_leaks():
    made, state, x, _ = case("lstm", 20, 1)
    run = nt.Scan(made, memory="30K", group=2, costs=COSTS)
    def once():
        for p in made.parameters():
            p.grad = None
        run(state, x)[1].sum().backward()
    for _ in range(3):
        once()
    gc.collect()
    def tensors():
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())
    before = tensors()
    for _ in range(20):
        once()
    assert tensors() <= before + 4


@pytest.mark.parametrize("says, call", [
    ("contains an item of type int", lambda c, h, x: nt.scan(c, 3, x)),
    ("first dimension", lambda c, h, x: nt.scan(c, h, (x, x[:3]))),
    ("but inputs have", lambda c, h, x: nt.scan(c, h, x, steps=99)),
    ("group", lambda c, h, x: nt.scan(c, h, x, group=0)),
    ("strategy", lambda c, h, x: nt.scan(c, h, x, strategy="nonsense", memory="1M")),
    ("not a size", lambda c, h, x: nt.scan(c, h, x, memory="much")),
    ("a pair \\(state, output\\)", lambda c, h, x: nt.scan(lambda s, i, t: s, h, x)),
    ("must have the structure of the given one", lambda c, h, x: nt.scan(lambda s, i, t: ((s, s), None), h, x)),
    ("output of shape", lambda c, h, x: nt.scan(lambda s, i, t: (s, s[:, :1 + t]), h, x)),
])
def test_refusals(says, call):
    made, state, x, _ = case("gru", 6, 1)
    with pytest.raises(neap.UsageError, match=says):
        call(made, state, x)
