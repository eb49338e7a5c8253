# SPDX-License-Identifier: Apache-2.0
"""Converts nested tuples, lists, dicts and dataclasses of tensors to flat lists and back; None is an empty tree. Types
that are registered with torch.utils._pytree are supported too. Items of these and of dataclasses that are not tensors
are part of the tree's shape."""
import dataclasses
import functools
from typing import Any, Callable, List, Tuple

import torch
from torch.utils import _pytree

from ..errors import UsageError
from .layouts import composed, parts

Tree = Any
"""A tensor, None, or a tuple (also a named tuple), list, dict or dataclass of trees."""

LEAF = "*"
"""The shape of a tree that consists of one tensor."""


_REGISTERED = getattr(_pytree, "SUPPORTED_NODES", {})


class Constant:
    """An item of a shape that is not a tensor; compared with ==."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return type(other) is Constant and (self.value is other.value or bool(self.value == other.value))

    def __repr__(self) -> str:
        return repr(self.value)


def flatten(tree: Tree, what: str = "a tree") -> Tuple[List[torch.Tensor], Any]:
    """Returns the tensors of a tree in order, and its shape, which can be compared with ==.

    :raises UsageError: if the tree contains anything except tensors.
    """
    if isinstance(tree, torch.Tensor):
        return [tree], LEAF
    leaves: List[torch.Tensor] = []
    return leaves, _flatten(tree, leaves, what)


def _flatten(tree: Tree, leaves: List[torch.Tensor], what: str, constants: bool = False) -> Any:
    if isinstance(tree, torch.Tensor):
        leaves.append(tree)
        return LEAF
    if tree is None:
        return None
    if isinstance(tree, (tuple, list)):
        return type(tree), None, tuple([_flatten(part, leaves, what, constants) for part in tree])
    if isinstance(tree, dict):
        return type(tree), tuple(tree), tuple([_flatten(part, leaves, what, constants) for part in tree.values()])
    if _is_dataclass(tree):
        names = _names(tree)
        return type(tree), names, tuple([_flatten(getattr(tree, name), leaves, what, True) for name in names])
    if type(tree) in _REGISTERED:
        parts, context = _REGISTERED[type(tree)].flatten_fn(tree)
        return type(tree), Constant(context), tuple([_flatten(part, leaves, what, True) for part in parts])
    if constants and not hasattr(tree, "__array__"):
        return Constant(tree)
    number = isinstance(tree, (bool, int, float, complex)) or hasattr(tree, "__array__")
    how = ". Convert it with torch.tensor(...)" if number else ""
    if what == "inputs" and hasattr(tree, "__iter__") and not number:
        how = ". If it yields one input per step, pass torch.stack(list(inputs)), or a function of t and steps=T"
    raise UsageError(f"{what} contains an item of type {type(tree).__name__}. Allowed are tensors, None, and tuples, "
                     f"lists, dicts and dataclasses of these{how}")


def _is_dataclass(tree: Any) -> bool:
    return dataclasses.is_dataclass(tree) and not isinstance(tree, type)


def _names(tree: Any) -> Tuple[str, ...]:
    """Returns the attributes of a dataclass: its fields, and others that are set, for example by __post_init__."""
    names = [field.name for field in dataclasses.fields(tree) if hasattr(tree, field.name)]
    more = [name for name in getattr(tree, "__dict__", ()) if name not in names
            and not isinstance(getattr(type(tree), name, None), functools.cached_property)]
    return (*names, *more)


def described(shape: Any) -> str:
    """Describes a tree's shape in words."""
    if shape is LEAF:
        return "tensor"
    if shape is None:
        return "None"
    if isinstance(shape, Constant):
        return repr(shape)
    kind, keys, parts = shape
    inside = [described(part) for part in parts]
    if isinstance(keys, tuple) and dataclasses.is_dataclass(kind):
        inside = [f"{key}={part}" for key, part in zip(keys, inside)]
    elif isinstance(keys, tuple):
        inside = [f"{key!r}: {part}" for key, part in zip(keys, inside)]
    return f"{kind.__name__}({', '.join(inside)})"


def tensors_in(tree: Any) -> List[torch.Tensor]:
    """Returns the tensors of a tree that may also contain other items."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if _is_dataclass(tree):
        return [leaf for name in _names(tree) for leaf in tensors_in(getattr(tree, name))]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else ()
    return [leaf for part in parts for leaf in tensors_in(part)]


def unflatten(shape: Any, leaves: List[torch.Tensor]) -> Tree:
    """Builds the tree with a shape and tensors."""
    return leaves[0] if shape is LEAF else _build(shape, iter(leaves))


def _build(shape: Any, leaves: Any) -> Tree:
    if shape is LEAF:
        return next(leaves)
    if shape is None:
        return None
    if type(shape) is Constant:
        return shape.value
    kind, keys, parts = shape
    built = [_build(part, leaves) for part in parts]
    if type(keys) is Constant:
        return _REGISTERED[kind].unflatten_fn(built, keys.value)
    if keys is not None and not issubclass(kind, dict):
        return _copied(kind, keys, built)
    if keys is not None:
        return dict(zip(keys, built)) if kind is dict else kind(zip(keys, built))
    return kind(*built) if hasattr(kind, "_fields") else kind(built)


def _copied(kind: Any, names: Tuple[str, ...], values: List[Any]) -> Any:
    """Returns a dataclass with these attributes, created like a copy: without __init__ and __post_init__."""
    made = object.__new__(kind)
    for name, value in zip(names, values):
        object.__setattr__(made, name, value)
    return made


def mapped(function: Callable[[torch.Tensor], Any], tree: Tree, what: str = "a tree") -> Tree:
    """Applies the function to every tensor of a tree."""
    leaves, shape = flatten(tree, what)
    return unflatten(shape, [function(leaf) for leaf in leaves])


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True if two tensors are equal in shape, dtype and values; NaNs equal each other."""
    if a.layout is not b.layout or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if composed(a):
        return all(map(equal, parts(a), parts(b)))
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def nbytes(leaves: Any) -> int:
    """Returns the bytes of the elements of tensors."""
    return sum(part.numel() * part.element_size() for leaf in leaves for part in parts(leaf))
