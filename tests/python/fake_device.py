# SPDX-License-Identifier: Apache-2.0
"""A device whose memory is the CPU's, and whose copies are late, reordered, slow, or fail.

Computation is what PyTorch does at once. Copies have a queue per direction, in order, as the two side streams of a GPU;
the two queues progress independently. A copy happens when somebody waits for it, or when its queue has made enough
progress: ``rate`` bytes per look at the device (``now`` or ``done``), a random part of it with ``seed``. With rate 0 it
happens as late as possible, with INSTANT at once.

A copy from the device may be late even after the computation has waited for it: computation that changes the source
comes after the copy, but the CPU sees nothing of it. Until that wait, its source must exist and stay the same; until a
copy to the device is over, its destination is garbage, and so is host memory that nothing was copied to. A copy that
does not wait for the computation before it takes or leaves garbage. Missing waits, wrong order and early reuse
therefore change results.
"""
import ctypes
import itertools
import random

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from neap.torch import device as devices
from neap.torch.measure import Memory
from neap.torch.tapes import ALIGNED, aligned

INSTANT = 1 << 60
GARBAGE = b"\xff"  # NaN of every type


class Bytes:
    """Memory of a tensor, without a reference that would keep it from being freed, and without operations of PyTorch,
    which an allocator would count."""

    def __init__(self, tensor):
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        self.at, self.nbytes, self.storage = tensor.data_ptr(), tensor.numel(), StorageWeakRef(storage)

    def read(self):
        assert not self.storage.expired(), "freed before the wait"
        return ctypes.string_at(self.at, self.nbytes)

    def write(self, data):
        assert not self.storage.expired(), "freed before the wait"
        ctypes.memmove(self.at, data, self.nbytes)


def places(rows):
    """The place of each of these in a record."""
    return itertools.accumulate([0, *[aligned(row.nbytes) for row in rows]])


class Now(devices.Ticket):
    """A point in the order of computation, which is always reached."""

    def done(self):
        return True

    def wait(self):
        pass

    finish = wait


class Late(devices.Ticket):
    """A copy in a queue."""

    def __init__(self, device, queue, copy, nbytes, after, take=None):
        self.device, self.queue, self.copy, self.left, self.after = device, queue, copy, nbytes, after
        self.take, self.taken = take, False  # ends the use of the source
        queue.append(self)

    def done(self):
        self.device.tick()
        return self.copy is None

    def run(self):
        """Makes the copy, and everything that comes before it."""
        while self.copy is not None:
            first = self.queue[0]
            for ticket in first.after:
                if isinstance(ticket, Late):
                    ticket.run()
            if first.copy is not None:
                copy, first.copy, first.after = first.copy, None, []
                self.queue.pop(0)
                copy()

    def wait(self):
        if self.take is None:
            self.run()
        elif self.copy is not None:
            self.take()
            self.taken = True
        if self.device.fails("wait"):
            raise RuntimeError("a copy failed (made up)")

    def finish(self):
        self.run()


class Fake(devices.Device):
    """``failing``: names of operations (out, in, wait, allocate), every third of which fails. ``limit``: bytes of host
    memory."""

    memory = Memory(ALIGNED, False)

    def __init__(self, rate=0, seed=None, failing=(), limit=None):
        super().__init__()
        self.rate, self.failing, self.limit = rate, set(failing), limit
        self.random = None if seed is None else random.Random(seed)
        self.queues, self.copies, self.moved, self.calls = {"out": [], "in": []}, 0, 0, 0

    @property
    def open(self):
        """Copies whose tensors are still in use."""
        return [one for queue in self.queues.values() for one in queue if not one.taken]

    def drain(self):
        """Ends all copies."""
        for queue in self.queues.values():
            while queue:
                queue[0].run()

    def fails(self, operation):
        if operation not in self.failing:
            return False
        self.calls += 1
        return self.calls % 3 == 0

    def tick(self):
        """Makes progress in both queues."""
        for queue in self.queues.values():
            room = self.rate if self.random is None else self.random.randint(0, self.rate)
            while queue and room > 0:
                first = queue[0]
                used = min(room, first.left)
                first.left, room = first.left - used, room - used
                if first.left > 0 or not all(ticket.copy is None for ticket in first.after if isinstance(ticket, Late)):
                    break
                first.run()

    def allocate(self, nbytes):
        if self.fails("allocate") or self.limit is not None and self.slabs.held + nbytes > self.limit:
            raise RuntimeError("no pinned memory")
        return torch.full((nbytes,), 0xff, dtype=torch.uint8)

    def now(self):
        self.tick()
        return Now()

    def _start(self, direction, tensors, copy, after, take=None):
        if self.fails(direction):
            raise RuntimeError("a copy cannot start (made up)")
        self.copies += 1
        nbytes = sum(x.numel() for x in tensors)
        self.moved += nbytes
        found = Late(self, self.queues[direction], copy, nbytes, list(after), take)
        if self.rate == INSTANT:
            found.run()
        return found

    def copy_out(self, tensors, host, after):
        rows = [Bytes(x) for x in tensors]
        before, kept = [row.read() for row in rows], []
        in_order, at = any(isinstance(ticket, Now) for ticket in after), host.data_ptr()

        def take():
            if not kept:
                kept.extend(row.read() for row in rows)
                assert kept == before, "changed before the wait"

        def copy():
            take()
            for place, row, data in zip(places(rows), rows, kept):
                ctypes.memmove(at + place, data if in_order else GARBAGE * row.nbytes, row.nbytes)
        return self._start("out", tensors, copy, after, take)

    def copy_in(self, host, tensors, after):
        rows, in_order = [Bytes(x) for x in tensors], any(isinstance(ticket, Now) for ticket in after)
        at = host.data_ptr()
        for row in rows:
            row.write(GARBAGE * row.nbytes)

        def copy():
            for place, row in zip(places(rows), rows):
                row.write(ctypes.string_at(at + place, row.nbytes) if in_order else GARBAGE * row.nbytes)
        return self._start("in", tensors, copy, after)
