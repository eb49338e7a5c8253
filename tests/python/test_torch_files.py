# SPDX-License-Identifier: Apache-2.0
"""neap.torch with states on slow tiers: the same bits, also where records are lost; files are closed."""
import gc
import itertools
import os

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, Gru, case, grads, plain, same, scanned  # noqa: E402
from neap.stores import Store  # noqa: E402


def on_files(scratch, strategy, memory="400K", **options):
    """The report of a scan of 60 steps with states of 24 KiB, whose bits are compared."""
    given = case(options.pop("cell", "wide"), 60, 3)[:3] + (torch.nn.Linear(N, 2),)
    wanted = grads(plain, *given, "both")
    same(grads(scanned(strategy=strategy, memory=memory, **dict(dict(group=1, slow=scratch), **options)),
               *given, "both"), wanted)
    return nt.report()


@pytest.mark.parametrize("strategy", ["double", "remote", "disk-revolve", "auto"])
def test_states_on_files(scratch, strategy):
    for options in (dict(), dict(group=2), dict(rng=True), dict(slow=["mem:400K", scratch])):
        told = on_files(scratch, strategy, **options)
        assert told.recoveries == 0 and told.counted_peak <= told.planned_peak
        assert told.counts.puts > 0 or strategy == "auto"
        assert told.waits >= 0 and str(told)
    assert os.listdir(scratch) == []


def test_lost_records_are_computed_again(scratch, monkeypatch):
    wait, get = Store.wait, Store.get

    count = itertools.count()

    def failing(self, transfer):
        wait(self, transfer)
        if next(count) % 2:
            raise neap.CorruptRecord("made up")

    monkeypatch.setattr(Store, "wait", failing)
    for strategy in ("double", "disk-revolve"):
        assert on_files(scratch, strategy).recoveries > 0
    monkeypatch.setattr(Store, "wait", wait)
    monkeypatch.setattr(Store, "get", lambda self, tier, place, tag, *rest: get(self, tier, place, tag + 1, *rest))
    told = on_files(scratch, "double")
    assert told.recoveries == told.counts.gets > 0
    monkeypatch.setattr(Store, "get", get)

    form = Store.format

    def full(self, *places):
        form(self, *places)
        self._dead[:] = [True] * len(self._dead)

    monkeypatch.setattr(Store, "format", full)
    told = on_files(scratch, "double")
    assert told.recoveries == told.counts.gets > 0


@pytest.mark.parametrize("cell", ["gru", "lstm", "twice", "both", "wide"])
@pytest.mark.parametrize("slow", ["mem:64M", "files"])
def test_tapes_that_travel(light, scratch, cell, slow):
    """Every strategy that sends something, groups of 1, 4, 7 and T, of 23 steps."""
    slow = scratch if slow == "files" else slow
    given = case(cell, 23, 2)
    wanted = grads(plain, *given)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    moved = sent = 0
    for strategy in ("stream", "remote", "disk-revolve", "double", "auto"):
        for group in (1, 4, 7, 23):
            options = dict(strategy=strategy, group=group, slow=slow, memory=extra + 6000)
            try:
                found = grads(scanned(**options), *given)
            except neap.BudgetError as error:
                if not error.least:
                    continue
                options["memory"] = error.least
                found = grads(scanned(**options), *given)
            same(found, wanted)
            told = nt.report()
            assert told.recoveries == 0 and told.counted_peak <= told.planned_peak, (strategy, group)
            moved += told.counts.tape_puts
            sent += told.counts.puts
            assert (strategy != "stream" or group > 7) or told.counts.tape_gets == told.counts.tape_puts > 0
    assert moved > 0 and sent > 0
    assert os.listdir(scratch) == []


def streamed(slow, steps=40, room=6000, **more):
    """The report of a scan whose tapes travel, with the bits of a plain loop."""
    given = case("both", steps, 2)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    wanted = grads(plain, *given)
    same(grads(scanned(**dict(dict(strategy="stream", group=2, slow=slow, memory=extra + room), **more)), *given),
         wanted)
    told = nt.report()
    assert told.counts.tape_puts > 0 and told.counted_peak <= told.memory - extra
    return told


def test_lost_tapes_are_recorded_again(light, scratch, monkeypatch):
    """A record that is damaged, one that is refused, a disk that is full from the start."""
    assert streamed(scratch).extra_steps == 0
    get, put, count = Store.get_tapes, Store.put_tapes, itertools.count()
    monkeypatch.setattr(Store, "get_tapes", lambda self, tier, place, tag, *rest: get(
        self, tier, place, tag + next(count) % 2, *rest))
    told = streamed(scratch)
    assert 0 < told.recoveries < 18 and told.recorded_again == 2 * told.recoveries  # of 20 groups
    monkeypatch.setattr(Store, "get_tapes", get)

    def refused(self, *arguments):
        if next(count) % 3:
            raise OSError(28, "no space")
        return put(self, *arguments)

    monkeypatch.setattr(Store, "put_tapes", refused)
    told = streamed("mem:64M")
    assert 0 < told.recoveries < 18
    monkeypatch.setattr(Store, "put_tapes", put)

    form = Store.format

    def full(self, *places):
        form(self, *places)
        self._dead[:] = [True] * len(self._dead)

    monkeypatch.setattr(Store, "format", full)
    told = streamed(scratch, steps=80, room=8000)
    assert told.recoveries > 30
    assert told.extra_steps < 80 * 12  # states on the way are kept where there is room


