# SPDX-License-Identifier: Apache-2.0
"""Accelerators, as neap.torch needs them: copies from and to host memory, random number generators, autocast.

Copies overlap with computation, on separate streams; each has a ticket, and starts after the tickets that are passed
to it (offload.py). PyTorch treats CUDA and ROCm as one. Other devices can be supported by a class with the same
methods. On the CPU, ``Blocks`` copies to other memory at once: a scan then runs the same code as on a GPU.
"""
import contextlib
import mmap
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ..errors import UsageError
from .measure import ACCELERATOR, CPU, Memory
from .tapes import ALIGNED, aligned
from .tiers.slabs import Slabs

__all__ = ["Blocks", "Cast", "Cuda", "Device", "Generators", "Ticket", "copied", "device_of", "generator_kept", "get_rng",
           "memory_of", "offloading", "set_rng", "uncached"]


class Ticket:
    """A copy in progress, or a point in the order of computation."""

    def done(self) -> bool:
        """True if it is complete. Never blocks."""
        raise NotImplementedError

    def wait(self) -> None:
        """Makes computation that is submitted from now on wait for it."""
        raise NotImplementedError

    def finish(self) -> None:
        """Blocks until it is complete, so the CPU can use the memory."""
        raise NotImplementedError


class Device:
    """The operations of an accelerator. ``memory``: how its allocator counts; ``blocking``: True if the computation
    waits for each copy."""

    memory = ACCELERATOR
    blocking = False

    def __init__(self) -> None:
        self.slabs = Slabs(self.allocate, self.free)

    def allocate(self, nbytes: int) -> torch.Tensor:
        """Allocates host memory for copies that overlap with computation: bytes, [nbytes].

        :raises RuntimeError: if there is none.
        """
        raise NotImplementedError

    def free(self, host: torch.Tensor) -> None:
        """Called before memory of ``allocate`` is freed."""

    def now(self) -> Ticket:
        """Returns a ticket for all computation submitted so far."""
        raise NotImplementedError

    def copy_out(self, tensors: Sequence[torch.Tensor], host: torch.Tensor, after: Sequence[Ticket]) -> Ticket:
        """Starts to copy tensors of bytes into host memory, in the layout of ``copied``, after the tickets in
        ``after``. Until the wait, the caller must keep the tensors, and must not change them."""
        raise NotImplementedError

    def copy_in(self, host: torch.Tensor, tensors: Sequence[torch.Tensor], after: Sequence[Ticket]) -> Ticket:
        """Starts to copy host memory back into tensors, which must be kept and must not be used before the wait."""
        raise NotImplementedError


def copied(host: torch.Tensor, tensors: Sequence[torch.Tensor], out: bool) -> None:
    """Copies tensors of bytes to ``host``, or back, on the current stream: one after the other, each at a multiple of
    ALIGNED bytes."""
    at = 0
    for tensor in tensors:
        size = tensor.numel()
        if out:
            host[at:at + size].copy_(tensor, non_blocking=True)
        else:
            tensor.copy_(host[at:at + size], non_blocking=True)
        at += aligned(size)


def _pages(nbytes: int) -> torch.Tensor:
    """Returns memory in separate pages, which are returned to the system when it is freed."""
    return torch.frombuffer(mmap.mmap(-1, nbytes), dtype=torch.uint8)


class _Event(Ticket):
    """The work of a stream so far."""

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
        super().__init__()
        self.device = device
        self._out, self._in = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def allocate(self, nbytes: int) -> torch.Tensor:
        host = _pages(nbytes)
        with torch.cuda.device(self.device):
            code = torch.cuda.cudart().cudaHostRegister(host.data_ptr(), nbytes, 0)
        if int(code) != 0:
            raise RuntimeError(f"{nbytes} bytes of host memory cannot be pinned: CUDA error {int(code)}")
        return host

    def free(self, host: torch.Tensor) -> None:
        torch.cuda.cudart().cudaHostUnregister(host.data_ptr())

    def now(self) -> Ticket:
        return _Event(torch.cuda.current_stream(self.device))

    def _copy(self, stream: Any, host: torch.Tensor, tensors: Sequence[torch.Tensor],
              after: Sequence[Ticket], out: bool) -> Ticket:
        for ticket in after:
            stream.wait_event(ticket.event)  # type: ignore[attr-defined]
        with torch.cuda.stream(stream), torch.no_grad():
            copied(host, tensors, out)
        return _Event(stream)

    def copy_out(self, tensors: Sequence[torch.Tensor], host: torch.Tensor, after: Sequence[Ticket]) -> Ticket:
        return self._copy(self._out, host, tensors, after, True)

    def copy_in(self, host: torch.Tensor, tensors: Sequence[torch.Tensor], after: Sequence[Ticket]) -> Ticket:
        return self._copy(self._in, host, tensors, after, False)


class _Done(Ticket):
    """A copy that is complete."""

    def done(self) -> bool:
        return True

    def wait(self) -> None:
        pass

    finish = wait


class Blocks(Device):
    """The CPU: host memory is memory in addition to the budget, and copies are made at once."""

    memory = Memory(ALIGNED)
    blocking = True

    def allocate(self, nbytes: int) -> torch.Tensor:
        return _pages(nbytes)

    def now(self) -> Ticket:
        return _Done()

    def copy_out(self, tensors: Sequence[torch.Tensor], host: torch.Tensor, after: Sequence[Ticket]) -> Ticket:
        copied(host, tensors, True)
        return _Done()

    def copy_in(self, host: torch.Tensor, tensors: Sequence[torch.Tensor], after: Sequence[Ticket]) -> Ticket:
        copied(host, tensors, False)
        return _Done()


_devices: Dict[torch.device, Device] = {}


def device_of(tensors: Sequence[torch.Tensor], option: str = "host=") -> Device:
    """Returns the device of tensors.

    :param option: the argument that needs it, for errors.
    :raises UsageError: for several devices, and for a device whose states and tapes cannot be offloaded.
    """
    found = {tensor.device for tensor in tensors} or {torch.device("cpu")}
    if len(found) > 1 or next(iter(found)).type not in ("cpu", "cuda"):
        raise UsageError(f"{option} offloads from the CPU or from one CUDA or ROCm device, but the state is on "
                         f"{', '.join(sorted(map(str, found)))}. Move it to one such device, or remove {option}")
    one = found.pop()
    if one not in _devices:
        _devices[one] = Blocks() if one.type == "cpu" else Cuda(one)
    return _devices[one]


def offloading(host: Optional[int], slow: Any, tensors: Sequence[torch.Tensor]) -> Optional[Device]:
    """Returns the device of tensors that are offloaded to host memory, or through it; None if nothing is offloaded, or
    from the CPU to slow tiers only, which read its memory themselves. Raises UsageError as ``device_of``."""
    if host is None and (slow is None or all(x.device.type == "cpu" for x in tensors)):
        return None
    return device_of(tensors, "slow=" if host is None else "host=")


def memory_of(device: torch.device) -> Memory:
    """Returns how the memory of a device is counted if nothing is offloaded."""
    return CPU if device.type == "cpu" else ACCELERATOR


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
