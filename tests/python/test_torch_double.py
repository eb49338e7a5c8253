# SPDX-License-Identifier: Apache-2.0
"""Second derivatives: refused by default on every path, and those of the plain loop with double_backward=True."""
import warnings

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import flat, plain  # noqa: E402

T, B, I, N = 9, 3, 4, 6
OPTIONS = ({}, {"group": 1}, {"memory": "200K"}, {"memory": "60K", "group": 2}, {"memory": "60K", "slow": "mem:1M"})
dropout = torch.nn.functional.dropout


@pytest.fixture(autouse=True)
def double():
    """Double precision; a small budget is no news."""
    torch.set_default_dtype(torch.float64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "memory=.* times slower", RuntimeWarning)
        yield
    torch.set_default_dtype(torch.float32)


class Case:
    """A scan: its arguments, and the leaves that gradients are taken of."""

    def __init__(self):
        torch.manual_seed(0)
        self.cell, self.options = torch.nn.GRUCell(I, N), {}
        self.h, self.x = torch.randn(B, N, requires_grad=True), torch.randn(T, B, I, requires_grad=True)
        self.more, self.given = list(self.cell.parameters()), None
        self.step = lambda h, x, t: (self.cell(x, h),) * 2

    def run(self, scan, **options):
        """The last state and outputs."""
        torch.manual_seed(1)
        given = self.x if self.given is None else self.given
        if scan:
            return nt.scan(self.step, self.h, given, **{**self.options, **options})
        if callable(given) and not isinstance(given, torch.Tensor):
            given = torch.stack([given(t) for t in range(T)])
        state, total = plain(self.step, self.h, given, T), None
        reduce = self.options.get("reduce")
        if reduce is None:
            return state
        for t in range(T):
            terms = reduce(state[1][t], t)
            total = terms if total is None else total + terms
        return state[0], total

    @property
    def leaves(self):
        """Leaves that need gradients."""
        return [leaf for leaf in (*flat(self.h), self.x, *self.more) if leaf.requires_grad]


def loss_of(tree):
    return sum((k + 1) * (leaf.abs() if leaf.is_complex() else leaf).sin().sum() for k, leaf in enumerate(flat(tree))
               if leaf.requires_grad)


def second(case, scan, how="product", **options):
    """First gradients, and those of a loss that they are in: a product with a vector, or a loss with a penalty."""
    loss, leaves = loss_of(case.run(scan, **options)), case.leaves
    first = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    made = [g.abs() if g.is_complex() else g for g in first if g is not None]
    total = loss + (made[0].norm() - 1) ** 2
    if how == "product":
        total = sum((k + 1) * g.cos().sum() for k, g in enumerate(made))
    return [*first, *torch.autograd.grad(total, leaves, allow_unused=True)]


def near(found, wanted, bound=1e-12):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        if a is None or b is None:
            assert a is b or not (b if a is None else a).any()
        else:
            assert (a - b).abs().max() <= bound * max(b.abs().max().item(), 1e-300), (a - b).abs().max() / b.abs().max()


# Cases: what a step may be

def gru(case):
    pass


def random_numbers(case):
    def step(h, x, t):
        h = case.cell(dropout(x, 0.3), dropout(h, 0.2))
        return h, h
    case.step = step


def random_numbers_declared(case):
    random_numbers(case)
    case.options = {"rng": True}


def computed(case):
    raw = torch.randn(N, N, requires_grad=True)
    w = raw.sin()
    case.step = lambda h, x, t: (case.cell(x, torch.tanh(h @ w)),) * 2
    case.options, case.more = {"params": [w]}, [*case.more, raw]


def computed_and_its_leaf(case):
    raw = torch.randn(N, N, requires_grad=True)
    w = raw.sin()
    v = (w * raw).cos()

    def step(h, x, t):
        h = case.cell(x, torch.tanh(h @ w) * raw[0])
        h = h + (h @ v).tanh() if t % 2 else h
        return h, h
    case.step, case.options, case.more = step, {"params": [w, v]}, [*case.more, raw]


