# SPDX-License-Identifier: Apache-2.0
"""Random steps for scans, each compared with the plain loop: equal bits (1e-12 in double precision if rounding is
documented), or one clear error; and bytes within the budget. A case is a function of its seed. As a program:
    random_steps.py [--seconds S] [--first SEED]   runs cases until the time is up; prints each finding with its seed
    random_steps.py --seed SEED [--without NAME,NAME] [--shrink]   runs one case and prints what it does
"""
import argparse
import collections
import contextlib
import faulthandler
import importlib
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings

import torch

import neap
import neap.torch as nt
from cells_of_tests import COSTS, flat, like
from random_parts import NEW, PARTS

torch.set_num_threads(1)

CELLS = ("rnn", "gru", "lstm")
LIMIT = 60  # seconds of one run, which has to end
TIERS = {"write": 2e9, "read": 1e9, "latency": 1e-5}  # what planners are told: plans are a function of the seed
ALWAYS = (r"^check: no step is done again", r"pass takes about .* times as long", r"times slower than storing",
          r"check=True has no effect")
NO_PLAN = r"is not for|needs|does not|only|cannot|has no|no tier|wants|takes no|without|not apply"
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
            s = {key: value.to(self.sizes.dtype) if value.dtype == torch.bfloat16 else value for key, value in s.items()}
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
        made = {"state": lambda: h, "double": lambda: (h, h * 2), "view": lambda: h[:, 1:], "transposed": lambda: {"a": h.t(), "b": None},
                "none": lambda: None, "detached": lambda: h.detach(), "whole": lambda: (h.argmax(1), h.sin()), "same": lambda: (h, h, h, h * 2),
                "nested": lambda: Pair([h.sin(), (None, h.mean())], {"k": h > 0}), "parameter": lambda: (h, self.first),
                "constant": lambda: (torch.full((2,), float(t)), h), "complex": lambda: torch.complex(h.to(self.sizes.dtype), h.sin().to(self.sizes.dtype)).conj(),
                "expanded": lambda: h.mean(1, keepdim=True).expand(-1, 3)}
        return made[kind]()


class Choices:
    """Choices that are a function of a seed. ``without`` names those that take their simplest value, and parts that
    are left out."""

    left_out = set()  # parts of all cases

    def __init__(self, seed, without=()):
        self.seed, self.without, self.names = seed, set(without), []

    def random(self, name):
        return random.Random(f"{self.seed}/{name}")

    def choose(self, name, values):
        """One of ``values``, of which the first is the simplest."""
        found = values[0] if name in self.without else self.random(name).choice(values)
        if found != values[0]:
            self.names.append(name)
        return found

    def kept(self, parts, always=0):
        """The parts that are not left out; the first ones always stay."""
        self.names += parts[always:]
        return [name for name in parts if name not in self.without | self.left_out]


