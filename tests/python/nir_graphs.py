# SPDX-License-Identifier: Apache-2.0
"""Small valid NIR graphs, one for each node type and kind of connection, for test_nir_graphs.py.

A graph is (nodes, edges): nodes {name: (type, {parameter: numbers})}, or (nodes, edges) of an inner graph."""
import numpy as np

STEP = 1e-4  # seconds


def full(n, value):
    return np.full(n, float(value))


def neuron(kind, n=5, **more):
    """A node of n units, with short time constants and a low threshold, so that most units spike often."""
    usual = {"LIF": {"tau": 2e-3, "r": 1, "v_leak": 0, "v_threshold": 0.1, "v_reset": 0},
             "IF": {"r": 1000, "v_threshold": 0.3, "v_reset": 0},
             "CubaLIF": {"tau_syn": 1e-3, "tau_mem": 2e-3, "r": 1, "v_leak": 0, "v_threshold": 0.1, "v_reset": 0, "w_in": 1},
             "CubaLI": {"tau_syn": 1e-3, "tau_mem": 2e-3, "r": 1, "v_leak": 0, "w_in": 1},
             "LI": {"tau": 2e-3, "r": 1, "v_leak": 0}, "I": {"r": 1000}, "Threshold": {"threshold": 0.3}}[kind]
    return kind, {k: full(n, v) if np.isscalar(v) else v for k, v in {**usual, **more}.items()}


def flat(*shape):
    return "Flatten", {"start_dim": 0, "end_dim": -1, "input_type": np.array(shape)}


def pool(kind):
    return kind, {"kernel_size": np.array([2, 2]), "stride": np.array([2, 2]), "padding": np.array([0, 0])}


def chain(*nodes, enter=4, leave=5):
    named = {"input": ("Input", {"shape": np.atleast_1d(enter)}), **{f"n{k}": node for k, node in enumerate(nodes)},
             "output": ("Output", {"shape": np.atleast_1d(leave)})}
    return named, list(zip(named, list(named)[1:]))


