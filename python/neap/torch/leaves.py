# SPDX-License-Identifier: Apache-2.0
"""Tensors of states as leaves of graphs, and back: without a graph, with their own strides, in sums of gradients."""
import gc
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

__all__ = ["alive", "cut", "differentiable", "each", "laid", "leaves_of", "packed", "restored", "summed"]


def laid(tensor: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """Returns a copy with these strides, because sums and products may round differently for other strides. If
    elements would share memory, the copy has PyTorch's default layout."""
    if 0 in stride:
        return tensor.clone()
    return tensor.new_empty_strided(tensor.shape, stride).copy_(tensor)


def restored(tensor: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """Returns a tensor of the same values with these strides; of expanded dimensions only the first elements are
    copied."""
    once = tensor
    for i in [i for i, step in enumerate(stride) if step == 0 and tensor.shape[i] > 1]:
        once = once.narrow(i, 0, 1)
    return once.new_empty_strided(once.shape, stride).copy_(once).expand(tensor.shape)


def packed(tensor: torch.Tensor) -> bool:
    """True if the elements fill one block of memory without gaps, in any order of dimensions."""
    order = sorted(range(tensor.dim()), key=lambda i: -tensor.stride(i))
    return tensor.permute(order).is_contiguous()


def differentiable(tensor: torch.Tensor) -> bool:
    """True if tensors of this dtype can require a gradient."""
    return tensor.is_floating_point() or tensor.is_complex()


def cut(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor without the graph that computed it."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


def leaves_of(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """Returns the tensors as leaves of a new graph."""
    if len(tensors) == 1:
        return [tensors[0].detach().requires_grad_() if differentiable(tensors[0]) else tensors[0]]
    return each(lambda x: x.detach().requires_grad_() if differentiable(x) else x, tensors)


def each(function: Callable[[torch.Tensor], Any], tensors: Sequence[torch.Tensor]) -> List[Any]:
    """Applies a function to every tensor, once per distinct tensor: repeated tensors stay one tensor."""
    if len(tensors) < 2:
        return [function(x) for x in tensors]
    found: Dict[int, Any] = {}
    return [found[id(x)] if id(x) in found else found.setdefault(id(x), function(x)) for x in tensors]


def summed(a: Optional[torch.Tensor], b: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """Returns the sum of two gradients; None is zero."""
    return b if a is None else a if b is None else a + b


def alive(refs: Sequence[Any]) -> List[torch.Tensor]:
    """Returns the weakly referenced tensors that still exist, except those in reference cycles."""
    if any(ref() is not None for ref in refs):
        gc.collect()
    return [tensor for tensor in (ref() for ref in refs) if tensor is not None]
