# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the tool, and random problems."""
import gc
import os
import random
import shutil
import subprocess
import tempfile

import pytest

import neap


def pytest_configure(config):
    config.addinivalue_line("markers", "cuda: needs a CUDA or ROCm device")
    config.addinivalue_line("markers", "compiler: graphs of compile=True are compiled")
    config.addinivalue_line("markers", "heavy: graphs of neap.torch count in budgets, as they do for users")


def pytest_collection_finish():
    """What imports have made stays: each later collection would look at all of PyTorch's objects, which takes 50 ms."""
    gc.collect()
    gc.freeze()


TOOL = os.environ.get("NEAP_BIN", "")


def run_tool(*arguments, code=0):
    """What `neap ARGUMENTS` prints, with exit code `code`; the test is skipped where the tool was not built."""
    if not TOOL:
        pytest.skip("no tool")
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


class RandomProblem:
    """The same problem as arguments of neap.plan and as options of `neap plan`."""

    def __init__(self, seed):
        pick = random.Random(seed)
        self.steps = pick.choice([1, 2, 7, 33, 100, 250, 700])
        self.arguments, self.options = {}, ["--steps", self.steps]
        if pick.random() < 0.3:
            self.give("slots", pick.randint(1, 12))
        else:
            self.give("state", pick.choice([64, 100, "4K", "64K", 777777]))
            self.give("tape", pick.choice([64, 300, "4K", "256K"]))
            self.give("memory", pick.choice(["2K", "64K", "1M", "8M", "200M"]))
            if pick.random() < 0.2:
                self.give("adjoint", pick.choice([0, 64, "1M"]))
        for name in ("advance", "record", "backward"):
            if pick.random() < 0.5:
                self.give(name, pick.choice([1, "1ms", "20us", 0.25, 3]))
        if pick.random() < 0.2:
            self.give("call", pick.choice([0.5, "1us"]))
        if pick.random() < 0.2:
            self.give("last", pick.choice([0.1, 0.75, 1]))
        if pick.random() < 0.5:
            self.add_tier(pick)
        names = list(neap.strategies())
        self.strategy = pick.choice(names + ["auto"] * len(names))

    def give(self, name, value):
        self.arguments[name] = value
        self.options += [f"--{name}", value]

    def add_tier(self, pick):
        if "slots" in self.arguments:
            write, read = pick.choice([0.5, 2]), pick.choice([0.5, 3])
            self.arguments["slow"] = neap.Tier(write, read, name="disk")
        else:
            write, read = pick.choice(["100M", 5e8]), pick.choice(["1G", 2e9])
            self.arguments["slow"] = neap.Tier(write, read, name="disk")
        self.options += ["--tier", f"disk:write={write},read={read}"]


def random_problems(count, first=0):
    """Problems that a strategy has a plan for, as (problem, plan)."""
    found = 0
    for seed in range(first, first + 20 * count):
        problem = RandomProblem(seed)
        try:
            plan = neap.plan(problem.steps, strategy=problem.strategy, **problem.arguments)
        except neap.BudgetError:
            continue
        yield problem, plan
        found += 1
        if found == count:
            return


@pytest.fixture
def scratch():
    """A folder on a disk, for tiers and journals."""
    folder = tempfile.mkdtemp(prefix="neap-python-", dir="/var/tmp")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def light(monkeypatch):
    """Graphs and objects of tensors count nothing: those of these small cells take more than their tapes."""
    from neap.torch import measure
    monkeypatch.setattr(measure, "GRAPH", measure.Graph(*[0] * len(measure.Graph._fields)))


@pytest.fixture(autouse=True)
def light_by_default(request):
    """``light`` for tests of neap.torch that are not marked ``heavy``: most have budgets of a few times the tensors
    of small cells, to make plans and recomputation happen within a few steps."""
    name = request.module.__name__.rpartition(".")[2]
    if name.startswith("test_torch") and not request.node.get_closest_marker("heavy"):
        request.getfixturevalue("light")
