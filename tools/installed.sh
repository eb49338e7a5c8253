#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a shell needs to find an installed neap: prints the lines for PATH, PKG_CONFIG_PATH and
# LD_LIBRARY_PATH that its environment lacks, or nothing if it lacks none.
#   installed.sh BUILD    after `meson install`; with DESTDIR: of the files below that folder
set -eu

pc=$1/meson-private/neap.pc
prefix=$(sed -n 's/^prefix=//p' "$pc")
root=${DESTDIR:-}$prefix
lib=${DESTDIR:-}$(sed -n 's/^libdir=//p' "$pc" | sed "s|^\${prefix}|$prefix|")
lines=

# add NAME FOLDER: a line that puts a folder in front of a list
add()
{
	lines="$lines    export $1=\"$2\${$1:+:\$$1}\"
"
}

if [ -x "$root/bin/neap" ] && [ "$(command -v neap || :)" != "$root/bin/neap" ]; then
	add PATH "$root/bin"
fi
if [ "$(pkg-config --variable=pcfiledir neap 2>/dev/null || :)" != "$lib/pkgconfig" ]; then
	add PKG_CONFIG_PATH "$lib/pkgconfig"
fi
# ldconfig is in a folder that only root's PATH has.
case ":${LD_LIBRARY_PATH:-}:" in
*":$lib:"*) ;;
*) PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -qF "=> $lib/libneap.so" ||
	add LD_LIBRARY_PATH "$lib" ;;
esac

[ -z "$lines" ] || printf '%s\n%s' "neap is in $root. Enter these lines, and add them to ~/.profile:" "$lines"
