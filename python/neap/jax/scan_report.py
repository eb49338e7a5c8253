# SPDX-License-Identifier: Apache-2.0
"""The report of a function that contains scans: their plans, and the memory that XLA allocates for it."""
from typing import Any, Callable, Iterator, List

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr

from ..show import show_size
from .planning import ScanPlan
from .second_order import PRIMITIVE

__all__ = ["ScanReport", "report"]


def _plans(jaxpr: Any) -> Iterator[ScanPlan]:
    """Yields the plans that the marks in a jaxpr carry, including marks in loops and calls."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is PRIMITIVE and eqn.params["note"] is not None:
            yield eqn.params["note"]
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, (ClosedJaxpr, Jaxpr)):
                    yield from _plans(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)


class ScanReport:
    """Plans and memory of a compiled function; ``print(report)`` shows them.

    - ``scans``: a :class:`ScanPlan` for each scan with a gradient; inside a loop, one for all turns
    - ``planned``: largest planned peak in bytes of a scan
    - ``temporary``: bytes that XLA allocates while the function runs; ``arguments``, ``outputs``: bytes of these
    - ``compiled``: the compiled function, which can be called
    """

    def __init__(self, scans: List[ScanPlan], compiled: Any):
        self.scans, self.compiled = scans, compiled
        found = compiled.memory_analysis()
        self.temporary: int = getattr(found, "temp_size_in_bytes", 0)
        self.arguments: int = getattr(found, "argument_size_in_bytes", 0)
        self.outputs: int = getattr(found, "output_size_in_bytes", 0)
        self.planned = max((one.peak for one in scans), default=0)

    def __str__(self) -> str:
        rows = []
        for one in self.scans:
            sizes, table = one.sizes, one.table
            rows += [
                ("scan", f"{one.steps} steps, {one.plan.chosen}, {one.group} per group, keeps "
                         f"{'residuals' if one.keeps == 'all' else 'states'}"),
                ("state", f"{show_size(sizes.state)}, {table.slots} checkpointed"),
                ("tape", f"{show_size(sizes.tape)} per step, {table.places if one.keeps == 'all' else 1} stored"),
                ("budget", f"{show_size(one.memory)}, including {show_size(sizes.charged)} for gradients of arrays "
                           f"that the step closes over"),
                ("planned", show_size(one.peak)),
                ("recomputed", f"{one.recomputed} steps"),
                ("table", f"{table.rows} rows")]
        if not rows:
            rows.append(("scan", "none with a gradient"))
        rows.append(("XLA", f"{show_size(self.temporary)} temporary, {show_size(self.arguments)} arguments, "
                            f"{show_size(self.outputs)} outputs"))
        return "\n".join(f"{name:<12} {text}" for name, text in rows)

    __repr__ = __str__


def report(function: Callable[..., Any], *arguments: Any, **options: Any) -> ScanReport:
    """Compiles a function and returns the :class:`ScanReport` of the scans in it.

    :param function: a function, or the result of ``jax.jit``, such as a training step; it is not run.
    :param arguments: its arguments: arrays, or ``jax.ShapeDtypeStruct``.
    :param options: its keyword arguments.
    :returns: the report, with the compiled function.
    """
    traced = (function if hasattr(function, "trace") else jax.jit(function)).trace(*arguments, **options)
    return ScanReport(list(_plans(traced.jaxpr.jaxpr)), traced.lower().compile())
