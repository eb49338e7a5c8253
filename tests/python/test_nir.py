# SPDX-License-Identifier: Apache-2.0
"""NIR both ways: samples of NIR, nets that snnTorch and Norse export, and nets that neap exports. Spikes of
all layers at every step, beside the exporter's own and beside the equations of NIR in NumPy."""
import json
import os
import random
import subprocess

import pytest

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")

from conftest import run_tool  # noqa: E402
from nir_equations import Graph  # noqa: E402
from nets_of_tests import PRINT_NET, SOURCE  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "0"))
NETS, INPUTS, STEPS = (20, 50, 100) if MANY else (4, 8, 60)
SAMPLES = os.path.join(os.environ.get("NEAP_DATA", os.path.join(SOURCE, "..", "shared")), "data", "nir")
DT = 1e-4


def events_file(path, spikes, dt=DT):
    """Spikes [samples, steps, units], 0 or 1, as a data set of neap; every spike lies in the middle of its step."""
    with h5py.File(path, "w") as f:
        times, units = [], []
        for sample in spikes:
            t, u = np.nonzero(sample)
            times.append(((t + 0.5) * dt).astype("f4"))
            units.append(u.astype("u2"))
        for name, rows, base in (("times", times, "f4"), ("units", units, "u2")):
            data = f.create_dataset(f"spikes/{name}", (len(rows),), dtype=h5py.vlen_dtype(np.dtype(base)))
            for i, row in enumerate(rows):
                data[i] = row
        f["labels"] = np.zeros(len(spikes), "u2")
        f.attrs["inputs"] = spikes.shape[2]
    return path


def draw(seed, units, rate=0.3, count=None, steps=None):
    """Random input spikes; the last step has one, so that no sample ends early."""
    pick = np.random.default_rng(seed)
    spikes = pick.random((count or INPUTS, steps or STEPS, units)) < rate
    spikes[:, -1, 0] = True
    return spikes


def ran(net, spikes, folder, dt=DT, reset="", membranes=False):
    """What neap makes of a net: outputs [sample][step][layer] as lists of units, answers, and membranes."""
    if not PRINT_NET:
        pytest.skip("no print_net")
    data = events_file(os.path.join(folder, "inputs.h5"), spikes, dt)
    more = [str(dt), reset] if reset else [str(dt)]
    done = subprocess.run([PRINT_NET, net, data, str(len(spikes)), *more], capture_output=True, text=True,
                          env={**os.environ, **({"NEAP_PRINT_MEMBRANES": "1"} if membranes else {})})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()[:-1]]


def same_spikes(mine, theirs, layers, margin=None):
    """Compares lists of units with spikes {layer: [steps, units]} of one sample; number of steps compared. Where
    a unit differs whose membrane, by `margin`, is at its threshold but for rounding, the rest is not compared."""
    for t, step in enumerate(mine["outputs"]):
        for index, name in enumerate(layers):
            wanted = np.nonzero(theirs[name][t])[0].tolist()
            if step[index] != wanted:
                odd = sorted(set(step[index]) ^ set(wanted))
                assert margin and all(abs(margin[name][t][u]) < 2e-5 for u in odd), (name, t, step[index], wanted)
                return t
    return len(mine["outputs"])


def sample_file(name):
    path = os.path.join(SAMPLES, name)
    if not os.path.exists(path):
        pytest.skip("no samples of NIR here (NEAP_DATA)")
    return path


def test_norse_sample(tmp_path):
    """lif_norse.nir beside what Norse made of it: spikes, and the membrane to 2.4e-8."""
    path = sample_file("lif_norse.nir")
    rows = np.genfromtxt(sample_file("lif_norse.csv"), delimiter=",")
    spikes = (rows[:, 0] > 0)[None, :, None]
    spikes[0, -1, 0] = True  # so that the sample is as long
    [mine] = ran(path, spikes, str(tmp_path), membranes=True)
    fired = [bool(step[0]) for step in mine["outputs"]]
    assert fired[:-1] == (rows[:-1, 2] > 0).tolist() and sum(fired) > 0
    assert np.abs(np.array(mine["membranes"])[:-1, 0] - rows[:-1, 1]).max() < 5e-8


