# SPDX-License-Identifier: Apache-2.0
"""A NumPy model as the callbacks of libneap's executor (``include/neap/sweep.h``)."""
import ctypes
import inspect
import sys
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi
from ._lib import lib
from .errors import UsageError
from .signals import Deferred

Tape = Union[None, Tuple[int, ...], np.dtype, Any]


def element(like: np.ndarray, tape: Tape) -> np.dtype:
    """Returns the dtype of one step's tape, from a shape in numbers of the state, or from a dtype with a shape."""
    if tape is None:
        return np.dtype((like.dtype, like.shape))
    if isinstance(tape, (tuple, list)) and all(isinstance(n, (int, np.integer)) for n in tape):
        return np.dtype((like.dtype, tuple(tape)))
    return np.dtype(tape)  # type: ignore[arg-type]


def real_bytes(kinds: Sequence[np.dtype]) -> int:
    """Returns the bytes of a floating-point number if all arrays consist of such numbers of one size, else 0."""
    reals = {{"f": 1, "c": 2}.get(kind.base.kind, 0) for kind in kinds}
    sizes = {kind.base.itemsize for kind in kinds}
    parts = reals.pop() if len(reals) == 1 else 0
    size = sizes.pop() // parts if parts and len(sizes) == 1 else 0
    return size if size in (4, 8) and all(kind.base.isnative for kind in kinds) else 0


def _described(value: Any) -> str:
    """Describes an item that should have been a contiguous, writable array of numbers."""
    if not isinstance(value, np.ndarray):
        return f"a {type(value).__name__}"
    kind = "of dtype object" if value.dtype.hasobject else "that is not writable" if value.flags.c_contiguous else \
        "that is not contiguous"
    return f"an array {kind}"


def view(at: Optional[int], kind: np.dtype, count: Optional[int] = None,
         writable: bool = True) -> np.ndarray:
    """Returns an array over memory of the arena: one element of a dtype, or ``count`` contiguous elements."""
    length = kind.itemsize * (1 if count is None else count)
    if not at or not length:
        return np.empty(kind.shape if count is None else (count, *kind.shape), kind.base)
    memory: Any = (ctypes.c_char * length).from_address(at)
    array = np.frombuffer(memory, kind.base)
    array = array.reshape(kind.shape if count is None else (count, *kind.shape))
    if not writable:
        array.flags.writeable = False
    return array


def _over_arena(value: Any) -> bool:
    """True if the value is an array over memory of an arena, or a part of one."""
    while isinstance(value, np.ndarray):
        value = value.base
    return isinstance(getattr(value, "obj", value), ctypes.Array)


def keep_locals(error: Optional[BaseException]) -> None:
    """Replaces arrays over an arena by copies in the frames of an exception, because a debugger or a log may read them
    after the arena is freed."""
    seen: List[BaseException] = []
    while error is not None and not any(error is other for other in seen):
        seen.append(error)
        trace = error.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            found = frame.f_locals
            for name in [name for name, value in found.items() if _over_arena(value)]:
                found[name] = found[name].copy()
            if sys.version_info < (3, 13):  # later versions write to the frame directly
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            trace = trace.tb_next
        error = error.__cause__ or error.__context__


