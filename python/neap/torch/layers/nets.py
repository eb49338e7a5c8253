# SPDX-License-Identifier: Apache-2.0
"""Networks of libneap-nn with one hidden layer, whose inputs, outputs and gradients are tensors.

A network, its threads and its memory are created once per kind of layer and shape of inputs. It is in use from the
forward pass of a call to the end of its backward pass, and is then reused by later calls.
"""
import collections
import contextlib
import ctypes
import threading
from typing import Any, ContextManager, Deque, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ... import _abi_nn
from ..._lib import check
from ..._nn import nn

__all__ = ["Kind", "Net", "Shape", "finish", "give", "place", "spikes_of", "stream", "take"]

KEPT = 2  # networks of one kind that are kept for later calls; chosen: two layers of the same shape


def place(tensor: torch.Tensor) -> str:
    """Returns the device of a tensor as libneap-nn names it; an empty text: the CPU."""
    return f"cuda:{tensor.device.index or 0}" if tensor.device.type == "cuda" else ""


def stream(device: str) -> Optional[int]:
    """Returns PyTorch's current stream on a device of ``place``; None: the default stream, or the CPU."""
    return torch.cuda.current_stream(torch.device(device)).cuda_stream or None if device else None


def guard(device: str) -> ContextManager[Any]:
    """Returns a context after which the thread has the same current device as before: libneap-nn sets its own."""
    return torch.cuda.device(torch.device(device))


def finish(device: str) -> None:
    """Waits for the work on a device of ``place``."""
    if device:
        torch.cuda.synchronize(torch.device(device))


class Kind(NamedTuple):
    """What a network is created for. ``spikes``: its inputs are spikes. ``device``: as ``place`` returns it. ``keys``: fields
    of ``neap_net_options`` that differ from the defaults of the command-line tool, by name."""

    spec: str
    inputs: int
    units: int
    dtype: torch.dtype
    spikes: bool
    threads: int
    keys: Tuple[Tuple[str, float], ...]
    device: str = ""


class Shape(NamedTuple):
    """The sizes of a batch. ``first``: number of the first step, as of ``neap_ports``."""

    steps: int
    samples: int
    first: int


DEFAULTS = dict(dt=1e-3, surrogate=_abi_nn.NEAP_TRIANGLE, width=0.5, height=1.0, tau=20e-3, tau_out=-1.0, scale=0.5,
                recurrent_scale=0.3, density=1.0, readout=_abi_nn.NEAP_READ_LAST)


def pointer(tensor: Optional[torch.Tensor]) -> Optional[int]:
    """Returns the address of a tensor's numbers."""
    return None if tensor is None else tensor.data_ptr()


