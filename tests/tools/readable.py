#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The teaching pages link the terms of the glossary as tools/docs/prose.py requires; a page with a missing link is reported."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from harness import SOURCE, Folder, Tap  # noqa: E402

# page, a text, the text that replaces it, the message
BREACHES = [("docs/own-data.md", "[step](concepts.md#the-problem)", "step", "docs/own-data.md: 'step' is not a link"),
            ("docs/concepts.md", "**adjoint**", "adjoint", "docs/concepts.md: 'adjoint' is not a link"),
            ("docs/glossary.md", "| sweep |", "| sequence |", "docs/concepts.md: 'sequence' is not a link")]


def run(tree):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "docs", "prose.py"), tree], capture_output=True,
                          text=True)


def holds(tree):
    done = run(tree)
    return None if done.returncode == 0 else done.stderr


def breach(tree, page, old, new, says):
    path = os.path.join(tree, page)
    with open(path) as file:
        text = file.read()
    assert old in text, f"{page} has no '{old}'"
    with open(path, "w") as file:
        file.write(text.replace(old, new, 1))
    done = run(tree)
    with open(path, "w") as file:
        file.write(text)
    return None if done.returncode == 1 and says in done.stderr else f"exit {done.returncode}: {done.stderr[-300:]}"


with Tap() as tap, Folder() as folder:
    shutil.copytree(os.path.join(SOURCE, "docs"), os.path.join(folder, "docs"))
    tap.run("the pages as they are", holds, folder)
    for row in BREACHES:
        tap.run(row[3], breach, folder, *row)