def reduced(case):
    case.options = {"reduce": lambda out, t: out.pow(2).mean(0) * (t + 1)}


def inputs_of_a_function(case):
    rows = case.x.detach()
    case.given, case.options = (lambda t: rows[t]), {"steps": T}


def no_output(case):
    case.step = lambda h, x, t: (case.cell(x, h), None)


def many_kinds(case):
    """A state with a counter, outputs in a tree: None, a counter, a mask, one that is detached."""
    read = torch.nn.Linear(N, 2)
    case.h = {"h": case.h, "k": torch.tensor(3), "z": torch.randn(2, requires_grad=True)}
    case.more += read.parameters()

    def step(s, x, t):
        h = case.cell(x, s["h"])
        outputs = h, None, [read(h).sin(), s["k"] * 1.0, h > 0, h.detach()]
        return {"h": h, "k": s["k"] + 1, "z": s["z"] * h.mean() + 1}, outputs
    case.step = step


def complex_state(case):
    a = torch.randn(N, N, dtype=torch.complex128, requires_grad=True)
    case.h, case.x = torch.randn(N, dtype=torch.complex128, requires_grad=True), torch.randn(T, N, requires_grad=True)

    def step(h, x, t):
        h = (a @ h).tanh().conj() * 0.5 + x
        return h, (h.abs(), h * h)
    case.step, case.more = step, [a]


def gradients_within(case):
    """A step that computes a gradient itself."""
    w = torch.randn(N, N, requires_grad=True)

    def step(h, x, t):
        g, = torch.autograd.grad((h @ w).tanh().pow(2).sum() + case.cell(x, h).sum(), h, create_graph=True)
        return h - 0.1 * g, h
    case.step, case.more = step, [*case.more, w]


def unchanged_state(case):
    """A part of the state that passes through, and outputs that are states."""
    case.h = case.h, torch.randn(B, N, requires_grad=True)

    def step(s, x, t):
        h = case.cell(x, s[0]) * s[1]
        return (h, s[1]), (h, s[0], s[1])
    case.step = step


def linear_step(case):
    w = torch.randn(I, N)
    case.step, case.more = lambda h, x, t: (h * 0.9 + x @ w,) * 2, []


def detached_state(case):
    case.step = lambda h, x, t: (case.cell(x, h.detach()),) * 2
    case.h = case.h.detach()


def views(case):
    """States that are parts of one tensor."""
    made = torch.nn.Linear(I + N, 2 * N)

    def step(s, x, t):
        a, b = made(torch.cat((x, s[0] * s[1]), 1)).tanh().chunk(2, 1)
        return (a, b), a
    case.h, case.step, case.more = (case.h, torch.rand(B, N)), step, list(made.parameters())


def frozen(case):
    case.cell.weight_ih.requires_grad_(False)
    case.h, case.x = case.h.detach(), case.x.detach()


def surrogate(case):
    class Spike(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return (v > 0).to(v)

        @staticmethod
        def backward(ctx, g):
            v, = ctx.saved_tensors
            return g / (1 + v * v)
    read = torch.nn.Linear(I, N)

    def step(v, x, t):
        v = v * 0.9 + read(x)
        s = Spike.apply(v - 0.5)
        return v - s * 0.5, (s, v)
    case.step, case.more = step, list(read.parameters())


KINDS = (gru, random_numbers, random_numbers_declared, computed, computed_and_its_leaf, reduced, inputs_of_a_function,
         no_output, many_kinds, complex_state, gradients_within, unchanged_state, linear_step, detached_state, views,
         frozen, surrogate)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind):
    """Of every kind of step, over budgets, groups and tiers: those of the plain loop."""
    def made():
        return [kind(case) or case for case in [Case()]][0]
    for how in ("product", "penalty") if kind is not detached_state else ("product",):
        wanted = second(made(), False, how)
        before = torch.get_rng_state()
        for options in OPTIONS:
            near(second(made(), True, how, double_backward=True, **options), wanted)
            assert torch.equal(torch.get_rng_state(), before)
            assert nt.report().doubles == 1


