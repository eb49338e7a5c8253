# SPDX-License-Identifier: Apache-2.0
"""The plan of a compiled scan: sizes and a budget in, a table of actions out. Pure; no JAX.

XLA allocates an array for its whole lifetime, so checkpointed states (slots) and the saved residuals of steps (tapes)
are two pools of fixed sizes that cannot share memory over time. Revolve (Griewank and Walther 2000) over groups of
steps uses such pools: all slots, and the tapes of one group. libneap searches the length of the groups, since each row
of the table has a cost (``neap_chain.call``); a single group that fits stores everything.
"""
import dataclasses
import functools
from typing import List, NamedTuple, Optional, Tuple

from ..errors import BudgetError, UsageError, too_small
from ..plans import Plan, plan
from ..show import show_least, show_most
from .action_table import Table, table_of

__all__ = ["NOMINAL", "ROWS", "Costs", "ScanPlan", "Sizes", "planned"]

ROWS = 100_000  # limit of the rows of a table, which is a constant of the compiled program: 2.4 MB (chosen)
TAPES = ("auto", "all", "state")
_SEARCHED = 240  # libneap searches groups if the cost of a call exceeds 1/300 of the seconds per step
_SHRINK = 40  # attempts to find a plan of a named strategy whose pools fit (chosen; 2 or 3 are typical)


class Costs(NamedTuple):
    """Seconds, or relative costs, of one step: forward (``advance``), forward while saving residuals (``record``),
    backward, and of one row of the action table. :func:`neap.jax.measure` returns measured ones."""

    advance: float
    record: float
    backward: float
    row: float


NOMINAL = Costs(1.0, 1.2, 2.0, 0.1)
"""Used while tracing, when nothing can be measured: typical ratios of recurrent cells on a CPU. A row of about 1 us is
0.1 of a short step; for long steps, the groups that this favours are hardly slower."""


class Sizes(NamedTuple):
    """Bytes of a state, of its adjoint, of the residuals of a step, and of gradients that the budget includes."""

    state: int
    adjoint: int
    tape: int
    charged: int


@dataclasses.dataclass(frozen=True, eq=False)  # compared and hashed by identity, as JAX requires of its parameters
class ScanPlan:
    """A plan with its table. ``keeps``: "all", residuals of recorded steps are stored; "state", their states are
    stored and the residuals are recomputed one step at a time. ``group``: steps recorded together; ``peak``: bytes of
    all arrays of the pass, including the ``charged`` ones; ``recomputed``: forward steps in addition to the first pass.
    """

    plan: Plan
    table: Table
    keeps: str
    steps: int
    group: int
    sizes: Sizes
    memory: int
    peak: int
    recomputed: int
    seconds: float


class _Request(NamedTuple):
    steps: int
    sizes: Sizes
    memory: int
    strategy: str
    costs: Costs
    group: Optional[int]
    host: Optional[int]

    def place(self, keeps: str) -> int:
        """Bytes of a place of the pool of recorded steps."""
        return self.sizes.tape if keeps == "all" else self.sizes.state

    def aside(self, keeps: str) -> int:
        """Bytes of arrays that do not depend on the plan: gradients, and the residuals of the current step, which
        every step writes, recorded or not; with "state" also a state that is written likewise."""
        return self.sizes.charged + self.sizes.tape + (self.sizes.state if keeps == "state" else 0)

    def cost(self, keeps: str) -> Costs:
        """Costs of a step; with "state" the backward step begins by recomputing the residuals."""
        c = self.costs
        return c if keeps == "all" else Costs(c.advance, c.advance, c.record + c.backward, c.row)

    def pools(self, table: Table, keeps: str) -> int:
        """Bytes of the arrays of a table with the live state and its adjoint; of slots in host memory, one copy."""
        slots = table.slots if self.host is None else min(1, table.slots)
        return slots * self.sizes.state + table.places * self.place(keeps) + self.sizes.state + self.sizes.adjoint


