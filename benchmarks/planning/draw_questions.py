#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the problems of the planning benchmark: writes questions.csv, answers.csv, chains/ and plans/.

Optima come from the tables in tests/oracles and from formulas; bounds come from neap, and so do the best known plans, unless
plans/ contains a faster one. The benchmark is the set of files in this folder; this program documents how they were generated.

    draw_questions.py NEAP [FOLDER [MOST]]     NEAP: the tool; FOLDER: output folder (default: this one); MOST: plans of
                                               longer chains are not computed, those in plans/ are kept (default: no limit)
"""
import ast
import csv
import json
import math
import os
import random
import shutil
import sys

import check_plan
import neap_tool

ORACLES = os.path.join(check_plan.HERE, "..", "..", "tests", "oracles")
COLUMNS = ("question", "group", "form", "steps", "state", "tape", "adjoint", "memory", "advance", "record",
           "backward", "slot_write", "slot_read", "chain", "tiers")
UNIT = 1000000  # bytes of a state where the source counts in states
SEARCH = "exhaustive search"
PROGRAM = "dynamic programme"
FORMULA = "binomial formula (Griewank and Walther 2000)"


def table(name):
    with open(os.path.join(ORACLES, name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sample(rows, count, size):
    """`count` rows, evenly spaced in the order of their size, the largest one included."""
    rows = sorted(rows, key=size)
    return [rows[(i + 1) * len(rows) // count - 1] for i in range(count)] if len(rows) > count else rows


def tier(write, read, capacity="inf", mode="duplex", latency=0):
    return f"capacity={capacity} write={write} read={read} latency={latency} mode={mode}"


def binomial_extra(steps, slots):
    """Advance steps of Revolve, the recording ones not counted: t n - C(s + t, t - 1)."""
    t = 0
    while math.comb(slots + t, slots) < steps:
        t += 1
    return t * steps - math.comb(slots + t, t - 1) if t else 0


class Set:
    """Rows as they are drawn."""

    def __init__(self, folder):
        self.folder, self.rows, self.answers, self.known = folder, [], [], {}
        shutil.rmtree(os.path.join(folder, "chains"), ignore_errors=True)
        os.makedirs(os.path.join(folder, "chains"))

    def add(self, group, form, known=(), **columns):
        number = sum(row["group"] == group for row in self.rows) + 1
        row = dict.fromkeys(COLUMNS, "")
        columns["steps"] = int(float(columns["steps"]))  # tables say 1e+06
        row.update(columns, question=f"{group}-{number:03}", group=group, form=form)
        self.rows.append(row)
        self.known[row["question"]] = list(known)

    def slots(self, group, n, slots, forward, backward, optimum, source, write=0, read=0, tiers=()):
        self.add(group, "slots", [("optimum", optimum, source)], steps=n, memory=slots, advance=forward, record=0,
                 backward=backward, slot_write=write, slot_read=read,
                 tiers="; ".join(tier(w, r, room, "sync") for room, w, r in tiers))

    def uniform(self, group, steps, state, tape, memory, times, tiers=(), known=(), adjoint=0):
        advance, record, backward = times
        self.add(group, "bytes", known, steps=steps, state=state, tape=tape, adjoint=adjoint, memory=memory,
                 advance=advance, record=record, backward=backward, tiers="; ".join(tiers))

    def stages(self, group, name, data, memory, tiers=(), known=()):
        path = os.path.join(self.folder, "chains", name + ".json")
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                lists = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items())
                file.write("{\n" + lists + "\n}\n")
        self.add(group, "stages", known, steps=len(data["tape"]), memory=memory, chain=name + ".json",
                 tiers="; ".join(tiers))


def of_slots(s):
    for row in sample(table("revolve.csv"), 24, lambda r: int(r["n"])) + sample(
            table("revolve_large.csv"), 16, lambda r: int(r["n"])):
        n, slots = int(row["n"]), int(row["s"])
        extra = int(float(row.get("gw_extra") or row["gw_extra_closed_form"]))
        assert extra == binomial_extra(n, slots), row
        s.slots("revolve", n, slots, 1, 1, extra + n, FORMULA)
    for n, slots in ((100000, 20), (100000, 300), (1000000, 40), (1000000, 1000)):
        s.slots("long", n, slots, 1, 2, binomial_extra(n, slots) + 2 * n, FORMULA)
    for row in sample(table("mixed.csv"), 20, lambda r: int(r["n"])):
        n = int(row["n"])
        s.add("mixed", "mixed", [("optimum", int(row["optimal_steps_mixed"]) + 2 * n, PROGRAM)], steps=n,
              memory=row["s"], advance=1, record=1, backward=2)
    for row in sample(table("two_level_exact.csv"), 30, lambda r: int(r["n"])):
        s.slots("two-levels", row["n"], row["cm"], row["uf"], row["ub"], row["bruteforce_opt"], SEARCH, row["wm"],
                row["rm"], [(row["cd"], row["wd"], row["rd"])])
    for row in sample(table("disk_revolve.csv"), 24, lambda r: int(r["n"])):
        s.slots("disk", row["n"], row["cm"], row["uf"], row["ub"], row["opt_inf_multi_read"], PROGRAM,
                tiers=[("inf", row["wd"], row["rd"])])
    for row in sample(table("hrevolve.csv"), 30, lambda r: int(r["n"])):
        room, write, read = (ast.literal_eval(row[key]) for key in ("cvec", "wvec", "rvec"))
        s.slots("levels", row["n"], room[0], row["uf"], row["ub"], row["hopt"], PROGRAM, write[0], read[0],
                list(zip(room, write, read))[1:])
    for n, slots, places in ((100, 5, 10), (200, 10, 20), (400, 10, 20), (800, 10, 20), (1600, 10, 30), (3200, 10, 30),
                             (100000, 20, 100)):
        s.add("levels-long", "slots", steps=n, memory=slots, advance=1, record=0, backward=2, slot_write=0,
              slot_read=0, tiers=tier(5, 5, places, "sync"))


def of_tiers(s):
    for row in table("auto_grid.csv"):
        tau = float(row["tau"])
        s.uniform("overlap", row["T"], UNIT, round(UNIT * float(row["AS"])), round(UNIT * float(row["MS"])),
                  (1, 1, row["bf"]), [tier(UNIT / tau, UNIT / tau)])
    for row in sample(table("planner2/backlog_tail.csv"), 16, lambda r: int(r["steps"])):
        sizes = [1000 * int(row[key]) for key in ("state", "tape", "memory", "write", "read")]
        s.uniform("overlap", row["steps"], *sizes[:3], (row["advance"], row["record"], row["backward"]),
                  [tier(*sizes[3:])], [("best", row["value"], "table of searched plans")])
    for row in sample(table("planner2/two_tiers.csv"), 14, lambda r: int(r["steps"])):
        near, far = (float(row["state"]) / float(row[key]) for key in ("near_seconds_a_state", "far_seconds_a_state"))
        room = float(row["near_capacity"])
        s.uniform("two-tiers", row["steps"], row["state"], row["tape"], row["memory"],
                  (row["advance"], row["record"], row["backward"]),
                  [tier(near, near, "inf" if math.isinf(room) else int(room)), tier(far, far)],
                  [("best", row["value"], "table of searched plans")])
    # Capacity, latency, one channel, and transfers that are waited for.
    for capacity in (10, 40, 200, "inf"):
        for latency, mode in ((0, "duplex"), (2, "duplex"), (5, "one"), (2, "sync")):
            room = capacity if capacity == "inf" else capacity * UNIT
            s.uniform("limits", 1000, UNIT, UNIT, 20 * UNIT, (1, 1, 2), [tier(UNIT / 5, UNIT / 3, room, mode, latency)])


def of_papers(s):
    """arXiv 1806.01117: states leave while steps are computed; arXiv 2412.11810: chunks, near and far."""
    for steps in (300, 1000, 10000):
        for slots in (5, 10, 20):
            for tau in (2, 50, 200):
                s.uniform("1806.01117", steps, UNIT, UNIT, (slots + 2) * UNIT, (1, 1, 1), [tier(UNIT / tau, UNIT / tau)])
    for steps, memories in ((900, (11, 19, 29, 60)), (10000, (20, 60, 200)), (100000, (40, 632)), (1000000, (63, 2000))):
        for memory in memories:
            for tiers in ((), (tier(UNIT / 10, UNIT / 10, mode="sync"),), (tier(UNIT / 2, UNIT / 2),)):
                s.uniform("2412.11810", steps, UNIT, UNIT, (memory + 1) * UNIT, (1, 1, 2), tiers)


def of_long(s):
    for steps in (100000, 1000000):
        for memory in (100, 1000):
            for tape in (UNIT // 4, 4 * UNIT):
                for tiers in ((), (tier(UNIT / 20, UNIT / 20),), (tier(UNIT, UNIT, 1000 * UNIT), tier(UNIT / 50, UNIT / 50))):
                    s.uniform("long", steps, UNIT, tape, memory * UNIT, (1, 1, 2), tiers, adjoint=UNIT)


def autograd(data, holds=True):
    data.update(tape_holds_output=holds, backward_needs_input=holds)
    return data


def known_chain(chains, name):
    chain = chains[name]
    return autograd({"advance": chain["fw"], "backward": chain["bw"], "state": chain["a"], "tape": chain["ab"][1:],
                     "advance_tmp": chain["fwd_tmp"], "backward_tmp": chain["bwd_tmp"]})


def resnet(blocks):
    """Stages as in a residual net: states halve where the image is pooled, costs follow channels."""
    state, tape, seconds = [12 * UNIT], [], []
    for group, count in enumerate(blocks):
        for block in range(count):
            width = 51 * UNIT >> group
            state.append(width)
            tape.append(width * (5 if block == 0 else 4))
            seconds.append(round((1.3 if block == 0 else 1.0) * (1 + 0.1 * group), 3))
    return autograd({"advance": seconds, "backward": [round(2.1 * x, 3) for x in seconds] + [0.2],
                     "state": state, "tape": tape})


def transformer(layers, length):
    """Attention and feed-forward in turn: attention's tape and seconds grow with the length squared."""
    width = 2 * UNIT * length // 512
    attention, seconds = width * 4 + 3 * UNIT * (length // 512) ** 2, 1 + 0.25 * length / 512
    return autograd({"advance": [0.2] + [seconds, 1.6] * layers,
                     "backward": [0.3] + [2 * seconds, 3.2] * layers + [0.8],
                     "state": [width // 8] + [width] * (2 * layers + 1),
                     "tape": [width] + [attention, width * 9] * layers})


def random_chain(stages, spread, holds, seed):
    draw = random.Random(seed)

    def size(mean):
        return max(1, int(UNIT * mean * math.exp(draw.gauss(0, spread))))

    data = {"state": [size(1) for _ in range(stages + 1)], "tape": [size(3) for _ in range(stages)]}
    for key, mean in (("advance", 1), ("backward", 2)):
        data[key] = [round(mean * math.exp(draw.gauss(0, spread)), 6) for _ in range(stages)]
    data["backward"].append(0.5)
    if holds:
        data["tape"] = [max(pair) for pair in zip(data["tape"], data["state"][1:])]
    return autograd(data, holds)


def of_stages(s):
    with open(os.path.join(ORACLES, "chains.json"), encoding="utf-8") as file:
        chains = json.load(file)
    rows = [row for row in table("chain_exact.csv") if row["exact"] != "inf" and row["ref_plus"] != "inf"]
    for row in sample(rows, 40, lambda r: (int(r["L"]), r["chain_id"], int(r["M"]))):
        s.stages("unequal", row["chain_id"], known_chain(chains, row["chain_id"]), row["M"],
                 known=[("optimum", row["exact"], SEARCH)])
    rows = [row for row in table("chain_medium.csv") if row["ref_plus"] != "inf"]
    for row in sample(rows, 16, lambda r: (int(r["L"]), r["chain_id"], int(r["M"]))):
        s.stages("unequal", row["chain_id"], known_chain(chains, row["chain_id"]), row["M"],
                 known=[("best", row["ref_plus"], PROGRAM)])
    with open(os.path.join(ORACLES, "chains_async.json"), encoding="utf-8") as file:
        chains = json.load(file)
    rows = [row for row in table("chain_async_exact.csv") if row["async_full_duplex"] != "inf"]
    for row in sample(rows, 30, lambda r: (int(r["L"]), r["chain_id"], int(r["M"]))):
        s.stages("unequal-tier", row["chain_id"], known_chain(chains, row["chain_id"]), row["M"],
                 [tier(row["beta"], row["beta"])], [("optimum", row["async_full_duplex"], SEARCH)])
    nets = [("resnet-18", resnet((2, 2, 2, 2)), (0.55, 0.8)), ("resnet-50", resnet((3, 4, 6, 3)), (0.3, 0.5)),
            ("resnet-101", resnet((3, 4, 23, 3)), (0.25, 0.5)), ("transformer-12", transformer(12, 512), (0.2, 0.5)),
            ("transformer-24-long", transformer(24, 2048), (0.15, 0.4)),
            ("random-60", random_chain(60, 0.5, True, 1), (0.2, 0.5)),
            ("random-60-states", random_chain(60, 1.0, False, 2), (0.2, 0.5)),
            ("random-400", random_chain(400, 0.5, True, 3), (0.1, 0.3))]
    for name, data, shares in nets:
        rate = round(0.3 * sum(data["tape"]) / sum(data["advance"]))
        for share in shares:
            memory = int(share * sum(data["tape"]))
            for tiers in ((), (tier(rate, rate),)):
                s.stages("nets", name, data, memory, tiers)


def strategy_of(question):
    """The strategy that plans such problems best."""
    if question.form == "mixed":
        return "mixed"
    if question.by_slot:
        return "h-revolve" if question.tiers else "revolve"
    return "chain" if question.stages and not question.tiers else "auto"


def bound_source(question):
    """Where the proof of neap's bound is (docs/lower-bound.md)."""
    if question.stages:
        return "neap, proved (tapes of stages)"
    if question.by_slot:
        return "neap, optimum of H-Revolve (Herrmann and Pallez 2020)"
    return "neap, proved (linear program)" if question.tiers else "neap, proved (recomputation)"


def stored_best():
    """The best known values of this folder whose plans are stored."""
    with open(check_plan.ANSWERS, encoding="utf-8", newline="") as file:
        return {row["question"]: row for row in csv.DictReader(file) if row["what"] == "best"
                and os.path.exists(os.path.join(check_plan.PLANS, row["question"] + ".xz"))}


def best_row(question, neap, plan, folder, old, keep):
    """The row of the best known value, with its plan in plans/: neap's, or the stored one if it is not slower or to be kept."""
    path = os.path.join(folder, "plans", question.name + ".xz")
    if old and (keep or float(old["value"]) <= plan["makespan"] * (1 + check_plan.ABOUT)):
        if not os.path.exists(path):
            shutil.copyfile(os.path.join(check_plan.PLANS, question.name + ".xz"), path)
        return "best", old["value"], old["source"]
    check_plan.pack(neap_tool.actions(neap, question, plan["strategy"]), path)
    return "best", repr(plan["makespan"]), f"neap {plan['strategy']}"


def answer(s, neap, most):
    """Adds neap's bound and, if no optimum is known, the best known plan."""
    old = stored_best()
    os.makedirs(os.path.join(s.folder, "plans"), exist_ok=True)
    with open(os.path.join(s.folder, "answers.csv.new"), "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("question", "what", "value", "source"))
        for row in s.rows:
            question = check_plan.Question(row, s.folder)
            known, plan = s.known[question.name], neap_tool.plans(neap, question, strategy_of(question))[0]
            optimum = [float(value) for what, value, _ in known if what == "optimum"]
            if optimum and plan["makespan"] < optimum[0] * (1 - 1e-9):
                print(f"{question.name}: {plan['makespan']} below the optimum {optimum[0]}", flush=True)
            if not optimum:
                best = best_row(question, neap, plan, s.folder, old.get(question.name), question.steps > most)
                # A value that was published without its actions is of interest only if no plan reaches it.
                known = [("reported", value, source) for what, value, source in known
                         if what == "best" and float(value) < float(best[1]) * (1 - check_plan.ABOUT)]
                known.append(best)
                known.append(("bound", repr(plan["bound"]), bound_source(question)))
                if plan["estimate"]:
                    known.append(("estimate", repr(plan["estimate"]), "neap, not proved"))
            for what, value, source in sorted(known):
                out.writerow((question.name, what, value, source))
            print(question.name, flush=True)
    os.replace(os.path.join(s.folder, "answers.csv.new"), os.path.join(s.folder, "answers.csv"))


def main(arguments):
    if not arguments or arguments[0] == "--help":
        print(__doc__.strip())
        return 0 if arguments else 2
    s = Set(arguments[1] if len(arguments) > 1 else check_plan.HERE)
    for part in (of_slots, of_tiers, of_papers, of_stages, of_long):
        part(s)
    with open(os.path.join(s.folder, "questions.csv"), "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(s.rows)
    print(f"{len(s.rows)} questions", flush=True)
    answer(s, arguments[0], int(arguments[2]) if len(arguments) > 2 else math.inf)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
