# SPDX-License-Identifier: Apache-2.0
"""Runs other planners on the problems of the planning benchmark: checkpoint_schedules and pyrevolve, both from PyPI. The time
in which a planner computes its schedule is measured; the schedule is then translated, action by action, into the plan format
of check_plan.py.

    peers.py PLANNER QUESTION     prints the seconds, then the plan
"""
import sys
import time
import warnings

import check_plan

LIVE = "live"


class Absent(Exception):
    """A package that is not installed."""


class Text:
    """Lines of a plan; states are kept by step, in slots or in places of tiers, numbered as they are free."""

    def __init__(self):
        self.lines, self.kept = [], {}  # (level, step): number

    def say(self, line):
        self.lines.append(line)

    def keep(self, level, step):
        used = {number for (where, _), number in self.kept.items() if where == level}
        number = next(i for i in range(len(used) + 1) if i not in used)
        self.kept[level, step] = number
        if level == 0:
            self.say(f"save state at {step} slot {number}")
        else:
            self.say(f"put state at {step} tier {level} place {number} ticket 0 {LIVE}")
            self.say("wait ticket 0")

    def restore(self, level, step):
        number = self.kept[level, step]
        if level == 0:
            self.say(f"load state at {step} slot {number}")
        else:
            self.say(f"get state at {step} tier {level} place {number} ticket 0 {LIVE}")
            self.say("wait ticket 0")

    def give_up(self, level, step):
        number = self.kept.pop((level, step))
        self.say(f"drop state at {step} slot {number}" if level == 0
                 else f"forget state at {step} tier {level} place {number}")

    def reverse(self, first, end):
        for step in range(end - 1, first - 1, -1):
            self.say(f"backward {step} {step + 1}")


def of_checkpoint_schedules(schedule):
    """Actions of checkpoint_schedules as text."""
    import checkpoint_schedules as cs
    level, text = {cs.StorageType.RAM: 0, cs.StorageType.DISK: 1}, Text()
    for a in schedule:
        if isinstance(a, cs.Forward):
            if a.write_ics:
                text.keep(level[a.storage], a.n0)
            if a.write_adj_deps:
                for step in range(a.n0, a.n1):
                    text.say(f"record {step} {step + 1}")
            else:
                text.say(f"advance {a.n0} {a.n1}")
        elif isinstance(a, cs.EndForward):
            text.say("turn")
        elif isinstance(a, cs.Reverse):
            text.reverse(a.n0, a.n1)
        elif isinstance(a, (cs.Copy, cs.Move)) and (level[a.from_storage], a.n) in text.kept:
            # In the other case the tape was stored and BACKWARD uses it directly.
            text.restore(level[a.from_storage], a.n)
            if isinstance(a, cs.Move):
                text.give_up(level[a.from_storage], a.n)
    return text.lines


def of_pyrevolve(steps, actions):
    """Actions of pyrevolve as text; (name, from, to, number of the checkpoint or None, level)."""
    text, turned = Text(), False
    for name, old, at, number, level in actions:
        if name == "TAKESHOT":
            # CRevolve numbers its checkpoints as a stack and overwrites those that it no longer needs.
            for where, step in [key for key, held in text.kept.items() if number is not None and held >= number]:
                text.give_up(where, step)
            text.keep(level, at)
        elif name == "ADVANCE":
            text.say(f"advance {old} {at}")
        elif name == "RESTORE":
            text.restore(level, at)
        elif name == "CPDEL":
            text.give_up(level, at)
        elif name == "LASTFW":
            text.say(f"record {steps - 1} {steps}")
        elif name == "REVSTART":
            text.say("turn")
            text.reverse(steps - 1, steps)
            turned = True
        elif name == "REVERSE":
            text.say(f"record {at} {at + 1}")
            if not turned:
                text.say("turn")
                turned = True
            text.reverse(at, at + 1)
    return text.lines


def costs(q):
    return {"uf": q.seconds["advance"], "ub": q.seconds["backward"]}


