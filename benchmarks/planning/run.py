#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs planners on the problems of the planning benchmark and prints a table of the results.

All plans, including neap's, are checked by check_plan.py; only valid plans have a cost. Planning time is the time from the
problem to the last action. For neap it is the time of the whole command, which starts a process and prints each action; for
the other planners it starts after their packages are imported. Compare it as a ratio in one run: for all problems together,
and for the longest problem, in which the start of a process matters least. Packages that are not installed are skipped with a
message.

    run.py [--neap TOOL] [--groups NAME,...] [--most STEPS] [--each COUNT] [--timeout SECONDS] [--csv FILE]

    --neap     path of the tool (build/neap)
    --groups   groups or single problems (all)
    --most     longest chain, in steps (20000); checking takes about 10 us per action
    --each     number of problems per group, sampled with a fixed seed (all)
    --timeout  seconds for one plan of a planner (60)
    --csv      also write one row per plan to FILE
"""
import argparse
import csv
import io
import os
import random
import statistics
import subprocess
import sys
import time

import check_plan
import neap_tool
import peers

ABOUT = 1e-9


class Tried:
    """The result of one planner for one problem: cost and planning seconds, or the error."""

    def __init__(self, planner, question, target, found=None, seconds=None, wrong=None):
        self.planner, self.question, self.seconds, self.wrong = planner, question, seconds, wrong
        self.cost = found and found["makespan"]
        self.steps = found and found["advance_steps"] + found["record_steps"]
        self.over = found and self.cost / target - 1


def checked(planner, question, target, seconds, text):
    try:
        return Tried(planner, question, target, check_plan.check(question, io.StringIO(text)), seconds)
    except (check_plan.Broken, check_plan.Unreadable) as error:
        return Tried(planner, question, target, wrong=f"refused: {error}")


def neap_strategy(question):
    """The strategy whose cost model is the one of the problem."""
    if question.form == "mixed":
        return "mixed"
    if question.form == "slots":
        if not question.tiers:
            return "revolve"
        return "disk-revolve" if question.row["group"] == "disk" else "h-revolve"
    return "chain" if question.form == "stages" and not question.tiers else "auto"


def ask_neap(options, question, target):
    name = f"neap {neap_strategy(question)}"
    start = time.perf_counter()
    try:
        text = neap_tool.actions(options.neap, question, neap_strategy(question), options.timeout)
    except neap_tool.Refused as error:
        return Tried(name, question, target, wrong=str(error))
    return checked(name, question, target, time.perf_counter() - start, text)


def ask_peer(options, planner, question, target):
    """None if the package is not installed."""
    command = [sys.executable, os.path.join(check_plan.HERE, "peers.py"), planner, question.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.timeout)
    except subprocess.TimeoutExpired:
        return Tried(planner, question, target, wrong=f"no plan in {options.timeout} s")
    if done.returncode == 3:
        options.absent.add(done.stderr.strip())
        return None
    if done.returncode != 0:
        return Tried(planner, question, target, wrong=(done.stderr.strip().split("\n") or ["failed"])[-1])
    head, _, text = done.stdout.partition("\n")
    return checked(planner, question, target, float(head.split()[-1]), text)


def targets():
    """For each problem: the optimum or the lower bound, and which of them it is."""
    found = {}
    with open(os.path.join(check_plan.HERE, "answers.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["what"] in ("optimum", "bound"):
                found[row["question"]] = (float(row["value"]), row["what"])
    return found


def ratio(mine, neaps):
    """Planning time divided by neap's, for the problems that both have planned, and for the longest of them."""
    pairs = [(t.question.steps, t.seconds, neaps[t.question.name].seconds) for t in mine
             if t.seconds is not None and neaps[t.question.name].seconds is not None]
    if not pairs:
        return "- | -"
    _, longest, neaps_longest = max(pairs)
    return f"{sum(p[1] for p in pairs) / sum(p[2] for p in pairs):.3g} | {longest / neaps_longest:.3g}"


def print_table(group, against, tried, neaps):
    for planner in dict.fromkeys(t.planner for t in tried):
        mine = [t for t in tried if t.planner == planner]
        over = [100 * t.over for t in mine if t.over is not None]
        at = sum(x <= 100 * ABOUT for x in over)
        mean, most = (f"{statistics.mean(over):.2f}", f"{max(over):.2f}") if over else ("-", "-")
        print(f"| {group} | {planner} | {len(mine)} | {len(over)} | {against} | {at} | {mean} | {most} "
              f"| {ratio(mine, neaps)} |", flush=True)


def drawn(rows, count):
    if not count or len(rows) <= count:
        return rows
    return [rows[i] for i in sorted(random.Random(1).sample(range(len(rows)), count))]


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neap", default="build/neap")
    parser.add_argument("--groups")
    parser.add_argument("--most", type=int, default=20000)
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--csv")
    options = parser.parse_args(arguments)
    options.absent = set()
    return options


def main(arguments):
    options, known, groups, every = read_options(arguments), targets(), {}, []
    for row in check_plan.read_questions().values():
        question = check_plan.Question(row)
        what = known[question.name][1]
        if question.steps <= options.most and (
                not options.groups or {row["group"], question.name} & set(options.groups.split(","))):
            groups.setdefault((row["group"], what), []).append(question)
    if not groups:
        sys.exit("run: no problem matches --groups and --most")
    print("| group | planner | problems | valid plans | compared with | reached | mean excess, % | largest excess, % "
          "| time / neap | longest |\n|---|---|---|---|---|---|---|---|---|---|")
    for (group, what), questions in groups.items():
        tried, neaps = [], {}
        for question in drawn(questions, options.each):
            target = known[question.name][0]
            neaps[question.name] = ask_neap(options, question, target)
            tried.append(neaps[question.name])
            for planner, (_, can_state) in peers.PLANNERS.items():
                one = ask_peer(options, planner, question, target) if can_state(question) else None
                tried += [one] if one else []
        print_table(group, what, tried, neaps)
        every += tried
    for line in sorted(options.absent):
        print(f"skipped: {line}")
    for t in every:
        if t.wrong:
            print(f"{t.planner}, {t.question.name}: {t.wrong}", file=sys.stderr)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(("question", "planner", "forward_steps", "cost", "over", "planning_seconds", "wrong"))
            out.writerows((t.question.name, t.planner, t.steps, t.cost, t.over, t.seconds, t.wrong) for t in every)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
