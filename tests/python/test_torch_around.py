# SPDX-License-Identifier: Apache-2.0
"""What a step of neap.torch reaches besides its arguments: parameters that it uses late, buffers,
modes, tensors that change before backward, inputs that are no function of t. The gradient is that of
the plain loop, or there is one clear line."""
import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS  # noqa: E402

T, B, N = 60, 3, 6


def made(seed=1):
    torch.manual_seed(seed)
    return torch.nn.GRUCell(4, N), torch.nn.Linear(N, N), torch.randn(T, B, 4), torch.zeros(B, N)


def looped(step, h, x):
    outputs = []
    for t in range(T):
        h, output = step(h, x[t], t)
        outputs.append(output)
    return h, torch.stack(outputs)


def gradients(results, leaves):
    """Of a loss of both results; and forgets them."""
    last, outputs = results
    (outputs.square().mean() + last.sum()).backward()
    found = [None if leaf.grad is None else leaf.grad.clone() for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return found


def same(a, b):
    return all((p is None and q is None) or torch.equal(p, q) for p, q in zip(a, b))


LATE = {"one": lambda t: t == 31, "from": lambda t: t >= 30, "some": lambda t: t % 20 == 19, "last": lambda t: t == T - 1,
        "all": lambda t: True}


@pytest.mark.parametrize("when", LATE)
@pytest.mark.parametrize("memory", [None, "200K", "16K"])
def test_parameters_that_are_used_late(when, memory):
    """Their gradients are those of the loop, or a line says to name them; the next call knows them."""
    gru, more, x, h = made()

    def step(h, row, t):
        h = gru(row, h)
        return (h + more(h) if LATE[when](t) else h), h
    leaves = [*gru.parameters(), *more.parameters()]
    wanted = gradients(looped(step, h, x), leaves)
    try:
        found = gradients(nt.scan(step, h, x, memory=memory, costs=COSTS, group=1 if memory == "16K" else None), leaves)
    except neap.UsageError as error:
        assert "Name it: params=" in str(error) and memory == "16K", error
        gru.zero_grad(), more.zero_grad()
        found = gradients(nt.scan(step, h, x, memory=memory, costs=COSTS, group=1), leaves)
    assert same(wanted, found)
    assert same(wanted, gradients(nt.scan(step, h, x, memory=memory, params=leaves, costs=COSTS), leaves))


@pytest.mark.parametrize("memory", ["200K", "16K"])
def test_a_late_loss(memory):
    """reduce may use parameters late as well."""
    gru, readout, x, h = made()
    leaves = [*gru.parameters(), *readout.parameters()]
    options = dict(reduce=lambda out, t: readout(out).square().mean() if t >= 40 else torch.zeros(()), memory=memory,
                   costs=COSTS)

    def step(h, row, t):
        h = gru(row, h)
        return h, h
    last, outputs = looped(step, h, x)
    total = torch.zeros(())
    for row in outputs[40:]:
        total = total + readout(row).square().mean()
    total.backward()
    wanted = [leaf.grad.clone() for leaf in leaves]
    for params in (None, leaves):
        for leaf in leaves:
            leaf.grad = None
        try:
            nt.scan(step, h, x, params=params, **options)[1].backward()
        except neap.UsageError as error:
            assert params is None and "Name it: params=" in str(error)
            continue
        assert all(torch.allclose(a, leaf.grad, atol=1e-6) for a, leaf in zip(wanted, leaves))


class Held(torch.nn.Module):
    """A module whose cell is no registered part of it."""

    def __init__(self, cell):
        super().__init__()
        self.cells = [cell]

    def forward(self, h, row, t):
        h = self.cells[0](row, h)
        return h, h


@pytest.mark.parametrize("kind", ["after the first step", "unregistered"])
def test_a_first_step_without_parameters(kind):
    """It does not make the scan a plain loop whose outputs have no gradient."""
    gru, _, x, h = made()

    def late(h, row, t):
        h = gru(row, h) if t > 0 else h
        return h, h
    step = late if kind == "after the first step" else Held(gru)
    leaves = list(gru.parameters())
    wanted = gradients(looped(step, h, x), leaves)
    for memory in (None, "200K"):
        assert same(wanted, gradients(nt.scan(step, h, x, memory=memory, costs=COSTS), leaves))
        assert same(wanted, gradients(nt.Scan(step, memory=memory, costs=COSTS)(h, x), leaves))
    torch.manual_seed(3)
    free = nt.scan(lambda h, row, t: (h + torch.rand(()), h), h, x)[0]  # no gradient: still a plain loop
    torch.manual_seed(3)
    assert torch.equal(free, looped(lambda h, row, t: (h + torch.rand(()), h), h, x)[0])


class Mean(torch.nn.Module):
    """A running mean that is bound anew in each step."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell
        self.register_buffer("mean", torch.zeros(N))

    def forward(self, h, row, t):
        h = self.cell(row, h) - self.mean
        self.mean = 0.9 * self.mean + 0.1 * h.detach().mean(0)
        return h, h


def test_buffers_that_are_bound_anew():
    gru, _, x, h = made()
    step = Mean(gru)
    leaves = list(gru.parameters())
    for call in (lambda: nt.scan(step, h, x, memory="20K"), lambda: nt.Scan(step, memory="20K")(h, x)):
        with pytest.raises(neap.UsageError, match="changes 'mean'"):
            call()
    step.mean = torch.zeros(N)
    wanted = gradients(looped(step, h, x), leaves)
    step.mean = torch.zeros(N)
    assert same(wanted, gradients(nt.scan(step, h, x, memory="20K", buffers="state", costs=COSTS), leaves))


def test_buffers_that_no_step_reads():
    """Modules of snnTorch bind the membrane that they are given to a buffer: nothing depends on it."""
    class Noted(Mean):
        def forward(self, h, row, t):
            self.mean = h.detach()[0]
            h = self.cell(row, h)
            return h, h
    gru, _, x, h = made()
    step, leaves = Noted(gru), list(gru.parameters())
    wanted = gradients(looped(step, h, x), leaves)
    last = step.mean
    assert same(wanted, gradients(nt.scan(step, h, x, memory="20K", costs=COSTS), leaves))
    assert step.mean.shape == last.shape


def test_buffers_behind_an_object():
    """BatchNorm in an attribute of an object, and in a list of a module that does not register it."""
    class Box:
        pass
    box, norm = Box(), torch.nn.BatchNorm1d(N)
    box.inner, box.inner.norm = Box(), norm
    gru, _, x, h = made()

    class Listed(Held):
        def forward(self, h, row, t):
            h = self.cells[1](self.cells[0](row, h))
            return h, h
    listed = Listed(gru)
    listed.cells.append(norm)
    for step in (lambda h, row, t: (box.inner.norm(gru(row, h)), None), listed):
        with pytest.raises(neap.UsageError, match="changes buffer 'BatchNorm1d.num_batches_tracked'"):
            nt.scan(step, h, x, memory="20K")


@pytest.mark.parametrize("function", [False, True])
def test_evaluation_before_backward(function):
    """Steps that are done again drop out as on the way forward; modes stay as the caller set them."""
    class Dropping(torch.nn.Module):
        def __init__(self, cell):
            super().__init__()
            self.cell, self.drop = cell, torch.nn.Dropout(0.5)

        def forward(self, h, row, t):
            h = self.cell(self.drop(row), h)
            return h, h
    gru, _, x, h = made()
    module = Dropping(gru)
    step = (lambda h, row, t: module(h, row, t)) if function else module
    leaves = list(gru.parameters())
    torch.manual_seed(5)
    wanted = gradients(looped(step, h, x), leaves)
    torch.manual_seed(5)
    results = nt.scan(step, h, x, memory="24K", costs=COSTS)
    module.eval()
    assert same(wanted, gradients(results, leaves))
    assert nt.report().extra_steps > 0
    assert not module.drop.training


def test_tensors_that_change_before_backward():
    gru, _, x, h = made()
    mask, table = torch.ones(N), x.clone()

    def masked(h, row, t):
        h = gru(row, h) * mask
        return h, h

    def step(h, row, t):
        h = gru(row, h)
        return h, h
    for tensor, call in ((mask, lambda: nt.scan(masked, h, x, memory="12K", costs=COSTS)),
                         (table, lambda: nt.scan(step, h, lambda t: table[t], steps=T, memory="12K", costs=COSTS))):
        last, outputs = call()
        tensor.zero_()
        with pytest.raises(RuntimeError, match=r"was modified in place between forward and backward"):
            (last.sum() + outputs.sum()).backward()
        tensor.fill_(1.0)
        last, outputs = call()
        loss = last.sum() + outputs.sum()
        loss.backward(retain_graph=True)
        loss.backward()


def test_tensors_that_a_step_writes():
    """A sum for a report may be set back before backward."""
    gru, _, x, h = made()
    spikes = torch.zeros(())

    def step(h, row, t):
        h = gru(row, h)
        spikes.add_((h.detach() > 0.2).sum())
        return h, h
    last, outputs = nt.scan(step, h, x, memory="24K", costs=COSTS)
    assert spikes.item() > 0
    spikes.zero_()
    (last.sum() + outputs.sum()).backward()


def test_tensors_that_no_step_uses():
    """An attribute that a method does not read, and a global of the name of a method that it calls, may change."""
    gru, _, x, h = made()

    class Trainer:
        total = torch.zeros(())

        def __init__(self):
            self.total = torch.zeros(())

        def step(self, h, row, t):
            h = gru(row, h) - 0.1 * h.mean()
            return h, h
    trainer = Trainer()
    globals()["mean"] = torch.zeros(())
    last, outputs = nt.scan(trainer.step, h, x, memory="24K", costs=COSTS)
    trainer.total.add_(1)
    globals().pop("mean").add_(1)
    (last.sum() + outputs.sum()).backward()


@pytest.mark.parametrize("memory", ["24K", "1M"])
def test_saved_tensors_that_change(memory):
    """Where tapes are counted, autograd's check of versions is ours."""
    gru, more, x, h = made()
    more.requires_grad_(False)
    mask = torch.ones(N)

    def step(h, row, t):
        h = more(gru(row, h)) * mask
        return h, h
    for tensor in (mask, more.weight):
        last, outputs = nt.scan(step, h, x, memory=memory, costs=COSTS)
        tensor.mul_(0.5)
        with pytest.raises(RuntimeError, match="modified in place|modified by an inplace"):
            (last.sum() + outputs.sum()).backward()

    def wrong(h, row, t):
        y = torch.exp(gru(row, h))
        h = torch.tanh(y * h)
        if t >= 40:
            y.add_(1)
        return h, h
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        nt.scan(wrong, h, x, memory=memory, costs=COSTS)[1].sum().backward()


@pytest.mark.parametrize("options", [dict(), dict(group=1), dict(memory="24K"), dict(memory="60K", group=7)])
def test_an_output_that_is_two_parts_of_the_state(options):
    """Its gradient counts once."""
    torch.manual_seed(1)
    gru, x, h = torch.nn.GRUCell(4, N).double(), torch.randn(T, B, 4).double(), torch.zeros(B, N).double()

    def step(s, row, t):
        h = gru(row, 0.5 * (s[0] + s[1]))
        return ((h, h) if t % 3 else (h, 0.5 * h)), h
    leaves = list(gru.parameters())
    (last, more), outputs = looped(step, (h, h.clone()), x)
    wanted = gradients((last + more, outputs), leaves)
    (last, more), outputs = nt.scan(step, (h, h.clone()), x, costs=COSTS, **options)
    found = gradients((last + more, outputs), leaves)
    assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in zip(wanted, found))


