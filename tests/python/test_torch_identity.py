# SPDX-License-Identifier: Apache-2.0
"""Tensors that are several things at once: two parts of a state, an output in each step, a parameter and an output or a
state. Their gradients have several terms, added up in the order of the plain loop; where that is unknown, to 1e-12."""
import functools

import pytest

torch = pytest.importorskip("torch")

import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, flat, plain, same  # noqa: E402

T = 45
OPTIONS = {"none": dict(), "one": dict(memory="10M", group=T), "each": dict(memory="10M", group=1),
           "revolve": dict(memory="20K", group=4, strategy="revolve"),
           "tiers": dict(memory="24K", group=1, slow="mem:4M"),
           "grad": dict(memory="40K", group=4, strategy="revolve", enable_grad=True)}

EXACT = {
    "carried": lambda n, s, i, t, w: ((n, s[1]), n),
    "carried and output": lambda n, s, i, t, w: ((n, s[1]), (n, s[1])),
    "carried, output alone": lambda n, s, i, t, w: ((n, s[1]), s[1]),
    "carried, output twice": lambda n, s, i, t, w: ((n, s[1]), (s[1], n, s[1])),
    "two parts are one": lambda n, s, i, t, w: ((n, n), n),
    "two parts are one, no output": lambda n, s, i, t, w: ((n, n), None),
    "delay": lambda n, s, i, t, w: ((n, s[0]), n),
    "output twice": lambda n, s, i, t, w: ((n, n * 0.5), (n, n)),
    "view": lambda n, s, i, t, w: ((n, n * 0.5), (n[:, :3], n)),
    "input as output": lambda n, s, i, t, w: ((n, n * 0.5), (i, n)),
    "parameter as output": lambda n, s, i, t, w: ((n * w, n * 0.5), (w, n, w)),
    "parameter as state": lambda n, s, i, t, w: ((n * s[1].sigmoid(), w), n),
    "parameter as both": lambda n, s, i, t, w: ((n * s[1].sigmoid(), w), (w, n)),
}
NEAR = {
    "delay and output": lambda n, s, i, t, w: ((n, s[0]), (n, s[0])),
    "carried, but not always": lambda n, s, i, t, w: ((n, s[1] if t % 7 else n * 0.5), (n, s[1])),
    "output, but not always": lambda n, s, i, t, w: ((n, s[1]), s[1] if t % 7 else n * w),
}


def gradients(run, after):
    torch.manual_seed(0)
    cell, w = torch.nn.GRUCell(I, N).double(), torch.nn.Parameter(torch.randn(B, N, dtype=torch.float64))
    x, h, a = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((T, B, I), (B, N), (B, N)))

    def step(s, i, t):
        return after(cell(i, s[0] + 0.5 * s[1]), s, i, t, w)
    last, out = run(step, (h, a), x)
    loss = sum((k + 1) * (leaf ** 3).mean() for k, leaf in enumerate(flat(last)))
    weights = torch.linspace(0.3, 1.7, T, dtype=torch.float64).view(-1, 1, 1)
    loss = loss + sum((k + 0.7) * (leaf.pow(2) * weights).sum() for k, leaf in enumerate(flat(out)))
    return [loss.detach(), *torch.autograd.grad(loss, [*cell.parameters(), w, h, a, x], allow_unused=True)]


@pytest.mark.parametrize("how", [*EXACT, *NEAR])
def test_one_tensor_that_is_several(how):
    wanted = gradients(plain, {**EXACT, **NEAR}[how])
    for options in OPTIONS.values():
        found = gradients(functools.partial(nt.scan, costs=COSTS, **options), {**EXACT, **NEAR}[how])
        if how in EXACT:
            same(found, wanted)
        for a, b in zip(found, wanted):
            assert a is b is None or (a - b).abs().max() <= 1e-12 * b.abs().max()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_first_state_that_is_one_tensor_twice(options):
    torch.manual_seed(0)
    cell, h, x = torch.nn.GRUCell(I, N), torch.randn(B, N, requires_grad=True), torch.randn(T, B, I)
    places = []

    def step(s, i, t):
        places.append(s[0] is s[1])
        n = cell(i, s[0].tanh() + 0.1 * s[1] * s[0])
        return ((n, n) if t % 2 else (n, n * 0.5)), None
    rows = []
    for run in (plain, functools.partial(nt.scan, costs=COSTS, **options)):
        last, _ = run(step, (h, h), x)
        rows.append(torch.autograd.grad((last[0] ** 2).sum() + last[1].sum(), [h, *cell.parameters()]))
    same(rows[1], rows[0])
    assert places[:T] == [t % 2 == 0 for t in range(T)]
