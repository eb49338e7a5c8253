# SPDX-License-Identifier: Apache-2.0
"""Performs the actions of a plan, with the backend of any framework.

A Player performs a plan up to its TURN and, later, the rest. It owns slots and tapes and counts bytes and steps; the
backend defines states, steps and tapes. A plan counts groups of steps, the backend steps: group g consists of the
steps [g k, min((g + 1) k, T)).

A tape or a state may be larger than planned. It is kept as long as the budget has room. When planned data needs that
room, or a step does not fit, data that can be recomputed is freed (:class:`Holding`). A BACKWARD without its tape
records its group again, from the nearest earlier state and in halves if necessary. A single step needs its state, its
tape, the adjoint and the staging memory of tiers; only if these exceed the budget, :class:`Refused` is raised. Its
``least`` is the largest such sum over all steps. It does not depend on the plan, so the same call succeeds with that
budget, possibly slowly: without any slot, step t is recomputed from step 0.

States and tapes are offloaded to slow tiers and read back. A state that is lost is recomputed from the nearest earlier
state, and so is the first state of a group whose tape is lost. A tape that is larger than planned is not offloaded and
counts as lost.
"""
from typing import Any, Iterable, Optional, Sequence, Tuple

from .actions import LIVE, Action, Kind, Payload
from .backends import Backend, Counts, Outgrown, Sizes
from .holding import LOST, Held, Holding, TapeOf, Weight
from .performer import Performer, Refused
from .show import show_least, show_most
from .stores import Store

__all__ = ["Backend", "Counts", "Outgrown", "Player", "Refused", "Sizes", "needed"]

SPARES = 64  # most states stored by a recovery; chosen: each halves the remaining distance


def _tape_of(t: int, nbytes: int, others: int) -> str:
    return f"the saved tensors of step {t} take {show_least(nbytes)} and its state and gradient {show_least(others)}"


def needed(backend: Backend, state: Any, steps: int, sizes: Sizes) -> int:
    """Returns the bytes of the step that needs the most: the larger of its states before and after, the adjoint of one
    of these, its tape, and staging memory.

    :param state: the first state. The size of each step is measured, with no more memory than an advance needs.
    """
    planned = sizes.state, sizes.adjoint
    most, weight = 0, backend.state_bytes(state) or planned
    for t in range(steps):
        state, nbytes = backend.tape_bytes(state, t, t + 1)
        before, weight = weight, backend.state_bytes(state) or planned
        most = max(most, nbytes + sum(map(max, planned, before, weight)))
    return most + sizes.staging


