# SPDX-License-Identifier: Apache-2.0
"""Results of previous calls of a step, kept while the step exists: measured groups, plans, leaves, needs."""
import types
import weakref
from typing import Any, Dict, List, NamedTuple, Set

from ..problems import Tier
from .places import Places
from .timing import Measured

__all__ = ["Known", "known_of", "nothing_known"]


class Known(NamedTuple):
    """Results of previous calls of one step: leaves that were found, whether it uses random numbers, and measured
    groups by kind."""

    leaves: List[Any]
    rng: List[bool]
    measured: Dict[Any, Measured]
    plans: Dict[Any, Any]
    tiers: Dict[Any, List[Tier]]
    places: Dict[Any, Places]
    needs: Set[str]  # "grad", "walk": see Again; "made": its steps create leaves that require gradients


def nothing_known() -> Known:
    """Returns the initial value, before the first call of a step."""
    return Known([], [False], {}, {}, {}, {}, set())


_METHODS = types.MethodType, types.BuiltinMethodType, types.MethodWrapperType
_steps: "weakref.WeakKeyDictionary[Any, Known]" = weakref.WeakKeyDictionary()


def known_of(step: Any, *more: Any) -> Known:
    """Returns the results of previous calls of a step. Methods are new objects each time, so nothing is stored."""
    if type(step) in _METHODS or any(one is not None for one in more):
        return nothing_known()
    try:
        return _steps.setdefault(step, nothing_known())
    except TypeError:
        return nothing_known()
