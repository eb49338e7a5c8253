#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a plan for a problem of the planning benchmark: whether it is valid, its memory and its time.

The plan is text with one action per line (README.md specifies the format). It is executed symbolically: the content of the
live state, the slots, the tapes and the places of tiers is tracked action by action, with one clock for the computation and
one for each channel of a tier. Needs only the standard library.

    check_plan.py [--questions FILE] QUESTION PLAN     PLAN: a file, or - for the standard input
    check_plan.py --best [QUESTION...]                 the stored plans (plans/) of these problems, or of all

The first form prints makespan, peak and transfers (exit code 0), or the first rule that is violated (exit code 1). A file whose
name ends in .xz is a packed plan (README.md). The second form prints one line per plan, and exits with 1 if a plan is invalid
or its makespan is not the best known value in answers.csv. If a problem or a plan cannot be read, both print one line (exit
code 2).
"""
import bisect
import csv
import json
import lzma
import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
QUESTIONS = os.path.join(HERE, "questions.csv")
ANSWERS = os.path.join(HERE, "answers.csv")
PLANS = os.path.join(HERE, "plans")
ABOUT = 1e-9  # relative rounding of a makespan
DIGITS = re.compile(r"-?[0-9]+")
TICKETS = 256  # transfers in flight at most
LIVE = -1  # slot number of the live state
NUMBER_MOST = 1 << 62
FREE, HELD, ARRIVING = "free", "held", "arriving"


class Broken(Exception):
    """A rule that the plan breaks."""


class Unreadable(Exception):
    """A question or a plan that is no text of the benchmark."""


class Tier:
    """A slow memory: bytes (or states), bytes a second, seconds a transfer."""

    def __init__(self, words):
        row = {"capacity": "inf", "write": "0", "read": "0", "latency": "0", "mode": "one"}
        for word in words.split():
            key, _, value = word.partition("=")
            if key not in row:
                raise Unreadable(f"tier: unknown key '{key}'")
            row[key] = value
        self.capacity = math.inf if row["capacity"] == "inf" else int(row["capacity"])
        self.rate = {"put": float(row["write"]), "get": float(row["read"])}
        self.latency = float(row["latency"])
        self.mode = row["mode"]
        if self.mode not in ("sync", "one", "duplex"):
            raise Unreadable(f"tier: mode '{self.mode}' is none of sync, one, duplex")

    def seconds(self, kind, size, by_state):
        """Of a transfer. In questions that count slots the numbers are seconds a state."""
        if by_state:
            return self.rate[kind]
        return self.latency + (size / self.rate[kind] if self.rate[kind] > 0 else 0)


class Question:
    """A row of questions.csv, with its numbers read."""

    def __init__(self, row, folder=HERE):
        self.name, self.form, self.row = row["question"], row["form"], row
        if self.form not in ("bytes", "slots", "mixed", "stages"):
            raise Unreadable(f"{self.name}: form '{self.form}' is unknown")
        self.by_slot = self.form in ("slots", "mixed")
        self.steps, self.memory = int(row["steps"]), int(row["memory"])
        self.tiers = [Tier(words) for words in row["tiers"].split(";") if words.strip()]
        self.stages = None
        self.chain_file = os.path.join(folder, "chains", row["chain"]) if row["chain"] else None
        if self.form == "stages":
            self.stages = Stages(self.chain_file, self.steps)
            return
        self.state, self.tape, self.adjoint = (
            (1, 0, 0) if self.by_slot else (int(row[key]) for key in ("state", "tape", "adjoint")))
        self.seconds = {key: float(row[key]) for key in ("advance", "record", "backward")}
        self.slot_seconds = {"save": float(row["slot_write"] or 0), "load": float(row["slot_read"] or 0)}


class Stages:
    """Lists of a chain whose steps differ; the names are those of the file."""

    def __init__(self, path, steps):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        nothing = [0] * (steps + 1)
        self.steps = steps
        self.seconds = {"advance": data["advance"], "record": data.get("record", data["advance"]),
                        "backward": data["backward"]}
        self.state, self.tape = data["state"], data["tape"]
        self.advance_tmp = data.get("advance_tmp", nothing)
        self.record_tmp = data.get("record_tmp", self.advance_tmp)
        self.backward_tmp = data.get("backward_tmp", nothing)
        self.holds_output = data.get("tape_holds_output", True)
        self.needs_input = data.get("backward_needs_input", True)
        if (len(self.state), len(self.seconds["backward"]), len(self.tape)) != (steps + 1, steps + 1, steps):
            raise Unreadable(f"{path}: lists are not those of {steps} steps")


# What follows a word of an action, in groups of numbers; the name says what a line has.
_N = r"(\d+)"
_MOVE = rf"tier {_N} place {_N}"
LINES = [(re.compile(pattern + r"\Z", re.ASCII), names) for pattern, names in (
    (rf"(advance|record|backward) {_N} {_N}", "kind t0 t1"),
    (r"(turn)", "kind"),
    (rf"(save|load|drop) (state) at {_N} slot {_N}", "kind payload t0 slot"),
    (rf"(put|get) (state) at {_N} {_MOVE} ticket {_N} slot {_N}", "kind payload t0 tier place ticket slot"),
    (rf"(put|get) (state) at {_N} {_MOVE} ticket {_N} live", "kind payload t0 tier place ticket"),
    (rf"(put|get) (tape) {_N} {_N} {_MOVE} ticket {_N}", "kind payload t0 t1 tier place ticket"),
    (rf"(wait) ticket {_N}", "kind ticket"),
    (rf"(forget) (state|tape) at {_N} {_MOVE}", "kind payload t0 tier place"),
    (rf"(drop) (tape) {_N} {_N}", "kind payload t0 t1"),
    (rf"(load) (tape) at {_N}", "kind payload t0"))]


class Action:
    """A line of a plan."""

    __slots__ = ("kind", "payload", "t0", "t1", "slot", "tier", "place", "ticket")

    def __init__(self, line):
        self.payload, self.slot = "state", LIVE
        self.t0 = self.t1 = self.tier = self.place = self.ticket = 0
        for pattern, names in LINES:
            match = pattern.match(line)
            if match:
                break
        else:
            raise Unreadable(f"'{line[:80]}' is no action")
        for name, text in zip(names.split(), match.groups()):
            value = text if name in ("kind", "payload") else int(text[:20])
            if value.__class__ is int and value > NUMBER_MOST:
                raise Unreadable(f"{text[:20]}... is too large")
            setattr(self, name, value)


class Flight:
    """A transfer from its PUT or GET to its WAIT."""

    def __init__(self, action, end):
        self.a, self.end = action, end


class Run:
    """What is where while a plan is carried out; the rules that all questions share."""

    def __init__(self, question):
        self.q = question
        self.live, self.live_at, self.live_leaving = HELD, 0, 0
        self.slots = {}  # number: [standing, step, transfers that read it]
        self.adjoint = None
        self.flights = {}
        self.places = [{} for _ in question.tiers]  # (payload, place): (t0, t1)
        self.now = self.stall = 0.0
        self.channels = [{"put": 0.0, "get": 0.0} for _ in question.tiers]
        self.moved = {"put": 0, "get": 0}
        self.transfers = self.actions = self.peak = 0
        self.done = {"advance": 0, "record": 0, "backward": 0}

    # The live state and slots.

    def need_live(self, t):
        if self.live != HELD:
            raise Broken("the live state is " + ("still arriving" if self.live == ARRIVING else "undefined"))
        if self.live_at != t:
            raise Broken(f"the live state is at {self.live_at}, needed at {t}")

    def live_may_change(self):
        if self.live == ARRIVING:
            raise Broken("the live state is still arriving")
        if self.live_leaving:
            raise Broken("the live state is still leaving for a tier")

    def need_slot(self, a):
        row = self.slots.get(a.slot)
        if row is None:
            raise Broken(f"slot {a.slot} is empty")
        if row[0] == ARRIVING:
            raise Broken(f"slot {a.slot} is still arriving")
        if row[1] != a.t0:
            raise Broken(f"slot {a.slot} holds step {row[1]}, not {a.t0}")
        return row

    def need_range(self, a):
        if not 0 <= a.t0 < a.t1 <= self.q.steps:
            raise Broken(f"range [{a.t0}, {a.t1}) is not within [0, {self.q.steps})")

    def set_live(self, t):
        self.live, self.live_at = HELD, t

    # The actions.

    def forward(self, a):
        self.need_range(a)
        self.need_live(a.t0)
        self.live_may_change()
        self.compute(a)
        if a.kind == "record":
            self.make_tapes(a)
        else:
            self.advance(a)
        self.done[a.kind] += a.t1 - a.t0
        self.set_live(a.t1)

    def turn(self, a):
        if self.adjoint is not None:
            raise Broken("a second turn")
        self.need_live(self.q.steps)
        self.adjoint = self.q.steps
        self.at_turn(a)

    def backward(self, a):
        self.need_range(a)
        if self.adjoint is None:
            raise Broken("backward before the turn")
        if self.adjoint != a.t1:
            raise Broken(f"the adjoint is at {self.adjoint}, needed at {a.t1}")
        if self.live_leaving:
            raise Broken("the live state is still leaving for a tier")
        self.need_tapes(a)
        self.reverse(a)
        self.compute(a)
        self.adjoint = a.t0
        self.done["backward"] += a.t1 - a.t0
        if self.live == HELD:
            self.live = FREE

    def save(self, a):
        self.need_live(a.t0)
        if a.slot in self.slots:
            raise Broken(f"slot {a.slot} is in use")
        self.slots[a.slot] = [HELD, a.t0, 0]
        self.now += self.q.slot_seconds["save"] if not self.q.stages else 0
        self.slot_filled(a)

    def load(self, a):
        if a.payload == "tape":
            self.load_tape(a)
            return
        row = self.need_slot(a)
        self.live_may_change()
        self.now += self.q.slot_seconds["load"] if not self.q.stages else 0
        self.state_loaded(a, row)
        self.set_live(a.t0)

    def drop(self, a):
        if a.payload == "tape":
            self.drop_tapes(a)
            return
        if self.need_slot(a)[2]:
            raise Broken(f"slot {a.slot} is still leaving for a tier")
        self.slot_emptied(a)
        del self.slots[a.slot]

    # Transfers.

    def tier(self, a):
        if not 1 <= a.tier <= len(self.q.tiers):
            raise Broken(f"no tier {a.tier}")
        return self.places[a.tier - 1]

    def put(self, a):
        places = self.tier(a)
        self.ticket_free(a)
        if a.payload == "tape":
            self.tapes_travel(a)
            self.need_tapes(a)
        elif a.slot == LIVE:
            self.need_live(a.t0)
            self.state_may_leave(a)
        else:
            self.need_slot(a)
            self.state_may_leave(a)
        if (a.payload, a.place) in places:
            raise Broken(f"place {a.place} is in use")
        self.room(a)
        self.start(a)
        places[a.payload, a.place] = (a.t0, a.t1)
        if a.payload == "tape":
            self.tapes_leave(a)
        elif a.slot == LIVE:
            self.live_leaving += 1
        else:
            self.slots[a.slot][2] += 1

    def get(self, a):
        places = self.tier(a)
        self.ticket_free(a)
        there = places.get((a.payload, a.place))
        if there is None or there[0] != a.t0 or (a.payload == "tape" and there[1] != a.t1):
            raise Broken(f"place {a.place} does not hold the {a.payload} of {a.t0}")
        if a.payload == "tape":
            self.tapes_travel(a)
            self.no_tapes(a)
        elif a.slot == LIVE:
            self.live_may_change()
        elif a.slot in self.slots:
            raise Broken(f"slot {a.slot} is in use")
        self.start(a)
        self.coming(a)
        if a.payload == "state" and a.slot == LIVE:
            self.live, self.live_at = ARRIVING, a.t0
        elif a.payload == "state":
            self.slots[a.slot] = [ARRIVING, a.t0, 0]

    def wait(self, a):
        flight = self.flights.get(a.ticket)
        if flight is None:
            raise Broken(f"ticket {a.ticket} is not in flight")
        sent = flight.a
        self.until(flight.end)
        if sent.payload == "state" and sent.kind == "put":
            if sent.slot == LIVE:
                self.live_leaving -= 1
            else:
                self.slots[sent.slot][2] -= 1
        elif sent.payload == "state":
            if sent.slot == LIVE:
                self.live = HELD
            else:
                self.slots[sent.slot][0] = HELD
        self.ended(sent)
        del self.flights[a.ticket]

    def forget(self, a):
        places = self.tier(a)
        if any((f.a.tier, f.a.payload, f.a.place) == (a.tier, a.payload, a.place) for f in self.flights.values()):
            raise Broken(f"place {a.place} is in flight")
        if places.get((a.payload, a.place), (None,))[0] != a.t0:
            raise Broken(f"place {a.place} does not hold step {a.t0}")
        self.forgotten(a, places.pop((a.payload, a.place)))

    def ticket_free(self, a):
        if a.ticket >= TICKETS:
            raise Broken(f"no ticket {a.ticket}")
        if a.ticket in self.flights:
            raise Broken(f"ticket {a.ticket} is in flight")

    def start(self, a):
        """The channel takes the transfer after those before it, a GET after the PUT of its place."""
        tier, size = self.q.tiers[a.tier - 1], self.size(a)
        channel = a.kind if tier.mode == "duplex" else "put"
        begin = max(self.channels[a.tier - 1][channel], self.now)
        if a.kind == "get":
            for f in self.flights.values():
                if (f.a.kind, f.a.tier, f.a.payload, f.a.place) == ("put", a.tier, a.payload, a.place):
                    begin = max(begin, f.end)
        end = begin + tier.seconds(a.kind, size, self.q.by_slot)
        self.channels[a.tier - 1][channel] = end
        self.flights[a.ticket] = Flight(a, end)
        self.moved[a.kind] += size
        self.transfers += 1
        if tier.mode == "sync":
            self.until(end)

    def until(self, end):
        if end > self.now:
            self.stall += end - self.now
            self.now = end

    def carry_out(self, lines):
        actions = {"advance": self.forward, "record": self.forward}
        for line in lines:
            line = line.strip(" \t\r\n")
            if not line or line.startswith("#"):
                continue
            self.actions += 1
            try:
                a = Action(line)
                actions.get(a.kind, getattr(self, a.kind, None))(a)
            except (Broken, Unreadable) as error:
                raise type(error)(f"action {self.actions} ({line[:60]}): {error}") from None
            if self.peak > self.q.memory:
                raise Broken(f"action {self.actions} ({line}): {self.peak} of {self.q.memory} "
                             f"{'slots' if self.q.by_slot else 'bytes'} of fast memory")
        if self.adjoint is None:
            raise Broken("the plan ends without a turn")
        if self.adjoint != 0:
            raise Broken(f"the plan ends with the adjoint at {self.adjoint}")
        if self.flights:
            raise Broken(f"the plan ends with {len(self.flights)} transfers not waited for")
        return {"makespan": self.now, "peak": self.peak, "stall": self.stall, "actions": self.actions,
                "transfers": self.transfers, "written": self.moved["put"], "read": self.moved["get"],
                "advance_steps": self.done["advance"], "record_steps": self.done["record"]}

    def tapes_moving(self, a, kind):
        for f in self.flights.values():
            if f.a.payload == "tape" and f.a.kind == kind and f.a.t0 < a.t1 and a.t0 < f.a.t1:
                raise Broken(f"tapes of [{f.a.t0}, {f.a.t1}) are still "
                             + ("leaving for a tier" if kind == "put" else "arriving"))


class UniformRun(Run):
    """Steps of one size: tapes are ranges, in the pieces in which they were recorded."""

    def __init__(self, question):
        super().__init__(question)
        self.starts, self.ends = [], {}  # recorded ranges
        self.taped = 0  # steps whose tapes take room
        self.tops = [{"state": 0, "tape": 0} for _ in question.tiers]  # places used
        self.longest = [0] * len(question.tiers)
        self.measure()

    def measure(self):
        q = self.q
        if q.by_slot:
            taken = len(self.slots) + (max(0, self.taped - 1) if q.form == "mixed" else 0)
        else:
            taken = q.adjoint + (1 + len(self.slots)) * q.state + self.taped * q.tape
        self.peak = max(self.peak, taken)

    def compute(self, a):
        self.now += self.q.seconds[a.kind] * (a.t1 - a.t0)

    def size(self, a):
        return self.q.state if a.payload == "state" else self.q.tape * (a.t1 - a.t0)

    def no_tapes(self, a):
        i = bisect.bisect_right(self.starts, a.t0)
        if (i and self.ends[self.starts[i - 1]] > a.t0) or (i < len(self.starts) and self.starts[i] < a.t1):
            raise Broken(f"a tape of [{a.t0}, {a.t1}) is there already")
        self.tapes_moving(a, "get")

    def need_tapes(self, a):
        self.need_range(a)
        self.tapes_moving(a, "put")
        t = a.t0
        while t is not None and t < a.t1:
            t = self.ends.get(t)
        if t != a.t1:
            raise Broken(f"the tapes of [{a.t0}, {a.t1}) are not there as whole records")

    def add_tapes(self, t0, t1):
        bisect.insort(self.starts, t0)
        self.ends[t0] = t1

    def remove_tapes(self, t0, t1):
        self.taped -= t1 - t0
        i = j = bisect.bisect_left(self.starts, t0)
        while j < len(self.starts) and self.starts[j] < t1:
            del self.ends[self.starts[j]]
            j += 1
        del self.starts[i:j]

    def make_tapes(self, a):
        self.no_tapes(a)
        if self.q.form == "slots" and self.taped + a.t1 - a.t0 > 1:
            raise Broken("more than one tape in a question of slots")
        self.add_tapes(a.t0, a.t1)
        self.taped += a.t1 - a.t0
        self.measure()

    def reverse(self, a):
        self.remove_tapes(a.t0, a.t1)

    def drop_tapes(self, a):
        self.need_tapes(a)
        self.remove_tapes(a.t0, a.t1)

    def tapes_travel(self, _):
        if self.q.by_slot:
            raise Broken("tapes do not travel in a question of slots")

    def room(self, a):
        """Places for tapes take the bytes of the longest range that the tier was ever sent."""
        i, tops = a.tier - 1, self.tops[a.tier - 1]
        tops[a.payload] = max(tops[a.payload], a.place + 1)
        if a.payload == "tape":
            self.longest[i] = max(self.longest[i], a.t1 - a.t0)
        if tops["state"] * self.q.state + tops["tape"] * self.longest[i] * self.q.tape > self.q.tiers[i].capacity:
            raise Broken(f"place {a.place} is beyond the tier's capacity")

    def coming(self, a):
        if a.payload == "tape":
            self.taped += a.t1 - a.t0
            self.measure()
        elif a.slot != LIVE:
            self.slots[a.slot] = [ARRIVING, a.t0, 0]
            self.measure()

    def ended(self, sent):
        if sent.payload == "tape" and sent.kind == "put":
            self.remove_tapes(sent.t0, sent.t1)
        elif sent.payload == "tape":
            self.add_tapes(sent.t0, sent.t1)

    def slot_filled(self, _):
        self.measure()

    def load_tape(self, _):
        raise Broken("tapes of this question hold no state")

    def nothing(self, *_):
        """Where the two kinds of questions differ and steps of one size need no more."""

    advance = at_turn = state_loaded = slot_emptied = tapes_leave = forgotten = state_may_leave = nothing


class StagesRun(Run):
    """Steps that differ: each step's tape is a record of its own, each state has its bytes."""

    def __init__(self, question):
        super().__init__(question)
        self.s = question.stages
        self.held = {}  # how many of the live state and the slots hold a state
        self.tapes = {}  # step: here, leaving, arriving
        self.bytes = 0
        self.live_step = None  # the state that the live state holds in fast memory
        self.part = False  # the live state is a part of a tape
        self.parts = {}  # slot: 1, it holds its state as a part of a tape
        self.stored = [0] * len(question.tiers)
        self.hold_live(0)
        self.measure(self.bytes)

    # Bytes.

    def measure(self, taken):
        self.peak = max(self.peak, taken)

    def in_tape(self, t):
        return t > 0 and self.s.holds_output and self.tapes.get(t - 1) in ("here", "leaving")

    def own(self, t):
        """Bytes of a state outside of a tape."""
        return self.s.state[t] if self.held.get(t) and not self.in_tape(t) else 0

    def hold(self, t, more):
        before = self.own(t)
        self.held[t] = self.held.get(t, 0) + more
        self.bytes += self.own(t) - before

    def hold_live(self, t):
        before, self.live_step, self.part = self.live_step, t, False
        if t is not None:
            self.hold(t, 1)
        if before is not None:
            self.hold(before, -1)

    def set_tape(self, i, place):
        if place is None and self.part and self.live_step == i + 1:
            self.hold_live(None)
        before = self.own(i + 1) + (self.s.tape[i] if i in self.tapes else 0)
        if place is None:
            self.tapes.pop(i, None)
        else:
            self.tapes[i] = place
        self.bytes += self.own(i + 1) + (self.s.tape[i] if i in self.tapes else 0) - before
        if self.live == HELD and self.live_step is None:
            self.live = FREE

    # Rules and what they change.

    def compute(self, a):
        self.now += sum(self.s.seconds[a.kind][a.t0:a.t1])

    def size(self, a):
        return self.s.state[a.t0] if a.payload == "state" else sum(self.s.tape[a.t0:a.t1])

    def tape_here(self, i):
        if self.tapes.get(i) != "here":
            raise Broken(f"the tape of {i} is {self.tapes.get(i, 'not there')}")

    def no_tapes(self, a):
        self.need_range(a)
        for i in range(a.t0, a.t1):
            if i in self.tapes:
                raise Broken(f"a tape of {i} is there already")

    def need_tapes(self, a):
        self.need_range(a)
        for i in range(a.t1 - 1, a.t0 - 1, -1):
            self.tape_here(i)
            if a.kind == "backward" and self.s.needs_input and not self.in_tape(i):
                given_up = self.live_step == i and i != a.t1 - 1
                if self.held.get(i, 0) - given_up == 0:
                    raise Broken(f"backward needs the state at {i}")

    def advance(self, a):
        for i in range(a.t0, a.t1):
            self.measure(self.bytes + self.s.state[i + 1] + self.s.advance_tmp[i])
            self.hold_live(i + 1)

    def make_tapes(self, a):
        self.no_tapes(a)
        for i in range(a.t0, a.t1):
            beside = 0 if self.s.holds_output else self.s.state[i + 1]
            self.measure(self.bytes + self.s.tape[i] + self.s.record_tmp[i] + beside)
            self.set_tape(i, "here")
            self.hold_live(i + 1)
            self.part = self.s.holds_output

    def at_turn(self, _):
        last = self.q.steps
        self.now += self.s.seconds["backward"][last]
        self.measure(self.bytes + self.s.state[last] + self.s.backward_tmp[last])
        self.bytes += self.s.state[last]
        if not self.live_leaving:
            self.hold_live(None)
            self.live = FREE

    def reverse(self, a):
        for i in range(a.t1 - 1, a.t0 - 1, -1):
            freed, t = 0, self.live_step
            if t is not None and not (t == i and self.s.needs_input) and self.held[t] == 1:
                freed = self.own(t)
            self.measure(self.bytes - freed + self.s.state[i] + self.s.backward_tmp[i])
            self.bytes += self.s.state[i] - self.s.state[i + 1]
            self.set_tape(i, None)
            self.hold_live(None)
        self.measure(self.bytes)

    def slot_filled(self, a):
        self.hold(a.t0, 1)
        self.parts[a.slot] = self.part
        self.measure(self.bytes)

    def state_loaded(self, a, _):
        self.hold_live(a.t0)
        self.part = self.parts.get(a.slot, False)
        self.measure(self.bytes)

    def slot_emptied(self, a):
        self.hold(a.t0, -1)
        self.parts.pop(a.slot, None)

    def load_tape(self, a):
        self.live_may_change()
        if not 1 <= a.t0 <= self.q.steps or not self.in_tape(a.t0):
            raise Broken(f"no tape holds the state at {a.t0}")
        self.hold_live(a.t0)
        self.part = True
        self.set_live(a.t0)

    def drop_tapes(self, _):
        raise Broken("tapes of steps that differ are not dropped")

    def tapes_travel(self, a):
        self.need_range(a)

    def state_may_leave(self, a):
        part = self.part if a.slot == LIVE else self.parts.get(a.slot, False)
        if part and self.in_tape(a.t0):
            raise Broken(f"the state at {a.t0} is a part of a tape")

    def tapes_leave(self, a):
        for i in range(a.t0, a.t1):
            self.set_tape(i, "leaving")

    def room(self, a):
        i = a.tier - 1
        self.stored[i] += self.size(a)
        if self.stored[i] > self.q.tiers[i].capacity:
            raise Broken(f"{self.stored[i]} bytes are beyond the tier's capacity")

    def forgotten(self, a, there):
        a.t1 = there[1]
        self.stored[a.tier - 1] -= self.size(a)

    def coming(self, a):
        if a.payload == "tape":
            for i in range(a.t0, a.t1):
                self.set_tape(i, "arriving")
        else:
            if a.slot == LIVE:
                self.hold_live(None)
            self.bytes += self.s.state[a.t0]
        self.measure(self.bytes)

    def ended(self, sent):
        steps = range(sent.t0, sent.t1)
        if sent.payload == "tape" and sent.kind == "put":
            for slot, part in self.parts.items():
                if part and sent.t0 < self.slots[slot][1] <= sent.t1:
                    raise Broken(f"slot {slot} holds its state as a part of the tape that left")
        if sent.payload == "tape":
            for i in steps:
                self.set_tape(i, None if sent.kind == "put" else "here")
        elif sent.kind == "get":
            self.bytes -= self.s.state[sent.t0]
            if sent.slot == LIVE:
                self.hold_live(sent.t0)
            else:
                self.hold(sent.t0, 1)
        self.measure(self.bytes)


