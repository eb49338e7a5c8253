# SPDX-License-Identifier: Apache-2.0
"""The layers of ``functions`` as modules with parameters."""
import math
from typing import Any, Callable, Dict, Optional, Tuple

import torch

from ...errors import UsageError
from .functions import alif, gru, lif, lstm

__all__ = ["ALIF", "GRU", "LIF", "LSTM"]


class _Spiking(torch.nn.Module):
    """A layer of neurons: parameters ``w_in``, ``w_rec`` and ``bias``."""

    run: Callable[..., Any]

    def _begin(self, inputs: int, units: int, recurrent: bool, bias: bool, scale: float, recurrent_scale: float,
               options: Dict[str, Any]) -> None:
        _positive(inputs, units)
        self.inputs, self.units, self.options = inputs, units, options
        self.w_in = torch.nn.Parameter(torch.randn(units, inputs) * (scale / math.sqrt(inputs)))
        self.register_parameter("w_rec", torch.nn.Parameter(
            torch.randn(units, units) * (recurrent_scale / math.sqrt(units))) if recurrent else None)
        self.register_parameter("bias", torch.nn.Parameter(torch.zeros(units)) if bias else None)

    def forward(self, x: torch.Tensor, state: Any = None) -> Tuple[torch.Tensor, Tuple[torch.Tensor, ...]]:
        """Runs the layer.

        :param x: inputs [T, B, inputs].
        :param state: the last state of an earlier call; None: zeros.
        :returns: spikes [T, B, units] and the last state.
        """
        return type(self).run(x, self.w_in, self.w_rec, self.bias, state=state, **self.options)

    def extra_repr(self) -> str:
        rows = [str(self.inputs), str(self.units), *(["recurrent=True"] if self.w_rec is not None else [])]
        return ", ".join(rows + [f"{key}={value!r}" for key, value in self.options.items()])


class LIF(_Spiking):
    """:func:`lif` as a module: ``spikes, state = LIF(700, 512, recurrent=True, memory="16M")(x)``.

    Weights are initialised as by ``neap train``: normal, with standard deviation ``scale / sqrt(inputs)`` and, for
    recurrent ones, ``recurrent_scale / sqrt(units)``; biases are 0.

    :param inputs: number of features of x.
    :param units: number of neurons.
    :param recurrent: True: with recurrent weights ``w_rec``.
    :param bias: True: with biases.
    :param scale: standard deviation of the initial input weights, times ``sqrt(inputs)``. If inputs are sparse spikes, a
        larger value lets the neurons spike from the beginning.
    :param recurrent_scale: standard deviation of the initial recurrent weights, times ``sqrt(units)``.
    :param options: keyword arguments of :func:`lif`, such as ``tau`` and ``memory``, which are passed on in every call.
    """

    run = staticmethod(lif)

    def __init__(self, inputs: int, units: int, recurrent: bool = False, *, bias: bool = True, scale: float = 0.5,
                 recurrent_scale: float = 0.3, **options: Any):
        super().__init__()
        self._begin(inputs, units, recurrent, bias, scale, recurrent_scale, options)


class ALIF(_Spiking):
    """:func:`alif` as a module, with the initial weights of :class:`LIF`.

    :param inputs: number of features of x.
    :param units: number of neurons.
    :param recurrent: True: with recurrent weights ``w_rec``.
    :param bias: True: with biases.
    :param scale: standard deviation of the initial input weights, times ``sqrt(inputs)``.
    :param recurrent_scale: standard deviation of the initial recurrent weights, times ``sqrt(units)``.
    :param options: keyword arguments of :func:`alif`, such as ``tau_adapt`` and ``memory``.
    """

    run = staticmethod(alif)

    def __init__(self, inputs: int, units: int, recurrent: bool = False, *, bias: bool = True, scale: float = 0.5,
                 recurrent_scale: float = 0.3, **options: Any):
        super().__init__()
        self._begin(inputs, units, recurrent, bias, scale, recurrent_scale, options)


class _Gated(torch.nn.Module):
    """A layer with the parameters of PyTorch's cells, initialised as these are."""

    run: Callable[..., Any]
    gates = 1

    def _begin(self, inputs: int, units: int, bias: bool, options: Dict[str, Any]) -> None:
        _positive(inputs, units)
        self.inputs, self.units, self.options = inputs, units, options
        rows, bound = self.gates * units, 1 / math.sqrt(units)
        for name, shape in dict(weight_ih=(rows, inputs), weight_hh=(rows, units)).items():
            self.register_parameter(name, torch.nn.Parameter(torch.empty(shape).uniform_(-bound, bound)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, torch.nn.Parameter(torch.empty(rows).uniform_(-bound, bound)) if bias else None)

    def forward(self, x: torch.Tensor, state: Any = None) -> Tuple[torch.Tensor, Any]:
        """Runs the layer.

        :param x: inputs [T, B, inputs].
        :param state: the initial state, as the function takes it; None: zeros.
        :returns: outputs [T, B, units] and the last state.
        """
        return type(self).run(x, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, state=state, **self.options)

    def extra_repr(self) -> str:
        return ", ".join([str(self.inputs), str(self.units), *(f"{key}={value!r}" for key, value in self.options.items())])


class LSTM(_Gated):
    """:func:`lstm` as a module, with the parameters of :class:`torch.nn.LSTMCell`: ``weight_ih``, ``weight_hh``, ``bias_ih``
    and ``bias_hh``, of the same shapes, names and initialisation.

    :param inputs: number of features of x.
    :param units: number of units.
    :param bias: True: with both biases.
    :param options: keyword arguments of :func:`lstm`, such as ``memory``, which are passed on in every call.
    """

    run, gates = staticmethod(lstm), 4

    def __init__(self, inputs: int, units: int, *, bias: bool = True, **options: Any):
        super().__init__()
        self._begin(inputs, units, bias, options)


class GRU(_Gated):
    """:func:`gru` as a module, with the parameters of :class:`torch.nn.GRUCell`: ``weight_ih``, ``weight_hh``, ``bias_ih``
    and ``bias_hh``, of the same shapes, names and initialisation.

    :param inputs: number of features of x.
    :param units: number of units.
    :param bias: True: with both biases.
    :param options: keyword arguments of :func:`gru`, such as ``memory``, which are passed on in every call.
    """

    run, gates = staticmethod(gru), 3

    def __init__(self, inputs: int, units: int, *, bias: bool = True, **options: Any):
        super().__init__()
        self._begin(inputs, units, bias, options)


def _positive(inputs: int, units: int) -> None:
    if inputs < 1 or units < 1:
        raise UsageError(f"a layer of {units} units with {inputs} inputs is not possible. Pass numbers above 0")
