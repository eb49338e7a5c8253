# SPDX-License-Identifier: Apache-2.0
"""The vjp of one step, traced once, with its residuals sorted by their source.

A residual is an argument of the step itself (an array that it closes over, or its row of xs), depends only on arrays
that no step changes (computed once), or is part of the tape of a step, which is stored for each recorded step. The
bytes of a tape are therefore known exactly before anything is compiled.
"""
from typing import Any, List, Sequence, Tuple

import jax
from jax.extend.core import Literal, jaxpr_as_fun

from .leaves import Leaves, Mask, inexact, join, split, structs, zeros
from .structure import Step

__all__ = ["Residuals"]


class Residuals:
    """Records and reverses single steps.

    :param wanted: the constants of the step that need a gradient.
    :param wanted_rows: the arrays of xs that need a gradient.

    ``tape``: shapes of the residuals that a recorded step stores; ``moving``: the leaves of the carry that have an
    adjoint; ``emitted``: the outputs that have one.
    """

    def __init__(self, step: Step, consts: Sequence[Any], rows: Sequence[Any], wanted: Mask, wanted_rows: Mask):
        self.step, self.wanted, self.wanted_rows = step, wanted, wanted_rows
        self.moving = [inexact(x) for x in step.carry]
        self.emitted = [inexact(y) for y in step.outputs]
        self._closed = jax.make_jaxpr(self._trace)(structs(consts), step.carry, rows)
        self._sort(len(consts))

    def _trace(self, consts: Leaves, carry: Leaves, row: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        """Runs a step; returns carry, outputs and residuals. Sets the structure of the vjp."""
        some, others = split(consts, self.wanted)
        moved, unmoved = split(carry, self.moving)
        seen, unseen = split(row, self.wanted_rows)

        def f(some: Leaves, moved: Leaves, seen: Leaves) -> Any:
            after, out = self.step(join(self.wanted, some, others), join(self.moving, moved, unmoved),
                                   join(self.wanted_rows, seen, unseen))
            (last, last_others), (emitted, quiet) = split(after, self.moving), split(out, self.emitted)
            return (last, emitted), (last_others, quiet)

        (last, emitted), vjp, (last_others, quiet) = jax.vjp(f, some, moved, seen, has_aux=True)
        leaves, self._tree = jax.tree.flatten(vjp)
        return join(self.moving, last, last_others), join(self.emitted, emitted, quiet), leaves

    def _sort(self, nconsts: int) -> None:
        """Finds the source of each residual: ("const" | "row" | "own" | "once" | "tape", index), or a literal."""
        jaxpr, ncarry = self._closed.jaxpr, self.step.ncarry
        source = {v: ("const", i) for i, v in enumerate(jaxpr.invars[:nconsts])}
        source.update((v, ("row", i)) for i, v in enumerate(jaxpr.invars[nconsts + ncarry:]))
        source.update((v, ("own", i)) for i, v in enumerate(jaxpr.constvars))
        changing = set(jaxpr.invars[nconsts:])
        for eqn in jaxpr.eqns:
            if eqn.effects or any(not isinstance(v, Literal) and v in changing for v in eqn.invars):
                changing.update(eqn.outvars)
        self._sources: List[Tuple[str, Any]] = []
        self._kept: List[int] = []
        self._once: List[int] = []
        ends = jaxpr.outvars[ncarry + len(self.step.outputs):]
        for i, end in enumerate(ends):
            if isinstance(end, Literal):
                self._sources.append(("literal", end.val))
                continue
            if end not in source:
                name, indices = ("tape", self._kept) if end in changing else ("once", self._once)
                source[end] = name, len(indices)
                indices.append(i)
            self._sources.append(source[end])
        self.tape = structs([ends[i].aval for i in self._kept])

    def _all(self, consts: Leaves, carry: Leaves, row: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        found = jaxpr_as_fun(self._closed)(*consts, *carry, *row)
        first = self.step.ncarry
        second = first + len(self.step.outputs)
        return found[:first], found[first:second], found[second:]

    def once(self, consts: Leaves, rows: Sequence[Any]) -> Leaves:
        """Returns the residuals that no step changes. XLA removes the rest of this step."""
        if not self._once:
            return []
        ends = self._all(consts, zeros(self.step.carry), zeros(rows))[2]
        return [ends[i] for i in self._once]

    def record(self, consts: Leaves, carry: Leaves, row: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        """Returns the next carry, the outputs and the tape."""
        after, out, ends = self._all(consts, carry, row)
        return after, out, [ends[i] for i in self._kept]

    def backward(self, consts: Leaves, once: Leaves, row: Leaves, tape: Leaves, adjoint: Leaves,
                 outputs: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        """Returns the terms of the gradients of wanted constants, the adjoint before the step, and the gradients of
        the wanted arrays of its row."""
        values = {"const": consts, "row": row, "own": self._closed.consts, "once": once, "tape": tape}
        vjp = jax.tree.unflatten(self._tree, [
            i if name == "literal" else values[name][i] for name, i in self._sources])
        return vjp((adjoint, outputs))
