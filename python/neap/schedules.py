# SPDX-License-Identifier: Apache-2.0
"""Plans as schedules of checkpoint_schedules, for pyadjoint, Firedrake and other programs that follow them.

::

    from neap.schedules import Schedule
    tape.enable_checkpointing(Schedule(1000, slots=20))                            # a number of checkpoints
    tape.enable_checkpointing(Schedule(1000, state="8M", tape="40M", memory="2G")) # a number of bytes

In checkpoint_schedules, a checkpoint is written by the Forward action that follows it, and data is read into
working memory. So a SAVE, or a PUT of a state, becomes part of the next Forward, and a LOAD becomes a Copy, or
the last one a Move. A state that a plan has in memory and on disk at the same time is only on disk in the
schedule, and moves to memory when it is read from disk for the last time. The tape of a step that is reversed
immediately is in working memory, other tapes are in memory. Transfers are blocking. Plans that offload tapes, or
restore them from logs, cannot be expressed.
"""
from array import array
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checkpoint_schedules import (CheckpointSchedule, Copy, EndForward, EndReverse, Forward, Move,
                                  Reverse, StorageType)

from .actions import LIVE, Action, Kind, Payload
from .errors import UsageError
from .plans import Plan, compare, plan
from .tables import sort

__all__ = ["Schedule"]

_FORWARD = (Kind.ADVANCE, Kind.RECORD)


class _Stored:
    """The states that are stored at a position of the schedule: by slot, by place and by step. A state that is stored
    a second time while it exists is the same state."""

    def __init__(self) -> None:
        self.slots: Dict[int, int] = {}
        self.places: Dict[Tuple[int, int], int] = {}
        self.at: Dict[int, int] = {}  # step of a stored state: its number
        self.step: Dict[int, int] = {}  # its inverse
        self.holders: Dict[int, int] = {}  # number: count of slots and places with it
        self.count = 0
        self.live: Optional[int] = None  # number of the stored state that equals the live one

    def store(self, step: int) -> Tuple[int, bool]:
        """Stores the state of a step; returns its number, and whether it is new."""
        if step in self.at:
            return self.at[step], False
        number, self.count = self.count, self.count + 1
        self.at[step], self.step[number], self.holders[number] = number, step, 0
        return number, True

    def hold(self, where: Dict[Any, int], key: Any, number: int) -> None:
        self.release(where, key)
        where[key] = number
        self.holders[number] += 1

    def release(self, where: Dict[Any, int], key: Any) -> None:
        number = where.pop(key, None)
        if number is None:
            return
        self.holders[number] -= 1
        if self.holders[number] == 0:
            del self.at[self.step.pop(number)], self.holders[number]


class _Walk:
    """The common part of both passes over the actions of a plan: where states are stored."""

    def __init__(self) -> None:
        self.stored = _Stored()
        self.position = 0  # of the live state

    def save(self, a: Action) -> Optional[int]:
        """Performs SAVE, or PUT of a state; returns the number of the state, or None if it was already stored."""
        stored = self.stored
        if a.kind == Kind.SAVE:
            number, new = stored.store(a.t0)
            stored.hold(stored.slots, a.slot, number)
        elif a.slot == LIVE:
            number, new = stored.store(a.t0)
            stored.hold(stored.places, (a.tier, a.place), number)
        else:
            number, new = stored.slots[a.slot], False
            stored.hold(stored.places, (a.tier, a.place), number)
        return number if new else None

    def read(self, a: Action) -> Optional[int]:
        """Performs LOAD, or GET of a state; returns the number of the state that becomes the live one, or None."""
        stored = self.stored
        if a.kind == Kind.LOAD:
            return stored.slots[a.slot]
        number = stored.places[a.tier, a.place]
        if a.slot == LIVE:
            return number
        stored.hold(stored.slots, a.slot, number)
        return None

    def drop(self, a: Action) -> None:
        if a.kind == Kind.DROP:
            self.stored.release(self.stored.slots, a.slot)
        else:
            self.stored.release(self.stored.places, (a.tier, a.place))


