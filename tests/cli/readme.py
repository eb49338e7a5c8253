#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README's C example compiles against the built library by README's command, and checks itself. docs/own-code.md has
lines of it as well."""
import os
import re
import subprocess

from harness import SOURCE, NEAP, Folder, Tap


def example(folder):
    """The command for the C example, and the lines of it that README shows."""
    readme = open(os.path.join(SOURCE, "README.md")).read()
    shown = re.search(r"```c\n(.*?)```", readme, re.DOTALL).group(1)
    path, flags = re.search(r"    cc (examples/\S+\.c) (.*) -o model && ./model", readme).groups()
    with open(os.path.join(SOURCE, path)) as file:
        text = file.read()
    if shown not in text:
        return f"{path} has other lines than README shows"
    with open(os.path.join(SOURCE, "docs", "own-code.md")) as file:
        blocks = re.findall(r"```c\n(.*?)```", file.read(), re.DOTALL)
    if not any("neap_sweep_run" in block and block in text for block in blocks):
        return f"{path} has other lines than docs/own-code.md shows"
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