@pytest.mark.parametrize("memory", [None, "200K"])
def test_random_numbers_where_a_scan_begins_anew(memory):
    gru, more, x, h = made()

    def step(h, row, t):
        h = gru(row, torch.nn.functional.dropout(h))
        return (h + more(h) if t >= 30 else h), h
    leaves = [*gru.parameters(), *more.parameters()]
    torch.manual_seed(3)
    wanted, after = gradients(looped(step, h, x), leaves), torch.rand(1)
    torch.manual_seed(3)
    results = nt.scan(step, h, x, memory=memory, costs=COSTS)
    assert torch.equal(after, torch.rand(1)) and same(wanted, gradients(results, leaves))


def test_a_leaf_that_a_step_makes():
    """Its gradient goes nowhere, as in a plain loop."""
    gru, _, x, h = made()

    def step(h, row, t):
        h = gru(row, h) + torch.full((B, N), 0.01, requires_grad=True)
        return h, h
    leaves = list(gru.parameters())
    wanted = gradients(looped(step, h, x), leaves)
    for memory in (None, "24K"):
        assert same(wanted, gradients(nt.scan(step, h, x, memory=memory, costs=COSTS), leaves))


def test_inputs_that_are_no_function_of_t():
    gru, _, x, h = made()
    rows, stage = iter(x), torch.zeros(B, 4)

    def staged(t):
        return stage.copy_(x[t])

    def step(h, row, t):
        h = gru(row, h)
        return h, h
    for give, says in ((lambda t: next(rows), "returned different values on a second call"),
                       (staged, r"inputs\(0\) and inputs\(59\) share memory"),
                       (lambda t: next(iter(())), r"inputs\(0\) raised StopIteration")):
        with pytest.raises(neap.UsageError, match=says):
            nt.scan(step, h, give, steps=T, memory="20K")
    torch.manual_seed(2)
    last, _ = nt.scan(step, h, lambda t: torch.randn(B, 4), steps=T, memory="20K", costs=COSTS)  # drawn again alike
    last.sum().backward()
    nt.scan(step, h, lambda t: x[0], steps=T, memory="20K", costs=COSTS)  # one tensor that does not change


