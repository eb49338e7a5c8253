# SPDX-License-Identifier: Apache-2.0
"""Steps that leave values in attributes: refused if a step reads them, and left alone otherwise."""
import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, Gru, same  # noqa: E402

OPTIONS = [dict(), dict(memory="1M", group=1), dict(memory="40K", group=1, strategy="revolve")]


class Hidden(Gru):
    """Keeps a tensor, a number or an item of a dict between steps."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.count, self.last, self.held, self.calls = kind, 0, None, {}, 0

    def forward(self, h, x, t):
        self.calls += 1
        if self.kind == "number":
            self.count += 1
            h = h * (1 - 1 / (9 + self.count))
        elif self.kind == "tensor":
            h = h + (0 if self.last is None else 0.1 * self.last)
            self.last = h.detach().tanh()
        elif self.kind == "item":
            h = h + 0.1 * self.held.get("v", torch.zeros(()))
            self.held["v"] = h.detach().tanh()
        elif self.kind == "new":
            h = h + 0.1 * getattr(self, "made", torch.zeros(()))
            self.made = h.detach().tanh()
        h = self.cell(x, h)
        return h, h


def given(kind):
    torch.manual_seed(0)
    return Hidden(kind), torch.randn(B, N, requires_grad=True), torch.randn(12, B, I)


@pytest.mark.parametrize("kind", ["number", "tensor", "item", "new"])
@pytest.mark.parametrize("options", OPTIONS)
def test_values_that_a_step_reads(kind, options):
    made, state, x = given(kind)
    with pytest.raises(neap.UsageError, match="the step changes .*Make it part of the state"):
        nt.scan(made, state, x, costs=COSTS, **options)[1].sum().backward()
    with pytest.raises(neap.UsageError, match="the step changes .*Make it part of the state"):
        nt.scan(lambda h, i, t: made(h, i, t), state, x, params=made, costs=COSTS, **options)


class Object:
    """A step that is no module."""

    def __init__(self, cell):
        self.cell, self.seen = cell, None

    def __call__(self, h, x, t):
        h = self.cell(x, h if self.seen is None else h + self.seen)
        self.seen = h.detach() * 0.1
        return h, h


def test_attributes_of_objects():
    made, state, x = given("none")
    for step in (Object(made.cell), Object(made.cell).__call__):
        with pytest.raises(neap.UsageError, match="the step changes '(Object.)?seen'"):
            nt.scan(step, state, x, params=made)


@pytest.mark.parametrize("options", OPTIONS)
def test_values_that_no_step_reads(options):
    """A number of calls may change; measuring does not count."""
    made, state, x = given("none")
    wanted = [*made.parameters(), state]
    h, out = state, []
    for t in range(12):
        h, o = made(h, x[t], t)
        out.append(o)
    rows = [torch.autograd.grad(torch.stack(out).pow(2).sum(), wanted)]
    made.calls = 0
    last, out = nt.scan(made, state, x, costs=COSTS, **options)
    if "strategy" not in options:
        assert made.calls == 12
    rows.append(torch.autograd.grad(out.pow(2).sum(), wanted))
    same(rows[1], rows[0])
