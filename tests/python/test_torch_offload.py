# SPDX-License-Identifier: Apache-2.0
"""neap.torch with tapes in host memory and in files: bits of the plain loop for every order and rate of copies, also
where copies fail and records are lost; every wait in offload.py is necessary; bytes of the device and of host memory.
"""
import gc
import itertools
import os
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, case, grads, plain, same, scanned  # noqa: E402
from fake_device import INSTANT, Fake  # noqa: E402
from neap.stores import Store  # noqa: E402
from neap.torch import device as devices  # noqa: E402
from neap.torch.tiers import offload, rates  # noqa: E402
from neap.torch.tiers.slabs import Slabs  # noqa: E402
from stacks_of_tests import same as same_rows, trained  # noqa: E402

WAYS = {"late": dict(), "instant": dict(rate=INSTANT), "slow": dict(rate=500), "reordered": dict(rate=4000, seed=1),
        "reordered and slow": dict(rate=300, seed=2)}


@pytest.fixture
def fake(monkeypatch):
    """A function that makes a device the one of all scans."""
    def made(**options):
        found = Fake(**options)
        for name in ("scan", "sequential"):
            monkeypatch.setattr(sys.modules[f"neap.torch.{name}"], "offloading",
                                lambda host, slow, tensors: found if host or slow else None)
        return found
    monkeypatch.setattr(rates, "rates_of", lambda *unused: rates.Rates(1e9, 1e9, 1e-6, 1e-6, True))
    return made


def room_of(cell):
    """A budget for a few of the tapes of a cell."""
    return 80000 if cell == "wide" else 6000


