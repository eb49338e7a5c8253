#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README's C example compiles against the built library and prints what its comment says."""
import os
import re
import subprocess

from harness import SOURCE, NEAP, Folder, Tap


def example(folder):
    readme = open(os.path.join(SOURCE, "README.md")).read()
    code = re.search(r"```c\n(.*?)```", readme, re.DOTALL).group(1)
    said = re.search(r"/\* (loss \S+, gradient \S+) \*/", code).group(1)
    source, program = os.path.join(folder, "model.c"), os.path.join(folder, "model")
    with open(source, "w") as f:
        f.write(code)
    flags = re.search(r"    cc model\.c (.*)", readme).group(1)
    library = os.path.join(os.path.dirname(NEAP), "src")
    done = subprocess.run(
        [*os.environ.get("CC", "cc").split(), "-O2", "-Wall", "-Werror", source, "-o", program, "-I",
         os.path.join(SOURCE, "include"), "-L", library,
         *flags.replace("$(pkg-config --cflags --libs neap)", "-lneap").split(),
         f"-Wl,-rpath,{library}", *os.environ.get("NEAP_CFLAGS", "").split()],
        capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    out = subprocess.run([program], capture_output=True, text=True).stdout.strip()
    return None if out == said else f"'{out}', README says '{said}'"


with Tap() as tap, Folder() as folder:
    tap.run("the C example", example, folder)
