#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_cells.json: networks of each cell but lif, run and differentiated by PyTorch.

Cells that spike are written here from the equations alone; autograd differentiates them, with
the same surrogate. test_torch.c compares loss, spikes and gradients.
Usage: make_torch_cells.py [torch_cells.json]
"""
import json
import math
import sys

import torch

from make_torch_dump import first, surrogate, weights

DT = 1e-3


class Spiking:
    """What cells that spike share: weights, threshold 1, reset by subtraction one step later."""

    def __init__(self, n, below, recurrent, scale, detach=False, delay=False, kind="triangle", width=0.5):
        self.n, self.detach, self.delay = n, detach, delay
        self.spike = surrogate(kind, width, 1.0)
        self.w = weights(below, n, scale=scale / math.sqrt(below))
        self.v = weights(n, n, scale=0.6 * scale / math.sqrt(n)) if recurrent else None
        self.b = weights(n, scale=0.02 * scale)

    def tensors(self):
        named = {"weight": self.w, "recurrent": self.v, "bias": self.b}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def start(self):
        self.y = torch.zeros(self.n)
        self.u = torch.zeros(self.n)
        self.begin()

    def product(self, x):
        return x @ self.w + self.b

    def step(self, x, margins):
        current = self.product(x)
        if self.v is not None:
            current = current + self.y @ self.v
        seen = self.membrane(current, self.y.detach() if self.detach else self.y)
        margins.append((seen.detach() - 1).abs().min().item())
        self.y = self.spike(seen - 1)
        return self.y


class Cubalif(Spiking):
    def __init__(self, *args, tau, tau_syn, **more):
        super().__init__(*args, **more)
        self.beta, self.alpha = math.exp(-DT / tau), math.exp(-DT / tau_syn)

    def begin(self):
        self.i = torch.zeros(self.n)

    def membrane(self, current, reset):
        self.i = self.alpha * self.i + current
        self.u = self.beta * self.u + self.i - reset
        return self.u


class Alif(Spiking):
    def __init__(self, *args, tau, tau_adapt, adapt, **more):
        super().__init__(*args, **more)
        self.beta, self.rho, self.kappa = math.exp(-DT / tau), math.exp(-DT / tau_adapt), adapt

    def begin(self):
        self.a = torch.zeros(self.n)

    def membrane(self, current, reset):
        self.a = self.rho * self.a + self.y
        self.u = self.beta * self.u + current - reset
        return self.u - self.kappa * self.a


class Adlif(Spiking):
    def __init__(self, *args, tau, tau_adapt, a, b, **more):
        super().__init__(*args, **more)
        self.alpha, self.rho, self.a, self.b_ = math.exp(-DT / tau), math.exp(-DT / tau_adapt), a, b

    def begin(self):
        self.w_ = torch.zeros(self.n)

    def membrane(self, current, reset):
        self.w_ = self.rho * self.w_ + self.a * self.u + self.b_ * self.y
        self.u = self.alpha * (self.u - reset) + (1 - self.alpha) * (current - self.w_)
        return self.u


class Egru(Spiking):
    def __init__(self, n, below, threshold, delay=False, kind="triangle", width=0.5, scale=1.0):
        self.n, self.delay, self.threshold = n, delay, threshold
        self.event = surrogate(kind, width, 1.0)
        self.w = weights(below, 3 * n, scale=scale / math.sqrt(below))
        self.v, self.vz = (weights(n, m * n, scale=scale / math.sqrt(n)) for m in (2, 1))
        self.b = weights(3 * n, scale=0.1)

    def tensors(self):
        return {"weight": self.w, "recurrent": self.v, "candidate": self.vz, "bias": self.b}

    def start(self):
        self.y = self.c = torch.zeros(self.n)

    def step(self, x, margins):
        n = self.n
        row = x @ self.w + self.b
        u, r = torch.sigmoid(row[:2 * n] + self.y @ self.v).split(n)
        z = torch.tanh(row[2 * n:] + (r * self.y) @ self.vz)
        self.c = u * z + (1 - u) * self.c - self.y
        margins.append((self.c.detach() - self.threshold).abs().min().item())
        self.y = self.c * self.event(self.c - self.threshold)
        return self.y


class Gated:
    """PyTorch's own cell; gates of ours are columns, of PyTorch rows."""

    def __init__(self, cell, n, below, delay=False, scale=1.0):
        self.n, self.delay, self.cell = n, delay, cell(below, n)
        for p in self.cell.parameters():
            p.data = torch.round(torch.randn(p.shape) * (scale / math.sqrt(n)) * 1e6) / 1e6

    def tensors(self):
        cell, two = self.cell, isinstance(self.cell, torch.nn.GRUCell)
        bias = torch.cat([cell.bias_ih, cell.bias_hh]) if two else cell.bias_ih + cell.bias_hh
        slope = torch.cat([cell.bias_ih.grad, cell.bias_hh.grad]) if two else cell.bias_ih.grad
        return {"weight": turned(cell.weight_ih), "recurrent": turned(cell.weight_hh),
                "bias": with_grad(bias, slope)}

    def start(self):
        self.y = torch.zeros(self.n)
        self.memory = torch.zeros(self.n)

    def step(self, x, margins):
        if isinstance(self.cell, torch.nn.LSTMCell):
            self.y, self.memory = (v[0] for v in self.cell(x[None], (self.y[None], self.memory[None])))
        else:
            self.y = self.cell(x[None], self.y[None])[0]
        return self.y


def with_grad(value, grad):
    value = value.detach().clone()
    value.grad = grad
    return value


def turned(weight):
    return with_grad(weight.t(), weight.grad.t())


