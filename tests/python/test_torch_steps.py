# SPDX-License-Identifier: Apache-2.0
"""What neap.torch finds around steps and in layers of many kinds: modules of TorchScript and of torch.fx, wrappers,
callables of all sorts, objects that refuse to be looked at, and modules that differ between the forward and the backward
pass."""
import functools
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, plain, same  # noqa: E402

T, B, I, N = 24, 4, 5, 8
OPTIONS = (dict(), dict(memory="6K", group=2, strategy="standard"), dict(memory="5K", group=1, strategy="revolve"))
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:", "ignore::torch.jit.TracerWarning")


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(I, N), torch.nn.Linear(N, N)
        self.register_buffer("gain", torch.rand(N))

    def forward(self, h, x):
        return torch.tanh(self.a(x) + self.b(h) * self.gain)


class Cell(Inner):
    def forward(self, h, x, t: int):
        h = torch.tanh(self.a(x) + self.b(h) * self.gain)
        return h, h


def twice(h):
    return h, h


def step_of(inner):
    return lambda h, x, t: twice(inner(h, x))


def with_default(inner):
    return lambda h, x, t, inner=inner: twice(inner(h, x))


def named(h, x, t, inner):
    return twice(inner(h, x))


class Called:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self, h, x, t):
        return twice(self.inner(h, x))

    def method(self, h, x, t):
        return self(h, x, t)


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, h, x, t):
        return twice(self.inner(h, x))


class Forwarding(torch.nn.Module):
    """Takes unknown attributes from the module that it wraps, as data-parallel wrappers do."""

    def __init__(self, inner):
        super().__init__()
        self.module = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def forward(self, h, x, t):
        return twice(self.module(h, x))


class OfInstance(torch.nn.Module):
    """``forward`` is an attribute of the instance."""

    def __init__(self, inner):
        super().__init__()
        self.forward = step_of(inner)


class Partial(torch.nn.Module):
    """``forward`` is no function."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    forward = functools.partialmethod(lambda self, _, h, x, t: twice(self.inner(h, x)), 1)


class Virtual(torch.nn.Module):
    """Lists buffers that it does not have."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def named_buffers(self, *_, **__):
        yield "virtual", torch.ones(2)

    def forward(self, h, x, t):
        assert not self._buffers
        return twice(self.inner(h, x))


class Refusing:
    """Raises where it is looked at."""
    __module__ = 3
    __hash__ = None

    def __init__(self, inner):
        object.__setattr__(self, "inner", inner)

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __bool__(self):
        raise RuntimeError("bool")

    def __eq__(self, other):
        raise RuntimeError("eq")

    def __call__(self, h, x, t):
        return twice(self.inner(h, x))


