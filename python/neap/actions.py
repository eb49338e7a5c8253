# SPDX-License-Identifier: Apache-2.0
"""Actions, the items of a schedule, and the stream of actions that libneap generates from a plan."""
import ctypes
import enum
from typing import Callable, Iterator, NamedTuple

from . import _abi
from ._lib import check, lib, text

LIVE = _abi.NEAP_LIVE
"""Slot number that stands for the live state in an action."""


class Kind(enum.IntEnum):
    """Kinds of actions; ``include/neap/plan.h`` has the rules of each.

    ``ADVANCE``: forward steps that save nothing; ``RECORD``: forward steps that save their tapes; ``TURN``:
    the loss and its gradient; ``BACKWARD``: backward steps; ``SAVE``, ``LOAD``, ``DROP``: a state into a slot,
    out of it, free the slot; ``PUT``, ``GET``: write to and read from a slow tier; ``WAIT``: until a transfer
    has finished; ``FORGET``: free a record on a slow tier.
    """

    ADVANCE = _abi.NEAP_ADVANCE
    RECORD = _abi.NEAP_RECORD
    TURN = _abi.NEAP_TURN
    BACKWARD = _abi.NEAP_BACKWARD
    SAVE = _abi.NEAP_SAVE
    LOAD = _abi.NEAP_LOAD
    DROP = _abi.NEAP_DROP
    PUT = _abi.NEAP_PUT
    GET = _abi.NEAP_GET
    WAIT = _abi.NEAP_WAIT
    FORGET = _abi.NEAP_FORGET


class Payload(enum.IntEnum):
    """The data that an action moves: a state, the tape of a step, or a log from which a tape can be restored."""

    STATE = _abi.NEAP_STATE
    TAPE = _abi.NEAP_TAPE
    LOG = _abi.NEAP_LOG


class Action(NamedTuple):
    """One action of a schedule; ``str(action)`` is its line in ``neap plan --actions``.

    ``kind``: a :class:`Kind`; ``payload``: a :class:`Payload`; ``t0``, ``t1``: the range of steps [t0, t1),
    or the step of a state in ``t0``; ``slot``: a slot of fast memory, or ``LIVE`` for the current state;
    ``tier``: a slow tier, 1 for the first; ``place``: number of the record there; ``ticket``: number of a
    transfer, for WAIT. Unused fields are 0.
    """

    kind: Kind
    payload: Payload
    t0: int
    t1: int
    slot: int
    tier: int
    place: int
    ticket: int

    def __str__(self) -> str:
        room = ctypes.create_string_buffer(_abi.NEAP_ACTION_TEXT)
        raw = _abi.neap_action(kind=self.kind, payload=self.payload, tier=self.tier,
                               ticket=self.ticket, slot=self.slot, t0=self.t0, t1=self.t1,
                               place=self.place)
        return text(lib.neap_action_show(room, ctypes.byref(raw)))


KINDS = tuple(Kind)
PAYLOADS = tuple(Payload)


def of(raw: _abi.neap_action) -> Action:
    """Converts libneap's struct of an action."""
    return Action(KINDS[raw.kind], PAYLOADS[raw.payload], raw.t0, raw.t1, raw.slot, raw.tier,
                  raw.place, raw.ticket)


def stream(open_: Callable[[], ctypes.c_void_p]) -> Iterator[Action]:
    """Yields the actions of the schedule that ``open_`` opens; closes it at the end or with the iterator."""
    schedule = open_()
    raw = _abi.neap_action()
    pointer, step = ctypes.byref(raw), lib.neap_schedule_next
    try:
        while check(step(schedule, pointer)) > 0:
            yield of(raw)
    finally:
        lib.neap_schedule_close(schedule)
