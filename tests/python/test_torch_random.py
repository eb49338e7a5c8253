# SPDX-License-Identifier: Apache-2.0
"""Random steps against the plain loop, and cases that they have found."""
import contextlib
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS  # noqa: E402
from random_checks import Runner, compared, many  # noqa: E402
from random_layers import Stack  # noqa: E402
from random_steps import Case, Large, plain  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "50"))
SECONDS = float(os.environ.get("NEAP_SECONDS", "0"))  # with fixed seeds, for so long
CHUNK = 50


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, MANY, CHUNK))
def test_random_steps(first):
    """NEAP_MANY cases."""
    runner, found = Runner(), []
    try:
        for seed in range(first, min(first + CHUNK, MANY)):
            case = Case(seed)
            found += [f"random_steps.py --seed {seed}: {text}\n{case.describe()}" for text in runner.findings(case)]
    finally:
        runner.close()
    assert not found, "\n".join(found)
    assert runner.counts["compared"] > 2 * CHUNK // 2 and runner.counts["plain fails"] < CHUNK // 5, runner.counts


@pytest.mark.filterwarnings("ignore")
def test_random_layers():
    """The same of nt.Sequential, a tenth as many."""
    runner = Runner()
    try:
        found = [f"random_layers.py --seed {seed}: {text}" for seed in range(MANY // 10)
                 for text in runner.findings(Stack(seed))]
    finally:
        runner.close()
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore")
def test_random_steps_for_a_time():
    """As many cases as there is time for."""
    if not SECONDS:
        pytest.skip("NEAP_SECONDS is not set")
    lines = []
    assert not many(Case, SECONDS, 10000, lines.append)[1], "\n".join(lines)


@pytest.mark.parametrize("seed", range(3))
def test_what_the_process_takes(seed):
    """Cases of some size, each in a process of its own: it grows by the budget, a quarter, and 20 MB at most."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "random_steps.py")
    done = subprocess.run([sys.executable, program, "--large", "--seed", str(seed)], capture_output=True, text=True)
    assert done.returncode == 0 and "WRONG" not in done.stdout, done.stdout + done.stderr


def test_a_case_is_a_function_of_its_seed():
    for seed in (3, 17):
        one, two = Case(seed), Case(seed)
        assert one.describe() == two.describe() and not compared(one.run(plain), two.run(plain), False)


# What the generator has found

class Cell(torch.nn.Module):
    """A layer twice, in autocast of its own if it is ``cast``, with a decomposition in its backward."""

    def __init__(self, cast=False):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.cast = torch.nn.Linear(4, 4), cast

    def forward(self, h, x, t):
        with torch.autocast("cpu", dtype=torch.bfloat16) if self.cast else contextlib.nullcontext():
            h = torch.tanh(self.layer(self.layer(h)))
        h = torch.linalg.solve(torch.eye(4) + self.layer.weight.tanh() * 0.1, h.float().t()).t()
        return h, h.sin()


def gradients(run, made, cast=False, **options):
    for p in made.parameters():
        p.grad = None
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast, cache_enabled=False):
        last, out = run(made, torch.ones(2, 4), None, steps=9, **options)
    (last.sum() + out.sin().sum()).backward()
    return [p.grad for p in made.parameters()]


@pytest.mark.parametrize("options", [{}, {"group": 1}, {"memory": "5K", "group": 1, "strategy": "revolve"}])
def test_autocast_within_a_step_keeps_no_weights(options):
    """Its cache of weights belongs to one step: the next one is another graph."""
    made = Cell(True)
    wanted = gradients(plain, made)
    assert all(map(torch.equal, gradients(nt.scan, made, **options), wanted))


class Cached(torch.nn.Module):
    """A layer in autocast of its own, with a cache, and so much that the budget of a record ends in it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, h, x=None, t=None):
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=True):
            h = torch.tanh(self.layer(h))
            for _ in range(5 if t and t % 3 == 2 else 1):
                h = h.sin()
        return h.float() if t is None else (h.float(), h.float())


@pytest.mark.parametrize("options", [{}, {"memory": "1M"}, {"memory": 800, "group": 3, "strategy": "revolve"}])
def test_casts_from_before_a_scan_or_from_a_refused_record_are_not_used(options):
    made, rows = Cached(), []
    for loop in (plain, nt.scan):
        made.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = made.layer(torch.ones(2, 4)).float()
            last, out = loop(made, h, None, steps=9, **(options if loop is nt.scan else {}))
            after = made.layer(last).float()
        (after.sum() + out.sin().sum()).backward()
        rows.append([p.grad for p in made.parameters()])
    assert all(torch.allclose(a, b, rtol=0.05) for a, b in zip(*rows))  # terms in bfloat16


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="nodes have no numbers before PyTorch 2.1")
def test_casts_from_before_a_sequential_are_not_used():
    made, rows = Cached(), []
    for net in (torch.nn.Sequential(made, made), nt.Sequential(made, made)):
        made.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(made.layer(torch.ones(2, 4)).float())
        out.sum().backward()
        rows.append([p.grad for p in made.parameters()])
    assert all(torch.allclose(a, b, rtol=0.05) for a, b in zip(*rows))


@pytest.mark.parametrize("options", [{}, {"group": 1}])
def test_the_backward_of_a_scan_in_autocast_is_not_in_autocast(options):
    made = Cell()
    wanted = gradients(plain, made, True)
    assert all(map(torch.equal, gradients(nt.scan, made, True, **options), wanted))


