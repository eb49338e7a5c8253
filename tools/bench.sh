#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits of planning time, then planning and sweeping, measured: a line about the machine,
# then CSV, then what changed since earlier runs, which are kept in bench-history.csv
# (NEAP_BENCH_HISTORY: another file).
#   bench.sh BUILD
set -eu -o pipefail
cd "$(dirname "$0")/.."
neap=$1/neap
# Tests whose limits hold only here, where nothing else runs (tests/time_limit.h).
NEAP_LIMITS=1 meson test -C "$1" --no-rebuild --suite timed --no-suite big --print-errorlogs \
	--num-processes 1 >&2
slow=$(mktemp -d "${TMPDIR:-/var/tmp}/neap-bench-XXXXXX")
trap 'rm -rf "$slow"' EXIT

commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
python3 - "$neap" "$slow" <<'PYTHON' | python3 tools/bench_history.py "${NEAP_BENCH_HISTORY:-bench-history.csv}" "$commit"
import json
import os
import platform
import statistics
import subprocess
import sys

neap, slow = sys.argv[1:]


def ask(*args):
    done = subprocess.run([neap, *args, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
              if line.startswith("model name")), "unknown")
print(f"# {model}, {os.cpu_count()} processors, {platform.system()} {platform.release()}")
print("benchmark,case,strategy,median_seconds,spread,overhead,predicted_seconds,stall_seconds")
for steps, slots in ((1000, 10), (10**6, 10), (10**9, 1000)):
    times = [ask("plan", "--steps", str(steps), "--slots", str(slots), "--strategy",
                 "revolve")["plans"][0]["plan_seconds"] for _ in range(5)]
    middle = statistics.median(times)
    print(f"plan,T={steps} slots={slots},revolve,{middle:.3g},"
          f"{(max(times) - min(times)) / middle:.2f},,,")
for steps, memory in ((1000, "256K"), (10000, "512K")):
    data = f"randman:steps={steps},samples=32"
    result = ask("compare", data, "--memory", memory, "--slow", slow, "--repeats", "5")
    for run in result["runs"]:
        name = "reference" if run.get("role") == "reference" else run["strategy"]
        if run["grad_hash"] is None:
            continue
        over = "" if run["overhead"] is None else f"{run['overhead']:.3f}"
        print(f"sweep,T={result['steps']} memory={memory},{name},{run['seconds']:.4g},"
              f"{run['spread']:.2f},{over},{run['predicted']:.4g},{run['stall_measured']:.3g}")
PYTHON
