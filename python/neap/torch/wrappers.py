# SPDX-License-Identifier: Apache-2.0
"""Steps around a step: one that sums the reduced outputs, one whose buffers are part of the state, and one that calls
a recurrent module of PyTorch."""
import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from ..errors import UsageError
from .trees import Tree, flatten, unflatten

__all__ = ["Buffered", "Recurrent", "argument_hint", "listed", "recurrent", "reducing", "signature_hint"]


def reducing(step: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a step whose state includes the sum of the reduced outputs, and which returns no outputs."""
    def summed(state: Tree, given: Any, t: int) -> Tuple[Tree, None]:
        after, output = step(state[0], given, t)
        terms, shape = flatten(reduce(output, t), "the result of reduce")
        sums, _ = flatten(state[1])
        return (after, unflatten(shape, [a + b for a, b in zip(sums, terms)])), None
    return summed


class Buffered:
    """A step of a module whose buffers are part of the state: ``(state, buffers)``.

    The module's own buffers do not change while it runs; :meth:`take` sets their final values.
    """

    def __init__(self, module: torch.nn.Module, step: Callable[..., Any]):
        self.step = step
        rows: Dict[int, Tuple[Dict[str, Any], str, str]] = {}
        for name, part in module.named_modules():
            for key, value in part._buffers.items():
                if value is not None:
                    rows.setdefault(id(value), (part._buffers, key, f"{name}.{key}" if name else key))
        self._rows = list(rows.values())

    def start(self) -> List[torch.Tensor]:
        """Returns copies of the buffers."""
        return [held[key].detach().clone() for held, key, _ in self._rows]

    def __call__(self, state: Tree, given: Any, t: int) -> Tuple[Tree, Any]:
        kept = [held[key] for held, key, _ in self._rows]
        try:
            for (held, key, _), value in zip(self._rows, state[1]):
                held[key] = value.detach().clone()
            after, output = self.step(state[0], given, t)
            found = [held[key] for held, key, _ in self._rows]
        finally:
            for (held, key, _), value in zip(self._rows, kept):
                held[key] = value
        for (_, _, name), value in zip(self._rows, found):
            if value.requires_grad:
                raise UsageError(f"the step assigns a value that requires a gradient to buffer {name!r}, but "
                                 f"buffers='state' does not differentiate buffers. Return the value as part of the "
                                 f"state; if the state contains it already, remove buffers='state'")
        return (after, found), output

    def take(self, values: Sequence[torch.Tensor]) -> None:
        """Sets the module's buffers to these values."""
        with torch.no_grad():
            for (held, key, _), value in zip(self._rows, values):
                held[key].copy_(value)


_CELLS = (torch.nn.RNNCell, torch.nn.GRUCell, torch.nn.LSTMCell)
_LAYERS = (torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM)


class Recurrent:
    """One of PyTorch's recurrent modules, which are called with ``(input, state)``, as a step. The output is the
    hidden state h, of the last layer if there are several.

    :raises UsageError: if the module is bidirectional or has the batch first.
    """

    def __init__(self, module: torch.nn.Module):
        self.module, self.cell = module, isinstance(module, _CELLS)
        name = f"nn.{type(module).__name__}"
        if getattr(module, "bidirectional", False):
            raise UsageError(f"step is an {name} with bidirectional=True, which needs the whole sequence for each "
                             f"step. Use two modules with bidirectional=False, and scan x with one and x.flip(0) with "
                             f"the other")
        if getattr(module, "batch_first", False):
            raise UsageError(f"step is an {name} with batch_first=True, but a scan takes inputs of shape [T, batch, "
                             f"features]. Set module.batch_first = False and pass x.transpose(0, 1)")

    def __call__(self, state: Tree, given: Any, t: int) -> Tuple[Tree, Any]:
        if self.cell:
            after = self.module(given, state)
            return after, after[0] if isinstance(after, tuple) else after
        output, after = self.module(given[None], state)
        return after, output[0]

    @staticmethod
    def inputs(given: Any) -> Any:
        """Converts inputs for a scan: a list with one tensor per step becomes one tensor. Raises UsageError for packed
        sequences."""
        if isinstance(given, torch.nn.utils.rnn.PackedSequence):
            raise UsageError("inputs is a PackedSequence, but a scan takes a tensor [T, batch, features]. Pad it with "
                             "torch.nn.utils.rnn.pad_packed_sequence, and mask the outputs")
        return torch.stack(list(given)) if listed(given) else given

    def start(self, given: Any) -> Tree:
        """Returns the module's default initial state: zeros. ``given`` are the inputs, [T, ...]."""
        if not isinstance(given, torch.Tensor):
            raise UsageError(f"state is None, which an nn.{type(self.module).__name__} completes only if inputs is a "
                             f"tensor. Pass the initial state, for example torch.zeros(...)")
        module, layers = self.module, () if self.cell else (self.module.num_layers,)

        def zeros(size: int) -> torch.Tensor:
            return given.new_zeros((*layers, *given.shape[1:-1], size))
        h = zeros(getattr(module, "proj_size", 0) or module.hidden_size)
        return (h, zeros(module.hidden_size)) if isinstance(module, (torch.nn.LSTMCell, torch.nn.LSTM)) else h


def recurrent(step: Any) -> Optional[Recurrent]:
    """Returns a Recurrent for one of PyTorch's recurrent modules; None for other steps, and for subclasses with their
    own forward."""
    kinds = (*_CELLS, *_LAYERS)
    own = isinstance(step, kinds) and type(step).forward in [kind.forward for kind in kinds]
    return Recurrent(step) if own else None


def signature_hint(step: Any) -> str:
    """Returns a hint if a step cannot be called as step(state, input, t), after a failure; else ""."""
    try:
        signature = inspect.signature(step.forward if isinstance(step, torch.nn.Module) else step)
    except Exception:  # objects may refuse to be inspected
        return ""
    try:
        signature.bind(None, None, 0)
    except TypeError:
        return (f"It has the arguments {signature}, but a scan calls step(state, input, t). Wrap it in a function that "
                f"returns (state, output), for example: def step(h, x, t): h = cell(x, h); return h, h")
    return ""


def argument_hint(state: Any, inputs: Any) -> str:
    """Returns a hint about arguments of a scan that a step may have failed on, after a failure; else ""."""
    if state is None:
        return "The initial state is None. If the step has a state, pass one, for example torch.zeros(batch, features)"
    return listed(inputs) or _listed_trees(inputs)


def _row(x: Any) -> bool:
    """Whether x is a tuple or list with several tensors."""
    return type(x) in (list, tuple) and len(x) > 1 and all(isinstance(part, torch.Tensor) for part in x)


def _listed_trees(inputs: Any) -> str:
    """A list with one tuple of tensors per step, or a tuple of lists with one tensor per step."""
    if type(inputs) not in (list, tuple) or not inputs or not all(map(_row, inputs)):
        return ""
    rows = [tuple([x.shape for x in row]) for row in inputs]
    if len(inputs) > 1 and len(set(rows)) == 1 and type(inputs) is list:
        return (f"inputs is a list of {len(inputs)} {type(inputs[0]).__name__}s of tensors. If there is one per step, pass "
                f"tuple(torch.stack(x) for x in zip(*inputs))")
    if len({len(row) for row in rows}) == 1 and all(len(set(row)) == 1 for row in rows):
        return (f"inputs is a {type(inputs).__name__} of lists of {len(rows[0])} tensors. If there is one tensor per step, "
                f"pass tuple(torch.stack(x) for x in inputs)")
    return ""


def listed(inputs: Any) -> str:
    """Returns a hint for inputs that may be meant as a list with one tensor per step, after a failure; else ""."""
    if type(inputs) not in (list, tuple) or len(inputs) < 2 or not all(isinstance(x, torch.Tensor) for x in inputs) \
            or len({x.shape for x in inputs}) > 1:
        return ""
    return (f"inputs is a {type(inputs).__name__} of {len(inputs)} tensors of shape {tuple(inputs[0].shape)}, and each "
            f"is taken as [T, ...]: a step gets one row of every tensor. If there is one tensor per step, pass "
            f"torch.stack(inputs)")
