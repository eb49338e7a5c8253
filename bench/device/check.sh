#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a CUDA device gives: the bits of the CPU, times, and memory, by parts that take at most 3 minutes each on an H100,
# `study` at most 4.
# Parts run in the order given; without one, all in the order below. Each prints rows of one table: part, what, result.
#   bench/device/check.sh [launches|optimizer|bits|dense|math|strategies|memory|epoch|lif|clusters|replay|offload|study|torch|layers|compiled|context]...
# The part `study` keeps its report and figures if STUDY_OUT names a folder. The part `context` runs over CONTEXT_TOKENS tokens
# (100352; one million is CONTEXT_TOKENS=1001472).
# Needs nvidia-smi and the tool with kernels: NEAP (build/neap), or .gpu/wheel/*.whl, which bench/device/prepare.sh makes; the
# part `launches` needs .gpu/count_calls.so from there.
set -u
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d /tmp/neap-check-XXXXXX)
trap 'rm -rf "$work"' EXIT
if [ -z "${NEAP:-}" ] && ls .gpu/wheel/*.whl >/dev/null 2>&1; then
	python3 -m pip install -q --no-index --no-deps --no-compile --target "$work/site" .gpu/wheel/*.whl || exit 2
	export PYTHONPATH=$work/site
	NEAP="python3 -m neap"
fi
NEAP=${NEAP:-build/neap}
export NEAP_ISA=${NEAP_ISA:-lowered} # the arithmetic of a device, on any CPU
commit=$(git rev-parse --short HEAD 2>/dev/null || cat .gpu/commit 2>/dev/null || echo unknown)
echo "card: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo none), commit $commit, $(date -u +%F)"

row() { printf '%-10s  %-58s  %s\n' "$1" "$2" "$3"; }
# Seconds of forward and backward passes that a training prints.
passes() { sed -n 's/^time  *\([0-9.]* [a-z]*\) for forward.*/\1/p' "$1"; }
run() { # part, what, log, command...
	local part=$1 what=$2 log=$3
	shift 3
	if ! timeout "${LIMIT:-170}" "$@" >"$log" 2>&1; then
		row "$part" "$what" "FAIL: $(grep -v '^warning' "$log" | tail -n 1 | cut -c 1-150)"
		return 1
	fi
}

SMALL="randman:steps=300,samples=128,units=60,classes=5"
# The weights after two epochs of each network, on the CPU and on the device DEVICE (cuda).
bits_of() { # part, networks...
	local part=$1 n=0 net
	shift
	for net in "$@"; do
		n=$((n + 1))
		local options="$SMALL --net $net --epochs 2 --batch 32 --memory 2M --scale 2"
		run "$part" "$net, CPU" "$work/log" $NEAP train $options --out "$work/cpu-$part$n" || continue
		run "$part" "$net, device" "$work/log" $NEAP train $options --device "${DEVICE:-cuda}" --out "$work/gpu-$part$n" || continue
		cmp -s "$work/cpu-$part$n/model.safetensors" "$work/gpu-$part$n/model.safetensors" &&
			row "$part" "$net: weights after two epochs" "PASS: equal" ||
			row "$part" "$net: weights after two epochs" "FAIL: differ"
	done
}

# The same with numbers as inputs: a table of 128 samples of 100 steps.
numbers() {
	[ -e "$work/numbers.h5" ] && return
	awk 'BEGIN { srand(3); print "sample,a,b,c,kind"
		for (s = 0; s < 128; s++) for (t = 0; t < 100; t++)
			print s "," sin(t * (1 + s % 5) / 9 + s) "," cos(t * (1 + s % 5) / 7) "," rand() "," s % 5 }' >"$work/numbers.csv"
	$NEAP encode "$work/numbers.csv" --sample-column sample --target kind --out "$work/numbers.h5" >/dev/null
}

