# SPDX-License-Identifier: Apache-2.0
"""compile=True: groups as traced graphs, compared with the plain loop to 1e-5 and with other budgets bit by bit; what
cannot be traced. Most tests run the graphs without a compiler, which takes a second per step."""
import os
import random
import signal
import warnings

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, flat, plain  # noqa: E402
from neap.torch.compiled import graphs as replays  # noqa: E402
from random_checks import Runner, apart, on_device  # noqa: E402

NEW = hasattr(torch, "compile")
needs_2 = pytest.mark.skipif(not NEW, reason="compile=True needs PyTorch 2")
MANY = int(os.environ.get("NEAP_MANY", "200"))
B, N, I, T = 3, 6, 4, 26
compiler = pytest.mark.compiler


@pytest.fixture(autouse=True)
def graphs(request, monkeypatch):
    """Graphs run as they are, except in tests with the mark ``compiler``."""
    if not request.node.get_closest_marker("compiler"):
        monkeypatch.setattr("neap.torch.compiled.groups.compiled", lambda module, given: module)


class Gru(torch.nn.Module):
    """Its output is its state."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(I, N)

    def forward(self, h, x, t):
        h = self.cell(x, h)
        return h, h


class Many(Gru):
    """A tied weight, a readout, several states, writes into own tensors, a buffer, outputs as a tree."""

    def __init__(self):
        super().__init__()
        self.tied, self.read = torch.nn.Parameter(torch.randn(N, N) / 3), torch.nn.Linear(N, 2)
        self.register_buffer("mask", torch.arange(N) % 3 > 0)

    def forward(self, state, x, t):
        h, count, fixed = state["h"], state["count"], state["fixed"]
        h = self.cell(x, torch.tanh(h @ self.tied @ self.tied.t()))
        h = h.clone().mul_(0.9)
        h[:, 0] = h[:, -1] * 0.5
        h = (h * self.mask + fixed).t().contiguous().t()
        return {"h": h, "count": count + 1, "fixed": fixed}, (self.read(h), None, {"h": h, "sign": h > 0})


class Drop(Gru):
    def forward(self, h, x, t):
        drop = torch.nn.functional.dropout
        h = self.cell(drop(x, 0.3), drop(h, 0.2))
        return h, h


def started(kind):
    torch.manual_seed(1)
    h = torch.randn(B, N, requires_grad=True)
    state = {"h": h, "count": torch.zeros((), dtype=torch.int64), "fixed": torch.randn(B, N, requires_grad=True)}
    return state if kind is Many else h


def gradients(run, made, kind=None, steps=T, **options):
    """The results and gradients of a run."""
    state, x = started(kind or type(made)), torch.randn(steps, B, I, generator=torch.Generator().manual_seed(2))
    x.requires_grad_()
    torch.manual_seed(3)
    last, out = run(made, state, x, **options)
    rows = [y for y in flat(last) + flat(out) if y.is_floating_point()]
    loss = sum((y * y).mean() + y[-1].sum() for y in rows if y.requires_grad)
    leaves = [*(made.parameters() if isinstance(made, torch.nn.Module) else ()), *flat(state), x]
    found = torch.autograd.grad(loss, [leaf for leaf in leaves if leaf.requires_grad], allow_unused=True)
    return [y.detach().double() for y in flat(last) + flat(out)] + list(found) + [torch.get_rng_state().double()]


def close(found, wanted, most=1e-5):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a is None or not a.any()) if b is None else a.shape == b.shape and apart(a, b) <= most


def same(found, wanted):
    assert all((a is None) == (b is None) and (a is None or torch.equal(a, b)) for a, b in zip(found, wanted))


def scanned(made, *given, **options):
    """A scan that must be compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*times slower than storing")
        return nt.scan(made, *given, compile=True, **options)


@pytest.mark.skipif(NEW, reason="PyTorch 2")
def test_before_pytorch_2_it_is_refused():
    with pytest.raises(neap.UsageError, match=r"^compile=True needs PyTorch 2, but this is PyTorch 1\.\d+\.\S+\. .*$"):
        nt.scan(Gru(), torch.zeros(B, N), torch.zeros(T, B, I), compile=True)


