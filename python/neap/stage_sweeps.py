# SPDX-License-Identifier: Apache-2.0
"""Sweeps of NumPy models whose stages differ, as layers do, and of branches that meet in one loss."""
import ctypes
from typing import Any, List, Optional, Sequence

import numpy as np

from . import _abi
from .errors import UsageError
from .problems import Stages
from .stage_models import Elements, JoinCallbacks, StageCallbacks
from .sweeping import Options, Result, Runner

__all__ = ["JoinSweep", "StageSweep", "join"]


def _first(x0: Any, stages: Any, name: str) -> np.ndarray:
    if not isinstance(stages, Stages):
        raise UsageError(f"stages is a {type(stages).__name__}. Pass neap.ArrayStages or neap.Stages")
    found = np.array(x0, order="C", copy=True)
    if found.nbytes == 0:
        raise UsageError(f"{name} is empty: the first state has 0 bytes. Pass an array with at least one element")
    return found


class StageSweep(Runner):
    """A model of stages with its plan, ready to run as often as wanted; arguments as of
    :func:`neap.sweep` with ``stages``. ``x0`` is an array of the first state's shape and type."""

    _KIND = "neap_stage_sweep"

    def __init__(self, model: Any, x0: Any, *, stages: Stages, steps: Optional[int] = None, **more: Any):
        self._x0, self._stages = _first(x0, stages, "x0"), stages
        if steps is not None and steps != stages.steps:
            raise UsageError(f"steps={steps}, but there are {stages.steps} stages. Remove steps, or pass "
                             f"{stages.steps}")
        _no_seconds(more)
        calls = StageCallbacks(model, Elements(stages, self._x0, "x0"))
        options = self._begin(calls, Options(**more))
        options.steps = stages.steps
        self._create(ctypes.byref(stages.raw), ctypes.byref(options))

    def run(self, x0: Any = None) -> Result:
        """One forward and one backward pass; ``loss, dx0``.

        :param x0: another first state, of the same shape and type (None: that of the beginning).
        :raises UsageError: for another shape or type. What the model raised is raised again.
        """
        self._open()
        if x0 is not None:
            self._given([self._x0], [x0])
        dx0 = np.empty_like(self._x0)
        return self._run(self._x0.ctypes.data, dx0.ctypes.data, dx0)


class JoinSweep(Runner):
    """A model of branches with its plan, ready to run as often as wanted; see :func:`join`."""

    _KIND = "neap_join_sweep"

    def __init__(self, model: Any, x0: Sequence[Any], branches: Sequence[Stages], **more: Any):
        branches, starts = list(branches), list(x0)
        if not 1 <= len(branches) <= _abi.NEAP_BRANCHES_MAX or len(starts) != len(branches):
            raise UsageError(f"there are {len(branches)} branches and {len(starts)} first states. Pass 1 to "
                             f"{_abi.NEAP_BRANCHES_MAX} branches, and one first state for each")
        _no_seconds(more)
        self._x0: List[np.ndarray] = [_first(x, stages, f"x0[{b}]")
                                      for b, (x, stages) in enumerate(zip(starts, branches))]
        self._branches = branches
        calls = JoinCallbacks(model, [Elements(stages, x, f"x0[{b}]")
                                      for b, (x, stages) in enumerate(zip(self._x0, branches))])
        options = self._begin(calls, Options(**more))
        raw = (_abi.neap_branch * len(branches))(*[
            _abi.neap_branch(stages.steps, ctypes.pointer(stages.raw)) for stages in branches])
        self._create(raw, len(branches), ctypes.byref(options))

    def run(self, x0: Optional[Sequence[Any]] = None) -> Result:
        """One forward and one backward pass; ``loss, [dx0 of each branch]``.

        :param x0: other first states, of the same shapes and types (None: those of the beginning).
        """
        self._open()
        if x0 is not None:
            self._given(self._x0, x0)
        dx0 = [np.empty_like(x) for x in self._x0]
        pointers = ctypes.c_void_p * len(dx0)
        return self._run(pointers(*[x.ctypes.data for x in self._x0]),
                         pointers(*[dx.ctypes.data for dx in dx0]), dx0)


def _no_seconds(more: Any) -> None:
    for name in ("advance", "record", "backward", "calibrate", "tape"):
        if name in more:
            raise UsageError(f"{name}= cannot be combined with stages, which contain sizes and times. Remove it")


def join(model: Any, x0: Sequence[Any], branches: Sequence[Stages], **arguments: Any) -> Result:
    """Runs branches of stages that meet in one loss: ``loss, (dxa, dxb) = neap.join(...)``.

    The model has the methods of :func:`neap.sweep` with ``stages``; the number of the branch comes
    before that of the stage: ``advance(b, i, x, y)``, ``record(b, i, x, y, tape)``,
    ``backward(b, i, x, tape, dy, dx)``. ``turn(xs, dxs)`` gets lists, an array a branch.

    :param x0: the first state of each branch. :param branches: its stages; 8 branches at most.
    :param arguments: ``memory``, ``slow``, ``strategy`` and so on, as of :func:`neap.sweep`.
        ``auto`` takes the branches one after the other, or two of them in turns by ``join``,
        whichever is faster; ``join`` works in fast memory.
    :raises BudgetError: the text names a budget that would do. :raises UsageError: for arguments
        that make no sense. What the model raises comes out as it is.
    """
    with JoinSweep(model, x0, branches, **arguments) as made:
        return made.run()
