# SPDX-License-Identifier: Apache-2.0
"""Whether a step that is done again gives the same state and output, to the bit."""
import contextlib
import ctypes
import hashlib
import warnings
from typing import Callable, Dict, Iterator, Optional, Sequence, Set

import torch

from ..errors import Error
from ..reports import stack_level

__all__ = ["Hashes", "NotDeterministic"]

FEW = 1 << 16  # bytes of a tensor that are hashed where a few steps are looked at unasked


class NotDeterministic(Error):
    """A step that was done again gave another state or output: it is no function of its arguments.
    ``step`` is its number."""

    def __init__(self, step: int):
        super().__init__(f"step {step} returned a different state or output when it was recomputed. Step {step}, or an "
                         f"earlier one, is not a deterministic function of its arguments (it may use a Python counter "
                         f"or NumPy's random numbers), or PyTorch selects different or nondeterministic kernels under "
                         f"no_grad. Make the step a pure function; use torch's random numbers; pass enable_grad=True; "
                         f"or call torch.use_deterministic_algorithms(True)")
        self.step = step


class Hashes:
    """Hashes of what steps returned: of all steps, and NotDeterministic where one differs; or of
    some, and one RuntimeWarning, or, if it ``raises``, NotDeterministic as well."""

    def __init__(self, some: Optional[Set[int]] = None, raises: bool = False) -> None:
        self._seen: Dict[int, bytes] = {}
        self._some, self._raises = some, raises or some is None
        self._explain: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def explained(self, explain: Callable[[], None]) -> Iterator[None]:
        """Inside, ``explain()`` is called if a step differs, before anything is reported; it may raise the reason."""
        self._explain = explain
        try:
            yield
        finally:
            self._explain = lambda: None

    def watches(self, t: int) -> bool:
        """True where step t is looked at."""
        return self._some is None or t in self._some

    def see(self, t: int, leaves: Sequence[torch.Tensor]) -> None:
        """Takes the state and the output that step t returned. Tells where they were others before."""
        made = hashlib.blake2b(digest_size=16)
        for leaf in leaves:
            flat = leaf.detach().cpu().contiguous()
            size = flat.numel() * flat.element_size()
            made.update(ctypes.string_at(flat.data_ptr(), size if self._raises else min(size, FEW))
                        if size else b"")
        if self._seen.setdefault(t, made.digest()) == made.digest():
            return
        self._explain()
        if self._raises:
            raise NotDeterministic(t)
        self._some = set()
        warnings.warn(f"{NotDeterministic(t)}. The gradient may differ from that of a plain loop. Only four steps were "
                      f"compared; pass check=True to compare all recomputed steps",
                      RuntimeWarning, stacklevel=stack_level())