def read_questions(path=QUESTIONS):
    """The rows of a CSV of questions by their names, unread."""
    with open(path, encoding="utf-8", newline="") as file:
        return {row["question"]: row for row in csv.DictReader(file)}


def check(question, lines):
    """The numbers of a plan (a dictionary); raises Broken or Unreadable."""
    return (StagesRun if question.stages else UniformRun)(question).carry_out(lines)


def differences(lines, sign):
    """Packs (sign -1) or unpacks (1) a plan: each number relative to the one in the previous line with the same words."""
    before = {}
    for line in lines:
        numbers = [int(number) for number in DIGITS.findall(line)]
        words = DIGITS.sub("#", line)
        last = before.get(words, [0] * len(numbers))
        found = [number + sign * other for number, other in zip(numbers, last)]
        before[words] = found if sign > 0 else numbers
        left = iter(found)
        yield DIGITS.sub(lambda _, left=left: str(next(left)), line)


def pack(text, path):
    """Writes the text of a plan as a packed file."""
    with lzma.open(path, "wt", encoding="utf-8", newline="\n") as file:
        for line in differences(text.splitlines(), -1):
            file.write(line + "\n")


def check_file(question, path):
    """The numbers of a plan in a file, packed or not."""
    try:
        if path.endswith(".xz"):
            with lzma.open(path, "rt", encoding="utf-8") as file:
                return check(question, differences(file, 1))
        with open(path, encoding="utf-8") as file:
            return check(question, file)
    except (lzma.LZMAError, EOFError) as error:
        raise Unreadable(f"{path}: {error}") from None


