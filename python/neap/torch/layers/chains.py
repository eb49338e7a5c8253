# SPDX-License-Identifier: Apache-2.0
"""The steps of a layer as the backend of a Player, and their plan.

States, tapes and adjoints are tensors of bytes in the format of libneap-nn. A group is up to 64 steps, which one call
computes. A tape is recorded into a buffer for the largest possible tape and copied from there, so the budget contains
one such buffer.
"""
import functools
import os
import time
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ...errors import BudgetError, UsageError, too_small
from ...group_plans import Costs, Measured
from ...player import Backend, Player
from ...reports import Report
from ...scan_choice import Asked, Choice, Facts, choose
from ...show import show_least
from ...stores import OpenTier, Paths, Store, measured_tiers
from . import nets
from .nets import Kind, give, take

__all__ = ["Budget", "Steps"]

LARGEST = 64  # steps per group: a gradient block of libneap-nn
SHARE = 8  # the buffer takes at most this fraction of the budget, unless one step takes more; chosen
TIMED = 0.05  # seconds in which a slow tier is measured
KEPT = 64  # measurements that are kept
MARGIN = 1.1  # tapes of spiking layers vary; chosen: a larger tape only costs recomputation


class Budget(NamedTuple):
    """Arguments of a call that its plan depends on."""

    memory: Optional[int]
    strategy: str
    slow: Optional[Paths]