@needs_2
@pytest.mark.parametrize("kind", [Gru, Many, Drop])
def test_results_are_those_of_the_plain_loop_and_of_all_budgets(kind):
    made, wanted = kind(), gradients(plain, kind())
    free = gradients(scanned, made, group=4)
    close(free, wanted)
    tight = gradients(scanned, made, group=4, memory="1T", costs=COSTS)
    told = nt.report()
    same(tight, free)
    for share in (2, 3):
        memory = told.charged + told.counted_peak // share
        same(gradients(scanned, made, group=4, memory=memory, costs=COSTS), free)
        told_now = nt.report()
        assert told_now.extra_steps > 0 and told_now.counts.outgrown == 0
        assert told_now.counted_peak + told_now.charged <= memory


@needs_2
def test_tapes_on_tiers():
    made, wanted = Many(), None
    wanted = gradients(scanned, made, group=4)
    found = gradients(scanned, made, group=4, memory=40000, strategy="stream", slow="mem:16M", costs=COSTS)
    assert nt.report().counts.tape_puts and not nt.report().graphs
    same(found, wanted)


@needs_2
@pytest.mark.parametrize("steps, group", [(26, 2), (24, 8), (25, 5), (3, 3), (1, 1)])
def test_groups_have_at_most_8_steps_and_divide_the_loop_if_possible(steps, group):
    torch.manual_seed(0)
    w = torch.nn.Parameter(torch.randn(N, N) / 3)
    nt.scan(lambda h, x, t: (torch.tanh(h @ w), None), torch.ones(B, N), None, steps=steps, compile=True)[0].sum()
    assert nt.report().group == (8 if steps == 26 else group)


@needs_2
def test_tapes_have_the_planned_size_and_no_tensor_is_counted(monkeypatch):
    def forbidden(*_):
        raise AssertionError("a saved tensor was counted")
    monkeypatch.setattr(nt.measure.Counter, "pack", forbidden)
    made = Gru()
    gradients(scanned, made, group=8, memory="1M", costs=COSTS)
    told = nt.report()
    assert told.tape and told.counted_peak <= told.plan.peak + told.graphs


@needs_2
def test_a_step_that_uses_its_number_runs_as_it_is_with_one_warning():
    class Late(Gru):
        def forward(self, h, x, t):
            h = self.cell(x, h) * (0.5 if t == 3 else 1.0)
            return h, h
    made = Late()
    with pytest.warns(RuntimeWarning, match=r"it uses the number of the step, t\. Pass it as an input"):
        found = gradients(nt.scan, made, compile=True)
    same(found, gradients(plain, made))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(gradients(nt.scan, made, compile=True), found)


