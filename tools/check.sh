#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All tests; the last line counts them. --big adds the long ones.
#   check.sh BUILD [--big]
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build}
suites=(--no-suite big)
[ "${2:-}" = --big ] && suites=()

passed=0
failed=0
step() { # name, command...
	local name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
	fi
}

step floors tools/floors.py
step names tools/names.py
step format tools/format.sh
if [ "${2:-}" = --big ] && [ "$(id -u)" = 0 ]; then
	step alone tools/alone.sh
fi
meson test -C "$build" --no-rebuild --print-errorlogs "${suites[@]}"
run=$?
read -r ok bad skipped < <(python3 tools/count.py "$build/meson-logs/testlog.junit.xml")
passed=$((passed + ok))
failed=$((failed + bad))
[ $run != 0 ] && [ "$bad" = 0 ] && failed=$((failed + 1))
echo
if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ $failed = 0 ]
