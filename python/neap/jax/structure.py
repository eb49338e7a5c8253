# SPDX-License-Identifier: Apache-2.0
"""Arguments of a scan: pytrees to lists of arrays, and the step as a jaxpr that takes all arrays it uses as arguments.

A step may close over arrays, among them tracers of an outer transformation. ``jax.make_jaxpr`` turns all of these into
constants of the jaxpr, which become arguments, so that gradients flow to them.
"""
from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp

from ..errors import UsageError
from .leaves import Leaves, structs

__all__ = ["Step", "Traced", "traced"]


class Step:
    """A step as a function of flat lists: (constants, carry, row of xs) -> (carry, output). Contains no tracers."""

    def __init__(self, jaxpr: Any, carry: Sequence[Any]):
        self.jaxpr, self.ncarry = jaxpr, len(carry)
        self.carry = structs(carry)
        self.outputs = structs([v.aval for v in jaxpr.outvars[self.ncarry:]])

    def __call__(self, consts: Leaves, carry: Leaves, row: Leaves) -> Tuple[Leaves, Leaves]:
        out = jax.core.eval_jaxpr(self.jaxpr, consts, *carry, *row)
        return out[:self.ncarry], out[self.ncarry:]


class Traced(NamedTuple):
    """The step with its arguments: arrays that it closes over, the initial carry and xs as flat lists; the number of
    steps, and the structures of carry and output."""

    step: Step
    consts: Leaves
    carry: Leaves
    xs: Leaves
    steps: int
    carry_tree: Any
    output_tree: Any


def _length(xs: Leaves, length: Optional[int]) -> int:
    if any(not x.shape for x in xs):
        raise UsageError("xs contains an array without dimensions; the first dimension of all arrays is the number of "
                         "steps. Close over the array in the step, or broadcast it")
    found = {x.shape[0] for x in xs} | (set() if length is None else {int(length)})
    if not found:
        raise UsageError("length is required because xs is None and does not determine the number of steps. Pass "
                         "length=T")
    if len(found) > 1:
        given = "" if length is None else f" with length={length}"
        raise UsageError(f"xs{given}: the number of steps is not unique, it could be "
                         f"{' or '.join(map(str, sorted(found)))}. Pass arrays of equal first dimension")
    return found.pop()


def _weak(x: Any) -> bool:
    return bool(getattr(jax.typeof(x), "weak_type", False))


def _described(carry: Leaves) -> Leaves:
    """Shapes and dtypes. A weakly typed array, such as 0., leaves the dtype of a product to the other factor."""
    return [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=_weak(x)) for x in carry]


def _promoted(carry: Leaves, after: Sequence[Any]) -> Leaves:
    """Weakly typed leaves of the initial carry, in the dtype that the step returns, as ``jax.lax.scan`` does."""
    def leaf(x: Any, y: Any) -> Any:
        stays = not _weak(x) or y.weak_type and x.dtype == y.dtype
        return x if stays else x.astype(jnp.promote_types(x.dtype, y.dtype))
    return [leaf(x, y) for x, y in zip(carry, after)]


def traced(f: Callable[..., Any], init: Any, xs: Any, length: Optional[int]) -> Traced:
    """Traces ``f(carry, x) -> (carry, output)``.

    :raises UsageError: if lengths differ, or ``f`` returns a carry of a different structure, shape or dtype.
    """
    leaves, tree = jax.tree.flatten(init)
    carry = [jnp.asarray(x) for x in leaves]
    x_leaves, x_tree = jax.tree.flatten(xs)
    rows = [jnp.asarray(x) for x in x_leaves]
    steps = _length(rows, length)
    row = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in rows]
    output_tree = None

    def flat(carry: Leaves, row: Leaves) -> Tuple[Leaves, Leaves]:
        nonlocal output_tree
        answer = f(jax.tree.unflatten(tree, carry), jax.tree.unflatten(x_tree, row))
        if not (isinstance(answer, (tuple, list)) and len(answer) == 2):
            raise UsageError(f"the step returned a {type(answer).__name__}; it must return a pair (carry, output). If "
                             f"there is no output, return (carry, None)")
        if jax.tree.structure(answer[0]) != tree:
            raise UsageError(f"the step was given a carry of structure {tree} and returned one of structure "
                             f"{jax.tree.structure(answer[0])}. Return a carry of the structure of the initial one")
        output, output_tree = jax.tree.flatten(answer[1])
        return jax.tree.leaves(answer[0]), output

    for _ in range(len(carry) + 1):  # a leaf that is promoted may promote another one
        after = jax.eval_shape(flat, _described(carry), row)[0]
        before, carry = carry, _promoted(carry, after)
        if all(x is y for x, y in zip(before, carry)):
            break
    for given, found in zip(carry, after):
        if given.shape != found.shape or given.dtype != found.dtype:
            raise UsageError(f"the step was given a carry of shape {given.shape} {given.dtype} and returned one of "
                             f"{found.shape} {found.dtype}. Shape and dtype of the carry must not change: change the "
                             f"initial carry, or convert what the step returns")
    closed = jax.make_jaxpr(flat)(_described(carry), row)
    carry = [jnp.asarray(x, dtype=x.dtype) for x in carry]  # not weakly typed any more
    return Traced(Step(closed.jaxpr, carry), [jnp.asarray(c) for c in closed.consts], carry, rows, steps, tree,
                  output_tree)
