# SPDX-License-Identifier: Apache-2.0
"""Which places on slow tiers a plan uses, and how many tapes are away at a time."""
from typing import FrozenSet, List, NamedTuple, Set

from ..actions import Kind, Payload
from ..plans import Plan

__all__ = ["Places", "places_of"]


class Places(NamedTuple):
    """What a plan uses of each tier: places for states, places for tapes, and the groups of the
    longest record of tapes. ``away``: groups whose tapes are on tiers at a time, at most; ``sent``:
    the groups whose tapes are sent."""

    states: List[int]
    tapes: List[int]
    groups: List[int]
    away: int = 0
    sent: FrozenSet[int] = frozenset()

    @property
    def used(self) -> List[bool]:
        """Whether a tier is used at all."""
        return [bool(a or b) for a, b in zip(self.states, self.tapes)]


def places_of(made: Plan) -> Places:
    """The places of a plan, from its actions."""
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
