#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Compares the docstrings of python/neap with the signatures that they describe, because the reference of the site takes
types and defaults from the signatures, and its build stops at a row without a parameter:
- each `:param NAME:` is a parameter of the function, or of the class's own `__init__`, and has no type;
- no row also describes another parameter, as in ":param a: one; ``b``: two", because a reader looks for b in a row.
Exits 1 if a docstring differs.
    docstrings.py [FOLDER]
"""
import ast
import glob
import os
import re
import sys

ROW = re.compile(r"^:param\s+([^:]*):(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
SECOND = re.compile(r"(?:;|, and)\s+``(\w+)``(?=:| of )")


def parameters(function):
    """The names of a function's parameters, without self and cls."""
    given = function.args
    names = [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg] if one]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def described(node):
    """The parameters that the docstring of a function or class may describe; None: there is no signature."""
    if isinstance(node, ast.ClassDef):
        node = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    return node and parameters(node)


def findings(tree):
    """What is wrong in a module: lines of (line, name, text)."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        text = ast.get_docstring(node) or ""
        rows = ROW.findall(text)
        names = described(node) if rows else []
        if names is None:
            yield node.lineno, node.name, f"':param {rows[0][0]}:', but the class has no __init__ of its own"
            continue
        for row, words in rows:
            if row not in names:
                yield node.lineno, node.name, f"':param {row}:' is not a parameter: {', '.join(names) or 'it has none'}"
            for second in SECOND.findall(words):
                if second in names:
                    yield node.lineno, node.name, f"the row of {row} describes {second}, which needs its own"


root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
wrong = 0
for path in sorted(glob.glob(os.path.join(root, "python", "neap", "**", "*.py"), recursive=True)):
    with open(path) as file:
        tree = ast.parse(file.read())
    for line, name, text in findings(tree):
        print(f"{os.path.relpath(path, root)}:{line}: {name}: {text}", file=sys.stderr)
        wrong += 1
sys.exit(bool(wrong))
