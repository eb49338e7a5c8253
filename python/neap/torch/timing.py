# SPDX-License-Identifier: Apache-2.0
"""How many bytes a group of steps keeps for its backward, and how many seconds it takes."""
import time
from typing import Any, List, NamedTuple, Optional

import torch

from .runs import Run, State, differentiable
from .seeding import GroupTape, muted, reverse

__all__ = ["Costs", "Measured", "measure"]

ROUNDS = 5  # that a group is timed, where it takes less than
ENOUGH = 0.2  # seconds in all


class Costs(NamedTuple):
    """Seconds of a group of steps."""

    advance: float
    record: float
    backward: float


class Measured(NamedTuple):
    """Bytes of a group's tape, and its costs."""

    tape: int
    costs: Costs


def _reverse(run: Run, tape: GroupTape) -> None:
    """The backward of a group on ones."""
    def gradients(i: int, t: int) -> Any:
        return torch.ones_like(tape.outputs[t][i]) if t in tape.outputs else None
    with muted(run.params):
        reverse(tape, run.params, [None] * len(run.params),
                [torch.ones_like(x) if differentiable(x) else None for x in tape.last], gradients, ())


def measure(run: Run, start: List[torch.Tensor], group: int, costs: Optional[Costs]) -> Measured:
    """Does the first ``group`` steps: once where ``costs`` says what they take, else some times
    more, of which the fastest counts. The run keeps nothing of it. What its first graph finds
    comes as an exception (``Run.record``)."""
    run.emitting = False
    state = run.state(start)
    _, tape, nbytes = run.record(state, 0, group, False, None)
    if costs is not None:
        return Measured(nbytes, costs)
    _reverse(run, tape)
    del tape
    begin, rows = time.perf_counter(), []
    while len(rows) < ROUNDS and (not rows or time.perf_counter() - begin < ENOUGH):
        rows.append(_timed(run, state, group))
    return Measured(nbytes, Costs(*[max(1e-9, min(column)) for column in zip(*rows)]))


def _timed(run: Run, state: State, group: int) -> List[float]:
    """Seconds of advance, record and backward of the first group."""
    clock = [time.perf_counter()]
    run.advance(state, 0, group, False)
    clock.append(time.perf_counter())
    _, tape, _ = run.record(state, 0, group, False, None)
    clock.append(time.perf_counter())
    _reverse(run, tape)
    clock.append(time.perf_counter())
    return [after - before for before, after in zip(clock, clock[1:])]
