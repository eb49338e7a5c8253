# SPDX-License-Identifier: Apache-2.0
"""Steps that compute gradients themselves: by torch.autograd.grad, by torch.func, with leaves of their own; and
kernels that have other bits under no_grad. Gradients have the bits of the plain loop."""
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch.utils.checkpoint  # noqa: E402

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, plain, same  # noqa: E402

if hasattr(torch, "func"):
    from torch.func import grad, jvp, vjp, vmap
else:  # before PyTorch 2
    from functorch import grad, jvp, vjp, vmap

T, B, N = 24, 3, 2
BUDGETS = {"none": dict(), "revolve": dict(memory="8K", group=1, strategy="revolve"), "groups": dict(memory="16K"),
           "tiers": dict(memory="16K", slow="mem:4M"),
           "check": dict(memory="8K", group=1, strategy="revolve", check=True)}


def energy():
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(N, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    state = torch.randn(B, N, requires_grad=True)
    return made, state


def of_state(f, s, keep=True):
    return torch.autograd.grad(f(s).sum(), s, create_graph=keep)[0]


def leaf(f, s, keep):
    x = s.detach().requires_grad_()
    return of_state(f, x, keep)


def internal(f, s):
    with torch.enable_grad():
        return leaf(f, s, False)


FORCES = {
    "autograd": of_state,
    "leaf": lambda f, s: leaf(f, s, False),
    "leaf in the graph": lambda f, s: leaf(f, s, True),
    "enable_grad": internal,
    "func.grad": lambda f, s: grad(lambda s: f(s).sum())(s),
    "vmap": lambda f, s: vmap(grad(lambda s: f(s).sum()))(s),
    "vjp": lambda f, s: vjp(lambda s: f(s).sum(), s)[1](torch.ones(()))[0],
    "jvp": lambda f, s: jvp(f, (s,), (s,))[1].expand(-1, N),
    "vmap of a loop": lambda f, s: vmap(f)(s).expand(-1, N),
}


def moving(f, how):
    def step(s, _, t):
        s = s + 0.1 * FORCES[how](f, s).flip(-1)
        return s, s
    return step


def found(run, step, state, leaves, **options):
    last, out = run(step, state, None, steps=T, **options)
    return [last.detach(), out.detach(), *torch.autograd.grad(out.pow(2).sum() + last.sum(), leaves, allow_unused=True)]


def silent(run, step, state, leaves, **options):
    """The same; steps that are recomputed have the same bits, since no warning comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "check")
        warnings.filterwarnings("ignore", "a budget of")
        warnings.filterwarnings("ignore", ".*torch.jit", FutureWarning)  # by PyTorch's own jvp
        return found(run, step, state, leaves, costs=COSTS, **options)


def near(found, wanted, most=1e-12):
    for a, b in zip(found, wanted):
        assert a is b is None or (a - b).abs().max() <= most * b.abs().max()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("how", FORCES)
def test_gradients_within_a_step(how, budget):
    f, state = energy()
    leaves = [*f.parameters(), state]
    wanted = found(plain, moving(f, how), state, leaves)
    same(silent(nt.scan, moving(f, how), state, leaves, **BUDGETS[budget]), wanted)
    told = nt.report()
    assert told.memory is None or told.counted_peak <= told.memory - told.charged


@pytest.mark.parametrize("how", ["autograd", "func.grad", "leaf in the graph"])
def test_in_a_scan_within_a_step(how):
    """And under torch.utils.checkpoint, and with reduce. Gradients of two scans are two terms."""
    f, state = energy()
    f, state = f.double(), state.detach().double().requires_grad_()
    leaves, step = [*f.parameters(), state], moving(f, how)

    def outer(scan):
        def nested(s, _, t):
            s = scan(step, s, None, steps=3)[0]
            return s, s
        return nested

    def checked(s, _, t):
        s = torch.utils.checkpoint.checkpoint(lambda s: step(s, None, t)[0], s, use_reentrant=False)
        return s, s
    wanted = found(plain, outer(plain), state, leaves)
    for options in (dict(), dict(BUDGETS["revolve"], memory="12K"), BUDGETS["groups"]):
        near(silent(nt.scan, outer(nt.scan), state, leaves, **options), wanted)
    if how == "autograd" and hasattr(torch, "func"):  # the plain loop fails before PyTorch 2
        wanted = found(plain, checked, state, leaves)
        same(silent(nt.scan, checked, state, leaves, **BUDGETS["groups"]), wanted)
    wanted = torch.autograd.grad(plain(step, state, None, steps=T)[1].sum(0).pow(2).sum(), leaves, allow_unused=True)
    total = nt.scan(step, state, steps=T, reduce=lambda out, t: out, costs=COSTS, **BUDGETS["groups"])[1]
    near(torch.autograd.grad(total.pow(2).sum(), leaves, allow_unused=True), wanted)


def late(f):
    def step(s, _, t):
        s = s + 0.1 * (of_state(f, s) if t >= 15 else f(s)).flip(-1)
        return s, s
    return step


def test_gradients_from_a_later_step_on():
    f, state = energy()
    leaves = [*f.parameters(), state]
    wanted = found(plain, late(f), state, leaves)
    for options in (dict(), BUDGETS["revolve"], dict(memory="8K", group=1, strategy="revolve", enable_grad=True)):
        same(silent(nt.scan, late(f), state, leaves, **options), wanted)


def test_refused_on_request():
    f, state = energy()
    step = moving(f, "autograd")
    with pytest.raises(RuntimeError, match="does not require grad"):
        nt.scan(step, state, steps=T, costs=COSTS, enable_grad=False, **BUDGETS["revolve"])[1].sum().backward()
    with pytest.raises(neap.UsageError, match="enable_grad='yes' is not valid"):
        nt.scan(step, state, steps=T, enable_grad="yes")
    with torch.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):  # as in a plain loop
        nt.scan(step, state, steps=T)


def test_one_graph_at_a_time():
    """Steps that are advanced with gradients enabled drop their graphs, and the budget has room for one."""
    f, state = energy()
    alive, most = [], []

    class Big:
        pass

    class Held(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.big = Big()
            alive.append(weakref.ref(ctx.big))
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    def step(s, _, t):
        s = Held.apply(moving(f, "autograd")(s, None, t)[0])
        alive[:] = [ref for ref in alive if ref() is not None]
        most.append(len(alive))
        return s, None
    leaves = [*f.parameters(), state]
    options = dict(steps=T, costs=COSTS, group=1)
    nt.scan(step, state, memory="1M", **options)  # which measures
    whole = nt.report()
    least = whole.charged + 6 * max(whole.state, whole.tape)
    most.clear()
    last, _ = nt.scan(step, state, memory=least, strategy="revolve", **options)
    assert max(most) <= 3  # of a record, of one step that is advanced, and of the one that takes its place
    torch.autograd.grad(last.sum(), leaves, allow_unused=True)
    told = nt.report()
    assert told.extra_steps > T / 2 and max(most) <= 7
    assert told.charged == 2 * sum(4 * p.numel() for p in leaves[:3]) + told.tape  # a force depends on no last bias
    assert told.counted_peak <= least - told.charged


# Kernels

def eigen():
    torch.manual_seed(1)
    w = torch.nn.Parameter(torch.randn(6, 6) / 3)

    def step(s, _, t):
        s = torch.tanh(s @ w)
        e = torch.linalg.eigvalsh(s.transpose(-1, -2) @ s)
        return s, e
    return step, torch.randn(4, 6, requires_grad=True), [w]


def encoder():
    torch.manual_seed(1)
    made = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()

    def step(s, _, t):
        s = made(s)
        return s, s
    return step, torch.randn(3, 5, 8, requires_grad=True), list(made.parameters())


def lstm():
    torch.manual_seed(1)
    made = torch.nn.LSTM(8, 8).eval()

    def step(s, _, t):
        out, (h, c) = made(s[0], s)
        return (h + 0.1 * out.tanh(), c), h
    state = torch.randn(1, 3, 8, requires_grad=True), torch.randn(1, 3, 8, requires_grad=True)
    return step, state, list(made.parameters())


class Other(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 0.99

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.99


def other():
    """Other bits under no_grad for certain."""
    w = torch.nn.Parameter(torch.ones(N))

    def step(s, _, t):
        s = Other.apply(torch.tanh(s * w)) if torch.is_grad_enabled() else torch.tanh(s * w) * 0.98
        return s, s
    return step, torch.randn(B, N, requires_grad=True), [w]


def outputs_only():
    """The same of an output alone."""
    w = torch.nn.Parameter(torch.ones(N))

    def step(s, _, t):
        s = torch.tanh(s * w)
        return s, s * (2 if torch.is_grad_enabled() else 3)
    return step, torch.randn(B, N, requires_grad=True), [w]


@pytest.mark.parametrize("kind", [eigen, encoder, lstm, other, outputs_only])
@pytest.mark.parametrize("budget", ["revolve", "tiers", "check"])
def test_kernels_that_differ_under_no_grad(kind, budget):
    step, state, leaves = kind()
    leaves = leaves + [x for x in (state if isinstance(state, tuple) else (state,))]
    def gradients(run, **options):
        last, out = run(step, state, None, steps=T, **options)
        first = last[0] if isinstance(last, tuple) else last
        return [out.detach(), *torch.autograd.grad(out.pow(2).mean() + first.sum(), leaves, allow_unused=True)]
    wanted = gradients(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "check")
        options = dict(BUDGETS[budget], memory="24K")
        try:
            same(gradients(nt.scan, costs=COSTS, **options), wanted)
        except neap.BudgetError as error:
            same(gradients(nt.scan, costs=COSTS, **dict(options, memory=error.least)), wanted)


def test_what_a_call_finds_is_kept():
    """The second call compares nothing; another step begins with nothing known."""
    step, state, leaves = other()
    calls = []

    def counted(s, _, t):
        calls.append(torch.is_grad_enabled())
        return step(s, None, t)
    options = dict(steps=T, costs=COSTS, **BUDGETS["revolve"])
    nt.scan(counted, state, **options)
    first, calls[:] = list(calls), []
    nt.scan(counted, state, **options)
    assert not all(first) and all(calls) and len(calls) < len(first)


def test_a_step_that_is_random_stays_under_no_grad():
    torch.manual_seed(2)
    w, calls = torch.nn.Parameter(torch.ones(N)), []

    def step(s, _, t):
        calls.append(torch.is_grad_enabled())
        s = torch.nn.functional.dropout(torch.tanh(s * w), 0.3)
        return s, s
    state = torch.randn(B, N, requires_grad=True)
    torch.manual_seed(4)
    wanted = found(plain, step, state, [w, state])
    torch.manual_seed(4)
    calls.clear()
    same(silent(nt.scan, step, state, [w, state], memory="16K", group=1, strategy="revolve"), wanted)
    assert not all(calls)


# Leaves that a step makes

def test_leaves_of_a_step_and_late_parameters():
    """A parameter that is used late is found, or asked for, where steps make leaves as well."""
    f, state = energy()
    more = torch.nn.Linear(N, N)

    class Slots:  # where nobody looks for parameters
        __slots__ = ("held",)
    box = Slots()
    box.held = torch.nn.Parameter(torch.randn(N))

    def step(s, _, t):
        s = s + 0.1 * leaf(f, s, True)
        return (more(s) if t >= 15 else s), s

    def beyond(s, _, t):
        s = s + 0.1 * leaf(f, s, True)
        return (s * box.held if t >= 22 else s), s
    leaves = [*f.parameters(), *more.parameters(), state]
    wanted = found(plain, step, state, leaves)
    for options in (dict(), BUDGETS["groups"]):
        same(silent(nt.scan, step, state, leaves, **options), wanted)
    out = nt.scan(beyond, state, steps=T)[1]
    with pytest.raises(neap.UsageError, match=r"steps .* use a tensor of shape \(2,\) with requires_grad=True"):
        out.sum().backward()
    leaves = [*f.parameters(), box.held, state]
    same(silent(nt.scan, beyond, state, leaves, params=[box.held]), found(plain, beyond, state, leaves))


def test_a_leaf_as_state_and_output():
    """Its gradient goes nowhere."""
    f, state = energy()

    def step(s, _, t):
        s = f(s).expand(-1, N) + s
        return (s if t % 3 else s.detach().requires_grad_()), s.detach().requires_grad_() if t % 4 == 0 else s
    leaves = [*f.parameters(), state]
    wanted = found(plain, step, state, leaves)
    for options in (dict(), BUDGETS["revolve"], BUDGETS["groups"], BUDGETS["tiers"]):
        same(silent(nt.scan, step, state, leaves, **options), wanted)


def test_leaves_that_a_step_keeps():
    f, state = energy()
    kept = []

    def step(s, _, t):
        kept.append(s.detach().requires_grad_())
        return s + 0.1 * of_state(f, kept[-1]), None
    with pytest.raises(neap.UsageError, match="step 0 creates a tensor with requires_grad=True in each call and"):
        nt.scan(step, state, steps=T)


@pytest.mark.parametrize("options", [dict(), BUDGETS["revolve"]])
def test_nothing_but_leaves_of_a_step(options):
    """A plain loop: no gradient leads anywhere."""
    f, state = energy()
    f.requires_grad_(False)

    def step(s, _, t):
        s = s + 0.1 * leaf(f, s, True)
        return s, s
    last, out = nt.scan(step, state.detach(), steps=T, costs=COSTS, **options)
    wanted = plain(step, state.detach(), None, steps=T)
    same([last.detach(), out.detach()], [wanted[0].detach(), wanted[1].detach()])
    box = torch.nn.Parameter(torch.ones(()))

    def late(s, _, t):
        s = step(s, None, t)[0]
        return (s * box if t >= 15 else s), s
    torch.autograd.grad(nt.scan(late, state.detach(), steps=T, costs=COSTS, **options)[1].sum(), [box])


# Second derivatives

def penalised(run, step, state, leaves, **options):
    """The gradient of a gradient penalty."""
    last, out = run(step, state, None, steps=T, **options)
    first = torch.autograd.grad(out.pow(2).sum() + last.sum(), leaves, create_graph=True, allow_unused=True)
    return torch.autograd.grad(sum(x.pow(2).sum() for x in first if x is not None), leaves, allow_unused=True)


@pytest.mark.parametrize("how", ["autograd", "leaf in the graph", "func.grad"])
@pytest.mark.parametrize("options", [dict(), dict(memory="64K", group=1, strategy="revolve")], ids=["none", "revolve"])
def test_second_derivatives(how, options):
    f, state = energy()
    f, state = f.double(), state.detach().double().requires_grad_()
    leaves, step = [*f.parameters(), state], moving(f, how)
    scan = dict(options, costs=COSTS, double_backward=True)
    if how == "func.grad" and options:
        with pytest.raises(neap.UsageError, match="double_backward=True with a budget does not support .* torch.func"):
            penalised(nt.scan, step, state, leaves, **scan)
        return
    near(penalised(nt.scan, step, state, leaves, **scan), penalised(plain, step, state, leaves), 1e-10)


def test_second_derivatives_of_kernels_that_differ_under_no_grad():
    step, state, leaves = other()
    leaves.append(state)
    wanted = penalised(plain, step, state, leaves)
    for a, b in zip(penalised(nt.scan, step, state, leaves, costs=COSTS, double_backward=True), wanted):
        assert torch.allclose(a, b, rtol=1e-4)


@pytest.mark.parametrize("options", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("alias", [True, False])
def test_hooks_of_a_state_that_the_next_step_differentiates(options, alias):
    """In a plain loop, the hook runs in torch.autograd.grad of the next step as well, from PyTorch 2 on."""
    f, first = energy()

    def step(s, x, t):
        given = s.view_as(s) if alias else s
        new = s - 0.1 * of_state(f, given)
        new.register_hook(lambda g: g.clamp(-0.01, 0.01))
        return new, new.sum()

    def gradients(run, **options):
        found = run(step, first, None, steps=T, **options)[1].sum()
        return [found.detach(), *torch.autograd.grad(found, [first, *list(f.parameters())[:3]])]

    if alias or not hasattr(torch, "func"):
        same(gradients(nt.scan, costs=COSTS, **options), gradients(plain))
    else:
        with pytest.raises(neap.UsageError, match="to its state, on which a hook was registered before"):
            gradients(nt.scan, costs=COSTS, **options)


@pytest.mark.skipif(not hasattr(torch, "func"), reason="the hook does not run in torch.autograd.grad")
def test_a_hook_of_the_first_state():
    f, first = energy()
    held = first.clone()
    held.register_hook(lambda g: 2 * g)
    with pytest.raises(neap.UsageError, match="step 0 calls torch.autograd.grad with respect to its state, on which a hook"):
        nt.scan(lambda s, x, t: (s - 0.1 * of_state(f, s),) * 2, held, steps=T, costs=COSTS, memory="16K")


def test_a_hook_of_another_state():
    """Steps that differentiate with respect to states without hooks are not refused."""
    f, first = energy()

    def step(s, x, t):
        new = s - 0.1 * (of_state(f, s) if t > 10 else torch.tanh(s))
        if t == 5:
            new.register_hook(lambda g: g.clamp(-0.01, 0.01))
        return new, new.sum()

    def gradients(run, **options):
        found = run(step, first, None, steps=T, **options)[1].sum()
        return [found.detach(), *torch.autograd.grad(found, [first, *list(f.parameters())[:3]])]

    same(gradients(nt.scan, costs=COSTS, memory="64K", group=1, strategy="revolve", enable_grad=True), gradients(plain))
