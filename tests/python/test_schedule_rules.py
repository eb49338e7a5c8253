# SPDX-License-Identifier: Apache-2.0
"""Schedules of neap.schedules keep the contract of checkpoint_schedules: a strict walker follows those of all
strategies for short chains, a reader that stores no more than the actions ask for computes the gradient with them, and
the package's own test of validity runs over them if its source archive is there. The walker finds planted breaches."""
import glob
import importlib.util
import os
import sys

import pytest

import neap
from schedule_walker import DISK, RAM, WORK, Breach, Walker, walk
from stand_in_schedules import Copy as StandIn, Schedule, theirs

MANY = int(os.environ.get("NEAP_MANY", "60")) >= 500
Forward, Reverse, Copy, Move = theirs.Forward, theirs.Reverse, theirs.Copy, theirs.Move
EndForward, EndReverse = theirs.EndForward, theirs.EndReverse
INSTALLED = Copy is not StandIn
T = neap.Tier

# Problems with s checkpoints, or with room for about as many: name, arguments, whether `make check` has it.
PROBLEMS = {
    "slots": (lambda s: dict(slots=s), True),
    "disk": (lambda s: dict(slots=s, slow=T(2, 2)), True),
    "fast disk": (lambda s: dict(slots=s, slow=T(0.1, 0.1)), False),
    "small disk": (lambda s: dict(slots=s, slow=T(2, 2, capacity=2)), True),
    "two disks": (lambda s: dict(slots=s, slow=[T(0.5, 0.5, capacity=2, name="a"), T(3, 3, name="b")]), False),
    "overlapped": (lambda s: dict(slots=s, slow=T(0.5, 0.5, sync=False)), False),
    "bytes": (lambda s: dict(state=100, tape=300, memory=100 * (s + 8)), True),
    "small tapes": (lambda s: dict(state=100, tape=30, memory=100 * (s + 3)), False),
    "bytes, disk": (lambda s: dict(state=100, tape=300, memory=100 * (s + 8), advance=1, backward=2,
                                   slow=T(100, 100)), True),
    "bytes, fast disk": (lambda s: dict(state=100, tape=100, memory=100 * (s + 4), advance=1, backward=2,
                                        slow=T(1000, 1000)), False),
    "bytes, small disk": (lambda s: dict(state=100, tape=50, memory=100 * (s + 4), advance=1, backward=2,
                                         slow=T(30, 30, capacity=300)), False)}
# These need steps that differ, two chains, or slow memory for the data of steps.
ELSEWHERE = {"chain", "pofo", "join", "stream", "replay", "auto"}


def schedules(arguments, most=12, slots=5):
    """Steps, checkpoints, strategy and schedule of all problems that fit."""
    for steps in range(1, most + 1):
        for s in range(1, slots + 1):
            for strategy in {*neap.strategies(), "auto"} - ELSEWHERE | {"auto"}:
                try:
                    yield steps, s, strategy, Schedule(steps, strategy=strategy, **arguments(s))
                except neap.BudgetError:
                    pass


@pytest.mark.parametrize("name", [name for name, (_, always) in PROBLEMS.items() if always or MANY])
def test_all_strategies_keep_the_contract(name):
    arguments = PROBLEMS[name][0]
    found = set()
    for steps, s, strategy, schedule in schedules(arguments):
        found.add(strategy)
        given = arguments(s)
        counts = walk(schedule, sizes=(given.get("state", 0), given.get("tape", 0)))
        if "slots" in given:
            assert counts.slots <= s
        if name == "small disk":
            assert counts.disk <= 2
        if "memory" in given:
            assert counts.bytes <= schedule.plan.peak <= given["memory"]
        for storage, used in ((RAM, counts.ram), (DISK, counts.disk)):
            assert schedule.uses_storage_type(storage) == (used > 0)
        assert schedule.is_exhausted
    assert found >= {"auto", "revolve", "mixed", "online", "multistage", "h-revolve"}
    if name == "bytes, disk":
        assert found == {*neap.strategies()} - ELSEWHERE | {"auto"}


