# SPDX-License-Identifier: Apache-2.0
"""bench/learn: a row runs from end to end and continues from its results; its verdict follows from the scores."""
import json
import math
import os
import sys
import tempfile

from peers import SOURCE, check, finish, parses_all, run, torch

LEARN = os.path.join(SOURCE, "bench", "learn")


def scores(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def quick(python, folder):
    """GRU and LSTM of neap and PyTorch; then the same command without the last score trains that one alone."""
    out = os.path.join(folder, "scores")
    command = [python, os.path.join(LEARN, "beside_torch.py"), "line", "--cell", "gru", "--cell", "lstm", "--quick",
               "--seeds", "1", "--jobs", "1", "--results", out]
    done = run(*command)
    if done.returncode != 0:
        return done.stderr
    first = scores(out)
    programs = [unit["program"].split()[0] for unit in first]
    whole = all(0 < unit["score"] < 1000 for unit in first)
    if sorted(programs) != ["PyTorch", "PyTorch", "neap", "neap"] or not whole:
        return f"scores: {first}"
    if done.stdout.count("| y = 2x + 1, per step |") != 2 or done.stdout.count("lower is better") != 2:
        return f"table: {done.stdout}"
    with open(out, "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(unit) + "\n" for unit in first[:-1]))
    again = run(*command)
    if "[1/1]" not in again.stderr or scores(out)[:-1] != first[:-1] or again.stdout != done.stdout:
        return f"did not continue: {again.stderr}{again.stdout}"
    return None


def verdict():
    """More than three standard errors worse fails, in the direction in which the measure is worse."""
    sys.path.insert(0, LEARN)
    from score_table import advantage, line, mean_and_error
    ours, theirs = [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]  # errors of 1/sqrt(3) each: the difference is 1 of sqrt(2/3)
    if not math.isclose(mean_and_error(ours)[1], 1 / math.sqrt(3)):
        return f"standard error: {mean_and_error(ours)}"
    if not math.isclose(advantage(ours, theirs, True), -math.sqrt(1.5)) or advantage(ours, theirs, False) < 0:
        return f"difference: {advantage(ours, theirs, True)}"
    if advantage([1.0], [1.0], True) != 0 or advantage([1.0], [2.0], True) != -math.inf:
        return "without an error"

    class Problem:
        measure = "mse"
        higher_is_better = False
    far = [value + 4 for value in ours]
    if line("x", "gru", Problem, far, ours, "y")[1] or not line("x", "gru", Problem, ours, far, "y")[1]:
        return "a larger squared error passes, or a smaller one fails"
    return None


def refuses(python):
    done = run(python, os.path.join(LEARN, "beside_torch.py"), "lines")
    last = done.stderr.strip().splitlines()[-1]
    return None if done.returncode == 2 and "'lines' is not a data set; choose from vowels, " in last else done.stderr


def main():
    parses_all(LEARN)
    check("three standard errors", verdict())
    python = torch()
    missing = None if python else "no interpreter with PyTorch and NumPy"
    check("an unknown row", refuses(python) if python else None, missing)
    with tempfile.TemporaryDirectory() as folder:
        check("a row trains, and continues", quick(python, folder) if python else None, missing)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
