#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`neap plan` as a user calls it: the oracle tables, the contract's keys, drawings."""
import csv
import json
import os
import xml.etree.ElementTree as tree

from harness import ORACLES, Folder, Tap, neap, neap_json, over_limit

GOLDEN = [  # steps, slots, advance steps: Griewank and Walther 2000
    (1, 1, 0), (2, 1, 1), (3, 2, 2), (100, 5, 316), (100, 10, 222), (100, 20, 178),
    (1000, 10, 3636), (1000000, 10, 11647922)]
KEYS = {"strategy", "feasible", "params", "peak_bytes", "slow_bytes", "tiers", "advance_steps",
        "record_steps", "makespan", "stall", "overhead", "bound", "gap", "estimate", "model_bound",
        "plan_seconds"}
BYTES = ["--steps", 5000, "--state", "64K", "--tape", "96K", "--memory", "8M", "--advance",
         "1ms", "--backward", "2ms"]
DISK = ["--tier", "disk:write=1G,read=1G,latency=100us"]


def revolve(steps, slots):
    plan = neap_json("plan", "--steps", steps, "--slots", slots, "--advance", 1, "--record", 1,
                     "--backward", 1, "--strategy", "revolve")["plans"]
    assert len(plan) == 1
    return plan[0]


def one_revolve(steps, slots, extra, limit=0.05):
    plan = revolve(steps, slots)
    if plan["advance_steps"] != extra:
        return f"advance_steps {plan['advance_steps']}, expected {extra}"
    if plan["record_steps"] != steps:
        return f"record_steps {plan['record_steps']}"
    return over_limit("planning", plan["plan_seconds"], limit)


def table(path):
    wrong = []
    rows = 0
    for row in csv.DictReader(open(path)):
        extra = row.get("gw_extra") or row.get("gw_extra_closed_form")
        problem = one_revolve(int(row["n"]), int(row["s"]), int(float(extra)))
        rows += 1
        if problem:
            wrong.append(f"{row['n']},{row['s']}: {problem}")
    return f"{len(wrong)} of {rows} rows: {wrong[:3]}" if wrong or not rows else None


def mixed(rows):
    for n, s, total in rows:
        plan = neap_json("plan", "--steps", n, "--slots", s, "--strategy", "mixed")["plans"][0]
        if plan["advance_steps"] + plan["record_steps"] != total:
            return f"{n},{s}: {plan['advance_steps']} + {plan['record_steps']}, expected {total}"
    return None if rows else "no rows"


def join(rows):
    for a, b, slots, steps in rows:
        plan = neap_json("plan", "--steps", f"{a},{b}", "--slots", slots, "--strategy",
                         "join")["plans"][0]
        if plan["advance_steps"] != (None if steps == "inf" else int(steps)):
            return f"{a},{b},{slots}: {plan['advance_steps']}, expected {steps}"
    return None if rows else "no rows"


def write_chain(path, chain):
    """The stages of an oracle chain as a chain file."""
    with open(path, "w") as file:
        json.dump({"advance": chain["fw"], "backward": chain["bw"], "state": chain["a"],
                   "tape": chain["ab"][1:], "advance_tmp": chain["fwd_tmp"],
                   "backward_tmp": chain["bwd_tmp"]}, file)


def stages(folder, chains, rows):
    path = os.path.join(folder, "chain.json")
    for row in rows:
        write_chain(path, chains[row["chain_id"]])
        plan = neap_json("plan", "--chain", path, "--memory", row["M"], "--strategy",
                         "chain")["plans"][0]
        exact = float(row.get("exact") or 0)
        if not plan["feasible"] or plan["peak_bytes"] > int(row["M"]) or \
                not exact <= plan["makespan"] <= float(row["ref_plus"]):
            return f"{row}: {plan}"
    return None if rows else "no rows"


def wide_integers(folder):
    """Bytes above 2^53, which no double holds, come through a chain file and the report."""
    chain = {"steps": 4, "advance": 1, "backward": 1, "state": 2**53 + 1, "tape": 2**53 + 3}
    path = os.path.join(folder, "wide.json")
    with open(path, "w") as file:
        json.dump(chain, file)
    told = neap_json("plan", "--chain", path, "--memory", "60P")["chain"]
    if (told["state"], told["tape"]) != (chain["state"], chain["tape"]):
        return f"{told}"