@pytest.mark.parametrize("name", ["braille_noDelay_bias_zero.nir", "braille_noDelay_noBias_subtract.nir"])
def test_braille_samples(name, tmp_path):
    """Two nets of snnTorch beside the equations of NIR; the first layers spike, and the last."""
    path = sample_file(name)
    spikes = draw(1, 12, 0.4, 20, 60)
    graph = Graph(path, DT)
    fired = 0
    for mine, x in zip(ran(path, spikes, str(tmp_path)), spikes):
        theirs = graph.run(x)
        assert same_spikes(mine, theirs, ["lif1.lif", "lif2"]) == 60
        assert mine["answer"] == theirs["lif2"].sum(0).tolist()
        fired += theirs["lif2"].sum()
    assert fired > 0


def test_convolutional_sample(tmp_path):
    """A net of sinabs (N-MNIST) compared with the equations of NIR: convolutions, sum pools, neurons without a leak."""
    path = sample_file("cnn_sinabs.nir")
    graph = Graph(path, 1.0)
    spikes = draw(4, 2 * 34 * 34, 0.05, INPUTS, 30)
    fired = 0
    for mine, x in zip(ran(path, spikes, str(tmp_path), 1.0), spikes):
        theirs = graph.run(x)
        assert same_spikes(mine, theirs, ["1", "3", "6", "10", "12"]) == 30
        fired += theirs["12"].sum()
    assert fired > 0


NEAP_NETS = {
    "lif": "lif:24r:reset=hard:scale=2,lif:16:reset=hard:reset_value=-0.25:threshold=0.5:scale=2,li",
    "cubalif": "cubalif:24r:reset=hard:scale=0.5,li:tau=7ms",
    "leaks": "lif:24r:reset=hard:scale=2:learn=tau,cubalif:12:reset=hard:scale=2:learn=tau,li:learn=tau",
    "conv": "lif:conv=3:channels=6:stride=2x1:pad=1:shape=2x5x2:reset=hard:scale=3,"
            "cubalif:conv=2:channels=4:pad=1:dilation=1x2:reset=hard:scale=4:learn=tau,li",
    "pool": "lif:conv=1:channels=5:pool=1x2:pooling=avg:shape=2x5x2:reset=hard:scale=6,"
            "lif:12r:pool=2x1:reset=hard:scale=3,li",
    "skip": "lif:24r:reset=hard:scale=3,integrator:9:tau=4ms:from=input+layer0:scale=3:delay=1,"
            "lif:16:reset=hard:scale=4:from=layer0+layer1,li:from=input+layer2",
    "feedback": "lif:24:reset=hard:scale=3:from=input+layer1+layer2,integrator:9r:scale=3:recurrent_scale=0.1:learn=tau,"
                "lif:12r:reset=hard:scale=3,li:from=layer1+layer2:delay=1",
    "image": "lif:conv=3:channels=4:stride=2x1:pad=1:shape=2x5x2:reset=hard:scale=3,lif:9:from=input+layer0:reset=hard:scale=3,li",
    "sparse": "lif:24r:reset=hard:scale=3:density=0.4,lif:16:reset=hard:scale=2:density=0.5,li",
}
# Convolutions whose sizes nir 1.0.8 infers wrongly: kernels that are not square, and groups.
MORE_NETS = {
    "norm": "lif:conv=3x1:channels=6:groups=2:pad=1x0:shape=2x5x2:norm=batch:conv_pool=2x1:reset=hard:scale=3,"
            "cubalif:9r:norm=batch:reset=hard:scale=4,lif:7:density=0.6:norm=batch:from=layer0+layer1:reset=hard,li",
    "windows": "lif:conv=2x1:channels=5:pool=1x2:pool_stride=1:pooling=avg:shape=2x5x2:conv_pool=3x1:conv_pool_stride=1:"
               "reset=hard:scale=6,lif:12r:pool=2x1:pool_stride=1:reset=hard:scale=3,li",
    "late": "lif:conv=3x2:channels=5:shape=2x5x2:reset=hard:scale=4,"
            "lif:conv=2x1:channels=4:pool=2x1:pool_stride=1:pooling=avg:reset=hard:scale=6:delay=7,li:delay=4",
    "late_skip": "lif:24r:reset=hard:scale=3,lif:9:from=input+layer0:scale=3:delay=3:reset=hard,"
                 "lif:8:reset=hard:scale=3,li:from=layer1+layer2:delay=6",
    "groups": "lif:conv=3x2:channels=6:groups=2:pad=1x0:shape=2x5x2:reset=hard:scale=3,"
              "lif:conv=2x1:channels=9:groups=3:reset=hard:scale=4,li:pool=2x1:pooling=avg"}


