# SPDX-License-Identifier: Apache-2.0
"""Second derivatives of a scan: the backward pass of its backward pass, one step at a time.

Step t computes h[t+1] and y[t] from h[t], x[t] and parameters p. The first backward pass computes the adjoint a[t] of
h[t], the gradient of x[t] and a term of the gradient of p: the vector-Jacobian product (VJP) of step t at a[t+1] and
the gradient of y[t]. The input of a second backward pass are cotangents of a[0] and of the gradients of x and p. Four
loops reverse both recurrences:

1. forward: the states h[t];
2. backward: the adjoints a[t];
3. forward: the VJP of step t is differentiated at the cotangents of its results. This yields the cotangent of a[t+1],
   which step t + 1 uses, the gradient of the gradient of y[t], and direct terms of the gradients of h[t], x[t], p;
4. backward: the terms of h[t] are propagated back through the steps before t, as in a first backward pass.

All states stay in memory, and so do the adjoints, which are replaced one by one by the terms of loop 3: two states per
step. In addition, the graph of one step and of its VJP exists at a time.
"""
import contextlib
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..errors import BudgetError, UsageError
from ..show import show_least, show_most
from .checks import Linear
from .device import set_rng
from .measure import Counter, address, addresses, mark
from .runs import Cast, Run, State, differentiable, laid
from .seeding import muted, played
from .transforms import check_second
from .trees import flatten, nbytes, unflatten

__all__ = ["Once", "Second", "second"]

Row = List[Optional[torch.Tensor]]

OFTEN = 64  # approximate number of VJPs of loop 3 that are checked; each costs 1/10 of a step (chosen)
RARELY = 8  # number of VJPs of loop 4, which are differentiated only for the check (chosen)

_THIRD = ("trying to differentiate a scan of neap.torch three times: double_backward=True computes first and second "
          "derivatives only. Use a plain loop for third derivatives; instead of torch.autograd.functional.hvp, which "
          "differentiates three times, use vhp")


