# SPDX-License-Identifier: Apache-2.0
"""The choice of a plan for a scan, without PyTorch: budgets, groups, tiers, host memory, compiled groups, growing states."""
import itertools
import subprocess
import sys
import warnings

import pytest

import neap
from neap.group_plans import Costs, Measured
from neap.problems import Tier
from neap.scan_choice import COMPILED, GROUP, Asked, Facts, choose, enough, planned
from neap.stores import OpenTier

TAPE, STATE, GRAPH = 1000, 100, 30


class Steps(Facts):
    """Facts by a formula, and a list of what was asked for. Step t of growing states has state and tape (1 + t / 8) times
    as large."""

    def __init__(self, steps=48, grows=False, **more):
        super().__init__()
        self.steps, self.grows, self.asked = steps, grows, []
        self.record = self.adjoint = STATE
        for name, value in more.items():
            setattr(self, name, value)

    def bytes_of(self, t0, t1):
        return sum(TAPE + (TAPE * t // 8 if self.grows else 0) for t in range(t0, t1))

    def state_of(self, t):
        return STATE + (STATE * t // 8 if self.grows else 0)

    def group(self, group, offloaded=False, timed=True):
        self.asked.append((group, offloaded, timed))
        costs = Costs(1e-3 * group, 1.1e-3 * group, 2e-3 * group)
        if offloaded:
            return Measured(self.bytes_of(0, group) // 2, costs, 0, GRAPH * group, 0.0, STATE, STATE)
        state = self.state_of(group)
        return Measured(self.bytes_of(0, group), costs, state=state, adjoint=state, grows=self.grows)

    def every(self, group):
        self.asked.append((group, "every"))
        begins = range(0, self.steps, group)
        tapes = tuple(self.bytes_of(t, min(t + group, self.steps)) for t in begins)
        states = tuple(self.state_of(min(t, self.steps)) for t in (*begins, self.steps))
        return self.group(group)._replace(tapes=tapes, states=states)

    def largest(self, sizes, offloaded, stored):
        self.asked.append("largest")
        return max(self.bytes_of(t, t + 1) + 2 * self.state_of(t + 1) for t in range(self.steps)) + sizes.staging


def tier(capacity=1 << 30, rate=1e9, staging=0):
    spec = Tier(write=rate, read=rate, capacity=capacity, name="mem", duplex=True).spec()
    spec.staging = staging
    return OpenTier(spec)


def none(record):
    return []


def never(record):
    raise AssertionError("tiers are not needed")


def fits(found, memory):
    """The plan is legal and fits, with the graphs of its offloaded tapes and what is reserved."""
    peak = found.chosen.plan.verify().peak
    assert peak == found.chosen.plan.peak and (memory is None or peak + found.graphs + found.charged <= memory)
    assert found.chosen.plan.problem.steps == -(-48 // found.group)


def test_no_framework_is_imported():
    code = "import sys, neap.scan_choice; sys.exit(any(name in sys.modules for name in ('torch', 'jax', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_without_a_budget_nothing_is_measured():
    for strategy, group in itertools.product(("auto", "bptt"), (None, 4, 100)):
        facts = Steps(gradients=77, grad=True)
        found = planned(Asked(48, None, strategy, group, host=1 << 20, slow="'mem:'"), facts, never)
        assert facts.asked == [] and found.chosen.plan.chosen == "bptt" and found.charged == 77
        assert found.group == min(group or GROUP, 48) and found.sizes == (STATE, STATE, 1, None, 0, 0)
    facts = Steps()  # another strategy needs sizes
    assert planned(Asked(48, None, "standard"), facts, none).sizes.tape == GROUP * TAPE


@pytest.mark.parametrize("compiled, tiers", list(itertools.product((False, True), ((), (tier(),), (tier(3000), tier(rate=1e6))))))
def test_the_largest_group_that_fits(compiled, tiers):
    """Groups are halved until a plan fits; a larger one, asked for by itself, does not."""
    groups = set()
    for memory in (1500, 2400, 3500, 6000, 12000, 30000, 100000, 1 << 20):
        asked = Asked(48, memory, compiled=compiled, slow="dir" if tiers else None)
        facts = Steps(walk=compiled)
        try:
            found = planned(asked, facts, lambda record: list(tiers))
        except neap.BudgetError as error:
            assert memory < error.least and f"memory={memory / 1024:.3g} KiB is too small" in str(error)
            fits(planned(asked._replace(memory=error.least), Steps(walk=compiled), lambda record: list(tiers)), error.least)
            continue
        fits(found, memory)
        groups.add(found.group)
        first = min(COMPILED if compiled else GROUP, max(1, memory // 8 // TAPE))
        assert found.group <= first and (not compiled or 48 % found.group == 0)
        if compiled:  # nothing is compiled before a plan of sizes alone has shown that the budget suffices
            timed = [row for row in facts.asked if row[2]]
            assert all(facts.asked.index((row[0], row[1], False)) < facts.asked.index(row) for row in timed)
            assert not found.chosen.travels
        elif 2 * found.group <= first:
            with pytest.raises(neap.BudgetError):
                choose(asked._replace(group=2 * found.group), Steps(), lambda record: list(tiers), memory)
        given = planned(asked._replace(group=found.group), Steps(walk=compiled), lambda record: list(tiers))
        assert str(given.chosen.plan) == str(found.chosen.plan) and given[:2] == found[:2]
    assert len(groups) > 2


def test_compiled_groups_divide_the_steps_if_half_as_many_do():
    for steps, group in ((48, 8), (49, 7), (47, 8), (6, 6), (1, 1), (26, 8)):
        assert planned(Asked(steps, 1 << 20, compiled=True), Steps(steps), none).group == group


def test_reserved_bytes():
    """Gradients of parameters, and the graph of an advanced step, are not for the plan; compiled steps have no graph."""
    for grad, compiled in itertools.product((False, True), repeat=2):
        found = planned(Asked(48, 20000, group=1, compiled=compiled), Steps(gradients=2000, grad=grad), none)
        assert found.charged == 2000 + (TAPE if grad and not compiled else 0)
        assert found.sizes.memory == 20000 - found.charged
        fits(found, 20000)
    with pytest.raises(neap.BudgetError, match="2.93 KiB are reserved for the gradients of the parameters and the graph of "
                                               "one step, and the saved tensors of 1 step take 1000 B"):
        planned(Asked(48, 3500), Steps(gradients=2000, grad=True), none)


def test_tiers():
    """Tapes go to a fast tier if their graphs fit. A plan counts the staging memory of the tiers that it uses alone."""
    asked, machine = Asked(48, 6000, group=1, slow="dir"), lambda record: [tier(staging=64)]  # noqa: E731
    with_tapes, without = planned(asked, Steps(), machine), planned(asked, Steps(walk=True), machine)
    for found in (with_tapes, without):
        fits(found, 6000)
        assert found.stored and found.sizes.staging == 64 and found.record == STATE
    assert with_tapes.chosen.travels and with_tapes.places.away and with_tapes.graphs == GRAPH * with_tapes.places.away
    assert not without.chosen.travels and without.graphs == 0
    assert with_tapes.chosen.plan.seconds < without.chosen.plan.seconds < planned(asked, Steps(), none).chosen.plan.seconds
    slow = planned(asked, Steps(), lambda record: [tier(rate=10.0, staging=64)])
    assert not slow.stored and slow.sizes.staging == 0
    roomy = planned(asked._replace(memory=1 << 20), Steps(), machine)
    assert not roomy.stored and roomy.chosen.plan.overhead < 0.01


def test_host_memory_and_files():
    """A host memory that is too small for all tapes is one tier together with the files, if that is faster."""
    for host, rate in itertools.product((2000, 8000, 1 << 20), (2e6, 100.0)):
        asked = Asked(48, 8000, group=1, host=host, slow="dir")
        found = planned(asked, Steps(), lambda record: [tier(host), tier(rate=rate)])
        fits(found, 8000)
        assert (found.chosen.spill and found.stored) == (host <= 8000 and rate == 2e6), (host, rate)


def test_growing_states():
    for strategy in ("auto", "chain"):
        facts = Steps(grows=True)
        found = planned(Asked(48, 60000, strategy), facts, none)
        fits(found, 60000)
        assert found.chosen.plan.chosen == "chain" and found.sizes.tape == max(facts.every(found.group).tapes)
        assert (found.group, "every") in facts.asked and found.chosen.actions == list(found.chosen.plan)
    with pytest.warns(RuntimeWarning, match="slow= or host= has no effect"):
        assert not planned(Asked(48, 60000, slow="dir"), Steps(grows=True), lambda record: [tier()]).stored
    equal = planned(Asked(48, 60000, "chain"), Steps(), none)  # asked for, although steps are equal
    assert equal.chosen.plan.chosen == "chain"
    # If the budget is too small for that, groups are planned as equal, and the player makes room.
    small = choose(Asked(48, 8000), Steps(grows=True), none, 8000)
    assert small.chosen.plan.chosen != "chain" and small.group == 1
    with pytest.raises(neap.BudgetError):
        choose(Asked(48, 8000, "chain"), Steps(grows=True), none, 8000)


def test_what_is_enough():
    """The number of bytes suffices for each step as it is, and is found for every kind of call; else zeros."""
    for grows, compiled, strict, strategy in itertools.product(*[(False, True)] * 3, ("auto", "revolve", "bptt")):
        asked, facts = Asked(48, 1, strategy, strict=strict, compiled=compiled), Steps(grows=grows)
        group, least = enough(asked, facts, none, 1)
        assert choose(asked, facts, none, least).group == group
        assert ("largest" in facts.asked) == (strict and not compiled)
        if strict and not compiled:
            assert least >= facts.largest(planned(asked._replace(memory=least), facts, none).sizes, False, False)
    assert enough(Asked(48, 1), Steps(), none, 0) == (0, 0)


def test_messages():
    for asked, more in ((Asked(48, 3, "bptt"), ", and 'bptt' stores the saved tensors of all 48 steps (x)"),
                        (Asked(48, 3, group=4), r" \(group=4; a smaller group needs less\) \(x\)"),
                        (Asked(48, 3), r"the saved tensors of 1 step take 1000 B \(x\)")):
        with pytest.raises(neap.BudgetError, match=more.replace("(x)", r"\(x\)") if "bptt" in more else more) as caught:
            planned(asked, Steps(inputs=" (x)"), none)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fits(planned(asked._replace(memory=caught.value.least), Steps(), none), caught.value.least)


def test_a_question_is_planned_once():
    """Plans of earlier calls are kept by all that they depend on."""
    asked, plans = Asked(48, 6000, group=1, slow="dir"), {}
    first, again, other = Steps(), Steps(), Steps()
    first.plans = again.plans = other.plans = plans
    one, two = (planned(asked, facts, lambda record: [tier()]) for facts in (first, again))
    assert one.chosen is two.chosen and one == two and len(plans) == 1
    assert (1, True, True) in first.asked and (1, True, True) not in again.asked
    assert planned(asked._replace(memory=7000), other, lambda record: [tier()]).chosen is not one.chosen and len(plans) == 2