def disk(q):
    return {"wd": q.tiers[0].rate["put"], "rd": q.tiers[0].rate["get"]}


def checkpoint_schedules(name, q):
    try:
        import checkpoint_schedules as cs
    except ImportError as error:
        raise Absent(f"checkpoint_schedules: {error}") from None
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    if name == "Revolve":
        made = cs.Revolve(q.steps, q.memory, **costs(q))
    elif name == "Multistage":
        made = cs.MultistageCheckpointSchedule(q.steps, q.memory, 0)
    elif name == "Mixed":
        made = cs.MixedCheckpointSchedule(q.steps, q.memory, storage=cs.StorageType.RAM)
    elif name == "DiskRevolve":
        made = cs.DiskRevolve(q.steps, q.memory, **costs(q), **disk(q))
    else:
        made = cs.HRevolve(q.steps, q.memory, min(q.tiers[0].capacity, q.steps), **costs(q), **disk(q))
    actions = list(made)
    return time.perf_counter() - start, of_checkpoint_schedules(actions)


class Storage:
    """A level of memory as pyrevolve's Architecture takes it."""

    def __init__(self, room, write, read):
        self.nckp, self.wd, self.rd = room, write, read


def pyrevolve(name, q):
    try:
        from pyrevolve.schedulers import base, crevolve, hrevolve
    except ImportError as error:
        raise Absent(f"pyrevolve: {error}") from None
    start, actions = time.perf_counter(), []
    if name == "CRevolve":
        made = crevolve.CRevolve(q.memory, q.steps)
    else:
        levels = [Storage(q.memory, q.slot_seconds["save"], q.slot_seconds["load"])]
        levels += [Storage(min(t.capacity, q.steps), t.rate["put"], t.rate["get"]) for t in q.tiers]
        # pyrevolve counts the steps without the last one.
        made = hrevolve.HRevolve(q.steps - 1, q.steps - 1, base.Architecture(levels), up=0, **costs(q))
    while not actions or actions[-1].type != base.Action.TERMINATE:
        actions.append(made.next())
        # CRevolve reuses its object for the next action, so its numbers are copied immediately.
        a = actions[-1]
        a.numbers = (base.Action.type_names[a.type], a.old_capo, a.capo,
                     a.ckp if name == "CRevolve" else None, a.storageIndex())
    seconds = time.perf_counter() - start
    return seconds, of_pyrevolve(q.steps, [a.numbers for a in actions])


def with_disk(q):
    return q.form == "slots" and len(q.tiers) == 1 and not any(q.slot_seconds.values())


# Name of a planner: package, which problems it supports, and the strategy of neap to compare with.
PLANNERS = {
    "checkpoint_schedules Revolve": (checkpoint_schedules, lambda q: q.form == "slots" and not q.tiers),
    "checkpoint_schedules Multistage": (checkpoint_schedules, lambda q: q.form == "slots" and not q.tiers),
    "checkpoint_schedules Mixed": (checkpoint_schedules, lambda q: q.form == "mixed"),
    "checkpoint_schedules DiskRevolve": (checkpoint_schedules, lambda q: with_disk(q) and q.tiers[0].capacity > q.steps),
    "checkpoint_schedules HRevolve": (checkpoint_schedules, lambda q: with_disk(q) and q.tiers[0].capacity <= q.steps),
    "pyrevolve CRevolve": (pyrevolve, lambda q: q.form == "slots" and not q.tiers),
    "pyrevolve HRevolve": (pyrevolve, lambda q: q.form == "slots" and q.tiers),
}


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in PLANNERS:
        print(__doc__.strip())
        return 2
    question = check_plan.Question(check_plan.read_questions()[arguments[1]])
    package, _ = PLANNERS[arguments[0]]
    try:
        seconds, lines = package(arguments[0].split()[1], question)
    except Absent as error:
        print(error, file=sys.stderr)
        return 3
    print(f"# seconds {seconds!r}")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