def stages(steps):
    """Steps that differ in size and time."""
    return neap.Stages(state=[100 + 50 * (t * t % 3) for t in range(steps + 1)], backward=[2] * (steps + 1),
                       advance=[1 + t % 2 for t in range(steps)], tape=[200 + 100 * (t % 2) for t in range(steps)])


def test_steps_that_differ_and_plans_that_cannot_be_expressed():
    """Plans of `chain` and `pofo` keep the contract, or an error has the strategy and the reason."""
    said, refused = set(), {}
    for steps in range(2, 13):
        for slow in (None, T(100, 100)):
            for strategy in ("chain", "pofo"):
                try:
                    walk(Schedule(steps, stages=stages(steps), memory=900, slow=slow, strategy=strategy,
                                  tapes_stay=False))
                    said.add(strategy)
                except neap.BudgetError:
                    pass
                except neap.UsageError as error:
                    refused[strategy] = str(error)
    assert said == {"chain", "pofo"}
    assert "pofo" in refused["pofo"] and "put tape" in refused["pofo"] and "strategy='auto'" in refused["pofo"]


def test_no_plan_that_fits_can_be_expressed():
    with pytest.raises(neap.UsageError, match="no plan that fits can be expressed .* 'put tape .* Pass tapes_stay=True"):
        Schedule(3, stages=stages(3), memory=600, slow=T(100, 100), tapes_stay=False)


def test_two_chains_are_an_error():
    with pytest.raises(neap.UsageError, match=r"steps=\(3, 4\) is not valid: .* Pass one number"):
        Schedule((3, 4), slots=2)


# --- the three kinds of breach that there were ---


def said(*given, **arguments):
    return [repr(a) for a in Schedule(*given, **arguments)]


def test_a_checkpoint_reaches_to_where_it_is_restarted():
    """The plan saves the state of step 1 and drops it unused: the checkpoint of step 0 has the data of step 1."""
    plan = neap.plan(4, slots=2, strategy="online")
    assert "drop state at 1 slot 1" in map(str, plan)
    assert said(4, slots=2, strategy="online")[0] == repr(Forward(0, 2, True, False, RAM))


def test_a_state_is_read_after_the_steps_before_are_reversed():
    """The plan reads the state while step 3 is reversed."""
    found = said(4, slots=1, slow=T(2, 2), strategy="periodic")
    assert found[:5] == [repr(a) for a in (
        Forward(0, 3, True, False, DISK), Forward(3, 4, False, True, WORK), EndForward(), Reverse(4, 3, True),
        Move(0, DISK, WORK))]


def test_tapes_that_are_kept_are_checkpoints_of_their_own():
    for steps, s, strategy, schedule in schedules(PROBLEMS["bytes, disk"][0], 8):
        for a in schedule:
            if type(a).__name__ == "Forward" and a.write_adj_deps and a.storage != WORK:
                assert a.n1 == a.n0 + 1
            if type(a).__name__ == "EndReverse":
                break


# --- a reader that stores no more than the actions ask for ---


class Reader:
    """Computes the gradient of a chain with a parameter per step. A checkpoint contains a state and the parameters of
    the steps that its Forward runs, so a restart beyond them fails, as in tlm_adjoint."""

    def __init__(self, parameters):
        self.parameters = dict(enumerate(parameters))  # of the steps whose data is available; later of no others
        self.x, self.work, self.gradient = 0.5, {}, {}
        self.stored, self.adjoint = {}, None

    def forward(self, a):
        start, used, tapes = self.x, {}, {}
        for t in range(a.n0, a.n1):
            used[t] = self.parameters[t]
            tapes[t] = self.x, used[t]
            self.x = self.x + used[t] * self.x * self.x
        self.work = tapes if a.write_adj_deps else {}
        if a.storage in (RAM, DISK):
            self.stored[a.n0] = (start if a.write_ics else None, used if a.write_ics else {}, self.work)
            self.work = {}

    def read(self, a, keep):
        self.x, self.parameters, self.work = self.stored[a.n] if keep else self.stored.pop(a.n)

    def reverse(self, a):
        for t in reversed(range(a.n0, a.n1)):
            x, p = self.work[t]
            self.gradient[t] = self.adjoint * x * x
            self.adjoint *= 1 + 2 * p * x
        self.work = {}

    def run(self, schedule):
        for a in schedule:
            kind = type(a).__name__
            if kind == "Forward":
                self.forward(a)
            elif kind == "Reverse":
                self.reverse(a)
            elif kind == "EndForward":
                self.adjoint, self.parameters = self.x, {}
            elif kind == "EndReverse":
                return self.gradient
            else:
                self.read(a, kind == "Copy")
        raise AssertionError("no EndReverse")


