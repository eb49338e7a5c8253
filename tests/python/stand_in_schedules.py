# SPDX-License-Identifier: Apache-2.0
"""A stand-in for checkpoint_schedules where that package is not installed: its actions and its base class, as far as
neap.schedules and its tests use them. `theirs` is the package or the stand-in; the stand-in does not stay among the
imported modules, so tests that need the package itself are still skipped."""
import enum
import sys
import types
from typing import NamedTuple


class StorageType(enum.Enum):
    RAM, DISK, WORK, NONE = 0, 1, -1, None


class Forward(NamedTuple):
    n0: int
    n1: int
    write_ics: bool
    write_adj_deps: bool
    storage: StorageType


class Reverse(NamedTuple):
    n1: int
    n0: int
    clear_adj_deps: bool


class Copy(NamedTuple):
    n: int
    from_storage: StorageType
    to_storage: StorageType


class Move(NamedTuple):
    n: int
    from_storage: StorageType
    to_storage: StorageType


class EndForward(NamedTuple):
    pass


class EndReverse(NamedTuple):
    pass


class CheckpointSchedule:
    def __init__(self, max_n=None):
        if max_n is not None and max_n < 1:
            raise ValueError("max_n must be at least 1")
        self._n, self._r, self._max_n, self._actions = 0, 0, max_n, None

    def __iter__(self):
        return self

    def __next__(self):
        if self._actions is None:
            self._actions = self._iterator()
        return next(self._actions)

    n = property(lambda self: self._n)
    r = property(lambda self: self._r)
    max_n = property(lambda self: self._max_n)


NAME = "checkpoint_schedules"
try:
    import checkpoint_schedules as theirs
except ImportError:
    theirs = types.ModuleType(NAME)
    theirs.__dict__.update({made.__name__: made for made in (
        StorageType, Forward, Reverse, Copy, Move, EndForward, EndReverse, CheckpointSchedule)})
    sys.modules[NAME] = theirs
from neap.schedules import Schedule  # noqa: E402, F401

if not hasattr(theirs, "__file__"):
    del sys.modules[NAME]