class Case(Choices):
    """A random step, what it is given, and what is done with its results."""

    def __init__(self, seed, without=()):
        super().__init__(seed, without)
        self.b, self.i = self.choose("b", [2, 1, 3, 4]), self.choose("i", [3, 1, 5])
        self.steps = self.choose("steps", [9, 1, 2, 5, 14, 17, 26])
        self.parts = self.choose_parts()
        self.state = self.choose("tree", ["tuple", "list", "dict", "named", "none"])
        self.start = self.choose("start", ["plain", "wanted", "wanted", "learned", "computed", "expanded", "transposed", "slice", "shared"])
        self.inputs = self.choose("inputs", ["tensor", "none", "tree", "function", "made", "wanted", "wanted tree", "transposed"])
        self.output = self.choose("output", ["state", "state", "double", "view", "transposed", "none", "detached", "whole", "same",
                                             "nested", "parameter", "constant", "complex", "expanded", "states", "sometimes",
                                             "readout", "input"])
        self.reduce = self.choose("reduce", [False] * 5 + [True])
        self.cast = self.choose("cast", ["no"] * 8 + ["around", "inside"])
        self.given_as = self.choose("as", ["module", "module", "function", "found", "method"])
        self.end = self.choose("end", ["backward", "backward", "grad", "subset", "again", "two", "last", "outputs", "inputs", "nograd",
                                       "accumulate", "second"])
        self.scans = self.choose("scans", ["one"] * 6 + ["two", "truncated", "outside"])
        kinds = [PARTS[name] for name in self.parts]
        self.loose = any(kind.loose for kind in kinds) or self.start == "shared" or self.scans in ("two", "outside") \
            or self.output in ("parameter", "states") or self.end == "second"
        dtype = self.choose("dtype", [torch.float32, torch.float64])
        self.sizes = Sizes(self.b, self.choose("n", [4, 6, 8]), self.i, torch.float64 if self.loose else dtype)
        self.accept, self.warns, self.options = [], False, {}

    def choose_parts(self):
        pick = self.random("parts")
        others = [name for name, kind in PARTS.items() if name not in CELLS and (NEW or not kind.new)]
        return self.kept([pick.choice(CELLS), *pick.sample(others, pick.choice([0, 1, 1, 2, 2, 3, 4]))], 1)

    def describe(self):
        return (f"{'+'.join(self.parts)} T={self.steps} B={self.b} N={self.sizes.n} {str(self.sizes.dtype)[6:]} tree={self.state} "
                f"start={self.start} inputs={self.inputs} output={self.output} reduce={self.reduce} cast={self.cast} "
                f"as={self.given_as} end={self.end} scans={self.scans}{' loose' if self.loose else ''}")

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
        if self.cast != "no":  # types of outputs that depend on values
            self.accept.append(r"returned an output of shape")
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
            rows = [p for p in self.step.parts.parameters() if p.dim() == 2 and p.shape[1] == self.sizes.n and p.dtype == value.dtype
                    and p.layout == torch.strided]
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

    def scanned(self, **row):
        """What a scan gives with these arguments, and its report."""
        if "memory" not in row or self.random(str(row.items() - {("slow", row.get("slow"))})).random() > 0.1:
            row["costs"] = COSTS
        if self.end == "second" and self.random("double").random() < 0.5:
            row["double_backward"] = True
        return self.run(nt.scan, **row), nt.report()

    @property
    def tries(self):
        """How many budgets may be refused: each scan has a least one of its own, and if a leaf or random numbers are found late,
        more is charged."""
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
        cast = torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False) if self.cast == "around" else contextlib.nullcontext()
        grad = torch.no_grad() if self.end == "nograd" else contextlib.nullcontext()
        total, begun = 0, state
        for number in range(rounds):
            if number and self.scans not in ("two",):
                for one in self.step.parts:  # their graphs are gone
                    one.prepare()
                params = self.called()[1]
                state = like(begun, iter([x.detach() for x in flat(last)])) if self.scans == "truncated" else self.again(begun)
            with cast, grad:
                last, out = loop(step, state, inputs, steps=self.steps, params=params, reduce=reduced if self.reduce else None,
                                 **{**self.options, **more})
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
            total = total + sum(p.double().abs().pow(2).sum() for p in self.step.parameters() if p.layout == torch.strided)
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
        """Arguments of scans; which, the seed says."""
        pick = self.random("plans")
        budgets = [None, charged + peak, charged + peak // 4, charged + peak // 10, least, least + least // 8]
        rows = [{"group": pick.choice([None, None, 1, 3, self.steps])}]
        for memory in pick.sample(budgets[1:], 2):
            slow = pick.choice([None, None, None, "mem:16M", "directory"])
            row = {"memory": max(1, memory), "slow": slow, "group": pick.choice([None, None, 1, 3, self.steps]),
                   "strategy": pick.choice(["auto", "auto", "revolve", "mixed", "bptt"] if slow is None else
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
        given = None if inputs is None else inputs(t) if callable(inputs) and not isinstance(inputs, torch.Tensor) else \
            like(inputs, iter([x[t] for x in flat(inputs)]))
        state, out = step(state, given, t)
        if reduce is None:
            rows.append(flat(out))
            continue
        out = reduce(out, t)
        total = [torch.zeros_like(x) for x in flat(out)] if total is None else total
        total = [a + b for a, b in zip(total, flat(out))]
    return state, like(out, iter(total if reduce is not None else [torch.stack(column) for column in zip(*rows)]))


def like_bits(a, b):
    """True if two results are alike to the bit, where NaN equals NaN."""
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())


def compared(found, wanted, loose):
    """What differs, as text."""
    rows = [f"{name} is missing" for name in wanted if name not in found]
    for name, b in wanted.items():
        a = found.get(name)
        a, b = (x.to_dense() if isinstance(x, torch.Tensor) and x.layout != torch.strided else x for x in (a, b))
        if a is None or b is None:
            if (a is None) != (b is None) and bool((b if a is None else a).abs().any()):
                rows.append(f"{name}: {'a gradient' if b is None else 'no gradient'}")
        elif not like_bits(a, b):
            if a.shape != b.shape or a.dtype != b.dtype:
                rows.append(f"{name}: {tuple(a.shape)} {a.dtype}, not {tuple(b.shape)} {b.dtype}")
                continue
            wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
            error = ((a.to(wide) - b.to(wide)).abs().max() / max(1e-30, b.to(wide).abs().max().item())).item()
            if not loose or not error <= 1e-12:
                rows.append(f"{name}: off by {error:.1e}")
    return rows


# Bytes

def bytes_out_of_bounds(told):
    """What is wrong with what a strict scan counted, or None."""
    if told.memory is not None and told.plan is not None and told.counted_peak + told.charged > told.memory:
        return f"counted {told.counted_peak} and {told.charged} of gradients, the budget is {told.memory}"
    return None


def resident_peak():
    """Bytes that this process had in memory at most, since the last call of ``forget_peak``."""
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1)) << 10


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def process_out_of_bounds(grown, memory, results):
    """What is wrong with what the process grew by, or None. The bound is coarse: a quarter, and 20 MB, and what a
    scan returns, twice, with gradients."""
    most = 1.25 * (memory or 0) + (20 << 20) + 4 * results
    return f"the process grew by {grown >> 20} MiB, the bound is {int(most) >> 20} MiB" if memory and grown > most else None


