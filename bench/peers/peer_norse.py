# SPDX-License-Identifier: Apache-2.0
"""Norse: LIFRecurrentCell. Its reset is hard and has no gradient.

With a synaptic current that decays in one step, the cell equals neap's cell. Its triangular surrogate has width 1, so membrane
potentials, weights and threshold are given in units of neap's width. It multiplies currents by dt/tau, so its weights are
larger by the inverse factor, and it has no bias.
"""
import torch
from importlib.metadata import version
from norse.torch.functional.lif import LIFParameters
from norse.torch.module.lif import LIFRecurrentCell
from torchbase import TorchNet

DT = 1e-3


class Net(TorchNet):
    VERSION = "Norse " + version("norse")

    def build(self, problem):
        def number(x):
            return torch.tensor(x, dtype=self.kind)

        p = LIFParameters(tau_syn_inv=number(1 / DT), tau_mem_inv=number((1 - problem.decay) / DT),
                          v_leak=number(0.0), v_th=number(1 / problem.width), v_reset=number(0.0),
                          method="triangle", alpha=problem.width)
        self.cell = LIFRecurrentCell(problem.inputs, problem.hidden, p=p, autapses=True, dt=DT)
        scale = 1 / (problem.width * (1 - problem.decay))
        self.adopt(self.cell, "input_weights", "layer0.weight", scale)
        self.adopt(self.cell, "recurrent_weights", "layer0.recurrent", scale)

    def hidden(self, way):
        state, spikes = None, []
        for now in self.x:
            s, state = self.cell(now, state)
            spikes.append(s)
        return torch.stack(spikes)
