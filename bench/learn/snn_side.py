# SPDX-License-Identifier: Apache-2.0
"""LIF of snnTorch: a hidden layer without recurrent weights and a leaky readout, as in its tutorials.

nn.Linear, Leaky with the surrogate fast_sigmoid, nn.Linear, and Leaky without a reset, whose membrane is the answer: of
each step if there is a target per step, as in its tutorial on regression, else the mean over time. The time constants
are neap's defaults.
"""
import math

import snntorch
import torch
from snntorch import surrogate

import torch_side

TAU = 20e-3  # seconds, neap's default for membranes


class Spiking(torch.nn.Module):
    def __init__(self, features, units, outputs, dt, per_step):
        super().__init__()
        beta = math.exp(-dt / TAU)
        self.inputs, self.out = torch.nn.Linear(features, units), torch.nn.Linear(units, outputs)
        self.hidden = snntorch.Leaky(beta=beta, spike_grad=surrogate.fast_sigmoid())
        self.leaky = snntorch.Leaky(beta=beta, reset_mechanism="none")
        self.per_step = per_step

    def forward(self, x, lengths):
        """Membranes of the readout, (samples, steps, outputs), or their mean over each sample's steps."""
        current, u, spikes = self.inputs(x), self.hidden.init_leaky(), []
        for t in range(x.shape[1]):
            spike, u = self.hidden(current[:, t], u)
            spikes.append(spike)
        current, o, answers = self.out(torch.stack(spikes, 1)), self.leaky.init_leaky(), []
        for t in range(x.shape[1]):
            _, o = self.leaky(current[:, t], o)
            answers.append(o)
        answers = torch.stack(answers, 1)
        if self.per_step:
            return answers
        inside = (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
        return (answers * inside).sum(1) / lengths[:, None]


def run(problem, seed, schedule):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Spiking(problem.train.x.shape[2], problem.units, problem.classes or 1, problem.dt, problem.per_step)
    x, lengths, y = torch_side.train(
        problem, model, lambda x, n, y: torch_side.loss_of(problem, model(x, n), y), seed, schedule)
    with torch.no_grad():
        return torch_side.score(problem, model(x, lengths), y)
