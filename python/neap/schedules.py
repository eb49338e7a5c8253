# SPDX-License-Identifier: Apache-2.0
"""Plans as schedules of checkpoint_schedules, for pyadjoint, tlm_adjoint, Firedrake and others that follow them::

    from neap.schedules import Schedule
    tape.enable_checkpointing(Schedule(1000, slots=20))                            # a number of checkpoints
    tape.enable_checkpointing(Schedule(1000, state="8M", tape="40M", memory="2G")) # a number of bytes

In checkpoint_schedules, a checkpoint is written by the Forward action that starts from it, and contains what this
Forward needs and no more: a later restart from it may only advance to the end of this Forward. So a state that is
saved but never loaded is not stored, and does not end the Forward action of the state before. Data is read into
working memory, which must be empty: a load becomes a Copy (the last one a Move) immediately before the step that
starts from it. A state that a plan has in memory and on disk at the same time is only on disk in the schedule, and
moves to memory when it is read from disk for the last time. The saved data of a step (its tape) is in working memory
if the step is reversed before anything else is read or stored; otherwise it is a separate checkpoint in memory.
Transfers are blocking. Plans that offload tapes, or restore them from logs, cannot be expressed.
"""
import enum
from array import array
from collections import deque
from itertools import groupby
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from checkpoint_schedules import (CheckpointSchedule, Copy, EndForward, EndReverse, Forward, Move,
                                  Reverse, StorageType)

from .actions import LIVE, Action, Kind, Payload
from .errors import UsageError
from .plans import Plan, compare, plan
from .problems import Slow
from .tables import sort
from .units import Seconds, Size

__all__ = ["Schedule"]

_RAM, _DISK, _WORK = StorageType.RAM, StorageType.DISK, StorageType.WORK


class _Refused(Exception):
    """Why a plan cannot be expressed."""


class _Stored:
    """The states that are stored at a position of the plan: by slot, by place on a tier and by step. Each has a number.
    A state that is stored repeatedly while it exists keeps its number."""

    def __init__(self) -> None:
        self.slots: Dict[int, int] = {}
        self.places: Dict[Tuple[int, int], int] = {}
        self.steps: List[int] = []  # the step of each number
        self._at: Dict[int, int] = {}  # step of a state that exists: its number
        self._holders: Dict[int, int] = {}  # number: count of slots and places with it

    def store(self, step: int, loaded: Optional[int]) -> int:
        """Stores the live state, at a step; returns its number. `loaded` is the number of the state that was loaded
        into the live state, if no step has run since."""
        number = self._at.get(step, loaded)
        if number is None:
            number = len(self.steps)
            self.steps.append(step)
        self._at[step] = number
        return number

    def hold(self, where: Dict[Any, int], key: Any, number: int) -> None:
        """Puts a state into a slot or place."""
        self.release(where, key)
        where[key] = number
        self._holders[number] = self._holders.get(number, 0) + 1

    def release(self, where: Dict[Any, int], key: Any) -> None:
        """Frees a slot or place."""
        number = where.pop(key, None)
        if number is None:
            return
        self._holders[number] -= 1
        if self._holders[number] == 0:
            del self._at[self.steps[number]], self._holders[number]