def _ask(asked: _Request, keeps: str, group: int, memory: int, strategy: str) -> Plan:
    """Returns libneap's plan of groups of ``group`` steps in ``memory`` bytes."""
    costs, count = asked.cost(keeps), -(-asked.steps // group)

    def ask(call: float) -> Plan:
        return plan(count, state=max(1, asked.sizes.state), adjoint=asked.sizes.adjoint,
                    tape=max(1, asked.place(keeps) * group), memory=max(0, memory), strategy=strategy,
                    advance=costs.advance * group, record=costs.record * group, backward=costs.backward * group,
                    call=call, last=((asked.steps - 1) % group + 1) / group, tapes_stay=True)

    made = ask(0 if asked.group else costs.row)
    least = made.seconds / (_SEARCHED * count)
    # libneap tries groups only if calls take more than 1% of the time, but groups also shorten recomputation here.
    return made if asked.group or "group" in made.params or costs.row > least else ask(least)


def _hosted(asked: _Request, keeps: str, least: int, left: int) -> Tuple[Plan, int]:
    """Returns a plan with slots in host memory, and its group: as many steps as fit in fast memory."""
    place, state = max(1, asked.place(keeps)), max(1, asked.sizes.state)
    fixed = 2 * asked.sizes.state + asked.sizes.adjoint
    group = asked.group or max(least, min(asked.steps, (left - fixed) // place))
    if fixed + group * place > left:
        raise BudgetError("", least=fixed + group * place)
    count, slots = -(-asked.steps // group), (asked.host or 0) // state
    if count > 1 and slots < 1:
        raise UsageError(f"host={asked.host} is too small: a state takes {state} bytes. Pass a multiple of it")
    costs = asked.cost(keeps)
    return plan(count, slots=min(slots, count), strategy="revolve", advance=costs.advance * group,
                record=costs.record * group, backward=costs.backward * group), group


def _fitted(asked: _Request, keeps: str, group: int, left: int) -> Tuple[Plan, Table]:
    """Returns the plan of groups of ``group`` steps whose pools fit in ``left`` bytes, and its table."""
    budget = left
    for _ in range(_SHRINK):
        made = _ask(asked, keeps, group, budget, "revolve" if asked.strategy == "auto" else asked.strategy)
        table = table_of(made, asked.steps, group)
        over = asked.pools(table, keeps) - left
        if over <= 0:
            return made, table
        budget -= max(1, over // 2)  # the most slots and the most tapes of this strategy exist at different times
    raise BudgetError(f"memory={show_most(asked.memory)} is too small for strategy={asked.strategy!r} with separate "
                      f"memory for states and residuals. Pass strategy='auto'")


def _one(asked: _Request, keeps: str) -> ScanPlan:
    """Returns the plan that keeps residuals ("all") or states ("state") of recorded steps."""
    left = asked.memory - asked.aside(keeps)
    group = asked.group or -(-2 * asked.steps // ROWS)  # Revolve has at most two rows per group
    if asked.host is None:
        made, table = _fitted(asked, keeps, group, left)
    else:
        made, group = _hosted(asked, keeps, group, left)
        table = table_of(made, asked.steps, group)
    if table.rows > ROWS:
        raise UsageError(f"strategy={asked.strategy!r} with group={group} makes a table of {table.rows} rows; at most "
                         f"{ROWS} are supported. Pass a larger group, or strategy='auto'")
    peak = asked.pools(table, keeps) + asked.aside(keeps)
    return ScanPlan(made, table, keeps, asked.steps, group * made.params.get("group", 1), asked.sizes, asked.memory,
                    peak, _forward(table) - asked.steps + (asked.steps if keeps == "state" else 0), made.seconds)


def _forward(table: Table) -> int:
    """Forward steps of a table."""
    return sum(int((rows[:, 4] - rows[:, 2]).sum()) for rows in (table.forward, table.backward))


def _sufficient(asked: _Request, least: int) -> BudgetError:
    """Returns the error for a budget that needs ``least`` bytes."""
    why = f"the saved residuals of 1 step take {show_least(asked.sizes.tape)}"
    if asked.sizes.charged:
        why = (f"{show_least(asked.sizes.charged)} are reserved for gradients of arrays that the step closes over, and "
               f"{why}")
    return too_small(asked.memory, least, why, "" if asked.strategy == "auto" else asked.strategy)


@functools.lru_cache(maxsize=256)
def planned(steps: int, sizes: Sizes, memory: int, strategy: str = "auto", costs: Costs = NOMINAL,
            group: Optional[int] = None, tape: str = "auto", host: Optional[int] = None) -> ScanPlan:
    """Returns the fastest plan of ``steps`` steps, at least 1, in ``memory`` bytes.

    :param group: steps per group; None: searched.
    :param tape: "all" or "state": :class:`ScanPlan.keeps`; "auto": the faster of these.
    :param host: bytes of host memory for slots, which then are not part of ``memory``.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget.
    :raises UsageError: if the strategy is unknown or cannot be compiled.
    """
    asked = _Request(steps, sizes, memory, strategy, costs, group, host)
    found: List[ScanPlan] = []
    refused: List[int] = []
    for keeps in ("all", "state") if tape == "auto" else (tape,):
        try:
            found.append(_one(asked, keeps))
        except BudgetError as error:
            if not error.least:
                raise
            refused.append(error.least + asked.aside(keeps))
    if not found:
        raise _sufficient(asked, min(refused))
    return min(found, key=lambda one: one.seconds)
