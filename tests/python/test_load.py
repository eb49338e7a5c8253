# SPDX-License-Identifier: Apache-2.0
"""neap.torch.load: nets of the tool as plain PyTorch, beside the C code: losses, answers, spikes step
for step, gradients; and files that are none."""
import json
import math
import os
import random
import struct

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from conftest import run_tool  # noqa: E402
from neap.tensors import read_tensors  # noqa: E402
from neap.torch.surrogates import spikes  # noqa: E402
from nets_of_tests import DATA, SETTINGS, SOURCE, evaluated, printed, recordings, trained  # noqa: E402

F64 = torch.float64
torch.set_num_threads(1)  # tensors are small


def dumps():
    """Nets that other programs have run and differentiated: tests/nn/torch_*.json."""
    for name in ("torch_dump", "torch_cells", "torch_leaks", "torch_sources", "torch_neurons"):
        path = os.path.join(SOURCE, "tests", "nn", name + ".json")
        with open(path) as file:
            yield from ((net["name"], net) for net in json.load(file)["nets"])


DUMPS = dict(dumps())


def batch_of(samples, inputs):
    """Inputs [T, batch, inputs], lengths and labels of samples with events."""
    lengths = [len(sample["events"]) for sample in samples]
    x = torch.zeros(max(lengths), len(samples), inputs, dtype=F64)
    for b, sample in enumerate(samples):
        for t, units in enumerate(sample["events"]):
            x[t, b, units] = 1
    return x, torch.tensor(lengths), torch.tensor([sample["label"] for sample in samples])


def shaped(name, values, layer):
    """A tensor of a dump with the shape that a model's file gives it."""
    tensor = torch.tensor(values, dtype=F64)
    if not name.endswith((".weight", ".recurrent", ".candidate")):
        return tensor.view(1, -1)
    return tensor.view(layer.below if name.endswith(".weight") else layer.n, -1)


def of_dump(net):
    settings = {**SETTINGS, "net": net["spec"], "inputs": str(net["inputs"]), "classes": str(net["classes"]),
                "readout": net["readout"]}
    layers = neap.specs.parse(settings)
    tensors = {}
    for tensor in net["tensors"]:
        part = tensor["name"].split(".")[0]
        layer = layers[-1 if part == "readout" else int(part[5:])]
        tensors[tensor["name"]] = shaped(tensor["name"], tensor["values"], layer)
    return nt.Net(settings, tensors)


def penalty(net, hidden, lengths):
    """The penalty on rates that the dump's loss has in it."""
    total, own = 0, net["penalty"]
    inside = torch.arange(int(lengths.max())).view(-1, 1, 1) < lengths.view(1, -1, 1)
    for spikes in hidden:
        rate = (spikes * inside).sum((0, 1)) / lengths.sum()
        total = total + own["upper_weight"] * (rate - own["upper"]).clamp(min=0).pow(2).sum()
        total = total + own["l2"] * rate.pow(2).sum()
    return total


@pytest.mark.parametrize("name", DUMPS)
def test_equals_other_programs(name):
    """Loss, spikes and gradients of nets that autograd differentiated elsewhere."""
    net = DUMPS[name]
    module = of_dump(net)
    x, lengths, labels = batch_of(net["samples"], net["inputs"])
    outputs, hidden = module.outputs(x)
    loss = module.loss(outputs, labels, lengths) + penalty(net, hidden, lengths)
    assert abs(loss.item() - net["loss"]) < 1e-12 * abs(net["loss"])
    for b, fired in enumerate(net["spikes"]):
        for layer, steps in enumerate(fired):
            if any(steps):
                found = [row.nonzero().flatten().tolist() for row in hidden[layer][:len(steps), b]]
                assert found == steps
    loss.backward()
    grads = {part: p.grad for part, p in module.step.named_parameters()}
    leaks = {"leak": "tau.logit", "leak_syn": "tau_syn.logit", "leak_adapt": "tau_adapt.logit",
             "omega": "omega.stored", "a": "a.stored", "b": "b.stored"}
    for tensor in net["tensors"]:
        part, key = tensor["name"].split(".")
        found, wanted = grads[f"{part}.{leaks.get(key, key)}"].flatten(), torch.tensor(tensor["grad"], dtype=F64)
        assert (found - wanted).abs().max() < 1e-12 * wanted.abs().max(), tensor["name"]


