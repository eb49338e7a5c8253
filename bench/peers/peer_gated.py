# SPDX-License-Identifier: Apache-2.0
"""torch.nn.LSTM, torch.nn.GRU and torch.nn.RNN with the same leaky readout."""
import torch
from torchbase import TorchNet

LAYERS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}


class Net(TorchNet):
    def build(self, problem):
        self.layer = LAYERS[problem.kind](problem.inputs, problem.hidden).to(self.kind)
        if problem.shared:  # neap's weights, otherwise weights from PyTorch's generator
            self.adopt(self.layer, "weight_ih_l0", "layer0.weight")
            self.adopt(self.layer, "weight_hh_l0", "layer0.recurrent")
            self.adopt_biases(torch.from_numpy(problem.weight("layer0.bias")).reshape(-1))

    def adopt_biases(self, values):
        """PyTorch has two biases. For a GRU neap stores both in one row; otherwise the row is their sum."""
        rows = values.to(self.kind).split(len(self.layer.bias_ih_l0))
        with torch.no_grad():
            self.layer.bias_ih_l0.copy_(rows[0])
            self.layer.bias_hh_l0.copy_(rows[1] if len(rows) > 1 else torch.zeros_like(rows[0]))
        self.biases = [self.layer.bias_ih_l0, self.layer.bias_hh_l0][:len(rows)]

    def gradients(self):
        out = super().gradients()
        out["layer0.bias"] = torch.cat([bias.grad for bias in self.biases]).numpy()
        return out

    def hidden(self, way):
        return self.layer(self.x)[0]

    def clear(self):
        super().clear()
        self.layer.zero_grad(set_to_none=True)
