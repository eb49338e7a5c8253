#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The source archive of the last commit, and the proof that it is enough: a bare Debian 12 that has
# what README asks for unpacks it, and without a network builds, runs the examples and installs.
# Needs root, debootstrap and a network until then; about 1.5 GB of disk.
#   tarball.sh [FOLDER_FOR_THE_ARCHIVE]
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "tarball: needs root, for chroot" >&2; exit 77; }
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >/dev/null
work=$(mktemp -d /var/tmp/neap-tarball-XXXXXX)
# debootstrap may leave /proc mounted in there: never delete across a mount.
trap 'umount -q "$work/root/proc" "$work/root/sys" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
root=$work/root
name=neap-$(tools/version.py --print)
git archive --prefix="$name/" HEAD | xz -T0 >"$work/$name.tar.xz"

failed() { # what
	tail -n 30 "$work/log" >&2
	echo "tarball: $1 failed" >&2
	exit 1
}
debootstrap --variant=minbase --include=build-essential,meson,ninja-build,pkg-config,python3,xz-utils,libxxhash-dev,liburing-dev,libjansson-dev,libhdf5-dev,libsndfile1-dev,libsamplerate0-dev,libpcre2-dev,zlib1g-dev,libzip-dev \
	bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1 || failed debootstrap
cp "$work/$name.tar.xz" "$root/root/"
inside() { # what, commands: without a network
	unshare -n chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		/bin/bash -ec "cd; $2" >"$work/log" 2>&1 || failed "$1"
	echo "tarball: $1"
}
inside "$name.tar.xz, $(du -h "$work/$name.tar.xz" | cut -f1), unpacks" "tar -xf $name.tar.xz; ! test -e $name/.git"
inside "no network" "! timeout 5 bash -c '</dev/tcp/deb.debian.org/80'"
inside "configures and builds" "cd $name; meson setup build --buildtype=release -Dnn=enabled -Dtool=enabled -Dtests=disabled; ninja -C build"
inside "examples" "cd $name; meson test -C build --no-rebuild --suite example"
inside "make install, neap train" "cd $name; make install PREFIX=/usr/local; ldconfig
	neap train randman:part=train --test randman:part=test --memory 1M --epochs 1 --out ~/run
	test -s /usr/local/share/man/man3/neap_sweep_run.3; test -s /usr/local/share/doc/neap/LICENSE"
mount -t proc proc "$root/proc" # the demo measures the memory of its processes
inside "make demo, on $(nproc) processors" "cd $name; TIMEFORMAT='real %0R s'; time make demo BUILD=demo"
grep -E '^(memory|training|test|hash|real) ' "$work/log"
if [ $# != 0 ]; then
	cp "$work/$name.tar.xz" "$1/"
	(cd "$1" && sha256sum "$name.tar.xz")
fi
