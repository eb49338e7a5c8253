# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one forward and one backward pass of a NumPy model, run by libneap within a budget."""
import contextlib
import ctypes
import os
import types
import weakref
from typing import Any, Iterator, List, Optional, Sequence, Union

try:
    import numpy as np
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.sweep works on NumPy arrays: pip install 'neap-bptt[numpy]'") from error

from . import _abi, units
from ._lib import check, lib, text
from .errors import UsageError
from .models import Callbacks, Tape, field
from .plans import Plan
from .problems import Problem
from .signals import Deferred
from .units import Seconds, Size

Paths = Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


class Stats(types.SimpleNamespace):
    """What a sweep did: the fields of ``struct neap_sweep_stats`` (``include/neap/sweep.h``).

    Among them ``arena_bytes``, ``peak_planned`` and ``peak_measured``; ``advance_steps`` and
    ``record_steps``; ``written`` and ``read``, bytes a tier; ``seconds``, ``predicted`` and
    ``stall``; ``recoveries`` (records that were lost, damaged, late or refused), ``overflows`` and
    ``recomputed`` steps; ``commits`` of a journal and ``spared``, steps that were done when it
    resumed.
    """


class Result(tuple):
    """``loss, dx0`` of a sweep, with ``stats``, what it did, and ``plan``, what it followed."""

    stats: Stats
    plan: Plan

    def __new__(cls, loss: float, dx0: "np.ndarray", stats: Stats, plan: Plan) -> "Result":
        made = super().__new__(cls, (loss, dx0))
        made.stats, made.plan = stats, plan
        return made

    @property
    def loss(self) -> float:
        """What ``model.turn`` returned."""
        return self[0]

    @property
    def dx0(self) -> "np.ndarray":
        """The gradient of the loss with respect to x0, in x0's shape."""
        return self[1]


def _listed(slow: Paths) -> Optional[bytes]:
    if slow is None:
        return None
    paths = [slow] if isinstance(slow, (str, os.PathLike)) else list(slow)
    return b",".join(os.fsencode(path) for path in paths)


class _Tiers:
    """The tiers of a sweep, open until they are closed."""

    def __init__(self, slow: Paths, keep: bool, page_cache: bool, in_memory: bool):
        self.raw = (ctypes.c_void_p * _abi.NEAP_TIERS_MAX)()
        self.count = 0
        listed = _listed(slow)
        if listed is None:
            return
        options = _abi.neap_file_options(size=ctypes.sizeof(_abi.neap_file_options), keep=keep,
                                         page_cache=page_cache, in_memory=in_memory)
        count = ctypes.c_int()
        check(lib.neap_tiers_open(self.raw, ctypes.byref(count), listed, ctypes.byref(options)))
        self.count = count.value

    def about(self) -> List[str]:
        return [text(lib.neap_tier_about(tier)) for tier in self.raw[:self.count]]


def _close(sweep: ctypes.c_void_p, trace: ctypes.c_void_p, tiers: _Tiers, process: int) -> None:
    """Frees the sweep before its tiers. In a child process: what is safe there, which leaves the
    files of a journal to the parent."""
    if os.getpid() == process:
        lib.neap_sweep_free(sweep)
        lib.neap_trace_free(trace)
    for tier in tiers.raw[:tiers.count]:
        lib.neap_tier_abandon(tier)
    tiers.count = 0


