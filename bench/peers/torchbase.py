# SPDX-License-Identifier: Apache-2.0
"""Common code of the frameworks based on PyTorch: tensors, spike function, readout, loss."""
import torch

KINDS = {"float": torch.float32, "double": torch.float64, "bf16": torch.bfloat16}


def spike(width, height):
    """The step function with a triangular surrogate derivative."""

    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * torch.clamp(x.abs() * (-height / width) + height, min=0)

    return Spike.apply


class TorchNet:
    """Creates the inputs once; subclasses provide hidden(way) -> spikes [step][sample][unit]."""

    VERSION = "PyTorch " + torch.__version__
    WAYS = ["eager"]

    def __init__(self, problem, precision):
        self.problem, self.kind = problem, KINDS[precision]
        self.x = torch.from_numpy(problem.dense("float64" if precision == "double" else "float32")).to(self.kind)
        self.labels = torch.from_numpy(problem.labels)
        self.leaves = {}
        self.steps = problem.steps
        self.w_out, self.b_out = self.leaf("readout.weight"), self.leaf("readout.bias")
        self.build(problem)

    def leaf(self, name, scale=1.0, transposed=False):
        """A parameter of the framework from one of neap: multiplied by scale, optionally transposed."""
        values = torch.from_numpy(self.problem.weight(name) * scale).to(self.kind)
        if name.endswith(".bias"):
            values = values.reshape(-1)
        tensor = (values.t() if transposed else values).contiguous().requires_grad_()
        self.leaves[name] = (tensor, scale, transposed)
        return tensor

    def adopt(self, module, attribute, name, scale=1.0, transposed=True):
        """As above, stored as the parameter `attribute` of a module."""
        parameter = torch.nn.Parameter(self.leaf(name, scale, transposed).detach())
        setattr(module, attribute, parameter)
        self.leaves[name] = (parameter, scale, transposed)

    def gradients(self):
        out = {}
        for name, (tensor, scale, transposed) in self.leaves.items():
            grad = tensor.grad.t() if transposed else tensor.grad
            out[name] = (grad * scale).contiguous().numpy()
        return out

    def threads(self, count):
        torch.set_num_threads(count)

    def readout(self, spikes):
        """Leaky readout over all steps, mean over time, cross-entropy loss."""
        kappa = self.problem.decay
        current = torch.matmul(spikes, self.w_out) + self.b_out
        out = torch.zeros_like(current[0])
        answer = out
        for now in current.unbind(0):
            out = torch.lerp(now, out, kappa)
            answer = answer + out
        return torch.nn.functional.cross_entropy(answer / len(current), self.labels)

    def clear(self):
        for tensor, _, _ in self.leaves.values():
            tensor.grad = None

    def loss(self, way):
        return self.readout(self.hidden(way))

    def step(self, way):
        self.clear()
        loss = self.loss(way)
        loss.backward()
        return loss.item()

    def warm(self, way):
        """Runs a few steps, so that one-time initialisation is not timed."""
        x, self.x = self.x, self.x[: min(self.shortest(way), len(self.x))]
        self.steps = len(self.x)
        try:
            self.step(way)
            self.step(way)
        finally:
            self.x = x
            self.steps = len(x)
            self.clear()

    def shortest(self, way):
        return 4
