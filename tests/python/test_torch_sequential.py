# SPDX-License-Identifier: Apache-2.0
"""nt.Sequential: bits of the plain pass over unequal layers, budgets, and what it promises."""
import copy
import gc
import itertools
import os
import weakref

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from neap.stores import Store  # noqa: E402
from stacks_of_tests import STACKS, given, same, stack, trained  # noqa: E402


def budgets(name, x, count=3):
    """From what keeps everything down to the least that a refusal names."""
    net = nt.Sequential(*stack(name))
    net(x).sum().backward()
    most = net.report().planned_peak + net.report().charged
    with pytest.raises(neap.BudgetError, match="is too small") as caught:
        nt.Sequential(*stack(name), memory=net.report().charged + 100)(x)
    least = caught.value.least
    assert net.report().charged < least < most
    return [most - (most - least) * i // (count - 1) for i in range(count)]


@pytest.mark.parametrize("name", STACKS)
def test_bits_and_peak(name):
    x = given(name)
    wanted = trained(nn.Sequential(*stack(name)), x)
    extra = []
    for memory in [None, *budgets(name, x)]:
        for strategy in ("auto", "chain"):
            net = nt.Sequential(*stack(name), memory=memory, strategy=strategy)
            same(trained(net, x), wanted)
            told = net.report()
            assert told.counted_peak == told.planned_peak >= told.plan.verify().peak and str(told)
            assert memory is None or told.planned_peak + told.charged <= memory
            extra.append(told.extra_steps)
    assert extra[0] == 0 and extra[-1] > 0 and told.plan.chosen == "chain"


def deep():
    """Layers whose states are large and tapes larger."""
    torch.manual_seed(1)
    widths = [64, 128, 64, 256, 128, 64, 192, 64, 128, 32]
    return [nn.Sequential(nn.Linear(m, n), nn.Tanh(), nn.Dropout(0.1)) for m, n in zip(widths, widths[1:])]


BUDGET = "1890K"  # all at once take 3.4 MB, gradients of parameters 0.5 MB of them


def on_files(scratch, memory=BUDGET, kind=None):
    if kind is not None:
        x, wanted = given(kind), trained(nn.Sequential(*stack(kind)), given(kind))
        net = nt.Sequential(*stack(kind), memory=memory, slow=scratch)
        same(trained(net, x), wanted)
        return net.report()
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    wanted = trained(nn.Sequential(*deep()), x)
    net = nt.Sequential(*deep(), memory=memory, strategy="pofo", slow=scratch)
    same(trained(net, x), wanted)
    assert scratch.startswith("mem:") or os.listdir(scratch) == []
    return net.report()


def slow_layers(monkeypatch):
    """Seconds of layers are made up, so that it pays to send states away."""
    from neap.torch import sequential
    kept = sequential._measure

    def measure(run, leaves):
        found = kept(run, leaves)
        return found._replace(advance=[1.0] * len(found.tape), record=[1.0] * len(found.tape),
                              backward=[2.0] * len(found.tape))
    monkeypatch.setattr(sequential, "_measure", measure)


def test_states_on_files_and_lost_records(scratch, monkeypatch):
    slow_layers(monkeypatch)
    told = on_files(scratch)
    assert told.counts.puts > 0 and told.counts.gets > 0 and told.recoveries == 0
    assert told.counted_peak == told.planned_peak >= told.plan.verify().peak
    wait, get, count = Store.wait, Store.get, itertools.count()

    def failing(self, transfer):
        wait(self, transfer)
        if next(count) % 3 != 2:
            raise neap.CorruptRecord("made up")

    monkeypatch.setattr(Store, "wait", failing)
    assert on_files(scratch).recoveries > 0
    monkeypatch.setattr(Store, "wait", wait)
    monkeypatch.setattr(Store, "get", lambda self, tier, place, tag, *rest: get(self, tier, place, tag + 1, *rest))
    told = on_files(scratch)
    assert told.recoveries == told.counts.gets > 0
    monkeypatch.setattr(Store, "get", get)
    monkeypatch.setattr(Store, "format", lambda self, *places: self._dead.__setitem__(slice(None), [True]))
    told = on_files(scratch)
    assert told.recoveries == told.counts.gets > 0


def test_tapes_on_files_and_lost_tapes(scratch, monkeypatch):
    """Tapes leave memory as states do; no layer is recomputed then, which takes 4 layers without offloaded tapes."""
    slow_layers(monkeypatch)
    told = on_files(scratch, "2290K")
    assert told.counts.tape_puts == told.counts.tape_gets > 4 and told.extra_steps == told.recoveries == 0
    assert told.counted_peak == told.planned_peak and "tapes written" in str(told)
    wait, get, put, count = Store.wait, Store.get_tapes, Store.put_tapes, itertools.count()

    def failing(self, transfer):
        wait(self, transfer)
        if next(count) % 3 != 2:
            raise neap.CorruptRecord("made up")

    def refused(*unused):
        raise OSError("made up")

    monkeypatch.setattr(Store, "wait", failing)
    assert on_files(scratch, "2290K").recoveries > 0
    monkeypatch.setattr(Store, "wait", wait)
    monkeypatch.setattr(Store, "get_tapes", lambda self, tier, place, tag, *rest: get(self, tier, place, tag + 1, *rest))
    told = on_files(scratch, "2290K")
    assert told.recoveries == told.recorded_again == told.counts.tape_gets > 0
    monkeypatch.setattr(Store, "get_tapes", get)
    monkeypatch.setattr(Store, "put_tapes", refused)
    told = on_files(scratch, "2290K")
    assert told.recoveries == told.counts.tape_gets > 0
    monkeypatch.setattr(Store, "put_tapes", put)
    # Records of this tier have no room for the places of a plan that knows only its bytes.
    told = on_files("mem:1M", "2290K")
    assert told.recoveries == 0 and told.counts.tape_puts > 0


@pytest.mark.parametrize("kind", STACKS)
def test_tapes_of_stacks_on_a_tier(kind, monkeypatch):
    """Attention, convolutions with batch norm, and dropout, views, identities and shared layers."""
    slow_layers(monkeypatch)
    memory = budgets(kind, given(kind))[1]
    told = on_files("mem:64M", memory, kind)
    assert told.counts.tape_puts == told.counts.tape_gets > 0 == told.recoveries
    assert told.counted_peak == told.planned_peak <= memory - told.charged


def test_a_tape_that_cannot_leave_keeps_all_tapes(monkeypatch):
    """A custom Function references its input, so freeing the tape would not free its memory."""
    class Holding(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            return g * ctx.x.cos()

    class Layer(nn.Module):
        def forward(self, x):
            return Holding.apply(x)
    slow_layers(monkeypatch)
    x = torch.randn(256, 64, requires_grad=True)
    wanted = trained(nn.Sequential(*[*deep()[:5], Layer(), *deep()[5:]]), x)
    net = nt.Sequential(*[*deep()[:5], Layer(), *deep()[5:]], memory="2340K", strategy="pofo", slow="mem:64M")
    same(trained(net, x), wanted)
    assert net.report().counts.tape_puts == 0


def test_frozen_layers_and_whole_numbers():
    """Layers without gradients at the beginning stay out of the graph, as in a plain pass."""
    for name in STACKS:
        x = given(name, grad=False)
        results = []
        for make in (nn.Sequential, lambda *rows: nt.Sequential(*rows, memory=budgets(name, x)[2])):
            net = make(*stack(name))
            for layer in list(net)[1:3] if name == "transformer" else list(net)[:2]:
                for p in layer.parameters():
                    p.requires_grad_(False)
            results.append(trained(net, x))
        same(results[1], results[0])


def test_trees_between_layers():
    """States of several tensors, some of them views of one another, some not differentiable."""
    class Fork(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(12, 40)

        def forward(self, x):
            y = torch.tanh(self.lin(x))
            return {"a": y[:, :30], "b": (y.t(), torch.arange(40)), "none": None}

    class Join(nn.Module):
        def forward(self, tree):
            y, index = tree["b"]
            return tree["a"] * 2, y[index][:30].t() * tree["a"]

    class Sum(nn.Module):
        def forward(self, pair):
            return pair[0] + pair[1].sin()

    def rows():
        torch.manual_seed(1)
        return [nn.Linear(12, 12), Fork(), Join(), Sum(), nn.Linear(30, 7)]

    x = given("pyramid")
    wanted = trained(nn.Sequential(*rows()), x)
    whole = nt.Sequential(*rows())
    same(trained(whole, x), wanted)
    most = whole.report().planned_peak + whole.report().charged
    with pytest.raises(neap.BudgetError) as caught:
        nt.Sequential(*rows(), memory=whole.report().charged)(x)
    for memory in ((most + caught.value.least) // 2, caught.value.least):
        net = nt.Sequential(*rows(), memory=memory)
        same(trained(net, x), wanted)
        assert net.report().counted_peak == net.report().planned_peak


def test_no_gradient_is_a_plain_pass():
    x = given("pyramid", grad=False)
    net = nt.Sequential(*stack("pyramid"), memory=1)
    with torch.no_grad():
        torch.manual_seed(5)
        found = net(x)
        plain = nn.Sequential(*stack("pyramid"))
        torch.manual_seed(5)
        assert torch.equal(found, plain(x))
    assert net.report().plan is None
    assert torch.equal(nt.Sequential()(x), x)
    with pytest.raises(neap.BudgetError):
        net(x)


def test_eval_and_another_batch():
    """Each kind of batch, and of mode, is measured by itself."""
    net, plain = nt.Sequential(*stack("resnet"), memory=budgets("resnet", given("resnet"))[1]), nn.Sequential(*stack("resnet"))
    for count, mode in ((6, True), (3, True), (6, False), (6, True)):
        x = given("resnet", seed=count).detach()[:count].requires_grad_()
        same(trained(net.train(mode), x, 1), trained(plain.train(mode), x, 1))
        assert net.report().counted_peak == net.report().planned_peak
    assert len(net._known) == 3


def test_retained_graph_and_second_backward():
    x = given("transformer")
    net = nt.Sequential(*stack("transformer"), memory=budgets("transformer", x)[2])
    wanted = list(net.parameters())
    loss = net(x).pow(2).sum()
    before = torch.get_rng_state()
    a = torch.autograd.grad(loss, wanted, retain_graph=True)
    same(torch.autograd.grad(loss, wanted), a)
    assert net.report().replays == 1 and torch.equal(before, torch.get_rng_state())
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, wanted)


def test_backward_never_called():
    x = given("resnet")
    net = nt.Sequential(*stack("resnet"), memory=budgets("resnet", x)[1])
    gc.disable()
    try:
        out = net(x)
        player = weakref.ref(out.grad_fn.player)
        assert player().held > 0
        del out
        assert player() is None  # no cycle: gone with the graph
    finally:
        gc.enable()


def test_nothing_leaks(scratch):
    x = given("resnet")
    net = nt.Sequential(*stack("resnet"), memory=budgets("resnet", x)[2] + (200 << 10), slow=scratch)

    def left():
        gc.collect()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    for _ in range(2):
        trained(net, x, 1)
    before, files = left(), len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        trained(net, x, 1)
    assert left() <= before + 2 and len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_exceptions_half_way(when):
    class Failing(nn.Linear):
        armed = False

        def forward(self, x):
            if self.armed:
                raise KeyError("half way")
            return super().forward(x)

    def rows():
        rows = stack("pyramid")
        rows[1] = Failing(200, 96)
        return rows

    x = given("pyramid")
    memory = budgets("pyramid", x)[2]
    net, plain = nt.Sequential(*rows(), memory=memory), nn.Sequential(*rows())
    plain.load_state_dict(net.state_dict())
    torch.manual_seed(5)
    if when == "forward":
        net(x)
        net[1].armed = True
        with pytest.raises(KeyError, match="half way"):
            net(x)
        assert all(p.grad is None for p in net.parameters())
        net[1].armed = False
        same(trained(net, x), trained(plain, x))
        return
    out = net(x)
    assert any(a.kind == neap.RECORD and a.t0 == 1 for a in itertools.dropwhile(
        lambda a: a.kind != neap.TURN, net.report().plan)), "the layer is done again in backward"
    net[1].armed = True
    with pytest.raises(KeyError, match="half way"):
        out.sum().backward()
    assert all(p.grad is None for p in net.parameters())
    net[1].armed = False
    out.sum().backward()  # the graph was not freed: it begins anew
    torch.manual_seed(5)
    plain(x).sum().backward()
    same([p.grad for p in net.parameters()], [p.grad for p in plain.parameters()])


def test_a_layer_that_writes_into_its_input():
    rows = [nn.Linear(12, 12), nn.ReLU(inplace=True), nn.Linear(12, 3)]
    with pytest.raises(RuntimeError, match=r"layer 1 \(ReLU\) modifies its input in-place.* Pass inplace=False"):
        nt.Sequential(*rows)(given("pyramid"))


def test_changed_in_place_before_backward():
    for victim in ("weight", "input"):
        x = given("pyramid").detach()
        net = nt.Sequential(*stack("pyramid"), memory=budgets("pyramid", x)[1])
        out = net(x)
        with torch.no_grad():
            (x if victim == "input" else net[0][0].weight).add_(1)
        with pytest.raises(RuntimeError, match="inplace operation"):
            out.sum().backward()


class Varying(nn.Module):
    """Keeps more where its input is large."""

    def forward(self, x):
        for _ in range(12 if float(x.detach().abs().max()) > 50 else 1):
            x = torch.tanh(x * 1.01)
        return x


class Tally(nn.Module):
    """Counts its calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x * 1.5


def varying():
    torch.manual_seed(1)
    return [nn.Linear(12, 64), Tally(), nn.Dropout(0.3), Varying(), nn.Linear(64, 64), Varying(), nn.Linear(64, 3)]


def test_a_tape_that_outgrows_the_plan():
    """A plan is made for the larger tapes, for this batch already. Buffers change once, and dropout draws the same
    numbers. If there is none, error.least is a budget for one."""
    x, large = given("pyramid"), (given("pyramid") * 1000).detach().requires_grad_()
    wanted = trained(nn.Sequential(*varying()), large, 1)
    net = nt.Sequential(*varying(), memory="1G")
    net.train(False)(x)
    tight = net.report().planned_peak + net.report().charged
    net.train(True)(large)
    most = net.report().planned_peak + net.report().charged
    with pytest.raises(neap.BudgetError) as caught:
        net = nt.Sequential(*varying(), memory=tight)
        net(x)
        trained(net, large, 1)
    assert tight < caught.value.least < most
    for memory in (caught.value.least, most):
        for before in (True, False):
            net = nt.Sequential(*varying(), memory=memory)
            if before:  # the plan is made for it
                net(x)
                net[1].count.zero_()
            same(trained(net, large, 1), wanted)
            assert net.report().counted_peak + net.report().charged <= memory
    net = nt.Sequential(*varying(), memory=tight, strict=False)
    net(x)
    net.load_state_dict(dict(zip(net.state_dict(), nn.Sequential(*varying()).state_dict().values())))
    same(trained(net, large, 1), wanted)


def test_a_refusal_in_the_forward_pass_leaves_buffers_and_the_generator():
    x, large = given("pyramid"), (given("pyramid") * 1000).detach().requires_grad_()
    rows = varying()[:4]
    with pytest.raises(neap.BudgetError) as caught:
        nt.Sequential(*rows, memory=1000)(x)
    net = nt.Sequential(*rows, memory=caught.value.least)
    net(x)
    before = [*[b.clone() for b in net.buffers()], torch.get_rng_state()]
    with pytest.raises(neap.BudgetError) as caught:
        net(large)
    same([*net.buffers(), torch.get_rng_state()], before)
    net._memory = caught.value.least
    net(large).sum().backward()
    assert net.report().counted_peak == net.report().planned_peak


@pytest.mark.parametrize("name", STACKS)
def test_error_least_is_enough(name):
    for share in (0.1, 0.4, 0.7, 0.95):
        net = nt.Sequential(*stack(name))
        net(given(name))
        memory = int((net.report().planned_peak + net.report().charged) * share)
        try:
            nt.Sequential(*stack(name), memory=memory)(given(name))
        except neap.BudgetError as error:
            assert error.least > memory
            trained(nt.Sequential(*stack(name), memory=error.least), given(name))


class Probe(nn.Module):
    """Looks at a loss whose graph it drops."""

    def forward(self, x):
        with torch.enable_grad():
            torch.exp(x.detach().requires_grad_().repeat(1, 9)).sum().backward()
        return x


def test_graphs_that_a_layer_drops_are_no_tape():
    def both(probes):
        torch.manual_seed(1)
        return [nn.Sequential(nn.Linear(64, 64), *([Probe()] * probes), nn.Tanh()) for _ in range(6)]
    x = torch.randn(128, 64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    wanted = trained(nn.Sequential(*both(0)), x)
    for memory in (None, "400K"):
        told = []
        for probes in (0, 1, 1):
            net = nt.Sequential(*both(probes), memory=memory, strategy="chain")
            same(trained(net, x), wanted)
            told.append(net.report().counted_peak)
        assert told[0] == told[1] == told[2], memory


def test_autocast():
    x = given("pyramid")
    results = []
    for net in (nn.Sequential(*stack("pyramid")), nt.Sequential(*stack("pyramid"), memory=budgets("pyramid", x)[1])):
        torch.manual_seed(5)
        x.grad = None
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            out = net(x)
        out.float().pow(2).mean().backward()
        results.append([out.detach(), x.grad, *[p.grad for p in net.parameters()]])
    same(results[1], results[0])


def test_hooks_see_one_gradient():
    x, seen = given("pyramid"), []
    net = nt.Sequential(*stack("pyramid"), memory=budgets("pyramid", x)[1])
    net[4].weight.register_hook(lambda g: seen.append(g.clone()))
    net(x).sum().backward()
    assert len(seen) == 1 and torch.equal(seen[0], net[4].weight.grad)


def test_a_scan_inside_a_layer():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            cell = nn.GRUCell(12, 12)
            self.scan = nt.Scan(lambda h, i, t: (cell(i, h), None), params=cell)
            self.cell = cell

        def forward(self, x):
            return self.scan(x, x.detach().expand(9, *x.shape))[0]

    class Plain(Loop):
        def forward(self, x):
            h, i = x, x.detach()
            for _ in range(9):
                h = self.cell(i, h)
            return h

    def rows(kind):
        torch.manual_seed(1)
        return [nn.Linear(12, 12), kind(), nn.Linear(12, 3)]

    x = given("pyramid")
    net = nt.Sequential(*rows(Loop))
    same(trained(net, x, 1), trained(nn.Sequential(*rows(Plain)), x, 1))
    assert net.report().counted_peak == net.report().planned_peak > 9 * 400 * 12 * 4


def test_module():
    net = nt.Sequential(*stack("pyramid"), memory="2M")
    assert set(net.state_dict()) == set(nn.Sequential(*stack("pyramid")).state_dict())
    x = given("pyramid")
    net(x).sum().backward()
    twin = copy.deepcopy(net)
    same(trained(twin, x), trained(net, x))
    assert len(net[:3]) == 3
    for says, call in (("not a size", lambda: nt.Sequential(nn.Tanh(), memory="much")),
                       ("strategy", lambda: nt.Sequential(nn.Linear(12, 3), memory="1M", strategy="nonsense")(x)),
                       ("the input contains an item of type int", lambda: net(3)),
                       ("the output of layer 1 contains a", lambda: nt.Sequential(nn.Linear(12, 3), Wrong())(x))):
        with pytest.raises(neap.UsageError, match=says):
            call()


class Wrong(nn.Module):
    def forward(self, x):
        return x, "text"


class Holds(nn.Module):
    """Uses a tensor that is not registered as a parameter."""

    def __init__(self, tensor):
        super().__init__()
        self.held = [tensor]

    def forward(self, x):
        return torch.tanh(x @ self.held[0])


@pytest.mark.parametrize("memory", [None, "1M"])
def test_leaves_that_are_not_registered_as_parameters(memory):
    torch.manual_seed(0)
    w, x = torch.nn.Parameter(torch.randn(8, 8)), torch.randn(4, 8)
    first, last = nn.Linear(8, 8), nn.Linear(8, 8)
    wanted = torch.autograd.grad(nn.Sequential(first, Holds(w), last)(x).sum(), [w, *first.parameters()])
    net = nt.Sequential(first, Holds(w), last, memory=memory)
    for _ in range(2):
        same(torch.autograd.grad(net(x).sum(), [w, *first.parameters()]), wanted)


def test_tensors_from_outside_that_are_refused():
    x, made = torch.randn(4, 8), torch.randn(8, 8, requires_grad=True)
    with pytest.raises((neap.UsageError, RuntimeError), match="computed outside the layer|a second time"):
        net = nt.Sequential(nn.Linear(8, 8), Holds(made * made))
        net(x).sum().backward()

    class Makes(nn.Module):
        def forward(self, x):
            return x * torch.ones(8, requires_grad=True)
    with pytest.raises(neap.UsageError, match="creates a tensor with requires_grad=True"):
        nt.Sequential(nn.Linear(8, 8), Makes())(x)


def test_a_leaf_that_is_used_late_is_refused():
    held = torch.randn(8, 8, requires_grad=True)

    class Late(nn.Module):
        late = False

        def forward(self, x):
            return x @ held if self.late else x * x
    net = nt.Sequential(nn.Linear(8, 8), Late(), memory="1M")
    x = torch.randn(4, 8)
    net(x).sum().backward()
    Late.late = True
    with pytest.raises(neap.UsageError, match="did not use on the first batch"):
        net(x).sum().backward()
