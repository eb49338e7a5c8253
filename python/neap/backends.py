# SPDX-License-Identifier: Apache-2.0
"""What a Player asks of a framework, what its plan counts with, and what it counts itself."""
from typing import Any, NamedTuple, Optional, Sequence, Tuple

__all__ = ["Backend", "Counts", "Outgrown", "Sizes"]


class Outgrown(Exception):
    """A backend's record found that its tape takes more than the bytes it was allowed.
    ``nbytes`` is how many it had counted by then."""

    def __init__(self, nbytes: int):
        super().__init__(f"the saved tensors take at least {nbytes} bytes, more than the room that is left")
        self.nbytes = nbytes


class Backend:
    """What a Player asks of a framework. States, tapes and adjoints are opaque to the Player.

    States are never changed in place: a slot keeps a reference.
    """

    def advance(self, state: Any, t0: int, t1: int, first: bool) -> Any:
        """The state at t1. ``first``: these steps are done for the first time."""
        raise NotImplementedError

    def record(self, state: Any, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[Any, Any, int]:
        """The state at t1, the tape of [t0, t1) and its bytes. Outgrown where it takes more than
        ``room`` bytes (None: no limit)."""
        raise NotImplementedError

    def backward(self, tape: Any, adjoint: Any, t0: int, t1: int) -> Any:
        """The adjoint at t0 of the one at t1; the tape is used up."""
        raise NotImplementedError

    def state_bytes(self, state: Any) -> Optional[Tuple[int, int]]:
        """Bytes of a state and of its adjoint. None: as planned, if all states are of one size."""
        return None

    def tape_bytes(self, state: Any, t0: int, t1: int) -> Tuple[Any, int]:
        """The state at t1, and the bytes of the tape of [t0, t1), which is not kept. It is asked for
        after a tape did not fit, so it should not need the memory of one."""
        after, _, nbytes = self.record(state, t0, t1, False, None)
        return after, nbytes

    def pieces(self, state: Any) -> Tuple[Any, Sequence[Tuple[int, int]]]:
        """A state, and the pieces of memory, (address, bytes), that it lies in: the same one, or
        a copy that lies in fewer."""
        raise NotImplementedError

    def empty(self, t: int) -> Any:
        """A state to be filled from a tier: that of step t."""
        raise NotImplementedError

    def filled(self, state: Any) -> Any:
        """The state of ``empty`` after that."""
        return state

    def tape_pieces(self, tape: Any) -> Sequence[Tuple[int, int]]:
        """The pieces of memory, (address, bytes), that a tape lies in."""
        raise NotImplementedError

    def shed(self, tape: Any) -> None:
        """Frees the memory of a tape that was sent."""
        raise NotImplementedError

    def regain(self, tape: Any) -> Sequence[Tuple[int, int]]:
        """Pieces of new memory for a tape that comes back, of the sizes of ``tape_pieces``."""
        raise NotImplementedError


class Sizes(NamedTuple):
    """Bytes as the plan has them: of a state, an adjoint, a group's tape; the budget (None: no limit);
    ``staging`` that tiers take; ``graph`` that stays in memory of a tape on a tier."""

    state: int
    adjoint: int
    tape: int
    memory: Optional[int]
    staging: int = 0
    graph: int = 0


class Counts:
    """What was done: steps by kind, the counted peak in bytes, tapes that outgrew the plan, states
    and tapes that went to tiers and came back, records that were lost and made again."""

    def __init__(self) -> None:
        self.peak = 0
        self.advance_steps = self.record_steps = self.backward_steps = 0
        self.outgrown = self.recorded_again = 0
        self.actions = self.puts = self.gets = self.recoveries = 0
        self.tape_puts = self.tape_gets = 0
        self.waited = 0.0  # seconds for tiers
