# SPDX-License-Identifier: Apache-2.0
"""The Player of a chain with non-uniform stages: performs actions of the strategies ``chain`` and ``pofo``.

A tape contains the state that its stage computed, and the backward step of a stage reads the stage's input state.
Bytes are counted as by the verifier of plans: a state that is live, in slots and in a tape at once is counted once. A
state that is part of a tape leaves with it. A tape that is lost on a tier is recomputed when it is needed.
"""
from typing import Any, Dict, Iterable, NamedTuple, Optional, Sequence, Tuple

from .actions import LIVE, Action, Kind, Payload
from .errors import RecordError, UsageError
from .player import Backend, Counts, Outgrown, Player, Refused, Sizes, start_tapes
from .show import show_least, show_most, show_size
from .stores import Store

__all__ = ["StageBackend", "StagePlayer", "StageRefused", "StageSizes", "peak_of"]


TIERS = 8  # most slow tiers of a plan (NEAP_TIERS_MAX)


class StageBackend(Backend):
    """The additional operations that a StagePlayer requires of a framework: stages are steps, one per call."""

    def output(self, tape: Any) -> Any:
        """Returns the state that the stage of a tape computed."""
        raise NotImplementedError

    def reverse(self, tape: Any, state: Any, adjoint: Any, i: int) -> Any:
        """Returns the adjoint of x_i from the adjoint of x_{i+1}; ``state`` is x_i. Consumes the tape."""
        raise NotImplementedError

    def room_for(self, i: int) -> Any:
        """Returns memory for a state x_i, to be read from a tier."""
        raise NotImplementedError


class StageSizes(NamedTuple):
    """Planned bytes. ``state``: of the L + 1 states, and of their adjoints; ``tape``: of the L tapes; ``grads``: of
    the gradients of parameters that the backward step of each stage allocates permanently; ``terms``: of those that it
    needs while it runs (second terms of gradients of later stages); ``peak``: the maximum of everything; ``memory``:
    the budget (None: no limit); ``staging``: buffers of the tiers."""

    state: Sequence[int]
    tape: Sequence[int]
    grads: Sequence[int]
    terms: Sequence[int]
    peak: int = 0
    memory: Optional[int] = None
    staging: int = 0


class StageRefused(Refused):
    """Raised if states or tapes are larger than planned. ``sizes``: the planned sizes, increased to the measured ones
    of all stages if these are larger, for a new plan."""

    def __init__(self, detail: str, sizes: StageSizes):
        super().__init__(detail)
        self.sizes = sizes


class _Memory:
    """Bytes of fast memory."""

    def __init__(self, state: Sequence[int]):
        self.state, self.bytes, self.live = state, 0, -1
        self.held = [0] * len(state)  # number of holders of a state: the live one, slots
        self.taped = [0] * len(state)  # bytes of existing tapes
        self.arriving = [False] * len(state)  # tapes that cannot be read yet
        self.part = False  # the live state is part of a tape, with which it leaves

    def in_tape(self, t: int) -> bool:
        """True if a tape contains x_t and can be read."""
        return t > 0 and self.taped[t - 1] > 0 and not self.arriving[t - 1]

    def _own(self, t: int) -> int:
        return self.state[t] if self.held[t] and not self.in_tape(t) else 0

    def hold(self, t: int) -> None:
        """Adds a holder of x_t."""
        self.held[t] += 1
        if self.held[t] == 1:
            self.bytes += self._own(t)

    def let_go(self, t: int) -> None:
        """Removes a holder of x_t."""
        if self.held[t] == 1:
            self.bytes -= self._own(t)
        self.held[t] -= 1

    def move(self, t: int) -> None:
        """Makes x_t the live state; -1: there is none."""
        before, self.live, self.part = self.live, t, False
        if t >= 0:
            self.hold(t)
        if before >= 0:
            self.let_go(before)

    def tape(self, i: int, nbytes: int, arriving: bool = False) -> None:
        """Sets the bytes of the tape of stage i; 0: it does not exist."""
        self.bytes -= self._own(i + 1) + self.taped[i]
        self.taped[i], self.arriving[i] = nbytes, arriving
        self.bytes += self._own(i + 1) + nbytes

    def released(self, i: int) -> int:
        """Returns the bytes that the live state frees when the backward step of stage i starts."""
        t = self.live
        if t < 0 or t == i or self.held[t] > 1 or self.in_tape(t):
            return 0
        return self.state[t]


