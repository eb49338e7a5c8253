# SPDX-License-Identifier: Apache-2.0
"""Groups of steps as compiled functions of JAX, and their tapes.

A group is a ``lax.scan`` over its steps. Its tape is the pytree of a vjp closure, traced once; its bytes follow from
the shapes. The parameters and inputs in the closure are not part of the tape; they are inserted again when the group
is reversed. If XLA rounds a recorded step differently from an advanced one, which the first group shows, the state
after a recorded group is computed by an advance, so that all plans agree. A first group of one step from a state of
zeros may hide the difference.
"""
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun

from ..errors import UsageError
from .leaves import Leaves, apart, merged, nbytes, structs

__all__ = ["Group", "Loop", "Tape", "same_bits"]


class Tape(NamedTuple):
    """The data that the backward step of a group needs, in addition to parameters and inputs."""

    leaves: Leaves


def keys(leaf: Any) -> bool:
    """True if the leaf is an array of random keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def raw(leaf: Any) -> Any:
    """Returns an array of numbers; for random keys their key data."""
    return jax.random.key_data(leaf) if keys(leaf) else leaf


def same_bits(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """True if the arrays are bit-identical."""
    return all(jax.device_get(raw(a)).tobytes() == jax.device_get(raw(b)).tobytes()
               for a, b in zip(some, others))


class Loop:
    """A step with the structure of its arguments: its interface uses pytrees, its implementation flat lists.

    :param step: ``step(params, state, input)``; returns a state, or a state and an output.
    :raises UsageError: if the returned state has a different structure, shape or dtype.
    """

    def __init__(self, step: Callable[..., Any], params: Any, state: Any, inputs: Any):
        self.step = step
        self.params, self.state, self.inputs = (
            jax.tree.structure(tree) for tree in (params, state, inputs))
        self.start = structs(jax.tree.leaves(state))
        self.impls = [jax.random.key_impl(x) if keys(x) else None for x in jax.tree.leaves(state)]
        row = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in jax.tree.leaves(inputs)]
        answer = jax.eval_shape(step, params, state, jax.tree.unflatten(self.inputs, row))
        self.alone = jax.tree.structure(answer) == self.state
        if not self.alone and not (isinstance(answer, tuple) and len(answer) == 2 and
                                   jax.tree.structure(answer[0]) == self.state):
            raise UsageError(f"the step returned {jax.tree.structure(answer)}; it must return the next state, or a "
                             f"pair (state, output), with a state of the structure that it was given, {self.state}")
        for given, found in zip(self.start, jax.tree.leaves(answer if self.alone else answer[0])):
            if given.shape != found.shape or given.dtype != found.dtype:
                raise UsageError(f"the step was given a state of shape {given.shape} {given.dtype} and returned one of "
                                 f"{found.shape} {found.dtype}. Shape and dtype of the state must not change: change "
                                 f"the initial state, or convert what the step returns")
        self.output = jax.tree.structure(None if self.alone else answer[1])
        self.emitted = structs(jax.tree.leaves(None if self.alone else answer[1]))

    def run(self, params: Leaves, state: Leaves, inputs: Leaves, steps: int) -> Tuple[Leaves, Leaves]:
        """Runs ``steps`` steps; returns the last state and the outputs [steps, ...]."""
        tree = jax.tree.unflatten(self.params, params)

        def body(carry: Leaves, row: Leaves) -> Tuple[Leaves, Leaves]:
            answer = self.step(tree, jax.tree.unflatten(self.state, carry),
                               jax.tree.unflatten(self.inputs, row))
            after, output = (answer, None) if self.alone else answer
            return jax.tree.leaves(after), jax.tree.leaves(output)

        return lax.scan(body, state, inputs, length=steps)


class Group:
    """A number of steps of a loop, traced, and compiled at the first use.

    ``tape``: bytes of a tape. ``wants_inputs``: gradients of inputs are also computed. For use outside of JAX traces
    only.
    """

    def __init__(self, loop: Loop, params: Leaves, inputs: Leaves, steps: int, wants_inputs: bool):
        self.loop, self.steps, self.wants_inputs = loop, steps, wants_inputs
        self.agree: Optional[bool] = None  # record and advance are bit-identical; None: not known yet
        self.extra = 0  # steps that were advanced in addition to their record if they are not
        rows = [jax.ShapeDtypeStruct((steps, *x.shape[1:]), x.dtype) for x in inputs]
        self._trace(structs(params), rows)
        self.advance = jax.jit(lambda params, state, rows: loop.run(params, state, rows, steps))
        self._record = jax.jit(self._recorded)
        self._reverse = jax.jit(self._reversed, donate_argnums=3)

    def _trace(self, params: Leaves, rows: Leaves) -> None:
        """Determines the contents of the closure: parameters, inputs, constants, and the tape."""
        def traced(params: Leaves, state: Leaves, rows: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
            outside, state_others, row_others = (apart(x)[1] for x in (params, state, rows))

            def f(some: Leaves, moved: Leaves, given: Leaves) -> Any:
                last, out = self.loop.run(
                    merged(params, some, outside), merged(state, moved, state_others),
                    merged(rows, given, row_others) if self.wants_inputs else rows, self.steps)
                (last, last_others), (out, out_others) = apart(last), apart(out)
                return (last, out), (last_others, out_others)

            some, moved, given = (apart(x)[0] for x in (params, state, rows))
            (last, out), vjp, (last_others, out_others) = jax.vjp(
                f, some, moved, given if self.wants_inputs else [], has_aux=True)
            leaves, self._tree = jax.tree.flatten(vjp)
            return (merged(self.loop.start, last, last_others),
                    merged(self.loop.emitted, out, out_others), leaves)

        closed = jax.make_jaxpr(traced)(params, self.loop.start, rows)
        self._closed, whole = closed, closed.jaxpr
        count = len(self.loop.start)
        given = whole.invars
        known = {id(v): ("given", i) for i, v in enumerate(given)
                 if not len(params) <= i < len(params) + count}
        known.update((id(v), ("const", i)) for i, v in enumerate(whole.constvars))
        ends = whole.outvars[count + len(self.loop.emitted):]
        self._sources: List[Tuple[str, int]] = []  # source of each leaf of the closure
        self._kept: List[int] = []  # indices of the leaves that form the tape
        places: Dict[int, Tuple[str, int]] = dict(known)
        for i, end in enumerate(ends):
            if id(end) not in places:
                places[id(end)] = "tape", len(self._kept)
                self._kept.append(i)
            self._sources.append(places[id(end)])
        self.tape = nbytes([ends[i].aval for i in self._kept])

    def _recorded(self, params: Leaves, state: Leaves, rows: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        found = jaxpr_as_fun(self._closed)(*params, *state, *rows)
        count, more = len(state), len(self.loop.emitted)
        ends = found[count + more:]
        return found[:count], found[count:count + more], [ends[i] for i in self._kept]

    def _reversed(self, tape: Leaves, params: Leaves, rows: Leaves, sums: Leaves, adjoint: Leaves,
                  outputs: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        count = len(self.loop.start)
        given = [*params, *[None] * count, *rows]
        where = {"tape": tape, "given": given, "const": self._closed.consts}
        vjp = jax.tree.unflatten(self._tree, [where[name][i] for name, i in self._sources])
        terms, before, at = vjp((adjoint, outputs))
        return [a + b for a, b in zip(sums, terms)], before, at

    def record(self, params: Leaves, state: Leaves, rows: Leaves) -> Tuple[Leaves, Leaves, Tape]:
        """Returns the last state, the outputs and the tape. The first call compares the state with advance."""
        last, out, kept = self._record(params, state, rows)
        if not self.agree:
            other, emitted = self.advance(params, state, rows)
            if self.agree is None:
                self.agree = same_bits([*last, *out], [*other, *emitted])
            if not self.agree:
                self.extra += self.steps
                last, out = other, emitted
        return last, out, Tape(kept)

    def reverse(self, tape: Tape, params: Leaves, rows: Leaves, sums: Leaves, adjoint: Leaves,
                outputs: Leaves) -> Tuple[Leaves, Leaves, Leaves]:
        """Returns the gradient sums of the parameters with this group added, the adjoint of the first state, and the
        gradients of inputs [steps, ...] if they are requested."""
        return self._reverse(tape.leaves, params, rows, sums, adjoint, outputs)
