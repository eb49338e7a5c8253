#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Debian's packages: built from the tree as it is, read by lintian, and installed and tried in a
# bare Debian 12: a training, a C program by pkg-config, the Python package, a manual page. Needs
# root, debootstrap, the network and what builds neap; about 1 GB of disk.
#   packages.sh [FOLDER_FOR_THE_PACKAGES]
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "packages: needs root, for chroot" >&2; exit 77; }
work=$(mktemp -d /var/tmp/neap-packages-XXXXXX)
# debootstrap may leave /proc mounted in there: never delete across a mount.
trap 'umount -q "$work/root/proc" "$work/root/sys" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
version=$(tools/version.py --print)
failed() { # what, log
	tail -n 30 "$2" >&2
	echo "packages: $1 failed" >&2
	exit 1
}

for program in debootstrap dh dh_python3 lintian; do
	command -v $program >/dev/null || {
		apt-get install -y --no-install-recommends debootstrap debhelper dh-python lintian >"$work/log" 2>&1 ||
			failed "installing debhelper and lintian" "$work/log"
	}
done

tree=$work/neap-$version
mkdir "$tree"
git ls-files -z | tar --null -T - -cf - | tar -C "$tree" -xf -
(cd "$tree" && dpkg-buildpackage -b -us -uc) >"$work/log" 2>&1 || failed "dpkg-buildpackage" "$work/log"
# Who looks after the packages somewhere else writes an address of their own.
lintian --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog --fail-on error --allow-root \
	"$work"/neap_*.changes >"$work/lintian" 2>&1 || failed lintian "$work/lintian"
echo "packages: $(find "$work" -maxdepth 1 -name '*.deb' -not -name '*-dbgsym_*' -printf '%f ' | sort)"
echo "packages: lintian: no error, $(grep -c '^W:' "$work/lintian" || true) warnings"
grep '^W:' "$work/lintian" || true

root=$work/root
debootstrap --variant=minbase bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
	failed debootstrap "$work/log"
cp /etc/resolv.conf "$root/etc/"
mkdir "$root/packages"
find "$work" -maxdepth 1 -name '*.deb' -not -name '*-dbgsym_*' -exec cp {} "$root/packages/" \;
sed -n '/^```python$/,/^```$/{/^```$/q;/^```/d;p}' docs/python.md >"$root/root/lines.py"
inside() { # what, commands
	chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive /bin/bash -ec "cd; $2" >"$work/log" 2>&1 || failed "$1" "$work/log"
}
has() { # what, text
	grep -qF "$2" "$work/log" || failed "$1" "$work/log"
	echo "packages: $1"
}
# minbase leaves out manual pages where dpkg is told so; this one is not.
inside "installing the tool" "apt-get install -y --no-install-recommends /packages/neap_*.deb"
inside "neap train" "neap --version; neap train randman:part=train --test randman:part=test --memory 1M --epochs 2 --out run"
has "neap $version trains" "$version"
inside "neap eval" "neap eval run randman:part=test; test -s /usr/share/man/man1/neap-train.1.gz"
has "neap evaluates" "accuracy"
inside "installing the rest" "apt-get install -y --no-install-recommends gcc libc6-dev pkg-config man-db /packages/*.deb"
inside "README's C example" "cp /usr/share/doc/libneap-dev/examples/01_foreign_model.c .
	gcc 01_foreign_model.c \$(pkg-config --cflags --libs neap) -lm -o model; ./model"
has "README's C example, as installed, by pkg-config" "loss "
inside "a program over libneap-nn" "printf '#include <neap/train.h>\n#include <neap/version.h>\n#include <stdio.h>\nint main(void) { void *volatile made = (void *)neap_net_create; puts(neap_version()); return !made; }\n' >nn.c
	gcc -o nn nn.c \$(pkg-config --cflags --libs neap-nn); ./nn; ldd nn"
has "a program over libneap-nn" "libneap-nn.so.0"
inside "python3" "cd /; python3 -c 'import neap; print(neap.__version__, neap.__file__)'; python3 /root/lines.py"
has "python3 -c 'import neap', the first lines of docs/python.md" "bound: no schedule is faster"
inside "man 3 neap_sweep_run" "man 3 neap_sweep_run | cat"
has "man 3 neap_sweep_run" "neap/sweep.h"
inside "neap-mpi" "neap-mpi --version"
has "neap-mpi" "$version"
inside "removing all" "apt-get purge -y neap neap-mpi python3-neap libneap-dev libneap-cuda0 libneap-nn0 libneap0; ! find /usr -path '*neap*' | grep ."
echo "packages: nothing is left after a purge"
[ $# = 0 ] || { mkdir -p "$1" && cp "$work"/*.deb "$1/"; }
