# SPDX-License-Identifier: Apache-2.0
"""The loop over a plan's actions, for the backend of any framework.

A Player performs a plan up to its TURN and, later, the rest. It owns slots and tapes and counts
bytes and steps; what a state, a step and a tape are, the backend knows. A plan counts groups of
steps, the backend steps: group g has the steps [g k, min((g + 1) k, T)).

A tape or a state may be larger than planned. It is kept as long as the budget has room. When a
planned item needs that room, or a step does not fit, items are freed that can be recomputed
(:class:`Holding`). A BACKWARD whose tape is gone records its group again from the nearest state
before it, in halves if necessary. One step alone needs its state, its tape, the adjoint and the
staging memory of tiers; only if these exceed the budget, :class:`Refused` is raised. Its ``least``
is the largest such sum over all steps. It does not depend on the plan, so the same call succeeds
with it. The price is time: without any slot, step t is recomputed from step 0.

States and tapes travel to slow tiers and back. A state that is lost is recomputed from the nearest
one before it, and so is the first state of a group whose tape is lost. A tape that outgrew the plan
is not sent: it counts as lost.
"""
from typing import Any, Iterable, Iterator, Optional, Tuple

from .actions import LIVE, Action, Kind, Payload
from .backends import Backend, Counts, Outgrown, Sizes
from .errors import BudgetError, Error, RecordError, UsageError
from .holding import LOST, Held, Holding, TapeOf, Weight
from .show import show_least, show_most
from .stores import Store, Transfer

__all__ = ["Backend", "Counts", "Outgrown", "Player", "Refused", "Sizes", "needed"]

SPARES = 64  # states that a recovery keeps on its way at most, chosen: they halve a distance each


class Refused(BudgetError):
    """The BudgetError of a player, as distinguished from one that a step raised."""


def _tape_of(t: int, nbytes: int, others: int) -> str:
    return f"the saved tensors of step {t} take {show_least(nbytes)} and its state and gradient {show_least(others)}"


def needed(backend: Backend, state: Any, steps: int, sizes: Sizes) -> int:
    """Bytes of the step that needs most alone: its state or the one after it, the adjoint of one of these, its tape,
    and staging memory. ``state``: the first one. Each step is sized, which takes no more memory than an advance."""
    planned = sizes.state, sizes.adjoint
    most, weight = 0, backend.state_bytes(state) or planned
    for t in range(steps):
        state, nbytes = backend.tape_bytes(state, t, t + 1)
        before, weight = weight, backend.state_bytes(state) or planned
        most = max(most, nbytes + sum(map(max, planned, before, weight)))
    return most + sizes.staging


