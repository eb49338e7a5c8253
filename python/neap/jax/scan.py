# SPDX-License-Identifier: Apache-2.0
"""neap.jax.scan: ``jax.lax.scan`` whose gradient keeps to a memory budget, inside jit, grad and vmap."""
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import jax
from jax import lax

from .. import units
from ..errors import UsageError
from ..units import Size
from .leaves import Leaves, inexact, nbytes, structs
from .loops import Kept, Loops
from .planning import NOMINAL, TAPES, Costs, ScanPlan, Sizes, planned
from .residuals import Residuals
from .second_order import marked
from .structure import Step, traced

__all__ = ["scan"]


class _Options(NamedTuple):
    """The arguments of a scan that do not come from ``jax.lax.scan``, checked."""

    memory: int
    strategy: str
    group: Optional[int]
    tape: str
    batch: int
    costs: Costs
    static: bool
    host: Optional[int]


class _Scan:
    """The forward and backward pass of one call, for ``jax.custom_vjp``."""

    def __init__(self, step: Step, steps: int, reverse: bool, unroll: int, options: _Options):
        self.step, self.steps, self.reverse, self.unroll, self.options = step, steps, reverse, unroll, options

    def primal(self, consts: Leaves, carry: Leaves, xs: Leaves) -> Any:
        """Runs without a gradient."""
        return lax.scan(lambda c, x: self.step(consts, c, x), carry, xs, self.steps, self.reverse, self.unroll)

    def forward(self, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]) -> Any:
        """Plans, and runs the pass before the loss. ``perturbed`` of an argument: it needs a gradient."""
        def wanted(given: Sequence[Any]) -> List[bool]:
            return [p.perturbed and inexact(p.value) for p in given]

        differentiated, rows_too = wanted(consts), wanted(xs)
        arrays, start, rows = ([p.value for p in given] for given in (consts, carry, xs))
        row = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in rows]
        residuals = Residuals(self.step, structs(arrays), row, differentiated, rows_too)
        made = self._planned(residuals, [x for x, m in zip(arrays, differentiated) if m])
        loops = Loops(residuals, made, self.reverse, self.options.static, self.unroll,
                      self.options.host is not None)
        last, out, kept = loops.forward(arrays, start, rows)
        found = marked([*last, *out], made)
        return (found[:len(last)], found[len(last):]), jax.tree_util.Partial(loops.backward, kept)

    def backward(self, pass_: Callable[..., Any], cotangents: Tuple[Leaves, Leaves]) -> Any:
        """Runs the pass after the loss."""
        found = pass_(*cotangents)
        leaves, tree = jax.tree.flatten(tuple(found))
        return jax.tree.unflatten(tree, marked(leaves, None))

    def _planned(self, residuals: Residuals, wanted: Leaves) -> ScanPlan:
        options = self.options
        sizes = Sizes(nbytes(self.step.carry), nbytes([x for x in self.step.carry if inexact(x)]),
                      nbytes(residuals.tape), 2 * nbytes(wanted))
        sizes = Sizes(*(options.batch * size for size in sizes))
        return planned(self.steps, sizes, options.memory, options.strategy, options.costs, options.group, options.tape,
                       options.host)


def _options(memory: Size, strategy: str, group: Optional[int], tape: str, batch: int,
             costs: Optional[Sequence[float]], static: bool, host: Optional[Size]) -> _Options:
    if tape not in TAPES:
        raise UsageError(f"tape={tape!r} is not valid. Pass one of {', '.join(map(repr, TAPES))}")
    for name, value in (("group", group), ("batch", batch)):
        if value is not None and units.count(value, name) < 1:
            raise UsageError(f"{name}={value} is not valid: it must be at least 1")
    if static and strategy != "auto":
        raise UsageError(f"static=True needs a plan of equal groups of steps, which strategy={strategy!r} does not "
                         f"guarantee. Pass strategy='auto'")
    if host is not None:
        _host_memory(strategy)
    return _Options(units.size(memory, "memory"), strategy, group, tape, batch, _costs(costs), static,
                    None if host is None else units.size(host, "host"))


