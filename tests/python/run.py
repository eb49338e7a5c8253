#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs one file of these tests with pytest, by the python that NEAP_PYTHON names, by this python3 or
by the system's, whichever has it, and prints TAP. Where none has pytest, says so and counts as
skipped.
    run.py FILE
"""
import os
import subprocess
import sys

NEEDS = "pytest"


def interpreter():
    named = os.environ.get("NEAP_PYTHON")
    for candidate in ([os.path.abspath(named)] if named else []) + [sys.executable, "/usr/bin/python3"]:
        if subprocess.run([candidate, "-c", f"import {NEEDS}"], stderr=subprocess.DEVNULL).returncode == 0:
            return candidate
    return None


class Tap:
    """Prints a line a test as it ends."""

    def __init__(self):
        self.count = 0

    def pytest_runtest_logreport(self, report):
        if report.when == "teardown" and not report.failed:
            return
        if report.when == "setup" and report.passed:
            return
        self.count += 1
        name = report.nodeid.split("::", 1)[-1].replace("#", "")
        if report.skipped:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
            print(f"ok {self.count} - {name} # SKIP {why}", flush=True)
        elif report.passed:
            print(f"ok {self.count} - {name}", flush=True)
        else:
            print(f"not ok {self.count} - {name}", flush=True)
            sys.stderr.write(f"{report.longrepr}\n")

    def pytest_collectreport(self, report):
        if report.failed:
            self.count += 1
            print(f"not ok {self.count} - {report.nodeid}: cannot be read", flush=True)
            sys.stderr.write(f"{report.longrepr}\n")
        elif report.skipped:
            self.count += 1
            print(f"ok {self.count} - {report.nodeid} # SKIP {report.longrepr[2]}", flush=True)


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
    answer = pytest.main(["-p", "no:terminal", "-p", "no:cacheprovider",
                          "-W", "error", "--rootdir", os.path.dirname(sys.argv[1]), sys.argv[1]],
                         plugins=[tap])
    print(f"1..{tap.count}", flush=True)
    return 0 if answer in (0, 1, 5) else int(answer)


sys.exit(main())
