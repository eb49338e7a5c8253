# SPDX-License-Identifier: Apache-2.0
"""The forward and backward pass of a scan as compiled loops over the rows of an action table.

Slots, tapes and recorded states are carried arrays, which XLA updates in place. All steps that run forward, recorded or
not, are one loop whose body saves the residuals: if a step is not recorded, they go to a spare row. The same
compiled body for both makes gradients bit-identical over all plans.

The bounds of the loops come from the table, so the size and the compile time of the program do not depend on the
number of steps. With ``static``, steps run in inner loops of one known length, a group, which XLA can unroll; the
program then depends on the length of the group, and so may rounding.
"""
from typing import Any, Callable, Dict, List, NamedTuple, Tuple, Union

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .action_table import COLUMNS, Table
from .leaves import Leaves, join, zeros
from .planning import ScanPlan
from .residuals import Residuals

__all__ = ["Loops", "Result", "get", "put"]

Row = Dict[str, Any]
Bound = Union[int, jax.Array]


class Kept(NamedTuple):
    """The arrays that the forward pass leaves for the backward pass. ``states``: of recorded steps, if those are kept
    instead of tapes; ``once``: residuals that no step changes."""

    consts: Leaves
    xs: Leaves
    live: Leaves
    slots: Leaves
    tapes: Leaves
    states: Leaves
    once: Leaves


class Result(NamedTuple):
    """Gradients of constants, initial carry and xs; None for arrays without one."""

    consts: Leaves
    carry: Leaves
    xs: Leaves


_IDLE = (-1, -1, 0, 0, 0, 0)  # a row without actions


def _row(values: Any) -> Row:
    return dict(zip(COLUMNS, values))


def put(arrays: Leaves, rows: Leaves, i: Any) -> Leaves:
    """Returns the arrays with row ``i`` replaced."""
    return [lax.dynamic_update_index_in_dim(a, row, i, 0) for a, row in zip(arrays, rows)]


def get(arrays: Leaves, i: Any) -> Leaves:
    """Returns row ``i`` of each array."""
    return [lax.dynamic_index_in_dim(a, i, 0, keepdims=False) for a in arrays]


def _once(condition: Any, body: Callable[[Leaves], Leaves], carry: Leaves) -> Leaves:
    """Runs ``body`` if the condition holds: a loop of at most one turn, in which XLA updates arrays in place (the
    branches of ``lax.cond`` copy them)."""
    return lax.fori_loop(0, jnp.asarray(condition, jnp.int32), lambda _, c: body(c), carry)