def uniform_file(folder):
    """Numbers instead of lists: the problem that the options make."""
    path = os.path.join(folder, "uniform.json")
    with open(path, "w") as file:
        json.dump({"steps": 5000, "advance": 1e-3, "backward": 2e-3, "state": 64 << 10,
                   "tape": 96 << 10, "tape_holds_output": False, "backward_needs_input": False,
                   "spread": 0.01, "tiers": [{"name": "disk", "write": 2 ** 30, "read": 2 ** 30,
                                              "latency": 1e-4, "cpu": 0, "cpu_fixed": 0}]}, file)
    def planned(*options):
        plans = neap_json("plan", *options)["plans"]
        for plan in plans:
            del plan["plan_seconds"]
        return plans
    same = planned("--chain", path, "--memory", "8M") == planned(*BYTES, *DISK)
    return None if same else "the plans differ"


def transfers_cost():
    """A second for so many bytes and a second for each transfer."""
    def lost(costs):
        plan = neap_json("plan", *BYTES, "--tier", "disk:write=1G,read=1G," + costs,
                         "--strategy", "async")["plans"][0]
        return plan["lost"], plan["tiers"][0]["written"] + plan["tiers"][0]["read"]
    seconds, moved = lost("cpu=1ms/64K")
    again, _ = lost("cpu_fixed=1ms")
    if abs(seconds - 1e-3 * moved / 65536) > 1e-9 or abs(again - seconds) > 1e-9:
        return f"{moved} bytes of states cost {seconds} and {again} s"
    return None


def mean_tapes():
    """Room for the fullest tape, channels with the mean one."""
    slow = ["--tier", "disk:write=50M,read=50M", "--strategy", "stream"]
    full, half = (neap_json("plan", *BYTES, *slow, *more)["plans"][0]
                  for more in ([], ["--tape-mean", "48K"]))
    one, other = full["tiers"][0], half["tiers"][0]
    if half["params"]["chunk"] > 84 or half["makespan"] >= full["makespan"]:
        return f"{full}, {half}"
    if other["written"] % (48 << 10) or one["written"] % (96 << 10) or \
            other["written"] * 2 > other["peak_bytes"]:
        return f"{one}, {other}"
    done = neap("plan", *BYTES, "--tape-mean", "97K")
    return None if done.returncode == 2 and "tape_mean" in done.stderr else done.stderr


def calls_cost(folder):
    """Revolve calls the model for one step at a time: T - 1 advances, T records, T backwards."""
    priced = neap_json("plan", *BYTES, *DISK, "--call", "5us")
    free = neap_json("plan", *BYTES, *DISK)
    plans = {p["strategy"]: p["makespan"] for p in priced["plans"] if p["feasible"]}
    extra = {p["strategy"]: plans[p["strategy"]] - p["makespan"] for p in free["plans"]
             if p["feasible"]}
    if abs(extra["revolve"] - 14999 * 5e-6) > 1e-9 or min(extra.values()) <= 0:
        return f"{extra}"
    if priced["chain"]["call"] != 5e-6 or min(plans.values()) < plans["auto"] * (1 - 1e-12):
        return f"{priced['chain']}, {plans}"
    path = os.path.join(folder, "calls.json")
    chain = {"steps": 5000, "advance": 1e-3, "backward": 2e-3, "state": 64 << 10,
             "tape": 96 << 10, "tape_holds_output": False, "backward_needs_input": False,
             "call": 5e-6}
    with open(path, "w") as file:
        json.dump(chain, file)
    same = neap_json("plan", "--chain", path, "--memory", "8M", *DISK, "--strategy", "revolve")
    if same["plans"][0]["makespan"] != plans["revolve"]:
        return f"from a file {same['plans'][0]}"
    with open(path, "w") as file:
        json.dump({**chain, "steps": 2, "tape": [1, 2]}, file)
    done = neap("plan", "--chain", path, "--memory", "8M")
    return None if done.returncode == 2 and "call" in done.stderr else done.stderr


