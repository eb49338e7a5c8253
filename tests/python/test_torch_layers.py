# SPDX-License-Identifier: Apache-2.0
"""Layers over libneap-nn: spikes and gradients of plain loops in PyTorch, the same bits for all budgets, tiers and
numbers of threads, states that continue, and arguments that are refused."""
import gc
import math
import random

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap import specs  # noqa: E402
from neap.torch.layers import nets  # noqa: E402
from neap.torch.surrogates import spikes as threshold  # noqa: E402

F64 = torch.float64


def lif_loop(x, w, v, b, state=None, reset="subtract", detach=False, kind="triangle", width=0.5, height=1.0, theta=1.0,
             to=0.0, tau=20e-3, cut=None):
    """The equations of docs/cells.md."""
    beta, shape = math.exp(-1e-3 / tau), (x.shape[1], w.shape[0])
    u, s = state if state else (x.new_zeros(shape), x.new_zeros(shape))
    cut = width if cut is None and kind in specs.COMPACT else math.inf if cut is None else cut
    found = []
    for row in x:
        seen = s.detach() if detach else s
        arrived = row @ w.t() + s @ v.t() + b
        if reset == "subtract":
            u = beta * u + arrived - theta * seen
        elif reset == "zero":
            u = (1 - seen) * (beta * u + arrived)
        else:
            u = beta * u + arrived
        s = threshold(u, kind, theta, width, height, cut)
        found.append(s)
        seen = s.detach() if detach else s
        if reset == "hard":
            u = (1 - seen) * u + to * seen
        elif reset == "soft":
            u = u - theta * seen
    return torch.stack(found), (u, s)


def alif_loop(x, w, v, b, tau, tau_adapt, kappa):
    beta, rho = math.exp(-1e-3 / tau), math.exp(-1e-3 / tau_adapt)
    u = a = s = x.new_zeros(x.shape[1], w.shape[0])
    found = []
    for row in x:
        a = rho * a + s
        u = beta * u + row @ w.t() + s @ v.t() + b - s
        s = threshold(u - kappa * a, "triangle", 1.0, 0.5, 1.0, 0.5)
        found.append(s)
    return torch.stack(found)


def leaves(seed, dtype=F64, spiking=True, shape=None):
    """Random inputs, weights and output gradients."""
    numbers = random.Random(seed)
    torch.manual_seed(seed)
    steps, batch, features, n = shape or [numbers.choice(row) for row in ((1, 63, 64, 130), (1, 3, 9), (1, 7, 40), (1, 5, 33))]
    x = torch.randn(steps, batch, features, dtype=dtype)
    x = (x > 0.6).to(dtype) if spiking else 0.5 * x
    rows = [x, torch.randn(n, features, dtype=dtype) * (1.2 / math.sqrt(features)) + 0.05,
            torch.randn(n, n, dtype=dtype) * (0.5 / math.sqrt(n)), 0.1 * torch.randn(n, dtype=dtype)]
    return [row.requires_grad_() for row in rows], torch.randn(steps, batch, n, dtype=dtype)


def grads(outputs, weights, given):
    return torch.autograd.grad((outputs * weights).sum(), given)


def close(found, wanted, most):
    for a, b in zip(found, wanted):
        a, b = a.detach(), b.detach()
        assert (a - b).abs().max() <= most * max(1e-3, float(b.abs().max()))


@pytest.mark.parametrize("reset", ["subtract", "zero", "hard", "soft"])
@pytest.mark.parametrize("kind", specs.SURROGATES)
def test_lif_equals_a_plain_loop(reset, kind):
    seed = hash_of(reset, kind)
    numbers = random.Random(seed)
    options = dict(reset=reset, detach=numbers.random() < 0.4, tau=numbers.choice([5e-3, 20e-3]))
    width, theta, to = numbers.choice([0.3, 0.7]), numbers.choice([0.8, 1.0]), numbers.choice([0.0, 0.2])
    for spiking in (True, False):
        given, g = leaves(seed + spiking, spiking=spiking)
        wanted, _ = lif_loop(*given, kind=kind, width=width, theta=theta, to=to, **options)
        outputs, _ = nt.lif(*given, surrogate=kind, width=width, threshold=theta, reset_value=to, **options)
        assert torch.equal(outputs, wanted)
        close(grads(outputs, g, given), grads(wanted, g, given), 1e-12)


