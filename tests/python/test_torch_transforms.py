# SPDX-License-Identifier: Apache-2.0
"""neap.torch under torch.func, forward-mode derivatives, batched gradients, fake tensors, tensor subclasses, FSDP2 and
torch.compile: plain autograd's results, or one clear error where a budget could not be kept."""
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
import torch.autograd.forward_ad as forward_ad  # noqa: E402
from cells_of_tests import COSTS, B, I, N, plain, same  # noqa: E402

T = 12
NEW = hasattr(torch, "func")
pytestmark = pytest.mark.filterwarnings("ignore:.*(performance drop|deprecated|value to be a constant|Python integer)")


def made(seed=1):
    torch.manual_seed(seed)
    cell = torch.nn.GRUCell(I, N)

    def step(h, x, t):
        h = torch.tanh(h @ cell.weight_hh[:N].t() + x @ cell.weight_ih[:N].t())
        return h, h
    return cell, step, torch.randn(T, B, I), torch.randn(B, N)


def chain(layers, memory=None, scan=True):
    torch.manual_seed(2)
    rows = [torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.Tanh()) for _ in range(layers)]
    return nt.Sequential(*rows, memory=memory) if scan else torch.nn.Sequential(*rows)


def transforms():
    from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

    cell, step, x, h = made()

    def of(run):
        return lambda h: run(step, h, x)[1]

    def named(run):
        return lambda p: run(lambda h, x, t: (functional_call(cell, p, (x, h)),) * 2, h, x)[0].sum()
    return {
        "grad": lambda run: [grad(lambda h: of(run)(h).sum())(h)],
        "parameters": lambda run: list(grad(named(run))(dict(cell.named_parameters())).values()),
        "vjp": lambda run: [vjp(of(run), h)[1](torch.ones(T, B, N))[0]],
        "jvp": lambda run: list(jvp(of(run), (h,), (torch.ones(B, N),))),
        "jacrev": lambda run: [jacrev(of(run))(h)], "jacfwd": lambda run: [jacfwd(of(run))(h)],
        "hessian": lambda run: [hessian(lambda h: of(run)(h).pow(2).sum())(h)],
        "vmap": lambda run: [vmap(lambda x: run(step, torch.zeros(N), x)[1], 1)(x)],
        "vmap of grad": lambda run: [vmap(grad(lambda x: run(step, torch.zeros(N), x)[1].sum()), 1)(x)]}


@pytest.mark.parametrize("grads", [True, False])
@pytest.mark.parametrize("kind", ["grad", "parameters", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap",
                                  "vmap of grad"])
def test_transforms_of_functions(kind, grads):
    """The results of the loop; with a budget one error, since a transform sees every step."""
    if not NEW:
        pytest.skip("this PyTorch has no torch.func")
    run = transforms()[kind]
    with torch.set_grad_enabled(grads):
        same([x.detach() for x in run(nt.scan)], [x.detach() for x in run(plain)])
        with pytest.raises(neap.UsageError, match="memory=29.3 KiB cannot be combined with a transform of torch.func"):
            run(lambda *given: nt.scan(*given, memory=30000, costs=COSTS))


def test_transforms_around_layers():
    if not NEW:
        pytest.skip("this PyTorch has no torch.func")
    x = torch.randn(B, N)
    found = [torch.func.jacrev(net)(x).detach() for net in (chain(3), chain(3, scan=False))]
    assert torch.equal(*found)
    with pytest.raises(neap.UsageError, match="memory=97.7 KiB cannot be combined with a transform"):
        torch.func.jacrev(chain(3, 100000))(x)


