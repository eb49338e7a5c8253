# SPDX-License-Identifier: Apache-2.0
"""examples/08_adaptive.c, whose steps are chosen by their errors: its gradient is that of SUNDIALS' CVODES."""
import math
import os
import subprocess
import sys
import tempfile

EXAMPLE, PEER = sys.argv[1], sys.argv[2]


def numbers(*command):
    text = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout
    return [float(line) for line in text.split()]


def apart(one, other):
    return math.dist(one, other) / math.hypot(*other)


print("1..2")
if not os.path.exists(PEER):
    for number in (1, 2):
        print(f"ok {number} - the adjoint of CVODES # SKIP libsundials-dev is not installed")
    sys.exit(0)
peer = numbers(PEER, "40", "1e-11")
with tempfile.TemporaryDirectory(dir="/var/tmp") as disk:
    for number, (name, more) in enumerate((("in memory", ()), ("with a disk", ("--disk", disk))), 1):
        error = apart(numbers(EXAMPLE, "--tolerance", "1e-11", "--print", *more), peer)
        print(f"{'ok' if error < 1e-7 else 'not ok'} {number} - the adjoint of CVODES, {name}")
        print(f"# {error:.2g} of its length apart")
