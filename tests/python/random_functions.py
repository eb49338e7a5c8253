# SPDX-License-Identifier: Apache-2.0
"""Custom autograd.Functions of many kinds, and the part of a random step that uses one."""
import torch

from random_parts import Part, part


def function(forward, backward, **more):
    return type("Function", (torch.autograd.Function,), dict(
        forward=staticmethod(forward), backward=staticmethod(backward), **more))


def _saved(ctx, x, w):
    y = torch.tanh(x * w)
    ctx.save_for_backward(x, w, y)
    return y


def _saved_back(ctx, g):
    x, w, y = ctx.saved_tensors
    g = g * (1 - y * y)
    return g * w, (g * x).sum(0)


def _attribute(ctx, x, w):
    ctx.x, ctx.w = x.detach().clone(), w
    return x * w


def _attribute_back(ctx, g):
    return g * ctx.w.detach(), (g * ctx.x).sum(0)


def _needs(ctx, x, w):
    ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, w if ctx.needs_input_grad[0] else None)
    return x * w


def _needs_back(ctx, g):
    x, w = ctx.saved_tensors
    return None if w is None else g * w, None if x is None else (g * x).sum(0)


def _dirty(ctx, x, w):
    ctx.save_for_backward(x.clone(), w)
    ctx.mark_dirty(x)
    return x.mul_(w)


def _pair(ctx, x, w):
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, w)
    index = (x > 0).sum(1)
    ctx.mark_non_differentiable(index)
    return x * w, x.sin(), index


def _pair_back(ctx, g, k, _):
    x, w = ctx.saved_tensors
    a = None if g is None else g * w
    b = None if k is None else k * x.cos()
    return (b if a is None else a if b is None else a + b), None if g is None else (g * x).sum(0)


def _spike(ctx, x, w):
    ctx.save_for_backward(x, w)
    return (x * w > 0).to(x.dtype)


def _spike_back(ctx, g):
    x, w = ctx.saved_tensors
    g = g / (1 + (x * w).abs()) ** 2
    return g * w, (g * x).sum(0)


once = torch.autograd.function.once_differentiable
FUNCTIONS = {"saved": function(_saved, _saved_back), "attribute": function(_attribute, _attribute_back),
             "needs": function(_needs, _needs_back), "once": function(_saved, once(_saved_back)),
             "dirty": function(_dirty, _needs_back), "pair": function(_pair, _pair_back),
             "spike": function(_spike, _spike_back)}


@part
class Function(Part):
    def make(self, pick, case):
        self.kind, self.w, self.which = pick.choice(sorted(FUNCTIONS)), self.weight(case.n), pick.randint(0, 1)
        self.w.data += 1
        self.w.requires_grad_(pick.random() < 0.8)

    def forward(self, s, x, t):
        h = s["h"] * 1 if self.kind == "dirty" else s["h"]
        made = FUNCTIONS[self.kind].apply(h, self.w)
        if self.kind == "pair":
            made = made[self.which if t % 3 else 0] + 0.01 * made[2][:, None]
        s["h"] = made if self.kind != "spike" else 0.5 * made + 0.5 * s["h"]


