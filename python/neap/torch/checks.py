# SPDX-License-Identifier: Apache-2.0
"""Whether a step that is done again gives the same state and output, to the bit."""
import ctypes
import hashlib
from typing import Dict, Sequence

import torch

from ..errors import Error

__all__ = ["Hashes", "NotDeterministic"]


class NotDeterministic(Error):
    """A step that was done again gave another state or output: it is no function of its arguments.
    ``step`` is its number."""

    def __init__(self, step: int):
        super().__init__(f"step {step} gave another state or output when it was done again: it, or a step before it, depends "
                         f"on more than its arguments, or its kernels are not deterministic")
        self.step = step


class Hashes:
    """Hashes of what each step returned."""

    def __init__(self) -> None:
        self._seen: Dict[int, bytes] = {}

    def see(self, t: int, leaves: Sequence[torch.Tensor]) -> None:
        """Takes the state and the output that step t returned. NotDeterministic where they were others before."""
        made = hashlib.blake2b(digest_size=16)
        for leaf in leaves:
            flat = leaf.detach().cpu().contiguous()
            made.update(ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size())
                        if flat.numel() else b"")
        if self._seen.setdefault(t, made.digest()) != made.digest():
            raise NotDeterministic(t)