def trained(folder, net, *more):
    run = os.path.join(folder, "run")
    run_tool("train", "randman:steps=60,samples=80,classes=4,units=20", "--net", net, "--memory", "8M", "--epochs", 1,
             "--seed", 3, "--threads", 1, "--out", run, *more)
    return run


def answers(model, *more):
    return run_tool("predict", "--from", model, "randman:steps=60,samples=40,classes=4,units=20,part=test", *more)


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("name", {**NEAP_NETS, **MORE_NETS})
def test_there_and_back(name, precision, tmp_path):
    """What comes back is the net to the bit; and the graph alone, without neap's metadata, says the same."""
    run = trained(str(tmp_path), {**NEAP_NETS, **MORE_NETS}[name], "--precision", precision)
    path = os.path.join(str(tmp_path), "net.nir")
    run_tool("export", run, "--nir", path)
    assert answers(path) == answers(run)
    if precision == "float" or name in ("skip", "feedback", "late_skip"):  # test_nir_graphs.py has the equations of these
        return
    spikes = draw(2, 20, 0.3, 6, 60)
    graph = Graph(path, 1e-3)
    layers = [n for n in sorted(graph.order) if n.startswith("layer")]
    with h5py.File(path, "a") as f:
        del f["node/metadata"]
    for mine, x in zip(ran(path, spikes, str(tmp_path), 1e-3), spikes):
        theirs = graph.run(x)
        assert same_spikes(mine, theirs, layers) == 60
        assert sum(theirs[n].sum() for n in layers) > 0
        assert np.abs(np.array(mine["answer"]) - theirs["readout"].mean(0)).max() < 1e-9


def test_resets_in_metadata(tmp_path):
    """Resets that NIR cannot say are refused by name, or kept beside the graph."""
    run = trained(str(tmp_path), "lif:24r:scale=2,cubalif:12:reset=soft:scale=2:delay=1,li")
    path = os.path.join(str(tmp_path), "net.nir")
    done = subprocess.run([os.environ["NEAP_BIN"], "export", run, "--nir", path], capture_output=True, text=True)
    assert done.returncode == 2 and "layer0 has reset=subtract" in done.stderr and not os.path.exists(path)
    run_tool("export", run, "--nir", path, "--metadata")
    assert answers(path) == answers(run)


@pytest.mark.parametrize("cell", ["alif", "adlif", "seadlif", "brf", "rnn", "lstm", "gru", "egru"])
def test_cells_that_nir_cannot_say(cell, tmp_path):
    run = trained(str(tmp_path), f"lif:8:reset=hard,{cell}:8,li")
    done = subprocess.run([os.environ["NEAP_BIN"], "export", run, "--nir", str(tmp_path / "net.nir")],
                          capture_output=True, text=True)
    assert done.returncode == 2 and f"layer1 is {cell}, which NIR cannot express" in done.stderr
    assert done.stderr.count("\n") == 1 and not (tmp_path / "net.nir").exists()


@pytest.mark.parametrize("name", NEAP_NETS)
def test_nir_package(name, tmp_path):
    """Python's nir reads and checks what neap writes, and what it writes again is the same net."""
    nir = pytest.importorskip("nir")
    run = trained(str(tmp_path), NEAP_NETS[name])
    path, again = os.path.join(str(tmp_path), "net.nir"), os.path.join(str(tmp_path), "again.nir")
    run_tool("export", run, "--nir", path)
    graph = nir.read(path)  # checks types and edges
    assert nir.serialization.read_version(path) == "1.0" and float(graph.metadata["dt"]) == 1e-3
    nir.write(again, graph)
    assert answers(again) == answers(run)


def test_trains_on(tmp_path):
    """`train --from net.nir` begins with the weights of the graph."""
    run = trained(str(tmp_path), NEAP_NETS["lif"])
    path, out = os.path.join(str(tmp_path), "net.nir"), os.path.join(str(tmp_path), "out")
    run_tool("export", run, "--nir", path)
    run_tool("train", "randman:steps=60,samples=80,classes=4,units=20", "--from", path, "--lr", 0, "--epochs", 1,
             "--memory", "8M", "--out", out)
    assert answers(out) == answers(run)


