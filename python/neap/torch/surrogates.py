# SPDX-License-Identifier: Apache-2.0
"""Spikes with a surrogate derivative: 1 if a membrane is above its threshold, else 0. The backward pass uses the
derivative that docs/cells.md and ``neap train --surrogate`` describe, and 0 beyond a cutoff."""
import math
from typing import Any, Callable, Dict, Tuple

import torch

Slope = Callable[[torch.Tensor, float, float], torch.Tensor]

# Functions of x = membrane - threshold, width and height.
SLOPES: Dict[str, Slope] = {
    "triangle": lambda x, width, height: height * (1 - x.abs() / width).clamp(min=0),
    "boxcar": lambda x, width, height: torch.full_like(x, 0.5 / width),
    "superspike": lambda x, width, height: 1 / (1 + x.abs() / width) ** 2,
    "sigmoid": lambda x, width, height: torch.sigmoid(x / width) * torch.sigmoid(-x / width) / width,
    "atan": lambda x, width, height: 0.5 / width / (1 + (math.pi * x / (2 * width)) ** 2),
    "gaussian": lambda x, width, height: torch.exp(-(x / width) ** 2 / 2) / (width * math.sqrt(2 * math.pi)),
    "slayer": lambda x, width, height: height * torch.exp(-x.abs() / width),
    "double_gaussian": lambda x, width, height: height * (1.15 * torch.exp(-(x / width) ** 2 / 2)
                                                          - 0.05 * torch.exp(-(x / (6 * width)) ** 2 / 2))
    / (width * math.sqrt(2 * math.pi)),
}


class _Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: torch.Tensor, kind: str, theta: float, width: float, height: float,
                cut: float, factor: float) -> torch.Tensor:
        ctx.save_for_backward(u)
        ctx.numbers = kind, theta, width, height, cut, factor
        return (u > theta).to(u.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Any, ...]:
        kind, theta, width, height, cut, factor = ctx.numbers
        x = ctx.saved_tensors[0] - theta
        slope = factor * SLOPES[kind](x, width, height)
        if cut < math.inf:
            slope = torch.where(x.abs() <= cut, slope, torch.zeros_like(slope))
        return gradient * slope, None, None, None, None, None, None


def spikes(u: torch.Tensor, kind: str, theta: float, width: float, height: float, cut: float,
           factor: float = 1.0) -> torch.Tensor:
    """Returns 1 where ``u`` is above ``theta``, else 0, with the dtype of ``u``. ``cut`` may be infinite; ``factor``
    multiplies the derivative."""
    return _Spike.apply(u, kind, theta, width, height, cut, factor)
