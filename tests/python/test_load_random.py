# SPDX-License-Identifier: Apache-2.0
"""Random networks on numbers, most of them with defaults: the answers of `neap predict` are those of plain PyTorch
(neap.torch.load), for every kind of target. NEAP_MANY sets how many."""
import json
import os
import random

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import neap.torch as nt  # noqa: E402
from conftest import run_tool  # noqa: E402
from neap.tensors import read_tensors  # noqa: E402

SAMPLES, STEPS, FEATURES, OUTPUTS = 9, 14, 3, 3
CASES = range(int(os.environ.get("NEAP_MANY", "20")))


def layer(pick):
    """A hidden layer; a third name a rule of initial weights, a third a scale."""
    cell = pick.choice(("lif", "cubalif", "alif", "adlif", "seadlif", "brf", "integrator", "rnn", "lstm", "gru", "egru"))
    keys = pick.choice(("", ":init=" + pick.choice(("auto", "normal", "torch")), f":scale={pick.choice((0.5, 2, 9))}"))
    if cell not in ("integrator", "rnn", "lstm", "gru") and pick.random() < 0.3:
        keys += f":threshold={pick.choice((0.05, 0.5, 1))}"
    if cell in ("lif", "cubalif") and pick.random() < 0.3:
        keys += ":reset=" + pick.choice(("hard", "soft", "subtract"))
    if pick.random() < 0.2:
        keys += ":density=0.6"
    return f"{cell}:{pick.choice((4, 7))}{pick.choice(('', 'r'))}{keys}"


def sources(pick, index, hidden):
    """The layer below, and a third of the time others below or above."""
    if pick.random() > 0.4:
        return ""
    names = ["input", *(f"layer{i}" for i in range(hidden))]
    more = {name for name in names if pick.random() < 0.4 and name != f"layer{index}"}
    return ":from=" + "+".join(sorted({names[index], *more}))


def options(pick, kind):
    """A network, and further options that change what is chosen by default."""
    net = [layer(pick) for _ in range(pick.choice((1, 1, 2, 3)))] + \
          ["li" + pick.choice(("", "", ":tau=none", ":tau=3ms", ":init=torch"))]
    net = ",".join(part + sources(pick, i, len(net) - 1) for i, part in enumerate(net))
    more = [option for option in (("--tau-out", pick.choice(("none", "0", "2ms"))), ("--init", "normal"), ("--euler",),
                                  ("--dt", "2ms")) if pick.random() < 0.25]
    if kind in ("label", "numbers") and pick.random() < 0.4:
        more.append(("--readout", pick.choice(("mean", "sum", "last", "max", "auto"))))
    return ["--net", net, *(word for option in more for word in option)]


def targets(draw, kind):
    if kind == "label":
        return draw.integers(0, OUTPUTS, SAMPLES)
    if kind == "labels":
        return np.where(draw.random((SAMPLES, STEPS)) < 0.2, -1, draw.integers(0, OUTPUTS, (SAMPLES, STEPS)))
    shape = (SAMPLES, OUTPUTS) if kind == "numbers" else (SAMPLES, STEPS, OUTPUTS)
    return (draw.normal(size=shape) * 100 + 7).astype("f4")


def answers(run, x, lengths, of_steps):
    """The answers of the network as PyTorch computes them, in the units of the targets."""
    metadata, _ = read_tensors(os.path.join(run, "model.safetensors"))
    units = {key: np.array(list(map(float, value))) for key, value in json.loads(metadata["neap.inputs"]).items()
             if isinstance(value, list)}
    given = ((x - units["shift"]) * units["scale"]).astype("f4").astype("f8")
    net = nt.load(run)
    with torch.no_grad():
        outputs, _ = net.outputs(torch.tensor(given).transpose(0, 1))
        if of_steps:
            found = torch.cat([outputs[:n, i] for i, n in enumerate(lengths)])
        else:
            found = net.answer(outputs, torch.tensor(lengths))
    return found.numpy() * units.get("target_deviation", 1) + units.get("target_mean", 0)


@pytest.mark.parametrize("seed", CASES)
def test_answers(seed, scratch):
    pick, draw = random.Random(seed), np.random.default_rng(seed)
    kind = pick.choice(("label", "labels", "numbers", "series"))
    x, lengths = draw.normal(size=(SAMPLES, STEPS, FEATURES)), draw.integers(1, STEPS + 1, SAMPLES)
    data, run = os.path.join(scratch, "data.npz"), os.path.join(scratch, "run")
    np.savez(data, x=x, y=targets(draw, kind), lengths=lengths)
    chosen = options(pick, kind) + (["--classes", OUTPUTS] if kind in ("label", "labels") else [])
    run_tool("train", data, *chosen, "--precision", "double", "--epochs", 1, "--validation", 0,
             "--memory", "4M", "--batch", 5, "--threads", 1, "--out", run)
    head, *rows = (line.split(",") for line in run_tool("predict", run, data, "--threads", 1).splitlines())
    told = np.array([row[head.index("0"):] for row in rows], float)
    wanted = answers(run, x, lengths, kind in ("labels", "series"))
    assert np.abs(told - wanted).max() <= 1e-10 * max(1, np.abs(wanted).max()), (kind, chosen)
