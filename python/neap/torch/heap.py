# SPDX-License-Identifier: Apache-2.0
"""Keeps the heap of the C library near a budget: free memory in it is returned to the system.

glibc reuses a freed block of the heap for any allocation that fits. Once a tensor of up to 32 MiB was freed, tensors
of that size are allocated in the heap instead of in separate pages (M_MMAP_THRESHOLD adapts). If small objects, such
as nodes of a graph, are then allocated in the hole of a freed tensor, the next tensor of the same size does not fit,
and the heap grows. Whole pages of such holes can be returned (malloc_trim), but the C library does not do so
automatically. A fixed threshold would avoid the holes, but every tensor would need new pages of the system, which
makes elementwise steps three times slower (bench/peers/scan_process.py).
"""
import ctypes
import math
import os
import time
from typing import Optional

__all__ = ["Heap", "give_back", "resident"]

PAUSE = 0.002  # seconds between checks; chosen: a check takes 5 us, and a process grows by few MB in that time
SHARE = 5  # minimum ratio of time between trims to the time of a trim; chosen: 20% overhead
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Returns free memory to the system. Between the memory of offloaded tapes are the nodes of their graphs, which
    stay in memory: the free blocks between them are often too small for other tapes."""
    if _trim is not None:
        _trim(0)


def resident() -> int:
    """Returns the resident memory of this process in bytes; 0 if it is unknown."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Heap:
    """Monitors the process while a scan runs: when its memory approaches ``begin`` + ``memory`` bytes (None: no
    limit), free memory is returned to the system."""

    def __init__(self, begin: int = 0, memory: Optional[int] = None):
        self._begin, self._memory = begin, memory or 0
        self._limit, self._next = begin + self._memory * 7 // 8, math.inf if memory is None else 0.0

    def look(self) -> None:
        """Checks the process, unless it was checked a moment ago. If memory could not be returned, the next attempt
        comes after the process has grown further."""
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
        """Called at the end of a scan: free memory in its heap would count for the next scan."""
        if self._next < math.inf and resident() > self._begin + self._memory // 2:
            give_back()
