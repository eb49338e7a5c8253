# SPDX-License-Identifier: Apache-2.0
"""Parts of the state that steps return unchanged: counted once, stored once, with the gradients of the plain loop."""
import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS  # noqa: E402

T, B, N, ROWS = 60, 4, 16, 400
TABLE = 4 * ROWS * N
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # small budgets are slow


class Loop:
    """A state (h, table, count) whose table is returned as ``change(table, t)``."""

    def __init__(self, change=lambda table, t: table, steps=T, wanted=True, begin=lambda table: table):
        torch.manual_seed(0)
        self.cell, self.change, self.steps = torch.nn.Linear(N, N), change, steps
        self.x = torch.randn(steps, B, N)
        self.leaf = torch.randn(ROWS, N, requires_grad=wanted)
        self.begin = begin

    def step(self, state, x, t):
        h, table, count = state
        h = torch.tanh(self.cell(h) + x + table[t % ROWS] * table[:B])
        return (h, self.change(table, t), count + 1), h

    def start(self):
        return torch.zeros(B, N), self.begin(self.leaf), torch.zeros((), dtype=torch.int64)

    def gradients(self, last, outputs):
        leaves = [*self.cell.parameters(), *([self.leaf] if self.leaf.requires_grad else [])]
        loss = outputs.square().mean() + last[0].sum() + last[1][3].sum()
        return [last[1].detach().clone(), *torch.autograd.grad(loss, leaves)]

    def plain(self):
        state, rows = self.start(), []
        for t in range(self.steps):
            state, out = self.step(state, self.x[t], t)
            rows.append(out)
        return self.gradients(state, torch.stack(rows))

    def check(self, **options):
        """Compares a scan with the plain loop; returns its report."""
        found = self.gradients(*nt.scan(self.step, self.start(), self.x, **options))
        told = nt.report()
        assert all(torch.equal(a, b) for a, b in zip(found, self.plain()))
        if told.memory is not None:
            assert told.counted_peak + told.charged + told.unchanged <= told.memory
        return told


OPTIONS = [dict(group=1), dict(group=7), dict(strategy="chain"), dict(strategy="revolve"), dict(double_backward=True),
           dict(check=True), dict(slow="mem:4M"), dict(slow="mem:4M", strategy="stream", group=2), dict(host="4M")]
SAME = {"same": (lambda table, t: table, {}),
        "view": (lambda table, t: table.view_as(table), {}),
        "whole": (lambda table, t: table[:], {}),
        "strided": (lambda table, t: table, {"begin": lambda leaf: leaf.t().contiguous().t()}),
        "part": (lambda table, t: table, {"begin": lambda leaf: torch.cat([leaf, leaf])[:ROWS]})}


@pytest.mark.parametrize("kind, options", [(kind, options) for kind in SAME for k, options in enumerate(OPTIONS)
                                           if kind == "same" or k in (1, 7)], ids=str)
def test_counted_once(kind, options):
    change, more = SAME[kind]
    told = Loop(change, **more).check(memory=6 * TABLE, **options)
    assert told.unchanged == TABLE and told.state < 4000 and told.outgrown == 0


def test_a_budget_of_two_tables():
    """The table and its gradient, and as much as small steps need: before, 15.3 MiB were needed."""
    torch.manual_seed(0)
    table, w = torch.randn(1000, 1000, requires_grad=True), torch.nn.Linear(N, N)
    x = torch.randn(1000, B, N)

    def step(state, x, t):
        h = torch.tanh(w(state[0]) + x + state[1][t % 1000, :N])
        return (h, state[1]), None

    last, _ = nt.scan(step, (torch.zeros(B, N), table), x, memory="8M")
    found = torch.autograd.grad(last[0].sum(), [table, *w.parameters()])
    assert nt.report().unchanged == 4 * 10 ** 6 and nt.report().counted_peak + 4 * 10 ** 6 <= 8 << 20
    state = torch.zeros(B, N), table
    for t in range(1000):
        state, _ = step(state, x[t], t)
    assert all(torch.equal(a, b) for a, b in zip(found, torch.autograd.grad(state[0].sum(), [table, *w.parameters()])))


@pytest.mark.parametrize("at, options", [(50, options) for options in OPTIONS] + [(T - 1, OPTIONS[1])], ids=str)
def test_replaced_late(at, options):
    """Another table is counted in each state and tape from then on; the scan finds that in its forward pass."""
    loop = Loop(lambda table, t: table * 1.01 if t == at else table)
    told = loop.check(memory=20 * TABLE, **options)
    assert told.unchanged == 0 and told.state >= TABLE


def test_least_budget_of_a_table_that_is_replaced_late():
    loop = Loop(lambda table, t: table * 1.01 if t == 50 else table)
    with pytest.raises(neap.BudgetError) as caught:
        loop.check(memory=TABLE // 2)
    loop.check(memory=caught.value.least)


def test_modified_in_place():
    """Never taken for unchanged."""
    def change(table, t):
        if t == 50:
            table.mul_(1.01)
        return table
    with pytest.raises(RuntimeError, match="in.?place"):
        Loop(change, wanted=False).check(memory=20 * TABLE)


def test_other_tensors_in_later_calls():
    """Measurements of a step are used for states with other tensors, and for calls in which the part changes."""
    loop = Loop()
    assert loop.check(memory=6 * TABLE).unchanged == TABLE
    loop.begin = lambda leaf: leaf + 1
    assert loop.check(memory=6 * TABLE).unchanged == TABLE
    loop.change = lambda table, t: table * 1.01
    assert loop.check(memory=20 * TABLE).unchanged == 0


def test_random_numbers_and_constant_types():
    drop = torch.nn.Dropout(0.3)
    table, x, w = torch.randint(0, N, (ROWS, N)), torch.randn(T, B, N), torch.nn.Linear(N, N)

    def step(state, x, t):
        h, rows = state
        return (torch.tanh(drop(w(h)) + x[:, rows[t]]), rows), h

    def plain(step, state, x):
        rows = []
        for t in range(T):
            state, out = step(state, x[t], t)
            rows.append(out)
        return state, torch.stack(rows)

    found = []
    for loop in (plain, lambda *given: nt.scan(*given, memory="150K")):
        torch.manual_seed(3)
        last, out = loop(step, (torch.zeros(B, N), table), x)
        found.append(torch.autograd.grad(out.square().mean() + last[0].sum(), list(w.parameters())))
        assert torch.equal(last[1], table)
    assert all(torch.equal(a, b) for a, b in zip(*found))
    assert nt.report().unchanged == 8 * ROWS * N


def test_parts_that_share_memory_in_another_way_are_measured():
    """The step is the same, but which parts are one tensor is not."""
    table, other, h = torch.randn(40, 40), torch.randn(40, 40), torch.zeros(4, 40, requires_grad=True)

    def step(s, x, t):
        h, a, b = s
        return (torch.tanh(h @ a + h @ b), a, b), None

    counted = []
    for b in (table, other, table):
        nt.scan(step, (h, table, b), steps=30, memory="400K", costs=COSTS)[0][0].sum().backward()
        counted.append(nt.report().unchanged)
    assert counted == [counted[0], 2 * counted[0], counted[0]] and counted[0] > 0
