# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays, the leaves of pytrees: which can have gradients, their bytes, arrays like them."""
import math
from typing import Any, List, Optional, Sequence, Tuple

import jax
import jax.numpy as jnp

__all__ = ["Leaves", "Mask", "apart", "inexact", "join", "merged", "nbytes", "split", "structs", "zeros"]

Leaves = List[Any]
Mask = List[bool]


def inexact(x: Any) -> bool:
    """True if arrays of this dtype can have a gradient."""
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))


def split(leaves: Sequence[Any], mask: Sequence[bool]) -> Tuple[Leaves, Leaves]:
    """Splits leaves into those whose mask is True, and the others."""
    return [x for x, m in zip(leaves, mask) if m], [x for x, m in zip(leaves, mask) if not m]


def join(mask: Sequence[bool], some: Sequence[Any], others: Sequence[Any]) -> Leaves:
    """Merges what ``split`` separated."""
    first, second = iter(some), iter(others)
    return [next(first) if m else next(second) for m in mask]


def apart(leaves: Sequence[Any]) -> Tuple[Leaves, Leaves]:
    """Splits leaves into those that can have gradients, and the others."""
    return split(leaves, [inexact(x) for x in leaves])


def merged(like: Sequence[Any], some: Sequence[Any], others: Sequence[Any]) -> Leaves:
    """Merges what ``apart`` separated, in the order of ``like``."""
    return join([inexact(x) for x in like], some, others)


def structs(leaves: Sequence[Any]) -> List[jax.ShapeDtypeStruct]:
    """Returns the shapes and dtypes of arrays."""
    return [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]


def nbytes(leaves: Sequence[Any]) -> int:
    """Returns the bytes of arrays or of their descriptions."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in leaves)


def zeros(leaves: Sequence[Any], count: Optional[int] = None) -> Leaves:
    """Returns arrays of zeros like ``leaves``; with ``count``, with that number of rows. Works for random keys."""
    first = () if count is None else (count,)
    return [jax.lax.full((*first, *x.shape), 0, x.dtype) for x in leaves]