def run(name, spec, layers, inputs, classes, lengths, rate, leak=None, pool=lambda y: y):
    """As run of make_torch_dump: mean readout, cross-entropy, without penalties. leak: logit of kappa;
    pool: of what the readout receives."""
    received = pool(torch.zeros(layers[-1].n)).numel()
    w = weights(received, classes, scale=2 / math.sqrt(received))
    b = weights(classes, scale=0.1)
    kappa = math.exp(-DT / 20e-3) if leak is None else torch.sigmoid(leak)
    margins, losses, spikes, samples = [1], [], [], []
    for index, length in enumerate(lengths):
        x = (torch.rand(length, inputs) < rate).to(torch.float64)
        for layer in layers:
            layer.start()
        out, outs, fired = torch.zeros(classes), [], [[] for _ in layers]
        for t in range(length):
            late, y = [layer.y for layer in layers], x[t]
            for i, layer in enumerate(layers):
                y = layer.step(late[i - 1] if layer.delay else y, margins)
                fired[i].append(y.detach().nonzero().flatten().tolist() if isinstance(layer, Spiking) else [])
            out = kappa * out + (1 - kappa) * (pool(y) @ w + b)
            outs.append(out)
        answer = torch.stack(outs).mean(0)
        losses.append(torch.nn.functional.cross_entropy(answer[None], torch.tensor([index % classes])))
        spikes.append(fired)
        samples.append({"label": index % classes, "events": [row.nonzero().flatten().tolist() for row in x]})
    loss = torch.stack(losses).mean()
    loss.backward()
    if min(margins) <= 1e-4:
        return None  # a membrane so near the threshold that rounding decides
    tensors = {f"layer{i}.{key}": v for i, layer in enumerate(layers) for key, v in layer.tensors().items()}
    tensors.update({"readout.weight": w, "readout.bias": b})
    tensors.update({f"layer{i}.{key}": v for i, layer in enumerate(layers)
                    for key, v in getattr(layer, "leaks", {}).items()})
    if leak is not None:
        tensors["readout.leak"] = leak
    print(name, "loss", loss.item(), "margin", min(margins))
    return {"name": name, "spec": spec, "readout": "mean", "inputs": inputs, "classes": classes,
            "penalty": {"upper": 0, "upper_weight": 0, "l2": 0}, "samples": samples, "spikes": spikes,
            "loss": loss.item(),
            "tensors": [{"name": k, "values": v.detach().flatten().tolist(), "grad": v.grad.flatten().tolist()}
                        for k, v in tensors.items()]}


def nets():
    yield lambda: run(
        "cubalif", "cubalif:14r:tau=10ms:tau_syn=4ms,cubalif:9:tau=8ms:tau_syn=3ms:detach=1:delay=1,li:tau=20ms",
        [Cubalif(14, 10, True, 0.5, tau=10e-3, tau_syn=4e-3),
         Cubalif(9, 14, False, 0.6, tau=8e-3, tau_syn=3e-3, detach=True, delay=True)],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "alif", "alif:14r:tau=10ms:tau_adapt=30ms:adapt=0.3,"
        "alif:9r:tau=15ms:tau_adapt=12ms:adapt=0.15:detach=1:surrogate=superspike:width=0.2,li:tau=20ms",
        [Alif(14, 10, True, 1.5, tau=10e-3, tau_adapt=30e-3, adapt=0.3),
         Alif(9, 14, True, 2.0, tau=15e-3, tau_adapt=12e-3, adapt=0.15, detach=True, kind="superspike", width=0.2)],
        10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "adlif", "adlif:14r:tau=10ms:tau_adapt=30ms:a=0.1:b=0.3,"
        "adlif:9r:tau=8ms:tau_adapt=12ms:a=-0.05:b=0.2:detach=1:delay=1,li:tau=20ms",
        [Adlif(14, 10, True, 18, tau=10e-3, tau_adapt=30e-3, a=0.1, b=0.3),
         Adlif(9, 14, True, 20, tau=8e-3, tau_adapt=12e-3, a=-0.05, b=0.2, detach=True, delay=True)],
        10, 3, [50, 31, 70], 0.08)


    nn = torch.nn
    yield lambda: run(
        "rnn", "rnn:9,rnn:7:activation=relu:delay=1,li:tau=20ms",
        [Gated(nn.RNNCell, 9, 10), Gated(lambda i, n: nn.RNNCell(i, n, nonlinearity="relu"), 7, 9, delay=True)],
        10, 3, [40, 21], 0.1)
    yield lambda: run(
        "lstm", "lstm:8,lstm:5:delay=1,li:tau=20ms",
        [Gated(nn.LSTMCell, 8, 10, scale=2.0), Gated(nn.LSTMCell, 5, 8, delay=True, scale=2.0)],
        10, 3, [40, 21], 0.1)
    yield lambda: run(
        "gru", "gru:8,gru:5:delay=1,li:tau=20ms",
        [Gated(nn.GRUCell, 8, 10, scale=2.0), Gated(nn.GRUCell, 5, 8, delay=True, scale=2.0)],
        10, 3, [40, 21], 0.1)
    yield lambda: run(
        "egru", "egru:9:threshold=0.15,egru:7:threshold=0.1:surrogate=superspike:width=0.3:delay=1,li:tau=20ms",
        [Egru(9, 10, 0.15, scale=2.0), Egru(7, 9, 0.1, delay=True, kind="superspike", width=0.3, scale=2.0)],
        10, 3, [40, 21], 0.1)


def write(nets, path):
    with open(path, "w", encoding="ascii") as file:
        json.dump({"torch": torch.__version__, "dt": DT, "nets": [first(make) for make in nets()]}, file,
                  separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_cells.json")
