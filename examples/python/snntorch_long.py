#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Trains a spiking network of snnTorch on sequences that are 50 times longer, in the memory that a plain loop needs for the
short ones. The gradient is the one of plain autograd.
"""
import argparse

import snntorch
import torch

import neap.torch as nt

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=100, help="steps of the plain loop (default 100)")
parser.add_argument("--times", type=int, default=50, help="how many times longer the second run is, in the same memory (default 50)")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--hidden", type=int, default=128)
given = parser.parse_args()
torch.set_num_threads(1)  # tensors are small


class Net(torch.nn.Module):
    """(state, input, t) -> (state, output): one iteration of snnTorch's loop, with the membrane potentials as state."""

    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.first, self.second = torch.nn.Linear(inputs, hidden), torch.nn.Linear(hidden, classes)
        self.lif1, self.lif2 = snntorch.Leaky(beta=0.95), snntorch.Leaky(beta=0.95, reset_mechanism="none")

    def forward(self, state, x, t):
        spikes, mem1 = self.lif1(self.first(x), state[0])
        _, mem2 = self.lif2(self.second(spikes), state[1])
        return (mem1, mem2), mem2


def gradients(loop, steps):
    """Loss and gradients of all parameters for random input spikes."""
    torch.manual_seed(1)
    x = (torch.rand(steps, given.batch, 32) < 0.1).float()
    labels = torch.randint(0, 4, (given.batch,))
    net.zero_grad()
    outputs = loop((torch.zeros(given.batch, given.hidden), torch.zeros(given.batch, 4)), x)
    loss = torch.nn.functional.cross_entropy(outputs.mean(0), labels)
    loss.backward()
    return loss.item(), [p.grad.clone() for p in net.parameters()]


def plain(state, x):
    """The loop of snnTorch's tutorials."""
    outputs = []
    for t in range(len(x)):
        state, output = net(state, x[t], t)
        outputs.append(output)
    return torch.stack(outputs)


torch.manual_seed(0)
net = Net(32, given.hidden, 4)
loss, wanted = gradients(plain, given.steps)
scan = nt.Scan(net, memory="1G", group=1)
_, found = gradients(lambda *a: scan(*a)[1], given.steps)
report = scan.report()
same = all(torch.equal(a, b) for a, b in zip(wanted, found))
print(f"{given.steps} steps: loss {loss:.6f}, a plain loop stores {report.tape * given.steps} bytes of saved tensors; "
      f"gradients are {'bit-identical' if same else 'DIFFERENT'}")

budget = report.charged + report.tape * given.steps
scan = nt.Scan(net, memory=budget)
loss, _ = gradients(lambda *a: scan(*a)[1], given.times * given.steps)
print(f"{given.times * given.steps} steps: loss {loss:.6f} in {budget} bytes")
print(scan.report())
