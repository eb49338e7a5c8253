# SPDX-License-Identifier: Apache-2.0
"""Forward and backward pass of a NumPy model with a memory budget, run by libneap."""
import ctypes
import os
from typing import Any, Optional, Union

try:
    import numpy as np
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.sweep needs NumPy, which is not installed: pip install 'neap-bptt[numpy]'") from error

from . import units
from ._lib import check, lib
from .errors import UsageError
from .models import Callbacks, Tape
from .plans import Plan
from .problems import Stages
from .stage_models import ArrayStages
from .stage_sweeps import JoinSweep, StageSweep, join
from .sweeping import Options, Paths, Result, Runner, Stats
from .units import Seconds, Size

__all__ = ["ArrayStages", "JoinSweep", "Result", "StageSweep", "Stats", "Sweep", "join", "sweep"]


class Sweep(Runner):
    """A model with its plan, which can be run several times. Arguments: see :func:`sweep`.

    ``with neap.Sweep(model, x0, steps=T, memory="64M") as s: loss, dx0 = s.run()``. Only one thread at a
    time may use it. The memory is allocated by the first run and freed by :meth:`close`.
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
        """Runs one forward and one backward pass.

        :param x0: first state, of the shape and dtype of the original one; None: the original one.
        :returns: a :class:`Result`, ``loss, dx0``.
        :raises UsageError: if the shape or dtype differs, or after :meth:`close`.

        Exceptions of the model, and Ctrl-C, are passed on; the object can be run again after them.
        """
        self._open()
        if x0 is not None:
            self._given([self._x0], [x0])
        dx0 = np.empty_like(self._x0)
        return self._run(self._x0.ctypes.data, dx0.ctypes.data, dx0)


def sweep(model: Any, x0: Any, *, stages: Optional[Stages] = None, steps: Optional[int] = None,
          memory: Optional[Size] = None, tape: Tape = None, slow: Paths = None, strategy: str = "auto",
          plan: Optional[Plan] = None, advance: Seconds = 0, record: Seconds = 0, backward: Seconds = 0,
          calibrate: Seconds = 0, journal: Union[None, str, "os.PathLike[str]"] = None, journal_seconds: float = 0,
          journal_key: int = 0, trace: Union[None, str, "os.PathLike[str]"] = None, patience: Seconds = 0,
          page_cache: bool = False, in_memory: bool = False) -> Result:
    """Runs the forward and backward pass of a NumPy model with a memory budget: ``loss, dx0 = neap.sweep(...)``.

    The model has the methods below. Their arrays are views of memory that libneap has allocated; they are
    valid only during the call.

    - ``advance(x, t0, t1)``: runs the steps [t0, t1) on the state x, in place. x has the shape and dtype of x0.
    - ``record(x, t0, t1, tape)``: the same with bit-identical results; also writes the tape of step t0 + i
      to ``tape[i]``.
    - ``turn(x, dx)``: returns the loss of the last state and writes its gradient to dx.
    - ``backward(dx, t1, t0, tape)``: takes the gradient dx from step t1 back to t0, in place, and adds to the
      model's own gradients; ``tape[i]`` is the tape of step t0 + i.

    ``advance`` and ``record`` may have an argument ``first``, which is True the first time that a range is run.
    ``model.gathered`` (for a journal) is an array, or a list or dict of arrays: the gradients that ``backward``
    adds to. ``model.ended(x, t)`` returns True if the chain ends at step t, for chains of unknown length.

    With ``stages``, steps may differ in size. For stage i, which computes x_{i+1} from x_i, the methods are:

    - ``advance(i, x, y)``: writes x_{i+1} to y; does not change x.
    - ``record(i, x, y, tape)``: the same with bit-identical results; also writes the tape. With
      ``tape_holds_output``, y is the beginning of the tape.
    - ``turn(x, dx)``: as above.
    - ``backward(i, x, tape, dy, dx)``: writes dx and adds to the model's own gradients. It may overwrite dy;
      x is None unless ``backward_needs_input`` is set.

    Each of them may have an argument ``tmp``, its temporary memory; ``advance`` and ``record`` also ``first``.

    :param model: an object with these methods.
    :param x0: the first state, an array of numbers; structured arrays are allowed.
    :param stages: :class:`neap.ArrayStages`; or :class:`neap.Stages`, with which states and tapes are flat
        arrays of the dtype of x0. Stages contain sizes and times, so ``tape`` and seconds are not passed.
    :param steps: number of steps; not needed with ``stages`` or ``model.ended``.
    :param memory: budget in bytes for checkpoints, tapes and the gradient, such as ``"64M"``; None: no limit. The
        model's own arrays are not included.
    :param tape: shape of the tape of a step in numbers of the dtype of x0, or a ``numpy.dtype`` with a shape;
        None: ``model.tape`` if it exists, otherwise the shape of the state.
    :param slow: slow memory: a directory, ``"mem:4G"``, or a list of these, fastest first.
    :param strategy: a name of :func:`neap.strategies`.
    :param plan: a :class:`neap.Plan` to follow, instead of ``strategy``.
    :param advance: seconds per forward step that saves nothing. If ``advance``, ``record`` and ``backward`` are
        0 and there is slow memory, the first run measures its first steps.
    :param record: seconds per forward step that saves its tape.
    :param backward: seconds per backward step.
    :param calibrate: seconds to spend on measuring the model and the slow memory before planning; 0: none.
    :param journal: a directory. If the process is killed, the same call continues from the last commit.
    :param journal_seconds: seconds between commits; 0: 30; negative: a commit at every call, for tests.
    :param journal_key: a number that identifies everything else the result depends on, such as a hash of the
        parameters; a journal with a different key is not continued.
    :param trace: a file that Perfetto can open.
    :param patience: seconds without any transferred byte after which a transfer counts as lost; 0: never.
    :param page_cache: True: files use the page cache of the system.
    :param in_memory: True: directories of ``slow`` and ``journal`` may be in memory (tmpfs).
    :returns: a :class:`Result`: ``loss, dx0``, with the attributes ``stats`` and ``plan``.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget.
    :raises UsageError: if an argument is invalid or the model lacks a method.
    :raises OSError: if a directory or file cannot be used.

    Exceptions of the model, and Ctrl-C, are passed on unchanged.
    """
    seconds = dict(advance=advance, record=record, backward=backward, calibrate=calibrate)
    others = dict(memory=memory, slow=slow, strategy=strategy, plan=plan, journal=journal, journal_seconds=journal_seconds,
                  journal_key=journal_key, trace=trace, patience=patience, page_cache=page_cache, in_memory=in_memory)
    if stages is not None:
        given: Any = {name: value for name, value in seconds.items() if value != 0}  # it rejects these, and a tape
        if tape is not None:
            given["tape"] = tape
        made: Runner = StageSweep(model, x0, stages=stages, steps=steps, **given, **others)
    else:
        made = Sweep(model, x0, steps=steps, tape=tape, **seconds, **others)
    with made:
        return made.run()
