# SPDX-License-Identifier: Apache-2.0
"""Which groups of steps have their saved tensors counted, and what is seen of those that have not; how many calls of a
step are needed to measure it."""
import collections

import pytest

torch = pytest.importorskip("torch")

import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, case, grads, plain, same, scanned  # noqa: E402
from neap.torch import measure  # noqa: E402

NUMBERED = measure._ORDERED  # PyTorch 2.1 and later number the nodes of a graph


def test_samples():
    if not NUMBERED:
        pytest.skip("this PyTorch has no numbers of nodes")
    samples = measure.Samples()
    every = samples.EVERY

    def counted(groups, nbytes):
        """Which of so many groups that save nbytes are counted."""
        found = []
        for i in range(groups):
            if samples.known("kind", None) is None:
                found.append(i)
                samples.learn("kind", nbytes, 7)
        return found
    assert counted(2 + 3 * every, 100) == [0, 1, *(1 + every * n for n in (1, 2, 3))]
    found = counted(2 * every, 200)  # the difference is seen at the next sample; then equal ones have to come first
    assert found[0] < every and found[1:1 + every] == list(range(found[0] + 1, found[0] + 1 + every))
    assert samples.known("kind", 199) is None  # it does not fit: it is counted
    assert samples.known("another kind", None) is None


@pytest.fixture
def recorded(monkeypatch):
    """Counters of the groups that were recorded: whether each counts."""
    found = []
    enter = {kind: kind.__enter__ for kind in (measure.Counter, measure.Uncounted)}
    for kind in enter:
        monkeypatch.setattr(kind, "__enter__", lambda self, kind=kind: (found.append(self.counts), enter[kind](self))[1])
    return found


def test_few_groups_of_even_steps_are_counted(recorded):
    given = case("gru", 80, 1)
    wanted = grads(plain, *given)
    same(grads(scanned(group=1, memory="1G", strategy="bptt"), *given), wanted)
    assert len(recorded) >= 80
    if NUMBERED:
        assert sum(recorded[-80:]) <= 3 + 80 // measure.Samples.EVERY
    else:
        assert all(recorded[-80:])


def test_groups_with_other_nodes_are_counted(recorded):
    made, state, x, _ = case("gru", 60, 1)

    def step(h, i, t):
        h = made.cell(i, h)
        return (torch.tanh(torch.tanh(h)) if t % 20 == 13 else h), None

    def found(run, **options):
        last, _ = run(step, state, x, **options)
        return torch.autograd.grad(last.sum(), [*made.parameters(), state])
    wanted = found(lambda step, state, x: (lambda h: ([h := step(h, x[t], t)[0] for t in range(60)][-1], None))(state))
    same(found(nt.scan, params=made, group=1, memory="1G", strategy="bptt", costs=COSTS), wanted)
    assert recorded[-62:].count(True) >= 3  # t = 13, 33, 53 at least


def test_groups_that_save_more_with_equal_nodes_are_found():
    """Steps that save more and more outgrow the plan, and the count never passes the budget."""
    torch.manual_seed(0)
    w, state, x = torch.nn.Parameter(torch.randn(N, N) / 3), torch.randn(B, N), torch.randn(200, B, N)
    rows = torch.randn(200 * 20, N)

    def step(h, i, t):
        h = torch.tanh(h @ w + i) + (rows[:20 * t + 20] * (h * h).sum()).tanh().sum(0) * 1e-3
        return h, None

    def gradient(run, **options):
        return torch.autograd.grad(run(step, state, x, **options)[0].sum(), [w])

    def loop(step, h, x):
        for t in range(len(x)):
            h, _ = step(h, x[t], t)
        return h, None
    wanted = gradient(loop)
    same(gradient(nt.scan, group=1, memory="1M", costs=COSTS), wanted)
    told = nt.report()
    assert told.outgrown > 0 and told.counted_peak + told.charged <= 1 << 20


def add(output, t):
    return output.sum()


class Counted:
    """A step that counts its calls, by t."""

    def __init__(self):
        self.cell, self.calls = torch.nn.GRUCell(I, N), collections.Counter()

    def __call__(self, h, x, t):
        self.calls[t] += 1
        h = self.cell(x, h)
        return h, h

    def measuring(self, steps, **options):
        """The calls of one forward and backward pass that are neither a step of the loop nor a recomputed step."""
        self.calls.clear()
        last, _ = nt.scan(self, torch.zeros(B, N), torch.randn(steps, B, I), **options)
        last.sum().backward()
        return sum(self.calls.values()) - steps - nt.report().extra_steps


@pytest.mark.parametrize("reduce, options", [
    (None, {}), (add, {}), (add, dict(buffers="state")), (None, dict(buffers="state"))])
def test_a_step_is_measured_in_the_first_call(reduce, options):
    """Later calls with the same reduce run one more step if there is one: its result has the shape of the sum."""
    counted = step = Counted()
    if options:
        class Cell(torch.nn.Module):
            def forward(self, h, x, t):
                return counted(h, x, t)
        step = Cell()
    x, options = torch.randn(60, B, I), dict(options, memory="64K", params=counted.cell, reduce=reduce)
    found = []
    for _ in range(3):
        counted.calls.clear()
        nt.scan(step, torch.zeros(B, N), x, **options)[0].sum().backward()
        found.append(sum(counted.calls.values()) - 60 - nt.report().extra_steps)
    assert found[0] > 10 and found[1:] == [int(reduce is not None)] * 2


def test_another_reduce_is_measured():
    step = Counted()
    found = [step.measuring(60, memory="64K", reduce=reduce, costs=COSTS) for reduce in (add, lambda y, t: y, add)]
    assert found[0] > 5 and found[1] > 5 and found[2] == 1


def test_other_costs_make_another_plan():
    """Costs of a later call are used, although the step was measured with different ones."""
    step = Counted()
    overheads = []
    for backward in (1.0, 100.0):
        step.measuring(60, memory="64K", group=1, strategy="revolve", costs=(1, 1, backward))
        overheads.append(nt.report().plan.overhead)
    assert overheads[1] < overheads[0] / 10


@pytest.mark.parametrize("options, most", [(dict(memory="64M"), 17), (dict(memory="16K", costs=COSTS), 7),
                                           (dict(), 1), (dict(memory="64M", slow="mem:16M"), 33)])
def test_calls_of_the_first_step_for_measuring(options, most):
    """One to find parameters, three for the bytes of one step, and 13 to measure a group (16 more for offloading)."""
    step = Counted()
    step.measuring(100, **options)
    assert step.calls[0] <= most + 2 and max(step.calls[t] for t in range(1, 100)) <= most + 1


@pytest.mark.heavy
def test_the_report_has_the_bytes_of_the_graph():
    """Also if one step per graph was measured twice, as a small budget does, and if the first group was not sampled."""
    gru, x = torch.nn.GRUCell(I, N), torch.randn(40, B, I)
    found = []
    for options in ({"memory": "200K"}, {"memory": "200K", "group": 1}, {"memory": "1M", "group": 2}):
        scan = nt.Scan(lambda h, x, t: (gru(x, h),) * 2, costs=COSTS, **options)
        scan(torch.zeros(B, N), x)[1].sum().backward()
        found.append((scan.report().group, scan.report().graph))
    assert found[0] == found[1] and found[0][0] == 1
    assert found[0][1] < found[2][1] <= 2 * found[0][1]