class Player(Holding):
    """Performs the actions of a plan. ``forward`` goes to TURN, ``backward`` to the end.

    :param actions: an iterable of :class:`neap.Action` over ``ceil(steps / group)`` groups.
    :param steps: T. :param group: steps of a group; the last may be shorter.
    :param sizes: what the plan counted. :param strict: False: a step whose tape does not fit the
        budget is recorded all the same, and counted. :param store: for plans with slow tiers.
    """

    def __init__(self, backend: Backend, actions: Iterable[Action], steps: int, group: int,
                 sizes: Sizes, strict: bool = True, counts: Optional[Counts] = None,
                 store: Optional[Store] = None):
        super().__init__(sizes, counts or Counts())
        self.backend, self.steps, self.group, self.strict = backend, steps, group, strict
        self.store, self.first = store, None
        self.live: Any = None
        self.adjoint: Any = None
        self._actions: Iterator[Action] = iter(actions)
        self._top = 0  # steps below it were done before
        self._weight = self._planned  # of the live state

    def forward(self, state: Any) -> Any:
        """Plays up to TURN from the first state; returns the last one."""
        self.live = self.first = state
        self._weight = self._weigh(state)
        for action in self._actions:
            if action.kind == Kind.TURN:
                last = self.live
                self._reached(self._weight, self.steps)
                return last
            self._do(action)
        raise Error("the actions end before TURN, which separates the forward from the backward pass. Pass all actions "
                    "of a plan")

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
        self.let_go()
        self.live = self.adjoint = self.first = None
        self._actions = iter(())

    def _do(self, action: Action) -> None:
        perform = _PERFORM.get(action.kind)
        if perform is None or action.payload == Payload.LOG:
            raise UsageError(f"the action '{action}' needs logs, which this backend does not have. Use a plan without "
                             f"logs (log=None)")
        perform(self, action)
        self.counts.actions += 1
        self._note(0)

    def _span(self, g: int) -> Tuple[int, int]:
        return g * self.group, min((g + 1) * self.group, self.steps)

    def _weigh(self, state: Any) -> Weight:
        return self.backend.state_bytes(state) or self._planned

    def _moved(self, state: Any, t: int, weight: Optional[Weight] = None) -> None:
        """The live state is that of step t. It counts once it is there: what a step takes while it
        runs is no part of the budget."""
        self.live, self._weight = state, weight or self._weigh(state)
        live = max(self._planned[0], self._weight[0])
        if live != self._live:
            self._live = live
            self._fit(t)

    def _reached(self, weight: Weight, t: int) -> None:
        """The adjoint is that of step t, whose state has this weight. The live state is undefined."""
        self.live, self._live = None, self._planned[0]
        adjoint = max(self._planned[1], weight[1])
        if adjoint != self._adjoint:
            self._adjoint = adjoint
            self._fit(t)

    def _fit(self, t: int) -> None:
        """Frees as much as the state or adjoint of step t needs."""
        if not self._clear(0, True) and self.strict:
            raise self._refusal(f"the state of step {t} takes {show_least(self._live)} and its gradient "
                                f"{show_least(self._adjoint)}")

    def _refusal(self, reason: str) -> Refused:
        """The error of a call that cannot go on. Everything is freed; then all steps are sized one at a time."""
        memory, state = self.sizes.memory or 0, self.first
        self.close()
        least = max(memory + 1, needed(self.backend, state, self.steps, self.sizes))
        return Refused(f"{reason}, but {show_most(memory)} are available. At least {show_least(least)} are needed "
                       f"(error.least)", least=least)

    # Steps

    def _advance(self, a: Action) -> None:
        """One call for steps that were done before, and one for those that were not."""
        t0, t1 = a.t0 * self.group, min(a.t1 * self.group, self.steps)
        for begin, end in ((t0, min(t1, self._top)), (max(t0, self._top), t1)):
            if begin < end:
                self._moved(self.backend.advance(self.live, begin, end, begin >= self._top), end)
                self._top = max(self._top, end)
        self.counts.advance_steps += t1 - t0

    def _record(self, a: Action) -> None:
        for g in range(a.t0, a.t1):
            self._record_group(g, *self._span(g))

    def _record_group(self, g: int, t0: int, t1: int) -> None:
        first, state, weight = t0 >= self._top, self.live, self._weight
        self._clear(self.sizes.tape)
        after, tape, nbytes, reached = self._recorded(t0, t1, first, self._left())
        if tape is not None:
            kept = TapeOf(tape, state if nbytes > self.sizes.tape else None, nbytes, weight)
        else:
            self.counts.outgrown += 1
            if t1 - t0 == 1 and self.strict:
                self._hopeless(t0, nbytes)
            if after is None:
                after = self.backend.advance(state, t0, t1, first)
                self.counts.advance_steps += t1 - t0
            kept = TapeOf(None, state, weight[0], weight) if self._clear(weight[0]) else LOST
        self._top = max(self._top, t1)
        self._keep(g, kept)
        del state, kept, tape  # what follows may free them
        self._moved(after, t1, reached)
        self._note(0)

    def _recorded(self, t0: int, t1: int, first: bool, room: Optional[int]) -> Tuple[Any, Any, int, Optional[Weight]]:
        """The state after [t0, t1), the tape, its bytes and the state's weight. If these and what the new state takes
        more than the live one exceed ``room``, the tape is None, and the state may be; the bytes are then a lower
        bound."""
        self.counts.record_steps += t1 - t0
        try:
            after, tape, nbytes = self.backend.record(self.live, t0, t1, first, room)
        except Outgrown as error:  # its traceback holds the graph: it ends here
            return None, None, error.nbytes, None
        weight = self._weigh(after)
        nbytes_more = max(0, weight[0] - self._live)
        if room is not None and nbytes + nbytes_more > room:
            return after, None, nbytes + nbytes_more, weight
        return after, tape, nbytes, weight

    def _hopeless(self, t: int, nbytes: int) -> None:
        """BudgetError if the tape of step t, which takes so many bytes or more, and the live state alone exceed the
        budget, so that its BACKWARD would."""
        left = (self.sizes.memory or 0) - self._live - self._planned[1] - self.sizes.staging
        if nbytes > left:
            after, nbytes = self.backend.tape_bytes(self.live, t, t + 1)
            if nbytes + max(0, self._weigh(after)[0] - self._live) > left:
                raise self._refusal(_tape_of(t, nbytes, (self.sizes.memory or 0) - left))

    def _backward(self, a: Action) -> None:
        for g in reversed(range(a.t0, a.t1)):
            t0, t1 = self._span(g)
            kept = self._take(g)
            self.live, self._live = None, self._planned[0]
            if kept.tape is not None:
                self._note(kept.nbytes)
                self.adjoint = self.backend.backward(kept.tape, self.adjoint, t0, t1)
                self._reached(kept.weight, t0)
            else:
                self._again(t0, t1, kept)
            self.counts.backward_steps += t1 - t0

    def _again(self, t0: int, t1: int, kept: TapeOf) -> None:
        """Reverses a group whose tape is gone from its first state, in parts whose tapes fit."""
        if any(a.slot == LIVE and a.kind == Kind.GET for _, a, _ in self._flying.values()):
            self._land()  # its room is needed
        self._parts.append(Held(t0, kept.state, 0, t1))
        kept.state = None  # the part has it
        room: Optional[int] = None
        sized = -1  # the step that was sized last
        while self._parts:
            part = self._parts[-1]
            t0, t1 = part.at, part.end
            if self.live is None:
                self._resume(part)
                room = self._left()
            self.counts.recorded_again += t1 - t0
            if self._reverse(t0, t1, room):
                self._parts.pop()
            elif t1 - t0 > 1:
                self._halve(part)
                room = self._left()
            else:
                room = self._room_for(t0, room or 0, sized == t0)
                sized = t0

    def _resume(self, part: Held) -> None:
        """The state of a part becomes the live one."""
        state = part.state
        self._lose(part)
        if state is None:
            self._recompute(part.at)
        else:
            self._moved(state, part.at)

    def _reverse(self, t0: int, t1: int, room: Optional[int]) -> bool:
        """Records and reverses [t0, t1) if its tape fits."""
        after, tape, nbytes, weight = self._recorded(t0, t1, False, room)
        if tape is None or weight is None:
            return False
        self._note(nbytes + max(0, weight[0] - self._live))
        self.adjoint = self.backend.backward(tape, self.adjoint, t0, t1)
        del after, tape
        self._reached(self._weight, t0)
        return True

    def _halve(self, part: Held) -> None:
        """The later half of the last part becomes a part of its own. The state of the first half stays if it fits."""
        half = (part.at + part.end) // 2
        later = Held(half, end=part.end)
        self.counts.advance_steps += half - part.at
        state, nbytes = self.live, self._weight[0]
        part.end = half
        self._parts.append(later)
        if self._clear(nbytes):
            part.state, part.nbytes = state, nbytes
            self._held += nbytes
        self._moved(self.backend.advance(state, part.at, half, False), half)
        self._note(0)

    def _room_for(self, t: int, room: int, again: bool) -> Optional[int]:
        """Frees what the tape of step t needs; ``room`` was too little, which may be due to what the step itself drops
        on its way: sizing it learns that. Only if it happens ``again`` more is freed. None: no limit."""
        after, nbytes = self.backend.tape_bytes(self.live, t, t + 1)
        wanted = nbytes + max(0, self._weigh(after)[0] - self._live)
        if self._clear(max(wanted, room + 1) if again else wanted, True):
            return self._left()
        if self.strict:
            raise self._refusal(_tape_of(t, wanted, self._live + self._adjoint + self.sizes.staging))
        return None

    def _save(self, a: Action) -> None:
        self.slots[a.slot] = held = Held(a.t0)
        self._fill(held, self.live, self._weight[0])

    def _fill(self, held: Held, state: Any, nbytes: int) -> None:
        """A state stays in a slot. If it does not fit, slots are lost, this one perhaps."""
        held.state, held.nbytes = state, nbytes
        self._held += nbytes
        while not self._clear(0) and self._thin():
            pass

    def _load(self, a: Action) -> None:
        held = self.slots[a.slot]
        if held.state is not None:
            self._moved(held.state, held.at * self.group)
            return
        self._recompute(held.at * self.group)
        left = self._left()
        if left is None or left >= self._weight[0]:
            self._fill(held, self.live, self._weight[0])

    def _drop(self, a: Action) -> None:
        if a.payload == Payload.STATE:
            self._held -= self.slots.pop(a.slot).nbytes
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
            raise UsageError(f"the action '{a}' needs a slow tier, but none is open. Pass store=, or a plan without "
                             f"tiers")
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
        state = self.live if a.slot == LIVE else self.slots[a.slot].state
        if state is None:  # its slot is lost, and so is its record
            self._flying[a.ticket] = None, a, None
        else:
            self._move(a, state, True)

    def _get(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            self._get_tapes(a)
            return
        self.counts.gets += 1
        if a.slot == LIVE:
            self.live, self._live = None, self._planned[0]
        else:
            self.slots[a.slot] = held = Held(a.t0)
            if not self._clear(self.sizes.state):
                self._flying[a.ticket] = None, a, None
                return
            held.nbytes = self.sizes.state  # from now on
            self._held += held.nbytes
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
        there = all(g in self.away for g in groups) and self._clear(sum(self.away[g].nbytes for g in groups))
        rows = [self.away.pop(g, LOST) for g in groups]
        self._held -= self.sizes.graph * sum(kept is not LOST for kept in rows)
        if there:
            pieces = [piece for kept in rows for piece in self.backend.regain(kept.tape)]
            try:
                transfer = store.get_tapes(a.tier, a.place, a.t0 + 1, pieces, [kept.tape for kept in rows])
            except (RecordError, OSError):
                pass
        for g, kept in zip(groups, rows):
            self._keep(g, LOST if transfer is None else kept)
        self._flying[a.ticket] = transfer, a, None

    def _wait(self, a: Action) -> None:
        """The end of a transfer. A record that does not come back is computed again; of one that
        did not arrive, its GET finds out."""
        transfer, started, state = self._flying.pop(a.ticket)
        if state is _LANDED:
            if started.kind == Kind.GET and started.slot == LIVE and started.payload == Payload.STATE:
                self._recompute(started.t0 * self.group)
            return
        arrived = transfer is not None and self._over(transfer)
        if started.payload == Payload.TAPE:
            self._tapes_moved(started, arrived)
            return
        if started.kind == Kind.PUT:
            return
        if started.slot != LIVE:  # one that is lost is recomputed by its LOAD
            self._lose(self.slots[started.slot])
        if not arrived:
            self.counts.recoveries += 1
            if started.slot == LIVE:
                self._recompute(started.t0 * self.group)
            return
        state = self.backend.filled(state)
        if started.slot == LIVE:
            self._moved(state, started.t0 * self.group)
        else:
            self._fill(self.slots[started.slot], state, self._weigh(state)[0])

    def _land(self) -> bool:
        """Ends all transfers before their WAIT; False if there is none. What comes back as the live state is kept for
        recoveries until then."""
        flying = [(ticket, row) for ticket, row in self._flying.items() if row[0] is not None]
        for ticket, (transfer, a, state) in flying:
            assert transfer is not None
            arrived = self._over(transfer)
            self._flying[ticket] = None, a, _LANDED
            if a.payload == Payload.TAPE:
                self._tapes_moved(a, arrived)
            elif a.kind == Kind.GET and not arrived:
                self.counts.recoveries += 1
                if a.slot != LIVE:
                    self._lose(self.slots[a.slot])
            elif a.kind == Kind.GET:
                state = self.backend.filled(state)
                held = Held(a.t0, state, self._weigh(state)[0])
                self._held += held.nbytes
                if a.slot == LIVE:
                    self._lose(self._spare.get(a.t0, Held(a.t0)))
                    self._spare[a.t0] = held
                else:
                    self._lose(self.slots[a.slot])
                    self.slots[a.slot] = held
        return bool(flying)

    def _tapes_moved(self, a: Action, arrived: bool) -> None:
        """Tapes that were sent are gone; those that did not come back are lost."""
        if a.kind == Kind.GET and arrived:
            return
        rows = [(g, self._take(g)) for g in range(a.t0, a.t1)]
        for g, kept in rows:
            if a.kind == Kind.GET:
                self.counts.recoveries += 1
                self._keep(g, LOST)
            elif arrived and self._clear(self.sizes.graph):
                self.backend.shed(kept.tape)
                kept.state = None
                self.away[g] = kept
                self._held += self.sizes.graph

    def _recompute(self, t: int) -> None:
        """Makes the live state that of step t, from the nearest one before it that is there. If the budget has room,
        states on the way stay, each half as far from t as the one before it, for lost ones before t."""
        g = t // self.group
        for at in [at for at in self._spare if at > g]:
            self._held -= self._spare.pop(at).nbytes
        near = self._nearest(g)
        while g - near > 1 and len(self._spare) < SPARES:
            left = self._left()
            if left is not None and left < self.sizes.tape + self.sizes.state:
                break
            middle = (near + g) // 2
            self._step_on(near * self.group, middle * self.group)
            near = middle
            self._spare[near] = Held(near, self.live, self._weight[0])
            self._held += self._weight[0]
            self._clear(0)
            self._note(0)
        self._step_on(near * self.group, t)

    def _nearest(self, g: int) -> int:
        """Makes the live state the nearest one to the beginning of group g that is there; the group it begins."""
        near, state = 0, self.first
        for held in (*self.slots.values(), *self._spare.values()):
            if held.state is not None and near < held.at <= g:
                near, state = held.at, held.state
        self._moved(state, near * self.group)
        return near

    def _step_on(self, t0: int, t1: int) -> None:
        """The live state goes from step t0 to t1, which were done before."""
        if t0 < t1:
            self.counts.advance_steps += t1 - t0
            self._moved(self.backend.advance(self.live, t0, t1, False), t1)

    def _forget(self, a: Action) -> None:
        if self.store is not None and a.payload == Payload.STATE:
            self.store.forget(a.tier, a.place)


_LANDED = object()  # in place of the state of a transfer that was ended before its WAIT

_PERFORM = {Kind.ADVANCE: Player._advance, Kind.RECORD: Player._record, Kind.BACKWARD: Player._backward,
            Kind.SAVE: Player._save, Kind.LOAD: Player._load, Kind.DROP: Player._drop,
            Kind.PUT: Player._put, Kind.GET: Player._get, Kind.WAIT: Player._wait,
            Kind.FORGET: Player._forget}
