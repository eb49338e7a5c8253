# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a piece of work: how far the high-water mark of this process rises."""
import ctypes
import gc


def _status(key):
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


def growth(work):
    """Bytes that `work` took at its peak beyond what was resident before.

    What the allocator kept from earlier work is given back first: it would hide as much.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the mark starts anew
    before = _status("VmHWM")
    work()
    return _status("VmHWM") - before