def write_graph(path, nodes, edges, where="node"):
    """Nodes {name: (type, {parameter: numbers}) or (nodes, edges)} as a NIR file."""
    with h5py.File(path, "a") as f:
        if where == "node":
            f["version"] = "0.2.0"
        f[f"{where}/type"] = "NIRGraph"
        f.create_dataset(f"{where}/edges", data=[[a.encode(), b.encode()] for a, b in edges], dtype=h5py.string_dtype())
    for name, (kind, params) in nodes.items():
        inner = f"{where}/nodes/{name}"
        if isinstance(kind, dict):
            write_graph(path, kind, params, inner)
            continue
        with h5py.File(path, "a") as f:
            f[f"{inner}/type"] = kind
            for key, value in params.items():
                f.create_dataset(f"{inner}/{key}", data=value)
    return path


def lif(n, **more):
    one = np.ones(n)
    return "LIF", {"tau": one * 1e-3, "r": one * 5.0, "v_leak": one * 0, "v_threshold": one, **more}


def euler(x, w, bias, tau, r, leak, threshold, reset, recurrent=None):
    """Spikes [steps, units] of one layer of LIF in steps of DT."""
    v, z, found = leak.copy(), np.zeros(len(tau)), []
    for row in x.astype("f8"):
        total = w @ row + bias + (recurrent @ z if recurrent is not None else 0)
        v = v + DT / tau * (leak - v + r * total)
        z = (v > threshold).astype("f8")
        v = np.where(z, reset, v)
        found.append(z)
    return np.array(found)


def test_graphs_of_all_nodes(tmp_path):
    """Inner graphs, scales, weights behind weights, flatten, a delay, two edges into one node, scalars, units that
    differ in everything; edges in any order."""
    pick = np.random.default_rng(4)
    a, b, c, v = (pick.normal(size=s) for s in ((7, 12), (6, 7), (6, 12), (6, 6)))
    scale, bias, share = pick.random(12) + 0.5, pick.normal(size=7) * 0.1, 0.25
    tau, r, leak = pick.random(6) * 1e-3 + 2e-4, pick.random(6) * 2 + 1, pick.random(6) * 0.2
    threshold = leak + pick.random(6) * 0.5 + 0.5
    reset = leak + share * (threshold - leak)
    inner = ({"in": ("Input", {"shape": [6]}), "out": ("Output", {"shape": [6]}), "w": ("Linear", {"weight": v}),
              "n": ("LIF", {"tau": tau, "r": r, "v_leak": leak, "v_threshold": threshold, "v_reset": reset})},
             [("n", "out"), ("w", "n"), ("in", "n"), ("n", "w")])
    out = pick.normal(size=(5, 6))
    nodes = {"input": ("Input", {"shape": [3, 4]}), "flat": ("Flatten", {"start_dim": 0, "end_dim": -1}),
             "s": ("Scale", {"scale": scale}), "a": ("Affine", {"weight": a, "bias": bias}), "b": ("Linear", {"weight": b}),
             "c": ("Linear", {"weight": c}), "rec": inner, "late": ("Delay", {"delay": np.ones(6) * DT}),
             "out": ("Linear", {"weight": out}),
             "last": ("IF", {"r": 3e3, "v_threshold": 1.5, "v_reset": 0.0}), "output": ("Output", {"shape": [1, 5]})}
    edges = [("last", "output"), ("late", "out"), ("rec", "late"), ("b", "rec"), ("c", "rec"), ("flat", "c"), ("flat", "s"),
             ("s", "a"), ("out", "last"), ("a", "b"), ("input", "flat")]
    path = write_graph(str(tmp_path / "net.nir"), nodes, edges)
    spikes = draw(3, 12)
    total = 0
    for mine, x in zip(ran(path, spikes, str(tmp_path)), spikes):
        first = euler(x, b @ a @ np.diag(scale) + c, b @ bias, tau, r, leak, threshold, reset, v)
        late = np.vstack([np.zeros((1, 6)), first[:-1]])
        second, u = [], np.zeros(5)
        for row in late:
            u = u + DT * 3e3 * (out @ row)
            second.append((u > 1.5).astype("f8"))
            u = np.where(second[-1], 0, u)
        assert same_spikes(mine, {0: first, 1: np.array(second)}, [0, 1]) == STEPS
        assert mine["answer"] == np.sum(second, 0).tolist()
        total += first.sum() * np.sum(second)
    assert total > 0


