#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Memory and time of the functions that a page of docs/ defines, as a table in Markdown. Each function runs in its own
process on one core: the Python blocks of the page except the last one are executed, and the function is called with the
page's inputs x, once to import, compile and measure, then TIMED times.
    side_by_side.py PAGE FUNCTION[:ARGUMENT] [FUNCTION[:ARGUMENT]...]
Memory is the growth of peak resident memory in the later calls; time is the least CPU time of one of them, in the last
column relative to the first function. Python must find neap: install the package, or set PYTHONPATH to the build
folder's python.
"""
import ctypes
import json
import os
import re
import subprocess
import sys
import time

TIMED = 3  # calls; other programs on the machine may disturb one of them


def resident(name):
    """Bytes of this process: VmHWM, its peak, or VmRSS."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def one(page, function, argument):
    """Prints bytes and seconds of one function."""
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)
    names = {"__name__": "page"}
    for block in blocks[:-1]:
        exec(compile(block, page, "exec"), names)
    run, x = names[function], names["x"]
    more = [int(argument) if argument.isdigit() else argument] if argument else []
    run(x, *more)
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what the first call freed is not in use
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # VmHWM starts from the present memory
    held = resident("VmRSS")
    seconds = []
    for _ in range(TIMED):
        begin = time.process_time()
        run(x, *more)
        seconds.append(time.process_time() - begin)
    print(json.dumps({"bytes": max(0, resident("VmHWM") - held), "seconds": min(seconds)}))


def main():
    page, first = sys.argv[1], None
    core = min(os.sched_getaffinity(0))
    print("| function | memory | CPU time | relative |\n|---|---|---|---|")
    for word in sys.argv[2:]:
        function, _, argument = word.partition(":")
        done = subprocess.run([sys.executable, __file__, "--one", page, function, argument], stdout=subprocess.PIPE, text=True,
                              check=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        found = json.loads(done.stdout.splitlines()[-1])
        first = first or found["seconds"]
        shown = argument if argument.isdigit() else json.dumps(argument)
        called = f"{function}(x, {shown})" if argument else f"{function}(x)"
        print(f"| `{called}` | {found['bytes'] / 1e6:.0f} MB | {found['seconds']:.2f} s | {found['seconds'] / first:.2f} |",
              flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:5])
    elif len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    else:
        main()
