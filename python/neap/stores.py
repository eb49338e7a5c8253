# SPDX-License-Identifier: Apache-2.0
"""Slow tiers for a loop in Python: records in pieces of memory are written to places and read back, overlapped with
computation. libneap's tiers transfer them, and check lengths and checksums."""
import ctypes
import os
import time
import warnings
import weakref
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _abi
from ._lib import check, lib
from .errors import UsageError, stack_level
from .problems import Tier
from .show import show_least

__all__ = ["ROOMS", "OpenTier", "Paths", "Store", "Transfer", "measured_tiers"]

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]

ROOMS = 4  # in host memory, for records of a device on their way to files; chosen: a record being copied and one being
# written or read, in each direction
_GLANCE = 0.1  # seconds of waiting between two checks for signals


class OpenTier(Tier):
    """A tier of a store as the planner sees it."""

    def __init__(self, raw: _abi.neap_tier_spec):
        super().__init__(name=raw.name.decode("utf-8", "replace"))
        self.raw = raw

    def spec(self, classic: bool = False) -> _abi.neap_tier_spec:
        return self.raw

    def bounded(self, capacity: Optional[int], cpu: float) -> "OpenTier":
        """Returns a copy with a capacity of at most ``capacity`` bytes, and ``cpu`` more seconds of computing time per
        byte."""
        raw = _abi.neap_tier_spec.from_buffer_copy(self.raw)
        if capacity is not None:
            raw.capacity = min(raw.capacity, capacity)
        raw.cpu += cpu
        return OpenTier(raw)


class Transfer:
    """A transfer in flight."""

    __slots__ = ("tier", "ticket")

    def __init__(self, tier: int, ticket: int):
        self.tier, self.ticket = tier, ticket


def _abandon(tiers: List[ctypes.c_void_p], borrowed: Dict[Any, Any]) -> None:
    """Closes tiers, and only then releases the memory that transfers borrow."""
    while tiers:
        lib.neap_tier_close(tiers.pop())
    borrowed.clear()


