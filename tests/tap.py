#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Runs a test program and passes its TAP on. cmocka calls a skipped case "not ok",
which counts as failed; here it becomes "ok ... # SKIP" with the reason, the last
comment printed before it.
"""
import re
import subprocess
import sys

program = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True, errors="replace")
reason = "no reason given"
for line in program.stdout:
    if line.startswith("# "):
        reason = line[2:].strip().removeprefix("SKIP").strip() or reason
    skipped = re.match(r"not ok (\d+) # SKIP (\S+)", line)
    if skipped:
        line = f"ok {skipped.group(1)} - {skipped.group(2)} # SKIP {reason}\n"
    sys.stdout.write(line)
    sys.stdout.flush()
sys.exit(program.wait())
