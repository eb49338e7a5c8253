# SPDX-License-Identifier: Apache-2.0
"""Exceptions, one for each error code of libneap; their text is libneap's line of detail.

An error code of the operating system becomes an :class:`OSError` (of Python's subclass for the number, such as
:class:`FileNotFoundError`), and a lack of memory a :class:`MemoryError`.
"""
import errno
import os
import re
import sys
from typing import Dict, Match, Type

from . import _abi
from .show import show_least, show_most, show_sizes

__all__ = ["Error", "UsageError", "FormatError", "BudgetError", "IllegalSchedule", "RecordError",
           "LostRecord", "ShortRecord", "CorruptRecord", "ModelError", "NumberTooLarge",
           "Interrupted", "Diverged", "ForkedError", "ToolMissing"]

_INSIDE = ("neap", "torch", "jax")  # packages that are not the user's code

# The phrases with which libneap and the tool report a budget that is large enough.
LEAST = re.compile(r"at least (\d+) bytes(?: \([^()]*\))?|(a total of )?(\d+) bytes would do")


class Error(Exception):
    """A call of libneap failed. ``code`` is the error code that it returned, the text its line of detail."""

    code: int = 0

    def __init__(self, detail: str, code: int = 0):
        super().__init__(detail)
        self.code = code or type(self).code


class UsageError(Error, ValueError):
    """A number, name or combination that is not valid; the text specifies what is accepted."""

    code = _abi.NEAP_EUSAGE


class FormatError(Error, ValueError):
    """A file or text that is malformed; the text has the line number if there is one."""

    code = _abi.NEAP_EFORMAT


class BudgetError(Error, MemoryError):
    """No plan fits the budget. The text shows sizes in KiB and MiB; ``least`` is a budget that is large
    enough, exact and in bytes (slots, in a problem that counts slots), or 0 if none is known.
    """

    code = _abi.NEAP_EINFEASIBLE

    def __init__(self, detail: str, code: int = 0, least: int = 0):
        super().__init__(detail, code)
        self.least = least


class IllegalSchedule(Error):
    """A schedule breaks a rule of the language of actions; the text has the number of the action."""

    code = _abi.NEAP_EILLEGAL


class RecordError(Error):
    """A record on a slow tier cannot be used."""


class LostRecord(RecordError):
    """The record is missing."""

    code = _abi.NEAP_ELOST


class ShortRecord(RecordError):
    """The record is truncated."""

    code = _abi.NEAP_ESHORT


class CorruptRecord(RecordError):
    """The checksum of the record does not match."""

    code = _abi.NEAP_ECORRUPT


class ModelError(Error):
    """A model reported a failure that is not a Python exception."""

    code = _abi.NEAP_EMODEL


class NumberTooLarge(Error, OverflowError):
    """A product or sum of sizes does not fit in 64 bits."""

    code = _abi.NEAP_EOVERFLOW


class Interrupted(Error):
    """The sweep was interrupted."""

    code = _abi.NEAP_EINTERRUPTED


class Diverged(Error, ArithmeticError):
    """A loss or gradient is not finite."""

    code = _abi.NEAP_EDIVERGED


class ForkedError(Error):
    """A tier was used in a child of the process that opened it."""

    code = _abi.NEAP_EFORKED


class ToolMissing(Error):
    """The ``neap`` tool, which ``neap.train`` and ``neap.evaluate`` run, is not installed."""


BY_CODE: Dict[int, Type[Error]] = {kind.code: kind for kind in (
    UsageError, FormatError, BudgetError, IllegalSchedule, LostRecord, ShortRecord, CorruptRecord,
    ModelError, NumberTooLarge, Interrupted, Diverged, ForkedError)}


def stack_level() -> int:
    """Returns the stack level of the user's line for :func:`warnings.warn`, as counted in the function that calls this
    one."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level


def too_small(memory: int, least: int, why: str, strategy: str = "") -> BudgetError:
    """Returns the error for a budget of ``memory`` bytes that needs ``least``; ``why`` begins in lower case."""
    which = f" for strategy {strategy!r}" if strategy else ""
    faster = "" if strategy == "bptt" else "; a few times that runs faster"  # 'bptt' never recomputes
    return BudgetError(f"memory={show_most(memory)} is too small{which}: {why}. {show_least(least)} are enough "
                       f"(error.least){faster}", least=least)


def budget_error(line: str) -> BudgetError:
    """Returns the error for a line of libneap or the tool, with sizes in bytes. Bytes missing on a slow tier are not
    ``least``."""
    found = None if "slow memory of" in line else LEAST.search(line)
    named = " (error.least)" if found else ""

    def shown(at: Match[str]) -> str:
        least = f"at least {show_least(int(at[1] or at[3]))}"
        return least + ("" if at[1] else f" {'in total ' if at[2] else ''}are needed") + named
    return BudgetError(show_sizes(LEAST.sub(shown, line)), least=int(found[1] or found[3]) if found else 0)


def exception(code: int, detail: str) -> Exception:
    """Returns the exception for a negative code of libneap and its line of detail, which may name an option of the
    tool."""
    detail = detail.replace("--slow-in-memory", "in_memory=True")
    if code == BudgetError.code:
        return budget_error(detail)
    if code in BY_CODE:
        return BY_CODE[code](detail)
    if code == -errno.ENOMEM:
        return MemoryError(detail)
    if -4096 < code < 0:
        return OSError(-code, detail or os.strerror(-code))
    return Error(detail, code)