def _host_memory(strategy: str) -> None:
    """Raises UsageError if states cannot be in host memory."""
    device = jax.devices()[0]
    kinds = [memory.kind for memory in device.addressable_memories()]
    if "pinned_host" not in kinds:
        raise UsageError(f"host= needs a backend with pinned host memory, but the backend {device.platform!r} has the "
                         f"memory kinds {', '.join(kinds)}. Remove host=")
    if strategy != "auto":
        raise UsageError(f"strategy={strategy!r} cannot be combined with host=. Pass strategy='auto'")


def _costs(costs: Optional[Sequence[float]]) -> Costs:
    if costs is None:
        return NOMINAL
    given = tuple(units.seconds(x, "costs") for x in costs)
    if len(given) not in (3, 4):
        raise UsageError(f"costs has {len(given)} entries. Pass (advance, record, backward) in seconds per step, or "
                         f"the result of neap.jax.measure")
    return Costs(*given) if len(given) == 4 else Costs(*given, given[0] * NOMINAL.row)


def scan(step: Callable[..., Any], carry: Any, xs: Any = None, length: Optional[int] = None, reverse: bool = False,
         unroll: int = 1, *, memory: Optional[Size] = "1G", strategy: str = "auto", tape: str = "auto", batch: int = 1,
         costs: Optional[Sequence[float]] = None, group: Optional[int] = None, static: bool = False,
         host: Optional[Size] = None) -> Tuple[Any, Any]:
    """Runs ``carry, output = step(carry, x)`` like ``jax.lax.scan``, with a memory budget for its gradient.

    It has the arguments and results of ``jax.lax.scan``, and works inside the same transformations: jit, grad, vmap,
    remat, scan. Without a gradient, ``jax.lax.scan`` runs. With one, the backward pass recomputes steps from
    checkpointed carries, as a plan of neap specifies. Gradients of the carry, of xs and of arrays that the step closes
    over are bit-identical for all plans and budgets, and agree with ``jax.lax.scan`` up to rounding.

    :param step: ``step(carry, x)`` returns ``(carry, output)``: pytrees of arrays, as for ``jax.lax.scan``.
    :param carry: the initial carry (state).
    :param xs: a pytree of arrays [T, ...], or None.
    :param length: T, if xs do not determine it.
    :param reverse: True: from the last row of xs to the first.
    :param unroll: steps per iteration of the compiled loop without a gradient, and of inner loops with ``static``.
    :param memory: bytes for the arrays of the forward and backward pass: checkpointed carries, residuals, adjoint, and
        two gradients of all arrays that the step closes over and that need one; such as ``"64M"``. xs, stacked
        outputs and their gradients are not included. None: ``jax.lax.scan``.
    :param strategy: a name of :func:`neap.strategies` that needs no slow memory.
    :param tape: "all": residuals of recorded steps are stored; "state": only their carries, and the backward pass
        recomputes the residuals of one step at a time; "auto": what is predicted to be faster.
    :param batch: number of examples, if the call is inside ``jax.vmap``, whose sizes the plan does not see.
    :param costs: seconds of a step (advance, record, backward), as :func:`measure` returns; None: typical ratios.
    :param group: steps that are recorded together; None: chosen by the plan.
    :param static: True: steps run in inner loops of one known length, which can be faster on GPUs.
        Groups of different length are different programs, so results of different plans agree only up to rounding.
    :param host: bytes of host memory for checkpointed carries, which then are not included in ``memory``.
    :returns: the last carry and the outputs [T, ...].
    :raises BudgetError: if no plan fits, while the gradient is traced; ``error.least`` is a sufficient budget.
    :raises UsageError: if an argument is invalid, or the step returns a different kind of carry.
    """
    if memory is None:
        return lax.scan(step, carry, xs, length, reverse, unroll)
    options = _options(memory, strategy, group, tape, batch, costs, static, host)
    job = traced(step, carry, xs, length)
    if job.steps == 0:
        return lax.scan(step, carry, xs, length, reverse, unroll)
    passes = _Scan(job.step, job.steps, reverse, unroll, options)
    run = jax.custom_vjp(passes.primal)
    run.defvjp(passes.forward, passes.backward, symbolic_zeros=True)
    last, out = run(job.consts, job.carry, job.xs)
    return jax.tree.unflatten(job.carry_tree, last), jax.tree.unflatten(job.output_tree, out)