class NoDict(Refusing):
    __dict__ = property(lambda self: 1 // 0)


class NoList(list):
    def __getitem__(self, at):
        raise RuntimeError("item")


class NoModule(torch.nn.Module):
    def __init__(self):  # torch.nn.Module.__init__ was forgotten
        pass


def next_to(odd):
    """A step that has an odd object in its closure."""
    return lambda inner: lambda h, x, t: (odd, *twice(inner(h, x)))[1:]


def made(kind):
    return {
        "lambda": step_of, "default": with_default, "partial": lambda inner: functools.partial(named, inner=inner),
        "object": Called, "method": lambda inner: Called(inner).method, "slots": Slotted, "forwarding": Forwarding,
        "instance": OfInstance, "partialmethod": Partial, "virtual": Virtual, "refusing": Refusing,
        "no dict": next_to(NoDict(None)), "no list": next_to(NoList([1])), "no module": next_to(NoModule()),
        "dead": next_to(weakref.proxy(Called(None))), "fx": lambda inner: step_of(torch.fx.symbolic_trace(inner)),
    }[kind]


KINDS = ("lambda", "default", "partial", "object", "method", "slots", "forwarding", "instance", "partialmethod",
         "virtual", "refusing", "no dict", "no list", "no module", "dead", "fx")


def rows_of(step, params, warm=1):
    """Outputs and gradients of the plain loop, run some times, and of scans."""
    x, rows = torch.randn(T, B, I), []
    for options in (*[None] * warm, *OPTIONS):
        if options is None:
            last, out = plain(step, torch.zeros(B, N), x)
        else:
            last, out = nt.scan(step, torch.zeros(B, N), x, costs=COSTS, **options)
        rows.append([out.detach(), *torch.autograd.grad(out.pow(2).sum() + last.sum(), params)])
    return rows[warm - 1:]


def agree(step, params, warm=1):
    wanted, *rows = rows_of(step, params, warm)
    for row in rows:
        same(row, wanted)
    assert nt.report().extra_steps > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_any_kind(kind):
    """Gradients are the plain loop's, whatever kind of callable the step is and whatever is next to it."""
    torch.manual_seed(3)
    inner = Inner()
    agree(made(kind)(inner), [*inner.parameters()])


SCRIPTED = {"script": lambda inner: step_of(torch.jit.script(inner)),
            "default": lambda inner: with_default(torch.jit.script(inner)),
            "trace": lambda inner: step_of(torch.jit.trace(inner, (torch.zeros(B, N), torch.zeros(B, I)))),
            "part": lambda inner: Forwarding(torch.jit.script(inner))}


@pytest.mark.parametrize("kind", SCRIPTED)
def test_a_step_with_torchscript(kind):
    """TorchScript optimizes its first calls differently: the plain loop is warmed up before it is compared."""
    torch.manual_seed(4)
    inner = Inner()
    agree(SCRIPTED[kind](inner), [*inner.parameters()], warm=3)


def test_a_scripted_module_is_a_step():
    torch.manual_seed(5)
    cell = Cell()
    agree(torch.jit.script(cell), [*cell.parameters()], warm=3)


def test_a_frozen_module_has_no_mode():
    torch.manual_seed(6)
    inner, frozen = Inner(), torch.jit.freeze(torch.jit.script(Inner().eval()))
    agree(lambda h, x, t: twice(frozen(h, x) + inner(h, x)), [*inner.parameters()], warm=3)


def test_an_exported_module():
    if not hasattr(torch, "export"):
        pytest.skip("this PyTorch has no torch.export")
    torch.manual_seed(7)
    inner = torch.export.export(Inner(), (torch.zeros(B, N), torch.zeros(B, I))).module()
    agree(step_of(inner), [*inner.parameters()])


class Counting(Inner):
    """Changes a buffer."""

    def forward(self, h, x):
        self.gain = self.gain + 1
        return torch.tanh(self.a(x) + self.b(h) * self.gain)


def test_a_buffer_of_a_scripted_module():
    """A step that changes it is refused; as part of the state it has the plain loop's values."""
    torch.manual_seed(8)
    inner = Counting()
    wrapped = Forwarding(torch.jit.script(inner))
    with pytest.raises(neap.UsageError, match="gain"):
        nt.scan(wrapped, torch.zeros(B, N), torch.randn(T, B, I), costs=COSTS, **OPTIONS[2])
    x, rows = torch.randn(T, B, I), []
    for options in (None, None, None, *OPTIONS):
        wrapped.module.gain = torch.full((N,), 0.5)
        if options is None:
            last, out = plain(wrapped, torch.zeros(B, N), x)
        else:
            last, out = nt.scan(wrapped, torch.zeros(B, N), x, costs=COSTS, buffers="state", **options)
        gain = wrapped.module.gain.clone()
        rows.append([out.detach(), gain, *torch.autograd.grad(out.pow(2).sum(), [*inner.parameters()])])
        assert torch.equal(gain, torch.full((N,), T + 0.5))
    for row in rows[3:]:
        same([row[0]], [rows[2][0]])


def replaced(module, values, x):
    call = getattr(torch.func, "functional_call", None) if hasattr(torch, "func") else None
    if call is None:
        from torch.nn.utils.stateless import functional_call as call
    return call(module, values, (x,))


class Around(torch.nn.Module):
    def __init__(self, run):
        super().__init__()
        self.cell, self.run = Cell(), run

    def forward(self, x):
        return self.run(self.cell, torch.zeros(B, N), x)[1]


@pytest.mark.parametrize("frozen", [False, True])
def test_functional_call_around_a_scan(frozen):
    """Steps that are recomputed in the backward pass use the parameters of the forward pass, which functional_call has
    taken away by then."""
    torch.manual_seed(9)
    x, rows, new = torch.randn(T, B, I), [], hasattr(torch, "func")
    values = {"cell.a.weight": torch.randn(N, I), "cell.b.weight": torch.randn(N, N), "cell.gain": torch.rand(N)}
    wanted = [values[key].requires_grad_() for key in ("cell.a.weight", "cell.b.weight")[:1 if frozen else 2]]
    for options in (None, *OPTIONS):
        torch.manual_seed(10)
        module = Around(plain if options is None else functools.partial(nt.scan, costs=COSTS, **options))
        before = list(module.parameters())
        for one in before:
            one.requires_grad_(not frozen)
        if not new and options is not None:
            with pytest.raises(neap.UsageError, match="functional_call"):
                replaced(module, values, x)
            continue
        out = replaced(module, values, x)
        rows.append([out.detach(), *torch.autograd.grad(out.pow(2).sum(), wanted)])
        assert all(a is b for a, b in zip(before, module.parameters()))
    for row in rows[1:]:
        same(row, rows[0])


def test_a_class_that_changes_before_backward():
    """Utilities such as parametrize replace it: recomputed steps would use other weights."""
    torch.manual_seed(11)
    cell = Cell()
    out = nt.scan(cell, torch.zeros(B, N), torch.randn(T, B, I), costs=COSTS, **OPTIONS[2])[1]
    cell.b.__class__ = type("Other", (torch.nn.Linear,), {})
    with pytest.raises(RuntimeError, match="class of a module, Other"):
        out.sum().backward()


def chain(memory):
    torch.manual_seed(12)
    layers = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.3), torch.nn.Tanh()) for _ in range(24)]
    return torch.nn.Sequential(*layers) if memory is None else nt.Sequential(*layers, memory=memory)


