#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every row of every oracle table through `neap plan --json`, as a user would ask.

Costs must be the table's to twelve digits, `chain` no dearer than its table's dynamic
program and never below the exhaustive optimum, `auto` within 1% of the table's search,
the estimate at least 0.999 of the table's and below every makespan. Without an argument
a fixed sample of each table is asked (evenly spaced rows, the longest one among them),
with `all` every row. Tables: tests/oracles.
"""
import ast
import csv
import json
import math
import os
import random
import sys

from harness import ORACLES, Folder, Tap, neap_json

ABOUT = 1e-12  # sums of a few thousand decimal costs, in another order


def plan(strategy, *options):
    plans = neap_json("plan", *options, "--strategy", strategy)["plans"]
    assert len(plans) == 1 and plans[0]["strategy"] == strategy, plans
    return plans[0]


def classic(steps, slots, forward=1, backward=1, write=0, read=0, tiers=()):
    """A problem of the tables: slots count checkpoints, recording is not charged."""
    options = ["--steps", steps, "--slots", slots, "--advance", forward, "--record", 0,
               "--backward", backward, "--slot-write", write, "--slot-read", read]
    for i, (room, out, back) in enumerate(tiers):
        options += ["--tier", f"tier{i}:slots={room},write={out},read={back}"]
    return options


def legal(answer, slots, tiers=()):
    """None, or what is wrong with a plan that must exist and fit."""
    if not answer["feasible"]:
        return f"infeasible: {answer['why']}"
    if answer["peak_bytes"] > int(slots):
        return f"peak {answer['peak_bytes']} of {slots} slots"
    for tier, (room, _, _) in zip(answer["tiers"], tiers):
        if room != "inf" and tier["peak_bytes"] > int(room):
            return f"{tier}: {room} slots"
    if answer["bound"] > answer["makespan"] * (1 + ABOUT):
        return f"bound {answer['bound']} above makespan {answer['makespan']}"
    return None


def costs(strategy, want, slots, options, tiers=()):
    answer = plan(strategy, *options)
    wrong = legal(answer, slots, tiers)
    if not wrong and abs(answer["makespan"] - float(want)) > ABOUT * float(want):
        wrong = f"costs {answer['makespan']}, not {want}"
    return wrong and f"{strategy}: {wrong}"


def revolve(row):
    extra = int(float(row.get("gw_extra") or row["gw_extra_closed_form"]))
    answer = plan("revolve", *classic(row["n"], row["s"]))
    wrong = legal(answer, row["s"])
    if not wrong and (answer["advance_steps"], answer["record_steps"]) != (extra, int(row["n"])):
        wrong = f"{answer['advance_steps']} advance steps, not {extra}"
    return wrong


def disk_revolve(row):
    n, cm, uf, ub, wd, rd = (row[k] for k in ("n", "cm", "uf", "ub", "wd", "rd"))
    disk = [("inf", wd, rd)]
    # x_0 lies in the one slow slot from the start: there its write costs nothing.
    start = [(1, 0, rd)]
    return (costs("revolve", row["opt_0"], cm, classic(n, cm, uf, ub))
            or costs("h-revolve", row["opt_1d_multi_read"], cm,
                     classic(n, cm, uf, ub, tiers=start), start)
            or costs("disk-revolve", row["opt_inf_multi_read"], cm,
                     classic(n, cm, uf, ub, tiers=disk), disk))


def hrevolve(row):
    slots, write, read = (ast.literal_eval(row[k]) for k in ("cvec", "wvec", "rvec"))
    tiers = list(zip(slots, write, read))[1:]
    return costs("h-revolve", row["hopt"], slots[0], classic(
        row["n"], slots[0], row["uf"], row["ub"], write[0], read[0], tiers), tiers)


def two_level(row):
    tiers = [(row["cd"], row["wd"], row["rd"])]
    return costs("h-revolve", row["bruteforce_opt"], row["cm"], classic(
        row["n"], row["cm"], row["uf"], row["ub"], row["wm"], row["rm"], tiers), tiers)


def periodic(row):
    tiers = [("inf", row["wd"], row["rd"])]
    answer = plan("periodic", *classic(row["n"], row["cm"], row["uf"], row["ub"], tiers=tiers))
    wrong = legal(answer, row["cm"], tiers)
    if not wrong and answer["params"].get("period") != int(row["period_mxrr"]):
        wrong = f"period {answer['params'].get('period')}"
    return wrong


def mixed(row):
    answer = plan("mixed", "--steps", row["n"], "--slots", row["s"])
    wrong = legal(answer, row["s"])
    total = (answer["advance_steps"] or 0) + (answer["record_steps"] or 0)
    return wrong or (None if total == int(row["optimal_steps_mixed"]) else f"{total} steps")


def mixed_binomial(row):
    """Revolve, its recording steps included."""
    answer = plan("revolve", "--steps", row["n"], "--slots", row["s"])
    total = (answer["advance_steps"] or 0) + (answer["record_steps"] or 0)
    return None if total == int(row["binomial_total"]) else f"revolve: {total} steps"


def join(row):
    answer = plan("join", "--steps", f"{row['a']},{row['b']}", "--slots", row["M"])
    if row["dp"] == "inf":
        return "feasible" if answer["feasible"] else None
    wrong = legal(answer, row["M"])
    if not wrong and answer["advance_steps"] != int(float(row["dp"])):
        wrong = f"{answer['advance_steps']} advance steps"
    if not wrong and row["exact"] and answer["advance_steps"] != int(float(row["exact"])):
        wrong = f"{answer['advance_steps']} advance steps, {row['exact']} are enough"
    return wrong


class Chains:
    """The chains of a JSON file, each written out as a chain file once."""

    def __init__(self, folder, path):
        self.folder, self.chains = folder, json.load(open(path))
        self.over = []  # of the optimum, row by row (chain_async)

    def path(self, name):
        path = os.path.join(self.folder, name + ".json")
        if not os.path.exists(path):
            chain = self.chains[name]
            with open(path, "w") as file:
                json.dump({"advance": chain["fw"], "backward": chain["bw"], "state": chain["a"],
                           "tape": chain["ab"][1:], "advance_tmp": chain["fwd_tmp"],
                           "backward_tmp": chain["bwd_tmp"]}, file)
        return path

    def chain(self, row):
        answer = plan("chain", "--chain", self.path(row["chain_id"]), "--memory", row["M"])
        exact, most = row.get("exact"), float(row["ref_plus"])
        if not answer["feasible"]:
            return None if most == float("inf") else f"infeasible: {answer['why']}"
        if exact == "inf":
            return f"feasible, makespan {answer['makespan']}"
        if answer["peak_bytes"] > int(row["M"]):
            return f"peak {answer['peak_bytes']}"
        least = float(exact or row["no_recompute_time"])
        if not least * (1 - ABOUT) <= answer["makespan"] <= most * (1 + ABOUT):
            return f"makespan {answer['makespan']}"
        if not exact and answer["bound"] < least * (1 - ABOUT):
            return f"bound {answer['bound']} below computing everything once, {least}"
        best = float(exact or answer["makespan"])
        if answer["bound"] > best * (1 + ABOUT):
            return f"bound {answer['bound']} above the optimum {best}"
        return None

    def chain_async(self, row):
        """auto, recomputing and sending: within 15% of the optimum, and 3% on average."""
        rate = row["beta"]
        answer = plan("auto", "--chain", self.path(row["chain_id"]), "--memory", row["M"],
                      "--tier", f"disk:write={rate},read={rate},duplex")
        best = float(row["async_full_duplex"])
        if not answer["feasible"]:
            return None if best == float("inf") else f"infeasible: {answer['why']}"
        if answer["peak_bytes"] > int(row["M"]):
            return f"peak {answer['peak_bytes']}"
        if answer["bound"] > best * (1 + ABOUT):
            return f"bound {answer['bound']} above the optimum"
        self.over.append(answer["makespan"] / best - 1)
        if not best * (1 - ABOUT) <= answer["makespan"] <= 1.15 * best:
            return f"makespan {answer['makespan']}"
        mean = sum(self.over) / len(self.over)
        return None if mean <= 0.03 or len(self.over) < 20 else f"{mean:.1%} over on average"


def auto_grid(row):
    unit, tau = 1000000, float(row["tau"])  # bytes of a state
    rate = unit / tau
    answer = plan("auto", "--steps", row["T"], "--state", unit, "--adjoint", 0,
                  "--tape", round(unit * float(row["AS"])),
                  "--memory", round(unit * float(row["MS"])), "--advance", 1, "--record", 1,
                  "--backward", row["bf"], "--tier", f"disk:write={rate},read={rate},duplex")
    if not answer["feasible"]:
        return f"infeasible: {answer['why']}"
    if answer["peak_bytes"] > round(unit * float(row["MS"])):
        return f"peak {answer['peak_bytes']}"
    if (answer["estimate"] or answer["bound"]) < 0.999 * float(row["bound"]):  # the column is an estimate
        return f"bound {answer['bound']}, estimate {answer['estimate']}"
    if answer["bound"] > answer["makespan"] * (1 + ABOUT):
        return f"bound {answer['bound']} above {answer['makespan']}"
    if answer["makespan"] > 1.01 * float(row["auto"]):
        return f"makespan {answer['makespan']}"
    return None


def late_blocks(row):
    """Settings where blocks that write more than their channel carries are best."""
    unit = 1000  # bytes of the tables' smallest unit
    state, tape, memory, write, read = (
        unit * int(row[key]) for key in ("state", "tape", "memory", "write", "read"))
    answer = plan("auto", "--steps", row["steps"], "--state", state, "--tape", tape,
                  "--adjoint", 0, "--memory", memory, "--advance", row["advance"],
                  "--record", row["record"], "--backward", row["backward"],
                  "--tier", f"disk:write={write},read={read},async,duplex")
    if not answer["feasible"]:
        return f"infeasible: {answer['why']}"
    if (answer["estimate"] or answer["bound"]) < 0.999 * float(row["bound"]) or answer["bound"] > answer["makespan"] * (1 + ABOUT):
        return f"bound {answer['bound']}, estimate {answer['estimate']}, makespan {answer['makespan']}"
    if answer["makespan"] > 1.01 * float(row["value"]):
        return f"makespan {answer['makespan']}"
    return None


def long_chain(folder, row):
    """A random chain of the table as a file, and its budget. The numbers are those of the table."""
    stages, spread = int(row["stages"]), float(row["spread"])
    holds = row["tape_holds_output"] == "1"
    draw = random.Random(int(row["seed"]))

    def sizes(mean, count):
        return [max(1, int(1e6 * mean * math.exp(draw.gauss(0, spread)))) for _ in range(count)]

    def seconds(mean, count):
        return [mean * math.exp(draw.gauss(0, spread)) for _ in range(count)]

    data = {"state": sizes(1, stages + 1), "tape": sizes(3, stages),
            "advance": seconds(1, stages), "backward": seconds(2, stages) + [0.5],
            "tape_holds_output": holds, "backward_needs_input": holds}
    if holds:
        data["tape"] = [max(a, b) for a, b in zip(data["tape"], data["state"][1:])]
    path = os.path.join(folder, "long.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file)
    bandwidth = sum(data["tape"]) / sum(data["advance"]) * float(row.get("bandwidth_share", 0))
    return path, int(sum(data["tape"]) * float(row["memory_share"])), bandwidth


class LongChains:
    """Chains of more stages than tables hold; the best of the rows of a question counts."""

    def __init__(self, folder, name):
        self.folder = folder
        rows = csv.DictReader(open(os.path.join(ORACLES, name), encoding="utf-8"))
        self.best = {}
        for row in rows:
            groups, value = int(row["groups"]), float(row["value"])
            best = self.best.setdefault(self.key(row), [value, math.inf])
            best[0] = min(best[0], value)
            if groups == 120:
                best[1] = value

    @staticmethod
    def key(row):
        return tuple(v for k, v in row.items() if k not in ("value", "groups"))

    def within(self, row, strategy, most, *tier):
        path, memory, _ = long_chain(self.folder, row)
        answer = plan(strategy, "--chain", path, "--memory", memory, *tier)
        if not answer["feasible"] or answer["peak_bytes"] > memory:
            return f"infeasible: {answer['why']}, peak {answer['peak_bytes']}"
        if answer["bound"] > answer["makespan"] * (1 + ABOUT):
            return f"bound {answer['bound']} above {answer['makespan']}"
        return None if answer["makespan"] <= most else f"makespan {answer['makespan']}"

    def chain(self, row):
        return self.within(row, "chain", 1.01 * self.best[self.key(row)][0])

    def offload(self, row):
        """auto: within 1% of what 120 groups reach, and 3% of what more of them do."""
        best, with_120 = self.best[self.key(row)]
        _, _, rate = long_chain(self.folder, row)
        return self.within(row, "auto", min(1.01 * with_120, 1.03 * best), "--tier",
                           f"disk:write={rate:.17g},read={rate:.17g},async,duplex")


def table(rows, check):
    wrong = [f"{list(row.values())}: {problem}" for row in rows if (problem := check(row))]
    head = f"{len(wrong)} of {len(rows)} rows: "
    return head + "\n".join(wrong[:5]) if wrong or not rows else None


def sample(rows, count, size):
    """`count` of the rows, evenly spaced in the order of their size, the last one included."""
    if count is None or len(rows) <= count:
        return rows
    rows = sorted(rows, key=size)
    return [rows[(i + 1) * len(rows) // count - 1] for i in range(count)]


def steps(row):
    return float(row.get("n") or row.get("T") or row.get("L") or row.get("a")
                 or row.get("steps") or row.get("stages"))


with Tap() as tap, Folder() as folder:
    every = sys.argv[1:] == ["all"]
    chain = Chains(folder, os.path.join(ORACLES, "chains.json")).chain
    long_chains = LongChains(folder, "planner2/long_chains.csv").chain
    offload = LongChains(folder, "planner2/long_offload.csv").offload
    sent = Chains(folder, os.path.join(ORACLES, "chains_async.json")).chain_async
    for name, check, count in (
            ("revolve.csv", revolve, 40), ("revolve_large.csv", revolve, 20),
            ("disk_revolve.csv", disk_revolve, 50), ("hrevolve.csv", hrevolve, 80),
            ("two_level_exact.csv", two_level, 80), ("periodic_disk_revolve.csv", periodic, 60),
            ("mixed.csv", mixed, 20), ("mixed.csv", mixed_binomial, 10), ("join.csv", join, 40),
            ("chain_exact.csv", chain, 120), ("chain_medium.csv", chain, 40),
            ("chain_async_exact.csv", sent, 30), ("auto_grid.csv", auto_grid, 5),
            ("planner2/backlog_tail.csv", late_blocks, 20),
            ("planner2/long_chains.csv", long_chains, 4),
            ("planner2/long_offload.csv", offload, 4)):
        rows = list(csv.DictReader(open(os.path.join(ORACLES, name))))
        rows = sample(rows, None if every else count, steps)
        tap.run(f"{name}: {check.__name__}, {len(rows)} rows", table, rows, check)
