# SPDX-License-Identifier: Apache-2.0
"""The lines of docs/weights.md as they stand: a net in PyTorch has the loss of the C code, from the same steps."""
import os
import re

import pytest

torch = pytest.importorskip("torch")

from nets_of_tests import DATA, SOURCE, evaluated, printed, recordings, trained  # noqa: E402

torch.set_num_threads(1)


def blocks():
    with open(os.path.join(SOURCE, "docs", "weights.md")) as file:
        found = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    assert len(found) == 2
    return found


def model(run, monkeypatch):
    monkeypatch.chdir(os.path.dirname(run))
    os.rename(run, "neap-run")
    names = {}
    exec(compile(blocks()[0], "docs/weights.md", "exec"), names)
    return names


def test_model_has_fifteen_lines():
    body = blocks()[0].split("def loss")[1].splitlines()
    assert len([line for line in body if line.strip() and '"""' not in line]) <= 15


def test_loss(tmp_path, monkeypatch):
    run = trained(str(tmp_path), "lif:64r,li", "--scale", 2)
    wanted = evaluated(run)
    samples, _ = printed(run, wanted["samples"])
    page = model(run, monkeypatch)
    lengths = [len(sample["events"]) for sample in samples]
    channels = page["w"]["layer0.weight"].shape[0]
    x = torch.zeros(max(lengths), len(samples), channels, dtype=torch.double)
    for b, sample in enumerate(samples):
        for t, units in enumerate(sample["events"]):
            x[t, b, units] = 1
    labels = torch.tensor([sample["label"] for sample in samples])
    assert sum(len(step[0]) for sample in samples for step in sample["outputs"]) > 0
    found = page["loss"](x, torch.tensor(lengths), labels).item()
    assert abs(found - wanted["loss"]) < 1e-12 * wanted["loss"]


@pytest.mark.parametrize("dt", ["1ms", "0.7ms"])
def test_inputs(dt, tmp_path, monkeypatch):
    """Spikes of recordings, from times to loss."""
    pytest.importorskip("h5py")
    data = recordings(str(tmp_path), 12)
    run = trained(str(tmp_path), "lif:64r,li", "--dt", dt, data=data)
    wanted = evaluated(run, data)
    samples, _ = printed(run, wanted["samples"], data)
    page = model(run, monkeypatch)
    exec(compile(blocks()[1], "docs/weights.md", "exec"), page)
    x, lengths, labels = page["inputs"](data, float(page["net"]["dt"]), page["w"]["layer0.weight"].shape[0])
    for b, sample in enumerate(samples):
        assert lengths[b] == len(sample["events"])
        for t, units in enumerate(sample["events"]):
            assert x[t, b].nonzero().flatten().tolist() == units
    assert abs(page["loss"](x, lengths, labels).item() - wanted["loss"]) < 1e-12 * wanted["loss"]
