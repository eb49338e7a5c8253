# SPDX-License-Identifier: Apache-2.0
"""Budgets of scans whose steps differ: error.least suffices, whatever the strategy, tiers and groups; states that grow
and tapes that depend on t or on data are counted as they are."""
import gc
import os
import random

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.group_plans import Costs, _between  # noqa: E402
from neap.player import Outgrown  # noqa: E402
from neap.show import show_least  # noqa: E402
from neap.torch.measure import Counter  # noqa: E402
from neap.torch.sizing import Sizer  # noqa: E402
from cells_of_tests import COSTS, B, I, N, case, grads, plain, same, scanned  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "60"))
PLAIN = ("auto", "auto", "bptt", "revolve", "mixed", "standard")
TIERED = PLAIN + ("remote", "double", "hierarchical", "stream", "async", "multistage", "periodic", "disk-revolve",
                  "h-revolve")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # small budgets are slow


def tries(run, memory, most):
    """What a run gives with the first budget that suffices, from ``memory`` on, by error.least. It takes as many
    budgets at most, and none is exceeded by the counts."""
    for _ in range(most):
        try:
            found = run(memory)
            told = nt.report()
            assert told.counted_peak + told.charged <= memory
            return found, memory
        except neap.BudgetError as error:
            if not error.least:  # no budget is known: the tier has no room
                raise
            assert error.least > memory and f"{show_least(error.least)} are enough" in str(error)
            memory = error.least
    return run(memory), memory


