#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts cases in a JUnit file of `meson test`: passed, failed, skipped."""
import sys
import xml.etree.ElementTree as tree

passed = failed = skipped = 0
try:
    for case in tree.parse(sys.argv[1]).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
except (OSError, tree.ParseError) as problem:
    print(f"count: {problem}", file=sys.stderr)
    failed += 1
print(passed, failed, skipped)
