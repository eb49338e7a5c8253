#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# neap compared with PETSc's TSAdjoint: the gradient of 1,000 Runge-Kutta steps of the Lorenz-96 model with
# 65,536 variables. Prints one line of CSV per run, with the programs in turn, then the median times.
#   bench/ode/run.sh [BUILD [ROUNDS]]      needs petsc-dev and mpi-default-dev (Debian)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-$here/../../build}" && pwd)
rounds=${2:-3}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/neap-ode-XXXXXX")
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
flags="-O3 -march=native"

cc $flags -I"$here/../../include" "$here/lorenz96_neap.c" -o "$work/neap" -L"$build/src" -lneap -lm \
	-Wl,-rpath,"$build/src"
petsc=
if command -v mpicc >/dev/null && pkg-config --exists petsc; then
	# shellcheck disable=SC2046 # words of pkg-config
	mpicc $flags $(pkg-config --cflags petsc) "$here/lorenz96_petsc.c" -o "$work/petsc" \
		$(pkg-config --libs petsc) -lm
	petsc=1
else
	echo "# PETSc is not installed and is skipped; install it with: apt-get install petsc-dev mpi-default-dev" >&2
fi
cd "$work"
echo "run,seconds,peak_MB,gradient,first,second"
for ((i = 0; i < rounds; i++)); do
	if [ -n "$petsc" ]; then
		./petsc "PETSc in memory" -ts_trajectory_type memory
		./petsc "PETSc in memory without stages" -ts_trajectory_type memory -ts_trajectory_solution_only
		./petsc "PETSc to disk" -ts_trajectory_type basic -ts_trajectory_dirname "$work/states"
		rm -rf "$work/states"
	fi
	./neap
	./neap 33000000
	./neap 33000000 "$work"
	./neap 8000000
	./neap 8000000 "$work"
done | tee "$work/rows"
python3 - "$work/rows" <<'PYTHON'
import collections
import statistics
import sys

rows = collections.defaultdict(list)
for line in open(sys.argv[1], encoding="utf-8"):
    name, seconds, peak, gradient, *_ = line.split(",")
    rows[name].append((float(seconds), float(peak), gradient))
print("# median seconds, MB")
for name, runs in rows.items():
    print(f"# {name}: {statistics.median(r[0] for r in runs):.2f} s, {max(r[1] for r in runs):.0f} MB")
lengths = [float(runs[0][2]) for runs in rows.values()]
if max(lengths) - min(lengths) > 1e-9 * max(lengths):
    sys.exit("the gradients differ")
PYTHON
