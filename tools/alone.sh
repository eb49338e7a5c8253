#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libneap alone, on a Debian 12 that has a compiler, Meson and libxxhash and nothing else:
# configures, builds and installs into a home prefix, and compiles README's C example, examples/01_foreign_model.c,
# against that. Without liburing, then with it. Needs root, debootstrap and the network;
# about 650 MB of disk.
#   alone.sh [FOLDER_FOR_THE_SYSTEM]
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "alone: needs root, for chroot" >&2; exit 77; }
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >/dev/null
root=${1:-$(mktemp -d /var/tmp/neap-alone-XXXXXX)}
# debootstrap may leave /proc mounted in there: never delete across a mount.
[ $# = 0 ] && trap 'umount -q "$root/proc" "$root/sys" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT

[ -x "$root/usr/bin/meson" ] ||
	debootstrap --variant=minbase \
		--include=gcc,libc6-dev,meson,ninja-build,pkg-config,libxxhash-dev,sed \
		bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" >/dev/null
rm -rf "$root/home/neap"
mkdir -p "$root/home/neap/tree"
git ls-files -z | tar --null -T - -cf - | tar -C "$root/home/neap/tree" -xf -
cp examples/01_foreign_model.c "$root/home/neap/model.c"

inside() {
	chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/home/neap LC_ALL=C.UTF-8 /bin/bash -ec "$1"
}
try() { # name, options of meson
	inside "cd ~/tree && rm -rf build ~/local && meson setup build --prefix=\$HOME/local $2 >~/log 2>&1 &&
		ninja -C build >>~/log 2>&1 && meson install -C build >>~/log 2>&1 || { tail -n 30 ~/log; exit 1; }
		export PKG_CONFIG_PATH=\$(dirname \$(find ~/local -name neap.pc))
		cd && gcc -o model model.c \$(pkg-config --cflags --libs neap) -lm \
			-Wl,-rpath,\$(pkg-config --variable=libdir neap)
		! nm -D \$(pkg-config --variable=libdir neap)/libneap.so | grep neap__
		./model"
	echo "alone: $1: built, installed, README's example ran"
}
try "without liburing" ""
if inside "true" && cp /etc/resolv.conf "$root/etc/" &&
	chroot "$root" apt-get install -y --no-install-recommends liburing-dev >/dev/null 2>&1; then
	try "with liburing" "-During=enabled"
fi