class Net:
    """A network of libneap-nn. Only one thread at a time may use it, and the networks of one device (``turn``). On a device, arrays,
    states, tapes and adjoints are tensors there, and the work runs on the stream that is current in ``begin`` and
    ``gradients``; parameters are copied from and to it."""

    def __init__(self, kind: Kind):
        self.kind, self.nn = kind, nn()
        self.double = kind.dtype == torch.float64
        options = _abi_nn.neap_net_options(
            size=ctypes.sizeof(_abi_nn.neap_net_options), spec=f"{kind.spec},li".encode(), inputs=kind.inputs, classes=1,
            precision=_abi_nn.NEAP_DOUBLE if self.double else _abi_nn.NEAP_FLOAT, threads=kind.threads,
            values=int(not kind.spikes), device=kind.device.encode() or None, **{**DEFAULTS, **dict(kind.keys)})
        self._net = ctypes.c_void_p()
        check(self.nn.neap_net_create(ctypes.byref(self._net), ctypes.byref(options)))
        self.shape = Shape(0, 0, 0)
        self._ports: Any = None
        self._batch: Any = None
        self._kept: List[Any] = []
        self.params = self._find()

    def __del__(self) -> None:
        self.free()

    def free(self) -> None:
        """Frees the network; it cannot be used afterwards."""
        if getattr(self, "_net", None):
            self.nn.neap_net_free(self._net)
            self._net = None

    def _find(self) -> Dict[str, Any]:
        found = {}
        for index in range(self.nn.neap_net_params(self._net)):
            param = _abi_nn.neap_param()
            check(self.nn.neap_net_param(self._net, index, ctypes.byref(param)))
            found[param.name.decode()] = param
        return found

    def _view(self, name: str, gradient: bool = False) -> torch.Tensor:
        """Returns a parameter, or its gradient, as a tensor [rows, columns] in the memory of the network."""
        param = self.params[name]
        dtype = torch.float64 if gradient else self.kind.dtype
        nbytes = param.count * (8 if dtype == torch.float64 else 4)
        address = ctypes.cast(param.grad, ctypes.c_void_p).value if gradient else param.data
        memory = (ctypes.c_char * nbytes).from_address(address)
        return torch.frombuffer(memory, dtype=dtype).view(param.rows, param.columns)

    def set(self, name: str, value: torch.Tensor) -> None:
        """Sets a parameter [rows, columns]."""
        self._view(name).copy_(value.detach())

    def gradient(self, name: str) -> torch.Tensor:
        """Returns a copy of the gradient [rows, columns] of the batch, after ``end``."""
        return self._view(name, True).to(self.kind.dtype, copy=True)

    def begin(self, x: torch.Tensor, given: Sequence[torch.Tensor], outputs: Optional[torch.Tensor], events: Optional[Any]) -> None:
        """Begins one batch.

        :param x: inputs [T, B, inputs], contiguous; used until ``end``.
        :param given: the state before the first step; empty: zeros.
        :param outputs: memory for the outputs [T, B, units], or None.
        :param events: the spikes of x, as ``spikes_of`` returns them; None: the inputs are numbers.
        """
        kind, first = self.kind, _abi_nn.NEAP_PORTS_CONTINUED if given else 0
        shape = Shape(x.shape[0], x.shape[1], first)
        self.release()
        self.shape, length = shape, first + shape.steps
        self._kept = [x, events]
        rows = (_abi_nn.neap_sequence * shape.samples)()
        for b, row in enumerate(rows):
            row.length, row.label, row.index = length, -1, b
            if events is not None:
                start, offset, unit = events
                row.start = ctypes.cast(start.data_ptr() + 4 * b * (length + 1), ctypes.POINTER(ctypes.c_uint32))
                row.unit = ctypes.cast(unit.data_ptr() + 2 * int(offset[b]), ctypes.POINTER(ctypes.c_uint16))
        self._batch = _abi_nn.neap_batch(size=shape.samples, inputs=kind.inputs, steps=length, sequences=rows,
                                         values=int(not kind.spikes), target=_abi_nn.NEAP_TARGET_LABEL)
        self._ports = _abi_nn.neap_ports(size=ctypes.sizeof(_abi_nn.neap_ports), samples=shape.samples, steps=shape.steps,
                                         first=first, inputs=None if kind.spikes else x.data_ptr(),
                                         outputs=pointer(outputs), stream=stream(kind.device))
        if given and "layer0.recurrent" in self.params:
            before = given[-1].detach().contiguous()
            self._kept.append(before)
            self._ports.first_outputs = before.data_ptr()
        check(self.nn.neap_net_set_ports(self._net, ctypes.byref(self._ports)))
        check(self.nn.neap_net_begin(self._net, ctypes.byref(self._batch), None))

    def gradients(self, outputs: Optional[torch.Tensor], inputs: Optional[torch.Tensor]) -> None:
        """Sets the gradient of the outputs, and the memory for the gradient of the inputs."""
        self._ports.outputs, self._ports.output_grads = None, pointer(outputs)
        self._ports.input_grads = pointer(inputs)
        self._ports.stream = stream(self.kind.device)
        self._kept += [outputs, inputs]
        check(self.nn.neap_net_set_ports(self._net, ctypes.byref(self._ports)))

    def sizes(self) -> Any:
        """Returns ``neap_net_sizes`` of the batch."""
        found = _abi_nn.neap_net_sizes(size=ctypes.sizeof(_abi_nn.neap_net_sizes))
        check(self.nn.neap_net_get_sizes(self._net, ctypes.byref(found)))
        return found

    def advance(self, state: torch.Tensor, t0: int, t1: int, first: bool) -> None:
        """Moves a state from row t0 of the inputs to row t1."""
        at = self.shape.first
        check(self.nn.neap_net_advance(self._net, state.data_ptr(), t0 + at, t1 + at, int(first)))

    def record(self, state: torch.Tensor, t0: int, t1: int, first: bool, tape: torch.Tensor) -> int:
        """As ``advance``, and writes the tape of these steps; returns its bytes."""
        at, used, done = self.shape.first, ctypes.c_size_t(), ctypes.c_int64()
        check(self.nn.neap_net_record(self._net, state.data_ptr(), t0 + at, t1 + at, int(first), tape.data_ptr(),
                                      tape.numel(), ctypes.byref(used), ctypes.byref(done)))
        assert done.value == t1 + at
        return used.value

    def backward(self, adjoint: torch.Tensor, t0: int, t1: int, tape: torch.Tensor) -> None:
        """Moves the adjoint from t1 to t0."""
        at = self.shape.first
        check(self.nn.neap_net_backward(self._net, adjoint.data_ptr(), t1 + at, t0 + at, tape.data_ptr()))

    def state_rows(self) -> int:
        """The number of tensors of a state."""
        return check(self.nn.neap_net_state_rows(self._net))

    def put_state(self, state: torch.Tensor, rows: Sequence[torch.Tensor]) -> None:
        """Sets a state to the tensors ``rows`` [B, units]."""
        whole = torch.stack([row.detach() for row in rows]).cpu().contiguous()
        check(self.nn.neap_net_state_put(self._net, state.data_ptr(), whole.data_ptr()))

    def get_state(self, state: torch.Tensor) -> List[torch.Tensor]:
        """Returns the tensors [B, units] of a state."""
        whole = torch.empty(self.state_rows(), self.shape.samples, self.kind.units, dtype=self.kind.dtype)
        check(self.nn.neap_net_state_get(self._net, state.data_ptr(), whole.data_ptr()))
        return list(whole.to(state.device).unbind(0))

    def put_adjoint(self, adjoint: torch.Tensor, rows: Optional[Sequence[torch.Tensor]]) -> None:
        """Sets the adjoint at the last step to the gradients ``rows`` of the state there, of which the outputs' is ignored."""
        whole = None if rows is None else torch.stack(list(rows)).cpu().contiguous()
        check(self.nn.neap_net_state_adjoint(self._net, adjoint.data_ptr(), pointer(whole)))

    def state_gradient(self, adjoint: torch.Tensor) -> List[torch.Tensor]:
        """Returns the gradients of the tensors of the state before the first step."""
        whole = torch.empty(self.state_rows(), self.shape.samples, self.kind.units, dtype=self.kind.dtype)
        check(self.nn.neap_net_state_grads(self._net, adjoint.data_ptr(), whole.data_ptr()))
        return list(whole.to(adjoint.device).unbind(0))

    def end(self) -> None:
        """Completes the gradients of the parameters."""
        check(self.nn.neap_net_end(self._net))
        self._batch = None
        self.release()

    def release(self) -> None:
        """Ends the batch and releases the tensors."""
        if self._batch is not None:
            self.nn.neap_net_end(self._net)
        self.nn.neap_net_set_ports(self._net, None)
        self._batch = self._ports = None
        self._kept = []


