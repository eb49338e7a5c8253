#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_sources.json: networks whose layers receive several layers, below and above, and integrators, run and
differentiated by PyTorch. What a layer receives is the concatenation of its sources.
Usage: make_torch_sources.py [torch_sources.json]
"""
import math
import sys

import torch

from make_torch_cells import DT, Alif, Cubalif, Gated, Spiking, write
from make_torch_dump import weights


class Lif(Spiking):
    """Reset by subtraction one step later."""

    def __init__(self, *args, tau, **more):
        super().__init__(*args, **more)
        self.beta = math.exp(-DT / tau)

    def begin(self):
        pass

    def membrane(self, current, reset):
        self.u = self.beta * self.u + current - reset
        return self.u


class Integrator(Spiking):
    """No threshold: the output is the membrane. logit: of a decay that is learned."""

    def __init__(self, n, below, recurrent, scale, tau, learned=False):
        super().__init__(n, below, recurrent, scale)
        decay = math.exp(-DT / tau)
        self.logit = torch.full((n,), math.log(decay / (1 - decay)), dtype=torch.float64, requires_grad=True)
        self.leaks = {"leak": self.logit} if learned else {}

    def begin(self):
        pass

    def step(self, x, margins):
        self.y = torch.sigmoid(self.logit) * self.y + self.product(x) + (0 if self.v is None else self.y @ self.v)
        return self.y


def run(name, spec, layers, sources, inputs, classes, lengths, rate, pool=lambda x: x):
    """sources: of each layer and the readout, in ascending order; -1: the inputs. pool: of what the readout receives."""
    size = [layer.n for layer in layers] + [inputs]
    w = weights(sum(size[s] for s in sources[-1]), classes, scale=0.7)
    b, kappa = weights(classes, scale=0.1), math.exp(-DT / 20e-3)
    margins, losses, spikes, samples = [1], [], [], []
    for index, length in enumerate(lengths):
        x = (torch.rand(length, inputs) < rate).to(torch.float64)
        for layer in layers:
            layer.start()
        out, outs, fired = torch.zeros(classes), [], [[] for _ in layers]
        for t in range(length):
            late, now = [layer.y for layer in layers], []

            def received(i):
                return torch.cat([x[t] if s < 0 else late[s] if s > i or layers[i].delay else now[s] for s in sources[i]])

            for i, layer in enumerate(layers):
                now.append(layer.step(received(i), margins))
                shows = isinstance(layer, Spiking) and not isinstance(layer, Integrator)
                fired[i].append(now[-1].detach().nonzero().flatten().tolist() if shows else [])
            out = kappa * out + (1 - kappa) * (pool(torch.cat([x[t] if s < 0 else now[s] for s in sources[-1]])) @ w + b)
            outs.append(out)
        losses.append(torch.nn.functional.cross_entropy(torch.stack(outs).mean(0)[None], torch.tensor([index % classes])))
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
    print(name, "loss", loss.item(), "margin", min(margins), "spikes", sum(len(ids) for s in spikes for l in s for ids in l))
    return {"name": name, "spec": spec, "readout": "mean", "inputs": inputs, "classes": classes,
            "penalty": {"upper": 0, "upper_weight": 0, "l2": 0}, "samples": samples, "spikes": spikes, "loss": loss.item(),
            "tensors": [{"name": k, "values": v.detach().flatten().tolist(), "grad": v.grad.flatten().tolist()}
                        for k, v in tensors.items()]}


def nets():
    yield lambda: run(
        "skip", "lif:12r:tau=10ms,lif:9:tau=8ms:from=input+layer0,alif:7:tau=12ms:tau_adapt=30ms:adapt=0.2:from=layer0+layer1,"
        "li:tau=20ms:from=input+layer1+layer2",
        [Lif(12, 10, True, 1.5, tau=10e-3), Lif(9, 22, False, 2.0, tau=8e-3),
         Alif(7, 21, False, 2.5, tau=12e-3, tau_adapt=30e-3, adapt=0.2)],
        [(-1,), (-1, 0), (0, 1), (-1, 1, 2)], 10, 3, [50, 31, 70], 0.08)
    yield lambda: run(
        "feedback", "lif:12:tau=10ms:from=input+layer1+layer2,cubalif:9:tau=10ms:tau_syn=4ms:delay=1,lif:7r:tau=8ms,"
        "li:tau=20ms:from=layer1+layer2",
        [Lif(12, 26, False, 2.0, tau=10e-3), Cubalif(9, 12, False, 0.9, tau=10e-3, tau_syn=4e-3, delay=True),
         Lif(7, 9, True, 3.0, tau=8e-3)],
        [(-1, 1, 2), (0,), (1,), (1, 2)], 10, 3, [50, 31, 70], 0.1)
    yield lambda: run(
        "integrator", "integrator:8:tau=5ms:learn=tau,lif:9:tau=10ms:from=input+layer0+layer2,integrator:6r:tau=8ms,"
        "gru:5:from=layer1+layer2,li:tau=20ms:from=layer0+layer3",
        [Integrator(8, 10, False, 0.7, 5e-3, True), Lif(9, 24, False, 1.5, tau=10e-3),
         Integrator(6, 9, True, 0.2, 8e-3), Gated(torch.nn.GRUCell, 5, 15, scale=2.0)],
        [(-1,), (-1, 0, 2), (1,), (1, 2), (0, 3)], 10, 3, [40, 31, 55], 0.1)


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_sources.json")