def test_gradients_of_a_reader_that_stores_what_the_actions_ask_for():
    expected = {}
    for name in ("slots", "disk", "bytes, disk"):
        for steps, s, strategy, schedule in schedules(PROBLEMS[name][0], 12, 3):
            parameters = [0.01 * t - 0.03 for t in range(steps)]
            plain = [Forward(0, steps, False, True, WORK), EndForward(), Reverse(steps, 0, True), EndReverse()]
            expected.setdefault(steps, Reader(parameters).run(plain))
            assert Reader(parameters).run(schedule) == expected[steps], (name, steps, s, strategy)


# --- planted breaches ---


class Planted(theirs.CheckpointSchedule):
    """A schedule of given actions."""

    def __init__(self, steps, actions):
        super().__init__(steps)
        self.actions = actions

    is_exhausted = property(lambda self: True)

    def uses_storage_type(self, storage_type):
        return True

    def _iterator(self):
        for a in self.actions:
            if isinstance(a, Forward):
                self._n = a.n1
            elif isinstance(a, Reverse):
                self._r += a.n1 - a.n0
            elif isinstance(a, (Copy, Move)) and a.to_storage == WORK:
                self._n = a.n
            yield a


GOOD = [Forward(0, 2, True, False, RAM), Forward(2, 3, True, False, DISK), Forward(3, 4, False, True, WORK),
        EndForward(), Reverse(4, 3, True), Move(2, DISK, WORK), Forward(2, 3, False, True, WORK), Reverse(3, 2, True),
        Copy(0, RAM, WORK), Forward(0, 1, False, False, WORK), Forward(1, 2, False, True, WORK), Reverse(2, 1, True),
        Move(0, RAM, WORK), Forward(0, 1, False, True, WORK), Reverse(1, 0, True), EndReverse()]


def planted(*changes):
    """GOOD with the actions of some places replaced; a list inserts, None removes."""
    actions = [[a] for a in GOOD]
    for place, new in changes:
        actions[place] = [] if new is None else new if isinstance(new, list) else [new]
    return Planted(4, sum(actions, []))


BREACHES = [
    ("a Forward starts where", [(1, Forward(1, 3, True, False, DISK))]),
    ("a Forward starts where", [(5, None)]),
    ("a Forward has at least one step", [(1, [Forward(2, 2, False, False, WORK), GOOD[1]])]),
    ("a Forward ends at or before the adjoint", [(6, Forward(2, 4, False, True, WORK))]),
    ("a checkpoint has data", [(1, Forward(2, 3, False, False, DISK))]),
    ("only memory and disk store restart data", [(2, Forward(3, 4, True, True, WORK))]),
    ("data is stored somewhere", [(2, Forward(3, 4, False, True, theirs.StorageType.NONE))]),
    ("a step has one checkpoint at a time", [(9, Forward(0, 1, True, False, RAM))]),
    ("a step has one checkpoint at a time", [(9, Forward(0, 1, True, False, DISK))]),
    ("checkpoints are read after the forward pass", [(3, [Copy(0, RAM, WORK), GOOD[3]])]),
    ("working memory is empty", [(4, [Copy(0, RAM, WORK), GOOD[4]])]),
    ("working memory is empty", [(4, Reverse(4, 3, False))]),
    ("the checkpoint exists", [(5, Move(2, RAM, WORK))]),
    ("the checkpoint exists", [(8, Move(0, RAM, WORK))]),
    ("the checkpoint is before the adjoint", [(5, Copy(2, DISK, WORK)), (7, [GOOD[7], Copy(2, DISK, WORK)])]),
    ("a checkpoint is read into a storage", [(5, Move(2, DISK, theirs.StorageType.NONE))]),
    ("one checkpoint is read per backward action", [(9, [GOOD[9], GOOD[8], GOOD[9]])]),
    ("a restart has the data of all steps", [
        (0, [Forward(0, 1, True, False, RAM), Forward(1, 2, False, False, WORK)])]),
    ("backward steps follow the forward pass", [(3, None)]),
    ("a Reverse starts where", [(7, Reverse(2, 1, True))]),
    ("a Reverse has at least one step", [(7, [Reverse(3, 3, True), GOOD[7]])]),
    ("the data of the reversed steps", [(6, Forward(2, 3, False, False, WORK))]),
    ("the data of the reversed steps", [(11, Reverse(2, 0, True))]),
    ("the data of the reversed steps", [(9, Forward(0, 1, False, True, WORK)), (11, Reverse(2, 0, True))]),
    ("the forward pass ends after the last step", [(2, None)]),
    ("the forward pass ends once", [(3, [EndForward(), EndForward()])]),
    ("the backward pass ends after the first step", [(14, None)]),
    ("no checkpoint is left", [(12, Copy(0, RAM, WORK))]),
    ("a schedule ends with EndReverse", [(15, None)])]