def test_a_transform_inside_a_step():
    """Is the step's own affair: it works with every budget."""
    if not NEW:
        pytest.skip("this PyTorch has no torch.func")
    torch.manual_seed(3)
    a, h, rows = torch.randn(3, 8, 8, requires_grad=True), torch.eye(8).expand(3, 8, 8), []

    def step(h, x, t):
        q, r = torch.func.vmap(torch.linalg.qr)(h + 0.1 * a)
        return q, r.diagonal(dim1=-1, dim2=-2).sum(-1)
    for options in (None, dict(), dict(memory="20K", group=1, costs=COSTS)):
        last, out = plain(step, h, None, T) if options is None else nt.scan(step, h, steps=T, **options)
        rows.append([out.detach(), *torch.autograd.grad(out.sum() + last.sum(), a)])
    same(rows[1], rows[0])
    same(rows[2], rows[0])


@pytest.mark.parametrize("grads", [True, False])
@pytest.mark.parametrize("where", ["state", "closure", "input"])
def test_forward_mode(where, grads):
    """Tangents of the last state and of the outputs, which a copy into a buffer would lose."""
    cell, step, x, h = made()
    rows = []
    with forward_ad.dual_level(), torch.set_grad_enabled(grads):
        h = forward_ad.make_dual(h, torch.ones(B, N)) if where == "state" else h
        x = forward_ad.make_dual(x, torch.ones(T, B, I)) if where == "input" else x
        w = torch.randn(N, N)
        w = forward_ad.make_dual(w, torch.ones(N, N)) if where == "closure" else w

        def around(h, row, t):
            h, out = step(torch.tanh(h @ w), row, t)
            return h, out
        for run in (plain, nt.scan):
            rows.append([part for x in run(around, h, x) for part in forward_ad.unpack_dual(x)])
        with pytest.raises(neap.UsageError, match="forward-mode"):
            nt.scan(around, h, x, memory="1M", params=cell)
        if grads:
            with pytest.raises(neap.UsageError, match="forward-mode"):
                chain(3, "1M")(h)
        assert forward_ad.unpack_dual(chain(3)(h))[1] is not None or where != "state"
    same([x.detach() for x in rows[1]], [x.detach() for x in rows[0]])


def test_a_backward_pass_in_forward_mode():
    """Its gradients would have no tangents."""
    _, step, x, h = made()
    outs = nt.scan(step, h, x)[1], chain(3, "1M")(h)
    with forward_ad.dual_level():
        for out, what in zip(outs, ("scan", "Sequential")):
            with pytest.raises(RuntimeError, match=f"backward pass of a {what} runs inside"):
                out.backward(forward_ad.make_dual(torch.ones_like(out), torch.ones_like(out)))


@pytest.mark.parametrize("rng", [False, True])
def test_batched_gradients(rng):
    """Without a budget they work; with one they would take a multiple of it."""
    cell, step, x, h = made()

    def drawing(h, row, t):
        return step(torch.nn.functional.dropout(h, 0.3) if rng else h, row, t)
    rows = []
    for options in (None, dict(), dict(group=3), dict(memory="1M")):
        torch.manual_seed(4)
        wanted = [x.requires_grad_(), h.requires_grad_(), cell.weight_hh]
        out = plain(drawing, h, x)[1] if options is None else nt.scan(drawing, h, x, **options)[1]
        given = torch.randn(4, *out.shape)
        if options and "memory" in options:
            with pytest.raises(RuntimeError, match="memory=1 MiB got batched gradients"):
                torch.autograd.grad(out, wanted, given, is_grads_batched=True)
            torch.autograd.grad(out, wanted, given[0])  # the graph is whole
        else:
            rows.append(torch.autograd.grad(out, wanted, given, is_grads_batched=True))
    same(rows[1], rows[0])
    same(rows[2], rows[0])


