#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every parser in turn with libFuzzer, address and undefined sanitizers:
# so many seconds of processor time each. What it learns stays in build-fuzz.
#   fuzz.sh SECONDS [NAME...]     NAME: a folder of tests/fuzz/corpus; default: all
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build-fuzz}
seconds=${1:?"usage: fuzz.sh SECONDS [NAME...]"}
shift
[ $# -gt 0 ] || set -- $(ls tests/fuzz/corpus)

[ -f $build/build.ninja ] ||
	CC=${CC:-clang} meson setup $build --buildtype=debugoptimized -Dfuzz=true -Dnn=enabled -Dtool=enabled \
		-Db_sanitize=address,undefined -Db_lundef=false
for name in "$@"; do
	ninja -C $build "tests/fuzz/fuzz_$name"
done
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
TIMEFORMAT='%U %S'
for name in "$@"; do
	learnt=$build/corpus-$name used=0 inputs=0
	mkdir -p "$learnt"
	dict=
	[ ! -f "tests/fuzz/$name.dict" ] || dict=-dict=tests/fuzz/$name.dict
	# -max_total_time is wall clock, of which a busy machine gives only a part.
	while [ "$used" -lt "$seconds" ]; do
		log=$build/$name-log.txt
		status=0
		turn=$((seconds - used < 300 ? seconds - used : 300))
		{ time "$build/tests/fuzz/fuzz_$name" $dict -max_len=4000 \
			-max_total_time=$turn -timeout=10 -rss_limit_mb=2048 \
			-artifact_prefix="$build/$name-" -print_final_stats=1 "$learnt" \
			"tests/fuzz/corpus/$name" >"$log" 2>&1; } 2>"$log.time" || status=$?
		used=$((used + $(awk 'NF == 2 { print int($1 + $2) + 1 }' "$log.time")))
		inputs=$((inputs + $(awk '/^stat::number_of_executed_units/ { print $2 }' "$log")))
		tail -n 1 "$log.time" >>"$build/$name-times.txt"
		# -timeout is wall clock too: what takes less than 10 s of processor time by
		# itself only waited for other processes.
		if [ $status = 70 ]; then
			late=$(ls -t "$build/$name"-timeout-* | head -n 1)
			if (ulimit -t 10 && "$build/tests/fuzz/fuzz_$name" "$late" >"$log" 2>&1); then
				rm "$late"
				status=0
			fi
		fi
		if [ $status != 0 ]; then
			tail -n 60 "$log"
			echo "fuzz: $name: a finding after $used s; its input is in $build"
			exit 1
		fi
	done
	echo "fuzz: $name: $used s of processor time, $inputs inputs, no finding"
done