class _Pass:
    """A pass over the actions of a plan. It calls the methods below, which a subclass overrides. A state is read when
    the next step starts from it, not when the plan loads it."""

    def __init__(self) -> None:
        self._stored = _Stored()
        self._loaded: Optional[int] = None  # number of the state in the live state, if no step has run since

    def store(self, number: int) -> None:
        """The live state is stored, and was not before."""

    def fetch(self, number: int) -> None:
        """The plan reads the state from a slow tier."""

    def read(self, number: int) -> None:
        """The next step starts from a stored state."""

    def forward(self, t0: int, t1: int, recorded: bool) -> None:
        """Forward steps from the live state, with or without saved data for the backward steps."""

    def turn(self) -> None:
        """The forward pass is complete."""

    def backward(self, t0: int, t1: int) -> None:
        """Backward steps."""

    def drop(self, t0: int, t1: int) -> None:
        """The tapes of recorded steps are freed, unused."""

    def take(self, a: Action) -> None:
        """Reads the next action of the plan; raises _Refused if it has no equivalent."""
        if a.kind == Kind.WAIT:
            return
        if a.kind == Kind.TURN:
            self.turn()
        elif a.kind == Kind.DROP and a.payload == Payload.TAPE:
            self.drop(a.t0, a.t1)
        elif a.payload != Payload.STATE:
            raise _Refused(f"'{a}' moves or restores the data of a step, for which there is no action")
        elif a.kind in (Kind.ADVANCE, Kind.RECORD):
            if self._loaded is not None:
                self.read(self._loaded)
                self._loaded = None
            self.forward(a.t0, a.t1, a.kind == Kind.RECORD)
        elif a.kind == Kind.BACKWARD:
            self.backward(a.t0, a.t1)
        else:
            self._move(a)

    def _move(self, a: Action) -> None:
        stored, place = self._stored, (a.tier, a.place)
        if a.kind == Kind.SAVE:
            stored.hold(stored.slots, a.slot, self._store(a.t0))
        elif a.kind == Kind.PUT:
            stored.hold(stored.places, place, self._store(a.t0) if a.slot == LIVE else stored.slots[a.slot])
        elif a.kind == Kind.LOAD:
            self._loaded = stored.slots[a.slot]
        elif a.kind == Kind.GET:
            number = stored.places[place]
            self.fetch(number)
            if a.slot == LIVE:
                self._loaded = number
            else:
                stored.hold(stored.slots, a.slot, number)
        elif a.kind == Kind.DROP:
            stored.release(stored.slots, a.slot)
        elif a.kind == Kind.FORGET:
            stored.release(stored.places, place)

    def _store(self, step: int) -> int:
        before = len(self._stored.steps)
        number = self._stored.store(step, self._loaded)
        if number == before:
            self.store(number)
        return number


class _Tape(enum.IntEnum):
    """The use of the tape of a recorded step: reversed from working memory; kept in memory while other steps run or
    checkpoints are read; never used."""

    WORK = 0
    KEPT = 1
    UNUSED = 2


class _Uses(_Pass):
    """The first pass: how often each state is read, how often it is fetched from a slow tier, and the use of the tape
    of each recorded step."""

    def __init__(self, actions: Iterable[Action]) -> None:
        super().__init__()
        self.reads, self.fetches = array("q"), array("q")
        self.tapes = bytearray()  # a _Tape for each step recorded, in the order in which they are recorded
        self._index: Dict[int, int] = {}  # a step that has a tape: its index in `tapes`
        self._work = (0, 0)  # the steps whose tapes are in working memory
        self._stores = False  # since the last forward step
        for action in actions:
            self.take(action)

    def store(self, number: int) -> None:
        self.reads.append(0)
        self.fetches.append(0)
        self._stores = True

    def fetch(self, number: int) -> None:
        self.fetches[number] += 1

    def read(self, number: int) -> None:
        self.reads[number] += 1
        self._keep()

    def forward(self, t0: int, t1: int, recorded: bool) -> None:
        low, high = self._work
        if not recorded or self._stores or high != t0:
            self._keep()
            low = t0
        self._stores = False
        if recorded:
            self._work = low, t1
            for step in range(t0, t1):
                self._index[step] = len(self.tapes)
                self.tapes.append(_Tape.WORK)

    def backward(self, t0: int, t1: int) -> None:
        low, high = self._work
        if high != t1:
            self._keep()
        else:
            self._work = low, max(low, t0)
        for step in range(t0, t1):
            del self._index[step]

    def drop(self, t0: int, t1: int) -> None:
        self._keep()
        for step in range(t0, t1):
            self.tapes[self._index.pop(step)] = _Tape.UNUSED

    def _keep(self) -> None:
        for step in range(*self._work):
            self.tapes[self._index[step]] = _Tape.KEPT
        self._work = (0, 0)