class StagePlayer(Player):
    """Performs a plan of stages: ``forward`` up to TURN, ``backward`` the rest. Gradients of parameters are counted as
    they are allocated.

    :raises StageRefused: if a state is larger than planned, or a tape is and the budget has no room for it. With
        ``strict`` False they are kept nevertheless.
    """

    backend: StageBackend

    def __init__(self, backend: StageBackend, actions: Iterable[Action], sizes: StageSizes,
                 strict: bool = True, counts: Optional[Counts] = None, store: Optional[Store] = None):
        super().__init__(backend, actions, len(sizes.tape), 1,
                         Sizes(0, 0, 0, sizes.memory, sizes.staging), strict, counts, store)
        self.planned = sizes
        self.memory = _Memory(sizes.state)
        self.taken: Dict[int, Any] = {}  # tapes by stage
        self.away: Dict[int, Tuple[Any, int]] = {}  # tapes on tiers, and on their way back, with their bytes
        self.kept: Dict[int, Tuple[int, Any, bool]] = {}  # step numbers and states by slot; True: part of a tape
        self.under_way: Dict[int, Tuple[Any, Action, Any]] = {}
        self.over = 0  # bytes by which tapes exceed the plan

    def forward(self, state: Any) -> Any:
        self.memory.move(0)
        last = super().forward(state)
        self._count(self.planned.state[-1])
        self.memory.bytes += self.planned.state[-1]
        self.memory.move(-1)
        return last

    def close(self) -> None:
        flying, self.under_way = self.under_way, {}
        for transfer, _, _ in flying.values():
            if transfer is not None:
                self._over(transfer)
        self.taken.clear()
        self.away.clear()
        self.kept.clear()
        super().close()

    @property
    def held(self) -> int:
        """Returns the current bytes of states and tapes."""
        return self.memory.bytes

    def _do(self, action: Action) -> None:
        perform = _STAGES.get(action.kind)
        if perform is None or action.payload == Payload.LOG:
            raise UsageError(f"the action '{action}' needs logs, which this backend does not have. Use a plan without "
                             f"logs (log=None)")
        perform(self, action)
        self.counts.actions += 1
        self._count(0)

    def _count(self, more: int) -> None:
        now = self.memory.bytes + more + self.planned.staging
        if now > self.counts.peak:
            self.counts.peak = now

    def _go_on(self, a: Action) -> None:
        for i in range(a.t0, a.t1):
            self._count(self.planned.state[i + 1])
            self._made(self.backend.advance(self.live, i, i + 1, i >= self._top), i + 1)
            self.memory.move(i + 1)
            self._top = max(self._top, i + 1)
        self.counts.advance_steps += a.t1 - a.t0

    def _tape_stage(self, a: Action) -> None:
        for i in range(a.t0, a.t1):
            room = None
            if self.planned.memory is not None and self.strict:
                room = self.planned.tape[i] + self.planned.memory - self.planned.peak - self.over
            tape, nbytes = self._stage_tape(i, room)
            if tape is None:
                raise self._refusal(f"the saved tensors of stage {i} take more than {show_size(nbytes)}, but "
                                    f"{show_size(self.planned.tape[i])} were planned and "
                                    f"{show_most(max(0, room or 0))} are left")
            self.counts.record_steps += 1
            self._count(nbytes)
            self.over += max(0, nbytes - self.planned.tape[i])
            self.taken[i] = tape
            self.memory.tape(i, nbytes)
            self.memory.move(i + 1)
            self.memory.part = True
            self._top = max(self._top, i + 1)

    def _stage_tape(self, i: int, room: Optional[int]) -> Tuple[Any, int]:
        """Records a stage; returns its tape and the tape's bytes, or None and a lower bound if it is too large."""
        try:
            state, tape, nbytes = self.backend.record(self.live, i, i + 1, i >= self._top, room)
        except Outgrown as error:  # its traceback references the graph, so it is dropped here
            return None, error.nbytes
        self._made(state, i + 1)
        return tape, nbytes

    def _made(self, state: Any, t: int) -> None:
        """Makes ``state``, which is x_t, the live state."""
        self.live = state
        nbytes = self._weigh(state)[0]
        if nbytes > self.planned.state[t] and self.planned.memory is not None and self.strict:
            raise self._refusal(f"the output of stage {t - 1} takes {show_least(nbytes)}, but "
                                f"{show_most(self.planned.state[t])} were planned")

    def _refusal(self, reason: str) -> Refused:
        """Returns the error of a call that cannot continue. Frees everything, then measures all stages one at a time.
        """
        state, states, tapes = self.first, list(self.planned.state), list(self.planned.tape)
        self.close()
        for i in range(len(tapes)):
            state, nbytes = self.backend.tape_bytes(state, i, i + 1)
            states[i + 1], tapes[i] = max(states[i + 1], self._weigh(state)[0]), max(tapes[i], nbytes)
        return StageRefused(f"{reason}. Increase memory, or pass strict=False to keep it anyway",
                            self.planned._replace(state=states, tape=tapes))

    def _fit(self, t: int) -> None:
        """Does nothing: ``memory`` counts the bytes of stages."""

    def _found(self, t: int) -> Any:
        """Returns x_t if it exists, else None."""
        if self.memory.live == t:
            return self.live
        for time, state, _ in self.kept.values():
            if time == t and state is not None:
                return state
        if t > 0 and t - 1 in self.taken:
            return self.backend.output(self.taken[t - 1])
        return self.first if t == 0 else None

    def _turn_back(self, a: Action) -> None:
        for i in reversed(range(a.t0, a.t1)):
            state = self._state_at(i)
            self._needs_tape(i, state)
            grads = self.planned.grads[i]
            self._count(self.planned.state[i] - self.memory.released(i) + grads + self.planned.terms[i])
            self.live = None
            tape = self.taken.pop(i)
            self.adjoint = self.backend.reverse(tape, state, self.adjoint, i)
            self.memory.bytes += self.planned.state[i] - self.planned.state[i + 1] + grads
            self.over -= max(0, self.memory.taped[i] - self.planned.tape[i])
            self.memory.tape(i, 0)
            self.memory.move(-1)
            self.counts.backward_steps += 1

    def _keep_state(self, a: Action) -> None:
        self.kept[a.slot] = a.t0, self.live, self.memory.part
        self.memory.hold(a.t0)

    def _take_state(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            if a.t0 - 1 not in self.taken:
                self._needs_tape(a.t0 - 1, self._state_at(a.t0 - 1))
            self.live, part = self.backend.output(self.taken[a.t0 - 1]), True
        else:
            _, self.live, part = self.kept[a.slot]
        self.memory.move(a.t0)
        self.memory.part = part

    def _drop_state(self, a: Action) -> None:
        self.memory.let_go(self.kept.pop(a.slot)[0])

    # States and tapes on slow tiers

    def _start(self, a: Action, state: Any, put: bool) -> None:
        """Starts a transfer; if it cannot start, the record is lost."""
        store, transfer = self._needs_tiers(a), None
        try:
            state, pieces = self.backend.pieces(state)
            start = store.put if put else store.get
            transfer = start(a.tier, a.place, a.t0 + 1, pieces, state)
        except (RecordError, OSError):
            pass
        self.under_way[a.ticket] = transfer, a, state

    def _send(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            self._send_tapes(a)
            return
        self.counts.puts += 1
        self._start(a, self.live if a.slot == LIVE else self.kept[a.slot][1], True)

    def _send_tapes(self, a: Action) -> None:
        """Starts to write tapes, which can be read until the WAIT."""
        store = self._needs_tiers(a)
        self.counts.tape_puts += 1
        tapes = [self.taken.get(i) for i in range(a.t0, a.t1)]
        self.under_way[a.ticket] = start_tapes(store, self.backend, a, tapes), a, None

    def _bring_tapes(self, a: Action) -> None:
        """Starts to read tapes, whose bytes count from now on."""
        store, transfer = self._needs_tiers(a), None
        self.counts.tape_gets += 1
        stages = range(a.t0, a.t1)
        if all(i in self.away for i in stages):
            for i in stages:
                self.memory.tape(i, self.away[i][1], True)
            transfer = start_tapes(store, self.backend, a, [self.away[i][0] for i in stages])
        self.under_way[a.ticket] = transfer, a, None

    def _tapes_over(self, a: Action, arrived: bool) -> None:
        """Ends a transfer of tapes. Tapes that were written are freed; those that could not be written or read are
        lost."""
        for i in range(a.t0, a.t1):
            if a.kind == Kind.GET:
                tape, nbytes = self.away.pop(i, (None, 0))
                self.memory.tape(i, nbytes if arrived else 0)
                if arrived:
                    self.taken[i] = tape
                    self.over += max(0, nbytes - self.planned.tape[i])
                else:
                    self.counts.recoveries += 1
                continue
            nbytes, tape = self.memory.taped[i], self.taken.pop(i, None)
            if self.memory.part and self.memory.live == i + 1:
                self.live = None
                self.memory.move(-1)
            self.over -= max(0, nbytes - self.planned.tape[i])
            self.memory.tape(i, 0)
            if arrived:
                self.backend.shed(tape)
                self.away[i] = tape, nbytes

    def _state_at(self, t: int) -> Any:
        """Returns x_t, recomputed if it was lost with a tape."""
        state = self._found(t)
        if state is not None:
            return state
        self._count(self.planned.state[t])
        return self._made_again(t)

    def _needs_tape(self, i: int, state: Any) -> None:
        """Recomputes the tape of stage i from x_i if it was lost."""
        if i in self.taken:
            return
        _, tape, nbytes = self.backend.record(state, i, i + 1, False, None)
        self.counts.record_steps += 1
        self.counts.recorded_again += 1
        self._count(nbytes)
        self.over += max(0, nbytes - self.planned.tape[i])
        self.taken[i] = tape
        self.memory.tape(i, nbytes)

    def _bring(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            self._bring_tapes(a)
            return
        self.counts.gets += 1
        if a.slot == LIVE:
            self.live = None
            self.memory.move(-1)
        self.memory.bytes += self.planned.state[a.t0]
        self._start(a, self.backend.room_for(a.t0), False)

    def _arrive(self, a: Action) -> None:
        """Ends a transfer. A state that cannot be read is recomputed."""
        transfer, started, state = self.under_way.pop(a.ticket)
        arrived = transfer is not None and self._over(transfer)
        if started.payload == Payload.TAPE:
            self._tapes_over(started, arrived)
            return
        if started.kind == Kind.PUT:
            return
        t = started.t0
        if arrived:
            state = self.backend.filled(state)
        else:
            self.counts.recoveries += 1
            state = self._made_again(t)
        self.memory.bytes -= self.planned.state[t]
        if started.slot == LIVE:
            self.live = state
            self.memory.move(t)
        else:
            self.kept[started.slot] = t, state, False
            self.memory.hold(t)

    def _made_again(self, t: int) -> Any:
        """Recomputes x_t from the nearest earlier state."""
        near = next(i for i in reversed(range(t + 1)) if self._found(i) is not None)
        state = self._found(near)
        for i in range(near, t):
            self._count(self.planned.state[i] + self.planned.state[i + 1])
            state = self.backend.advance(state, i, i + 1, False)
        self.counts.advance_steps += t - near
        return state

    def _forget_record(self, a: Action) -> None:
        if self.store is not None and a.payload == Payload.STATE:
            self.store.forget(a.tier, a.place)


_STAGES = {Kind.ADVANCE: StagePlayer._go_on, Kind.RECORD: StagePlayer._tape_stage,
           Kind.BACKWARD: StagePlayer._turn_back, Kind.SAVE: StagePlayer._keep_state,
           Kind.LOAD: StagePlayer._take_state, Kind.DROP: StagePlayer._drop_state,
           Kind.PUT: StagePlayer._send, Kind.GET: StagePlayer._bring, Kind.WAIT: StagePlayer._arrive,
           Kind.FORGET: StagePlayer._forget_record}


class _Nothing(StageBackend):
    """A backend without states, whose tapes have the planned sizes; it is also its own store."""

    def __init__(self, tape: Sequence[int]):
        self.tape, self.waited, self.tape_bytes = tape, 0.0, [1] * TIERS

    def advance(self, state: Any, t0: int, t1: int, first: bool) -> Any:
        return state

    def record(self, state: Any, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[Any, Any, int]:
        return state, state, self.tape[t0]

    def output(self, tape: Any) -> Any:
        return tape

    def reverse(self, tape: Any, state: Any, adjoint: Any, i: int) -> Any:
        return adjoint

    def room_for(self, i: int) -> Any:
        return ()

    def pieces(self, state: Any) -> Tuple[Any, Sequence[Tuple[int, int]]]:
        return state, ()

    def tape_pieces(self, tape: Any) -> Sequence[Tuple[int, int]]:
        return [(0, 1)]

    def shed(self, tape: Any) -> None:
        pass

    def regain(self, tape: Any) -> Sequence[Tuple[int, int]]:
        return ()

    def put(self, *unused: Any) -> Any:
        """Transfers nothing; also used as ``get``, ``wait``, ``forget`` and ``close``."""
        return self

    get = put_tapes = get_tapes = wait = forget = close = put


def peak_of(actions: Iterable[Action], sizes: StageSizes) -> int:
    """Returns the peak of bytes that a StagePlayer will count."""
    nothing = _Nothing(sizes.tape)
    player = StagePlayer(nothing, actions, sizes._replace(memory=None), store=nothing)  # type: ignore
    player.forward(())
    player.backward(())
    return player.counts.peak