def last_step():
    """A last step of another length: recorded and reversed once, whatever the strategy."""
    short = neap_json("plan", *BYTES, *DISK, "--last", "0.25")
    whole = neap_json("plan", *BYTES, *DISK)
    saved = {w["strategy"]: w["makespan"] - s["makespan"]
             for w, s in zip(whole["plans"], short["plans"]) if w["feasible"]}
    if short["chain"]["last"] != 0.25 or "last" in whole["chain"]:
        return f"{short['chain']}"
    if abs(saved["revolve"] - 0.75 * 3e-3) > 1e-9 or min(saved.values()) <= 0:
        return f"{saved}"
    if any(p["feasible"] and p["bound"] > p["makespan"] for p in short["plans"]):
        return f"{short['plans']}"
    done = neap("plan", *BYTES, "--last", "1.5")
    return None if done.returncode == 2 and "last" in done.stderr else done.stderr


def keys():
    for plan in neap_json("plan", *BYTES, *DISK)["plans"]:
        missing = KEYS - plan.keys()
        if missing:
            return f"{plan['strategy']}: no {missing}"
    return None


def names():
    found = [p["strategy"] for p in neap_json("plan", *BYTES, *DISK)["plans"]]
    wanted = {"bptt", "standard", "remote", "hierarchical", "double", "revolve", "auto"}
    return None if wanted <= set(found) else f"strategies {found}"


def auto_is_never_worse():
    plans = neap_json("plan", *BYTES, *DISK)["plans"]
    feasible = [p for p in plans if p["feasible"]]
    auto = next(p for p in plans if p["strategy"] == "auto")
    best = min(p["makespan"] for p in feasible)
    if auto["makespan"] > best * (1 + 1e-12):
        return f"auto {auto['makespan']} best {best}"
    for p in feasible:
        if p["bound"] > p["makespan"] * (1 + 1e-12):
            return f"{p['strategy']}: bound {p['bound']} above {p['makespan']}"
        if p["peak_bytes"] > 8 << 20:
            return f"{p['strategy']}: peak {p['peak_bytes']}"
    return None


def infeasible_names_a_budget_that_works():
    base = ["plan", "--steps", 5000, "--state", "64K", "--tape", "96K", "--memory"]
    plans = neap_json(*base, "100K", *DISK)["plans"]
    for p in plans:
        if p["feasible"] or not p["why"] or p["makespan"] is not None:
            return f"{p}"
        if p["least_bytes"] is None and p["strategy"] in ("chain", "join", "pofo", "replay"):
            continue  # another kind of problem
        if p["least_bytes"] is None:
            return f"{p['strategy']}: no least_bytes"
        again = neap_json(*base, p["least_bytes"], *DISK, "--strategy", p["strategy"])["plans"][0]
        if not again["feasible"]:
            return f"{p['strategy']}: {p['least_bytes']} does not work: {again['why']}"
    return None


def no_steps():
    for strategy in ("revolve", "standard", "double", "auto"):
        plan = neap_json("plan", "--steps", 0, "--state", "1K", "--tape", "1K", "--memory", "1M",
                         "--strategy", strategy, *DISK)["plans"][0]
        if not plan["feasible"] or plan["makespan"] != 0 or plan["record_steps"] != 0:
            return f"{plan}"
    return None


def few_steps():
    """One or two steps, no slot or one: the answers by hand (advance 1, record 1, backward 1)."""
    tier = ["--tier", "slow:slots=1,write=5,read=7"]
    for steps, slots, more, strategy, cost in (
            (1, 0, [], "revolve", 2), (1, 0, [], "h-revolve", 2), (1, 1, [], "auto", 2),
            (2, 1, [], "revolve", 5), (2, 1, [], "h-revolve", 5), (2, 1, [], "auto", 5),
            (2, 0, [], "revolve", None), (2, 0, [], "auto", None),
            (2, 0, tier, "h-revolve", 5 + 5 + 7), (2, 1, tier, "h-revolve", 5)):
        plan = neap_json("plan", "--steps", steps, "--slots", slots, "--advance", 1, "--record", 1,
                         "--backward", 1, *more, "--strategy", strategy)["plans"][0]
        got = plan["makespan"] if plan["feasible"] else None
        if got != cost or (cost is None and plan["least_slots"] != 1):
            return f"T={steps} slots={slots} {strategy}: {got}, expected {cost}"
    return None