def graphs(seed=3):
    """{name: graph}; the weights are random numbers of `seed`."""
    pick = np.random.default_rng(seed)

    def weight(rows, columns):
        return pick.standard_normal((rows, columns)) * 1.5

    def linear(rows=5, columns=4):
        return "Linear", {"weight": weight(rows, columns)}

    def delay(*steps):
        return "Delay", {"delay": np.array(steps, "f8") * STEP}

    def image(kind, shape, kernel, size):
        pair = (lambda x: x) if kind == "Conv1d" else (lambda x: np.array([x, x]))
        return kind, {"input_shape": np.array(size), "weight": weight(shape[0], shape[1] * int(np.prod(kernel)))
                      .reshape(*shape, *kernel), "stride": pair(1), "padding": pair(0), "dilation": pair(1), "groups": 1,
                      "bias": np.zeros(shape[0])}

    def alone(**more):
        return chain(linear(), neuron("LIF", **more))

    def two(*between):
        return chain(linear(), neuron("LIF"), *between, linear(5, 5), neuron("LIF"))

    ends = {"input": ("Input", {"shape": np.array([4])}), "output": ("Output", {"shape": np.array([5])})}
    found = {
        "affine_lif": chain(("Affine", {"weight": weight(5, 4), "bias": full(5, 0.01)}), neuron("LIF")),
        "linear_lif": alone(),
        "scale_lif": chain(linear(), ("Scale", {"scale": np.array([1, 2, 0.5, 1, 1])}), neuron("LIF")),
        "lif_vleak": alone(v_leak=0.05, v_reset=0.05),
        "lif_vreset_below": alone(v_reset=-0.05),
        "lif_hetero_reset": alone(v_reset=np.array([0, -0.01, 0, 0.02, 0])),
        "lif_hetero_tau": alone(tau=np.linspace(1e-3, 5e-3, 5)),
        "lif_hetero_thr": alone(v_threshold=np.linspace(0.05, 0.2, 5)),
        "lif_neg_r": alone(r=-1),
        "lif_tau_short": alone(tau=5e-5),
        "lif_pacemaker": alone(v_leak=0.12),
        "lif_thr0": alone(v_threshold=0),
        "if": chain(linear(), neuron("IF")),
        "cubalif": chain(linear(), neuron("CubaLIF")),
        "cubali_last": chain(linear(), neuron("LIF"), linear(5, 5), neuron("CubaLI")),
        "li_last": chain(linear(), neuron("LIF"), linear(5, 5), neuron("LI")),
        "li_mid": chain(linear(), neuron("LI"), linear(5, 5), neuron("LIF")),
        "li_lif": chain(linear(), neuron("LI"), neuron("LIF")),
        "i_threshold": chain(linear(), neuron("I"), neuron("Threshold")),
        "threshold": chain(linear(), neuron("Threshold")),
        "li_threshold": chain(linear(), neuron("LI"), neuron("Threshold", threshold=0.1)),
        "delay0": chain(delay(0, 0, 0, 0), linear(), neuron("LIF")),
        "delay1": two(delay(1, 1, 1, 1, 1)),
        "delay_in1": chain(delay(1, 1, 1, 1), linear(), neuron("LIF")),
        "delay5": two(delay(5, 5, 5, 5, 5)),
        "delay_hetero": chain(delay(0, 1, 2, 3), linear(), neuron("LIF")),
        "flatten": chain(flat(2, 2), linear(), neuron("LIF"), enter=[2, 2]),
        "lif2d": chain(neuron("LIF", (2, 2)), flat(2, 2), linear(), neuron("LIF"), enter=[2, 2]),
        "lif_direct_in": chain(neuron("LIF", 4, tau=2e-4), linear(), neuron("LIF")),
        "conv1d": chain(image("Conv1d", (3, 2), [3], 8), neuron("LIF", (3, 6)), enter=[2, 8], leave=[3, 6]),
        "conv2d": chain(image("Conv2d", (3, 2), [3, 3], [6, 6]), neuron("LIF", (3, 4, 4)), pool("SumPool2d"), flat(3, 2, 2),
                        linear(5, 12), neuron("LIF"), enter=[2, 6, 6]),
        "sumpool": chain(pool("SumPool2d"), flat(2, 3, 3), linear(5, 18), neuron("LIF"), enter=[2, 6, 6]),
        "avgpool": chain(pool("AvgPool2d"), flat(2, 3, 3), linear(5, 18), neuron("LIF"), enter=[2, 6, 6]),
        "recurrent": ({**ends, "fc": linear(), "lif": neuron("LIF"), "rec": ("Affine", {"weight": weight(5, 5), "bias": full(5, 0)})},
                      [("input", "fc"), ("fc", "lif"), ("lif", "rec"), ("rec", "lif"), ("lif", "output")]),
        "skip": ({**ends, "fc": linear(), "l1": neuron("LIF"), "f2": linear(5, 5), "l2": neuron("LIF"), "sk": linear()},
                 [("input", "fc"), ("fc", "l1"), ("l1", "f2"), ("f2", "l2"), ("input", "sk"), ("sk", "l2"), ("l2", "output")]),
        "resid": ({**ends, "fc": linear(), "l1": neuron("LIF"), "f2": linear(5, 5), "l2": neuron("LIF"), "f3": linear(5, 5),
                   "l3": neuron("LIF"), "sk": linear(5, 5)},
                  [("input", "fc"), ("fc", "l1"), ("l1", "f2"), ("f2", "l2"), ("l2", "f3"), ("f3", "l3"), ("l1", "sk"),
                   ("sk", "l3"), ("l3", "output")]),
        "feedback": ({**ends, "fc": linear(), "l1": neuron("LIF"), "f2": linear(5, 5), "l2": neuron("LIF"), "fb": linear(5, 5)},
                     [("input", "fc"), ("fc", "l1"), ("l1", "f2"), ("f2", "l2"), ("l2", "fb"), ("fb", "l1"), ("l2", "output")]),
        "two_inputs": ({"a": ends["input"], "b": ends["input"], "fa": linear(), "fb": linear(), "l": neuron("LIF"),
                        "output": ends["output"]},
                       [("a", "fa"), ("b", "fb"), ("fa", "l"), ("fb", "l"), ("l", "output")]),
        "two_outputs": ({"input": ends["input"], "fa": linear(), "l": neuron("LIF"), "o1": ends["output"], "f2": linear(5, 5),
                         "l2": neuron("LIF"), "o2": ends["output"]},
                        [("input", "fa"), ("fa", "l"), ("l", "o1"), ("l", "f2"), ("f2", "l2"), ("l2", "o2")]),
        "subgraph": ({**ends, "fc": linear(), "f2": linear(5, 5), "l2": neuron("LIF"),
                      "s": ({"input": ("Input", {"shape": np.array([5])}), "lif": neuron("LIF"), "rec": linear(5, 5),
                             "output": ends["output"]},
                            [("input", "lif"), ("lif", "rec"), ("rec", "lif"), ("lif", "output")])},
                     [("input", "fc"), ("fc", "s"), ("s", "f2"), ("f2", "l2"), ("l2", "output")]),
        "two_linear": chain(linear(7, 4), linear(5, 7), neuron("LIF")),
        "ends_in_linear": chain(linear(), neuron("LIF"), linear(3, 5), leave=3),
        "only_linear": chain(linear()),
        "readout_li": chain(linear(), neuron("LIF"), linear(3, 5), neuron("LI", 3, tau=1e-2), leave=3),
    }
    return found


def read(h5py, path):
    """The graph of a NIR file."""
    def take(where):
        nodes = {}
        for name, node in where["nodes"].items():
            kind = node["type"][()].decode()
            nodes[name] = take(node) if kind == "NIRGraph" else (kind, {
                key: np.asarray(value[()], "f8" if value.dtype.kind == "f" else None) for key, value in node.items()
                if key not in ("type", "metadata")})
        return nodes, [(a.decode(), b.decode()) for a, b in where["edges"][()]]

    with h5py.File(path) as f:
        return take(f["node"])


def write(h5py, path, graph):
    """Writes a graph as a NIR file."""
    def add(where, nodes, edges):
        where["type"] = "NIRGraph"
        where.create_dataset("edges", data=[[a.encode(), b.encode()] for a, b in edges], dtype=h5py.string_dtype())
        for name, (kind, params) in nodes.items():
            inner = where.create_group(f"nodes/{name}")
            if isinstance(kind, dict):
                add(inner, kind, params)
                continue
            inner["type"] = str(kind)
            for key, value in params.items():
                inner.create_dataset(key, data=value)

    with h5py.File(path, "w") as f:
        f["version"] = "1.0"
        add(f.create_group("node"), *graph)
    return path
