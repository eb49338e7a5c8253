# SPDX-License-Identifier: Apache-2.0
"""Checks whether a recomputed step has a bit-identical state and output, and whether its backward step is linear."""
import contextlib
import ctypes
import hashlib
import warnings
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Set, Tuple

import torch

from ..errors import Error
from ..reports import stack_level

__all__ = ["Hashes", "Linear", "NotDeterministic"]

FEW = 1 << 16  # bytes of a tensor that are hashed if only a few steps are compared


class NotDeterministic(Error):
    """A recomputed step returned a different state or output, so it is not a deterministic function of its
    arguments. ``step`` is its number."""

    def __init__(self, step: int):
        super().__init__(f"step {step} returned a different state or output when it was recomputed. Step {step}, or an "
                         f"earlier one, is not a deterministic function of its arguments (it may use a Python counter "
                         f"or NumPy's random numbers), or PyTorch selects different or nondeterministic kernels under "
                         f"no_grad. Make the step, and inputs if it is a function, pure functions; use torch's random numbers; pass enable_grad=True; "
                         f"or call torch.use_deterministic_algorithms(True)")
        self.step = step


class Hashes:
    """Hashes of the results of steps. If all steps are compared, a difference raises NotDeterministic; if only
    ``some``, it is one RuntimeWarning or, if ``raises`` is set, also NotDeterministic."""

    def __init__(self, some: Optional[Set[int]] = None, raises: bool = False) -> None:
        self._seen: Dict[int, bytes] = {}
        self._some, self._raises = some, raises or some is None
        self._explain: Callable[[], None] = lambda: None

    @contextlib.contextmanager
    def explained(self, explain: Callable[[], None]) -> Iterator[None]:
        """Context manager in which ``explain()`` is called before a difference is reported; it may raise the reason."""
        self._explain = explain
        try:
            yield
        finally:
            self._explain = lambda: None

    def watches(self, t: int) -> bool:
        """True if step t is compared."""
        return self._some is None or t in self._some

    def see(self, t: int, leaves: Sequence[torch.Tensor]) -> None:
        """Hashes the state and the output that step t returned; reports if they differ from the previous ones."""
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


class Linear:
    """Checks whether vector-Jacobian products are linear in the incoming gradients.

    The products of PyTorch's operations are. A hook or a custom Function that clamps or normalizes gradients is not,
    nor is a Function that can be differentiated only once, which torch.autograd.grad does not report. Second
    derivatives are sums of products, whereas plain autograd takes one product of a sum. A linear f satisfies f(g) =
    f'(g) g: the two sides are compared by their scalar products with the cotangents at which f is differentiated.
    """

    def __init__(self, states: Sequence[torch.Tensor]):
        exact = all([x.dtype in (torch.float64, torch.complex128) for x in states])
        self._most = 1e-6 if exact else 0.05  # chosen: rounding of bfloat16 in a step, or of TF32, is 0.4%
        self._worst: Any = None

    def see(self, first: Sequence[Any], cotangents: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> None:
        """Takes f at ``given`` as ``first``, and the gradients of ``given`` at ``cotangents`` as ``found``."""
        # Some of PyTorch's operations have gradients without a graph, such as products with sparse tensors.
        made = [None if x is None or not x.requires_grad else x for x in first]
        a, scale = _dot(made, cotangents)
        b, _ = _dot(given, found)
        ratio = torch.as_tensor(abs(a - b) / (scale + 1e-30))
        self._worst = ratio if self._worst is None else torch.maximum(self._worst, ratio)

    def check(self) -> None:
        """Raises RuntimeError if a product was not linear."""
        if self._worst is not None and bool(self._worst > self._most):
            raise RuntimeError("double_backward: the step's backward is not a linear function of its gradient; a hook "
                               "or a custom autograd.Function may clamp or normalize gradients, or be marked with "
                               "@once_differentiable. Its second derivatives may be wrong. Clamp gradients outside the "
                               "scan, or use a plain loop")


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Tuple[Any, Any]:
    """Returns the real part of the scalar product of two lists of tensors, and the norm of the products in it."""
    rows = [_real(x) * _real(y) for x, y in zip(a, b) if x is not None and y is not None]
    return sum([row.sum() for row in rows]), sum([row.norm() ** 2 for row in rows]) ** 0.5


def _real(x: torch.Tensor) -> torch.Tensor:
    """Converts to real, dense numbers of at least single precision."""
    x = x.detach() if x.layout == torch.strided else x.detach().to_dense()
    x = torch.view_as_real(x.resolve_conj()) if x.is_complex() else x
    return x if x.dtype == torch.float64 else x.float()
