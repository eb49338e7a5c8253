# SPDX-License-Identifier: Apache-2.0
"""The actions of a plan as a table of integers, which compiled loops execute row by row.

A row loads a state, saves it, runs steps forward, of which the last ones are recorded, and reverses recorded steps;
each part may be empty. Recorded steps are consecutive, so the tape of step t is in place t - first.
"""
from typing import Iterable, List, NamedTuple, Optional

import numpy as np

from ..actions import Action, Kind, Payload
from ..errors import UsageError

__all__ = ["COLUMNS", "Table", "table_of"]

COLUMNS = ("load", "save", "begin", "first", "end", "back")
"""Columns of a table: slot to load and slot to save into (-1: none); steps [begin, end) run forward, and those from
``first`` on are recorded; then the recorded steps from ``end`` - 1 down to ``back`` are reversed."""

_LOAD, _SAVE, _BEGIN, _FIRST, _END, _BACK = range(len(COLUMNS))
_STAGES = {Kind.LOAD: 0, Kind.SAVE: 1, Kind.ADVANCE: 2, Kind.RECORD: 3, Kind.BACKWARD: 4}
_DONE = 5  # stage of a row that takes no further action


class Table(NamedTuple):
    """The rows before and after the loss, the number of slots, and the number of places for tapes."""

    forward: np.ndarray
    backward: np.ndarray
    slots: int
    places: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.forward) + len(self.backward)


class _Builder:
    """Appends actions to rows. The tapes of steps [first, end) are held."""

    def __init__(self) -> None:
        self.rows: List[List[int]] = []
        self.stage = _DONE  # of the last action of the last row; the actions of a row are in the order of _STAGES
        self.first = self.end = self.slots = self.places = 0

    def row(self, kind: Kind, t: int, column: Optional[int] = None) -> List[int]:
        """Returns the row for an action at step t: the last one if its ``column`` is t and the order allows it."""
        stage = _STAGES[kind]
        if self.stage > stage or column is None and self.stage == stage or \
                column is not None and self.rows[-1][column] != t:
            self.rows.append([-1, -1, t, t, t, t])
        self.stage = stage
        return self.rows[-1]

    def add(self, a: Action, t0: int, t1: int) -> None:
        """Appends an action, of steps [t0, t1)."""
        if a.kind == Kind.LOAD:
            self.row(a.kind, t0)[_LOAD] = a.slot
        elif a.kind == Kind.SAVE:
            self.row(a.kind, t0)[_SAVE] = a.slot
            self.slots = max(self.slots, a.slot + 1)
        elif a.kind == Kind.ADVANCE and a.payload == Payload.STATE:
            self.row(a.kind, t0, _END)[_FIRST:] = [t1] * 3
        elif a.kind == Kind.RECORD and a.payload == Payload.STATE and self.end in (self.first, t0):
            if self.first == self.end:
                self.first = t0
            self.row(a.kind, t0, _END)[_FIRST:] = [self.first, t1, t1]
            self.end = t1
            self.places = max(self.places, t1 - self.first)
        elif a.kind == Kind.BACKWARD and self.end == t1 and self.first <= t0:
            row = self.row(a.kind, t1, _BACK)
            row[_FIRST], row[_BACK] = self.first, t0
            self.end = t0
        elif a.kind == Kind.TURN:
            self.stage = _DONE
        elif a.kind != Kind.DROP or a.payload != Payload.STATE:
            raise UsageError(f"the plan has the action '{a}', which a compiled loop cannot execute. Pass "
                             f"strategy='auto', or another strategy that needs no slow memory")


def _array(rows: List[List[int]]) -> np.ndarray:
    return np.array(rows, np.int32).reshape(-1, len(COLUMNS))


def table_of(actions: Iterable[Action], steps: int, group: int = 1) -> Table:
    """Returns the table of a plan whose steps are groups of ``group`` steps, the last one shorter.

    :raises UsageError: if an action needs slow memory, or tapes are not reversed in the opposite order.
    """
    built, turn = _Builder(), 0
    for a in actions:
        built.add(a, min(a.t0 * group, steps), min(a.t1 * group, steps))
        if a.kind == Kind.TURN:
            turn = len(built.rows)
    forward, backward = built.rows[:turn], built.rows[turn:]
    # The outputs of all steps are written before the loss, so the rows before it must run each step exactly once.
    ends = [0, *(row[_END] for row in forward)]
    if any(row[_LOAD] >= 0 for row in forward) or [row[_BEGIN] for row in forward] != ends[:-1] or ends[-1] != steps:
        raise UsageError("the plan recomputes steps before the loss, which a compiled loop cannot execute. Pass "
                         "strategy='auto'")
    return Table(_array(forward), _array(backward), built.slots, built.places)