part_bits() {
	bits_of bits lif:48r,li lif:100:reset=hard,lif:33r,li:tau=none lif:200r:reset=zero:surrogate=boxcar,li cubalif:40r,li alif:40r,li \
		adlif:40r,li lif:100r:dropout=0.3,lif:33:delay=1:dropout=0.5,li lif:100r:learn=tau,cubalif:33r:learn=tau,li:learn=tau \
		adlif:40r:learn=tau,alif:33:learn=tau,li lif:64r:tau=5ms..25ms,adlif:33:tau_adapt=60ms..300ms,li \
		lif:48,lif:33r:delay=5,li:delay=0..20 lif:48:dropout=0.3,alif:33:delay=0..127,li
	bits_of slopes lif:100r:surrogate=superspike,li lif:100r:surrogate=sigmoid,li alif:70r:surrogate=atan,li \
		cubalif:40r:surrogate=gaussian,lif:33:surrogate=slayer:dropout=0.3,li lif:200r:surrogate=double_gaussian:reset=zero,li \
		egru:48:surrogate=sigmoid:support=1,li
	bits_of density lif:100r:density=0.2,li lif:70:density=0.5:dropout=0.3,alif:48r,li cubalif:48r:surrogate=atan,adlif:33r:density=0.4,li
	numbers
	SMALL=$work/numbers.h5 bits_of numbers lif:48r,li cubalif:100:dropout=0.2,alif:33r,li lif:70r:density=0.3,li
}

# rnn, lstm, gru and egru: bits, and an LSTM compared with that of PyTorch in float32 without TF32.
part_dense() {
	local size
	numbers
	SMALL=$work/numbers.h5 bits_of numbers-dense lstm:70:dropout=0.3,egru:33,li
	bits_of dense rnn:48,li lstm:70,li gru:33,lstm:20,li:tau=none egru:48,rnn:17:activation=relu,li egru:130:surrogate=superspike,li
	for size in 32 256; do
		run dense "lstm:512, B $size" "$work/log" $NEAP compare "randman:steps=1000,samples=$size,units=700,classes=20" --net lstm:512,li \
			--batch $size --memory 24G --repeats 3 --strategy bptt --device cuda --json || continue
		grep '^{' "$work/log" >"$work/lstm$size"
		run dense "nn.LSTM, B $size" "$work/log" python3 bench/device/lstm.py "$work/lstm$size" --batch $size || continue
		sed "s/^/dense       lstm:512, B $size: /" "$work/log"
	done
}

# Products on tensor cores: one hash for all strategies and budgets, other than that without; weights after two epochs against those of
# a run in double, relative to their size; and an LSTM compared with that of PyTorch.
part_math() {
	local math net n=0 size=32 base="$SMALL --batch 32 --scale 2"
	for net in rnn:48,li lstm:70,li gru:33,lstm:20,li:tau=none egru:48,li; do
		n=$((n + 1))
		run math "$net, double" "$work/log" $NEAP train $base --net $net --memory 64M --epochs 2 --precision double --out "$work/double$n" || continue
		for math in exact tf32x3 bf16; do
			: >"$work/hashes"
			for memory in 40M 2M; do
				run math "$net, $math, $memory" "$work/log" $NEAP compare $base --net $net --memory $memory --repeats 1 --device cuda \
					--slow pinned:64M --math $math || continue 2
				grep -ohE ' [0-9a-f]{16} ' "$work/log" >>"$work/hashes"
			done
			row math "$net, $math: hashes of gradients, all strategies" "$(sort -u "$work/hashes" | wc -l) different (1 is right)"
			run math "$net, $math" "$work/log" $NEAP train $base --net $net --memory 40M --epochs 2 --device cuda --math $math \
				--out "$work/$math$n" || continue
			row math "$net, $math: weights after two epochs against double" \
				"$(python3 bench/device/weights_error.py "$work/$math$n/model.safetensors" "$work/double$n/model.safetensors")"
		done
	done
	for math in exact tf32x3 bf16; do
		run math "lstm:512, B $size, $math" "$work/log" $NEAP compare "randman:steps=1000,samples=$size,units=700,classes=20" --net lstm:512,li \
			--batch $size --memory 24G --repeats 3 --strategy bptt --device cuda --math $math --json || continue
		grep '^{' "$work/log" >"$work/lstm-$math"
		run math "nn.LSTM, B $size" "$work/log" python3 bench/device/lstm.py "$work/lstm-$math" --batch $size \
			--dtype $([ $math = bf16 ] && echo bfloat16 || echo float32) || continue
		sed "s/^/math        lstm:512, B $size, $math: /" "$work/log"
	done
}

