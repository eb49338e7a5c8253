# SPDX-License-Identifier: Apache-2.0
"""The fastest plan for a chain of groups of steps: tapes stay in memory, or travel as far as their graphs have room."""
import contextlib
import sys
from typing import List, NamedTuple, Optional

from ..errors import BudgetError
from ..plans import Plan, plan
from ..problems import Tier
from ..show import show_least
from .places import places_of
from .timing import Costs, Measured

__all__ = ["Chain", "Chosen", "fastest"]

SHARES = (0.1, 0.3, 0.5)  # of the budget, for graphs whose tapes are on tiers


class Chain(NamedTuple):
    """What is planned: steps, those of a group, a strategy, bytes of a state and an adjoint, and the
    budget, without what is reserved (None: no limit)."""

    steps: int
    group: int
    strategy: str
    state: int
    adjoint: int
    left: Optional[int]

    @property
    def groups(self) -> int:
        """How many groups there are; the last may be shorter."""
        return -(-self.steps // self.group)


class Chosen(NamedTuple):
    """A plan, what it counts with, and whether tapes may travel."""

    plan: Plan
    found: Measured
    travels: bool


def _between(stays: Costs, goes: Costs, share: float) -> Costs:
    """Costs of a group, on average, where the tapes of a share of them go to tiers."""
    return Costs(*[a * (1 - share) + b * share for a, b in zip(stays, goes)])


def _with_graphs(error: BudgetError, graphs: int) -> BudgetError:
    """The same error, for a budget that also holds the graphs of all tapes."""
    return BudgetError(str(error), least=max(error.least + graphs, int(graphs / max(SHARES)) + 1) if error.least else 0)


def _made(chain: Chain, found: Measured, left: Optional[int], tiers: List[Tier], stay: bool) -> Plan:
    """The plan for groups of these costs within ``left`` bytes."""
    return plan(chain.groups, state=chain.state, adjoint=chain.adjoint, tape=max(1, found.tape),
                memory=None if left is None else max(0, left), strategy=chain.strategy, advance=found.costs.advance,
                record=found.costs.record, backward=found.costs.backward, slow=tiers or None,
                last=((chain.steps - 1) % chain.group + 1) / chain.group, tapes_stay=stay)


def fastest(chain: Chain, tiers: List[Tier], stays: Optional[Measured], goes: Optional[Measured]) -> Chosen:
    """The fastest of the plans that send states alone, and tapes as well. A tape on a tier
    leaves its graph in memory: as many are offloaded as have graphs that fit in addition to the plan.

    :param stays: a group whose tape stays in memory; None: all do, without a budget. :param goes: one
        whose tape can travel; None: none can.
    :raises BudgetError: if no plan fits; ``least`` may still be too small for a plan that sends tapes.
    """
    left = chain.left
    if stays is None:
        found = Measured(0, Costs(1, 1, 2))
        return Chosen(_made(chain._replace(strategy="bptt"), found, None, [], True), found, False)
    plans: List[Chosen] = []
    failed: Optional[BudgetError] = None
    try:
        plans.append(Chosen(_made(chain, stays, left, tiers, True), stays, False))
    except BudgetError as error:
        failed = error
    if goes is not None:
        goes = found = goes._replace(tape=max(stays.tape, goes.tape), spare=max(stays.spare, goes.spare))
        groups, graph = chain.groups, max(1, found.graph)
        for share in SHARES if left is not None and left > 0 else ():
            sent = min(groups, int(share * left) // graph)
            found = found._replace(costs=_between(stays.costs, goes.costs, sent / groups))
            bounded = [tier.bounded(sent * found.tape // len(tiers), goes.moving) for tier in tiers]
            with contextlib.suppress(BudgetError):
                plans.append(_sending(_made(chain, found, left - sent * graph, bounded, False), found, left))
        if not plans:
            try:
                bounded = [tier.bounded(None, goes.moving) for tier in tiers]
                plans.append(_sending(_made(chain, goes, left, bounded, False), goes, left))
            except BudgetError as error:
                failed = min((one for one in (failed, _with_graphs(error, groups * graph)) if one is not None),
                             key=lambda one: one.least or sys.maxsize)
    if not plans:
        assert failed is not None
        raise failed
    return min(plans, key=lambda one: one.plan.seconds)


def _sending(made: Plan, found: Measured, left: Optional[int]) -> Chosen:
    """A plan that offloads tapes; BudgetError if their graphs do not fit in addition to it."""
    graphs = places_of(made).away * found.graph
    if left is not None and made.peak + graphs > left:
        raise BudgetError(f"strategy {made.strategy!r}: the graphs of offloaded tapes take {show_least(graphs)} in "
                          f"addition to the {show_least(made.peak)} of the plan, more than the budget. Increase memory",
                          least=made.peak + graphs)
    return Chosen(made, found, True)
