#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Python package in bare Debian 12 systems. In one with a C compiler, libxxhash-dev and python3-venv: `pip install .`
# in a virtual environment and the first lines of docs/python.md; then, with the libraries of the tool, `make wheel`. In
# one with python3-venv and no compiler: that wheel without an index, the same lines, and the tool by its command, by
# `python -m neap` and by neap.train. At the end, in the first system, `make demo` with its packages installed. Prints the
# wall-clock time of each installation and of the demo with its build. Needs root, debootstrap, Debian's packages and PyPI;
# about 2 GB of disk.
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

TIMEFORMAT='real %1R s'
inside() { # root, commands
	chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TIMEFORMAT="$TIMEFORMAT" \
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

seconds() { # root: what the last `time` of its log measured
	sed -n 's/^real *//p' "$1/log" | tail -n 1
}
mount -t proc proc "$base/proc" # where a program finds the libraries beside it
mount -t proc proc "$build/proc"
inside "$build" "apt-get update; apt-get install -y --no-install-recommends gcc libc6-dev libxxhash-dev"
inside "$build" "python3 -m venv venv; time venv/bin/pip install ./tree; venv/bin/python lines.py"
ran "$build"
echo "bare_python: pip install . in $(seconds "$build") on $(nproc) processors: the lines of docs/python.md ran"
inside "$build" "apt-get install -y --no-install-recommends make git; cd tree; git init -q; git add -A -f
	time make wheel; mv build/dist ~/work/dist"
wheel=$(basename "$build"/root/work/dist/*.whl)
echo "bare_python: make wheel in $(seconds "$build"), packages included: $(du -h "$build/root/work/dist/$wheel" | cut -f1) $wheel"
cp "$build/root/work/dist/$wheel" "$base/root/work/"
inside "$base" "! command -v cc gcc neap; python3 -m venv venv; time venv/bin/pip install --no-index $wheel; venv/bin/python lines.py"
ran "$base"
echo "bare_python: $wheel installed in $(seconds "$base") without a compiler or an index: the lines of docs/python.md ran"
inside "$base" ". venv/bin/activate; neap --version; python -m neap --version
	neap train randman:steps=500,part=train --test randman:steps=500,part=test --memory 1M --epochs 1 --out run
	cd /; ~/work/venv/bin/python -c 'import neap; print(neap.train(\"randman:steps=500\", epochs=1, memory=\"1M\", out=\"/root/work/other\"))'"
echo "bare_python: its neap trains, as a command and as neap.train"
[ $# = 0 ] || { mkdir -p "$1" && cp "$build"/root/work/dist/* "$1/"; }
inside "$build" "cd tree; tools/deps.sh --tool; time make demo"
sed -n '/^real/!p' "$build/log" | tail -n 22
echo "bare_python: make demo in $(seconds "$build") on $(nproc) processors, with the build, without the packages"