class _Said(_Pass):
    """The second pass: converts actions of neap to actions of checkpoint_schedules, in `out`. The last Forward and the
    last Reverse are not yet in `out`, because the next action may extend them. `used` are the storages of the schedule.
    Raises _Refused if the schedule would break the contract of checkpoint_schedules."""

    def __init__(self, uses: _Uses, steps: int) -> None:
        super().__init__()
        self.out: List[Any] = []
        self.used = {_WORK}
        self._uses, self._left, self._fetches = uses, array("q", uses.reads), array("q", uses.fetches)
        self._pending: Optional[int] = None  # the state that the next Forward stores
        self._last_forward: Optional[Tuple[Forward, Optional[int]]] = None  # with the state that it stores
        self._last_reverse: Optional[Reverse] = None
        self._where: Dict[int, StorageType] = {}  # step of each checkpoint
        self._reach: Dict[int, int] = {}  # number of a stored state: the end of the Forward that stored it
        self._work = (0, 0)  # the steps whose tapes are in working memory
        self._recorded = 0  # steps so far
        self._adjoint = steps
        self._may_load = False  # tlm_adjoint: one checkpoint after the forward pass, and after each Reverse

    def store(self, number: int) -> None:
        if self._left[number]:
            self._pending = number

    def fetch(self, number: int) -> None:
        self._fetches[number] -= 1

    def read(self, number: int) -> None:
        self.flush()
        step = self._stored.steps[number]
        if self._pending is not None or number not in self._reach:
            raise _Refused(f"the state of step {step} is loaded, or left, before a step starts from it")
        if not step < self._adjoint <= self._reach[number]:
            raise _Refused(f"the checkpoint of step {step} has the data of the steps up to {self._reach[number]}, and "
                           f"the steps up to {self._adjoint} are recomputed from it")
        self._left[number] -= 1
        storage = self._where[step]
        # Read from disk for the last time, but read again later: it moves to memory.
        moves = storage == _DISK and self._fetches[number] == 0 and self._left[number] > 0
        if moves:
            self._pending = number
        self._load(step, storage, moves or self._left[number] == 0)

    def _load(self, step: int, storage: StorageType, last: bool) -> None:
        if not self._may_load:
            raise _Refused(f"the checkpoint of step {step} is read before the forward pass ends, or as the second one "
                           f"without a backward step in between")
        self._may_load = False
        if last:
            del self._where[step]
        self.out.append((Move if last else Copy)(step, storage, _WORK))

    def forward(self, t0: int, t1: int, recorded: bool) -> None:
        if not recorded:
            self._go(t0, t1, False, _WORK)
            return
        for tape, group in groupby(range(t0, t1), lambda step: self._uses.tapes[self._recorded + step - t0]):
            steps = list(group)
            if tape == _Tape.KEPT:
                for step in steps:
                    self._go(step, step + 1, True, _RAM)
            else:
                self._go(steps[0], steps[-1] + 1, tape == _Tape.WORK, _WORK)
        self._recorded += t1 - t0

    def turn(self) -> None:
        self.flush()
        self._may_load = True
        self.out.append(EndForward())

    def backward(self, t0: int, t1: int) -> None:
        if self._last_forward is not None:
            self.flush()
        low, high = self._work
        if high == t1 and low < t1:
            until = max(t0, low)
            first = t1 if self._last_reverse is None else self._last_reverse.n1
            self._last_reverse, self._work = Reverse(first, until, True), (low, until)
            t1 = until
        for step in range(t1 - 1, t0 - 1, -1):
            self.flush()
            self._load(step, _RAM, True)
            self._last_reverse = Reverse(step + 1, step, True)
        self._adjoint = t0

    def flush(self) -> None:
        """Appends the last Reverse and the last Forward to `out`."""
        if self._last_reverse is not None:
            self.out.append(self._last_reverse)
            self._last_reverse = None
            self._may_load = True
        if self._last_forward is None:
            return
        (action, number), self._last_forward = self._last_forward, None
        self.out.append(action)
        self.used.add(action.storage)
        if action.storage != _WORK:
            if action.n0 in self._where:
                raise _Refused(f"two checkpoints of step {action.n0} exist at the same time")
            self._where[action.n0] = action.storage
        if number is not None:
            self._reach[number] = action.n1
        self._work = (action.n0, action.n1) if action.write_adj_deps and action.storage == _WORK else (0, 0)

    def _go(self, t0: int, t1: int, recorded: bool, storage: StorageType) -> None:
        """Adds forward steps, which store the pending state if there is one."""
        number, self._pending = self._pending, None
        if number is not None:
            if recorded:
                raise _Refused(f"the state of step {t0} and the data of this step are stored at the same time")
            storage = _DISK if self._fetches[number] else _RAM
        elif self._last_forward is not None and storage == _WORK:
            held, stores = self._last_forward
            if held.n1 == t0 and held.write_adj_deps == recorded and (held.storage == _WORK or not recorded):
                self._last_forward = Forward(held.n0, t1, held.write_ics, recorded, held.storage), stores
                return
        self.flush()
        self._last_forward = Forward(t0, t1, number is not None, recorded, storage), number


