# SPDX-License-Identifier: Apache-2.0
"""PyTorch around a scan: transforms of functions, forward-mode derivatives, tracers, tensor subclasses, torch.compile.

A scan divides its graph into groups that it records and differentiates itself, which transforms and tracers do not
support. Without a budget it is then a plain loop; torch.compile runs it eagerly.
"""
import functools
import sys
from typing import Any, Callable, Iterable, List, Optional, TypeVar, cast

import torch

from ..errors import UsageError
from ..show import show_size

__all__ = ["check_backward", "check_compiled", "check_second", "transformed", "uncompiled"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_functorch = getattr(torch._C, "_functorch", None)
_peek = getattr(_functorch, "peek_interpreter_stack", None)  # since PyTorch 2.0
_active = getattr(_functorch, "are_transforms_active", None)  # before
_modes = getattr(torch._C, "_TorchDispatchModeKey", None)  # since PyTorch 2.1
_ORDINARY = torch.Tensor.__torch_dispatch__
_WHY = "a scan records and recomputes its own graphs, which torch.compile cannot trace. Compile the step instead"


def _functional() -> bool:
    """True inside a transform of torch.func, or of the older vmap that is_grads_batched=True uses."""
    if _peek() is not None if _peek is not None else _active is not None and _active():
        return True
    if not hasattr(torch._C, "_vmapmode_increment_nesting"):
        return False
    level = torch._C._vmapmode_increment_nesting()  # there is no function that only returns the level
    torch._C._vmapmode_decrement_nesting()
    return level > 1


def _dual() -> bool:
    """True inside torch.autograd.forward_ad.dual_level."""
    return torch.autograd.forward_ad._current_level >= 0


def _transform(tensors: Iterable[torch.Tensor]) -> Optional[str]:
    """Returns a name for the transform or tracer that is active, or for tensors with their own operations; else
    None."""
    if _functional():
        return "a transform of torch.func (vmap, grad, vjp, jvp, jacrev, jacfwd, hessian)"
    if _dual():
        return "forward-mode differentiation (torch.autograd.forward_ad)"
    if torch._C._get_tracing_state() is not None:
        return "torch.jit.trace"
    keys = () if _modes is None else (_modes.FAKE, _modes.PROXY)
    if any([torch._C._get_dispatch_mode(key) is not None for key in keys]):
        return "a mode of fake tensors or of make_fx"
    for x in tensors:
        if type(x) is not torch.Tensor and type(x).__torch_dispatch__ is not _ORDINARY:
            name = type(x).__name__
            return f"tensors of type {name}" + (" (fully_shard: shard a module around the scan, not its cell)"
                                                if name == "DTensor" else "")
    return None


def transformed(tensors: Iterable[torch.Tensor], memory: Optional[int], kind: str) -> bool:
    """True if PyTorch transforms or traces operations on these tensors, which must then run as a plain loop.

    :param kind: the object with the budget, for the message.
    :raises UsageError: if there is a budget, which a plain loop would exceed.
    """
    what = _transform(tensors)
    if what is not None and memory is not None:
        raise UsageError(f"memory={show_size(memory)} cannot be combined with {what}, where {kind} runs as without "
                         f"neap and stores everything. Remove memory=, or call it outside and differentiate it with "
                         f"torch.autograd.grad or backward()")
    return what is not None


def check_backward(memory: Optional[int], kind: str) -> None:
    """Raises RuntimeError if gradients would have tangents, or are a batch while the budget is for one gradient."""
    if _dual():
        raise RuntimeError(f"the backward pass of {kind} runs inside torch.autograd.forward_ad.dual_level, where its "
                           f"gradients would have no tangents. Run it outside, or run the forward pass inside as well, "
                           f"without memory=")
    if memory is not None and _functional():
        raise RuntimeError(f"the backward pass of {kind} with memory={show_size(memory)} got batched gradients "
                           f"(is_grads_batched=True, vectorize=True or vmap), which would take a multiple of the "
                           f"budget. Compute them one at a time, or remove memory=")


def check_second() -> None:
    """Raises RuntimeError if differentiable or second gradients would be a batch or have tangents."""
    if _dual() or _functional():
        raise RuntimeError("a backward pass of neap.torch with create_graph=True, or a second one, got batched "
                           "gradients (is_grads_batched=True, vectorize=True or vmap) or runs in forward-mode "
                           "differentiation. Compute one gradient at a time, for example with vectorize=False")


def check_compiled() -> None:
    """Raises RuntimeError if the gradients that arrive at compiled functions are a batch."""
    if _functional():
        raise RuntimeError("the backward pass of a scan with compile=True got batched gradients (is_grads_batched=True, "
                           "vectorize=True or vmap). Compute one gradient at a time, for example with "
                           "vectorize=False, or remove compile=True")


def uncompiled(function: _Function) -> _Function:
    """Returns the function for use under torch.compile, which does not trace it: one graph break, or an error with
    fullgraph=True. torch._dynamo is not imported, because the import is slow and only needed for compilation."""
    made: List[Any] = []

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*args, **options)
        if not made:
            made.append(torch._dynamo.disable(function))
        return made[0](*args, **options)
    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    call._torchdynamo_disable_msg = _WHY  # type: ignore[attr-defined]
    return cast(_Function, call)
