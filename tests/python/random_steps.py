# SPDX-License-Identifier: Apache-2.0
"""Random steps for scans, each compared with the plain loop: equal bits (1e-12 in double precision if rounding is
documented), or one clear error; and bytes within the budget. A case is a function of its seed. As a program:
    random_steps.py [--seconds S] [--first SEED]   runs cases until the time is up; prints each finding with its seed
    random_steps.py --seed SEED [--without NAME,NAME] [--shrink]   runs one case and prints what it does
"""
import collections
import contextlib
import sys

import torch

import neap.torch as nt
import random_functions  # noqa: F401: registers its parts
import random_states  # noqa: F401
from cells_of_tests import COSTS, flat, like
from random_checks import Choices, autocast, main
from random_parts import NEW, PARTS

CELLS = ("rnn", "gru", "lstm")
# What may be chosen; the first is the simplest.
STARTS = "plain wanted wanted learned computed expanded transposed slice shared".split()
INPUTS = "tensor none tree function made wanted wanted-tree transposed".split()
OUTPUTS = ("state state double view transposed none detached whole same nested parameter constant complex expanded "
           "states sometimes readout input").split()
ENDS = "backward backward grad subset again two last outputs inputs nograd accumulate second".split()
Pair = collections.namedtuple("Pair", "first second")  # a structure that a state or an output may have


class Sizes:
    """What the parts of a step have to know."""

    def __init__(self, b, n, i, dtype):
        self.b, self.n, self.i, self.dtype, self.inner = b, n, i, dtype, None


class Step(torch.nn.Module):
    """(state, input, t) -> (state, output), out of parts."""

    def __init__(self, case):
        super().__init__()
        self.case, self.sizes = case, case.sizes
        self.parts = torch.nn.ModuleList(PARTS[name](case.random(name), case.sizes) for name in case.parts)
        self.read = torch.nn.Linear(case.sizes.n, 2).to(case.sizes.dtype)
        self.first = torch.nn.Parameter(torch.randn(case.sizes.n, dtype=case.sizes.dtype))
        self.names = []

    def forward(self, state, x, t):
        case, s = self.case, dict(zip(self.names, flat(state)))
        given = case.row(x, t)
        if case.cast == "inside":
            with torch.autocast("cpu", dtype=torch.bfloat16):
                self.apply_parts(s, given, t)
            s = {key: x.to(self.sizes.dtype) if x.dtype == torch.bfloat16 else x for key, x in s.items()}
        else:
            self.apply_parts(s, given, t)
        return case.tree([s[name] for name in self.names]), self.output(s, x, t)

    def apply_parts(self, s, x, t):
        for one in self.parts:
            one(s, x, t)

    def output(self, s, x, t):
        h, kind = s["h"], self.case.output
        if kind == "states":
            return [s[name] for name in self.names]
        if kind == "sometimes":
            return h * 2 if t % 3 == 1 else (h * 2).detach()
        if kind == "readout":
            return {"y": self.read(h.to(self.read.weight.dtype)), "h": h}
        if kind == "input":
            return h, flat(x)[0] if flat(x) else None
        wide = h.to(self.sizes.dtype)
        made = {"state": lambda: h, "double": lambda: (h, h * 2), "view": lambda: h[:, 1:],
                "transposed": lambda: {"a": h.t(), "b": None}, "none": lambda: None, "detached": lambda: h.detach(),
                "whole": lambda: (h.argmax(1), h.sin()), "same": lambda: (h, h, h, h * 2),
                "nested": lambda: Pair([h.sin(), (None, h.mean())], {"k": h > 0}), "parameter": lambda: (h, self.first),
                "constant": lambda: (torch.full((2,), float(t)), h),
                "complex": lambda: torch.complex(wide, wide.sin()).conj(),
                "expanded": lambda: h.mean(1, keepdim=True).expand(-1, 3)}
        return made[kind]()


