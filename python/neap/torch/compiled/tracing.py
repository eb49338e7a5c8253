# SPDX-License-Identifier: Apache-2.0
"""Traces groups of steps, each with its backward pass, as graphs of operations, without autograd.

The graph is a function of the first state, the inputs, the parameters, the incoming gradients, and other tensors that
the step uses. Tensors that the step finds in modules or variables are recognized by identity, so they are arguments
too. In-place operations are replaced by functional ones. Everything else that a step computes in Python is a constant
of the graph.
"""
from typing import Any, Callable, List, NamedTuple, NoReturn, Sequence, Tuple

import torch

from ...errors import Error
from ..interrupts import imported, passed_on
from ..leaves import differentiable, leaves_of
from ..measure import Uncounted, mark
from ..runs import Run
from ..seeding import GroupTape
from ..trees import flatten, unflatten

__all__ = ["Joint", "Steps", "Untraceable", "is_random", "reason", "traced"]


class Untraceable(Error):
    """Raised if a group of steps cannot be traced or compiled; the message is the reason."""


def reason(error: BaseException) -> str:
    """Returns an error's message for a warning, of other errors than Untraceable the beginning of the first line."""
    if isinstance(error, Untraceable):
        return str(error)
    line = (str(error).strip().split("\n")[0] or "no message").rstrip(".")
    return f"{type(error).__name__}: {line[:200]}"