def joins_in_bytes():
    """Two chains in bytes: from the least budget to all tapes, fewer forward steps with more memory."""
    sizes = ["--steps", "100,50", "--state", "1K", "--tape", "4K", "--advance", 1, "--record", 1, "--backward", 2]
    before = float("inf")
    for memory, peak in ((9 << 10, 9 << 10), (64 << 10, None), (300 << 10, None), (604 << 10, 604 << 10),
                         (1 << 30, 604 << 10)):
        chain = neap_json("plan", *sizes, "--memory", memory)
        plan = next(plan for plan in chain["plans"] if plan["strategy"] == "auto")
        steps = plan["advance_steps"]
        if chain["chain"]["join"] != 50 or plan["chosen"] != "join" or plan["peak_bytes"] > memory:
            return f"{memory}: {plan}"
        if steps >= before and steps > 0 or peak and plan["peak_bytes"] != peak or plan["record_steps"] != 150:
            return f"{memory}: {plan}, {before} steps in less memory"
        before = steps
    if before != 0 or plan["overhead"] != 0:
        return f"all tapes fit: {plan}"
    # 2 adjoints, 2 first states, the current state and its tape: none is left out
    plan = neap_json("plan", *sizes, "--memory", (9 << 10) - 1, "--strategy", "auto")["plans"][0]
    if plan["feasible"] or plan["least_bytes"] != 9 << 10:
        return f"{plan}"
    for bad, says in ((["--tier", "slow:write=1G"], "without tiers"), (["--log", "64"], "single uniform chain"),
                      (["--last", "0.5"], "single uniform chain")):
        done = neap("plan", *sizes, "--memory", "64K", *bad)
        if done.returncode != 2 or says not in done.stderr or done.stderr.count("\n") != 1:
            return f"{bad}: {done.returncode} {done.stderr}"
    return None


def classic_needs_bytes():
    plan = neap_json("plan", "--steps", 100, "--slots", 5, "--strategy", "bptt")["plans"][0]
    if plan["feasible"] or "needs bytes" not in plan["why"] or "least_slots" not in plan:
        return f"{plan}"
    return None


def drawing(folder):
    path = os.path.join(folder, "plan.svg")
    done = neap("plan", "--steps", 32, "--slots", 4, "--strategy", "revolve", "--draw", path)
    if done.returncode != 0:
        return done.stderr
    root = tree.parse(path).getroot()
    marks = sum(1 for _ in root.iter())
    with open(path, encoding="utf-8") as file:
        dark = "prefers-color-scheme: dark" in file.read()
    if not dark or int(root.get("width")) > 560:  # for dark pages, and for a phone
        return f"dark {dark}, width {root.get('width')}"
    return None if root.tag.endswith("svg") and marks > 60 else f"{root.tag} {marks}"


def actions():
    done = neap("plan", "--steps", 10, "--slots", 3, "--strategy", "revolve", "--actions")
    lines = done.stdout.splitlines()
    turns = [i for i, line in enumerate(lines) if line.startswith("turn")]
    if done.returncode != 0 or len(turns) != 1:
        return f"{done.stderr} {turns}"
    backward = sum(int(x[2]) - int(x[1]) for x in map(str.split, lines) if x[0] == "backward")
    return None if backward == 10 else f"{backward} steps reversed"


def rows_of(*question):
    """The table's rows: (marked, strategy, rest); and the lines below."""
    done = neap("plan", *question)
    none = "there is no plan" in done.stderr  # and the table has what each strategy needs
    assert done.returncode == 2 * none and (none or not done.stderr), done.stderr
    lines = done.stdout.splitlines()
    wide = [line for line in lines if len(line) > 120]
    assert not wide, f"{len(wide[0])} columns: {wide[0]}"
    end = lines.index("")
    rows = [(line[0] == "*", *line[2:].split(maxsplit=1)) for line in lines[1:end]]
    return rows, lines[end + 1:]


