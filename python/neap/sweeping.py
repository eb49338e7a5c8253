# SPDX-License-Identifier: Apache-2.0
"""Common parts of all kinds of sweeps: slow memory, options, traces, runs and results."""
import contextlib
import ctypes
import os
import threading
import types
import weakref
from typing import Any, Iterator, List, Optional, Sequence, Union

import numpy as np

from . import _abi, units
from ._lib import check, lib, text
from .errors import UsageError
from .models import Guard, field, keep_locals
from .plans import Plan
from .problems import owned
from .signals import Deferred
from .units import Seconds, Size

__all__ = ["Options", "Paths", "Result", "Runner", "Stats"]

Paths = Union[None, str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


class Stats(types.SimpleNamespace):
    """Statistics of a run: the fields of ``struct neap_sweep_stats`` (``include/neap/sweep.h``), among them:

    - ``arena_bytes``, ``peak_planned``, ``peak_measured``: bytes allocated, planned and used;
    - ``advance_steps``, ``record_steps``: forward steps that saved nothing, and that saved their tapes;
    - ``written``, ``read``: bytes, a list with one entry per slow tier;
    - ``seconds``, ``predicted``, ``stall``: measured and predicted time, and time spent waiting for transfers;
    - ``recoveries``: records that were lost, damaged, late or rejected by the device; ``recomputed``: steps
      recomputed for them; ``overflows``: tapes larger than planned;
    - ``commits``: commits of the journal; ``spared``: steps that were already done when a journal was continued.
    """


class Result(tuple):
    """The pair ``loss, dx0`` of a run, with attributes ``stats`` (:class:`Stats`) and ``plan`` (:class:`neap.Plan`)."""

    stats: Stats
    plan: Plan

    def __new__(cls, loss: float, dx0: Any, stats: Stats, plan: Plan) -> "Result":
        made = super().__new__(cls, (loss, dx0))
        made.stats, made.plan = stats, plan
        return made

    @property
    def loss(self) -> float:
        """The value that ``model.turn`` returned."""
        return self[0]

    @property
    def dx0(self) -> Any:
        """Gradient of the loss with respect to x0, with the shape of x0; for :func:`neap.join` a list of gradients."""
        return self[1]


def _listed(slow: Paths) -> Optional[bytes]:
    if slow is None:
        return None
    paths = [slow] if isinstance(slow, (str, os.PathLike)) else list(slow)
    return b",".join(os.fsencode(path) for path in paths)


class _Tiers:
    """The tiers of a sweep, which are open until ``close``."""

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


def _close(free: Any, sweep: ctypes.c_void_p, trace: ctypes.c_void_p, tiers: _Tiers,
           process: int) -> None:
    """Frees the sweep before its tiers. In a child process frees only what is safe, and leaves the files of a journal
    to the parent."""
    if os.getpid() == process:
        free(sweep)
        lib.neap_trace_free(trace)
    for tier in tiers.raw[:tiers.count]:
        lib.neap_tier_abandon(tier)
    tiers.count = 0


class Options:
    """Arguments of all kinds of sweeps; described in :func:`neap.sweep`."""

    def __init__(self, memory: Optional[Size] = None, slow: Paths = None, strategy: str = "auto",
                 plan: Optional[Plan] = None, journal: Union[None, str, "os.PathLike[str]"] = None,
                 journal_seconds: float = 0, journal_key: int = 0,
                 trace: Union[None, str, "os.PathLike[str]"] = None, patience: Seconds = 0,
                 page_cache: bool = False, in_memory: bool = False):
        self.memory, self.slow, self.strategy, self.plan = memory, slow, strategy, plan
        self.journal, self.journal_seconds, self.journal_key = journal, journal_seconds, journal_key
        self.trace, self.patience = trace, patience
        self.page_cache, self.in_memory = page_cache, in_memory


class Runner:
    """A model with its plan in libneap, ready to run: the common part of steps, stages and joins.

    ``_KIND`` is the prefix of libneap's functions. A subclass calls ``_begin`` and, with the arguments of ``create``,
    ``_create``.
    """

    _KIND = "neap_sweep"

    def _begin(self, calls: Guard, given: Options) -> _abi.neap_sweep_options:
        """Opens the tiers; returns the options so far."""
        self._running = threading.Lock()
        self._calls, self._plan, self._trace_path = calls, given.plan, given.trace
        if given.journal is not None and not calls.ops.grad_save:
            raise UsageError("journal= saves the gradients that backward() accumulates, but the model has no "
                             "attribute 'gathered'. Set model.gathered to these arrays ([] if there are none), or "
                             "remove journal=")
        tiers = self._tiers = _Tiers(given.slow, given.journal is not None, given.page_cache,
                                     given.in_memory)
        self._raw, self._trace = ctypes.c_void_p(), ctypes.c_void_p()
        self._close = weakref.finalize(self, _close, self._function("free"), self._raw, self._trace,
                                       tiers, os.getpid())
        try:
            return self._options(given)
        except BaseException:
            self.close()
            raise

    def _function(self, name: str) -> Any:
        return getattr(lib, f"{self._KIND}_{name}")

    def _options(self, given: Options) -> _abi.neap_sweep_options:
        options = _abi.neap_sweep_options(size=ctypes.sizeof(_abi.neap_sweep_options))
        options.memory = 0 if given.memory is None else units.size(given.memory, "memory")
        if given.memory is not None and not options.memory:
            raise UsageError("memory=0 is not valid: a budget has at least 1 byte. Pass a size such as '64M', or None "
                             "for no limit")
        options.strategy = given.strategy.encode()
        options.ntiers = self._tiers.count
        options.tiers = ctypes.cast(self._tiers.raw, field(_abi.neap_sweep_options, "tiers"))
        options.interrupted = self._calls.interrupted
        options.patience = units.seconds(given.patience, "patience")
        if given.plan is not None:
            self._saved = _abi.neap_saved(ctypes.pointer(given.plan.problem.raw),
                                          ctypes.pointer(given.plan._raw))
            options.saved = ctypes.pointer(self._saved)
        if given.journal is not None:
            options.journal = os.fsencode(given.journal)
            options.journal_seconds = float(given.journal_seconds)
            options.journal_key = given.journal_key & (2**64 - 1)
            options.journal_in_memory = given.in_memory
        if given.trace is not None:
            check(lib.neap_trace_create(ctypes.byref(self._trace), b"neap.sweep", 0))
            options.trace = self._trace
        return options

    def _create(self, *arguments: Any) -> None:
        """Plans and checks; frees everything if that fails."""
        try:
            with self._raising():
                check(self._function("create")(ctypes.byref(self._raw),
                                               ctypes.byref(self._calls.ops), None, *arguments))
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def _raising(self) -> Iterator[None]:
        """Raises an exception of the model unchanged, instead of libneap's error code."""
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
            keep_locals(raised)
            raise raised

    @property
    def plan(self) -> Plan:
        """A copy of the current plan."""
        raw = self._open()
        problem = owned(self._function("problem")(raw).contents)
        copy = ctypes.POINTER(_abi.neap_plan)()
        check(lib.neap_plan_copy(ctypes.byref(copy), self._function("plan")(raw)))
        weakref.finalize(copy, _free_plan, ctypes.cast(copy, ctypes.c_void_p).value or 0)
        return Plan(problem, copy.contents, copy)

    @property
    def tiers(self) -> List[str]:
        """A line about each slow tier and its I/O method."""
        return self._tiers.about()

    def _open(self) -> ctypes.c_void_p:
        if not self._close.alive:
            raise UsageError("the sweep is closed and cannot be used any more. Create a new one, or call close() later")
        return self._raw

    def _run(self, x0: Any, dx0: Any, result: Any) -> Result:
        """Runs one pass over pointers to first states and gradients; ``result``: the gradients to return."""
        raw, loss = self._open(), ctypes.c_double()
        stats = _abi.neap_sweep_stats(size=ctypes.sizeof(_abi.neap_sweep_stats))
        if not self._running.acquire(blocking=False):
            raise self._busy("run()")
        try:
            with self._raising():
                check(self._function("run")(raw, x0, dx0, ctypes.byref(loss), ctypes.byref(stats)))
        finally:
            self._running.release()
            self._write_trace()
        return Result(loss.value, result, self._stats(stats), self.plan)

    @staticmethod
    def _busy(name: str) -> UsageError:
        return UsageError(f"{name} was called while the sweep runs, by its model or in another thread. Call it after "
                          f"that run has ended, or create another sweep")

    @staticmethod
    def _given(own: Sequence["np.ndarray"], x0: Sequence[Any]) -> None:
        """Copies other first states of the same shapes and dtypes; otherwise raises UsageError."""
        found = [np.asarray(x) for x in x0]
        if len(found) != len(own):
            raise UsageError(f"x0 has length {len(found)}, but the sweep has {len(own)} branches. Pass one first state "
                             f"for each")
        for kept, given in zip(own, found):
            if given.shape != kept.shape or given.dtype != kept.dtype:
                raise UsageError(f"x0 has dtype {given.dtype} and shape {given.shape}, but the sweep was created with "
                                 f"{kept.dtype} {kept.shape}. Convert x0, or create another sweep")
        for kept, given in zip(own, found):
            kept[...] = given

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
        """Frees the memory, closes the slow tiers, and removes the journal of a completed run. Arrays that were
        passed to the model are no longer valid."""
        if self._running.locked():
            raise self._busy("close()")
        self._close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def _free_plan(address: int) -> None:
    lib.neap_plan_free(ctypes.cast(address, ctypes.POINTER(_abi.neap_plan)))
