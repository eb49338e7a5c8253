# SPDX-License-Identifier: Apache-2.0
"""Sweeps: one forward and one backward pass of a NumPy model, run by libneap within a budget."""
import ctypes
from typing import Any, Optional

try:
    import numpy as np
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.sweep needs NumPy, which is not installed: pip install 'neap-bptt[numpy]'") from error

from . import units
from ._lib import check, lib
from .errors import UsageError
from .models import Callbacks, Tape
from .problems import Stages
from .stage_models import ArrayStages
from .stage_sweeps import JoinSweep, StageSweep, join
from .sweeping import Options, Result, Runner, Stats
from .units import Seconds

__all__ = ["ArrayStages", "JoinSweep", "Result", "StageSweep", "Stats", "Sweep", "join", "sweep"]


class Sweep(Runner):
    """A model with its plan, ready to run as often as wanted; arguments as of :func:`sweep`.

    ``with neap.Sweep(model, x0, steps=T, memory="64M") as s: loss, dx0 = s.run()``. One thread at a
    time may use it. The arena stays mapped from the first run to :meth:`close`.
    """

    def __init__(self, model: Any, x0: Any, *, steps: Optional[int] = None, tape: Tape = None,
                 advance: Seconds = 0, record: Seconds = 0, backward: Seconds = 0,
                 calibrate: Seconds = 0, **more: Any):
        self._x0 = np.array(x0, order="C", copy=True)
        if self._x0.nbytes == 0:
            raise UsageError("x0 is empty: the first state has 0 bytes. Pass an array with at least one element")
        if tape is None:
            tape = getattr(model, "tape", None)
        calls = Callbacks(model, self._x0, tape)
        if steps is None and not calls.ops.ended:
            raise UsageError("steps is required because the model has no method ended(x, t). Pass steps=T, or define "
                             "that method")
        options = self._begin(calls, Options(**more))
        try:
            options.steps = units.count(steps or 0, "steps")
            if calls.ops.ended:
                options.strategy = None
            for name, value in (("advance", advance), ("record", record), ("backward", backward)):
                setattr(options, name, units.seconds(value, name))
            if calibrate:
                with self._raising():
                    check(lib.neap_sweep_calibrate(
                        ctypes.byref(options), ctypes.byref(calls.ops), None, self._x0.ctypes.data,
                        units.seconds(calibrate, "calibrate")))
        except BaseException:
            self.close()
            raise
        self._create(ctypes.byref(options))

    def run(self, x0: Any = None) -> Result:
        """One forward and one backward pass; ``loss, dx0``.

        :param x0: another first state, of the same shape and type (None: that of the beginning).
        :raises UsageError: for another shape or type. What the model raised is raised again, also
            Ctrl-C; the sweep can run again after it.
        """
        self._open()
        if x0 is not None:
            self._given([self._x0], [x0])
        dx0 = np.empty_like(self._x0)
        return self._run(self._x0.ctypes.data, dx0.ctypes.data, dx0)


def sweep(model: Any, x0: Any, *, stages: Optional[Stages] = None, **arguments: Any) -> Result:
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

    With ``stages`` steps differ, as layers do. The methods then are, of stage i that makes x_{i+1}
    of x_i, each an array of its own shape:

    - ``advance(i, x, y)``: writes y, which is x_{i+1}; x is not changed.
    - ``record(i, x, y, tape)``: the same, to the bit, and fills the tape. Where stages say
      ``tape_holds_output``, y lies at the beginning of the tape.
    - ``turn(x, dx)``: as above.
    - ``backward(i, x, tape, dy, dx)``: writes dx, adds to gradients of the model's own. dy may be
      used up; x is None but with ``backward_needs_input``.

    Each may take ``tmp`` as well, the bytes of its temporary, ``advance`` and ``record`` ``first``.

    :param x0: the first state, any array of numbers, also structured.
    :param stages: :class:`neap.ArrayStages`, or :class:`neap.Stages`, whose states and tapes then
        are flat arrays of x0's type. They say what a stage takes: ``tape`` and seconds are not given.
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
    if stages is not None:
        made: Runner = StageSweep(model, x0, stages=stages, **arguments)
    else:
        made = Sweep(model, x0, **arguments)
    with made:
        return made.run()