NETS = {
    "lif": ("lif:24r:scale=2,lif:16:scale=2:delay=1,li",),
    "zero": ("lif:24r:reset=zero:scale=2,li:tau=7ms", "--readout", "max"),
    "hard": ("lif:24r:reset=hard:reset_value=-0.1:scale=2,li", "--readout", "last"),
    "soft": ("lif:24r:scale=2,li", "--reset", "soft", "--readout", "sum", "--surrogate", "atan"),
    "cubalif": ("cubalif:24r:scale=0.5,li", "--readout", "softmax", "--euler"),
    "cubalif-resets": ("cubalif:24r:scale=0.5:reset=hard:reset_value=-0.1,cubalif:12:reset=soft:learn=tau,li",),
    "alif": ("alif:24r:scale=2:surrogate=sigmoid:support=1,li", "--detach", "--surrogate", "gaussian"),
    "adlif": ("adlif:24r:scale=30,adlif:12:scale=30,li", "--learn", "tau"),
    "adlif at 0.3 ms": ("adlif:24r:scale=30,adlif:12:scale=30,li", "--dt", "0.3ms"),
    "seadlif": ("seadlif:24r:scale=30:a=9,seadlif:12:scale=30:learn=tau,li",),
    "all of seadlif": ("seadlif:24r:scale=30:a=1..9:b=0..20:tau=5ms..25ms,seadlif:12:scale=30:learn=all,li",
                       "--surrogate", "slayer"),
    "brf": ("brf:24r:scale=4000:omega=50..90,brf:12:scale=4000:learn=tau:b=9..30,li", "--surrogate", "double_gaussian"),
    "leaks": ("lif:24r:scale=2:learn=tau,cubalif:12:learn=tau,li:learn=tau", "--readout", "step"),
    "rnn": ("rnn:16,rnn:12:activation=relu,li", "--delay", "1"),
    "lstm": ("lstm:12,lstm:8,li",),
    "gru": ("gru:12,gru:8,li", "--loss", "mse"),
    "egru": ("egru:16:threshold=0.1:scale=2:recurrent_scale=1,li", "--dropout", "0.2"),
    "defaults": ("egru:16,lstm:9,li",),
    "unsmoothed": ("lif:24r:scale=2,li:tau=none",),
    "sparse": ("lif:24r:scale=2:density=0.4,gru:12:density=0.3,li:density=0.5",),
    "both": ("lstm:10,lif:12r:scale=4:surrogate=boxcar,li", "--readout", "step", "--loss", "mse"),
}


def compare(run, data, count):
    """Loss, answers and outputs of all hidden layers of the first samples, beside the C code's."""
    samples, wanted = printed(run, count, data)
    net = nt.load(run)
    x, lengths, labels = batch_of(samples, net.layers[0].below)
    with torch.no_grad():
        outputs, hidden = net.outputs(x)
        loss, answers = net.loss(outputs, labels, lengths), net.answer(outputs, lengths)
    assert abs(loss.item() - wanted) <= 1e-12 * abs(wanted)
    fired = 0
    for b, sample in enumerate(samples):
        assert torch.allclose(answers[b], torch.tensor(sample["answer"], dtype=F64), rtol=1e-11, atol=1e-12)
        for t, layers in enumerate(sample["outputs"]):
            for own, units in zip(hidden, layers):
                if units and isinstance(units[0], list):
                    theirs = torch.zeros_like(own[t, b])
                    theirs[[unit for unit, _ in units]] = torch.tensor([y for _, y in units], dtype=F64)
                    assert torch.allclose(own[t, b], theirs, rtol=1e-9, atol=1e-12)
                else:
                    assert own[t, b].nonzero().flatten().tolist() == units
                fired += len(units)
    assert fired > 100
    return net, x, lengths, labels


