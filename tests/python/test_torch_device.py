# SPDX-License-Identifier: Apache-2.0
"""neap.torch with states that leave an accelerator: a fake device that is late, and a real one.

Copies of the fake device happen when they are waited for, not before. Until then the destination
is garbage, and so is a place's memory that is freed. Wrong order, missing waits and early reuse
therefore change bits. `pytest -m cuda` runs the same on CUDA or ROCm.
"""
import sys

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, case, grads, plain, same, scanned  # noqa: E402
from neap.player import Player  # noqa: E402
from neap.torch import device as devices  # noqa: E402


def scribble(tensors):
    for tensor in tensors:
        tensor.detach().reshape(-1).view(torch.uint8).fill_(0xff)  # NaN of every type


class Late(devices.Ticket):
    """A copy that is made when somebody waits."""

    def __init__(self, device, copy, after):
        self.device, self.copy, self.after = device, copy, after
        device.open.append(self)

    def done(self):
        return self.copy is None

    def wait(self):
        if self.copy is not None:
            copy, self.copy = self.copy, None
            for ticket in self.after:
                ticket.wait()
            copy()
            self.device.open.remove(self)

    finish = wait


class Fake(devices.Device):
    """Its memory is the CPU's; ``open`` copies were not waited for."""

    def __init__(self):
        self.open, self.copies, self.blocks = [], 0, []

    def allocate(self, nbytes):
        block = torch.full((nbytes,), 0xff, dtype=torch.uint8)
        self.blocks.append(block)
        return block

    def copy_out(self, tensors, host, after):
        self.copies += 1
        before = [x.clone() for x in tensors]

        def copy():
            for a, b in zip(tensors, before):
                assert torch.equal(a, b), "changed before the wait"
            devices.copied(host, tensors, True)
        return Late(self, copy, list(after))

    def copy_in(self, host, tensors, after):
        self.copies += 1
        scribble(tensors)
        return Late(self, lambda: devices.copied(host, tensors, False), list(after))


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    monkeypatch.setattr(sys.modules["neap.torch.scan"], "device_of", lambda tensors: made)
    return made


def on_host(cell, strategy, group=1, **options):
    """A scan with the bits of a plain loop, whose states go to host memory."""
    given = case(cell, 60, 3)
    wanted = grads(plain, *given)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    memory = extra + (400000 if cell == "wide" else 4000)
    run = scanned(strategy=strategy, group=group, memory=memory, host="64M", **options)
    try:
        found = grads(run, *given)
    except neap.BudgetError as error:
        found = grads(scanned(strategy=strategy, group=group, memory=error.least, host="64M", **options), *given)
    same(found, wanted)
    return nt.report()


@pytest.mark.parametrize("strategy", ["remote", "double", "disk-revolve", "auto"])
@pytest.mark.parametrize("cell", ["lstm", "wide", "drop"])
def test_states_in_host_memory(fake, cell, strategy):
    for group in (1, 3):
        told = on_host(cell, strategy, group)
        assert told.recoveries == 0 and told.counts.tape_puts == 0
        assert told.counted_peak <= told.planned_peak
        assert told.counts.puts > 0 or strategy == "auto"
    assert fake.copies > 0 and fake.open == []


def test_conjugate_states_in_host_memory(fake):
    """Copies take a state's memory; what comes back is the conjugate of it."""
    torch.manual_seed(4)
    w, h = (torch.randn(6, 6, dtype=torch.complex128) * 0.3).requires_grad_(), torch.randn(3, 6, dtype=torch.complex128)
    rows = []
    for options in (None, dict(memory="5K", group=1, strategy="remote", host="4M", costs=COSTS)):
        def step(h, x, t):
            h = torch.tanh(h @ w + 0.3j)
            return (h.conj() if t % 3 else h), h.abs()
        last, out = plain(step, h.conj(), None, 40) if options is None else nt.scan(step, h.conj(), steps=40, **options)
        rows.append([out.detach(), *torch.autograd.grad(out.sum() + last.imag.sum(), w)])
    same(*rows)
    assert nt.report().counts.puts > 0 and nt.report().recoveries == 0 and fake.open == []