@pytest.mark.parametrize("rule, changes", BREACHES)
def test_the_walker_finds_a_planted_breach(rule, changes):
    with pytest.raises(Breach, match=rule):
        walk(planted(*changes))


def test_the_walker_accepts_what_is_right():
    counts = walk(planted())
    assert (counts.advanced, counts.ram, counts.disk, counts.transfers) == (8, 1, 1, 2)
    for storage in (RAM, DISK, WORK):
        with pytest.raises(Breach, match="limit of " + storage.name):
            walk(planted(), {storage: 0})
    # Data in memory is a checkpoint of its own, read before its step is reversed.
    walk(Planted(2, [Forward(0, 1, False, True, RAM), Forward(1, 2, False, True, WORK), EndForward(),
                     Reverse(2, 1, True), Move(0, RAM, WORK), Reverse(1, 0, True), EndReverse()]))
    # From disk to memory.
    walk(planted((5, [Move(2, DISK, RAM), Move(2, RAM, WORK)])))


def test_the_walker_finds_wrong_counters():
    for name, value, rule in (("n", lambda self: 0, "n is where the forward model is"),
                              ("r", lambda self: 0, "r is the number of backward steps"),
                              ("n", lambda self: self._n + 1, "a schedule starts at step 0"),
                              ("max_n", lambda self: 4 - (self._n > 0), "max_n is the number of steps")):
        wrong = type("Wrong", (Planted,), {name: property(value)})
        with pytest.raises(Breach, match=rule):
            walk(wrong(4, GOOD))


def test_the_walker_finds_every_action_that_is_missing():
    for name in ("slots", "disk", "bytes, disk"):
        for steps, s, _, schedule in schedules(PROBLEMS[name][0], 5, 2):
            actions = []
            while not actions or type(actions[-1]).__name__ != "EndReverse":
                actions.append(next(schedule))
            walk(Planted(steps, actions))
            for place in range(len(actions)):
                with pytest.raises(Breach):
                    walk(Planted(steps, actions[:place] + actions[place + 1:]))


# --- their own schedules and checks ---


def test_expected_difference_of_mixed():
    """`mixed` stores the data of the steps of a leaf in working memory, and checkpoint_schedules has that of one step
    there and the others in memory. Only a limit of one step for working memory fails."""
    several = 0
    for steps in range(1, 13):
        for s in range(1, 6):
            found = walk(Schedule(steps, slots=s, strategy="mixed"), {RAM: s, DISK: 0})
            assert found.slots <= s
            if found.work > 1:
                several += 1
                with pytest.raises(Breach, match="limit of WORK"):
                    walk(Schedule(steps, slots=s, strategy="mixed"), {WORK: 1})
    assert several > 0


