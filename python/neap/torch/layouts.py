# SPDX-License-Identifier: Apache-2.0
"""The representation of tensors in memory: the dense tensors that a sparse tensor consists of, and the bits that mark
a tensor as the conjugate or the negative of its memory."""
from typing import Iterable, List, Tuple

import torch

from ..errors import UsageError

__all__ = ["bits", "composed", "dense", "flipped", "parts"]

_NAMES = {torch.sparse_coo: ("_indices", "_values"),
          torch.sparse_csr: ("crow_indices", "col_indices", "values"),
          torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
          torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
          torch.sparse_bsc: ("ccol_indices", "row_indices", "values")}
_NESTED = hasattr(torch.nested, "nested_tensor_from_jagged") if hasattr(torch, "nested") else False


def composed(tensor: torch.Tensor) -> bool:
    """True if a tensor has no storage: a sparse tensor, or a wrapper such as a nested or distributed tensor."""
    return tensor.layout is not torch.strided or tensor.is_nested or hasattr(type(tensor), "__tensor_flatten__")


def parts(tensor: torch.Tensor) -> List[torch.Tensor]:
    """Returns the dense tensors that a tensor consists of: itself, or those of a composed one. The list is
    empty for opaque tensors, such as those of oneDNN, and for nested ones before PyTorch 2.1."""
    if tensor.layout in _NAMES:
        cut = tensor.detach()
        return [getattr(cut, name)() for name in _NAMES[tensor.layout]]
    if hasattr(type(tensor), "__tensor_flatten__"):
        inner = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]  # type: ignore[attr-defined]
        return [part for one in inner for part in parts(one)]
    if tensor.is_nested:
        return [tensor.detach().values()] if _NESTED else []
    return [tensor] if tensor.layout is torch.strided else []


def dense(tensors: Iterable[torch.Tensor], what: str) -> None:
    """Raises UsageError if one of these tensors is not a plain dense tensor."""
    for x in tensors:
        if composed(x) or x.is_nested or x.is_quantized:
            kind = "nested" if x.is_nested else "quantized" if x.is_quantized else f"of layout {x.layout}"
            raise UsageError(f"{what} has a tensor that is {kind}. Only dense tensors are supported there. Convert it "
                             f"by to_dense(), dequantize() or to_padded_tensor(), or build it in the step")


def bits(tensor: torch.Tensor) -> Tuple[bool, bool]:
    """Returns whether a tensor is the conjugate, and the negative, of its memory (torch.conj, torch.imag)."""
    return tensor.is_conj(), tensor.is_neg()


def flipped(tensor: torch.Tensor, bits: Tuple[bool, bool]) -> torch.Tensor:
    """Returns a tensor over the same memory with these bits inverted."""
    conj, neg = bits
    if conj:
        tensor = tensor.conj()
    return tensor._neg_view() if neg else tensor
