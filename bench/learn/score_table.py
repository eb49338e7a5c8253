# SPDX-License-Identifier: Apache-2.0
"""Scores of all seeds as a table: mean and standard error of both programs, and their difference in standard errors."""
import math
import statistics

WORST = -3.0  # standard errors of the difference; below, neap's default is called worse
CELLS = {"gru": "GRU", "lstm": "LSTM", "lif": "LIF"}


def mean_and_error(scores):
    """Mean, and its standard error; 0 of a single seed."""
    return statistics.fmean(scores), statistics.stdev(scores) / math.sqrt(len(scores)) if len(scores) > 1 else 0.0


def advantage(ours, theirs, higher_is_better):
    """How much better neap is, in standard errors of the difference; infinite if neither program varies over seeds."""
    (a, of_a), (b, of_b) = mean_and_error(ours), mean_and_error(theirs)
    difference, error = (a - b if higher_is_better else b - a), math.hypot(of_a, of_b)
    if abs(difference) < 1e-9:
        return 0.0
    return difference / error if error > 0 else math.copysign(math.inf, difference)


def shown(measure, scores):
    value, error = mean_and_error(scores)
    if measure == "accuracy":
        return f"{100 * value:.1f} ± {100 * error:.1f}%"
    digits = 1 - math.floor(math.log10(error)) if error > 0 else 3  # the error to two digits
    return f"{value:.{max(digits, 0)}f} ± {error:.{max(digits, 0)}f}"


def line(title, cell, problem, ours, theirs, other):
    """A row of the table, and whether it passes."""
    enough = min(len(ours), len(theirs)) > 1
    difference = advantage(ours, theirs, problem.higher_is_better)
    better = "higher" if problem.higher_is_better else "lower"
    measure = {"accuracy": "accuracy", "mse": "squared error", "nats": "nats per character"}[problem.measure]
    passed = difference >= WORST or not enough
    verdict = ("pass" if passed else "FAIL") if enough else "too few seeds"
    return (f"| {title} | {CELLS[cell]} | {measure}, {better} is better | {shown(problem.measure, ours)} | "
            f"{shown(problem.measure, theirs)} ({other}) | {difference:+.1f} | {verdict} |"), passed


HEAD = ("| data | cell | measure | neap | other program | difference / standard error | verdict |\n"
        "|---|---|---|---|---|---|---|")
