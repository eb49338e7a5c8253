#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_dump.json: three spiking networks run and differentiated by PyTorch.

The networks are written here from the equations alone, step by step, in double
precision; autograd differentiates them. test_torch.c compares loss, spikes and
gradients. Usage: make_torch_dump.py [torch_dump.json]
"""
import json
import math
import sys

import torch

torch.set_default_dtype(torch.float64)


def surrogate(kind, width, height):
    def slope(x):
        if kind == "triangle":
            return height * torch.clamp(1 - x.abs() / width, min=0)
        if kind == "superspike":
            return 1 / (1 + x.abs() / width) ** 2
        if kind == "slayer":
            return height * torch.exp(-x.abs() / width)
        if kind == "double_gaussian":
            normal = torch.distributions.Normal
            near, far = normal(0.0, width), normal(0.0, 6 * width)
            return height * (1.15 * near.log_prob(x).exp() - 0.3 * far.log_prob(x).exp())
        if kind == "atan":
            return 1 / (2 * width) / (1 + (math.pi * x / (2 * width)) ** 2)
        raise ValueError(kind)

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx, grad):
            return grad * slope(ctx.saved_tensors[0])

    return Spike.apply


def weights(*shape, scale):
    """Normal numbers of six decimals, so that the dump is short and exact."""
    return (torch.round(torch.randn(*shape) * scale * 1e6) / 1e6).requires_grad_()


class Layer:
    """One lif layer; reset one of subtract, zero (one step later), hard, soft (at once)."""

    def __init__(self, n, below, recurrent, reset, kind, tau, dt, width=0.5, height=1.0, reset_value=0.0,
                 detach=False, delay=False, scale=1.0):
        self.n, self.reset, self.detach, self.delay, self.reset_value = n, reset, detach, delay, reset_value
        self.beta = math.exp(-dt / tau)
        self.spike = surrogate(kind, width, height)
        self.w = weights(below, n, scale=scale / math.sqrt(below))
        self.v = weights(n, n, scale=0.6 / math.sqrt(n)) if recurrent else None
        self.b = weights(n, scale=0.02)

    def start(self):
        self.u = torch.zeros(self.n)
        self.s = torch.zeros(self.n)

    def step(self, x, margins):
        before = self.s.detach() if self.detach else self.s
        current = x @ self.w + self.b
        if self.v is not None:
            current = current + self.s @ self.v
        u = self.beta * self.u + current
        if self.reset == "subtract":
            u = u - before
        if self.reset == "zero":
            u = u * (1 - before)
        margins.append((u.detach() - 1).abs().min().item())
        self.s = self.spike(u - 1)
        now = self.s.detach() if self.detach else self.s
        if self.reset == "hard":
            u = (1 - now) * u + self.reset_value * now
        if self.reset == "soft":
            u = u - now
        self.u = u
        return self.s


def run(name, spec, layers, readout, inputs, classes, lengths, rate, penalty, dt=1e-3):
    w = weights(layers[-1].n, classes, scale=2 / math.sqrt(layers[-1].n))
    b = weights(classes, scale=0.1)
    kappa = math.exp(-dt / 20e-3)
    margins, losses, spikes, samples, counts = [], [], [], [], [0] * len(layers)
    for index, length in enumerate(lengths):
        x = (torch.rand(length, inputs) < rate).to(torch.float64)
        label = index % classes
        for layer in layers:
            layer.start()
        out, outs, fired = torch.zeros(classes), [], [[] for _ in layers]
        for t in range(length):
            late, s = [layer.s for layer in layers], x[t]
            for i, layer in enumerate(layers):
                s = layer.step(late[i - 1] if layer.delay else s, margins)
                fired[i].append(s.detach().nonzero().flatten().tolist())
                counts[i] = counts[i] + s
            out = kappa * out + (1 - kappa) * (s @ w + b)
            outs.append(out)
        outs = torch.stack(outs)
        answer = outs.mean(0) if readout == "mean" else torch.softmax(outs, 1).sum(0)
        losses.append(torch.nn.functional.cross_entropy(answer[None], torch.tensor([label])))
        spikes.append(fired)
        samples.append({"label": label, "events": [row.nonzero().flatten().tolist() for row in x]})
    loss = torch.stack(losses).mean()
    for count in counts:
        r = count / sum(lengths)
        loss = loss + penalty["upper_weight"] * (torch.clamp(r - penalty["upper"], min=0) ** 2).sum()
        loss = loss + penalty["l2"] * (r ** 2).sum()
    loss.backward()
    tensors = {}
    for i, layer in enumerate(layers):
        tensors[f"layer{i}.weight"] = layer.w
        if layer.v is not None:
            tensors[f"layer{i}.recurrent"] = layer.v
        tensors[f"layer{i}.bias"] = layer.b
    tensors["readout.weight"], tensors["readout.bias"] = w, b
    if min(margins) <= 1e-4:
        return None  # a membrane so near the threshold that rounding decides
    total = sum(len(ids) for sample in spikes for layer in sample for ids in layer)
    print(name, "loss", loss.item(), "margin", min(margins), "spikes", total)
    return {"name": name, "spec": spec, "readout": readout, "inputs": inputs, "classes": classes,
            "penalty": penalty, "samples": samples, "spikes": spikes, "loss": loss.item(),
            "tensors": [{"name": k, "values": v.detach().flatten().tolist(), "grad": v.grad.flatten().tolist()}
                        for k, v in tensors.items()]}


def first(make):
    """The first seed whose net keeps its membranes clear of the threshold."""
    for seed in range(1000):
        torch.manual_seed(seed)
        net = make()
        if net:
            return net
    raise SystemExit("no seed keeps clear of the threshold")


def main():
    dt = 1e-3
    one = first(lambda: run(
        "one", "lif:20r:tau=20ms,li:tau=20ms",
        [Layer(20, 12, True, "subtract", "triangle", 20e-3, dt, scale=1.3)],
        "mean", 12, 3, [60, 41, 100], 0.08, {"upper": 0.02, "upper_weight": 1.0, "l2": 0.0}))
    two = first(lambda: run(
        "two", "lif:16r:tau=15ms:reset=zero:surrogate=superspike:width=0.1,"
        "lif:12r:tau=10ms:reset=hard:reset_value=0.1:surrogate=atan:delay=1,li:tau=20ms",
        [Layer(16, 12, True, "zero", "superspike", 15e-3, dt, width=0.1, scale=1.5),
         Layer(12, 16, True, "hard", "atan", 10e-3, dt, reset_value=0.1, delay=True, scale=4.0)],
        "softmax", 12, 4, [50, 30, 64], 0.1, {"upper": 0.0, "upper_weight": 0.0, "l2": 0.3}))
    three = first(lambda: run(
        "three", "lif:18:tau=15ms:reset=soft:detach=1:surrogate=triangle:width=0.7:height=0.8,"
        "lif:10r:tau=10ms:reset=zero:detach=1,li:tau=20ms",
        [Layer(18, 12, False, "soft", "triangle", 15e-3, dt, width=0.7, height=0.8, detach=True, scale=1.5),
         Layer(10, 18, True, "zero", "triangle", 10e-3, dt, detach=True, scale=3.0)],
        "mean", 12, 2, [40, 25], 0.1, {"upper": 0.0, "upper_weight": 0.0, "l2": 0.0}))
    with open(sys.argv[1] if len(sys.argv) > 1 else "torch_dump.json", "w", encoding="ascii") as file:
        json.dump({"torch": torch.__version__, "dt": dt, "nets": [one, two, three]}, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
