# SPDX-License-Identifier: Apache-2.0
"""PyTorch's recurrent modules given as they are, with (input, state) as arguments, and inputs as a list."""
import functools

import pytest

torch = pytest.importorskip("torch")
from torch.nn.utils.rnn import pack_sequence  # noqa: E402

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, flat, like, plain, same  # noqa: E402

T = 14
CELLS = {"rnn": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}
LAYERS = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM,
          "two": functools.partial(torch.nn.GRU, num_layers=2),
          "drop": functools.partial(torch.nn.LSTM, num_layers=2, dropout=0.3),
          "proj": functools.partial(torch.nn.LSTM, proj_size=3)}
OPTIONS = [dict(), dict(memory="24K", group=1, strategy="revolve"), dict(memory="48K", group=4)]


def loop(module, state, x):
    """The loop that a scan of these modules stands for."""
    def step(s, i, t):
        if isinstance(module, tuple(CELLS.values())):
            s = module(i, s)
            return s, s[0] if isinstance(s, tuple) else s
        out, s = module(i[None], s)
        return s, out[0]
    return plain(step, state, x)


def gradients(run, module, state, x):
    torch.manual_seed(3)
    last, out = run(module, state, x)
    wanted = [*module.parameters(), *flat(state), x]
    return [out.detach(), *[leaf.detach() for leaf in flat(last)],
            *torch.autograd.grad(out.pow(2).sum() + sum(leaf.sum() for leaf in flat(last)), wanted)]


def scanned(module, state, x, scan=False, **options):
    """A scan within a budget, or within the least one."""
    try:
        return (nt.Scan(module, costs=COSTS, **options)(state, x) if scan else
                nt.scan(module, state, x, costs=COSTS, **options))
    except neap.BudgetError as error:
        return scanned(module, state, x, scan, **dict(options, memory=error.least))


def states(module, batch=(B,)):
    """First states of the module, which need gradients."""
    shape = () if isinstance(module, tuple(CELLS.values())) else (module.num_layers,)
    h = torch.randn(*shape, *batch, getattr(module, "proj_size", 0) or N, requires_grad=True)
    lstm = isinstance(module, (torch.nn.LSTM, torch.nn.LSTMCell))
    return (h, torch.randn(*shape, *batch, N, requires_grad=True)) if lstm else h


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("make", [*CELLS.values(), *LAYERS.values()], ids=[*[f"{key} cell" for key in CELLS], *LAYERS])
@pytest.mark.parametrize("options", OPTIONS)
def test_recurrent_modules(make, options):
    torch.manual_seed(0)
    module, x = make(I, N), torch.randn(T, B, I, requires_grad=True)
    state = states(module)
    scan = functools.partial(scanned, **options)
    wanted = gradients(loop, module, state, x)
    same(gradients(scan, module, state, x), wanted)
    same(gradients(lambda *given: scanned(*given, scan=True, **options), module, state, x), wanted)
    zeros = like(state, iter([torch.zeros_like(leaf) for leaf in flat(state)]))
    torch.manual_seed(3)
    found = flat(scan(module, None, list(x.detach())))  # zeros, and one tensor per step
    torch.manual_seed(3)
    same([leaf.detach() for leaf in found], [leaf.detach() for leaf in flat(scan(module, zeros, x.detach()))])


@pytest.mark.parametrize("make", [torch.nn.GRUCell, torch.nn.LSTM])
def test_without_a_batch(make):
    torch.manual_seed(0)
    module, x = make(I, N), torch.randn(T, I, requires_grad=True)
    state = states(module, ())
    same(gradients(functools.partial(scanned, **OPTIONS[1]), module, state, x), gradients(loop, module, state, x))
    assert nt.scan(module, None, x)[1].shape == (T, N)


