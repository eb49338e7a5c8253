#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The optimality gap of the plans of `auto`: makespan compared with the lower bound, in 945 settings of a chain and a disk.

A forward step takes 1 s, whether or not it saves its tape. Fast memory and the size of a tape are given in states. Writing or
reading a state takes `tau` seconds; writes and reads can overlap. Prints the mean, median and largest gap in percent, for all
settings and for each memory size. Nothing is timed, so the numbers are the same on every machine. Exit code 1 if a plan is faster
than the bound.

    gaps.py [NEAP [MEMORY...]]    NEAP: the tool (default build/neap); MEMORY: memory sizes in states (default: all)
"""
import itertools
import json
import statistics
import subprocess
import sys

STATE = 1000000  # bytes
STEPS = (1000, 10000, 100000)
MEMORY = (10, 20, 50, 100, 200, 500, 1000)
TAPE = (0.3, 1, 3)
BYTES_A_SECOND = (100000, 33000, 10000, 3000, 1000)  # tau: 10, 30.3, 100, 333, 1000
BACKWARD = (1, 2, 4)


def gap(neap, steps, memory, tape, rate, backward):
    """The gap in percent, None if no plan fits."""
    command = [neap, "plan", "--strategy", "auto", "--json", "--steps", steps, "--state", STATE,
               "--tape", int(tape * STATE), "--adjoint", 0, "--memory", memory * STATE, "--advance", 1,
               "--record", 1, "--backward", backward, "--tier", f"disk:write={rate},read={rate},duplex"]
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except OSError as error:
        sys.exit(f"gaps: {error}")
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    plan = json.loads(done.stdout)["plans"][0]
    return 100 * plan["gap"] if plan["feasible"] else None


def show(name, gaps):
    print(f"| {name} | {len(gaps)} | {statistics.mean(gaps):.2f} | {statistics.median(gaps):.2f} | {max(gaps):.2f} |",
          flush=True)


def main():
    if "--help" in sys.argv[1:]:
        print(__doc__.strip())
        return
    neap = sys.argv[1] if len(sys.argv) > 1 else "build/neap"
    every = []
    print("| memory | settings | mean | median | largest |\n|---|---|---|---|---|")
    for memory in [int(word) for word in sys.argv[2:]] or MEMORY:
        found = [gap(neap, steps, memory, *rest)
                 for steps, *rest in itertools.product(STEPS, TAPE, BYTES_A_SECOND, BACKWARD)]
        here = [x for x in found if x is not None]
        show(memory, here)
        every += here
    show("all", every)
    if min(every) < -1e-7:  # percent; rounding of the makespan
        sys.exit(f"gaps: a plan is {-min(every):.3g}% faster than the bound")


main()
