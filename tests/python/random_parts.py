# SPDX-License-Identifier: Apache-2.0
"""Parts that random steps are put together from. Each changes the state ``s``, a dict of tensors by name; ``s["h"]``,
[B, N], is always there.

A part declares what it may lead to: ``loose`` if documented rounding applies (the case is then computed in double
precision and compared to 1e-12), ``accept`` the messages with which a scan may refuse it, ``options`` the arguments
that it needs, and ``warns`` if the scan may warn that its steps are not deterministic.
"""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

NEW = hasattr(torch, "compile")  # PyTorch 2
PARTS = {}
# Before PyTorch 2.1 nodes have no numbers: a tensor that was computed outside and not named shows in backward alone.
OLD = (r"an earlier step (made|computed)", r"backward through the graph a second time")
IN_PLACE = r"in-place operation|modified by an inplace operation|writes? into its state|modifies its state"


def part(kind):
    """Registers a part under the name of its class, in lower case."""
    PARTS[kind.__name__.lower()] = kind
    return kind


class Part(nn.Module):
    loose, accept, options, warns, new = False, (), {}, False, False

    def __init__(self, pick, case):
        super().__init__()
        self.case = case
        self.make(pick, case)

    def make(self, pick, case):
        pass

    def weight(self, *shape, scale=0.5):
        return nn.Parameter(torch.randn(*shape, dtype=self.case.dtype) * scale / shape[0] ** 0.5)

    def start(self):
        """Slots of the state that the part needs."""
        return {}

    def prepare(self):
        """Computes parameters, before each scan."""

    def named(self):
        """Tensors that are named in params."""
        return []

    def leaves(self):
        """Leaves that need gradients and that are not registered."""
        return []


# Cells

@part
class Rnn(Part):
    def make(self, pick, case):
        self.w, self.v, self.b = self.weight(case.n, case.n), self.weight(case.i, case.n), self.weight(case.n)

    def forward(self, s, x, t):
        s["h"] = torch.tanh(s["h"] @ self.w + x @ self.v + self.b)


@part
class Gru(Part):
    def make(self, pick, case):
        self.cell = nn.GRUCell(case.i, case.n).to(case.dtype)

    def forward(self, s, x, t):
        s["h"] = self.cell(x, s["h"])


@part
class Lstm(Part):
    def make(self, pick, case):
        self.cell = nn.LSTMCell(case.i, case.n).to(case.dtype)

    def start(self):
        return {"c": torch.randn(self.case.b, self.case.n, dtype=self.case.dtype)}

    def forward(self, s, x, t):
        s["h"], s["c"] = self.cell(x, (s["h"], s["c"]))


# Parameters

@part
class Tied(Part):
    def make(self, pick, case):
        self.w = self.weight(case.n, 3)

    def forward(self, s, x, t):
        s["h"] = s["h"] + torch.tanh(s["h"] @ self.w) @ self.w.t()


@part
class Frozen(Part):
    def make(self, pick, case):
        self.w = self.weight(case.n, case.n).requires_grad_(False)
        self.scale = self.weight(case.n)
        self.register_buffer("mask", torch.arange(case.n) % 3 > 0)

    def forward(self, s, x, t):
        s["h"] = s["h"] * self.mask + torch.sin(s["h"] @ self.w) * self.scale