def test_an_order_that_is_wrong_is_seen(fake, monkeypatch):
    """The fake device tells: waits that are left out, copies that do not wait for one another."""
    wait = devices.HostStore.wait
    monkeypatch.setattr(devices.HostStore, "wait", lambda self, ticket: None)
    with pytest.raises((AssertionError, RuntimeWarning)):  # a state that came back wrong is another one
        on_host("wide", "double")
    monkeypatch.setattr(devices.HostStore, "wait", wait)
    copy_in = Fake.copy_in
    monkeypatch.setattr(Fake, "copy_in", lambda self, host, tensors, after: copy_in(self, host, tensors, ()))
    store = devices.HostStore(fake, 64)
    store.format([2])
    a, b = torch.arange(16.0), torch.zeros(16)
    store.put(1, 0, 1, [a])
    store.wait(store.get(1, 0, 1, [b]))
    assert not torch.equal(a, b)
    monkeypatch.setattr(Fake, "copy_in", copy_in)
    assert on_host("wide", "double").counts.gets > 0


def test_a_host_store(fake):
    store = devices.HostStore(fake, 64)
    store.format([2])
    a, b, c = torch.arange(16.0), torch.zeros(16), torch.zeros(16)
    sent = store.put(1, 0, 1, [a])
    assert not sent.done()
    back = store.get(1, 0, 1, [b])
    again = store.put(1, 0, 2, [a * 2])  # comes after the copy back
    store.wait(again)
    assert sent.done() and back.done() and torch.equal(a, b)
    store.wait(store.get(1, 0, 2, [c]))
    assert torch.equal(c, a * 2)
    with pytest.raises(neap.LostRecord):
        store.get(1, 0, 1, [b])
    store.forget(1, 0)
    with pytest.raises(neap.LostRecord):
        store.get(1, 0, 2, [b])
    with pytest.raises(OSError):
        store.put(1, 2, 1, [a])
    store.put(1, 1, 3, [a])
    store.close()
    assert fake.open == []


def test_no_host_memory(fake, monkeypatch):
    """Every record is refused, and every state computed again."""
    def nothing(self, nbytes):
        if nbytes > 30000:
            raise RuntimeError("no pinned memory")
        return torch.zeros(nbytes, dtype=torch.uint8)
    monkeypatch.setattr(Fake, "allocate", nothing)
    told = on_host("wide", "double")
    assert told.recoveries == told.counts.gets > 0


def test_copies_are_waited_for_when_a_backward_ends_early(fake):
    """An exception half way, and a scan that is dropped, leave no copy under way."""
    made, state, x, _ = case("wide", 60, 3)
    options = dict(strategy="double", group=1, memory="420K", host="64M", costs=COSTS)
    last, out = nt.scan(made, state, x, **options)
    assert fake.copies > 0
    out.grad_fn.player.close()
    assert fake.open == []

    def failing(self, a):
        raise KeyError("made up")
    last, out = nt.scan(made, state, x, **options)
    original = Player._backward
    from neap import player
    player._PERFORM[neap.BACKWARD] = failing
    try:
        with pytest.raises(KeyError):
            out.sum().backward()
    finally:
        player._PERFORM[neap.BACKWARD] = original
    assert fake.open == []


def test_refusals():
    made, state, x, _ = case("wide", 20, 3)
    with pytest.raises(neap.UsageError, match="the state is on the CPU"):
        nt.scan(made, state, x, memory="1M", host="1M")


@pytest.mark.cuda
@pytest.mark.parametrize("strategy", ["double", "disk-revolve", "auto"])
def test_a_real_device(strategy):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA or ROCm device")
    made, state, x, read = case("wide", 60, 3)
    given = made.cuda(), state.detach().cuda().requires_grad_(), x.detach().cuda().requires_grad_(), read.cuda()
    wanted = grads(plain, *given)
    same(grads(scanned(strategy=strategy, group=1, memory="450K", host="64M"), *given), wanted)
    assert nt.report().recoveries == 0
    assert nt.report().counts.puts > 0 or strategy == "auto"


@pytest.mark.cuda
def test_a_real_devices_generator():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA or ROCm device")
    cell, h = torch.nn.GRUCell(4, 6).cuda(), torch.zeros(3, 6, device="cuda")
    x = torch.randn(20, 3, 4, device="cuda")

    def step(h, i, t):
        h = cell(i, torch.nn.functional.dropout(h, 0.3))
        return h, h
    rows = []
    for run in (plain, lambda *given: nt.scan(*given, memory="100K", strategy="revolve", group=2)):
        torch.cuda.manual_seed(4)
        cell.zero_grad()
        run(step, h, x)[1].sum().backward()
        rows.append([p.grad.clone() for p in cell.parameters()] + [torch.rand(3, device="cuda")])
    same(rows[1], rows[0])
