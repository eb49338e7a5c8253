#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts cases in a JUnit file of `meson test`: passed, failed, skipped.

The names of those that failed follow, a line each, with the first lines of what they said.
"""
import sys
import xml.etree.ElementTree as tree

SAID = 12
passed = failed = skipped = 0
names = []
try:
    for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
        wrong = case.find("failure")
        if wrong is None:
            wrong = case.find("error")
        if wrong is not None:
            failed += 1
            names.append(f"FAILED: {case.get('classname', '')} {case.get('name')}")
            said = (wrong.get("message") or "") + "\n" + (wrong.text or "")
            names += ["    " + line for line in said.splitlines() if line.strip()][:SAID]
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
