# SPDX-License-Identifier: Apache-2.0
"""Actions for a chain whose length is not known in advance, planned while it runs."""
import ctypes
import weakref
from typing import Optional

from . import _abi, units
from ._lib import check, lib
from .actions import Action, of
from .problems import Problem, Slow, problem
from .units import Seconds, Size

__all__ = ["Online", "online"]


class Online:
    """Actions for a chain of unknown length; see :func:`online`."""

    def __init__(self, question: Problem):
        self.problem = question
        self._raw = _abi.neap_action()
        self._online = ctypes.c_void_p()
        check(lib.neap_online_create(ctypes.byref(self._online), ctypes.byref(question.raw)))
        self._free = weakref.finalize(self, lib.neap_online_free, self._online)
        self._told = False

    def __iter__(self) -> "Online":
        return self

    def __next__(self) -> Action:
        if not self._free.alive or check(lib.neap_online_next(
                self._online, ctypes.byref(self._raw))) == 0:
            raise StopIteration
        return of(self._raw)

    def finish(self, at: int, steps: Optional[int] = None) -> None:
        """Ends the forward pass; the following actions are those of the backward pass.

        :param at: step that the current state has reached, inside the last ADVANCE or RECORD.
        :param steps: number of steps of the chain; None: ``at``.
        :raises UsageError: if ``at`` is not inside the last action, or ``steps`` does not fit it.
        """
        check(lib.neap_online_finish(self._online, units.count(at, "at"),
                                     units.count(at if steps is None else steps, "steps")))

    def close(self) -> None:
        """Frees the memory of the planner; garbage collection does the same."""
        self._free()


def online(*, state: Optional[Size] = None, tape: Optional[Size] = None,
           memory: Optional[Size] = None, slots: Optional[int] = None, advance: Seconds = 1.0,
           backward: Seconds = 2.0, record: Optional[Seconds] = None, slow: Slow = None,
           adjoint: Optional[Size] = None, live: Optional[Size] = None,
           tape_max: Optional[Size] = None) -> Online:
    """Plans a chain of unknown length while it runs, for example with adaptive time steps.

    The caller performs one action after the other. In an ADVANCE or RECORD it may stop early and
    call :meth:`Online.finish`::

        run = neap.online(state="64K", tape="256K", memory="64M")
        for a in run:
            if a.kind in (neap.ADVANCE, neap.RECORD):
                t = as_far_as_it_goes(a.t0, a.t1)
                if ended:
                    run.finish(t)
            else:
                perform(a)

    The planner needs memory proportional to the number of slots, plus the records on a slow tier.

    :param state: bytes of a state.
    :param tape: bytes of the saved tensors of a step.
    :param memory: the budget in bytes; None: no limit.
    :param slots: instead of sizes: the number of checkpoints.
    :param advance: seconds of a forward step that saves nothing.
    :param backward: seconds of a backward step.
    :param record: seconds of a forward step that saves its tape; None: as ``advance``.
    :param slow: a :class:`Tier`, or a list of them, fastest first.
    :param adjoint: bytes of the gradient with respect to the state; None: as ``state``.
    :param live: bytes of the current state; None: as ``state``.
    :param tape_max: bytes of the largest tape, if tapes vary.
    :returns: an :class:`Online`, an iterator over actions.
    :raises BudgetError: if the first state and one tape do not fit.
    :raises UsageError: if an argument is invalid.
    """
    given = {"state": state, "tape": tape, "adjoint": adjoint, "live": live, "tape_max": tape_max,
             "tape_mean": None, "log": None, "replay": None, "advance": advance, "record": record,
             "backward": backward, "slot_write": 0, "slot_read": 0, "call": 0}
    return Online(problem(0, None, memory, slots, slow, False, False, given))
