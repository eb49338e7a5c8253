#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The planning benchmark: neap's plans of all strategies pass its checker, which does not know neap,
with neap's numbers; plans damaged at random are refused where neap's own verifier refuses them; and
the answers in the folder are what plans reach. Without an argument a fixed sample of the questions is
asked, with `all` every one, or every one of the groups that follow (`damages`: the plans that are
damaged)."""
import csv
import io
import json
import lzma
import math
import os
import random
import subprocess
import sys

from harness import NEAP, SOURCE, Folder, Tap, neap

BENCHMARK = os.path.join(SOURCE, "benchmarks", "planning")
sys.path.insert(0, BENCHMARK)
import check_plan  # noqa: E402
import neap_tool  # noqa: E402

ABOUT = 1e-9
EVERY, GROUPS = sys.argv[1:2] == ["all"], sys.argv[2:]
STEPS_MOST = 1000000 if EVERY else 2000
ACTIONS_MOST = 300000 if EVERY else 30000


LATE = os.path.join(SOURCE, "tests", "oracles", "late_states")


def read_answers(folder=BENCHMARK):
    found = {}
    with open(os.path.join(folder, "answers.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["question"], {})[row["what"]] = float(row["value"])
    return found


def near(a, b):
    return abs(a - b) <= ABOUT * max(1, abs(b))


def differs(question, plan, text):
    """What the checker says of a plan beside neap's numbers, None where they are the same."""
    try:
        found = check_plan.check(question, io.StringIO(text))
    except check_plan.Broken as error:
        return f"{plan['strategy']}: {error}"
    moved = {key: sum(tier[key] for tier in plan["tiers"]) for key in ("written", "read")}
    for key, want in (("makespan", plan["makespan"]), ("stall", plan["stall"]), ("peak", plan["peak_bytes"]),
                      ("advance_steps", plan["advance_steps"]), ("record_steps", plan["record_steps"]), *moved.items()):
        if not near(found[key], want):
            return f"{plan['strategy']}: {key} {found[key]}, neap says {want}"
    return None


def all_strategies(question, known, seen):
    """Every strategy that plans the question; `seen` counts plans by strategy."""
    plans = neap_tool.plans(NEAP, question)
    if question.form == "mixed":  # is asked for by name
        plans += neap_tool.plans(NEAP, question, "mixed")
    for plan in plans:
        if not plan["feasible"] or plan["advance_steps"] + plan["record_steps"] > 5 * ACTIONS_MOST:
            continue
        low = known.get("optimum", known.get("bound"))
        if plan["makespan"] < low * (1 - ABOUT):
            return f"{plan['strategy']}: makespan {plan['makespan']} below {low}"
        text = neap_tool.actions(NEAP, question, plan["strategy"])
        if text.count("\n") > ACTIONS_MOST:
            continue
        wrong = differs(question, plan, text)
        if wrong:
            return wrong
        seen[plan["strategy"]] = seen.get(plan["strategy"], 0) + 1
    return None


def same_group(questions, answers, seen):
    wrong = []
    for question in questions:
        try:
            problem = all_strategies(question, answers[question.name], seen)
        except neap_tool.Refused as error:
            problem = str(error)
        if problem:
            wrong.append(f"{question.name}: {problem}")
    return "\n".join(wrong[:8]) or None


def damage(draw, lines):
    """One line dropped, doubled, exchanged with the next, or one number of it changed."""
    lines, i = list(lines), draw.randrange(len(lines))
    way = draw.randrange(4)
    if way == 0:
        del lines[i]
    elif way == 1:
        lines.insert(i, lines[i])
    elif way == 2 and i + 1 < len(lines):
        lines[i], lines[i + 1] = lines[i + 1], lines[i]
    else:
        words = lines[i].split()
        numbers = [k for k, word in enumerate(words) if word.isdigit()]
        if numbers:
            k = draw.choice(numbers)
            words[k] = str(max(0, int(words[k]) + draw.choice((-2, -1, 1, 2))))
            lines[i] = " ".join(words)
    return lines


def verdict(question, lines):
    try:
        return check_plan.check(question, lines), None
    except (check_plan.Broken, check_plan.Unreadable) as error:
        return None, str(error)


def claims_gone(saved, lines):
    """A saved plan without what it claims, with other actions."""
    keep, section = [], ""
    for line in saved.split("\n"):
        section = line if line.startswith("[") else section
        if section not in ("[actions]", "[predicted]", "[used]"):
            keep.append("strategy own" if section == "[plan]" and line.startswith("strategy")
                        else line)
    return "\n".join([*keep, "[actions]", *lines, "end"]) + "\n"


