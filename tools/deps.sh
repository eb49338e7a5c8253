#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What building needs, told by pkg-config and by the programs themselves, and the Debian
# packages that bring it.
#   deps.sh            installs what is missing, with apt, as root or through sudo;
#                      clang and its sanitizers only where NEAP_SANITIZED is set, PyTorch (600 MB on
#                      the disk) only where NEAP_FRAMEWORKS is, what builds the documentation only
#                      where NEAP_DOCS is
#   deps.sh --tool     installs only what the tool needs; --wheel: and what building a wheel needs
#   deps.sh --missing  names what is missing; exits 1 if libneap cannot be built
set -eu

# what: a module of pkg-config, or a program; package; who needs it
table='
cc              build-essential    libneap
meson           meson              libneap
ninja           ninja-build        libneap
pkg-config      pkg-config         libneap
libxxhash.pc    libxxhash-dev      libneap
liburing.pc     liburing-dev       io_uring
jansson.pc      libjansson-dev     nets
hdf5-serial.pc  libhdf5-dev        nets
sndfile.pc      libsndfile1-dev    nets
samplerate.pc   libsamplerate0-dev nets
libpcre2-8.pc   libpcre2-dev       nets
zlib.pc         zlib1g-dev         nets
libzip.pc       libzip-dev         nets
liblz4.pc       liblz4-dev         AEDAT-4
libzstd.pc      libzstd-dev        AEDAT-4
python3         python3            man-pages
cmocka.pc       libcmocka-dev      tests
ompi-c.pc       libopenmpi-dev     ranks
mpirun          openmpi-bin        ranks
pytest.py       python3-pytest     tests
numpy.py        python3-numpy      tests
h5py.py         python3-h5py       tests
ensurepip.py    python3-venv       tests
ensurepip.py    python3-venv       wheels
git             git                wheels
torch.py        python3-torch      frameworks
nbclient.py     python3-nbclient   tests
ipykernel.py    python3-ipykernel  tests
localedef       libc-bin           tests
charmaps        locales            tests
clang-format    clang-format       tests
rsvg-convert    librsvg2-bin       tests
clang           clang              sanitizers
clang-rt        libclang-rt-14-dev sanitizers
mkdocs          mkdocs             docs
mkdocs-theme    mkdocs-material    docs
mkdocstrings.py mkdocstrings       docs
griffe.py       mkdocstrings-python-handlers docs
black           black              docs
'
there() { # what
	case $1 in
	*.pc) pkg-config --exists "${1%.pc}" 2>/dev/null ;;
	*.py) /usr/bin/python3 -c "import importlib.util as u; exit(not u.find_spec('${1%.py}'))" 2>/dev/null ;;
	mkdocs-theme) [ -d /usr/share/mkdocs/themes/material ] ;;
	charmaps) [ -d /usr/share/i18n/charmaps ] ;;
	clang-rt) [ -e "$(clang -print-file-name=libclang_rt.asan-"$(uname -m)".a 2>/dev/null)" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# Who needs it, for whom all of this is: nothing but the tool, or that and a wheel, or everything.
case ${1:-} in
--tool) only=" libneap io_uring nets " ;;
--wheel) only=" libneap nets wheels " ;;
*) only= ;;
esac
missing= needed= for=
while read -r what package who; do
	[ -z "$what" ] && continue
	[ "$who" = wheels ] && [ "${1:-}" != --wheel ] && continue
	case ${only:-" $who "} in *" $who "*) ;; *) continue ;; esac
	[ "$who" = sanitizers ] && [ -z "${NEAP_SANITIZED:-}" ] && continue
	[ "$who" = frameworks ] && [ -z "${NEAP_FRAMEWORKS:-}" ] && continue
	[ "$who" = docs ] && [ -z "${NEAP_DOCS:-}" ] && continue
	there "$what" && continue
	missing="$missing $package"
	case " $for " in *" $who "*) ;; *) for="$for $who" ;; esac
	[ "$who" = libneap ] && needed="$needed $package"
done <<EOF
$table
EOF
[ -z "$missing" ] && exit 0

if [ "${1:-}" = --missing ]; then
	echo "neap: not here, for$for:$missing (Debian packages; 'make deps' installs them)" >&2
	[ -z "$needed" ] && exit 0
	echo "neap: libneap needs:$needed" >&2
	exit 1
fi
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
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
	# shellcheck disable=SC2086
	$as apt-get install -y --no-install-recommends $missing >"$log" 2>&1
}
if ! install; then
	$as apt-get update >/dev/null
	install || {
		tail -n 20 "$log" >&2
		exit 1
	}
fi
echo "deps: done"
