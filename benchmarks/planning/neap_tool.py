# SPDX-License-Identifier: Apache-2.0
"""Runs neap's command line on problems of the planning benchmark: options, numbers, action lists."""
import json
import subprocess


class Refused(Exception):
    """The tool has no plan for a problem, or cannot be started; the message gives the reason."""


def tier_option(number, tier, by_slot):
    """--tier of a check_plan.Tier."""
    rates = f"write={tier.rate['put']!r},read={tier.rate['get']!r}"
    capacity = "inf" if tier.capacity == float("inf") else tier.capacity
    if by_slot:
        return ["--tier", f"tier{number}:slots={capacity},{rates}"]
    mode = {"sync": "sync", "duplex": "duplex", "one": "async"}[tier.mode]
    return ["--tier", f"tier{number}:capacity={capacity},{rates},latency={tier.latency!r},{mode}"]


def options(question):
    """A check_plan.Question as options of `neap plan`."""
    if question.form == "stages":
        words = ["--chain", question.chain_file, "--memory", question.memory]
    else:
        words = ["--steps", question.steps]
        for key, value in question.seconds.items():
            words += [f"--{key}", repr(value)]
        if question.by_slot:
            words += ["--slots", question.memory, "--slot-write", repr(question.slot_seconds["save"]),
                      "--slot-read", repr(question.slot_seconds["load"])]
        else:
            words += ["--state", question.state, "--tape", question.tape, "--adjoint", question.adjoint,
                      "--memory", question.memory]
    for number, tier in enumerate(question.tiers, 1):
        words += tier_option(number, tier, question.by_slot)
    return [str(word) for word in words]


def plans(neap, question, strategy=None, timeout=600):
    """The output of `neap plan --json` for the problem: a dictionary per strategy."""
    done = run(neap, options(question) + (["--strategy", strategy] if strategy else []) + ["--json"], timeout)
    return json.loads(done)["plans"]


def actions(neap, question, strategy, timeout=600):
    """The plan of a strategy as text, one action per line."""
    return run(neap, [*options(question), "--strategy", strategy, "--actions"], timeout)


def run(neap, words, timeout=600):
    try:
        done = subprocess.run([neap, "plan", *words], capture_output=True, text=True, check=False, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(str(error)) from None
    if done.returncode != 0:
        raise Refused(done.stderr.strip())
    return done.stdout