@pytest.mark.skipif(not INSTALLED, reason="checkpoint_schedules is not installed")
@pytest.mark.filterwarnings("ignore:Numba not available")
def test_their_schedules_keep_the_rules_of_the_walker():
    made = {"Revolve": lambda n, s: theirs.Revolve(n, s),
            "MultistageCheckpointSchedule": lambda n, s: theirs.MultistageCheckpointSchedule(n, s // 2, s - s // 2),
            "MixedCheckpointSchedule": lambda n, s: theirs.MixedCheckpointSchedule(n, s),
            "DiskRevolve": lambda n, s: theirs.DiskRevolve(n, s, n), "HRevolve": lambda n, s: theirs.HRevolve(n, s, s)}
    for steps in range(2, 13):
        for s in range(1, min(steps, 6)):
            for make in made.values():
                Walker(steps, {WORK: 1}, strict=False).walk(make(steps, s))


def their_test():
    """test_validity.py of the source archive of checkpoint_schedules."""
    folder = os.environ.get("NEAP_CHECKPOINT_SCHEDULES", os.path.join(sys.prefix, "share", "checkpoint_schedules"))
    found = glob.glob(os.path.join(folder, "tests", "test_validity.py"))
    if not found or not INSTALLED:
        pytest.skip(f"no checkpoint_schedules, or not its source archive in {folder} (tools/frameworks.sh unpacks it)")
    spec = importlib.util.spec_from_file_location("their_test_validity", found[0])
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.test_validity


# Steps and checkpoints of their test.
THEIR_GRID = [(1, (0,)), (2, (1,)), (3, (1, 2)), (5, (2,)), (10, tuple(range(2, 10))),
              (100, tuple(range(1, 100, 1 if MANY else 9))), (250, tuple(range(25, 250, 25 if MANY else 75)))]
# Strategy: the disk, and the limits of RAM, DISK and the data in working memory for n steps and s checkpoints.
THEIR_LIMITS = {
    "auto": (None, lambda n, s: (s, 0, n)), "revolve": (None, lambda n, s: (s, 0, 1)),
    "mixed": (None, lambda n, s: (s, 0, s + 1)), "online": (None, lambda n, s: (s, 0, 1)),
    "multistage": (T(2, 2), lambda n, s: (s, n, 1)), "disk-revolve": (T(2, 2), lambda n, s: (s, n, 1)),
    "periodic": (T(2, 2), lambda n, s: (s, n, 1)), "h-revolve": (T(2, 2), lambda n, s: (s, n, 1)),
    "async": (T(2, 2), lambda n, s: (s, n, 1)), "auto, disk": (T(2, 2), lambda n, s: (s, n, n))}


def made(strategy, slow, limits):
    """What their test calls for n steps and s checkpoints: a schedule, and limits of what it stores."""
    def make(n, s):
        try:
            schedule = Schedule(n, slots=s, slow=slow, strategy=strategy.split(",")[0])
        except neap.BudgetError:  # no checkpoint
            return None, {}, 0
        ram, disk, data = limits(n, s)
        return schedule, {RAM: ram, DISK: disk}, data
    return make


@pytest.mark.parametrize("steps, checkpoints", THEIR_GRID)
@pytest.mark.parametrize("strategy", THEIR_LIMITS)
def test_their_own_test_of_validity(strategy, steps, checkpoints):
    their_test()(made(strategy, *THEIR_LIMITS[strategy]), steps, checkpoints)


# Strategy, disk, limits of their test that plans of neap exceed, and the limit that fails.
DIFFERENCES = [("mixed", None, lambda n, s: (s, 0, 1), grid, "data_limit") for grid in THEIR_GRID[1:]] + \
    [("h-revolve", T(2, 2), lambda n, s: (1, s - 1, 1), (1, (0,)), "storage_limit")]


@pytest.mark.parametrize("strategy, slow, limits, grid, limit", DIFFERENCES)
def test_expected_differences_in_their_test(strategy, slow, limits, grid, limit):
    """Only a limit fails: one step's data in working memory, where `mixed` has that of a leaf; -1 checkpoints on disk,
    which is what 1 in memory leaves of s = 0."""
    steps, checkpoints = grid
    with pytest.raises(AssertionError) as found:
        their_test()(made(strategy, slow, limits), steps, checkpoints)
    assert limit in str(found.traceback[-1].statement)