@pytest.mark.parametrize("kind", ["transposed", "sliced"])
@pytest.mark.parametrize("options", [dict(), dict(slow="mem:16M"), dict(slow="mem:16M", strategy="remote")])
def test_strides_of_states(kind, options):
    """A product has other bits where a factor lies otherwise: states come back as they were."""
    torch.manual_seed(1)
    cell, x = torch.nn.GRUCell(4, 33), torch.randn(T, 5, 4)
    h = torch.zeros(33, 5).t() if kind == "sliced" else torch.zeros(33, 5)

    def step(h, row, t):
        if kind == "transposed":
            h = cell(row, h.t()).t()
        else:
            h = torch.cat([cell(row, h), h], 1)[:, :33]
        return h, h.sum()
    leaves = list(cell.parameters())
    wanted = gradients(looped(step, h, x), leaves)
    last, outputs = nt.scan(step, h, x, memory="60K", costs=COSTS, **options)
    expected = looped(step, h, x)[0]
    assert last.stride() == expected.stride() and torch.equal(last, expected)
    assert same(wanted, gradients((last, outputs), leaves))


@pytest.mark.parametrize("what", ["counter", "numpy"])
def test_a_step_that_depends_on_more(what):
    """A few steps are looked at unasked: one warning."""
    numpy = pytest.importorskip("numpy")
    gru, _, x, h = made()
    calls = []

    def step(h, row, t):
        calls.append(t)
        noise = len(calls) if what == "counter" else float(numpy.random.rand())
        h = gru(row, h) + 1e-3 * noise
        return h, h
    last, outputs = nt.scan(step, h, x, memory="24K", costs=COSTS)
    with pytest.warns(RuntimeWarning, match="a different state or output when it was recomputed.*check=True") as warned:
        outputs.sum().backward()
    assert len(warned) == 1


