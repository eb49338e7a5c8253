#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The include law: a file includes public headers, its own floor and lower ones.
# Prints every breach and exits 1 if there is one.
set -u
cd "$(dirname "$0")/.." || exit 2

# folder:floors it may include besides its own
law='
base:
sys:base
plan:base
kern:base sys
store:base sys
nn:base sys kern
data:base sys
sweep:base sys plan store
train:base sys kern nn data sweep plan store
cuda:base sys kern nn data sweep plan store train
mpi:base sys kern nn data sweep plan store train
bench:base sys kern nn data sweep plan store train
study:base sys kern nn data sweep plan store train
'
status=0
for row in $(printf '%s' "$law" | tr ' ' ','); do
	folder=${row%%:*}
	allowed=$(printf '%s' "${row#*:}" | tr ',' ' ')
	[ -d "src/$folder" ] || continue
	for include in $(grep -rhoE '^#[[:space:]]*include "[^"]+"' "src/$folder" | sed 's/.*"\(.*\)"/\1/' | sort -u); do
		floor=${include%%/*}
		ok=0
		[ "$floor" = "$include" ] && continue # beside the file
		for name in $folder $allowed; do
			[ "$floor" = "$name" ] && ok=1
		done
		if [ $ok = 0 ]; then
			grep -rnF "\"$include\"" "src/$folder" | sed "s|^|floors: |; s|\$| -- $folder/ may include: $folder $allowed|"
			status=1
		fi
	done
done

# The planner is pure: no files, clocks, threads, environment.
if grep -rnE '#[[:space:]]*include <(pthread|time|sys/|unistd|fcntl|threads|omp)' src/plan src/base; then
	echo "floors: src/plan and src/base are pure: no files, clocks, threads"
	status=1
fi
if grep -rnE '\b(fopen|getenv|printf)\(' src/plan; then
	echo "floors: src/plan is pure: no files, no environment, no printing"
	status=1
fi
# Networks know nothing of checkpoints.
if grep -rniE 'checkpoint' src/nn src/kern src/data; then
	echo "floors: src/nn, src/kern and src/data know nothing of checkpoints"
	status=1
fi
# Above the libraries: public headers only.
if grep -rnE '#[[:space:]]*include "(base|sys|plan|store|kern|nn|data|sweep|train|bench|study)/' cli examples bench; then
	echo "floors: cli/, examples/ and bench/ include public headers only"
	status=1
fi
# Printing and exiting are not a library's business.
if grep -rnE '\b(exit|abort)\(' src; then
	echo "floors: a library does not exit"
	status=1
fi
[ $status = 0 ] && echo "floors: the include law holds"
exit $status
