# SPDX-License-Identifier: Apache-2.0
"""The cells of neap's networks as modules of plain PyTorch: one step of a layer each.

``cell(state, x)`` takes the previous state, a tuple of tensors [batch, n], and the input [batch, below], and returns
the next state, whose first tensor is the layer's output. docs/cells.md has the equations and keys; tensors have the
shapes in a model's file.
"""
from typing import Callable, Dict, Optional, Tuple

import torch

from ..specs import Layer
from .surrogates import spikes

State = Tuple[torch.Tensor, ...]


class _Decay(torch.nn.Module):
    """Decay factor per step of a state variable: a constant, or learned per unit."""

    def __init__(self, layer: Layer, key: str, dt: float, euler: bool, logit: Optional[torch.Tensor]):
        super().__init__()
        self.constant = layer.decay(key, dt, euler)
        self.logit = None if logit is None else torch.nn.Parameter(logit, layer.keys["learn"] != "none")

    def both(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns the decay d and 1 - d: numbers, or tensors [1, n] if they are learned."""
        if self.logit is None:
            return self.constant, 1 - self.constant  # type: ignore[return-value]
        most = 1 - torch.finfo(self.logit.dtype).eps / 2  # below 1, since a decay that rounds to 1 would never forget
        return torch.sigmoid(self.logit).clamp(max=most), torch.sigmoid(-self.logit)


class _Value(torch.nn.Module):
    """A number, or one per unit, learned or not: the tensor itself, or its exponential if ``scale`` is given."""

    def __init__(self, number: float, stored: Optional[torch.Tensor], learns: bool, scale: Optional[float] = None):
        super().__init__()
        self.constant, self.scale = number * (1 if scale is None else scale), scale
        self.stored = None if stored is None else torch.nn.Parameter(stored, learns)

    def value(self) -> torch.Tensor:
        """Returns the number, or a tensor [1, n], times the scale."""
        if self.stored is None:
            return self.constant  # type: ignore[return-value]
        return self.stored if self.scale is None else self.scale * torch.exp(self.stored)


class Cell(torch.nn.Module):
    """Common part of all cells: weights, and their products.

    :param layer: the layer's specification.
    :param tensors: tensors of this layer by name: ``weight`` [below, columns], ``bias`` [1, columns], if recurrent
        ``recurrent`` [n, columns], for learned decays ``leak``, ``leak_syn``, ``leak_adapt`` [1, n]. NAME ``_mask``
        marks the connections of a sparse tensor.
    """

    tensors_of_state = 1
    leaks: Dict[str, str] = {}

    def __init__(self, layer: Layer, tensors: Dict[str, torch.Tensor], dt: float, euler: bool):
        super().__init__()
        self.layer, self.n = layer, layer.n
        for name in ("weight", "bias", "recurrent", "candidate"):
            tensor = tensors.get(name)
            self.register_parameter(name, None if tensor is None else torch.nn.Parameter(tensor))
            self.register_buffer(name + "_mask", tensors.get(name + "_mask"))
        for key, name in self.leaks.items():
            setattr(self, key, _Decay(layer, key, dt, euler, tensors.get(name)))

    def weights(self, name: str) -> torch.Tensor:
        """Returns a weight tensor; missing connections of a sparse tensor are 0 and stay 0."""
        mask = getattr(self, name + "_mask")
        return getattr(self, name) if mask is None else getattr(self, name) * mask

    def arriving(self, x: torch.Tensor, y: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns b + W x, and + V y if the layer is recurrent; y is the previous output."""
        found = torch.addmm(self.bias, x, self.weights("weight"))
        if self.recurrent is not None and y is not None:
            found = torch.addmm(found, y, self.weights("recurrent"))
        return found

    def start(self, batch: int) -> State:
        """Returns the state at step 0: zeros."""
        return tuple(self.bias.new_zeros(batch, self.n) for _ in range(self.tensors_of_state))

    def extra_repr(self) -> str:
        return f"{self.layer.cell}, {self.layer.below} -> {self.n}"


class Spiking(Cell):
    """Common part of spiking cells: the threshold, the surrogate and the reset."""

    tensors_of_state = 3
    leaks = {"tau": "leak"}

    def spike(self, seen: torch.Tensor) -> torch.Tensor:
        """Returns the spikes for the potential ``seen`` that is compared with the threshold."""
        key = self.layer.keys
        return spikes(seen, key["surrogate"], key["threshold"], key["width"], key["height"], self.layer.cut,
                      key["surrogate_factor"])

    def for_reset(self, s: torch.Tensor) -> torch.Tensor:
        """Returns the spikes that the reset uses, detached if ``detach`` is set."""
        return s.detach() if self.layer.keys["detach"] else s

    def after(self, u: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        """Returns the membrane potential after a reset that acts at once."""
        key, now = self.layer.keys, self.for_reset(s)
        if key["reset"] == "hard":
            return (1 - now) * u + key["reset_value"] * now
        return u - key["threshold"] * now if key["reset"] == "soft" else u


class Lif(Spiking):
    """State: spikes, membrane."""

    tensors_of_state = 2

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        (before, u), key = state, self.layer.keys
        u = self.tau.both()[0] * u + self.arriving(x, before)
        if key["reset"] == "subtract":
            u = u - key["threshold"] * self.for_reset(before)
        elif key["reset"] == "zero":
            u = (1 - self.for_reset(before)) * u
        s = self.spike(u)
        return s, self.after(u, s)


class Cubalif(Spiking):
    """State: spikes, membrane, synaptic current."""

    leaks = {"tau": "leak", "tau_syn": "leak_syn"}

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        before, u, current = state
        current = self.tau_syn.both()[0] * current + self.arriving(x, before)
        u = self.tau.both()[0] * u + current
        if self.layer.keys["reset"] == "subtract":
            u = u - self.layer.keys["threshold"] * self.for_reset(before)
        s = self.spike(u)
        return s, self.after(u, s), current


class Alif(Spiking):
    """State: spikes, membrane, adaptation of the threshold."""

    leaks = {"tau": "leak", "tau_adapt": "leak_adapt"}

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        before, u, a = state
        a = self.tau_adapt.both()[0] * a + before
        u = self.tau.both()[0] * u + self.arriving(x, before)
        u = u - self.layer.keys["threshold"] * self.for_reset(before)
        return self.spike(u - self.layer.keys["adapt"] * a), u, a


class Adlif(Spiking):
    """State: spikes, membrane, adaptation current."""

    leaks = {"tau": "leak", "tau_adapt": "leak_adapt"}

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        (before, u, w), key = state, self.layer.keys
        beta, rest = self.tau.both()
        w = self.tau_adapt.both()[0] * w + key["a"] * u + key["b"] * before
        u = beta * (u - self.for_reset(before)) + rest * (self.arriving(x, before) - w)
        return self.spike(u), u, w


class Seadlif(Spiking):
    """State: spikes, membrane, adaptation current."""

    leaks = {"tau": "leak", "tau_adapt": "leak_adapt"}

    def __init__(self, layer: Layer, tensors: Dict[str, torch.Tensor], dt: float, euler: bool):
        super().__init__(layer, tensors, dt, euler)
        learns = layer.keys["learn"] == "all"
        self.a, self.b = (_Value(layer.keys[name], tensors.get(name), learns) for name in ("a", "b"))

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        before, u, w = state
        (beta, rest), (rho, own_rest) = self.tau.both(), self.tau_adapt.both()
        u = beta * u + rest * (self.arriving(x, before) - w)
        s = self.spike(u)
        u = (1 - self.for_reset(s)) * u
        return s, u, rho * w + own_rest * (self.a.value() * u + self.b.value() * s)


class Brf(Spiking):
    """State: spikes, the oscillation U and V, refractoriness."""

    tensors_of_state = 4
    leaks: Dict[str, str] = {}

    def __init__(self, layer: Layer, tensors: Dict[str, torch.Tensor], dt: float, euler: bool):
        super().__init__(layer, tensors, dt, euler)
        learns = layer.keys["learn"] != "none"
        self.dt, self.gamma = dt, layer.decay("tau_adapt", dt, euler)
        self.omega, self.b = (_Value(layer.keys[name], tensors.get(name), learns, dt) for name in ("omega", "b"))

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        before, u, v, q = state
        turn = torch.as_tensor(self.omega.value(), dtype=u.dtype).clamp(max=0.999)
        keep = torch.sqrt(1 - turn * turn) - self.b.value() - self.dt * self.for_reset(q)
        u, v = keep * u - turn * v + self.dt * self.arriving(x, before), turn * u + keep * v
        s = self.spike(u - self.for_reset(q))
        return s, u, v, self.gamma * q + s


class Rnn(Cell):
    """State: outputs."""

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        current = self.arriving(x, state[0])
        return (torch.tanh(current) if self.layer.keys["activation"] == "tanh" else torch.relu(current),)


class Lstm(Cell):
    """State: outputs, memory."""

    tensors_of_state = 2

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        i, f, g, o = self.arriving(x, state[0]).split(self.n, 1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Gru(Cell):
    """State: outputs."""

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        h, (b, b_own) = state[0], self.bias.split(3 * self.n, 1)
        r, z, n = torch.addmm(b, x, self.weights("weight")).split(self.n, 1)
        r_own, z_own, n_own = torch.addmm(b_own, h, self.weights("recurrent")).split(self.n, 1)
        r, z = torch.sigmoid(r + r_own), torch.sigmoid(z + z_own)
        return ((1 - z) * torch.tanh(n + r * n_own) + z * h,)


class Egru(Spiking):
    """State: outputs, which are 0 or the membrane, and the membrane."""

    tensors_of_state = 2
    leaks: Dict[str, str] = {}

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        y, c = state
        gates, candidate = self.arriving(x).split((2 * self.n, self.n), 1)
        u, r = torch.sigmoid(torch.addmm(gates, y, self.weights("recurrent"))).split(self.n, 1)
        z = torch.tanh(torch.addmm(candidate, r * y, self.weights("candidate")))
        c = u * z + (1 - u) * c - y
        return c * self.spike(c), c


class Li(Cell):
    """The readout. State: outputs."""

    leaks = {"tau": "leak"}

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        kappa, rest = self.tau.both()
        return (kappa * state[0] + rest * self.arriving(x),)


class Integrator(Cell):
    """State: outputs, which are the membrane."""

    leaks = {"tau": "leak"}

    def forward(self, state: State, x: torch.Tensor) -> State:
        """Returns the next state."""
        return (self.tau.both()[0] * state[0] + self.arriving(x, state[0]),)


CELLS: Dict[str, Callable[..., Cell]] = {
    "lif": Lif, "cubalif": Cubalif, "alif": Alif, "adlif": Adlif, "seadlif": Seadlif, "brf": Brf, "integrator": Integrator,
    "rnn": Rnn, "lstm": Lstm, "gru": Gru,
    "egru": Egru, "li": Li}

COLUMNS = {"rnn": (1, 1, 1), "lstm": (4, 4, 4), "gru": (3, 3, 6), "egru": (3, 2, 3)}
"""Columns per unit of ``weight``, ``recurrent`` and ``bias`` of gated cells; other cells have 1."""


def shapes(layer: Layer) -> Dict[str, Tuple[int, int]]:
    """Returns the shapes of a layer's tensors in a model's file, without those of learned decays."""
    width, own, bias = COLUMNS.get(layer.cell, (1, 1, 1))
    found = {"weight": (layer.below, width * layer.n), "bias": (1, bias * layer.n)}
    if layer.recurrent:
        found["recurrent"] = (layer.n, own * layer.n)
    if layer.cell == "egru":
        found["candidate"] = (layer.n, layer.n)
    return found