def values_file(path, seed, samples=8, steps=30, features=5):
    x = np.random.default_rng(seed).normal(size=(samples, steps, features)) * 2 + 3
    with h5py.File(path, "w") as f:
        f["x"], f["y"] = x, np.arange(samples) % 3
    return x


def scores(model, data, *more):
    rows = run_tool("predict", "--from", model, data, *more).splitlines()[1:]
    return np.array([[float(v) for v in row.split(",")[4:]] for row in rows])


def test_inputs_that_are_numbers(tmp_path):
    """A graph of another tool sees the numbers of a data set as they are; one of neap's as the model does."""
    pick, data = np.random.default_rng(1), str(tmp_path / "x.h5")
    x = values_file(data, 6)
    nodes = {"input": ("Input", {"shape": [5]}), "w": ("Linear", {"weight": pick.normal(size=(9, 5))}), "n": lif(9),
             "v": ("Linear", {"weight": pick.normal(size=(3, 9))}),
             "o": ("LI", {"tau": np.full(3, 2e-3), "r": np.ones(3), "v_leak": np.zeros(3)}), "output": ("Output", {"shape": [3]})}
    path = write_graph(str(tmp_path / "net.nir"), nodes, [("input", "w"), ("w", "n"), ("n", "v"), ("v", "o"), ("o", "output")])
    graph = Graph(path, DT)
    wanted = np.array([graph.run(np.float32(sample))["o"].mean(0) for sample in x])
    assert np.abs(scores(path, data, "--dt", "0.1ms") - wanted).max() < 1e-9 and np.abs(wanted).max() > 0
    run = str(tmp_path / "run")
    run_tool("train", data, "--net", "lif:9:reset=hard,li", "--epochs", 1, "--memory", "8M", "--validation", 0, "--out", run)
    back = str(tmp_path / "back.nir")
    run_tool("export", run, "--nir", back)
    assert (scores(back, data) == scores(run, data)).all()


def test_goes_on_with_the_same_means(tmp_path):
    """`--from` keeps means and deviations of the model; a resumed run does, too."""
    first, other, run = (str(tmp_path / name) for name in ("a.h5", "b.h5", "run"))
    values_file(first, 1), values_file(other, 2)
    common = ["--memory", "8M", "--validation", 0, "--batch", 4, "--schedule", "constant"]
    run_tool("train", first, "--net", "lif:9,li", "--epochs", 1, "--out", run, *common)
    still, whole, parts = (str(tmp_path / name) for name in ("still", "whole", "parts"))
    run_tool("train", other, "--from", run, "--lr", 0, "--epochs", 1, "--out", still, *common)
    assert (scores(still, first) == scores(run, first)).all()
    run_tool("train", other, "--from", run, "--epochs", 3, "--out", whole, *common)
    run_tool("train", other, "--from", run, "--epochs", 1, "--out", parts, *common)
    run_tool("train", "--resume", "--out", parts, "--epochs", 3)
    assert (scores(parts, other) == scores(whole, other)).all()


def conv(shape, **more):
    usual = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, "bias": np.zeros(shape[0])}
    return ("Conv2d", {"weight": np.ones(shape), **usual, **more})


def pool(kernel, **more):
    return ("SumPool2d", {"kernel_size": kernel, "stride": kernel, "padding": [0, 0], **more})


CHAIN = [("input", "w"), ("w", "n"), ("n", "output")]


