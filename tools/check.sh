#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All tests; the last line counts them. --big adds the long ones, and the Python tests once more
# with the newest frameworks: in the interpreter that NEAP_PYTHON names, else in a virtual
# environment that is made in BUILD (frameworks.sh). Where NEAP_SANITIZED is set, the suite fuzz
# runs once more, built by clang with sanitizers; with --big those of devices, units and faults, too.
#   check.sh BUILD [--big]
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:-build}
suites=(--no-suite big)
if [ "${2:-}" = --big ]; then
	suites=()
	NEAP_SANITIZED=1
fi

passed=0
failed=0
wrong=() # the names of what failed, repeated at the end
step() { # name, command...
	local name=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		wrong+=("FAILED: $name")
	fi
}

step floors tools/floors.py
step names tools/names.py
step format tools/format.sh
if [ "${2:-}" = --big ] && [ "$(id -u)" = 0 ]; then
	step alone tools/alone.sh
	step bare_python tools/bare_python.sh
	step packages tools/packages.sh
	step tarball tools/tarball.sh
fi

skipped=0
suite() { # build folder, command...
	local folder=$1 ok bad skips run=0
	shift
	"$@" || run=1
	{
		read -r ok bad skips
		mapfile -t -O ${#wrong[@]} wrong
	} < <(python3 tools/count.py "$folder/meson-logs/testlog.junit.xml")
	if [ $run != 0 ] && [ "$bad" = 0 ]; then
		bad=1
		wrong+=("FAILED: $*")
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	skipped=$((skipped + skips))
}

# Threads of a test wait for each other and for files: one test more than processors.
export MESON_TESTTHREADS=$(($(nproc) + 1))
named=${NEAP_PYTHON:-}
[ "${2:-}" = --big ] && unset NEAP_PYTHON # the first time with the system's
suite "$build" meson test -C "$build" --no-rebuild --print-errorlogs "${suites[@]}"
if [ "${2:-}" = --big ]; then
	if newest=${named:-$(tools/frameworks.sh "$build/frameworks")}; then
		NEAP_PYTHON=$newest suite "$build" meson test -C "$build" --no-rebuild \
			--print-errorlogs --suite python --suite frameworks
	else
		skipped=$((skipped + 1))
	fi
fi
if [ -n "${NEAP_SANITIZED:-}" ]; then
	rm -f build-clang/meson-logs/testlog.junit.xml
	sanitized=(short)
	[ "${2:-}" = --big ] && sanitized=(fast fault)
	suite build-clang tools/sanitize.sh "${sanitized[@]}"
fi
echo
[ $failed = 0 ] || printf '%s\n' "${wrong[@]}"
if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ $failed = 0 ]
