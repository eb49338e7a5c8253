# SPDX-License-Identifier: Apache-2.0
"""neap.torch with tensors that are no plain memory: conjugate and negative views in states, inputs, outputs and tapes;
sparse constants, parameters, buffers and gradients; nested and quantized tensors."""
import ctypes

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, plain  # noqa: E402
from neap.torch.measure import Counter, address  # noqa: E402
from neap.torch.tapes import Keeper  # noqa: E402

T, B, N = 24, 3, 8
OPTIONS = {"none": dict(), "group": dict(group=5), "revolve": dict(memory="10K", group=1, strategy="revolve"),
           "remote": dict(memory="7K", group=1, slow="mem:4M", strategy="remote"),
           "hierarchical": dict(memory="7K", group=1, slow="mem:4M", strategy="hierarchical"),
           "directory": dict(memory="7K", group=1, strategy="remote")}
TAPES = dict(memory="300K", group=1, slow="mem:64M", strategy="stream")
pytestmark = pytest.mark.filterwarnings("ignore:.*(beta state|invariant checks|prototype stage|quantized tensor)")
D, C = torch.float64, torch.complex128


def bits_of(x):
    if x.layout == torch.sparse_coo:
        return [x._indices(), x._values()]
    if x.layout == torch.strided:
        return [x]
    name = "crow" if x.layout in (torch.sparse_csr, torch.sparse_bsr) else "ccol"
    other = "col" if name == "crow" else "row"
    return [getattr(x, name + "_indices")(), getattr(x, other + "_indices")(), x.values()]


def same(found, wanted):
    for a, b in zip(found, wanted):
        assert a.layout == b.layout and all(torch.equal(x, y) for x, y in zip(bits_of(a), bits_of(b)))


def rows_of(build, options, tmp_path=None):
    """Results and gradients; ``build(run)`` gives a real loss and leaves."""
    def run(step, state, x=None, give=None, **more):
        if options is None:
            return plain(step, state, x, T)
        slow = dict(slow=str(tmp_path)) if "slow" not in options and options.get("strategy") == "remote" else {}
        given = dict(options, costs=COSTS, steps=T, **slow, **more)
        try:
            return nt.scan(step, state, x if give is None else give, **given)
        except neap.BudgetError as error:
            return nt.scan(step, state, x if give is None else give, **dict(given, memory=error.least))
    torch.manual_seed(1)
    loss, leaves = build(run)
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


# Conjugate and negative views

def weight():
    return (torch.randn(N, N, dtype=C) * 0.3).requires_grad_()


def conjugate_state(run):
    w = weight()
    last, out = run(lambda h, x, t: (torch.tanh(h @ w + 0.3j).conj(), (h @ w).abs()), torch.randn(B, N, dtype=C))
    return out.sum() + last.abs().sum() + last.imag.sum(), [w]


def conjugate_transposed(run):
    w = weight()
    last, out = run(lambda h, x, t: (torch.tanh(h.mT @ w + 0.3j).mH, h.abs()), torch.randn(N, N, dtype=C))
    return out.sum() + last.imag.sum(), [w]


def negative_state(run):
    w = (torch.randn(N, N, dtype=D) * 0.3).requires_grad_()
    h = torch.randn(B, N, dtype=D)
    last, out = run(lambda h, x, t: (torch.complex(h, torch.tanh(h @ w)).conj().imag, h * h), h)
    return out.sum() + last.sum(), [w]


def both_bits(run):
    w, h = weight(), torch.randn(B, N, dtype=C)
    last, out = run(lambda h, x, t: (torch._neg_view(torch.tanh(h @ w + 0.3j).conj()), h.imag), h)
    return out.sum() + last.abs().sum(), [w]


def first_state(run):
    w, h = weight(), torch.randn(B, N, dtype=C).requires_grad_()
    last, out = run(lambda h, x, t: (torch.tanh(h @ w + 0.3j), h.abs()), h.conj())
    return out.sum() + last.imag.sum(), [w, h]


def sometimes(run):
    w = weight()

    def step(h, x, t):
        h = torch.tanh(h @ w + 0.3j)
        return (h.conj() if t % 3 else h), h.abs()
    last, out = run(step, torch.randn(B, N, dtype=C))
    return out.sum() + last.imag.sum(), [w]


def inputs_and_outputs(run):
    w, x = weight(), torch.randn(T, B, N, dtype=C).requires_grad_()
    last, out = run(lambda h, x, t: (torch.tanh(h @ w + x), (h @ w + x).conj()), torch.randn(B, N, dtype=C), x.conj())
    return out.imag.sum() + out.abs().sum() + last.imag.sum(), [w, x]