class Unused:
    """Replaces the number of a step while a group is traced, because the graph is the same for all groups."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise Untraceable("it uses the number of the step, t. Pass it as an input instead, for example "
                          "inputs=(x, torch.arange(T))")

    __index__ = __int__ = __float__ = __bool__ = __hash__ = __eq__ = __ne__ = _refuse  # type: ignore[assignment]
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pos__ = __abs__ = __divmod__ = __rdivmod__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _refuse
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = __invert__ = _refuse

    @classmethod
    def __torch_function__(cls, *_: Any) -> NoReturn:
        return cls()._refuse()

    def __repr__(self) -> str:
        return "t"


class Joint(NamedTuple):
    """A traced group.

    ``graph``: a torch.fx.Graph. Its placeholders are the first state, inputs, parameters, then the incoming gradients
    (``tangents`` of them), then ``constants``, other tensors that the step uses. Its results are the last state,
    outputs [steps, ...] (``forward`` results), then gradients. ``adjoint``, ``columns``, ``wanted``, ``used``: indices
    of the states, outputs, inputs and parameters that have gradients. ``random``: its steps draw random numbers.
    """

    graph: Any
    states: int
    forward: int
    tangents: int
    constants: List[torch.Tensor]
    adjoint: List[int]
    columns: List[int]
    wanted: List[int]
    used: List[int]
    random: bool
    out_shape: Any


def _supported(tensors: Sequence[torch.Tensor]) -> None:
    """Raises Untraceable for tensors that compilers do not support."""
    for x in tensors:
        if x.layout is not torch.strided or x.is_complex() or x.is_neg() or x.is_nested or x.is_quantized:
            raise Untraceable("its state, input, output or parameters have a tensor that is sparse, complex, quantized "
                              "or nested")


class Steps:
    """``count`` steps and their backward pass as a function of tensors.

    :param outside: returns a context manager for the autocast mode of backward passes.
    """

    def __init__(self, run: Run, count: int, outside: Callable[[], Any]):
        self.run, self.count, self.outside = run, count, outside
        self.states = self.outputs = 0
        self.out_shape: Any = None
        self.used: List[int] = []
        self.adjoint: List[int] = []
        self.columns: List[int] = []
        self.wanted = [k for k, wanted in enumerate(run.wants_input) if wanted]

    def forward(self, leaves: Sequence[torch.Tensor], chunks: Sequence[torch.Tensor],
                times: Sequence[Any]) -> Tuple[GroupTape, List[torch.Tensor]]:
        """Runs the steps ``times`` with gradients; returns their graph, and the outputs [count, ...]."""
        run, begin = self.run, mark()
        first = leaves_of(leaves)
        tape = GroupTape(0, self.count, first)
        with torch.enable_grad():
            tree, shapes = unflatten(run.shape, first), []
            for i, t in enumerate(times):
                row = [x[i] for x in chunks]
                tape.inputs[i] = [x.requires_grad_() if k in self.wanted else x for k, x in enumerate(row)]
                given = unflatten(run.input_shape, tape.inputs[i]) if chunks else None
                tree, out = run._called(tree, given, t)
                tape.outputs[i], shape = flatten(out, "the output")
                shapes.append((shape, [(x.shape, x.dtype) for x in tape.outputs[i]]))
            tape.last = run.flat(tree, times[-1])
            if run.steps > self.count and any([x._backward_hooks for x in first]):
                raise Untraceable("it registers a hook on the state that it receives")
            _supported([*leaves, *chunks, *run.params, *tape.last, *[x for row in tape.outputs.values() for x in row]])
            if any([shape != shapes[0] for shape in shapes]):
                raise Untraceable("the structure, shape or dtype of its output changes")
            if [(x.shape, x.dtype) for x in tape.last] != [(x.shape, x.dtype) for x in leaves]:
                raise Untraceable("the shape or dtype of its state changes")
            self.out_shape = shapes[0][0]
            own = [*first, *[x for row in tape.inputs.values() for x in row]]
            run._check(tape, begin, own, Uncounted(0))
            return tape, [torch.stack(column) for column in zip(*tape.outputs.values())]

    def learn(self, tape: GroupTape, out: Sequence[torch.Tensor]) -> None:
        """Takes from an ordinary call which results and arguments have gradients."""
        self.states, self.outputs = len(tape.last), len(out)
        self.used = list(range(len(self.run.params))) if tape.params is None else list(tape.params)
        self.adjoint = [j for j, x in enumerate(tape.last) if differentiable(x)]
        self.columns = [i for i, x in enumerate(out) if x.requires_grad]

    def ones(self, tape: GroupTape, out: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        """Returns incoming gradients of ones."""
        like = [*[tape.last[j] for j in self.adjoint], *[out[i] for i in self.columns],
                *[self.run.params[n] for n in self.used]]
        return [torch.ones_like(x, memory_format=torch.contiguous_format, requires_grad=False) for x in like]

    def backward(self, tape: GroupTape, tangents: Sequence[torch.Tensor]) -> List[Any]:
        """Returns the gradients of the first state, of inputs [count, ...] and of parameters."""
        run, given = self.run, iter(tangents)
        adjoint = {j: next(given) for j in self.adjoint}
        rows = {i: next(given) for i in self.columns}
        sums: List[Any] = [None] * len(run.params)
        for n in self.used:
            sums[n] = next(given)
        with self.outside():
            arrived, at = run.reversed(tape, sums, [adjoint.get(j) for j in range(len(tape.last))],
                                       lambda i, t: rows[i][t] if i in rows else None, ())
        found = [arrived[j] for j in self.adjoint]
        for k in self.wanted:
            column = [at[t][k] if t in at else None for t in range(self.count)]
            found.append(torch.stack([torch.zeros_like(tape.inputs[t][k]) if x is None else x
                                      for t, x in enumerate(column)]))
        return [None if x is None else x.detach().contiguous() for x in [*found, *[sums[n] for n in self.used]]]

    def __call__(self, primals: List[torch.Tensor], tangents: List[torch.Tensor]) -> List[Any]:
        states, params = self.states, len(self.run.params)
        tape, out = self.forward(primals[:states], primals[states:len(primals) - params], [Unused()] * self.count)
        return [*[x.detach().contiguous() for x in (*tape.last, *out)], *self.backward(tape, tangents)]


def is_random(node: Any) -> bool:
    """True if an operation draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _lifted(module: Any) -> Tuple[Any, List[torch.Tensor]]:
    """Returns the module with its tensor attributes as additional arguments at the end, and these tensors."""
    graph, env, values = torch.fx.Graph(), {}, {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            env[node] = graph.placeholder(node.name)
            env[node].meta = dict(node.meta)
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value = module
            for name in node.target.split("."):
                value = getattr(value, name)
            if not isinstance(value, torch.Tensor):
                raise Untraceable(f"it uses an object of type {type(value).__name__}, which cannot be an argument")
            if id(value) not in values:
                values[id(value)] = value, graph.placeholder(f"constant_{len(values)}")
                values[id(value)][1].meta = {"val": value.detach()}
            env[node] = values[id(value)][1]
    for node in module.graph.nodes:
        if node not in env:
            env[node] = graph.node_copy(node, lambda old: env[old])
    return torch.fx.GraphModule(torch.nn.Module(), graph), [value.detach() for value, _ in values.values()]


def _checked(graph: Any) -> bool:
    """Returns True if a graph draws random numbers. Raises Untraceable if it modifies its arguments."""
    if _mutates(graph):
        raise Untraceable("it modifies tensors in place that it did not create")
    return any([is_random(node) for node in graph.nodes])


def _mutates(graph: Any) -> bool:
    """True if an operation of a graph modifies tensors in place."""
    return any([node.op == "call_function" and getattr(getattr(node.target, "_schema", None), "is_mutable", False)
                for node in graph.nodes])


def traced(steps: Steps, primals: List[torch.Tensor], tangents: List[torch.Tensor]) -> Joint:
    """Traces steps for arguments like these: state, inputs and parameters; and incoming gradients.

    :raises Untraceable: if that is not possible.
    """
    try:
        imported("torch.fx.experimental.proxy_tensor", "torch._dynamo")
        from torch.fx.experimental.proxy_tensor import make_fx
        module, constants = _lifted(make_fx(steps)(primals, tangents))
        graph = module.graph
        if _mutates(graph):  # tracing once more takes about 1 s
            given = [x.detach() for x in (*primals, *tangents, *constants)]
            with torch.no_grad():
                graph = make_fx(torch.func.functionalize(lambda *xs: module(*xs), remove="mutations"))(*given).graph
    except Untraceable:
        raise
    except Exception as error:  # anything that make_fx does not support
        passed_on(error)
        raise Untraceable(reason(error)) from error
    forward = steps.states + steps.outputs
    return Joint(graph, steps.states, forward, len(tangents), constants, steps.adjoint, steps.columns, steps.wanted,
                 steps.used, _checked(graph), steps.out_shape)