# Milliseconds of a batch that are not those of forward and backward passes: optimizer, loss, and reading the data.
besides() {
	python3 - "$1" <<-'END'
		import json, sys
		run = json.load(open(sys.argv[1] + "/run.json"))
		result, passes = run["results"], run["sweeps"]["seconds"]
		n = result["updates"]
		print(f"{1e3 * (result['seconds'] - passes) / n:.2f} ms in addition to {1e3 * passes / n:.2f} ms of passes, a batch")
	END
}

# The weights after every optimizer, and what a batch takes besides its passes: on the CPU, which adds up gradients and updates the
# weights there, and on the device.
part_optimizer() {
	local n=0 optimizer device
	local large="randman:steps=100,samples=4096,units=700,classes=20 --net lif:512r,li --batch 64 --epochs 1 --validation 0"
	for optimizer in "adam --clip 0.01" "adamw --weight-decay 0.1" "sgd --momentum 0.9 --lr 0.05 --weight-decay 0.01"; do
		n=$((n + 1))
		local options="$SMALL --net lif:48r,li --epochs 2 --batch 32 --memory 2M --scale 2 --optimizer $optimizer"
		run optimizer "$optimizer, CPU" "$work/log" $NEAP train $options --out "$work/cpu-o$n" || continue
		run optimizer "$optimizer, device" "$work/log" $NEAP train $options --device cuda --out "$work/gpu-o$n" || continue
		cmp -s "$work/cpu-o$n/model.safetensors" "$work/gpu-o$n/model.safetensors" &&
			row optimizer "$optimizer: weights after two epochs" "equal" ||
			row optimizer "$optimizer: weights after two epochs" "FAIL: differ"
	done
	for optimizer in adam adamw sgd; do
		for device in cuda cpu; do
			run optimizer "$optimizer, $device" "$work/log" env -u NEAP_ISA $NEAP train $large --memory 2G --optimizer $optimizer \
				$([ $device = cpu ] || echo --device $device) --out "$work/large-$optimizer-$device" || continue
			row optimizer "700-512r-20, T 100, B 64, $optimizer, $device" "$(besides "$work/large-$optimizer-$device")"
		done
	done
}

part_strategies() {
	local options="$SMALL --net lif:96r,li --batch 64 --scale 2 --memory 3M --repeats 1"
	run strategies "compare, CPU" "$work/cpu" $NEAP compare $options --strategy bptt || return
	run strategies "compare, device" "$work/gpu" $NEAP compare $options --device cuda --slow pinned:64M || return
	grep -E '^[a-z].* [0-9a-f]{16} ' "$work/gpu"
	row strategies "hashes of gradients, CPU and device" \
		"$(grep -ohE ' [0-9a-f]{16} ' "$work/cpu" "$work/gpu" | sort -u | wc -l) different (1 is right)"
}

part_epoch() {
	local data="randman:steps=100,samples=8156,units=700,classes=20" device
	for device in cpu cuda; do
		run epoch "$device" "$work/log" $NEAP train $data --net lif:128r,li --batch 256 --epochs 1 --memory 1G \
			$([ $device = cpu ] || echo --device $device) --out "$work/epoch-$device" || continue
		row epoch "8,156 samples, 100 steps, 128 units, B 256, $device" "passes $(passes "$work/log")"
	done
}

part_lif() {
	local size
	for size in 64 256; do
		run lif "B $size" "$work/log" $NEAP compare "randman:steps=1000,samples=$size,units=700,classes=20" \
			--net lif:512r,li --batch $size --memory 4G --repeats 5 --strategy bptt --device cuda || continue
		row lif "700-512r-20, T 1,000, B $size" "$(grep -E '^per step' "$work/log")"
		grep -E '^(reference|bptt) ' "$work/log"
	done
}

# Recurrent weights in the shared memory of clusters of blocks: bits, and times with and without clusters, forward and backward. Which
# is faster decides which becomes the default.
part_clusters() {
	local size device blocks
	for blocks in 2 8 16; do
		DEVICE=cuda:clusters=$blocks bits_of "clusters$blocks" lif:48r,li lif:200r:reset=zero,lif:33r,li cubalif:130r,li alif:100r:dropout=0.3,li \
			adlif:40r,li
	done
	for size in 64 256; do
		for device in cuda cuda:clusters=8 cuda:clusters=16; do
			run clusters "$device, B $size" "$work/log" $NEAP compare "randman:steps=1000,samples=$size,units=700,classes=20" \
				--net lif:512r,li --batch $size --memory 4G --repeats 5 --strategy bptt --device $device || continue
			row clusters "700-512r-20, T 1,000, B $size, $device" "$(grep -E '^per step' "$work/log")"
		done
		run clusters "calibrate, B $size" "$work/log" $NEAP calibrate "randman:steps=1000,samples=$size,units=700,classes=20" \
			--net lif:512r,li --batch $size --memory 4G --repeats 5 --device cuda &&
			grep -E '^  cuda.* per step' "$work/log" | while read -r line; do row clusters "calibrate, B $size" "$line"; done
	done
}

