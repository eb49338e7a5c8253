# SPDX-License-Identifier: Apache-2.0
"""The loop over a plan's actions, for the backend of any framework.

A Player performs a plan up to its TURN and, later, the rest. It owns slots and tapes and counts
bytes and steps; what a state, a step and a tape are, the backend knows. A plan counts groups of
steps, the backend steps: group g has the steps [g k, min((g + 1) k, T)).

A tape may take more than planned. It stays where the budget has room beyond the plan. Otherwise
the first state of its group stays instead, and its BACKWARD records the group again, in halves if
it must. Where one step of these does not fit, tapes that stayed beyond the plan make room.

States and tapes travel to slow tiers and back. A state that is lost is computed again from the
nearest one before it, and so is the first state of a group whose tape is lost, which its BACKWARD
records again. A tape that outgrew the plan is not sent: it counts as lost.
"""
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from .actions import LIVE, Action, Kind, Payload
from .backends import Backend, Counts, Outgrown, Sizes
from .errors import BudgetError, Error, RecordError, UsageError
from .stores import Store, Transfer

__all__ = ["Backend", "Counts", "Outgrown", "Player", "Sizes"]


class _Tape:
    """The tape of a group; where it takes more than planned, or where ``tape`` is None, also the
    state from which to record it. Where both are None, it was lost."""

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
        self.away: Dict[int, _Tape] = {}  # tapes on tiers
        self._times: Dict[int, int] = {}  # of the states in slots
        self._spare: Dict[int, Any] = {}  # states on the way to lost ones, by group
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
        for held in (self.slots, self.tapes, self.away, self._spare):
            held.clear()
        self.live = self.adjoint = self.first = None
        self._taped = self._excess = 0
        self._actions = iter(())

    @property
    def held(self) -> int:
        """Bytes of slots and tapes now."""
        return (len(self.slots) + len(self._spare)) * self.sizes.state + self._taped

    def _do(self, action: Action) -> None:
        perform = _PERFORM.get(action.kind)
        if perform is None or action.payload == Payload.LOG:
            raise UsageError(f"the action '{action}' needs logs, which this backend does not have. Use a plan without "
                             f"logs")
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
            held = [g for g, kept in self.tapes.items() if kept.tape is not None]
            if not held:
                return False
            self._take(min(held))  # the one that is reversed last is made again, as one that was lost
            self._keep(min(held), _LOST)
            self.counts.outgrown += 1
            return True
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
                self._again(self._computed(g) if kept.state is None else kept.state, t0, t1)
            self.counts.backward_steps += t1 - t0

    def _again(self, state: Any, t0: int, t1: int) -> None:
        """Reverses [t0, t1) from its first state, in pieces whose tapes fit."""
        pieces: List[Tuple[Any, int, int]] = [(state, t0, t1)]
        while pieces:
            state, t0, t1 = pieces[-1]
            room = self._room()
            if room is not None:
                room -= len(pieces) * self.sizes.state
                now = self.held + (len(pieces) + 1) * self.sizes.state + self.sizes.adjoint + self.sizes.staging
                room = max(room, self.sizes.memory - now)
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
                        f"the saved tensors of step {t0} take more than {error.nbytes} bytes, but only "
                        f"{max(0, room or 0)} of the budget are left. Set memory to error.least or more",
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

    # Slow tiers

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

    def _needs_tiers(self, a: Action) -> Store:
        if self.store is None:
            raise UsageError(f"the action '{a}' needs a slow tier, but none is open")
        return self.store

    def _move(self, a: Action, state: Any, put: bool) -> None:
        """Starts a transfer. One that cannot start is lost."""
        store, transfer = self._needs_tiers(a), None
        try:
            state, pieces = self.backend.pieces(state)
            transfer = (store.put if put else store.get)(a.tier, a.place, a.t0 + 1, pieces, state)
        except (RecordError, OSError):
            pass
        self._flying[a.ticket] = transfer, a, state

    def _put(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            self._put_tapes(a)
            return
        self.counts.puts += 1
        self._move(a, self.live if a.slot == LIVE else self.slots[a.slot], True)

    def _get(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            self._get_tapes(a)
            return
        self.counts.gets += 1
        if a.slot != LIVE:
            self.slots[a.slot] = None  # its bytes count from now on
        self._move(a, self.backend.empty(a.t0 * self.group), False)

    def _put_tapes(self, a: Action) -> None:
        """They stay where they are until the WAIT."""
        store, transfer = self._needs_tiers(a), None
        self.counts.tape_puts += 1
        tapes = [self.tapes[g].tape for g in range(a.t0, a.t1)]
        if None not in tapes:
            pieces = [piece for tape in tapes for piece in self.backend.tape_pieces(tape)]
            try:
                if 0 < sum(size for _, size in pieces) <= store.tape_bytes[a.tier - 1]:
                    transfer = store.put_tapes(a.tier, a.place, a.t0 + 1, pieces, tapes)
            except (RecordError, OSError):
                pass
        self._flying[a.ticket] = transfer, a, None

    def _get_tapes(self, a: Action) -> None:
        """Their bytes count from now on."""
        store, transfer = self._needs_tiers(a), None
        self.counts.tape_gets += 1
        groups = range(a.t0, a.t1)
        rows = [self.away.pop(g, _LOST) for g in groups]
        if _LOST not in rows:
            pieces = [piece for kept in rows for piece in self.backend.regain(kept.tape)]
            try:
                transfer = store.get_tapes(a.tier, a.place, a.t0 + 1, pieces, [kept.tape for kept in rows])
            except (RecordError, OSError):
                pass
        for g, kept in zip(groups, rows):
            self._keep(g, _LOST if transfer is None else kept)
        self._flying[a.ticket] = transfer, a, None

    def _wait(self, a: Action) -> None:
        """The end of a transfer. A record that does not come back is computed again; of one that
        did not arrive, its GET finds out."""
        transfer, started, state = self._flying.pop(a.ticket)
        arrived = transfer is not None and self._over(transfer)
        if started.payload == Payload.TAPE:
            self._tapes_moved(started, arrived)
            return
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

    def _tapes_moved(self, a: Action, arrived: bool) -> None:
        """Tapes that were sent are gone; those that did not come back are lost."""
        for g in range(a.t0, a.t1):
            if a.kind == Kind.PUT:
                kept = self._take(g)
                if arrived:
                    self.backend.shed(kept.tape)
                    self.away[g] = kept
            elif not arrived:
                self.counts.recoveries += 1
                self._take(g)
                self._keep(g, _LOST)

    def _computed(self, g: int) -> Any:
        """The state at the beginning of group g, from the nearest one before it that is there.
        Where the budget has room, states on the way stay, each half as far from g as the one
        before it, for lost ones before g."""
        near, state = 0, self.first
        for slot, held in self.slots.items():
            if held is not None and near < self._times[slot] <= g:
                near, state = self._times[slot], held
        spare = self._spares(g)
        for at, held in self._spare.items():
            if near < at:
                near, state = at, held
        while g - near > 1 and len(self._spare) < spare:
            middle = (near + g) // 2
            state = self._stepped(state, near, middle)
            near = middle
            self._spare[near] = state
        return self._stepped(state, near, g)

    def _stepped(self, state: Any, g0: int, g1: int) -> Any:
        """The state at the beginning of group g1, from that of group g0."""
        t0, t1 = g0 * self.group, min(g1 * self.group, self.steps)
        if t0 < t1:
            state = self.backend.advance(state, t0, t1, False)
            self.counts.advance_steps += t1 - t0
            self._note(self.sizes.state)
        return state

    def _spares(self, g: int) -> int:
        """How many states there is room for beside the plan, tapes that are lost included; lets
        those go that are behind g, or too many."""
        most = 64
        if self.sizes.memory is not None:
            lost = sum(kept is _LOST for kept in self.tapes.values()) * self.sizes.tape
            room = self.sizes.memory - self.sizes.peak - self._excess + lost - self.sizes.state
            most = max(0, min(most, room // max(1, self.sizes.state)))
        for at in sorted(self._spare, reverse=True):
            if at > g or len(self._spare) > most:
                del self._spare[at]
        return most

    def _forget(self, a: Action) -> None:
        if self.store is not None and a.payload == Payload.STATE:
            self.store.forget(a.tier, a.place)


_LOST = _Tape(None, None, 0)

_PERFORM = {Kind.ADVANCE: Player._advance, Kind.RECORD: Player._record, Kind.BACKWARD: Player._backward,
            Kind.SAVE: Player._save, Kind.LOAD: Player._load, Kind.DROP: Player._drop,
            Kind.PUT: Player._put, Kind.GET: Player._get, Kind.WAIT: Player._wait,
            Kind.FORGET: Player._forget}
