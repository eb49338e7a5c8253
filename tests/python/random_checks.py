# SPDX-License-Identifier: Apache-2.0
"""Runs random cases, compares each with its plain loop, and judges refusals, warnings and bytes."""
import argparse
import collections
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import random
import re
import shutil
import signal
import tempfile
import time
import warnings

import torch

import neap
from fake_device import Fake

torch.set_num_threads(1)

LIMIT = 60  # seconds of one run, which has to end
TIERS = {"write": 2e9, "read": 1e9, "latency": 1e-5}  # what planners are told: plans are a function of the seed
DEVICES = {"late": dict(), "reordered": dict(rate=4000), "slow": dict(rate=300)}  # of fake_device.py
ALWAYS = (r"times slower than storing", r"check=True has no effect", r"slow= or host= has no effect",
          r"compile=True has no effect")
NO_PLAN = r"is not for|needs|do not|does not|only|cannot|has no|no tier|wants|takes no|without|not apply"


class Choices:
    """Choices that are a function of a seed. ``without`` names those that take their simplest value, and parts that
    are left out."""

    left_out = set()  # parts of all cases
    large = False  # whether it is large enough to be seen in what the process takes

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

    def hosts(self):
        """Bytes of host memory, and the kind of device that offloads to it; None: the CPU as a device."""
        pick = self.random("hosts")
        return pick.choice([None, None, None, "16M", "40K"]), pick.choice([None, *DEVICES])

    def kept(self, parts, always=0):
        """The parts that are not left out; the first ones always stay."""
        self.names += parts[always:]
        return [name for name in parts if name not in self.without | self.left_out]


def autocast():
    """Autocast as scans have it."""
    return torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)


def like_bits(a, b):
    """True if two results are alike to the bit, where NaN equals NaN."""
    return a.shape == b.shape and a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())


def compared(found, wanted, loose, moved=None):
    """What differs, as text. ``loose``: by more than the rounding of sums, which a leaf of another type than the rest
    has in its own. ``moved``: the plain loop's results for weights that differ in their last bit. Second derivatives,
    whose terms may cancel, differ by ten times as much at most, since each operation rounds, not only the weights."""
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
            narrow = b.dtype not in (torch.float64, torch.complex128) and (b.is_floating_point() or b.is_complex())
            most = 4 * torch.finfo(b.dtype).eps if narrow else 1e-12
            if moved and name.startswith("second") and moved.get(name) is not None:
                most = max(most, 10 * apart(moved[name], b))
            if not loose or not apart(a, b) <= most:  # terms are rounded
                rows.append(f"{name}: off by {apart(a, b):.1e}")
    return rows


def apart(a, b):
    """The largest difference of two tensors, relative to the largest element."""
    wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
    return ((a.to(wide) - b.to(wide)).abs().max() / max(1e-30, b.to(wide).abs().max().item())).item()


# Bytes

def bytes_out_of_bounds(told):
    """What is wrong with what a strict scan counted, or None."""
    reserved = told.charged + told.unchanged
    if told.memory is not None and told.plan is not None and told.counted_peak + reserved > told.memory:
        return f"counted {told.counted_peak} and {reserved} that are reserved, the budget is {told.memory}"
    return None


def resident(case, peak=False):
    """Bytes of this process in memory, or its peak since the last call without ``peak``; 0 for small cases."""
    if not case.large:
        return 0
    if not peak:
        ctypes.CDLL(None).malloc_trim(0)  # or pages that the allocator happens to keep would count as no growth
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak is reset
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+)" if peak else r"VmRSS:\s+(\d+)", file.read()).group(1)) << 10


def process_out_of_bounds(grown, memory, results):
    """What is wrong with what the process grew by, or None. The bound is coarse: a quarter, and 20 MB, and eight times
    what a scan returns: it, the copy that is compared, the inputs, and five temporary tensors of the loss's backward
    pass (a cosine, a product, the gradients of two slices, their sum)."""
    most = 1.25 * (memory or 0) + (20 << 20) + 8 * results
    if memory and grown > most:
        return f"the process grew by {grown >> 20} MiB, the bound is {int(most) >> 20} MiB"
    return None


# Findings

