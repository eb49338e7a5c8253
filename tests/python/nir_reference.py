# SPDX-License-Identifier: Apache-2.0
"""NIR graphs of any shape as their equations, in double precision: the reference of test_nir_graphs.py. Nothing in
here comes from neap's import: each step evaluates the nodes one after the other, as NIR describes them."""
import numpy as np

from nir_equations import convolved, pooled


class Reference:
    """A graph in Euler steps of dt. States are v_leak or 0 before the first step. What leaves a node enters the next
    one in the same step; an edge into a node that all paths from the Input to its source pass through arrives one
    step later, and before the first step is the bias of weights, else 0; a Delay of k steps shows what entered k steps
    ago, and 0 before."""

    def __init__(self, graph, dt):
        self.dt, self.nodes, self.edges = dt, {}, []
        self._flatten(*graph, "")
        self.into = {n: [a for a, b in self.edges if b == n] for n in self.nodes}
        self.inputs = sorted(n for n in self.nodes if self.nodes[n][0] == "Input" and not self.into[n])
        self.outputs = sorted(n for n in self.nodes if self.nodes[n][0] == "Output" and "/" not in n)
        self.late = {(a, b) for a, b in self.edges if a not in self._reached_without(b)}

    def _flatten(self, nodes, edges, outer):
        inner = {n for n in nodes if isinstance(nodes[n][0], dict)}
        for name, node in nodes.items():
            if name in inner:
                self._flatten(*node, f"{outer}{name}/")
            else:
                self.nodes[outer + name] = node
        self.edges += [(outer + a + "/output" * (a in inner), outer + b + "/input" * (b in inner)) for a, b in edges]

    def _reached_without(self, missing):
        """Nodes that a path from an Input reaches although a node is missing; Delay ends no path."""
        found, new = set(), [n for n in self.inputs if n != missing]
        while new:
            found.update(new)
            new = [b for a, b in self.edges if a in new and b not in found and b != missing]
        return found

    def _start(self, node):
        kind, p = node
        first = np.asarray(p.get("v_leak", 0.0), "f8")
        return [first + np.zeros(np.shape(p.get("r", 0))), np.zeros(np.shape(p.get("r", 0))), []]

    def run(self, x):
        """Outputs of all nodes [steps, units], {name: array}, for inputs [steps, units of all Inputs by name]."""
        state = {n: self._start(node) for n, node in self.nodes.items()}
        before, found = {}, {n: [] for n in self.nodes}
        for row in np.asarray(x, "f8"):
            now, at = {}, 0
            for n in self.inputs:
                shape = [int(k) for k in np.atleast_1d(self.nodes[n][1]["shape"])]
                now[n], at = row[at:at + int(np.prod(shape))].reshape(shape), at + int(np.prod(shape))
            while len(now) < len(self.nodes):
                ready = [n for n in self.nodes if n not in now and all(a in now or (a, n) in self.late for a in self.into[n])]
                assert ready, "a cycle that no edge ends"
                for n in ready:
                    parts = [before.get(a, self.nodes[a][1].get("bias", 0.0)) if (a, n) in self.late else now[a] for a in self.into[n]]
                    now[n] = self._step(self.nodes[n], sum(np.asarray(p, "f8") for p in parts), state[n])
            before = now
            for n in self.nodes:
                found[n].append(np.array(now[n], "f8").ravel())
        return {n: np.array(rows) for n, rows in found.items()}

    def _step(self, node, x, state):
        (kind, p), dt = node, self.dt
        if kind in ("Input", "Output"):
            return x
        if kind in ("Linear", "Affine"):
            return p["weight"] @ np.broadcast_to(x, p["weight"].shape[1:]) + p.get("bias", 0)
        if kind == "Scale":
            return p["scale"] * x
        if kind == "Flatten":
            return x.ravel()
        if kind == "Delay":
            steps = np.rint(np.asarray(p["delay"]) / dt).astype(int)
            state[2].append(np.broadcast_to(x, steps.shape))
            return np.array([state[2][-1 - k][i] if k < len(state[2]) else 0.0 for i, k in enumerate(steps)])
        if kind == "Conv2d":
            return convolved(x, p["weight"], p["bias"], p["stride"], p["padding"], p["dilation"], p["groups"])
        if kind == "Conv1d":
            line = [np.array([fill, p[name]]) for name, fill in (("stride", 1), ("padding", 0), ("dilation", 1))]
            return convolved(x[:, None], p["weight"][:, :, None], p["bias"], *line, p["groups"])[:, 0]
        if kind in ("SumPool2d", "AvgPool2d"):
            return pooled(x, p, kind == "AvgPool2d")
        if kind == "Threshold":
            return (x > p["threshold"]).astype("f8")
        v, i, _ = state
        if kind in ("CubaLIF", "CubaLI"):
            i = i + dt / p["tau_syn"] * (p["w_in"] * x - i)
            v = v + dt / p["tau_mem"] * (p["v_leak"] - v + p["r"] * i)
        elif kind in ("LIF", "LI"):
            v = v + dt / p["tau"] * (p["v_leak"] - v + p["r"] * x)
        else:
            assert kind in ("IF", "I"), kind
            v = v + dt * p["r"] * x
        z = v > p["v_threshold"] if "v_threshold" in p else None
        state[0], state[1] = v if z is None else np.where(z, p["v_reset"], v), i
        return v if z is None else z.astype("f8")
