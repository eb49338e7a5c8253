# SPDX-License-Identifier: Apache-2.0
"""Signals while libneap runs a model: they are handled between two calls of the model.

Python runs a signal's handler where its own code goes on next, which here is the first moment of a
callback, outside of any ``try``: what the handler raises would be lost in ctypes. So while a sweep
runs, handlers that are Python's only take note, and the sweep asks for them between actions. A
second signal, while the first waits for a call of the model to end, is handled at once.
"""
import signal
import threading
from typing import Any, Callable, Dict, List


class Deferred:
    """``with Deferred() as signals``: handlers of the main thread wait for ``signals.deliver()``."""

    def __init__(self) -> None:
        self.inside = False  # a call of the model, which may be left by an exception
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
        """Runs the handlers of the signals that came; raises what they raise."""
        while self._pending:
            number = self._pending.pop(0)
            self._handlers[number](number, None)
