# SPDX-License-Identifier: Apache-2.0
"""The Player of a chain with non-uniform stages: performs actions of the strategies ``chain`` and ``pofo``.

A tape contains the state that its stage computed, and the backward step of a stage reads the stage's input state.
Bytes are counted as by the verifier of plans: a state that is live, in slots and in a tape at once is counted once. A
state that is part of a tape leaves with it. A tape that is lost on a tier is recomputed when it is needed.
"""
from typing import Any, Dict, Iterable, NamedTuple, Optional, Sequence, Tuple

from .actions import LIVE, Action, Kind, Payload
from .backends import Backend, Counts
from .performer import Performer, Refused
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


class StagePlayer(Performer):
    """Performs a plan of stages: ``forward`` up to TURN, ``backward`` the rest. Gradients of parameters are counted as
    they are allocated.

    :raises StageRefused: if a state is larger than planned, or a tape is and the budget has no room for it. With
        ``strict`` False they are kept nevertheless.
    """

    backend: StageBackend

    def __init__(self, backend: StageBackend, actions: Iterable[Action], sizes: StageSizes,
                 strict: bool = True, counts: Optional[Counts] = None, store: Optional[Store] = None):
        super().__init__(backend, actions, strict, counts, store)
        self.planned = sizes
        self.memory = _Memory(sizes.state)
        self.taken: Dict[int, Any] = {}  # tapes by stage
        self.away: Dict[int, Tuple[Any, int]] = {}  # tapes on tiers, and on their way back, with their bytes
        self.kept: Dict[int, Tuple[int, Any, bool]] = {}  # step numbers and states by slot; True: part of a tape
        self.over = 0  # bytes by which tapes exceed the plan

    def _begin(self) -> None:
        self.memory.move(0)

    def _turn(self) -> None:
        self._note(self.planned.state[-1])
        self.memory.bytes += self.planned.state[-1]
        self.live = None
        self.memory.move(-1)

    def let_go(self) -> None:
        self.taken.clear()
        self.away.clear()
        self.kept.clear()

    @property
    def held(self) -> int:
        """Returns the current bytes of states and tapes."""
        return self.memory.bytes

    def _used(self) -> int:
        return self.memory.bytes + self.planned.staging

    def _advance(self, a: Action) -> None:
        for i in range(a.t0, a.t1):
            self._note(self.planned.state[i + 1])
            self._made(self.backend.advance(self.live, i, i + 1, i >= self._top), i + 1)
            self.memory.move(i + 1)
            self._top = max(self._top, i + 1)
        self.counts.advance_steps += a.t1 - a.t0

    def _record(self, a: Action) -> None:
        for i in range(a.t0, a.t1):
            room = None
            if self.planned.memory is not None and self.strict:
                room = self.planned.tape[i] + self.planned.memory - self.planned.peak - self.over
            state, tape, nbytes = self._recorded_or_not(i, i + 1, i >= self._top, room)
            if tape is None:
                raise self._refusal(f"the saved tensors of stage {i} take more than {show_size(nbytes)}, but "
                                    f"{show_size(self.planned.tape[i])} were planned and "
                                    f"{show_most(max(0, room or 0))} are left")
            self._made(state, i + 1)
            del state
            self.counts.record_steps += 1
            self._note(nbytes)
            self._keep(i, tape, nbytes)
            self.memory.move(i + 1)
            self.memory.part = True
            self._top = max(self._top, i + 1)

    def _keep(self, i: int, tape: Any, nbytes: int) -> None:
        self.over += max(0, nbytes - self.planned.tape[i])
        self.taken[i] = tape
        self.memory.tape(i, nbytes)

    def _take(self, i: int) -> Tuple[Any, int]:
        nbytes = self.memory.taped[i]
        self.over -= max(0, nbytes - self.planned.tape[i])
        self.memory.tape(i, 0)
        return self.taken.pop(i, None), nbytes

    def _bytes(self, state: Any) -> int:
        found = self.backend.state_bytes(state)
        return found[0] if found else 0

    def _made(self, state: Any, t: int) -> None:
        """Makes ``state``, which is x_t, the live state."""
        self.live = state
        nbytes = self._bytes(state)
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
            states[i + 1], tapes[i] = max(states[i + 1], self._bytes(state)), max(tapes[i], nbytes)
        return StageRefused(f"{reason}. Increase memory, or pass strict=False to keep it anyway",
                            self.planned._replace(state=states, tape=tapes))

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

    def _backward(self, a: Action) -> None:
        for i in reversed(range(a.t0, a.t1)):
            state = self._state_at(i)
            self._needs_tape(i, state)
            grads = self.planned.grads[i]
            self._note(self.planned.state[i] - self.memory.released(i) + grads + self.planned.terms[i])
            self.live = None
            tape = self.taken.pop(i)
            self.adjoint = self.backend.reverse(tape, state, self.adjoint, i)
            self.memory.bytes += self.planned.state[i] - self.planned.state[i + 1] + grads
            self._take(i)
            self.memory.move(-1)
            self.counts.backward_steps += 1

    def _save(self, a: Action) -> None:
        self.kept[a.slot] = a.t0, self.live, self.memory.part
        self.memory.hold(a.t0)

    def _load(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            if a.t0 - 1 not in self.taken:
                self._needs_tape(a.t0 - 1, self._state_at(a.t0 - 1))
            self.live, part = self.backend.output(self.taken[a.t0 - 1]), True
        else:
            _, self.live, part = self.kept[a.slot]
        self.memory.move(a.t0)
        self.memory.part = part

    def _drop(self, a: Action) -> None:
        self.memory.let_go(self.kept.pop(a.slot)[0])

    # States and tapes on slow tiers

    def _state_of(self, a: Action) -> Any:
        return self.live if a.slot == LIVE else self.kept[a.slot][1]

    def _tapes_of(self, a: Action) -> Sequence[Any]:
        return [self.taken.get(i) for i in range(a.t0, a.t1)]

    def _room_of(self, a: Action) -> Any:
        if a.slot == LIVE:
            self.live = None
            self.memory.move(-1)
        self.memory.bytes += self.planned.state[a.t0]
        return self.backend.empty(a.t0)

    def _get_tapes(self, a: Action) -> None:
        stages = range(a.t0, a.t1)
        if all(i in self.away for i in stages):
            for i in stages:
                self.memory.tape(i, self.away[i][1], True)
        self._start_tapes(a, [self.away.get(i, (None,))[0] for i in stages])

    def _tapes_over(self, a: Action, arrived: bool) -> None:
        for i in range(a.t0, a.t1):
            if a.kind == Kind.GET:
                tape, nbytes = self.away.pop(i, (None, 0))
                if arrived:
                    self._keep(i, tape, nbytes)
                else:
                    self.memory.tape(i, 0)
                    self.counts.recoveries += 1
                continue
            if self.memory.part and self.memory.live == i + 1:
                self.live = None
                self.memory.move(-1)
            tape, nbytes = self._take(i)
            if arrived:
                self.backend.shed(tape)
                self.away[i] = tape, nbytes

    def _state_at(self, t: int) -> Any:
        """Returns x_t, recomputed if it was lost with a tape."""
        state = self._found(t)
        if state is not None:
            return state
        self._note(self.planned.state[t])
        return self._made_again(t)

    def _needs_tape(self, i: int, state: Any) -> None:
        """Recomputes the tape of stage i from x_i if it was lost."""
        if i in self.taken:
            return
        _, tape, nbytes = self.backend.record(state, i, i + 1, False, None)
        self.counts.record_steps += 1
        self.counts.recorded_again += 1
        self._note(nbytes)
        self._keep(i, tape, nbytes)

    def _state_over(self, a: Action, state: Any) -> None:
        t = a.t0
        if state is None:
            state = self._made_again(t)
        self.memory.bytes -= self.planned.state[t]
        if a.slot == LIVE:
            self.live = state
            self.memory.move(t)
        else:
            self.kept[a.slot] = t, state, False
            self.memory.hold(t)

    def _made_again(self, t: int) -> Any:
        """Recomputes x_t from the nearest earlier state."""
        near = next(i for i in reversed(range(t + 1)) if self._found(i) is not None)
        state = self._found(near)
        for i in range(near, t):
            self._note(self.planned.state[i] + self.planned.state[i + 1])
            state = self.backend.advance(state, i, i + 1, False)
        self.counts.advance_steps += t - near
        return state


class _Nothing(StageBackend):
    """A backend without states, whose tapes have the planned sizes; it is also its own store."""

    def __init__(self, tape: Sequence[int]):
        self.tape, self.waited, self.tape_bytes = tape, 0.0, [1] * TIERS

    def advance(self, state: Any, *unused: Any) -> Any:
        """Returns its argument; also used as ``output``, ``empty`` and ``shed``."""
        return state

    output = empty = shed = advance

    def record(self, state: Any, t0: int, *unused: Any) -> Tuple[Any, Any, int]:
        return state, state, self.tape[t0]

    def reverse(self, tape: Any, state: Any, adjoint: Any, i: int) -> Any:
        return adjoint

    def pieces(self, state: Any) -> Tuple[Any, Sequence[Tuple[int, int]]]:
        return state, ()

    def tape_pieces(self, tape: Any) -> Sequence[Tuple[int, int]]:
        return [(0, 1)]

    regain = tape_pieces

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
