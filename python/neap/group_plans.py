# SPDX-License-Identifier: Apache-2.0
"""The fastest plan for a chain of groups of steps: tapes stay in memory, or are offloaded if their graphs fit; or for
groups of different sizes."""
import contextlib
import sys
import warnings
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from .errors import BudgetError, stack_level
from .places import places_of
from .plans import Plan, plan
from .problems import INFINITE, Stages
from .show import show_least
from .stores import ROOMS, OpenTier

__all__ = ["Chain", "Chosen", "Costs", "Measured", "differs", "fastest", "through_host"]

SHARES = (0.1, 0.3, 0.5)  # fractions of the budget for the graphs of offloaded tapes


class Costs(NamedTuple):
    """Seconds of a group of steps."""

    advance: float
    record: float
    backward: float


class Measured(NamedTuple):
    """Measurements of a group: bytes of its tape, its costs, bytes of graphs that it drops; bytes of its own graph,
    which stay in memory if the tape is offloaded, and seconds of computation per byte of such a tape, in each
    direction; bytes of a state and of its adjoint, and whether the size of states changes from group to group; with
    ``every``, the bytes of all states and of all tapes. ``fixed``: the places of the parts of the state that the steps
    return unchanged, ``once``: their bytes, which states and tapes do not include, and ``apart``: the bytes of their
    adjoints, which ``adjoint`` includes."""

    tape: int
    costs: Costs
    spare: int = 0
    graph: int = 0
    moving: float = 0.0
    state: int = 0
    adjoint: int = 0
    grows: bool = False
    states: Tuple[int, ...] = ()
    tapes: Tuple[int, ...] = ()
    fixed: Tuple[int, ...] = ()
    once: int = 0
    apart: int = 0


