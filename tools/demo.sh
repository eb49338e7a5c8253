#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains one recurrent spiking network twice on the same data, storing everything and with a small memory budget, and
# compares memory, time, accuracy and weights. The data are generated; nothing is downloaded or kept.
#   demo.sh BUILD            the demo
#   PLANS=1 demo.sh BUILD    in addition, what each strategy would cost for a million steps
# NEAP_DEMO_STEPS, _SAMPLES, _BATCH, _EPOCHS, _MEMORY and _SEED change the problem (the tests use a small one).
set -eu
cd "$(dirname "$0")/.."
neap=$1/neap
steps=${NEAP_DEMO_STEPS:-20000}
memory=${NEAP_DEMO_MEMORY:-5000K}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Every 100 steps each of the 70 inputs spikes once: the class shows in the times of spikes, not in their number.
data=randman:steps=$steps,spikes=$((steps / 100)),samples=${NEAP_DEMO_SAMPLES:-64},classes=4,alpha=3
# The schedule is that of the figures in docs/measurements.md.
net=(--net lif:256r,li --readout mean --schedule cosine --validation 0 --seed "${NEAP_DEMO_SEED:-1}"
	--epochs "${NEAP_DEMO_EPOCHS:-8}" --batch "${NEAP_DEMO_BATCH:-32}")

train() { # number, title, name, options...
	local number=$1 title=$2 name=$3
	shift 3
	echo
	echo "$number. $title"
	echo "   neap train DATA --test TEST ${net[*]} $*"
	"$neap" train "$data" --test "$data,part=test" "${net[@]}" "$@" --out "$work/$name" --json >"$work/$name.json"
}

echo "A recurrent spiking network (256 LIF units) learns 4 classes of sequences of $steps steps. It is trained twice,"
echo "with the same data and seed: once storing every step, once with a memory budget of $memory."
echo "   DATA: $data"
echo "   TEST: $data,part=test"
train 1 "Backpropagation through time, storing everything" all --memory 2G --strategy bptt
train 2 "The same with $memory: neap places checkpoints and recomputes the steps between them" small --memory "$memory"
echo
python3 tools/demo_table.py "$work/all.json" "$work/small.json" "$memory"
if [ -n "${PLANS:-}" ]; then
	echo
	echo "Plans of all strategies for a million steps of such a network with 4 MiB and a disk. 'overhead' is the time"
	echo "beyond storing everything, 'gap' the time beyond the fastest possible schedule."
	"$neap" plan --steps 1000000 --state 48K --tape 12K --memory 4M --advance 60us --record 70us --backward 150us \
		--tier disk:write=1G,read=1G,latency=100us
fi
echo
echo "Next:  docs/pytorch.md        your own PyTorch training loop under a memory budget"
echo "       docs/first-network.md  the tool on recordings: spoken digits"
[ -n "${PLANS:-}" ] || echo "       make demo PLANS=1      the plans of all strategies for a million steps"
