# SPDX-License-Identifier: Apache-2.0
"""Formats sizes, times and ratios with three digits, for reports and messages. Numbers that a program reads, such as
``error.least``, stay exact."""
import math
import re

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_BYTES = re.compile(r"(?<=\bneed )(\d+)\b(?! [a-z])|(?<=\bneeds )(\d+)\b(?! [a-z])|\b(\d+) bytes\b")


def show_size(value: float) -> str:
    """Formats bytes with three digits: ``64 MiB``."""
    number, unit = float(value), 0
    while number >= 1024 and unit < 6:
        number /= 1024
        unit += 1
    return ("%.0f %s" if unit == 0 or number >= 999.5 else "%.3g %s") % (number, _UNITS[unit])


def show_least(value: int) -> str:
    """Formats required bytes, rounded up: the formatted size is sufficient as a budget."""
    step = _digit(value)
    return show_size(math.ceil(value / step) * step)


def show_most(value: int) -> str:
    """Formats the bytes of a budget, rounded down, so it is shown as smaller than :func:`show_least` of any larger
    number."""
    step = _digit(value)
    return show_size(math.floor(value / step) * step)


def _digit(value: int) -> float:
    """Returns the bytes of one unit in the last digit of :func:`show_size`."""
    unit = 1
    while value // unit >= 1024 and unit < 1 << 60:
        unit *= 1024
    return unit if value // unit >= 100 or unit == 1 else unit / 10 if value // unit >= 10 else unit / 100


def show_sizes(text: str) -> str:
    """Formats the numbers of bytes in a line of libneap as sizes: ``all tapes need 96 KiB``."""
    return _BYTES.sub(lambda found: show_size(int(found[found.lastindex or 0])), text)


def show_time(value: float) -> str:
    """Formats seconds with three digits: ``20 ms``, ``6:40 min``."""
    if not math.isfinite(value):
        return "?"
    if value >= 60:
        whole = math.floor(value + 0.5)
        hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
        return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02} min"
    if value >= 1 or value == 0:
        return "%.3g s" % value
    for unit, part in (("ms", 1e3), ("us", 1e6)):
        if value * part >= 1:
            return "%.3g %s" % (value * part, unit)
    return "%.3g ns" % (value * 1e9)


def show_percent(ratio: float) -> str:
    """Formats a ratio in percent; ``-`` if it is not finite, ``faster`` below 0."""
    if not math.isfinite(ratio):
        return "-"
    if ratio < -0.0005:
        return "faster"
    return ("%.1f%%" if abs(ratio) < 100 else "%.3g%%") % (100 * abs(ratio))
