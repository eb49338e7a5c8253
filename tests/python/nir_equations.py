# SPDX-License-Identifier: Apache-2.0
"""The nodes of NIR as equations in NumPy, for tests of import and export."""
import h5py
import numpy as np


def convolved(x, weight, bias, stride, padding, dilation, groups):
    """A convolution of an image (channel, y, x), added up kernel position by kernel position."""
    x = np.pad(x, [(0, 0), *((int(p), int(p)) for p in padding)])
    (o, below, *kernel), groups = weight.shape, int(groups)
    size = [(n - int(d) * (k - 1) - 1) // int(s) + 1 for n, k, s, d in zip(x.shape[1:], kernel, stride, dilation)]
    out = np.zeros((o, *size))
    for i, j in np.ndindex(*kernel):
        y, z = (slice(int(d) * k, int(d) * k + int(s) * (n - 1) + 1, int(s))
                for k, n, s, d in zip((i, j), size, stride, dilation))
        for g in range(groups):
            mine = slice(g * (o // groups), (g + 1) * (o // groups))
            out[mine] += np.tensordot(weight[mine, :, i, j], x[g * below:(g + 1) * below, y, z], 1)
    return out + np.reshape(bias, (-1, 1, 1))


def pooled(x, node, is_average):
    """Sums or means of windows of an image (channel, y, x), which the padding fills with zeros."""
    kernel, stride, padding = ([int(k) for k in node[name]] for name in ("kernel_size", "stride", "padding"))
    x = np.pad(x, [(0, 0), *((p, p) for p in padding)])
    out = np.zeros((x.shape[0], *((n - k) // s + 1 for n, k, s in zip(x.shape[1:], kernel, stride))))
    for i, j in np.ndindex(*out.shape[1:]):
        y, z = i * stride[0], j * stride[1]
        out[:, i, j] = x[:, y:y + kernel[0], z:z + kernel[1]].sum((1, 2))
    return out / (np.prod(kernel) if is_average else 1)


class Graph:
    """A NIR file as its equations: Euler steps of dt, what leaves a node enters the next within the step, and
    what closes a circle at the next one. Written from the description of NIR alone."""

    def __init__(self, path, dt):
        self.dt, self.nodes, self.edges = dt, {}, []
        with h5py.File(path) as f:
            self._read(f["node"], "")
        self.order = [n for n in self.nodes if self.nodes[n]["type"] in ("LIF", "CubaLIF", "LI", "IF")]

    def _read(self, group, outer):
        for name, node in group["nodes"].items():
            kind = node["type"][()].decode()
            assert kind != "NIRGraph", "the samples are flat"
            self.nodes[outer + name] = {"type": kind, **{k: np.asarray(v[()], "f8") for k, v in node.items()
                                                         if k not in ("type", "metadata")}}
        self.edges += [(a.decode(), b.decode()) for a, b in group["edges"][()]]

    def run(self, x):
        """Outputs of all nodes with a state, {name: [steps, units]}, for inputs [steps, units]."""
        state, last = {n: (0.0, 0.0) for n in self.order}, {}
        found = {n: [] for n in self.order}
        for row in x.astype("f8"):
            now = {}
            for _ in self.nodes:  # until nothing is missing: nodes have any order
                for name, node in self.nodes.items():
                    if name in now:
                        continue
                    into = [a for a, b in self.edges if b == name]
                    if node["type"] == "Input":
                        now[name] = row.reshape([int(n) for n in node["shape"]])
                    elif all(a in now or self._closes(a, name) for a in into):
                        total = sum(now[a] if a in now else self._late(a, last) for a in into)
                        now[name], state[name] = self._step(node, total, state.get(name))
                if len(now) == len(self.nodes):
                    break
            for name in self.order:  # neap numbers the units of a convolution (y, x, channel)
                image = np.asarray(now[name])
                found[name].append(np.moveaxis(image, 0, -1).ravel() if image.ndim > 1 else image)
            last = now
        return {name: np.array(rows) for name, rows in found.items()}

    def _closes(self, a, name):
        """Weights that see the node itself."""
        return (name, a) in self.edges and self.nodes[a]["type"] in ("Affine", "Linear")

    def _late(self, a, last):
        node = self.nodes[a]
        source = [x for x, y in self.edges if y == a][0]
        before = last.get(source, np.zeros(node["weight"].shape[1]))
        return node["weight"] @ before + node.get("bias", 0)

    def _step(self, node, total, state):
        kind, p, dt = node["type"], node, self.dt
        if kind in ("Affine", "Linear"):
            return p["weight"] @ total + p.get("bias", 0), None
        if kind == "Output":
            return total, None
        if kind == "Flatten":
            return total.ravel(), None
        if kind == "Conv2d":
            return convolved(total, p["weight"], p["bias"], p["stride"], p["padding"], p["dilation"], p["groups"]), None
        if kind == "Conv1d":
            line = [np.array([fill, p[name]]) for name, fill in (("stride", 1), ("padding", 0), ("dilation", 1))]
            return convolved(total[:, None], p["weight"][:, :, None], p["bias"], *line, p["groups"])[:, 0], None
        if kind in ("SumPool2d", "AvgPool2d"):
            return pooled(total, p, kind == "AvgPool2d"), None
        if kind == "Scale":
            return p["scale"] * total, None
        if kind == "Delay":  # of the same steps for all units
            past = [*(state or []), total]
            steps = int(round(np.asarray(p["delay"]).flat[0] / dt))
            return past[-1 - steps] if len(past) > steps else 0 * total, past
        v, i = state
        if kind == "CubaLIF":
            i = i + dt / p["tau_syn"] * (p.get("w_in", 1) * total - i)
            v = v + dt / p["tau_mem"] * (p["v_leak"] - v + p["r"] * i)
        elif kind == "IF":
            v = v + dt * p["r"] * total
        else:
            v = v + dt / p["tau"] * (p["v_leak"] - v + p["r"] * total)
        if kind == "LI":
            return v, (v, i)
        z = v > p["v_threshold"]
        return z.astype("f8"), (np.where(z, p.get("v_reset", 0), v), i)