def hash_of(*words):
    return sum(ord(c) * 31 ** (i % 5) for i, c in enumerate("".join(words))) % 100000


def test_float32_is_close():
    given, g = leaves(3, torch.float32, shape=(100, 5, 12, 17))
    wanted, _ = lif_loop(*given)
    outputs, _ = nt.lif(*given)
    assert torch.equal(outputs, wanted) and 0.01 < outputs.mean() < 0.5
    close(grads(outputs, g, given), grads(wanted, g, given), 1e-4)


def test_alif_equals_a_plain_loop():
    for seed in range(4):
        given, g = leaves(seed, spiking=seed % 2 == 0)
        wanted = alif_loop(*given, 20e-3, 50e-3, 0.3)
        outputs, (u, a, s) = nt.alif(*given, tau_adapt=50e-3, adapt=0.3)
        assert torch.equal(outputs, wanted) and torch.equal(s, outputs[-1])
        close(grads(outputs, g, given), grads(wanted, g, given), 1e-12)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_gated_layers_equal_pytorch(name):
    for seed in range(6):
        steps, batch, features, n = ((1, 1, 1, 1), (65, 3, 4, 7), (130, 9, 6, 5))[seed % 3]
        torch.manual_seed(seed)
        whole = getattr(torch.nn, name.upper())(features, n, bias=seed != 2).to(F64)
        weights = list(whole.parameters())
        x = torch.randn(steps, batch, features, dtype=F64, requires_grad=True)
        state = [torch.randn(batch, n, dtype=F64, requires_grad=True) for _ in range(2 if name == "lstm" else 1)]
        g = [torch.randn(steps, batch, n, dtype=F64), *torch.randn(len(state), batch, n, dtype=F64)]
        given = [x, *weights, *state] if seed >= 3 else [x, *weights]

        def loss(outputs, last):
            rows = [last] if torch.is_tensor(last) else last
            return sum((a * b.view_as(a)).sum() for a, b in zip([outputs, *rows], g))

        first = tuple(row[None] for row in state)
        wanted = whole(x, first if name == "lstm" else first[0]) if seed >= 3 else whole(x)
        options = dict(state=state if name == "lstm" else state[0]) if seed >= 3 else {}
        found = getattr(nt, name)(x, *weights, **options)
        close([found[0]], [wanted[0]], 1e-13)
        close(torch.autograd.grad(loss(*found), given), torch.autograd.grad(loss(*wanted), given), 1e-12)


@pytest.mark.filterwarnings("ignore:.*slower.*:RuntimeWarning")  # a plan depends on times that are measured
def test_bits_for_all_budgets_and_threads():
    """A budget that recomputes, one thread and several, tapes in memory and on a tier."""
    given, g = leaves(5, torch.float32, shape=(200, 9, 20, 33))
    outputs, _ = nt.lif(*given)
    wanted = [outputs, *grads(outputs, g, given)]
    recomputed = []
    for options in (dict(memory="256K"), dict(memory="40K", threads=2), dict(memory="100K", strategy="revolve"),
                    dict(threads=3), dict(memory="60K", slow="mem:64M", strategy="stream"),
                    dict(memory="60K", slow=["mem:64M"])):
        outputs, _ = nt.lif(*given, **options)
        found = [outputs, *grads(outputs, g, given)]
        assert all(torch.equal(a, b) for a, b in zip(found, wanted)), options
        told = nt.report()
        recomputed.append(told.extra_steps)
        if "memory" in options:
            assert told.counted_peak + told.charged <= told.memory
        if options.get("strategy") == "stream":
            assert told.counts.puts + told.counts.tape_puts > 0
    assert max(recomputed) > 150
    x = torch.randn(130, 9, 6, requires_grad=True)
    layer = nt.GRU(6, 8)
    for options in ({}, dict(memory="64K"), dict(threads=2, memory="40K")):
        layer.options = options
        y, _ = layer(x)
        found = torch.autograd.grad(y.sin().sum(), [x, *layer.parameters()])
        wanted = found if not options else wanted
        assert all(torch.equal(a, b) for a, b in zip(found, wanted)), options


