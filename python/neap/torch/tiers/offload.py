# SPDX-License-Identifier: Apache-2.0
"""States and tapes of a device in host memory and in files.

A Player uses an Offload like the Store of slow tiers. Tier 1 is host memory (with ``host``); the others are files or
other slow memory. A record reaches a file through a room of host memory: a copy from the device to a room, then a write
from there; a read into a room, then a copy to the device. Copies overlap with computation, on separate streams, and
are ordered by tickets: each starts after the computation submitted before it, and after earlier copies that use the
same memory. A wait for a record in host memory, or for one that is written to a file, only orders the streams. The CPU
waits if a record is still being read from a file, or if all rooms are in use.

The caller's tensors are referenced until the wait. From then on, computation that reuses their memory comes after the
copy, so their memory is free for the allocator at once; with ``record_stream`` it would be free only after the CPU
noticed the end of the copy, and a CPU that runs ahead would exceed the budget.
"""
import time
import warnings
import weakref
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from ...errors import LostRecord, RecordError, stack_level
from ...stores import ROOMS, Paths, Store, Transfer
from ..device import Device, Ticket
from ..tapes import aligned
from .slabs import Block

__all__ = ["Offload", "opened", "record_bytes"]

Pieces = Sequence[Tuple[torch.Tensor, int]]


def record_bytes(sizes: Sequence[int]) -> int:
    """Returns the bytes of a record of pieces of these sizes, each of which is aligned."""
    return sum(map(aligned, sizes))


class _Place:
    """The host memory of one record, the tag and bytes of its contents, and the last copies to and from it."""

    __slots__ = ("host", "tag", "nbytes", "put", "gets")

    def __init__(self, host: torch.Tensor, uses: Sequence[Ticket]):
        self.host, self.tag, self.nbytes = host, -1, 0
        self.put: List[Ticket] = list(uses)
        self.gets: List[Ticket] = []


class Move:
    """A record on its way, with a reference to the caller's tensors until the wait. ``ticket``: the copy from or to
    the device; None: it has not started."""

    def __init__(self, keep: Any, ticket: Optional[Ticket] = None):
        self.keep, self.ticket = keep, ticket

    def arrive(self) -> None:
        """Blocks until the copy has started. Raises OSError or RecordError if the record is lost."""


class _Write(Move):
    """A record on its way from a room to a file."""

    def __init__(self, files: Store, room: Block, spot: Tuple[bool, int, int], tag: int, nbytes: int, keep: Any,
                 ticket: Ticket):
        super().__init__(keep, ticket)
        self.files, self.room, self.spot, self.tag, self.nbytes = files, room, spot, tag, nbytes
        self.copied, self.transfer, self.over = ticket, None, False

    def submit(self) -> None:
        """Starts the write, after the copy to the room."""
        tapes, tier, place = self.spot
        start = self.files.put_tapes if tapes else self.files.put
        try:
            self.copied.finish()
            self.transfer = start(tier, place, self.tag, [(self.room.host.data_ptr(), self.nbytes)], self.room)
        except (OSError, RecordError, RuntimeError):  # its GET will not find it
            self.over = True

    def step(self, block: bool) -> bool:
        """Continues, and waits if ``block`` is True. Returns True if the room is free."""
        if self.transfer is None and not self.over:
            if not (block or self.copied.done()):
                return False
            self.submit()
        if not self.over and (block or self.files.done(self.transfer)):
            try:
                self.files.wait(self.transfer)
            except (OSError, RecordError):
                pass
            self.over = True
        return self.over


class _Read(Move):
    """A record on its way from a file to a room, and from there to the device."""

    def __init__(self, device: Device, files: Store, room: Block, transfer: Transfer, tensors: List[torch.Tensor],
                 keep: Any):
        super().__init__(keep)
        self.device, self.files, self.room, self.transfer, self.tensors = device, files, room, transfer, tensors
        self.submitted, self.error, self.over = device.now(), None, False

    def step(self, block: bool) -> bool:
        """Continues, and waits if ``block`` is True. Returns True if the room is free."""
        if not self.over and (block or self.files.done(self.transfer)):
            self.over = True
            try:
                self.files.wait(self.transfer)
                self.ticket = self.device.copy_in(self.room.host, self.tensors, [self.submitted])
                self.room.uses = [self.ticket]
            except (OSError, RecordError) as error:
                self.error = error
            except RuntimeError as error:
                self.error = OSError(f"the copy of a record to the device failed: {error}. It is recomputed")
            self.tensors = []
        return self.over

    def arrive(self) -> None:
        self.step(True)
        if self.error is not None:
            raise self.error