class Once(torch.autograd.Function):
    """Gradients connected to everything that they were computed from; differentiating them raises a RuntimeError."""

    @staticmethod
    def forward(ctx: Any, message: str, count: int, *tensors: Optional[torch.Tensor]) -> Any:
        ctx.message = message
        return _passed(tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(ctx.message)


class Second(torch.autograd.Function):
    """First gradients as a function of everything that they were computed from: ``tensors`` are ``count`` gradients,
    the inputs of the scan's node, and the gradients of its results."""

    @staticmethod
    def forward(ctx: Any, call: Any, count: int, *tensors: Optional[torch.Tensor]) -> Any:
        ctx.call, ctx.count = call, count
        ctx.save_for_backward(*tensors[count:])
        ctx.set_materialize_grads(False)
        return _passed(tensors[:count])

    @staticmethod
    def backward(ctx: Any, *cotangents: Optional[torch.Tensor]) -> Any:
        check_second()
        rest = ctx.saved_tensors  # raises if versions have changed or the graph was freed
        with torch.no_grad():
            found = ctx.call.second(rest[ctx.count:], cotangents, ctx.needs_input_grad[2 + ctx.count:])
        if torch.is_grad_enabled():
            found = list(Once.apply(_THIRD, len(found), *found, *rest, *cotangents))
        return (None, None, *[None] * ctx.count, *found)


def _passed(tensors: Sequence[Optional[torch.Tensor]]) -> Tuple[Optional[torch.Tensor], ...]:
    """Returns the tensors as results of a Function: not as views, because autograd would not allow writing to them."""
    check_second()
    return tuple([None if x is None else x.detach() for x in tensors])


class _Graph(NamedTuple):
    """The graph of one step: its leaves, its ends, the places of the parameters that it may reach, and nodes that a
    backward pass through it does not enter (see seeding.played)."""

    state: Row
    inputs: Row
    ends: Row  # the next state, and outputs
    used: Sequence[int]
    cut: Sequence[Any]


def _leaf(x: Optional[torch.Tensor], wanted: bool = True) -> Optional[torch.Tensor]:
    return None if x is None else x.detach().requires_grad_(wanted and differentiable(x))


def _sum(a: Optional[torch.Tensor], b: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    return a if b is None else b if a is None else a + b


def _all_owned(tensors: Sequence[Any]) -> List[Any]:
    """Returns the tensors, each in memory of its own size: a view would keep its whole base alive."""
    return [x if x is None or x.layout != torch.strided or address(x)[1] <= nbytes([x]) else laid(x, x.stride())
            for x in tensors]


def _at(rows: Sequence[Optional[torch.Tensor]], t: int) -> Row:
    return [None if x is None else x[t] for x in rows]


def _put(places: Row, t: int, values: Row) -> None:
    for place, value in zip(places, values):
        if place is not None and value is not None:
            place[t] += value


def _vjp(ends: Sequence[Optional[torch.Tensor]], gradients: Row, leaves: Row, cut: Sequence[Any],
         create: bool = False, keep: bool = False) -> Row:
    """Returns the gradients of ``leaves`` at ``gradients`` of ``ends``; None for leaves that are None or unused."""
    pairs = [(end, g) for end, g in zip(ends, gradients) if end is not None and g is not None and end.requires_grad]
    wanted = [x for x in leaves if x is not None and x.requires_grad]
    if not pairs or not wanted:
        return [None] * len(leaves)
    found = played([end for end, _ in pairs], [g for _, g in pairs], wanted, cut, keep or create, create)
    found.reverse()
    return [found.pop() if x is not None and x.requires_grad else None for x in leaves]


class _Pass:
    """One second backward pass.

    :param gradients: the gradients of the scan's results.
    :param cotangents: the cotangents of its first gradients.
    :param wanted: for each input of the scan and each of ``gradients``, whether its gradient is requested.
    """

    def __init__(self, run: Run, first: State, cast: Cast, gradients: Sequence[Optional[torch.Tensor]],
                 cotangents: Sequence[Optional[torch.Tensor]], wanted: Sequence[bool], room: Optional[int]):
        self.run, self.first, self.room = run, first, room
        # Entering autocast takes longer than a small step's kernels.
        self.cast: Any = cast if cast.enabled or Cast(cast.where).key != cast.key else contextlib.nullcontext
        self.states: List[List[torch.Tensor]] = []
        self.generators: List[torch.Tensor] = []  # the random number generator's state before each step
        self.kept = self.tape = 0
        # The given gradients are owned by the caller.
        self.excluded = run.excluded | addresses(x for x in (*gradients, *cotangents) if x is not None)
        self.linear = Linear(first.leaves)
        count, inputs = len(first.leaves), run.inputs or []
        end = count + len(inputs)
        self.cot_state, self.cot_inputs = list(cotangents[:count]), cotangents[count:end]
        self.cot_params = cotangents[end:]
        self.adjoints: List[Row] = [[] for _ in range(run.steps)] + [list(gradients[:count])]
        self.out_grads = gradients[count:]
        flags = wanted[end + len(run.params) + count:]
        self.through = any(wanted[:end + len(run.params)])
        self.inputs: Row = [torch.zeros_like(x) if flag else None for x, flag in zip(inputs, wanted[count:end])]
        self.params: Row = [None] * len(run.params)
        self.outs: Row = [torch.zeros_like(x) if flag and x is not None else None
                          for x, flag in zip(self.out_grads, flags)]
        self.computed = any([x.grad_fn is not None for x in run.params])

    def found(self) -> Row:
        """Returns the gradients of the first state, inputs, parameters and ``gradients``."""
        self._forth()
        self._back()
        last = self._terms()
        start = self._through() if self.through else [None] * len(last)
        return [*start, *self.inputs, *self.params, *last, *self.outs]

    def _forth(self) -> None:
        state, run = self.first, self.run
        kept = run.grad
        # Without a budget no step was advanced yet, and none was compared under no_grad.
        run.grad = kept or run.chooses and self.room is None
        with contextlib.ExitStack() as stack:
            stack.callback(setattr, run, "grad", kept)
            stack.enter_context(self.cast())
            for t in range(self.run.steps):
                self.states.append(state.leaves)
                if state.rng is not None:
                    self.generators.append(state.rng)
                if t < self.run.steps - 1:
                    state = self.run.advance(state, t, t + 1, False)
                    leaves = _all_owned(state.leaves)
                    state = state._replace(leaves=leaves, versions=[x._version for x in leaves])
        shared = self.run.fixed.at  # one memory in all states
        self.kept = nbytes(x for row in self.states for x in row if not shared or address(x)[0] not in shared)
        self.kept += nbytes(self.generators)

    def _back(self) -> None:
        for t in range(self.run.steps - 1, 0, -1):
            graph = self._graph(t)
            found = _vjp(graph.ends, [*self.adjoints[t + 1], *_at(self.out_grads, t)], graph.state, graph.cut)
            self.adjoints[t] = _all_owned(found)
        self.kept += sum([nbytes(x for x in row if x is not None) for row in self.adjoints[:-1]])

    def _terms(self) -> Row:
        """Runs loop 3; returns the gradient with respect to the last state's gradient."""
        cot, count = self.cot_state, len(self.cot_state)
        for t in range(self.run.steps):
            counter = Counter(self.excluded) if not self.run.walk and (self.room is not None or t == 0) else None
            with counter or contextlib.nullcontext():
                graph = self._graph(t)
                given = [*[_leaf(x) for x in self.adjoints[t + 1]], *[_leaf(x) for x in _at(self.out_grads, t)]]
                cots = [*cot, *_at(self.cot_inputs, t), *[self.cot_params[n] for n in graph.used]]
                leaves = [*graph.state, *graph.inputs, *[self.run.params[n] for n in graph.used]]
                with torch.enable_grad():
                    first = _vjp(graph.ends, given, [None if c is None else x for c, x in zip(cots, leaves)],
                                 graph.cut, create=True)
            if counter is not None:
                for x in first:
                    if x is not None:
                        counter.add(x.detach())
                self.tape = max(self.tape, counter.total)
            found = _vjp(first, cots, [*leaves, *given], graph.cut)
            if t % max(1, self.run.steps // OFTEN) == 0:
                self.linear.see(first, cots, given, found[len(leaves):])
            self.adjoints[t], found = _all_owned(found[:count]), found[count:]
            self._add(t, graph, found[:len(leaves) - count])
            found = found[len(leaves) - count:]
            cot = found[:count]
            _put(self.outs, t, found[count:])
        self._check()
        return cot

    def _through(self) -> Row:
        """Runs loop 4; returns the gradient of the first state."""
        b: Row = [None] * len(self.first.leaves)
        for t in range(self.run.steps - 1, -1, -1):
            terms, self.adjoints[t] = self.adjoints[t], []
            if any([x is not None for x in b]):
                graph = self._graph(t)
                leaves = [*graph.state, *graph.inputs, *[self.run.params[n] for n in graph.used]]
                if t % max(1, self.run.steps // RARELY) == 0:
                    self._watch(graph, b, leaves)
                found = _vjp(graph.ends[:len(b)], b, leaves, graph.cut)
                self._add(t, graph, found[len(b):])
                terms = [_sum(x, y) for x, y in zip(terms, found)]
            b = terms
            self.states.pop()
        self.linear.check()
        return b

    def _watch(self, graph: _Graph, b: Row, leaves: Row) -> None:
        """Checks a VJP of loop 4; those of loop 3 are differentiated anyway."""
        given = [_leaf(x) for x in b]
        with torch.enable_grad():
            first = _vjp(graph.ends[:len(b)], given, leaves, graph.cut, create=True)
            cots = [None if x is None else x.detach() for x in first]
        self.linear.see(first, cots, given, _vjp(first, cots, given, graph.cut, keep=True))

    def _add(self, t: int, graph: _Graph, found: Row) -> None:
        """Adds the gradients of a step's inputs and parameters."""
        _put(self.inputs, t, found[:len(graph.inputs)])
        for n, x in zip(graph.used, found[len(graph.inputs):]):
            self.params[n] = _sum(self.params[n], x)

    def _check(self) -> None:
        """Raises RuntimeError for a step whose backward is not linear, and BudgetError if the graph of a step exceeded
        the budget: only at the end of loop 3, because steps may differ and error.least must be sufficient for all."""
        self.linear.check()
        if self.room is not None and self.tape > self.room:
            raise BudgetError(f"double_backward: the graph of one step and of its gradient takes "
                              f"{show_least(self.tape)}, but only {show_most(max(0, self.room))} of the budget are "
                              f"left. Set memory to error.least or more", least=self.tape)

    def _graph(self, t: int) -> _Graph:
        """Records the graph of step t over new leaves."""
        run = self.run
        state = [_leaf(x) for x in self.states[t]]
        inputs = [_leaf(x[t], wanted) for x, wanted in zip(run.inputs or (), run.wants_input)]
        if run.rng:
            set_rng(run.random, self.generators[t])
        begin = mark()
        with self.cast(), torch.enable_grad():
            given = run.input(t) if run.inputs is None else unflatten(run.input_shape, inputs)
            tree, out = run._called(unflatten(run.shape, state), given, t)
        ends = [*flatten(tree)[0], *flatten(out)[0]]
        if not self.computed:
            return _Graph(state, inputs, ends, range(len(run.params)), ())
        used = sorted(run.look(ends, {id(x) for x in (*state, *inputs)}, begin, t)[0])
        return _Graph(state, inputs, ends, used, run._cut(tuple(used)))


def second(run: Run, first: State, cast: Cast, gradients: Sequence[Optional[torch.Tensor]],
           cotangents: Sequence[Optional[torch.Tensor]], wanted: Sequence[bool],
           room: Optional[int]) -> Tuple[Row, int, int]:
    """Computes the second gradients of a scan from its first state.

    :returns: the gradients, the bytes of states and adjoints, and the maximum bytes of one step's graph.
    :raises BudgetError: if the graph of one step needs more than ``room`` bytes.
    """
    if run.walk and room is not None:
        raise UsageError("double_backward=True with a budget does not support steps that use torch.func: their graphs "
                         "refuse the hooks that count saved tensors. Use torch.autograd.grad in the step, or pass "
                         "memory=None")
    work = _Pass(run, first, cast, gradients, cotangents, wanted, room)
    try:
        with muted(run.params):
            found = work.found()
    except RuntimeError as error:
        if "backward through the graph a second time" in str(error):
            raise RuntimeError("double_backward: the step uses a tensor that an earlier step computed but did not "
                               "return, for example one stored in a module attribute. Return it as part of the "
                               "state") from error
        raise
    return found, work.kept, work.tape
