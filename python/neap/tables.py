# SPDX-License-Identifier: Apache-2.0
"""Formats plans: the table and the lines of ``neap plan``, and both as HTML."""
import html
import math
from typing import TYPE_CHECKING, List, Sequence, Tuple

from . import show
from .show import show_percent, show_size, show_time

if TYPE_CHECKING:
    from .plans import Plan

SLOWER = 0.0005  # relative to the fastest; a smaller difference counts as equally fast


def show_room(plan: "Plan", value: int) -> str:
    """Formats bytes, or slots."""
    return str(value) if plan.problem.classic else show_size(value)


def show_least(plan: "Plan", value: int) -> str:
    """Formats a budget, rounded up so that the formatted value is sufficient."""
    return str(value) if plan.problem.classic else show.show_least(value)


def show_why(plan: "Plan") -> str:
    """Formats the reason why a plan is infeasible, with its bytes as sizes."""
    return plan.why if plan.problem.classic else show.show_sizes(plan.why)


def show_params(plan: "Plan") -> str:
    return " ".join(f"{name}={value}" for name, value in plan.params.items())


def forward(plan: "Plan") -> float:
    """Number of forward steps, with and without tape, per step of the chain."""
    steps = plan.problem.steps
    return (plan.advance_steps + plan.record_steps) / steps if steps else 0.0


def _comes_before(a: "Plan", b: "Plan", first: int) -> bool:
    """Orders feasible before infeasible, fast before slow, and small budgets before large plans."""
    if a.feasible != b.feasible:
        order = int(b.feasible) - int(a.feasible)
    elif a.feasible:
        order = int(a.seconds > b.seconds * (1 + 1e-12)) - int(b.seconds > a.seconds * (1 + 1e-12))
    elif (a.least == 0) != (b.least == 0):
        order = int(a.least == 0) - int(b.least == 0)
    else:
        order = int(a.least > b.least) - int(a.least < b.least)
    return order < first


def sort(plans: Sequence["Plan"]) -> List["Plan"]:
    """Sorts the fastest plan first. Equal plans stay in the order of strategies, with ``auto`` before them."""
    rows: List["Plan"] = []
    for plan in plans:
        at = len(rows)
        while at > 0 and _comes_before(plan, rows[at - 1], plan.strategy == "auto"):
            at -= 1
        rows.insert(at, plan)
    return rows


def _waited_for(plan: "Plan") -> str:
    """The tier that the plan waits for: its own, or the one with the most bytes transferred."""
    moved = [use.written + use.read for use in plan.tiers]
    at = plan.tier - 1 if plan.tier > 0 else moved.index(max(moved))
    return plan.problem.tiers[at]


def _why_slower(plan: "Plan", best: "Plan") -> str:
    more = plan.seconds - best.seconds
    if more <= SLOWER * best.seconds:
        return "as fast"
    slower = show_percent(more / best.seconds if best.seconds > 0 else math.inf) + " slower: "
    if plan.tiers and plan.stall - best.stall > 0.5 * more:
        return slower + "waits for %.16s %.0f%%" % (_waited_for(plan), 100 * plan.stall / plan.seconds)
    if plan.lost - best.lost > 0.5 * more:
        return slower + "loses %.0f%% to transfers" % (100 * plan.lost / plan.seconds)
    if forward(plan) > forward(best):
        return slower + "recomputes %.2gx" % (plan.advance_steps / plan.problem.steps)
    return slower + "copies states"


# Remedies, by the beginning of the reason.
_HINTS = {"needs a slow tier": ": pass slow=", "needs a log": ": pass log=",
          "needs bytes": ": pass memory=, state= and tape=, not slots=",
          "needs a uniform chain": ": the stages differ"}


def _hint(why: str) -> str:
    return next((hint for begin, hint in _HINTS.items() if why.startswith(begin)), "")


def why_not(plan: "Plan", best: "Plan") -> str:
    """The reason why a plan is not the best: what makes it slower, or the budget that it needs."""
    if plan.feasible:
        return _why_slower(plan, best)
    if plan.least:
        return f"needs {show_least(plan, plan.least)}{' slots' if plan.problem.classic else ''}"
    return plan.why[:60] + _hint(plan.why)


Row = Tuple[bool, str, List[str], str]


def rows_of(plans: Sequence["Plan"]) -> Tuple[List[Row], "Plan"]:
    """Returns a row (is it the best, strategy, cells, why not) for each plan, and the best plan."""
    found, table = sort(plans), []
    best = found[0]
    for plan in found:
        chosen = best.feasible and (plan is best or plan.strategy == best.chosen)
        why = show_params(plan) if chosen else why_not(plan, best)
        cells = [] if not plan.feasible else [
            show_room(plan, plan.peak), show_room(plan, plan.slow) if plan.slow else "-",
            "%.2f" % forward(plan), show_time(plan.seconds), show_percent(plan.overhead),
            show_percent(plan.gap)]
        table.append((chosen, plan.strategy, cells, why))
    return table, best