def test_buffers():
    """A module whose buffers are state: its second pass leaves them alone."""
    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.norm = torch.nn.GRUCell(I, N), torch.nn.BatchNorm1d(N)

        def forward(self, h, x, t):
            h = self.norm(self.cell(x, h))
            return h.tanh(), h

    results = []
    for scan in (False, True):
        case = Case()
        case.step = made = Normed()
        case.options, case.more = {"buffers": "state"}, list(made.parameters())
        results.append([*second(case, scan, "penalty", **({"double_backward": True} if scan else {})), *made.buffers()])
    near(results[1], results[0])


def test_autocast():
    """As the plain loop with cache_enabled=False: first gradients to the bit, second ones as far as bfloat16 goes."""
    torch.set_default_dtype(torch.float32)
    results = []
    for scan in (False, True):
        case = Case()
        case.step = lambda h, x, t: (case.cell(x, h).float(),) * 2
        with torch.autocast("cpu", torch.bfloat16, cache_enabled=False):
            last, out = case.run(scan, **({"double_backward": True, "memory": "40K"} if scan else {}))
        first = torch.autograd.grad(loss_of((last, out)), case.leaves, create_graph=True)
        results.append([first, torch.autograd.grad(first[0].pow(2).sum(), case.leaves)])
    assert all(map(torch.equal, *[first for first, _ in results]))
    for a, b in zip(results[0][1], results[1][1]):
        assert (a - b).norm() < 0.03 * a.norm()


def test_gradgradcheck():
    torch.manual_seed(0)
    cell, h, x, w = torch.nn.GRUCell(2, 2), torch.randn(1, 2), torch.randn(3, 1, 2), torch.rand(2)

    def run(h, x, w):
        last, out = nt.scan(lambda h, x, t: (cell(x, h * w),) * 2, h, x, params=[w], double_backward=True, memory="60K")
        return out.sin(), last
    for leaf in (h, x, w):
        leaf.requires_grad_()
    assert torch.autograd.gradcheck(run, (h, x, w)) and torch.autograd.gradgradcheck(run, (h, x, w))


def test_functions_of_torch_autograd_functional():
    case, functional = Case(), torch.autograd.functional
    start, v = case.h.detach(), torch.ones(B, N)

    def loss(scan):
        def of(h):
            case.h = h
            return loss_of(case.run(scan, **({"double_backward": True, "memory": "60K"} if scan else {})))
        return of
    for call in (lambda f: functional.vhp(f, start, v)[1], lambda f: functional.hessian(f, start),
                 lambda f: functional.jvp(f, start, v)[1]):
        near([call(loss(True))], [call(loss(False))])
    with pytest.raises(RuntimeError, match="three times.*use vhp"):
        functional.hvp(loss(True), start, v)


def test_a_gradient_penalty_in_training():
    """WGAN-GP: a critic with a readout and a penalty on the gradient of its inputs, through several updates."""
    results = []
    for options in (None, {"memory": "40K"}):
        torch.manual_seed(3)
        cell, read, x = torch.nn.GRUCell(I, N), torch.nn.Linear(N, 1), torch.randn(T, B, I)
        step = lambda h, x, t: (cell(x, h),) * 2  # noqa: E731
        scan = nt.Scan(step, double_backward=True, **options) if options is not None else lambda h, x: plain(step, h, x)
        params = [*cell.parameters(), *read.parameters()]
        train = torch.optim.SGD(params, 0.05)
        for _ in range(4):
            given = x.clone().requires_grad_()
            score = read(scan(torch.zeros(B, N), given)[1]).mean()
            slope, = torch.autograd.grad(score, given, create_graph=True)
            train.zero_grad()
            (score + 10 * (slope.norm(2, -1) - 1).pow(2).mean()).backward()
            train.step()
        results.append([p.detach() for p in params] + [p.grad for p in params])
    near(results[1], results[0])


