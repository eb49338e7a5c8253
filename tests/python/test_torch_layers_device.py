# SPDX-License-Identifier: Apache-2.0
"""Layers on a CUDA device: the bits of the CPU for all budgets. Without a GPU, tensors of the CPU stand for those of a device, and
libneap-nn uses the fake driver of tests/cuda, which does the work of the default stream at once. Tests with the mark ``cuda`` use a
GPU."""
import contextlib
import os
import random
import threading

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.torch.layers import nets  # noqa: E402

CELLS = {"lif": (nt.lif, 1), "alif": (nt.alif, 1), "lstm": (nt.lstm, 4), "gru": (nt.gru, 3)}


@pytest.fixture
def card(monkeypatch):
    """Returns a function that says where tensors of the CPU are from now on: True, on the fake device."""
    if not os.environ.get("NEAP_FAKE_DRIVER"):
        pytest.skip("needs the fake driver (NEAP_FAKE_DRIVER)")
    monkeypatch.setenv("NEAP_CUDA_DRIVER", os.environ["NEAP_FAKE_DRIVER"])
    monkeypatch.setenv("FAKE_CUDA", "foreign=1")
    monkeypatch.setenv("NEAP_ISA", "lowered")  # the bits of a device
    there = [False]
    monkeypatch.setattr(nets, "place", lambda tensor: "cuda:0" if there[0] else "")
    monkeypatch.setattr(nets, "stream", lambda device: None)
    monkeypatch.setattr(nets, "finish", lambda device: None)
    monkeypatch.setattr(nets, "guard", lambda device: contextlib.nullcontext())

    def put(on):
        there[0] = on
    return put


def leaves(cell, seed, spiking):
    """Random inputs and parameters of a layer, and the gradient of its outputs."""
    numbers = random.Random(seed)
    torch.manual_seed(seed)
    steps, batch, features, n = (numbers.choice(row) for row in ((63, 64, 130), (1, 3, 9), (1, 7, 40), (5, 33)))
    gates = CELLS[cell][1]
    x = torch.randn(steps, batch, features)
    x = (x > 0.6).float() if spiking else 0.5 * x
    rows = [x, torch.randn(gates * n, features) * (1.2 / features ** 0.5), torch.randn(gates * n, n) * (0.5 / n ** 0.5),
            0.1 * torch.randn(gates * n)]
    return [row.requires_grad_() for row in rows], torch.randn(steps, batch, n)


def passes(cell, rows, weights, **options):
    """Outputs, last state and gradients of a call and of one that continues from it."""
    x, w_in, w_rec, bias = rows
    biases = (bias,) if CELLS[cell][1] == 1 else (bias, None)
    run = CELLS[cell][0]
    first, state = run(x, w_in, w_rec, *biases, **options)
    rows_of = [state] if isinstance(state, torch.Tensor) else list(state)
    again = tuple(row.detach() for row in rows_of)
    second, _ = run(x, w_in, w_rec, *biases, state=again[0] if isinstance(state, torch.Tensor) else again, **options)
    found = torch.autograd.grad((first * weights).sum() + (second * weights.flip(0)).sum(), rows)
    return [first.detach(), second.detach(), *again, *found]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("spiking", [True, False])
def test_bits_of_the_cpu(card, cell, spiking):
    rows, weights = leaves(cell, len(cell) + spiking, spiking)
    card(False)
    wanted = passes(cell, rows, weights)
    assert sum(float(row.abs().sum()) for row in wanted[:2]) > 0
    card(True)
    for options in {}, {"memory": "100K"}:
        for a, b in zip(passes(cell, rows, weights, **options), wanted):
            assert torch.equal(a, b), (cell, options)


