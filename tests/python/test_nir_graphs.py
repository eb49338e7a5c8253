# SPDX-License-Identifier: Apache-2.0
"""Small NIR graphs of all nodes and kinds of connections: each has the spikes of the reference in every step, or is
refused with a line that shows the node. `python3 test_nir_graphs.py` prints the table of docs/weights.md."""
import json
import os
import subprocess
import sys
import tempfile

import pytest

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")

from nets_of_tests import PRINT_NET  # noqa: E402
from nir_graphs import STEP, chain, full, graphs, neuron, read, write  # noqa: E402
from nir_random import random_graph  # noqa: E402
from nir_reference import Reference  # noqa: E402
from test_nir import NEAP_NETS, draw, events_file, ran, run_tool, trained  # noqa: E402

GRAPHS = graphs()
SPIKING = ("LIF", "CubaLIF", "IF", "Threshold")
MANY = int(os.environ.get("NEAP_MANY", "12"))
# What is refused, and words of the message.
REFUSED = {"lif_hetero_reset": "'n1' has a v_reset that differs", "lif_tau_short": "'n1': tau is 5e-05 s, shorter than the time step",
           "two_inputs": "more than one Input", "two_outputs": "more than one Output"}
# What random graphs may be refused for.
LIMITS = ("a cycle that the Input enters at several nodes", "a v_leak other than 0 and is seen later", "a v_reset that differs",
          "delays a bias", "a cycle with a Delay")


def rows_of(steps, layer, n):
    """Outputs [steps, n] of a layer of the net; of units that spiked, or pairs of unit and number."""
    rows = np.zeros((len(steps), n))
    for t, step in enumerate(steps):
        for unit in step[layer]:
            if isinstance(unit, list):
                rows[t, unit[0]] = unit[1]
            else:
                rows[t, unit] = 1
    return rows


def channels_last(rows, node):
    """neap numbers the units of a convolution (y, x, channel)."""
    shape = np.shape(node[1].get("r", node[1].get("threshold")))
    return rows.reshape(len(rows), shape[0], -1).transpose(0, 2, 1).reshape(len(rows), -1) if len(shape) > 1 else rows


def equal(a, b):
    return a.shape == b.shape and np.abs(a - b).max() < 1e-9


def judge(name, graph, folder):
    """("equal", number of spikes), ("differs", node) or ("refused", message)."""
    path = write(h5py, os.path.join(folder, "net.nir"), graph)
    reference = Reference(graph, STEP)
    width = sum(int(np.prod(reference.nodes[n][1]["shape"])) for n in reference.inputs)
    spikes = draw(11, width, 0.3, 3, 80)
    data = events_file(os.path.join(folder, "in.h5"), spikes, STEP)
    done = subprocess.run([PRINT_NET, path, data, "3", str(STEP)], capture_output=True, text=True)
    if done.returncode:
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        return "refused", done.stderr.replace("print_net: ", "").replace(f"'{path}': ", "").strip()
    fired = 0
    for mine, x in zip((json.loads(line) for line in done.stdout.splitlines()[:-1]), spikes):
        wanted = reference.run(x)
        layers = len(mine["outputs"][0])
        for node, (kind, _) in reference.nodes.items():
            if kind not in SPIKING:
                continue
            fired += int(wanted[node].sum())
            same = [wanted[node], channels_last(wanted[node], reference.nodes[node])]
            if not any(equal(rows_of(mine["outputs"], l, wanted[node].shape[1]), one) for l in range(layers) for one in same
                       if max((u if isinstance(u, int) else u[0] for s in mine["outputs"] for u in s[l]), default=0) < one.shape[1]):
                return "differs", node
        out = np.concatenate([wanted[n] for n in reference.outputs], 1)
        last = reference.nodes[reference.into[reference.outputs[0]][0]]
        outs = (out, channels_last(out, last)) if last[0] in SPIKING else (out,)
        if not any(equal(np.array(mine["answer"]), part) for o in outs for part in (o.sum(0), o.mean(0))):
            return "differs", "output"
    return "equal", fired


@pytest.mark.parametrize("name", GRAPHS)
def test_graph(name, tmp_path):
    if not PRINT_NET:
        pytest.skip("no print_net")
    found, what = judge(name, GRAPHS[name], str(tmp_path))
    if name in REFUSED:
        assert found == "refused" and REFUSED[name] in what, (found, what)
    else:
        assert found == "equal", (found, what)