class Store:
    """Open tiers with places for records of at most ``nbytes`` each.

    :param slow: a directory, ``"mem:4G"``, or a list of them, fastest first.
    :raises OSError: if a directory cannot be used.
    :raises UsageError: if the list is invalid.

    Only one thread at a time may use it. It is closed by garbage collection, which abandons transfers in flight.
    """

    def __init__(self, slow: Paths, nbytes: int):
        paths = [slow] if isinstance(slow, (str, os.PathLike)) else list(slow)
        for path in paths:
            if os.path.isfile(path):
                raise UsageError(f"slow={os.fspath(path)!r} is a file. Pass a directory, in which neap creates files, or "
                                 f'memory, such as slow="mem:4G"')
        raw, count = (ctypes.c_void_p * _abi.NEAP_TIERS_MAX)(), ctypes.c_int()
        try:
            check(lib.neap_tiers_open(raw, ctypes.byref(count),
                                      b",".join(os.fsencode(path) for path in paths), None))
        except UsageError as error:  # scans do not have that argument
            raise UsageError(str(error).replace("allow it with in_memory=True", 'use memory, such as slow="mem:4G"')
                             ) from None
        self.nbytes, self.waited = nbytes, 0.0
        self.tape_bytes: List[int] = []
        self._tiers = [ctypes.c_void_p(address) for address in raw[:count.value]]
        self._dead = [False] * len(self._tiers)
        self._borrowed: Dict[Tuple[int, int], Any] = {}
        self.close = weakref.finalize(self, _abandon, self._tiers, self._borrowed)

    def measured(self, seconds: float) -> List[OpenTier]:
        """Returns the tiers with their rates on this machine, measured for ``seconds`` each."""
        found = []
        for tier in self._tiers:
            lib.neap_tier_measure(tier, self.nbytes, seconds)  # if it fails, rates stay
            spec = _abi.neap_tier_spec()
            lib.neap_tier_describe(tier, self.nbytes, ctypes.byref(spec))
            found.append(OpenTier(spec))
        return found

    def format(self, places: Sequence[int], tape_places: Sequence[int] = (),
               tape_bytes: Sequence[int] = ()) -> None:
        """Makes room on each tier for ``places`` records, and for ``tape_places`` records of tapes of at most
        ``tape_bytes`` each, which have separate places. A tier without enough room rejects every record."""
        self.tape_bytes = list(tape_bytes) or [0] * len(self._tiers)
        tapes = list(tape_places) or [0] * len(self._tiers)
        for i, tier in enumerate(self._tiers):
            if places[i] or tapes[i]:
                self._dead[i] = lib.neap_tier_format(tier, self.nbytes, places[i], None) < 0 or bool(
                    tapes[i] and lib.neap_tier_format_tapes(tier, self.tape_bytes[i], tapes[i], 0) < 0)

    def _move(self, function: Any, tier: int, place: int, tag: int,
              pieces: Sequence[Tuple[int, int]], keep: Any) -> Transfer:
        if not self._tiers:
            raise UsageError("the store is closed and cannot be used any more. Create a new one")
        if self._dead[tier - 1]:
            raise OSError(f"slow tier {tier} has no room for the records. Free space there, or pass another directory")
        spans = (_abi.neap_span * len(pieces))(*pieces)
        ticket = ctypes.c_int64()
        check(function(self._tiers[tier - 1], place, tag, spans, len(pieces), ctypes.byref(ticket)))
        self._borrowed[tier, ticket.value] = spans, keep
        return Transfer(tier, ticket.value)

    def put(self, tier: int, place: int, tag: int, pieces: Sequence[Tuple[int, int]],
            keep: Any = None) -> Transfer:
        """Starts to write pieces of memory, (address, bytes), to a place; they must not change before the wait.
        ``keep`` is referenced until then. Raises libneap's errors."""
        return self._move(lib.neap_tier_put_spans, tier, place, tag, pieces, keep)

    def get(self, tier: int, place: int, tag: int, pieces: Sequence[Tuple[int, int]],
            keep: Any = None) -> Transfer:
        """Starts to read a record; its memory must not be read before the wait."""
        return self._move(lib.neap_tier_get_spans, tier, place, tag, pieces, keep)

    def put_tapes(self, tier: int, place: int, tag: int, pieces: Sequence[Tuple[int, int]],
                  keep: Any = None) -> Transfer:
        """Starts a transfer as ``put``, to a place for tapes."""
        return self._move(lib.neap_tier_put_tapes, tier, place, tag, pieces, keep)

    def get_tapes(self, tier: int, place: int, tag: int, pieces: Sequence[Tuple[int, int]],
                  keep: Any = None) -> Transfer:
        """Starts a transfer as ``get``, from a place for tapes: the number of bytes is the one that was written."""
        return self._move(lib.neap_tier_get_tapes, tier, place, tag, pieces, keep)

    def wait(self, transfer: Transfer) -> None:
        """Waits for a transfer, and handles signals meanwhile; raises the error of the transfer."""
        begin = time.perf_counter()
        try:
            answer = 0
            while answer == 0:
                answer = lib.neap_tier_wait_for(self._tiers[transfer.tier - 1], transfer.ticket, _GLANCE)
        finally:
            self.waited += time.perf_counter() - begin
        self._borrowed.pop((transfer.tier, transfer.ticket), None)
        check(answer)

    def done(self, transfer: Transfer) -> bool:
        """True if ``wait`` would return at once. Never blocks."""
        return bool(lib.neap_tier_done(self._tiers[transfer.tier - 1], transfer.ticket))

    def forget(self, tier: int, place: int) -> None:
        """Marks the state at a place as no longer needed."""
        if not self._dead[tier - 1]:
            lib.neap_tier_forget(self._tiers[tier - 1], place)


def measured_tiers(slow: Paths, nbytes: int, seconds: float) -> List[OpenTier]:
    """Returns slow tiers for the planner, for records of ``nbytes``: each is opened, measured for ``seconds``, and
    closed. Raises the errors of :class:`Store`; warns of a tier that has no room for a state."""
    store = Store(slow, nbytes)
    try:
        found = store.measured(seconds)
    finally:
        store.close()
    for i, tier in enumerate(found):
        if tier.raw.capacity < nbytes:
            warnings.warn(f"slow={slow!r}: tier {i + 1} has no room for a state of {show_least(nbytes)} and is not used. "
                          f"Pass a larger size, or a directory with more free space", RuntimeWarning,
                          stacklevel=stack_level())
    return found
