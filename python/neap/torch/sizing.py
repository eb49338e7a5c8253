# SPDX-License-Identifier: Apache-2.0
"""Bytes of states, and of graphs that are not kept."""
from typing import AbstractSet, Any, Dict, Sequence, Set, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .layouts import bits, composed, parts
from .measure import CPU, Counter, Memory, Saved, address, addresses, objects

__all__ = ["Fixed", "Sizer", "apart", "shared", "state_bytes", "unchanged"]

_NOTHING = torch.empty(0)

if hasattr(torch.Tensor, "untyped_storage"):
    def _storage_bytes(tensor: torch.Tensor) -> int:
        return tensor.untyped_storage().nbytes()
else:  # before PyTorch 2.0
    def _storage_bytes(tensor: torch.Tensor) -> int:
        return tensor.storage().nbytes()


class Sizer(Counter):
    """Counts the bytes that a graph would save, and saves nothing: the memory is free as soon as the step drops it.
    Addresses are then reused, so storages are distinguished by weak references."""

    def __init__(self, excluded: Set[int], travels: bool = False, memory: Memory = CPU):
        super().__init__(excluded, memory=memory)
        self._ends = 2 if travels else 1  # as in Keeper
        self._storages: Dict[int, StorageWeakRef] = {}
        self.asked = False  # the step computes gradients itself, and needs tensors that were not saved

    def pack(self, tensor: torch.Tensor) -> Any:
        self.packs += 1
        return Saved(_NOTHING, self, self.add(tensor))

    def unpack(self, held: Any) -> torch.Tensor:  # type: ignore[override]
        self.asked = True
        raise RuntimeError("the saved tensors of a graph that is only measured are not kept")

    def graph(self, ends: int) -> int:
        return super().graph(self._ends * ends)

    def key(self, storage: Any, at: int) -> int:
        found = StorageWeakRef(storage)
        return self._storages.setdefault(found.cdata, found).cdata


def unchanged(first: Sequence[torch.Tensor], later: Sequence[torch.Tensor], view: bool = False) -> Tuple[int, ...]:
    """Returns the places of the tensors of the first state whose memory a later state also has in this place; with
    ``view`` only if strides, type and bits are the same. The caller owns the first state, and a state that was changed
    in place is an error, so the values are the same."""
    return tuple([j for j, (a, b) in enumerate(zip(first, later)) if a is b or a.numel() and _shared(a, b, view)])


def _shared(a: torch.Tensor, b: torch.Tensor, view: bool) -> bool:
    if composed(a) or composed(b) or address(a) != address(b):
        return False
    return not view or (a.data_ptr(), a.shape, a.stride(), a.dtype, bits(a)) == \
        (b.data_ptr(), b.shape, b.stride(), b.dtype, bits(b))


class Fixed:
    """The parts of a state that steps return unchanged, at ``places``: they share the memory of the first state, which
    exists as long as the scan does. It is counted once, not in each state and tape. ``first``: the first state; ``at``:
    addresses of the storages, without ``excluded`` ones; ``once``: bytes; ``adjoint``: bytes of the adjoints of these parts.
    """

    def __init__(self, first: Sequence[torch.Tensor] = (), places: Tuple[int, ...] = (),
                 excluded: AbstractSet[int] = frozenset(), memory: Memory = CPU):
        parts = [first[j] for j in places]
        self.first, self.places, self.at = first, places, addresses(parts) - excluded
        own = {(x.data_ptr(), x.shape): x.numel() * x.element_size() for x in parts if address(x)[0] in self.at}
        self.once = sum(map(memory.rounded, own.values()))
        self.adjoint = state_bytes(parts, set(), set(), memory)[1] if parts else 0


def shared(tensors: Sequence[torch.Tensor], excluded: AbstractSet[int]) -> Tuple[Tuple[int, int, bool], ...]:
    """Returns, for each tensor of a state, the places of the first tensors in the same storage and at the same address,
    and whether its storage is excluded."""
    if any(map(composed, tensors)):
        return ()
    at, data = [address(x)[0] for x in tensors], [x.data_ptr() for x in tensors]
    return tuple([(at.index(one), data.index(begin), one in excluded) for one, begin in zip(at, data)])


def state_bytes(tensors: Sequence[torch.Tensor], excluded: Set[int], caller: Set[int],
                memory: Memory = CPU, fixed: AbstractSet[int] = frozenset()) -> Tuple[int, int]:
    """Returns the bytes that the tensors of a state keep allocated, and the bytes of their adjoints. Counted are the
    storages, each in full and once, and the objects. In storages of the caller, which may be arrays of any size, only
    a tensor's own bytes count; ``fixed`` storages are not counted."""
    whole, adjoint, own_objects = 0, 0, objects(memory, len(tensors), True)
    plain = not fixed
    for x in tensors:
        own = x.numel() * x.element_size()
        whole += memory.rounded(own)
        if x.is_floating_point() or x.is_complex():
            adjoint += memory.rounded(own) + objects(memory, 1)
        plain = plain and not composed(x) and _storage_bytes(x) == own
    if plain:  # checked first, since this runs for each group of steps
        return whole + own_objects, adjoint
    found, whole = {}, 0
    for x in tensors:
        for part in parts(x) if composed(x) else [x]:
            at, size = address(part)
            if at in fixed:
                found[at] = 0
            elif at in caller:
                whole += memory.rounded(part.numel() * part.element_size())
            else:
                found[at] = 0 if at in excluded else memory.rounded(size)
    return whole + own_objects + sum(found.values()), adjoint


def apart(tensors: Sequence[torch.Tensor], excluded: Set[int], caller: Set[int], memory: Memory = CPU) -> int:
    """Returns the additional bytes of a state, as a state and in a tape, if each tensor has separate memory for its
    strides, like tensors that were read from a tier."""
    own = sum([memory.rounded((1 + sum([(n - 1) * step for n, step in zip(x.shape, x.stride())])) * x.element_size())
               for x in tensors if x.numel()])
    counted = state_bytes(tensors, excluded, caller, memory)[0] - objects(memory, len(tensors), True)
    return max(0, own - counted) + max(0, own - sum(map(memory.rounded, dict(map(address, tensors)).values())))