class Timeout(BaseException):  # code that catches any Exception does not take it for a failure of its own
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
    """Planners are told the same of tiers each time; ``graph`` 0: nodes and objects of tensors count nothing."""
    measure, rates, *users = (importlib.import_module(f"neap.torch.{name}")
                              for name in ("measure", "tiers.rates", "facts", "sequential"))
    users.append(rates)
    measured, counted, rated = rates.measured_tiers, measure.GRAPH, rates.rates_of

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
        measure.GRAPH = size
    put(told, counted if graph is None else measure.Graph(*[0] * len(counted)))
    rates.rates_of = lambda *unused: rates.Rates(TIERS["write"], TIERS["read"], TIERS["latency"], TIERS["latency"], True)
    try:
        yield
    finally:
        put(measured, counted)
        rates.rates_of = rated


@contextlib.contextmanager
def on_device(kind, seed):
    """Scans and layers run on a fake device, if a kind is given; all its copies must be over at the end."""
    users = [importlib.import_module(f"neap.torch.{name}") for name in ("scan", "sequential")]
    kept, made = users[0].offloading, Fake(seed=seed, **DEVICES.get(kind, {}))

    def put(function):
        for user in users:
            user.offloading = function
    put(kept if kind is None else lambda host, slow, tensors: made if host or slow else None)
    try:
        yield
        if kind is not None:
            gc.collect()
        assert made.open == [] and made.slabs.used == 0, "copies or host memory are left"
    finally:
        put(kept)


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
        graph, device = row.pop("graph", None), row.pop("device", None)
        if row.get("slow") == "directory":
            row["slow"] = self.folder
        name = ", ".join(f"{key}={value!r}" for key, value in {**row, "graph": graph, "device": device}.items()
                         if value is not None)
        name, begin = f"[{name}]", time.perf_counter()

        def wrong(text):
            found.append(f"{name} {text}")
            self.say(f"  {name}: WRONG: {text}")
        for attempt in range(case.tries):
            with warnings.catch_warnings(record=True) as caught, limited(LIMIT):
                warnings.simplefilter("always")
                try:
                    begun = resident(case)
                    with fixed_tiers(graph), on_device(device, case.seed):
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
        grown = resident(case, True) - begun
        if case.large and {graph, device, row.get("host")} == {None} and row.get("strict", True) and \
                row.get("count", True):
            bound = process_out_of_bounds(grown, told.memory, sum(x.numel() * 8 for x in got.values() if x is not None))
            if bound:
                wrong(bound)
        self.counts["compared"] += 1
        self.say(f"  {name}: {told.plan.chosen if told.plan else 'loop'}, groups of {told.group}, "
                 f"{told.extra_steps} extra steps, counted {told.counted_peak} + {told.charged}, "
                 f"{time.perf_counter() - begin:.2f} s")
        return told

    @staticmethod
    def judge(case, got, wanted, row, caught, told, wrong):
        warned = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
        warned = [text for text in warned if not any(re.search(allowed, text) for allowed in ALWAYS)]
        if warned and not case.warns:
            wrong(f"warns: {warned[0]}")
        if not (warned and case.warns):
            differ = compared(got, wanted, case.loose)
            if differ and case.loose and case.end == "second":
                differ = compared(got, wanted, True, case.moved())
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


def many(kind, seconds, first, say=print):
    """Runs cases until the time is up; how many, and the findings."""
    runner, begin, seed, found = Runner(), time.monotonic(), first, []
    told = begin
    try:
        while time.monotonic() - begin < seconds:
            case = kind(seed)
            rows = runner.findings(case)
            for text in rows:
                say(f"FINDING seed {seed}: {text}\n    {case.describe()}")
            found += rows
            seed += 1
            if time.monotonic() - told > 30:
                told = time.monotonic()
                say(f"{seed - first} cases, {len(found)} findings, {told - begin:.0f} s, {dict(runner.counts)}")
    finally:
        runner.close()
    say(f"{seed - first} cases from {first} on, {len(found)} findings, {time.monotonic() - begin:.0f} s, "
        f"{dict(runner.counts)}")
    return seed - first, found


def main(kind, about, large=None):
    """The program, for cases of one kind."""
    faulthandler.enable()
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run one case and print what it does")
    parser.add_argument("--without", default="", help="names of choices and parts to leave out")
    parser.add_argument("--skip", default="", help="parts to leave out of all cases")
    parser.add_argument("--large", action="store_true", help="cases of some size, whose process is looked at")
    parser.add_argument("--shrink", action="store_true", help="find a smaller case with the same finding")
    given = parser.parse_args()
    kind = large if given.large and large else kind
    kind.left_out = set(given.skip.split(","))
    if given.seed is None:
        return 1 if many(kind, given.seconds, given.first, lambda text: print(text, flush=True))[1] else 0
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
