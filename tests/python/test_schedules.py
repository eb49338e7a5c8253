# SPDX-License-Identifier: Apache-2.0
"""Plans as schedules of checkpoint_schedules: a strict walker goes through them, their counts are those
of the literature, and pyadjoint computes the derivative that it has without checkpoints, to the bit."""
import os
import pickle
import random
import time
import warnings

import pytest

import neap

theirs = pytest.importorskip("checkpoint_schedules")
from checkpoint_schedules import (Copy, EndForward, EndReverse, Forward, Move,  # noqa: E402
                                  Reverse, StorageType)
from neap.schedules import Schedule  # noqa: E402

RAM, DISK, WORK = StorageType.RAM, StorageType.DISK, StorageType.WORK
MANY = int(os.environ.get("NEAP_MANY", "60"))


class Walker:
    """Follows a schedule and checks every action; counts forward steps and what is stored."""

    def __init__(self, steps):
        self.steps, self.left = steps, steps
        self.stored = {RAM: {}, DISK: {}}
        self.position, self.tapes = 0, set()
        self.advanced, self.ram, self.disk, self.transfers = 0, 0, 0, 0
        self.turned = False

    def forward(self, a):
        assert self.position == a.n0 < a.n1 <= self.left
        if a.write_ics:
            assert not (a.write_adj_deps and a.storage != WORK)
            self.stored[a.storage][a.n0] = "state"
            self.transfers += a.storage == DISK
        if a.write_adj_deps and a.storage == WORK:
            self.tapes.update(range(a.n0, a.n1))
        elif a.write_adj_deps:
            self.stored[a.storage].update({step: "tape" for step in range(a.n0, a.n1)})
        self.advanced += a.n1 - a.n0
        self.position = a.n1

    def read(self, a):
        what = self.stored[a.from_storage][a.n]
        assert a.to_storage == WORK
        self.transfers += a.from_storage == DISK
        if isinstance(a, Move):
            del self.stored[a.from_storage][a.n]
        if what == "tape":
            self.tapes.add(a.n)
        else:
            self.position = a.n

    def reverse(self, a):
        assert self.turned and self.left == a.n1 and a.clear_adj_deps
        assert self.tapes.issuperset(range(a.n0, a.n1))
        self.tapes.difference_update(range(a.n0, a.n1))
        self.left = a.n0

    def walk(self, schedule):
        for a in schedule:
            if isinstance(a, Forward):
                self.forward(a)
            elif isinstance(a, (Copy, Move)):
                self.read(a)
            elif isinstance(a, Reverse):
                self.reverse(a)
            elif isinstance(a, EndForward):
                assert self.position == self.steps and not self.turned
                self.turned = True
            elif isinstance(a, EndReverse):
                break
            assert not set(self.stored[RAM]) & set(self.stored[DISK])
            self.ram, self.disk = max(self.ram, len(self.stored[RAM])), max(self.disk, len(self.stored[DISK]))
        assert self.left == 0 and not self.tapes and self.stored == {RAM: {}, DISK: {}}
        return self.advanced, self.ram, self.disk


def walk(schedule):
    found = Walker(schedule.max_n).walk(schedule)
    assert getattr(schedule, "is_exhausted", True)
    return found


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
        walker = Walker(steps)
        _, ram, disk = walker.walk(found)
        assert ram <= slots and disk > 0
        assert walker.advanced + 2 * walker.transfers <= 1e-9 + seconds_of(
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
    said, refused = {}, {}
    for given in problems(2 * MANY):
        for strategy in neap.strategies():
            try:
                schedule = Schedule(strategy=strategy, **given)
            except neap.BudgetError:
                continue
            except neap.UsageError as error:
                assert "cannot be expressed" in str(error)
                refused[strategy] = refused.get(strategy, 0) + 1
                continue
            advanced, ram, _ = walk(schedule)
            assert advanced >= given["steps"] and ram <= given.get("slots", 10**9)
            said[strategy] = said.get(strategy, 0) + 1
    assert set(refused) <= {"online"} and len(said) >= 12
    assert sum(refused.values()) < said["online"]


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