def _heads(best: "Plan") -> List[str]:
    return ["slots" if best.problem.classic else "peak", "slow", "forward", "makespan", "overhead",
            "gap"]


def _bounds(best: "Plan") -> List[str]:
    lines = [f"bound: no schedule is faster than {show_time(best.bound)}"]
    if best.estimate > best.bound:
        lines.append(f"estimate: the expected minimum, not proved, is {show_time(best.estimate)}")
    return lines


def table(plans: Sequence["Plan"]) -> str:
    """The table of all strategies, as ``neap plan`` prints it."""
    rows, best = rows_of(plans)
    lines = ["  %-13s %9s %9s %7s %9s %9s %8s  why not" % ("strategy", *_heads(best))]
    for chosen, strategy, cells, why in rows:
        if not cells:
            lines.append("  %-13s %s" % (strategy, why))
            continue
        line = "%s %-13s %9s %9s %7s %9s %9s %8s" % ("*" if chosen else " ", strategy, *cells)
        lines.append(f"{line}  {why}" if why else line)
    lines.append("")
    if best.feasible:
        lines.append("* fastest; forward: forward steps per step of the chain")
    lines += _bounds(best)
    return "\n".join(lines)


def html_table(plans: Sequence["Plan"]) -> str:
    """The same table as HTML for a notebook."""
    rows, best = rows_of(plans)
    text = "<table><tr>" + "".join(f"<th>{head}</th>" for head in
                                   ["strategy", *_heads(best), "why not"]) + "</tr>"
    for chosen, strategy, cells, why in rows:
        name = f"<b>{strategy}</b>" if chosen else strategy
        text += f"<tr><td>{name}</td>" + "".join(f"<td>{cell}</td>" for cell in cells or [""] * 6)
        text += f"<td>{html.escape(why)}</td></tr>"
    return text + "</table>" + "".join(f"<p>{line}</p>" for line in _bounds(best))


def _memory(plan: "Plan") -> List[str]:
    budget = plan.problem.raw.memory
    lines = ["peak          %s of %s%s" % (
        show_room(plan, plan.peak), "no limit" if budget == 2**64 - 1 else show_room(plan, budget),
        " slots" if plan.problem.classic else "")]
    for name, use in zip(plan.problem.tiers, plan.tiers):
        if not use.written and not use.read:
            lines.append(f"tier          {name}: not used")
        else:
            lines.append(f"tier          {name}: peak {show_room(plan, use.peak)}, "
                         f"written {show_room(plan, use.written)}, read {show_room(plan, use.read)}")
    return lines


def _time(plan: "Plan") -> List[str]:
    line = f"forward       {plan.advance_steps} steps without tape, {plan.record_steps} with"
    if plan.problem.steps:
        line += ": %.3g per step of the chain" % forward(plan)
    lines = [line, f"makespan      {show_time(plan.seconds)}, {show_time(plan.stall)} of it waiting "
             "for transfers"]
    if plan.lost > 0:
        lines[-1] += f", {show_time(plan.lost)} computing slowed by them"
    if plan.overhead < -0.0005:
        lines.append(f"overhead      none: {show_percent(-plan.overhead)} less time than storing everything")
    else:
        lines.append(f"overhead      {show_percent(plan.overhead)} over storing everything")
    lines.append(f"bound         {show_time(plan.bound)}: no schedule is faster; gap "
                 f"{show_percent(plan.gap)}")
    if plan.estimate > plan.bound:
        lines.append(f"estimate      {show_time(plan.estimate)}: expected minimum, not proved; gap "
                     f"{show_percent(plan.seconds / plan.estimate - 1)}")
    if plan.model_bound > 0:
        lines.append(f"model bound   {show_time(plan.model_bound)}: no schedule of its own model is "
                     f"faster; gap {show_percent(plan.seconds / plan.model_bound - 1)}")
    return lines


def details(plan: "Plan") -> str:
    """All details of one plan, as ``neap plan --strategy`` prints them."""
    about = plan.about
    lines = [f"strategy      {plan.strategy}{': ' if about else ''}{about}"]
    if not plan.feasible:
        lines.append(f"infeasible    {plan.why}{_hint(plan.why)}")
        if plan.least:
            lines.append(f"least         {show_least(plan, plan.least)}"
                         f"{' slots; increase slots=' if plan.problem.classic else '; increase memory='}")
        return "\n".join(lines)
    if plan.chosen != plan.strategy:
        lines.append(f"chosen        {plan.chosen}: {plan.about_chosen}")
    if plan.listed:
        lines.append(f"schedule      a list of {plan.listed} actions")
    if plan.params:
        lines.append(f"parameters    {show_params(plan)}")
    return "\n".join(lines + _memory(plan) + _time(plan))
