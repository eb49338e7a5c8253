# SPDX-License-Identifier: Apache-2.0
"""What the budget of a scan counts: graphs, tensors that Functions and hooks keep, states; and what the process takes."""
import json
import os
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.torch import heap, measure  # noqa: E402

pytestmark = pytest.mark.heavy
MANY = int(os.environ.get("NEAP_MANY", "0"))
PEERS = os.path.join(os.environ.get("NEAP_SOURCE", ""), "bench", "peers")


def tape_of(step, state, steps=4, **given):
    """Bytes of the tape of ``steps`` steps, and of its graph."""
    nt.scan(step, state, steps=2 * steps, group=steps, memory="1G", **given)
    told = nt.report()
    return told.tape, told.graph


def test_nodes_count():
    w = torch.nn.Parameter(torch.ones(8))

    def step(h, x, t):
        return (h * w).sin(), None
    tape, graph = tape_of(step, torch.zeros(1, 8), steps=10)
    own = measure.GRAPH
    assert graph >= 20 * own.node + 20 * own.saved  # two nodes and two saved tensors or more in each step
    assert tape - graph == 20 * 32 + 32 - 32  # states and products
    assert "nodes and tensor objects" in str(nt.report())


def test_small_cells_keep_to_the_budget():
    cell = torch.nn.GRUCell(4, 8)
    x = torch.randn(400, 1, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plan is slow
        nt.scan(lambda h, x, t: (cell(x, h), None), torch.zeros(1, 8), x, memory="256K")[0].sum().backward()
    told = nt.report()
    assert told.group * 10_000 < told.tape < 1 << 18  # a step of this cell takes 20 KB
    assert told.counted_peak + told.charged <= 1 << 18


def test_least_works():
    cell = torch.nn.GRUCell(4, 8)
    x = torch.randn(50, 1, 4)

    def run(memory):
        return nt.scan(lambda h, x, t: (cell(x, h), None), torch.zeros(1, 8), x, memory=memory)[0].sum().backward()
    with pytest.raises(neap.BudgetError) as info:
        run("8K")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(info.value.least)


class OnContext(torch.autograd.Function):
    """Keeps a tensor as an attribute, in a container or in an object."""

    how = "tensor"

    @staticmethod
    def forward(ctx, x):
        kept = x.detach().clone()
        ctx.kept = {"tensor": kept, "list": [None, (kept,)], "dict": {"a": kept}, "array": kept.numpy().copy(),
                    "none": None}[OnContext.how]
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


@pytest.mark.parametrize("how", ["tensor", "list", "dict", "array"])
def test_tensors_on_ctx_count(monkeypatch, how):
    state, tapes = torch.zeros(10_000, requires_grad=True), []
    for kind in ("none", how):
        monkeypatch.setattr(OnContext, "how", kind)
        tapes.append(tape_of(lambda h, x, t: (OnContext.apply(h), None), state)[0])
    assert tapes[1] - tapes[0] == 4 * 40_000


def test_hooks_of_a_step_count():
    """They are called in place of the scan's, so what they return is counted."""
    w = torch.nn.Parameter(torch.ones(10_000))

    def stepping(pack, unpack):
        def step(h, x, t):
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                return (h * w).sin(), None
        return step
    tapes = {}
    for name, pack, unpack in (("halves", torch.Tensor.half, torch.Tensor.float),
                               ("arrays", lambda x: x.detach().numpy().copy(), torch.from_numpy),
                               ("numbers", lambda x: (x.shape, 1.0), lambda kept: torch.full(*kept))):
        tape, graph = tape_of(stepping(pack, unpack), torch.zeros(10_000))
        tapes[name] = tape - graph
    assert tapes["numbers"] == 40_000  # the state that the group begins with
    assert tapes["halves"] >= 8 * 20_000 + 40_000
    assert tapes["arrays"] >= 8 * 40_000 + 40_000


def test_hooks_of_a_step_are_its_own():
    """Gradients pass through them, and outside a scan they are as before."""
    w = torch.nn.Parameter(torch.rand(50))
    seen = []

    def pack(x):
        seen.append(type(x))
        return x.double()

    def step(h, x, t):
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.Tensor.float):
            return (h * w).sin(), None
    first, h = torch.ones(50), torch.ones(50)
    for t in range(20):
        h, _ = step(h, None, t)
    want, = torch.autograd.grad(h.sum(), w)
    for given in ({}, {"memory": "200K"}, {"memory": "60K", "group": 1}, {"memory": "200K", "slow": "mem:4M"}):
        got, = torch.autograd.grad(nt.scan(step, first, steps=20, **given)[0].sum(), w)
        assert torch.equal(want, got)
    assert set(seen) <= {torch.Tensor, torch.nn.Parameter}


