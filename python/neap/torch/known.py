# SPDX-License-Identifier: Apache-2.0
"""Results of previous calls of a step, kept while the step exists: measured groups, plans, leaves, needs."""
import types
import weakref
from typing import Any, Dict, List, NamedTuple, Set

from ..group_plans import Measured
from ..problems import Tier
from .compiled import Groups

__all__ = ["Known", "known_of", "nothing_known"]


class Known(NamedTuple):
    """Results of previous calls of one step: leaves that were found, whether it uses random numbers, and measured
    groups by kind."""

    leaves: List[Any]
    rng: List[bool]
    measured: Dict[Any, Measured]
    plans: Dict[Any, Any]  # see scan_choice.Facts
    tiers: Dict[Any, List[Tier]]
    needs: Set[Any]  # "grad", "walk": see Again; "made": its steps create leaves that require gradients; Arguments.kind
    groups: Groups  # compiled ones


def nothing_known() -> Known:
    """Returns the initial value, before the first call of a step."""
    return Known([], [False], {}, {}, {}, set(), Groups())


_METHODS = types.MethodType, types.BuiltinMethodType, types.MethodWrapperType
_steps: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # step -> reduce -> buffers -> Known


def known_of(step: Any, reduce: Any, buffers: Any) -> Known:
    """Returns the results of previous calls of a step with this ``reduce`` and ``buffers``, which belong to the state.
    Methods are new objects each time, so nothing is stored."""
    if type(step) in _METHODS or type(reduce) in _METHODS:
        return nothing_known()
    try:
        rows = _steps.setdefault(step, weakref.WeakKeyDictionary())
        key = known_of if reduce is None else reduce  # None has no weak references
        return rows.setdefault(key, {}).setdefault(buffers, nothing_known())
    except TypeError:  # not hashable, or without weak references
        return nothing_known()
