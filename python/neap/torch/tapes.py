# SPDX-License-Identifier: Apache-2.0
"""Tapes that travel: what a graph saves can leave its memory and come back.

Autograd's hooks for saved tensors put a handle in the graph for each tensor, which knows its
storage, shape and strides. A tape is the distinct storages of its handles. Parameters, buffers and
inputs do not travel. The graph's first and last tensors hold memory as well; they are replaced by
ones of the same shapes that hold none.
"""
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch

from .measure import Counter

__all__ = ["Keeper", "hollow", "inlet"]


class _Storage:
    """The bytes of one storage as a tensor, or None while they are away."""

    __slots__ = ("base", "nbytes")

    def __init__(self, base: torch.Tensor):
        self.base: Optional[torch.Tensor] = base
        self.nbytes = base.numel()


class _Handle:
    """What a graph holds in place of a saved tensor."""

    __slots__ = ("keeper", "at", "storage", "dtype", "size", "stride", "offset")

    def __init__(self, keeper: "Keeper", at: int, tensor: torch.Tensor):
        self.keeper, self.at = keeper, at
        self.storage, self.dtype = keeper.storages[at], tensor.dtype
        self.size, self.stride, self.offset = tensor.shape, tensor.stride(), tensor.storage_offset()

    def __del__(self) -> None:
        self.keeper.drop(self.at)


_WIDTH: Dict[torch.dtype, int] = {}


def _width(dtype: torch.dtype) -> int:
    """Bytes of an element."""
    return _WIDTH.setdefault(dtype, torch.empty(0, dtype=dtype).element_size())


class Keeper(Counter):
    """A Counter that puts handles into the graph, and knows the storages behind them."""

    def __init__(self, excluded: Set[int], limit: Optional[int] = None, spare: int = 0):
        super().__init__(excluded, limit, spare)
        self.storages: Dict[int, _Storage] = {}
        self.stays = False

    def pack(self, tensor: torch.Tensor) -> Any:
        """A handle; the tensor itself where it does not travel."""
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.numel() == 0:
            return tensor.detach()
        tensor = tensor.detach().resolve_conj().resolve_neg()
        at = self.add(tensor)
        if at is None:
            return tensor
        size = self.seen[at][0] // tensor.element_size()
        kept = self.storages.get(at)
        if kept is None or kept.nbytes < size * tensor.element_size():
            self.storages[at] = _Storage(tensor.as_strided((size,), (1,), 0).view(torch.uint8))
        return _Handle(self, at, tensor)

    @staticmethod
    def unpack(held: Any) -> torch.Tensor:
        """The tensor of a handle, on the memory that its storage has now."""
        if isinstance(held, torch.Tensor):
            return held
        base = held.storage.base
        if base is None:
            raise RuntimeError("a tape is on a slow tier")
        width = _WIDTH[held.dtype] if held.dtype in _WIDTH else _width(held.dtype)
        whole = base if base.numel() % width == 0 else base[:base.numel() // width * width]
        return whole.view(held.dtype).as_strided(held.size, held.stride, held.offset)

    def drop(self, at: int) -> None:
        super().drop(at)
        if at not in self.seen:
            self.storages.pop(at, None)

    def charge(self, size: int) -> None:
        """A scan inside the step keeps its own tapes: this one does not travel."""
        self.stays = True
        super().charge(size)

    def pieces(self) -> List[Tuple[int, int]]:
        """The memory of the storages, (address, bytes); none where the tape does not travel."""
        rows = [] if self.stays else self.storages.values()
        return [(x.base.data_ptr(), x.nbytes) for x in rows if x.base is not None]

    def shed(self) -> None:
        """Lets go of the memory."""
        for storage in self.storages.values():
            storage.base = None

    def regain(self) -> List[Tuple[int, int]]:
        """New memory for the storages."""
        for storage in self.storages.values():
            storage.base = torch.empty(storage.nbytes, dtype=torch.uint8)
        return self.pieces()


class _Hollow(torch.autograd.Function):
    """A tensor's place in a graph, without its memory."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.new_empty(()).expand(tensor.shape)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class _Inlet(torch.autograd.Function):
    """The values of a tensor for a leaf that has none."""

    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor, values: List[torch.Tensor]) -> torch.Tensor:
        return values[0].detach()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[torch.Tensor, None]:
        return gradient, None


def hollow(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """Ends of the graph of ``tensors`` that hold no memory; made last one first, so that gradients
    arrive in the order of the tensors. A tensor that needs no gradient comes as one of its shape."""
    found = [_Hollow.apply(x) if x.requires_grad else x.new_empty(()).expand(x.shape)
             for x in reversed(tensors)]
    return found[::-1]


def inlet(tensor: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """A leaf that holds no memory, and what a graph begins with: ``tensor`` as it depends on it."""
    leaf = tensor.new_empty(()).expand(tensor.shape).requires_grad_()
    return leaf, _Inlet.apply(leaf, [tensor])