@pytest.mark.filterwarnings("ignore:memory=.* slower")
def test_budget_error_has_a_sufficient_budget():
    given, g = leaves(5, torch.float32, shape=(200, 9, 20, 33))
    with pytest.raises(neap.BudgetError) as error:
        nt.lif(*given, memory=100)
    assert error.value.least > 100
    outputs, _ = nt.lif(*given, memory=error.value.least)
    grads(outputs, g, given)


@pytest.mark.parametrize("reset", ["subtract", "zero", "hard", "soft"])
def test_states_continue(reset):
    given, g = leaves(9, shape=(150, 4, 10, 13))
    x = given[0]
    whole, last = nt.lif(*given, reset=reset)
    one, state = nt.lif(x[:70], *given[1:], reset=reset)
    state = tuple(row.detach() for row in state)
    two, end = nt.lif(x[70:], *given[1:], reset=reset, state=state)
    assert torch.equal(torch.cat([one, two]), whole)
    assert all(torch.equal(a, b) for a, b in zip(end, last))
    wanted, _ = lif_loop(x[70:], *given[1:], state=state, reset=reset)
    assert torch.equal(two, wanted)
    close(grads(two, g[70:], given[1:]), grads(wanted, g[70:], given[1:]), 1e-12)


def test_feed_forward_without_bias():
    given, g = leaves(2, shape=(80, 3, 10, 8))
    x, w, _, b = given
    wanted, _ = lif_loop(x, w, torch.zeros(8, 8, dtype=F64), torch.zeros(8, dtype=F64), reset="hard")
    outputs, state = nt.lif(x, w, reset="hard")
    assert torch.equal(outputs, wanted) and len(state) == 1
    close(grads(outputs, g, [x, w]), grads(wanted, g, [x, w]), 1e-12)


def test_autograd():
    """Two backward passes, none, second derivatives, changed tensors, missing gradients, and gradients of states."""
    given, g = leaves(4, shape=(70, 3, 6, 5))
    free = sum(map(len, nets._free.values()))
    outputs, state = nt.lif(*given)
    first = torch.autograd.grad((outputs * g).sum(), given, retain_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(first, torch.autograd.grad((outputs * g).sum(), given)))
    assert nt.report().replays == 1
    outputs, state = nt.lif(*given)
    with pytest.raises(neap.UsageError, match="last state of nt.lif"):
        state[0].sum().backward()
    outputs, state = nt.lif(given[0], *given[1:])
    with pytest.raises(RuntimeError):
        torch.autograd.grad(grads(outputs, g.clone().requires_grad_(), given)[0].sum(), given)
    hidden = nt.lif(*given)[0]
    assert torch.autograd.grad(nt.lif(hidden, given[2])[0].sum(), given, allow_unused=True)[0] is not None
    del outputs, state, hidden
    gc.collect()
    assert sum(map(len, nets._free.values())) >= free
    x = torch.rand(20, 2, 6)
    weight = torch.randn(5, 6, requires_grad=True)
    outputs, _ = nt.lif(x, weight)
    with torch.no_grad():
        weight += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs.sum().backward()
    with torch.no_grad():
        assert not nt.lif(x, weight)[0].requires_grad and nt.report().plan is None
    assert torch.equal(nt.lif(x.transpose(0, 1).contiguous().transpose(0, 1), weight)[0], nt.lif(x, weight)[0])


