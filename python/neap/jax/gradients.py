# SPDX-License-Identifier: Apache-2.0
"""value_and_grad of a loss after a long loop of steps, with a memory budget."""
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import jax
import jax.numpy as jnp

from .. import units
from ..errors import BudgetError, UsageError, too_small
from ..places import places_of
from ..plans import Plan, plan
from ..player import Player, Sizes
from ..reports import Report
from ..scan_choice import halved
from ..show import show_least
from ..stores import OpenTier, Paths, Store, measured_tiers
from ..units import Size
from .groups import Group, Loop
from .leaves import Leaves, apart, inexact, merged, nbytes
from .runs import Run

__all__ = ["ValueAndGrad", "value_and_grad"]

GROUP = 50  # steps per group, unless the budget requires fewer
SHARE = 8  # the tape of a group is at most 1/SHARE of the budget
TIMED = 0.05  # seconds of measuring a tier
ROUNDS = 4  # timed runs of the first group: the first one compiles; the minimum of the others counts
NOMINAL = (1.0, 1.2, 2.0)  # costs of a plan that only shows whether the budget fits


class _Known(NamedTuple):
    """Results of previous calls with arguments of the same structure, shapes and dtypes."""

    loop: Loop
    groups: Dict[int, Group]
    costs: Dict[int, Tuple[float, float, float]]
    plans: Dict[Any, Plan]
    turn: Callable[..., Any]


def _kind(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((x.shape, x.dtype) for x in leaves)


def _arrays(tree: Any, name: str) -> Any:
    """Converts the leaves of a tree to arrays. Raises UsageError inside a transformation of JAX."""
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(tree)):
        raise UsageError(f"{name} is traced: a value_and_grad of neap.jax was called inside a JAX transformation. It "
                         f"runs its own Python loop over compiled groups of steps; call it outside jit, grad, vmap and "
                         f"scan")
    try:
        return jax.tree.map(lambda x: jnp.asarray(x, dtype=jnp.asarray(x).dtype), tree)
    except TypeError as error:
        raise UsageError(f"{name}: {error}. Pass JAX or NumPy arrays, numbers, or pytrees of these") from None