def _abandon(device: Device, flying: Dict[int, Move], places: Dict[Any, _Place], blocks: List[Block],
             files: List[Store]) -> None:
    """Waits for copies of tensors that are still referenced, and closes files. Only then the memory that both use is
    returned, with the copies that may still use it."""
    for move in flying.values():
        if move.ticket is not None:
            move.ticket.finish()
    flying.clear()
    while files:
        files.pop().close()
    uses = [ticket for row in places.values() for ticket in (*row.put, *row.gets)]
    places.clear()
    for block in blocks:
        block.uses = block.uses + uses
        device.slabs.give(block)
    blocks.clear()


class Offload:
    """Tiers for records of at most ``nbytes`` each, with the methods of :class:`neap.stores.Store` that a Player uses;
    pieces are (tensor of bytes, bytes).

    :param host: True: tier 1 is host memory.
    :param slow: the tiers after it, as of a Store.
    :param spill: True: the first tier of these is also part of tier 1: records that have no room in host memory are
        there. They are spread over the places, so that both are used at the same time.

    Only one thread at a time may use it. Garbage collection closes it after all copies are complete.
    """

    def __init__(self, device: Device, nbytes: int, host: bool, slow: Optional[Paths] = None, spill: bool = False):
        self.device, self.nbytes, self.host, self.waited = device, nbytes, host, 0.0
        self.near = int(host and not spill)  # number of tiers without files
        self.tape_bytes: List[int] = []
        self._files = [] if slow is None else [Store(slow, nbytes)]
        self._places: Dict[Tuple[bool, int], _Place] = {}  # in host memory, of tier 1
        self._far: Dict[Tuple[bool, int], int] = {}  # the places in files of places of tier 1, if they differ
        self._blocks: List[Block] = []
        self._rooms: List[Block] = []
        self._jobs: List[Any] = []  # writes and reads that have a room, in the order of their start
        self._flying: Dict[int, Move] = {}
        self._abandon = weakref.finalize(self, _abandon, device, self._flying, self._places, self._blocks,
                                         self._files)

    def format(self, places: Sequence[int], tape_places: Sequence[int] = (), tape_bytes: Sequence[int] = (),
               limit: Optional[int] = None) -> None:
        """Makes room on each tier for ``places`` records, and for ``tape_places`` records of tapes of at most
        ``tape_bytes`` each. If there is no host memory for them, every record is lost.

        :param limit: bytes of host memory; rooms for files get what places leave of it, but at least one record.
        """
        self.tape_bytes = list(tape_bytes) or [0] * len(places)
        near, far = self.near, [list(places), list(tape_places) or [0] * len(places)]
        sizes = [[aligned(self.nbytes)] * len(places), [aligned(size) for size in self.tape_bytes]]
        room = max([size for row, counts in zip(sizes, far) for size, count in zip(row[near:], counts[near:]) if count],
                   default=0)
        left = None if limit is None or near == 1 else limit - ROOMS * room  # for places of tier 1
        try:
            for kind in (False, True) if self.host else ():
                size, count = sizes[kind][0], far[kind][0]
                fit = count if left is None else max(0, min(count, left // max(1, size)))
                if fit:
                    block = self._take(fit * size)
                    parts = list(block.host.split(size))
                    self._places.update(((kind, n), _Place(parts.pop(), block.uses)) for n in range(count)
                                        if (n + 1) * fit // count > n * fit // count)
                left = None if left is None else left - fit * size
                others = [n for n in range(count) if (kind, n) not in self._places]
                self._far.update(((kind, n), at) for at, n in enumerate(others))
                far[kind][0] = len(others)
            if any(far[0][near:] + far[1][near:]):
                self._files[0].format(far[0][near:], far[1][near:], sizes[1][near:])
                rooms = ROOMS if limit is None else (limit - self.host_bytes) // room
                self._rooms = [self._take(room) for _ in range(max(1, min(ROOMS, rooms)))]
        except RuntimeError as error:
            warnings.warn(f"host memory for states and tapes cannot be allocated, so they are recomputed: {error}. Pass "
                          f"a smaller host=, or free memory", RuntimeWarning, stacklevel=stack_level())

    def _take(self, nbytes: int) -> Block:
        block = self.device.slabs.take(nbytes)
        self._blocks.append(block)
        return block

    @property
    def host_bytes(self) -> int:
        """Bytes of host memory in use."""
        return sum(block.nbytes for block in self._blocks)

    # Transfers of a Player

    def put(self, tier: int, place: int, tag: int, pieces: Pieces, keep: Any = None) -> Move:
        """Starts to copy pieces to a place, after all previous uses of it. Raises OSError if that is impossible."""
        return self._put((False, tier, place), tag, pieces, keep)

    def put_tapes(self, tier: int, place: int, tag: int, pieces: Pieces, keep: Any = None) -> Move:
        """Starts a transfer as ``put``, to a place for tapes."""
        return self._put((True, tier, place), tag, pieces, keep)

    def get(self, tier: int, place: int, tag: int, pieces: Pieces, keep: Any = None) -> Move:
        """Starts the copy of a record to the device, after it was written. Raises LostRecord if it was not."""
        return self._get((False, tier, place), tag, pieces, keep)

    def get_tapes(self, tier: int, place: int, tag: int, pieces: Pieces, keep: Any = None) -> Move:
        """Starts a transfer as ``get``, from a place for tapes."""
        return self._get((True, tier, place), tag, pieces, keep)

    def _put(self, spot: Tuple[bool, int, int], tag: int, pieces: Pieces, keep: Any) -> Move:
        tensors, nbytes = [x for x, _ in pieces], record_bytes([size for _, size in pieces])
        self._push()
        row = self._row(spot)
        if row is not None:
            self._fits(nbytes, row.host)
            ticket = self._copied_out(tensors, row.host, [*row.put, *row.gets])
            row.tag, row.nbytes, row.put, row.gets = tag, nbytes, [ticket], []
            return self._started(Move((tensors, keep), ticket))
        room = self._room()
        try:
            self._fits(nbytes, room.host)
            ticket = self._copied_out(tensors, room.host, room.uses)
        except OSError:
            self._rooms.append(room)
            raise
        room.uses = [ticket]
        job = _Write(self._files[0], room, self._behind(spot), tag, nbytes, (tensors, keep), ticket)
        self._jobs.append(job)
        return self._started(job)

    def _copied_out(self, tensors: List[torch.Tensor], host: torch.Tensor, uses: List[Ticket]) -> Ticket:
        try:
            return self.device.copy_out(tensors, host, [self.device.now(), *uses])
        except RuntimeError as error:
            raise OSError(f"the copy of a record to host memory failed: {error}. It is recomputed") from None

    def _get(self, spot: Tuple[bool, int, int], tag: int, pieces: Pieces, keep: Any) -> Move:
        tensors, nbytes = [x for x, _ in pieces], record_bytes([size for _, size in pieces])
        self._push()
        row = self._row(spot)
        if row is None:
            return self._started(self._read(self._behind(spot), tag, tensors, nbytes, keep))
        if row.tag != tag or row.nbytes != nbytes:
            raise LostRecord(f"place {spot[2]} of host memory does not hold record {tag}; it is recomputed")
        try:
            ticket = self.device.copy_in(row.host, tensors, [self.device.now(), *row.put])
        except RuntimeError as error:
            raise OSError(f"the copy of a record to the device failed: {error}. It is recomputed") from None
        row.gets.append(ticket)
        return self._started(Move((tensors, keep), ticket))

    def _read(self, spot: Tuple[bool, int, int], tag: int, tensors: List[torch.Tensor], nbytes: int,
              keep: Any) -> _Read:
        tapes, tier, place = spot
        for job in self._jobs:  # a write of this record
            if isinstance(job, _Write) and job.spot == spot and job.transfer is None and not job.over:
                job.submit()
        room = self._room()
        for ticket in room.uses:  # the CPU writes to it
            ticket.finish()
        try:
            self._fits(nbytes, room.host)
            start = self._files[0].get_tapes if tapes else self._files[0].get
            transfer = start(tier, place, tag, [(room.host.data_ptr(), nbytes)], room)
        except (OSError, RecordError):
            self._rooms.append(room)
            raise
        job = _Read(self.device, self._files[0], room, transfer, tensors, (tensors, keep))
        self._jobs.append(job)
        return job

    def _started(self, move: Move) -> Move:
        self._flying[id(move)] = move
        return move

    def _row(self, spot: Tuple[bool, int, int]) -> Optional[_Place]:
        """Returns a place in host memory; None for a record in a file."""
        row = self._places.get((spot[0], spot[2])) if spot[1] == 1 and self.host else None
        if row is None and spot[1] <= self.near:
            raise OSError("host memory has no room for the records. Free memory, or pass a smaller host=")
        return row

    def _behind(self, spot: Tuple[bool, int, int]) -> Tuple[bool, int, int]:
        """Returns the place of a record in the files."""
        tapes, tier, place = spot
        return tapes, tier - self.near, self._far.get((tapes, place), place) if tier == 1 else place

    @staticmethod
    def _fits(nbytes: int, host: torch.Tensor) -> None:
        if nbytes > host.numel():
            raise OSError(f"a record takes {nbytes} bytes, but its place in host memory has {host.numel()}. It is "
                          f"recomputed")

    def _room(self) -> Block:
        """Returns a room that is not in use by files: one without copies under way, if there is one."""
        if not self._rooms and not self._jobs:
            raise OSError("host memory has no room for records on their way to files. Free memory")
        if not self._rooms:
            begin = time.perf_counter()
            self._end(self._jobs[0], True)
            self.waited += time.perf_counter() - begin
        free = next((room for room in self._rooms if all(ticket.done() for ticket in room.uses)), self._rooms[0])
        self._rooms.remove(free)
        return free

    def _push(self) -> None:
        """Continues writes and reads as far as possible without waiting."""
        for job in list(self._jobs):
            self._end(job, False)

    def _end(self, job: Any, block: bool) -> None:
        if job.step(block):
            self._jobs.remove(job)
            self._rooms.append(job.room)

    def wait(self, move: Move) -> None:
        """Makes the computation wait for the copy, and drops the references to its tensors. Raises OSError or
        RecordError if the record is lost."""
        begin = time.perf_counter()
        self._push()
        try:
            move.arrive()
            assert move.ticket is not None
            move.ticket.wait()
        except RuntimeError as error:
            raise OSError(f"the copy of a record failed: {error}. It is recomputed") from None
        finally:
            self._flying.pop(id(move), None)
            move.keep = None
            self.waited += time.perf_counter() - begin

    def forget(self, tier: int, place: int) -> None:
        """Marks the state at a place as no longer needed."""
        row = self._places.get((False, place)) if tier == 1 else None
        if row is not None:
            row.tag = -1
        elif tier > self.near:
            self._files[0].forget(*self._behind((False, tier, place))[1:])

    def close(self) -> None:
        """Ends all transfers. The CPU waits only for files that are being read or written."""
        for move in self._flying.values():
            if move.ticket is not None:
                move.ticket.wait()
        self._flying.clear()
        self._rooms, self._jobs = [], []
        self._abandon()


def opened(device: Optional[Device], slow: Optional[Paths], host: Optional[int], record: int, places: Any,
           nbytes: Sequence[int], spill: bool = False) -> Any:
    """Returns the open tiers of a plan with its places, for states of ``record`` bytes; None if it uses none.

    :param places: places for states and for tapes, by tier. ``nbytes``: bytes of the records of tapes, by tier.
    """
    if not any((*places.states, *places.tapes)) or device is None and slow is None:
        return None
    if device is None:
        store: Any = Store(slow, record)  # type: ignore[arg-type]
        store.format(places.states, places.tapes, nbytes)
    else:
        store = Offload(device, record, host is not None, slow, spill)
        store.format(places.states, places.tapes, nbytes, host)
    return store
