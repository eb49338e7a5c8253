#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fills .gpu/, which git ignores, with what bench/device/check.sh needs on a machine with a device and without a compiler: a wheel
# of the Python package with the tool and its kernels, and the number of the commit.
set -eu
cd "$(dirname "$0")/../.."
rm -rf .gpu/wheel
mkdir -p .gpu/wheel
make wheel BUILD="${BUILD:-build}"
cp "${BUILD:-build}"/dist/*.whl .gpu/wheel/
git rev-parse --short HEAD >.gpu/commit
du -sh .gpu
echo "then, on the machine with the device: bench/device/check.sh"
