# SPDX-License-Identifier: Apache-2.0
"""The Python lines of README.md and docs/python.md run as they stand, one after the other."""
import importlib.util
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
    names, missing = {"__name__": "example"}, []
    for block in blocks:
        if "numpy" in block:
            pytest.importorskip("numpy")
        if "checkpoint_schedules" in block or "pyadjoint" in block:
            pytest.importorskip("checkpoint_schedules")
            pytest.importorskip("pyadjoint")
        absent = [framework for framework in ("torch", "jax") if f"import {framework}\n" in block and
                  importlib.util.find_spec(framework) is None]
        missing += absent
        if not absent:
            exec(compile(block, name, "exec"), names)
    assert "bound: no schedule is faster" in capsys.readouterr().out
    if missing:
        pytest.skip(f"without the lines for {' and '.join(missing)}, which are not here")
