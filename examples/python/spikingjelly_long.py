#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Trains a spiking network of SpikingJelly on sequences that are 50 times longer, in the memory that a plain loop needs for the
short ones. The gradient is the one of plain autograd.
"""
import argparse

import torch
from spikingjelly.activation_based import functional, layer, neuron, surrogate

import neap.torch as nt

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100, help="steps of the plain loop (default 100)")
parser.add_argument("--times", type=int, default=50, help="how many times longer the second run is, in the same memory (default 50)")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--hidden", type=int, default=128)
given = parser.parse_args()
torch.set_num_threads(1)  # tensors are small


class Step(torch.nn.Module):
    """(state, input, t) -> (state, output) of any network in step mode "s": sets the membrane potentials before
    the step, reads them after it, and resets the neurons."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.neurons = [part for part in net.modules() if isinstance(part, neuron.BaseNode)]

    def forward(self, state, x, t):
        for one, v in zip(self.neurons, state):
            one.v = v
        output = self.net(x)
        state = tuple(one.v for one in self.neurons)
        functional.reset_net(self.net)
        return state, output


def gradients(loop, steps):
    """Loss and gradients of all parameters for random input spikes."""
    torch.manual_seed(1)
    x = (torch.rand(steps, given.batch, 32) < 0.1).float()
    labels = torch.randint(0, 4, (given.batch,))
    step.zero_grad()
    rate = loop((torch.zeros(given.batch, given.hidden), torch.zeros(given.batch, 4)), x).mean(0)
    loss = torch.nn.functional.mse_loss(rate, torch.nn.functional.one_hot(labels, 4).float())
    loss.backward()
    return loss.item(), [p.grad.clone() for p in step.parameters()]


def plain(state, x):
    """A loop over time."""
    outputs = []
    for t in range(len(x)):
        state, output = step(state, x[t], t)
        outputs.append(output)
    return torch.stack(outputs)


torch.manual_seed(0)
lif = dict(tau=5.0, decay_input=False, v_threshold=0.2, surrogate_function=surrogate.ATan())
step = Step(torch.nn.Sequential(layer.Linear(32, given.hidden), neuron.LIFNode(**lif),
                                layer.Linear(given.hidden, 4), neuron.LIFNode(**lif)))
loss, wanted = gradients(plain, given.steps)
scan = nt.Scan(step, memory="1G", group=1)
_, found = gradients(lambda *a: scan(*a)[1], given.steps)
report = scan.report()
same = all(torch.equal(a, b) for a, b in zip(wanted, found))
print(f"{given.steps} steps: loss {loss:.6f}, a plain loop stores {report.tape * given.steps} bytes of saved tensors; "
      f"gradients are {'bit-identical' if same else 'DIFFERENT'}")

budget = report.charged + report.tape * given.steps
scan = nt.Scan(step, memory=budget)
loss, _ = gradients(lambda *a: scan(*a)[1], given.times * given.steps)
print(f"{given.times * given.steps} steps: loss {loss:.6f} in {budget} bytes")
print(scan.report())
