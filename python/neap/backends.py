# SPDX-License-Identifier: Apache-2.0
"""The interface of a framework to a Player, the sizes that a plan is based on, and the counts of a run."""
from typing import Any, NamedTuple, Optional, Sequence, Tuple

__all__ = ["Backend", "Counts", "Outgrown", "Sizes"]


class Outgrown(Exception):
    """Raised by a backend's ``record`` when a tape needs more than the allowed bytes. ``nbytes``: the bytes counted by
    then."""

    def __init__(self, nbytes: int):
        super().__init__(f"the saved tensors take at least {nbytes} bytes, more than the room that is left")
        self.nbytes = nbytes


class Backend:
    """The operations that a Player requires of a framework. States, tapes and adjoints are opaque to the Player.

    States are never changed in place: a slot stores a reference.
    """

    def advance(self, state: Any, t0: int, t1: int, first: bool) -> Any:
        """Returns the state at t1. ``first``: the steps run for the first time, so they are not recomputed."""
        raise NotImplementedError

    def record(self, state: Any, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[Any, Any, int]:
        """Returns the state at t1, the tape of [t0, t1) and its bytes.

        :raises Outgrown: if the tape needs more than ``room`` bytes (None: no limit).
        """
        raise NotImplementedError

    def backward(self, tape: Any, adjoint: Any, t0: int, t1: int) -> Any:
        """Returns the adjoint at t0 from the adjoint at t1, and consumes the tape."""
        raise NotImplementedError

    def state_bytes(self, state: Any) -> Optional[Tuple[int, int]]:
        """Returns the bytes of a state and of its adjoint; None: as planned, if all states have the same size."""
        return None

    def tape_bytes(self, state: Any, t0: int, t1: int) -> Tuple[Any, int]:
        """Returns the state at t1, and the bytes of the tape of [t0, t1), which is not kept. It is called after a tape
        did not fit, so it should not need the memory of the whole tape."""
        after, _, nbytes = self.record(state, t0, t1, False, None)
        return after, nbytes

    def pieces(self, state: Any) -> Tuple[Any, Sequence[Tuple[int, int]]]:
        """Returns the state, or a copy in fewer pieces, and its pieces of memory, (address, bytes)."""
        raise NotImplementedError

    def empty(self, t: int) -> Any:
        """Returns memory for the state of step t, to be read from a tier."""
        raise NotImplementedError

    def filled(self, state: Any) -> Any:
        """Returns the state in the memory that ``empty`` returned, after it was read."""
        return state

    def tape_pieces(self, tape: Any) -> Sequence[Tuple[int, int]]:
        """Returns the pieces of memory, (address, bytes), of a tape."""
        raise NotImplementedError

    def shed(self, tape: Any) -> None:
        """Frees the memory of a tape that was written to a tier."""
        raise NotImplementedError

    def regain(self, tape: Any) -> Sequence[Tuple[int, int]]:
        """Allocates memory for a tape that is read from a tier; returns its pieces, with the sizes of ``tape_pieces``.
        """
        raise NotImplementedError


class Sizes(NamedTuple):
    """Planned bytes: of a state, an adjoint and the tape of a group; ``memory``: the budget (None: no limit);
    ``staging``: buffers of the tiers; ``graph``: the part of an offloaded tape that stays in memory."""

    state: int
    adjoint: int
    tape: int
    memory: Optional[int]
    staging: int = 0
    graph: int = 0


class Counts:
    """Counts of a run: steps by kind, the peak in bytes, tapes larger than planned, states and tapes written to tiers
    and read, records that were lost and recomputed."""

    def __init__(self) -> None:
        self.peak = 0
        self.advance_steps = self.record_steps = self.backward_steps = 0
        self.outgrown = self.recorded_again = 0
        self.actions = self.puts = self.gets = self.recoveries = 0
        self.tape_puts = self.tape_gets = 0
        self.waited = 0.0  # seconds spent waiting for tiers