class _Uses(_Walk):
    """The first pass: how often each stored state is read, whether it is on disk, and which tapes are kept while other
    steps run. ``refused`` describes an action that cannot be expressed, or is empty."""

    def __init__(self, actions: Iterator[Action]) -> None:
        super().__init__()
        self.reads, self.gets, self.disk = array("q"), array("q"), bytearray()
        self.kept: List[int] = []  # numbers of RECORDs whose tapes are kept in memory
        self.ram = self.slow = False
        self.refused = ""
        self._open: List[Tuple[int, int]] = []  # (first step, number) of tapes in working memory
        self._records = 0
        self._fresh = -1  # state stored or read at the step of the live state
        for action in actions:
            self._take(action)
            if self.refused:
                return
        self.ram |= bool(self.kept) or any(
            reads and not disk for reads, disk in zip(self.reads, self.disk))
        self.slow = any(reads and disk for reads, disk in zip(self.reads, self.disk))
        self.keeps = bytearray(self._records)
        for number in self.kept:
            self.keeps[number] = 1

    def _take(self, a: Action) -> None:
        if a.payload != Payload.STATE and a.kind not in (Kind.WAIT, Kind.TURN):
            self.refused = f"'{a}' (it moves or drops a tape or a log)"
        elif a.kind in _FORWARD:
            self._forward(a)
        elif a.kind == Kind.BACKWARD:
            self._open = [x for x in self._open if x[0] < a.t0]
        elif a.kind == Kind.SAVE or a.kind == Kind.PUT:
            self._save(a)
        elif a.kind == Kind.LOAD or a.kind == Kind.GET:
            self._read(a)
        elif a.kind == Kind.DROP or a.kind == Kind.FORGET:
            self.drop(a)

    def _save(self, a: Action) -> None:
        number = self.save(a)
        if number is not None:
            self.reads.append(0)
            self.gets.append(0)
            self.disk.append(0)
            self._fresh = number
        if a.kind == Kind.PUT:
            self.disk[self.stored.places[a.tier, a.place]] = 1

    def _read(self, a: Action) -> None:
        if a.kind == Kind.GET:
            self.gets[self.stored.places[a.tier, a.place]] += 1
            self.ram |= a.slot != LIVE
        number = self.read(a)
        if number is None:
            return
        self._keep_open()
        self.reads[number] += 1
        if self._fresh >= 0:
            self.refused = f"'{a}' (it leaves a state before a step starts from it)"
        self._fresh = number

    def _forward(self, a: Action) -> None:
        if a.kind == Kind.RECORD:
            self._open.append((a.t0, self._records))
            self._records += 1
        else:
            self._keep_open()
        self._fresh = -1

    def _keep_open(self) -> None:
        """Keeps the tapes in working memory, because other steps run before they are used."""
        self.kept += [number for _, number in self._open]
        self._open = []


class Schedule(CheckpointSchedule):
    """A plan of neap as a ``checkpoint_schedules.CheckpointSchedule``; ``schedule.plan`` is the plan.

    :param steps: number of steps.
    :param strategy: a name of :func:`neap.strategies`; ``auto``: the fastest plan that can be expressed as a
        schedule.
    :param int slots: number of checkpoints in memory, including the first state.
    :param Size state: instead of ``slots``: bytes of a state, with ``tape`` and ``memory``.
    :param tuple tape: bytes of the data that the backward step of one step needs.
    :param Size memory: budget in bytes.
    :param str slow: the disk, a :class:`neap.Tier`. With ``slots``, ``neap.Tier(write=2, read=2)`` specifies seconds
        per checkpoint, in the unit of ``advance`` and ``backward``.
    :param float advance: seconds of a forward step; ``backward``: of a backward step. The other arguments are those of
        :func:`neap.plan`.
    :raises BudgetError: if no plan fits.
    :raises UsageError: if an argument is invalid, or the plan of the strategy cannot be expressed as a schedule.
    """

    def __init__(self, steps: int, *, strategy: str = "auto", **arguments: Any):
        super().__init__(steps)
        if arguments.get("slots") is None:
            arguments.setdefault("tapes_stay", True)
        if strategy == "auto":
            self.plan, self._uses = _fastest(steps, arguments)
        else:
            self.plan = plan(steps, strategy=strategy, **arguments)
            self._uses = _Uses(iter(self.plan))
            if self._uses.refused:
                raise UsageError(f"the plan of strategy {strategy!r} cannot be expressed as a checkpoint_schedules "
                                 f"schedule, which has no action for {self._uses.refused}. Pass strategy='auto' for "
                                 f"the fastest plan that can")
        self._exhausted = False

    @property
    def is_exhausted(self) -> bool:
        """True after the last action."""
        return self._exhausted

    def uses_storage_type(self, storage_type: StorageType) -> bool:
        """True if the schedule uses this storage: memory (RAM), disk (DISK) or working memory (WORK)."""
        return {StorageType.RAM: self._uses.ram, StorageType.DISK: self._uses.slow}.get(
            storage_type, storage_type == StorageType.WORK)

    def _iterator(self) -> Iterator[Any]:
        for action in _said(self.plan, self._uses):
            if isinstance(action, Forward):
                self._n = action.n1
            elif isinstance(action, Reverse):
                self._r += action.n1 - action.n0
            elif isinstance(action, (Copy, Move)):
                self._n = action.n
            yield action
        self._exhausted = True
        yield EndReverse()


