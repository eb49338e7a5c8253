# SPDX-License-Identifier: Apache-2.0
"""The data of a Player, counted in bytes, and the order in which it is freed when the budget has no room.

Everything that is counted can be recomputed, from the first state if nothing else is left. States that were kept for
recoveries are freed first, then tapes larger than planned, then planned data. Among slots, the slot that is closest to
the slot before it is freed first, because recomputing it takes the fewest steps.
"""
import heapq
from typing import Any, Dict, List, Optional, Set, Tuple

from .actions import Action, Payload
from .backends import Counts, Sizes
from .stores import Transfer

__all__ = ["LOST", "Held", "Holding", "TapeOf", "Weight"]

Weight = Tuple[int, int]  # bytes of a state and of its adjoint


class TapeOf:
    """The tape of a group, and the weight of the group's first state; if the tape is larger than planned, or None,
    also that state. If tape and state are None, the tape was lost."""

    __slots__ = ("tape", "state", "nbytes", "weight")

    def __init__(self, tape: Any, state: Any, nbytes: int, weight: Weight):
        self.tape, self.state, self.nbytes, self.weight = tape, state, nbytes, weight


class Held:
    """A state at the beginning of group or step ``at`` that counts ``nbytes``; None if it was lost or has not arrived
    yet. ``end``: the end of the steps that are reversed from it."""

    __slots__ = ("at", "state", "nbytes", "end")

    def __init__(self, at: int, state: Any = None, nbytes: int = 0, end: int = 0):
        self.at, self.state, self.nbytes, self.end = at, state, nbytes, end


LOST = TapeOf(None, None, 0, (0, 0))


class Holding:
    """Slots, tapes, states for recoveries, and tapes on tiers, under the budget of ``sizes``."""

    counts: Counts
    _flying: Dict[int, Tuple[Optional[Transfer], Action, Any]]  # see Performer

    def __init__(self, sizes: Sizes):
        self.sizes = sizes
        self.slots: Dict[int, Held] = {}
        self.tapes: Dict[int, TapeOf] = {}
        self.away: Dict[int, TapeOf] = {}  # tapes on tiers
        self._large: List[Tuple[int, int]] = []  # heap of tapes larger than planned: (-bytes, group)
        self._spare: Dict[int, Held] = {}  # states stored during recomputations of lost ones, by group
        self._parts: List[Held] = []  # of a group that is being recomputed; the live state belongs to the last
        self._held = 0  # bytes of all these
        self._planned: Weight = sizes.state, sizes.adjoint
        self._live, self._adjoint = self._planned  # counted bytes of live state and adjoint, at least as planned

    def let_go(self) -> None:
        """Frees everything."""
        for held in (self.slots, self.tapes, self.away, self._large, self._spare, self._parts):
            held.clear()
        self._held = 0
        self._live, self._adjoint = self._planned

    @property
    def held(self) -> int:
        """Returns the current bytes of slots and tapes."""
        return self._held

    def _used(self) -> int:
        return self._held + self._live + self._adjoint + self.sizes.staging

    def _left(self) -> Optional[int]:
        """Returns the free bytes of the budget; None: no limit."""
        if self.sizes.memory is None:
            return None
        return self.sizes.memory - self._used()

    def _clear(self, nbytes: int, hard: bool = False) -> bool:
        """Frees items until ``nbytes`` are free; returns False if that is impossible."""
        left = self._left()
        while left is not None and left < nbytes:
            if not self._evict(hard):
                return False
            left = self._left()
        return True

    def _evict(self, hard: bool) -> bool:
        """Frees one item; returns False if there is none. The order: states that were kept for recoveries, then tapes
        larger than planned; with ``hard`` also planned data: tapes from the oldest on, slots, transfers in flight, and
        tapes on tiers, whose graphs stay in memory."""
        if self._spare:
            self._held -= self._spare.pop(max(self._spare)).nbytes
            return True
        busy = {g for transfer, a, _ in self._flying.values() if transfer is not None and a.payload == Payload.TAPE
                for g in range(a.t0, a.t1)}
        g = self._beyond(busy)
        if g is not None:
            kept = self._take(g)
            self._keep(g, TapeOf(None, kept.state, kept.weight[0] if kept.state is not None else 0, kept.weight))
            self.counts.outgrown += 1
            return True
        if not hard:
            return False
        g = next((g for g, kept in self.tapes.items() if kept.nbytes and g not in busy), None)
        if g is not None:
            self.counts.outgrown += self._take(g).tape is not None
            self._keep(g, LOST)
            return True
        return self._thin() or self._land() or self._forsake()

    def _beyond(self, busy: Set[int]) -> Optional[int]:
        """Removes the largest tape beyond the plan that is not in flight from the heap; returns its group, or None."""
        aside, found = [], None
        while self._large and found is None:
            entry = heapq.heappop(self._large)
            kept = self.tapes.get(entry[1])
            if kept is not None and kept.tape is not None and kept.nbytes == -entry[0]:  # else outdated
                if entry[1] in busy:
                    aside.append(entry)
                else:
                    found = entry[1]
        for entry in aside:
            heapq.heappush(self._large, entry)
        return found

    def _thin(self) -> bool:
        """Frees the slot that takes the fewest steps to recompute; returns False if there is none."""
        busy = {a.slot for transfer, a, _ in self._flying.values()
                if transfer is not None and a.payload == Payload.STATE}
        there = sorted((held for slot, held in self.slots.items() if held.state is not None and slot not in busy),
                       key=lambda held: held.at)
        if there:
            times = [0] + [held.at for held in there]
            self._lose(min(zip(there, times), key=lambda pair: pair[0].at - pair[1])[0])
        return bool(there)

    def _land(self) -> bool:
        """Waits for transfers in flight, so that their memory can be freed; returns False if there is none."""
        raise NotImplementedError

    def _lose(self, held: Held) -> None:
        self._held -= held.nbytes
        held.state, held.nbytes = None, 0

    def _forsake(self) -> bool:
        """Frees the states of parts, then a tape on a tier; returns False if there is none."""
        for part in self._parts[:-1]:
            if part.nbytes:
                self._lose(part)
                return True
        if self.away:
            del self.away[min(self.away)]
            self._held -= self.sizes.graph
            return True
        return False

    def _keep(self, g: int, kept: TapeOf) -> None:
        self.tapes[g] = kept
        if kept.nbytes > self.sizes.tape and kept.nbytes > kept.weight[0]:
            heapq.heappush(self._large, (-kept.nbytes, g))
        self._held += kept.nbytes

    def _take(self, g: int) -> TapeOf:
        kept = self.tapes.pop(g)
        self._held -= kept.nbytes
        return kept

