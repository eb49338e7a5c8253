# SPDX-License-Identifier: Apache-2.0
"""Bytes of states, and of graphs that are not kept."""
from typing import Any, Dict, Sequence, Set, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .layouts import composed, parts
from .measure import CPU, Counter, Memory, Saved, address, objects

__all__ = ["Sizer", "apart", "state_bytes"]

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


def state_bytes(tensors: Sequence[torch.Tensor], excluded: Set[int], caller: Set[int],
                memory: Memory = CPU) -> Tuple[int, int]:
    """Returns the bytes that the tensors of a state keep allocated, and the bytes of their adjoints. Counted are the
    storages, each in full and once, and the objects. In storages of the caller, which may be arrays of any size, only
    a tensor's own bytes count."""
    whole, adjoint, plain, own_objects = 0, 0, True, objects(memory, len(tensors), True)
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
            if at in caller:
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
