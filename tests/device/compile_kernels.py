#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The text of the kernels compiles for NVIDIA and AMD GPUs, without large memory spills, if the compilers are
installed: nvcc (sm_80, sm_90 and PTX) and hipcc (gfx90a and gfx1030). Prints TAP.
    compile_kernels.py nvcc|hipcc
The environment variable NVCC or HIPCC gives the compiler; without it, it is searched in PATH and, for
nvcc, in /usr/local/cuda/bin.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.join(os.environ.get("NEAP_SOURCE", "."), "src", "device", "kernels")
# The CPU's code fuses no products and flushes subnormal numbers.
NVCC = ["-x", "cu", "-fmad=false", "-ftz=true", "-prec-div=true", "-prec-sqrt=true", "-Werror", "all-warnings",
        "-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=[sm_90,compute_90]",
        "-Xptxas", "-v", "--threads", "0", "-fatbin"]
HIPCC = ["-x", "hip", "-O3", "-ffp-contract=off", "-fgpu-flush-denormals-to-zero", "-Werror", "--offload-arch=gfx90a",
         "--offload-arch=gfx1030", "-Rpass-analysis=kernel-resource-usage", "--cuda-device-only", "-c"]
# What the compilers print about memory that a kernel uses for registers: a few bytes at most, which are read once per step.
SPILL_MOST = 32
SPILLS = {"nvcc": r"(\d+) bytes spill stores", "hipcc": r"ScratchSize \[bytes/lane\]: (\d+)"}


def kernel_names():
    with open(os.path.join(SOURCE, "kernels.h")) as file:
        return re.findall(r"^\tX\((\w+),", file.read(), re.MULTILINE)


def compile_with(kind, compiler):
    with tempfile.TemporaryDirectory(prefix="neap-test-") as folder:
        out = os.path.join(folder, "kernels")
        done = subprocess.run([compiler, *(NVCC if kind == "nvcc" else HIPCC), "-o", out,
                               os.path.join(SOURCE, "kernels.k")], capture_output=True, text=True)
        if done.returncode:
            return done.stderr + done.stdout
        with open(out, "rb") as file:
            code = file.read()
    missing = [name for name in kernel_names() if name.encode() not in code]
    if missing:
        return f"no code for {', '.join(missing)}"
    spills = re.findall(SPILLS[kind], done.stderr + done.stdout)
    if not spills or any(int(bytes_) > SPILL_MOST for bytes_ in spills):
        return f"memory spills: {spills}"
    return None


kind = sys.argv[1]
compiler = os.environ.get(kind.upper()) or shutil.which(kind) or shutil.which(kind, path="/usr/local/cuda/bin")
print("1..1")
if not compiler:
    print(f"ok 1 - {kind} # SKIP {kind} is not installed")
    sys.exit(0)
wrong = compile_with(kind, compiler)
for line in (wrong or "").splitlines()[-40:]:
    print(f"# {line}")
print(f"{'not ok' if wrong else 'ok'} 1 - {kind}")
sys.exit(1 if wrong else 0)