class Case(Choices):
    """A random step, what it is given, and what is done with its results."""

    nudged = False  # weights are changed in their last bit

    def __init__(self, seed, without=()):
        super().__init__(seed, without)
        self.b, self.i = self.choose("b", [2, 1, 3, 4]), self.choose("i", [3, 1, 5])
        self.steps = self.choose("steps", [9, 1, 2, 5, 14, 17, 26])
        self.parts = self.choose_parts()
        self.state = self.choose("tree", ["tuple", "list", "dict", "named", "none"])
        self.start = self.choose("start", STARTS)
        self.inputs = self.choose("inputs", INPUTS)
        self.output = self.choose("output", OUTPUTS)
        self.reduce = self.choose("reduce", [False] * 5 + [True])
        self.cast = self.choose("cast", ["no"] * 8 + ["around", "inside"])
        self.given_as = self.choose("as", ["module", "module", "function", "found", "method"])
        self.end = self.choose("end", ENDS)
        self.scans = self.choose("scans", ["one"] * 6 + ["two", "truncated", "outside"])
        kinds = [PARTS[name] for name in self.parts]
        self.loose = any(kind.loose for kind in kinds) or self.start == "shared" or self.scans in ("two", "outside") \
            or self.output in ("parameter", "states") or self.end == "second"
        dtype = self.choose("dtype", [torch.float32, torch.float64])
        self.sizes = Sizes(self.b, self.choose("n", [4, 6, 8]), self.i, torch.float64 if self.loose else dtype)
        self.accept, self.warns, self.options = [], False, {}

    def choose_parts(self):
        pick = self.random("parts")
        others = [name for name in sorted(PARTS) if name not in CELLS and (NEW or not PARTS[name].new)]
        return self.kept([pick.choice(CELLS), *pick.sample(others, pick.choice([0, 1, 1, 2, 2, 3, 4]))], 1)

    def describe(self):
        return (f"{'+'.join(self.parts)} T={self.steps} B={self.b} N={self.sizes.n} {str(self.sizes.dtype)[6:]} "
                f"tree={self.state} start={self.start} inputs={self.inputs} output={self.output} "
                f"reduce={self.reduce} cast={self.cast} as={self.given_as} end={self.end} "
                f"scans={self.scans}{' loose' if self.loose else ''}")

    # Trees

    def tree(self, leaves):
        if self.state == "tuple" or self.state == "named" and len(leaves) != 2:
            return tuple(leaves)
        if self.state == "named":
            return Pair(*leaves)
        if self.state == "dict":
            return {f"k{i}": leaf for i, leaf in enumerate(leaves)}
        return [leaves[0], None, tuple(leaves[1:])] if self.state == "none" else list(leaves)

    def row(self, x, t):
        """[B, I] of an input."""
        if x is None:
            return torch.full((self.b, self.i), 0.1 * t, dtype=self.sizes.dtype)
        if isinstance(x, dict):
            return x["a"] * (1 + 0.1 * x["i"])[:, None]
        return x

    # What a run begins with

    def build(self):
        """The step, the first state, inputs, and the leaves whose gradients are compared."""
        torch.manual_seed(self.seed)
        step = self.step = Step(self)
        if self.nudged:
            own = torch.Generator().manual_seed(self.seed)
            with torch.no_grad():
                for p in step.parameters():
                    p.mul_(1 + torch.finfo(p.dtype).eps * torch.randint(-1, 2, p.shape, generator=own).to(p.dtype))
        slots = {"h": torch.randn(self.b, self.sizes.n, dtype=self.sizes.dtype)}
        for one in step.parts:
            slots.update(one.start())
        step.names, self.wanted = list(slots), dict(step.named_parameters())
        for name, value in slots.items():
            slots[name] = self.started(name, value)
        self.options, self.accept, self.warns = {}, [], False
        for one in step.parts:
            self.options.update(one.options)
            self.accept += one.accept
            self.warns |= one.warns
        if "buffers" in self.options:
            self.given_as = "module"
        if self.given_as in ("found", "method"):  # leaves that are used late alone have to be named
            self.accept.append(r"name it in params|Name it: params")
        if self.cast != "no":  # types that depend on values or on t
            self.accept.append(r"returned an output of shape|must have the same shape and dtype")
        if self.warns:
            self.accept.append(r"is not deterministic|another state or output|different state or output")
        for number, one in enumerate(step.parts):
            one.prepare()
            for k, leaf in enumerate(one.leaves()):
                self.wanted[f"{number}.leaf{k}"] = leaf
        return self.tree(list(slots.values())), self.made_inputs()

    def started(self, name, value):
        """A first state: as drawn, with a gradient, learned, or with strides of its own."""
        if not value.is_floating_point() and not value.is_complex():
            return value
        if self.start == "wanted":
            self.wanted[f"state.{name}"] = value.requires_grad_()
        elif name == "h" and self.start == "learned":
            return self.step.first.expand(self.b, -1)
        elif name == "h" and self.start == "computed":
            return (self.step.first * torch.arange(1, self.b + 1, dtype=self.sizes.dtype)[:, None]).tanh()
        elif name == "h" and self.start == "shared":
            rows = [p for p in self.step.parts.parameters() if p.dim() == 2 and p.shape[1] == self.sizes.n
                    and p.dtype == value.dtype and p.layout == torch.strided]
            return rows[0][:1].expand(self.b, -1) if rows else self.step.first.expand(self.b, -1)
        elif self.start == "expanded" and value.dim() == 2:
            return value[:1].expand(value.shape[0], -1)
        elif self.start == "transposed" and value.dim() == 2:
            return value.t().contiguous().t()
        elif self.start == "slice" and value.dim() == 2:
            return torch.cat([value, value, value])[1:1 + 2 * value.shape[0]:2] if value.shape[0] else value
        return value

    def made_inputs(self):
        dtype, kind = self.sizes.dtype, self.inputs
        x = torch.randn(self.steps, self.b, self.i, dtype=dtype)
        whole = torch.randint(0, 3, (self.steps, self.b))
        if kind == "none":
            return None
        if kind == "function":
            return lambda t: x[t]
        if kind == "made":
            return lambda t: {"a": torch.full((self.b, self.i), 0.3, dtype=dtype) * (t % 5), "i": whole[t]}
        if kind == "transposed":
            return x.transpose(0, 1).contiguous().transpose(0, 1)
        if kind.startswith("wanted"):
            self.wanted["input"] = x.requires_grad_()
        return {"a": x, "i": whole} if kind.endswith("tree") else x

    def named(self):
        return [tensor for one in self.step.parts for tensor in one.named()]

    def called(self):
        """The step as it is given to a scan, and params."""
        step, named = self.step, self.named()
        if self.given_as == "module":
            return step, named
        if self.given_as == "function":
            return (lambda state, x, t: step(state, x, t)), [*step.parameters(), *named]
        return (step.forward if self.given_as == "method" else lambda state, x, t: step(state, x, t)), named or None

    # A run

    ample = {"memory": "1T", "group": 1}

    def plain(self):
        """What the plain loop gives, by name."""
        return self.run(plain)

    def moved(self):
        """The same for weights that differ in their last bit: what their rounding alone makes of the results."""
        self.nudged = True
        try:
            return self.run(plain)
        finally:
            self.nudged = False

    def scanned(self, **row):
        """What a scan gives with these arguments, and its report."""
        if "memory" not in row or self.random(str(row.items() - {("slow", row.get("slow"))})).random() > 0.1:
            row["costs"] = COSTS
        if self.end == "second" and self.random("double").random() < 0.5:
            row["double_backward"] = True
        return self.run(nt.scan, **row), nt.report()

    @property
    def tries(self):
        """How many budgets may be refused: each scan has a least one of its own, and if a leaf or random numbers are
        found late, more is charged."""
        if self.end in ("accumulate", "second") or self.scans in ("two", "truncated"):
            return 4
        return 3 if self.given_as in ("found", "method") or "random" in self.parts else 2

    def run(self, loop, **more):
        """Everything that a run gives, by name. ``loop`` is the plain loop, or a scan."""
        state, inputs = self.build()
        self.sizes.inner = plain if loop is plain else nt.scan
        step, params = self.called()
        torch.manual_seed(self.seed + 1)
        found, rounds = {}, 2 if self.end == "accumulate" or self.scans in ("two", "truncated") else 1
        cast = autocast() if self.cast == "around" else contextlib.nullcontext()
        grad = torch.no_grad() if self.end == "nograd" else contextlib.nullcontext()
        total, begun = 0, state
        for number in range(rounds):
            if number and self.scans not in ("two",):
                for one in self.step.parts:  # their graphs are gone
                    one.prepare()
                params = self.called()[1]
                state = self.again(begun)
                if self.scans == "truncated":
                    state = like(begun, iter([x.detach() for x in flat(last)]))
            with cast, grad:
                last, out = loop(step, state, inputs, steps=self.steps, params=params,
                                 reduce=reduced if self.reduce else None, **{**self.options, **more})
            for name, tree in ("last", last), ("out", out):
                found.update((f"{number}.{name}{k}", leaf.detach().clone()) for k, leaf in enumerate(flat(tree)))
            state = last
            loss = self.loss(last, out)
            total = total + loss
            if self.scans != "two" or number:
                self.finish(total if self.scans == "two" else loss, last, out, found)
        found.update((f"buffer {name}", value.clone()) for name, value in self.step.named_buffers())
        found["generator"] = torch.get_rng_state()
        return found

    def again(self, state):
        """The same first state, for a second pass, with a graph of its own where it was computed."""
        rows = flat(state)
        if self.start in ("learned", "computed", "shared"):
            rows[0] = self.started("h", rows[0].detach())
        return like(state, iter(rows))

    def loss(self, last, out):
        total = 0
        parts = ([] if self.end == "outputs" else flat(last)) + ([] if self.end == "last" else flat(out))
        for k, leaf in enumerate(parts):
            if leaf.is_complex():
                leaf = torch.view_as_real(leaf.resolve_conj())
            if leaf.is_floating_point() and leaf.numel():
                total = total + (leaf.double().sin() * (1 + 0.1 * k)).sum()
                if leaf.dim() > 1:
                    total = total + leaf[::2].double().pow(2).mean() + leaf[-1].double().sum() * 0.3
        if self.scans == "outside":
            total = total + sum(p.double().abs().pow(2).sum() for p in self.step.parameters())
        return total

    def finish(self, loss, last, out, found):
        """The backward pass, of a kind."""
        if not (isinstance(loss, torch.Tensor) and loss.requires_grad):
            return
        leaves = {name: x for name, x in self.wanted.items() if x.requires_grad}
        some = {name: x for name, x in leaves.items() if self.random(f"of {name}").random() < 0.5} or leaves
        if self.end in ("grad", "subset", "second"):
            chosen = some if self.end == "subset" else leaves
            found.update(self.gradients(loss, chosen, self.end == "second"))
            return
        if self.end == "inputs":
            loss.backward(inputs=[x for x in some.values() if x.is_leaf or x.retains_grad])
        elif self.end == "two" and any(x.requires_grad for x in flat(last)):
            wanted = [x for x in flat(last) if x.requires_grad]
            sum(x.abs().double().sum() for x in wanted).backward(retain_graph=True)
            loss.backward()
        else:
            loss.backward(retain_graph=self.end == "again")
            if self.end == "again":
                loss.backward()
        found.update((f"gradient {name}", x.grad) for name, x in leaves.items() if x.is_leaf or x.retains_grad)

    @staticmethod
    def gradients(loss, leaves, second):
        rows = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True, create_graph=second)
        found = {f"gradient {name}": row for name, row in zip(leaves, rows)}
        if second:
            norm = sum(row.abs().double().pow(2).sum() for row in rows if row is not None and row.requires_grad)
            if isinstance(norm, torch.Tensor) and norm.requires_grad:
                more = torch.autograd.grad(norm, list(leaves.values()), allow_unused=True)
                found.update((f"second {name}", row) for name, row in zip(leaves, more))
        return found

    # Scans to be compared

    def plans(self, peak, charged, least):
        """Arguments of scans, chosen by the seed."""
        pick = self.random("plans")
        budgets = [None, charged + peak, charged + peak // 4, charged + peak // 10, least, least + least // 8]
        rows = [{"group": pick.choice([None, None, 1, 3, self.steps])}]
        for memory in pick.sample(budgets[1:], 2):
            slow = pick.choice([None, None, None, "mem:16M", "directory"])
            host, device = self.hosts()
            row = {"memory": max(1, memory), "slow": slow, "host": host, "device": device,
                   "group": pick.choice([None, None, 1, 3, self.steps]),
                   "strategy": pick.choice(["auto", "auto", "revolve", "mixed", "bptt"] if slow is host is None else
                                           ["auto", "auto", "stream", "double", "disk-revolve"]),
                   "check": pick.random() < 0.2, "count": pick.random() > 0.1, "strict": pick.random() > 0.1,
                   "graph": pick.choice([0, None])}
            rows.append({key: value for key, value in row.items() if value is not None and value is not dict(
                check=False, count=True, strict=True).get(key)})
        return rows


def reduced(output, t):
    """The terms of a sum over steps."""
    rows = [x for x in flat(output) if x.is_floating_point()]
    return {"sum": sum(x.double().pow(2).sum() for x in rows), "rows": rows[-1] * 0.5} if rows else None


def plain(step, state, inputs, steps, reduce=None, **unused):
    """The loop that a scan stands for."""
    rows, out, total = [], None, None
    for t in range(steps):
        given = inputs(t) if callable(inputs) else like(inputs, iter([x[t] for x in flat(inputs)]))
        state, out = step(state, given, t)
        torch.clear_autocast_cache()  # documented: the cache of an autocast within the step lasts for one step
        if reduce is None:
            rows.append(flat(out))
            continue
        out = reduce(out, t)
        total = [torch.zeros_like(x) for x in flat(out)] if total is None else total
        total = [a + b for a, b in zip(total, flat(out))]
    return state, like(out, iter(total if reduce is not None else [torch.stack(column) for column in zip(*rows)]))


class Large(Case):
    """The same with states and tapes of some size, for what the process takes."""

    large = True

    def choose(self, name, values):
        large = {"b": [256], "n": [32], "steps": [120], "output": ["state", "view", "readout", "none"],
                 "reduce": [False],
                 "end": ["backward"], "scans": ["one"]}
        return super().choose(name, large.get(name, values))

    def plans(self, peak, charged, least):
        rows = [row for row in super().plans(peak, charged, least) if "memory" in row]
        return [{**row, "memory": max(row["memory"], charged + peak // 6)} for row in rows]


if __name__ == "__main__":
    sys.exit(main(Case, __doc__, Large))
