#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs files of these tests with pytest in one process, by the python that NEAP_PYTHON names, by this python3 or
by the system's, whichever has it, and prints TAP. Where none has pytest, says so and counts as
skipped.
    run.py FILE...
"""
import importlib.util
import os
import subprocess
import sys

NEEDS = "pytest"


def interpreter():
    named = os.environ.get("NEAP_PYTHON")
    for candidate in ([os.path.abspath(named)] if named else []) + [sys.executable, "/usr/bin/python3"]:
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({NEEDS!r}) is None)"  # quicker than an import
        if candidate == sys.executable and importlib.util.find_spec(NEEDS) or \
                candidate != sys.executable and subprocess.run([candidate, "-c", look], stderr=subprocess.DEVNULL).returncode == 0:
            return candidate
    return None


class Tap:
    """Prints a line a test as it ends. What pytest prints itself goes to standard error."""

    def __init__(self):
        self.count = 0
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def line(self, text):
        print(text, file=self.out, flush=True)

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown" and not report.failed:
            return
        if report.when == "setup" and report.passed:
            return
        self.count += 1
        name = report.nodeid.split("::", 1)[-1].replace("#", "")
        if report.skipped:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
            self.line(f"ok {self.count} - {name} # SKIP {why}")
        elif report.passed:
            self.line(f"ok {self.count} - {name}")
        else:
            self.line(f"not ok {self.count} - {name}")

    def pytest_collectreport(self, report):
        if report.failed:
            self.count += 1
            self.line(f"not ok {self.count} - {report.nodeid}: cannot be read")
        elif report.skipped:
            self.count += 1
            self.line(f"ok {self.count} - {report.nodeid} # SKIP {report.longrepr[2]}")


def main():
    found = interpreter()
    if found is None:
        print("1..0 # SKIP no python3 here has pytest: apt-get install python3-pytest", flush=True)
        return 0
    if found != sys.executable:
        os.execv(found, [found, *sys.argv])
    import pytest
    tap = Tap()
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
    answer = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider",
                          "-W", "error", "--rootdir", os.path.dirname(sys.argv[1]), *sys.argv[1:]],
                         plugins=[tap])
    tap.line(f"1..{tap.count}")
    return 0 if answer in (0, 1, 5) else int(answer)


if __name__ == "__main__":  # and not where a test starts processes that import this file again
    sys.exit(main())