def test_batched_gradients_of_layers():
    rows = []
    for net in (chain(4, scan=False), chain(4)):
        out = net(torch.ones(B, N))
        given = torch.eye(B * N).view(-1, B, N)
        rows.append(torch.autograd.grad(out, [*net.parameters()], given, is_grads_batched=True))
    same(*rows)
    out = chain(4, "1M")(torch.ones(B, N))
    with pytest.raises(RuntimeError, match="Sequential with memory=1 MiB got batched"):
        torch.autograd.grad(out, out.grad_fn.next_functions[1][0].variable, torch.ones(2, B, N), is_grads_batched=True)


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobians(vectorize):
    _, step, x, h = made()
    found = [torch.autograd.functional.jacobian(lambda h: run(step, h, x)[0], h, vectorize=vectorize)
             for run in (plain, nt.scan)]
    assert torch.equal(*found)


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        cell, h, x = torch.nn.GRUCell(I, N), torch.zeros(B, N), torch.zeros(T, B, I)
        out = nt.scan(lambda h, x, t: (cell(x, h),) * 2, h, x)[1]
        out.sum().backward()
        assert out.shape == (T, B, N) and cell.weight_hh.grad.shape == cell.weight_hh.shape
        with pytest.raises(neap.UsageError, match="FakeTensor|fake tensors"):
            nt.scan(lambda h, x, t: (cell(x, h),) * 2, h, x, memory="1M")


def test_meta_tensors():
    cell, h = torch.nn.GRUCell(I, N, device="meta"), torch.zeros(B, N, device="meta")
    out = nt.scan(lambda h, x, t: (cell(x, h),) * 2, h, torch.zeros(T, B, I, device="meta"))[1]
    out.sum().backward()
    assert out.shape == (T, B, N) and cell.weight_hh.grad.shape == cell.weight_hh.shape


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_tracer():
    """torch.jit.trace and make_fx record the loop."""
    cell, step, x, h = made()
    cell.requires_grad_(False)  # a tracer takes no constants that require gradients
    with torch.no_grad():
        wanted = plain(step, h + 1, x)[0]
        found = [torch.jit.trace(lambda h: nt.scan(step, h, x)[0], (h,))(h + 1)] if not NEW else []
        if NEW:
            from torch.fx.experimental.proxy_tensor import make_fx
            found.append(make_fx(lambda h: nt.scan(step, h, x)[0])(h)(h + 1))
    assert all(torch.equal(one, wanted) for one in found)


class Wrapped(torch.Tensor):
    """Operations of its own, and no memory."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=requires_grad)

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def out(x):
            return x.inner if isinstance(x, Wrapped) else [out(y) for y in x] if isinstance(x, (list, tuple)) else x
        found = func(*[out(x) for x in args], **(kwargs or {}))
        return Wrapped(found) if isinstance(found, torch.Tensor) else found


def test_a_subclass_with_operations_of_its_own():
    if not NEW:
        pytest.skip("this PyTorch cannot add up such gradients")
    rows = []
    for run in (plain, nt.scan):
        torch.manual_seed(5)
        w, h = Wrapped(torch.randn(N, N), True), torch.zeros(B, N)
        out = run(lambda h, x, t: (torch.tanh(h @ w + 0.1),) * 2, h, torch.zeros(T))[1]
        rows.append([torch.autograd.grad(out.sum(), w)[0].inner])
    same(*rows)
    with pytest.raises(neap.UsageError, match="tensors of type Wrapped"):
        nt.scan(lambda h, x, t: (torch.tanh(h @ w + 0.1),) * 2, h, steps=T, memory="1M")


class Marked(torch.Tensor):
    pass


def test_a_subclass_without():
    _, step, x, h = made()
    h = h.as_subclass(Marked).requires_grad_()
    rows = []
    for options in (None, dict(), dict(memory="3K", group=1, costs=COSTS)):
        out = plain(step, h, x)[1] if options is None else nt.scan(step, h, x, **options)[1]
        rows.append(torch.autograd.grad(out.sum(), [h]))
        assert isinstance(out, Marked)
    same(rows[1], rows[0])
    same(rows[2], rows[0])


SHARDED = """
import os, sys, torch, torch.distributed as dist, neap, neap.torch as nt
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
from cells_of_tests import Gru, plain, N, B, I
dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://" + sys.argv[1])
mesh, x = init_device_mesh("cpu", (1,)), torch.randn(24, B, I)

