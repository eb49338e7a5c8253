#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans saved and loaded: `neap plan --save` and `--load` as a user calls them."""
import json
import os

from harness import Folder, Tap, neap, neap_json, over_limit

BYTES = ["--steps", 3000, "--state", "64K", "--tape", "96K", "--memory", "8M", "--advance",
         "1ms", "--backward", "2ms", "--tier", "disk:write=100M,read=50M,latency=100us"]
CLASSIC = ["--steps", 200, "--slots", 5, "--tier", "disk:slots=20,write=2,read=3"]
STAGES = {"advance": [1, 2, 3, 1, 5], "backward": [2, 4, 6, 2, 9, 1],
          "state": [10, 20, 30, 40, 20, 10], "tape": [40, 50, 60, 80, 40]}
STRATEGIES = [p["strategy"] for p in neap_json("plan", *BYTES)["plans"]]


def out(*args):
    done = neap("plan", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_seconds(result):
    for plan in result["plans"]:
        assert plan.pop("plan_seconds") >= 0
    return result


def same_again(folder, *question):
    """Saved and loaded: the same JSON, table, actions and file."""
    path, again = os.path.join(folder, "a.plan"), os.path.join(folder, "b.plan")
    planned = without_seconds(neap_json("plan", *question, "--save", path))
    planned["chain"].pop("file", None)
    if without_seconds(neap_json("plan", "--load", path)) != planned:
        return "the JSON differs"
    shown = out("--load", path, "--save", again)
    if [x for x in shown.splitlines() if not x.startswith("schedule ")] != \
            out(*question).splitlines():
        return f"the table differs: {shown}"
    if open(path).read() != open(again).read():
        return "saved again, the file differs"
    if planned["plans"][0]["strategy"] != "join" and \
            out("--load", path, "--actions") != out(*question, "--actions"):
        return "the actions differ"
    return None


def every_strategy(folder, question):
    done = 0
    for name in STRATEGIES:
        plan = neap_json("plan", *question, "--strategy", name)["plans"][0]
        path = os.path.join(folder, "none.plan")
        if not plan["feasible"]:
            refused = neap("plan", *question, "--strategy", name, "--save", path)
            if refused.returncode != 2 or os.path.exists(path):
                return f"{name}: an infeasible plan was saved"
            continue
        done += 1
        problem = same_again(folder, *question, "--strategy", name)
        if problem:
            return f"{name}: {problem}"
    return None if done >= 4 else f"only {done} plans"


def stages(folder):
    path = os.path.join(folder, "chain.json")
    with open(path, "w") as file:
        json.dump(STAGES, file)
    return same_again(folder, "--chain", path, "--memory", 200, "--strategy", "chain")


def listed(folder):
    """With --actions the file lists them, and they are what is played."""
    path = os.path.join(folder, "listed.plan")
    printed = out(*CLASSIC, "--strategy", "h-revolve", "--actions", "--save", path)
    text = open(path).read()
    if printed not in text or out("--load", path, "--actions") != printed:
        return "the lists differ"
    planned, loaded = (neap_json("plan", *q)["plans"][0] for q in
                       ([*CLASSIC, "--strategy", "h-revolve"], ["--load", path]))
    planned.pop("plan_seconds"), loaded.pop("plan_seconds")
    return None if planned == loaded else f"{planned} {loaded}"


def drawing(folder):
    path = os.path.join(folder, "d.plan")
    question = ["--steps", 32, "--slots", 4, "--strategy", "revolve"]
    one, two = os.path.join(folder, "1.svg"), os.path.join(folder, "2.svg")
    out(*question, "--save", path, "--draw", one)
    out("--load", path, "--draw", two)
    return None if open(one).read() == open(two).read() else "the drawings differ"


def no_search(folder):
    """Loading spends none of auto's effort again."""
    path = os.path.join(folder, "long.plan")
    question = ["--steps", 20000, *BYTES[2:], "--memory", "4M", "--effort", 20000]
    planned = neap_json("plan", *question, "--save", path, "--strategy", "auto")["plans"][0]
    loaded = neap_json("plan", "--load", path)["plans"][0]
    if planned["makespan"] != loaded["makespan"]:
        return "another plan"
    return over_limit("loading", loaded["plan_seconds"], 0.3 * planned["plan_seconds"] + 0.05)


def lies(folder):
    path, bad = os.path.join(folder, "l.plan"), os.path.join(folder, "bad.plan")
    out(*BYTES, "--strategy", "double", "--save", path)
    lines = open(path).read().split("\n")
    for key in ("peak_bytes", "arena_bytes", "makespan", "stall", "advance_steps", "bound",
                "gap", "overhead", "slow_bytes", "written"):
        at = next(i for i, line in enumerate(lines) if line.startswith(key + " "))
        changed = lines[:at] + [lines[at].split()[0] + " 12345"] + lines[at + 1:]
        with open(bad, "w") as file:
            file.write("\n".join(changed))
        done = neap("plan", "--load", bad)
        wanted = f"neap plan: {bad}: line {at + 1}: {key}: "
        if done.returncode != 2 or not done.stderr.startswith(wanted) or done.stdout or \
                done.stderr.count("\n") != 1:
            return f"{key}: {done.returncode} {done.stderr}"
    return None


def refused(needle, *args, cwd=None):
    done = neap("plan", *args, cwd=cwd)
    if done.returncode != 2 or done.stdout or done.stderr.count("\n") != 1 or \
            needle not in done.stderr:
        return f"{args}: {done.returncode} {done.stdout}{done.stderr}"
    return None


def bad_input(folder):
    path = os.path.join(folder, "good.plan")
    out(*BYTES, "--strategy", "double", "--save", path)
    text = open(path).read()
    with open(os.path.join(folder, "half.plan"), "w") as file:
        file.write(text[:len(text) // 2])
    with open(os.path.join(folder, "zero.plan"), "w") as file:
        file.write(text + "\0")
    open(os.path.join(folder, "empty.plan"), "w").close()
    cases = [("missing.plan", "--load", "missing.plan"), ("half.plan: line", "--load", "half.plan"),
             ("not a text file", "--load", "zero.plan"), ("line 1", "--load", "empty.plan"),
             ("--load", "--load", "good.plan", "--steps", 3),
             ("--load", "--load", "good.plan", "--strategy", "double"),
             ("--load", "--load", "good.plan", "--tier", "disk:"),
             ("--load", "--load", "good.plan", "--chunk", 3),
             ("--save", "--steps", 3, "--slots", 2, "--save", "missing/x.plan"),
             ("--save", "--steps", 3, "--slots", 2, "--save", ""),
             ("--json", "--load", "good.plan", "--json", "--actions")]
    for needle, *args in cases:
        problem = refused(needle, *args, cwd=folder)
        if problem:
            return problem
    left = {"missing", "x.plan", "x.plan.part"} & set(os.listdir(folder))
    return f"left behind: {left}" if left else None


def whole_or_not(folder):
    """A plan that cannot be written leaves the old file as it was."""
    path = os.path.join(folder, "kept.plan")
    out("--steps", 5, "--slots", 3, "--save", path)
    before = open(path).read()
    done = neap("plan", "--steps", 1000000, "--slots", 3, "--strategy", "revolve", "--actions",
                "--save", path)
    if done.returncode != 2 or "actions" not in done.stderr:
        return f"{done.returncode} {done.stderr}"
    if open(path).read() != before or os.path.exists(path + ".part"):
        return "something was left"
    return None


with Tap() as tap, Folder() as folder:
    tap.run("every strategy in bytes", every_strategy, folder, BYTES)
    tap.run("every strategy in slots", every_strategy, folder, CLASSIC)
    tap.run("two chains", same_again, folder, "--steps", "5,7", "--slots", 6, "--strategy",
            "join")
    tap.run("no steps", same_again, folder, "--steps", 0, "--slots", 1, "--strategy", "auto")
    tap.run("stages", stages, folder)
    tap.run("a list of actions", listed, folder)
    tap.run("a drawing", drawing, folder)
    tap.run("nothing is searched again", no_search, folder)
    tap.run("a plan that lies", lies, folder)
    tap.run("bad input", bad_input, folder)
    tap.run("whole or not at all", whole_or_not, folder)