def test_an_inner_update():
    """MAML: the gradient, with respect to first weights, of a loss after one update by SGD."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    results = []
    for options in (None, {}, {"memory": "40K"}):
        case = Case()
        weights = [getattr(case.cell, name).detach().requires_grad_() for name in names]

        def loss(weights, x):
            def step(h, x, t):
                gates_x, gates_h = x @ weights[0].t() + weights[2], h @ weights[1].t() + weights[3]
                r, z, n = (gates_x.chunk(3, 1)[k] for k in range(3))
                hr, hz, hn = (gates_h.chunk(3, 1)[k] for k in range(3))
                n = (n + (r + hr).sigmoid() * hn).tanh()
                h = n + (z + hz).sigmoid() * (h - n)
                return h, h
            if options is None:
                return plain(step, torch.zeros(B, N), x)[1].pow(2).mean()
            return nt.scan(step, torch.zeros(B, N), x, params=weights, double_backward=True, **options)[1].pow(2).mean()
        inner = torch.autograd.grad(loss(weights, case.x.detach()), weights, create_graph=True)
        after = [w - 0.5 * g for w, g in zip(weights, inner)]
        results.append(torch.autograd.grad(loss(after, case.x.detach().flip(0)), weights))
    for found in results[1:]:
        near(found, results[0])


def test_nested_scans():
    """An inner scan has to have second derivatives itself."""
    results = []
    for inner in (None, {"double_backward": True}, {}):
        case = Case()

        def step(h, x, t):
            rows = torch.stack([x, 2 * x])
            h, out = plain(case_step, h, rows) if inner is None else nt.scan(case_step, h, rows, **inner)
            return h, out.sum(0)
        case_step, case.step = case.step, step
        if inner == {}:
            with pytest.raises(RuntimeError, match="double_backward=True"):
                second(case, True, double_backward=True)
        else:
            options = {} if inner is None else {"double_backward": True, "memory": "100K"}
            results.append(second(case, inner is not None, **options))
    near(results[1], results[0])


def test_retained_graphs_and_accumulation():
    case = Case()
    wanted = second(case, False, "penalty")[-len(case.leaves):]
    loss = loss_of(case.run(True, double_backward=True, memory="60K"))
    slope, = torch.autograd.grad(loss, case.h, create_graph=True)
    total = loss + (slope.norm() - 1) ** 2
    near(torch.autograd.grad(total, case.leaves, retain_graph=True), wanted)
    for leaf in case.leaves:
        leaf.grad = None
    total.backward(retain_graph=True)
    total.backward()
    near([leaf.grad for leaf in case.leaves], [2 * g for g in wanted])
    assert nt.report().doubles == 3 and "doubles      3; the last one stored" in str(nt.report())
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()


def test_hooks_of_parameters():
    """See gradients whole, once per backward pass, as in the plain loop."""
    results = []
    for scan in (False, True):
        case, seen = Case(), []
        case.cell.weight_hh.register_hook(lambda g: seen.append(g.detach()) or 2 * g)
        found = second(case, scan, "penalty", **({"double_backward": True} if scan else {}))
        results.append([*found, *seen])
    near(results[1], results[0])


def test_third_derivatives_are_refused():
    case = Case()
    first, = torch.autograd.grad(loss_of(case.run(True, double_backward=True)), case.h, create_graph=True)
    found, = torch.autograd.grad(first.sin().sum(), case.h, create_graph=True)
    with pytest.raises(RuntimeError, match="three times.*Use a plain loop"):
        torch.autograd.grad(found.sum(), case.h)


@pytest.mark.parametrize("hook", [lambda g: g.clamp(-3, 3), lambda g: g / (g.norm() + 1)])
def test_a_backward_that_is_not_linear_is_refused(hook):
    """Parts of a gradient that are clamped one by one are no clamped gradient."""
    case = Case()

    def step(h, x, t):
        h = case.cell(x, h)
        if h.requires_grad:
            h.register_hook(hook)
        return h, h
    case.step = step
    with pytest.raises(RuntimeError, match="not a linear function"):
        second(case, True, double_backward=True)


def test_the_budget_holds_for_the_second_pass():
    """Two states per step are kept in addition, and one step's graph has to fit; error.least is enough for it."""
    case = Case()
    second(case, True, double_backward=True, memory="60K")
    told = nt.report()
    assert told.double_kept == (2 * T - 1) * B * N * 8  # no adjoint of the first state
    assert 0 < told.double_tape <= told.memory - told.charged
    with pytest.raises(neap.BudgetError) as first:
        case.run(True, double_backward=True, memory=10)
    with pytest.raises(neap.BudgetError, match="double_backward: the graph of one step") as caught:
        second(case, True, double_backward=True, memory=first.value.least)
    near(second(case, True, double_backward=True, memory=caught.value.least), second(case, False))
    near(second(case, True, double_backward=True, memory=first.value.least, strict=False), second(case, False))


