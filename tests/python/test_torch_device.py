# SPDX-License-Identifier: Apache-2.0
"""neap.torch with states and tapes that leave an accelerator: a fake device (fake_device.py), and a real one.
`pytest -m cuda` runs the same on CUDA or ROCm.
"""
import sys

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, case, grads, plain, same, scanned  # noqa: E402
from fake_device import Fake  # noqa: E402
from neap.player import Player  # noqa: E402
from neap.torch import device as devices  # noqa: E402
from neap.torch.tiers.offload import Offload  # noqa: E402


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    monkeypatch.setattr(sys.modules["neap.torch.scan"], "offloading",
                        lambda host, slow, tensors: made if host or slow else None)
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
        assert told.recoveries == 0
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


def bits(*tensors):
    return [(x.view(torch.uint8), x.numel() * x.element_size()) for x in tensors]


def test_an_offload(fake):
    store = Offload(fake, 64, True)
    store.format([2])
    a, b, c = torch.arange(16.0), torch.zeros(16), torch.zeros(16)
    sent = store.put(1, 0, 1, bits(a))
    assert not sent.ticket.done()
    back = store.get(1, 0, 1, bits(b))
    again = store.put(1, 0, 2, bits(a * 2))  # comes after the copy back
    store.wait(again)
    assert not back.ticket.done()
    store.wait(back)
    assert sent.ticket.done() and torch.equal(a, b)
    store.wait(store.get(1, 0, 2, bits(c)))
    assert torch.equal(c, a * 2)
    with pytest.raises(neap.LostRecord):
        store.get(1, 0, 1, bits(b))
    store.forget(1, 0)
    with pytest.raises(neap.LostRecord):
        store.get(1, 0, 2, bits(b))
    with pytest.raises(OSError):
        store.put(1, 2, 1, bits(a))
    store.put(1, 1, 3, bits(a))
    store.close()
    assert fake.open == [] and fake.slabs.used == 0


def test_no_host_memory(fake):
    """Every record is refused, and every state computed again."""
    on_host("wide", "auto")  # the rates are measured
    fake.slabs.trim()
    fake.limit = 30000
    with pytest.warns(RuntimeWarning, match="cannot be allocated, so they are recomputed: no pinned memory. Pass a "):
        told = on_host("wide", "double")
    assert told.recoveries == told.counts.gets > 0


def test_copies_are_waited_for_when_a_backward_ends_early(fake, monkeypatch):
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
    monkeypatch.setattr(Player, "_backward", failing)
    with pytest.raises(KeyError):
        out.sum().backward()
    assert fake.open == []


def test_refusals():
    with pytest.raises(neap.UsageError, match=r"host= offloads from the CPU or from one CUDA or ROCm device"):
        devices.offloading(1 << 20, None, [torch.zeros(2, device="meta")])
    with pytest.raises(neap.UsageError, match=r"or remove slow="):
        devices.offloading(None, "/scratch", [torch.zeros(2, device="meta")])


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
@pytest.mark.parametrize("tiers", ["host", "files", "both"])
def test_tapes_of_a_real_device(scratch, tiers):
    """Tapes leave it, and the budget is what its allocator counts."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA or ROCm device")
    made, state, x, read = case("wide", 400, 3)
    given = made.cuda(), state.detach().cuda().requires_grad_(), x.detach().cuda().requires_grad_(), read.cuda()
    wanted = grads(plain, *given)
    where = {"host": dict(host="64M"), "files": dict(slow=scratch), "both": dict(host="4M", slow=scratch)}[tiers]
    run = scanned(strategy="stream", memory="4M", **where)
    grads(run, *given)  # measures
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    same(grads(run, *given), wanted)
    told = nt.report()
    assert told.recoveries == 0 and told.counts.tape_puts > 0
    assert torch.cuda.max_memory_allocated() - before <= 1.03 * (4 << 20) + (16 << 20)


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
