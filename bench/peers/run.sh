#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares neap with PyTorch, snnTorch, Norse, SpikingJelly and Spyx: time and memory of a training step.
# On first use it installs them (fixed versions from PyPI, 5 GB) in a virtual environment; packages
# that cannot be installed are skipped with a message. Other options are passed to beside.py; with
# --rows FILE an interrupted run can be resumed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${NEAP_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/neap-peers}
system=/usr/bin/python3

usage() {
	cat <<-END
	usage: bench/peers/run.sh [--folder DIR] [--build DIR] [options]

	  --folder DIR   folder of the virtual environment (default \$NEAP_PEERS or $folder)
	  --build DIR    build folder of neap (default build)

	Options of beside.py:

	END
	"${1:-python3}" "$here/beside.py" --help
}

build=$root/build
while [ $# -gt 0 ]; do
	case $1 in
	--folder) folder=$2; shift 2 ;;
	--build) build=$2; shift 2 ;;
	--help) usage; exit 0 ;;
	*) break ;;
	esac
done
if [ ! -x "$build/bench/peers/peerstep" ]; then
	echo "run.sh: $build/bench/peers/peerstep does not exist. Build neap first, or pass --build" >&2
	exit 1
fi

python=$folder/venv/bin/python
if ! cmp -s "$here/requirements.txt" "$folder/installed"; then
	echo "run.sh: installing the frameworks in $folder" >&2
	mkdir -p "$folder"
	[ -x "$python" ] || "$system" -m venv "$folder/venv"
	if "$python" -m pip install --quiet --no-deps -r "$here/requirements.txt" >&2; then
		cp "$here/requirements.txt" "$folder/installed"
	else # one by one, so that a package that cannot be installed does not affect the others
		grep -v '^#' "$here/requirements.txt" | while read -r package; do
			"$python" -m pip install --quiet --no-deps "$package" >&2 ||
				echo "run.sh: $package cannot be installed and is skipped" >&2
		done
	fi
fi

set -- --helper "$build/bench/peers/peerstep" "$@"
if "$system" -c 'import torch, numpy' 2>/dev/null; then
	set -- --system-python "$system" "$@"
else
	echo "run.sh: the system's PyTorch is skipped: python3-torch is not installed" >&2
fi
exec "$python" "$here/beside.py" "$@"
