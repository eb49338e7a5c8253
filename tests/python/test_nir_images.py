# SPDX-License-Identifier: Apache-2.0
"""Random NIR graphs of convolutions, pools and scales: neap's spikes equal the equations of NIR at every step."""
import os

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("h5py")

from nir_equations import Graph  # noqa: E402
from test_nir import draw, lif, ran, same_spikes, write_graph  # noqa: E402

GRAPHS = 40 if os.environ.get("NEAP_MANY") else 8
DT = 1e-3


class Chain:
    """A graph in the making; `shape` is that of what leaves the last node."""

    def __init__(self, seed):
        self.pick = np.random.default_rng(seed)
        self.shape = (self.whole(1, 3), self.whole(4, 8), self.whole(4, 8))
        self.nodes, self.edges, self.spiking = {"input": ("Input", {"shape": self.shape})}, [], []

    def whole(self, low, high):
        return int(self.pick.integers(low, high + 1))

    def add(self, kind, **params):
        name = f"n{len(self.nodes)}"
        self.edges.append((list(self.nodes)[-1], name))
        self.nodes[name] = (kind, params)
        return name

    def pool(self, pads=True):
        kernel = [self.whole(1, 3), self.whole(1, 3)]
        stride = kernel if self.pick.random() < 0.4 else [self.whole(1, 3), self.whole(1, 3)]
        pad = [self.whole(0, k // 2) if pads and self.pick.random() < 0.5 else 0 for k in kernel]
        size = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(self.shape[1:], kernel, stride, pad)]
        if min(size) < 1:
            return
        self.add(str(self.pick.choice(["SumPool2d", "AvgPool2d"])), kernel_size=kernel, stride=stride, padding=pad)
        self.shape = (self.shape[0], *size)

    def scale(self):
        """A batch normalisation that a graph has as factors of channels, or as one for each unit."""
        factor = self.pick.uniform(0.5, 1.5, (self.shape[0], 1, 1))
        self.add("Scale", scale=np.broadcast_to(factor, self.shape))

    def conv(self):
        groups = int(self.pick.choice([g for g in (1, 2, 3) if self.shape[0] % g == 0]))
        kernel = [self.whole(1, min(3, size)) for size in self.shape[1:]]
        stride, pad, dilation = ([self.whole(low, 2) for _ in kernel] for low in (1, 0, 1))
        size = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(self.shape[1:], kernel, stride, pad, dilation)]
        if min(size) < 1:
            return
        out = groups * self.whole(1, 3)
        has_bias = self.pick.random() < 0.7
        bias = self.pick.normal(size=out) * 0.2 * has_bias
        self.add("Conv2d", weight=self.pick.normal(size=(out, self.shape[0] // groups, *kernel)) * 1.5,
                 bias=bias, stride=stride, padding=pad, dilation=dilation, groups=groups,
                 input_shape=self.shape[1:])
        self.shape = (out, *size)
        if self.pick.random() < 0.3:
            self.scale()
        if self.pick.random() < 0.5:
            self.pool(not has_bias)  # the bias of windows with padding differs between units
        if self.pick.random() < 0.3:
            self.scale()
        self.neurons()

    def neurons(self):
        units = int(np.prod(self.shape))
        kind, params = lif(units, tau=np.full(units, 3e-3), v_reset=np.zeros(units))
        self.spiking.append(self.add(kind, **{name: np.reshape(value, self.shape) for name, value in params.items()}))

    def dense(self):
        self.add("Flatten", start_dim=0, end_dim=-1, input_type=self.shape)
        self.add("Affine", weight=self.pick.normal(size=(6, int(np.prod(self.shape)))), bias=self.pick.normal(size=6))
        self.shape = (6,)
        self.neurons()


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_images(seed, tmp_path):
    chain = Chain(seed)
    inputs = int(np.prod(chain.shape))
    for _ in range(chain.whole(1, 3)):
        if chain.pick.random() < 0.5 and list(chain.nodes)[-1] in ("input", *chain.spiking):
            chain.pool()
        chain.conv()
    if list(chain.nodes)[-1] not in chain.spiking or seed % 2:
        chain.dense()
    chain.edges.append((list(chain.nodes)[-1], "output"))
    chain.nodes["output"] = ("Output", {"shape": chain.shape})
    path = write_graph(str(tmp_path / "net.nir"), chain.nodes, chain.edges)
    spikes, graph, fired = draw(seed, inputs, 0.2, 3, 25), Graph(path, DT), 0
    for mine, x in zip(ran(path, spikes, str(tmp_path), DT), spikes):
        theirs = graph.run(x)
        assert same_spikes(mine, theirs, chain.spiking) == 25
        fired += sum(theirs[name].sum() for name in chain.spiking)
    assert fired > 0
