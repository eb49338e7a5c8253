# SPDX-License-Identifier: Apache-2.0
"""Peak memory of a function call: the increase of the high-water mark of this process."""
import ctypes
import gc


def _status(key):
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


def growth(work):
    """Peak of `work` in bytes, in addition to the memory that was resident before.

    Memory that the allocator has cached is returned to the system first; otherwise it would hide the same amount.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # resets the high-water mark
    before = _status("VmHWM")
    work()
    return _status("VmHWM") - before
