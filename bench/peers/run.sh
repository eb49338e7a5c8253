#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# neap beside PyTorch, snnTorch, Norse, SpikingJelly and Spyx: time and memory of a step.
# Installs them (fixed versions from PyPI, 5 GB) in a virtual environment on first use;
# what cannot be had is skipped, aloud. The rest of the words go to beside.py; with
# --rows FILE a run that was stopped goes on.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=${NEAP_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/neap-peers}
system=/usr/bin/python3

usage() {
	cat <<-END
	usage: bench/peers/run.sh [--folder DIR] [--build DIR] [options]

	  --folder DIR   of the virtual environment (default \$NEAP_PEERS or $folder)
	  --build DIR    where neap is built (default build)

	and the options of beside.py:

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
	echo "run.sh: build neap first ($build/bench/peers/peerstep is missing)" >&2
	exit 1
fi

python=$folder/venv/bin/python
if ! cmp -s "$here/requirements.txt" "$folder/installed"; then
	echo "run.sh: installing the frameworks in $folder" >&2
	mkdir -p "$folder"
	[ -x "$python" ] || "$system" -m venv "$folder/venv"
	if "$python" -m pip install --quiet --no-deps -r "$here/requirements.txt" >&2; then
		cp "$here/requirements.txt" "$folder/installed"
	else # one by one: a framework that is not to be had leaves the others
		grep -v '^#' "$here/requirements.txt" | while read -r package; do
			"$python" -m pip install --quiet --no-deps "$package" >&2 ||
				echo "run.sh: skipped: $package" >&2
		done
	fi
fi

set -- --helper "$build/bench/peers/peerstep" "$@"
if "$system" -c 'import torch, numpy' 2>/dev/null; then
	set -- --system-python "$system" "$@"
else
	echo "run.sh: skipped: the system's PyTorch (python3-torch is not installed)" >&2
fi
exec "$python" "$here/beside.py" "$@"
