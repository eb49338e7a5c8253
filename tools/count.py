#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts cases in a JUnit file of `meson test`: passed, failed, skipped.

The names of those that failed follow, a line each, with the first lines of what they said.
"""
import re
import sys
import xml.etree.ElementTree as tree

SAID = 12


def lines_said(output):
    """What a test of TAP says of each case that does not hold, by the case's number."""
    said, number = {}, None
    for line in (output or "").splitlines():
        found = re.match(r"(not )?ok (\d+)", line)
        if found:
            number = int(found.group(2)) if found.group(1) else None
        elif number is not None and line.startswith("#"):
            said.setdefault(number, []).append(line.lstrip("# "))
    return said


passed = failed = skipped = 0
names = []
try:
    for suite in tree.parse(sys.argv[1]).getroot().iter("testsuite"):
        said = lines_said(suite.findtext("system-out"))
        for number, case in enumerate(suite.iter("testcase"), 1):
            wrong = case.find("failure")
            if wrong is None:
                wrong = case.find("error")
            if wrong is not None:
                failed += 1
                names.append(f"FAILED: {case.get('classname', '')} {case.get('name')}")
                own = ((wrong.get("message") or "") + "\n" + (wrong.text or "")).splitlines()
                lines = [line for line in own + said.get(number, []) if line.strip()]
                names += ["    " + line[:500] for line in lines[:SAID]]
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
except (OSError, tree.ParseError) as problem:
    print(f"count: {problem}", file=sys.stderr)
    failed += 1
print(passed, failed, skipped)
for name in names:
    print(name)