def test_a_layer_over_the_whole_sequence_is_near():
    torch.manual_seed(0)
    module, x = torch.nn.GRU(I, N, num_layers=2).double(), torch.randn(T, B, I, dtype=torch.float64)
    out, last = module(x)
    found = nt.scan(module, None, x, memory="64K", costs=COSTS)
    assert torch.allclose(found[1], out, atol=1e-12) and torch.allclose(found[0], last, atol=1e-12)


def test_a_module_of_the_same_kind_with_its_own_forward():
    class Own(torch.nn.GRUCell):
        def forward(self, h, x, t):
            h = super().forward(x, h) + t
            return h, h
    torch.manual_seed(0)
    module, x = Own(I, N), torch.randn(T, B, I, requires_grad=True)
    state = states(torch.nn.GRUCell(I, N))
    same(gradients(functools.partial(scanned, **OPTIONS[1]), module, state, x), gradients(plain, module, state, x))


def test_buffers_and_sums():
    """A weight with spectral norm has buffers; reduce adds up the outputs."""
    torch.manual_seed(0)
    x = torch.randn(T, B, I)
    cell = torch.nn.utils.spectral_norm(torch.nn.GRUCell(I, N), "weight_hh")
    last, total = nt.scan(cell, None, x, buffers="state", reduce=lambda out, t: out, memory="24K", costs=COSTS)
    assert last.shape == total.shape == (B, N)
    total.sum().backward()


def test_refused():
    x = torch.randn(T, B, I)
    with pytest.raises(neap.UsageError, match=r"nn.GRU with bidirectional=True.*x.flip\(0\)"):
        nt.scan(torch.nn.GRU(I, N, bidirectional=True), None, x)
    with pytest.raises(neap.UsageError, match=r"nn.LSTM with batch_first=True.*x.transpose\(0, 1\)"):
        nt.scan(torch.nn.LSTM(I, N, batch_first=True), None, x)
    with pytest.raises(neap.UsageError, match="PackedSequence.*pad_packed_sequence"):
        nt.scan(torch.nn.LSTM(I, N), None, pack_sequence([x[:5, 0], x[:3, 0]]))
    with pytest.raises(neap.UsageError, match="state is None.*nn.GRUCell"):
        nt.scan(torch.nn.GRUCell(I, N), None, lambda t: x[t], steps=T)


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("options", OPTIONS)
def test_inputs_as_a_list(kind, options):
    """One tensor per step: an error explains what to pass. A list of sequences is a tree."""
    torch.manual_seed(0)
    cell, x, h = torch.nn.GRUCell(I, N), torch.randn(T, B, I), torch.zeros(B, N)
    w = torch.nn.Parameter(torch.randn(I, N))
    for step in (lambda h, i, t: (cell(i, h), None), lambda h, i, t: (h + i @ w, None),
                 lambda h, i, t: (h + i.relu() @ w, None)):
        with pytest.raises(neap.UsageError, match=rf"{kind.__name__} of 14 tensors of shape \(3, 4\).*torch.stack\("):
            nt.scan(step, h, kind(x), costs=COSTS, **options)
        with pytest.raises(neap.UsageError, match=r"steps=14, but inputs have 3 steps.*torch.stack\(inputs\)"):
            nt.scan(step, h, kind(x), steps=T, costs=COSTS, **options)
    with pytest.raises(neap.UsageError, match=r"same length.*torch.stack\(inputs\)"):
        nt.scan(lambda h, i, t: (h + i, None), h, list(torch.ones(5)), costs=COSTS, **options)

    def two(h, i, t):
        h = cell(i[0] + i[1], h)
        return h, h
    out = nt.scan(two, h, kind([x, x]), costs=COSTS, **options)[1]
    same([out.detach()], [plain(two, h, torch.stack([x, x], 1))[1].detach()])
    with pytest.raises(TypeError):  # no list of tensors alike: the step's own error
        nt.scan(lambda h, i, t: (cell(i, h) + None, None), h, x, costs=COSTS, **options)
