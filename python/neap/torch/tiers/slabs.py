# SPDX-License-Identifier: Apache-2.0
"""Host memory for copies of a device, in slabs of exactly the requested bytes.

PyTorch's own allocator of pinned memory rounds every request up to a power of two, and keeps it. Here a slab is as
large as the request that it was allocated for, and smaller requests are cut from it. Slabs are kept, because pinning
memory takes about as long as writing to it, and every training step requests the same bytes. Unused slabs are freed
before a new one is allocated.
"""
import collections
import threading
from typing import Any, Callable, Deque, List, Sequence

import torch

__all__ = ["Block", "Slabs"]

PAGE = 4096  # bytes; slabs are whole pages, and blocks begin at multiples of GRAIN
GRAIN = 64


class Block:
    """Bytes of a slab, and the copies that may still use them. ``host``: a tensor of bytes."""

    __slots__ = ("slab", "at", "nbytes", "host", "uses")

    def __init__(self, slab: "_Slab", at: int, nbytes: int, uses: Sequence[Any]):
        self.slab, self.at, self.nbytes = slab, at, nbytes
        self.host = slab.memory[at:at + nbytes]
        self.uses: List[Any] = list(uses)


class _Gap:
    """Free bytes of a slab, and the copies that may still use them."""

    __slots__ = ("at", "end", "uses")

    def __init__(self, at: int, end: int, uses: List[Any]):
        self.at, self.end, self.uses = at, end, uses


class _Slab:
    """One allocation, and its gaps in the order of their addresses."""

    def __init__(self, memory: torch.Tensor):
        self.memory = memory
        self.gaps = [_Gap(0, memory.numel(), [])]

    @property
    def unused(self) -> bool:
        return len(self.gaps) == 1 and self.gaps[0].end - self.gaps[0].at == self.memory.numel()


class Slabs:
    """The host memory of one device. Any thread may use it.

    :param allocate: returns memory of that number of bytes; raises RuntimeError if there is none.
    :param free: frees it.
    """

    def __init__(self, allocate: Callable[[int], torch.Tensor], free: Callable[[torch.Tensor], None]):
        self._allocate, self._free = allocate, free
        self._slabs: List[_Slab] = []
        self._lock = threading.Lock()
        # Returned blocks: by garbage collection possibly while another call holds the lock.
        self._back: Deque[Block] = collections.deque()
        self.held = self.most = self._used = 0  # bytes of slabs; the most that blocks had at a time; bytes of blocks

    @property
    def used(self) -> int:
        """Bytes of blocks in use."""
        with self._lock:
            self._sweep()
            return self._used

    def take(self, nbytes: int) -> Block:
        """Returns a block. Its ``uses`` are copies that may still read or write these bytes.

        :raises RuntimeError: if there is no memory for it.
        """
        size = -(-max(1, nbytes) // GRAIN) * GRAIN
        with self._lock:
            self._sweep()
            fits = [(gap.end - gap.at, n, slab, gap) for n, slab in enumerate(self._slabs) for gap in slab.gaps
                    if gap.end - gap.at >= size]
            if fits:
                slab, gap = min(fits, key=lambda one: one[:2])[2:]
            else:
                self._trim()
                slab = _Slab(self._allocate(-(-size // PAGE) * PAGE))
                self._slabs.append(slab)
                self.held += slab.memory.numel()
                gap = slab.gaps[0]
            block = Block(slab, gap.at, size, gap.uses)
            gap.at += size
            if gap.at == gap.end:
                slab.gaps.remove(gap)
            self._used += size
            self.most = max(self.most, self._used)
        return block

    def give(self, block: Block) -> None:
        """Returns a block, with the copies that may still use it."""
        self._back.append(block)

    def trim(self) -> None:
        """Frees unused slabs, after the copies that use them."""
        with self._lock:
            self._sweep()
            self._trim()

    def _sweep(self) -> None:
        """Makes gaps of returned blocks, and joins gaps next to each other."""
        while self._back:
            block = self._back.popleft()
            slab, uses = block.slab, [ticket for ticket in block.uses if not ticket.done()]
            gaps = slab.gaps + [_Gap(block.at, block.at + block.nbytes, uses)]
            slab.gaps = []
            for gap in sorted(gaps, key=lambda one: one.at):
                if slab.gaps and slab.gaps[-1].end == gap.at:
                    slab.gaps[-1].end = gap.end
                    slab.gaps[-1].uses = slab.gaps[-1].uses + gap.uses
                else:
                    slab.gaps.append(gap)
            self._used -= block.nbytes

    def _trim(self) -> None:
        for slab in [one for one in self._slabs if one.unused]:
            for ticket in slab.gaps[0].uses:
                ticket.finish()
            self._slabs.remove(slab)
            self.held -= slab.memory.numel()
            self._free(slab.memory)
