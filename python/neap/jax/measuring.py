# SPDX-License-Identifier: Apache-2.0
"""Seconds of a step, measured with compiled loops outside a trace.

Loops of n and of 2n steps are timed in turn, with n so large that the cost of the call is negligible. The median of
the seconds per step over all rounds ignores rounds in which another program used the processor.
"""
import statistics
import time
from typing import Any, Callable, List, Optional

import jax
from jax import lax

from ..errors import UsageError
from .leaves import Leaves, inexact, zeros
from .loops import get, put
from .planning import Costs
from .residuals import Residuals
from .structure import Traced, traced

__all__ = ["measure"]

TAPES = 8  # tapes that recorded steps write in turn, as a group does (chosen)
SHORT = 0.01  # seconds of the shorter loop, at least (chosen: several hundred times the cost of a call)
MOST = 1 << 16  # steps of the shorter loop, at most
ROW = 1e-6  # seconds of a row of the action table on a CPU (measured: 0.7 to 1.5 us)


class _Timed:
    """Compiled loops over steps: forward, with residuals written to one place or to several, and backward."""

    def __init__(self, job: Traced):
        self.job = job
        row = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in job.xs]
        self.rule = Residuals(job.step, job.consts, row, [inexact(x) for x in job.consts], [False] * len(row))
        self.tapes = zeros(self.rule.tape, TAPES)
        self._forward = jax.jit(self._forward_steps)
        self._backward = jax.jit(self._backward_steps)

    def _forward_steps(self, n: Any, places: Any, carry: Leaves, tapes: Leaves) -> Any:
        def body(t: Any, c: Any) -> Any:
            after, _, tape = self.rule.record(self.job.consts, c[0], get(self.job.xs, t % self.job.steps))
            return after, put(c[1], tape, t % places)
        return lax.fori_loop(0, n, body, (carry, tapes))

    def _backward_steps(self, n: Any, tapes: Leaves) -> Any:
        rule, job = self.rule, self.job
        once = rule.once(job.consts, [x[0] for x in job.xs])
        outputs = zeros([y for y, m in zip(job.step.outputs, rule.emitted) if m])

        def body(t: Any, c: Any) -> Any:
            found, adjoint, _ = rule.backward(job.consts, once, get(job.xs, t % job.steps), get(tapes, t % TAPES), c[0],
                                              outputs)
            return adjoint, [a + b for a, b in zip(c[1], found)]
        return lax.fori_loop(0, n, body, (zeros([x for x, m in zip(job.carry, rule.moving) if m]),
                                          zeros([x for x, m in zip(job.consts, rule.wanted) if m])))

    def advance(self, n: int) -> Any:
        """Runs n steps whose residuals overwrite each other."""
        return self._forward(n, 1, self.job.carry, self.tapes)

    def record(self, n: int) -> Any:
        """Runs n steps and keeps residuals."""
        return self._forward(n, TAPES, self.job.carry, self.tapes)

    def backward(self, n: int) -> Any:
        """Reverses n steps."""
        return self._backward(n, self.tapes)


def _seconds(run: Callable[[int], Any], n: int) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run(n))
    return time.perf_counter() - start


def measure(step: Callable[..., Any], carry: Any, xs: Any = None, length: Optional[int] = None, *,
            rounds: int = 5) -> Costs:
    """Measures the seconds of a step for ``costs`` of :func:`scan`; to be called outside jit and grad.

    :param step: the step function, as for :func:`scan`.
    :param carry: an example of the first carry.
    :param xs: example inputs [T, ...] or None.
    :param length: T, if ``xs`` does not determine it.
    :param rounds: number of rounds, of which the median counts.
    :returns: a :class:`Costs`.
    :raises UsageError: if the call is inside a transformation, or an argument is invalid.
    """
    job = traced(step, carry, xs, length)
    if any(isinstance(x, jax.core.Tracer) for x in (*job.consts, *job.carry, *job.xs)):
        raise UsageError("neap.jax.measure was called inside a JAX transformation. It must run the step to time it: "
                         "call it outside of jit and grad, and pass its result as costs=")
    if job.steps < 1 or rounds < 1:
        raise UsageError(f"measure needs at least 1 step and 1 round; there are {job.steps} and {rounds}. Pass more")
    timed = _Timed(job)
    found: List[float] = []
    for run in (timed.advance, timed.record, timed.backward):
        run(1)
        n = 8
        while n < MOST and min(_seconds(run, n), _seconds(run, n)) < SHORT:
            n *= 2
        found.append(statistics.median(_seconds(run, count) / count for _ in range(rounds) for count in (n, 2 * n)))
    return Costs(*found, ROW)
