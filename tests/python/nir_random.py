# SPDX-License-Identifier: Apache-2.0
"""Random NIR graphs for test_nir_graphs.py: nodes of every type, skip connections, cycles, delays of all kinds, biases,
units that differ, images."""
import numpy as np

from nir_graphs import STEP, full


def node_of(pick, kind, n):
    """A node with n units, of parameters that differ between the units in a third of the cases."""
    def some(low, high):
        return full(n, pick.uniform(low, high)) if pick.random() < 0.66 else pick.uniform(low, high, n)

    tau, r = some(1e-4, 2e-3), some(0.5, 4)
    leak = full(n, 0) if pick.random() < 0.85 else some(-0.1, 0.1)
    spikes = {"v_threshold": full(n, pick.choice([0.1, 0.3])), "v_reset": full(n, pick.choice([0, -0.05]))}
    if pick.random() < 0.2 and not leak.any():
        spikes = {"v_threshold": pick.uniform(0.1, 0.3, n), "v_reset": full(n, 0)}
    if pick.random() < 0.15:
        leak, spikes = full(n, 0.2), {"v_threshold": full(n, pick.choice([0.2, 0.15])), "v_reset": full(n, 0)}
    return kind, {"LIF": lambda: {"tau": tau, "r": r, "v_leak": leak, **spikes},
                  "IF": lambda: {"r": some(300, 3000), **spikes},
                  "CubaLIF": lambda: {"tau_syn": some(1e-4, 1e-3), "tau_mem": tau, "r": r, "v_leak": leak, "w_in": some(0.5, 2),
                                      **spikes},
                  "CubaLI": lambda: {"tau_syn": some(1e-4, 1e-3), "tau_mem": tau, "r": r, "v_leak": leak, "w_in": some(0.5, 2)},
                  "LI": lambda: {"tau": tau, "r": r, "v_leak": leak}, "I": lambda: {"r": some(100, 300)},
                  "Threshold": lambda: {"threshold": full(n, pick.uniform(-0.05, 0.5))}}[kind]()


KINDS = ("LIF", "LIF", "IF", "CubaLIF", "LI", "I", "CubaLI", "Threshold")


def random_graph(seed):
    """(nodes, edges) of a graph of 2 to 6 nodes with a state, most of which receive several others."""
    pick = np.random.default_rng(seed)
    count, inputs = int(pick.integers(2, 7)), int(pick.integers(2, 6))
    names = [f"n{i}" for i in pick.permutation(count)]  # the order of names is not that of steps
    sizes = {"input": inputs, **{name: int(pick.integers(2, 7)) for name in names}}
    nodes, edges = {"input": ("Input", {"shape": np.array([inputs])})}, []

    def connect(source, target, n, scale=1.5, is_back=False):
        """Weights from a node to another one, with a delay before or behind them or none."""
        kind, m = str(pick.choice(["Linear", "Linear", "Affine", "None", "Scale"])), sizes[source]
        if kind in ("None", "Scale") and m != n:
            kind = "Linear"
        way, late = [], str(pick.choice(["", "", "", "before", "behind" if kind != "Affine" or pick.random() < 0.1 else ""]))
        late = "" if is_back and pick.random() < 0.9 else late
        steps = np.full(m if late == "before" else n, pick.integers(0, 5)) if pick.random() < 0.7 else \
            pick.integers(0, 4, m if late == "before" else n)
        delay = ("Delay", {"delay": steps * STEP})
        if late == "before":
            way.append(delay)
        if kind in ("Linear", "Affine"):
            way.append((kind, {"weight": pick.standard_normal((n, m)) * scale / np.sqrt(m),
                               **({"bias": pick.standard_normal(n) * 0.05} if kind == "Affine" else {})}))
        elif kind == "Scale":
            way.append((kind, {"scale": pick.uniform(0.5, 1.5, n)}))
        if late == "behind":
            way.append(delay)
        last = source
        for part in way:
            name = f"w{len(nodes)}"
            nodes[name] = part
            edges.append((last, name))
            last = name
        edges.append((last, target))

    done = ["input"]
    for name in names:
        nodes[name] = node_of(pick, pick.choice(KINDS), sizes[name])
        for source in sorted({done[-1], *(s for s in done if pick.random() < 0.2)}):
            connect(source, name, sizes[name])
        if pick.random() < 0.15:
            connect(name, name, sizes[name], 0.3, True)
        done.append(name)
    if pick.random() < 0.4 and count > 1:  # often to the first node, which all paths pass that skip no other one
        late, early = sorted(pick.choice(count, 2, replace=False))[::-1]
        early = early if pick.random() < 0.3 else 0
        connect(names[late], names[early], sizes[names[early]], 0.5, True)
    out = names[-1] if pick.random() < 0.5 else "readout"
    n = sizes[names[-1]]
    nodes["output"] = ("Output", {"shape": np.array([n])})
    if out == "readout":
        for source in sorted({names[-1], *(s for s in names if pick.random() < 0.2)}):
            connect(source, "output", n)
    else:
        edges.append((out, "output"))
    return nodes, [edges[i] for i in pick.permutation(len(edges))]
