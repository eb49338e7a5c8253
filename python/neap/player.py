# SPDX-License-Identifier: Apache-2.0
"""The loop over a plan's actions, for the backend of any framework.

A Player performs a plan up to its TURN and, later, the rest. It owns slots and tapes and counts
bytes and steps; what a state, a step and a tape are, the backend knows. A plan counts groups of
steps, the backend steps: group g has the steps [g k, min((g + 1) k, T)).

A tape may take more than planned. It stays where the budget has room beyond the plan. Otherwise
the first state of its group stays instead, and its BACKWARD records the group again, in halves if
it must. Where one step of these does not fit, tapes that stayed beyond the plan make room.
"""
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .actions import LIVE, Action, Kind, Payload
from .errors import BudgetError, Error, RecordError, UsageError
from .stores import Store, Transfer

__all__ = ["Backend", "Counts", "Outgrown", "Player", "Sizes"]


class Outgrown(Exception):
    """A backend's record found that its tape takes more than the bytes it was allowed.
    ``nbytes`` is how many it had counted by then."""

    def __init__(self, nbytes: int):
        super().__init__(f"a tape takes {nbytes} bytes and more")
        self.nbytes = nbytes


class Backend:
    """What a Player asks of a framework. States, tapes and adjoints are opaque to the Player.

    States are never changed in place: a slot keeps a reference.
    """

    def advance(self, state: Any, t0: int, t1: int, first: bool) -> Any:
        """The state at t1. ``first``: these steps are done for the first time."""
        raise NotImplementedError

    def record(self, state: Any, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[Any, Any, int]:
        """The state at t1, the tape of [t0, t1) and its bytes. Outgrown where it takes more than
        ``room`` bytes (None: no limit)."""
        raise NotImplementedError

    def backward(self, tape: Any, adjoint: Any, t0: int, t1: int) -> Any:
        """The adjoint at t0 of the one at t1; the tape is used up."""
        raise NotImplementedError

    def pieces(self, state: Any) -> Tuple[Any, Sequence[Tuple[int, int]]]:
        """A state, and the pieces of memory, (address, bytes), that it lies in: the same one, or
        a copy that lies in fewer."""
        raise NotImplementedError

    def empty(self) -> Any:
        """A state to be filled from a tier."""
        raise NotImplementedError

    def filled(self, state: Any) -> Any:
        """The state of ``empty`` after that."""
        return state


class Sizes(NamedTuple):
    """Bytes as the plan has them: of a state, an adjoint, a group's tape; the plan's peak and the
    budget that it keeps to (None: no limit); ``staging`` that tiers take."""

    state: int
    adjoint: int
    tape: int
    peak: int
    memory: Optional[int]
    staging: int = 0


class Counts:
    """What was done: steps by kind, the counted peak in bytes, tapes that outgrew the plan, states
    that went to tiers and came back, records that were lost and made again."""

    def __init__(self) -> None:
        self.peak = 0
        self.advance_steps = self.record_steps = self.backward_steps = 0
        self.outgrown = self.recorded_again = 0
        self.actions = self.puts = self.gets = self.recoveries = 0
        self.waited = 0.0  # seconds for tiers


class _Tape:
    """The tape of a group; where it takes more than planned, or where ``tape`` is None, also the
    state from which to record it."""

    __slots__ = ("tape", "state", "nbytes")

    def __init__(self, tape: Any, state: Any, nbytes: int):
        self.tape, self.state, self.nbytes = tape, state, nbytes


class Player:
    """Performs the actions of a plan. ``forward`` goes to TURN, ``backward`` to the end.

    :param actions: an iterable of :class:`neap.Action` over ``ceil(steps / group)`` groups.
    :param steps: T. :param group: steps of a group; the last may be shorter.
    :param sizes: what the plan counted. :param strict: False: a step whose tape does not fit the
        budget is recorded all the same, and counted. :param store: for plans with slow tiers.
    """

    def __init__(self, backend: Backend, actions: Iterable[Action], steps: int, group: int,
                 sizes: Sizes, strict: bool = True, counts: Optional[Counts] = None,
                 store: Optional[Store] = None):
        self.backend, self.steps, self.group = backend, steps, group
        self.sizes, self.strict = sizes, strict
        self.counts = counts or Counts()
        self.slots: Dict[int, Any] = {}
        self.tapes: Dict[int, _Tape] = {}
        self.store, self.first = store, None
        self._times: Dict[int, int] = {}  # of the states in slots
        self._flying: Dict[int, Tuple[Optional[Transfer], Action, Any]] = {}
        self.live: Any = None
        self.adjoint: Any = None
        self._actions: Iterator[Action] = iter(actions)
        self._top = 0  # steps below it were done before
        self._taped = 0  # bytes of all tapes
        self._excess = 0  # bytes of tapes beyond what the plan has for them

    def forward(self, state: Any) -> Any:
        """Plays up to TURN from the first state; returns the last one."""
        self.live = self.first = state
        for action in self._actions:
            if action.kind == Kind.TURN:
                last, self.live = self.live, None
                return last
            self._do(action)
        raise Error("the plan has no TURN")

    def backward(self, adjoint: Any) -> Any:
        """Plays the rest from the adjoint of the last state; returns that of the first."""
        self.adjoint = adjoint
        for action in self._actions:
            self._do(action)
        found, self.adjoint = self.adjoint, None
        self.close()
        return found

    def close(self) -> None:
        """Waits for what is in flight; frees slots, tapes, tiers and the stream of actions."""
        flying, self._flying = self._flying, {}
        for transfer, _, _ in flying.values():
            if transfer is not None:
                self._over(transfer)
        if self.store is not None:
            self.store.close()
        self.slots.clear()
        self.tapes.clear()
        self.live = self.adjoint = self.first = None
        self._taped = self._excess = 0
        self._actions = iter(())

    @property
    def held(self) -> int:
        """Bytes of slots and tapes now."""
        return len(self.slots) * self.sizes.state + self._taped

    def _do(self, action: Action) -> None:
        perform = _PERFORM.get(action.kind)
        if perform is None or action.payload == Payload.LOG:
            raise UsageError(f"'{action}': this player moves states alone")
        perform(self, action)
        self.counts.actions += 1
        self._note(0)

    def _note(self, more: int) -> None:
        now = self.held + self.sizes.state + self.sizes.adjoint + self.sizes.staging + more
        if now > self.counts.peak:
            self.counts.peak = now

    def _span(self, g: int) -> Tuple[int, int]:
        return g * self.group, min((g + 1) * self.group, self.steps)

    def _advance(self, a: Action) -> None:
        """One call for steps that were done before, and one for those that were not."""
        t0, t1 = a.t0 * self.group, min(a.t1 * self.group, self.steps)
        for begin, end in ((t0, min(t1, self._top)), (max(t0, self._top), t1)):
            if begin < end:
                self.live = self.backend.advance(self.live, begin, end, begin >= self._top)
                self._top = max(self._top, end)
        self.counts.advance_steps += t1 - t0

    def _record(self, a: Action) -> None:
        for g in range(a.t0, a.t1):
            t0, t1 = self._span(g)
            first, state = t0 >= self._top, self.live
            self.counts.record_steps += t1 - t0
            try:
                self.live, tape, nbytes = self.backend.record(state, t0, t1, first, self._room())
                kept = _Tape(tape, state if nbytes > self.sizes.tape else None, nbytes)
            except Outgrown:
                self.counts.outgrown += 1
                self.live = self.backend.advance(state, t0, t1, first)
                self.counts.advance_steps += t1 - t0
                kept = _Tape(None, state, self.sizes.state)
            self._top = max(self._top, t1)
            self._keep(g, kept)
            self._note(0)

    def _keep(self, g: int, kept: _Tape) -> None:
        self.tapes[g] = kept
        self._taped += kept.nbytes
        self._excess += max(0, kept.nbytes - self.sizes.tape)

    def _room(self) -> Optional[int]:
        """Bytes that one more planned tape may take: what the budget has beyond the plan is for
        all tapes that outgrow it."""
        if self.sizes.memory is None:
            return None
        return self.sizes.tape + self.sizes.memory - self.sizes.peak - self._excess

    def _take(self, g: int) -> _Tape:
        kept = self.tapes.pop(g)
        self._taped -= kept.nbytes
        self._excess -= max(0, kept.nbytes - self.sizes.tape)
        return kept

    def _evict(self) -> bool:
        """Frees the tape that stayed furthest beyond the plan; False where there is none."""
        over = [g for g, kept in self.tapes.items()
                if kept.tape is not None and kept.nbytes > max(self.sizes.tape, self.sizes.state)]
        if not over:
            return False
        g = max(over, key=lambda g: self.tapes[g].nbytes)
        self._keep(g, _Tape(None, self._take(g).state, self.sizes.state))
        self.counts.outgrown += 1
        return True

    def _backward(self, a: Action) -> None:
        for g in reversed(range(a.t0, a.t1)):
            t0, t1 = self._span(g)
            kept = self._take(g)
            if kept.tape is not None:
                self._note(kept.nbytes)
                self.adjoint = self.backend.backward(kept.tape, self.adjoint, t0, t1)
            else:
                self._again(kept.state, t0, t1)
            self.counts.backward_steps += t1 - t0

    def _again(self, state: Any, t0: int, t1: int) -> None:
        """Reverses [t0, t1) from its first state, in pieces whose tapes fit."""
        pieces: List[Tuple[Any, int, int]] = [(state, t0, t1)]
        while pieces:
            state, t0, t1 = pieces[-1]
            room = self._room()
            if room is not None:
                room -= len(pieces) * self.sizes.state
            self.counts.record_steps += t1 - t0
            self.counts.recorded_again += t1 - t0
            try:
                _, tape, nbytes = self.backend.record(state, t0, t1, False, room)
            except Outgrown as error:
                if t1 - t0 > 1:
                    half = (t0 + t1) // 2
                    self.counts.advance_steps += half - t0
                    later = self.backend.advance(state, t0, half, False)
                    pieces[-1:] = [(state, t0, half), (later, half, t1)]
                    self._note(len(pieces) * self.sizes.state)
                    continue
                if self._evict():
                    continue
                if self.strict:
                    raise BudgetError(
                        f"the tape of step {t0} alone takes {error.nbytes} bytes and more, where "
                        f"the budget has {max(0, room or 0)} left",
                        least=self.sizes.memory + error.nbytes - (room or 0)) from None
                _, tape, nbytes = self.backend.record(state, t0, t1, False, None)
            self._note(nbytes + len(pieces) * self.sizes.state)
            pieces.pop()
            self.adjoint = self.backend.backward(tape, self.adjoint, t0, t1)

    def _save(self, a: Action) -> None:
        self.slots[a.slot] = self.live
        self._times[a.slot] = a.t0

    def _load(self, a: Action) -> None:
        self.live = self.slots[a.slot]

    def _drop(self, a: Action) -> None:
        if a.payload == Payload.STATE:
            del self.slots[a.slot]
        else:
            for g in range(a.t0, a.t1):
                self._take(g)

    # States on slow tiers

    def _over(self, transfer: Transfer) -> bool:
        """Waits; False where the record is lost."""
        assert self.store is not None
        before = self.store.waited
        try:
            self.store.wait(transfer)
        except (RecordError, OSError):
            return False
        finally:
            self.counts.waited += self.store.waited - before
        return True

    def _move(self, a: Action, state: Any, put: bool) -> None:
        """Starts a transfer. One that cannot start is lost."""
        if self.store is None or a.payload != Payload.STATE:
            raise UsageError(f"'{a}': this player has no tiers for it")
        transfer = None
        try:
            state, pieces = self.backend.pieces(state)
            start = self.store.put if put else self.store.get
            transfer = start(a.tier, a.place, a.t0 + 1, pieces, state)
        except (RecordError, OSError):
            pass
        self._flying[a.ticket] = transfer, a, state

    def _put(self, a: Action) -> None:
        self.counts.puts += 1
        self._move(a, self.live if a.slot == LIVE else self.slots[a.slot], True)

    def _get(self, a: Action) -> None:
        self.counts.gets += 1
        if a.slot != LIVE:
            self.slots[a.slot] = None  # its bytes count from now on
        self._move(a, self.backend.empty(), False)

    def _wait(self, a: Action) -> None:
        """The end of a transfer. A record that does not come back is computed again; of one that
        did not arrive, its GET finds out."""
        transfer, started, state = self._flying.pop(a.ticket)
        arrived = transfer is not None and self._over(transfer)
        if started.kind == Kind.PUT:
            return
        if arrived:
            state = self.backend.filled(state)
        else:
            self.counts.recoveries += 1
            state = self._computed(started.t0)
        if started.slot == LIVE:
            self.live = state
        else:
            self.slots[started.slot] = state
            self._times[started.slot] = started.t0

    def _computed(self, g: int) -> Any:
        """The state at the beginning of group g, from the nearest one before it that is there."""
        near, state = 0, self.first
        for slot, held in self.slots.items():
            if held is not None and near < self._times[slot] <= g:
                near, state = self._times[slot], held
        t0, t1 = near * self.group, min(g * self.group, self.steps)
        if t0 < t1:
            state = self.backend.advance(state, t0, t1, False)
            self.counts.advance_steps += t1 - t0
            self._note(self.sizes.state)
        return state

    def _forget(self, a: Action) -> None:
        if self.store is not None:
            self.store.forget(a.tier, a.place)


_PERFORM = {Kind.ADVANCE: Player._advance, Kind.RECORD: Player._record, Kind.BACKWARD: Player._backward,
            Kind.SAVE: Player._save, Kind.LOAD: Player._load, Kind.DROP: Player._drop,
            Kind.PUT: Player._put, Kind.GET: Player._get, Kind.WAIT: Player._wait,
            Kind.FORGET: Player._forget}