# Findings

class Timeout(Exception):
    pass


@contextlib.contextmanager
def limited(seconds):
    """Timeout after so many seconds, in the main thread of a program."""
    def over(*_):
        raise Timeout(f"it takes more than {seconds} seconds")
    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def fixed_tiers(graph=None):
    """Planners are told the same of tiers each time; ``graph``: bytes that a saved tensor's nodes count."""
    tapes, *users = (importlib.import_module(f"neap.torch.{name}") for name in ("tapes", "scan", "sequential"))
    measured, counted = users[0].measured_tiers, getattr(tapes, "GRAPH", None)

    def told(slow, nbytes, seconds):
        found = measured(slow, nbytes, 1e-4)
        for tier in found:
            for name, value in TIERS.items():
                if hasattr(tier.raw, name):
                    setattr(tier.raw, name, value)
        return found

    def put(function, size):
        for user in users:
            user.measured_tiers = function
        if counted is not None:
            tapes.GRAPH = size
    put(told, counted if graph is None else graph)
    try:
        yield
    finally:
        put(measured, counted)


class Runner:
    """Compares cases with the plain loop."""

    def __init__(self, say=lambda text: None):
        self.say, self.folder = say, tempfile.mkdtemp(prefix="neap-random-", dir="/var/tmp")
        self.counts = collections.Counter()

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def findings(self, case):
        """What is wrong with a case, as a list of texts."""
        with warnings.catch_warnings(), limited(10 * LIMIT):
            warnings.simplefilter("ignore")
            try:
                wanted = case.plain()
            except Timeout:
                raise
            except Exception as error:
                self.counts["plain fails"] += 1
                self.say(f"plain: {type(error).__name__}: {error}")
                return []
        found = []
        peak, charged, least = self.sizes(case, wanted, found)
        for row in case.plans(peak, charged, least):
            self.one(case, wanted, row, found)
        if found and not all(like_bits(a, b) for a, b in self.twice(case, wanted)):
            self.counts["plain is not reproducible"] += 1
            return []
        return found

    @staticmethod
    def twice(case, wanted):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = case.plain()
        rows = [(again[name], b) for name, b in wanted.items() if b is not None]
        return [[x.to_dense() if x.layout != torch.strided else x for x in row] for row in rows]

    def sizes(self, case, wanted, found):
        """Bytes of a scan with all the memory that it wants, of gradients, and the least budget."""
        told = self.one(case, wanted, case.ample, found)
        if told is None or told.plan is None:
            return 1 << 14, 1 << 12, 1 << 12
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with fixed_tiers():
                    case.scanned(memory=told.charged + 1)
                least = told.charged + 1
            except neap.BudgetError as error:
                least = error.least or told.charged + told.counted_peak
            except (neap.Error, RuntimeError):
                least = told.charged + told.counted_peak
        return told.counted_peak, told.charged, least

    def one(self, case, wanted, row, found):
        """Compares one scan; its report, or None if it was refused."""
        row, more = dict(row), {}
        graph = row.pop("graph", None)
        if row.get("slow") == "directory":
            row["slow"] = self.folder
        name = ", ".join(f"{key}={value!r}" for key, value in {**row, "graph": graph}.items() if value is not None)
        name, begin = f"[{name}]", time.perf_counter()

        def wrong(text):
            found.append(f"{name} {text}")
            self.say(f"  {name}: WRONG: {text}")
        for attempt in range(case.tries):
            with warnings.catch_warnings(record=True) as caught, limited(LIMIT):
                warnings.simplefilter("always")
                try:
                    with fixed_tiers(graph):
                        got, told = case.scanned(**row)
                    break
                except Timeout as error:
                    wrong(str(error))
                    return None
                except neap.BudgetError as error:
                    self.counts["budget errors"] += 1
                    if not error.least:
                        if not re.search(NO_PLAN, str(error)):
                            wrong(f"BudgetError without least: {error}")
                        self.say(f"  {name}: {error}")
                        return None
                    if attempt == case.tries - 1:
                        wrong(f"error.least does not do: {error}")
                        return None
                    row["memory"], name = error.least, f"{name[:-1]}, least {error.least}]"
                except Exception as error:
                    if not self.accepted(case, error):
                        wrong(f"{type(error).__name__}: {error}")
                    else:
                        self.counts["refused"] += 1
                        self.say(f"  {name}: refused: {str(error)[:160]}")
                    return None
        self.judge(case, got, wanted, row, caught, told, wrong)
        self.counts["compared"] += 1
        self.say(f"  {name}: {told.plan.chosen if told.plan else 'loop'}, groups of {told.group}, {told.extra_steps} extra steps, counted "
                 f"{told.counted_peak} + {told.charged}, {time.perf_counter() - begin:.2f} s")
        return told

    @staticmethod
    def judge(case, got, wanted, row, caught, told, wrong):
        said = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
        said = [text for text in said if not any(re.search(allowed, text) for allowed in ALWAYS)]
        if said and not case.warns:
            wrong(f"warns: {said[0]}")
        if not (said and case.warns):
            differ = compared(got, wanted, case.loose)
            if differ:
                wrong("; ".join(differ[:4]) + (f"; and {len(differ) - 4} more" if len(differ) > 4 else ""))
        bound = bytes_out_of_bounds(told) if row.get("strict", True) and row.get("count", True) else None
        if bound:
            wrong(bound)

    @staticmethod
    def accepted(case, error):
        """True for a refusal that a part of the case may lead to."""
        allowed = list(case.accept)
        if case.end == "second":
            allowed += [r"differentiate twice", r"double_backward", r"once_differentiable"]
        return isinstance(error, (neap.Error, RuntimeError)) and any(re.search(one, str(error)) for one in allowed)

    def shrunk(self, case):
        """The same finding with fewer parts and simpler choices."""
        first, without = kind_of(self.findings(case)), set(case.without)
        for name in list(case.names):
            smaller = type(case)(case.seed, without | {name})
            if first & kind_of(self.findings(smaller)):
                without.add(name)
        return type(case)(case.seed, without)


