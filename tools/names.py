#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
One word, one thing: no file name stands twice in src/, cli/ and apps/ (NAME.c and NAME.h
count as one), no struct, union or enum tag is defined twice there or in include/, and no
folder grows beyond FOLDER_MAX files, no file beyond FILE_LINES_MAX lines. Every C file, tests
and examples too, and every file of the Python package and its tests says at its head what it is
for. Prints every breach and exits 1 if there is one.
    names.py [FOLDER_OF_THE_PROJECT]
"""
import collections
import os
import re
import sys

FOLDER_MAX = 36
FILE_LINES_MAX = 900
TAG = re.compile(r"^[^*/\n]*?\b(struct|union|enum)\s+([A-Za-z_]\w*)\s*\{", re.MULTILINE)

os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
stems = collections.defaultdict(set)
tags = collections.defaultdict(list)
breaches = []
for top in ("src", "apps", "cli", "include", "tests", "examples", "bench", "python"):
    for folder, _, names in sorted(os.walk(top)):
        if top != "tests" and len(names) > FOLDER_MAX:
            breaches.append(f"{folder}: {len(names)} files, {FOLDER_MAX} at most")
        for name in sorted(names):
            stem, end = os.path.splitext(name)
            python = end == ".py" and folder.split("/")[0:2] in (["python"], ["python", "neap"], ["tests", "python"])
            if end not in (".c", ".h", ".k") and not python:
                continue
            path = os.path.join(folder, name)
            with open(path) as file:
                text = file.read()
            head = r'(#!.*\n)?# SPDX.*\n"""' if python else r"/\* SPDX[^\n]*\n/\*"
            if not re.match(head, text):
                breaches.append(f"{path}: no comment at its head says what the file is for")
            lines = text.count("\n")
            if lines > FILE_LINES_MAX:
                breaches.append(f"{path}: {lines} lines, {FILE_LINES_MAX} at most")
            if top in ("tests", "examples", "bench") or python:
                continue
            if top != "include":
                stems[stem].add(folder)
            for match in TAG.finditer(text):
                tags[match.group(2)].append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}")
for stem, folders in stems.items():
    if len(folders) > 1:
        breaches.append(f"{stem}: a file of that name in {', '.join(sorted(folders))}")
for tag, places in tags.items():
    if len(places) > 1:
        breaches.append(f"{tag}: a tag defined at {', '.join(places)}")
for breach in breaches:
    print(f"names: {breach}")
if breaches:
    sys.exit(1)
print(f"names: {len(stems)} file names and {len(tags)} tags, each stands once")