@pytest.mark.parametrize("nodes, edges, said", [
    ({"k": ("MaxPool2d", {"kernel_size": [2, 2]})}, CHAIN, "node 'k' is of type MaxPool2d"),
    ({"w": conv((4, 3, 2, 2))}, CHAIN, "weights for another number of channels"),
    ({"w": conv((4, 12, 2))}, CHAIN, "four dimensions of a Conv2d"),
    ({"w": conv((4, 12, 2, 2))}, CHAIN, "a kernel larger than what enters"),
    ({"w": conv((4, 12, 1, 1), stride=[0, 1])}, CHAIN, "a stride, padding, dilation or groups"),
    ({"w": conv((4, 12, 1, 1), padding="half")}, CHAIN, "'same' or 'valid'"),
    ({"w": conv((4, 12, 1, 2), padding="same")}, CHAIN, "the padding 'same'"),
    ({"w": conv((4, 12, 1, 1), bias=np.ones(3))}, CHAIN, "a bias of another size than its channels"),
    ({"input": ("Input", {"shape": [3, 2, 2]}), "w": conv((1, 3, 1, 1)), "n": lif(4, tau=[1e-3, 2e-3, 1e-3, 1e-3])}, CHAIN,
     "differ between units of a channel"),
    ({"w": pool([1, 1], stride=[0, 2])}, CHAIN, "a stride below 1, or padding of more than half"),
    ({"w": pool([1, 1], padding=[1, 0])}, CHAIN, "a stride below 1, or padding of more than half"),
    ({"input": ("Input", {"shape": [4, 3, 1]}), "w": pool([3, 1]), "k": pool([1, 1])}, [("input", "w"), ("w", "k"), ("k", "n"), ("n", "output")], "follows another pool"),
    ({"input": ("Input", {"shape": [12, 3, 1]}), "w": conv((1, 12, 1, 1), bias=np.ones(1)),
      "k": pool([2, 1], stride=[1, 1], padding=[1, 0])},
     [("input", "w"), ("w", "k"), ("k", "n"), ("n", "output")], "biases differ between units of a channel"),
    ({"input": ("Input", {"shape": [3, 2, 2]}), "w": conv((1, 3, 1, 1)), "k": ("Scale", {"scale": np.array([1, 1, 2, 1.0])})},
     [("input", "w"), ("w", "k"), ("k", "n"), ("n", "output")], "factors differ between units of a channel"),
    ({"w": pool([2, 1])}, CHAIN, "windows larger than what enters"),
    ({"input": ("Input", {"shape": [12]}), "w": pool([1, 1])}, CHAIN, "channels, height and width"),
    ({"k": conv((4, 4, 1, 1))}, [("input", "w"), ("w", "k"), ("k", "n"), ("n", "output")],
     "channels, height and width"),
    ({}, CHAIN + [("n", "nowhere")], "'nowhere', which is not a node"),
    ({"n": lif(3)}, CHAIN, "4 numbers leave node 'w', 3 may enter 'n'"),
    ({"n": lif(4, tau=np.zeros(4))}, CHAIN, "time constant of 0 or below"),
    ({"n": lif(4, r=np.full(4, np.nan))}, CHAIN, "not finite"),
    ({"n": lif(4, v_leak=np.zeros((4, 1, 1, 1, 1)))}, CHAIN, "dimension"),
    ({"n": ("LIF", {"tau": np.ones(4)})}, CHAIN, "has no 'r'"),
    ({"w": ("Linear", {"weight": np.ones(4)})}, CHAIN, "weights that are not a matrix"),
    ({"m": lif(4), "w2": ("Linear", {"weight": np.ones((4, 12))})}, CHAIN + [("input", "w2"), ("w2", "m")], "'m' is not connected to the Output"),
    ({}, [("input", "w"), ("w", "n")], "is not connected to the Output"),
    ({}, [("input", "w"), ("w", "output"), ("n", "n")], "'n' receives nothing from the Input"),
    ({"in2": ("Input", {"shape": [4]})}, CHAIN, "more than one Input"),
    ({"output": ("Linear", {"weight": np.ones((4, 4))})}, CHAIN, "no Output"),
    ({"w": ("Affine", {"weight": np.ones((4, 12)), "bias": np.ones(3)})}, CHAIN, "bias of another size"),
    ({"g": ({"x": lif(4)}, [])}, CHAIN + [("n", "g")], "the graph 'g' has no Input"),
])
def test_refused_graphs(nodes, edges, said, tmp_path):
    base = {"input": ("Input", {"shape": [12, 1, 1] if nodes.get("w", " ")[0] in ("Conv2d", "SumPool2d") else [12]}), "w": ("Linear", {"weight": np.ones((4, 12))}), "n": lif(4),
            "output": ("Output", {"shape": [4]})}
    path = write_graph(str(tmp_path / "net.nir"), {**base, **nodes}, edges)
    done = subprocess.run([os.environ["NEAP_BIN"], "eval", "--from", path, "--dt", "0.1ms", "randman:units=12"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


# ---- what other programs export ----

def frameworks(name):
    """PyTorch, Python's nir, nirtorch and the framework, or the test is skipped."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("nir")
    pytest.importorskip("nirtorch")
    pytest.importorskip(name)
    torch.set_num_threads(1)
    return torch


def snntorch_net(torch, seed):
    """A net of snnTorch, the resets that its neurons have, and neap's word for them (no file has either)."""
    import snntorch as snn

    pick = random.Random(seed)
    reset = pick.choice(["subtract", "subtract", "zero"])
    zero = pick.choice(["leaky", "rleaky"])
    kinds, layers, below = [], [], 12
    for _ in range(pick.choice([1, 2, 2, 3])):
        n = pick.choice([5, 16, 24])
        # One word is of all layers: where reset to zero of a kind is another than Leaky's, it stands alone.
        kind = pick.choice(["leaky", "rleaky", "synaptic", "rsynaptic"] if reset == "subtract" else [zero])
        kinds.append(kind)
        linear = torch.nn.Linear(below, n, bias=pick.random() < 0.5)
        linear.weight.data *= pick.choice([1.5, 3.0])
        per_unit = pick.random() < 0.5
        share = (lambda: torch.rand(n) * 0.5 + 0.4) if per_unit else (lambda: torch.full((n,), pick.uniform(0.4, 0.95)))
        common = {"reset_mechanism": reset, "init_hidden": True, "threshold": torch.full((n,), pick.choice([0.5, 1.0]))}
        if kind == "leaky":
            cell = snn.Leaky(beta=share(), **common)
        elif kind == "rleaky":
            cell = snn.RLeaky(beta=share(), linear_features=n, **common)
        elif kind == "synaptic":
            cell = snn.Synaptic(alpha=share(), beta=share(), **common)
        else:
            cell = snn.RSynaptic(alpha=share(), beta=share(), linear_features=n, **common)
        layers += [linear, cell]
        below = n
    return torch.nn.Sequential(*layers), reset if reset == "subtract" or zero == "rleaky" else "hard"


@pytest.mark.filterwarnings("ignore")  # of the frameworks
@pytest.mark.parametrize("seed", range(NETS))
def test_snntorch(seed, tmp_path):
    """snnTorch computes in 32 bits, and so does neap: equal but where a membrane is at the threshold to rounding."""
    torch = frameworks("snntorch")
    import nir
    from snntorch.export_nir import export_to_nir

    torch.manual_seed(seed)
    net, reset = snntorch_net(torch, seed)
    path = str(tmp_path / "net.nir")
    nir.write(path, export_to_nir(net, torch.zeros(1, 12), ignore_dims=[0]))
    spikes = draw(seed, 12)
    cells = [m for m in net if hasattr(m, "mem")]
    for cell in cells:
        getattr(cell, "reset_mem", lambda: None)()
        for part in ("mem", "syn", "spk"):
            if hasattr(cell, part):
                setattr(cell, part, torch.zeros(0))
    fired, margins = [], []
    with torch.no_grad():
        for t in range(STEPS):
            y, row, margin = torch.tensor(spikes[:, t], dtype=torch.float32), [], []
            for module in net:
                y = module(y)
                if module in cells:
                    row.append(y.numpy())
                    margin.append((module.mem - module.threshold).numpy())
            fired.append(row)
            margins.append(margin)
    whole = compared = total = 0
    for b, mine in enumerate(ran(path, spikes, str(tmp_path), DT, reset)):
        theirs = {i: np.array([row[i][b] for row in fired]) for i in range(len(cells))}
        margin = {i: np.array([row[i][b] for row in margins]) for i in range(len(cells))}
        steps = same_spikes(mine, theirs, list(range(len(cells))), margin)
        compared, whole, total = compared + steps, whole + (steps == STEPS), total + theirs[0].sum()
    print(f"{whole} of {len(spikes)} samples are equal to the last step")
    assert total > 0 and whole >= 0.9 * len(spikes), (whole, compared)


def norse_net(torch, seed, dt):
    import norse.torch as norse

    pick = random.Random(seed)
    layers, below = [], 12
    for index in range(pick.choice([1, 2, 3])):
        n = pick.choice([5, 16, 24])
        linear = torch.nn.Linear(below, n)
        linear.weight.data *= pick.choice([10.0, 20.0])
        same = pick.random() < 0.5
        inverse = torch.full((n,), pick.uniform(30, 300)) if same else torch.rand(n) * 200 + 30
        zero = torch.zeros(n)
        leak = zero if pick.random() < 0.5 else torch.full((n,), 0.05)
        if pick.random() < 0.5:
            p = norse.LIFBoxParameters(tau_mem_inv=inverse, v_th=torch.full((n,), 0.6), v_leak=leak, v_reset=zero)
            cell = norse.LIFBoxCell(p, dt=dt)
        else:
            p = norse.LIFParameters(tau_syn_inv=inverse, tau_mem_inv=inverse * 0.7, v_th=torch.full((n,), 0.6),
                                    v_leak=zero, v_reset=zero)
            cell = norse.LIFCell(p, dt=dt)
        layers += [linear, cell]
        below = n
    if pick.random() < 0.5:
        p = norse.LIBoxParameters(tau_mem_inv=torch.full((4,), 100.0), v_leak=torch.zeros(4))
        layers += [torch.nn.Linear(below, 4), norse.LIBoxCell(p, dt=dt)]
    return norse.SequentialState(*layers)


@pytest.mark.filterwarnings("ignore")  # of the frameworks
@pytest.mark.parametrize("seed", range(NETS))
def test_norse(seed, tmp_path):
    """Norse in 64 bits. Its to_nir multiplies time constants with its argument dt, so that 1 keeps seconds, and
    its LIFCell adds inputs to the current as they are, which in NIR is w_in = tau_syn / dt."""
    torch = frameworks("norse")
    import nir
    from norse.torch.utils.export_nir import to_nir

    torch.manual_seed(seed)
    torch.set_default_dtype(torch.float64)
    try:
        net = norse_net(torch, seed, DT)
        unit = 1.0 if seed % 2 else 0.001  # what to_nir takes without a word
        graph = to_nir(net, torch.zeros(1, 12), dt=unit)
    finally:
        torch.set_default_dtype(torch.float32)
    for node in graph.nodes.values():
        if isinstance(node, nir.CubaLIF):
            node.w_in = np.asarray(node.tau_syn) / (DT * unit)
    path = str(tmp_path / "net.nir")
    nir.write(path, graph)
    spikes = draw(seed, 12)
    modules = list(net.children())
    states, fired, outputs = [None] * len(modules), [], []
    with torch.no_grad():
        for t in range(STEPS):
            y, row = torch.tensor(spikes[:, t], dtype=torch.float64), []
            for i, module in enumerate(modules):
                if isinstance(module, torch.nn.Linear):
                    y = module(y)
                    continue
                y, states[i] = module(y, states[i])
                row.append(y.detach().numpy())
            fired.append(row)
    is_li = type(modules[-1]).__name__ == "LIBoxCell"
    cells = len(fired[0]) - is_li
    total = 0
    for b, mine in enumerate(ran(path, spikes, str(tmp_path), DT * unit)):
        theirs = {i: np.array([row[i][b] for row in fired]) for i in range(cells)}
        assert same_spikes(mine, theirs, list(range(cells))) == STEPS
        total += sum(x.sum() for x in theirs.values())
        if is_li:
            mean = np.mean([row[-1][b] for row in fired], 0)
            assert np.abs(np.array(mine["answer"]) - mean).max() < 1e-9
    assert total > 0


@pytest.mark.filterwarnings("ignore")  # of the framework
def test_snntorch_reads(tmp_path):
    """A net of neap's at 0.1 ms in snnTorch: the same spikes."""
    torch = frameworks("snntorch")
    import nir
    from snntorch.import_nir import import_from_nir

    run = trained(str(tmp_path), "lif:24:reset=hard:scale=2:tau=1ms,lif:16:reset=hard:scale=3:tau=0.6ms,li", "--dt", "0.1ms")
    path = str(tmp_path / "net.nir")
    run_tool("export", run, "--nir", path)
    graph = nir.read(path)
    for name in ("readout", "readout.weight"):  # snnTorch has no node for LI
        del graph.nodes[name]
    graph.edges = [e for e in graph.edges if "readout" not in e[0] + e[1]] + [("layer1.cell", "output")]
    graph.nodes["output"] = nir.Output(output_type={"output": np.array([16])})
    net = import_from_nir(graph)
    spikes = draw(5, 20)
    fired, state = [], None
    with torch.no_grad():
        for t in range(STEPS):
            y, state = net(torch.tensor(spikes[:, t], dtype=torch.float32), state)
            fired.append(y.numpy())
    fired = np.array(fired)
    assert fired.sum() > 0
    for b, mine in enumerate(ran(path, spikes, str(tmp_path))):
        wanted = [np.nonzero(row)[0].tolist() for row in fired[:, b]]
        assert [step[1] for step in mine["outputs"]] == wanted