def an_output_that_is_the_state(run):
    w = weight()

    def step(h, x, t):
        h = torch.tanh(h @ w + 0.3j).conj()
        return h, h
    last, out = run(step, torch.randn(B, N, dtype=C))
    return out.imag.sum() + out.abs().sum() + last.imag.sum(), [w]


def saved(run):
    """A graph that saves such views, of a real state."""
    w = (torch.randn(N, N, dtype=D) * 0.3).requires_grad_()

    def step(h, x, t):
        z = torch.complex(torch.tanh(h @ w), h)
        z = (z.conj() * z).real + (torch.tanh(z).mH @ torch.tanh(z)).real.sum() * 0.01
        return torch.tanh(z - z.mean() + z.conj() * torch.complex(z, h).conj().imag), z
    last, out = run(step, torch.randn(B, N, dtype=D))
    return out.sum() + last.sum(), [w]


VIEWS = (conjugate_state, conjugate_transposed, negative_state, both_bits, first_state, sometimes, inputs_and_outputs,
         an_output_that_is_the_state, saved)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("build", VIEWS)
def test_conjugate_and_negative_views(build, options, tmp_path):
    """A tier takes the memory alone; what comes back is the same view of it."""
    same(rows_of(build, OPTIONS[options], tmp_path), rows_of(build, None))
    if "strategy" in OPTIONS[options]:
        assert nt.report().extra_steps > 0 or nt.report().counts.puts > 0 and nt.report().recoveries == 0


@pytest.mark.parametrize("build", (conjugate_state, negative_state, sometimes, saved))
def test_such_views_in_tapes_that_travel(build, monkeypatch):
    monkeypatch.setitem(globals(), "B", 256)
    same(rows_of(build, TAPES), rows_of(build, None))
    assert nt.report().counts.tape_puts > 0 and nt.report().recoveries == 0


def test_a_kept_view_is_that_of_its_memory():
    """What a tape gives back is the same view, and shares the version of the tensor that was saved."""
    x = torch.randn(N, dtype=C)
    with Keeper(set()) as keeper:
        handles = [keeper.pack(view) for view in (x, x.conj(), x.conj().imag, torch._neg_view(x))]
    assert keeper.total == x.numel() * 16
    before = [keeper.unpack(handle).clone() for handle in handles]
    whole = bytes(x.numpy().tobytes())
    keeper.shed()
    (at, size), = keeper.regain()
    assert size == len(whole)
    ctypes.memmove(at, whole, size)
    assert all(torch.equal(keeper.unpack(handle), value) for handle, value in zip(handles, before))
    assert [(y.is_conj(), y.is_neg()) for y in map(keeper.unpack, handles)] == [
        (False, False), (True, False), (False, True), (False, True)]


class Conjugate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(N, N, dtype=C) * 0.3)

    def forward(self, h):
        h = torch.tanh(h @ self.w)
        return torch._neg_view(h.conj()) * 1 if h.abs().sum() < 0 else h.conj()


@pytest.mark.parametrize("options", [dict(memory="1M"), dict(memory="90K"), dict(memory="90K", slow="mem:4M")])
def test_layers_with_conjugate_states(options):
    rows = []
    for given in (None, options):
        torch.manual_seed(2)
        layers = [Conjugate() for _ in range(12)]
        net = torch.nn.Sequential(*layers) if given is None else nt.Sequential(*layers, **given)
        x = torch.randn(64, N, dtype=C).requires_grad_()
        y = net(x.conj())
        loss = y.abs().sum() + y.imag.sum()
        rows.append([y.detach().resolve_conj(), *torch.autograd.grad(loss, [x, *net.parameters()])])
    same(rows[1], rows[0])


# Sparse tensors

class Dense(torch.autograd.Function):
    """A product that saves a sparse tensor of any layout."""

    @staticmethod
    def forward(ctx, sparse, h):
        ctx.save_for_backward(sparse)
        return sparse.to_dense() @ h

    @staticmethod
    def backward(ctx, gradient):
        return None, ctx.saved_tensors[0].to_dense().t() @ gradient


def matrix(layout):
    values = torch.rand(N, N, dtype=D) * (torch.rand(N, N) < 0.4)
    return getattr(values, "to_sparse" + layout)(*[(2, 2)] if layout[:2] == "_b" else [])


LAYOUTS = ["", "_csr", "_csc", "_bsr", "_bsc"]


def constant(run, layout):
    v, s, x = torch.randn(N, dtype=D).requires_grad_(), matrix(layout), torch.randn(T, N, B, dtype=D)

    def step(h, x, t):
        h = torch.tanh(v[:, None] * Dense.apply(s, h) + x)
        return h, h
    last, out = run(step, torch.zeros(N, B, dtype=D), x)
    return out.pow(2).sum() + last.sum(), [v]


