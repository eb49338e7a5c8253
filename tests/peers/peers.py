# SPDX-License-Identifier: Apache-2.0
"""bench/peers: its scripts parse and tell their options; neap agrees with the system's PyTorch."""
import ast
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.environ["NEAP_SOURCE"]
HELPER = os.environ.get("NEAP_PEERSTEP")
PEERS = os.path.join(SOURCE, "bench", "peers")
PAGE = """
```python
x = [1]

def small(x):
    pass

def large(x, size):
    b"x" * size
```
```python
raise SystemExit("the last block is not executed")
```
"""
count = failed = 0


def check(name, problem=None, skip=None):
    global count, failed
    count += 1
    failed += problem is not None
    print(f"{'not ok' if problem else 'ok'} {count} - {name}" + (f" # SKIP {skip}" if skip else ""), flush=True)
    if problem:
        print("# " + str(problem).replace("\n", "\n# "), flush=True)


def run(*command, **more):
    quiet = dict(os.environ, OMP_WAIT_POLICY="passive")  # threads of PyTorch wait asleep
    return subprocess.run(command, env=quiet, capture_output=True, text=True, timeout=200, errors="replace",
                          stdin=subprocess.DEVNULL, check=False, **more)


def parses(path):
    with open(path, encoding="utf-8") as file:
        try:
            ast.parse(file.read())
        except SyntaxError as error:
            return str(error)
    return None


def torch():
    """An interpreter with PyTorch and NumPy, or None."""
    for python in (sys.executable, "/usr/bin/python3"):
        probe = "import importlib.util as u; assert u.find_spec('torch') and u.find_spec('numpy')"
        if os.path.exists(python) and run(python, "-c", probe).returncode == 0:
            return python
    return None


def agrees(python, framework, folder):
    """Loss and gradients of a short sequence, in double precision, at two sizes of threads; the
    same again goes on where a row was cut short, and measures that one alone."""
    out = os.path.join(folder, "rows")
    command = [python, os.path.join(PEERS, "beside.py"), "--helper", HELPER, "--only", framework, "--case", "LIF",
               "--steps", "120", "--hidden", "64", "--batch", "8", "--rounds", "1", "--fraction", "10",
               "--ways", "eager", "--rows", out]
    done = run(*command)
    if done.returncode != 0:
        return done.stderr
    with open(out, encoding="utf-8") as file:
        text = file.read()
    rows = [json.loads(line) for line in text.splitlines()]
    if [row["what"] for row in rows] != ["check", "time", "time", "time"]:
        return f"rows: {text}{done.stderr}"
    check = rows[0]["check"]
    if not check["agrees"] or check["tensors"] != 5:
        return f"{rows[0]['name']}: {check}"
    for row in rows[1:]:
        if not row["growth"] > row["neap_growth"] > 0:
            return f"memory: {row['growth']} beside {row['neap_growth']}"
        if not row["spikes"] > 0 or not row["support"] > 0:
            return f"a silent network: {row['spikes']}"
    with open(out, "w", encoding="utf-8") as file:
        file.write(text[:-20])
    again = run(*command)
    with open(out, encoding="utf-8") as file:
        lines = file.read().splitlines()
    if again.returncode != 0 or len(lines) != 5 or lines[:3] != text.splitlines()[:3]:
        return f"did not go on: {len(lines)} lines, {again.stderr}"
    return None if again.stdout.count("| PyTorch") == 3 else f"the table: {again.stdout}"


def sees_a_difference(python):
    """What agree.py calls different."""
    done = run(python, "-c", "import numpy, agree; x = numpy.ones(9); print(agree.difference(x, x * (1 + 2e-4)))",
               cwd=PEERS)
    return None if done.returncode == 0 and 1.9e-4 < float(done.stdout) < 2.1e-4 else done.stdout + done.stderr


def measures_a_page(folder):
    """None, or how side_by_side.py differs on a page of which one function stores 50 MB more than the other."""
    page = os.path.join(folder, "page.md")
    with open(page, "w", encoding="utf-8") as file:
        file.write(PAGE)
    done = run(sys.executable, "bench/peers/side_by_side.py", page, "small", "large:50000000", cwd=SOURCE)
    found = re.findall(r"^\| `(.*?)` \| (\d+) MB \|", done.stdout, re.MULTILINE)
    if done.returncode != 0 or [name for name, _ in found] != ["small(x)", "large(x, 50000000)"]:
        return done.stdout + done.stderr
    return None if 45 < int(found[1][1]) - int(found[0][1]) < 60 else done.stdout


def parses_all(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.py"))):
        check(os.path.basename(path) + " parses", parses(path))


def finish():
    print(f"1..{count}")
    return failed != 0


def main():
    parses_all(PEERS)
    for script in (["bench/peers/run.sh"], [sys.executable, "bench/peers/beside.py"],
                   [sys.executable, "bench/peers/peer.py"]):
        done = run(*script, "--help", cwd=SOURCE)
        check(script[-1] + " --help", None if done.returncode == 0 and "--" in done.stdout + "--" else done.stderr)
    python = torch()
    missing = None if python else "no interpreter with PyTorch and NumPy"
    with tempfile.TemporaryDirectory() as folder:
        check("memory of the functions of a page", measures_a_page(folder))
        check("PyTorch's loss and gradients are neap's", agrees(python, "torch", folder) if python else None, missing)
    check("two ten-thousandths are a difference", sees_a_difference(python) if python else None, missing)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
