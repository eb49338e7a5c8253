# SPDX-License-Identifier: Apache-2.0
"""States of an accelerator in host memory: a Device copies them out and in, a HostStore manages places.

A Player uses a HostStore like the Store of slow tiers. Copies overlap with computation, on separate streams; each has
a ticket, and starts after the tickets that are passed to it. PyTorch treats CUDA and ROCm as one. Other devices can be
supported by a class with the same methods.
"""
import contextlib
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ..errors import LostRecord, UsageError
from ..problems import Tier

__all__ = ["Cast", "Cuda", "Device", "Generators", "HostStore", "Ticket", "copied", "device_of", "generator_kept",
           "get_rng", "set_rng", "uncached"]


class Ticket:
    """A copy in progress."""

    def done(self) -> bool:
        """True if the copy is complete. Never blocks."""
        raise NotImplementedError

    def wait(self) -> None:
        """Makes computation that is submitted from now on wait for the copy."""
        raise NotImplementedError

    def finish(self) -> None:
        """Blocks until the copy is complete, so its memory can be freed."""
        raise NotImplementedError


class Device:
    """The operations that a HostStore requires of an accelerator."""

    def allocate(self, nbytes: int) -> torch.Tensor:
        """Allocates host memory for copies that overlap with computation: bytes, [nbytes].

        :raises RuntimeError: if there is none.
        """
        raise NotImplementedError

    def copy_out(self, tensors: Sequence[torch.Tensor], host: torch.Tensor, after: Sequence[Ticket]) -> Ticket:
        """Starts to copy tensors, one after the other, into host memory, after all computation submitted so far and
        after the copies in ``after``. The tensors must not change before the wait."""
        raise NotImplementedError

    def copy_in(self, host: torch.Tensor, tensors: Sequence[torch.Tensor], after: Sequence[Ticket]) -> Ticket:
        """Starts to copy host memory back into tensors, which must not be used before the wait."""
        raise NotImplementedError


def copied(host: torch.Tensor, tensors: Sequence[torch.Tensor], out: bool) -> None:
    """Copies tensors to the bytes of ``host``, or back, on the current stream."""
    at = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if size:
            flat = tensor.reshape(-1).view(torch.uint8)  # a view, since the tensor is contiguous
            if out:
                host[at:at + size].copy_(flat, non_blocking=True)
            else:
                flat.copy_(host[at:at + size], non_blocking=True)
        at += size


class _Event(Ticket):
    """The end of a copy on a side stream."""

    def __init__(self, stream: Any):
        self.event, self.device = torch.cuda.Event(), stream.device
        self.event.record(stream)

    def done(self) -> bool:
        return bool(self.event.query())

    def wait(self) -> None:
        torch.cuda.current_stream(self.device).wait_event(self.event)

    def finish(self) -> None:
        self.event.synchronize()


class Cuda(Device):
    """CUDA or ROCm: pinned host memory, a side stream for each direction, events as tickets."""

    def __init__(self, device: torch.device):
        self.device = device
        self._out, self._in = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def allocate(self, nbytes: int) -> torch.Tensor:
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def _copy(self, stream: Any, host: torch.Tensor, tensors: Sequence[torch.Tensor],
              after: Sequence[Ticket], out: bool) -> Ticket:
        stream.wait_stream(torch.cuda.current_stream(self.device))
        for ticket in after:
            if isinstance(ticket, _Event):
                stream.wait_event(ticket.event)
        with torch.cuda.stream(stream), torch.no_grad():
            copied(host, tensors, out)
        for tensor in tensors:
            if tensor.is_cuda:
                tensor.record_stream(stream)  # keeps the allocator from reusing its memory before
        return _Event(stream)

    def copy_out(self, tensors: Sequence[torch.Tensor], host: torch.Tensor, after: Sequence[Ticket]) -> Ticket:
        return self._copy(self._out, host, tensors, after, True)

    def copy_in(self, host: torch.Tensor, tensors: Sequence[torch.Tensor], after: Sequence[Ticket]) -> Ticket:
        return self._copy(self._in, host, tensors, after, False)


_devices: Dict[torch.device, Device] = {}


def device_of(tensors: Sequence[torch.Tensor]) -> Optional[Device]:
    """Returns the device of tensors; None for the CPU.

    :raises UsageError: for several devices, and for a device whose states cannot be offloaded.
    """
    found = {tensor.device for tensor in tensors}
    if all(one.type == "cpu" for one in found):
        return None
    if len(found) > 1 or next(iter(found)).type != "cuda":
        raise UsageError(f"host= supports states on one CUDA or ROCm device, but the state is on "
                         f"{', '.join(sorted(map(str, found)))}. Move it to one such device, or remove host=")
    one = found.pop()
    if one not in _devices:
        _devices[one] = Cuda(one)
    return _devices[one]