class Sweep:
    """A model with its plan, ready to run as often as wanted; arguments as of :func:`sweep`.

    ``with neap.Sweep(model, x0, steps=T, memory="64M") as s: loss, dx0 = s.run()``. One thread at a
    time may use it. The arena stays mapped from the first run to :meth:`close`.
    """

    def __init__(self, model: Any, x0: Any, *, steps: Optional[int] = None,
                 memory: Optional[Size] = None, tape: Tape = None, slow: Paths = None,
                 strategy: str = "auto", plan: Optional[Plan] = None,
                 advance: Seconds = 0, record: Seconds = 0, backward: Seconds = 0,
                 calibrate: Seconds = 0, journal: Union[None, str, "os.PathLike[str]"] = None,
                 journal_seconds: float = 0, journal_key: int = 0,
                 trace: Union[None, str, "os.PathLike[str]"] = None, patience: Seconds = 0,
                 page_cache: bool = False, in_memory: bool = False):
        self._x0 = np.array(x0, order="C", copy=True)
        if self._x0.nbytes == 0:
            raise UsageError("x0 is empty")
        if tape is None:
            tape = getattr(model, "tape", None)
        self._calls = Callbacks(model, self._x0, tape)
        if steps is None and not self._calls.ops.ended:
            raise UsageError("steps is missing: say it, or give the model a method ended(x, t)")
        if journal is not None and not self._calls.ops.grad_save:
            raise UsageError("a journal keeps what backward gathers: give the model `gathered`, its "
                             "arrays of gradients ([] where there are none)")
        self._trace_path, self._plan = trace, plan
        tiers = self._tiers = _Tiers(slow, journal is not None, page_cache, in_memory)
        self._raw, self._trace = ctypes.c_void_p(), ctypes.c_void_p()
        self._close = weakref.finalize(self, _close, self._raw, self._trace, tiers, os.getpid())
        options = self._options(steps, memory, strategy, plan)
        for name, value in (("advance", advance), ("record", record), ("backward", backward),
                            ("patience", patience)):
            setattr(options, name, units.seconds(value, name))
        if journal is not None:
            options.journal = os.fsencode(journal)
            options.journal_seconds = float(journal_seconds)
            options.journal_key = journal_key & (2**64 - 1)
            options.journal_in_memory = in_memory
        try:
            if trace is not None:
                check(lib.neap_trace_create(ctypes.byref(self._trace), b"neap.sweep", 0))
                options.trace = self._trace
            if calibrate:
                with self._raising():
                    check(lib.neap_sweep_calibrate(
                        ctypes.byref(options), ctypes.byref(self._calls.ops), None,
                        self._x0.ctypes.data, units.seconds(calibrate, "calibrate")))
            with self._raising():
                check(lib.neap_sweep_create(ctypes.byref(self._raw),
                                            ctypes.byref(self._calls.ops), None,
                                            ctypes.byref(options)))
        except BaseException:
            self.close()
            raise

    def _options(self, steps: Optional[int], memory: Optional[Size], strategy: str,
                 plan: Optional[Plan]) -> _abi.neap_sweep_options:
        options = _abi.neap_sweep_options(size=ctypes.sizeof(_abi.neap_sweep_options))
        options.steps = units.count(steps or 0, "steps")
        options.memory = 0 if memory is None else units.size(memory, "memory")
        if memory is not None and not options.memory:
            raise UsageError("memory: 0 bytes are no budget; None is no limit")
        options.strategy = None if self._calls.ops.ended else strategy.encode()
        options.ntiers = self._tiers.count
        options.tiers = ctypes.cast(self._tiers.raw, field(_abi.neap_sweep_options, "tiers"))
        options.interrupted = self._calls.interrupted
        if plan is not None:
            self._saved = _abi.neap_saved(ctypes.pointer(plan.problem.raw), ctypes.pointer(plan._raw))
            options.saved = ctypes.pointer(self._saved)
        return options

    @contextlib.contextmanager
    def _raising(self) -> Iterator[None]:
        """What the model raised comes out as it was raised, in place of libneap's answer."""
        calls = self._calls
        calls.raised, calls.signals = None, Deferred()
        try:
            with calls.signals:
                yield
        except Exception:
            if calls.raised is None:
                raise
        raised, calls.raised = calls.raised, None
        if raised is not None:
            raise raised

    @property
    def plan(self) -> Plan:
        """The plan in force; a copy, which outlives the sweep."""
        raw = self._open()
        problem = _abi.neap_problem.from_buffer_copy(lib.neap_sweep_problem(raw).contents)
        copy = ctypes.POINTER(_abi.neap_plan)()
        check(lib.neap_plan_copy(ctypes.byref(copy), lib.neap_sweep_plan(raw)))
        weakref.finalize(copy, _free_plan, ctypes.cast(copy, ctypes.c_void_p).value or 0)
        return Plan(Problem(problem), copy.contents, copy)

    @property
    def tiers(self) -> List[str]:
        """A line about each slow tier: how its bytes move."""
        return self._tiers.about()

    def _open(self) -> ctypes.c_void_p:
        if not self._close.alive:
            raise UsageError("the sweep was closed")
        return self._raw

    def run(self, x0: Any = None) -> Result:
        """One forward and one backward pass; ``loss, dx0``.

        :param x0: another first state, of the same shape and type (None: that of the beginning).
        :raises UsageError: for another shape or type. What the model raised is raised again, also
            Ctrl-C; the sweep can run again after it.
        """
        raw = self._open()
        if x0 is not None:
            given = np.asarray(x0)
            if given.shape != self._x0.shape or given.dtype != self._x0.dtype:
                raise UsageError(f"x0: {given.dtype} of shape {given.shape}, not {self._x0.dtype} of "
                                 f"{self._x0.shape}")
            self._x0[...] = given
        loss, dx0 = ctypes.c_double(), np.empty_like(self._x0)
        stats = _abi.neap_sweep_stats(size=ctypes.sizeof(_abi.neap_sweep_stats))
        try:
            with self._raising():
                check(lib.neap_sweep_run(raw, self._x0.ctypes.data, dx0.ctypes.data,
                                         ctypes.byref(loss), ctypes.byref(stats)))
        finally:
            self._write_trace()
        return Result(loss.value, dx0, self._stats(stats), self.plan)

    def _write_trace(self) -> None:
        if self._trace_path is not None:
            traces = (ctypes.c_void_p * 1)(self._trace)
            check(lib.neap_trace_write(os.fsencode(self._trace_path), traces, 1))

    def _stats(self, raw: _abi.neap_sweep_stats) -> Stats:
        found = Stats()
        for name in (row[0] for row in raw._fields_):
            if name not in ("size", "reserved"):
                value = getattr(raw, name)
                setattr(found, name, value if isinstance(value, (int, float)) else list(value))
        for name in ("written", "read"):
            setattr(found, name, getattr(found, name)[:self._tiers.count])
        found.stalls = {text(lib.neap_stall_name(i)): seconds for i, seconds in enumerate(found.stalls)}
        return found

    def close(self) -> None:
        """Frees arena and tiers, and removes the journal of a run that ended. Arrays that the model
        was given are no longer valid."""
        self._close()

    def __enter__(self) -> "Sweep":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def sweep(model: Any, x0: Any, **arguments: Any) -> Result:
    """Runs a NumPy model forward and backward within a budget: ``loss, dx0 = neap.sweep(...)``.

    The model has these methods. Their arrays are views on libneap's arena, valid inside the call,
    and are changed in place:

    - ``advance(x, t0, t1)``: moves the state x, of x0's shape and type, from step t0 to t1.
    - ``record(x, t0, t1, tape)``: the same, to the bit, and fills ``tape[0 .. t1 - t0]``.
    - ``turn(x, dx)``: returns the loss of the last state and fills dx, its gradient.
    - ``backward(dx, t1, t0, tape)``: moves the gradient from t1 down to t0, adding to gradients of
      the model's own; ``tape[i]`` is what record wrote for step t0 + i.

    ``advance`` and ``record`` may take ``first`` as well: True the first time a range is passed.
    ``model.gathered``, for a journal, is an array or a list or dict of them: the gradients that
    backward adds to. ``model.ended(x, t)``: True where the chain ends, where ``steps`` is not known.

    :param x0: the first state, any array of numbers, also structured.
    :param steps: T. :param memory: bytes of fast memory for all that is kept (``"64M"``; None: no
        limit), the arrays of the model not among them.
    :param tape: the shape of a step's tape in numbers of x0's type, or a ``numpy.dtype`` with a
        shape; None: ``model.tape``, else that of the state.
    :param slow: a directory, ``"mem:4G"``, or a list of them, fastest first.
    :param strategy: see :func:`neap.strategies`. :param plan: a plan to follow instead.
    :param advance: seconds a step for planning, also ``record``, ``backward``; 0 with tiers: the
        first run times its first steps. :param calibrate: seconds to time model and tiers before.
    :param journal: a directory: after ``kill -9`` the same call goes on where the last commit was,
        every ``journal_seconds`` (0: 30; below 0: at every call, for tests); ``journal_key`` is a
        number for what else the result depends on, such as a hash of parameters.
    :param trace: a file for what was done when, which Perfetto opens.
    :param patience: seconds without a byte moved after which a transfer counts as lost; 0: never.
    :param page_cache: files go through the page cache. :param in_memory: a directory in memory
        (tmpfs) will do.
    :raises BudgetError: the text names a budget that would do. :raises UsageError: for arguments
        that make no sense. :raises OSError: for directories that cannot be used. What the model
        raises, and Ctrl-C, come out as they are.
    """
    with Sweep(model, x0, **arguments) as made:
        return made.run()


def _free_plan(address: int) -> None:
    lib.neap_plan_free(ctypes.cast(address, ctypes.POINTER(_abi.neap_plan)))