class Chain(NamedTuple):
    """The planning problem: steps, steps per group, strategy, bytes of a state and an adjoint, and the budget without
    its reserved part (None: no limit)."""

    steps: int
    group: int
    strategy: str
    state: int
    adjoint: int
    left: Optional[int]

    @property
    def groups(self) -> int:
        """The number of groups; the last may be shorter."""
        return -(-self.steps // self.group)


class Chosen(NamedTuple):
    """A plan, the measurements it is based on, and whether tapes may be offloaded. ``actions``: of the plan, stored if
    generating them takes long. ``spill``: its first tier is host memory and the first tier of files. ``apart``: bytes of
    adjoints that are not part of the plan."""

    plan: Plan
    found: Measured
    travels: bool
    actions: Sequence[Any] = ()
    spill: bool = False
    apart: int = 0


def _between(stays: Costs, goes: Costs, share: float) -> Costs:
    """Returns the mean costs of a group if the tapes of a fraction ``share`` are offloaded."""
    return Costs(*[a * (1 - share) + b * share for a, b in zip(stays, goes)])


def _with_graphs(error: BudgetError, graphs: int) -> BudgetError:
    """Returns the error for a budget that also includes the graphs of all tapes."""
    return BudgetError(str(error), least=max(error.least + graphs, int(graphs / max(SHARES)) + 1) if error.least else 0)


def _made(chain: Chain, found: Measured, left: Optional[int], tiers: List[OpenTier], stay: bool) -> Plan:
    """Plans for groups with these costs in ``left`` bytes."""
    return plan(chain.groups, state=chain.state, adjoint=chain.adjoint, tape=max(1, found.tape),
                memory=None if left is None else max(0, left), strategy=chain.strategy, advance=found.costs.advance,
                record=found.costs.record, backward=found.costs.backward, slow=tiers or None,
                last=((chain.steps - 1) % chain.group + 1) / chain.group, tapes_stay=stay)


def differs(strategy: str, found: Measured) -> bool:
    """True if groups are planned with the size of each: because their states grow, or with the strategy ``chain``."""
    return strategy == "chain" or strategy == "auto" and found.grows


def _unequal(chain: Chain, found: Measured, every: Measured) -> Chosen:
    """Returns the plan for groups of the sizes ``every``. The seconds ``found.costs`` are scaled by the bytes of tapes:
    in examples/python/long_context.py (hybrid), a cache of 16 and 64 chunks makes steps 1.6 and 2.7 times slower than
    an empty one, and their tapes 1.6 and 3.5 times larger. No adjoint is planned, because the plan counts the gradient
    of a state with the bytes of the state, except for parts that states do not include."""
    shares = [tape / max(1, found.tape) for tape in every.tapes]
    advance, record, backward = [[cost * share for share in shares] for cost in found.costs]
    stages = Stages(state=[max(chain.state, nbytes) for nbytes in every.states], tape=every.tapes, advance=advance,
                    record=record, backward=[*backward, 0])
    try:
        made = plan(stages=stages, memory=None if chain.left is None else max(0, chain.left - found.apart),
                    strategy=chain.strategy)
    except BudgetError as error:
        error.least += found.apart if error.least else 0
        raise
    return Chosen(made, found._replace(tape=max(every.tapes), state=max(every.states), adjoint=found.apart,
                                       spare=max(found.spare, every.spare)), False, list(made), apart=found.apart)


def fastest(chain: Chain, tiers: List[OpenTier], stays: Optional[Measured], goes: Optional[Measured],
            every: Callable[[], Measured]) -> Chosen:
    """Returns the fastest plan, with and without offloaded tapes. The graph of an offloaded tape stays in memory: as
    many tapes are offloaded as have graphs that fit in addition to the plan. The graphs of an accelerator's tapes are
    in the memory of the CPU.

    :param stays: measurements of a group whose tape stays in memory; None: no budget, so all tapes stay.
    :param goes: measurements of a group whose tape can be offloaded; None: no tape can be.
    :param every: measures all groups; called if they differ. If the budget is too small for that plan, the plan is for
        equal groups, and the player makes room if they are larger. If it is too small for this plan as well, states are
        offloaded as long as they have the shape of the first one, and others are recomputed.
    :raises BudgetError: if no plan fits; ``least`` may be too small for a plan that offloads tapes.
    """
    left = chain.left
    if stays is None:
        found = Measured(0, Costs(1, 1, 2))
        return Chosen(_made(chain._replace(strategy="bptt"), found, None, [], True), found, False)
    if differs(chain.strategy, stays):
        if tiers and stays.grows:
            warnings.warn("slow= or host= has no effect: the size of the state changes from step to step, and only "
                          "states of the same shape can be offloaded. Pad the state, or remove slow= and host=",
                          RuntimeWarning, stacklevel=stack_level())
        try:
            return _unequal(chain, stays, every())
        except BudgetError:
            if chain.strategy == "chain":
                raise
        with contextlib.suppress(BudgetError):
            return Chosen(_made(chain, stays, left, [], True), stays, False)
        goes = None
    plans: List[Chosen] = []
    failed: Optional[BudgetError] = None
    try:
        plans.append(Chosen(_made(chain, stays, left, tiers, True), stays, False))
    except BudgetError as error:
        failed = error
    if goes is not None:
        goes = found = goes._replace(tape=max(stays.tape, goes.tape), spare=max(stays.spare, goes.spare))
        groups, graph = chain.groups, found.graph
        for share in SHARES if graph and left is not None and left > 0 else ():
            sent = min(groups, int(share * left) // graph)
            found = found._replace(costs=_between(stays.costs, goes.costs, sent / groups))
            bounded = [tier.bounded(sent * found.tape // len(tiers), goes.moving) for tier in tiers]
            with contextlib.suppress(BudgetError):
                plans.append(_sending(_made(chain, found, left - sent * graph, bounded, False), found, left))
        if not plans or not graph:
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


def through_host(chain: Chain, tiers: List[OpenTier], stays: Optional[Measured], goes: Optional[Measured],
                 every: Callable[[], Measured], host: int, record: int) -> Chosen:
    """Returns the fastest plan for host memory of ``host`` bytes, the first tier, and files. Plans put all tapes on
    one tier, so host memory together with the first tier of files is also a tier, which has the mean of their rates.

    :param record: bytes of a state on a tier. Some of the host memory is for records on their way to files.
    """
    tape = goes.tape if goes else 0
    left = max(1, host - ROOMS * max(record, tape))
    tiers = [tiers[0].bounded(left, 0.0), *tiers[1:]]
    found, failed = [], None
    share = 1 - left / max(1, chain.groups * tape)
    # Of equally fast plans the first is used, which writes less to files.
    for spill, rows in ((True, [spilled(*tiers[:2], share), *tiers[2:]] if share > 0 else []), (False, tiers)):
        try:
            if rows:
                found.append(fastest(chain, rows, stays, goes, every)._replace(spill=spill))
        except BudgetError as error:
            failed = error if failed is None or error.least < failed.least else failed
    if not found:
        assert failed is not None
        raise failed
    return min(found, key=lambda one: one.plan.seconds)


def spilled(host: OpenTier, files: OpenTier, share: float) -> OpenTier:
    """Returns host memory and files as one tier, of which every ``share``-th record goes to a file: both are written
    and read at the same time."""
    found = host.bounded(None, 0.0)
    raw, a, b = found.raw, host.raw, files.raw
    raw.write_rate, raw.read_rate = min(a.write_rate, b.write_rate / share), min(a.read_rate, b.read_rate / share)
    for name in ("write_fixed", "read_fixed", "cpu", "cpu_fixed"):
        setattr(raw, name, (1 - share) * getattr(a, name) + share * getattr(b, name))
    raw.capacity = min(INFINITE, a.capacity + b.capacity)
    raw.flags = a.flags & b.flags
    return found


def _sending(made: Plan, found: Measured, left: Optional[int]) -> Chosen:
    """Returns a plan that offloads tapes; raises BudgetError if their graphs do not fit in addition to it."""
    graphs = places_of(made).away * found.graph
    if left is not None and made.peak + graphs > left:
        raise BudgetError(f"strategy {made.strategy!r}: the graphs of offloaded tapes take {show_least(graphs)} in "
                          f"addition to the {show_least(made.peak)} of the plan, more than the budget. Increase memory",
                          least=made.peak + graphs)
    return Chosen(made, found, True)