@pytest.mark.parametrize("name", NETS)
def test_equals_the_tool(name, scratch):
    """A trained net of each cell, reset and readout; `neap eval` over all samples."""
    spec, *more = NETS[name]
    run = trained(scratch, spec, *more)
    net, *_ = compare(run, DATA, 30)
    samples, _ = printed(run, 80)
    x, lengths, labels = batch_of(samples, net.layers[0].below)
    told = evaluated(run)
    with torch.no_grad():
        outputs, _ = net.outputs(x)
        answers = net.answer(outputs, lengths)
        assert abs(net.loss(outputs, labels, lengths).item() - told["loss"]) <= 1e-12 * told["loss"]
    right = int((answers.argmax(1) == labels).sum())
    assert right == sum(row[i] for i, row in enumerate(told["confusion"]))


def test_spikes_of_recordings(scratch):
    """100 spoken digits, step for step."""
    data = recordings(scratch, 100)
    run = trained(scratch, "lif:128r,lif:64,li", "--batch", 16, data=data)
    net, x, lengths, _ = compare(run, data, 100)
    assert len(net.classes) == 10 and int(lengths.max()) == len(x) > 200


def test_within_a_budget(scratch):
    """A scan over the net's step: the bits of the plain loop."""
    net, x, lengths, labels = compare(trained(scratch, "lif:24r:scale=2,adlif:12:scale=20:learn=tau,li"), DATA, 20)
    net.loss(net.outputs(x)[0], labels, lengths).backward()
    wanted = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    scan = nt.Scan(net.step, memory="600K", group=2, strategy="revolve", costs=(1, 1, 2))
    _, outputs = scan(net.start(len(labels)), x)
    net.loss(outputs, labels, lengths).backward()
    assert scan.report().extra_steps > 0
    for p, grad in zip(net.parameters(), wanted):
        assert torch.equal(p.grad, grad)


def test_in_float(scratch):
    run = os.path.join(scratch, "run")
    run_tool("train", DATA, "--net", "gru:8,li", "--memory", "8M", "--epochs", 1, "--out", run)
    net = nt.load(run)
    assert {p.dtype for p in net.parameters()} == {torch.float32}
    x = torch.zeros(5, 2, net.layers[0].below)
    assert net(x).shape == (2, 4) and net(x).dtype == torch.float32
    assert torch.allclose(nt.load(run, F64)(x.double()).float(), net(x), atol=1e-6)
    state = nt.load(os.path.join(run, "last.safetensors")).state_dict()
    assert list(state) == list(net.state_dict())
    with pytest.raises(neap.UsageError, match="inputs have dtype torch.float64"):
        net(x.double())
    with pytest.raises(neap.UsageError, match=r"needs \[T, batch, 70\]"):
        net(x[:, :, :3])
    with pytest.raises(neap.UsageError, match="lengths"):
        net(x, torch.tensor([0, 9]))


def test_binned():
    net = of_dump(DUMPS["gru"])
    x, lengths = net.binned([([0.0, 0.0031, 0.0039, 0.00499999999], [1, 2, 2, 3]), ([], [], 0.0042), ([0.001], [9])])
    assert lengths.tolist() == [6, 5, 2] and x.shape == (6, 3, 10) and x.dtype == F64
    assert x.nonzero().tolist() == [[0, 0, 1], [1, 2, 9], [3, 0, 2], [5, 0, 3]]
    net.max_steps = 4
    assert net.binned([([0.0, 0.0049], [1, 2])])[1].tolist() == [4]
    for bad, why in (([0.0], []), "1 times"), (([0.0], [10]), "channel 10"), (([-1.0], [0]), "before time 0"):
        with pytest.raises(neap.UsageError, match=why):
            net.binned([bad])


# Files

def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(**more):
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **more}}