def gradients_of_chain(memory, how):
    net, x = chain(memory), torch.randn(256, 4)
    if how == "modes":
        params, out = [*net.parameters()], net(x)
        net.eval()
    else:
        values = {name: torch.randn(param.shape).requires_grad_() for name, param in net.named_parameters()}
        params, out = [*values.values()], replaced(net, values, x)
    assert memory is None or net.report().plan.advance_steps > 0
    return torch.autograd.grad(out.pow(2).sum(), params)


@pytest.mark.parametrize("how", ["modes", "functional_call"])
def test_layers_that_are_recomputed(how):
    """They train, or do not, as on the way forward, and use the parameters of then."""
    if how == "functional_call" and not hasattr(torch, "func"):
        with pytest.raises(neap.UsageError, match="functional_call"):
            gradients_of_chain("220K", how)
        return
    same(gradients_of_chain("220K", how), gradients_of_chain(None, how))


def test_a_frozen_parameter_of_a_layer_that_changes():
    net = chain("220K")
    net[0][0].weight.requires_grad_(False)
    out = net(torch.randn(256, 4))
    with torch.no_grad():
        net[0][0].weight.add_(1)
    with pytest.raises(RuntimeError, match="in place"):
        out.sum().backward()


@pytest.mark.parametrize("shape", [(N,), (1, N)])
def test_a_state_broadcast_to_batch_first_inputs(shape):
    """A broadcast state hides that the scan runs over the batch; time-first inputs broadcast it without a warning."""
    weight = torch.randn(I, N, requires_grad=True)

    def step(h, x, t):
        return twice(torch.tanh(x @ weight + h))
    x = torch.randn(B, T, I)
    with pytest.warns(RuntimeWarning, match=r"4 steps of shape \(24, 5\).*x.transpose\(0, 1\)"):
        nt.scan(step, torch.zeros(shape), x)
    nt.scan(step, torch.zeros(shape), x.transpose(0, 1))


@pytest.mark.parametrize("options", [dict(), dict(memory="1M"), dict(reduce=lambda out, t: out.sum()),
                                     dict(memory="1M", reduce=lambda out, t: out.sum())])
def test_an_error_of_a_step_with_batch_first_inputs(options):
    cell, h0 = torch.nn.GRUCell(I, N), torch.zeros(B, N)
    for run in (functools.partial(nt.scan, **options), lambda step, *given: nt.Scan(step, **options)(*given)):
        check_notes(cell, h0, run)


