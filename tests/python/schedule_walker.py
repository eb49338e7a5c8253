# SPDX-License-Identifier: Apache-2.0
"""Follows a schedule of checkpoint_schedules and checks each action against the contract of that package: what its own
test of validity requires, and what tlm_adjoint requires in addition (marked below). Counts steps and storage."""
from typing import NamedTuple

from stand_in_schedules import theirs

RAM, DISK, WORK, NONE = (getattr(theirs.StorageType, name) for name in ("RAM", "DISK", "WORK", "NONE"))


class Breach(AssertionError):
    """The rule that an action breaks."""


class Data(NamedTuple):
    """A checkpoint, or working memory: the steps that can be run from its start, and the steps that have the data of
    their backward step."""
    restart: range = range(0)
    tapes: range = range(0)


class Counts(NamedTuple):
    """Forward steps; most checkpoints in memory and on disk; writes and reads of the disk; most steps whose data is
    in working memory; most slots, if each step's data in working memory beyond the first takes one; most bytes of
    states and data of steps in memory, with the live state and the adjoint."""
    advanced: int = 0
    ram: int = 0
    disk: int = 0
    transfers: int = 0
    work: int = 0
    slots: int = 0
    bytes: float = 0


def _rule(holds, text):
    if not holds:
        raise Breach(text)


def _covers(steps, t0, t1):
    return t0 >= t1 or (t0 in steps and t1 - 1 in steps)


class Walker:
    """`limits` are the numbers of checkpoints that each storage may hold, and for WORK of steps with data; `sizes` the
    bytes of a state and of the data of a step. If not `strict`, a step may have a checkpoint in memory and another one
    on disk, and checkpoints may be left, as in some schedules of checkpoint_schedules."""

    def __init__(self, steps, limits=None, sizes=(0, 0), strict=True):
        self.steps, self.limits, self.sizes, self.strict = steps, limits or {}, sizes, strict
        self.position, self.adjoint = 0, steps  # of the forward and the adjoint model; position None: undefined
        self.work, self.stored = Data(), {RAM: {}, DISK: {}}
        self.turned = self.ended = False
        self.reads = 0  # since the last backward step
        self.counts = Counts()

    def forward(self, a):
        _rule(self.position is not None and a.n0 == self.position, "a Forward starts where the forward model is")
        _rule(a.n0 < a.n1, "a Forward has at least one step")
        _rule(a.n1 <= self.adjoint, "a Forward ends at or before the adjoint model")
        steps = range(a.n0, a.n1)
        data = Data(steps if a.write_ics else range(0), steps if a.write_adj_deps else range(0))
        self.work, self.position = Data(), a.n1
        if a.storage in self.stored:
            _rule(a.write_ics or a.write_adj_deps, "a checkpoint has data")
            self.write(a.n0, data, a.storage)
        else:
            _rule(not a.write_ics, "only memory and disk store restart data")  # tlm_adjoint
            _rule(a.storage == WORK or not a.write_adj_deps, "data is stored somewhere")
            self.work = data
        self.counts = self.counts._replace(advanced=self.counts.advanced + len(steps))

    def write(self, step, data, storage):
        places = self.stored.values() if self.strict else [self.stored[storage]]
        _rule(all(step not in place for place in places), "a step has one checkpoint at a time")
        self.stored[storage][step] = data
        self.transfer(storage)

    def transfer(self, storage):
        self.counts = self.counts._replace(transfers=self.counts.transfers + (storage == DISK))

    def read(self, a, keep):
        _rule(self.turned, "checkpoints are read after the forward pass")  # tlm_adjoint, pyadjoint
        _rule(self.work == Data(), "working memory is empty when a checkpoint is read")
        _rule(a.n in self.stored.get(a.from_storage, ()), "the checkpoint exists")
        _rule(a.n < self.adjoint, "the checkpoint is before the adjoint model")
        data = self.stored[a.from_storage][a.n]
        if not keep:
            del self.stored[a.from_storage][a.n]
        self.transfer(a.from_storage)
        if a.to_storage in self.stored:
            self.write(a.n, data, a.to_storage)
            return
        _rule(a.to_storage == WORK, "a checkpoint is read into a storage")
        _rule(self.reads == 0, "one checkpoint is read per backward action")  # tlm_adjoint
        self.reads = 1
        self.position = a.n if data.restart else None
        if data.restart:
            _rule(_covers(data.restart, a.n, self.adjoint), "a restart has the data of all steps up to the adjoint")
        self.work = data

    def reverse(self, a):
        _rule(self.turned, "backward steps follow the forward pass")
        _rule(a.n1 == self.adjoint, "a Reverse starts where the adjoint model is")
        _rule(a.n0 < a.n1, "a Reverse has at least one step")
        _rule(_covers(self.work.tapes, a.n0, a.n1), "the data of the reversed steps is in working memory")
        self.adjoint, self.reads = a.n0, 0
        if a.clear_adj_deps:
            self.work = Data()

    def end_forward(self):
        _rule(self.position == self.steps, "the forward pass ends after the last step")
        _rule(not self.turned, "the forward pass ends once")
        self.turned = True

    def end_reverse(self):
        _rule(self.adjoint == 0, "the backward pass ends after the first step")
        _rule(not self.strict or not any(self.stored.values()), "no checkpoint is left")
        self.ended = True

    def take(self, a):
        kind = type(a).__name__
        if kind in ("Copy", "Move"):
            self.read(a, kind == "Copy")
        elif kind in ("Forward", "Reverse"):
            {"Forward": self.forward, "Reverse": self.reverse}[kind](a)
        else:
            {"EndForward": self.end_forward, "EndReverse": self.end_reverse}[kind]()
        self.count()

    def count(self):
        c, (state, tape), tapes = self.counts, self.sizes, len(self.work.tapes)
        ram, disk = self.stored[RAM], self.stored[DISK]
        for storage, found in ((RAM, len(ram)), (DISK, len(disk)), (WORK, tapes)):
            _rule(found <= self.limits.get(storage, found), f"limit of {storage.name}")
        states = 2 + sum(1 for data in ram.values() if data.restart)
        size = states * state + (tapes + sum(len(data.tapes) for data in ram.values())) * tape
        self.counts = c._replace(ram=max(c.ram, len(ram)), disk=max(c.disk, len(disk)), work=max(c.work, tapes),
                                 slots=max(c.slots, len(ram) + max(0, tapes - 1)), bytes=max(c.bytes, size))

    def walk(self, schedule):
        _rule((schedule.n, schedule.r) == (0, 0), "a schedule starts at step 0")
        for a in schedule:
            self.take(a)
            _rule(self.position is None or schedule.n == self.position, "n is where the forward model is")
            _rule(schedule.r == self.steps - self.adjoint, "r is the number of backward steps")
            _rule(schedule.max_n == self.steps, "max_n is the number of steps")
            if self.ended:
                return self.counts
        raise Breach("a schedule ends with EndReverse")


def walk(schedule, limits=None, sizes=(0, 0)):
    """The counts of a schedule that keeps the contract; raises Breach."""
    return Walker(schedule.max_n, limits, sizes).walk(schedule)