def timed(device: Device, like: Sequence[torch.Tensor], capacity: int) -> Tier:
    """Returns host memory as a tier for the planner, with the measured rates of copies of tensors like ``like``."""
    rows = [torch.zeros_like(x) for x in like]
    nbytes = max(1, sum(x.numel() * x.element_size() for x in rows))
    host, rates = device.allocate(nbytes), []
    for copy in (lambda: device.copy_out(rows, host, ()), lambda: device.copy_in(host, rows, ())):
        copy().finish()
        begin = time.perf_counter()
        copy().finish()
        rates.append(nbytes / max(1e-9, time.perf_counter() - begin))
    return Tier(write=rates[0], read=rates[1], capacity=capacity, name="host", duplex=True)


class _Place:
    """Host memory for one state, the tag of its contents, and the tickets of its last uses."""

    __slots__ = ("host", "tag", "put", "gets")

    def __init__(self, host: torch.Tensor):
        self.host, self.tag = host, -1
        self.put: List[Ticket] = []
        self.gets: List[Ticket] = []


class HostStore:
    """Places for states of ``nbytes`` each, with the methods of :class:`neap.stores.Store` that a Player uses; pieces
    are tensors."""

    def __init__(self, device: Device, nbytes: int):
        self.device, self.nbytes, self.waited = device, nbytes, 0.0
        self.tape_bytes: List[int] = []
        self._places: List[_Place] = []

    def format(self, places: Sequence[int], *_: Any) -> None:
        """Makes room for the states of tier 1. If there is no memory for them, every record is rejected."""
        self._places = []
        try:
            host = self.device.allocate(self.nbytes * places[0])
        except RuntimeError:
            return
        self._places = [_Place(part) for part in host.split(self.nbytes)]

    def put(self, tier: int, place: int, tag: int, pieces: Sequence[torch.Tensor], keep: Any = None) -> Ticket:
        """Starts to copy tensors to a place, after all previous uses of it. Raises OSError if there is no such place.
        """
        row = self._row(place)
        ticket = self.device.copy_out(pieces, row.host, [*row.put, *row.gets])
        row.tag, row.put, row.gets = tag, [ticket], []
        return ticket

    def get(self, tier: int, place: int, tag: int, pieces: Sequence[torch.Tensor], keep: Any = None) -> Ticket:
        """Starts to copy them back, after they were written. Raises LostRecord if they were not."""
        row = self._row(place)
        if row.tag != tag:
            raise LostRecord(f"place {place} of host memory does not hold state {tag}; it is recomputed")
        ticket = self.device.copy_in(row.host, pieces, row.put)
        row.gets.append(ticket)
        return ticket

    def _row(self, place: int) -> _Place:
        if place >= len(self._places):
            raise OSError("host memory has no room for the states. Free memory, or pass a smaller host=")
        return self._places[place]

    def wait(self, ticket: Ticket) -> None:
        """Makes the computation wait for the copy."""
        begin = time.perf_counter()
        ticket.wait()
        self.waited += time.perf_counter() - begin

    def forget(self, tier: int, place: int) -> None:
        """Marks the state at a place as no longer needed."""
        if place < len(self._places):
            self._places[place].tag = -1

    def close(self) -> None:
        """Frees the memory after all copies are complete."""
        for row in self._places:
            for ticket in (*row.put, *row.gets):
                ticket.finish()
        self._places = []


class Generators:
    """The random number generators that steps may use: those of the CPU and of ``devices``, and ``others``,
    torch.Generator objects.

    :param strict: True: raises UsageError for a device whose generator PyTorch does not expose; False: leaves it out.
    """

    def __init__(self, devices: Iterable[torch.device], others: Sequence[torch.Generator] = (), strict: bool = True):
        self._others = [one for one in others if one is not torch.default_generator]
        found = {str(one): one for one in devices if one.type not in ("cpu", "meta")}
        self._modules = [(_module_of(one), one) for _, one in sorted(found.items()) if strict or _module_of(one, False)]
        self._sizes: List[int] = []

    def get(self) -> torch.Tensor:
        """Returns their states, concatenated, as bytes."""
        if not self._modules and not self._others:
            return torch.get_rng_state()
        rows = [torch.get_rng_state()]
        rows += [module.get_rng_state(*_argument(device)) for module, device in self._modules]
        rows += [one.get_state() for one in self._others]
        self._sizes = [row.numel() for row in rows]
        return torch.cat([row.cpu() for row in rows])

    def set(self, state: torch.Tensor) -> None:
        """Restores the states that ``get`` returned."""
        if not self._modules and not self._others:
            torch.set_rng_state(state)
            return
        if not self._sizes:
            self.get()
        rows = [row.clone() for row in state.split(self._sizes)][::-1]
        torch.set_rng_state(rows.pop())
        for module, device in self._modules:
            module.set_rng_state(rows.pop(), *_argument(device))
        for one in self._others:
            one.set_state(rows.pop())


