#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Measured over predicted time of a sweep for strategies that store, recompute or offload, by number of steps, with the default
settings of `neap compare`. The prediction is the one made when the strategy was planned, before its sweeps (`predicted`); the
column "paced" divides by the prediction at the speed of the machine just before and after each sweep (`expected`), for the plan
in force at its end, which the sweep may have replaced ("replans"). The last lines compare `auto` with the fastest of the other strategies. Run it on a machine with nothing else to do.
    predicted.py NEAP [STEPS[:REPEATS[:NET]]]...      exits with 1 where a quotient is beyond LIMIT, or auto beyond AUTO_LIMIT
"""
import json
import os
import subprocess
import sys
import tempfile

LIMIT, AUTO_LIMIT = 1.10, 1.15
STRATEGIES = ["standard", "double", "stream", "async", "auto"]
BATCH, SPIKES = 32, 0.02   # samples; spikes per step that each unit of randman has in all
BYTES_PER_STEP, MOST = 640, 64 << 20   # of the budget: about an eighth of the tapes of 256 units, and at most 64 MiB


def compare(neap, steps, repeats, net, folder):
    data = f"randman:steps={steps},spikes={int(steps * SPIKES)},samples={BATCH}"
    budget = min(max(steps * BYTES_PER_STEP, 4 << 20), MOST)
    chosen = [word for name in STRATEGIES for word in ("--strategy", name)]
    command = [neap, "compare", data, "--scale", "2", "--net", net, "--memory", str(budget), "--slow", folder,
               "--reference-memory", "16G", "--repeats", str(repeats), *chosen, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"predicted.py: {done.stderr}")
    return json.loads(done.stdout)


def table(found):
    missed = False
    for run in found["runs"]:
        name = "store-all" if run.get("role") == "reference" else run["strategy"]
        if "seconds" not in run:
            print(f"  {name:10} does not run")
            continue
        first = run["seconds"] / run["predicted"]
        missed |= not 1 / LIMIT <= first <= LIMIT
        print(f"  {name:10} {run['predicted']:8.3f} s {run['seconds']:8.3f} s {first:6.2f} {run['ratio']:6.2f} "
              f"{100 * run['overhead']:6.1f}% {run['pace']:6.2f} {run['stall_measured']:7.3f} s {run['input_wait']:7.3f} s "
              f"{run['replans']:8}")
    timed = {run["strategy"]: run["seconds"] for run in found["runs"] if "seconds" in run and run.get("role") != "reference"}
    if "auto" not in timed or len(timed) < 2:
        return True
    best = min((name for name in timed if name != "auto"), key=timed.get)
    quotient = timed["auto"] / timed[best]
    print(f"  auto {timed['auto']:.3f} s, best of the others {best} {timed[best]:.3f} s: {quotient:.2f}")
    return missed or quotient > AUTO_LIMIT


def main():
    neap, cases = sys.argv[1], sys.argv[2:] or ["10000:5", "100000:3", "1000000:1:lif:64r,li"]
    missed = False
    with tempfile.TemporaryDirectory(dir=os.environ.get("NEAP_BENCH_DISK", "/var/tmp")) as folder:
        for case in cases:
            steps, repeats, net = (case.split(":", 2) + ["3", "lif:256r,li"][len(case.split(":", 2)) - 1:])[:3]
            found = compare(neap, int(steps), int(repeats), net, folder)
            print(f"T = {steps}, {net}, budget {found['budget'] / 2**20:.0f} MiB, windows of {found['window_steps']} steps, "
                  f"median of {repeats}")
            print(f"  {'strategy':10} {'predicted':>10} {'measured':>10} {'m / p':>6} {'paced':>6} {'over':>7} {'pace':>6} "
                  f"{'stalled':>9} {'inputs':>9} {'replans':>8}", flush=True)
            missed |= table(found)
    return missed


if __name__ == "__main__":
    sys.exit(main())
