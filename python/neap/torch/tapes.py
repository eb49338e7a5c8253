# SPDX-License-Identifier: Apache-2.0
"""Offloaded tapes: the memory that a graph saves can be freed and restored.

Autograd's hooks for saved tensors store a handle in the graph for each tensor. A tape consists of the distinct
storages of these tensors. While it is offloaded, a handle has only the tensor's shape and strides; when it is read,
all its storages are in one block of memory. Parameters, buffers and inputs are not offloaded. The graph's first and
last tensors also reference memory; they are replaced by tensors of the same shapes without memory. The nodes of the
graph stay in memory (``Keeper.graph``).

On the CPU the pieces of a tape are addresses, as libneap's tiers take them; on an accelerator they are tensors of bytes
(``span``), which its copies take. There records have the layout of the block, so each comes back in one copy.
"""
import weakref
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from .layouts import bits, composed, flipped
from .measure import CPU, Counter, Memory, Saved, address

__all__ = ["ALIGNED", "Keeper", "aligned", "bare", "hollow", "inlet", "packed_bytes", "span"]

ALIGNED = 64  # bytes; PyTorch's alignment, on which sums of some libraries depend
# A saved tensor of one of these types without dimensions may be a number of Python, as in h * 0.9. It is not offloaded,
# because PyTorch computes h * 0.9 in the type of h, but in float64 if h is a scalar and a float64 tensor replaces 0.9.
NUMBERS = (torch.float64, torch.int64, torch.complex128, torch.bool)


