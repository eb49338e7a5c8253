# SPDX-License-Identifier: Apache-2.0
"""The heap of the C library, kept near a budget: free memory within it goes back to the system.

glibc reuses a freed piece of the heap for whatever fits. A tensor of up to 32 MiB lies in the heap, not in
pages of its own, once one of that size was freed (M_MMAP_THRESHOLD adapts). When small objects, such as
nodes of a graph, are then put into the hole that a tensor left, the next tensor of the same size does not
fit it any more, and the heap grows. Whole pages of such holes can be given back (malloc_trim), but the
C library does not do so by itself. A threshold that is fixed would avoid the holes, but each tensor would
get pages of the system, which takes three times as long for elementwise steps (bench/peers/scan_process.py).
"""
import ctypes
import math
import os
import time
from typing import Optional

__all__ = ["Heap", "give_back", "resident"]

PAUSE = 0.002  # seconds between looks; chosen: a look takes 5 us, and so long a process grows by few MB
SHARE = 5  # times as long as giving memory back took, steps run before the next time; chosen: a fifth more time
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Gives free memory back to the system. Between the memory of tapes that were sent lie the nodes
    of their graphs, which stay: what is free there is often too small for other tapes."""
    if _trim is not None:
        _trim(0)


def resident() -> int:
    """Bytes of this process in memory; 0 if the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Heap:
    """Watches the process while a scan runs: when it comes near ``begin`` + ``memory`` bytes (None: no limit),
    free memory is given back."""

    def __init__(self, begin: int = 0, memory: Optional[int] = None):
        self._begin, self._memory = begin, memory or 0
        self._limit, self._next = begin + self._memory * 7 // 8, math.inf if memory is None else 0.0

    def look(self) -> None:
        """Looks at the process, unless it did so a moment ago. What cannot be given back is not asked for
        again before the process has grown further."""
        begin = time.perf_counter()
        if begin < self._next:
            return
        self._next = begin + PAUSE
        if resident() > self._limit:
            give_back()
            end = time.perf_counter()
            self._next = end + SHARE * (end - begin)
            self._limit = max(self._begin + self._memory * 7 // 8, resident() + self._memory // 16)

    def over(self) -> None:
        """The scan is over: what it leaves free in the heap would count for the next one."""
        if self._next < math.inf and resident() > self._begin + self._memory // 2:
            give_back()