def spikes_of(x: torch.Tensor, given: bool) -> Optional[Any]:
    """Returns the spikes of inputs [T, B, inputs], as arrays (start, offset, unit) of ``neap_spikes_list``; None if a
    number is neither 0 nor 1. ``given``: the state before the first step is given."""
    first = _abi_nn.NEAP_PORTS_CONTINUED if given else 0
    steps, samples, inputs = x.shape
    if x.device.type != "cpu":
        if not bool(((x == 0) | (x == 1)).all()):
            return None
        x = x.cpu()
    start = torch.empty(samples * (first + steps + 1), dtype=torch.int32)
    offset = torch.empty(samples + 1, dtype=torch.int64)
    precision = _abi_nn.NEAP_DOUBLE if x.dtype == torch.float64 else _abi_nn.NEAP_FLOAT
    pointers = (ctypes.cast(start.data_ptr(), ctypes.POINTER(ctypes.c_uint32)),
                ctypes.cast(offset.data_ptr(), ctypes.POINTER(ctypes.c_int64)))
    sizes = (precision, x.data_ptr(), steps, samples, inputs, first, *pointers)
    if check(nn().neap_spikes_list(*sizes, None)):
        return None
    unit = torch.empty(max(1, int(offset[-1])), dtype=torch.int16)
    check(nn().neap_spikes_list(*sizes, ctypes.cast(unit.data_ptr(), ctypes.POINTER(ctypes.c_uint16))))
    return start, offset, unit


_turns: Dict[str, Any] = {}
_late: Deque[Net] = collections.deque()  # given while another call had the turn of their device, or the lock


@contextlib.contextmanager
def turn(device: str) -> Iterator[None]:
    """Context manager in which no other thread uses networks of a device, which are not safe for threads. Networks on the
    CPU are."""
    if not device:
        yield
        return
    with _turns.setdefault(device, threading.RLock()), guard(device):
        try:
            yield
        finally:
            _give_late()


_free: Dict[Kind, List[Net]] = {}
_lock = threading.Lock()


def take(kind: Kind) -> Net:
    """Returns a network that no other call uses. On a device, the caller has its turn."""
    _give_late()
    with _lock:
        found = _free.get(kind)
        if found:
            return found.pop()
    return Net(kind)


def give(net: Net) -> None:
    """Returns a network for later calls. The garbage collector may call this at any place of any thread, in a turn or with the
    lock, so it never waits: what it cannot do now, a later call does."""
    device = net.kind.device
    own = _turns.setdefault(device, threading.RLock()) if device else None
    if own is not None and not own.acquire(blocking=False):
        _late.append(net)
        return
    try:
        with guard(device) if device else contextlib.nullcontext():
            net.release()
            if not _lock.acquire(blocking=False):
                _late.append(net)
                return
            try:
                surplus = _put(net)
            finally:
                _lock.release()
            for old in surplus:
                old.free()
    finally:
        if own is not None:
            own.release()


def _give_late() -> None:
    with contextlib.suppress(IndexError):  # another thread may have taken the rest
        for _ in range(len(_late)):
            give(_late.popleft())


def _put(net: Net) -> List[Net]:
    """Keeps a network; returns the networks of its device that are no longer kept."""
    rows = _free.setdefault(net.kind, [])
    if len(rows) >= KEPT:
        return [net]
    rows.append(net)
    kinds, found = [kind for kind in _free if kind.device == net.kind.device], []
    while sum([len(_free[kind]) for kind in kinds]) > 8 * KEPT:  # shapes that are not used any more
        found += _free.pop(kinds.pop(0))
    return found