def aligned(nbytes: int) -> int:
    """Returns the distance to the next piece of a record, after one of ``nbytes``."""
    return -(-nbytes // ALIGNED) * ALIGNED


def span(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the whole storage of a dense tensor, as bytes, with a separate version counter: copies to it are not
    in-place changes."""
    first = flipped(tensor.data, bits(tensor)).as_strided((1,), (1,), 0)
    return first.view(torch.uint8).as_strided((address(tensor)[1],), (1,), 0)


def packed_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the memory of a tensor without gaps (``leaves.packed``), as ``span`` does."""
    return tensor.data.as_strided((tensor.numel(),), (1,), tensor.storage_offset()).view(torch.uint8)


_scalars: Dict[Any, torch.Tensor] = {}  # by dtype and device


def bare(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of the same shape, dtype and device without memory: all share one scalar, since an allocator
    would round the memory of each up, to 512 bytes on a GPU."""
    key = tensor.dtype, tensor.device
    if key not in _scalars:
        _scalars[key] = torch.empty((), dtype=tensor.dtype, device=tensor.device)
    return _scalars[key].expand(tensor.shape)


class _Handle(Saved):
    """Replaces a saved tensor in a graph: ``tensor`` is None while it is offloaded."""

    __slots__ = ("__weakref__",)


class _View(NamedTuple):
    """The layout of a handle's tensor in its storage, whose bytes start at ``place`` in the block."""

    handle: Any  # a weak reference
    place: int
    dtype: torch.dtype
    size: torch.Size
    stride: Tuple[int, ...]
    offset: int
    bits: Tuple[bool, bool]


class Keeper(Counter):
    """A Counter that stores handles in the graph, and knows the storages behind them.

    :param device: the device whose tensors are offloaded.
    :param spans: True: pieces are tensors of bytes; False: addresses.
    """

    def __init__(self, excluded: Set[int], limit: Optional[int] = None, spare: int = 0, memory: Memory = CPU,
                 device: torch.device = torch.device("cpu"), spans: bool = False):
        super().__init__(excluded, limit, spare, memory)
        self.device, self.spans = device, spans
        self.handles: List[Any] = []  # weak references, which do not keep a dropped graph alive
        self.stays = False
        self.fixed: Set[int] = set()  # addresses of storages of sparse tensors, which are not offloaded
        self.staying = 0  # bytes that stay in memory: the graph, and contents of its Python objects
        self.away: List[_View] = []
        self.places: List[Tuple[int, int]] = []  # storages in the block: (offset, bytes)

    def pack(self, tensor: torch.Tensor) -> Any:
        """Returns a handle; the tensor itself if it is not offloaded."""
        self.packs += 1
        tensor = tensor.detach()
        if composed(tensor):
            at = self.add(tensor)
            self.fixed.update(at or ())
            return Saved(tensor, self, at)
        if tensor.device != self.device or tensor.numel() == 0:
            return Saved(tensor, self, None)
        at = self.add(tensor)
        if at is None:
            return Saved(tensor, self, None)
        if tensor.dim() == 0 and tensor.dtype in NUMBERS and self.seen[at][0] <= 16:
            self.fixed.add(at)
            return Saved(tensor, self, at)
        handle = _Handle(tensor, self, at)
        self.handles.append(weakref.ref(handle))
        return handle

    @staticmethod
    def unpack(held: Any) -> torch.Tensor:
        """Returns the tensor of a handle, in the memory that its storage has now."""
        if held.tensor is None:
            raise RuntimeError("the saved tensors of these steps are on a slow tier until the backward pass of the "
                               "scan. Differentiate the outputs of the scan, or remove slow=")
        return Counter.unpack(held)

    def charge(self, size: int) -> None:
        """Called for a scan inside the step, which keeps its own tapes: this tape is not offloaded."""
        self.stays = True
        super().charge(size)

    def _alive(self) -> List[_Handle]:
        """Returns the handles that still exist in the graph and can be offloaded."""
        return [handle for handle in (ref() for ref in self.handles)
                if handle is not None and handle.at not in self.fixed]

    def keep(self, item: Any, depth: int = 3) -> List[int]:
        before = self.total
        found = super().keep(item, depth)
        self.staying += max(0, self.total - before) if depth == 3 else 0
        return found

    def graph(self, ends: int) -> int:
        nbytes = super().graph(2 * ends)  # each end has an additional node and a tensor without memory
        self.staying += nbytes + sum(self.seen[at][0] for at in self.fixed if at in self.seen)
        return nbytes

    def _storages(self) -> Dict[int, torch.Tensor]:
        """Returns a tensor of each storage that is offloaded, by address; none if the tape stays."""
        found: Dict[int, torch.Tensor] = {}
        for handle in [] if self.stays else self._alive():
            found.setdefault(handle.at, handle.tensor)
        return found

    def pieces(self) -> List[Tuple[Any, int]]:
        """Returns the memory of the storages, (address or tensor of bytes, bytes); nothing if the tape is not
        offloaded."""
        return [(span(tensor) if self.spans else at, self.seen[at][0]) for at, tensor in self._storages().items()]

    def shed(self) -> int:
        """Releases the memory; returns its bytes."""
        handles, places, end = self._alive(), {}, 0
        for at in self._storages():
            nbytes = self.seen[at][0]
            places[at] = end
            self.places.append((end, nbytes))
            end += aligned(nbytes)
        for handle in handles:
            tensor, handle.tensor = handle.tensor, None
            self.away.append(_View(weakref.ref(handle), places[handle.at], tensor.dtype, tensor.shape, tensor.stride(),
                                   tensor.storage_offset(), bits(tensor)))
        self.handles = []
        return end

    def regain(self) -> List[Tuple[Any, int]]:
        """Allocates memory for the storages; returns it as ``pieces`` does, in the order in which they were written.
        """
        if not self.places:  # everything that it saved is in the results of the step's own hooks
            return []
        end, nbytes = self.places[-1]
        block = torch.empty(end + aligned(nbytes), dtype=torch.uint8, device=self.device)
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
        if self.spans:
            return [(span(block), block.numel())]
        return [(block.data_ptr() + place, nbytes) for place, nbytes in self.places]


class _Hollow(torch.autograd.Function):
    """The position of a tensor in a graph, without its memory."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return bare(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


class _Inlet(torch.autograd.Function):
    """Connects a leaf without memory to the values of a tensor."""

    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor, values: List[torch.Tensor]) -> torch.Tensor:
        return values[0].detach()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[torch.Tensor, None]:
        return gradient, None


def hollow(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """Returns ends of the graph of ``tensors`` without memory. They are created from the last to the first, so that
    gradients arrive in the order of the tensors. A tensor that requires no gradient is replaced by one of its shape."""
    found = [_Hollow.apply(x) if x.requires_grad else bare(x) for x in reversed(tensors)]
    return found[::-1]


def inlet(tensor: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Returns a leaf without memory, and ``tensor`` as a function of it for the beginning of a graph."""
    leaf = bare(tensor).requires_grad_()
    return leaf, _Inlet.apply(leaf, [tensor])
