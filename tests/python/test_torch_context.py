# SPDX-License-Identifier: Apache-2.0
"""Long contexts: the layers of examples/python/long_context.py compute their recurrences, its gradients have the bits
of plain autograd for every budget, and states that grow are planned with their sizes."""
import importlib.util
import os
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.problems import Tier  # noqa: E402
from neap.stores import OpenTier  # noqa: E402

SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
path = os.path.join(SOURCE, "examples", "python", "long_context.py")
spec = importlib.util.spec_from_file_location("long_context", path)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

COSTS = 1e-3, 1.2e-3, 2e-3


# The recurrences, one token after the other

def gated_linear_attention(S, q, k, v, log_a):
    out = []
    for t in range(q.shape[2]):
        S = log_a[:, :, t, :, None].exp() * S + k[:, :, t, :, None] * v[:, :, t, None]
        out.append(S.transpose(2, 3) @ q[:, :, t, :, None])
    return torch.stack(out, 2)[..., 0], S


def state_space_duality(S, c, b, x, log_a):
    c, b = [row.expand(x.shape[0], x.shape[1], -1, -1) for row in (c, b)]
    return gated_linear_attention(S, c, b, x, log_a.expand_as(b))


def delta_rule(S, r, k, v, log_w, x, b):
    out = []
    for t in range(r.shape[2]):
        read = S.transpose(2, 3) @ x[:, :, t, :, None]
        S = log_w[:, :, t, :, None].exp() * S - b[:, :, t, :, None] * read.transpose(2, 3) \
            + k[:, :, t, :, None] * v[:, :, t, None]
        out.append(S.transpose(2, 3) @ r[:, :, t, :, None])
    return torch.stack(out, 2)[..., 0], S


def arguments(kind, tokens, features=3, values=2, heads=2):
    """Random arguments of a recurrence, with strong and weak decays."""
    def rows(*size):
        return torch.randn(2, heads, *size, dtype=torch.float64)

    def decays(*size):
        return -torch.rand(2, heads, *size, dtype=torch.float64) ** 4
    S, v = rows(features, values), rows(tokens, values)
    if kind == "gated_linear_attention":
        found = S, rows(tokens, features), rows(tokens, features), v, decays(tokens, features)
    elif kind == "state_space_duality":
        found = S, rows(tokens, features)[:, :1], rows(tokens, features)[:, :1], v, 30 * decays(tokens, 1)
    else:
        x = torch.nn.functional.normalize(rows(tokens, features), dim=3)
        found = S, rows(tokens, features), rows(tokens, features), v, 0.6 * decays(tokens, features), x, \
            x * torch.rand_like(x)
    return [row.clone().requires_grad_() for row in found]


KINDS = ["gated_linear_attention", "state_space_duality", "delta_rule"]


