# SPDX-License-Identifier: Apache-2.0
"""Inputs that are a function of t: whether it returns the same values each time, in memory of the caller or not."""
from typing import Any, List, Set

import torch

from ..errors import UsageError
from .device import Generators, generator_kept, get_rng, set_rng
from .measure import addresses
from .runs import Run
from .trees import equal, tensors_in

__all__ = ["shared"]


def shared(run: Run, random: Generators, verified: bool) -> Set[int]:
    """Returns the storages that contain the inputs of both the first and the last step: they are owned by the caller,
    and not part of a tape.

    :param verified: True: it is known that the function returns the same values each time.
    :raises UsageError: if it does not.
    """
    with generator_kept(random), torch.no_grad():
        before = get_rng(random)
        first = run.input(0)
        kept = [] if verified else [x.detach().clone() for x in tensors_in(first)]
        last = run.input(run.steps - 1)  # both are kept alive while they are compared
        found = addresses(tensors_in(first)) & addresses(tensors_in(last))
        if not verified:
            _compare(kept, first, f"inputs(0) and inputs({run.steps - 1}) share memory, so the second call overwrote "
                                  f"the first. Return a new tensor for each t, for example buffer.clone()")
            set_rng(random, before)
            _compare(kept, run.input(0), "inputs(0) returned different values on a second call. Steps are recomputed, "
                                         "so inputs(t) must return the same values for the same t. Remove randomness "
                                         "or a running position from the function, or pass tensors")
    return found


def _compare(kept: List[torch.Tensor], tree: Any, message: str) -> None:
    now = tensors_in(tree)
    if len(now) != len(kept) or not all(equal(a, b) for a, b in zip(kept, now)):
        raise UsageError(message)
