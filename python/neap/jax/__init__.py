# SPDX-License-Identifier: Apache-2.0
"""neap.jax: gradients of long time loops in JAX with a memory budget, by gradient checkpointing.

``scan`` replaces ``jax.lax.scan`` inside jit, grad and vmap::

    import neap.jax as nj
    last, outputs = nj.scan(step, carry, xs, memory="1G")  # step(carry, x) -> (carry, output)

``value_and_grad`` runs its own Python loop over compiled groups of steps, and can offload states to files::

    vg = nj.value_and_grad(step, loss, memory="1G")  # step(params, state, input) -> (state, output)
    value, gradient = vg(params, state, inputs)      # inputs: [T, ...]
    print(vg.report())

"Long time loops in JAX" in the documentation is a guide to all arguments and limits.
"""
try:
    import jax  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.jax needs JAX, which is not installed: pip install 'neap-bptt[jax]'") from error

from ..reports import Report
from .gradients import ValueAndGrad, value_and_grad
from .measuring import measure
from .planning import Costs, ScanPlan
from .scan import scan
from .scan_report import ScanReport, report

__all__ = ["Costs", "Report", "ScanPlan", "ScanReport", "ValueAndGrad", "measure", "report", "scan", "value_and_grad"]
