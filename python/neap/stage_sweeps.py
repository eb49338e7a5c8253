# SPDX-License-Identifier: Apache-2.0
"""Runs NumPy models of non-uniform stages, such as layers, and of branches that end in one loss."""
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
    """A model of stages with its plan, which can be run several times. Arguments: see :func:`neap.sweep` with
    ``stages``; ``x0`` is an array of the shape and dtype of the first state."""

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
        """Runs one forward and one backward pass.

        :param x0: first state, of the shape and dtype of the original one; None: the original one.
        :returns: a :class:`Result`, ``loss, dx0``.
        :raises UsageError: if the shape or dtype differs. Exceptions of the model are passed on.
        """
        self._open()
        if x0 is not None:
            self._given([self._x0], [x0])
        dx0 = np.empty_like(self._x0)
        return self._run(self._x0.ctypes.data, dx0.ctypes.data, dx0)


class JoinSweep(Runner):
    """A model of branches with its plan, which can be run several times. Arguments: see :func:`join`."""

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
        """Runs one forward and one backward pass.

        :param x0: first states, of the shapes and dtypes of the original ones; None: the original ones.
        :returns: a :class:`Result`: the loss, and a list with the gradient of each branch.
        :raises UsageError: if a shape or dtype differs. Exceptions of the model are passed on.
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

    The model has the methods of :func:`neap.sweep` with ``stages``, with the number of the branch as an
    additional first argument: ``advance(b, i, x, y)``, ``record(b, i, x, y, tape)``,
    ``backward(b, i, x, tape, dy, dx)``. ``turn(xs, dxs)`` gets lists with one array per branch.

    :param model: an object with these methods.
    :param x0: a list with the first state of each branch.
    :param branches: a list with the stages of each branch, at most 8.
    :param arguments: ``memory``, ``slow``, ``strategy``, ``plan``, ``journal``, ``trace`` and so on, as in
        :func:`neap.sweep`. ``auto`` processes the branches one after the other, or two of them alternately with
        strategy ``join``, whichever is faster; ``join`` uses only fast memory.
    :returns: a :class:`Result`: the loss, and a list with the gradient of each branch.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget.
    :raises UsageError: if an argument is invalid. Exceptions of the model are passed on unchanged.
    """
    with JoinSweep(model, x0, branches, **arguments) as made:
        return made.run()