def scan_of(cell, steps=23, room=None, strategy="stream", group=1, **options):
    """The report of a scan with offloaded tapes and the bits of a plain loop."""
    given = case(cell, steps, 2)
    wanted = grads(plain, *given)
    extra = 2 * sum(-(-p.numel() * 4 // 64) * 64 for p in given[0].parameters())
    options.update(strategy=strategy, group=group, memory=extra + (room or room_of(cell)))
    try:
        found = grads(scanned(**options), *given)
    except neap.BudgetError as error:
        if not error.least:
            raise
        options["memory"] = error.least
        found = grads(scanned(**options), *given)
    same(found, wanted)
    told = nt.report()
    assert max(told.counted_peak, told.planned_peak) <= told.memory - told.charged
    assert told.recoveries or told.counted_peak <= told.planned_peak
    return told


def where(tiers, scratch):
    """Arguments of a scan for host memory, files, or both."""
    return {"host": {"host": "64M"}, "files": {"slow": scratch}, "both": {"host": "40K", "slow": scratch},
            "memory": {"slow": "mem:64M"}}[tiers]


def combinations():
    """Cells and tiers, each with a way; every way for two of them."""
    rows = list(itertools.product(["gru", "lstm", "both", "wide", "drop"], ["host", "files", "both"]))
    return [(*row, list(WAYS)[n % len(WAYS)]) for n, row in enumerate(rows)] + \
        [("lstm", "both", way) for way in WAYS] + [("wide", "host", way) for way in WAYS]


@pytest.mark.parametrize("cell, tiers, way", sorted(set(combinations())))
def test_tapes(fake, scratch, cell, tiers, way):
    made, moved, sent = fake(**WAYS[way]), 0, 0
    for strategy, group in (("stream", 1), ("stream", 4), ("auto", 3), ("double", 2), ("remote", 1)):
        told = scan_of(cell, strategy=strategy, group=group, **where(tiers, scratch))
        assert told.recoveries == 0, (strategy, group)
        moved, sent = moved + told.counts.tape_puts, sent + told.counts.puts
        if strategy == "stream":
            assert told.counts.tape_gets == told.counts.tape_puts > 0
        assert made.open == [] and made.slabs.used == 0
    assert moved > 0 and sent > 0 and made.copies >= 2 * moved
    assert os.listdir(scratch) == []


def test_several_tapes_in_flight(fake, scratch, monkeypatch):
    """One room for all records on their way to files: the CPU waits for it."""
    monkeypatch.setattr(offload, "ROOMS", 1)
    for way, tiers in itertools.product(WAYS, ("files", "memory")):
        fake(**WAYS[way])
        for cell in ("lstm", "wide"):
            assert scan_of(cell, **where(tiers, scratch)).recoveries == 0


def test_both_tiers_hold_tapes(fake, scratch):
    """Host memory is full; the rest goes to files."""
    made = fake()
    puts = []
    original = Store.put_tapes
    Store.put_tapes = lambda self, *rest: puts.append(rest) or original(self, *rest)
    try:
        told = scan_of("wide", steps=60, room=250000, strategy="auto", costs=(1000, 1000, 2000), host="900K",
                       slow=scratch)
    finally:
        Store.put_tapes = original
    assert 0 < len(puts) < told.counts.tape_puts and told.recoveries == 0
    assert told.host <= 900 << 10 and made.slabs.most <= 900 << 10


@pytest.mark.filterwarnings("ignore:host memory for states and tapes cannot be allocated")
@pytest.mark.parametrize("operation", ["out", "in", "wait", "allocate"])
@pytest.mark.parametrize("tiers", ["host", "files", "both"])
def test_copies_that_fail(fake, scratch, operation, tiers):
    """What did not arrive is recomputed."""
    lost = 0
    for cell, (strategy, group) in itertools.product(("lstm", "wide"), (("stream", 1), ("double", 2))):
        made = fake(failing=[operation])
        lost += scan_of(cell, strategy=strategy, group=group, **where(tiers, scratch)).recoveries
        assert made.open == [] and made.slabs.used == 0
    assert lost > 0 or operation == "allocate"


def test_records_in_files_that_are_damaged(fake, scratch, monkeypatch):
    """A record with a wrong tag, and a file whose bytes were overwritten after the forward pass."""
    fake(rate=3000, seed=4)
    get, count = Store.get_tapes, itertools.count()
    monkeypatch.setattr(Store, "get_tapes", lambda self, tier, place, tag, *rest: get(
        self, tier, place, tag + next(count) % 2, *rest))
    told = scan_of("both", steps=40, slow=scratch)
    assert 0 < told.recoveries < 40
    monkeypatch.setattr(Store, "get_tapes", get)
    given = case("both", 40, 2)
    wanted = grads(plain, *given)

    def damaged(made, state, x):
        found = nt.scan(made, state, x, strategy="stream", group=1, slow=scratch, memory="12K", costs=COSTS)
        for name in os.listdir("/proc/self/fd"):
            path = f"/proc/self/fd/{name}"
            if os.path.realpath(path).startswith(os.path.realpath(scratch)):
                with open(path, "r+b") as file:
                    size = os.fstat(file.fileno()).st_size
                    file.seek(size // 2)
                    file.write(b"x" * (size // 4))
        return found
    same(grads(damaged, *given), wanted)
    assert nt.report().recoveries > 0


# Each wait is necessary

WAITS = {
    "a copy out waits for the computation": ("[self.device.now(), *uses]", "[*uses]"),
    "a copy in waits for the computation": ("[self.device.now(), *row.put]", "[*row.put]"),
    "a copy in waits for the copy out": ("[self.device.now(), *row.put]", "[self.device.now()]"),
    "a copy out waits for the last copies of its place": ("row.host, [*row.put, *row.gets]", "row.host, []"),
    "a file is written after the copy to its room": ("            self.copied.finish()\n", ""),
    "a file is read after the copies of its room": ("            ticket.finish()\n        try:\n            self._fits",
                                                    "            pass\n        try:\n            self._fits"),
    "a copy out waits for the last copies of its room": ("(tensors, room.host, room.uses)", "(tensors, room.host, [])"),
    "a copy in from a room waits for the computation": ("self.tensors, [self.submitted])", "self.tensors, [])"),
    "a room is copied after the read": ("                self.files.wait(self.transfer)\n                self.ticket",
                                        "                self.ticket"),
    "a record is read after its write began": ("                job.submit()\n", "                pass\n"),
    "the computation waits for the copy": ("            move.ticket.wait()\n        except",
                                           "            pass\n        except"),
    "the sources are kept": ("Move((tensors, keep), ticket))\n        room", "Move(None, ticket))\n        room"),
    "the sources of a file are kept": ("tag, nbytes, (tensors, keep), ticket)", "tag, nbytes, None, ticket)"),
    "the destinations are kept": ("        return self._started(Move((tensors, keep), ticket))\n\n    def _read",
                                  "        return self._started(Move(None, ticket))\n\n    def _read"),
    "the destinations of a file are kept": ("transfer, tensors, (tensors, keep))\n        self._jobs",
                                            "transfer, tensors, None)\n        self._jobs"),
    "copies end before a scan does": ("                move.ticket.wait()\n        self._flying",
                                      "                pass\n        self._flying"),
    "abandoned copies end": ("            move.ticket.finish()\n    flying", "            pass\n    flying"),
    "host memory is given back with its copies": ("        block.uses = block.uses + uses\n", ""),
}


def without(old, new):
    """The module offload with one line changed."""
    with open(offload.__file__, encoding="utf-8") as file:
        text = file.read()
    assert text.count(old) == 1, (old, text.count(old))
    made = types.ModuleType("neap.torch.tiers.offload_mutant")
    made.__package__ = "neap.torch.tiers"
    exec(compile(text.replace(old, new), offload.__file__, "exec"), made.__dict__)
    return made


def used(module, made, slow):
    """Uses of an Offload that need all its waits; raises AssertionError if something is wrong."""
    torch.manual_seed(5)
    rows = [torch.randn(400) for _ in range(16)]

    def bits(x):
        return [(x.view(torch.uint8), x.numel() * x.element_size())]
    store = module.Offload(made, 1600, slow is None, slow)
    store.format([4], [4], [1600])
    for kind in ("", "_tapes"):
        put, get = getattr(store, "put" + kind), getattr(store, "get" + kind)

        def read(k):
            found = torch.zeros(400)
            return found, get(1, k % 4, k + 1, bits(found))
        for order in range(4):  # of waits for records that are written and read, to the same places each time
            numbers = range(4 * order, 4 * order + 4)
            sent = [put(1, k % 4, k + 1, bits(rows[k].clone())) for k in numbers]
            for move in sent if order % 2 else ():
                store.wait(move)
            back = [read(k) for k in numbers]
            if order == 2:  # the next records are written before these have arrived
                more = [put(1, k % 4, 100 + k, bits(rows[k] * 2)) for k in numbers]
                for move in more:
                    store.wait(move)
                made.drain()
            for (found, move), k in zip(back, numbers):
                store.wait(move)
                assert torch.equal(found, rows[k]), (kind, order, k)
            for move in () if order % 2 else sent:
                store.wait(move)
        store.wait(get(1, 0, 13, bits(torch.zeros(400))))  # without a reference to the destination
    kept = [put(1, k, 200 + k, bits(rows[k].clone())) for k in range(3)]
    store.close()
    assert made.open == []
    del kept
    abandoned(module, made, slow, rows[0], bits)


def abandoned(module, made, slow, row, bits):
    """A store that is dropped with copies under way, and the next user of its memory."""
    store = module.Offload(made, 1600, slow is None, slow)
    store.format([2])
    found = torch.zeros(400)
    store.wait(store.put(1, 0, 1, bits(row.clone())))
    move = store.get(1, 0, 1, bits(found))
    open_put = store.put(1, 1, 2, bits(row.clone()))
    if slow:
        store.wait(move)
    del store, move, open_put
    gc.collect()
    assert made.open == [] and torch.equal(found, row)
    store = module.Offload(made, 1600, slow is None, slow)
    store.format([1])
    store.wait(store.put(1, 0, 1, bits(row.clone())))
    store.close()
    block = made.slabs.take(1600)
    for ticket in block.uses:
        ticket.finish()
    block.host.fill_(7)
    made.drain()
    assert (block.host == 7).all()
    made.slabs.give(block)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of finalizers without a wait
def test_each_wait_is_necessary(fake, scratch, monkeypatch):
    def fails(module):
        for way, slow, rooms in itertools.product(("late", "reordered"), (None, scratch), (1, 4)):
            if slow or rooms == 1:
                monkeypatch.setattr(module, "ROOMS", rooms)
                made = Fake(**WAYS[way])
                try:
                    used(module, made, slow)
                except (AssertionError, neap.Error, OSError):
                    return True
                finally:
                    made.failing.clear()
        return False
    assert not fails(offload)
    assert [name for name, (old, new) in WAITS.items() if not fails(without(old, new))] == []


# Bytes

def test_slabs_are_exact():
    """Slabs are as large as requested; parts are reused, joined, and freed before more is allocated."""
    sizes, freed = [], []

    def allocate(nbytes):
        sizes.append(nbytes)
        return torch.zeros(nbytes, dtype=torch.uint8)
    slabs = Slabs(allocate, lambda memory: freed.append(memory.numel()))
    a = slabs.take(5000)
    assert sizes == [8192] and slabs.held == 8192 and slabs.used == 5056 == a.nbytes
    b = slabs.take(3000)  # the rest of the slab
    assert sizes == [8192] and slabs.used == 5056 + 3008
    c = slabs.take(1)
    assert sizes == [8192] and c.nbytes == 64 and c.host.data_ptr() == b.host.data_ptr() + 3008
    d = slabs.take(100000)
    assert sizes == [8192, 102400] and freed == []
    ends = {x.host.data_ptr() + x.nbytes for x in (a, b, c, d)}
    assert len(ends) == 4
    slabs.give(b)
    slabs.give(a)
    slabs.give(c)
    assert slabs.used == 100032 and slabs.held == 110592
    e = slabs.take(8192)  # joined
    assert e.host.data_ptr() == a.host.data_ptr() and sizes == [8192, 102400]
    slabs.give(e)
    slabs.give(d)
    f = slabs.take(200000)
    assert freed == [8192, 102400] and slabs.held == 200704 and slabs.most == 200000 // 64 * 64 + 64 * (200000 % 64 > 0)
    slabs.give(f)
    slabs.trim()
    assert slabs.held == slabs.used == 0


def test_memory_that_copies_still_use():
    """It is handed out again together with these copies, and freed after them."""
    made = Fake()
    block, source = made.slabs.take(64), torch.arange(64, dtype=torch.uint8)
    block.uses = [made.copy_out([source], block.host, [made.now()])]
    made.slabs.give(block)
    again = made.slabs.take(64)
    assert len(again.uses) == 1 and not again.uses[0].done()
    made.slabs.give(again)
    made.slabs.trim()
    assert made.open == [] and made.slabs.held == 0


def test_host_memory_is_reused(fake):
    """A second pass allocates nothing."""
    made = fake()
    scan_of("wide", host="64M")
    held, allocate = made.slabs.held, made.allocate
    assert 0 < held <= nt.report().host + 4096
    made.slabs._allocate = lambda nbytes: pytest.fail("allocates again")
    scan_of("wide", host="64M")
    made.slabs._allocate = allocate
    assert made.slabs.held == held and made.slabs.used == 0


class Allocator:
    """The bytes of tensors that exist, as the allocator of a device counts them: each storage that an operation
    returned, rounded up, until it is freed; without host memory."""

    def __init__(self, unit, slabs):
        from torch.utils._python_dispatch import TorchDispatchMode
        self.unit, self.slabs, self.most, self.known = unit, slabs, 0, {}
        counter = self

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                found = function(*args, **(kwargs or {}))
                counter.see(found if isinstance(found, (tuple, list)) else (found,))
                return found
        self.mode = Mode()

    def see(self, tensors):
        from torch.multiprocessing.reductions import StorageWeakRef
        self.known = {at: row for at, row in self.known.items() if not row[0].expired()}
        host = {slab.memory.data_ptr() for slab in self.slabs._slabs}
        for one in tensors:
            storage = one.untyped_storage() if isinstance(one, torch.Tensor) and one.layout is torch.strided else None
            if storage is not None and storage.data_ptr() not in host:
                ref = StorageWeakRef(storage)
                self.known.setdefault(ref.cdata, (ref, -(-storage.nbytes() // self.unit) * self.unit))
        self.most = max(self.most, sum(nbytes for _, nbytes in self.known.values()))


@pytest.mark.parametrize("options", [dict(host="64M", strategy="stream"), dict(slow="mem:64M", strategy="stream"),
                                     dict(host="64M", strategy="double"), dict(host="1M", slow="mem:64M"), dict()])
def test_the_budget_is_what_the_allocator_sees(fake, options, monkeypatch):
    """All tensors that exist during a scan, except its inputs, take at most the budget, its outputs, gradients of
    inputs, and what one group allocates while it runs."""
    if not hasattr(torch.Tensor, "untyped_storage"):
        pytest.skip("needs PyTorch 2")
    made = fake(rate=20000, seed=3)
    cell, state, x, _ = case("wide", 60, 3)
    own = 60 * (3 * 6 + 3 * 4) * 4 + 3 * 2048 * 4 + (8 << 10) * 4
    group = 10 * 24576

    def peak():
        allocator = Allocator(64, made.slabs)
        with allocator.mode:
            last, out = nt.scan(cell, state, x, memory="1M", group=1, costs=COSTS, **options)
            (out.sum() + last.sum()).backward()
        told = nt.report()
        assert told.counts.tape_puts > 0 or options.get("strategy") != "stream"
        return allocator.most
    peak()  # measures
    assert peak() <= (1 << 20) + own + group
    if options.get("strategy") == "stream":  # tensors that are kept longer are noticed
        wait, kept = offload.Offload.wait, []

        def keeps(self, move):
            kept.append(move.keep)
            wait(self, move)
        monkeypatch.setattr(offload.Offload, "wait", keeps)
        assert peak() > (1 << 20) + own + group


def test_a_device_without_memory(fake, monkeypatch):
    """BudgetError names a budget for which there is a plan, before and in the backward pass."""
    fake()
    given = case("wide", 30, 3)
    run = sys.modules["neap.torch.runs"].Run
    for name in ("record", "backward"):
        original, count = getattr(run, name), itertools.count()

        def failing(self, *arguments):
            if next(count) == 12:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")
            return original(self, *arguments)
        monkeypatch.setattr(run, name, failing)
        for memory in (None, "1M"):
            count = itertools.count()
            with pytest.raises(neap.BudgetError, match="has no memory left: CUDA out of memory") as caught:
                grads(scanned(memory=memory, host="4M" if memory else None, group=1), *given)
            assert 0 < caught.value.least < 1 << 20 and "GPU 0 has" not in str(caught.value)
        monkeypatch.setattr(run, name, original)
        same(grads(scanned(memory=caught.value.least, host="4M", group=1), *given), grads(plain, *given))


# The CPU as a device, and rates

@pytest.mark.parametrize("tiers", ["host", "both"])
def test_the_cpu(scratch, tiers):
    """host= on the CPU: the same code, with memory in addition to the budget."""
    for strategy, group in (("stream", 1), ("stream", 4), ("double", 2), ("auto", 3)):
        told = scan_of("wide", strategy=strategy, group=group, **where(tiers, scratch))
        assert told.recoveries == 0 and (told.host > 0 or strategy == "auto")
    assert devices.device_of([torch.zeros(1)]).slabs.used == 0


def test_rates():
    """Fixed seconds and rates follow from two sizes; directions that are slow together share their rate."""
    assert rates._line((1000, 2.0), (11000, 4.0)) == pytest.approx((5000.0, 1.8))
    assert rates._line((1000, 0.1), (11000, 4.1)) == pytest.approx((2500.0, 0.0))
    found = rates.rates_of(devices.device_of([torch.zeros(1)]), torch.device("cpu"), 1 << 20)
    assert found.out > 1e6 and found.into > 1e6 and not found.duplex and found.cpu > 0
    host, disk = rates.device_tiers(devices.device_of([torch.zeros(1)]), torch.device("cpu"), 4096, 1 << 20, 1 << 30,
                                    "mem:1M", 0.001)
    assert host.raw.capacity == 1 << 30 and host.name == "host" and host.raw.staging == disk.raw.staging == 0
    assert disk.raw.write_rate <= found.out and disk.raw.cpu >= found.cpu


class Bus(Fake):
    """A device whose copies take 10 us and 1 ns per byte out, 2 ns per byte in, on one bus or on two."""

    def __init__(self, buses):
        super().__init__()
        self.now_is, self.busy = 0.0, {"out": 0.0, "in": 0.0}
        self.buses = buses

    def _start(self, direction, tensors, copy, after, take=None):
        seconds = 1e-5 + sum(x.numel() for x in tensors) * (1e-9 if direction == "out" else 2e-9)
        begin = max(self.now_is, *(self.busy.values() if self.buses == 1 else [self.busy[direction]]))
        self.busy[direction] = end = begin + seconds
        found = super()._start(direction, tensors, copy, after, take)
        run = found.finish

        def finish():
            self.now_is = max(self.now_is, end)
            run()
        found.finish = finish
        return found


def test_measured_rates(monkeypatch):
    """Both directions at once show whether they share a bus."""
    for buses in (1, 2):
        made = Bus(buses)
        monkeypatch.setattr(rates, "time", types.SimpleNamespace(perf_counter=lambda: made.now_is))
        found = rates._measured(made, torch.device("cpu"), 1 << 20)
        assert found.duplex == (buses == 2) and found.cpu == 0
        assert (found.out, found.into) == pytest.approx((1e9, 5e8), rel=1e-3)
        assert (found.out_fixed, found.into_fixed) == pytest.approx((1e-5, 1e-5), rel=1e-2)


# Layers

def layers():
    """Layers whose states are large."""
    torch.manual_seed(1)
    widths = [64, 128, 64, 256, 128, 64, 192, 64, 128, 32]
    return [torch.nn.Sequential(torch.nn.Linear(m, n), torch.nn.Tanh(), torch.nn.Dropout(0.1))
            for m, n in zip(widths, widths[1:])]


@pytest.mark.parametrize("tiers, way, failing, tapes", [
    ("both", "late", (), False), ("host", "reordered", ("in",), False), ("files", "late", ("out",), False),
    ("host", "late", (), True), ("both", "reordered and slow", (), True), ("host", "slow", ("in",), True),
    ("files", "reordered", ("out",), True)])
def test_layers(fake, scratch, monkeypatch, tiers, way, failing, tapes):
    """nt.Sequential: states and, with more memory, tapes leave the device, and are recomputed where that is faster or
    copies fail."""
    from neap.torch import sequential
    measure = sequential._measure

    def slow(run, leaves):  # so that it pays to offload states
        found = measure(run, leaves)
        return found._replace(advance=[1.0] * len(found.tape), record=[1.0] * len(found.tape),
                              backward=[2.0] * len(found.tape))
    monkeypatch.setattr(sequential, "_measure", slow)
    given = torch.randn(256, 64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    wanted = trained(torch.nn.Sequential(*layers()), given)
    where_to = {"host": {"host": "64M"}, "files": {"slow": scratch},
                "both": {"host": "5M" if tapes else "1M", "slow": scratch}}[tiers]
    made = fake(failing=failing, **WAYS[way])
    net = nt.Sequential(*layers(), memory="2080K" if tapes else "1890K", strategy="pofo", **where_to)
    same_rows(trained(net, given), wanted)
    told = net.report()
    assert told.counts.puts > 0 and "host" in str(told)
    assert failing or told.counted_peak <= told.planned_peak
    assert told.counts.tape_puts == told.counts.tape_gets >= tapes and (failing or not told.recorded_again)
    assert told.host <= {"host": 64, "files": 64, "both": 5}[tiers] << 20 or not tapes
    assert (told.recoveries > 0) == bool(failing)
    assert made.open == [] and made.slabs.used == 0


def test_layers_on_a_device_without_memory(monkeypatch):
    """Also nt.Sequential names a sufficient budget."""
    from neap.torch.stages import LayerRun
    given = torch.randn(256, 64)
    wanted = trained(torch.nn.Sequential(*layers()), given)
    for name in ("record", "reverse"):
        original, count = getattr(LayerRun, name), itertools.count()

        def failing(self, *arguments):
            if next(count) == 35:  # the 27 calls of the measurement succeed
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return original(self, *arguments)
        monkeypatch.setattr(LayerRun, name, failing)
        with pytest.raises(neap.BudgetError, match="has no memory left: CUDA out of memory") as caught:
            trained(nt.Sequential(*layers(), memory="3M"), given)
        monkeypatch.setattr(LayerRun, name, original)
        assert 256 << 10 < caught.value.least < 3 << 20
    same_rows(trained(nt.Sequential(*layers(), memory=caught.value.least), given), wanted)