def _fastest(steps: int, arguments: Dict[str, Any]) -> Tuple[Plan, _Uses]:
    """Returns the fastest plan that can be expressed as a schedule, and its first pass."""
    rows = [row for row in sort(compare(steps, **arguments)) if row.feasible]
    for row in rows:
        uses = _Uses(iter(row))
        if not uses.refused:
            return row, uses
    if rows:
        raise UsageError(f"no plan that fits can be expressed as a checkpoint_schedules schedule, which has no action "
                         f"for {uses.refused} in the plan of {row.chosen!r}. Increase the budget")
    return plan(steps, **arguments), uses  # raises BudgetError


class _Said(_Walk):
    """The second pass: converts actions of neap to actions of checkpoint_schedules."""

    def __init__(self, uses: _Uses) -> None:
        super().__init__()
        self.uses, self.left, self.gets = uses, array("q", uses.reads), array("q", uses.gets)
        self.disk = bytearray(uses.disk)
        self.pending: Optional[int] = None  # the state that the next Forward stores
        self.tapes: Dict[int, Tuple[int, bool]] = {}  # end of a RECORD: its first step, is it kept
        self.records = 0

    def forward(self, a: Action) -> Forward:
        number, self.pending = self.pending, None
        keep = a.kind == Kind.RECORD and bool(self.uses.keeps[self.records])
        if a.kind == Kind.RECORD:
            self.tapes[a.t1] = a.t0, keep
            self.records += 1
        where = StorageType.RAM if keep else StorageType.WORK
        if number is not None:
            where = StorageType.DISK if self.disk[number] else StorageType.RAM
        return Forward(a.t0, a.t1, number is not None, a.kind == Kind.RECORD, where)

    def store(self, a: Action) -> None:
        number = self.save(a)
        if number is not None and self.left[number]:
            self.pending = number

    def load(self, a: Action) -> Iterator[Any]:
        if a.kind == Kind.GET:
            self.gets[self.stored.places[a.tier, a.place]] -= 1
        number = self.read(a)
        if number is None:
            return
        self.left[number] -= 1
        on_disk = bool(self.disk[number])
        # Read from disk for the last time, but read again later: it moves to memory.
        moves = on_disk and a.kind == Kind.LOAD and self.gets[number] == 0 and self.left[number] > 0
        self.pending = number if moves else None
        if moves:
            self.disk[number] = 0
        kind = Copy if self.left[number] and not moves else Move
        yield kind(self.stored.step[number], StorageType.DISK if on_disk else StorageType.RAM,
                   StorageType.WORK)

    def backward(self, a: Action) -> Iterator[Any]:
        end = at = a.t1
        while at > a.t0:
            first, kept = self.tapes.pop(at)
            if kept and end > at:
                yield Reverse(end, at, True)
            for step in range(at - 1, first - 1, -1) if kept else ():
                yield Move(step, StorageType.RAM, StorageType.WORK)
                yield Reverse(step + 1, step, True)
            at = first
            end = first if kept else end
        if end > a.t0:
            yield Reverse(end, a.t0, True)


def _said(made: Plan, uses: _Uses) -> Iterator[Any]:
    walk = _Said(uses)
    for a in made:
        if a.kind in _FORWARD:
            yield walk.forward(a)
        elif a.kind == Kind.TURN:
            yield EndForward()
        elif a.kind == Kind.BACKWARD:
            yield from walk.backward(a)
        elif a.kind in (Kind.SAVE, Kind.PUT):
            walk.store(a)
        elif a.kind in (Kind.LOAD, Kind.GET):
            yield from walk.load(a)
        elif a.kind in (Kind.DROP, Kind.FORGET):
            walk.drop(a)
