#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A virtual environment with the newest packages that the Python tests and examples run on: PyTorch, snnTorch,
# SpikingJelly, Norse, NIR, JAX, checkpoint_schedules, pyadjoint, NumPy, h5py, matplotlib, pytest. What is there is left as it is.
# Wants the network, or an index of packages, and 7 GB of disk.
#   frameworks.sh FOLDER    makes it; prints its interpreter. Exits 1, with the reason, where pip cannot.
set -eu
folder=$1
packages="torch numpy pytest checkpoint_schedules pyadjoint-ad jax snntorch spikingjelly matplotlib safetensors h5py nir nirtorch norse equinox"

if [ ! -e "$folder/complete" ]; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	# Never NEAP_ or PYTHON variables of a build folder.
	unset PYTHONPATH PYTHONHOME
	/usr/bin/python3 -m venv "$folder" >"$log" 2>&1 || {
		echo "frameworks: python3 -m venv $folder: $(tail -n 1 "$log"); apt-get install python3-venv" >&2
		exit 1
	}
	# shellcheck disable=SC2086
	"$folder/bin/python" -m pip install -q $packages >"$log" 2>&1 || {
		echo "frameworks: pip install: $(grep -m 1 ERROR "$log" || tail -n 1 "$log")" >&2
		exit 1
	}
	# The source archive of checkpoint_schedules has the test that test_schedule_rules.py runs.
	sources="$folder/share/checkpoint_schedules"
	mkdir -p "$sources"
	if "$folder/bin/python" -m pip download -q --no-deps --no-binary checkpoint_schedules -d "$sources" \
		checkpoint_schedules >"$log" 2>&1; then
		tar -xzf "$sources"/*.tar.gz --strip-components=1 -C "$sources"
	else
		echo "frameworks: no source archive of checkpoint_schedules, so its test is skipped: $(tail -n 1 "$log")" >&2
	fi
	"$folder/bin/python" -m pip freeze >"$folder/complete"
fi
echo "$folder/bin/python"
