#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs the tests that belong to the files that changed, within about a minute (`make check-fast`).

    affected.py BUILD [--since COMMIT] [--files PATH ...] [--list]

Files that changed are those that differ from COMMIT (default: HEAD) and those that git does not know yet; if there
are none, those of the last commit. --files gives them instead; --list prints the names of the tests and runs none.
Tests that would take too long by what they took before are left out and named; `make check` runs them.
"""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# Folders of the tree, and the folders of tests/ whose programs belong to their files. The longest folder applies.
TESTS = {
    "src/base": ["base", "plan", "store"],
    "src/sys": ["base", "store"],
    "src/plan": ["plan", "fuzz"],
    "src/store": ["store", "sweep"],
    "src/sweep": ["sweep", "store"],
    "src/kern": ["kern", "nn"],
    "src/nn": ["nn", "kern", "train"],
    "src/device": ["device", "cuda"],
    "src/cuda": ["cuda", "device"],
    "src/ranks": ["train"],
    "src/data": ["data"],
    "src/measure": ["train"],
    "src/train": ["train"],
    "include": ["compat", "base"],
    "bench": ["peers"],
}
# Folders or files, and tests by name (a name that ends in * stands for all that begin so).
COMMANDS = {
    "src/train": ["cli_train", "cli_names_agree"],
    "src/train/answers": ["cli_train", "cli_answers", "cli_answer_files", "cli_advice"],
    "src/train/nir": ["cli_train", "python_nir"],
    "src/train/reports": ["cli_train", "cli_train_warnings", "cli_reports", "cli_rates"],
    "src/train/batch_planning.c": ["cli_train", "cli_late"],
    "src/measure": ["cli_mistakes", "cli_compare", "cli_calibrate", "cli_late", "cli_memory_total"],
    "src/data": ["cli_train"],
    "src/data/coding": ["cli_train", "cli_codings"],
    "src/data/events": ["cli_train", "cli_events", "cli_event_files"],
    "src/data/tables": ["cli_train", "cli_tables", "cli_rows"],
    "src/sweep/trace": ["cli_trace", "cli_traces"],
    "src/store": ["cli_late"],
    "include": ["python_library", "laws"],
    "cli": ["cli_help", "cli_saved", "cli_mistakes", "cli_slips_runs"],
    "apps/study": ["cli_study"],
    "apps/bench": ["cli_bench"],
    "bench": ["laws"],
    "benchmarks": ["cli_planning"],
    "examples": ["cli_examples"],
    "man": ["cli_help"],
    "python": ["python_library", "python_plans", "python_sweep", "python_units"],
    "python/neap/group_plans.py": ["python_scan_choice"],
    "python/neap/performer.py": ["python_player", "python_torch_sequential"],
    "python/neap/torch": ["python_torch*"],
    "python/neap/jax": ["python_jax*"],
    "docs": ["readable", "cli_readme", "cli_documents"],
    "README.md": ["readable", "cli_readme", "cli_documents"],
    "CHANGELOG.md": ["readable"],
    "tools": ["laws", "readable", "abi"],
}
OTHERS = ["laws", "abi", "test_base"]  # of files that no row names, such as meson.build
SECONDS = 40  # of the chosen tests together, on as many processors as there are; measured by their last runs
UNKNOWN = 4   # seconds of a test that has not run yet: chosen, two thirds of all take less


def introspected(build):
    """The tests of a build folder as Meson describes them, but for the long ones."""
    command = ["meson", "introspect", "--tests", build]
    rows = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return [row for row in rows if not {"big", "engines"} & {suite.split(":")[-1] for suite in row["suite"]}]


def row_of(table, path):
    """The row of the longest folder that the path is in."""
    folders = [folder for folder in table if path == folder or path.startswith(folder + "/")]
    return table[max(folders, key=len)] if folders else []


def names_of_folder(rows, folder):
    """The tests whose program or script is in tests/FOLDER."""
    return {row["name"] for row in rows if any(f"/tests/{folder}/" in part for part in row["cmd"])}


def names_of_commands(rows, path):
    """The tests that COMMANDS names for a file."""
    wanted = row_of(COMMANDS, path)
    return {row["name"] for row in rows for name in wanted
            if row["name"] == name or name.endswith("*") and row["name"].startswith(name[:-1])}


def names_of(rows, path):
    """The tests that belong to a file of the tree."""
    stem = os.path.splitext(os.path.basename(path))[0]
    others = {row["name"] for row in rows} & set(OTHERS)
    if path.startswith("tests/") and path.count("/") > 1:  # its own program, or all that may share it
        folder = path.split("/")[1]
        program = re.compile(rf"/tests/{folder}/{re.escape(stem)}(\.py)?$")
        own = {row["name"] for row in rows if any(program.search(part) for part in row["cmd"])}
        return own or names_of_folder(rows, folder) or others
    found = {name for folder in row_of(TESTS, path) for name in names_of_folder(rows, folder)}
    same = {stem, "test_" + stem, "cli_" + stem, "python_" + stem}
    found |= names_of_commands(rows, path) | {row["name"] for row in rows} & same
    return found or others


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")


def changed_files(since):
    files = git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard")
    return sorted(filter(None, files)) or sorted(filter(None, git("diff", "--name-only", "HEAD~1")))


def known_seconds(build):
    """Seconds of each test when it last ran, from BUILD/seconds.json and the log of the last run."""
    path, log = os.path.join(build, "seconds.json"), os.path.join(build, "meson-logs", "testlog.json")
    seconds = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            seconds = json.load(file)
    if os.path.exists(log):
        with open(log, encoding="utf-8") as file:
            for row in map(json.loads, file):
                seconds[row["name"].split(" / ")[-1]] = row["duration"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(seconds, file)
    return seconds


def fitting(names, seconds, most):
    """The names, quick ones first, as far as they take `most` seconds together; and the others."""
    chosen, left, total = [], [], 0.0
    for name in sorted(names, key=lambda name: (seconds.get(name, UNKNOWN), name)):
        total += seconds.get(name, UNKNOWN)
        (chosen if total <= most else left).append(name)
    return chosen, left


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("build")
    parse.add_argument("--since", default="HEAD")
    parse.add_argument("--files", nargs="+")
    parse.add_argument("--list", action="store_true")
    o = parse.parse_args()
    files = o.files or changed_files(o.since)
    rows = introspected(o.build)
    names = {name for path in files for name in names_of(rows, path)}
    if o.list:
        print("\n".join(sorted(names)))
        return 0
    chosen, left = fitting(names, known_seconds(o.build), SECONDS * (os.cpu_count() or 1))
    failed = [tool for tool in ("floors.py", "names.py")
              if subprocess.run([os.path.join(ROOT, "tools", tool)], check=False).returncode]
    tests = ["meson", "test", "-C", o.build, "--print-errorlogs", *chosen]
    failed += ["tests"] if subprocess.run(tests, check=False).returncode else []
    known_seconds(o.build)
    print(f"{len(files)} changed file{'s' * (len(files) != 1)}, {len(chosen)} of {len(names)} tests that belong to them")
    if left:
        print("left out, since they take too long: " + ", ".join(left))
    if failed:
        print("FAILED: " + ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
