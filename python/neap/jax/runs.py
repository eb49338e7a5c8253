# SPDX-License-Identifier: Apache-2.0
"""One pass over a JAX loop as the backend of a Player: states, tapes, outputs and gradients."""
from typing import Any, Dict, List, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..player import Backend
from .groups import Group, Loop, Tape, raw
from .leaves import Leaves, apart, inexact

__all__ = ["Run"]


@jax.jit
def _put(whole: Leaves, part: Leaves, t0: Any) -> Leaves:
    return [lax.dynamic_update_slice_in_dim(a, b, t0, 0) for a, b in zip(whole, part)]


_put_in_place = jax.jit(_put.__wrapped__, donate_argnums=0)  # type: ignore[attr-defined]
_cut = jax.jit(lambda whole, t0, steps: [lax.dynamic_slice_in_dim(a, t0, steps, 0) for a in whole],
               static_argnums=2)


class Run(Backend):
    """The steps of one call. States are lists of arrays.

    :param groups: compiled groups by number of steps; a missing one is added when it is needed.
    :param inputs: arrays [T, ...], which may have more steps than T.
    """

    def __init__(self, loop: Loop, groups: Dict[int, Group], params: Leaves, inputs: Leaves,
                 steps: int, group: int, wants_inputs: bool):
        self.loop, self.groups, self.params, self.inputs = loop, groups, params, inputs
        self.steps, self.group, self.wants_inputs = steps, group, wants_inputs
        self.out = [jnp.zeros((steps, *x.shape), x.dtype) for x in loop.emitted]
        self.sums: Leaves = []
        self.out_grads: Leaves = []
        self.input_grads: Leaves = []
        if wants_inputs:
            self.input_grads = [jnp.zeros_like(x) for x in apart(inputs)[0]]

    def of(self, steps: int) -> Group:
        """Returns the compiled group of ``steps`` steps."""
        if steps not in self.groups:
            self.groups[steps] = Group(self.loop, self.params, self.inputs, steps, self.wants_inputs)
        return self.groups[steps]

    def rows(self, t0: int, t1: int) -> Leaves:
        """Returns the inputs of the steps [t0, t1)."""
        return _cut(self.inputs, t0, t1 - t0) if self.inputs else []

    def _emit(self, out: Leaves, t0: int) -> None:
        if self.out:
            self.out = _put_in_place(self.out, out, t0)

    # Operations for the Player. Each call blocks until its results exist: asynchronous ones would need memory.

    def advance(self, state: Leaves, t0: int, t1: int, first: bool) -> Leaves:
        for begin in range(t0, t1, self.group):
            end = min(begin + self.group, t1)
            state, out = self.of(end - begin).advance(self.params, state, self.rows(begin, end))
            if first:
                self._emit(out, begin)
            jax.block_until_ready(state)
        return state

    def record(self, state: Leaves, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[Leaves, Tape, int]:
        group = self.of(t1 - t0)
        last, out, tape = group.record(self.params, state, self.rows(t0, t1))
        if first:
            self._emit(out, t0)
        jax.block_until_ready((last, tape.leaves))
        return last, tape, group.tape

    def backward(self, tape: Tape, adjoint: Leaves, t0: int, t1: int) -> Leaves:
        outputs = _cut(self.out_grads, t0, t1 - t0) if self.out_grads else []
        self.sums, before, at = self.of(t1 - t0).reverse(
            tape, self.params, self.rows(t0, t1), self.sums, adjoint, outputs)
        if self.wants_inputs and at:
            self.input_grads = _put_in_place(self.input_grads, at, t0)
        return jax.block_until_ready(before)

    def pieces(self, state: Sequence[Any]) -> Tuple[List[np.ndarray], List[Tuple[int, int]]]:
        rows = [np.asarray(raw(x) if isinstance(x, jax.Array) else x, order="C") for x in state]
        return rows, [(row.ctypes.data, row.nbytes) for row in rows if row.nbytes]

    def empty(self, t: int) -> List[np.ndarray]:
        return [np.empty(x.shape, x.dtype) for x in jax.eval_shape(
            lambda leaves: [raw(x) for x in leaves], self.loop.start)]

    def filled(self, state: Sequence[np.ndarray]) -> Leaves:
        return [jnp.asarray(row) if impl is None else
                jax.random.wrap_key_data(jnp.asarray(row), impl=impl)
                for row, impl in zip(state, self.loop.impls)]

    def ones(self) -> Tuple[Leaves, Leaves]:
        """Returns an adjoint, and sums of gradients of parameters, for timing a backward step."""
        return ([jnp.ones(x.shape, x.dtype) for x in self.loop.start if inexact(x)],
                [jnp.zeros_like(x) for x in self.params if inexact(x)])
