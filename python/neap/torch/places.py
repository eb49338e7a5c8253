# SPDX-License-Identifier: Apache-2.0
"""The places on slow tiers that a plan uses, and the largest number of tapes on tiers at a time."""
from typing import FrozenSet, List, NamedTuple, Set

from ..actions import Kind, Payload
from ..plans import Plan

__all__ = ["Places", "places_of"]


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
