#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tests under a sanitizer.
#   sanitize.sh address,undefined | thread     every test but the long ones; thread: no cli
#   sanitize.sh fast [fault]                   built by clang, address and undefined: the
#                                              suites unit, device and fuzz, and fault, on one engine, without
#                                              those that read texts and run no code of ours (suite text)
#   sanitize.sh short                          of these, the suite fuzz
set -u
cd "$(dirname "$0")/.." || exit 2
kind=$1
build=build-asan
setup=(--buildtype=debugoptimized)
tests=(--no-suite big)
case $kind in
thread)
	build=build-tsan
	tests+=(--suite unit --suite fault --suite property)
	;;
fast | short)
	suites=(--suite fuzz)
	optimization=0
	if [ "$kind" = fast ]; then
		suites+=(--suite device --suite unit)
		optimization=1
	fi
	kind=address,undefined
	build=build-clang
	export CC=clang
	# Checks of address arithmetic take a third of the compile time. AddressSanitizer finds the accesses. Without
	# optimization, compiling takes a third of the time; the suite fuzz alone is too short for its slower runs to matter.
	setup=(--buildtype=plain -Doptimization=$optimization -Dnn=enabled -Dtool=enabled -Dtests=enabled
		-Dc_args=-fno-sanitize=pointer-overflow)
	tests+=("${suites[@]}" ${2:+--suite "$2"} --no-suite engines --no-suite text)
	;;
esac
[ -f $build/build.ninja ] ||
	meson setup $build "${setup[@]}" -Db_sanitize="$kind" -Db_lundef=false || exit 1
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$PWD/tools/lsan.supp:print_suppressions=0
export NEAP_CFLAGS=-fsanitize=$kind
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# Meson builds what these tests need, and no more.
exec meson test -C $build --print-errorlogs --timeout-multiplier 8 "${tests[@]}"