@pytest.mark.parametrize("tokens", [1, 2, 64, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_its_recurrence(kind, tokens):
    torch.manual_seed(1)
    given = arguments(kind, tokens)
    found = []
    for run in (lambda *rows: example.in_blocks(getattr(example, kind), *rows), globals()[kind]):
        o, S = run(*given)
        weights = [torch.linspace(1, 2, x.numel(), dtype=x.dtype).view_as(x) for x in (o, S)]
        found.append([o, S, *torch.autograd.grad((o * weights[0]).sum() + (S * weights[1]).sum(), given)])
    for a, b in zip(*found):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_a_block(kind):
    torch.manual_seed(2)
    assert torch.autograd.gradcheck(getattr(example, kind), arguments(kind, 4))


def models(layer, dtype=torch.float32, seed=0, **more):
    torch.manual_seed(seed)
    return example.Model(layer, **{"layers": 3, "width": 16, "heads": 2, "vocabulary": 20, **more}).to(dtype)


def tokens(count, chunk, batch=2):
    x = example.sequences(count, batch, 20, 1)
    return example.chunks(x[:, :-1], chunk), example.chunks(x[:, 1:], chunk)


def gradients(model, run, *more):
    model.zero_grad(set_to_none=True)
    loss = run(*more)
    return [loss, *[param.grad.clone() for param in model.parameters()]]


@pytest.mark.parametrize("layer", example.LAYERS)
def test_the_length_of_chunks_does_not_matter(layer):
    """Everything that a layer needs of earlier tokens is in its state."""
    model = models(layer, torch.float64)
    found = [gradients(model, example.plain, model, tokens(96, chunk)) for chunk in (96, 32, 1)]
    for other in found[1:]:
        assert abs(other[0] - found[0][0]) < 1e-9
        for a, b in zip(found[0][1:], other[1:]):
            assert torch.allclose(a, b, rtol=1e-7, atol=1e-9)


def least_of(model, inputs, reduce):
    with pytest.raises(neap.BudgetError) as caught:
        nt.scan(model, model.start(2), inputs, memory=1, reduce=reduce, costs=COSTS)
    return caught.value.least


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("layer", example.LAYERS)
def test_bits_of_plain_autograd_with_three_budgets(layer, half):
    model, inputs = models(layer), tokens(16 * 12, 16)

    def reduce(loss, t):
        return loss
    least = least_of(model, inputs, reduce)
    recomputed = []
    with torch.autocast("cpu", torch.bfloat16, enabled=half, cache_enabled=False):
        wanted = gradients(model, example.plain, model, inputs)
        for memory in (4 * least, 2 * least, least + least // 2):
            scan = nt.Scan(model, memory=memory, reduce=reduce, costs=COSTS)
            found = gradients(model, example.exact, scan, model, inputs)
            assert all(torch.equal(a, b) for a, b in zip(found[1:], wanted[1:])) and found[0] == wanted[0]
            told = scan.report()
            assert told.counted_peak <= told.planned_peak <= memory - told.charged
            recomputed.append(told.extra_steps)
    assert recomputed == sorted(recomputed) and recomputed[-1] > 0


@pytest.mark.parametrize("layer", example.LAYERS)
def test_truncated_gradients_differ(layer):
    model, inputs = models(layer), tokens(16 * 8, 16)
    wanted = gradients(model, example.plain, model, inputs)
    for window in (1, 3):
        found = gradients(model, example.truncated, model, inputs, window)
        cosine, error, norm = example.compare(model, wanted[1:])
        assert abs(found[0] - wanted[0]) < 1e-3 * wanted[0]
        assert 0.3 < cosine < 0.99999 and 0.001 < error < 1 and norm > 0.3
    gradients(model, example.truncated, model, inputs, 8)
    cosine, error, norm = example.compare(model, wanted[1:])
    assert abs(cosine - 1) < 1e-6 and error < 1e-6 and abs(norm - 1) < 1e-6


# States and tapes of different sizes

class Cache(torch.nn.Module):
    """Attention over all earlier states, which are the state."""

    def __init__(self, n=16):
        super().__init__()
        self.q, self.k = torch.nn.Linear(n, n), torch.nn.Linear(n, n)

    def forward(self, rows, x, t):
        rows = torch.cat([rows, self.k(x)[:, None]], 1)
        scores = (rows @ self.q(x)[:, :, None]).softmax(1)
        return rows, (scores * rows).sum(1)


def cache_case(steps=60):
    torch.manual_seed(1)
    return Cache(), torch.zeros(3, 0, 16), torch.randn(steps, 3, 16)


def run_cache(made, start, x, **options):
    last, out = nt.scan(made, start, x, costs=COSTS, **options)
    return torch.autograd.grad(last.sin().sum() + out.cos().sum(), list(made.parameters()))


@pytest.mark.parametrize("group", [None, 1, 4])
def test_growing_states_are_planned_with_their_sizes(group):
    case = cache_case()
    wanted = run_cache(*case)
    with pytest.raises(neap.BudgetError) as caught:
        run_cache(*case, memory=1)
    for memory in (6 * caught.value.least, 2 * caught.value.least):
        assert all(map(torch.equal, run_cache(*case, memory=memory, group=group), wanted))
        told = nt.report()
        assert told.plan.chosen == "chain" and told.outgrown == told.recorded_again == 0 < told.extra_steps
        assert told.counted_peak <= told.planned_peak <= memory - told.charged
        assert told.extra_steps == told.plan.advance_steps * told.group + told.plan.record_steps * told.group - 60
        assert told.state > 59 * 3 * 16 * 4
    made, start, x = case
    assert all(map(torch.equal, run_cache(made, start, x[:7], memory="1G"), run_cache(made, start, x[:7])))


def test_plans_of_growing_states_recompute_less_than_plans_of_equal_ones():
    case = cache_case()
    memory = 250_000
    run_cache(*case, memory=memory, group=1)
    planned = nt.report()
    run_cache(*case, memory=memory, group=1, strategy="revolve")
    assert planned.extra_steps < nt.report().extra_steps


def test_a_budget_that_is_too_small_for_a_plan_of_growing_states():
    """It is planned as if they did not grow, and the player makes room."""
    case = cache_case()
    with pytest.raises(neap.BudgetError) as caught:
        run_cache(*case, memory=1)
    wanted = run_cache(*case)
    assert all(map(torch.equal, run_cache(*case, memory=caught.value.least), wanted))
    told = nt.report()
    assert told.counted_peak <= caught.value.least - told.charged
    with pytest.raises(neap.BudgetError):
        run_cache(*case, memory=caught.value.least // 2, strategy="chain")


def test_sizes_of_every_step_on_request():
    """strategy="chain" also for states of equal sizes."""
    made, start, x = torch.nn.GRUCell(4, 8), torch.zeros(2, 8), torch.randn(50, 2, 4)
    rows = []
    for options in ({}, {"memory": "10K", "strategy": "chain"}):
        last, _ = nt.scan(made, start, x, costs=COSTS, **options)
        rows.append(torch.autograd.grad(last.sum(), list(made.parameters())))
    assert all(map(torch.equal, *rows))
    told = nt.report()
    assert told.plan.chosen == "chain" and told.extra_steps > 0 and told.counted_peak <= told.planned_peak


@pytest.mark.parametrize("options", [{"memory": "10M"}, {"memory": "10M", "costs": COSTS, "group": 4},
                                     {"memory": "64K", "strategy": "chain"}])
def test_measured_steps_are_those_of_the_loop(options):
    """A table of T positions, which the length of the cache selects, and a mask whose length is the number of the
    step."""
    class Positions(Cache):
        def forward(self, rows, x, t):
            assert rows.shape[1] == t < len(self.table)
            rows, out = super().forward(rows, x + self.table[rows.shape[1]], t)
            return rows, out * torch.ones(t + 1).sum()
    for steps in (1, 2, 7, 25, 39):
        made, start, x = cache_case(steps)
        made = Positions()
        made.register_buffer("table", torch.randn(steps, 16))

        def gradients(**given):
            last, out = nt.scan(made, start, x, **given)
            return torch.autograd.grad(last.sin().sum() + out.cos().sum(), list(made.parameters()))
        assert all(map(torch.equal, gradients(**options), gradients()))


def test_a_plan_of_growing_states_is_made_once():
    made, start, x = cache_case()
    scan, kept = nt.Scan(made, memory="200K", costs=COSTS), []
    for _ in range(2):
        _, out = scan(start, x)
        out.sum().backward()
        kept.append((scan.report().plan, scan.report().counts.actions))
    assert kept[0][0] is kept[1][0] and kept[0][1] == kept[1][1] > 2 * 60


def test_growing_states_stay_in_memory(scratch):
    case = cache_case()
    with pytest.warns(RuntimeWarning, match="slow= or host= has no effect: the size of the state changes") as caught:
        found = run_cache(*case, memory=200_000, slow=str(scratch))
    assert all(map(torch.equal, found, run_cache(*case))) and caught[0].filename == __file__


class Late(Cache):
    """The cache grows only from step 45 on, after the measured steps; or its shape changes, but not its bytes."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, rows, x, t):
        if self.kind == "turns":
            return (rows.transpose(0, 1) if t > 44 else rows) * 0.9 + 0.1 * self.k(x).mean(), self.q(x)
        more, out = super().forward(rows, x, t)
        return (more if t > 44 else more[:, :rows.shape[1]] * 0.9 + 0.1 * more[:, -1:]), out


@pytest.mark.heavy  # so that states are offloaded, not tapes
@pytest.mark.parametrize("kind, strategy", [("grows", "auto"), ("grows", "disk-revolve"),
                                            ("turns", "auto"), ("turns", "disk-revolve")])
def test_a_state_that_grows_after_the_measured_steps(kind, strategy, monkeypatch):
    tier = OpenTier(Tier(write=1e9, read=1e9, capacity=1 << 24, name="mem", duplex=True).spec())
    monkeypatch.setattr(sys.modules["neap.torch.facts"], "measured_tiers", lambda *unused: [tier])  # same plans always
    made, start, x = cache_case()
    made, start = Late(kind), torch.randn(3, 4, 16)
    wanted = run_cache(made, start, x)
    options = {"slow": "mem:16M", "strategy": strategy, "group": 2}
    with pytest.raises(neap.BudgetError) as caught:
        run_cache(made, start, x, memory=1, **options)
    for share in (1, 1.2):
        memory = int(share * caught.value.least)
        scan, planned = nt.Scan(made, memory=memory, costs=COSTS, **options), []
        for attempt in range(2):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                last, out = scan(start, x)
            found = torch.autograd.grad(last.sin().sum() + out.cos().sum(), list(made.parameters()))
            assert all(map(torch.equal, found, wanted))
            told = scan.report()
            assert told.counted_peak <= memory - told.charged
            assert told.recoveries > 0 if share == 1 else strategy != "auto" or told.recoveries == 0
            planned.append(any("slow= or host= has no effect: the size" in str(w.message) for w in warned))
        # With the least budget, such states may be offloaded only in the backward pass, which does not plan.
        assert planned == [strategy == "auto", False] or share == 1 and planned == [False, False]
    with pytest.raises(neap.BudgetError) as refused:
        run_cache(made, start, x, memory=caught.value.least // 2, **options)
    assert refused.value.least > caught.value.least // 2


def test_a_state_that_grows_is_not_taken_for_a_batch(recwarn):
    """Its first dimension is the batch from the beginning."""
    made, start, x = cache_case(2)
    nt.scan(made, start, x)
    assert not recwarn.list
