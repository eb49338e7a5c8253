# SPDX-License-Identifier: Apache-2.0
"""Random stacks of layers for ``nt.Sequential``, each compared with ``torch.nn.Sequential`` as random steps are with a
plain loop. As a program, with the arguments of ``random_steps.py``:
    random_layers.py [--seconds S] [--first SEED] [--seed SEED] [--without NAME,NAME] [--shrink]
"""
import contextlib
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import neap.torch as nt
import neap.torch.sequential as sequential
from cells_of_tests import flat
from random_checks import Choices, autocast, main
from random_functions import FUNCTIONS
from random_parts import IN_PLACE

LAYERS = {}


def layer(kind):
    """Registers a kind of layer under the name of its class, in lower case."""
    LAYERS[kind.__name__.lower()] = kind
    return kind


class Layer(nn.Module):
    """A layer of [B, n] -> [B, m]."""

    loose, accept = False, ()

    def __init__(self, pick, n, dtype):
        super().__init__()
        self.n = self.m = n
        self.make(pick, n, dtype)

    def make(self, pick, n, dtype):
        pass


@layer
class Dense(Layer):
    def make(self, pick, n, dtype):
        self.m = pick.choice([3, 6, 24, 40])
        self.layer = nn.Linear(n, self.m).to(dtype)

    def forward(self, x):
        return torch.tanh(self.layer(x))


@layer
class Block(Layer):
    """Modules of PyTorch, one of which works in place."""

    def make(self, pick, n, dtype):
        rows = [nn.Linear(n, n), nn.BatchNorm1d(n), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.LayerNorm(n), nn.GELU()]
        self.rows = nn.Sequential(nn.Linear(n, n), *pick.sample(rows, 3)).to(dtype)

    def forward(self, x):
        return self.rows(x) + x


@layer
class InPlace(Layer):
    """Writes into its input, which is refused."""

    accept = (IN_PLACE, r"writes into its input|modifies its input|in place")

    def forward(self, x):
        return x.relu_()


@layer
class Drop(Layer):
    def make(self, pick, n, dtype):
        self.kind = pick.choice(["dropout", "noise", "bernoulli"])

    def forward(self, x):
        if self.kind == "dropout":
            return F.dropout(x, 0.3)
        return x + torch.randn_like(x) if self.kind == "noise" else x * torch.bernoulli(torch.full_like(x, 0.7))


@layer
class Norm(Layer):
    def make(self, pick, n, dtype):
        self.norm = nn.BatchNorm1d(n).to(dtype)

    def forward(self, x):
        return self.norm(x) if x.shape[0] > 1 else x * 1


@layer
class View(Layer):
    def make(self, pick, n, dtype):
        self.kind = pick.choice(["same", "slice", "flip", "expand", "transposed", "detached"])
        self.m = n if self.kind != "slice" or n < 2 else n - 1

    def forward(self, x):
        if self.kind == "slice":
            return x[:, self.n - self.m:]
        if self.kind == "transposed":
            return x.t().contiguous().t()
        if self.kind == "detached":
            return x.detach() * 0.5 + x
        return {"same": x, "flip": x.flip(1), "expand": x[:1].expand_as(x)}[self.kind]


@layer
class Parts(Layer):
    """A tree between two layers, with whole numbers in it."""

    def make(self, pick, n, dtype):
        self.scale = nn.Parameter(torch.ones(n, dtype=dtype))
        self.kind = pick.choice(["tuple", "dict", "whole"])

    def forward(self, x):
        a = x * self.scale
        return {"tuple": (a, x), "dict": {"a": a, "b": [x.sin()]}, "whole": (a, x.detach().argmax(1))}[self.kind]


@layer
class Complex(Layer):
    def make(self, pick, n, dtype):
        self.w, self.conj = nn.Parameter(torch.randn(n, dtype=dtype)), pick.random() < 0.5

    def forward(self, x):
        z = torch.complex(x, x * self.w)
        return z.conj() if self.conj else z


@layer
class Frozen(Layer):
    def make(self, pick, n, dtype):
        self.w = nn.Parameter(torch.randn(n, n, dtype=dtype) / n ** 0.5, requires_grad=False)
        self.late = nn.Parameter(torch.ones(n, dtype=dtype))

    def forward(self, x):
        return torch.sin(x @ self.w)


