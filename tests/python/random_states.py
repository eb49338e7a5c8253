# SPDX-License-Identifier: Apache-2.0
"""Parts of random steps that have states of many kinds, buffers, hooks, or do what steps had better not do."""
import torch
from torch import nn

from random_parts import NEW, OLD, Part, part


# States

@part
class Complex(Part):
    """A complex part of the state, maybe with the conjugate bit; or a real one with the negative bit."""

    def make(self, pick, case):
        self.kind = pick.choice(["plain", "conj", "neg", "alternating", "transposed"])
        self.real = self.weight(case.n, case.n)
        self.w = nn.Parameter(torch.complex(self.weight(case.n, case.n), self.weight(case.n, case.n)).detach())

    def start(self):
        z = torch.complex(*torch.randn(2, self.case.b, self.case.n, dtype=self.case.dtype))
        return {"z": z.conj() if self.kind == "conj" else z.conj().imag if self.kind == "neg" else z}

    def forward(self, s, x, t):
        if self.kind == "neg":
            s["z"] = torch.complex(s["z"], torch.tanh(s["z"] @ self.real)).conj().imag  # a view with the negative bit
            s["h"] = s["h"] + 0.1 * s["z"]
            return
        z = torch.tanh(s["z"] @ self.w + 0.3j)
        if self.kind == "conj" or self.kind == "alternating" and t % 2:
            z = z.conj()
        s["z"] = z.t().contiguous().t() if self.kind == "transposed" else z
        s["h"] = s["h"] + 0.1 * s["z"].abs()


@part
class Whole(Part):
    """Integers and booleans in the state."""

    def make(self, pick, case):
        self.table = nn.Embedding(5, case.n).to(case.dtype)
        self.kind = pick.choice(["count", "mask", "byte", "argmax"])

    def start(self):
        return {"n": torch.zeros((), dtype=torch.int32), "mask": torch.ones(self.case.b, self.case.n, dtype=torch.bool)}

    def forward(self, s, x, t):
        h, s["n"] = s["h"], s["n"] + 1
        if self.kind == "mask":
            s["mask"] = s["mask"] ^ (h.detach() > 0)
            h = torch.where(s["mask"], h, h * 0.5)
        elif self.kind == "argmax":
            h = h + 0.1 * self.table(h.detach().argmax(1) % 5)
        else:
            h = h + 0.1 * self.table((s["n"] % 5).long())
        s["h"] = h


@part
class Window(Part):
    """The last states in one tensor, which is moved on; or in one that grows."""

    def make(self, pick, case):
        self.w, self.grows = self.weight(case.n, case.n), pick.random() < 0.3
        if self.grows:
            self.accept = (r"on slow tiers all are alike", r"must have the same shape and dtype", r"grows", r"shape")

    def start(self):
        return {"window": torch.randn(self.case.b, 1 if self.grows else 3, self.case.n, dtype=self.case.dtype)}

    def forward(self, s, x, t):
        w = s["window"]
        score = torch.softmax((w @ self.w @ s["h"][:, :, None])[:, :, 0], 1)
        s["h"] = s["h"] * 0.5 + (score[:, :, None] * w).sum(1)
        s["window"] = torch.cat([w if self.grows else w[:, 1:], s["h"][:, None]], 1)


@part
class Drifts(Part):
    """A part of the state whose type the first step changes."""

    accept = (r"on slow tiers all are alike", r"must have the same shape and dtype", r"returned an output of shape")

    def make(self, pick, case):
        self.w, self.first = self.weight(case.n), pick.choice([torch.float32, torch.float16, torch.float64])

    def start(self):
        return {"drift": torch.randn(self.case.b, self.case.n).to(self.first)}

    def forward(self, s, x, t):
        s["drift"] = torch.sin(s["drift"].to(self.case.dtype) * self.w)
        s["h"] = s["h"] + 0.1 * s["drift"]


@part
class Passes(Part):
    """A part of the state that every step uses and none changes; and parts without elements, without dimensions."""

    def make(self, pick, case):
        self.w = self.weight(case.n)

    def start(self):
        return {"fixed": torch.randn(self.case.b, self.case.n, dtype=self.case.dtype),
                "empty": torch.zeros(0, self.case.n, dtype=self.case.dtype),
                "scalar": torch.zeros((), dtype=self.case.dtype)}

    def forward(self, s, x, t):
        s["h"] = torch.tanh(s["h"] + s["fixed"] * self.w)
        s["scalar"] = s["scalar"] * 0.9 + s["h"].mean()


@part
class Unchanged(Part):
    """A table that the steps return as they got it, or as views, or that one of them replaces late."""

    loose = True

    def make(self, pick, case):
        self.w, self.late = self.weight(case.n), pick.choice([None, None, None, 5, 13, 41])
        self.kind, self.begin = pick.choice(["same", "same", "view", "twice", "row"]), pick.choice(["own", "part", "turned"])
        if self.kind == "row":
            self.accept = (r"on slow tiers all are alike", r"must have the same shape and dtype", r"grows", r"shape")

    def start(self):
        table = torch.randn(self.case.n, 3 * self.case.n, dtype=self.case.dtype)
        table = table.t() if self.begin == "turned" else table.reshape(-1, self.case.n)
        return {"table": table[1:] if self.begin == "part" else table, **({"more": table} if self.kind == "twice" else {})}

    def forward(self, s, x, t):
        table = s["table"]
        s["h"] = torch.tanh(s["h"] + table[t % len(table)] * self.w)
        if self.kind == "twice":
            s["h"], s["more"] = s["h"] + 0.1 * s["more"][0], table
        if t == self.late:
            s["table"] = torch.cat([table[:1] * self.w, table[1:]])
        elif self.kind == "view":
            s["table"] = table.view_as(table) if t % 2 else table[:]
        elif self.kind == "row":  # a view without most of the rows
            s["table"] = table[:max(2, len(table) - t)]


