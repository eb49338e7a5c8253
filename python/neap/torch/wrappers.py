# SPDX-License-Identifier: Apache-2.0
"""Steps around a step: one that adds up what its outputs give, one whose buffers are state."""
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch

from ..errors import UsageError
from .trees import Tree, flatten, unflatten

__all__ = ["Buffered", "reducing"]


def reducing(step: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A step whose state has the sum of what reduce makes of outputs, and which keeps none."""
    def summed(state: Tree, given: Any, t: int) -> Tuple[Tree, None]:
        after, output = step(state[0], given, t)
        terms, shape = flatten(reduce(output, t), "the result of reduce")
        sums, _ = flatten(state[1])
        return (after, unflatten(shape, [a + b for a, b in zip(sums, terms)])), None
    return summed


class Buffered:
    """A step of a module whose buffers are part of the state: ``(state, buffers)``.

    The module's own buffers stay as they are while it runs; :meth:`take` gives them last values.
    """

    def __init__(self, module: torch.nn.Module):
        self.module = module
        rows: Dict[int, Tuple[Dict[str, Any], str, str]] = {}
        for name, part in module.named_modules():
            for key, value in part._buffers.items():
                if value is not None:
                    rows.setdefault(id(value), (part._buffers, key, f"{name}.{key}" if name else key))
        self._rows = list(rows.values())

    def start(self) -> List[torch.Tensor]:
        """The buffers as they are now."""
        return [held[key].detach().clone() for held, key, _ in self._rows]

    def __call__(self, state: Tree, given: Any, t: int) -> Tuple[Tree, Any]:
        kept = [held[key] for held, key, _ in self._rows]
        try:
            for (held, key, _), value in zip(self._rows, state[1]):
                held[key] = value.detach().clone()
            after, output = self.module(state[0], given, t)
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
        """Gives the module's buffers these values."""
        with torch.no_grad():
            for (held, key, _), value in zip(self._rows, values):
                held[key].copy_(value)
