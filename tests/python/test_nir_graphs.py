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
from nir_graphs import STEP, graphs, write  # noqa: E402
from nir_random import random_graph  # noqa: E402
from nir_reference import Reference  # noqa: E402
from test_nir import draw, events_file  # noqa: E402

GRAPHS = graphs()
SPIKING = ("LIF", "CubaLIF", "IF", "Threshold")
MANY = int(os.environ.get("NEAP_MANY", "12"))
# What is refused, and words of the message.
REFUSED = {"lif_hetero_reset": "'n1' has a v_reset that differs", "lif_tau_short": "'n1': tau is 5e-05 s, shorter than the time step",
           "two_inputs": "more than one Input", "two_outputs": "more than one Output"}
LIMITS = ()


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


if __name__ == "__main__":
    counts = {}
    for key in GRAPHS:
        with tempfile.TemporaryDirectory() as scratch:
            result, text = judge(key, GRAPHS[key], scratch)
        counts[result] = counts.get(result, 0) + 1
        print(f"{key:18} {result:8} {text}")
    print(counts)
    sys.exit("differs" in counts)