def table_for_people():
    rows, below = rows_of(*BYTES, *DISK)
    plans = {p["strategy"]: p for p in neap_json("plan", *BYTES, *DISK)["plans"]}
    if sorted(row[1] for row in rows) != sorted(plans):
        return "not a row a strategy"
    feasible = [plans[row[1]]["feasible"] for row in rows]
    if feasible != sorted(feasible, reverse=True):
        return "infeasible ones are not last"
    times = [plans[row[1]]["makespan"] for row in rows if plans[row[1]]["feasible"]]
    if any(a > b * (1 + 1e-9) for a, b in zip(times, times[1:])):
        return f"not by makespan: {times}"
    marked = {row[1] for row in rows if row[0]}
    if marked != {"auto", plans["auto"].get("chosen", "auto")} or rows[0][1] != "auto":
        return f"marked: {marked}"
    for chosen, name, rest in rows:
        plan = plans[name]
        slower = plan["feasible"] and plan["makespan"] > 1.01 * times[0]
        if slower and ("slower: recomputes" not in rest and "slower: waits for disk" not in rest
                       and "slower: copies" not in rest):
            return f"{name}: {rest}"
        if not plan["feasible"] and "needs" not in rest and rest != plan["why"]:
            return f"{name}: {rest}"
    return None if any(line.startswith("bound: no schedule is faster than ")
                       for line in below) else f"{below}"


def needs_what_it_says():
    """The budget in the last column works when it is typed."""
    for question, memory, most in ((["--steps", 5000, "--state", "100001", "--tape", "77777", *DISK], "250K", 5),
                                   (["--steps", 10, "--state", 1000, "--tape", 288], "1K", 3)):  # 3288 bytes: 3.22 KiB
        rows, _ = rows_of(*question, "--memory", memory)
        done = 0
        for _, name, rest in rows:
            words = rest.split()
            if words[0] == "needs" and len(words) == 3 and words[2].endswith("iB"):
                size = words[1] + words[2].removesuffix("iB")
                plan = neap_json("plan", *question, "--memory", size, "--strategy", name)["plans"][0]
                done += 1
                if not plan["feasible"]:
                    return f"{name}: {size}: {plan['why']}"
        if done < most:
            return f"{done} rows"
    return None


def waits_and_slots():
    rows, _ = rows_of(*BYTES, "--tier", "tape:write=1M,read=1M,latency=10ms", "--memory", "3M")
    if not any("waits for tape " in row[2] for row in rows):
        return f"{rows}"
    rows, _ = rows_of("--steps", 100, "--slots", 4)
    return None if any("needs 99 slots" in row[2] for row in rows) else f"{rows}"


def details():
    question = ["--steps", 300, "--slots", 4, "--tier", "disk:slots=9,write=2,read=2"]
    done = neap("plan", *question, "--strategy", "h-revolve").stdout
    plan = neap_json("plan", *question, "--strategy", "h-revolve")["plans"][0]
    wanted = ["strategy      h-revolve: ", "\npeak          ", "\ntier          disk: peak ",
              f"written {plan['tiers'][0]['written']}, read {plan['tiers'][0]['read']}",
              f"{plan['advance_steps']} steps without tape", "\nbound         ",
              "\nmodel bound   "]
    missing = [text for text in wanted if text not in done]
    if missing or not plan["model_bound"] or plan["model_bound"] > plan["makespan"] * (1 + 1e-9):
        return f"{missing} {plan['model_bound']}\n{done}"
    return None