def kind_of(findings):
    """What findings are about, without numbers."""
    return {re.sub(r"\d[\d.e+-]*", "#", re.sub(r"^\[.*?\] ", "", text))[:30] for text in findings}


def many(seconds, first, say=print, kind=Case):
    """Runs cases until the time is up; how many, and the findings."""
    runner, begin, seed, found = Runner(), time.monotonic(), first, []
    said = begin
    try:
        while time.monotonic() - begin < seconds:
            case = kind(seed)
            rows = runner.findings(case)
            for text in rows:
                say(f"FINDING seed {seed}: {text}\n    {case.describe()}")
            found += rows
            seed += 1
            if time.monotonic() - said > 30:
                said = time.monotonic()
                say(f"{seed - first} cases, {len(found)} findings, {said - begin:.0f} s, {dict(runner.counts)}")
    finally:
        runner.close()
    say(f"{seed - first} cases from {first} on, {len(found)} findings, {time.monotonic() - begin:.0f} s, {dict(runner.counts)}")
    return seed - first, found


def main(kind, about):
    """The program, for cases of one kind."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run one case and print what it does")
    parser.add_argument("--without", default="", help="names of choices and parts to leave out")
    parser.add_argument("--skip", default="", help="parts to leave out of all cases")
    parser.add_argument("--shrink", action="store_true", help="find a smaller case with the same finding")
    given = parser.parse_args()
    kind.left_out = set(given.skip.split(","))
    if given.seed is None:
        return 1 if many(given.seconds, given.first, lambda text: print(text, flush=True), kind)[1] else 0
    case, runner = kind(given.seed, filter(None, given.without.split(","))), Runner(print)
    try:
        if given.shrink:
            runner.say = lambda text: None
            case = runner.shrunk(case)
            runner.say = print
        print(case.describe())
        print("choices:", ",".join(case.names), "without:", ",".join(sorted(case.without)))
        return 1 if runner.findings(case) else 0
    finally:
        runner.close()


if __name__ == "__main__":
    sys.exit(main(Case, __doc__))
