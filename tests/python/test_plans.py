# SPDX-License-Identifier: Apache-2.0
"""Plans: the same as the tool's, as text and back, in constant memory, drawn, compared, refused."""
import gc
import itertools
import os
import pickle
import resource
import threading
import xml.dom.minidom

import pytest

import neap
from conftest import RandomProblem, random_problems, run_tool

MANY = int(os.environ.get("NEAP_MANY", "60"))
LONG = dict(state="64K", tape="256K", memory="64M", advance=1e-3, backward=2e-3)


def test_actions_are_those_of_the_tool():
    kinds = set()
    for problem, plan in random_problems(MANY):
        mine = [str(action) for action in plan]
        text = run_tool("plan", *problem.options, "--strategy", problem.strategy, "--actions")
        assert mine == text.splitlines(), problem.options
        assert [str(action) for action in plan] == mine  # anew each time
        kinds.update(action.kind for action in plan)
    assert len(kinds) == len(neap.Kind)


def test_bound_and_estimate():
    """The estimate is printed if it differs from the bound, as by the tool."""
    plan = neap.plan(100, state=10, tape=10, memory=100, backward=2)
    assert plan.estimate == plan.bound <= plan.seconds and "estimate" not in str(plan)
    plan = neap.plan(1000, state=1000, tape=3000, memory=50_000, adjoint=0, backward=4, slow=neap.Tier("10", "10"))
    assert plan.bound < plan.estimate and plan.bound <= plan.seconds
    options = ("--steps", 1000, "--state", 1000, "--tape", 3000, "--memory", 50_000, "--adjoint", 0, "--advance", 1,
               "--backward", 4, "--tier", "disk:write=10,read=10", "--strategy", "auto")
    line = next(line for line in run_tool("plan", *options).splitlines() if line.startswith("estimate"))
    assert line in neap.tables.details(plan).splitlines()
    assert "estimate: the expected minimum, not proved, is " in neap.tables.table([plan])


