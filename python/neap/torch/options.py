# SPDX-License-Identifier: Apache-2.0
"""Validation of the arguments of scans."""
import warnings
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import torch

from .. import units
from ..errors import UsageError, stack_level
from ..group_plans import Costs
from ..stores import Paths
from ..units import Size

__all__ = ["Options", "options"]


class Options(NamedTuple):
    """Arguments of a scan; described in :func:`neap.torch.scan`."""

    params: Optional[List[torch.Tensor]]
    memory: Optional[int]
    group: Optional[int]
    strategy: str
    reduce: Optional[Callable[..., Any]]
    rng: Optional[bool]
    strict: bool
    costs: Optional[Costs]
    slow: Optional[Paths]
    host: Optional[int]
    check: bool
    count: bool
    buffers: Optional[str]
    double: bool
    enable_grad: Optional[bool]
    compile: bool

    @property
    def tiers(self) -> Any:
        """The arguments that the tiers of a plan depend on."""
        return repr(self.slow), self.host


def options(params: Any, memory: Optional[Size], group: Optional[int], strategy: str, reduce: Any,
            rng: Optional[bool], strict: bool, costs: Optional[Sequence[float]], slow: Optional[Paths],
            host: Optional[Size], check: bool, count: bool, buffers: Optional[str], double: bool,
            enable_grad: Optional[bool], compile: bool) -> Options:
    """Converts the arguments of a scan to Options; raises UsageError if one is invalid."""
    if group is not None and units.count(group, "group") < 1:
        raise UsageError(f"group={group} is not valid: a graph has at least 1 step. Pass 1 or more, or None to let "
                         f"neap choose")
    if buffers not in (None, "state"):
        raise UsageError(f"buffers={buffers!r} is not valid; pass 'state' or None")
    if enable_grad not in (None, False, True):
        raise UsageError(f"enable_grad={enable_grad!r} is not valid; pass True, False or None")
    if compile and host is not None:
        raise UsageError("compile=True cannot be combined with host=: tapes of compiled groups are not offloaded to host "
                         "memory. Remove one of them")
    if compile and not hasattr(torch, "compile"):
        raise UsageError(f"compile=True needs PyTorch 2, but this is PyTorch {torch.__version__}. Upgrade PyTorch, or "
                         f"remove compile=True")
    if reduce is not None and not callable(reduce):
        raise UsageError(f"reduce={reduce!r} is not a function. Pass reduce(output, t), whose results are added up; for "
                         f"the sum of the outputs: reduce=lambda output, t: output")
    if memory is None and strategy in ("auto", "bptt"):
        for name, value in (("slow", slow), ("host", host)):
            if value is not None:
                warnings.warn(f"{name}={value!r} has no effect without memory=: without a budget everything stays in "
                              f"memory. Pass memory=", RuntimeWarning, stacklevel=stack_level())
    if isinstance(params, torch.nn.Module):
        params = params.parameters()
    if isinstance(params, torch.Tensor):
        params = [params]
    if costs is not None and (not isinstance(costs, (tuple, list)) or len(costs) != len(Costs._fields)):
        raise UsageError(f"costs={costs!r} is not three numbers: seconds per advanced, recorded and reversed step")
    return Options(None if params is None else list(params),
                   None if memory is None else units.size(memory, "memory"), group, strategy,
                   reduce, rng, strict, None if costs is None else Costs(*costs), slow,
                   None if host is None else units.size(host, "host"), check, count, buffers, double, enable_grad,
                   bool(compile))
