# SPDX-License-Identifier: Apache-2.0
"""One group of steps as a graph of autograd, and its gradients in plain autograd's order.

A graph for all steps adds up the gradient of a parameter, or of a state that is used twice, use
by use, the last one first. Sums of groups that are added afterwards have other bits. So the sums
of the groups behind enter a group's graph as gradients of aliases of the parameters. Autograd
takes nodes that are ready in the reverse order of their making, and the aliases are made last: so
the running sum arrives first, and the group's own terms are added to it, as in a graph of all
steps. Where an output is a state itself, its gradient is a term of the state's that comes before
those of the next step: where a group begins between the two, an alias of the group's first state
takes it.
"""
import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

__all__ = ["GroupTape", "aliases", "muted", "pairs", "reverse"]


class GroupTape:
    """The graph of the steps [t0, t1): ``first`` and ``last`` states (leaves of the graph, and
    its ends), outputs and inputs by step, aliases of parameters and of the first state."""

    __slots__ = ("t0", "t1", "first", "last", "outputs", "inputs", "params", "states", "pairs")

    def __init__(self, t0: int, t1: int, first: List[torch.Tensor]):
        self.t0, self.t1, self.first = t0, t1, first
        self.last: List[torch.Tensor] = []
        self.outputs: Dict[int, List[torch.Tensor]] = {}
        self.inputs: Dict[int, List[torch.Tensor]] = {}
        self.params: List[torch.Tensor] = []
        self.states: List[torch.Tensor] = []
        self.pairs: Tuple[Tuple[int, int], ...] = ()


def aliases(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """Nodes of their own for tensors, made last."""
    return [tensor.view_as(tensor) if tensor.requires_grad else tensor for tensor in tensors]


def pairs(states: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Tuple[Tuple[int, int], ...]:
    """(i, j) where output i is state j itself."""
    return tuple((i, j) for i, output in enumerate(outputs) for j, state in enumerate(states)
                 if output is state)


@contextlib.contextmanager
def muted(params: Sequence[torch.Tensor]) -> Iterator[None]:
    """Hooks of parameters do not see the sums of single groups: a scan's gradient reaches them
    once, whole."""
    kept = [(hooks, list(hooks.items())) for hooks in
            (getattr(param, "_backward_hooks", None) for param in params) if hooks]
    for hooks, _ in kept:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, items in kept:
            hooks.update(items)


def reverse(tape: GroupTape, params: Sequence[torch.Tensor], sums: List[Optional[torch.Tensor]],
            adjoint: List[Optional[torch.Tensor]], gradients: Any, before: Tuple[Tuple[int, int], ...]
            ) -> Tuple[List[Optional[torch.Tensor]], Dict[int, List[Optional[torch.Tensor]]]]:
    """The adjoint of the group's first state and gradients of its inputs by step; ``sums``, of
    the groups behind, takes the gradients of ``params``.

    ``adjoint`` is that of the last state. ``gradients(i, t)`` is the gradient of output i of step
    t, or None. ``before``: pairs of the step before the group, whose outputs are its first state.
    """
    roots: List[torch.Tensor] = []
    given: List[torch.Tensor] = []

    def root(tensor: torch.Tensor, gradient: Optional[torch.Tensor]) -> None:
        if gradient is not None and tensor.requires_grad:
            roots.append(tensor)
            given.append(gradient)

    for tensor, gradient in zip(tape.last, adjoint):
        root(tensor, gradient)
    joined = {i for i, _ in tape.pairs}  # their gradients are in the adjoint
    for t, outputs in tape.outputs.items():
        for i, output in enumerate(outputs):
            if t != tape.t1 - 1 or i not in joined:
                root(output, gradients(i, t))
    for alias, total in zip(tape.params, sums):
        root(alias, total)
    for i, j in before:
        root(tape.states[j], gradients(i, tape.t0 - 1))
    wanted = [x for x in tape.first if x.requires_grad]
    leaves = [(t, k) for t, row in tape.inputs.items() for k, x in enumerate(row) if x.requires_grad]
    wanted += params
    wanted += [tape.inputs[t][k] for t, k in leaves]
    if not roots or not wanted:
        return [None] * len(tape.first), {}
    found = list(torch.autograd.grad(roots, wanted, given, allow_unused=True))
    found.reverse()
    arrived = [found.pop() if x.requires_grad else None for x in tape.first]
    for n in range(len(params)):
        sums[n] = found.pop()
    at: Dict[int, List[Optional[torch.Tensor]]] = {}
    for t, k in leaves:
        at.setdefault(t, [None] * len(tape.inputs[t]))[k] = found.pop()
    return arrived, at
