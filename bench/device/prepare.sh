#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fills .gpu/, which git ignores, with what bench/device/check.sh needs on a machine with a device and without a compiler: a wheel
# of the Python package with the tool and its kernels, the library that counts calls of the driver, and the number of the commit.
set -eu
cd "$(dirname "$0")/../.."
rm -rf .gpu/wheel
mkdir -p .gpu/wheel
make wheel BUILD="${BUILD:-build}"
cp "${BUILD:-build}"/dist/*.whl .gpu/wheel/
# count_calls.c links to the driver, of which a machine without a device has only the name.
stub=$(mktemp -d /tmp/neap-stub-XXXXXX)
trap 'rm -rf "$stub"' EXIT
${CC:-cc} -shared -x c /dev/null -Wl,-soname,libcuda.so.1 -o "$stub/libcuda.so.1"
${CC:-cc} -O2 -shared -fPIC bench/device/count_calls.c -o .gpu/count_calls.so -Wl,--no-as-needed "$stub/libcuda.so.1" -ldl
git rev-parse --short HEAD >.gpu/commit
du -sh .gpu
echo "then, on the machine with the device: bench/device/check.sh"
