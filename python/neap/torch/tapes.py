# SPDX-License-Identifier: Apache-2.0
"""Tapes that travel: what a graph saves can leave its memory and come back.

Autograd's hooks for saved tensors put a handle in the graph for each tensor. A tape is the distinct
storages of these tensors. While it is away, a handle has the tensor's shape and strides alone; when
it comes back, all its storages lie in one block of memory. Parameters, buffers and inputs do not
travel. The graph's first and last tensors hold memory as well; they are replaced by ones of the same
shapes that hold none. The nodes of the graph stay (``Keeper.graph``).
"""
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from .layouts import bits, composed, flipped
from .measure import Counter, Saved

__all__ = ["Keeper", "hollow", "inlet"]

_ALIGNED = 64  # bytes; as PyTorch aligns what it allocates: sums of some libraries depend on it


class _Handle(Saved):
    """What a graph holds in place of a saved tensor: ``tensor`` is None while it is away."""

    __slots__ = ("__weakref__",)


class _View(NamedTuple):
    """How a handle's tensor lies in its storage, whose bytes begin at ``place`` in the block."""

    handle: Any  # a weak reference
    place: int
    dtype: torch.dtype
    size: torch.Size
    stride: Tuple[int, ...]
    offset: int
    bits: Tuple[bool, bool]


class Keeper(Counter):
    """A Counter that puts handles into the graph, and knows the storages behind them."""

    def __init__(self, excluded: Set[int], limit: Optional[int] = None, spare: int = 0):
        super().__init__(excluded, limit, spare)
        self.handles: List[Any] = []  # weak references: a graph that is dropped is not held by them
        self.stays = False
        self.fixed: Set[int] = set()  # addresses of storages that sparse tensors hold, which do not travel
        self.staying = 0  # bytes that do not travel: the graph, and what Python objects of it hold
        self.away: List[_View] = []
        self.places: List[Tuple[int, int]] = []  # of storages in the block: (offset, bytes)

    def pack(self, tensor: torch.Tensor) -> Any:
        """A handle; the tensor itself where it does not travel."""
        self.packs += 1
        tensor = tensor.detach()
        if composed(tensor):
            at = self.add(tensor)
            self.fixed.update(at or ())
            return Saved(tensor, self, at)
        if tensor.device.type != "cpu" or tensor.numel() == 0:
            return Saved(tensor, self, None)
        at = self.add(tensor)
        if at is None:
            return Saved(tensor, self, None)
        handle = _Handle(tensor, self, at)
        self.handles.append(weakref.ref(handle))
        return handle

    @staticmethod
    def unpack(held: Any) -> torch.Tensor:
        """The tensor of a handle, on the memory that its storage has now."""
        if held.tensor is None:
            raise RuntimeError("the saved tensors of these steps are on a slow tier until the backward pass of the "
                               "scan. Differentiate the outputs of the scan, or remove slow=")
        return Counter.unpack(held)

    def charge(self, size: int) -> None:
        """A scan inside the step keeps its own tapes: this one does not travel."""
        self.stays = True
        super().charge(size)

    def _alive(self) -> List[_Handle]:
        """The handles that are still in the graph, and travel."""
        return [handle for handle in (ref() for ref in self.handles)
                if handle is not None and handle.at not in self.fixed]

    def keep(self, item: Any, depth: int = 3) -> List[int]:
        before = self.total
        found = super().keep(item, depth)
        self.staying += max(0, self.total - before) if depth == 3 else 0
        return found

    def graph(self, ends: int) -> int:
        nbytes = super().graph(2 * ends)  # each end has a node and a tensor more, which hold no memory
        self.staying += nbytes + sum(self.seen[at][0] for at in self.fixed if at in self.seen)
        return nbytes

    def pieces(self) -> List[Tuple[int, int]]:
        """The memory of the storages, (address, bytes); none where the tape does not travel."""
        if self.stays:
            return []
        return [(at, self.seen[at][0]) for at in dict.fromkeys(handle.at for handle in self._alive())]

    def shed(self) -> int:
        """Lets go of the memory; how many bytes that were."""
        handles, places, end = self._alive(), {}, 0
        for at, nbytes in self.pieces():
            places[at] = end
            self.places.append((end, nbytes))
            end += -(-nbytes // _ALIGNED) * _ALIGNED
        for handle in handles:
            tensor, handle.tensor = handle.tensor, None
            self.away.append(_View(weakref.ref(handle), places[handle.at], tensor.dtype, tensor.shape, tensor.stride(),
                                   tensor.storage_offset(), bits(tensor)))
        self.handles = []
        return end

    def regain(self) -> List[Tuple[int, int]]:
        """New memory for the storages, (address, bytes), in the order in which they were sent."""
        if not self.places:  # all that it saved is in what hooks of the step's own returned
            return []
        end, nbytes = self.places[-1]
        block = torch.empty(end + -(-nbytes // _ALIGNED) * _ALIGNED, dtype=torch.uint8)
        typed: Dict[torch.dtype, torch.Tensor] = {}
        for ref, place, dtype, size, stride, offset, bit in self.away:
            handle = ref()
            if handle is None:
                continue
            whole = typed.get(dtype)
            if whole is None:
                whole = typed[dtype] = block.view(dtype)
            handle.tensor = flipped(whole.as_strided(size, stride, place // whole.element_size() + offset), bit)
            handle.version = handle.tensor._version
        self.away = []
        return [(block.data_ptr() + place, nbytes) for place, nbytes in self.places]


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