def test_verified_and_simulated():
    for _, plan in random_problems(MANY // 3, 5000):
        verdict, simulation = plan.verify(), plan.simulate()
        assert verdict.peak == plan.peak and verdict.arena == plan.arena
        assert verdict.advance_steps == plan.advance_steps
        assert verdict.backward_steps == plan.problem.steps
        assert verdict.actions == sum(1 for _ in plan)
        assert simulation.seconds == pytest.approx(plan.seconds, rel=1e-9)
        assert [use[1:] for use in verdict.tiers] == [use[1:] for use in plan.tiers]


def test_text_comes_back(tmp_path):
    for problem, plan in random_problems(MANY // 3, 9000):
        path = tmp_path / "a.plan"
        plan.save(path, actions=problem.steps % 2 == 0)
        again = neap.load_plan(path)
        lines = [str(action) for action in plan]  # a WAIT's text does not name the tier
        assert [str(action) for action in again] == lines
        assert again.text(actions=problem.steps % 2 == 0) == path.read_text()
        assert again.peak == plan.peak and again.params == plan.params
        gc.collect()
        assert [str(action) for action in again] == lines  # what it points to is still there
    question = again.problem
    del again
    gc.collect()
    assert question.steps == problem.steps


def printed(*arguments, code=0):
    """What the tool prints, with its options as Python's arguments."""
    text = run_tool("plan", *arguments, code=code)
    for option, argument in (("add --tier", "pass slow="), ("add --log BYTES", "pass log="), ("; --chain FILE can list them", ""),
                             (": --steps 500,300 is two", ""), ("increase --memory", "increase memory="),
                             ("increase --slots", "increase slots="),
                             ("--memory, --state and --tape, not --slots", "memory=, state= and tape=, not slots=")):
        text = text.replace(option, argument)
    text = "".join(line for line in text.splitlines(True) if not line.startswith("times: of steps"))
    return text


@pytest.mark.parametrize("options, arguments", [
    (["--steps", 100000], dict(steps=100000, **LONG)),
    (["--steps", 3000, "--tier", "disk:write=2G,read=1G,latency=100us"],
     dict(steps=3000, slow=neap.Tier("2G", "1G", "100us", name="disk"), **LONG)),
    (["--steps", 3000, "--tier", "far:write=20M,read=10M,latency=10ms,cpu=300ms/1G"],
     dict(steps=3000, slow=neap.Tier("20M", "10M", "10ms", name="far", cpu=0.3 / 2**30), **LONG)),
])
def test_printed_as_the_tool_prints(options, arguments):
    given = ["--state", "64K", "--tape", "256K", "--memory", "64M", "--advance", "1ms", "--backward", "2ms"]
    plan = neap.plan(**arguments)
    assert str(plan) + "\n" == printed(*options, *given)
    assert str(neap.compare(**arguments)) == str(plan)
    for strategy in ("auto", "revolve", "double", "bptt"):
        row = neap.compare(**arguments)[strategy]
        assert row.details() + "\n" == printed(*options, *given, "--strategy", strategy, code=0 if row.feasible else 2)


def test_slots_printed_as_the_tool_prints():
    for steps, slots in ((1000, 10), (1, 1), (40, 3)):
        assert str(neap.plan(steps, slots=slots)) + "\n" == \
            printed("--steps", steps, "--slots", slots)


def test_comparison():
    rows = neap.compare(1000, state=100, tape=300, memory=5000)
    assert len(rows) == len(neap.strategies()) and rows[-1].strategy == "auto"
    assert rows["auto"].seconds == rows.best.seconds
    assert all(row.feasible or row.why for row in rows)
    assert not rows["bptt"].feasible and rows["bptt"].least > 5000
    with pytest.raises(KeyError):
        rows["nonsense"]
    with pytest.raises(neap.BudgetError, match="memory=4.88 KiB is too small for strategy 'bptt'"):
        list(rows["bptt"])
    assert "<table>" in rows._repr_html_() and "bptt" in rows._repr_html_()


def test_drawn(tmp_path):
    plan = neap.plan(32, slots=4, strategy="revolve")
    drawing = plan.draw(tmp_path / "a.svg")
    assert xml.dom.minidom.parseString(drawing).documentElement.tagName == "svg"
    run_tool("plan", "--steps", 32, "--slots", 4, "--strategy", "revolve", "--draw", tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "<svg" in plan._repr_html_() and "strategy" in plan._repr_html_()
    assert "a <b> title" not in plan.draw(title="a <b> title")
    long = neap.plan(100_000, slots=10)
    thinned = long.draw(limit=100)
    assert xml.dom.minidom.parseString(thinned).documentElement.tagName == "svg" and len(thinned) < 100_000
    assert "<svg" in long._repr_html_()
    with pytest.raises(OSError):
        plan.draw(tmp_path / "no" / "folder.svg")
    assert sorted(os.listdir(tmp_path)) == ["a.svg", "b.svg"]


def test_stages():
    stages = neap.Stages(state=["1K", 2000, 500, 100], tape=[4000, 3000, "1K"],
                         advance=["1ms", 0.002, 0.001], backward=[0.002, 0.004, 0.002, 0],
                         backward_needs_input=True)
    plan = neap.plan(stages=stages, memory="10K")
    del stages
    gc.collect()
    assert plan.chosen in ("chain", "pofo")
    assert plan.verify().backward_steps == 3
    assert [a.t0 for a in plan if a.kind == neap.BACKWARD] == [2, 1, 0]
    again = neap.plan(stages=neap.Stages(state=[8] * 4, tape=[8] * 3, advance=[1] * 3, backward=[1] * 4),
                      memory=1000)
    assert again.seconds == pytest.approx(7)


def test_a_billion_steps_in_constant_memory():
    plan = neap.plan(10**9, state="1K", tape="1K", memory="1M", strategy="mixed")
    for _ in itertools.islice(plan, 2000):
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in itertools.islice(plan, 200_000):
        pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2000  # KiB


def test_several_threads_iterate():
    plan = neap.plan(2000, slots=9)
    wanted, found = list(plan), []
    threads = [threading.Thread(target=lambda: found.append(list(plan) == wanted)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 6


def test_streams_end_with_their_iterators():
    plan = neap.plan(10_000, state="1K", tape="1K", memory="64K", strategy="double",
                     slow=neap.Tier("1G", "1G"))
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    for _ in range(200):
        next(iter(plan))
    before = resident()
    for _ in range(4000):
        next(iter(plan))
    assert resident() - before < 4 << 20


@pytest.mark.parametrize("length", [1, 2, 17, 300, 5000])
def test_online(length):
    """The chain is walked as the rules of actions say, and reversed whole."""
    run = neap.online(state=100, tape=100, memory=2000)
    live, back, saved, tapes = 0, length, {}, set()
    for a in run:
        if a.kind in (neap.ADVANCE, neap.RECORD):
            assert live == a.t0
            live = min(a.t1, length)
            if a.kind == neap.RECORD:
                tapes.update(range(a.t0, live))
            if live == length and back == length and not tapes.issuperset([length]):
                run_ended = getattr(run, "ended", False)
                if not run_ended:
                    run.finish(length)
                    run.ended = True
        elif a.kind == neap.SAVE:
            saved[a.slot] = live
        elif a.kind == neap.LOAD:
            live = saved[a.slot]
        elif a.kind == neap.DROP and a.payload == neap.STATE:
            del saved[a.slot]
        elif a.kind == neap.DROP:
            tapes.difference_update(range(a.t0, a.t1))
        elif a.kind == neap.BACKWARD:
            assert a.t1 == back and tapes.issuperset(range(a.t0, a.t1))
            tapes.difference_update(range(a.t0, a.t1))
            back = a.t0
    assert back == 0
    run.close()
    assert list(run) == []


def test_online_refuses():
    run = neap.online(state=100, tape=100, memory=2000)
    next(run)
    with pytest.raises(neap.UsageError):
        run.finish(10**6)
    with pytest.raises(neap.BudgetError):
        neap.online(state=100, tape=100, memory=100)


@pytest.mark.parametrize("error, says, arguments", [
    (neap.UsageError, "steps is required", dict(state=1, tape=1)),
    (neap.UsageError, "state and tape are required", dict(steps=5)),
    (neap.UsageError, "slots counts", dict(steps=5, slots=3, memory=8)),
    (neap.UsageError, "slots counts", dict(steps=5, slots=3, state=8)),
    (neap.UsageError, "out of range; expected an integer from 0 to", dict(steps=-1, slots=3)),
    (neap.UsageError, "out of range; expected an integer from 0 to", dict(steps=2**63, slots=3)),
    (neap.UsageError, "not a whole number", dict(steps=1.5, slots=3)),
    (neap.UsageError, "is not a number", dict(steps="ten", slots=3)),
    (neap.UsageError, "is not a number", dict(steps=True, slots=3)),
    (neap.UsageError, "not a size", dict(steps=5, state="4X", tape=1)),
    (neap.UsageError, "not a size", dict(steps=5, state="-4K", tape=1)),
    (neap.UsageError, "out of range; expected an integer from 0 to", dict(steps=5, state=-4, tape=1)),
    (neap.UsageError, "not a time", dict(steps=5, state=4, tape=1, advance="2 ms")),
    (neap.UsageError, "not a time", dict(steps=5, state=4, tape=1, advance=float("nan"))),
    (neap.UsageError, "not a time", dict(steps=5, state=4, tape=1, backward=-1)),
    (neap.UsageError, "strategy", dict(steps=5, slots=3, strategy="nonsense")),
    (neap.UsageError, "pass a neap.Tier", dict(steps=5, slots=3, slow="disk")),
    (neap.UsageError, "at most 8", dict(steps=5, slots=3, slow=[neap.Tier()] * 9)),
    (neap.UsageError, "not a rate", dict(steps=5, state=4, tape=4, slow=neap.Tier("0"))),
    (neap.UsageError, "1 to 23 bytes", dict(steps=5, slots=3, slow=neap.Tier(name="x" * 24))),
    (neap.UsageError, "nothing to replay", dict(steps=5, state=4, tape=4, replay=1)),
    (neap.UsageError, "pair .A, B. for two chains", dict(steps=(5, 5, 5), state=4, tape=4)),
    (neap.UsageError, "each of the two chains needs at least 1 step", dict(steps=(5, 0), state=4, tape=4)),
    (neap.UsageError, "without tiers", dict(steps=(5, 5), state=4, tape=4, slow=neap.Tier())),
    (neap.BudgetError, "needs|fit|budget|least", dict(steps=5, state="4K", tape="4K", memory="4K")),
])
def test_refusals(error, says, arguments):
    with pytest.raises(error, match=says) as caught:
        neap.plan(**arguments)
    assert isinstance(caught.value, neap.Error) and caught.value.code < -5000
    assert "\n" not in str(caught.value)


def test_refusal_names_a_budget_that_works():
    with pytest.raises(neap.BudgetError) as caught:
        neap.plan(100, state="4K", tape="1K", memory="4K")
    assert str(caught.value) == "memory=4 KiB is too small for strategy 'auto'. At least 13 KiB are needed (error.least)"
    assert caught.value.least == 13 * 1024 and isinstance(caught.value, MemoryError)
    neap.plan(100, state="4K", tape="1K", memory=caught.value.least)
    for wrong, says in (
            (dict(steps=100, state="4K", tape="1K", memory="4K", strategy="bptt"),
             "memory=4 KiB is too small for strategy 'bptt': all tapes need 108 KiB. At least 108 KiB are needed"),
            (dict(steps=(10, 10), slots=3), "slots=3 is too small for strategy 'auto'. At least 4 slots are needed"),
            (dict(steps=9, state=8, tape=8, memory="1K", strategy="double"),
             "strategy 'double' is infeasible: needs a slow tier. Pass slow=, or another strategy")):
        with pytest.raises(neap.BudgetError) as caught:
            neap.plan(**wrong)
        assert str(caught.value).startswith(says) and bool(caught.value.least) == ("least" in says)


def test_budgets_in_lines_of_libneap():
    """Sizes are shown, and the least budget is exact; a larger one would not help if a slow tier is too small."""
    for line, says, least in (
            ("auto does not fit 65536 bytes: no strategy fits 65536 bytes; 98305 bytes would do",
             "auto does not fit 64 KiB: no strategy fits 64 KiB; at least 96.1 KiB are needed (error.least)", 98305),
            ("--memory-total: 1.0 MiB are too few; and a total of 3145728 bytes would do",
             "--memory-total: 1.0 MiB are too few; and at least 3 MiB in total are needed (error.least)", 3 << 20),
            ("slow memory of 1024 bytes (mem:1K) is too small: 65536 bytes would do",
             "slow memory of 1 KiB (mem:1K) is too small: at least 64 KiB are needed", 0),
            ("a budget of 65536 bytes is too small for auto: no strategy fits 65536 bytes. Use at least 98305 bytes (96 KiB)",
             "a budget of 64 KiB is too small for auto: no strategy fits 64 KiB. Use at least 96.1 KiB (error.least)", 98305),
            ("double: needs a slow tier", "double: needs a slow tier", 0)):
        found = neap.errors.exception(neap.BudgetError.code, line)
        assert type(found) is neap.BudgetError and (str(found), found.least) == (says, least)


@pytest.mark.parametrize("lists, says", [
    (dict(tape=[1], state=[1], advance=[1], backward=[1, 1]), "state has 1 entries"),
    (dict(tape=[1], state=[1, 1], advance=[1], backward=[1]), "backward has 1 entries"),
    (dict(tape=[1], state=[1, 1], advance=[], backward=[1, 1]), "advance has 0 entries"),
    (dict(tape=["1x"], state=[1, 1], advance=[1], backward=[1, 1]), r"tape\[0\]"),
])
def test_stages_refuse(lists, says):
    with pytest.raises(neap.UsageError, match=says):
        neap.Stages(**lists)


def test_files_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        neap.load_plan(tmp_path / "none")
    good = neap.plan(50, slots=4).text()
    path = tmp_path / "bad.plan"
    for bad in (good[:40], "", good.replace("advance_steps ", "advance_steps 9")):
        path.write_text(bad)
        with pytest.raises(neap.Error) as caught:
            neap.load_plan(path)
        assert isinstance(caught.value, (neap.FormatError, neap.IllegalSchedule, neap.UsageError))
    path.write_text(good[:40])
    with pytest.raises(neap.FormatError, match="bad.plan: line"):
        neap.load_plan(path)
    own = (tmp_path / "own.plan")
    own.write_text("neap plan 1\n[chain]\nsteps 2\nstate 8\ntape 4\nlive 8\nadvance 1\nrecord 1\n"
                   "backward 2\nmemory 40\n[actions]\nadvance 0 1\nrecord 1 2\nturn\n"
                   "backward 1 2\nrecord 0 1\nbackward 0 1\nend\n")
    with pytest.raises(neap.IllegalSchedule, match="action"):
        neap.load_plan(own)


def test_actions_are_plain_values():
    actions = list(neap.plan(20, slots=3))
    assert pickle.loads(pickle.dumps(actions)) == actions
    assert actions[0].kind is neap.Kind(actions[0].kind)
    assert RandomProblem(3).options == RandomProblem(3).options


def test_rounding_is_no_overhead_and_no_gap():
    """The makespan is a sum of the same times as the bound, in a different order: 2e-16 below it here."""
    found = neap.plan(100_000, state="64K", tape="256K", memory="64M", advance=1e-3, backward=2e-3,
                      slow=neap.Tier(write=2e9, read=1e9, latency=1e-4))
    assert found.gap == 0 and found.overhead == 0