def test_modules():
    cell = torch.nn.LSTMCell(6, 5)
    layer = nt.LSTM(6, 5, memory="1M")
    layer.load_state_dict(cell.state_dict())
    x = torch.randn(7, 3, 6)
    h = c = torch.zeros(3, 5)
    for row in x:
        h, c = cell(row, (h, c))
    outputs, (last, carried) = layer(x)
    close([last, carried, outputs[-1]], [h, c, h], 1e-5)
    net = nt.ALIF(6, 9, recurrent=True, adapt=0.2)
    assert sorted(name for name, _ in net.named_parameters()) == ["bias", "w_in", "w_rec"]
    assert "recurrent=True" in repr(net) and "adapt=0.2" in repr(net)
    net(x)[0].sum().backward()
    assert net.w_rec.grad is not None and nt.LIF(6, 9, bias=False).bias is None
    assert nt.GRU(6, 5, bias=False)(x)[0].shape == (7, 3, 5)


REFUSED = {
    "shape": (lambda x, w: nt.lif(x[0], w), r"\[T, B, features\]"),
    "empty": (lambda x, w: nt.lif(x[:0], w), r"\[T, B, features\]"),
    "weights": (lambda x, w: nt.lif(x, w.t()), r"w_in of nt.lif has shape \[6, 5\]"),
    "gates": (lambda x, w: nt.lstm(x, w, w), r"4 \* units"),
    "recurrent": (lambda x, w: nt.lif(x, w, w), r"w_rec of nt.lif has shape \[5, 6\]; it needs \[5, 5\]"),
    "bias": (lambda x, w: nt.lif(x, w, bias=x[0, 0]), r"it needs \[5\]"),
    "dtype": (lambda x, w: nt.lif(x.double(), w), "dtype torch.float32"),
    "half": (lambda x, w: nt.lif(x.half(), w.half()), "float32 or float64"),
    "list": (lambda x, w: nt.lif(x.tolist(), w), "x of nt.lif is not a dense tensor"),
    "device": (lambda x, w: nt.lif(x.to("meta"), w), "computed on the CPU and on CUDA devices"),
    "not finite": (lambda x, w: nt.lif(x / 0, w), "is not a finite number"),
    "spikes": (lambda x, w: nt.lif(x, w, spikes=True), "numbers other than 0 and 1"),
    "surrogate": (lambda x, w: nt.lif(x, w, surrogate="step"), "surrogate='step' is not known"),
    "reset": (lambda x, w: nt.lif(x, w, reset="no"), "reset='no' is not known"),
    "tau": (lambda x, w: nt.lif(x, w, tau=0), "tau=0 is not valid"),
    "adapt": (lambda x, w: nt.alif(x, w, adapt=-1), "adapt=-1"),
    "threads": (lambda x, w: nt.lif(x, w, threads=0), "threads=0"),
    "state": (lambda x, w: nt.lif(x, w, state=(x[0],)), "it needs .membrane, spikes."),
    "state's shape": (lambda x, w: nt.lif(x, w, state=(x[0], x[0])), r"state 0 of nt.lif has shape \[3, 6\]"),
    "state's gradient": (lambda x, w: nt.lif(x, w, state=(w[:3, :5].requires_grad_(), w[:3, :5])), "after .detach"),
    "strategy": (lambda x, w: nt.lif(x, w.requires_grad_(), memory="1M", strategy="chain"), "strategy='chain'"),
    "slow": (lambda x, w: nt.lif(x, w.requires_grad_(), memory="1M", slow=5), "slow=5"),
    "vmap": (lambda x, w: torch.vmap(lambda y: nt.lif(y, w)[0])(x[None]), "transform of torch.func"),
    "units": (lambda x, w: nt.LIF(6, 0), "0 units"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    if name == "vmap" and not hasattr(torch, "func"):
        pytest.skip("this PyTorch has no torch.func")
    call, message = REFUSED[name]
    torch.manual_seed(0)
    with pytest.raises(neap.UsageError, match=message):
        call(torch.randn(4, 3, 6), torch.randn(5, 6))


def test_library_is_missing(monkeypatch):
    from neap import _nn
    monkeypatch.setenv("NEAP_NN_LIBRARY", "/nowhere/libneap-nn.so")
    _nn.nn.cache_clear()
    try:
        with pytest.raises(ImportError, match="layers of neap.torch need libneap-nn"):
            nt.lif(torch.zeros(2, 1, 3), torch.zeros(4, 3))
    finally:
        monkeypatch.undo()
        _nn.nn.cache_clear()
