# SPDX-License-Identifier: Apache-2.0
"""neap.torch.lift: nets of snntorch, spikingjelly and norse, whose state is hidden in modules, have
the gradient bits of a plain loop over them."""
import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, same  # noqa: E402

T, B = 24, 3


def compared(make, loop):
    """Bits of scans over make(), lifted, and those of loop(net, x), for several plans and groups."""
    torch.manual_seed(5)
    net, x = make(), (8 * torch.rand(T, B, 6)).requires_grad_()
    wanted = [*net.parameters(), x]

    def found(out):
        flat = out if isinstance(out, torch.Tensor) else out[0]
        loss = (flat * torch.linspace(0.5, 1, T)[:, None, None] + 0.3).pow(2).mean()
        return [flat.detach(), *torch.autograd.grad(loss, wanted, allow_unused=True)]

    plain = found(loop(net, x))
    assert any(g is not None and g.any() for g in plain[1:])
    step = nt.lift(net)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    state = step.start(x[0])
    for options in (dict(), dict(group=1), dict(group=4, memory="40K"), dict(group=1, memory="12K", strategy="revolve"),
                    dict(group=1, memory="60K", strategy="stream", slow="mem:16M")):
        try:
            last, out = nt.scan(step, state, x, costs=COSTS, **options)
        except neap.BudgetError as error:
            last, out = nt.scan(step, state, x, costs=COSTS, **dict(options, memory=error.least))
        same(found(out), plain)
    after = net.state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items())


def looped(net, x, call=lambda net, x: net(x)):
    rows = [call(net, row) for row in x.unbind(0)]
    return torch.stack([row[0] if isinstance(row, tuple) else row for row in rows])


@pytest.mark.filterwarnings("ignore")
def test_snntorch():
    snn = pytest.importorskip("snntorch")
    from snntorch import utils
    kinds = [lambda **more: snn.Leaky(beta=0.8, learn_beta=True, init_hidden=True, **more),
             lambda **more: snn.Synaptic(alpha=0.7, beta=0.8, init_hidden=True, **more),
             lambda **more: snn.RLeaky(beta=0.8, linear_features=5, init_hidden=True, **more),
             lambda **more: snn.Alpha(alpha=0.8, beta=0.7, init_hidden=True, **more)]
    for kind in kinds:
        def make():
            return torch.nn.Sequential(torch.nn.Linear(6, 5), kind(), torch.nn.Linear(5, 5), kind(output=True))

        def loop(net, x):
            utils.reset(net)
            for part in net.modules():
                for key in ("syn", "mem", "spk", "syn_exc", "syn_inh"):
                    if isinstance(getattr(part, key, None), torch.Tensor):
                        setattr(part, key, torch.zeros(0))
            found = looped(net, x)
            utils.reset(net)
            for part in net.modules():
                for key in ("syn", "mem", "spk", "syn_exc", "syn_inh"):
                    if isinstance(getattr(part, key, None), torch.Tensor):
                        setattr(part, key, torch.zeros(0))
            return found
        compared(make, loop)


@pytest.mark.filterwarnings("ignore")
def test_spikingjelly():
    pytest.importorskip("spikingjelly")
    neuron = pytest.importorskip("spikingjelly.activation_based.neuron")
    functional = pytest.importorskip("spikingjelly.activation_based.functional")
    for kind in (neuron.LIFNode, neuron.IFNode, neuron.ParametricLIFNode):
        def make():
            return torch.nn.Sequential(torch.nn.Linear(6, 5), kind(), torch.nn.Linear(5, 4), kind())

        def loop(net, x):
            functional.reset_net(net)
            found = looped(net, x)
            functional.reset_net(net)
            return found
        compared(make, loop)
    several = kind(step_mode="m")
    with pytest.raises(neap.UsageError, match="step_mode"):
        nt.lift(several)


@pytest.mark.filterwarnings("ignore")
def test_norse():
    pytest.importorskip("norse")
    norse = pytest.importorskip("norse.torch")

    def make():
        return norse.SequentialState(torch.nn.Linear(6, 5), norse.LIFCell(), torch.nn.Linear(5, 4), norse.LICell())

    def loop(net, x):
        rows, state = [], None
        for row in x.unbind(0):
            out, state = net(row, state)
            rows.append(out)
        return torch.stack(rows)
    compared(make, loop)


def test_nothing_to_lift():
    with pytest.raises(neap.UsageError, match="no module that stores its own state"):
        nt.lift(torch.nn.GRUCell(2, 3))


class Memory(torch.nn.Module):
    """As modules of spikingjelly keep their state."""

    def __init__(self):
        super().__init__()
        self._memories, self._memories_rv = {"v": 0.25}, {"v": 0.25}
        self.w = torch.nn.Parameter(torch.randn(6))

    def forward(self, x):
        if isinstance(self._memories["v"], float):
            self._memories["v"] = torch.full_like(x, self._memories["v"])
        self._memories["v"] = torch.tanh(self._memories["v"] * self.w + x)
        return self._memories["v"] * 2


class Hidden(torch.nn.Module):
    """As neurons of snntorch do."""

    def __init__(self):
        super().__init__()
        self.init_hidden = True
        self.register_buffer("mem", torch.zeros(0), persistent=False)
        self.w = torch.nn.Parameter(torch.randn(6))

    def forward(self, x):
        if self.mem.shape != x.shape:
            self.mem = torch.zeros_like(x)
        self.mem = torch.sin(self.mem * self.w + x)
        return self.mem


def test_hidden_state_without_a_library():
    def make():
        return torch.nn.Sequential(Memory(), torch.nn.Linear(6, 6), Hidden(), Memory())

    def loop(net, x):
        out = looped(net, x)
        for part in (net[0], net[3]):
            part._memories["v"] = 0.25
        net[2].mem = torch.zeros(0)
        return out
    compared(make, loop)