def damaged(folder, question, strategy, count):
    """The checker and neap's verifier agree on plans with a damage, and most are refused."""
    draw = random.Random(question.name + strategy)
    path, refused = os.path.join(folder, "damaged.plan"), 0
    done = neap("plan", *neap_tool.options(question), "--strategy", strategy, "--actions", "--save", path)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as file:
        saved = file.read()
    lines = [line for line in neap_tool.actions(NEAP, question, strategy).split("\n") if line]
    with open(path, "w", encoding="utf-8") as file:
        file.write(claims_gone(saved, lines))
    done = neap("plan", "--load", path)
    if done.returncode != 0 or verdict(question, lines)[0] is None:
        return f"the plan without a damage: {done.stderr.strip()}, {verdict(question, lines)[1]}"
    for _ in range(count):
        bad = damage(draw, lines)
        found, why = verdict(question, bad)
        with open(path, "w", encoding="utf-8") as file:
            file.write(claims_gone(saved, bad))
        done = neap("plan", "--load", path)
        refused += found is None
        if done.returncode not in (0, 2) or (found is None) != (done.returncode != 0):
            changed = [line for line in bad if line not in lines] or "a line gone, twice or moved"
            return f"{changed}: checker: {why or found}; neap: {done.stderr.strip() or 'accepts'}"
    return None if refused >= count // 2 else f"{refused} of {count} refused"


def must_refuse(question, strategy):
    """Whatever the plan: without its turn, its first or last backward, or any wait it is refused."""
    lines = [line for line in neap_tool.actions(NEAP, question, strategy).split("\n") if line]
    for i, line in enumerate(lines):
        if line.split()[0] in ("turn", "backward", "wait", "record") and verdict(question, lines[:i] + lines[i + 1:])[0]:
            return f"accepted without '{line}', action {i + 1}"
    small = check_plan.Question(dict(question.row, memory=verdict(question, lines)[0]["peak"] - 1))
    return "accepted in less memory than its peak" if verdict(small, lines)[0] else None


def command_line(folder, question):
    tool, path = os.path.join(BENCHMARK, "check_plan.py"), os.path.join(folder, "one.txt")
    text = neap_tool.actions(NEAP, question, "auto")
    for words, stdin, code, says in (
            ([question.name, "-"], text, 0, "makespan "), ([question.name, "-"], "turn\n" + text, 1, "broken: action 1"),
            ([question.name, "-"], "fly 0 1\n", 2, "is no action"),
            ([question.name, "-"], "advance \uff10 40\n", 2, "is no action"), ([question.name, "-"], "turn\u2003\n", 2, "is no action"), (["nothing-001", "-"], text, 2, "no question"),
            ([question.name, path], text, 2, "one.txt"), ([question.name, "-"], "save state at 0 slot " + "9" * 40, 2, "too large"),
            ([], "", 2, "check_plan.py")):
        done = subprocess.run([sys.executable, tool, *words], input=stdin, capture_output=True, text=True)
        if done.returncode != code or says not in done.stdout + done.stderr:
            return f"{words}: exit {done.returncode}: {done.stdout[-200:]}{done.stderr[-200:]}"
        if code == 2 and words and len(done.stderr.strip().split("\n")) != 1:
            return f"{words}: more than a line: {done.stderr}"
    return None


def consistent(questions, answers):
    for question in questions:
        known = answers.get(question.name, {})
        if set(known) - {"estimate", "reported"} not in ({"optimum"}, {"best", "bound"}):
            return f"{question.name}: {known}"
        if "best" in known and known["bound"] > min(known["best"], known.get("reported", math.inf)) * (1 + ABOUT):
            return f"{question.name}: bound above best: {known}"
        if known.get("estimate", math.inf) < known.get("bound", 0) or known.get("reported", 0) > known.get("best", math.inf):
            return f"{question.name}: {known}"
    return None if len(questions) == len(answers) else f"answers to {len(answers)} of {len(questions)} questions"


def best_are_stored(questions, answers):
    """Each best known value has a plan that takes as long; plans of up to STEPS_MOST steps are checked."""
    names = [question.name for question in questions if "best" in answers[question.name]]
    stored = {name.removesuffix(".xz") for name in os.listdir(os.path.join(BENCHMARK, "plans"))}
    if set(names) != stored:
        return f"best known values without a plan or plans without a value: {sorted(set(names) ^ stored)}"
    short = [question.name for question in questions if question.steps <= STEPS_MOST and question.name in stored]
    words = short if EVERY else random.Random(3).sample(short, 12)
    done = subprocess.run([sys.executable, os.path.join(BENCHMARK, "check_plan.py"), "--best", *words], capture_output=True, text=True)
    return None if done.returncode == 0 and len(done.stdout.splitlines()) == len(words) else done.stdout[-2000:] + done.stderr


def packed_plans(folder, question):
    """A packed plan is the plan; a damaged one is refused with one line; a stored plan of another value is reported."""
    path, text = os.path.join(folder, "packed.xz"), neap_tool.actions(NEAP, question, "auto")
    check_plan.pack(text, path)
    with lzma.open(path, "rt", encoding="utf-8") as file:
        if "".join(check_plan.differences(file, 1)) != text:
            return "unpacked, the plan differs"
    if check_plan.check_file(question, path) != check_plan.check(question, io.StringIO(text)):
        return "packed, the plan has other numbers"
    tool = os.path.join(BENCHMARK, "check_plan.py")
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) // 2)
    for words, says in (([question.name, path], "packed.xz: "), (["--best", "nothing-001"], "no best known value of 'nothing-001'")):
        done = subprocess.run([sys.executable, tool, *words], capture_output=True, text=True)
        if done.returncode != 2 or says not in done.stderr or len(done.stderr.strip().split("\n")) != 1:
            return f"{words}: exit {done.returncode}: {done.stdout[-200:]}{done.stderr[-300:]}"
    return None


