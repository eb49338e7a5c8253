# SPDX-License-Identifier: Apache-2.0
"""The Player over a fake framework, whose steps have tapes and states of any size: the budget is kept, every step is
reversed once, and error.least is a budget that suffices."""
import os
import random
import weakref

import pytest

import neap
from neap.actions import Kind
from neap.errors import LostRecord
from neap.player import Backend, Outgrown, Player, Sizes

MANY = int(os.environ.get("NEAP_MANY", "60"))
STRATEGIES = ("auto", "bptt", "revolve", "mixed", "standard")


class State:
    """State t, of so many bytes."""

    def __init__(self, t, nbytes):
        self.t, self.nbytes = t, nbytes


class Tape:
    """The tape of [t0, t1), which holds the state that it was recorded from."""

    def __init__(self, first, t1, nbytes):
        self.first, self.t1, self.nbytes = first, t1, nbytes


class Steps(Backend):
    """Steps t with tapes of ``tape[t]`` bytes in addition to state t, of ``state[t]``; adjoints are as large as states.
    It counts what is alive."""

    def __init__(self, state, tape, memory):
        self.state, self.tape, self.memory = state, tape, memory
        self.alive, self.tapes = weakref.WeakSet(), weakref.WeakSet()
        self.reversed, self.calls, self.sizing = len(tape), 0, False
        self.seen = 0  # steps that were done for the first time
        self.first = State(0, state[0])

    def made(self, t):
        found = State(t, self.state[t])
        self.alive.add(found)
        return found

    def look(self, state, t0, more=0):
        """What is alive fits the budget."""
        assert state.t == t0
        self.calls += 1
        if self.memory is None or self.sizing:
            return
        taped = {tape.first for tape in self.tapes}
        states = sum(one.nbytes for one in self.alive if one not in taped and one is not state)
        assert sum(tape.nbytes for tape in self.tapes) + states + state.nbytes + more <= self.memory

    def begun(self, t0, t1, first):
        assert not first or t0 == self.seen
        self.seen = max(self.seen, t1 if first else 0)

    def advance(self, state, t0, t1, first):
        self.look(state, t0)
        self.begun(t0, t1, first)
        return self.made(t1)

    def record(self, state, t0, t1, first, room):
        self.look(state, t0)
        nbytes = self.state[t0] + sum(self.tape[t0:t1])
        if room is not None and nbytes > room:
            raise Outgrown(room + 1)  # a counter ends as soon as it is too much
        self.begun(t0, t1, first)
        tape = Tape(state, t1, nbytes)
        self.tapes.add(tape)
        return self.made(t1), tape, nbytes

    def tape_bytes(self, state, t0, t1):
        assert state.t == t0
        return self.made(t1), self.state[t0] + sum(self.tape[t0:t1])

    def backward(self, tape, adjoint, t0, t1):
        assert adjoint == t1 == self.reversed and (tape.first.t, tape.t1) == (t0, t1)
        self.reversed = t0
        return t0

    def state_bytes(self, state):
        return state.nbytes, state.nbytes

    # Transfers: a store of this test takes the objects themselves

    def pieces(self, state):
        return state, state

    def empty(self, t):
        return self.made(t)

    def tape_pieces(self, tape):
        return [(0, tape.nbytes)]

    def shed(self, tape):
        self.tapes.discard(tape)
        tape.first = tape.first.t

    def regain(self, tape):
        self.tapes.add(tape)
        tape.first = self.made(tape.first)
        return [(0, tape.nbytes)]


