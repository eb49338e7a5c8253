# SPDX-License-Identifier: Apache-2.0
"""Nested tuples, lists and dicts of tensors as flat lists and back; None is an empty tree."""
from typing import Any, Callable, List, Tuple

import torch

from ..errors import UsageError
from .layouts import composed, parts

Tree = Any
"""A tensor, None, or a tuple (also a named one), list or dict of trees."""

LEAF = "*"
"""The shape of a tree that is one tensor."""


def flatten(tree: Tree, what: str = "a tree") -> Tuple[List[torch.Tensor], Any]:
    """The tensors of a tree in order, and its shape, which compares with ==.

    :raises UsageError: where something else than a tensor is in it.
    """
    if isinstance(tree, torch.Tensor):
        return [tree], LEAF
    leaves: List[torch.Tensor] = []
    return leaves, _flatten(tree, leaves, what)


def _flatten(tree: Tree, leaves: List[torch.Tensor], what: str) -> Any:
    if isinstance(tree, torch.Tensor):
        leaves.append(tree)
        return LEAF
    if tree is None:
        return None
    if isinstance(tree, (tuple, list)):
        return type(tree), None, tuple(_flatten(part, leaves, what) for part in tree)
    if isinstance(tree, dict):
        return type(tree), tuple(tree), tuple(_flatten(part, leaves, what) for part in tree.values())
    number = isinstance(tree, (bool, int, float, complex)) or hasattr(tree, "__array__")
    how = ". Convert it with torch.tensor(...)" if number else ""
    raise UsageError(f"{what} contains an item of type {type(tree).__name__}. Allowed are tensors, None, and tuples, "
                     f"lists and dicts of these{how}")


def described(shape: Any) -> str:
    """A tree's shape in words."""
    if shape is LEAF:
        return "tensor"
    if shape is None:
        return "None"
    kind, keys, parts = shape
    inside = [described(part) for part in parts]
    if keys is not None:
        inside = [f"{key!r}: {part}" for key, part in zip(keys, inside)]
    return f"{kind.__name__}({', '.join(inside)})"


def tensors_in(tree: Any) -> List[torch.Tensor]:
    """The tensors of a tree that may have other things, too."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else ()
    return [leaf for part in parts for leaf in tensors_in(part)]


def unflatten(shape: Any, leaves: List[torch.Tensor]) -> Tree:
    """The tree of a shape and its tensors."""
    return leaves[0] if shape is LEAF else _build(shape, iter(leaves))


def _build(shape: Any, leaves: Any) -> Tree:
    if shape is LEAF:
        return next(leaves)
    if shape is None:
        return None
    kind, keys, parts = shape
    built = [_build(part, leaves) for part in parts]
    if keys is not None:
        return dict(zip(keys, built)) if kind is dict else kind(zip(keys, built))
    return kind(*built) if hasattr(kind, "_fields") else kind(built)


def mapped(function: Callable[[torch.Tensor], Any], tree: Tree, what: str = "a tree") -> Tree:
    """The tree with the function applied to every tensor."""
    leaves, shape = flatten(tree, what)
    return unflatten(shape, [function(leaf) for leaf in leaves])


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True where two tensors are alike, in shape, type and values; numbers that are none equal each other."""
    if a.layout is not b.layout or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if composed(a):
        return all(map(equal, parts(a), parts(b)))
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def nbytes(leaves: Any) -> int:
    """Bytes of the elements of tensors."""
    return sum(part.numel() * part.element_size() for leaf in leaves for part in parts(leaf))
