# SPDX-License-Identifier: Apache-2.0
"""Exceptions, one a code of libneap, each with the line of detail that libneap gives.

A code of the operating system becomes :class:`OSError` (with the class that Python has for the
number, such as :class:`FileNotFoundError`), and a lack of memory :class:`MemoryError`.
"""
import errno
import os
from typing import Dict, Type

from . import _abi

__all__ = ["Error", "UsageError", "FormatError", "BudgetError", "IllegalSchedule", "RecordError",
           "LostRecord", "ShortRecord", "CorruptRecord", "ModelError", "NumberTooLarge",
           "Interrupted", "Diverged", "ForkedError", "ToolMissing"]


class Error(Exception):
    """A call of libneap failed. ``code`` is the number it answered, the text its line of detail."""

    code: int = 0

    def __init__(self, detail: str, code: int = 0):
        super().__init__(detail)
        self.code = code or type(self).code


class UsageError(Error, ValueError):
    """A number, name or combination that makes no sense; the text says what would be accepted."""

    code = _abi.NEAP_EUSAGE


class FormatError(Error, ValueError):
    """A file or text that is malformed; the text has the number of the line where there is one."""

    code = _abi.NEAP_EFORMAT


class BudgetError(Error, MemoryError):
    """No plan fits the budget. ``least`` is a budget that would do, in bytes (slots, in a problem
    that counts slots), or 0 where none is known.
    """

    code = _abi.NEAP_EINFEASIBLE

    def __init__(self, detail: str, code: int = 0, least: int = 0):
        super().__init__(detail, code)
        self.least = least


class IllegalSchedule(Error):
    """A schedule breaks a rule of the language of actions; the text has the action's number."""

    code = _abi.NEAP_EILLEGAL


class RecordError(Error):
    """A record on a slow tier cannot be used."""


class LostRecord(RecordError):
    """The record is not there."""

    code = _abi.NEAP_ELOST


class ShortRecord(RecordError):
    """The record ends early."""

    code = _abi.NEAP_ESHORT


class CorruptRecord(RecordError):
    """The record's checksum is wrong."""

    code = _abi.NEAP_ECORRUPT


class ModelError(Error):
    """A model answered with a failure that is no exception of Python."""

    code = _abi.NEAP_EMODEL


class NumberTooLarge(Error, OverflowError):
    """A product or sum of sizes does not fit 64 bits."""

    code = _abi.NEAP_EOVERFLOW


class Interrupted(Error):
    """The sweep was asked to end."""

    code = _abi.NEAP_EINTERRUPTED


class Diverged(Error, ArithmeticError):
    """A loss or gradient is not finite."""

    code = _abi.NEAP_EDIVERGED


class ForkedError(Error):
    """A tier was used in a child of the process that opened it."""

    code = _abi.NEAP_EFORKED


class ToolMissing(Error):
    """The ``neap`` tool is not installed, which ``neap.train`` and ``neap.evaluate`` run."""


BY_CODE: Dict[int, Type[Error]] = {kind.code: kind for kind in (
    UsageError, FormatError, BudgetError, IllegalSchedule, LostRecord, ShortRecord, CorruptRecord,
    ModelError, NumberTooLarge, Interrupted, Diverged, ForkedError)}


def exception(code: int, detail: str) -> Exception:
    """The exception for a negative answer of libneap and its line of detail."""
    if code in BY_CODE:
        return BY_CODE[code](detail)
    if code == -errno.ENOMEM:
        return MemoryError(detail)
    if -4096 < code < 0:
        return OSError(-code, detail or os.strerror(-code))
    return Error(detail, code)
