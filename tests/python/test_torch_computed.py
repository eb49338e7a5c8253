# SPDX-License-Identifier: Apache-2.0
"""Parameters that were computed: each leaf is counted once, and second gradients are refused."""
import itertools

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.torch.measure import _ORDERED as NUMBERED  # noqa: E402
from random_parts import Twice  # noqa: E402

T, B, I, N = 24, 3, 5, 8
MADE = {"view": lambda r: r.view(3 * N, N), "flip": lambda r: r - r.flip(0), "square": lambda r: r * r, "norm": lambda r: r / r.norm()}


class Cell(torch.nn.Module):
    """Weights of a GRU made of ``raw``, which the step uses by itself as well (both)."""

    def __init__(self, how, both):
        super().__init__()
        self.cell, self.both = torch.nn.GRUCell(I, N), both
        self.raw = torch.nn.Parameter(self.cell.weight_hh.detach().clone())
        del self.cell._parameters["weight_hh"]
        self.cell.weight_hh = MADE[how](self.raw)

    def forward(self, h, x, t):
        h = self.cell(x, h)
        return (h + 0.01 * self.raw[:1].tanh() if self.both else h), h


def gradients(how, both, scan, **options):
    torch.manual_seed(0)
    cell, x, h, out = Cell(how, both).double(), torch.randn(T, B, I).double(), torch.zeros(B, N).double(), []
    cell.cell.weight_hh = MADE[how](cell.raw)
    cell.cell.weight_hh.retain_grad()
    if scan:
        h, out = nt.scan(cell, h, x, params=[cell.cell.weight_hh], **options)
    else:
        for t in range(T):
            h, o = cell(h, x[t], t)
            out.append(o)
        out = torch.stack(out)
    (out.sin().sum() + h.sum()).backward()
    return [p.grad for p in cell.parameters()] + [cell.cell.weight_hh.grad]


@pytest.mark.parametrize("how, both", list(itertools.product(MADE, (False, True))))
def test_leaves_behind_a_computed_parameter(how, both):
    wanted = gradients(how, both, False)
    for options in ({}, {"group": 1}, {"memory": "40K"}, {"memory": "40K", "slow": "mem:4M"}):
        assert all(map(torch.equal, gradients(how, both, True, **options), wanted)), options


@pytest.mark.parametrize("made", [lambda r: 2 * r, lambda r: r - r.flip(0), lambda r: r.t(), lambda r: r * r])
def test_computed_tensors_that_are_not_named(made):
    """An error; or, before PyTorch 2.1, which numbers nodes, the sums of groups, which may round differently."""
    torch.manual_seed(0)
    raw, x, h0 = torch.randn(N, N).double().requires_grad_(), torch.randn(T, B, N).double(), torch.zeros(B, N).double()
    w, h = made(raw), h0
    for t in range(T):
        h = torch.tanh(h @ w + x[t])
    wanted, = torch.autograd.grad(h.sum(), raw, retain_graph=True)
    for options in ({}, {"group": 1}, {"memory": "40K"}):
        w, refused = made(raw), None
        try:
            last, _ = nt.scan(lambda h, x, t: (torch.tanh(h @ w + x), None), h0, x, **options)
            found, = torch.autograd.grad(last.sum(), raw)
        except (neap.UsageError, RuntimeError) as error:
            refused = str(error)
        if NUMBERED or refused:
            assert "computed outside the step" in refused or "that an earlier step computed" in refused and not NUMBERED
        else:
            assert (found - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_the_other_half_of_a_node_is_not_lost():
    raw, cell = torch.nn.Parameter(torch.rand(2 * N)), torch.nn.GRUCell(I, N)
    one, two = raw.exp().chunk(2)
    with pytest.raises(neap.UsageError, match="computed outside"):
        nt.scan(lambda h, x, t: (cell(x, h * two) + one, None), torch.zeros(B, N), torch.randn(T, B, I), params=[two])


def test_a_function_of_python_on_the_way_is_refused():
    raw, cell = torch.nn.Parameter(torch.rand(N)), torch.nn.GRUCell(I, N)
    made, same = Twice.apply(raw), raw.view_as(raw)
    x = torch.randn(T, B, I)
    with pytest.raises(neap.UsageError, match="view_as"):
        nt.scan(lambda h, x, t: (cell(x, h * made) + raw, None), torch.zeros(B, N), x, params=[made])
    nt.scan(lambda h, x, t: (cell(x, h * made) + same, None), torch.zeros(B, N), x, params=[made, same])[0].sum().backward()
    assert raw.grad is not None