def test_states_keep_no_larger_memory():
    """A state that is a view of a larger tensor is copied: all steps keep 2T states."""
    from neap.torch.double import _all_owned
    from neap.torch.measure import address
    whole = torch.zeros(100, N).t()
    part, = _all_owned([whole[:, :3]])
    assert part.stride() == whole.stride() and address(part)[1] < address(whole)[1] / 10
    assert _all_owned([whole, None])[0] is whole


def test_changes_between_the_passes_are_seen():
    case, scale = Case(), torch.ones(N)
    inner = case.step
    case.step = lambda h, x, t: inner(h + scale, x, t)
    for victim in (scale, case.x, case.cell.weight_hh):
        first, = torch.autograd.grad(loss_of(case.run(True, double_backward=True)), case.h, create_graph=True)
        with torch.no_grad():
            victim += 1
        with pytest.raises(RuntimeError, match="in place|inplace"):
            first.sum().backward()


def test_a_step_that_is_not_deterministic_is_seen():
    case, calls = Case(), [0]

    def step(h, x, t):
        calls[0] += 1
        return (case.cell(x, h) * (1 + 1e-3 * calls[0]),) * 2
    case.step = step
    with pytest.warns(RuntimeWarning, match="step 0"):
        second(case, True, double_backward=True)
    with pytest.raises(nt.NotDeterministic):
        second(case, True, double_backward=True, check=True)


def test_a_function_that_is_differentiable_once_is_refused():
    """torch.autograd.grad itself leaves its terms out without an error."""
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()
    case = Case()
    case.step = lambda h, x, t: (Scaled.apply(case.cell(x, h)),) * 2
    with pytest.raises(RuntimeError, match="once_differentiable"):
        second(case, True, double_backward=True)


def test_a_graph_that_steps_share_is_refused():
    case, kept = Case(), []

    def step(h, x, t):
        h = case.cell(x, h) + (0.1 * kept[-1] if t else 0)
        kept.append(h)
        return h, h
    case.step = step
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "step 0", RuntimeWarning)
        with pytest.raises(RuntimeError, match="an earlier step computed but did not return"):
            second(case, True, double_backward=True)


@pytest.mark.skipif(not hasattr(torch, "func"), reason="PyTorch 2")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_product_with_a_sparse_tensor():
    """Its gradient has no graph: PyTorch takes it as a constant, in a scan as well."""
    def made():
        case = Case()
        w = torch.randn(N, requires_grad=True)
        at = torch.arange(N).repeat(2, 1)
        case.more = [*case.more, w]

        def step(h, x, t):
            h = case.cell(x, torch.sparse.mm(torch.sparse_coo_tensor(at, w, (N, N)), h.t()).t())
            return h, h
        case.step = step
        return case
    near(second(made(), True, double_backward=True), second(made(), False))


# By default