class Guard:
    """The methods of a model as callbacks of libneap, and the first exception that one of them raised.

    :param ops: libneap's struct of the callbacks.
    :raises UsageError: if the model lacks a method.
    """

    def __init__(self, model: Any, ops: Any):
        self.model, self.ops = model, ops
        self.raised: Optional[BaseException] = None
        self.signals = Deferred()
        for name in ("advance", "record", "turn", "backward"):
            if not callable(getattr(model, name, None)):
                raise UsageError(f"the model, a {type(model).__name__}, has no method {name}(). It must have "
                                 f"advance(), record(), turn() and backward(); see neap.sweep")
            self._set(name, getattr(self, "_" + name))
        if getattr(model, "gathered", None) is not None:
            self._set("grad_save", self._grad_save)
            self._set("grad_load", self._grad_load)
        self.interrupted = field(_abi.neap_sweep_options, "interrupted")(self._interrupted)

    def _takes(self, name: str, argument: str) -> bool:
        """True if a method of the model has an argument of that name."""
        return argument in inspect.signature(getattr(self.model, name)).parameters

    def _set(self, name: str, function: Callable[..., int]) -> None:
        setattr(self.ops, name, field(type(self.ops), name)(self._guarded(function)))

    def _guarded(self, function: Callable[..., int]) -> Callable[..., int]:
        """Wraps a method: an exception ends the sweep, and is raised after its end."""
        def guarded(_user: object, *arguments: Any) -> int:
            try:
                self.signals.inside = True
                return function(*arguments)
            except BaseException as error:  # including Ctrl-C
                return self._keep(error)
            finally:
                self.signals.inside = False
        return guarded

    def _keep(self, error: BaseException) -> int:
        if self.raised is None:
            self.raised = error
        lib.neap_detail_set(f"the model raised {type(error).__name__}".encode())
        return _abi.NEAP_EMODEL

    def _interrupted(self, _user: object) -> int:
        """Called between actions, when the model is in a consistent state: handles signals."""
        try:
            self.signals.deliver()
        except BaseException as error:  # Ctrl-C
            self._keep(error)
        return int(self.raised is not None)

    def gathered(self) -> List[np.ndarray]:
        """The arrays that a journal stores in addition to states and tapes."""
        found = self.model.gathered
        found = found() if callable(found) else found
        arrays: Sequence[Any] = [found] if isinstance(found, np.ndarray) else \
            list(found.values()) if isinstance(found, dict) else list(found)
        for array in arrays:
            if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or \
                    not array.flags.writeable or array.dtype.hasobject:
                raise UsageError(f"model.gathered contains {_described(array)}. A journal can save only contiguous, "
                                 f"writable NumPy arrays of numbers. Convert it, for example with "
                                 f"numpy.ascontiguousarray")
        return list(arrays)

    def _grad_save(self, write: Any, to: int) -> int:
        for array in self.gathered():
            answer = write(to, array.ctypes.data, array.nbytes) if array.nbytes else 0
            if answer < 0:
                return answer
        return 0

    def _grad_load(self, read: Any, from_: int) -> int:
        for array in self.gathered():
            answer = read(from_, array.ctypes.data, array.nbytes) if array.nbytes else 0
            if answer < 0:
                return answer
        return 0


class Callbacks(Guard):
    """The callbacks of a model with uniform steps."""

    def __init__(self, model: Any, x0: np.ndarray, tape: Tape):
        self.state = np.dtype((x0.dtype, x0.shape))
        self.tape = element(x0, tape)
        if x0.dtype.hasobject or self.tape.hasobject:
            raise UsageError("x0 or tape has dtype object, but states and tapes must be numbers. Convert them, for "
                             "example with astype(float)")
        super().__init__(model, _abi.neap_step_ops(size=ctypes.sizeof(_abi.neap_step_ops)))
        self._first = {name: self._takes(name, "first") for name in ("advance", "record")}
        self.ops.state_bytes = self.ops.adjoint_bytes = self.state.itemsize
        self.ops.adjoint_real = real_bytes([self.state])
        self.ops.tape_bytes = self.tape.itemsize
        if callable(getattr(model, "ended", None)):
            self._set("ended", self._ended)

    def _advance(self, x: int, t0: int, t1: int, first: int) -> int:
        more = {"first": bool(first)} if self._first["advance"] else {}
        self.model.advance(view(x, self.state), t0, t1, **more)
        return 0

    def _record(self, x: int, t0: int, t1: int, first: int, tape: int, room: int, used: Any,
                done: Any) -> int:
        size = self.tape.itemsize
        count = min(t1 - t0, room // size if size else t1 - t0)
        used[0], done[0] = count * size, t0 + count
        if count:
            more = {"first": bool(first)} if self._first["record"] else {}
            self.model.record(view(x, self.state), t0, t0 + count, view(tape, self.tape, count),
                              **more)
        return 0

    def _turn(self, x: int, dx: int, loss: Any) -> int:
        loss[0] = float(self.model.turn(view(x, self.state, writable=False), view(dx, self.state)))
        return 0

    def _backward(self, dx: int, t1: int, t0: int, tape: int) -> int:
        self.model.backward(view(dx, self.state), t1, t0,
                            view(tape, self.tape, t1 - t0, writable=False))
        return 0

    def _ended(self, x: int, t: int) -> int:
        ended = self.model.ended(view(x, self.state, writable=False), t)
        return _abi.NEAP_ENDED if ended else _abi.NEAP_GO_ON


def field(struct: Any, name: str) -> Any:
    """Returns the type of a struct's field."""
    return dict(struct._fields_)[name]
