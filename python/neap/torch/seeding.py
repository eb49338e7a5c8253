# SPDX-License-Identifier: Apache-2.0
"""One group of steps as a graph of autograd, and its gradients, summed in plain autograd's order.

A graph of all steps adds up the gradient of a parameter, or of a state that is used twice, use by use, the last use
first. Adding sums of groups would round differently. Therefore each graph of a group gets an additional last node,
which returns the gradients that come from later steps: the adjoint, gradients of outputs, and the sums of later groups
as gradients of the parameters. They arrive before any term of the group; autograd adds the terms to them, as in a
graph of all steps, and in the same memory, because nothing else references the sums. If an output is also a state, its
gradient is a term of the state's gradient that comes before the terms of the next step: if a group starts between the
two, the last node passes it to the group's first state.
"""
import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch

__all__ = ["GroupTape", "muted", "pairs", "played", "reverse"]


class GroupTape:
    """The graph of the steps [t0, t1).

    ``first`` and ``last``: states, the leaves and the ends of the graph; outputs and inputs by step. ``taking``: the
    first states as they are in the graph, for gradients of outputs that are states. ``keeper``: has the storages of an
    offloaded tape; ``graph``: bytes of the graph itself. ``params``: indices of the parameters that the graph reaches
    (None: all); ``cut``: nodes that computed some of them, which a backward pass does not enter. ``made``: weak
    references to leaves that the graph reaches and that its steps created.
    """

    __slots__ = ("t0", "t1", "first", "last", "outputs", "inputs", "pairs", "taking", "keeper", "params", "cut", "made",
                 "graph")

    def __init__(self, t0: int, t1: int, first: List[torch.Tensor]):
        self.t0, self.t1, self.first, self.taking = t0, t1, first, first
        self.last: List[torch.Tensor] = []
        self.outputs: Dict[int, List[torch.Tensor]] = {}
        self.inputs: Dict[int, List[torch.Tensor]] = {}
        self.pairs: Tuple[Tuple[int, int], ...] = ()
        self.keeper: Any = None
        self.graph = 0
        self.params: Optional[List[int]] = None
        self.cut: List[Any] = []
        self.made: List[Any] = []

    def clear(self) -> None:
        """Releases the graph."""
        self.first, self.last, self.taking, self.outputs, self.inputs = [], [], [], {}, {}


_ones: Dict[Any, torch.Tensor] = {}  # by device: the gradient of every last node
# The function behind torch.autograd.grad, whose shape checks take as long as the backward of a small step.
_ENGINE = torch.autograd.Variable._execution_engine.run_backward


class _End(torch.autograd.Function):
    """The last node of a graph: its backward returns given gradients, and keeps no reference to them."""

    @staticmethod
    def forward(ctx: Any, gradients: List[Optional[torch.Tensor]], one: torch.Tensor,
                *tensors: torch.Tensor) -> torch.Tensor:
        ctx.gradients = gradients
        return one.clone()

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        found = (None, None, *ctx.gradients)
        ctx.gradients.clear()  # the engine adds in place to gradients that only it references
        return found


