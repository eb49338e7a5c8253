# SPDX-License-Identifier: Apache-2.0
"""Plans as schedules of checkpoint_schedules: their counts are those of the literature, and pyadjoint computes
the derivative that it has without checkpoints, to the bit. test_schedule_rules.py has the rules of schedules."""
import os
import pickle
import random
import time
import warnings

import pytest

import neap

theirs = pytest.importorskip("checkpoint_schedules")
from checkpoint_schedules import Copy, EndReverse, Forward, Move  # noqa: E402
from neap.schedules import Schedule  # noqa: E402
from schedule_walker import DISK, RAM, Walker  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "60"))


def walk(schedule):
    """Forward steps, and most checkpoints in memory and on disk."""
    found = Walker(schedule.max_n, strict=isinstance(schedule, Schedule)).walk(schedule)
    assert getattr(schedule, "is_exhausted", True)
    return found.advanced, found.ram, found.disk


@pytest.mark.parametrize("steps, slots", [(2, 1), (10, 3), (100, 5), (250, 10), (40, 39), (333, 7)])
def test_counts_are_those_of_the_literature(steps, slots):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numba, which is not there
        assert walk(Schedule(steps, slots=slots, strategy="revolve")) == \
            walk(theirs.MultistageCheckpointSchedule(steps, slots, 0))
        mixed, their_mixed = Schedule(steps, slots=slots, strategy="mixed"), \
            theirs.MixedCheckpointSchedule(steps, slots, storage=RAM)
        assert walk(mixed)[0] == walk(their_mixed)[0]
    both = walk(Schedule(steps, slots=slots))
    assert both[0] <= walk(Schedule(steps, slots=slots, strategy="revolve"))[0] and both[1] <= slots


def seconds_of(schedule):
    """Forward steps, and two seconds a transfer to or from disk."""
    total = 0
    for a in schedule:
        if isinstance(a, Forward):
            total += a.n1 - a.n0 + 2 * (a.storage == DISK)
        elif isinstance(a, (Copy, Move)):
            total += 2 * (a.from_storage == DISK)
        elif isinstance(a, EndReverse):
            return total


def test_disk_is_no_slower_than_hrevolve():
    """Seconds of a checkpoint on disk are two forward steps, as HRevolve has them."""
    for steps, slots in ((60, 2), (100, 3), (200, 4), (200, 12)):
        found = Schedule(steps, slots=slots, slow=neap.Tier(2, 2))
        assert found.uses_storage_type(DISK) and found.uses_storage_type(RAM)
        counts = Walker(steps).walk(found)
        assert counts.ram <= slots and counts.disk > 0
        assert counts.advanced + 2 * counts.transfers <= 1e-9 + seconds_of(
            theirs.HRevolve(steps, slots, steps, wd=2, rd=2))


def problems(count):
    for seed in range(count):
        pick = random.Random(seed)
        given = {"steps": pick.choice([1, 2, 5, 30, 100, 300])}
        if pick.random() < 0.5:
            given["slots"] = pick.randint(1, 12)
        else:
            given.update(state=pick.choice([64, 4096]), tape=pick.choice([64, 300, 9000]),
                         memory=pick.choice([9300, 20_000, 200_000, 10**6]))
        if pick.random() < 0.6:
            given["slow"] = neap.Tier(pick.choice([0.5, 2]), 1) if "slots" in given else \
                neap.Tier(pick.choice([1e3, 1e6]), 1e6)
        yield given


def test_every_strategy_on_random_problems():
    said = {}
    for given in problems(2 * MANY):
        for strategy in neap.strategies():
            try:
                schedule = Schedule(strategy=strategy, **given)
            except neap.BudgetError:
                continue
            advanced, ram, _ = walk(schedule)
            assert advanced >= given["steps"] and ram <= given.get("slots", 10**9)
            said[strategy] = said.get(strategy, 0) + 1
    assert len(said) >= 12


def test_a_budget_in_bytes_is_kept():
    for memory in ("20K", "64K", "1M"):
        schedule = Schedule(500, state=1024, tape=4096, memory=memory)
        ram = walk(schedule)[1]
        assert ram * 1024 <= schedule.plan.peak <= neap.units.size(memory, "memory")


def test_refusals():
    with pytest.raises(neap.BudgetError):
        Schedule(10, slots=0)
    with pytest.raises(neap.BudgetError):
        Schedule(100, state=1024, tape=4096, memory=2000)
    with pytest.raises(neap.UsageError, match="cannot be expressed"):
        Schedule(300, state=64, tape=300, memory=9300, slow=neap.Tier(1e8, 1e8), strategy="stream",
                 tapes_stay=False)
    with pytest.raises(ValueError):
        Schedule(0, slots=3)