def test_copies_of_a_used_scan():
    gru, _, x, h = made()
    scan = nt.Scan(Held(gru), memory="200K", costs=COSTS)
    leaves = list(gru.parameters())
    wanted = gradients(scan(h, x), leaves)
    copied = copy.deepcopy(scan)
    assert same(wanted, gradients(copied(h, x), list(copied.cell.cells[0].parameters())))
    pickle.dumps(scan)


def test_lines():
    """Mistakes of the kind that people make, and what each line says."""
    gru, _, x, h = made()

    def hidden(h, row, t):
        hidden.kept = gru(row, getattr(hidden, "kept", h))
        return h, hidden.kept
    for says, call in (
            ("type float. .* torch.tensor", lambda: nt.scan(lambda h, row, t: (h, row), (h, 0.5), x, memory="1M")),
            ("the result of reduce contains an item of type int. .* Convert it",
             lambda: nt.scan(lambda h, row, t: (h, row), h, x, reduce=lambda o, t: 0)),
            (r"structure tensor and returned None", lambda: nt.scan(lambda h, row, t: (None, row), gru(x[0], h), x)),
            (r"tuple\(tensor, tensor\) and returned tensor as the next one. A step must return \(state, output\)",
             lambda: nt.scan(lambda s, row, t: s, (h, h), x)),
            (r"tuple\(tensor, tensor\) and returned tensor as the next one",
             lambda: nt.scan(lambda s, row, t: s, (h, h), x, reduce=lambda o, t: o.sum())),
            (r"It has the arguments \(x, h\), but a scan calls step\(state, input, t\)",
             lambda: nt.scan(lambda x, h: h, h, x, reduce=lambda o, t: o.sum())),
            (r"It has the arguments \(input, hx=None\), but a scan calls step\(state, input, t\)",
             lambda: nt.scan(type("Own", (torch.nn.Module,), dict(forward=lambda self, input, hx=None: hx))(), h, x)),
            ("a tuple of 3; it must return", lambda: nt.scan(lambda h, row, t: (h, h, h), h, x)),
            ("already a neap.torch.Scan", lambda: nt.scan(nt.Scan(gru), h, x)),
            ("Pass the module itself", lambda: nt.scan(lambda h, row, t: (h, h), h, x, buffers="state"))):
        with pytest.raises(neap.UsageError, match=says):
            call()
    with pytest.raises((neap.UsageError, RuntimeError), match="outside the step|that an earlier step computed"):
        nt.scan(hidden, h, x, memory="20K", costs=COSTS)[1].sum().backward()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch without torch.distributed")