@layer
class Function(Layer):
    def make(self, pick, n, dtype):
        self.kind, self.w = pick.choice(sorted(FUNCTIONS)), nn.Parameter(1 + 0.1 * torch.randn(n, dtype=dtype))

    def forward(self, x):
        made = FUNCTIONS[self.kind].apply(x * 1 if self.kind == "dirty" else x, self.w)
        return made[1] + made[0] if self.kind == "pair" else made


@layer
class Cast(Layer):
    def make(self, pick, n, dtype):
        self.layer = nn.Linear(n, n).to(dtype)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.layer(torch.tanh(self.layer(x)))
        return y.to(x.dtype)


@layer
class Checkpointed(Layer):
    def make(self, pick, n, dtype):
        self.w = nn.Parameter(torch.randn(n, n, dtype=dtype) / n ** 0.5)

    def forward(self, x):
        return checkpoint(lambda x: torch.tanh(x @ self.w), x, use_reentrant=False)


@layer
class Hooks(Layer):
    def make(self, pick, n, dtype):
        self.layer, self.kind = nn.Linear(n, n).to(dtype), pick.choice(["forward", "backward", "parameter", "tensor"])
        if self.kind == "forward":
            self.layer.register_forward_hook(lambda module, given, out: out * 0.5)
        if self.kind == "backward":
            self.layer.register_full_backward_hook(lambda module, inner, outer: (inner[0] * 0.5,))
        if self.kind == "parameter":
            self.layer.weight.register_hook(lambda g: g * 3)

    def forward(self, x):
        y = self.layer(x)
        if self.kind == "tensor" and y.requires_grad:
            y.register_hook(lambda g: g.clamp(-0.1, 0.1))
        return y


@layer
class Loop(Layer):
    """A scan as a layer; the plain pass has a loop there."""

    loose = True

    def make(self, pick, n, dtype):
        self.w, self.scan = nn.Parameter(torch.randn(n, n, dtype=dtype) / n ** 0.5), False

    def step(self, h, x, t):
        return torch.tanh(h @ self.w), None

    def forward(self, x):
        if self.scan:
            return nt.scan(self.step, x, steps=3, params=[self.w])[0]
        for t in range(3):
            x, _ = self.step(x, None, t)
        return x


class Join(nn.Module):
    """[B, n] of whatever a layer returned."""

    def forward(self, tree):
        rows = [x for x in flat(tree)]
        x = rows[0]
        for other in rows[1:]:
            x = x + (other if other.dim() > 1 else other[:, None].to(x.dtype) * 0.1)
        return torch.view_as_real(x.resolve_conj()).sum(-1) if x.is_complex() else x


