# SPDX-License-Identifier: Apache-2.0
"""The life of a run that both players share: the stream of actions, TURN, and transfers to and from slow tiers.

:class:`~neap.player.Player` performs plans of equal groups of steps, :class:`~neap.stage_player.StagePlayer` plans of
stages that differ. They define how steps run, how bytes are counted, and what replaces a record that was lost.
"""
from typing import Any, Dict, Iterable, Iterator, Optional, Sequence, Tuple

from .actions import Action, Kind, Payload
from .backends import Backend, Counts, Outgrown
from .errors import BudgetError, Error, RecordError, UsageError
from .stores import Store, Transfer

__all__ = ["Performer", "Refused"]


class Refused(BudgetError):
    """The BudgetError of a player, as distinguished from a BudgetError that a step raised."""


class Performer:
    """Performs the actions of a plan: ``forward`` up to TURN, ``backward`` the rest.

    :param strict: False: data that does not fit the budget is kept nevertheless, and counted.
    :param store: the open tiers, for plans with slow tiers.

    A derived class defines how steps run and how bytes are counted:

    - ``_advance``, ``_record``, ``_backward``, ``_save``, ``_load``, ``_drop``: perform an action
    - ``_begin()``: counts the first state, which is the live one; ``_turn()``: counts the adjoint of the last state
      instead of that state; ``_used()``: returns the current bytes; ``let_go()``: frees states and tapes
    - ``_state_of(a)``, ``_tapes_of(a)``: return what a PUT writes; None for a lost state or tape
    - ``_room_of(a)``: returns memory for the state that a GET reads, whose bytes count from now on; None if there is no
      room. ``_get_tapes(a)``: starts a GET of tapes likewise
    - ``_state_over(a, state)``: takes the state of a GET that has ended, None if it is lost; ``_tapes_over(a, arrived)``:
      ends a transfer of tapes. Tapes that were written are freed, and tapes that did not arrive are lost.
    """

    def __init__(self, backend: Backend, actions: Iterable[Action], strict: bool, counts: Optional[Counts],
                 store: Optional[Store]):
        self.backend, self.strict, self.store = backend, strict, store
        self.counts = counts or Counts()
        self.first = self.live = self.adjoint = None  # type: Any
        self._actions: Iterator[Action] = iter(actions)
        self._top = 0  # steps below it ran before
        self._flying: Dict[int, Tuple[Optional[Transfer], Action, Any]] = {}

    def forward(self, state: Any) -> Any:
        """Performs the actions from the first state up to TURN; returns the last state."""
        self.live = self.first = state
        self._begin()
        for action in self._actions:
            if action.kind == Kind.TURN:
                last = self.live
                self._turn()
                return last
            self._do(action)
        raise Error("the actions end before TURN, which separates the forward from the backward pass. Pass all actions "
                    "of a plan")

    def backward(self, adjoint: Any) -> Any:
        """Performs the other actions from the adjoint of the last state; returns the adjoint of the first state."""
        self.adjoint = adjoint
        for action in self._actions:
            self._do(action)
        found, self.adjoint = self.adjoint, None
        self.close()
        return found

    def close(self) -> None:
        """Waits for transfers in flight; frees states, tapes, tiers and the stream of actions."""
        flying, self._flying = self._flying, {}
        for transfer, _, _ in flying.values():
            if transfer is not None:
                self._over(transfer)
        if self.store is not None:
            self.store.close()
        self.let_go()
        self.live = self.adjoint = self.first = None
        self._actions = iter(())

    def _do(self, action: Action) -> None:
        perform = _PERFORM.get(action.kind)
        if perform is None or action.payload == Payload.LOG:
            raise UsageError(f"the action '{action}' needs logs, which this backend does not have. Use a plan without "
                             f"logs (log=None)")
        getattr(self, perform)(action)
        self.counts.actions += 1
        self._note(0)

    def _note(self, more: int) -> None:
        """Counts the current bytes and ``more``."""
        now = self._used() + more
        if now > self.counts.peak:
            self.counts.peak = now

    def _recorded_or_not(self, t0: int, t1: int, first: bool, room: Optional[int]) -> Tuple[Any, Any, int]:
        """Records [t0, t1) from the live state. Returns the state after it, the tape and its bytes; None, None and a
        lower bound of the bytes if they exceed ``room``."""
        try:
            return self.backend.record(self.live, t0, t1, first, room)
        except Outgrown as error:  # its traceback references the graph, so it is dropped here
            return None, None, error.nbytes

    # Slow tiers

    def _over(self, transfer: Transfer) -> bool:
        """Waits for a transfer; returns False if the record is lost."""
        assert self.store is not None
        before = self.store.waited
        try:
            self.store.wait(transfer)
        except (RecordError, OSError):
            return False
        finally:
            self.counts.waited += self.store.waited - before
        return True

    def _needs_tiers(self, a: Action) -> Store:
        if self.store is None:
            raise UsageError(f"the action '{a}' needs a slow tier, but none is open. Pass store=, or a plan without "
                             f"tiers")
        return self.store

    def _start(self, a: Action, state: Any) -> None:
        """Starts the PUT or GET of a state. If it cannot start, or there is no state, the record is lost."""
        store, transfer = self._needs_tiers(a), None
        if state is not None:
            try:
                state, pieces = self.backend.pieces(state)
                start = store.put if a.kind == Kind.PUT else store.get
                transfer = start(a.tier, a.place, a.t0 + 1, pieces, state)
            except (RecordError, OSError):
                pass
        self._flying[a.ticket] = transfer, a, state

    def _start_tapes(self, a: Action, tapes: Sequence[Any]) -> bool:
        """Starts the PUT or GET of tapes; returns False if one is missing, or if the tier cannot take or read them."""
        transfer, put, store = None, a.kind == Kind.PUT, self._needs_tiers(a)
        if None not in tapes:
            pieces = [piece for tape in tapes
                      for piece in (self.backend.tape_pieces if put else self.backend.regain)(tape)]
            if not put or 0 < sum(size for _, size in pieces) <= store.tape_bytes[a.tier - 1]:
                try:
                    start = store.put_tapes if put else store.get_tapes
                    transfer = start(a.tier, a.place, a.t0 + 1, pieces, tapes)
                except (RecordError, OSError):
                    pass
        self._flying[a.ticket] = transfer, a, None
        return transfer is not None

    def _put(self, a: Action) -> None:
        if a.payload == Payload.TAPE:  # the tapes can be read until the WAIT
            self.counts.tape_puts += 1
            self._start_tapes(a, self._tapes_of(a))
        else:
            self.counts.puts += 1
            self._start(a, self._state_of(a))

    def _get(self, a: Action) -> None:
        if a.payload == Payload.TAPE:
            self.counts.tape_gets += 1
            self._get_tapes(a)
        else:
            self.counts.gets += 1
            self._start(a, self._room_of(a))

    def _wait(self, a: Action) -> None:
        """Ends a transfer. A record that cannot be read is recomputed; a failed PUT is detected by its GET."""
        transfer, started, state = self._flying.pop(a.ticket)
        arrived = transfer is not None and self._over(transfer)
        if started.payload == Payload.TAPE:
            self._tapes_over(started, arrived)
        elif started.kind == Kind.GET:
            self.counts.recoveries += not arrived
            state = self.backend.filled(state) if arrived else None
            self._state_over(started, state)

    def _forget(self, a: Action) -> None:
        if self.store is not None and a.payload == Payload.STATE:
            self.store.forget(a.tier, a.place)


_PERFORM = {Kind.ADVANCE: "_advance", Kind.RECORD: "_record", Kind.BACKWARD: "_backward", Kind.SAVE: "_save",
            Kind.LOAD: "_load", Kind.DROP: "_drop", Kind.PUT: "_put", Kind.GET: "_get", Kind.WAIT: "_wait",
            Kind.FORGET: "_forget"}
