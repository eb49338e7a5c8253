# SPDX-License-Identifier: Apache-2.0
"""Measures the bytes that a group of steps keeps for its backward step, and its seconds."""
import ctypes
import time
from typing import Any, Dict, List, Optional, Tuple

import torch

from ..group_plans import Costs, Measured
from .checks import Hashes, NotDeterministic
from .heap import give_back
from .measure import Samples, addresses
from .runs import Again, Run, State

__all__ = ["UNTIMED", "measure"]

ROUNDS = 5  # number of timed runs of a group, unless they take longer than
ENOUGH = 0.2  # seconds in total


UNTIMED = Costs(0, 0, 0)  # of groups of which only the bytes are needed


def measure(run: Run, start: List[torch.Tensor], group: int, costs: Optional[Costs], every: bool = False) -> Measured:
    """Runs the first steps, at most ``2 group``: once if ``costs`` are given, else the last ``group`` of them several
    times more, of which the fastest counts; with ``every`` then all steps, once. The run keeps none of the results.
    Exceptions report what the first graph finds (``Run.record``).

    The steps before the last ``group`` run first, because the first state is often special: one of zeros with shared
    memory keeps fewer bytes than all later ones. Steps run in their order with their own numbers, since a state may
    grow with each (a cache), and a step may index a table of T rows with its size.
    """
    run.emitting = False
    run.counted, run.samples = {}, Samples()  # an earlier measurement in this run has the bytes, but not the graph's
    state, run.caller = run.state(start), addresses(start)
    run.fix(start, ())
    states = [state]
    t0 = min(group, run.steps - group)
    if run.whole and t0 < group:
        t0 = 0
    if t0:
        state, _, _ = run.record(state, 0, t0, False, None)
        states.append(state)
        run.counted.clear()
    last, tape, nbytes = _recorded(run, start, state, t0, group)
    sizes = [run.state_bytes(one) for one in (*states, last)]
    del states
    found = Measured(nbytes, costs or UNTIMED, run.spare,
                     tape.graph if tape.keeper is None else 0 if tape.keeper.stays else tape.keeper.staying,
                     0.0, *map(max, zip(*sizes)), grows=len(sizes) > 2 and sizes[-1] != sizes[-2],
                     fixed=run.fixed.places, once=run.fixed.once, apart=run.fixed.adjoint)
    _compare(run, state, t0, group)
    if every:
        del tape, last, state
        found = found._replace(**_every(run, start, group))
    if costs is not None:
        return found
    run.trial(tape)
    del tape, last
    begin, rows = time.perf_counter(), []
    while len(rows) < ROUNDS and (not rows or time.perf_counter() - begin < ENOUGH):
        rows.append(_timed(run, state, t0, group))
    least = [[max(1e-9, min(column)) for column in zip(*kind)] for kind in zip(*rows)]
    own = Costs(*_own(*least))
    moves = run.travels and found.graph and run.memory.graphs
    return found._replace(costs=own, spare=run.spare,
                          moving=_moving(run, state, t0, group, own.record) if moves else 0.0)


def _recorded(run: Run, start: List[torch.Tensor], state: State, t0: int, group: int) -> Tuple[State, Any, int]:
    """Records the last group that is measured, and finds the parts of the state that it and the steps before it return
    unchanged, which its tape does not count."""
    fixed = run.same_parts(start, state) if run.fixes and t0 else ()
    fewer = t0 > 0  # a part that once changed is not found to be unchanged later
    while True:
        if fixed or run.fixed.places:
            run.fix(start, fixed)
            run.counted, run.samples = {}, Samples()  # of other bytes
        run.hashes = Hashes({t0, t0 + group - 1}, True)
        last, tape, nbytes = run.record(state, t0, t0 + group, False, None)
        found = run.same_parts(start, last) if run.fixes else ()
        if fewer:
            found = tuple([j for j in fixed if j in found])
        if found == run.fixed.places:
            return last, tape, nbytes
        fixed, fewer = found, True
        del last, tape


def _every(run: Run, start: List[torch.Tensor], group: int) -> Dict[str, Tuple[int, ...]]:
    """Returns the bytes of all states and of the tapes of all groups, with no more memory than an advance needs."""
    state, tapes = run.state(start), []
    states = [run.state_bytes(state)[0]]
    for t0 in range(0, run.steps, group):
        state, nbytes = run.tape_bytes(state, t0, min(t0 + group, run.steps))
        tapes.append(nbytes)
        states.append(run.state_bytes(state)[0])
    return {"states": tuple(states), "tapes": tuple(tapes)}


def _compare(run: Run, state: State, t0: int, group: int) -> None:
    """Raises Again if these steps must be advanced with gradients enabled, as their record was: they compute gradients
    themselves, or PyTorch selects kernels that round differently under no_grad. Steps that round differently from run
    to run in either mode have other reasons."""
    try:
        if run.chooses and not run.grad and _differs(run, state, t0, group):
            run.grad = True
            if not _differs(run, state, t0, group):
                raise Again(grad=True)
    finally:
        run.hashes = None


def _differs(run: Run, state: State, t0: int, group: int) -> bool:
    try:
        run.advance(state, t0, t0 + group, False)
    except NotDeterministic:
        return True
    return False


def _moving(run: Run, state: State, t0: int, group: int, record: float) -> float:
    """Returns the seconds per byte that a tape costs, in addition to its record, if its memory is freed and restored:
    the system must provide new pages, for the following records and for the tape."""
    rows = []
    for _ in range(3):
        begin = time.thread_time()
        _, tape, nbytes = run.record(state, t0, t0 + group, False, None)
        run.tape_pieces(tape)
        tape.keeper.shed()
        give_back()
        for at, size in run.regain(tape):
            ctypes.memset(at, 0, size)
        rows.append(time.thread_time() - begin)
    return max(0.0, min(rows) - record) / (2 * max(1, nbytes))


def _own(elapsed: List[float], processor: List[float]) -> List[float]:
    """Returns the seconds of steps without the time of other programs: the CPU time of the thread if steps compute
    most of the time, else the elapsed time."""
    return processor if sum(processor) > 0.3 * sum(elapsed) else elapsed


def _timed(run: Run, state: State, t0: int, group: int) -> Tuple[List[float], List[float]]:
    """Returns the seconds of advance, record and backward of a group: elapsed time, and time of the thread."""
    clock = [_clock(run)]
    run.advance(state, t0, t0 + group, False)
    clock.append(_clock(run))
    _, tape, _ = run.record(state, t0, t0 + group, False, None)
    clock.append(_clock(run))
    run.trial(tape)
    clock.append(_clock(run))
    rows = [[b - a for a, b in zip(column, column[1:])] for column in zip(*clock)]
    return rows[0], rows[1]


def _clock(run: Run) -> Tuple[float, float]:
    """Returns the time in seconds, elapsed and of this thread, after an accelerator has finished its work."""
    if run.device.type == "cuda":
        torch.cuda.synchronize(run.device)
        return time.perf_counter(), 0.0
    return time.perf_counter(), time.thread_time()
