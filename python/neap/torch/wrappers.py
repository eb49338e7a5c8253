# SPDX-License-Identifier: Apache-2.0
"""Steps around a step: one that adds up what its outputs give, one whose buffers are state."""
import functools
import itertools
import types
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import torch

from ..errors import UsageError
from .trees import Tree, flatten, unflatten

__all__ = ["Buffered", "modules_of", "reducing"]

MOST = 1000  # objects that are looked at around a step


def modules_of(step: Any) -> List[torch.nn.Module]:
    """The modules that a step is, or reaches as a function does: by the variables around it, its
    defaults, the module-wide names that it uses, and functions, lists and dicts among these."""
    found: Dict[int, torch.nn.Module] = {}
    seen, rows = set(), [step]
    while rows and len(seen) < MOST:
        row = rows.pop()
        if id(row) in seen:
            continue
        seen.add(id(row))
        if isinstance(row, torch.nn.Module):
            found[id(row)] = row
        elif isinstance(row, functools.partial):
            rows += [row.func, *row.args, *row.keywords.values()]
        elif isinstance(row, types.MethodType):
            rows += [row.__func__, row.__self__, getattr(row.__self__, "__dict__", None)]
        elif isinstance(row, (list, tuple)):
            rows += row[:MOST]
        elif isinstance(row, dict):
            rows += itertools.islice(row.values(), MOST)
        elif isinstance(row, types.FunctionType) and (row.__module__ or "").split(".")[0] not in ("torch", "neap"):
            rows += _reached(row)
    return list(found.values())


def _reached(function: types.FunctionType) -> Iterator[Any]:
    """What a function finds outside its arguments, as it is now."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that are not its own variables, in functions and comprehensions within it as well."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def reducing(step: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A step whose state has the sum of what reduce makes of outputs, and which keeps none."""
    def summed(state: Tree, given: Any, t: int) -> Tuple[Tree, None]:
        after, output = step(state[0], given, t)
        terms, shape = flatten(reduce(output, t), "what reduce returns")
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
                raise UsageError(f"the buffer {name!r} gets a value that needs a gradient: make it "
                                 f"part of the state that the step takes and returns")
        return (after, found), output

    def take(self, values: Sequence[torch.Tensor]) -> None:
        """Gives the module's buffers these values."""
        with torch.no_grad():
            for (held, key, _), value in zip(self._rows, values):
                held[key].copy_(value)