# Planned and measured bytes of the device, and what is measured of it: rates, launches, energy.
part_memory() {
	local base="randman:steps=1000,samples=64,units=700,classes=20 --net lif:512r,li --batch 64 --device cuda" memory
	for memory in 2G 500M 100M; do
		run memory "$memory" "$work/log" $NEAP compare $base --memory $memory --strategy auto || continue
		row memory "700-512r-20, T 1,000, B 64, --memory $memory" "$(sed -n 's/^device.*): //p' "$work/log")"
	done
	run memory "calibrate" "$work/log" $NEAP calibrate $base --memory 1G --slow pinned:4G && tail -n 12 "$work/log"
	run memory "energy" "$work/log" $NEAP train $base --epochs 20 --memory 1G --out "$work/energy" &&
		row memory "energy of 20 epochs of 64 samples" "$(sed -n 's/^energy *//p' "$work/log")"
}

part_offload() {
	local base="randman:steps=10000,samples=64,units=700,classes=20 --net lif:512r,li --batch 64 --repeats 3 --device cuda" memory
	for memory in 4G 400M 100M; do
		run offload "$memory" "$work/log" $NEAP compare $base --memory $memory --slow pinned:16G --strategy auto \
			--strategy stream --strategy double || continue
		row offload "T 10,000, B 64, $memory of the device, pinned:16G" ""
		grep -E '^(reference|auto|stream|double) ' "$work/log"
	done
}

# What the host does for a batch: the calls of the driver in 20 epochs of 8 batches, from two runs, and the microseconds of each.
count() { # what, options...
	local what=$1 epochs
	shift
	for epochs in 1 21; do
		NEAP_CUDA_DRIVER=$PWD/.gpu/count_calls.so NEAP_COUNT_CALLS=$work/calls$epochs run launches "$what" "$work/log" $NEAP train \
			randman:steps=1000,samples=512,units=700,classes=20 --net lif:512r,li --batch 64 --validation 0 --scale 1 \
			--device cuda --epochs $epochs --out "$work/launches-$epochs" "$@" || return
		rm -r "$work/launches-$epochs"
	done
	row launches "700-512r-20, T 1,000, B 64, $what: 168 batches" "passes $(passes "$work/log")"
	paste -d ' ' "$work/calls1" "$work/calls21" | while read -r call before _ _ after us; do
		row launches "  $call" "$(awk "BEGIN { printf \"%.1f a batch, %.2f us of the host\", ($after - $before) / 160, $us }")"
	done
}

part_launches() {
	if [ ! -e .gpu/count_calls.so ]; then
		row launches "count_calls.so" "FAIL: run bench/device/prepare.sh first"
		return
	fi
	count "all tapes stored" --memory 4G --strategy bptt
	# All tapes take some 22 MB. Copies that overlap with launches do not make the passes longer.
	count "most tapes to pinned memory" --memory 8M --strategy stream --slow pinned:16G
}

# Time, memory and energy of the strategies over T and N: the quick version, and where its figures are.
part_study() {
	local start=$SECONDS folder=${STUDY_OUT:-$work/study}
	LIMIT=240 run study "neap study --device cuda" "$work/log" env -u NEAP_ISA $NEAP study --device cuda --out "$folder" || return
	row study "seconds of the quick version (at most 240)" "$((SECONDS - start))"
	grep -E '^(At T = |Peak of fast memory|Time: within)' "$folder/report.md"
	grep -E '^\| [TN]=' "$folder/report.md"
}

