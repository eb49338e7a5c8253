# SPDX-License-Identifier: Apache-2.0
"""torch.nn.LSTM and torch.nn.GRU under the same leaky readout."""
import torch
from torchbase import TorchNet


class Net(TorchNet):
    def build(self, problem):
        kind = torch.nn.LSTM if problem.kind == "lstm" else torch.nn.GRU
        self.layer = kind(problem.inputs, problem.hidden).to(self.kind)
        if problem.shared:  # neap's own weights, else those of PyTorch's generator
            self.adopt(self.layer, "weight_ih_l0", "layer0.weight")
            self.adopt(self.layer, "weight_hh_l0", "layer0.recurrent")
            self.adopt(self.layer, "bias_ih_l0", "layer0.bias")
            torch.nn.init.zeros_(self.layer.bias_hh_l0)

    def hidden(self, way):
        return self.layer(self.x)[0]

    def clear(self):
        super().clear()
        self.layer.zero_grad(set_to_none=True)