class Twice(torch.autograd.Function):
    """A function of Python in the history of a parameter."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


MADE = {"view": lambda r: r.view(r.shape[1], r.shape[0]).t(), "product": lambda r: r * r,
        "flip": lambda r: r - r.flip(0),
        "norm": lambda r: r / r.norm(dim=0, keepdim=True), "drop": lambda r: F.dropout(r, 0.3),
        "chain": lambda r: (r.exp() - 1).tanh() * r, "anti": lambda r: r - r.t(), "python": Twice.apply,
        "checkpoint": lambda r: checkpoint(torch.tanh, r, use_reentrant=False),
        "slice": lambda r: torch.cat([r, r])[1:-1][:len(r)]}


@part
class Computed(Part):
    """A weight that was computed from ``raw``, which the step may use as well."""

    def make(self, pick, case):
        self.raw, self.how = self.weight(case.n, case.n), pick.choice(sorted(MADE))
        self.own, self.known = pick.choice(["no", "yes", "early", "late", "same"]), pick.random() < 0.9
        self.known |= not NEW  # what is not named then: test_torch_computed.py
        self.kept, self.again = pick.random() < 0.3, pick.random() < 0.3
        self.accept = (r"computed outside", r"Function of Python|custom autograd.Function", *([] if NEW else OLD))

    def prepare(self):
        self.made = MADE[self.how](self.raw)
        self.view = self.raw.view_as(self.raw)
        self.other = self.made.exp() if self.again else None
        if self.kept:
            self.made.retain_grad()

    def named(self):
        rows = [self.made, *([self.view] if self.own == "same" else []), *([self.other] if self.again else [])]
        return rows if self.known else []

    def leaves(self):
        return [self.made] if self.kept else []

    def forward(self, s, x, t):
        h = torch.tanh(s["h"] @ self.made)
        if self.own == "yes" or self.own == "early" and t < 4 or self.own == "late" and t > 6:
            h = h + 0.1 * self.raw[0].tanh()
        if self.own == "same":
            h = h + 0.1 * self.view[0].tanh()
        if self.again and t % 2:
            h = h + 0.01 * (s["h"] @ self.other)
        s["h"] = h


@part
class Chunks(Part):
    """Two weights that one operation computed."""

    def make(self, pick, case):
        self.raw, self.both = self.weight(2 * case.n), pick.random() < 0.7
        self.when = pick.choice([0, 0, 5])
        self.accept = (r"computed outside", *([] if NEW else OLD))

    def prepare(self):
        self.one, self.two = self.raw.exp().chunk(2)

    def named(self):
        return [self.one, self.two] if self.both else [self.two]

    def forward(self, s, x, t):
        s["h"] = s["h"] * torch.sigmoid(self.two)
        if t >= self.when:
            s["h"] = s["h"] + 0.1 * self.one


@part
class Late(Part):
    def make(self, pick, case):
        self.w, self.when = self.weight(case.n, case.n), pick.choice([1, 3, 12, 30])

    def forward(self, s, x, t):
        if t >= self.when:
            s["h"] = torch.tanh(s["h"] @ self.w)


@part
class Hidden(Part):
    """A leaf that no module has: found, or named; used from some step on."""

    def make(self, pick, case):
        self.held, self.when = [self.weight(case.n, case.n)], pick.choice([0, 0, 1, 5, 18])
        self.known = pick.random() < 0.5
        self.accept = (r"name it in params", r"Name it: params")

    def named(self):
        return self.held if self.known else []

    def leaves(self):
        return self.held

    def forward(self, s, x, t):
        if t >= self.when:
            s["h"] = s["h"] + 0.2 * torch.sin(s["h"] @ self.held[0])


@part
class Sparse(Part):
    def make(self, pick, case):
        self.kind = pick.choice(["constant", "built", "embedding", "csr"])
        self.w = self.weight(case.n, case.n)
        dense = torch.eye(case.n, dtype=case.dtype) * 0.7
        dense[0, -1] = 0.3
        self.constant = dense.to_sparse_csr() if self.kind == "csr" else dense.to_sparse()
        if self.kind == "embedding":
            self.table = nn.Embedding(7, case.n, sparse=True).to(case.dtype)

    def forward(self, s, x, t):
        if self.kind == "embedding":
            s["h"] = s["h"] + 0.1 * self.table(torch.arange(self.case.b) * (t + 1) % 7)
        elif self.kind == "built":
            at = torch.arange(self.case.n).repeat(2, 1)
            made = torch.sparse_coo_tensor(at, self.w[0], (self.case.n, self.case.n))
            s["h"] = torch.tanh(torch.sparse.mm(made, s["h"].t()).t() + s["h"])
        else:
            s["h"] = torch.tanh(torch.sparse.mm(self.constant, (s["h"] @ self.w).t()).t())


@part
class Normed(Part):
    """PyTorch's own ways to compute a weight within the step, by hooks of modules."""

    def make(self, pick, case):
        kind = pick.choice(["layer", "weight", "group", "parametrized"])
        linear = nn.Linear(case.n, case.n)
        if kind == "weight":
            linear = torch.nn.utils.parametrizations.weight_norm(linear) if NEW else torch.nn.utils.weight_norm(linear)
        if kind == "parametrized":
            nn.utils.parametrize.register_parametrization(linear, "weight", Skew())
        self.made = {"layer": nn.LayerNorm(case.n), "group": nn.GroupNorm(1, case.n)}.get(kind, linear).to(case.dtype)

    def forward(self, s, x, t):
        s["h"] = torch.tanh(self.made(s["h"]))