@needs_2
def test_calls_with_other_arguments_are_compiled_after_one_that_cannot_be():
    calls = [0]

    class Late(Gru):
        def forward(self, h, x, t):
            calls[0] += 1
            h = self.cell(x, h) * (0.5 if len(h) == 3 and t == 3 or self.mode and h.mean() > 0 else 1.0)
            return h, h
    made = Late()
    made.mode = False
    scan, told = nt.Scan(made, compile=True, group=4), []

    def run(rows, steps=8):
        h, x = torch.full((rows, N), 0.1), torch.linspace(-1, 1, steps * rows * I).reshape(steps, rows, I)
        calls[0] = 0
        out = scan(h, x)[1]
        told.append((scan.report().uncompiled, calls[0]))
        close([out.detach()], [plain(made, h, x)[1].detach()])
        return torch.autograd.grad(out.sum(), list(made.parameters()))
    with pytest.warns(RuntimeWarning, match=r"has no effect in this call, because .* the number of the step, t\. .* "
                                            r"Calls with other arguments are compiled if possible\."):
        run(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(2)
        run(3)
        run(2, 12)
    assert "the number of the step" in told[0][0] == told[2][0] and "compiled     no: it uses" in str(told_of(run, scan))
    assert told[1][0] == told[3][0] == "" and len(scan._known.groups._found) == 1
    assert told[2][1] < told[0][1]  # it was not traced
    made.mode = True  # another reason, of which the caller is warned
    with pytest.warns(RuntimeWarning, match="has no effect in this call"):
        run(2)
    made.mode = False
    run(2)
    assert told[-1][0] == ""


def told_of(run, scan):
    """The report after a call that cannot be compiled."""
    run(3)
    return scan.report()


@needs_2
def test_the_number_of_a_step_may_be_an_input():
    class Late(Gru):
        def forward(self, h, x, t):
            h = self.cell(x[0], h) * torch.where(x[1] == 3, 0.5, 1.0)
            return h, h

    def run(step, h, x, **options):
        return nt.scan(step, h, (x, torch.arange(len(x))), **options)
    made = Late()
    close(gradients(lambda *given, **options: run(*given, compile=True, group=4), made), gradients(run, made))


@needs_2
@pytest.mark.parametrize("kind", ["value", "item", "generator"])
def test_what_cannot_be_traced_runs_as_it_is(kind):
    torch.manual_seed(0)
    w, own = torch.nn.Parameter(torch.randn(N, N) / 3), torch.Generator()

    def step(h, x, t):
        if kind == "value":
            h = torch.tanh(h @ w if h.detach().mean() > 0 else h @ w.t())
        elif kind == "item":
            h = torch.tanh(h @ w) * float(h.detach().abs().max().clamp(0, 1))
        else:
            h = torch.tanh(h @ w) + torch.rand(B, N, generator=own)
        return h, h
    rows = []
    for options in {}, {"compile": True}:
        own.manual_seed(5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = nt.scan(step, torch.ones(B, N), None, steps=9, params=[w], **options)[1]
        rows.append(torch.autograd.grad(out.sum(), w)[0])
    assert torch.equal(*rows)
    assert [str(w.message)[:77] for w in caught] == \
        ["compile=True has no effect in this call, because the step cannot be compiled:"]


@needs_2
@pytest.mark.parametrize("kind", ["random", "counter", "once", "hidden"])
def test_values_of_python_that_change_are_an_error(kind):
    torch.manual_seed(0)
    w, calls, kept = torch.nn.Parameter(torch.randn(N, N) / 3), [0], [torch.ones(B, N)]

    def step(h, x, t):
        calls[0] += 1
        factor = {"random": random.random(), "counter": calls[0] % 7 / 7, "once": 0.5 + 0.5 * (calls[0] > 12),
                  "hidden": 1.0}[kind]
        h = torch.tanh(h @ w) * factor + (0.1 * kept[0] if kind == "hidden" else 0)
        kept[0] = h.detach()
        return h, h
    with pytest.raises(neap.UsageError, match=r"^compile=True: the traced steps \d+ to \d+ have results that differ"):
        nt.scan(step, torch.ones(B, N), None, steps=32, params=[w], compile=True)


@needs_2
def test_numbers_and_buffers_that_change_between_calls_are_used():
    class Scaled(Gru):
        def __init__(self):
            super().__init__()
            self.scale = 0.5
            self.register_buffer("shift", torch.zeros(N))

        def forward(self, h, x, t):
            h = self.cell(x, h) * self.scale * factor[0] + self.shift
            return h, h
    factor, made = [1.0], Scaled()
    scan = nt.Scan(made, compile=True, group=4)
    kept = scan._known.groups

    def run(step, state, x):
        return scan(state, x)
    close(gradients(run, made), gradients(plain, made))
    assert len(kept._found) == 2  # one for the last steps
    close(gradients(run, made), gradients(plain, made))
    made.shift += 1.0
    close(gradients(run, made), gradients(plain, made))
    assert len(kept._found) == 2
    made.scale = 0.7
    close(gradients(run, made), gradients(plain, made))
    factor[0] = 2.0
    close(gradients(run, made), gradients(plain, made))
    assert len(kept._found) == 6


@needs_2
def test_a_report_that_steps_leave_does_not_compile_again():
    class Reporting(Gru):
        last, calls = None, 0

        def forward(self, h, x, t):
            h = self.cell(x, h)
            self.last, self.calls = h.detach(), self.calls + 1
            return h, h
    made = Reporting()
    scan = nt.Scan(made, compile=True, group=13)
    for _ in range(3):
        close(gradients(lambda step, state, x: scan(state, x), made), gradients(plain, made))
    assert len(scan._known.groups._found) == 1


class Graphs:
    """CUDA graphs as the CPU can have them: a replay computes from the static buffers, and leaves its results in the
    memory of the captured ones, which is garbage before. ``refused``: captures that fail; ``wrong``: replays that
    compute something else."""

    device = torch.device("cpu")

    def __init__(self, refused=(), wrong=()):
        self.refused, self.wrong, self.captures, self.replays = refused, wrong, 0, 0
        self.given, self.buffers = [], 0  # what captured functions read, and the bytes of their buffers

    def capture(self, call):
        self.captures += 1
        if self.captures in self.refused:
            raise RuntimeError("operation not permitted when stream is capturing.\nMore")
        results = [None if x is None else torch.empty_like(x).copy_(x) for x in call()]

        def replay():
            self.replays += 1
            with torch.no_grad():
                for place, x in zip(results, call()):
                    if place is not None:
                        place.copy_(x + 1 if self.replays in self.wrong and x.is_floating_point() else x)
        for x in results:
            if x is not None and x.is_floating_point():
                x.fill_(float("nan"))
        self.buffers += sum(x.numel() * x.element_size() for x in results if x is not None)
        return replay, results


@pytest.fixture
def captured(monkeypatch):
    """A function that makes the graphs of all compiled groups."""
    def made(**options):
        found = Graphs(**options)
        monkeypatch.setattr("neap.torch.compiled.groups.graphs_of", lambda device: found)
        return found
    return made


@needs_2
@pytest.mark.parametrize("kind", [Gru, Many])
def test_cuda_graphs_of_groups(kind, captured):
    made, wanted = kind(), gradients(scanned, kind(), group=4, steps=24)
    graphs = captured()
    same(gradients(scanned, made, group=4, steps=24), wanted)
    assert (graphs.captures, graphs.replays) == (2, 12)  # records and backward passes of 6 groups
    same(gradients(scanned, made, group=4, steps=24, memory="1T", costs=COSTS), wanted)
    told = nt.report()
    memory = told.charged + told.counted_peak // 3
    same(gradients(scanned, made, group=4, steps=24, memory=memory, costs=COSTS), wanted)
    assert nt.report().extra_steps > 0 and nt.report().counted_peak <= memory and graphs.captures == 3
    count = graphs.replays
    with torch.no_grad():
        for p in made.parameters():  # as an optimizer does: the same memory
            p.mul_(0.5)
    plain_now = gradients(plain, made, steps=24)
    close(gradients(scanned, made, group=4, steps=24), plain_now)
    assert graphs.captures == 3 and graphs.replays > count
    for p in made.parameters():
        p.data = p.data.clone()
    close(gradients(scanned, made, group=4, steps=24), plain_now)
    assert graphs.captures == 5


@needs_2
@pytest.mark.parametrize("kind, steps", [(Gru, 26), (Many, 24)])
def test_static_buffers_are_part_of_the_budget(kind, steps, captured, monkeypatch):
    """The planned bytes are those of the arguments that are copied and of the results of all captured functions."""
    made, copied = kind(), []
    original = replays.Replayed._capture

    def capture(self, given, places):
        original(self, given, places)
        copied.append(sum(x.numel() * x.element_size() for k, x in enumerate(self._given) if k not in self._fixed))
    monkeypatch.setattr(replays.Replayed, "_capture", capture)
    wanted = gradients(scanned, kind(), group=4, steps=steps)
    graphs = captured()
    with pytest.raises(neap.BudgetError, match="for static buffers of compiled groups") as caught:
        gradients(scanned, made, group=4, steps=steps, memory=1000, costs=COSTS)
    least = caught.value.least
    same(gradients(scanned, made, group=4, steps=steps, memory=least, costs=COSTS), wanted)
    told = nt.report()
    used = sum(copied) + graphs.buffers  # views, and functions of the last group that do not run, have no buffers
    assert 0 < used <= told.static < 1.25 * used and graphs.captures == (3 if steps == 24 else 5)
    assert told.counted_peak + told.charged + told.static <= least and told.extra_steps > 0


@needs_2
def test_what_cannot_be_captured_is_called(captured, recwarn):
    made, wanted = Gru(), gradients(scanned, Gru(), group=4, steps=24)
    for options, reason in (({"refused": (1, 2)}, "operation not permitted when stream is capturing"),
                            ({"wrong": (1, 2)}, "a replay has other results than an ordinary call")):
        graphs = captured(**options)
        with pytest.warns(RuntimeWarning, match=f"not captured as a CUDA graph, .* one by one: {reason}. Results do not"):
            same(gradients(nt.scan, Gru(), group=4, steps=24, compile=True), wanted)
        assert graphs.replays == len(graphs.wrong)
    for place in (made.cell.weight_hh,):
        graphs, scan = captured(), nt.Scan(made, compile=True, group=4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(7):
                place.data = place.data.clone()
                same(gradients(lambda step, state, x: scan(state, x), made, steps=24), wanted)
        assert graphs.captures <= 2 * 4 and any("parameters moved 4 times" in str(w.message) for w in caught)
    graphs = captured()
    gradients(scanned, Drop(), group=4)  # draws random numbers
    assert graphs.captures == 0


class Late(Exception):
    """What a signal handler raises."""


@pytest.fixture
def alarm():
    """A function that raises a signal whose handler raises an exception of the given type."""
    def handler(*_):
        raise types[-1]("too late")
    types, before = [], signal.signal(signal.SIGUSR1, handler)

    def ring(one):
        types.append(one)
        signal.raise_signal(signal.SIGUSR1)
    yield ring
    signal.signal(signal.SIGUSR1, before)


@needs_2
@pytest.mark.parametrize("where, kind", [("trace", Late), (1, Late), (2, KeyboardInterrupt), ("call", Late)])
def test_an_exception_of_a_signal_handler_ends_the_call_and_is_no_failure(where, kind, alarm, monkeypatch):
    """While a group is traced, while one of its functions is compiled, and while a compiled function runs."""
    made, on, compiled = Gru(), [True], [0]

    def compiled_once(module, given):
        assert isinstance(module, torch.fx.GraphModule)
        compiled[0] += 1
        if on and compiled[0] - 1 == where:
            try:
                alarm(kind)
            except Exception as error:  # PyTorch's compiler raises its own instead
                raise RuntimeError("the compiler failed").with_traceback(error.__traceback__) from None

        def call(*given):
            if on and where == "call" and compiled[0] == 3:
                alarm(kind)
            return module(*given)
        return call

    def traced(h, x, t):
        if on and type(t) is not int:
            alarm(kind)
        return made(h, x, t)
    step = traced if where == "trace" else made  # without other objects of Python, which would be traced again
    monkeypatch.setattr("neap.torch.compiled.groups.compiled", compiled_once)
    x = torch.randn(8, B, I, generator=torch.Generator().manual_seed(2)).requires_grad_()
    with pytest.raises(kind, match="too late"):
        nt.scan(step, started(Gru), x, params=made, group=2, compile=True)
    on.clear()
    wanted = gradients(scanned, Gru(), steps=8, group=2)

    def again(made, *given, **more):
        return scanned(step, *given, params=made, **more)
    same(gradients(again, made, steps=8, group=2, memory="1T", costs=COSTS), wanted)
    told = nt.report()
    same(gradients(again, made, steps=8, group=2, memory=told.charged + told.counted_peak // 2, costs=COSTS), wanted)
    assert nt.report().extra_steps > 0 and nt.report().uncompiled == ""


@needs_2
def test_an_interrupted_capture_leaves_none(captured, alarm):
    """Arguments are not copied to buffers that an earlier capture does not read."""
    graphs = captured()
    def times(x, w):
        return [x * w]
    made, x, w = replays.Replayed(times, [1], graphs), torch.ones(3), torch.full((3,), 2.0)
    assert made(x, w)[0].eq(2).all() and graphs.captures == 1
    ready, graphs.capture = graphs.capture, lambda call: alarm(Late)
    with pytest.raises(Late):
        made(x, w.clone())
    graphs.capture = ready
    for value in (3, 4, 5, 6):
        assert made(torch.full((3,), float(value)), w)[0].eq(2 * value).all()
    assert graphs.captures == 2


@needs_2
def test_parameters_that_were_computed():
    """The graph asks for the gradients of those that it reaches alone."""
    torch.manual_seed(0)
    raw, x = torch.nn.Parameter(torch.randn(N, N) / 3), torch.randn(12, B, N)
    rows = []
    for compiled in (False, True):
        w = (raw.exp() - 1).tanh() * raw

        def step(h, x, t):
            h = torch.tanh(h @ w + x) + 0.1 * raw[0].tanh()
            return h, h
        out = nt.scan(step, torch.ones(B, N), x, params=[w, raw], compile=compiled)[1]
        rows.append(torch.autograd.grad(out.sin().sum(), raw))
    close(*rows)


@needs_2
def test_inputs_that_are_a_function_and_a_sum():
    made, x = Gru(), torch.randn(T, B, I)
    options = dict(steps=T, reduce=lambda out, t: {"sum": out.sum(1)}, memory=15000, group=4, costs=COSTS)
    rows = []
    for compiled in (False, True):
        last, found = nt.scan(made, torch.zeros(B, N), lambda t: {"x": x[t] * 1.5}["x"], compile=compiled, **options)
        rows.append([found["sum"], *torch.autograd.grad(last.sin().sum() + found["sum"].cos().sum(),
                                                        list(made.parameters()))])
    assert nt.report().extra_steps
    close(*rows)


@needs_2
def test_inputs_of_other_shapes_later_are_an_error():
    made = Gru()
    with pytest.raises(neap.UsageError, match=r"inputs\(9\) has a different structure"):
        nt.scan(made, torch.zeros(B, N), lambda t: torch.zeros(B if t < 9 else 1, I), steps=12, compile=True, group=4)


@needs_2
def test_a_budget_that_is_too_small_says_what_is_enough():
    made = Gru()
    with pytest.raises(neap.BudgetError) as caught:
        gradients(scanned, made, memory=1500, group=4, costs=COSTS)
    same(gradients(scanned, made, memory=caught.value.least, group=4, costs=COSTS), gradients(scanned, made, group=4))


@needs_2
def test_backward_again_and_without_some_gradients():
    made = Gru()
    h, x = torch.zeros(B, N), torch.randn(T, B, I)
    last, out = scanned(made, h, x, group=4, memory=15000, costs=COSTS)
    rows = [torch.autograd.grad(last.sum(), list(made.parameters()), retain_graph=True) for _ in range(2)]
    same(*rows)
    close(rows[0], torch.autograd.grad(plain(made, h, x)[0].sum(), list(made.parameters())))


@needs_2
def test_batched_gradients_are_refused():
    made = Gru()
    last, _ = scanned(made, torch.zeros(B, N), torch.randn(T, B, I), group=13)
    with pytest.raises(RuntimeError, match=r"compile=True got batched gradients .*remove compile=True"):
        torch.autograd.grad(last, made.cell.weight_hh, torch.ones(2, B, N), is_grads_batched=True)


@needs_2
def test_second_derivatives():
    made, x, rows = Gru(), torch.randn(12, B, I), []
    options = dict(group=4, memory="1T", double_backward=True, check=True, costs=COSTS)
    for loop in plain, lambda *given: scanned(*given, **options):
        h = torch.zeros(B, N, requires_grad=True)
        g, = torch.autograd.grad(loop(made, h, x)[1].sin().sum(), h, create_graph=True)
        rows.append(torch.autograd.grad(g.square().sum(), list(made.parameters())))
    close(*rows, 1e-4)


@needs_2
def test_autocast():
    made = Gru()

    def run(loop):
        def call(*given, **options):
            with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
                return loop(*given, **options)
        return call
    found = gradients(run(scanned), made, group=4)
    close(found, gradients(run(nt.scan), made), 0.02)
    same(gradients(run(scanned), made, group=4, memory=15000, costs=COSTS), found)


@needs_2
@compiler
@pytest.mark.parametrize("kind", [Gru, Drop])
def test_compiled_functions(kind):
    made = kind()
    free = gradients(scanned, made, group=4, steps=16)
    close(free, gradients(plain, made, steps=16))
    same(gradients(scanned, made, group=4, steps=16, memory="1T", costs=COSTS), free)
    told = nt.report()
    memory = told.charged + told.counted_peak * 2 // 3
    same(gradients(scanned, made, group=4, steps=16, memory=memory, costs=COSTS), free)
    assert nt.report().extra_steps


class Changing(torch.nn.Module):
    """Two parameters of one shape, a function, a mask and an attribute that the first call adds."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.a, self.b = (torch.nn.Parameter(torch.randn(4, 4) / 2) for _ in range(2))
        self.act, self.scale = torch.nn.Tanh(), 1.0
        self.register_buffer("mask", torch.ones(4))

    def forward(self, h, x, t):
        if not hasattr(self, "added"):
            self.added = True
        h = self.act(h @ self.a * self.scale + x @ self.b) * self.mask
        return h, h


@needs_2
def test_whatever_a_step_depends_on_may_change_between_calls():
    """Functions, frozen and replaced parameters, numbers, and tensors that may get the address of earlier ones."""
    made, h, x = Changing(), torch.randn(2, 4), torch.randn(8, 2, 4)
    run = nt.Scan(made, compile=True, group=4)

    def changed(one):
        wanted = [p for p in made.parameters() if p.requires_grad]
        last, out = one(h, x)
        return [last, *torch.autograd.grad(out.square().sum(), wanted)]

    def freeze(a, b):
        made.a.requires_grad_(a), made.b.requires_grad_(b)
    for change in (lambda: None, lambda: setattr(made, "scale", 2.0), lambda: setattr(made, "act", torch.nn.Sigmoid()),
                   lambda: freeze(False, True), lambda: freeze(True, False),
                   lambda: setattr(made.b, "data", torch.randn(4, 4)),
                   *[lambda: setattr(made, "mask", torch.rand(4))] * 20):
        change()
        close(changed(run), changed(lambda *given: nt.scan(made, *given)))
    assert len(run._known.groups._found) <= 16
    last, out = run(h, x)
    made.mask.mul_(3)
    with pytest.raises(RuntimeError, match="modified in place"):
        out.sum().backward()


@needs_2
@pytest.mark.filterwarnings("ignore:.*times slower than storing")
def test_tapes_of_compiled_groups_leave_a_device():
    """The device of the tests runs copies late and in another order."""
    made = Many()
    wanted = gradients(scanned, made, group=4)
    for device, options in (("late", {"slow": "mem:16M"}), ("reordered", {"host": "20K", "slow": "mem:16M"})):
        with on_device(device, 1):
            same(gradients(scanned, made, group=4, memory=40000, strategy="stream", costs=COSTS, **options), wanted)
        told = nt.report()
        assert told.counts.tape_puts == told.counts.tape_gets > 0 and told.counts.recoveries == 0


@needs_2
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(MANY // 25))
def test_random_steps(seed, captured):
    """Random steps against the plain loop, and against the scans of other budgets; every second one with graphs of
    launches."""
    from random_compiled import CompiledCase
    runner = Runner()
    if seed % 2:
        captured()
    try:
        found = runner.findings(CompiledCase(seed))
    finally:
        runner.close()
    assert not found, "\n".join(found)
