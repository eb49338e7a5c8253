# SPDX-License-Identifier: Apache-2.0
"""The plan of a scan: a function of the arguments of a call, of what is known about its step, and of the slow tiers of the
machine. Pure: no framework, clock or file.

A group is as large as the budget allows; if no plan fits, it is halved until one does or it is a single step.
"""
import functools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .backends import Sizes
from .errors import BudgetError, too_small
from .group_plans import Chain, Chosen, Measured, differs, fastest, through_host
from .places import Places, places_of
from .show import show_least
from .stores import OpenTier

__all__ = ["Asked", "Choice", "Facts", "Machine", "choose", "enough", "graph_of_a_step", "halved", "planned"]

GROUP = 20  # steps per graph, unless the budget requires fewer: 3% slower than plain autograd
COMPILED = 8  # steps per compiled graph: compilers take 1 to 3 s per step of a group (measured for RNN, LIF and GRU cells)
LARGER = 40  # candidates for error.least, each 1/8 larger: the last is 100 times the first
SHARE = 8  # the tape of a group is at most 1/SHARE of the budget

Machine = Callable[[int], List[OpenTier]]  # from the bytes of a state on a tier to the slow tiers, fastest first


class Asked(NamedTuple):
    """The arguments of a call that its plan depends on. ``host``: bytes of host memory, tier 1; ``slow``: the other
    tiers as text; ``compiled``: groups are compiled; ``most``: largest group, unless ``group`` is given."""

    steps: int
    memory: Optional[int]
    strategy: str = "auto"
    group: Optional[int] = None
    strict: bool = True
    host: Optional[int] = None
    slow: Optional[str] = None
    compiled: bool = False
    most: int = GROUP

    def free(self, left: Optional[int]) -> bool:
        """True if everything stays in memory, so nothing is measured."""
        return left is None and self.strategy in ("auto", "bptt")


class Facts:
    """What is known about a step. Groups are measured when they are first asked for.

    ``record``: bytes of a state on a tier; ``adjoint``: bytes of the adjoint of the first state; ``gradients``: bytes
    reserved for the gradients of parameters; ``grad``: advanced steps record graphs; ``walk``: tapes cannot be offloaded;
    ``inputs``: the shapes of inputs, and ``reserve``: the use of ``aside``, for errors; ``plans``: plans of earlier calls.
    """

    record = 1
    adjoint = gradients = 0
    grad = walk = False
    inputs = reserve = ""

    def __init__(self, plans: Optional[Dict[Any, Tuple[Chosen, Places]]] = None):
        self.plans = {} if plans is None else plans

    def aside(self, group: int) -> int:
        """Returns the bytes that groups of this size need in addition to a plan."""
        return 0

    def group(self, group: int, offloaded: bool = False, timed: bool = True) -> Measured:
        """Returns the measurements of a group whose tape stays in memory or (``offloaded``) can be offloaded; without
        its costs if ``timed`` is False."""
        raise NotImplementedError

    def every(self, group: int) -> Measured:
        """Returns the measurements of a group, and the bytes of all states and tapes."""
        raise NotImplementedError

    def largest(self, sizes: Sizes, offloaded: bool, stored: bool) -> int:
        """Returns the largest number of bytes that a single step needs, in a plan of these sizes that offloads tapes
        (``offloaded``) or uses tiers (``stored``)."""
        raise NotImplementedError


class Choice(NamedTuple):
    """The plan of a call: steps per group, planned sizes, places on tiers, bytes of a state on a tier, and bytes of the
    budget that are not part of the plan: ``charged`` for gradients of parameters, ``aside`` for groups (``Facts.aside``),
    for the use ``reserve``.
    """

    group: int
    sizes: Sizes
    chosen: Chosen
    places: Places
    record: int
    charged: int = 0
    aside: int = 0
    reserve: str = ""

    @property
    def graphs(self) -> int:
        """The most bytes of graphs of offloaded tapes."""
        return self.places.away * self.chosen.found.graph

    @property
    def peak(self) -> int:
        """The most bytes of states, tapes, adjoint and graphs of offloaded tapes."""
        return self.chosen.plan.peak + self.graphs + self.chosen.apart

    @property
    def stored(self) -> bool:
        """True if the plan uses tiers."""
        return any(self.places.used)


def planned(asked: Asked, facts: Facts, machine: Machine) -> Choice:
    """Returns the fastest plan of a call in its budget.

    :raises BudgetError: with ``least``, a budget for which a plan was found.
    """
    charged = facts.gradients
    if facts.grad and asked.memory is not None and not asked.compiled:
        charged += graph_of_a_step(asked, facts)
    try:
        found = choose(asked, facts, machine, None if asked.memory is None else asked.memory - charged)
    except BudgetError as error:
        raise _too_small(asked, facts, machine, error, charged) from None
    return found._replace(charged=charged)


def graph_of_a_step(asked: Asked, facts: Facts) -> int:
    """Returns the bytes of the tape of one step, the largest if states grow."""
    one = facts.group(1, timed=False)
    every = facts.every(1).tapes if differs(asked.strategy, one) else ()
    return max(1, one.tape, *every)


