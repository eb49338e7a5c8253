# SPDX-License-Identifier: Apache-2.0
"""Exceptions from outside, for example when time is over: signal handlers may raise them at any line.

Code that catches every exception, because it cannot know which ones PyTorch raises, passes these on: what was running
did not fail.
"""
import functools
import importlib
import signal
import sys
from types import CodeType, TracebackType
from typing import Any, Optional, Set

from ..signals import Deferred

__all__ = ["imported", "passed_on"]


def _handlers() -> Set[CodeType]:
    """Returns the code of the signal handlers that are installed."""
    found = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if not callable(handler):  # SIG_DFL and SIG_IGN; their class has a __call__
            continue
        while isinstance(handler, functools.partial):
            handler = handler.func
        for one in (handler, getattr(type(handler), "__call__", None)):
            code = getattr(getattr(one, "__func__", one), "__code__", None)
            if code is not None:
                found.add(code)
    return found


def passed_on(error: BaseException) -> None:
    """Raises the exception that a signal handler raised, if ``error`` is one or was raised because of one."""
    handlers, seen = _handlers(), []
    one: Optional[BaseException] = error
    while one is not None and one not in seen:
        seen.append(one)
        one = one.__cause__ or one.__context__
    for one in reversed(seen):  # an exception of PyTorch's may have the traceback of the one that it replaces
        trace: Optional[TracebackType] = one.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in handlers:
                try:
                    raise one
                finally:
                    del error, one, seen  # or the traceback would reference itself, and memory be freed late
            trace = trace.tb_next


def imported(*names: str) -> None:
    """Imports modules; signal handlers run afterwards. An interrupted import leaves modules without some of their
    attributes, with which PyTorch fails in all later calls."""
    missing = [name for name in names if name not in sys.modules]
    if missing:
        with Deferred():
            for name in missing:
                importlib.import_module(name)