class Player(Holding, Performer):
    """Performs the actions of a plan: ``forward`` up to TURN, ``backward`` the rest.

    :param actions: an iterable of :class:`neap.Action` over ``ceil(steps / group)`` groups.
    :param steps: number of steps T.
    :param group: steps per group; the last group may be shorter.
    :param sizes: the sizes that the plan is based on.
    :param strict: False: a step whose tape does not fit the budget is recorded nevertheless, and counted.
    :param store: the open tiers, for plans with slow tiers.
    """

    def __init__(self, backend: Backend, actions: Iterable[Action], steps: int, group: int,
                 sizes: Sizes, strict: bool = True, counts: Optional[Counts] = None,
                 store: Optional[Store] = None):
        Performer.__init__(self, backend, actions, strict, counts, store)
        Holding.__init__(self, sizes)
        self.steps, self.group = steps, group
        self._weight = self._planned  # of the live state

    def _begin(self) -> None:
        self._weight = self._weigh(self.live)

    def _turn(self) -> None:
        self._reached(self._weight, self.steps)

    def _span(self, g: int) -> Tuple[int, int]:
        return g * self.group, min((g + 1) * self.group, self.steps)

    def _weigh(self, state: Any) -> Weight:
        return self.backend.state_bytes(state) or self._planned

    def _moved(self, state: Any, t: int, weight: Optional[Weight] = None) -> None:
        """Makes ``state``, of step t, the live state. It is counted from now on: memory that a step needs while it
        runs is not part of the budget."""
        self.live, self._weight = state, weight or self._weigh(state)
        live = max(self._planned[0], self._weight[0])
        if live != self._live:
            self._live = live
            self._fit(t)

    def _reached(self, weight: Weight, t: int) -> None:
        """Marks the adjoint as that of step t, whose state has this weight. The live state is undefined."""
        self.live, self._live = None, self._planned[0]
        adjoint = max(self._planned[1], weight[1])
        if adjoint != self._adjoint:
            self._adjoint = adjoint
            self._fit(t)

    def _fit(self, t: int) -> None:
        """Frees data until the state or adjoint of step t fits."""
        if not self._clear(0, True) and self.strict:
            raise self._refusal(f"the state of step {t} takes {show_least(self._live)} and its gradient "
                                f"{show_least(self._adjoint)}")

    def _refusal(self, reason: str) -> Refused:
        """Returns the error of a call that cannot continue. Frees everything, then measures all steps one at a time."""
        memory, state = self.sizes.memory or 0, self.first
        self.close()
        least = max(memory + 1, needed(self.backend, state, self.steps, self.sizes))
        return Refused(f"{reason}, but {show_most(memory)} are available. At least {show_least(least)} are needed "
                       f"(error.least)", least=least)

    # Steps

    def _advance(self, a: Action) -> None:
        """Makes one call for steps that ran before, and one for those that did not."""
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
        del state, kept, tape  # so that the next calls can free them
        self._moved(after, t1, reached)
        self._note(0)

    def _recorded(self, t0: int, t1: int, first: bool, room: Optional[int]) -> Tuple[Any, Any, int, Optional[Weight]]:
        """Records [t0, t1). Returns the state after it, the tape, its bytes and the state's weight. If the tape, and
        what the new state needs in addition to the live one, exceed ``room``, the tape is None, the state may be None,
        and the bytes are a lower bound."""
        self.counts.record_steps += t1 - t0
        after, tape, nbytes = self._recorded_or_not(t0, t1, first, room)
        if tape is None:
            return None, None, nbytes, None
        weight = self._weigh(after)
        nbytes_more = max(0, weight[0] - self._live)
        if room is not None and nbytes + nbytes_more > room:
            return after, None, nbytes + nbytes_more, weight
        return after, tape, nbytes, weight

    def _hopeless(self, t: int, nbytes: int) -> None:
        """Raises BudgetError if the tape of step t, of at least ``nbytes``, and the live state exceed the budget by
        themselves, so that its BACKWARD would."""
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
        """Reverses a group without a tape from its first state, in parts whose tapes fit."""
        if any(a.slot == LIVE and a.kind == Kind.GET for _, a, _ in self._flying.values()):
            self._land()  # its memory is needed
        self._parts.append(Held(t0, kept.state, 0, t1))
        kept.state = None  # owned by the part
        room: Optional[int] = None
        sized = -1  # the step that was measured last
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
        """Makes the state of a part the live state."""
        state = part.state
        self._lose(part)
        if state is None:
            self._recompute(part.at)
        else:
            self._moved(state, part.at)

    def _reverse(self, t0: int, t1: int, room: Optional[int]) -> bool:
        """Records and reverses [t0, t1); returns False if its tape does not fit."""
        after, tape, nbytes, weight = self._recorded(t0, t1, False, room)
        if tape is None or weight is None:
            return False
        self._note(nbytes + max(0, weight[0] - self._live))
        self.adjoint = self.backend.backward(tape, self.adjoint, t0, t1)
        del after, tape
        self._reached(self._weight, t0)
        return True

    def _halve(self, part: Held) -> None:
        """Makes the second half of the last part a new part. The state of the first half is kept if it fits."""
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
        """Frees what the tape of step t needs, after ``room`` was too little. The cause may be temporary memory of the
        step itself, so the step is measured first; only if it happens ``again``, more is freed. Returns the room;
        None: no limit."""
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
        """Stores a state in a slot. If it does not fit, slots are freed, possibly this one."""
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

    def _state_of(self, a: Action) -> Any:
        return self.live if a.slot == LIVE else self.slots[a.slot].state

    def _tapes_of(self, a: Action) -> Sequence[Any]:
        return [self.tapes[g].tape for g in range(a.t0, a.t1)]

    def _room_of(self, a: Action) -> Any:
        if a.slot == LIVE:
            self.live, self._live = None, self._planned[0]
        else:
            self.slots[a.slot] = held = Held(a.t0)
            if not self._clear(self.sizes.state):
                return None
            held.nbytes = self.sizes.state
            self._held += held.nbytes
        return self.backend.empty(a.t0 * self.group)

    def _get_tapes(self, a: Action) -> None:
        groups = range(a.t0, a.t1)
        there = all(g in self.away for g in groups) and self._clear(sum(self.away[g].nbytes for g in groups))
        rows = [self.away.pop(g, LOST) for g in groups]
        self._held -= self.sizes.graph * sum(kept is not LOST for kept in rows)
        started = self._start_tapes(a, [kept.tape if there else None for kept in rows])
        for g, kept in zip(groups, rows):
            self._keep(g, kept if started else LOST)

    def _wait(self, a: Action) -> None:
        if self._flying[a.ticket][2] is not _LANDED:
            super()._wait(a)
            return
        _, started, _ = self._flying.pop(a.ticket)
        if started.kind == Kind.GET and started.slot == LIVE and started.payload == Payload.STATE:
            self._recompute(started.t0 * self.group)

    def _state_over(self, a: Action, state: Any) -> None:
        if a.slot != LIVE:  # a lost state is recomputed by its LOAD
            self._lose(self.slots[a.slot])
            if state is not None:
                self._fill(self.slots[a.slot], state, self._weigh(state)[0])
        elif state is None:
            self._recompute(a.t0 * self.group)
        else:
            self._moved(state, a.t0 * self.group)

    def _land(self) -> bool:
        """Ends all transfers before their WAIT; returns False if there is none. A state read for the live state is
        kept with those for recoveries until its WAIT."""
        flying = [(ticket, row) for ticket, row in self._flying.items() if row[0] is not None]
        for ticket, (transfer, a, state) in flying:
            assert transfer is not None
            arrived = self._over(transfer)
            self._flying[ticket] = None, a, _LANDED
            if a.payload == Payload.TAPE:
                self._tapes_over(a, arrived)
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

    def _tapes_over(self, a: Action, arrived: bool) -> None:
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
        """Makes the state of step t the live state, from the nearest earlier state. If the budget has room, states on
        the way are stored for later recoveries, each at half the remaining distance to t."""
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
        """Makes the nearest state at or before group g the live state; returns the group at whose beginning it is."""
        near, state = 0, self.first
        for held in (*self.slots.values(), *self._spare.values()):
            if held.state is not None and near < held.at <= g:
                near, state = held.at, held.state
        self._moved(state, near * self.group)
        return near

    def _step_on(self, t0: int, t1: int) -> None:
        """Advances the live state from step t0 to t1; these steps ran before."""
        if t0 < t1:
            self.counts.advance_steps += t1 - t0
            self._moved(self.backend.advance(self.live, t0, t1, False), t1)


_LANDED = object()  # replaces the state of a transfer that was ended before its WAIT