class Stack(Choices):
    """A random stack of layers, what it is given, and what is done with its results."""

    warns, ample = False, {"memory": "1T"}

    def __init__(self, seed, without=()):
        super().__init__(seed, without)
        pick = self.random("layers")
        kinds = sorted(LAYERS)
        self.parts = self.kept([f"{pick.choice(kinds)}.{k}" for k in range(pick.choice([1, 2, 3, 5, 8]))])
        self.b, self.n = self.choose("b", [3, 2, 8, 1]), self.choose("n", [6, 3, 20])
        self.shared = self.choose("shared", [False, False, False, True])
        self.joined = self.choose("joined", [True, True, False])
        self.given = self.choose("given", ["wanted", "plain", "view", "computed"])
        self.end = self.choose("end", ["backward", "grad", "again", "accumulate", "nograd", "second", "outside"])
        self.cast = self.choose("cast", ["no"] * 5 + ["around"])
        self.loose = self.end == "outside" or any(LAYERS[name.split(".")[0]].loose for name in self.parts)
        self.dtype = torch.float64 if self.loose else self.choose("dtype", [torch.float32, torch.float64])
        self.accept = [message for name in self.parts for message in LAYERS[name.split(".")[0]].accept]
        self.tries = 4 if self.end in ("accumulate", "second") else 2

    def describe(self):
        return (f"{'+'.join(self.parts)} B={self.b} n={self.n} {str(self.dtype)[6:]} shared={self.shared} "
                f"joined={self.joined} given={self.given} end={self.end} cast={self.cast}"
                f"{' loose' if self.loose else ''}")

    def layers(self):
        n, rows = self.n, []
        for name in self.parts:
            rows.append(LAYERS[name.split(".")[0]](self.random(name), n, self.dtype))
            n = rows[-1].m
            rows.append(Join())
        if self.shared:
            once = nn.Linear(n, n).to(self.dtype)
            rows += [once, nn.Tanh(), once]
        if self.joined:
            return rows
        return [nn.Sequential(a, b) for a, b in zip(rows[:-1:2], rows[1::2])] + rows[2 * len(self.parts):]

    def run(self, scan, **options):
        torch.manual_seed(self.seed)
        layers = self.layers()
        for one in layers:
            for module in one.modules():
                if isinstance(module, Loop):
                    module.scan = scan
        net = nt.Sequential(*layers, **options) if scan else nn.Sequential(*layers)
        if scan:
            self.report = net.report
        x = torch.randn(self.b, self.n, dtype=self.dtype, requires_grad=self.given != "plain")
        leaves, found = {**dict(net.named_parameters()), **({"input": x} if x.requires_grad else {})}, {}
        torch.manual_seed(self.seed + 1)
        cast = autocast() if self.cast == "around" else contextlib.nullcontext()
        for number in range(2 if self.end == "accumulate" else 1):
            given = {"view": lambda: x[:], "computed": lambda: x.sin()}.get(self.given, lambda: x)()
            with cast, torch.no_grad() if self.end == "nograd" else contextlib.nullcontext():
                out = net(given)
            found.update((f"{number}.out{k}", row.detach().clone()) for k, row in enumerate(flat(out)))
            self.finish(flat(out), leaves, found)
        found.update((f"buffer {name}", value.clone()) for name, value in net.named_buffers())
        found["generator"] = torch.get_rng_state()
        return found

    def finish(self, rows, leaves, found):
        loss = sum((torch.view_as_real(row.resolve_conj()) if row.is_complex() else row).double().sin().sum() * (k + 1)
                   for k, row in enumerate(rows) if row.is_floating_point() or row.is_complex())
        if self.end == "outside":
            loss = loss + sum(p.double().pow(2).sum() for p in leaves.values())
        if not loss.requires_grad:
            return
        if self.end in ("grad", "second"):
            wanted = [x for x in leaves.values() if x.requires_grad]
            grads = torch.autograd.grad(loss, wanted, allow_unused=True, create_graph=self.end == "second")
            found.update((f"gradient {k}", row) for k, row in enumerate(grads))
            norm = sum(row.double().pow(2).sum() for row in grads if row is not None and row.requires_grad)
            if self.end == "second" and isinstance(norm, torch.Tensor) and norm.requires_grad:
                more = torch.autograd.grad(norm, wanted, allow_unused=True)
                found.update((f"second {k}", row) for k, row in enumerate(more))
            return
        loss.backward(retain_graph=self.end == "again")
        if self.end == "again":
            loss.backward()
        found.update((f"gradient {name}", x.grad) for name, x in leaves.items())

    def plain(self):
        return self.run(False)

    def scanned(self, dear=False, **row):
        """``dear``: layers take seconds for the planner, so that it pays to offload states and tapes."""
        kept = sequential._measure

        def measure(run, leaves):
            found = kept(run, leaves)
            ones = [1.0] * len(found.tape)
            return found._replace(advance=ones, record=ones, backward=[2.0] * len(found.tape), moving=0.0)
        sequential._measure = measure if dear else kept
        try:
            return self.run(True, **row), self.report()
        finally:
            sequential._measure = kept

    def plans(self, peak, charged, least):
        pick, rows = self.random("plans"), [{}]
        budgets = [charged + peak, charged + peak // 2, charged + peak // 4, least, least + least // 8]
        for memory in pick.sample(budgets, 2):
            slow = pick.choice([None, None, None, "mem:16M", "directory"])
            host, device = self.hosts()
            row = {"memory": max(1, memory), "slow": slow, "host": host, "device": device,
                   # auto plans with a latency of 10 us, and states of a few bytes, for half a second each time
                   "strategy": pick.choice(["auto" if host is None else "pofo",
                                            "chain" if slow is host is None else "pofo"]),
                   "strict": pick.random() > 0.1}
            rows.append({key: value for key, value in row.items() if value not in (None, True)})
            if not slow is host is None:
                rows[-1]["dear"] = pick.random() < 0.7
        return rows


if __name__ == "__main__":
    sys.exit(main(Stack, __doc__))