def check_best(names):
    """Checks stored plans; 0 or 1. All of them if `names` is empty."""
    rows, failed = read_questions(), 0
    with open(ANSWERS, encoding="utf-8", newline="") as file:
        best = {row["question"]: float(row["value"]) for row in csv.DictReader(file) if row["what"] == "best"}
    for name in names or best:
        if name not in best:
            raise Unreadable(f"no best known value of '{name}' in {ANSWERS}")
        try:
            found = check_file(Question(rows[name]), os.path.join(PLANS, name + ".xz"))["makespan"]
            wrong = abs(found - best[name]) > ABOUT * best[name]
            print(f"{name}: makespan {found:.12g}" + (f", not {best[name]:.12g}" if wrong else ""), flush=True)
        except Broken as error:
            wrong = True
            print(f"{name}: broken: {error}", flush=True)
        failed |= wrong
    return int(failed)


def check_one(arguments):
    """QUESTION PLAN with its options: prints the numbers of the plan."""
    path = QUESTIONS
    if arguments[:1] == ["--questions"] and len(arguments) > 1:
        path, arguments = arguments[1], arguments[2:]
    if len(arguments) != 2:
        print(__doc__.strip())
        return 0 if arguments == ["--help"] else 2
    rows = read_questions(path)
    if arguments[0] not in rows:
        raise Unreadable(f"no question '{arguments[0]}' in {path}")
    question = Question(rows[arguments[0]], os.path.dirname(os.path.abspath(path)))
    found = check(question, sys.stdin) if arguments[1] == "-" else check_file(question, arguments[1])
    for key, value in found.items():
        print(f"{key} {value:.12g}" if isinstance(value, float) else f"{key} {value}")
    return 0


def main(arguments):
    try:
        return check_best(arguments[1:]) if arguments[:1] == ["--best"] else check_one(arguments)
    except Broken as error:
        print(f"broken: {error}")
        return 1
    except (Unreadable, OSError, ValueError, KeyError) as error:
        print(f"check_plan: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