@pytest.mark.filterwarnings("ignore:the state of shape")  # fewer steps than samples, on purpose
@pytest.mark.parametrize("first", [(1, 64), (64,), (256, 64)])
def test_a_state_that_broadcasts_counts_as_later_ones(first):
    w = torch.nn.Parameter(torch.rand(64, 64) / 64)
    x = torch.randn(40, 256, 64)
    for given in ({"group": 1, "strategy": "revolve"}, {"group": 4}):
        nt.scan(lambda h, x, t: (torch.tanh(h @ w + x), None), torch.zeros(first), x, memory="4M", **given)
        assert 65_536 <= nt.report().state <= 65_536 + 2_000


def test_a_state_that_expands():
    w = torch.nn.Parameter(torch.rand(64))
    nt.scan(lambda h, x, t: ((h * w).sin(), None), torch.zeros(1, 64).expand(256, 64), steps=20, memory="4M", group=1)
    assert nt.report().state >= 65_536


def test_a_state_that_is_a_view_counts_its_storage():
    layer = torch.nn.Linear(64, 256)
    nt.scan(lambda h, x, t: (torch.tanh(layer(h))[:, :64], None), torch.zeros(8, 64), steps=20, memory="4M", group=1)
    assert nt.report().state >= 8 * 256 * 4


def test_a_first_state_out_of_a_table():
    """The table is the caller's: it is no part of a state."""
    table, w = torch.randn(1000, 8, 64), torch.nn.Parameter(torch.rand(64))
    nt.scan(lambda h, x, t: ((h * w).sin(), None), table[3], steps=20, memory="1M")
    assert nt.report().state < 8 * 64 * 4 + 2_000


def test_states_on_tiers_have_their_bytes(scratch):
    """A record of a tier has a state's elements, not the storage or the objects that it keeps."""
    layer = torch.nn.Linear(16, 64)

    def run(**given):
        layer.zero_grad()
        step = lambda h, x, t: (torch.tanh(layer(h))[:, :16], None)  # noqa: E731
        nt.scan(step, torch.zeros(8, 16), steps=60, **given)[0].sum().backward()
        return layer.weight.grad.clone()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = run(memory="150K", group=1, strategy="remote", slow=scratch)
    assert nt.report().counts.puts and nt.report().recoveries == 0
    assert torch.equal(got, run())


def test_memory_is_given_back(monkeypatch):
    """Beyond the budget free memory goes back; not at each step, and not if it does not help."""
    given, now, clock = [], [100], [0.0]
    monkeypatch.setattr(heap, "give_back", lambda: given.append(clock[0]))
    monkeypatch.setattr(heap, "resident", lambda: now[0])
    monkeypatch.setattr(heap.time, "perf_counter", lambda: clock[0])
    watched = heap.Heap(100, 1600)
    for now[0] in (100, 1000, 1499, 1600, 1601, 1650, 1800, 1900):
        clock[0] += 1
        watched.look()
    assert given == [4, 7]  # beyond 7/8 of the budget; then after each further sixteenth of it
    watched.look()
    assert given == [4, 7]
    now[0] = 800
    watched.over()
    assert len(given) == 2
    now[0] = 1000
    watched.over()
    assert len(given) == 3


def grown(*names):
    """Rows of bench/peers/scan_process.py for settings."""
    if not os.path.isdir(PEERS) or not os.path.exists("/proc/self/clear_refs"):
        pytest.skip("no bench/peers, or no /proc")
    done = subprocess.run([sys.executable, os.path.join(PEERS, "scan_process.py"), "--jemalloc", "no", "--json", "--only",
                           ";".join(names)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [list(row.values())[1] for row in map(json.loads, done.stdout.splitlines())]


@pytest.mark.parametrize("name", ["GRU(4, 8), 1M", "zeros(1, 64), batch 256"])
def test_the_process(name):
    for row in grown(name):
        assert row["grown"] < 1.25 * row["budget"] + 20e6


@pytest.mark.skipif(not MANY, reason="long; NEAP_MANY")
def test_all_settings():
    for row in grown():
        assert row["grown"] < 1.25 * row["budget"] + 20e6
