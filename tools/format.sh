#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is every C file as clang-format would leave it?
cd "$(dirname "$0")/.." || exit 2
files=$(git ls-files '*.c' '*.h' 2>/dev/null)
[ -n "$files" ] || files=$(find include src cli tests examples -name '*.[ch]')
# On all processors, some files at a time.
# shellcheck disable=SC2086
breaches=$(echo $files | xargs -n 100 -P "$(nproc)" clang-format --dry-run 2>&1 | grep -E "warning:|error:" | sort -u -t: -k1,1)
if [ -n "$breaches" ]; then
	echo "$breaches"
	echo "format: run 'make format'"
	exit 1
fi
echo "format: every C file is as clang-format leaves it"