def late_states(folder):
    """Plans that write states after the turn which were held at it: faster than the estimate, never than the bound."""
    faster = 0
    for name in sorted(os.listdir(LATE)):
        path = os.path.join(folder, "late.plan")
        with lzma.open(os.path.join(LATE, name), "rt", encoding="utf-8") as packed, open(path, "w", encoding="utf-8") as file:
            file.writelines(check_plan.differences(packed, 1))
        plan = json.loads(neap("plan", "--load", path, "--json").stdout)["plans"][0]
        said = neap("plan", "--load", path).stdout
        if plan["gap"] < 0 or plan["bound"] > plan["makespan"] or plan["estimate"] < plan["bound"] or "\nestimate      " not in said:
            return f"{name}: {plan}\n{said}"
        faster += plan["makespan"] < plan["estimate"]
    return None if faster >= 3 else f"{faster} plans are faster than the estimate"


def drawn_again(folder, answers):
    """The set is what its script draws, and neap's answers are no worse than those that stand."""
    script = os.path.join(BENCHMARK, "draw_questions.py")
    done = subprocess.run([sys.executable, script, NEAP, folder], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    names = ["questions.csv", *(f"chains/{name}" for name in sorted(os.listdir(os.path.join(BENCHMARK, "chains"))))]
    for name in names:
        with open(os.path.join(BENCHMARK, name), encoding="utf-8") as old, \
                open(os.path.join(folder, name), encoding="utf-8") as new:
            if old.read() != new.read():
                return f"{name} is not what {script} draws"
    for name, now in read_answers(folder).items():
        known = answers[name]
        if now.get("best", 0) > known.get("best", 0) * (1 + ABOUT) or now.get("bound", 0) < known.get("bound", 0) * (1 - ABOUT):
            return f"{name}: {now}, before {known}"
    return None


def table_of_peers():
    """run.py asks neap in every group that peers know; where these are absent it says so."""
    done = subprocess.run([sys.executable, os.path.join(BENCHMARK, "run.py"), "--neap", NEAP, "--each", "1", "--most", "100",
                           "--groups", "revolve,mixed,disk,levels,unequal-tier"], capture_output=True, text=True)
    rows = [line.split(" | ") for line in done.stdout.split("\n") if "| neap " in line]
    if done.returncode != 0 or len(rows) != 5 or any(row[2] != row[3] for row in rows):
        return f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return None if done.stdout.count("skipped: ") or "checkpoint_schedules Revolve" in done.stdout else done.stdout


with Tap() as tap, Folder() as folder:
    rows = check_plan.read_questions(os.path.join(BENCHMARK, "questions.csv"))
    questions = [check_plan.Question(row, BENCHMARK) for row in rows.values()]
    answers = read_answers()
    tap.run(f"{len(questions)} questions, each with an optimum, or a best value and a bound", consistent, questions, answers)
    tap.run("best known values have plans that the checker accepts", best_are_stored, questions, answers)
    tap.run("plans that write states after the turn: none is below the bound", late_states, folder)
    groups, seen = {}, {}
    for question in questions:
        if question.steps <= STEPS_MOST and (not GROUPS or question.row["group"] in GROUPS):
            groups.setdefault(question.row["group"], []).append(question)
    for name, members in groups.items():
        if not EVERY:
            members = [members[i * len(members) // 3] for i in range(min(3, len(members)))]
        tap.run(f"{name}: plans of {len(members)} questions have neap's numbers", same_group, members, answers, seen)
    print(f"# plans checked: {seen}")
    if not GROUPS:
        tap.check("most strategies were seen", None if len(seen) >= 12 else str(seen))
    if GROUPS and "damages" not in GROUPS:
        sys.exit(tap.failed > 0)
    by_name = {question.name: question for question in questions}
    for name, strategy in (("revolve-010", "revolve"), ("levels-008", "h-revolve"), ("mixed-010", "mixed"),
                           ("1806.01117-001", "async"), ("overlap-001", "stream"), ("limits-002", "auto"),
                           ("2412.11810-002", "double"), ("two-tiers-001", "auto"), ("unequal-020", "chain"),
                           ("unequal-tier-015", "auto"), ("unequal-tier-028", "auto"), ("nets-002", "auto")):
        tap.run(f"{name}, {strategy}: damages are refused as neap refuses them", damaged, folder, by_name[name], strategy,
                300 if EVERY else 20)
        tap.run(f"{name}, {strategy}: no turn, backward, record or wait can be spared", must_refuse, by_name[name], strategy)
    tap.run("check_plan.py as a command", command_line, folder, by_name["limits-002"])
    tap.run("packed plans", packed_plans, folder, by_name["limits-002"])
    tap.run("run.py prints its table", table_of_peers)
    if EVERY:
        tap.run("the set is drawn again", drawn_again, folder, answers)