def test_error_least_of_the_planner():
    """The second budget suffices: also for tiers that have little room, and for budgets below what is reserved."""
    refused = unknown = 0
    for seed in range(MANY // 2):
        pick = random.Random(seed)
        given = case(pick.choice(["gru", "lstm", "twice"]), pick.randint(1, 40), seed)
        options = dict(group=pick.choice([None, None, 1, 3, 7]), costs=COSTS if pick.random() < 0.9 else None,
                       slow=pick.choice([None, "mem:64M", "mem:8K", ["mem:2K", "mem:1M"]]))
        options["strategy"] = pick.choice(PLAIN if options["slow"] is None else TIERED)
        memory = int(pick.choice([1, 100, 20 ** pick.random() * 1000, 20 ** pick.random() * 1000]))
        wanted = grads(plain, *given)
        try:
            found, enough = tries(lambda memory: grads(scanned(memory=memory, **options), *given), memory, 1)
        except neap.BudgetError as error:
            assert not error.least and "tier memory is too small" in str(error)
            unknown += 1
            continue
        refused += enough > memory
        same(found, wanted)
    assert refused > MANY // 6 and unknown < MANY // 8


def test_costs_between_two_are_no_less_than_either():
    pick = random.Random(0)
    for _ in range(1000):
        one, other = (Costs(*[pick.choice([0.0, 1e-9, pick.random()]) for _ in range(3)]) for _ in range(2))
        for share in (0.0, 1.0, pick.random()):
            assert all(min(a, b) * (1 - 1e-9) <= x <= max(a, b) * (1 + 1e-9)
                       for a, b, x in zip(one, other, _between(one, other, share)))


class Clockwork(torch.nn.Module):
    """A second cell runs in one step of five; its tapes are twice as large."""

    def __init__(self):
        super().__init__()
        self.fast, self.slow = torch.nn.GRUCell(I + N, N), torch.nn.GRUCell(N, N)

    def start(self):
        return torch.zeros(B, N), torch.zeros(B, N)

    def forward(self, state, x, t):
        h, g = state
        h = self.fast(torch.cat([x, g], -1), h)
        if t % 5 == 4:
            g = self.slow(h, g)
            h = self.fast(torch.cat([x, g], -1), h)
        return (h, g), h


class Cache(torch.nn.Module):
    """Attention over all states before: one row more in each step."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(I, N)

    def start(self):
        return torch.zeros(B, N), torch.zeros(B, 1, N)

    def forward(self, state, x, t):
        h, rows = state
        h = self.cell(x, h)
        h = h + (rows * (rows @ h[..., None]).softmax(1)).sum(1)
        return (h, torch.cat([rows, h[:, None]], 1)), h


class Shrinking(Cache):
    """A row less in each step."""

    def start(self):
        return torch.zeros(B, N), torch.randn(B, 31, N)

    def forward(self, state, x, t):
        h, rows = state
        h = self.cell(x, h)
        return (h + (rows * (rows @ h[..., None]).softmax(1)).sum(1), rows[:, 1:].clone()), h


class Newton(torch.nn.Module):
    """Implicit Euler; how many iterations a step takes depends on data."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(N, N, dtype=torch.float64) * 0.4)
        self.into = torch.nn.Linear(I, N).double()

    def start(self):
        return torch.zeros(N, dtype=torch.float64)

    def forward(self, u, x, t):
        force, v = self.into(x.double().mean(0)) * (1 + 5 * (t % 7 == 0)), u
        for _ in range(30):
            rest = v - u - 0.5 * (torch.tanh(self.w @ v) + force - v ** 3 * 0.1)
            if float(rest.detach().norm()) < 1e-9:
                break
            slope = torch.eye(N, dtype=torch.float64) - 0.5 * (
                (1 - torch.tanh(self.w @ v) ** 2)[:, None] * self.w - torch.diag(0.3 * v ** 2))
            v = v - torch.linalg.solve(slope, rest)
        return v, v.float()


class Dropping(torch.nn.Module):
    """Makes a large graph in some steps, and drops it."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(I, N)

    def start(self):
        return torch.zeros(B, N)

    def forward(self, h, x, t):
        if t % 3 == 1:
            look = h * 1.5
            for _ in range(30):
                look = torch.tanh(look)
            look = None
        h = self.cell(x, h)
        return h, h


class Hamiltonian(torch.nn.Module):
    """Differentiates on its way, in some steps more often."""

    def __init__(self):
        super().__init__()
        self.energy = torch.nn.Sequential(torch.nn.Linear(N + I, N), torch.nn.Tanh(), torch.nn.Linear(N, 1))

    def start(self):
        return torch.zeros(B, N)

    def forward(self, h, x, t):
        with torch.enable_grad():
            for _ in range(4 if t % 6 == 5 else 1):
                if not h.requires_grad:
                    h = h.detach().requires_grad_()
                slope, = torch.autograd.grad(self.energy(torch.cat([h, x], -1)).sum(), h, create_graph=True)
                h = h + 0.1 * slope.flip(-1)
        return h, h


class Spread(torch.nn.Module):
    """Begins with a row that is broadcast."""

    def __init__(self):
        super().__init__()
        self.into, self.back = torch.nn.Linear(I, N), torch.nn.Linear(N, N)

    def start(self):
        return torch.zeros(1, N)

    def forward(self, h, x, t):
        h = torch.tanh(self.into(x) + self.back(h))
        return h, h


KINDS = [Clockwork, Cache, Shrinking, Newton, Dropping, Spread]


@pytest.mark.parametrize("kind", KINDS + [Hamiltonian])
def test_uneven_steps(kind):
    """One refusal: its error knows every step."""
    torch.manual_seed(1)
    made, x = kind(), torch.randn(30, B, I)
    state, refused = made.start(), 0

    def run(scan):
        last, out = scan(made, state, x)
        last = last[1] if isinstance(last, tuple) else last
        loss = out.pow(2).mean() + last.sum()
        return [out.detach(), *torch.autograd.grad(loss, list(made.parameters()), allow_unused=True)]

    wanted = run(plain)
    nt.scan(made, state, x, memory="1G", costs=COSTS)
    for memory in (1, 9000, 30000):
        for options in (dict(), dict(group=4), dict(group=1, strategy="revolve")):
            begin = nt.report().charged + memory
            found, enough = tries(lambda memory: run(scanned(memory=memory, costs=COSTS, **options)), begin, 1)
            same(found, wanted)
            refused += enough > begin
    assert refused


def test_a_growing_state_that_cannot_fit_is_refused_on_the_way_forward():
    torch.manual_seed(1)
    made, x = Cache(), torch.randn(30, B, I)
    nt.scan(made, made.start(), x, memory="1G", costs=COSTS)
    charged = nt.report().charged
    torch.manual_seed(2)
    before = torch.get_rng_state()
    with pytest.raises(neap.BudgetError, match="the saved tensors of step 29 take") as caught:
        nt.scan(made, made.start(), x, memory=charged + 3000, group=1, costs=COSTS)
    assert torch.equal(torch.get_rng_state(), before)
    state, out = nt.scan(made, made.start(), x, memory=caught.value.least, group=1, costs=COSTS)
    state[1].sum().backward()
    told = nt.report()
    assert told.charged + 3000 < told.counted_peak + charged <= caught.value.least


@pytest.mark.parametrize("group", [None, 1, 2, 7])
@pytest.mark.parametrize("count", [True, False])
@pytest.mark.heavy
def test_error_least_of_the_planner_counts_gradients_of_inputs_and_each_step_as_it_is(count, group):
    """The planner knows the first steps only: it asks for each step as a player counts it, with the sizes of its plan."""
    torch.manual_seed(1)
    made, x = Cache(), torch.randn(9, B, I, requires_grad=True)

    def run(memory):
        state, out = nt.scan(made, made.start(), x, memory=memory, group=group, count=count, costs=COSTS,
                             strategy="revolve")
        return torch.autograd.grad(state[1].sum() + out.sin().sum(), [x, *made.parameters()])
    with pytest.raises(neap.BudgetError) as caught:
        run(100)
    assert len(run(caught.value.least)) > 1


@pytest.mark.heavy
@pytest.mark.parametrize("strategy", ["auto", "double", "stream"])
@pytest.mark.parametrize("group", [None, 1, 3])
def test_error_least_counts_parts_of_one_storage_that_come_back_from_tiers_apart(strategy, group):
    torch.manual_seed(1)
    w = torch.randn(8, 8, requires_grad=True)

    def step(state, x, t):
        h = torch.tanh(state[0] @ w + state[1])
        return torch.cat([h, h * 0.5], 1).chunk(2, 1), h

    def run(memory):
        last, out = nt.scan(step, (torch.zeros(4, 8), torch.ones(4, 16)[:, ::2]), None, steps=14, params=[w], group=group,
                            memory=memory, strategy=strategy, slow="mem:16M", costs=COSTS)
        return torch.autograd.grad(last[0].sum() + out.sin().sum(), w)
    for begin in (100, 8000, 40000):
        assert tries(run, begin, 1)


def test_the_error_of_a_scan_inside_a_step_is_its_own():
    made, state, x, _ = case("gru", 5, 1)

    def outer(h, i, t):
        h, _ = nt.scan(made, h, i[None].expand(3, B, I), memory=100, params=made)
        return h, h

    with pytest.raises(neap.BudgetError, match="memory=100 B is too small") as inner:
        nt.scan(made, state, x[:3], memory=100)
    with pytest.raises(neap.BudgetError, match="memory=100 B is too small") as caught:
        nt.scan(outer, state, x, memory="1M", params=made, costs=COSTS)
    assert caught.value.least == inner.value.least


@pytest.mark.parametrize("kind", KINDS)
def test_a_sizer_counts_the_bytes_of_a_graph_and_keeps_none(kind):
    """They are those that the graph takes if it is kept."""
    torch.manual_seed(1)
    made, x = kind(), torch.randn(6, B, I)
    state = made.start()
    for t in range(6):
        leaves = state if isinstance(state, tuple) else (state,)
        totals = []
        for counter in (Counter(set()), Sizer(set())):
            given = [leaf.detach().requires_grad_() for leaf in leaves]
            with counter, torch.enable_grad():
                counter.begin(given)
                graph = made(tuple(given) if isinstance(state, tuple) else given[0], x[t], t)
                counter.settle()
            totals.append(counter.total)
            after = graph[0]
            del graph
        assert totals[0] == totals[1] > 0
        state = tuple(leaf.detach() for leaf in after) if isinstance(state, tuple) else after.detach()


def test_a_tape_that_does_not_fit_is_not_kept_alive():
    """What an exception holds of a step is freed when the step is recomputed."""
    torch.manual_seed(1)
    made, x = Clockwork(), torch.randn(30, B, I)
    alive = []
    original = nt.runs.Run.advance

    def advance(run, *arguments):
        alive.append(sum(type(one) is Outgrown for one in gc.get_objects()))
        return original(run, *arguments)

    nt.runs.Run.advance = advance
    try:
        out = nt.scan(made, made.start(), x, memory=12000, group=5, costs=COSTS)[1]
        out.sum().backward()
    except neap.BudgetError as error:
        nt.scan(made, made.start(), x, memory=error.least, group=5, costs=COSTS)[1].sum().backward()
    finally:
        nt.runs.Run.advance = original
    assert alive and not any(alive)


def test_a_budget_error_shows_the_steps_and_the_shape_of_an_input():
    """Both show that inputs are given with the batch first."""
    cell, x = torch.nn.GRUCell(I, N), torch.randn(7, 40, I)
    with pytest.raises(neap.BudgetError, match=rf"\(steps: 7, shape of one step's input: \(40, {I}\)\)"):
        nt.scan(lambda h, x, t: (cell(x, h),) * 2, torch.zeros(40, N), x, memory="1K", costs=COSTS)


def test_a_budget_error_shows_the_shapes_of_several_inputs():
    cell, x = torch.nn.GRUCell(I, N), torch.randn(7, 40, I)

    def step(h, inputs, t):
        h = cell(inputs["x"], h)
        return h, h
    for more, shapes in [(1, rf"\(40, {I}\), \(40,\)"), (9, rf"\(40, {I}\), \(40,\), \(40,\), \(40,\), \.\.\.")]:
        given = {"x": x, "rows": [torch.ones(7, 40)] * more}
        with pytest.raises(neap.BudgetError, match=rf"\(steps: 7, shapes of one step's inputs: {shapes}\)"):
            nt.scan(step, torch.zeros(40, N), given, memory="1K", costs=COSTS)