def _argument(device: torch.device) -> Sequence[torch.device]:
    return () if device.type == "mps" else (device,)  # there is only one such device, and its functions take no device


def _module_of(device: torch.device, strict: bool = True) -> Any:
    """Returns the module of PyTorch for a device, such as torch.cuda, if it has the functions for random numbers."""
    module = getattr(torch, device.type, None)
    if module is None and hasattr(torch, "get_device_module"):
        with contextlib.suppress(RuntimeError):
            module = torch.get_device_module(device)
    if hasattr(module, "get_rng_state") and hasattr(module, "set_rng_state"):
        return module
    if strict:
        raise UsageError(f"tensors are on {device}, and this PyTorch has no torch.{device.type}.get_rng_state and "
                         f"set_rng_state, so random numbers cannot be repeated in recomputed steps. If the step draws "
                         f"none, pass rng=False to the scan; else use a CPU or CUDA device")
    return None


def get_rng(where: Union[torch.device, Generators]) -> torch.Tensor:
    """Returns the states of the generators, or of those of the CPU and a device, as bytes."""
    return (where if isinstance(where, Generators) else Generators([where])).get()


def set_rng(where: Union[torch.device, Generators], state: torch.Tensor) -> None:
    """Restores the states that ``get_rng`` returned."""
    (where if isinstance(where, Generators) else Generators([where])).set(state)


@contextlib.contextmanager
def generator_kept(where: Union[torch.device, Generators]) -> Iterator[None]:
    """Context manager that restores the states of the random number generators at its end."""
    kept = get_rng(where)
    try:
        yield
    finally:
        set_rng(where, kept)


def uncached(function: Callable[..., Any], *given: Any) -> Any:
    """Calls a function whose own autocast must not share casts of weights with the code before and after it: casts are
    cached, with their graph, until the outermost autocast ends. The cache is also cleared if the function raises."""
    torch.clear_autocast_cache()
    try:
        return function(*given)
    finally:
        torch.clear_autocast_cache()


def _casts(kind: str) -> bool:
    """True for other kinds of devices that have autocast, as PyTorch 2.4 and later report."""
    told = getattr(torch.amp, "is_autocast_available", None)
    return told is not None and told(kind)


class Cast:
    """The current autocast mode, to be entered when steps are recomputed; without its cache of weights, which would
    connect the graphs of different steps."""

    def __init__(self, where: torch.device):
        self.where = where
        self.device = where.type if where.type in ("cpu", "cuda", "xpu") or _casts(where.type) else "cpu"
        try:
            self.enabled = torch.is_autocast_enabled(self.device)
            self.dtype = torch.get_autocast_dtype(self.device)
        except (TypeError, AttributeError):  # before PyTorch 2.4
            cpu = self.device == "cpu"
            self.enabled = torch.is_autocast_cpu_enabled() if cpu else torch.is_autocast_enabled()
            self.dtype = torch.get_autocast_cpu_dtype() if cpu else torch.get_autocast_gpu_dtype()
        # If it is off, an autocast in the step inherits the cache setting, as in a plain loop.
        self.cached = not self.enabled and torch.is_autocast_cache_enabled()

    def outside(self) -> Any:
        """Returns a factory of context managers for the current autocast mode, in which this mode is then entered."""
        now = Cast(self.where)
        return contextlib.nullcontext if now.key == self.key else now

    @property
    def key(self) -> Tuple[Any, ...]:
        """The part of the mode that the size of a tape depends on."""
        return self.enabled, self.dtype, self.cached

    def __call__(self) -> Any:
        if not self.enabled and self.outside() is contextlib.nullcontext:
            return contextlib.nullcontext()  # so that an autocast in the step, or a checkpoint, clears its own cache
        return torch.autocast(self.device, dtype=self.dtype, enabled=self.enabled, cache_enabled=self.cached)
