# SPDX-License-Identifier: Apache-2.0
"""A device without free memory: BudgetError, with a budget for which there is a plan."""
import contextlib
import traceback
from typing import Callable, Iterator, Optional, Tuple

import torch

from ...errors import BudgetError
from ...reports import Report
from ...show import show_least, show_size

__all__ = ["device_memory"]


@contextlib.contextmanager
def device_memory(memory: Optional[int], place: torch.device, enough: Callable[[int], Tuple[int, int]],
                  report: Report) -> Iterator[None]:
    """Context manager that raises BudgetError if the device runs out of memory.

    :param enough: returns, for a number of bytes, anything and a number from there on for which there is a plan; without
        the reserved bytes of the report ``report``.
    """
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.cuda.OutOfMemoryError):
            raise
        traceback.clear_frames(error.__traceback__)  # they reference the memory of the steps that failed
        reason = str(error).splitlines()[0].rstrip(".")
    else:
        return
    try:
        least = enough(1)[1] + report.charged
    except Exception:  # there is too little for one step
        least = 0
    given = "without memory=" if memory is None else f"memory={show_size(memory)}"
    wanted = "Free memory of the device" if least <= report.charged else \
        f"{'Pass' if memory is None else 'Reduce'} memory: at least {show_least(least)} (error.least), at most what " \
        f"is free in addition to inputs, outputs and the temporary memory of one group of steps"
    raise BudgetError(f"{given}: {place} has no memory left: {reason}. {wanted}", least=least)