def test_data_parallel(tmp_path):
    """DistributedDataParallel around a module that contains a scan, also with no_sync, as around a plain loop."""
    class Net(torch.nn.Module):
        def __init__(self, memory):
            super().__init__()
            self.cell, self.readout = made()[:2]
            self.scan = nt.Scan(self.cell, memory=memory, costs=COSTS) if memory else None

        def forward(self, x, h):
            if self.scan:
                return self.readout(self.scan(h, x)[0])
            for row in x:
                h = self.cell(row, h)
            return self.readout(h)

    _, _, x, h = made()
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        found = []
        for memory in None, "16K":
            net = torch.nn.parallel.DistributedDataParallel(Net(memory))
            with net.no_sync():
                net(x, h).square().mean().backward()
            net(2 * x, h).square().mean().backward()
            found.append([p.grad.clone() for p in net.parameters()])
        assert net.module.scan.report().extra_steps > 0
        assert all(map(torch.equal, *found))
    finally:
        torch.distributed.destroy_process_group()


class Lazy:
    def __getattr__(self, name):
        raise RuntimeError("not configured: " + name)


def test_attributes_of_a_class_that_raise():
    class Step(torch.nn.Module):
        cfg = Lazy()

        def forward(self, h, x, t):
            assert self.cfg is not None
            return torch.tanh(h + x), None

    h = torch.zeros(3, requires_grad=True)
    nt.scan(Step(), h, torch.ones(20, 3), memory="64K")[0].sum().backward()
    assert torch.isfinite(h.grad).all()