class Loses:
    """A store that loses a share of what it is given."""

    def __init__(self, pick, share, tape):
        self.pick, self.share, self.tape_bytes = pick, share, [1 << 40] * 8
        self.places, self.waited, self.flying = {}, 0.0, set()

    def begin(self, put, key, tag):
        if self.pick.random() < self.share / 3:
            raise OSError("it could not be started")
        ticket = object()
        self.flying.add(ticket)
        if put:
            self.places[key] = tag, self.pick.random() < self.share
        return ticket, put or self.places.get(key) != (tag, False)

    def put(self, tier, place, tag, pieces, keep=None):
        ticket, _ = self.begin(True, ("state", tier, place), tag)
        return ticket, False

    def get(self, tier, place, tag, pieces, keep=None):
        return self.begin(False, ("state", tier, place), tag)

    def put_tapes(self, tier, place, tag, pieces, keep=None):
        ticket, _ = self.begin(True, ("tape", tier, place), tag)
        return ticket, self.pick.random() < self.share

    def get_tapes(self, tier, place, tag, pieces, keep=None):
        return self.begin(False, ("tape", tier, place), tag)

    def wait(self, transfer):
        self.flying.remove(transfer[0])
        if transfer[1]:
            raise LostRecord("it is lost")

    def forget(self, tier, place):
        self.places.pop(("state", tier, place), None)

    def close(self):
        assert not self.flying


def sizes_of(pick, steps, shape):
    """Bytes of T + 1 states and of T tapes."""
    state = [pick.randint(1, 100)] * (steps + 1)
    if shape == "grows":
        state = [state[0] + t * pick.choice([1, 1, 1, 20]) for t in range(steps + 1)]
    elif shape == "any":
        state = [pick.choice([state[0], pick.randint(1, 400)]) for _ in range(steps + 1)]
    one = pick.randint(0, 200)
    tape = [one] * steps
    if shape != "even":
        tape = [pick.choice([one, one, pick.randint(0, 400), pick.randint(0, 5000) if pick.random() < 0.1 else one])
                for _ in range(steps)]
    return state, tape