def _said(actions: Iterable[Action], walk: _Said) -> Iterator[Any]:
    for a in actions:
        walk.take(a)
        yield from walk.out
        walk.out.clear()
    walk.flush()
    yield from walk.out


class Schedule(CheckpointSchedule):
    """A plan of neap as a ``checkpoint_schedules.CheckpointSchedule``; ``schedule.plan`` is the plan.

    :param steps: number of steps.
    :param strategy: a name of :func:`neap.strategies`; ``auto``: the fastest plan that can be expressed as a
        schedule.
    :param slots: number of checkpoints in memory, including the first state.
    :param state: instead of ``slots``: bytes of a state, with ``tape`` and ``memory``.
    :param tape: bytes of the data that the backward step of one step needs.
    :param memory: budget in bytes, with ``state`` and ``tape``; None: no limit.
    :param slow: the disk, a :class:`neap.Tier`; None: only memory. With ``slots``, ``neap.Tier(write=2, read=2)``
        specifies seconds per checkpoint, in the unit of ``advance`` and ``backward``.
    :param advance: seconds of a forward step.
    :param backward: seconds of a backward step.
    :param others: further arguments of :func:`neap.plan`.
    :raises BudgetError: if no plan fits.
    :raises UsageError: if an argument is invalid, or the plan of the strategy cannot be expressed as a schedule.
    """

    def __init__(self, steps: int, *, strategy: str = "auto", slots: Optional[int] = None, state: Optional[Size] = None,
                 tape: Optional[Size] = None, memory: Optional[Size] = None, slow: Slow = None, advance: Seconds = 1.0,
                 backward: Seconds = 2.0, **others: Any):
        if isinstance(steps, (tuple, list)):
            raise UsageError(f"steps={steps!r} is not valid: checkpoint_schedules has schedules of one chain. Pass one "
                             f"number of steps, or follow the plan of neap.plan for two chains")
        super().__init__(steps)
        arguments = dict(others, slots=slots, state=state, tape=tape, memory=memory, slow=slow, advance=advance,
                         backward=backward)
        if slots is None:
            arguments.setdefault("tapes_stay", True)
        if strategy == "auto":
            self.plan, self._uses, self._used = _fastest(steps, arguments)
        else:
            try:
                self.plan, self._uses, self._used = _checked(plan(steps, strategy=strategy, **arguments), steps)
            except _Refused as reason:
                raise UsageError(f"the plan of strategy {strategy!r} cannot be expressed as a checkpoint_schedules "
                                 f"schedule: {reason}. Pass strategy='auto' for the fastest plan that can") from None
        self._exhausted = False

    @property
    def is_exhausted(self) -> bool:
        """True after the last action."""
        return self._exhausted

    def uses_storage_type(self, storage_type: StorageType) -> bool:
        """True if the schedule uses this storage: memory (RAM), disk (DISK) or working memory (WORK)."""
        return storage_type in self._used

    def _iterator(self) -> Iterator[Any]:
        for action in _said(self.plan, _Said(self._uses, self.max_n)):
            if isinstance(action, Forward):
                self._n = action.n1
            elif isinstance(action, Reverse):
                self._r += action.n1 - action.n0
            elif isinstance(action, (Copy, Move)):
                self._n = action.n
            yield action
        self._exhausted = True
        yield EndReverse()


def _checked(made: Plan, steps: int) -> Tuple[Plan, _Uses, Set[StorageType]]:
    """Returns a plan, its first pass, and the storages of its schedule; raises _Refused."""
    uses = _Uses(made)
    walk = _Said(uses, steps)
    deque(_said(made, walk), maxlen=0)
    return made, uses, walk.used


def _fastest(steps: int, arguments: Dict[str, Any]) -> Tuple[Plan, _Uses, Set[StorageType]]:
    """Returns what _checked returns for the fastest plan that can be expressed as a schedule."""
    rows = [row for row in sort(compare(steps, **arguments)) if row.feasible]
    reasons = []
    for row in rows or [plan(steps, **arguments)]:  # raises BudgetError
        try:
            return _checked(row, steps)
        except _Refused as reason:
            reasons.append(f"the plan of strategy {row.chosen!r}: {reason}")
    remedy = "Pass tapes_stay=True, or increase" if arguments.get("tapes_stay") is False else "Increase"
    raise UsageError(f"no plan that fits can be expressed as a checkpoint_schedules schedule; {reasons[0]}. "
                     f"{remedy} the budget")
