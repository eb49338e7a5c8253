# SPDX-License-Identifier: Apache-2.0
"""How many bytes a group of steps keeps for its backward, and how many seconds it takes."""
import time
from typing import Any, List, NamedTuple, Optional

import torch

from .runs import Run, differentiable
from .seeding import GroupTape, muted, reverse

__all__ = ["Costs", "Measured", "measure"]


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
    """Does the first ``group`` steps, twice where ``costs`` does not say what they take. The run
    keeps nothing of it. What its first graph finds comes as an exception (``Run.record``)."""
    run.emitting = False
    state = run.state(start)
    _, tape, nbytes = run.record(state, 0, group, False, None)
    if costs is not None:
        return Measured(nbytes, costs)
    _reverse(run, tape)
    tape = None
    clock = [time.perf_counter()]
    run.advance(state, 0, group, False)
    clock.append(time.perf_counter())
    _, tape, _ = run.record(state, 0, group, False, None)
    clock.append(time.perf_counter())
    _reverse(run, tape)
    clock.append(time.perf_counter())
    return Measured(nbytes, Costs(*[max(1e-9, b - a) for a, b in zip(clock, clock[1:])]))
