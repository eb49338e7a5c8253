#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Spoken digits, from recordings to test accuracy: encodes them, trains a network, and tests it once.
#   examples/digits.sh RECORDINGS [SETTINGS] [--without SPEAKER] [--seed N ...]
# RECORDINGS contains train/ and test/ with files DIGIT_SPEAKER_NUMBER.wav, for example from the Free
# Spoken Digit Dataset (https://github.com/Jakobovski/free-spoken-digit-dataset; its test set is
# numbers 0 to 4, docs/speech.md uses 3 and 4 and shows how to make the folder). SETTINGS is one of the settings below. --without SPEAKER uses only the recordings
# in train/: it trains on all other speakers and tests on SPEAKER. Further options are passed to
# neap train. Spikes and runs are written to the folder digits (DIGITS=folder). The tool is NEAP=tool,
# or build/neap, or neap on the PATH. The saved model is the one with the best accuracy on 1/10 of the training
# set. docs/speech.md lists the accuracies.
set -eu
usage="usage: $0 RECORDINGS [small|deep|varied] [--without SPEAKER] [OPTIONS of neap train]"
[ $# -ge 1 ] || { echo "$usage" >&2; exit 2; }
recordings=$1 settings=small without=
shift
case ${1:-} in [a-z]*) settings=$1; shift ;; esac
if [ "${1:-}" = --without ]; then
	[ $# -ge 2 ] || { echo "$usage" >&2; exit 2; }
	without=$2
	shift 2
fi
built=$(dirname "$0")/../build/neap work=${DIGITS:-digits}
[ -x "$built" ] || built=neap
neap=${NEAP:-$built}

case $settings in
small) # 256 recurrent units, 1 ms per step
	set -- --net lif:256r,li --dt 1ms "$@" ;;
deep) # two such layers, 2 ms per step
	set -- --net lif:256r,lif:256r,li --dt 2ms --scale 0.8 --rate-upper 15Hz "$@" ;;
varied) # adaptive first layer and augmented samples, for speakers that are not in the training set
	set -- --net adlif:256r:scale=10,lif:256r:scale=0.8,li --dt 2ms --time-unit 2ms --rate-upper 15Hz \
		--shift 3 --jitter 2ms --stretch 0.85:1.2 "$@" ;;
*)
	echo "$usage" >&2
	exit 2 ;;
esac

encode() { # FOLDER NAME
	[ -e "$work/$2.h5" ] || "$neap" encode "$1" --out "$work/$2.h5" \
		--label '([0-9]+)_.*' --speaker '[0-9]+_([a-z]+)_.*'
}

mkdir -p "$work"
if [ -z "$without" ]; then
	train=train test=test
	encode "$recordings/train" train
	encode "$recordings/test" test
else
	train=without-$without test=only-$without
	rm -rf "$work/links"
	mkdir -p "$work/links/$train" "$work/links/$test"
	for file in "$(cd "$recordings/train" && pwd)"/*; do
		case ${file##*/} in
		*_"$without"_*) ln -sf "$file" "$work/links/$test/" ;;
		*) ln -sf "$file" "$work/links/$train/" ;;
		esac
	done
	encode "$work/links/$train" "$train"
	encode "$work/links/$test" "$test"
fi
exec "$neap" train "$work/$train.h5" --test "$work/$test.h5" --memory 16M --epochs 30 \
	--out "$work/$settings${without:+-without-$without}" "$@"
