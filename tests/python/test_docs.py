# SPDX-License-Identifier: Apache-2.0
"""The Python lines of README.md and docs/python.md run as they stand, one after the other."""
import os
import re

import pytest

SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))


@pytest.mark.parametrize("name", ["README.md", "docs/python.md"])
def test_examples(name, tmp_path, monkeypatch, capsys):
    with open(os.path.join(SOURCE, name)) as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    for block in blocks:
        if "numpy" in block:
            pytest.importorskip("numpy")
        if "checkpoint_schedules" in block or "pyadjoint" in block:
            pytest.importorskip("checkpoint_schedules")
            pytest.importorskip("pyadjoint")
        if "torch" in block:
            pytest.importorskip("torch")
        exec(compile(block, name, "exec"), names)
    assert "bound: no schedule is faster" in capsys.readouterr().out
