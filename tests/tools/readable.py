#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The teaching pages link the terms of the glossary as tools/docs/prose.py requires, no page has more phrases that are hard
to read than tools/docs/phrases.txt records for it, and docstrings describe the parameters that their functions have
(tools/docs/docstrings.py). A page or module that breaks one of these rules is reported."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from harness import SOURCE, Folder, Tap  # noqa: E402

# tool, page, a text, the text that replaces it, the message
BREACHES = [("phrases.py", "docs/concepts.md", "## The idea", "## Computed again, and again", "docs/concepts.md: 'again'"),
            ("phrases.py", "README.md", "# neap\n", "# neap, 2 MB a step\n", "README.md: 'a step'"),
            ("prose.py", "docs/own-data.md", "[step](concepts.md#the-problem)", "step", "docs/own-data.md: 'step' is not a link"),
            ("prose.py", "docs/concepts.md", "**adjoint**", "adjoint", "docs/concepts.md: 'adjoint' is not a link"),
            ("prose.py", "docs/glossary.md", "| sweep |", "| sequence |", "docs/concepts.md: 'sequence' is not a link"),
            ("docstrings.py", "python/neap/torch/layers/modules.py", ":param scale:", ":param factor:", "not a parameter"),
            ("docstrings.py", "python/neap/torch/layers/modules.py", "def __init__(self, inputs: int, units: int, rec",
             "def begin(self, inputs: int, units: int, rec", "no __init__ of its own"),
            ("docstrings.py", "python/neap/sweeps.py", ":param journal:", ":param str journal:", "not a parameter"),
            ("docstrings.py", "python/neap/sweeps.py", ":param record: s", ":param advance: 0; ``record``: s", "needs its own")]


def run(tool, tree):
    arguments = ["--root", tree] if tool == "phrases.py" else [tree]
    return subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "docs", tool), *arguments], capture_output=True,
                          text=True)


def holds(tool, tree):
    done = run(tool, tree)
    return None if done.returncode == 0 else done.stderr + done.stdout


def breach(tree, tool, page, old, new, says):
    path = os.path.join(tree, page)
    with open(path) as file:
        text = file.read()
    assert old in text, f"{page} has no '{old}'"
    with open(path, "w") as file:
        file.write(text.replace(old, new, 1))
    done = run(tool, tree)
    with open(path, "w") as file:
        file.write(text)
    return None if done.returncode == 1 and says in done.stderr else f"exit {done.returncode}: {done.stderr[-300:]}"


with Tap() as tap, Folder() as folder:
    for name in ("docs", "tools/docs", "python/neap"):
        shutil.copytree(os.path.join(SOURCE, name), os.path.join(folder, name))
    for name in ("README.md", "CONTRIBUTING.md"):
        shutil.copy(os.path.join(SOURCE, name), folder)
    tap.run("links to the glossary", holds, "prose.py", folder)
    tap.run("phrases", holds, "phrases.py", SOURCE)
    tap.run("docstrings", holds, "docstrings.py", SOURCE)
    for row in BREACHES:
        tap.run(row[4], breach, folder, *row)
