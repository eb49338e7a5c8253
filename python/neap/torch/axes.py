# SPDX-License-Identifier: Apache-2.0
"""Inputs whose first dimension seems to be the batch instead of the time."""
import contextlib
import sys
import warnings
from typing import Callable, Iterator, List, Optional, Sequence

import torch

from ..reports import stack_level
from .trees import Tree, tensors_in

__all__ = ["explained", "look"]


def _first(tensors: Optional[Sequence[torch.Tensor]]) -> Optional[torch.Tensor]:
    rows = tensors or ()
    return rows[0] if len(rows) == 1 and rows[0].dim() >= 3 else None


@contextlib.contextmanager
def explained(start: List[torch.Tensor], inputs: Optional[List[torch.Tensor]],
              swapped: Callable[[], bool]) -> Iterator[None]:
    """Adds a note to errors of steps if the inputs seem to be (batch, T, ...), because their first dimension is that of
    the state, and their second is not; or if the step works with ``swapped`` arguments."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if sys.version_info >= (3, 11):
            with contextlib.suppress(Exception):  # nested tensors have no shape
                _explain(error, start, inputs)
                if swapped():
                    error.add_note("neap: the step works if it is called with (input, state, t), but a scan calls "
                                   "step(state, input, t). Swap its first two arguments")
        raise


def _explain(error: Exception, start: List[torch.Tensor], inputs: Optional[List[torch.Tensor]]) -> None:
    batches = {h.shape[0] for h in start if h.dim() >= 2}
    rows = [x for x in inputs or () if x.dim() >= 2]
    x = next((x for x in rows if x.dim() >= 3), None)
    if x is not None and all(batches == {row.shape[0]} and row.shape[1] not in batches for row in rows):
        error.add_note(f"neap: a scan runs over the first dimension of its inputs, so with inputs of shape "
                       f"{tuple(x.shape)} it has {x.shape[0]} steps of shape {tuple(x.shape[1:])}. If the inputs are "
                       f"(batch, T, ...), pass x.transpose(0, 1){' for each of them' if len(rows) > 1 else ''}")


def look(start: List[torch.Tensor], inputs: Optional[List[torch.Tensor]], last: Tree) -> None:
    """Warns if the inputs seem to be (batch, T, ...): the first dimension of the state was broadcast to the second
    dimension of the inputs, which is longer than the first."""
    x = _first(inputs)
    if x is None or x.shape[0] >= x.shape[1]:
        return
    for before, after in zip(start, tensors_in(last)):
        if after.dim() and after.shape[0] == x.shape[1] and (before.dim() < after.dim() or
                                                             before.shape[0] != after.shape[0]):
            warnings.warn(f"the state of shape {tuple(before.shape)} became {tuple(after.shape)}: with inputs of shape "
                          f"{tuple(x.shape)} the scan has {x.shape[0]} steps of shape {tuple(x.shape[1:])}. If the "
                          f"inputs are (batch, T, ...), pass x.transpose(0, 1); otherwise pass an initial state of "
                          f"shape {tuple(after.shape)}", RuntimeWarning, stacklevel=stack_level())
            return