def refusals(case, run):
    """Every way to differentiate twice, as functions."""
    functional, params = torch.autograd.functional, case.more

    def slope():
        found, = torch.autograd.grad(loss_of(run(case.h, case.x)), case.x, create_graph=True)
        return (found.norm(2, -1) - 1).pow(2).mean()

    def of(h):
        return loss_of(run(h, case.x))
    v = torch.ones(B, N)
    return {"grad": lambda: torch.autograd.grad(slope(), params), "backward": lambda: slope().backward(),
            "inputs": lambda: slope().backward(inputs=params), "hvp": lambda: functional.hvp(of, case.h, v),
            "vhp": lambda: functional.vhp(of, case.h, v), "hessian": lambda: functional.hessian(of, case.h),
            "jvp": lambda: functional.jvp(of, case.h, v),
            "gradgradcheck": lambda: torch.autograd.gradgradcheck(of, (case.h,))}


@pytest.mark.parametrize("options", [{}, {"memory": "40K"}, {"reduce": lambda out, t: out.pow(2)}])
def test_second_derivatives_are_refused(options):
    case = Case()
    ways = {"scan": lambda h, x: nt.scan(case.step, h, x, **options), "Scan": nt.Scan(case.step, **options),
            "nested": lambda h, x: plain(lambda h, x, t: nt.scan(case.step, h, torch.stack([x, x]), **options), h, x)}
    for run in ways.values():
        for name, call in refusals(case, run).items():
            with pytest.raises(RuntimeError, match="twice.*only first derivatives.*double_backward=True"):
                call()
            assert all(p.grad is None for p in case.more), name


def test_second_derivatives_of_layers_are_refused():
    case = Case()
    layers = torch.nn.Linear(N, N), torch.nn.Tanh(), torch.nn.Linear(N, 2)
    case.more = [p for layer in layers for p in layer.parameters()]
    for options in ({}, {"memory": "40K"}):
        net = nt.Sequential(*layers, **options)
        calls = refusals(case, lambda h, x: net(h) + x.sum())

        def grad():
            found, = torch.autograd.grad(net(case.h).sum(), case.h, create_graph=True)
            torch.autograd.grad(found.sum(), case.more)
        calls["grad"] = grad
        for name in ("grad", "hvp", "vhp", "hessian", "jvp", "gradgradcheck"):
            with pytest.raises(RuntimeError, match="twice.*Use torch.nn.Sequential"):
                calls[name]()


@pytest.mark.parametrize("options", [{}, {"memory": "40K"}, {"double_backward": True}])
def test_first_derivatives_with_create_graph(options):
    """Gradients that are used but not differentiated are those of the plain loop, and may be written to."""
    case = Case()
    wanted = torch.autograd.grad(loss_of(case.run(False)), case.leaves)
    found = torch.autograd.grad(loss_of(case.run(True, **options)), case.leaves, create_graph=True)
    assert all(map(torch.equal, found, wanted))
    for gradient, own in zip(found, wanted):
        assert torch.equal(gradient.div_(2), own / 2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using backward.. with create_graph=True", UserWarning)
        loss_of(case.run(True, **options)).backward(create_graph=True)
    assert all(torch.equal(leaf.grad, own) for leaf, own in zip(case.leaves, wanted))
    torch.nn.utils.clip_grad_norm_(case.leaves, 0.1)
    for leaf in case.leaves:
        leaf.grad = None


def test_batches_of_second_gradients_are_refused():
    case, rows = Case(), torch.eye(B * N).reshape(-1, B, N)
    first, = torch.autograd.grad(case.run(True, double_backward=True)[0].sin().sum(), case.h, create_graph=True)
    with pytest.raises(RuntimeError, match="create_graph=True, or a second one.*is_grads_batched=True"):
        torch.autograd.grad(first, case.h, rows, is_grads_batched=True)
    for options in ({}, {"double_backward": True}):
        with pytest.raises(RuntimeError, match="create_graph=True, or a second one.*is_grads_batched=True"):
            torch.autograd.grad(case.run(True, **options)[0], case.h, rows, is_grads_batched=True, create_graph=True)