def pairs(states: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Tuple[Tuple[int, int], ...]:
    """Returns (i, j) if output i is state j, for the first such j: its gradient counts once."""
    found = []
    for i, output in enumerate(outputs):
        at = [j for j, state in enumerate(states) if output is state]
        if at:
            found.append((i, at[0]))
    return tuple(found)


@contextlib.contextmanager
def _muted(params: Sequence[torch.Tensor]) -> Iterator[None]:
    kept = [(hooks, list(hooks.items())) for hooks in (param._backward_hooks for param in params) if hooks]
    retained = [(param, param.grad) for param in params if param.retains_grad]
    for hooks, _ in kept:
        hooks.clear()
    try:
        yield
    finally:
        for param, gradient in retained:
            param.grad = gradient
        for hooks, items in kept:
            hooks.update(items)


_OPEN = contextlib.nullcontext()


def muted(params: Sequence[torch.Tensor]) -> Any:
    """Context manager in which hooks of parameters do not see the sums of single groups, because they get the gradient
    of a scan once, complete."""
    return _muted(params) if any([param._backward_hooks or param.retains_grad for param in params]) else _OPEN


def _nothing(gradients: Tuple[Optional[torch.Tensor], ...]) -> Tuple[None, ...]:
    return (None,) * len(gradients)


def played(ends: Sequence[torch.Tensor], given: Sequence[Optional[torch.Tensor]], wanted: Sequence[torch.Tensor],
           cut: Sequence[Any] = (), keep: bool = False, create: bool = False) -> List[Optional[torch.Tensor]]:
    """Returns the gradients of ``wanted`` for the gradients ``given`` of the ends of a graph; None if the ends do not
    depend on it.

    :param cut: nodes to stop at. The engine takes the gradients of the tensors that such a node computed, and then
        enters it, because it is on the way to others of ``wanted``: with undefined gradients, which compute and add
        nothing. Its graph is owned by the caller, who needs it later.
    :param keep: True: the graph is kept (retain_graph).
    :param create: True: the gradients have a graph (create_graph).
    """
    handles = [node.register_prehook(_nothing) for node in cut]
    try:
        return list(_ENGINE(tuple(ends), tuple(given), keep or bool(cut), create, tuple(wanted), True, False))
    finally:
        for handle in handles:
            handle.remove()


def _once(tensors: Sequence[torch.Tensor]) -> List[Optional[torch.Tensor]]:
    """Returns tensors that require gradients; for a repeated tensor None in all places but the first."""
    if len(tensors) == 1:
        return [tensors[0] if tensors[0].requires_grad else None]
    seen: Set[int] = set()
    return [x if x.requires_grad and not (id(x) in seen or seen.add(id(x))) else None for x in tensors]  # type: ignore


def _played(ends: List[torch.Tensor], given: List[Optional[torch.Tensor]], wanted: Tuple[torch.Tensor, ...],
            cut: Sequence[Any], own: bool) -> List[Optional[torch.Tensor]]:
    """Returns the same as ``played``, for a graph that is not needed afterwards.

    :param own: True: only the engine references the given gradients, and adds to them in place. This saves memory and
        costs one node, about 7 us.
    """
    if not own:
        return played(ends, given, wanted, cut)
    one = _ones.get(ends[0].device)
    if one is None:
        one = _ones[ends[0].device] = torch.ones((), device=ends[0].device)
    with torch.enable_grad():
        last = _End.apply(given, one, *ends)
    return played((last,), (one,), wanted, cut)


def reverse(tape: GroupTape, params: Sequence[torch.Tensor], sums: List[Optional[torch.Tensor]],
            adjoint: List[Optional[torch.Tensor]], gradients: Any, before: Tuple[Tuple[int, int], ...],
            own: bool = True
            ) -> Tuple[List[Optional[torch.Tensor]], Dict[int, List[Optional[torch.Tensor]]]]:
    """Reverses a group. Returns the adjoint of its first state, and the gradients of its inputs by step.

    :param sums: gradient sums of ``params`` over later groups; those of this group are added.
    :param adjoint: the adjoint of the last state.
    :param gradients: ``gradients(i, t)`` is the gradient of output i of step t, or None.
    :param before: ``pairs`` of the step before the group, whose outputs are the group's first state.
    :param own: see ``_played``.
    """
    ends: List[torch.Tensor] = []
    given: List[Optional[torch.Tensor]] = []

    def end(tensor: torch.Tensor, gradient: Optional[torch.Tensor]) -> None:
        if gradient is not None and tensor.requires_grad:
            ends.append(tensor)
            given.append(gradient)

    for tensor, gradient in zip(tape.last, adjoint):
        end(tensor, gradient)
    joined = {i for i, _ in tape.pairs}  # their gradients are included in the adjoint
    for i in reversed(range(max([len(row) for row in tape.outputs.values()], default=0))):
        for t, outputs in tape.outputs.items():  # in the order of torch.stack of each column, the last column first
            if t != tape.t1 - 1 or i not in joined:
                end(outputs[i], gradients(i, t))
    used = range(len(params)) if tape.params is None else tape.params
    for n in used:
        end(params[n], sums[n])
        sums[n] = None
    for i, j in reversed(before):
        end(tape.taking[j], gradients(i, tape.t0 - 1))
    first = _once(tape.first)
    wanted = [x for x in first if x is not None]
    leaves = [(t, k) for t, row in tape.inputs.items() for k, x in enumerate(row) if x.requires_grad]
    wanted += [params[n] for n in used]
    wanted += [tape.inputs[t][k] for t, k in leaves]
    if not ends or not wanted:
        return [None] * len(tape.first), {}
    found = _played(ends, given, tuple(wanted), tape.cut, own)
    found.reverse()
    arrived = [None if x is None else found.pop() for x in first]
    for n in used:
        sums[n] = found.pop()
    at: Dict[int, List[Optional[torch.Tensor]]] = {}
    for t, k in leaves:
        at.setdefault(t, [None] * len(tape.inputs[t]))[k] = found.pop()
    return arrived, at