class Loops:
    """The two passes of one scan, as a function of its plan."""

    def __init__(self, residuals: Residuals, made: ScanPlan, reverse: bool, static: bool, unroll: int, host: bool):
        self.residuals, self.step, self.steps = residuals, residuals.step, made.steps
        self.reverse, self.unroll, self.host = reverse, unroll, host
        self.states = made.keeps == "state"
        self.places, self.slots = made.table.places, max(1, made.table.slots)
        self.group = made.group if static else 0
        self.table, self.tail = _without_tail(made.table) if static else (made.table, None)

    def _at(self, t: Any) -> Any:
        return self.steps - 1 - t if self.reverse else t

    def _range(self, begin: Bound, end: Bound, body: Callable[..., Any], carry: Any) -> Any:
        """A loop over steps; with ``static`` a loop over groups, except for a range of known length."""
        if isinstance(begin, int) and isinstance(end, int):
            return lax.fori_loop(begin, end, body, carry, unroll=max(1, min(self.unroll, end - begin))) \
                if end > begin else carry
        if not self.group:
            return lax.fori_loop(begin, end, body, carry)
        k = self.group
        return lax.fori_loop(begin // k, end // k, lambda g, c: lax.fori_loop(
            0, k, lambda i, c: body(g * k + i, c), c, unroll=min(self.unroll, k)), carry)

    # States in slots

    def _slots(self) -> Leaves:
        empty = zeros(self.step.carry, self.slots)
        return [jax.device_put(x, jax.memory.Space.Host) for x in empty] if self.host else empty

    def _move(self, r: Row, live: Leaves, slots: Leaves) -> Tuple[Leaves, Leaves]:
        """Loads the live state and saves it, if the row specifies it."""
        def load(_: Leaves) -> Leaves:
            found = get(slots, r["load"])
            return [jax.device_put(x, jax.memory.Space.Device) for x in found] if self.host else found

        def save(slots: Leaves) -> Leaves:
            rows = [jax.device_put(x, jax.memory.Space.Host) for x in live] if self.host else live
            return put(slots, rows, r["save"])

        live = _once(r["load"] >= 0, load, live)
        return live, _once(r["save"] >= 0, save, slots)

    # Steps

    def _record(self, kept: Kept, live: Leaves, t: Any) -> Tuple[Leaves, Leaves, Leaves]:
        return self.residuals.record(kept.consts, live, get(kept.xs, self._at(t)))

    def _forward_steps(self, r: Row, kept: Kept, outputs: Leaves) -> Tuple[Kept, Leaves]:
        """Runs the steps of a row, the last ones recorded. ``outputs``: [] after the loss."""
        def body(t: Any, c: Any) -> Any:
            live, tapes, states, outputs = c
            after, out, tape = self._record(kept, live, t)
            place = jnp.where(t >= r["first"], t - r["first"], self.places)
            tapes = put(tapes, tape, 0 if self.states else place)
            states = put(states, live, place)
            return after, tapes, states, put(outputs, out, self._at(t))

        live, tapes, states, outputs = self._range(
            r["begin"], r["end"], body, (kept.live, kept.tapes, kept.states, outputs))
        return kept._replace(live=live, tapes=tapes, states=states), outputs

    def _backward_steps(self, r: Row, kept: Kept, sums: Any, cotangents: Leaves) -> Tuple[Kept, Any]:
        """Reverses the steps of a row."""
        def body(k: Any, c: Any) -> Any:
            tapes, (adjoint, terms, dxs) = c
            t = r["end"] - 1 - k
            place = t - r["first"]
            if self.states:
                # A loop, so that XLA compiles this step as it compiles recorded ones.
                tapes = _once(r["back"] < r["end"], lambda tapes: put(
                    tapes, self._record(kept, get(kept.states, place), t)[2], 0), tapes)
            tape = get(tapes, 0 if self.states else place)
            row = get(kept.xs, self._at(t))
            given = [jnp.zeros(x.shape[1:], x.dtype) if isinstance(x, SymbolicZero) else get([x], self._at(t))[0]
                     for x in cotangents]
            found, adjoint, dx = self.residuals.backward(kept.consts, kept.once, row, tape, adjoint, given)
            return tapes, (adjoint, [a + b for a, b in zip(terms, found)], put(dxs, dx, self._at(t)))

        zero = 0 if isinstance(r["end"], int) else jnp.int32(0)
        tapes, sums = self._range(zero, r["end"] - r["back"], body, (kept.tapes, sums))
        return kept._replace(tapes=tapes), sums

    # Passes

    def _rows(self, table: Any, body: Callable[[Row, Any], Any], carry: Any) -> Any:
        if not len(table):  # an empty array cannot be indexed, not even in a loop without turns
            return carry
        # XLA would inline a loop of one turn, and then fuse and round its steps differently.
        rows = jnp.concatenate([jnp.asarray(table), jnp.array([_IDLE], jnp.int32)])
        return lax.fori_loop(0, len(rows), lambda i, c: body(_row(rows[i]), c), carry)

    def forward(self, consts: Leaves, carry: Leaves, xs: Leaves) -> Tuple[Leaves, Leaves, Kept]:
        """Returns the last carry, the outputs, and what the backward pass needs."""
        tape = self.residuals.tape
        start = Kept(consts, xs, carry, self._slots(), zeros(tape, 1 if self.states else self.places + 1),
                     zeros(self.step.carry, self.places + 1) if self.states else [], [])

        def body(r: Row, c: Any) -> Any:
            (live, slots, tapes, states), outputs = c
            live, slots = self._move(r, live, slots)
            kept, outputs = self._forward_steps(
                r, start._replace(live=live, slots=slots, tapes=tapes, states=states), outputs)
            return (kept.live, kept.slots, kept.tapes, kept.states), outputs

        found, outputs = self._rows(self.table.forward, body, (start[2:6], zeros(self.step.outputs, self.steps)))
        kept = Kept(consts, xs, *found, self.residuals.once(consts, [x[0] for x in xs]))
        if self.tail:
            kept, outputs = self._forward_steps(self.tail, kept, outputs)
        return kept.live, outputs, kept

    def backward(self, kept: Kept, last: List[Any], outputs: List[Any]) -> Result:
        """Returns the gradients, given the cotangents of the last carry and of the outputs (or symbolic zeros)."""
        rule = self.residuals
        adjoint = [jnp.zeros(a.shape, a.dtype) if isinstance(a, SymbolicZero) else a
                   for a, m in zip(last, rule.moving) if m]
        cotangents = [a for a, m in zip(outputs, rule.emitted) if m]
        sums = (adjoint, zeros([a for a, m in zip(kept.consts, rule.wanted) if m]),
                zeros([a for a, m in zip(kept.xs, rule.wanted_rows) if m]))

        def body(r: Row, c: Any) -> Any:
            (live, slots, tapes, states), sums = c
            live, slots = self._move(r, live, slots)
            now, _ = self._forward_steps(r, kept._replace(live=live, slots=slots, tapes=tapes, states=states), [])
            now, sums = self._backward_steps(r, now, sums, cotangents)
            return (now.live, now.slots, now.tapes, now.states), sums

        if self.tail:
            kept, sums = self._backward_steps(self.tail, kept, sums, cotangents)
        _, (adjoint, terms, dxs) = self._rows(self.table.backward, body, (kept[2:6], sums))

        def filled(mask: List[bool], some: Leaves) -> Leaves:
            return join(mask, some, [None] * (len(mask) - sum(mask)))
        return Result(filled(rule.wanted, terms), filled(rule.moving, adjoint), filled(rule.wanted_rows, dxs))


def _without_tail(table: Table) -> Tuple[Table, Row]:
    """Splits off the steps recorded last and reversed first, whose group may be shorter: the other ranges of a plan of
    groups are whole groups. Returns the rest of the table, and a row of Python integers."""
    forward, first = table.forward.copy(), _row(int(v) for v in table.backward[0])
    tail = _row(int(v) for v in forward[-1])
    forward[-1, 4:] = forward[-1, 3]
    tail.update(load=-1, save=-1, begin=tail["first"], back=first["back"])
    return table._replace(forward=forward, backward=table.backward[1:]), tail
