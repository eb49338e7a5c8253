# SPDX-License-Identifier: Apache-2.0
"""Random numbers of torch.Generator objects, and of devices other than CUDA's: they repeat in recomputed steps, and the
generators end as in the plain loop; or there is one clear error."""
import functools
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, plain, same  # noqa: E402
from neap.torch.device import Generators, get_rng, set_rng  # noqa: E402

T = 20
OPTIONS = [dict(), dict(memory="32K", group=1, strategy="revolve"), dict(memory="64K", group=4, strategy="revolve"),
           dict(memory="96K", group=1, slow="mem:4M", strategy="stream")]


def noisy(h, x, t, cell, generator):
    h = cell(x, h) + 0.1 * torch.randn(h.shape, generator=generator)
    return h, h


class Noisy(torch.nn.Module):
    def __init__(self, cell, generator):
        super().__init__()
        self.cell, self._generator = cell, generator

    def forward(self, h, x, t):
        return noisy(h, x, t, self.cell, self._generator)


class Global(torch.nn.Module):
    """Its forward calls a method, which reads the generator as a global variable."""

    def __init__(self, cell, generator):
        super().__init__()
        self.cell = cell
        globals()["GENERATOR"] = generator

    def forward(self, h, x, t):
        return self.noisy(h, x, t)

    def noisy(self, h, x, t):
        return noisy(h, x, t, self.cell, GENERATOR)  # noqa: F821: set by __init__


class Called:
    """An object with a property that reads the global variable."""

    def __init__(self, cell, generator):
        self.inner = Global(cell, generator)

    @property
    def generator(self):
        return GENERATOR  # noqa: F821

    def __call__(self, h, x, t):
        return noisy(h, x, t, self.inner.cell, self.generator)


STEPS = {"closure": lambda c, g: lambda h, x, t: noisy(h, x, t, c, g),
         "partial": lambda c, g: functools.partial(noisy, cell=c, generator=g), "module": Noisy, "global": Global, "called": Called,
         "list": lambda c, g: (lambda held: lambda h, x, t: noisy(h, x, t, c, held[0]))([g])}


@pytest.mark.parametrize("how", STEPS)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_generator_of_the_step(how, options):
    torch.manual_seed(1)
    cell, generator = torch.nn.GRUCell(I, N), torch.Generator()
    step, x, h = STEPS[how](cell, generator), torch.randn(T, B, I), torch.zeros(B, N)
    rows = []
    for run in (plain, functools.partial(nt.scan, costs=COSTS, **options)):
        generator.manual_seed(5)
        last, out = run(step, h, x)
        found = torch.autograd.grad(out.pow(2).sum() + last.sum(), list(cell.parameters()))
        rows.append([out.detach(), *found, generator.get_state(), torch.get_rng_state()])
    same(rows[1], rows[0])
    assert options.get("strategy") != "revolve" or nt.report().extra_steps > 0


def test_a_generator_of_inputs_and_of_a_scan_in_a_step():
    torch.manual_seed(1)
    cell, generator, h = torch.nn.GRUCell(I, N), torch.Generator(), torch.zeros(B, N)

    def drawn(t):
        return torch.randn(B, I, generator=generator)

    def outer(run):
        def step(h, x, t):
            h = run(lambda h, x, t: noisy(h, x, t, cell, generator), h, x.expand(3, B, I))[0]
            return h, h
        return step
    rows = []
    for scan in (False, True):
        generator.manual_seed(5)
        if scan:
            out = nt.scan(outer(nt.scan), h, drawn, steps=T, costs=COSTS, memory="64K", group=2, strategy="revolve")[1]
        else:
            out = plain(outer(plain), h, type("Rows", (), {"__getitem__": lambda self, t: drawn(t)})(), steps=T)[1]
        rows.append([out.detach(), generator.get_state()])
    same(rows[1], rows[0])


class Fake(types.SimpleNamespace):
    """A device's module with random numbers of its own: a counter."""

    def __init__(self):
        super().__init__(state=torch.zeros(4, dtype=torch.uint8), calls=[])

    def get_rng_state(self, *device):
        self.calls.append(device)
        return self.state.clone()

    def set_rng_state(self, state, *device):
        self.calls.append(device)
        assert state.shape == self.state.shape
        self.state = state.clone()

    def draw(self):
        self.state = (self.state.int() * 5 + 3).to(torch.uint8)
        return float(self.state[0]) / 255


@pytest.mark.parametrize("kind", ["mps", "xpu"])
@pytest.mark.parametrize("options", OPTIONS)
def test_random_numbers_of_other_devices(monkeypatch, kind, options):
    torch.manual_seed(1)
    fake, cell, x, h = Fake(), torch.nn.GRUCell(I, N), torch.randn(T, B, I), torch.zeros(B, N)
    monkeypatch.setattr(torch, kind, fake, raising=False)
    module = sys.modules["neap.torch.arguments"]
    monkeypatch.setattr(module, "Generators", lambda devices, *more: Generators([*devices, torch.device(kind)], *more))

    def step(h, x, t):
        h = cell(x, h) * (1 + 0.1 * fake.draw())
        return h, h
    rows = []
    for run in (plain, functools.partial(nt.scan, costs=COSTS, **options)):
        fake.state = torch.arange(4, dtype=torch.uint8)
        last, out = run(step, h, x)
        found = torch.autograd.grad(out.pow(2).sum() + last.sum(), list(cell.parameters()))
        rows.append([out.detach(), *found, fake.state])
    same(rows[1], rows[0])
    assert set(fake.calls) == {() if kind == "mps" else (torch.device(kind),)}


def test_generators_together(monkeypatch):
    fake, other = Fake(), torch.Generator()
    monkeypatch.setattr(torch, "xpu", fake, raising=False)
    devices = [torch.device("cpu"), torch.device("xpu", 1), torch.device("xpu", 0)]
    both = Generators(devices, [other, torch.default_generator])
    state = both.get()
    assert state.numel() == 2 * torch.get_rng_state().numel() + 2 * 4
    wanted = [torch.rand(3), torch.rand(3, generator=other), fake.draw()]
    set_rng(both, state)
    same([torch.rand(3), torch.rand(3, generator=other)], wanted[:2])
    assert fake.draw() == wanted[2] and get_rng(both).numel() == state.numel()


def test_devices_whose_generator_is_not_known(monkeypatch):
    with pytest.raises(neap.UsageError, match="tensors are on hpu, and this PyTorch has no torch.hpu.get_rng_state"):
        Generators([torch.device("hpu")])
    assert torch.equal(Generators([torch.device("hpu")], strict=False).get(), torch.get_rng_state())
    assert torch.equal(Generators([torch.device("meta")]).get(), torch.get_rng_state())
    module = sys.modules["neap.torch.arguments"]
    monkeypatch.setattr(module, "Generators", lambda devices, *more: Generators([*devices, torch.device("hpu")], *more))
    given = lambda h, x, t: (h.tanh(), None), torch.ones(2, requires_grad=True), None  # noqa: E731
    with pytest.raises(neap.UsageError, match="pass rng=False"):
        nt.scan(*given, steps=3)
    nt.scan(*given, steps=3, rng=False)
