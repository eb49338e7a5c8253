# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells, the plain loop over them, losses, and gradients to be compared bit by bit."""
import torch

import neap.torch as nt

COSTS = (1.0, 1.3, 2.6)
B, N, I = 3, 6, 4
torch.set_num_threads(1)


class Gru(torch.nn.Module):
    """Its output is the state itself."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(I, N)

    def start(self):
        return torch.randn(B, N)

    def forward(self, h, x, t):
        h = self.cell(x, h)
        return h, h


class Lstm(Gru):
    """A state of two tensors in a dict."""

    def __init__(self):
        super().__init__()
        self.cell = torch.nn.LSTMCell(I, N)

    def start(self):
        return {"h": torch.randn(B, N), "c": torch.randn(B, N)}

    def forward(self, s, x, t):
        h, c = self.cell(x, (s["h"], s["c"]))
        return {"h": h, "c": c}, h


class Twice(Gru):
    """A weight that a step uses twice, a readout inside, an output that is a tuple."""

    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(N, N) / 3)
        self.read = torch.nn.Linear(N, 5)

    def forward(self, h, x, t):
        h = self.cell(x, torch.tanh(h @ self.w)) + 0.1 * (h @ self.w) + 0.01 * t
        return h, (self.read(h), None, [h[:, :2]])


class Both(Twice):
    """The same where the output is the state."""

    def forward(self, h, x, t):
        h, _ = super().forward(h, x, t)
        return h, h


class Drop(Gru):
    """Dropout of inputs and states."""

    def forward(self, h, x, t):
        drop = torch.nn.functional.dropout
        h = self.cell(drop(x, 0.3), drop(h, 0.2))
        return h, h


CELLS = {"gru": Gru, "lstm": Lstm, "twice": Twice, "both": Both}


def flat(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    if tree is None:
        return []
    return [leaf for part in (tree.values() if isinstance(tree, dict) else tree) for leaf in flat(part)]


def like(tree, leaves):
    """The tree with other leaves, from an iterator."""
    if isinstance(tree, torch.Tensor):
        return next(leaves)
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: like(part, leaves) for key, part in tree.items()}
    made = [like(part, leaves) for part in tree]
    return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)


def plain(step, state, x, steps=None):
    """The loop that a scan stands for."""
    rows, out = [], None
    for t in range(steps or len(x)):
        state, out = step(state, x[t] if x is not None else None, t)
        rows.append(flat(out))
    return state, like(out, iter([torch.stack(column) for column in zip(*rows)]))


def case(cell, steps, seed, grad=True):
    torch.manual_seed(seed)
    made = CELLS.get(cell, Drop)()
    state = made.start()
    for leaf in flat(state):
        leaf.requires_grad_(grad)
    return made, state, torch.randn(steps, B, I, requires_grad=grad), torch.nn.Linear(N, 2)


def loss_of(last, out, read, kind):
    """Losses that use the outputs, the last state, or both."""
    total = sum((leaf ** 3).mean() for leaf in flat(last)) if kind != "outputs" else 0
    if kind != "last":
        for leaf in flat(out):
            total = total + (leaf[::2] ** 2).mean() + leaf[-1].abs().mean()
            if leaf.shape[-1] == read.in_features:
                total = total + (read(leaf) ** 2).mean()  # a readout outside
    return total


def grads(run, made, state, x, read, kind="both"):
    """Loss, outputs and all gradients of a run, which ends as it began."""
    leaves = [*made.parameters(), *flat(state), x, *read.parameters()]
    for leaf in leaves:
        leaf.grad = None
    torch.manual_seed(11)
    last, out = run(made, state, x)
    loss = loss_of(last, out, read, kind)
    loss.backward()
    return [loss.detach(), *[leaf.detach() for leaf in flat(last) + flat(out)],
            *[leaf.grad for leaf in leaves], torch.get_rng_state()]


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        if a is None or b is None:
            assert a is b or not (b if a is None else a).any()
        else:
            assert torch.equal(a, b), (a - b).abs().max()


def scanned(**options):
    options.setdefault("costs", COSTS)
    return lambda made, state, x: nt.scan(made, state, x, **options)


class Wide(torch.nn.Module):
    """A state of 24 KiB and few parameters."""

    def __init__(self):
        super().__init__()
        self.a, self.b = (torch.nn.Parameter(torch.randn(2048)) for _ in range(2))

    def start(self):
        return torch.randn(B, 2048)

    def forward(self, h, x, t):
        h = torch.tanh(h * self.a + x.sum(-1, keepdim=True) * self.b)
        return h, h[:, :N]


CELLS["wide"] = Wide