def logs(folder):
    """A log makes `replay` possible: options and a chain file ask the same question."""
    slow = ["--tier", "disk:write=2M,read=2M"]
    question = ["--steps", 20000, "--state", "64K", "--tape", "12K", "--memory", "8M", "--advance",
                "1ms", "--record", "1.2ms", "--backward", "2ms", "--log", 700, "--replay", "0.7ms"]
    answer = neap_json("plan", *question, *slow)
    plans = {p["strategy"]: p for p in answer["plans"]}
    replay, auto = plans["replay"], plans["auto"]
    if not replay["feasible"] or replay["peak_bytes"] > 8 << 20 or \
            not replay["params"].get("interval") or replay["bound"] > replay["makespan"]:
        return f"{replay}"
    if answer["chain"]["log"] != 700 or answer["chain"]["replay"] != 0.7e-3:
        return f"{answer['chain']}"
    if any(p["feasible"] and p["makespan"] < auto["makespan"] * (1 - 1e-12)
           for p in plans.values()):
        return "auto is worse"
    if replay["makespan"] >= plans["stream"]["makespan"]:
        return "stream is faster through so slow a tier"
    path = os.path.join(folder, "logs.json")
    with open(path, "w") as file:
        json.dump({"steps": 20000, "advance": 1e-3, "record": 1.2e-3, "backward": 2e-3,
                   "state": 64 << 10, "tape": 12 << 10, "log": 700, "replay": 0.7e-3,
                   "tape_holds_output": False, "backward_needs_input": False}, file)
    other = neap_json("plan", "--chain", path, "--memory", "8M", "--strategy", "replay",
                      *slow)["plans"][0]
    if other["makespan"] != replay["makespan"]:
        return f"from a file {other}"
    actions = neap("plan", *question, "--strategy", "replay", *slow, "--actions").stdout
    for kind in ("advance log", "record log", "drop log"):
        if kind not in actions:
            return f"no {kind}"
    none = neap_json("plan", *BYTES, *DISK, "--strategy", "replay")["plans"][0]
    if none["feasible"] or "needs a log" not in none["why"]:
        return f"without a log: {none}"
    for wrong in (["--replay", "1ms"], ["--log", 0], ["--log", "many"]):
        done = neap("plan", *BYTES, *wrong)
        if done.returncode != 2 or done.stdout or len(done.stderr.splitlines()) > 2:
            return f"{wrong}: {done.stderr}"
    return None


with Tap() as tap, Folder() as folder:
    for row in GOLDEN:
        tap.run(f"revolve {row}", one_revolve, *row)
    tap.run("mixed", mixed, [(4, 2, 6), (50, 4, 164), (100, 10, 237)])
    tap.run("join", join, [(1, 1, 3, "inf"), (1, 1, 5, 2), (1, 4, 4, 8), (1, 4, 5, 7)])
    tap.run("a uniform chain file", uniform_file, folder)
    tap.run("integers of 64 bits", wide_integers, folder)
    tap.run("what transfers cost", transfers_cost)
    tap.run("what calls cost", calls_cost, folder)
    tap.run("tapes that vary", mean_tapes)
    tap.run("a last step of another length", last_step)
    tap.run("every key of the contract", keys)
    tap.run("every strategy", names)
    tap.run("auto is never worse", auto_is_never_worse)
    tap.run("an infeasible plan names a budget that works", infeasible_names_a_budget_that_works)
    tap.run("no steps", no_steps)
    tap.run("a step or two, no slot or one", few_steps)
    tap.run("classic problems need bytes for tapes", classic_needs_bytes)
    tap.run("two chains in bytes", joins_in_bytes)
    tap.run("a drawing is XML", drawing, folder)
    tap.run("actions", actions)
    tap.run("a table for people", table_for_people)
    tap.run("a budget named in it works", needs_what_it_says)
    tap.run("waiting, and slots", waits_and_slots)
    tap.run("one plan at length", details)
    tap.run("logs", logs, folder)
    tap.run("join.csv", join, [row[:4] for row in list(csv.reader(
        open(os.path.join(ORACLES, "join.csv"))))[1:]])
    chains = json.load(open(os.path.join(ORACLES, "chains.json")))
    for name in ("chain_exact.csv", "chain_medium.csv"):
        tap.run(name, stages, folder, chains,
                list(csv.DictReader(open(os.path.join(ORACLES, name))))[::4])
    tap.run("mixed.csv", mixed, [tuple(map(int, row))[:3] for row in list(csv.reader(
        open(os.path.join(ORACLES, "mixed.csv"))))[1:]])
    for name in ("revolve.csv", "revolve_large.csv"):
        tap.run(name, table, os.path.join(ORACLES, name))
