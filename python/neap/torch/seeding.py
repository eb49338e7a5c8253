# SPDX-License-Identifier: Apache-2.0
"""One group of steps as a graph of autograd, and its gradients in plain autograd's order.

A graph for all steps adds up the gradient of a parameter, or of a state that is used twice, use
by use, the last one first. Sums of groups that are added afterwards have other bits. So a last
node is put on a group's graph, which gives all that comes from behind: the adjoint, gradients of
outputs, and the sums of the groups behind as gradients of the parameters. They arrive before any
term of the group, which autograd then adds to them, as in a graph of all steps, and in the same
memory, since nobody else holds the sums. Where an output is a state itself, its gradient is a term
of the state's that comes before those of the next step: where a group begins between the two, the
last node gives it to the group's first state.
"""
import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import torch

__all__ = ["GroupTape", "muted", "pairs", "played", "reverse"]


class GroupTape:
    """The graph of the steps [t0, t1): ``first`` and ``last`` states (leaves of the graph, and
    its ends), outputs and inputs by step. ``taking`` are the first states as the graph has
    them, for gradients of outputs that are states; ``keeper`` has the storages of a tape that
    travels, ``graph`` is the bytes of the graph itself. ``params`` are the places of the parameters that the
    graph itself reaches (None: all); ``cut`` are nodes that made some of them, and that a backward does not
    go through. ``made`` are weak references to leaves that the graph reaches and that its steps made themselves."""

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
        """Lets go of the graph."""
        self.first, self.last, self.taking, self.outputs, self.inputs = [], [], [], {}, {}


_ones: Dict[Any, torch.Tensor] = {}  # a device: the gradient of every last node there
# What torch.autograd.grad calls: its checks of shapes take as long as the backward of a small step.
_ENGINE = torch.autograd.Variable._execution_engine.run_backward


class _End(torch.autograd.Function):
    """The last node of a graph: its backward hands on gradients, and keeps none of them."""

    @staticmethod
    def forward(ctx: Any, gradients: List[Optional[torch.Tensor]], one: torch.Tensor,
                *tensors: torch.Tensor) -> torch.Tensor:
        ctx.gradients = gradients
        return one.clone()

    @staticmethod
    def backward(ctx: Any, _: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        found = (None, None, *ctx.gradients)
        ctx.gradients.clear()  # the engine adds in place what it alone holds
        return found


def pairs(states: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Tuple[Tuple[int, int], ...]:
    """(i, j) where output i is state j itself, the first one where several are: its gradient counts once."""
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
    """A context in which hooks of parameters do not see the sums of single groups: a scan's
    gradient reaches them once, whole."""
    return _muted(params) if any([param._backward_hooks or param.retains_grad for param in params]) else _OPEN


def _nothing(gradients: Tuple[Optional[torch.Tensor], ...]) -> Tuple[None, ...]:
    return (None,) * len(gradients)


def played(ends: Sequence[torch.Tensor], given: Sequence[Optional[torch.Tensor]], wanted: Sequence[torch.Tensor],
           cut: Sequence[Any] = (), keep: bool = False, create: bool = False) -> List[Optional[torch.Tensor]]:
    """Gradients of ``wanted`` from those ``given`` of the ends of a graph; None for what none depends on.

    :param cut: nodes to be stopped at. The engine takes the gradients of what such a node made, and then enters
        it, since it is on the way to others that are wanted: with gradients that are undefined, which
        compute and add nothing. Its graph is the caller's, who needs it later.
    :param keep: the graph stays (retain_graph). :param create: the gradients have a graph of their own (create_graph).
    """
    handles = [node.register_prehook(_nothing) for node in cut]
    try:
        return list(_ENGINE(tuple(ends), tuple(given), keep or bool(cut), create, tuple(wanted), True, False))
    finally:
        for handle in handles:
            handle.remove()


def _once(tensors: Sequence[torch.Tensor]) -> List[Optional[torch.Tensor]]:
    """Those that require gradients; one that comes twice once, and None in the other places."""
    if len(tensors) == 1:
        return [tensors[0] if tensors[0].requires_grad else None]
    seen: Set[int] = set()
    return [x if x.requires_grad and not (id(x) in seen or seen.add(id(x))) else None for x in tensors]  # type: ignore


def _played(ends: List[torch.Tensor], given: List[Optional[torch.Tensor]], wanted: Tuple[torch.Tensor, ...],
            cut: Sequence[Any], own: bool) -> List[Optional[torch.Tensor]]:
    """The same of a graph that is not needed any more.

    :param own: the engine alone holds the gradients given, and adds to them in place. This saves memory and
        costs a node, about 7 us.
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
    """The adjoint of the group's first state and gradients of its inputs by step; ``sums``, of
    the groups behind, takes the gradients of ``params``.

    ``adjoint`` is that of the last state. ``gradients(i, t)`` is the gradient of output i of step
    t, or None. ``before``: pairs of the step before the group, whose outputs are its first state.
    ``own``: see ``_played``.
    """
    ends: List[torch.Tensor] = []
    given: List[Optional[torch.Tensor]] = []

    def end(tensor: torch.Tensor, gradient: Optional[torch.Tensor]) -> None:
        if gradient is not None and tensor.requires_grad:
            ends.append(tensor)
            given.append(gradient)

    for tensor, gradient in zip(tape.last, adjoint):
        end(tensor, gradient)
    joined = {i for i, _ in tape.pairs}  # their gradients are in the adjoint
    for i in reversed(range(max([len(row) for row in tape.outputs.values()], default=0))):
        for t, outputs in tape.outputs.items():  # as torch.stack of each column gives them, the last column first
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
