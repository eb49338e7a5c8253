#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building and testing need and that are missing.
set -eu
packages='build-essential meson ninja-build pkg-config python3 libxxhash-dev libcjson-dev liburing-dev
libhdf5-dev libsndfile1-dev libcmocka-dev clang-format librsvg2-bin gnuplot-nox'

missing=
for package in $packages; do
	dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
		missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null; then
	echo "deps: these packages (Debian names) are needed:$missing" >&2
	exit 1
fi
as=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "deps: as root, run: apt-get install$missing" >&2
		exit 1
	}
	as=sudo
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
install() {
	# shellcheck disable=SC2086
	$as apt-get install -y --no-install-recommends $missing >/tmp/neap-deps.$$ 2>&1
}
if ! install; then
	$as apt-get update >/dev/null
	install || {
		tail -n 20 "/tmp/neap-deps.$$" >&2
		rm -f "/tmp/neap-deps.$$"
		exit 1
	}
fi
rm -f "/tmp/neap-deps.$$"
echo "deps: done"