@pytest.mark.parametrize("data, why", [
    (b"", "longer than the file of 0 bytes"), (b"\xff" * 8, "longer"), (file_of(one(), b"12345678")[:40], "file of 40 bytes"),
    (file_of(b"{"), "not valid JSON"), (file_of(b"[]"), "not a JSON object"), (file_of(b"[" * 100000), "not valid JSON"),
    (file_of({"__metadata__": {"a": 1}}), "metadata"), (file_of({"a": 1}), "dtype"),
    (file_of(one(dtype="F7"), b"12345678"), "none of F64, F32"), (file_of(one(shape=[-2]), b"12345678"), "shape"),
    (file_of(one(shape=[2**62, 2**62]), b"12345678"), "need"), (file_of(one(shape=[3]), b"12345678"), "need 12 bytes"),
    (file_of(one(data_offsets=[0]), b"12345678"), "two nonnegative"), (file_of(one(data_offsets=[8, 0]), b"1" * 8), "8 to 0 are not within"),
    (file_of(one(), b"1234"), "within the 4 bytes"), (file_of(one(), b"1" * 12), "12 follow"),
    (file_of({**one(), "b": one()["a"]}, b"1" * 8), "overlap"),
    (file_of(one(data_offsets=[4, 12]), b"1" * 12), "begins at byte 4.* gaps")])