@pytest.mark.parametrize("surrogate", ["sigmoid", "superspike", "double_gaussian"])
def test_surrogates_without_an_end(card, surrogate):
    found = []
    for on in False, True:
        card(on)
        rows, weights = leaves("lif", 3, True)
        found.append(passes("lif", rows, weights, surrogate=surrogate, memory="100K"))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_states_and_inputs_have_gradients(card):
    found = []
    for on in False, True:
        card(on)
        torch.manual_seed(1)
        x, w, v = torch.randn(70, 3, 5, requires_grad=True), torch.randn(16, 5), 0.5 * torch.randn(16, 4)
        h, c = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
        outputs, (last, carried) = nt.lstm(x, w, v, state=(h, c))
        found.append(torch.autograd.grad(outputs.square().sum() + last.sum() + carried.sum(), (x, h, c)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_without_gradients_and_modules(card):
    found = []
    for on in False, True:
        card(on)
        torch.manual_seed(2)
        layer = nt.LIF(6, 9, recurrent=True, scale=2.0)
        with torch.no_grad():
            found.append(layer((torch.rand(40, 2, 6) < 0.3).float())[0])
    assert torch.equal(*found) and found[0].sum() > 0


@pytest.mark.parametrize("words, options, dtype", [
    ("float32", {}, torch.float64), ("slow=", {"slow": "/var/tmp"}, torch.float32)])
def test_refused(card, words, options, dtype):
    card(True)
    with pytest.raises(neap.UsageError, match=words):
        nt.lif(torch.rand(5, 2, 3, dtype=dtype), torch.rand(4, 3, dtype=dtype), **options)


def test_numbers_that_are_not_finite(card):
    card(True)
    x = torch.rand(5, 2, 3)
    x[3, 1, 2] = float("nan")
    with pytest.raises(neap.UsageError, match="not finite"):
        nt.lif(x, torch.rand(4, 3))


@pytest.mark.parametrize("grad", [True, False])
def test_threads_take_turns(card, grad, monkeypatch):
    """Every call of the library for a network of the device, also that which frees it, is in the turn of its thread."""
    card(True)
    nets._free.clear()
    original, found, own = nets.nn(), [], nets._turns.setdefault("cuda:0", threading.RLock())

    class Library:
        def __getattr__(self, name):
            def call(*given):
                found.append((name, own._is_owned()))
                return getattr(original, name)(*given)
            return call
    monkeypatch.setattr(nets, "nn", lambda: Library())
    x = (torch.rand(9, 2, 3) < 0.5).float()
    for units in range(2, 25):
        w = torch.rand(units, 3, requires_grad=grad)
        kept = [nt.lif(x, w)[0] for _ in range(3)]
        if grad and units % 2:  # other graphs are freed without a backward pass
            sum(kept).sum().backward()
        kept.clear()
    names = {name for name, _ in found}
    assert {"neap_net_create", "neap_net_begin", "neap_net_free"} <= names
    assert [name for name, turn in found if not turn and name != "neap_spikes_list"] == []


def test_given_in_the_turn_of_another_thread(card):
    """It does not wait, and the other thread keeps the network at the end of its turn."""
    card(True)
    x, w = (torch.rand(9, 2, 3) < 0.5).float(), torch.rand(4, 3, requires_grad=True)
    out = nt.lif(x, w)[0]
    begun, go = threading.Event(), threading.Event()

    def other():
        with nets.turn("cuda:0"):
            begun.set()
            go.wait(20)
    thread = threading.Thread(target=other)
    thread.start()
    begun.wait(20)
    del out
    assert len(nets._late) == 1
    go.set()
    thread.join()
    assert not nets._late


@pytest.mark.cuda
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("spiking", [True, False])
def test_bits_of_the_cpu_on_a_gpu(cell, spiking, monkeypatch):
    """On a side stream, too: work before a call and after it is in its order."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    monkeypatch.setenv("NEAP_ISA", "lowered")
    rows, weights = leaves(cell, len(cell) + spiking, spiking)
    wanted = passes(cell, rows, weights)
    for stream in torch.cuda.default_stream(), torch.cuda.Stream():
        stream.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(stream):
            there = [row.detach().cuda().requires_grad_() for row in rows]
            for options in {}, {"memory": "100K"}:
                for a, b in zip(passes(cell, there, weights.cuda(), **options), wanted):
                    assert torch.equal(a.cpu(), b), (cell, options)