def a_buffer(run, layout):
    class Cell(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.v = torch.nn.Parameter(torch.randn(N, dtype=D))
            self.register_buffer("s", matrix(layout))

        def forward(self, h, x, t):
            h = torch.tanh(self.v[:, None] * Dense.apply(self.s, h) + x)
            return h, h
    cell = Cell()
    last, out = run(cell, torch.zeros(N, B, dtype=D), torch.randn(T, N, B, dtype=D))
    return out.pow(2).sum() + last.sum(), [cell.v]


def an_input(run, layout):
    """From a function of t."""
    v, rows = torch.randn(N, dtype=D).requires_grad_(), [matrix(layout) for _ in range(T)]

    def step(h, x, t):
        h = torch.tanh(v[:, None] * Dense.apply(rows[t] if x is None else x, h))
        return h, h
    last, out = run(step, torch.ones(N, B, dtype=D), give=lambda t: rows[t])
    return out.pow(2).sum() + last.sum(), [v]


@pytest.mark.parametrize("options", ["none", "revolve", "remote"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("build", [constant, a_buffer, an_input])
def test_sparse_constants(build, layout, options):
    same(rows_of(lambda run: build(run, layout), OPTIONS[options]), rows_of(lambda run: build(run, layout), None))


def product(run):
    s, x = matrix("").requires_grad_(), torch.randn(T, N, B, dtype=D)

    def step(h, x, t):
        h = torch.tanh(torch.sparse.mm(s, h) + x)
        return h, h
    last, out = run(step, torch.zeros(N, B, dtype=D), x)
    return out.pow(2).sum() + last.sum(), [s]


def values(run):
    """A sparse tensor that the step makes of a parameter."""
    at, v = torch.randint(0, N, (2, 20)), torch.randn(20, dtype=D).requires_grad_()

    def step(h, x, t):
        h = torch.tanh(torch.sparse.mm(torch.sparse_coo_tensor(at, v, (N, N)), h) + 0.1)
        return h, h
    last, out = run(step, torch.zeros(N, B, dtype=D))
    return out.pow(2).sum() + last.sum(), [v]


def computed(run):
    """One that was made outside, and is named."""
    at, v = torch.randint(0, N, (2, 20)), torch.randn(20, dtype=D).requires_grad_()
    s = torch.sparse_coo_tensor(at, v, (N, N))

    def step(h, x, t):
        h = torch.tanh(torch.sparse.mm(s, h) + 0.1)
        return h, h
    last, out = run(step, torch.zeros(N, B, dtype=D), params=[s])
    return out.pow(2).sum() + last.sum(), [v]


def embedding(run, tied=False):
    table, cell = torch.nn.Embedding(10, N, sparse=True, dtype=D), torch.nn.GRUCell(N, N, dtype=D)

    def step(h, x, t):
        h = cell(table(x), h)
        return h, (h @ table.weight.t() if tied else h)
    last, out = run(step, torch.zeros(B, N, dtype=D), torch.randint(0, 10, (T, B)))
    return out.pow(2).sum() + last.sum(), [table.weight, *cell.parameters()]


def tied(run):
    return embedding(run, True)


@pytest.mark.parametrize("options", ["none", "group", "revolve", "remote"])
@pytest.mark.parametrize("build", [product, values, computed, embedding, tied])
def test_sparse_gradients(build, options):
    """Sums of sparse gradients have the loop's order of terms: the same indices and values."""
    if build is product and not hasattr(torch, "compile"):
        pytest.skip("this PyTorch has no such gradient")
    same(rows_of(build, OPTIONS[options]), rows_of(build, None))


@pytest.mark.parametrize("build", [values, embedding])
def test_sparse_tensors_in_tapes_that_travel(build, monkeypatch):
    monkeypatch.setitem(globals(), "B", 256)
    same(rows_of(build, TAPES), rows_of(build, None))
    assert nt.report().counts.tape_puts > 0 and nt.report().recoveries == 0


def test_sparse_gradients_of_a_graph_that_is_kept():
    """create_graph=True; a second derivative is refused as any other."""
    table, x = torch.nn.Embedding(10, N, sparse=True), torch.randint(0, 10, (T, B))

    def step(h, row, t):
        return torch.tanh(h + table(row)), h
    found = []
    for run in (plain, nt.scan):
        out = run(step, torch.zeros(B, N), x)[1]
        found.append(torch.autograd.grad(out.pow(2).sum(), table.weight, create_graph=run is not plain)[0])
    same([found[1].detach()], [found[0]])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sparse_tensor_counts_as_its_parts(layout):
    """Each storage once, for as long as a graph holds it."""
    s = matrix(layout)
    size = sum(dict(map(address, bits_of(s))).values())
    for counter in (Counter(set()), Keeper(set())):
        one, two = counter.pack(s), counter.pack(s)
        assert counter.total == size and counter.unpack(one) is not s
        same([counter.unpack(one)], [s])
        del one
        assert counter.total == size
        del two
        assert counter.total == 0


def test_memory_of_sparse_tensors_stays_where_tapes_travel():
    v = torch.randn(20, dtype=D)
    keeper = Keeper(set())
    held = [keeper.pack(v), keeper.pack(torch.sparse_coo_tensor(torch.zeros(2, 20, dtype=torch.long), v, (N, N)))]
    other = keeper.pack(torch.randn(5))
    graph = keeper.graph(1)
    assert [size for _, size in keeper.pieces()] == [20] and keeper.staying == graph + 20 * 8 + 40 * 8
    keeper.shed()
    assert other.tensor is None and all(one.tensor is not None for one in held)


REFUSED = {"state": lambda h, x, t: (h.to_sparse(), h), "output": lambda h, x, t: (h, h.to_sparse()),
           "later": lambda h, x, t: (h, h.to_sparse() if t > 2 else h),
           "quantized": lambda h, x, t: (h, torch.quantize_per_tensor(h.detach(), 0.1, 0, torch.qint8))}


@pytest.mark.parametrize("memory", [None, "4K"])
@pytest.mark.parametrize("what", REFUSED)
def test_what_has_to_be_dense(what, memory):
    w = torch.ones(N).requires_grad_()
    with pytest.raises(neap.UsageError, match="quantized" if what == "quantized" else "layout torch.sparse_coo"):
        nt.scan(lambda h, x, t: REFUSED[what](h * w, x, t), torch.ones(B, N), steps=T, memory=memory, costs=COSTS)


@pytest.mark.parametrize("what", ["start", "input", "nested", "reduce", "buffers"])
def test_arguments_that_have_to_be_dense(what):
    w, h, x, more = torch.ones(N).requires_grad_(), torch.ones(B, N), torch.ones(T, B, N), {}
    step = lambda h, x, t: (w + x, w + x)  # noqa: E731
    if what == "start":
        h = h.to_sparse()
    elif what == "input":
        x = x.to_sparse().requires_grad_()
    elif what == "nested":
        if not hasattr(torch, "compile"):
            pytest.skip("nested tensors of this PyTorch have no shape")
        h = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    elif what == "reduce":
        more = dict(reduce=lambda out, t: out.to_sparse())
    else:
        step = torch.nn.GRUCell(N, N)
        step.register_buffer("s", torch.eye(N).to_sparse())
        more = dict(buffers="state")
    with pytest.raises((neap.UsageError, TypeError) if what == "buffers" else neap.UsageError):
        nt.scan(step, h, x, costs=COSTS, **more)


def test_layers_with_sparse_tensors():
    """Constants work; what goes from layer to layer has to be dense."""
    class Times(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(N, dtype=D))
            self.register_buffer("s", matrix("_csr"))
            self.rest = matrix("")

        def forward(self, h):
            return torch.tanh(self.w[:, None] * (Dense.apply(self.s, h) + Dense.apply(self.rest, h)))
    rows = []
    for memory in (None, "1M", "200K"):
        torch.manual_seed(3)
        layers = [Times() for _ in range(12)]
        net = torch.nn.Sequential(*layers) if memory is None else nt.Sequential(*layers, memory=memory)
        y = net(torch.randn(N, 64, dtype=D))
        rows.append([y.detach(), *torch.autograd.grad(y.sum(), [*net.parameters()])])
    same(rows[1], rows[0])
    same(rows[2], rows[0])

    class Sparse(torch.nn.Linear):
        def forward(self, h):
            return super().forward(h).to_sparse()
    with pytest.raises(neap.UsageError, match="output of layer 1"):
        nt.Sequential(torch.nn.Linear(N, N), Sparse(N, N), memory="1M")(torch.ones(N, N))
    with pytest.raises(neap.UsageError, match="the input"):
        nt.Sequential(torch.nn.Linear(N, N), memory="1M")(torch.ones(N, N).to_sparse())


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("options", ["none", "revolve", "remote"])
def test_nested_tensors_in_a_step(layout, options):
    if not hasattr(torch, "jagged"):
        pytest.skip("this PyTorch has no jagged tensors")

    def ragged(run):
        linear = torch.nn.Linear(N, N, dtype=D)

        def step(h, x, t):
            rows = torch.nested.as_nested_tensor([h[:2], h[2:5], h[5:]], layout=getattr(torch, layout))
            return torch.tanh(torch.cat(list(linear(rows).unbind()))), h
        last, out = run(step, torch.randn(6, N, dtype=D))
        return out.sum() + last.sum(), [*linear.parameters()]
    same(rows_of(ragged, OPTIONS[options]), rows_of(ragged, None))
    same(rows_of(ragged, dict(TAPES, memory="60K")), rows_of(ragged, None))
