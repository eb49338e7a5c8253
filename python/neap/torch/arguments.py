# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call of a scan: validated, with flat lists instead of trees."""
import dataclasses
import warnings
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import torch

from .. import units
from ..errors import UsageError, stack_level
from ..group_plans import Costs
from ..stores import Paths
from ..units import Size
from .around import Around
from .device import Device, Generators
from .layouts import dense
from .runs import Cast
from .trees import Tree, flatten, tensors_in
from .wrappers import Buffered, argument_hint, listed, recurrent, reducing

__all__ = ["Arguments", "Options", "arguments", "options"]


class Options(NamedTuple):
    """Arguments of a scan; described in :func:`neap.torch.scan`."""

    params: Optional[List[torch.Tensor]]
    memory: Optional[int]
    group: Optional[int]
    strategy: str
    reduce: Optional[Callable[..., Any]]
    rng: Optional[bool]
    strict: bool
    costs: Optional[Costs]
    slow: Optional[Paths]
    host: Optional[int]
    check: bool
    count: bool
    buffers: Optional[str]
    double: bool
    enable_grad: Optional[bool]
    compile: bool

    @property
    def tiers(self) -> Any:
        """The arguments that the tiers of a plan depend on."""
        return repr(self.slow), self.host


def options(params: Any, memory: Optional[Size], group: Optional[int], strategy: str, reduce: Any,
            rng: Optional[bool], strict: bool, costs: Optional[Sequence[float]], slow: Optional[Paths],
            host: Optional[Size], check: bool, count: bool, buffers: Optional[str], double: bool,
            enable_grad: Optional[bool], compile: bool) -> Options:
    """Converts the arguments of a scan to Options; raises UsageError if one is invalid."""
    if group is not None and units.count(group, "group") < 1:
        raise UsageError(f"group={group} is not valid: a graph has at least 1 step. Pass 1 or more, or None to let "
                         f"neap choose")
    if buffers not in (None, "state"):
        raise UsageError(f"buffers={buffers!r} is not valid; pass 'state' or None")
    if enable_grad not in (None, False, True):
        raise UsageError(f"enable_grad={enable_grad!r} is not valid; pass True, False or None")
    if compile and not hasattr(torch, "compile"):
        raise UsageError(f"compile=True needs PyTorch 2, but this is PyTorch {torch.__version__}. Upgrade PyTorch, or "
                         f"remove compile=True")
    if reduce is not None and not callable(reduce):
        raise UsageError(f"reduce={reduce!r} is not a function. Pass reduce(output, t), whose results are added up; for "
                         f"the sum of the outputs: reduce=lambda output, t: output")
    if memory is None and strategy in ("auto", "bptt"):
        for name, value in (("slow", slow), ("host", host)):
            if value is not None:
                warnings.warn(f"{name}={value!r} has no effect without memory=: without a budget everything stays in "
                              f"memory. Pass memory=", RuntimeWarning, stacklevel=stack_level())
    if isinstance(params, torch.nn.Module):
        params = params.parameters()
    if isinstance(params, torch.Tensor):
        params = [params]
    if costs is not None and (not isinstance(costs, (tuple, list)) or len(costs) != len(Costs._fields)):
        raise UsageError(f"costs={costs!r} is not three numbers: seconds per advanced, recorded and reversed step")
    return Options(None if params is None else list(params),
                   None if memory is None else units.size(memory, "memory"), group, strategy,
                   reduce, rng, strict, None if costs is None else Costs(*costs), slow,
                   None if host is None else units.size(host, "host"), check, count, buffers, double, enable_grad,
                   bool(compile))


