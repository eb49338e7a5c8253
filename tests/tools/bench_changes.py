# SPDX-License-Identifier: Apache-2.0
"""The history of `make bench`: rows are appended, and a change is reported if it is larger than the noise."""
import os
import subprocess
import sys
import tempfile

HEAD = "# {}, 2 processors, Linux 6\nbenchmark,case,strategy,median_seconds,spread,overhead,predicted_seconds,stall_seconds\n"
count = failures = 0


def check(name, ok):
    global count, failures
    count += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {name}")


def run(path, seconds, spread=0.01, machine="CPU"):
    rows = HEAD.format(machine) + f"sweep,T=10 memory=2M,auto,{seconds},{spread},,1,0\nplan,T=5,revolve,1.0,0.01,,,\n"
    tool = os.path.join(os.environ["NEAP_SOURCE"], "tools/bench_history.py")
    done = subprocess.run([sys.executable, tool, path, "abc"], input=rows, capture_output=True, text=True, check=True)
    return rows, done.stdout


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "history.csv")
    rows, out = run(path, 2.0)
    check("the rows are printed as they came", out.startswith(rows))
    check("a first run has nothing to compare", "# no earlier run on this machine" in out)
    check("a change within the noise", "# no row of 2 changed by more than the noise" in run(path, 2.06)[1])
    out = run(path, 2.5)[1]
    check("a slower row", "# sweep T=10 memory=2M auto: 23% slower (2.03 s before, 2.5 s now; noise 5%, 2 earlier runs)" in out)
    check("only this row", out.count("slower") == 1 and "faster" not in out)
    check("what the past varied is noise", "no row of 2 changed" in run(path, 2.3)[1])
    check("so is the spread of the repetitions", "no row of 2 changed" in run(path, 1.7, spread=0.6)[1])
    check("a faster row", "auto: 61% faster" in run(path, 0.8)[1])
    check("another machine is compared with itself", "no earlier run on this machine" in run(path, 9, machine="other")[1])
    lines = open(path, encoding="utf-8").read().splitlines()
    check("one header, two rows a run", len(lines) == 1 + 2 * 7 and lines[0].startswith("time,commit,machine,benchmark"))
    tool = [sys.executable, os.path.join(os.environ["NEAP_SOURCE"], "tools/bench_history.py")]
    with open(path, "a", encoding="utf-8") as file:
        file.write("2026-01-01 00:00:00,abc,CPU, 2 proc")
    done = subprocess.run([*tool, path, "abc"], input=HEAD.format("CPU") + "sweep,T=10", capture_output=True, text=True, check=False)
    check("rows cut off, in the history and in the run, are left out", done.returncode == 0 and not done.stderr)
    done = subprocess.run([*tool, os.path.join(folder, "none", "h.csv"), "abc"], input=rows, capture_output=True, text=True, check=False)
    check("a history that cannot be written: one line", done.returncode == 1 and done.stderr.count("\n") == 1 and "none/h.csv" in done.stderr)
print(f"1..{count}")
sys.exit(failures > 0)