def check_notes(cell, h0, run):
    with pytest.raises(RuntimeError) as caught:
        run(lambda h, x, t: twice(cell(x, h)), h0, torch.randn(B, T, I))
    notes = getattr(caught.value, "__notes__", [])
    assert ["x.transpose(0, 1)" in note for note in notes] == [True] * (sys.version_info >= (3, 11))
    with pytest.raises(RuntimeError) as caught:  # for another reason
        run(lambda h, x, t: twice(cell(x, h)), torch.zeros(B, N + 1), torch.randn(T, B, I))
    assert not getattr(caught.value, "__notes__", [])


@pytest.mark.parametrize("options", OPTIONS[1:], ids=str)
def test_hooks_of_states(options):
    """Hooks of new states are those of the plain loop; hooks of the state that a step receives would see only a part of its
    gradient, unless it is one tensor and there are no outputs."""
    torch.manual_seed(0)
    cell, x, h0 = torch.nn.GRUCell(I, N), torch.randn(T, B, I), torch.zeros(B, N)

    def new(h, x, t):
        h = cell(x, h)
        h.register_hook(lambda g: g.clamp(-1e-4, 1e-4))
        return h, h.square().mean()

    def old(h, x, t):
        if h.requires_grad:
            h.register_hook(lambda g: g.clamp(-1e-4, 1e-4))
        return new(h, x, t)

    def alone(h, x, t):
        if h.requires_grad:
            h.register_hook(lambda g: g.clamp(-1e-4, 1e-4))
        return cell(x, h), None

    h, loss = h0, 0
    for t in range(T):
        h, _ = alone(h, x[t], t)
    h.square().sum().backward()
    wanted = [p.grad.clone() for p in cell.parameters()]
    cell.zero_grad()
    if hasattr(torch, "func"):
        nt.scan(alone, h0, x, **{**options, "memory": "32K"})[0].square().sum().backward()
        assert all(torch.equal(p.grad, g) for p, g in zip(cell.parameters(), wanted))
    else:  # hooks of leaves do not run in torch.autograd.grad
        with pytest.raises(neap.UsageError, match="registers a hook on the state that it receives"):
            nt.scan(alone, h0, x, **{**options, "memory": "32K"})[0].square().sum().backward()
    cell.zero_grad()
    h, loss = h0, 0
    for t in range(T):
        h, out = new(h, x[t], t)
        loss = loss + out
    loss.backward()
    wanted = [p.grad.clone() for p in cell.parameters()]
    cell.zero_grad()
    room = {**options, "memory": "32K"}
    nt.scan(new, h0, x, **room, reduce=lambda out, t: out)[1].backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(cell.parameters(), wanted))
    with pytest.raises(neap.UsageError, match="registers a hook on the state that it receives"):
        nt.scan(old, h0, x, **room, reduce=lambda out, t: out)[1].backward()


@pytest.mark.parametrize("kept", [True, False])
def test_leaves_that_a_step_no_longer_uses_are_not_counted(kept):
    """A new leaf for each call, as in c = (c - lr * grad).detach().requires_grad_()."""
    torch.manual_seed(1)
    h, w, history, charged = torch.randn(B, N), [torch.randn(N, N) / N], [], []

    def step(h, x, t):
        h = torch.tanh(h @ w[0])
        return h, h.sum()

    for _ in range(5):
        w[0] = w[0].detach().clone().requires_grad_()
        history.append(w[0])
        found = []
        for run in (plain, functools.partial(nt.scan, memory="64K", costs=COSTS)):
            loss = run(step, h, None, steps=40)[1].sum()
            found.append(torch.autograd.grad(loss, w[0])[0])
        same([found[1]], [found[0]])
        charged.append(nt.report().charged)
        if not kept:
            history.clear()
        w[0] = w[0] - 0.1 * found[0]
    assert len(set(charged)) == 1


def test_leaves_that_a_step_uses_in_turns_are_counted_in_each_call():
    torch.manual_seed(1)
    h, rows, charged = torch.randn(B, N), [(torch.randn(N, N) / N).requires_grad_() for _ in range(2)], []

    def step(h, x, t):
        h = torch.tanh(h @ rows[which])
        return h, h.sum()

    for which in (0, 1, 0, 1, 0, 1):
        out = nt.scan(step, h, steps=40, memory="64K", costs=COSTS)[1]
        torch.autograd.grad(out.sum(), rows[which])
        charged.append(nt.report().charged)
    assert len(set(charged[1:])) == 1 and charged[1] > charged[0]