def test_long_chains_are_quick():
    start = time.monotonic()
    schedule = Schedule(3200, slots=20, slow=neap.Tier(2, 2))
    assert walk(schedule)[0] >= 3200
    assert time.monotonic() - start < 20


# --- pyadjoint ---


@pytest.fixture
def adjoint():
    try:
        import pyadjoint
    except Exception as error:  # it wants a newer Python than we do
        pytest.skip(f"pyadjoint cannot be imported: {error}")
    return pyadjoint


def derivative(adjoint, schedule, steps, disk=None):
    """Loss and derivative of a chain of float steps, and the loss at another point. The derivative
    there pyadjoint computes from values of the first run, with schedules of theirs as well."""
    adjoint.continue_annotation()
    with adjoint.set_working_tape(adjoint.Tape()) as tape:
        if disk is not None:
            tape._package_data["neap"] = disk
        if schedule is not None:
            tape.enable_checkpointing(schedule)
        first, rate = adjoint.AdjFloat(0.7), adjoint.AdjFloat(0.3)
        x = first
        for _ in tape.timestepper(iter(range(steps))):
            x = x + 0.01 * (rate * x - x * x * x) + 0.001 * adjoint.AdjFloat(1.0) * x**2
        loss = x * x
        with adjoint.stop_annotating():
            reduced = adjoint.ReducedFunctional(loss, [adjoint.Control(first), adjoint.Control(rate)])
            found = [float(g) for g in reduced.derivative()]
            found.append(float(reduced([adjoint.AdjFloat(0.5), adjoint.AdjFloat(0.2)])))
        return float(loss), found


class Disk:
    """What pyadjoint calls a package's data: while it is on, checkpoints of floats go to files."""

    def __new__(cls, adjoint, folder, monkeypatch):
        made = super().__new__(type("Disk", (cls, adjoint.tape.TapePackageData), {}))
        made.on, made.written, made.read = False, 0, 0
        create = adjoint.AdjFloat._ad_create_checkpoint

        class File(adjoint.OverloadedType):
            def __init__(self, value):
                super().__init__()
                made.written += 1
                self.path = os.path.join(folder, f"{made.written}")
                with open(self.path, "wb") as file:
                    pickle.dump(float(value), file)

            def _ad_restore_at_checkpoint(self, checkpoint):
                made.read += 1
                with open(checkpoint.path, "rb") as file:
                    return adjoint.AdjFloat(pickle.load(file))

        monkeypatch.setattr(adjoint.AdjFloat, "_ad_create_checkpoint",
                            lambda value: File(value) if made.on else create(value))
        return made

    def __init__(self, *unused):
        pass

    def clear(self):
        pass

    reset = checkpoint = clear

    def restore_from_checkpoint(self, state):
        pass

    def copy(self):
        return self

    def continue_checkpointing(self):
        self.on = True

    def pause_checkpointing(self):
        self.on = False


@pytest.mark.parametrize("steps, arguments", [
    (40, dict(slots=1)), (40, dict(slots=3)), (40, dict(slots=3, strategy="revolve")),
    (40, dict(slots=5, strategy="mixed")), (40, dict(slots=100)),
    (60, dict(state=8, tape=24, memory=200)), (60, dict(state=8, tape=24, memory=900)),
    (60, dict(state=8, tape=24, memory=900, strategy="standard")),
    (1, dict(slots=1)), (2, dict(slots=1))])
def test_pyadjoint_in_memory(adjoint, steps, arguments):
    plain = derivative(adjoint, None, steps)
    assert derivative(adjoint, Schedule(steps, **arguments), steps) == plain


@pytest.mark.parametrize("steps, arguments", [
    (60, dict(slots=2, slow=neap.Tier(1, 1))),
    (60, dict(slots=2, slow=neap.Tier(1, 1), strategy="disk-revolve")),
    (60, dict(slots=3, slow=neap.Tier(2, 2), strategy="h-revolve")),
    (60, dict(slots=2, slow=neap.Tier(0.1, 0.1), strategy="periodic")),
    (60, dict(slots=2, slow=neap.Tier(0.1, 0.1), strategy="multistage")),
    (60, dict(state=8, tape=24, memory=120, slow=neap.Tier(100, 100)))])
def test_pyadjoint_with_disk(adjoint, steps, arguments, tmp_path, monkeypatch):
    plain = derivative(adjoint, None, steps)
    disk = Disk(adjoint, str(tmp_path), monkeypatch)
    assert derivative(adjoint, Schedule(steps, **arguments), steps, disk) == plain
    assert disk.written > 0 and disk.read > 0
