#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job: a recurrent spiking network learns in a few megabytes. With the
# spoken digits at hand (NEAP_DATA, or ../shared) it learns those, else patterns
# of spike times that need no files.
#   demo.sh BUILD
set -eu
cd "$(dirname "$0")/.."
neap=$1/neap
data=${NEAP_DATA:-../shared}/data/fsdd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "How would strategies fit a million steps of this network into 4 MiB? docs/concepts.md has the words;"
echo "overhead is time beyond that of unlimited memory, gap beyond the least that any schedule takes."
"$neap" plan --steps 1000000 --state 48K --tape 12K --memory 4M --advance 60us --record 70us \
	--backward 150us --tier disk:write=1G,read=1G,latency=100us
echo
if [ -d "$data/train" ] && [ -z "${NEAP_DEMO_RANDMAN:-}" ]; then
	echo "Spoken digits: recordings to spikes, then five epochs within 4 MiB."
	"$neap" encode "$data/train" --out "$work/train.h5" --label '([0-9]+)_.*' \
		--speaker '[0-9]+_([a-z]+)_.*'
	"$neap" encode "$data/test" --out "$work/test.h5" --label '([0-9]+)_.*' \
		--speaker '[0-9]+_([a-z]+)_.*'
	"$neap" train "$work/train.h5" --test "$work/test.h5" --memory 4M --epochs 5 \
		--out "$work/run"
else
	echo "Ten classes of spike-time patterns, learnt within 1 MiB."
	"$neap" train randman:part=train --test randman:part=test --memory 1M --epochs 10 \
		--out "$work/run"
fi
echo
echo "Next: docs/first-network.md trains on recordings that stay, and asks; docs/pytorch.md is for PyTorch."
