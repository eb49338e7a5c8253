# SPDX-License-Identifier: Apache-2.0
"""Exceptions that end a call from outside, such as a time limit: a signal handler may raise one at any line.

Code that catches every exception, because it cannot know which ones PyTorch raises, passes these on: what was running
did not fail.
"""
import functools
import signal
from types import CodeType, TracebackType
from typing import Any, Optional, Set

__all__ = ["passed_on"]


def _handlers() -> Set[CodeType]:
    """Returns the code of the signal handlers that are installed."""
    found = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        for one in (handler, getattr(type(handler), "__call__", None)):
            code = getattr(getattr(one, "__func__", one), "__code__", None)
            if code is not None:
                found.add(code)
    return found


def passed_on(error: BaseException) -> None:
    """Raises the exception that a signal handler raised, if ``error`` is one or was raised because of one."""
    handlers, pending, seen = _handlers(), [error], set()
    while handlers and pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        pending += [x for x in (one.__context__, one.__cause__) if x is not None]
        trace: Optional[TracebackType] = one.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in handlers:
                raise one
            trace = trace.tb_next
