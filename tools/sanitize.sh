#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The test run under a sanitizer: sanitize.sh address,undefined | thread
set -u
cd "$(dirname "$0")/.." || exit 2
kind=$1
build=build-asan
tests=(--no-suite big)
if [ "$kind" = thread ]; then
	build=build-tsan
	tests+=(--suite unit --suite fault --suite property)
fi
[ -f $build/build.ninja ] ||
	meson setup $build --buildtype=debugoptimized -Db_sanitize="$kind" -Db_lundef=false || exit 1
ninja -C $build || exit 1
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export LSAN_OPTIONS=suppressions=$PWD/tools/lsan.supp:print_suppressions=0
export NEAP_CFLAGS=-fsanitize=$kind
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
exec meson test -C $build --no-rebuild --print-errorlogs --timeout-multiplier 8 "${tests[@]}"
