# SPDX-License-Identifier: Apache-2.0
"""Parses sizes, times and rates, given as numbers or as strings: ``"64M"``, ``"20ms"``, ``"500M/s"``.

The syntax is that of the options of the ``neap`` tool: K, M, G, T and P are powers of 1024, with or without ``B`` or
``iB``; times end in s, ms, us, ns, min or h; without a unit they are seconds.
"""
import math
import re
from typing import Optional, Set, Union

from .errors import UsageError

Size = Union[int, float, str]
Seconds = Union[int, float, str]

_NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_SIZE = re.compile(_NUMBER + r"(?:([kKmMgGtTpP])(?:iB|B)?|B)?")
_TIME = re.compile(_NUMBER + r"(s|ms|us|ns|min|h)?")
# Parts of a second are divisors, so that 100us is the double nearest to 1e-4.
_TIMES = {None: (1, 1), "s": (1, 1), "ms": (1, 1e3), "us": (1, 1e6), "ns": (1, 1e9),
          "min": (60, 1), "h": (3600, 1)}


def _whole(value: object, name: str, most: int, least: int = 0) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") and not isinstance(value, float):
        raise UsageError(f"{name}: {value!r} is not a number; expected an integer of {least} or more")
    if isinstance(value, float) and not (math.isfinite(value) and value == int(value)):
        raise UsageError(f"{name}: {value!r} is not a whole number; expected an integer of {least} or more")
    number = int(value)  # type: ignore[call-overload]
    if not least <= number <= most:
        raise UsageError(f"{name}: {number} is out of range; expected an integer from {least} to {most}")
    return number


def count(value: object, name: str) -> int:
    """Returns an integer of at least 0, such as a number of steps or slots."""
    return _whole(value, name, 2**63 - 1)


def steps_of(lengths: Set[int], steps: Optional[int], what: str) -> int:
    """Returns the number of steps of a loop: ``steps`` if given, else the length of the inputs.

    :param lengths: the first dimensions of inputs; -1: no dimension.
    :param what: name of the inputs in messages.
    :raises UsageError: if the lengths differ, are missing, or are shorter than ``steps``.
    """
    if len(lengths) > 1 or -1 in lengths:
        found = " and ".join("none" if length < 0 else str(length) for length in sorted(lengths, reverse=True))
        raise UsageError(f"inputs: all {what}s must have the same length T in their first dimension; got lengths "
                         f"{found}. For batch-first data pass x.swapaxes(0, 1)")
    if not lengths and steps is None:
        raise UsageError("steps is required because inputs is a function (or None) and has no length. Pass steps=T")
    longest = max(lengths, default=0)
    found = count(longest if steps is None else steps, "steps")
    if found < 1:
        raise UsageError("the loop has 0 steps, but needs at least 1. Pass a larger steps, or longer inputs")
    if lengths and found > longest:
        raise UsageError(f"steps={found}, but inputs have {longest} steps. Pass steps between 1 and {longest}")
    return found


def size(value: Size, name: str) -> int:
    """Parses bytes: an integer, or a string such as ``"64M"``. UsageError shows an invalid value."""
    if not isinstance(value, str):
        return _whole(value, name, 2**64 - 1)
    match = _SIZE.fullmatch(value)
    number = float(match.group(1)) if match else math.nan
    if match and value.isascii() and value.isdigit():
        return _whole(int(value), name, 2**63 - 1)
    if match and match.group(2):
        number = math.ldexp(number, 10 * ("KMGTP".index(match.group(2).upper()) + 1))
    if not 0 <= number < 2**63 or math.copysign(1, number) < 0:
        raise UsageError(f"{name}: {value!r} is not a size; expected a number of bytes, such as 4096, '64K' or '1.5G'")
    return int(number)


def seconds(value: Seconds, name: str) -> float:
    """Parses seconds of at least 0: a number, or a string such as ``"20ms"``."""
    number = math.nan
    if isinstance(value, str):
        match = _TIME.fullmatch(value)
        if match:
            times, parts = _TIMES[match.group(2)]
            number = float(match.group(1)) * times / parts
    else:
        try:
            number = float(value)
        except (TypeError, ValueError):
            pass
    if not 0 <= number < math.inf or math.copysign(1, number) < 0 and isinstance(value, str):
        raise UsageError(f"{name}: {value!r} is not a time; expected seconds of 0 or more, such as 0.02 or '20ms'")
    return number


def rate(value: Optional[Size], name: str) -> float:
    """Parses bytes per second, above 0; None or ``"inf"``: 0, for transfers that take no time."""
    if value is None or value == "inf" or value == math.inf:
        return 0.0
    if isinstance(value, str):
        plain = value[:-2] if value.endswith("/s") and len(value) > 2 else value
        match = _SIZE.fullmatch(plain)
        number = float(match.group(1)) if match else math.nan
        if match and match.group(2):
            number = math.ldexp(number, 10 * ("KMGTP".index(match.group(2).upper()) + 1))
    else:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"{name}: {value!r} is not a rate; expected bytes per second above 0, such as 5e8 or '500M/s'")
    return number