# Tapes that are rebuilt from logs of spikes: the weights of the CPU, the hashes of all strategies, and the time of a step that is
# replayed against one that is recorded.
part_replay() {
	local n=0 net size options
	for net in lif:96r,li lif:70:reset=zero,lif:48r:delay=1,li lif:200r:surrogate=sigmoid,li; do
		n=$((n + 1))
		options="$SMALL --net $net --epochs 2 --batch 32 --memory 2M --scale 2"
		run replay "$net, CPU" "$work/log" $NEAP train $options --out "$work/cpu-replay$n" || continue
		run replay "$net, device" "$work/log" $NEAP train $options --device cuda --strategy replay --out "$work/gpu-replay$n" || continue
		cmp -s "$work/cpu-replay$n/model.safetensors" "$work/gpu-replay$n/model.safetensors" &&
			row replay "$net: weights after two epochs" "PASS: equal" || row replay "$net: weights after two epochs" "FAIL: differ"
	done
	run replay "compare, device" "$work/log" $NEAP compare $SMALL --net lif:96r,li --batch 64 --scale 2 --memory 3M --repeats 1 --device cuda \
		--slow pinned:64M --strategy replay --strategy standard --strategy auto &&
		row replay "hashes of gradients" "$(grep -oE ' [0-9a-f]{16} ' "$work/log" | sort -u | wc -l) different (1 is right)"
	for size in 64 256; do
		run replay "lif:512r, B $size" "$work/log" $NEAP calibrate "randman:steps=1000,samples=$size,units=700,classes=20" --net lif:512r,li \
			--batch $size --memory 8G --device cuda --repeats 3 --out "$work/chain$size.json" || continue
		grep -E '^(advance|record|replay|backward), per step' "$work/log" | sed "s/^/replay      lif:512r, B $size: /"
	done
}

part_torch() {
	run torch "pytest -m cuda" "$work/log" python3 -m pytest -q -m cuda tests/python/test_torch_device.py -p no:cacheprovider
	row torch "pytest -m cuda" "$(tail -n 1 "$work/log")"
}

# Layers of neap.torch on CUDA tensors: the bits of the CPU, and the time of nt.lif compared with PyTorch loops.
part_layers() {
	run layers "pytest -m cuda" "$work/log" python3 -m pytest -q -m cuda tests/python/test_torch_layers_device.py -p no:cacheprovider
	row layers "pytest -m cuda" "$(tail -n 1 "$work/log")"
	run layers "nt.lif, 700-512r, T 1,000, B 64" "$work/log" python3 bench/device/layers.py || return
	sed 's/^/layers      /' "$work/log"
}

# Compiled groups of a GRU as CUDA graphs: bits and time of calls without graphs, microseconds per step.
part_compiled() {
	run compiled "GRU(256), B 32, T 4096" "$work/log" python3 bench/device/compiled.py || return
	sed 's/^/compiled    /' "$work/log"
}

# Exact gradients over a long context: the bits of plain autograd over 8,192 tokens, then 160M parameters over many more, and the
# tokens per second of truncated training of the same model.
part_context() {
	local layer count=${CONTEXT_TOKENS:-100352}
	for layer in gla mamba2 rwkv7 hybrid; do
		run context "$layer" "$work/log" env CUBLAS_WORKSPACE_CONFIG=:4096:8 python3 examples/python/long_context.py --device cuda \
			--layer $layer --tokens 8192 --plain $([ $layer = hybrid ] && echo --memory 96M || echo --memory 16M --host 1G) || continue
		row context "$layer, 8,192 tokens" "$(grep '^gradients of plain autograd' "$work/log")"
	done
	run context "gla, $count tokens" "$work/log" python3 examples/python/long_context.py --device cuda --dtype bfloat16 \
		--tokens "$count" --chunk 2048 --layers 12 --width 1024 --heads 8 --vocabulary 4096 --memory 20G --host 64G --truncate 1 8 ||
		return
	cat "$work/log"
	row context "gla, $count tokens: speed of exact over truncated gradients" "$(sed -n 's/.* \([0-9]*\) tokens\/s.*/\1/p' "$work/log" |
		awk 'NR == 1 { exact = $1 } NR > 1 { printf "%.2f ", exact / $1 }')(0.6 or more is right)"
}

for part in "${@:-launches optimizer bits dense math strategies memory lif clusters replay offload study epoch torch layers compiled context}"; do
	for one in $part; do
		type "part_$one" >/dev/null 2>&1 || { echo "check.sh: unknown part '$one'" >&2; exit 2; }
		"part_$one"
	done
done
