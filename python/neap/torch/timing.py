# SPDX-License-Identifier: Apache-2.0
"""How many bytes a group of steps keeps for its backward, and how many seconds it takes."""
import ctypes
import time
from typing import Any, List, NamedTuple, Optional, Tuple

import torch

from .checks import Hashes, NotDeterministic
from .heap import give_back
from .measure import addresses
from .runs import Again, Run, State, differentiable
from .seeding import GroupTape

__all__ = ["Costs", "Measured", "measure"]

ROUNDS = 5  # that a group is timed, where it takes less than
ENOUGH = 0.2  # seconds in all


class Costs(NamedTuple):
    """Seconds of a group of steps."""

    advance: float
    record: float
    backward: float


class Measured(NamedTuple):
    """Bytes of a group's tape, its costs, bytes of graphs that it drops; bytes of its own graph, which
    stay if the tape travels, and seconds of computing that a byte of such a tape costs, each way; bytes
    of a state and of its adjoint."""

    tape: int
    costs: Costs
    spare: int = 0
    graph: int = 0
    moving: float = 0.0
    state: int = 0
    adjoint: int = 0


def _reverse(run: Run, tape: GroupTape) -> None:
    """The backward of a group on ones."""
    def gradients(i: int, t: int) -> Any:
        return torch.ones_like(tape.outputs[t][i]) if t in tape.outputs else None
    run.reversed(tape, [None] * len(run.params),
                 [torch.ones_like(x) if differentiable(x) else None for x in tape.last], gradients, ())


def measure(run: Run, start: List[torch.Tensor], group: int, costs: Optional[Costs]) -> Measured:
    """Does the first ``group`` steps: once where ``costs`` says what they take, else some times
    more, of which the fastest counts. The run keeps nothing of it. What its first graph finds
    comes as an exception (``Run.record``).

    They begin with the state after them, since the first state is often a special one: of zeros,
    which all its parts share, it keeps fewer bytes than all later ones."""
    run.emitting = False
    state, run.caller = run.state(start), addresses(start)
    sizes = [run.state_bytes(state)]
    if run.steps > group:
        state, _, _ = run.record(state, 0, group, False, None)
        sizes.append(run.state_bytes(state))
        run.counted.clear()
    run.hashes = Hashes({0, group - 1}, True)
    last, tape, nbytes = run.record(state, 0, group, False, None)
    sizes.append(run.state_bytes(last))
    found = Measured(nbytes, costs or Costs(0, 0, 0), run.spare,
                     tape.graph if tape.keeper is None else 0 if tape.keeper.stays else tape.keeper.staying,
                     0.0, *map(max, zip(*sizes)))
    _compare(run, state, group)
    if costs is not None:
        return found
    _reverse(run, tape)
    del tape, last
    begin, rows = time.perf_counter(), []
    while len(rows) < ROUNDS and (not rows or time.perf_counter() - begin < ENOUGH):
        rows.append(_timed(run, state, group))
    least = [[max(1e-9, min(column)) for column in zip(*kind)] for kind in zip(*rows)]
    own = Costs(*_own(*least))
    return found._replace(costs=own, spare=run.spare,
                          moving=_moving(run, state, group, own.record) if run.travels and found.graph else 0.0)


def _compare(run: Run, state: State, group: int) -> None:
    """Again if these steps have to be advanced with gradients enabled, as their record was: they compute
    gradients themselves, or PyTorch takes kernels with other bits under no_grad. Steps whose bits are
    others in either mode have other reasons."""
    try:
        if run.chooses and not run.grad and _differs(run, state, group):
            run.grad = True
            if not _differs(run, state, group):
                raise Again(grad=True)
    finally:
        run.hashes = None


def _differs(run: Run, state: State, group: int) -> bool:
    try:
        run.advance(state, 0, group, False)
    except NotDeterministic:
        return True
    return False


def _moving(run: Run, state: State, group: int, record: float) -> float:
    """Seconds a byte that a tape costs beside its record where it leaves its memory, or comes back: the
    system gives pages anew, for the records that come next and for the tape."""
    rows = []
    for _ in range(3):
        begin = time.thread_time()
        _, tape, nbytes = run.record(state, 0, group, False, None)
        run.tape_pieces(tape)
        tape.keeper.shed()
        give_back()
        for at, size in run.regain(tape):
            ctypes.memset(at, 0, size)
        rows.append(time.thread_time() - begin)
    return max(0.0, min(rows) - record) / (2 * max(1, nbytes))


def _own(elapsed: List[float], processor: List[float]) -> List[float]:
    """Seconds of steps without those that other programs took: where steps compute most of the
    time, the time of their thread counts, else what passed."""
    return processor if sum(processor) > 0.3 * sum(elapsed) else elapsed


def _timed(run: Run, state: State, group: int) -> Tuple[List[float], List[float]]:
    """Seconds of advance, record and backward of the first group: that passed, and of the thread."""
    clock = [_clock(run)]
    run.advance(state, 0, group, False)
    clock.append(_clock(run))
    _, tape, _ = run.record(state, 0, group, False, None)
    clock.append(_clock(run))
    _reverse(run, tape)
    clock.append(_clock(run))
    rows = [[b - a for a, b in zip(column, column[1:])] for column in zip(*clock)]
    return rows[0], rows[1]


def _clock(run: Run) -> Tuple[float, float]:
    """Seconds now, of the wall and of this thread, once an accelerator has done what it was given."""
    if run.device.type == "cuda":
        torch.cuda.synchronize(run.device)
        return time.perf_counter(), 0.0
    return time.perf_counter(), time.thread_time()