@dataclasses.dataclass
class Arguments:
    """``step``: with the wrappers of ``buffers`` and ``reduce``; ``called``: without them; ``hint``: the possible cause
    of an error in it. ``tree``: the first state, with buffers and the sum of reduced outputs; ``start``, ``shape``: its
    tensors and structure. ``inputs``: tensors [T, ...], or None; ``give``: a function of t instead. ``device``: the one
    whose states and tapes are offloaded through host memory."""

    options: Options
    step: Callable[..., Any]
    called: Callable[..., Any]
    hint: str
    module: Optional[torch.nn.Module]
    buffered: Optional[Buffered]
    around: Around
    tree: Tree
    start: List[torch.Tensor]
    shape: Any
    inputs: Optional[List[torch.Tensor]]
    input_shape: Any
    give: Optional[Callable[[int], Any]]
    steps: int
    cast: Cast
    random: Generators = dataclasses.field(init=False)
    device: Optional[Device] = None

    @property
    def kind(self) -> Any:
        """What the sizes of the states may depend on."""
        return ("grows", self.steps, *[(x.shape, x.dtype) for x in (*self.start, *(self.inputs or ()))])

    def params(self, found: List[Any]) -> List[torch.Tensor]:
        """Returns the tensors that require gradients: those of the module, those in ``params``, and those that the weak
        references ``found`` refer to."""
        rows: List[torch.Tensor] = [] if self.module is None else list(self.module.parameters())
        rows += self.options.params or []
        rows += [leaf for leaf in (ref() for ref in found) if leaf is not None]
        return list({id(row): row for row in rows if row.requires_grad}.values())

    def reduced(self, total: Tree) -> None:
        """Adds the sum of the reduced outputs, ``total`` before the first step, to the state."""
        assert self.options.reduce is not None
        self.step, self.tree = reducing(self.step, self.options.reduce), (self.tree, total)
        self.start, self.shape = flatten(self.tree)

    def dense(self) -> None:
        """Raises UsageError for states, and inputs that require gradients, that are not plain dense tensors."""
        dense(self.start, "the initial state (of buffers= and reduce=, too)")
        dense([x for x in self.inputs or () if x.requires_grad or x.is_nested], "inputs")


def arguments(step: Any, state: Tree, inputs: Any, steps: Optional[int], options: Options,
              found: List[Any]) -> Arguments:
    """Checks the arguments of a call and flattens their trees. ``found``: weak references to leaves that earlier calls of
    the step found.

    :raises UsageError: if an argument is invalid.
    """
    module = step if isinstance(step, torch.nn.Module) else None
    called, cell = step, recurrent(step)
    if cell is not None:
        called, inputs = cell, cell.inputs(inputs)
        state = cell.start(inputs) if state is None else state
    hint = argument_hint(state, inputs)
    around = Around(step, *[one for one in (options.reduce, inputs) if callable(one)], buffered=options.buffers is not None)
    around.forget(found)
    give = inputs if callable(inputs) and not isinstance(inputs, torch.Tensor) else None
    rows, input_shape = (None, None) if inputs is None or give is not None else flatten(inputs, "inputs")
    count = _steps(rows, steps, listed(inputs))
    buffered = _buffered(module, called, options)
    if buffered is not None:
        state = (state, buffered.start())
    start, shape = flatten(state, "the state")
    cast = Cast((start or rows or [torch.empty(0)])[0].device)
    made = Arguments(options, called if buffered is None else buffered, called, hint, module, buffered, around, state,
                     start, shape, rows, input_shape, give, count, cast)
    tensors = [*tensors_in(state), *(rows or ()), *made.params(found)]
    made.random = Generators([x.device for x in tensors], around.generators, options.rng is not False)
    return made


def _steps(inputs: Optional[List[torch.Tensor]], steps: Optional[int], hint: str) -> int:
    lengths = {x.shape[0] if x.dim() else -1 for x in inputs or ()}
    try:
        return units.steps_of(lengths, steps, "tensor")
    except UsageError as error:
        if hint:
            raise UsageError(f"{error}. {hint}") from None
        raise


def _buffered(module: Optional[torch.nn.Module], step: Callable[..., Any], options: Options) -> Optional[Buffered]:
    if options.buffers is None:
        return None
    if module is None:
        raise UsageError("buffers='state' needs a torch.nn.Module, but step is a function. Pass the module itself instead "
                         "of a function that calls it")
    return Buffered(module, step)