def test_a_damaged_file(light, scratch, monkeypatch):
    """Bytes of the tier's file are overwritten after the forward half."""
    given = case("both", 40, 2)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    wanted = grads(plain, *given)

    def damaged(made, state, x):
        found = nt.scan(made, state, x, strategy="stream", group=2, slow=scratch, memory=extra + 6000, costs=COSTS)
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


def test_a_tape_that_outgrows_its_place(light, scratch):
    """It is not sent, and recorded again."""
    torch.manual_seed(0)

    class Growing(Gru):
        def forward(self, h, x, t):
            h = self.cell(x, h)
            for _ in range(5 if 9 <= t < 15 else 0):
                h = torch.tanh(h * 1.01)
            return h, h

    given = Growing(), torch.randn(B, N), torch.randn(48, B, I), torch.nn.Linear(N, 2)
    wanted = grads(plain, *given)
    extra = 2 * sum(p.numel() * 4 for p in given[0].parameters())
    same(grads(scanned(strategy="stream", group=3, slow=scratch, memory=extra + 9000), *given), wanted)
    told = nt.report()
    assert told.recoveries > 0 and told.recorded_again > 0 and told.counted_peak <= told.memory - extra


def test_a_scan_in_a_step_stays(scratch):
    """What an inner scan holds cannot leave: such a tape is recorded again instead."""
    made, state, x, _ = case("gru", 24, 1)
    wanted = [*made.parameters(), state, x]

    def outer(h, i, t):
        return nt.scan(made, h, i, group=1, costs=COSTS)
    rows = []
    for options in (dict(), dict(memory="12K", strategy="stream", group=1, slow=scratch)):
        run = nt.Scan(outer, params=made, costs=COSTS, **options)
        last, out = run(state, x.view(12, 2, B, I))
        rows.append(torch.autograd.grad(out.pow(2).sum(), wanted))
    same(rows[1], rows[0])
    assert run.report().counts.tape_puts > 0 and run.report().recoveries > 0


def test_a_tape_that_travels_holds_no_memory(scratch):
    """States, outputs and saved tensors of a group go with its storages."""
    made, state, x, _ = case("wide", 30, 3)
    extra = 2 * sum(p.numel() * 4 for p in made.parameters())
    last, out = nt.scan(made, state, x, strategy="stream", group=1, slow=scratch, memory=extra + 700000, costs=COSTS)
    player = out.grad_fn.player
    assert len(player.away) > 15
    gc.collect()
    found = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor) and thing.numel() >= 3 * 2048
             and thing.stride() != (0, 0)]
    held = {thing.data_ptr() for thing in found}
    assert len(held) < 3 * (30 - len(player.away)) + 8
    out.sum().backward()


def test_numbers_of_a_step_stay_numbers(scratch):
    """A scalar in float32 times a number of Python is computed in float32, also if the number was saved for backward."""
    torch.manual_seed(1)
    cell, x = torch.nn.GRUCell(2, 64), torch.randn(24, 8, 2)
    first, scale = torch.zeros(8, 64), torch.tensor(0.7, requires_grad=True)
    wanted = [*cell.parameters(), scale]

    def step(state, x, t):
        h = cell(x * state[1], state[0])
        return (h, state[1] * 0.9 + h.mean() * 0.1), h

    state, outputs = (first, scale), []
    for t in range(24):
        state, out = step(state, x[t], t)
        outputs.append(out)
    plain_loop = torch.autograd.grad(torch.stack(outputs).pow(2).sum() + state[1], wanted)
    last, out = nt.scan(step, (first, scale), x, params=cell, strategy="stream", group=2, slow=scratch, memory="240K",
                        costs=COSTS)
    same(torch.autograd.grad(out.pow(2).sum() + last[1], wanted), plain_loop)
    assert nt.report().counts.tape_gets > 0


@pytest.mark.heavy
def test_graphs_of_tapes_on_tiers_count(scratch):
    """A tape that is smaller than its graph stays; of others, so many are sent as their graphs have room."""
    cell, (state, x) = Gru(), (torch.zeros(B, N), torch.randn(200, B, I))
    told = scanned_report(cell, state, x, scratch, "60K", group=1)
    assert told.counts.tape_puts == 0 and told.graphs == 0
    big = torch.nn.GRUCell(64, 256)
    state, x = torch.zeros(32, 256), torch.randn(200, 32, 64)
    told = scanned_report(lambda h, x, t: (big(x, h),) * 2, state, x, scratch, "24M", group=4, costs=(1000, 1000, 2000))
    assert told.counts.tape_puts > 0
    assert told.graphs > 0 and told.planned_peak == told.plan.peak + told.graphs
    assert told.counted_peak <= told.planned_peak <= told.memory - told.charged


def scanned_report(cell, state, x, scratch, memory, **options):
    last, out = nt.scan(cell, state, x, memory=memory, slow=scratch, **options)
    out.sum().backward()
    return nt.report()


def test_files_are_closed(scratch):
    def handles():
        return len(os.listdir("/proc/self/fd"))
    made, state, x, _ = case("wide", 60, 3)
    before = handles()
    for _ in range(3):
        last, out = nt.scan(made, state, x, memory="500K", group=1, strategy="double", slow=scratch, costs=COSTS)
        assert handles() > before
        del last, out
        assert handles() == before


def test_a_directory_in_memory_is_rejected_with_the_arguments_of_a_scan():
    if not os.path.ismount("/dev/shm"):
        pytest.skip("needs /dev/shm")
    made, state, x, _ = case("wide", 60, 3)
    with pytest.raises(neap.UsageError, match=r"is in memory \(tmpfs\)") as caught:
        nt.scan(made, state, x, memory="500K", slow="/dev/shm")
    assert 'slow="mem:4G"' in str(caught.value) and "--" not in str(caught.value)