class Steps(Backend):
    """The steps of one call.

    :param x: inputs [T, B, inputs], contiguous.
    :param events: the spikes of x (``spikes_of``), or None.
    :param weights: parameters of the network [rows, columns] by name.
    :param given: the tensors of the state before the first step; empty: zeros.
    """

    def __init__(self, kind: Kind, x: torch.Tensor, events: Any, weights: Sequence[Tuple[str, torch.Tensor]],
                 given: Sequence[torch.Tensor]):
        self.kind, self.x, self.events, self.given = kind, x, events, given
        self.steps = x.shape[0]
        self.net = take(kind)
        self.close = weakref.finalize(self, give, self.net)
        for name, value in weights:
            self.net.set(name, value)
        self.buffer: Optional[torch.Tensor] = None
        self.fixed = self.measured = False

    def bytes(self, count: int) -> torch.Tensor:
        """Returns memory of the device of x."""
        return torch.empty(count, dtype=torch.uint8, device=self.x.device)

    def _seconds(self) -> float:
        nets.finish(self.kind.device)
        return time.perf_counter()

    def begin(self, outputs: Optional[torch.Tensor]) -> None:
        """Begins a pass over all steps."""
        self.net.begin(self.x, self.given, outputs, self.events)
        found = self.net.sizes()
        self.state, self.adjoint, self.most = found.state, found.adjoint, found.tape_max
        self.fixed = found.tape_mean == found.tape_max

    def start(self) -> torch.Tensor:
        """Returns the state before the first step."""
        state = self.bytes(self.state).zero_()
        if self.given:
            self.net.put_state(state, self.given)
        return state

    def advance(self, state: torch.Tensor, t0: int, t1: int, first: bool) -> torch.Tensor:
        state = state.clone()
        self.net.advance(state, t0, t1, first)
        return state

    def record(self, state: torch.Tensor, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[torch.Tensor, "Tape", int]:
        state, most = state.clone(), (t1 - t0) * self.most
        if self.fixed:
            tape = self.bytes(most)
            self.net.record(state, t0, t1, first, tape)
            return state, Tape(tape), most
        if self.buffer is None or self.buffer.numel() < most:
            self.buffer = self.bytes(most)
        used = self.net.record(state, t0, t1, first, self.buffer)
        return state, Tape(self.buffer[:used].clone()), used

    def backward(self, tape: "Tape", adjoint: torch.Tensor, t0: int, t1: int) -> torch.Tensor:
        assert tape.memory is not None
        self.net.backward(adjoint, t0, t1, tape.memory)
        return adjoint

    def pieces(self, state: torch.Tensor) -> Tuple[torch.Tensor, Sequence[Tuple[int, int]]]:
        return state, [(state.data_ptr(), state.numel())]

    def empty(self, t: int) -> torch.Tensor:
        return self.bytes(self.state)

    def tape_pieces(self, tape: "Tape") -> Sequence[Tuple[int, int]]:
        assert tape.memory is not None
        return [(tape.memory.data_ptr(), tape.nbytes)]

    def shed(self, tape: "Tape") -> None:
        tape.memory = None

    def regain(self, tape: "Tape") -> Sequence[Tuple[int, int]]:
        tape.memory = self.bytes(tape.nbytes)
        return self.tape_pieces(tape)

    def forward(self, budget: Budget, outputs: Optional[torch.Tensor],
                report: Report) -> Tuple[Player, torch.Tensor]:
        """Runs the forward pass; returns a player at TURN and the last state.

        :param outputs: memory for the outputs, or None.
        """
        self.begin(outputs)
        made = self._plan(budget)
        sizes, plan = made.sizes, made.chosen.plan
        report.planned(plan, self.steps, made.group, sizes.state, sizes.tape, made.aside, budget.memory,
                       plan.peak + made.aside)
        store = None
        if budget.slow is not None and made.stored:
            store = Store(budget.slow, self.state)
            store.format(made.places.states, made.places.tapes, [count * sizes.tape for count in made.places.groups])
        if self.measured:
            self.begin(outputs)  # without the gradients of the measured steps
        player = Player(self, plan, self.steps, made.group, sizes, True, report.counts, store)
        return player, player.forward(self.start())

    def _plan(self, budget: Budget) -> Choice:
        """Returns the plan of a call."""
        def tiers(record: int) -> List[OpenTier]:
            return [] if budget.slow is None else list(_tiers(_paths(budget.slow), record))
        facts = _Facts(self)
        try:
            return choose(Asked(self.steps, budget.memory, budget.strategy, most=LARGEST), facts, tiers, budget.memory)
        except BudgetError as error:
            if not error.least:
                raise
            buffer = facts.aside(1)
            why = f"one step takes {show_least(facts.group(1).tape)} for its tape, {show_least(self.state)} for its state, and " \
                  f"{show_least(buffer)} for a buffer"
            raise too_small(budget.memory or 0, error.least, why, budget.strategy) from None

    def _measured(self, group: int) -> Measured:
        """Returns bytes and seconds of a group, measured once per kind of layer. The first steps are not measured, since
        there are few spikes in them."""
        key = self.kind, self.x.shape[1], group
        if key not in _found:
            self.measured = True
            net, warm = self.net, min(self.steps - group, LARGEST)
            state = self.start()
            net.advance(state, 0, warm, False)
            begin = self._seconds()
            net.advance(state.clone(), warm, warm + group, False)
            advanced = self._seconds()
            _, tape, nbytes = self.record(state, warm, warm + group, False, None)
            recorded = self._seconds()
            adjoint = self.bytes(self.adjoint)
            net.put_adjoint(adjoint, None)
            net.backward(adjoint, warm, warm + group, tape.memory)
            costs = Costs(advanced - begin, recorded - advanced, self._seconds() - recorded)
            if len(_found) > KEPT:
                _found.clear()
            _found[key] = Measured(nbytes if self.fixed else min(group * self.most, int(nbytes * MARGIN) + 64), costs,
                                   state=self.state, adjoint=self.adjoint)
        return _found[key]


class Tape:
    """The tape of a group; ``memory`` is None while it is on a slow tier."""

    __slots__ = ("memory", "nbytes")

    def __init__(self, memory: torch.Tensor):
        self.memory: Optional[torch.Tensor] = memory
        self.nbytes = memory.numel()


class _Facts(Facts):
    """What is known about the steps of a call: the largest possible tape, and measured groups."""

    def __init__(self, steps: Steps):
        super().__init__()
        self.steps, self.record, self.adjoint = steps, steps.state, steps.adjoint

    def aside(self, group: int) -> int:
        return 0 if self.steps.fixed else group * self.steps.most

    def group(self, group: int, offloaded: bool = False, timed: bool = True) -> Measured:
        return self.steps._measured(group) if timed else Measured(self.steps.most, Costs(1, 1, 2))

    def every(self, group: int) -> Measured:
        raise UsageError("strategy='chain' is for groups of steps that differ in size, and the steps of a layer are planned "
                         "with one size. Use strategy='auto'")


_found: Dict[Any, Measured] = {}


@functools.lru_cache(maxsize=KEPT)
def _tiers(slow: Tuple[str, ...], state: int) -> Tuple[OpenTier, ...]:
    return tuple(measured_tiers(slow, state, TIMED))


def _paths(slow: Paths) -> Tuple[str, ...]:
    rows = [slow] if isinstance(slow, (str, os.PathLike)) else slow
    if not isinstance(rows, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in rows):
        raise UsageError(f"slow={slow!r} is not valid. Pass a directory, memory such as 'mem:4G', or a list of them")
    return tuple(os.fspath(path) for path in rows)
