# SPDX-License-Identifier: Apache-2.0
"""Numbers with units: read as the tool reads them, shown as it shows them, refused as it refuses."""
import random

import pytest

import neap
from neap import show, units


@pytest.mark.parametrize("text, bytes_", [
    ("0", 0), ("4096", 4096), ("4096B", 4096), ("64K", 65536), ("64k", 65536), ("64KB", 65536),
    ("64KiB", 65536), ("1.5G", 3 << 29), ("1e3", 1000), (".5K", 512), ("2P", 1 << 51),
    ("9223372036854775807", 2**63 - 1), (7, 7), (7.0, 7), (2**64 - 1, 2**64 - 1)])
def test_sizes(text, bytes_):
    assert units.size(text, "it") == bytes_


@pytest.mark.parametrize("text", ["", "K", "4 K", "4Q", "-1", "-0", "0x10", "inf", "nan", "1e400", "4KK",
                                  "9223372036854775808", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT FOUR}",
                                  "4K\n", 1.5, -1, 2**64, None, True, [], b"4"])
def test_no_sizes(text):
    with pytest.raises(neap.UsageError, match="^it: "):
        units.size(text, "it")


@pytest.mark.parametrize("text, seconds", [
    ("2", 2), ("2s", 2), ("20ms", 0.02), ("100us", 1e-4), ("7ns", 7e-9), ("1min", 60), ("1h", 3600),
    (0.25, 0.25), ("1e-3", 1e-3), (0, 0)])
def test_times(text, seconds):
    assert units.seconds(text, "it") == seconds


@pytest.mark.parametrize("text", ["", "ms", "2 ms", "2m", "-1", "-0s", "inf", "nan", -1, float("inf"),
                                  float("nan"), None, []])
def test_no_times(text):
    with pytest.raises(neap.UsageError, match="^it: "):
        units.seconds(text, "it")


@pytest.mark.parametrize("text, rate", [("500M", 500 << 20), ("500M/s", 500 << 20), ("0.5B/s", 0.5),
                                        (None, 0), ("inf", 0), (5e8, 5e8)])
def test_rates(text, rate):
    assert units.rate(text, "it") == rate


@pytest.mark.parametrize("text", ["", "0", "/s", "-1", "5/h", 0, -1, float("nan")])
def test_no_rates(text):
    with pytest.raises(neap.UsageError, match="^it: "):
        units.rate(text, "it")


def test_shown():
    assert [show.show_size(n) for n in (0, 999, 1024, 65536, 1023 * 1024, 2**63)] == \
        ["0 B", "999 B", "1 KiB", "64 KiB", "1023 KiB", "8 EiB"]
    assert [show.show_time(s) for s in (0, 1e-9, 2e-5, 0.02, 1.5, 59.4, 60, 3600, 7325.4)] == \
        ["0 s", "1 ns", "20 us", "20 ms", "1.5 s", "59.4 s", "1:00 min", "1:00:00", "2:02:05"]
    assert [show.show_percent(r) for r in (0, 0.3333, 250, float("inf"), -0.37)] == ["0.0%", "33.3%", "2.5e+04%", "-", "faster"]


def test_shown_budgets():
    """A budget that is shown as needed is enough when it is passed, and reads as more than any that is too small."""
    assert [show.show_least(n) for n in (0, 1023, 1024, 1025, 3288, 12672, 98304, 1023 * 1024 + 1)] == \
        ["0 B", "1023 B", "1 KiB", "1.01 KiB", "3.22 KiB", "12.4 KiB", "96 KiB", "1 MiB"]
    assert [show.show_most(n) for n in (0, 1023, 1024, 3288, 65535, 65536)] == \
        ["0 B", "1023 B", "1 KiB", "3.21 KiB", "63.9 KiB", "64 KiB"]
    pick = random.Random(5)
    for _ in range(2000):
        least = int(2**pick.uniform(0, 44))
        shown = show.show_least(least).replace(" ", "")
        assert least <= units.size(shown, "memory") <= least * 1.011 + 1
        few = pick.choice([least - 1, pick.randrange(least)])
        assert units.size(show.show_most(few).replace(" ", ""), "memory") <= few < units.size(shown, "memory")
        assert show.show_most(few) != show.show_least(least)


def test_sizes_of_lines():
    for line, shown in (("all tapes need 110592 bytes", "all tapes need 108 KiB"), ("1 slot and a tape need 13312",
                        "1 slot and a tape need 13 KiB"), ("no strategy fits 4000 bytes", "no strategy fits 3.91 KiB"),
                        ("two chains need 4 slots at least", "two chains need 4 slots at least"),
                        ("needs 4096: one slot, for x_0, and a tape", "needs 4 KiB: one slot, for x_0, and a tape")):
        assert show.show_sizes(line) == shown
