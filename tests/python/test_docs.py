# SPDX-License-Identifier: Apache-2.0
"""The Python lines of README.md and of every page of docs/ run as they stand, one after the other.
Those of docs/weights.md are run by test_weights.py, which knows what they come to."""
import glob
import importlib.util
import os
import re
import subprocess
import sys

import pytest

from conftest import TOOL

SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
# What the lines of a page take for granted, by the page.
GIVEN = {
    "docs/answers.md": """import numpy as np
of = {"lengths": np.array([9, 4]), "dt": 1e-3}
np.savez("s.npz", sample=[0, 1], step=[2, 3], layer=[0, 0], unit=[1, 0], units=[5], **of)
np.savez("m.npz", layer0=np.zeros((2, 9, 5), "f4"), readout=np.zeros((2, 9, 1), "f4"), **of)
import json, os
os.makedirs("run")
head = json.dumps({"__metadata__": {"neap.inputs": json.dumps({"target_mean": ["1"], "target_deviation": ["2"]})}}).encode()
with open("run/model.safetensors", "wb") as file:
    file.write(len(head).to_bytes(8, "little") + head)
""",
    "docs/data.md": """import os, numpy
x, lengths, y = numpy.zeros((4, 9, 3)), [9, 9, 5, 2], [0, 1, 0, 1]
for name in "de", "es":
    os.makedirs(f"texts/{name}")
    with open(f"texts/{name}/0.txt", "w", encoding="utf-8") as file:
        file.write("ja, nein" if name == "de" else "s\u00ed, no")
""",
    "docs/events.md": """import numpy as np
event = [("x", "u2"), ("y", "u2"), ("t", "u4"), ("p", "u1")]
samples, labels, names = [np.zeros(5, event), np.zeros(7, event)], [0, 1], ["left", "right"]
""",
}
# Sizes that are smaller here than on the page, whose lines are otherwise the same.
SMALLER = {
    "docs/compare-checkpoint.md": [("torch.randn(1000, 32, 64)", "torch.randn(50, 32, 64)"), ('memory="16M"', 'memory="7M"')],
    "docs/pytorch.md": [("torch.randn(2000, 16, 8)", "torch.randn(500, 16, 8)"), ("range(2000)", "range(500)"),
                        ("torch.randn(2000, 16, 2)", "torch.randn(500, 16, 2)"),
                        ("torch.randn(700, 32, 64,", "torch.randn(150, 32, 64,"), ('memory="32M", host', 'memory="8M", host')],
}
# What pages print.
PRINTED = {"README.md": "peak", "docs/python.md": "bound: no schedule is faster", "docs/pytorch.md": "peak"}
# What a block needs that may not be here, by a text in it.
NEEDS = {"numpy": ["numpy"], "np.": ["numpy"], "checkpoint_schedules": ["checkpoint_schedules", "pyadjoint"],
         "neap.schedules": ["checkpoint_schedules", "pyadjoint"], "pyadjoint": ["pyadjoint"], "torch": ["torch"],
         "nt.": ["torch"], "nj.": ["jax"], "jax": ["jax"],
         "snntorch": ["snntorch"]}


def pages():
    found = ["README.md"] + sorted(os.path.relpath(path, SOURCE)
                                   for path in glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True))
    return [name for name in found if name != "docs/weights.md" and blocks_of(name)]


def blocks_of(name):
    with open(os.path.join(SOURCE, name)) as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.DOTALL | re.MULTILINE)


def recordings(folder):
    """train.h5, test.h5 and other.h5 of a few tones, and a run neap-run of them."""
    sys.path.insert(0, os.path.join(SOURCE, "tests", "cli"))
    from harness import write_recordings
    write_recordings(str(folder / "tones"), classes=2, each=4)
    for name in ("train.h5", "test.h5", "other.h5"):
        subprocess.run([TOOL, "encode", "tones", "--out", name, "--label", "([0-9]+)_.*"], cwd=folder, check=True,
                       capture_output=True)
    subprocess.run([TOOL, "train", "train.h5", "--net", "lif:16r,li", "--epochs", "1"], cwd=folder, check=True,
                   capture_output=True)


def given(block, names):
    """The names that a part of a page begins with."""
    if "nt.load(" in block:
        import numpy as np
        import torch
        names["recordings"] = [(np.array([0.01, 0.02]), np.array([3, 5])), (np.array([0.03]), np.array([1]))]
        names["labels"] = torch.tensor([0, 1])
    if "tape.enable_checkpointing" in block and "tape" not in names:
        import pyadjoint
        names["tape"] = pyadjoint.Tape()


@pytest.mark.parametrize("name", pages())
def test_examples(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(name)
    for size, smaller in SMALLER.get(name, []):
        assert sum(size in block for block in blocks) == 1
        blocks = [block.replace(size, smaller) for block in blocks]
    if any("neap-run" in block or ".h5" in block for block in blocks) and TOOL:
        monkeypatch.setenv("NEAP_TOOL", TOOL)
        recordings(tmp_path)
    names, missing = {"__name__": "example"}, set()
    if name in GIVEN:
        pytest.importorskip("numpy")
        exec(GIVEN[name], names)
    for block in blocks:
        absent = {package for text, packages in NEEDS.items() if text in block for package in packages
                  if importlib.util.find_spec(package) is None}
        if not TOOL and ("neap-run" in block or ".h5" in block):
            absent.add("the tool")
        missing |= absent
        if not absent:
            given(block, names)
            exec(compile(block, name, "exec"), names)
    if not missing - {"snntorch"} or name == "docs/python.md":
        assert PRINTED.get(name, "") in capsys.readouterr().out
    if missing:
        pytest.skip(f"without the lines for {' and '.join(sorted(missing))}, which are not here")