class ValueAndGrad:
    """A function ``value, gradients = vg(params, state, inputs, *more)``; returned by :func:`value_and_grad`."""

    def __init__(self, step: Callable[..., Any], loss: Callable[..., Any], argnums: Tuple[int, ...],
                 single: bool, has_aux: bool, memory: Optional[int], group: Optional[int],
                 strategy: str, costs: Optional[Tuple[float, float, float]], slow: Optional[Paths]):
        self._step, self._loss, self._argnums, self._single = step, loss, argnums, single
        self._has_aux, self._memory, self._group, self._strategy = has_aux, memory, group, strategy
        self._costs, self._slow = costs, slow
        self._known: Dict[Any, _Known] = {}
        self._tiers: Dict[int, List[OpenTier]] = {}
        self._report = Report("group")

    def report(self) -> Report:
        """The :class:`Report` of the last call."""
        return self._report

    def __call__(self, params: Any, state: Any, inputs: Any = None, *more: Any,
                 steps: Optional[int] = None) -> Tuple[Any, Any]:
        """Computes the loss and its gradients.

        :param params: a pytree of arrays.
        :param state: the initial state (carry), a pytree of arrays.
        :param inputs: a pytree of arrays [T, ...], or None.
        :param more: further arguments of the loss, without gradients.
        :param steps: T, if the inputs do not determine it.
        :returns: the loss (with ``has_aux`` the loss and the auxiliary data), and the gradients of ``argnums``.
        :raises Exception: as :func:`value_and_grad`.
        """
        params, state, inputs = (_arrays(*pair) for pair in (
            (params, "params"), (state, "the state"), (inputs, "inputs")))
        more = _arrays(more, "an argument of the loss")
        count = self._steps(inputs, steps)
        for i, tree in enumerate((params, state, inputs)):
            if i in self._argnums and not all(map(inexact, jax.tree.leaves(tree))):
                raise UsageError(f"argnums: argument {i} contains an array of integers, booleans or keys, which has no "
                                 f"gradient. Remove {i} from argnums, or pass only floating-point arrays")
        known = self._knowledge(params, state, inputs)
        told = self._report = Report("group")
        arrays = [jax.tree.leaves(tree) for tree in (params, state, inputs)]
        made, sizes, group, tiers = self._planned(known, arrays, count, told)
        run = Run(known.loop, known.groups, arrays[0], arrays[2], count, group, 2 in self._argnums)
        before = sum(one.extra for one in known.groups.values())
        player = self._player(run, made, sizes, group, tiers, told)
        try:
            last = player.forward(arrays[1])
            value, run.sums, adjoint, run.out_grads = known.turn(arrays[0], last, run.out, more)
            run.out = []
            first = player.backward(adjoint)
        finally:
            player.close()
            told.counts.advance_steps += sum(one.extra for one in known.groups.values()) - before
        found = run.sums, first, run.input_grads
        structures = known.loop.params, known.loop.state, known.loop.inputs
        gradients = tuple(jax.tree.unflatten(structures[i], found[i]) for i in self._argnums)
        return value, gradients[0] if self._single else gradients

    def _steps(self, inputs: Any, steps: Optional[int]) -> int:
        shapes = [x.shape for x in jax.tree.leaves(inputs)]
        lengths = {shape[0] if shape else -1 for shape in shapes}
        return units.steps_of(lengths, steps, "array")

    # Results for arguments of the same structure, shapes and dtypes

    def _knowledge(self, params: Any, state: Any, inputs: Any) -> _Known:
        rows = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), inputs)
        key = _kind(params), _kind(state), _kind(rows)
        if key not in self._known:
            loop = Loop(self._step, params, state, inputs)
            self._known[key] = _Known(loop, {}, {}, {}, jax.jit(self._turn_of(loop)))
        return self._known[key]

    def _turn_of(self, loop: Loop) -> Callable[..., Any]:
        """Returns a function for the loss and its gradients with respect to parameters, last state and outputs."""
        def turn(params: Leaves, last: Leaves, out: Leaves, more: Any) -> Any:
            def f(some: Leaves, state: Leaves, emitted: Leaves) -> Any:
                given = [jax.tree.unflatten(loop.params, merged(params, some, apart(params)[1])),
                         jax.tree.unflatten(loop.state, merged(last, state, apart(last)[1]))]
                if not loop.alone:
                    given.append(jax.tree.unflatten(loop.output, merged(out, emitted, apart(out)[1])))
                return self._loss(*given, *more)

            value, found = jax.value_and_grad(f, argnums=(0, 1, 2), has_aux=self._has_aux)(
                *[apart(leaves)[0] for leaves in (params, last, out)])
            return (value, *found)

        return turn

    # The plan

    def _planned(self, known: _Known, arrays: List[Leaves], steps: int, told: Report
                 ) -> Tuple[Plan, Sizes, int, List[OpenTier]]:
        """Returns the plan, its sizes, the steps per group, and the tiers."""
        charged = 2 * nbytes(apart(arrays[0])[0])
        left = None if self._memory is None else self._memory - charged
        group = self._group
        if group is None:
            group = GROUP
            if left is not None:
                one = self._of(known, arrays, 1).tape
                group = max(1, min(GROUP, max(0, left) // SHARE // max(1, one)))
        return halved(min(group, steps), self._group is not None,
                      lambda group: self._planned_for(known, arrays, steps, group, charged, left, told))

    def _of(self, known: _Known, arrays: List[Leaves], steps: int) -> Group:
        if steps not in known.groups:
            known.groups[steps] = Group(known.loop, arrays[0], arrays[2], steps, 2 in self._argnums)
        return known.groups[steps]

    def _planned_for(self, known: _Known, arrays: List[Leaves], steps: int, group: int, charged: int,
                     left: Optional[int], told: Report) -> Tuple[Plan, Sizes, int, List[OpenTier]]:
        tape = max(1, self._of(known, arrays, group).tape)
        state = max(1, nbytes(known.loop.start))
        adjoint = nbytes(apart(known.loop.start)[0])
        free = left is None and self._strategy in ("auto", "bptt")
        tiers = [] if free else self._measured_tiers(state)

        def ask(costs: Tuple[float, float, float]) -> Plan:
            key = steps, group, state, adjoint, tape, left, self._strategy, costs, len(tiers)
            if key not in known.plans:
                known.plans[key] = plan(
                    -(-steps // group), state=state, adjoint=adjoint, tape=tape,
                    memory=None if left is None else max(0, left),
                    strategy="bptt" if free else self._strategy, advance=costs[0], record=costs[1],
                    backward=costs[2], last=((steps - 1) % group + 1) / group, tapes_stay=True,
                    slow=tiers or None)
            return known.plans[key]

        try:
            made = ask(self._costs or NOMINAL)
        except BudgetError as error:
            if not error.least:
                raise
            least = error.least + charged
            why = f"the saved arrays of {group} step{'' if group == 1 else 's'} take {show_least(tape)}"
            if charged:
                why = f"{show_least(charged)} are reserved for the gradients of the parameters, and {why}"
            raise too_small(self._memory or 0, least, why, self._strategy) from None
        if not free and self._costs is None:
            made = ask(self._measure(known, arrays, steps, group))
        told.planned(made, steps, group, state, tape, charged, self._memory)
        return made, Sizes(state, adjoint, tape, left), group, tiers

    def _measured_tiers(self, state: int) -> List[OpenTier]:
        """Returns the slow tiers for the planner; each is measured once."""
        if self._slow is None:
            return []
        if state not in self._tiers:
            self._tiers[state] = measured_tiers(self._slow, state, TIMED)
        return self._tiers[state]

    def _measure(self, known: _Known, arrays: List[Leaves], steps: int, group: int
                 ) -> Tuple[float, float, float]:
        """Returns the seconds of a group: the minimum of some runs, without the first one, which compiles it."""
        if group not in known.costs:
            run = Run(known.loop, known.groups, arrays[0], arrays[2], steps, group, 2 in self._argnums)
            times: List[List[float]] = []
            for _ in range(ROUNDS):
                run.out_grads = [jnp.ones_like(x) for x in run.out if inexact(x)]
                adjoint, run.sums = run.ones()
                jax.block_until_ready((adjoint, run.sums, run.out_grads, run.out))
                clock = [time.perf_counter()]
                run.advance(arrays[1], 0, group, False)
                clock.append(time.perf_counter())
                _, tape, _ = run.record(arrays[1], 0, group, False, None)
                clock.append(time.perf_counter())
                run.backward(tape, adjoint, 0, group)
                jax.block_until_ready(run.sums)
                clock.append(time.perf_counter())
                times.append([max(1e-9, later - sooner) for sooner, later in zip(clock, clock[1:])])
            f, r, b = map(min, *times[1:])
            known.costs[group] = f, r, b
        return known.costs[group]

    def _player(self, run: Run, made: Plan, sizes: Sizes, group: int, tiers: List[OpenTier],
                told: Report) -> Player:
        store, places = None, places_of(made).states if tiers else []
        if any(places) and self._slow is not None:
            sizes = sizes._replace(staging=sum(
                tier.raw.staging for tier, count in zip(tiers, places) if count))
            store = Store(self._slow, sizes.state)
            store.format(places)
        return Player(run, made, run.steps, group, sizes, True, told.counts, store)


def value_and_grad(step: Callable[..., Any], loss: Callable[..., Any], *,
                   argnums: Union[int, Sequence[int]] = 0, has_aux: bool = False,
                   memory: Optional[Size] = None, group: Optional[int] = None,
                   strategy: str = "auto", costs: Optional[Sequence[float]] = None,
                   slow: Optional[Paths] = None) -> ValueAndGrad:
    """Returns a function that computes the loss after a loop of steps and its gradients, with a memory budget::

        vg = value_and_grad(step, loss, memory="1G")
        value, gradient = vg(params, state, inputs, *more)

    It replaces ``jax.value_and_grad`` of a loss after ``jax.lax.scan``. Groups of steps are compiled once; a Python
    loop between them follows the plan, so the function cannot be called inside ``jit`` and other transformations. The result
    agrees with ``lax.scan``, and between group sizes, up to rounding, because XLA compiles each size separately. For
    one size, all budgets, strategies and tiers give bit-identical gradients, unless the first group does not show that
    XLA rounds recorded steps differently.

    :param step: ``step(params, state, input)`` returns the next state, or ``(state, output)``: pytrees of arrays. The
        structure, shapes and dtypes of the state do not change.
    :param loss: ``loss(params, last, *more)`` of the last state, or ``loss(params, last, outputs, *more)`` if the step
        has outputs, which are stacked to [T, ...]. Returns a scalar; with ``has_aux`` a pair of it and anything else.
    :param argnums: gradients to return: 0 of ``params``, 1 of the initial state, 2 of ``inputs``, or a tuple of these.
    :param has_aux: True: the loss returns a pair, whose second item is returned unchanged.
    :param memory: bytes for checkpointed states, residuals (tapes) and adjoint, and for two gradients of all
        parameters, such as ``"64M"``; None: no limit. Inputs, outputs and the memory that one group allocates while it
        runs are not included.
    :param group: steps per compiled group; None: as many as fit in 1/8 of the budget, at most 50.
    :param strategy: a name of :func:`neap.strategies`.
    :param costs: seconds of a group (advance, record, backward); None: measured in the first call with a budget.
    :param slow: a directory, ``"mem:4G"``, or a list of them, fastest first: states are offloaded there, overlapped
        with computation. A lost record is recomputed.
    :returns: a :class:`ValueAndGrad`.
    :raises UsageError: if an argument is invalid, the step returns a different kind of state, or the call is inside a
        transformation.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget.

    Exceptions of step and loss are passed on unchanged.
    """
    single = isinstance(argnums, int)
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not numbers or any(n not in (0, 1, 2) for n in numbers):
        raise UsageError(f"argnums={argnums!r} is not valid; pass 0 (params), 1 (state), 2 (inputs) or several of "
                         f"these")
    if group is not None and units.count(group, "group") < 1:
        raise UsageError(f"group={group} is not valid: a group has at least 1 step. Pass 1 or more, or None to let "
                         f"neap choose")
    seconds = None
    if costs is not None:
        f, r, b = costs
        seconds = float(f), float(r), float(b)
    return ValueAndGrad(step, loss, numbers, single, has_aux,
                        None if memory is None else units.size(memory, "memory"), group, strategy,
                        seconds, slow)