@part
class Alias(Part):
    """Two parts of the state that are one tensor, or one and a view of it."""

    loose = True

    def make(self, pick, case):
        self.w, self.kind = self.weight(case.n), pick.choice(["same", "view", "part"])

    def start(self):
        return {"twin": torch.randn(self.case.b, self.case.n, dtype=self.case.dtype)}

    def forward(self, s, x, t):
        s["h"] = torch.tanh(s["h"] * self.w + 0.3 * s["twin"])
        s["twin"] = s["h"] if self.kind == "same" else s["h"].view_as(s["h"])
        if self.kind == "part":
            both = torch.cat([s["h"], s["h"] * 0.5], 1)
            s["h"], s["twin"] = both.chunk(2, 1)


# Modules and hooks

@part
class Buffers(Part):
    """Buffers that steps change; without buffers="state" this is refused."""

    def make(self, pick, case):
        self.kind, state = pick.choice(["norm", "counter", "bound", "batch"]), pick.random() < 0.8
        self.norm = nn.BatchNorm1d(case.n).to(case.dtype)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(case.n, dtype=case.dtype))
        if state:
            self.options = {"buffers": "state"}
        else:
            self.accept = (r"changes (its )?(buffer )?'", r"not a deterministic function")

    def forward(self, s, x, t):
        if self.kind in ("norm", "batch") and self.case.b > 1:
            s["h"] = self.norm(s["h"])
        elif self.kind == "counter":
            self.steps += 1
            s["h"] = s["h"] / (1 + 0.01 * float(self.steps))
        else:
            self.mean = self.mean * 0.9 + 0.1 * s["h"].detach().mean(0)
            s["h"] = s["h"] - self.mean


@part
class Hooks(Part):
    def make(self, pick, case):
        self.kind = pick.choice(["forward", "before", "backward", "parameter", "tensor", "state", "result"])
        self.cell = nn.Linear(case.n, case.n).to(case.dtype)
        if self.kind == "forward":
            self.cell.register_forward_hook(lambda module, given, out: out * 0.5)
        if self.kind == "before":
            self.cell.register_forward_pre_hook(lambda module, given: (given[0].sin(),))
        if self.kind == "backward":
            self.cell.register_full_backward_hook(lambda module, inner, outer: (inner[0] * 0.5,))
        if self.kind == "parameter":
            self.cell.weight.register_hook(lambda g: g * 3)

    def forward(self, s, x, t):
        if self.kind == "state" and s["h"].requires_grad:
            s["h"].register_hook(lambda g: g * 0.9)
        h = self.cell(s["h"])
        if self.kind == "tensor" and h.requires_grad:
            h.register_hook(lambda g: g.clamp(-0.1, 0.1))
        s["h"] = torch.tanh(h)
        if self.kind == "result" and s["h"].requires_grad:
            s["h"].register_hook(lambda g: g * 0.9)


@part
class Leaf(Part):
    """A step that makes a leaf and differentiates by itself."""

    accept = (r"makes a tensor that needs a gradient", r"creates a tensor", r"does not require grad",
              r"enable_grad|gradients enabled")

    def make(self, pick, case):
        self.w = self.weight(case.n)

    def forward(self, s, x, t):
        with torch.enable_grad():
            y = s["h"].detach().clone().requires_grad_()
            g, = torch.autograd.grad((y.sin() * self.w.detach()).sum(), y)
        s["h"] = s["h"] * self.w + 0.1 * g


@part
class Attribute(Part):
    """A step that leaves something in an attribute: for a report, or for the next step, which is no state."""

    warns = True
    accept = (r"the step changes '.*last', and its result depends on it", r"an earlier step (made|computed)",
              r"is not deterministic|another state or output|different state", r"computed outside",
              r"a tensor .* (changed|modified) in place",
              *(() if NEW else (*OLD, r"creates a tensor with requires_grad=True in each call and keeps it")))

    def make(self, pick, case):
        self.w, self.kind, self.last = self.weight(case.n), pick.choice(["report", "report", "detached", "kept"]), None
        self.warns = self.kind != "report"

    def prepare(self):
        self.last = None

    def forward(self, s, x, t):
        h = torch.tanh(s["h"] * self.w)
        if self.kind != "report" and self.last is not None:
            h = h + 0.1 * self.last
        self.last = h if self.kind == "kept" else h.detach()
        s["h"] = h


@part
class Linalg(Part):
    """Decompositions, which may take other kernels where no gradient is wanted."""

    warns = True

    def make(self, pick, case):
        self.w, self.kind = self.weight(case.n, case.n), pick.choice(["solve", "inverse", "cholesky", "eigh"])

    def forward(self, s, x, t):
        a = self.w @ self.w.t() + torch.eye(self.case.n, dtype=self.case.dtype)
        if self.kind == "solve":
            h = torch.linalg.solve(a, s["h"].t()).t()
        elif self.kind == "inverse":
            h = s["h"] @ torch.linalg.inv(a)
        elif self.kind == "cholesky":
            h = s["h"] @ torch.linalg.cholesky(a)
        else:
            h = s["h"] * torch.linalg.eigvalsh(a)
        s["h"] = torch.tanh(h)
