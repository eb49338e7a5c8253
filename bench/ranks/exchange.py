#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Communication time of training with several ranks, predicted and measured. exchange.c measures the time per message, alpha,
and the bandwidth in bytes per second, beta, of this machine and its MPI library. From these, `neap plan --ranks` predicts the
communication time of a batch, which is compared with a run of `neap train`. Prints one line per network; exits with 1 if an
error exceeds LIMIT. If ranks share processors, the scheduler is measured instead: use one processor per rank.
    exchange.py [BUILD [RANKS]]       NEAP_MPIRUN, NEAP_MPICC: launcher and compiler
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 0.25
GROUP, RUNS = 8, 3
# (hidden units, batch size): small exchanges, dominated by the number of messages, and large ones, dominated by bytes.
NETS = ((64, 64), (512, 64), (1024, 32))
INPUTS, CLASSES, STEPS, EPOCHS, BATCHES = 100, 10, 40, 20, 8
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


def tool(variable, *names):
    found = os.environ.get(variable) or next(filter(None, map(shutil.which, names)), None)
    if not found:
        sys.exit(f"exchange.py: {names[-1]} was not found. Install it, or set {variable} to its path")
    return found


def run(*command):
    done = subprocess.run([str(word) for word in command], env=dict(os.environ, **ENV),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"exchange.py: {' '.join(map(str, command))}: {done.stderr.strip()[-400:]}")
    return done.stdout


def predicted(neap, ranks, found, units, batch):
    parameters = INPUTS * units + units * units + units + units * CLASSES + CLASSES
    report = run(neap, "plan", "--steps", STEPS, "--state", "1K", "--tape", "1K", "--memory", "1M",
                 "--strategy", "bptt", "--ranks", ranks, "--alpha", f"{found['alpha']:.9f}s", "--beta",
                 f"{found['rate']:.0f}/s", "--parameters", parameters, "--units", units, "--batch",
                 batch, "--group", GROUP, "--json")
    return json.loads(report)["plans"][0]["ranks"]


def measured(mpirun, neap, ranks, units, batch, folder):
    """The `exchange` report of the run with the median time of RUNS."""
    data = f"randman:part=train,classes={CLASSES},units={INPUTS},samples={batch * BATCHES}," \
           f"steps={STEPS}"
    found = []
    for i in range(RUNS):
        out = os.path.join(folder, f"run{units}-{i}")
        report = run(mpirun, "-n", ranks, neap, "train", data, "--net", f"lif:{units}r,li", "--batch",
                     batch, "--group", GROUP, "--epochs", EPOCHS, "--validation", 0, "--threads", 1,
                     "--memory", "64M", "--out", out, "--json", "-q")
        found.append(json.loads(report)["exchange"])
    return sorted(found, key=lambda e: e["seconds"])[RUNS // 2]


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "../../build"))
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    neap = os.path.join(build, "neap")
    mpirun = tool("NEAP_MPIRUN", "mpirun.openmpi", "mpirun")
    if len(os.sched_getaffinity(0)) < ranks:
        print(f"# {ranks} ranks on {len(os.sched_getaffinity(0))} processors: they share processors, "
              "so the times are not meaningful")
    off = 0
    with tempfile.TemporaryDirectory(prefix="neap-exchange-", dir="/var/tmp") as folder:
        program = os.path.join(folder, "exchange")
        run(tool("NEAP_MPICC", "mpicc.openmpi", "mpicc"), "-O2", os.path.join(HERE, "exchange.c"), "-o",
            program)
        found = json.loads(run(mpirun, "-n", ranks, program))
        print(f"{ranks} ranks: per message {1e6 * found['alpha']:.2f} us, {found['rate'] / 1e9:.2f} GB/s; "
              f"ping-pong {1e6 * found['ping']:.2f} us, {found['ping_rate'] / 1e9:.2f} GB/s")
        print("units  batch  messages  bytes predicted, measured  us per batch predicted, measured (waited)")
        for units, batch in NETS:
            p = predicted(neap, ranks, found, units, batch)
            m = measured(mpirun, neap, ranks, units, batch, folder)
            exchanged = m["seconds"] / m["batches"]
            error = exchanged / p["exchanged"] - 1
            off += abs(error) > LIMIT
            print(f"{units:5d} {batch:6d} {p['messages']:9d} {p['sent']:16d} "
                  f"{m['sent'] // m['batches']:10d} {1e6 * p['exchanged']:22.1f} {1e6 * exchanged:9.1f} "
                  f"({1e6 * m['waited'] / m['batches']:.1f})  {100 * error:+.0f}%")
    print(f"{off} of {len(NETS)} predictions differ by more than {100 * LIMIT:.0f}%")
    return off > 0


if __name__ == "__main__":
    sys.exit(main())
