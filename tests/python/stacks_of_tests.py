# SPDX-License-Identifier: Apache-2.0
"""Stacks of unequal layers, a plain pass over them, and what it gives to be compared bit by bit."""
import torch
from torch import nn

torch.set_num_threads(1)


class Block(nn.Module):
    """A residual block of convolutions; a stride makes the image smaller."""

    def __init__(self, m, n, stride=1):
        super().__init__()
        self.a, self.b = nn.Conv2d(m, n, 3, stride, 1, bias=False), nn.Conv2d(n, n, 3, 1, 1, bias=False)
        self.p, self.q = nn.BatchNorm2d(n), nn.BatchNorm2d(n)
        self.skip = nn.Conv2d(m, n, 1, stride, bias=False) if (m, stride) != (n, 1) else nn.Identity()

    def forward(self, x):
        y = torch.relu_(self.p(self.a(x)))
        return torch.relu_(self.q(self.b(y)) + self.skip(x))


class Attention(nn.Module):
    """A layer of a transformer, with dropout."""

    def __init__(self, n, wide, drop=0.1):
        super().__init__()
        self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.up, self.down = nn.Linear(n, wide), nn.Linear(wide, n)
        self.p, self.q = nn.LayerNorm(n), nn.LayerNorm(n)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        q, k, v = self.qkv(self.p(x)).chunk(3, -1)
        x = x + self.out(self.drop(torch.softmax(q @ k.transpose(1, 2) / 4, -1)) @ v)
        return x + self.down(self.drop(torch.relu(self.up(self.q(x)))))


class Readout(nn.Module):
    """Uses the weights of the embedding once more."""

    def __init__(self, embedding):
        super().__init__()
        self.weight = embedding.weight

    def forward(self, x):
        return torch.log_softmax(x @ self.weight.t(), -1)


def resnet(k=4):
    return [nn.Conv2d(3, k, 3, 1, 1), nn.BatchNorm2d(k), nn.ReLU(), Block(k, k), Block(k, 2 * k, 2), Block(2 * k, 2 * k),
            Block(2 * k, 4 * k, 2), Block(4 * k, 4 * k), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * k, 5)]


def transformer(n=16):
    embedding = nn.Embedding(20, n)
    return [embedding, *[Attention(n, wide) for wide in (64, 16, 96, 32, 128)], nn.LayerNorm(n), Readout(embedding)]


def pyramid():
    shared = nn.Linear(24, 24)
    rows = [12, 200, 96, 24]
    down = [nn.Sequential(nn.Linear(m, n), nn.Tanh()) for m, n in zip(rows, rows[1:])]
    return [*down, nn.Dropout(0.3), shared, nn.Identity(), nn.Tanh(), shared, nn.Sequential(nn.Linear(24, 150), nn.ReLU()),
            nn.Unflatten(1, (3, 50)), nn.Flatten(), nn.Linear(150, 3)]


STACKS = {"resnet": resnet, "transformer": transformer, "pyramid": pyramid}


def stack(name):
    torch.manual_seed(1)
    return STACKS[name]()


def given(name, grad=True, seed=2):
    torch.manual_seed(seed)
    if name == "transformer":
        return torch.randint(0, 20, (4, 11))
    return torch.randn(*((6, 3, 12, 12) if name == "resnet" else (400, 12)), requires_grad=grad)


def trained(net, x, rounds=2):
    """Losses, outputs, gradients, buffers and the generator after some rounds of training."""
    torch.manual_seed(5)
    rows = []
    for _ in range(rounds):
        for leaf in [x, *net.parameters()]:
            leaf.grad = None
        out = net(x)
        loss = (out ** 2).mean()
        loss.backward()
        rows += [loss.detach(), out.detach(), *[None if leaf.grad is None else leaf.grad.clone()
                                               for leaf in (x, *net.parameters())]]
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.01 * p.grad if p.grad is not None else 0
    return rows + [b.clone() for b in net.buffers()] + [torch.get_rng_state()]


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a is None) == (b is None) and (a is None or torch.equal(a, b)), (a - b).abs().max()
