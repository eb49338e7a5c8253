# SPDX-License-Identifier: Apache-2.0
"""What calls of a step have taught about it, for as long as it lives: measured groups, plans, leaves, needs."""
import types
import weakref
from typing import Any, Dict, List, NamedTuple, Set

from ..problems import Tier
from .places import Places
from .timing import Measured

__all__ = ["Known", "known_of", "nothing_known"]


class Known(NamedTuple):
    """What calls of one step have taught: leaves found, whether it draws random numbers, and
    measured groups by kind."""

    leaves: List[Any]
    rng: List[bool]
    measured: Dict[Any, Measured]
    plans: Dict[Any, Any]
    tiers: Dict[Any, List[Tier]]
    places: Dict[Any, Places]
    needs: Set[str]  # "grad", "walk": see Again; "made": its steps make leaves that need gradients


def nothing_known() -> Known:
    """What is known of a step before its first call."""
    return Known([], [False], {}, {}, {}, {}, set())


_METHODS = types.MethodType, types.BuiltinMethodType, types.MethodWrapperType
_steps: "weakref.WeakKeyDictionary[Any, Known]" = weakref.WeakKeyDictionary()


def known_of(step: Any, *more: Any) -> Known:
    """What is known of a step, for as long as it lives; methods are new objects each time."""
    if type(step) in _METHODS or any(one is not None for one in more):
        return nothing_known()
    try:
        return _steps.setdefault(step, nothing_known())
    except TypeError:
        return nothing_known()