class Skew(nn.Module):
    def forward(self, x):
        return x.triu(1) - x.triu(1).t()


# Operations

@part
class Views(Part):
    def make(self, pick, case):
        self.kind = pick.choice(["slice", "split", "strided", "unbind", "expand", "transpose"])
        self.w = self.weight(case.n)

    def forward(self, s, x, t):
        h = s["h"]
        if self.kind == "slice":
            h = torch.cat([h[:, 1:] * self.w[1:], h[:, :1]], 1)
        elif self.kind == "split":
            a, b = h.split([1, self.case.n - 1], 1)
            h = torch.cat([b.sin() * a, a], 1) + self.w
        elif self.kind == "strided":
            h = (h.contiguous().as_strided((self.case.n, self.case.b), (1, self.case.n)) * self.w[:, None]).t()
        elif self.kind == "unbind":
            h = torch.stack([row * self.w for row in h.unbind(0)])
        elif self.kind == "expand":
            h = h * self.w.expand(self.case.b, -1) + h[:1].expand_as(h)
        else:
            h = torch.tanh((h * self.w).t()).t()  # a state with strides of its own
        s["h"] = h


@part
class InPlace(Part):
    """Writes into tensors that the step made."""

    def make(self, pick, case):
        self.kind, self.w = pick.choice(["add", "relu", "index", "out", "masked", "view"]), self.weight(case.n, case.n)

    def forward(self, s, x, t):
        h = s["h"] @ self.w
        if self.kind == "add":
            h.add_(0.1).mul_(0.9)
        elif self.kind == "relu":
            h = F.relu(h + 0.1, inplace=True)
        elif self.kind == "index":
            h[:, 0] = h[:, -1].detach() * 0.5
        elif self.kind == "out":
            made = torch.zeros_like(h)
            made.copy_(h.tanh())
            h = made
        elif self.kind == "masked":
            h.masked_fill_(h > 0.5, 0.5)
        else:
            h[:, :2].mul_(0.5)
        s["h"] = h.tanh()


@part
class Written(Part):
    """Writes into its state, from some step on: may be refused."""

    accept = (IN_PLACE,)

    def make(self, pick, case):
        self.when, self.kind = pick.choice([0, 0, 1, 4]), pick.choice(["add", "view", "count", "grad"])
        self.w = self.weight(case.n)

    def start(self):
        return {"count": torch.zeros(3, dtype=torch.int64)}

    def forward(self, s, x, t):
        if t >= self.when:
            if self.kind == "count":
                s["count"].add_(1)
            elif self.kind == "grad":
                s["h"].mul_(self.w)
            else:
                (s["h"][:, :1] if self.kind == "view" else s["h"]).mul_(0.5)
        s["h"] = s["h"] * self.w


@part
class Random(Part):
    def make(self, pick, case):
        self.kind = pick.choice(["dropout", "module", "alpha", "noise", "bernoulli", "rrelu", "multinomial", "late"])
        self.drop, self.w = nn.Dropout(0.3), self.weight(case.n)

    def forward(self, s, x, t):
        h = s["h"]
        if self.kind == "dropout" or self.kind == "late" and t > 2:
            h = F.dropout(h, 0.2)
        elif self.kind == "module":
            h = self.drop(h)
        elif self.kind == "alpha":
            h = F.alpha_dropout(h, 0.2, True) * 0.5
        elif self.kind == "noise":
            h = h + 0.1 * torch.randn_like(h)
        elif self.kind == "bernoulli":
            p = torch.sigmoid(h)
            h = h + p - p.detach() + torch.bernoulli(p.detach())
        elif self.kind == "rrelu":
            h = F.rrelu(h, training=True)
        elif self.kind == "multinomial":
            h = h * 0.5 + h[:, torch.multinomial(torch.ones(self.case.n), 1)]
        s["h"] = torch.tanh(h * self.w)