def choose(asked: Asked, facts: Facts, machine: Machine, left: Optional[int]) -> Choice:
    """Returns the fastest plan in ``left`` bytes (None: no limit).

    :raises BudgetError: if no plan fits; ``least`` may be too small.
    """
    def attempt(group: int) -> Choice:
        if asked.compiled and not asked.free(left):
            _chosen(asked, facts, machine, group, left, timed=False)  # raises before a group is compiled
        return _chosen(asked, facts, machine, group, left)
    return halved(min(_first_group(asked, facts, left), asked.steps), asked.group is not None, attempt)


def halved(group: int, fixed: bool, attempt: Callable[[int], Any]) -> Any:
    """Returns ``attempt(group)`` for the first group that fits, which is halved unless it is ``fixed``."""
    while True:
        try:
            return attempt(group)
        except BudgetError:
            if group == 1 or fixed:
                raise
            group //= 2


def _first_group(asked: Asked, facts: Facts, left: Optional[int]) -> int:
    """Returns the requested steps per group, or the most that the budget allows."""
    if asked.group is not None:
        return asked.group
    group = most = min(COMPILED, asked.steps) if asked.compiled else asked.most
    if left is not None:
        group = max(1, min(most, max(0, left) // SHARE // graph_of_a_step(asked, facts)))
    return _dividing(asked.steps, group) if asked.compiled else group


def _dividing(steps: int, most: int) -> int:
    """Returns the steps per compiled group: the largest divisor of ``steps`` up to ``most``, unless it is less than half of
    it; a last group of another size would be compiled in addition."""
    found = max(size for size in range(1, most + 1) if steps % size == 0)
    return found if 2 * found >= most else most


def _chosen(asked: Asked, facts: Facts, machine: Machine, group: int, left: Optional[int], timed: bool = True) -> Choice:
    """Returns the fastest plan for ``group`` steps per graph."""
    free = asked.free(left)
    aside = 0 if free else facts.aside(group)
    left = None if left is None else left - aside
    stays = None if free else facts.group(group, timed=timed)
    state, adjoint = (stays.state, stays.adjoint) if stays else (facts.record, facts.adjoint)
    chain = Chain(asked.steps, group, asked.strategy, max(1, state), adjoint, left)
    tiers = [] if free else machine(facts.record)
    key = chain, asked.slow, asked.host, stays
    if key not in facts.plans:
        goes = facts.group(group, True, timed) if tiers and not facts.walk else None
        given = chain, tiers, stays, goes, functools.partial(facts.every, group)
        both = tiers and asked.host is not None and asked.slow is not None
        try:
            made = through_host(*given, asked.host, facts.record) if both else fastest(*given)  # type: ignore[arg-type]
        except BudgetError as error:
            error.least += aside if error.least else 0
            raise
        facts.plans[key] = made, places_of(made.plan)
    made, places = facts.plans[key]
    staging = sum(tier.spec().staging for tier, used in zip(tiers, places.used) if used)
    sizes = Sizes(chain.state, made.found.adjoint if stays else adjoint, max(1, made.found.tape),
                  None if free else left, staging, made.found.graph)
    return Choice(group, sizes, made, places, facts.record, aside=aside, reserve=facts.reserve)


def enough(asked: Asked, facts: Facts, machine: Machine, least: int) -> Tuple[int, int]:
    """Returns the steps per group, and a number of bytes from ``least`` on, for which there is a plan in which each step
    fits; zeros if none is found. A planner's own bound is for one kind of plan and for steps that all equal the first
    ones; and groups, planned sizes and tiers change with the budget."""
    fits: Dict[Any, int] = {}
    for _ in range(LARGER if least else 0):
        try:
            found = choose(asked, facts, machine, least)
        except BudgetError as error:
            least = max(least + least // 8 + 1, error.least)
            continue
        sizes, offloaded = found.sizes, found.chosen.travels
        key = sizes.state, sizes.adjoint, sizes.staging, offloaded, found.stored, found.aside
        if asked.strict and key not in fits:
            fits[key] = sizes.state + sizes.adjoint + sizes.tape + sizes.staging if asked.compiled else \
                facts.largest(sizes, offloaded, found.stored)
        if fits.get(key, 0) + found.aside <= least:
            return found.group, least
        least = fits[key] + found.aside
    return 0, 0


def _too_small(asked: Asked, facts: Facts, machine: Machine, error: BudgetError, charged: int) -> BudgetError:
    """Returns the error of the planner, for the whole budget."""
    group, least = enough(asked, facts, machine, error.least)
    if not group:
        return error
    why = f"the saved tensors of {group} step{'' if group == 1 else 's'} take {show_least(facts.group(group).tape)}"
    if asked.strategy == "bptt":
        why += f", and 'bptt' stores the saved tensors of all {asked.steps} steps"
    elif group > 1 and asked.group is not None:
        why += f" (group={group}; a smaller group needs less)"
    aside = facts.aside(group)
    if aside and facts.reserve:
        why = f"{show_least(aside)} for {facts.reserve}, and {why}"
    if charged:
        more = " and the graph of one step" if facts.grad else ""
        why = f"{show_least(charged)} are reserved for the gradients of the parameters{more}, and {why}"
    return too_small(asked.memory or 0, least + charged, why + facts.inputs, asked.strategy)
