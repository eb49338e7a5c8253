# SPDX-License-Identifier: Apache-2.0
"""SpikingJelly: LIFNode with a hard reset and a triangular surrogate of unit area."""
import torch
from importlib.metadata import version
from spikingjelly.activation_based import functional, neuron, surrogate
from torchbase import TorchNet


class Net(TorchNet):
    VERSION = "SpikingJelly " + version("spikingjelly")

    def build(self, problem):
        self.w, self.v = self.leaf("layer0.weight"), self.leaf("layer0.recurrent")
        self.b = self.leaf("layer0.bias")
        self.node = neuron.LIFNode(tau=1 / (1 - problem.decay), decay_input=False, v_threshold=1.0, v_reset=0.0,
                                   surrogate_function=surrogate.PiecewiseQuadratic(alpha=1 / problem.width))

    def hidden(self, way):
        functional.reset_net(self.node)
        current = torch.addmm(self.b, self.x.flatten(0, 1), self.w)
        current = current.reshape(self.steps, self.problem.batch, -1)
        s = torch.zeros_like(current[0])
        spikes = []
        for now in current.unbind(0):
            s = self.node(torch.addmm(now, s, self.v))
            spikes.append(s)
        return torch.stack(spikes)
