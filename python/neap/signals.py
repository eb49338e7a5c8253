# SPDX-License-Identifier: Apache-2.0
"""Handles signals between two calls of a model while libneap runs it.

Python runs a signal's handler when it next executes Python code, which here is the first instruction of a callback,
outside of any ``try``: exceptions of the handler would be lost in ctypes. During a sweep, handlers written in Python
are therefore replaced by one that records the signal, and the sweep runs the handlers between actions. A second signal
that arrives while the first waits for the end of a call of the model is handled at once.
"""
import signal
import threading
from typing import Any, Callable, Dict, List


class Deferred:
    """``with Deferred() as signals``: handlers of the main thread run only in ``signals.deliver()``."""

    def __init__(self) -> None:
        self.inside = False  # in a call of the model, which an exception may end
        self._handlers: Dict[int, Callable[[int, Any], Any]] = {}
        self._pending: List[int] = []

    def __enter__(self) -> "Deferred":
        if threading.current_thread() is threading.main_thread():
            for number in signal.valid_signals():
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *unused: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self.deliver()

    def _note(self, number: int, frame: Any) -> None:
        if self._pending and self.inside:
            self._handlers[number](number, frame)
        else:
            self._pending.append(number)

    def deliver(self) -> None:
        """Runs the handlers of the signals that arrived; their exceptions are passed on."""
        while self._pending:
            number = self._pending.pop(0)
            self._handlers[number](number, None)
