#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README's C example compiles against the built library by README's command, and checks itself."""
import os
import re
import subprocess

from harness import SOURCE, NEAP, Folder, Tap


def example(folder):
    """The command for the C example, and the lines of it that README shows."""
    readme = open(os.path.join(SOURCE, "README.md")).read()
    shown = re.search(r"```c\n(.*?)```", readme, re.DOTALL).group(1)
    path, flags = re.search(r"    cc (examples/\S+\.c) (.*) -o model && ./model", readme).groups()
    if shown not in open(os.path.join(SOURCE, path)).read():
        return f"{path} has other lines than README shows"
    program, library = os.path.join(folder, "model"), os.path.join(os.path.dirname(NEAP), "src")
    done = subprocess.run(
        [*os.environ.get("CC", "cc").split(), "-O2", "-Wall", "-Werror", os.path.join(SOURCE, path), "-o", program,
         "-I", os.path.join(SOURCE, "include"), "-L", library,
         *flags.replace("$(pkg-config --cflags --libs neap)", "-lneap").split(),
         f"-Wl,-rpath,{library}", *os.environ.get("NEAP_CFLAGS", "").split()],
        capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    done = subprocess.run([program], capture_output=True, text=True)
    return None if done.returncode == 0 and done.stdout.startswith("loss ") else f"{done.returncode} {done.stdout}"


with Tap() as tap, Folder() as folder:
    tap.run("the C example", example, folder)
