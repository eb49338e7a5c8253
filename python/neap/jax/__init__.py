# SPDX-License-Identifier: Apache-2.0
"""neap.jax: gradients of long time loops in JAX with a memory budget, by gradient checkpointing::

    import neap.jax as nj
    vg = nj.value_and_grad(step, loss, memory="1G")  # step(params, state, input) -> (state, output)
    value, gradient = vg(params, state, inputs)      # inputs: [T, ...]
    print(vg.report())

"neap for Python" in the documentation is a guide to all arguments and limits.
"""
try:
    import jax  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.jax needs JAX, which is not installed: pip install 'neap-bptt[jax]'") from error

from ..reports import Report
from .gradients import ValueAndGrad, value_and_grad

__all__ = ["Report", "ValueAndGrad", "value_and_grad"]