def test_files_that_are_none(data, why, tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(neap.FormatError, match=why) as caught:
        read_tensors(str(path))
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def model(tmp_path, settings=None, drop=None, **tensors):
    """The file of a small net, but for what the arguments change."""
    net = {**SETTINGS, "net": "lif:2,li", "inputs": "3", "classes": "2", "precision": "double", **(settings or {})}
    shapes = {"layer0.weight": [3, 2], "layer0.bias": [1, 2], "readout.weight": [2, 2], "readout.bias": [1, 2],
              **tensors}
    header, at = {"__metadata__": {"neap.net": json.dumps({k: v for k, v in net.items() if k != drop})}}, 0
    for name, shape in shapes.items():
        size = 8 * int(torch.tensor(shape).prod())
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    path = tmp_path / "model.safetensors"
    path.write_bytes(file_of(header, bytes(at)))
    return str(path)


def too_sparse():
    """65536 x 65536 weights, none of which is there."""
    nt.Net({**SETTINGS, "net": "lif:65536,li", "inputs": "65536", "classes": "2"}, {
        "layer0.weight": torch.zeros(0), "layer0.weight.column": torch.zeros(0, dtype=torch.int64),
        "layer0.weight.row_start": torch.zeros(65537, dtype=torch.int64)})


def test_readout_without_smoothing(tmp_path):
    """tau_out 0 is the default of gated cells; a rule for initial weights is no part of what a net computes."""
    net = nt.load(model(tmp_path, settings={"tau_out": "0", "net": "lif:2:init=torch,li"}))
    x = torch.rand(3, 2, 3, dtype=F64)
    assert net.layers[-1].decay("tau", net.dt, False) == net.layers[-1].decay("tau", net.dt, True) == 0
    assert torch.equal(net.outputs(x)[0], torch.zeros(3, 2, 2, dtype=F64))  # weights and biases of 0
    with pytest.raises(neap.FormatError, match="tau_out of the network is '-1'; it must be a time of 0 or more"):
        nt.load(model(tmp_path, settings={"tau_out": "-1"}))


def test_models_that_are_none(tmp_path):
    assert nt.load(model(tmp_path)).layers[0].n == 2
    for given, why in [
            (dict(settings={"net": "lif:2"}), "last layer"), (dict(settings={"net": "foo:2,li"}), "cell 'foo'"),
            (dict(settings={"net": "cell a;state u:2,li"}), "layer 0 is a.cell, which a cell file describes"),
            (dict(settings={"net": "lif:2x,li"}), "'2x'"), (dict(settings={"net": "lif,li"}), "0 units"),
            (dict(settings={"net": "lif:2:foo=1,li"}), "key 'foo'"), (dict(settings={"tau": "nan"}), "tau"),
            (dict(settings={"net": "lif:conv=3:channels=2,li"}), "has the key 'conv': convolutions"),
            (dict(settings={"net": "lif:9:norm=batch,li"}), "has the key 'norm': batch normalisation"),
            (dict(settings={"net": "lif:2,li:delay=0..9:learn"}), "delays of more than one step"),
            (dict(settings={"net": "lif:2,li:delay=2"}), "delays of more than one step"),
            (dict(settings={"net": "lif:2:tau=-1ms,li"}), "tau"), (dict(settings={"reset": "never"}), "reset"),
            (dict(settings={"readout": "never"}), "readout"), (dict(settings={"dt": "0"}), "time step dt"),
            (dict(drop="width"), "setting width of the network is missing. The file is damaged"), (dict(settings={"net": "lif:3,li"}), "shape"),
            (dict(settings={"net": "lif:2r,li"}), "'layer0.recurrent' is missing")]:
        with pytest.raises(neap.FormatError, match=why):
            nt.load(model(tmp_path, **given))
    with pytest.raises(neap.FormatError, match="layer0.leak"):
        nt.load(model(tmp_path, **{"layer0.leak": [1, 3]}))
    with pytest.raises(neap.FormatError, match="too sparse"):
        too_sparse()
    path = tmp_path / "other.safetensors"
    path.write_bytes(file_of(one(), b"1" * 8))
    with pytest.raises(neap.FormatError, match="not describe a neap network"):
        nt.load(str(path))
    with pytest.raises(FileNotFoundError):
        nt.load(str(tmp_path / "nothing"))


def test_damaged_files(tmp_path):
    """A byte of the header that is another one: a net, or one line that names the file."""
    path = model(tmp_path)
    with open(path, "rb") as file:
        whole = bytearray(file.read())
    pick, refused = random.Random(3), 0
    for _ in range(int(os.environ.get("NEAP_MANY", "300"))):
        data = bytearray(whole)
        for _ in range(pick.randint(1, 3)):
            data[pick.randrange(len(data) - 112)] = pick.choice(b'0123456789-,:{}[]"xr.e')
        with open(path, "wb") as file:
            file.write(data[:pick.choice([None, len(data) - 1, pick.randrange(len(data))])])
        try:
            nt.load(path)
        except neap.FormatError as error:
            refused += 1
            assert str(error).startswith(path) and "\n" not in str(error)
    assert refused > 100


def test_equals_the_package_of_the_format(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(model(tmp_path), framework="pt") as file:
        metadata, tensors = read_tensors(str(tmp_path / "model.safetensors"))
        assert file.metadata() == metadata and sorted(file.keys()) == sorted(tensors)
        for name in tensors:
            assert tuple(file.get_tensor(name).shape) == tensors[name].shape


def test_aliases():
    """Names of other packages: beta and alpha, what a step leaves, slope, 1/width, fast_sigmoid."""
    settings = {**SETTINGS, "inputs": "5", "classes": "2", "dt": "0.001"}
    net = "cubalif:8:beta=0.5:alpha=0.25:slope=4:surrogate=fast_sigmoid,li"
    for euler in ("0", "1"):
        layer = neap.specs.parse({**settings, "net": net, "euler": euler})[0]
        assert layer.decay("tau", 1e-3, euler == "1") == pytest.approx(0.5, abs=1e-15)
        assert layer.decay("tau_syn", 1e-3, euler == "1") == pytest.approx(0.25, abs=1e-15)
        assert layer.keys["width"] == 0.25 and layer.keys["surrogate"] == "superspike"
    for bad in ("beta=1", "beta=x", "slope=0", "alpha=-1"):
        with pytest.raises(neap.FormatError):
            neap.specs.parse({**settings, "net": f"cubalif:8:{bad},li"})


def test_time_unit(scratch):
    """At fine steps a surrogate's derivative counts dt/time_unit, and so does adlif's `a` (nearly)."""
    settings = {**SETTINGS, "net": "adlif:8,lif:8,li", "inputs": "5", "classes": "2", "dt": "0.0001"}
    for unit, factor, a in (("0.001", 0.1, 0.1 * 0.10045), ("0", 1, 0.1)):
        layers = neap.specs.parse({**settings, "time_unit": unit})
        assert layers[0].keys["surrogate_factor"] == pytest.approx(factor)
        assert layers[2].keys["surrogate_factor"] == 1
        assert layers[0].keys["a"] == pytest.approx(a, rel=1e-4)
    u = torch.full((1,), 0.9, dtype=F64, requires_grad=True)
    spikes(u, "triangle", 1.0, 0.5, 1.0, math.inf, 0.1).sum().backward()
    assert u.grad.item() == pytest.approx(0.08)