class Outer(torch.nn.Module):
    def __init__(self, run):
        super().__init__()
        self.cell, self.read, self.run = Gru(), torch.nn.Linear(N, 2), run

    def forward(self, x):
        return self.read(self.run(self.cell, torch.zeros(B, N), x)[1])

def gradients(run, inner):
    torch.manual_seed(0)
    net = Outer(run)
    if inner:
        fully_shard(net.cell, mesh=mesh)
    fully_shard(net, mesh=mesh)
    net(x).pow(2).mean().backward()
    return [p.grad.to_local().clone() for p in net.parameters()]

def within(*given):
    return nt.scan(*given, memory="200K", group=1, costs=(1, 1.3, 2.6))

for inner in (False, True):
    wanted = gradients(plain, inner)
    assert all(map(torch.equal, wanted, gradients(nt.scan, inner)))
assert all(map(torch.equal, gradients(plain, False), gradients(within, False))) and nt.report().extra_steps > 0
try:
    gradients(within, True)
except neap.UsageError as error:
    assert "DTensor (fully_shard" in str(error), error
    print("refused")
dist.destroy_process_group()
"""


def test_fsdp2(tmp_path):
    """fully_shard around a scan works with a budget; around its cell there is one error."""
    if not NEW or not hasattr(torch.distributed, "fsdp"):
        pytest.skip("this PyTorch has no fully_shard")
    given = [sys.executable, "-W", "ignore", "-c", SHARDED, str(tmp_path / "store")]
    done = subprocess.run(given, cwd=__file__.rpartition("/")[0], capture_output=True, text=True, timeout=300)
    assert done.stdout == "refused\n", done.stderr


# torch.compile

def compiled(function, **options):
    if not hasattr(torch, "compile"):
        pytest.skip("this PyTorch has no torch.compile")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    return torch.compile(function, backend="aot_eager", **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [dict(), dict(memory=2400, group=1, costs=COSTS)])
@pytest.mark.parametrize("kind", ["scan", "Scan", "Sequential"])
def test_a_compiled_function_with_a_scan(kind, options):
    """One graph before the scan and one after it; the bits of the function as it is."""
    cell, step, x, h = made()
    net = nt.Scan(step, params=cell, **options) if kind == "Scan" else chain(4)

    def function(x):
        if kind == "Sequential":
            return net(torch.nn.functional.pad(x * 2, (0, N - I))).pow(2).mean() * 2
        return (nt.scan(step, h, x * 2, **options) if kind == "scan" else net(h, x * 2))[1].pow(2).mean() * 2
    leaves = [*net.parameters()] if kind == "Sequential" else [cell.weight_hh, cell.weight_ih]
    made_of = compiled(function)
    rows = [[run(x).detach(), *torch.autograd.grad(run(x), leaves)] for run in (function, made_of, made_of)]
    same(rows[1], rows[0])
    same(rows[2], rows[0])
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2
    assert kind == "Sequential" or nt.report().extra_steps > 0 or not options


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_function_with_fullgraph():
    _, step, x, h = made()
    with pytest.raises(Exception, match="torch.compile cannot trace. Compile the step instead"):
        compiled(lambda x: nt.scan(step, h, x)[1], fullgraph=True)(x)


def test_compiling_costs_no_import():
    """neap.torch and scans that nobody compiles do not import torch._dynamo."""
    if not hasattr(torch, "compile"):
        pytest.skip("this PyTorch has no torch.compile")
    code = ("import sys, torch; before = 'torch._dynamo' in sys.modules; import neap.torch as nt;"
            "w = torch.ones(3, requires_grad=True);"
            "nt.scan(lambda h, x, t: (h * w, h), torch.ones(3), steps=4, memory='1M')[1].sum().backward();"
            "assert before or 'torch._dynamo' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
