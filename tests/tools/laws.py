#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The laws that tools/floors.py, tools/names.py and tools/headers.py check: a copy of the tree holds them, and
each breach put into the copy is found and named."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from harness import SOURCE, Folder, Tap  # noqa: E402

HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* stub.c: a breach. */\n"
# tool, file, its text, what the tool has to say
BREACHES = [
    ("floors.py", "src/plan/core/stub.c", HEAD + '#include "plan/strategies/x.h"\n', "may include"),
    ("floors.py", "src/nn/core/stub.c", HEAD + '#include "nn/cells/cells.h"\n', "may include"),
    ("floors.py", "src/store/stub.c", HEAD + '#include "plan/core/schedule.h"\n', "may include"),
    ("floors.py", "src/plan/core/stub.c", HEAD + "#include <pthread.h>\n", "pure"),
    ("floors.py", "src/kern/stub.c", HEAD + "/* a checkpoint */\n", "know nothing"),
    ("floors.py", "src/sweep/stub.c", HEAD, "no place for it"),
    ("floors.py", "src/sweep/arena/arena.c", HEAD + "int neap__arena_x(void)\n{\n\treturn neap__copy_save(0, 0);\n}\n",
     "above arena/arena"),
    ("floors.py", "src/store/timeouts.c", HEAD + "void neap__mover_moved(void)\n{\n\tneap__mover_post(0, 0, 0);\n}\n",
     "in a cycle of"),
    ("floors.py", "cli/stub.c", HEAD + '#include "plan/core/schedule.h"\n', "only public headers"),
    ("floors.py", "src/newroom/stub.c", HEAD, "no row for the folder"),
    ("floors.py", "python/neap/stub.py", HEAD, "no row for it"),
    ("floors.py", "python/neap/units.py", "import numpy\n", "may import"),
    ("floors.py", "python/neap/errors.py", "from .plans import Plan\n", "may import"),
    ("names.py", "python/neap/stub.py", "import os\n", "no comment at its head"),
    ("names.py", "src/train/verify.c", HEAD, "verify: a file of that name"),
    ("names.py", "src/train/stub.c", HEAD + "struct neap_schedule {\n\tint x;\n};\n", "neap_schedule: a tag"),
    ("names.py", "src/train/stub.c", "int x;\n", "no comment at its head"),
    ("names.py", "src/train/stub.c", HEAD + "\n" * 900, "900 at most"),
    ("headers.py", "include/neap/stub.h", HEAD + "\nstruct neap_stub {\n\tint x;\n};\n", "struct neap_stub has no comment"),
    ("headers.py", "include/neap/stub.h", HEAD + "\n/* Not its own. */\n\nNEAP_API int neap_stub(void);\n", "function neap_stub"),
]


def run(tool, tree):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "tools", tool), tree],
                          capture_output=True, text=True)


def breach(tree, tool, path, text, says):
    full = os.path.join(tree, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w") as file:
        file.write(text)
    done = run(tool, tree)
    os.remove(full)
    if not os.listdir(os.path.dirname(full)):
        os.rmdir(os.path.dirname(full))
    if done.returncode != 1 or path.rsplit(".", 1)[0].split("/")[-1] not in done.stdout \
            or says not in done.stdout:
        return f"exit {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"
    return None


with Tap() as tap, Folder() as folder:
    for name in ("src", "apps", "cli", "include", "tests", "examples", "bench", "python"):
        shutil.copytree(os.path.join(SOURCE, name), os.path.join(folder, name))
    for tool in ("floors.py", "names.py", "headers.py"):
        tap.run(f"{tool} on the tree as it is",
                lambda tool=tool: None if run(tool, folder).returncode == 0 else run(tool, folder).stdout)
    for row in BREACHES:
        tap.run(f"{row[0]}: {row[1]}: {row[3]}", breach, folder, *row)
