# SPDX-License-Identifier: Apache-2.0
"""snnTorch: RLeaky, whose reset subtracts the threshold one step later and has no gradient."""
import snntorch
import torch
from importlib.metadata import version
from torchbase import TorchNet, spike


class Net(TorchNet):
    VERSION = "snnTorch " + version("snntorch")

    def build(self, problem):
        self.w, self.b = self.leaf("layer0.weight"), self.leaf("layer0.bias")
        beta = torch.tensor(problem.decay, dtype=self.kind)
        self.cell = snntorch.RLeaky(beta=beta, linear_features=problem.hidden, reset_mechanism="subtract",
                                    spike_grad=spike(problem.width, 1.0))
        self.cell.recurrent = torch.nn.Linear(problem.hidden, problem.hidden, bias=False)
        self.adopt(self.cell.recurrent, "weight", "layer0.recurrent")

    def hidden(self, way):
        current = torch.addmm(self.b, self.x.flatten(0, 1), self.w)
        current = current.reshape(self.steps, self.problem.batch, -1)
        s = u = torch.zeros_like(current[0])
        spikes = []
        for now in current.unbind(0):
            s, u = self.cell(now, s, u)
            spikes.append(s)
        return torch.stack(spikes)
