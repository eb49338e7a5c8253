# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch: the recurrent LIF layer as an experienced user writes it, in several variants.

eager       a loop over steps, with the product with the inputs computed before the loop
sparse      the same, with the inputs as a sparse matrix
compile     torch.compile of the loop body, five steps at a time
checkpoint  torch.utils.checkpoint with sqrt(T) segments
by hand     the layer as one autograd function with a hand-written backward
"""
import math

import torch
import torch.utils.checkpoint
from torchbase import TorchNet, spike

UNROLLED = 5


class Layer(torch.autograd.Function):
    """All steps at once: stores membrane potentials and spikes; weight gradients are one product."""

    @staticmethod
    def forward(ctx, current, v, beta, width):
        spikes, membranes = torch.empty_like(current), torch.empty_like(current)
        u, s = torch.zeros_like(current[0]), torch.zeros_like(current[0])
        for t in range(len(current)):
            now = torch.addmm(current[t], s, v)
            now.add_(u, alpha=beta).sub_(s)
            u, s = membranes[t].copy_(now), torch.gt(now, 1, out=None).to(now.dtype)
            spikes[t] = s
        ctx.save_for_backward(spikes, membranes, v)
        ctx.beta, ctx.width = beta, width
        return spikes

    @staticmethod
    def backward(ctx, grad):
        spikes, membranes, v = ctx.saved_tensors
        slope = (membranes - 1).abs_().mul_(-1 / ctx.width).add_(1).clamp_(min=0)
        du, transposed = torch.zeros_like(v.new_empty(grad.shape[1:])), v.t().contiguous()
        for t in range(len(grad) - 1, -1, -1):
            ds = torch.addmm(grad[t], du, transposed).sub_(du)
            du = torch.addcmul(du * ctx.beta, slope[t], ds, out=slope[t])
        units = grad.shape[-1]
        dv = spikes[:-1].reshape(-1, units).t() @ slope[1:].reshape(-1, units)
        return slope, dv, None, None


class Net(TorchNet):
    WAYS = ["eager", "sparse", "compile", "checkpoint", "by hand"]
    if not hasattr(torch, "compile"):
        WAYS = ["eager"]

    def build(self, problem):
        self.w, self.v = self.leaf("layer0.weight"), self.leaf("layer0.recurrent")
        self.b = self.leaf("layer0.bias")
        self.spike = spike(problem.width, 1.0)
        self.beta = problem.decay
        self.compiled = None
        self.csr = None

    def one(self, u, s, current, v):
        u = torch.add(torch.addmm(current, s, v), u, alpha=self.beta) - s
        return u, self.spike(u - 1)

    def several(self, u, s, currents, v):
        out = []
        for current in currents.unbind(0):
            u, s = self.one(u, s, current, v)
            out.append(s)
        return u, torch.stack(out)

    def current(self, way):
        x = self.x.flatten(0, 1)
        if way == "sparse":
            if self.csr is None or len(self.csr) != len(x):
                self.csr = x.to_sparse_csr()
            return (torch.sparse.mm(self.csr, self.w) + self.b).unflatten(0, (self.steps, -1))
        return torch.addmm(self.b, x, self.w).reshape(self.steps, self.problem.batch, -1)

    def start(self):
        zero = torch.zeros(self.problem.batch, self.problem.hidden, dtype=self.kind)
        return zero, zero

    def hidden(self, way):
        if way == "by hand":
            return Layer.apply(self.current(way), self.v, self.beta, self.problem.width)
        u, s = self.start()
        spikes = []
        if way == "compile":
            if self.compiled is None:
                self.compiled = torch.compile(self.several)
            for currents in self.current(way).split(UNROLLED):
                u, out = self.compiled(u, s, currents, self.v)
                s = out[-1]
                spikes.append(out)
            return torch.cat(spikes)
        for current in self.current(way).unbind(0):
            u, s = self.one(u, s, current, self.v)
            spikes.append(s)
        return torch.stack(spikes)

    def segment(self, x, u, s, out, answer):
        current = torch.addmm(self.b, x.flatten(0, 1), self.w).reshape(len(x), self.problem.batch, -1)
        for now in current.unbind(0):
            u, s = self.one(u, s, now, self.v)
            out = torch.lerp(torch.addmm(self.b_out, s, self.w_out), out, self.problem.decay)
            answer = answer + out
        return u, s, out, answer

    def loss(self, way):
        if way != "checkpoint":
            return super().loss(way)
        u, s = self.start()
        out = torch.zeros(self.problem.batch, self.problem.classes, dtype=self.kind)
        answer = out
        for x in self.x.split(math.isqrt(self.steps - 1) + 1):
            u, s, out, answer = torch.utils.checkpoint.checkpoint(
                self.segment, x, u, s, out, answer, use_reentrant=False)
        return torch.nn.functional.cross_entropy(answer / self.steps, self.labels)

    def shortest(self, way):
        return 2 * UNROLLED
