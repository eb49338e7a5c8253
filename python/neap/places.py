# SPDX-License-Identifier: Apache-2.0
"""The places on slow tiers that a plan uses, and the largest number of tapes on tiers at a time."""
from typing import FrozenSet, List, NamedTuple, Sequence, Set

from .actions import Action, Kind, Payload
from .plans import Plan

__all__ = ["Places", "StagePlaces", "places_of", "stage_places"]


class Places(NamedTuple):
    """The use of each tier by a plan: places for states, places for tapes, and the groups of the longest record of
    tapes. ``away``: largest number of groups whose tapes are on tiers at a time; ``sent``: the groups whose tapes are
    offloaded."""

    states: List[int]
    tapes: List[int]
    groups: List[int]
    away: int = 0
    sent: FrozenSet[int] = frozenset()

    @property
    def used(self) -> List[bool]:
        """Whether each tier is used."""
        return [bool(a or b) for a, b in zip(self.states, self.tapes)]


def places_of(made: Plan) -> Places:
    """Returns the places of a plan, from its actions."""
    found = Places(*([0] * len(made.tiers) for _ in range(3)))
    now = most = 0
    sent: Set[int] = set()
    for a in made if made.tiers else ():
        if a.kind == Kind.GET and a.payload == Payload.TAPE:
            now -= a.t1 - a.t0
        if a.kind == Kind.PUT:
            tapes = a.payload == Payload.TAPE
            rows, i = found.tapes if tapes else found.states, a.tier - 1
            rows[i] = max(rows[i], a.place + 1)
            if tapes:
                found.groups[i] = max(found.groups[i], a.t1 - a.t0)
                now += a.t1 - a.t0
                sent.update(range(a.t0, a.t1))
                most = max(most, now)
    return found._replace(away=most, sent=frozenset(sent))


class StagePlaces(NamedTuple):
    """The use of each tier by a plan of stages: places for states, places for tapes, and bytes of the largest record of
    tapes. ``sent``: the stages whose tapes are offloaded."""

    states: List[int]
    tapes: List[int]
    nbytes: List[int]
    sent: FrozenSet[int]

    def room(self, i: int, state: int) -> int:
        """Returns the bytes of all places of tier i, if a state takes ``state``."""
        return self.states[i] * state + self.tapes[i] * self.nbytes[i]


def stage_places(actions: Sequence[Action], tiers: int, records: Sequence[int]) -> StagePlaces:
    """Returns the places that actions use on ``tiers`` tiers. ``records``: bytes of the record of each tape."""
    found = StagePlaces([0] * tiers, [0] * tiers, [0] * tiers, frozenset())
    sent: Set[int] = set()
    for a in actions:
        if a.kind == Kind.PUT:
            tapes, i = a.payload == Payload.TAPE, a.tier - 1
            rows = found.tapes if tapes else found.states
            rows[i] = max(rows[i], a.place + 1)
            if tapes:
                found.nbytes[i] = max(found.nbytes[i], sum(records[a.t0:a.t1]))
                sent.update(range(a.t0, a.t1))
    return found._replace(sent=frozenset(sent))