class Problem:
    """Random steps, and how they are to be played."""

    def __init__(self, seed, tiers=False):
        self.pick = pick = random.Random(seed)
        self.steps = pick.randint(1, 60)
        shapes = ["even", "tapes"] if tiers else ["even", "tapes", "tapes", "grows", "any"]
        self.state, self.tape = sizes_of(pick, self.steps, pick.choice(shapes))
        self.group = pick.choice([1, 1, 2, 5])
        self.strategy = pick.choice(STRATEGIES)
        self.tiers, self.share, self.graph = tiers, pick.choice([0, 0.1, 0.5]), pick.choice([0, 5, 300]) if tiers else 0
        self.adjoint = self.state[0]
        # a plan counts with the first group
        self.planned_tape = self.state[0] + sum(self.tape[:self.group])

    def plan(self, memory):
        more = dict(slow=neap.Tier("1G", "1G", capacity=10**6), last=1.0) if self.tiers else {}
        if self.strategy == "bptt" and self.tiers:
            self.strategy = "auto"
        return neap.plan(-(-self.steps // self.group), state=self.state[0], adjoint=self.adjoint,
                         tape=self.planned_tape, memory=memory, strategy=self.strategy, advance=1e-6, backward=2e-6,
                         **more)

    def least(self):
        """What the one step needs that needs most."""
        return max(max(self.state[0], self.state[t], self.state[t + 1]) + max(self.adjoint, *self.state[t:t + 2]) +
                   self.state[t] + self.tape[t] for t in range(self.steps))

    def play(self, memory, strict=True, made=None):
        made = made or self.plan(memory)
        backend = Steps(self.state, self.tape, memory if strict else None)
        store = Loses(self.pick, self.share, self.planned_tape) if self.tiers else None
        sizes = Sizes(self.state[0], self.adjoint, self.planned_tape, memory, 0, self.graph)
        player = Player(backend, made, self.steps, self.group, sizes, strict, store=store)
        try:
            last = player.forward(backend.first)
            assert last.t == self.steps and backend.seen == self.steps
            del last
            assert player.backward(self.steps) == 0 and backend.reversed == 0
        finally:
            player.close()
        assert player.held == 0 and player.counts.backward_steps == self.steps
        return player.counts, made


def budget_of(problem):
    """A budget from what is infeasible to what is ample."""
    ample = sum(problem.tape) + (problem.steps + 2) * max(problem.state)
    return int(problem.pick.choice([1, problem.pick.uniform(0.5, 3)]) * problem.least() +
               problem.pick.choice([0, 0, problem.pick.random() ** 3]) * ample)


def check(problem):
    """The budget of a random problem is kept; where it is refused, error.least suffices; a budget that is enough for
    each step alone, and for a plan, is never refused."""
    memory = budget_of(problem)
    try:
        counts, made = problem.play(memory)
        assert counts.peak <= memory
        return "played"
    except neap.BudgetError as error:
        assert error.least > memory
        least = error.least
        try:
            problem.plan(memory)
        except neap.BudgetError:  # the plan has no room for its own numbers: steps may be larger than these
            try:
                problem.play(least)
            except neap.BudgetError as second:
                assert least < problem.least() == second.least
                least = second.least
        else:
            assert memory < problem.least() == least
    counts, _ = problem.play(least)
    assert counts.peak <= least
    return "refused"


@pytest.mark.parametrize("tiers", [False, True])
def test_random_steps(tiers):
    found = [check(Problem(seed, tiers)) for seed in range(5 * MANY)]
    assert found.count("refused") > MANY // 4 and found.count("played") > MANY


def test_steps_of_one_size_do_as_planned():
    """No group is recorded twice, and the peak is the plan's."""
    for seed in range(MANY):
        problem = Problem(seed)
        problem.tape = [problem.tape[0]] * problem.steps
        problem.state = [problem.state[0]] * (problem.steps + 1)
        problem.planned_tape = problem.state[0] + problem.group * problem.tape[0]
        try:
            counts, made = problem.play(budget_of(problem))
        except neap.BudgetError:
            continue
        assert counts.outgrown == counts.recorded_again == 0 and counts.peak <= made.peak
        assert counts.advance_steps <= made.advance_steps * problem.group


def test_without_strict_every_budget_does_that_a_plan_has():
    for seed in range(MANY):
        problem = Problem(seed)
        memory = budget_of(problem)
        try:
            problem.plan(memory)
        except neap.BudgetError:
            continue
        problem.play(memory, strict=False)


def test_lost_records_fit_the_budget_of_the_plan():
    """A plan that fits to the byte: what is lost on a tier is recomputed within the budget."""
    played = 0
    for seed in range(MANY):
        problem = Problem(seed, True)
        problem.tape, problem.state = [problem.tape[0]] * problem.steps, [problem.state[0]] * (problem.steps + 1)
        problem.planned_tape = problem.state[0] + problem.group * problem.tape[0]
        problem.share = 0.5
        problem.graph = 0
        try:
            made = problem.plan(budget_of(problem))
        except neap.BudgetError:
            continue
        counts, _ = problem.play(made.peak, made=made)
        assert counts.peak <= made.peak
        played += counts.recoveries > 0
    assert played


def test_a_state_that_grows_is_refused_in_the_forward_pass():
    problem = Problem(0)
    problem.steps, problem.group, problem.strategy = 40, 1, "revolve"
    problem.state, problem.tape = [10 + 10 * t for t in range(41)], [10] * 40
    problem.adjoint, problem.planned_tape = 10, 20
    backend = Steps(problem.state, problem.tape, 500)
    player = Player(backend, problem.plan(500), 40, 1, Sizes(10, 10, 20, 500))
    with pytest.raises(neap.BudgetError, match="At least 1.21 KiB are needed") as caught:
        player.forward(backend.first)
    assert caught.value.least == problem.least() == 1230
    counts, _ = problem.play(1230)
    assert counts.peak <= 1230


def test_slots_that_outgrow_the_plan_are_thinned_out():
    """The slots that stay lie apart from each other, so few steps are recomputed."""
    problem = Problem(0)
    problem.steps, problem.group, problem.strategy = 60, 1, "revolve"
    problem.state, problem.tape = [20] + [100] * 60, [10] * 60
    problem.adjoint, problem.planned_tape = 20, 30
    made = problem.plan(600)
    backend = Steps(problem.state, problem.tape, 600)
    player = Player(backend, made, 60, 1, Sizes(20, 20, 30, 600))
    player.forward(backend.first)
    kept = sorted(held.at for held in player.slots.values() if held.state is not None)
    saved = sum(a.kind == Kind.SAVE for a in made)
    assert 2 <= len(kept) < saved
    assert player.backward(60) == 0 and player.counts.peak <= 600
    assert player.counts.advance_steps < 60 * 10
