# SPDX-License-Identifier: Apache-2.0
"""The primitive ``neap_scan``, an identity that marks the results of a scan.

It carries the plan of the scan, so a report can find it in a traced program, and it rejects reverse-mode
differentiation of a gradient with an error. Forward mode passes through. XLA removes it.
"""
from typing import Any, List, Sequence

from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..errors import UsageError

__all__ = ["PRIMITIVE", "marked"]

PRIMITIVE = Primitive("neap_scan")
PRIMITIVE.multiple_results = True


def marked(leaves: Sequence[Any], note: Any) -> List[Any]:
    """Returns the arrays unchanged. ``note`` is hashable; None for a mark without a plan."""
    return PRIMITIVE.bind(*leaves, note=note) if leaves else []


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], note: Any) -> Any:
    return marked(primals, note), marked([ad.instantiate_zeros(t) for t in tangents], None)


def _transpose(*_: Any, note: Any) -> Any:
    raise UsageError("the gradient of neap.jax.scan was differentiated in reverse mode (grad of grad), which is not "
                     "supported. Use forward mode over it, jax.jvp(jax.grad(f), ...) or jax.jacfwd(jax.grad(f)), or "
                     "pass memory=None")


PRIMITIVE.def_impl(lambda *leaves, note: list(leaves))
PRIMITIVE.def_abstract_eval(lambda *leaves, note: list(leaves))
ad.primitive_jvps[PRIMITIVE] = _jvp
ad.primitive_transposes[PRIMITIVE] = _transpose
batching.primitive_batchers[PRIMITIVE] = lambda leaves, dims, note: (marked(leaves, note), dims)
mlir.register_lowering(PRIMITIVE, lambda _, *leaves, note: leaves)