@pytest.mark.parametrize("seed", range(MANY))
def test_random_graph(seed, tmp_path):
    """Random graphs are equal, or what they are refused for is one of the known limits."""
    if not PRINT_NET:
        pytest.skip("no print_net")
    found, what = judge(str(seed), random_graph(seed), str(tmp_path))
    assert found == "equal" or found == "refused" and any(limit in what for limit in LIMITS), (found, what)


@pytest.mark.parametrize("name", ["skip", "feedback"])
def test_exported(name, tmp_path):
    """The graph of a net with connections that skip layers or go back, without metadata, is that net."""
    run = trained(str(tmp_path), NEAP_NETS[name], "--precision", "double")
    path = os.path.join(str(tmp_path), "net.nir")
    run_tool("export", run, "--nir", path)
    reference, spikes = Reference(read(h5py, path), 1e-3), draw(2, 20, 0.3, 4, 60)
    with h5py.File(path, "a") as f:
        del f["node/metadata"]
    for mine, x in zip(ran(path, spikes, str(tmp_path), 1e-3), spikes):
        wanted = reference.run(x)
        for layer in range(3):
            cell = wanted[f"layer{layer}.cell"]
            assert equal(rows_of(mine["outputs"], layer, cell.shape[1]), cell) and cell.any()
        assert equal(np.array(mine["answer"]), wanted["output"].mean(0))


def refused(graph, folder):
    found, what = judge("", graph, str(folder))
    assert found == "refused", (found, what)
    return what


def test_limits(tmp_path):
    """Graphs that have no exact counterpart are refused by the name of a node."""
    eye = ("Linear", {"weight": np.eye(5)})
    ends = {"input": ("Input", {"shape": np.array([5])}), "output": ("Output", {"shape": np.array([5])})}
    two = {**ends, "a": neuron("LIF"), "b": neuron("LIF"), "w": eye, "v": eye}
    both = [("input", "a"), ("a", "w"), ("w", "b"), ("b", "v"), ("v", "a"), ("b", "output")]
    assert "a cycle that the Input enters at several nodes" in refused((two, [*both, ("input", "b")]), tmp_path)
    late = {**two, "d": ("Delay", {"delay": full(5, 2 * STEP)})}
    assert "a cycle with a Delay" in refused((late, [e for e in both if e[0] != "v"] + [("v", "d"), ("d", "a")]), tmp_path)
    some = {**two, "l": neuron("LI", v_leak=0.1)}
    assert "'l' has a v_leak other than 0 and is seen later" in refused(
        (some, [("input", "a"), ("a", "l"), ("l", "b"), ("b", "v"), ("v", "a"), ("l", "w"), ("w", "l"), ("b", "output")]), tmp_path)
    assert "'n0' delays a bias" in refused(chain(("Affine", {"weight": np.eye(5), "bias": full(5, 1)}), ("Delay", {
        "delay": full(5, STEP)}), neuron("LIF"), enter=5), tmp_path).replace("'n1'", "'n0'")
    assert "not a multiple of the time step" in refused(chain(("Delay", {"delay": full(5, 1.5 * STEP)}), neuron("LIF"), enter=5),
                                                        tmp_path)
    assert "up to 128 time steps" in refused(chain(("Delay", {"delay": full(5, 300 * STEP)}), neuron("LIF"), enter=5), tmp_path)
    assert "more than 16 different delays" in refused(chain(("Delay", {"delay": np.arange(20) * STEP}), (
        "Linear", {"weight": np.ones((5, 20))}), neuron("LIF"), enter=20), tmp_path)
    mixed = neuron("LIF", v_threshold=np.array([0.1, 0.1, -0.1, 0.1, 0.1]))
    assert "some of them not above its v_leak" in refused(chain(mixed, enter=5), tmp_path)


if __name__ == "__main__":
    counts = {}
    for key in GRAPHS:
        with tempfile.TemporaryDirectory() as scratch:
            result, text = judge(key, GRAPHS[key], scratch)
        counts[result] = counts.get(result, 0) + 1
        print(f"{key:18} {result:8} {text}")
    print(counts)
    sys.exit("differs" in counts)