@part
class Autocast(Part):
    """Autocast within the step, with its cache of weights."""

    def make(self, pick, case):
        self.cell, self.cached = nn.Linear(case.n, case.n).to(case.dtype), pick.random() < 0.5
        self.times = pick.randint(1, 2)

    def forward(self, s, x, t):
        h = s["h"]
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=self.cached):
            for _ in range(self.times):
                h = torch.tanh(self.cell(h))
        s["h"] = h.to(s["h"].dtype)


@part
class Branch(Part):
    """Which weight is used, and how often, depends on values; how much is done depends on t."""

    def make(self, pick, case):
        self.a, self.b = self.weight(case.n, case.n), self.weight(case.n, case.n)
        self.kind, self.every = pick.choice(["value", "loop", "clock", "growing"]), pick.choice([2, 5, 7])

    def forward(self, s, x, t):
        h, many = s["h"], 1
        if self.kind == "value":
            h = torch.tanh(h @ (self.a if float(h.detach().mean()) > 0 else self.b))
        if self.kind == "loop":
            many = 1 + int(h.detach().abs().sum() * 10) % 4
        if self.kind == "clock":
            many = 5 if t % self.every == self.every - 1 else 0
        if self.kind == "growing":
            many = 1 + t // self.every
        for _ in range(many):
            h = torch.tanh(h @ self.a)
        s["h"] = h


@part
class Mixed(Part):
    """Operations of many kinds."""

    def make(self, pick, case):
        self.kinds = pick.sample("sort conv cumsum gather softmax einsum max where nograd item norm cast".split(), 2)
        self.w = self.weight(case.n, case.n)

    def forward(self, s, x, t):
        for kind in self.kinds:
            h = s["h"]
            if kind == "sort":
                h = h.sort(1)[0] * self.w[0]
            elif kind == "conv":
                h = F.conv1d(h[:, None], self.w[None, :1, :3], padding=1)[:, 0]
            elif kind == "cumsum":
                h = h.cumsum(1) * 0.3
            elif kind == "gather":
                h = h.gather(1, h.argsort(1)) + h.index_select(1, torch.arange(self.case.n - 1, -1, -1))
            elif kind == "softmax":
                h = torch.softmax(h @ self.w, 1) - 0.2
            elif kind == "einsum":
                h = torch.einsum("bi,ij,bj->bj", h, self.w, h)
            elif kind == "max":
                h = torch.maximum(h, h.max(1, keepdim=True)[0] * 0.5) * self.w[1]
            elif kind == "where":
                h = torch.where(h > 0, h, h * self.w[0])
            elif kind == "nograd":
                with torch.no_grad():
                    mean = h.mean()
                h = (h - mean) * self.w[2] + h.detach() * 0.1
            elif kind == "item":
                h = h * (0.5 + 0.1 * float(h.detach().max().clamp(-1, 1)))
            elif kind == "norm":
                h = F.normalize(h, dim=1) @ self.w
            else:
                h = (h.double() @ self.w.double()).to(h.dtype)
            s["h"] = torch.tanh(h)


@part
class Checkpointed(Part):
    # PyTorch's own messages: the backward of a scan names inputs.
    accept = (r"use_reentrant=True", r"Checkpointing is not compatible with")

    def make(self, pick, case):
        self.w, self.drop, self.reentrant = self.weight(case.n, case.n), pick.random() < 0.3, pick.random() < 0.3

    def inner(self, h):
        h = torch.tanh(h @ self.w)
        return F.dropout(h, 0.2) if self.drop else h

    def forward(self, s, x, t):
        s["h"] = checkpoint(self.inner, s["h"], use_reentrant=self.reentrant)


@part
class Nested(Part):
    """A scan within the step; the plain loop has a loop there. The weight's gradient is one term a scan."""

    loose = True

    def make(self, pick, case):
        self.w, self.steps = self.weight(case.n, case.n), pick.randint(1, 4)
        self.inside = pick.choice([{}, {"group": 1}, {"memory": "1M"}])

    def forward(self, s, x, t):
        def step(h, i, k):
            h = torch.tanh(h @ self.w + i)
            return h, h.mean()
        rows = s["h"][None].expand(self.steps, -1, -1) * 0.1
        last, out = self.case.inner(step, s["h"], rows, steps=self.steps, params=[self.w], **self.inside)
        s["h"] = last + 0.01 * out.sum()
