# SPDX-License-Identifier: Apache-2.0
"""The buffers and attributes of modules and other objects around a step, before and after steps.

A step that stores a value there and reads it in the next step has a state that a scan does not see: measured or
recomputed steps would find a different value than in a plain loop.
"""
import contextlib
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import torch

from ..errors import UsageError
from .trees import equal

__all__ = ["Attributes"]

_MISSING = object()
_KEPT = (torch.Tensor, bool, int, float, complex, str, type(None))
_OF_MODULES = frozenset(vars(torch.nn.Module())) - {"training"}  # attributes of every module


def _dicts(modules: Sequence[torch.nn.Module], others: Sequence[Any]) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Yields the dicts that contain attributes, each with the prefix of their names."""
    for module in modules:
        for path, part in module.named_modules():
            before = f"{path}." if path else ""
            yield before, part._buffers
            yield before, vars(part)
            for name, value in vars(part).items():
                if type(value) is dict and name not in _OF_MODULES:
                    yield f"{before}{name}.", value
    for other in others:
        yield f"{type(other).__name__}.", vars(other)


class Attributes:
    """Tensors, numbers and strings in the buffers and attributes of modules and objects, at the time of construction.
    """

    def __init__(self, modules: Sequence[torch.nn.Module], others: Sequence[Any]):
        self._dicts = [(before, held, self._of(held)) for before, held in _dicts(modules, others)]

    @staticmethod
    def _of(held: Dict[str, Any]) -> Dict[str, Any]:
        return {key: value for key, value in held.items() if isinstance(value, _KEPT) and key not in _OF_MODULES}

    def changed(self) -> List[Tuple[Dict[str, Any], str, str, Any, Any]]:
        """Returns attributes that were assigned since: the dict, the key, the name, the old value and the new value."""
        found = []
        for before, held, was in self._dicts:
            items = dict(held.items())  # modules of TorchScript have a dict-like object
            for key, value in was.items():
                now = items.get(key, _MISSING)
                if now is not value and (isinstance(value, torch.Tensor) or type(now) is not type(value) or
                                         now != value):
                    found.append((held, key, before + key, value, now))
            found += [(held, key, before + key, _MISSING, value)
                      for key, value in self._of(items).items() if key not in was]
        return found

    def texts(self) -> List[str]:
        """Describes the values; tensors by their identity, without those that require gradients."""
        return [f"{before}{key}={id(value) if isinstance(value, torch.Tensor) else repr(value)}"
                for before, _, was in self._dicts for key, value in was.items()
                if not (isinstance(value, torch.Tensor) and value.requires_grad)]

    def restore(self) -> None:
        """Restores the old values."""
        _bind((held, key, value) for held, key, _, value, _ in self.changed())

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Context manager that removes the values that steps store inside it."""
        try:
            yield
        finally:
            self.restore()

    def check(self, first: Callable[[], List[torch.Tensor]], message: Callable[[str], str]) -> None:
        """Raises UsageError, with the ``message`` for an attribute's name, if steps stored values that a step reads.

        :param first: computes the results of the first step. They are compared for the old values, the current values,
            and the values that the first step itself stores.
        """
        found = self.changed()
        if not found:
            return
        try:
            last = first()
            self.restore()
            once, again = first(), first()
            self.restore()
            same = _alike(once, first())  # otherwise the step also depends on something else
        finally:
            self.restore()
            _bind((held, key, now) for held, key, _, _, now in found)
        if same and not (_alike(once, last) and _alike(once, again)):
            raise UsageError(message(found[0][2]))


def _bind(rows: Any) -> None:
    for held, key, value in rows:
        if value is _MISSING:
            held.pop(key, None)
        else:
            held[key] = value


def _alike(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b))
