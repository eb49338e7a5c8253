# SPDX-License-Identifier: Apache-2.0
"""Host memory and files as tiers for the planner, with measured rates of the copies of a device.

A copy takes a fixed time and a time per byte; both follow from copies of two sizes. A bus may be slower in each
direction while the other is used: copies in both directions at once are measured as well, and if they take as long as
one after the other, the directions share their rate.
"""
import time
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from ...problems import Tier
from ...stores import OpenTier, Paths, measured_tiers
from ..device import Device

__all__ = ["Rates", "device_tiers", "rates_of"]

SIZES = 1 << 16, 1 << 24  # bytes of the two copies; chosen: 16 MiB take 0.3 ms over PCIe 5
ROUNDS = 5  # copies of each kind; the fastest counts
SHARED = 0.75  # of the sum of both times: directions that are faster together than this have separate rates


class Rates(NamedTuple):
    """Bytes per second of copies from and to a device, and fixed seconds per copy; ``cpu``: seconds of computing time
    lost per byte."""

    out: float
    into: float
    out_fixed: float
    into_fixed: float
    duplex: bool
    cpu: float = 0.0


_known: "weakref.WeakKeyDictionary[Device, Dict[int, Rates]]" = weakref.WeakKeyDictionary()  # by bytes of a copy


def _line(small: Tuple[int, float], large: Tuple[int, float]) -> Tuple[float, float]:
    """Returns rate and fixed seconds of copies that took these seconds."""
    rate = max(1.0, large[0] - small[0]) / max(1e-9, large[1] - small[1])
    return rate, max(0.0, small[1] - small[0] / rate)


def rates_of(device: Device, place: torch.device, most: int) -> Rates:
    """Returns the rates of copies between a device and host memory, measured once with at most ``most`` bytes of the
    device."""
    large = max(2, min(SIZES[1], most // 2))
    known = _known.setdefault(device, {})
    if large not in known:
        known[large] = _measured(device, place, large)
    return known[large]


def _measured(device: Device, place: torch.device, large: int) -> Rates:
    """Measures copies of up to ``large`` bytes."""
    small = max(1, min(SIZES[0], large // 2))
    rows = [torch.zeros(large, dtype=torch.uint8, device=place) for _ in range(2)]
    block = device.slabs.take(2 * large)
    halves = block.host[:large], block.host[large:2 * large]

    def out(size: int) -> Any:
        return device.copy_out([rows[0][:size]], halves[0], [device.now()])

    def into(size: int) -> Any:
        return device.copy_in(halves[1], [rows[1][:size]], [device.now()])

    def seconds(copies: List[Callable[[int], Any]], size: int) -> float:
        found = []
        for _ in range(ROUNDS):
            device.now().finish()
            begin = time.perf_counter()
            for ticket in [copy(size) for copy in copies]:
                ticket.finish()
            found.append(time.perf_counter() - begin)
        return min(found)
    try:
        for one in (out, into):  # the first copy is slower: pages, and streams of a device
            one(large).finish()
        times = [seconds([one], large) for one in (out, into)]
        write, read = [_line((small, seconds([one], small)), (large, whole)) for one, whole in zip((out, into), times)]
        both = seconds([out, into], large)
    finally:
        device.slabs.give(block)
    duplex = not device.blocking and both < SHARED * sum(times)
    slower = max(1.0, both / max(times)) if duplex else 1.0
    return Rates(write[0] / slower, read[0] / slower, write[1], read[1], duplex,
                 2 / (write[0] + read[0]) if device.blocking else 0.0)


def _through(tier: OpenTier, rates: Rates) -> OpenTier:
    """Returns a tier of a CPU as a device reaches it: each record is copied from or to host memory as well."""
    found = tier.bounded(None, rates.cpu)
    raw = found.raw
    raw.write_rate, raw.read_rate = [min(a or b, b) for a, b in ((raw.write_rate, rates.out),
                                                                 (raw.read_rate, rates.into))]
    raw.write_fixed += rates.out_fixed
    raw.read_fixed += rates.into_fixed
    raw.staging = 0  # it is in host memory, not in device memory
    return found


def device_tiers(device: Device, place: torch.device, nbytes: int, most: int, host: Optional[int],
                 slow: Optional[Paths], seconds: float) -> List[OpenTier]:
    """Returns the tiers of an Offload, for records of ``nbytes``.

    :param most: bytes of the device for the measurement.
    :param host: bytes of host memory; None: it is not a tier.
    :param seconds: of measuring each tier of ``slow``.
    """
    rates = rates_of(device, place, most)
    found = [] if slow is None else [_through(tier, rates) for tier in measured_tiers(slow, nbytes, seconds)]
    if host is not None:
        spec = Tier(write=rates.out, read=rates.into, capacity=host, name="host", duplex=rates.duplex,
                    cpu=rates.cpu).spec()
        spec.write_fixed, spec.read_fixed = rates.out_fixed, rates.into_fixed
        found.insert(0, OpenTier(spec))
    return found
