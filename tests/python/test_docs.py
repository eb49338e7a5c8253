# SPDX-License-Identifier: Apache-2.0
"""The Python lines of README.md and of pages in docs/ run as they stand, one after the other."""
import importlib.util
import os
import re

import pytest

SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))


PAGES = {"README.md": "peak", "docs/python.md": "bound: no schedule is faster", "docs/pytorch.md": "peak",
         "docs/own-data.md": ""}  # and what they print


@pytest.mark.parametrize("name", PAGES)
def test_examples(name, tmp_path, monkeypatch, capsys):
    if name in ("README.md", "docs/pytorch.md"):
        pytest.importorskip("torch")
    with open(os.path.join(SOURCE, name)) as file:
        blocks = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names, missing = {"__name__": "example"}, []
    for block in blocks:
        for package in ("numpy", "h5py"):
            if package in block:
                pytest.importorskip(package)
        if "checkpoint_schedules" in block or "pyadjoint" in block:
            pytest.importorskip("checkpoint_schedules")
            pytest.importorskip("pyadjoint")
        absent = [framework for framework in ("torch", "jax") if f"import {framework}\n" in block and
                  importlib.util.find_spec(framework) is None]
        missing += absent
        if not absent:
            exec(compile(block, name, "exec"), names)
    told = capsys.readouterr().out
    if missing:
        pytest.skip(f"without the lines for {' and '.join(missing)}, which are not here")
    assert PAGES[name] in told
