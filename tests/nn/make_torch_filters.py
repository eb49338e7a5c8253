#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_filters.json: networks with convolutions, pooling and batch normalisation, run and differentiated by PyTorch.

Products are torch.nn.functional's conv2d, max_pool2d, avg_pool2d and batch_norm in double precision. Units of a
convolution are numbered (y, x, channel), inputs (channel, y, x). test_torch.c compares loss, spikes
and gradients. Usage: make_torch_filters.py [torch_filters.json]
"""
import math
import sys

import torch
from torch.nn import functional as F

from make_torch_cells import DT, Adlif, Alif, Cubalif, Spiking, run, with_grad, write
from make_torch_dump import weights


class Lif(Spiking):
    def __init__(self, *args, tau, **more):
        super().__init__(*args, **more)
        self.beta = math.exp(-DT / tau)

    def begin(self):
        pass

    def membrane(self, current, reset):
        self.u = self.beta * self.u + current - reset
        return self.u


def pooled(image, size, pooling, stride=None, pad=0):
    """Windows of an image (channels, height, width); a mean counts the zeros of the padding."""
    if pooling == "max":
        return F.max_pool2d(image[None], size, stride, pad)[0]
    return F.avg_pool2d(image[None], size, stride, pad)[0] * (math.prod(size) if pooling == "sum" else 1)


class Pool:
    """Pools the outputs y of an image of (channels, height, width); None: as they are."""

    def __init__(self, shape, from_conv, size=None, pooling="sum", windows=(None, 0)):
        self.shape, self.from_conv, self.size, self.pooling, self.windows = shape, from_conv, size, pooling, windows

    def image(self, y):
        c, h, w = self.shape
        image = y.view(h, w, c).permute(2, 0, 1) if self.from_conv else y.view(c, h, w)
        if self.size is None:
            return image
        return pooled(image, self.size, self.pooling, *self.windows)

    def __call__(self, y):
        image = self.image(y)
        return (image.permute(1, 2, 0) if self.from_conv else image).flatten()


class Conv(Pool):
    def __init__(self, shape, from_conv, kernel, channels, scale, stride=1, pad=0, dilation=1, groups=1,
                 behind=None, **pool):
        super().__init__(shape, from_conv, **pool)
        self.behind = behind  # (size, pooling, stride, pad) of windows of the sums, to which the bias is added
        self.options = {"stride": stride, "padding": pad, "dilation": dilation, "groups": groups}
        fan = shape[0] // groups * math.prod(kernel)
        self.w = weights(channels, shape[0] // groups, *kernel, scale=scale / math.sqrt(fan))
        self.b = weights(channels, scale=0.02 * scale)
        self.groups = groups

    def sums(self, y):
        if self.behind is None:
            return F.conv2d(self.image(y)[None], self.w, self.b, **self.options)[0]
        out = F.conv2d(self.image(y)[None], self.w, None, **self.options)[0]
        return pooled(out, *self.behind) + self.b[:, None, None]

    def __call__(self, y):
        return self.sums(y).permute(1, 2, 0).flatten()

    def plane(self):
        return tuple(self.sums(torch.zeros(math.prod(self.shape))).shape)

    def rows(self, w):
        """[channel below, i, j][channel of a group]"""
        o, below = w.shape[:2]
        return w.reshape(self.groups, o // self.groups, below, -1).permute(0, 2, 3, 1)

    def tensors(self):
        return {"weight": with_grad(self.rows(self.w), self.rows(self.w.grad)), "bias": self.b}


def convolved(cell, conv, **options):
    """A layer of a cell whose product is a convolution."""
    layer = cell(math.prod(conv.plane()), 1, False, 1, **options)
    layer.product, layer.tensors = conv, conv.tensors
    return layer


def normed(layer, channels):
    """The layer with batch normalisation of its products: the running statistics of F.batch_norm are given."""
    def row(low, high):
        return torch.empty(channels).uniform_(low, high)

    product, scale, mean, variance = layer.product, row(0.6, 1.4).requires_grad_(), row(-0.2, 0.2), row(0.4, 2)
    bias = product.b if isinstance(product, Conv) else layer.b

    def normalised(x):
        sums = product(x) - bias.repeat(layer.n // channels)
        sums = F.batch_norm(sums.view(-1, channels), mean, variance, scale, bias, training=False, eps=1e-5)
        return sums.flatten()

    layer.product = normalised
    layer.leaks = {"norm_scale": scale, "norm_mean": with_grad(mean, torch.zeros(channels)),
                   "norm_variance": with_grad(variance, torch.zeros(channels))}
    return layer


def norms():
    a, b = two({"kernel": (3, 2), "channels": 4, "scale": 3, "groups": 2},
               {"kernel": (2, 2), "channels": 3, "scale": 4, "size": (2, 1), "pooling": "avg", "behind": ((1, 2), "sum", None, 0)})
    return run("norms", "lif:conv=3x2:groups=2:channels=4:shape=2x6x5:norm=batch:tau=10ms,"
               "alif:conv=2:channels=3:pool=2x1:pooling=avg:conv_pool=1x2:norm=batch:tau=15ms:tau_adapt=12ms:adapt=0.15,"
               "cubalif:7r:norm=batch:tau=10ms:tau_syn=4ms,li:tau=20ms",
               [normed(convolved(Lif, a, tau=10e-3), 4),
                normed(convolved(Alif, b, tau=15e-3, tau_adapt=12e-3, adapt=0.15), 3),
                normed(Cubalif(7, math.prod(b.plane()), True, 2, tau=10e-3, tau_syn=4e-3), 7)], 60, 3, [30, 21], 0.06)


def maxima():
    """Maxima of the sums of convolutions, in windows without and with overlap."""
    a, b = two({"kernel": (3, 2), "channels": 3, "scale": 3, "behind": ((2, 2), "max", None, 0)},
               {"kernel": (2, 1), "channels": 4, "scale": 4, "pad": (1, 1), "behind": ((3, 2), "max", (1, 1), (1, 1))})
    return run("maxima", "lif:conv=3x2:channels=3:shape=2x6x5:conv_pool=2:conv_pooling=max:tau=10ms,"
               "alif:conv=2x1:channels=4:pad=1:conv_pool=3x2:conv_pooling=max:conv_pool_stride=1:conv_pool_pad=1:norm=batch:"
               "tau=15ms:tau_adapt=12ms:adapt=0.15:delay=1,li:tau=20ms",
               [convolved(Lif, a, tau=10e-3),
                normed_sums(convolved(Alif, b, tau=15e-3, tau_adapt=12e-3, adapt=0.15, delay=True), 4)], 60, 3, [30, 21], 0.06)


def normed_sums(layer, channels):
    """As normed, of the sums before they are pooled."""
    conv, pools = layer.product, layer.product.behind
    conv.behind, units = None, layer.n
    layer.n = math.prod(conv.plane())
    normed(layer, channels)
    sums, size, image = layer.product, layer.n, conv.plane()
    layer.n = units

    def product(x):
        layer.n = size
        found = sums(x).view(*image[1:], channels).permute(2, 0, 1) - conv.b[:, None, None]
        layer.n = units
        return (pooled(found, *pools) + conv.b[:, None, None]).permute(1, 2, 0).flatten()

    layer.product = product
    return layer


def two(first, second):
    """A layer on the inputs (2, 6, 5), and one on top of it."""
    conv = Conv((2, 6, 5), False, **first)
    return conv, Conv(conv.plane(), True, **second)


def strides():
    a, b = two({"kernel": (3, 3), "channels": 3, "scale": 2.5, "stride": (2, 1), "pad": 1},
               {"kernel": (2, 3), "channels": 4, "scale": 3, "pad": (0, 2), "dilation": (1, 2)})
    return run("strides", "lif:conv=3:stride=2x1:pad=1:channels=3:shape=2x6x5:tau=10ms,"
               "lif:conv=2x3:pad=0x2:dilation=1x2:channels=4:tau=8ms:delay=1,li:tau=20ms",
               [convolved(Lif, a, tau=10e-3), convolved(Lif, b, tau=8e-3, delay=True)], 60, 3, [30, 21], 0.06)


def groups():
    a, b = two({"kernel": (3, 2), "channels": 4, "scale": 2.5, "groups": 2},
               {"kernel": (2, 2), "channels": 4, "scale": 4, "groups": 4, "size": (2, 2)})
    return run("groups", "cubalif:conv=3x2:groups=2:channels=4:shape=2x6x5:tau=10ms:tau_syn=4ms,"
               "alif:conv=2:groups=4:channels=4:pool=2:tau=15ms:tau_adapt=12ms:adapt=0.15:detach=1,li:tau=20ms",
               [convolved(Cubalif, a, tau=10e-3, tau_syn=4e-3),
                convolved(Alif, b, tau=15e-3, tau_adapt=12e-3, adapt=0.15, detach=True)], 60, 3, [30, 21], 0.06)


def pools(pooling):
    more = 2 if pooling == "avg" else 1

    def make():
        a, b = two({"kernel": (2, 2), "channels": 3, "scale": 4 * more, "size": (1, 2), "pooling": pooling},
                   {"kernel": (3, 1), "channels": 5, "scale": 30 * more, "size": (2, 1), "pooling": pooling, "pad": (1, 0)})
        last = Pool(b.plane(), True, (1, 1) if b.plane()[2] < 2 else (2, 1), pooling)
        return run("pool " + pooling, f"lif:conv=2:channels=3:pool=1x2:pooling={pooling}:shape=2x6x5:tau=10ms,"
                   f"adlif:conv=3x1:pad=1x0:channels=5:pool=2x1:pooling={pooling}:tau=8ms:tau_adapt=12ms:a=0.05:b=0.2,"
                   f"li:tau=20ms" + (f":pool=2x1:pooling={pooling}" if last.size == (2, 1) else ""),
                   [convolved(Lif, a, tau=10e-3), convolved(Adlif, b, tau=8e-3, tau_adapt=12e-3, a=0.05, b=0.2)],
                   60, 3, [30, 21], 0.08, pool=last)
    return make


def windows(pooling):
    """Windows that overlap, leave gaps and are padded, before and behind convolutions."""
    more = 2 if pooling == "avg" else 1

    def make():
        behind = "sum" if pooling == "max" else pooling
        a, b = two({"kernel": (2, 2), "channels": 3, "scale": 3 * more, "size": (3, 2), "pooling": pooling,
                    "windows": ((1, 1), (1, 0)), "behind": ((2, 1), behind, (1, 1), 0)},
                   {"kernel": (2, 1), "channels": 4, "scale": 4 * more, "size": (2, 2), "pooling": pooling,
                    "windows": ((1, 3), (1, 1)), "behind": ((3, 2), behind, (2, 1), (1, 1))})
        last = Pool(b.plane(), True, (2, 2), pooling, ((1, 1), (1, 0)))
        by = f"pooling={pooling}"
        return run("windows " + pooling,
                   f"lif:conv=2:channels=3:pool=3x2:{by}:pool_stride=1:pool_pad=1x0:shape=2x6x5:"
                   f"conv_pool=2x1:conv_pooling={behind}:conv_pool_stride=1:tau=10ms,"
                   f"alif:conv=2x1:channels=4:pool=2:{by}:pool_stride=1x3:pool_pad=1:conv_pool=3x2:"
                   f"conv_pooling={behind}:conv_pool_stride=2x1:conv_pool_pad=1:tau=15ms:tau_adapt=12ms:adapt=0.15,"
                   f"li:tau=20ms:pool=2:{by}:pool_stride=1:pool_pad=1x0",
                   [convolved(Lif, a, tau=10e-3), convolved(Alif, b, tau=15e-3, tau_adapt=12e-3, adapt=0.15)],
                   60, 3, [30, 21], 0.08, pool=last)
    return make


def nets():
    yield strides
    yield groups
    for pooling in ("sum", "avg", "max"):
        yield pools(pooling)
    for pooling in ("sum", "avg", "max"):
        yield windows(pooling)
    yield norms
    yield maxima


if __name__ == "__main__":
    write(nets, sys.argv[1] if len(sys.argv) > 1 else "torch_filters.json")