def test_the_backward_of_a_sequential_in_autocast_is_not_in_autocast():
    class Solve(torch.nn.Linear):
        def forward(self, x):
            return torch.linalg.solve(torch.eye(4) + self.weight.tanh() * 0.1, x.float().t()).t()
    torch.manual_seed(1)
    layers, rows = [Solve(4, 4), torch.nn.Tanh(), Solve(4, 4)], []
    for net in (torch.nn.Sequential(*layers), nt.Sequential(*layers)):
        net.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            out = net(torch.ones(3, 4))
        out.sin().sum().backward()
        rows.append([p.grad.clone() for p in net.parameters() if p.grad is not None])
    assert len(rows[0]) == 2 and all(map(torch.equal, *rows))


@pytest.mark.parametrize("options", [{}, {"group": 1}, {"group": 2}])
def test_a_state_that_is_several_outputs(options):
    """Gradients are added in the order of autograd: of several uses the last one comes first."""
    w = torch.nn.Parameter(torch.full((5, 5), 0.1))

    def step(h, x, t):
        h = torch.tanh(h @ w + 0.1 * t)
        return h, (h, h, h)
    rows = []
    for run in (plain, nt.scan):
        last, out = run(step, torch.ones(2, 5), None, steps=7, **(options if run is nt.scan else {}))
        weights = [torch.randn(7, 2, 5, generator=torch.Generator().manual_seed(k)) for k in range(4)]
        loss = (last.sin() * weights[3][0]).sum() + sum((x.exp() * y).sum() for x, y in zip(out, weights))
        rows.append(torch.autograd.grad(loss, w)[0])
    assert torch.equal(*rows)


@pytest.mark.filterwarnings("ignore:check=True")
def test_random_numbers_that_are_seen_late_are_no_other_result():
    """A step that draws from step 3 on; its group is advanced, since its tape outgrows a plan without a generator."""
    w = torch.nn.Parameter(torch.full((4, 4), 0.2))

    def gradients(run, **options):
        def step(h, x, t):  # a new one each time: nothing is known of it
            h = torch.tanh((torch.dropout(h, 0.2, True) if t > 2 else h) @ w)
            return h, h.sin()
        torch.manual_seed(3)
        last, out = run(step, torch.ones(2, 4), None, steps=9, params=[w], **options)
        return [out, *torch.autograd.grad(out.sum() + last.sum(), w)]
    options = dict(group=1, strategy="mixed", costs=(1, 1.3, 2.6), check=True)
    with pytest.raises(neap.BudgetError) as caught:
        gradients(nt.scan, memory=1000, **options)
    rows = [gradients(plain), gradients(nt.scan, memory=2 * caught.value.least, **options)]
    assert all(map(torch.equal, *rows))


def test_outputs_that_are_one_tensor_have_their_gradients_added_in_order_if_tapes_travel():
    torch.manual_seed(0)
    w, x, rows = torch.randn(8, 8, requires_grad=True), torch.randn(26, 4, 8), []

    def step(h, x, t):
        h = torch.tanh(h @ w + x)
        return h, (h, h, h, h * 2)
    for loop, more in ((plain, {}), (nt.scan, dict(memory=8000, group=3, strategy="stream", slow="mem:16M", params=[w],
                                                   costs=COSTS))):
        out = loop(step, torch.zeros(4, 8), x, steps=26, **more)[1]
        rows += torch.autograd.grad(sum((k + 1) * row.sin().sum() for k, row in enumerate(out)), w)
    assert torch.equal(*rows) and nt.report().counts.tape_puts


def test_a_state_whose_rows_share_memory_comes_back_from_a_tier_with_its_strides():
    torch.manual_seed(0)
    w, first = torch.randn(4, 4, dtype=torch.complex64, requires_grad=True), torch.randn(1, 4, dtype=torch.complex64)

    def step(z, x, t):
        z = torch.tanh(z @ w + 0.3j).t().contiguous().t()
        return z if t % 3 else z.mean(0).expand(2, 4), z.abs()
    rows = []
    for loop, more in ((plain, {}), (nt.scan, dict(memory=900, group=1, strategy="remote", slow="mem:16M",
                                                   params=[w], costs=COSTS))):
        out = loop(step, first.expand(2, 4), None, steps=17, **more)[1]
        rows += torch.autograd.grad(out.sin().sum(), w)
    assert torch.equal(*rows) and nt.report().counts.gets


class Held(torch.autograd.Function):
    """Keeps its input as an attribute, as checkpoint does before PyTorch 2."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.x, ctx.w = x, w
        return x * w

    @staticmethod
    def backward(ctx, g):
        return g * ctx.w.detach(), (g * ctx.x.detach()).sum(0)


@pytest.mark.parametrize("memory", [None, 300])
@pytest.mark.parametrize("first", [True, False])
def test_an_input_that_a_layer_of_a_sequential_holds_itself_keeps_its_memory(memory, first):
    class Layer(torch.nn.Linear):
        def forward(self, x):
            x = Held.apply(x, self.bias) if first else x
            return checkpoint(lambda x: torch.tanh(x @ self.weight), x, use_reentrant=False)
    torch.manual_seed(0)
    layers, rows = [Layer(4, 4), Layer(4, 4), torch.nn.Linear(4, 4)], []
    for net in (torch.nn.Sequential(*layers), nt.Sequential(*layers, memory=memory)):
        net.zero_grad()
        x = torch.ones(2, 4, requires_grad=True)
        try:
            net(x).sin().sum().backward()
        except neap.BudgetError as error:
            net = nt.Sequential(*layers, memory=error.least)
            net(x).sin().sum().backward()
        rows.append([x.grad, *[p.grad for p in net.parameters() if p.grad is not None]])
    assert len(rows[0]) == len(rows[1]) and all(map(torch.equal, *rows))
