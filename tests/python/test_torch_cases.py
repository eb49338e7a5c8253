# SPDX-License-Identifier: Apache-2.0
"""neap.torch among what programs do: compiled steps, several processes and threads, fork, masks,
small types, buffers, steps that are not deterministic, a thousand scans, random cells."""
import gc
import os
import random
import threading

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, Gru, case, flat, grads, like, plain, same, scanned  # noqa: E402

MANY = int(os.environ.get("NEAP_MANY", "60")) // 2
NEW = hasattr(torch, "compile")


# What a step may be

@pytest.mark.filterwarnings("ignore")
def test_a_compiled_step():
    """The bits of a plain loop over the same compiled step."""
    if not NEW:
        pytest.skip("this PyTorch has no torch.compile")
    made, state, x, read = case("gru", 14, 1)
    torch._dynamo.reset()
    step = torch.compile(lambda h, i: torch.tanh(made.cell(i, h) * 1.25), backend="aot_eager")

    def cell(h, i, t):
        h = step(h, i)
        return h, h
    wanted = [*made.cell.parameters(), state, x]
    rows = []
    for options in (None, dict(), dict(group=1, memory="20K", strategy="revolve"), dict(group=4, memory="40K"),
                    dict(group=1, memory="20K", strategy="stream", slow="mem:4M")):
        if options is None:
            last, out = plain(cell, state, x)
        else:
            last, out = nt.scan(cell, state, x, params=made, costs=COSTS, **options)
        rows.append([out.detach(), *torch.autograd.grad(out.pow(2).sum() + last.sum(), wanted)])
    for row in rows[1:]:
        same(row, rows[0])


class Counted(Gru):
    """A batch norm, whose buffers change with every step."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(N)

    def forward(self, h, x, t):
        h = self.norm(self.cell(x, h))
        return h, h


def normed():
    torch.manual_seed(3)
    made, state, x = Counted(), torch.randn(B, N, requires_grad=True), torch.randn(15, B, I)
    return made, state, x, {key: value.clone() for key, value in made.state_dict().items()}


@pytest.mark.parametrize("options", [dict(), dict(group=1, memory="9K", strategy="revolve"), dict(group=4)])
def test_buffers_as_state(options):
    made, state, x, begin = normed()
    rows = []
    for run in (plain, scanned(buffers="state", **options)):
        made.load_state_dict(begin)
        last, out = run(made, state, x)
        found = torch.autograd.grad(out.pow(2).sum() + last.sum(), [*made.parameters(), state], allow_unused=True)
        rows.append([last.detach(), *found, *[b.clone() for b in made.buffers()]])
    same(rows[1], rows[0])
    assert rows[0][-1] == 15
    made.load_state_dict(begin)
    with torch.no_grad():  # a plain loop
        nt.scan(made, state, x, buffers="state")
    same(list(made.buffers()), rows[0][-3:])


def test_buffers_as_state_with_a_sum():
    made, state, x, begin = normed()

    def loop(made, h, x):
        total = torch.zeros(())
        for t in range(len(x)):
            h, out = made(h, x[t], t)
            total = total + out.pow(2).sum()
        return h, total
    rows = []
    for run in (loop, scanned(buffers="state", reduce=lambda out, t: out.pow(2).sum(), group=2, memory="20K")):
        made.load_state_dict(begin)
        last, total = run(made, state, x)
        found = torch.autograd.grad(total + last.sum(), [*made.parameters(), state], allow_unused=True)
        rows.append([total.detach(), *found, *[b.clone() for b in made.buffers()]])
    same(rows[1], rows[0])


def test_refused_options():
    made, state, x, _ = case("gru", 5, 1)
    with pytest.raises(neap.UsageError, match="needs a torch.nn.Module"):
        nt.scan(lambda h, i, t: made(h, i, t), state, x, buffers="state")
    with pytest.raises(neap.UsageError, match="'state' or None"):
        nt.scan(made, state, x, buffers="all")


@pytest.mark.filterwarnings("ignore:check")
def test_a_step_that_is_not_deterministic():
    given = case("gru", 30, 1)
    made, state, x, _ = given
    calls = []

    def step(h, i, t):
        calls.append(t)
        h = made.cell(i, h)
        return (h + 1e-3 * calls.count(t) if t == 7 else h), None
    options = dict(group=1, memory="8K", strategy="revolve", params=made, costs=COSTS)
    last, _ = nt.scan(step, state, x, check=True, **options)
    with pytest.raises(nt.NotDeterministic, match="step 7 ") as caught:
        last.sum().backward()
    assert caught.value.step == 7 and isinstance(caught.value, neap.Error)
    calls.clear()
    nt.scan(step, state, x, **options)[0].sum().backward()  # nobody looked
    wanted = grads(plain, *given)
    for more in (dict(), dict(group=4, memory="30K"), options):
        same(grads(scanned(check=True, **dict(more, params=None)), *given), wanted)


def test_uncounted():
    given = case("both", 20, 1)
    wanted = grads(plain, *given)
    for options in (dict(group=1, memory="12K", strategy="revolve"), dict(group=3, memory="20K")):
        same(grads(scanned(count=False, **options), *given), wanted)
        assert nt.report().counted_peak <= nt.report().planned_peak


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_types(kind):
    """States of small types, and a state of two types."""
    torch.manual_seed(2)
    a = torch.nn.Parameter((torch.randn(N, N) / 3).to(kind))
    state = torch.randn(B, N).to(kind).requires_grad_(), torch.randn(B, N).requires_grad_(), torch.zeros(B).long()
    x = torch.randn(20, B, N).to(kind).requires_grad_()

    def step(s, i, t):
        h = torch.tanh(s[0].float() @ a.float() + i.float()).to(kind)
        return (h, s[1] * 0.9 + h.float(), s[2] + 1), h
    wanted = [a, *state[:2], x]
    rows = []
    for options in (None, dict(), dict(group=1, memory="8K", strategy="revolve"), dict(group=3, memory="20K"),
                    dict(group=1, memory="20K", strategy="stream", slow="mem:4M")):
        last, out = plain(step, state, x) if options is None else nt.scan(step, state, x, costs=COSTS, **options)
        assert out.dtype == kind and int(last[2][0]) == 20
        loss = out.float().pow(2).sum() + last[1].sum() + last[0].float().sum()
        rows.append([out.detach(), *torch.autograd.grad(loss, wanted)])
    for row in rows[1:]:
        same(row, rows[0])


def test_ragged_lengths():
    """Sequences of several lengths in one batch: a mask keeps the state of those that have ended."""
    given = case("gru", 19, 1)
    lengths = torch.tensor([19, 4, 11])
    mask = (torch.arange(19)[:, None] < lengths)[..., None]
    made, state, x, read = given

    def step(h, given, t):
        i, live = given
        after = made.cell(i, h)
        h = torch.where(live, after, h)
        return h, torch.where(live, after, torch.zeros(()))
    wanted = [*made.cell.parameters(), state, x]

    def found(last, out):
        loss = out.pow(2).sum() + last.sum()
        return [last.detach(), *torch.autograd.grad(loss, wanted)]
    h, rows = state, []
    for t in range(19):
        h, out = step(h, (x[t], mask[t]), t)
        rows.append(out)
    a = found(h, torch.stack(rows))
    for options in (dict(), dict(group=1, memory="9K", strategy="revolve"), dict(group=5, memory="30K")):
        same(found(*nt.scan(step, state, (x, mask), params=made, costs=COSTS, **options)), a)
    for n, length in enumerate(lengths):  # each sequence by itself has the same last state
        alone = plain(made, state[n:n + 1], x[:length, n:n + 1])[0]
        assert torch.allclose(a[0][n:n + 1], alone, atol=1e-6)


def test_accumulation():
    """Gradients of several scans add up as those of several loops do."""
    made, state, x, _ = case("lstm", 20, 1)
    rows = []
    for run in (plain, scanned(group=3, memory="20K"), scanned(group=1, memory="20K", strategy="stream", slow="mem:4M")):
        made.zero_grad()
        for part in x.detach().split(5, 1):
            for scale in (0.5, 2):
                (run(made, state, part * scale)[1].pow(2).mean() / 2).backward()
        rows.append([p.grad.clone() for p in made.parameters()])
    same(rows[1], rows[0])
    same(rows[2], rows[0])


# Threads and processes

def test_two_threads(light, scratch):
    given = [case("lstm", 30, 1), case("both", 30, 2)]
    options = [dict(group=2, memory="12K", strategy="revolve"),
               dict(group=1, memory="12K", strategy="stream", slow=scratch)]

    def gradients(n, run):
        made, state, x, _ = given[n]
        last, out = run(made, state, x)
        loss = flat(out)[0].pow(2).sum() + flat(last)[0].sum()
        return torch.autograd.grad(loss, [*made.parameters(), *flat(state), x], allow_unused=True)
    wanted = [gradients(n, plain) for n in range(2)]
    found, failed = {0: [], 1: []}, []

    def work(n):
        torch.set_num_threads(1)
        try:
            for _ in range(6):
                found[n].append(gradients(n, scanned(**options[n])))
                assert nt.report().memory is not None
        except BaseException as error:  # an assertion in a thread is not seen
            failed.append(error)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for n in range(2):
        for one in found[n]:
            same(one, wanted[n])


def test_backward_in_another_thread(light, scratch):
    made, state, x, _ = case("both", 30, 2)
    wanted = [*made.parameters(), state, x]
    a = torch.autograd.grad(plain(made, state, x)[1].pow(2).sum(), wanted, allow_unused=True)
    out = nt.scan(made, state, x, group=1, memory="12K", strategy="stream", slow=scratch, costs=COSTS)[1]
    found = []

    def work():
        torch.set_num_threads(1)  # a new thread has its own number, before PyTorch 2
        found.append(torch.autograd.grad(out.pow(2).sum(), wanted, allow_unused=True))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    same(found[0], a)


def test_fork(light, scratch):
    """A child plays the forward half of scans of its own, and does not hang on one of its parent's:
    PyTorch refuses a backward there. What it inherited goes without a word, and the parent goes on."""
    made, state, x, _ = case("both", 30, 2)
    wanted = [*made.parameters(), state, x]
    options = dict(group=1, memory="12K", strategy="stream", slow=scratch, costs=COSTS)
    a = plain(made, state, x)[1]
    wanted_gradients = torch.autograd.grad(a.pow(2).sum(), wanted, allow_unused=True)
    out = nt.scan(made, state, x, **options)[1]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        word = b"bad"
        try:
            same([nt.scan(made, state, x, **options)[1].detach()], [a.detach()])
            try:
                out.sum().backward()
            except (neap.Error, RuntimeError):
                word = b"good"
            del out
            gc.collect()
        except BaseException as error:
            word = repr(error).encode()
        finally:
            os.write(writing, word)
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 4096) == b"good"
    os.close(reading)
    os.waitpid(child, 0)
    same(torch.autograd.grad(out.pow(2).sum(), wanted, allow_unused=True), wanted_gradients)


def _worker(rank, port, path):
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    try:
        class Model(torch.nn.Module):
            def __init__(self, run):
                super().__init__()
                torch.manual_seed(1)
                self.made, self.read, self.run = Gru(), torch.nn.Linear(N, 2), run

            def forward(self, h, x):
                return self.read(self.run(self.made, h, x)[1])
        torch.manual_seed(10 + rank)
        h, x = torch.randn(B, N), torch.randn(12, B, I)
        rows = []
        for run in (plain, scanned(group=2, memory="150K")):
            model = torch.nn.parallel.DistributedDataParallel(Model(run))
            model(h, x).pow(2).mean().backward()
            rows.append([p.grad.clone() for p in model.parameters()])
        same(rows[1], rows[0])
        torch.save(rows[1], f"{path}/{rank}")
    finally:
        dist.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_distributed_data_parallel(tmp_path):
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available() if NEW else False:
        pytest.skip("this PyTorch has no gloo")
    import socket
    import torch.multiprocessing as multiprocessing
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(_worker, (port, str(tmp_path)), nprocs=2)
    same(torch.load(tmp_path / "0"), torch.load(tmp_path / "1"))


# Many

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_thousand_scans(scratch):
    """Memory, tensors and files stay as they are."""
    made, state, x, _ = case("gru", 8, 1)
    runs = [nt.Scan(made, memory="6K", group=1, costs=COSTS), nt.Scan(made, group=4),
            nt.Scan(made, memory="6K", group=1, strategy="stream", slow="mem:1M", costs=COSTS)]
    files = nt.Scan(made, memory="6K", group=1, strategy="stream", slow=scratch, costs=COSTS)

    def rounds(count):
        for n in range(count):
            made.zero_grad()
            run = files if n % 50 == 0 else runs[n % 3]
            out = run(state, x)[1]
            if n % 7:
                out.sum().backward()
        del out
        made.zero_grad()
        gc.collect()
        return (len(os.listdir("/proc/self/fd")), threading.active_count(),
                sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects()))
    before = rounds(150)
    size = resident()
    after = rounds(850)
    assert after[:2] == before[:2] and after[2] <= before[2] + 4
    assert resident() - size < 8 << 20
    assert os.listdir(scratch) == []


class Random(torch.nn.Module):
    """Layers of a few kinds, a state in a tree, outputs that may be states or parts of them."""

    def __init__(self, pick):
        super().__init__()
        self.size = pick.randint(2, 9)
        self.cell = pick.choice([torch.nn.GRUCell, torch.nn.RNNCell, torch.nn.LSTMCell])(I, self.size)
        self.w = torch.nn.Parameter(torch.randn(self.size, self.size) / 3)
        self.read = torch.nn.Linear(self.size, 3) if pick.random() < 0.5 else None
        self.twice, self.drop, self.kind = pick.random() < 0.5, pick.random() < 0.3, pick.randint(0, 3)

    def start(self):
        h = torch.randn(B, self.size)
        return [h, {"c": torch.randn(B, self.size)}] if isinstance(self.cell, torch.nn.LSTMCell) else (h,)

    def forward(self, s, x, t):
        h = torch.tanh(s[0] @ self.w) + s[0] if self.twice else s[0]
        if self.drop:
            h = torch.nn.functional.dropout(h, 0.2)
        if isinstance(self.cell, torch.nn.LSTMCell):
            h, c = self.cell(x, (h, s[1]["c"]))
            after = [h, {"c": c}]
        else:
            h = self.cell(x, h)
            after = (h,)
        out = [h, h[:, 1:], (h, h * 2), {"a": h.t(), "b": None}][self.kind]
        return after, out if self.read is None else (out, self.read(h))


@pytest.mark.filterwarnings("ignore:check")
def test_random_cells(scratch):
    """Random cells, budgets, groups, tiers and strategies."""
    for seed in range(MANY):
        pick = random.Random(1000 + seed)
        torch.manual_seed(seed)
        made, steps = Random(pick), pick.randint(1, 30)
        state, x = made.start(), torch.randn(steps, B, I, requires_grad=pick.random() < 0.7)
        for leaf in flat(state):
            leaf.requires_grad_(pick.random() < 0.7)
        state = like(state, iter(flat(state)))
        given = made, state, x, torch.nn.Linear(3, 2)
        slow = pick.choice([None, None, scratch, "mem:16M"])
        options = dict(group=pick.choice([None, 1, 2, 5, steps]), slow=slow, check=pick.random() < 0.2,
                       strategy=pick.choice(["auto", "revolve", "mixed", "bptt"] if slow is None else
                                            ["auto", "stream", "double", "disk-revolve"]),
                       memory=pick.choice(["4K", "8K", "16K", "64K"]))
        wanted = grads(plain, *given)
        try:
            found = grads(scanned(**options), *given)
        except neap.BudgetError as error:
            if not error.least:
                continue
            options["memory"] = error.least
            found = grads(scanned(**options), *given)
        same(found, wanted)
        told = nt.report()
        assert told.counted_peak <= told.memory - told.charged and told.recoveries == 0, seed


def test_a_sum_without_gradients_leaves_the_first_state_alone():
    """Without gradients a step may write into its state; finding the shape of the sum must not."""
    state, x = torch.randn(B, N), torch.randn(5, B, N)

    def step(h, i, t):
        h.mul_(0.5)
        return h + i, h
    with torch.no_grad():
        h, total = state.clone(), 0
        for t in range(5):
            h, out = step(h, x[t], t)
            total = total + out.sum()
        last, found = nt.scan(step, state.clone(), x, reduce=lambda out, t: out.sum())
    same([last, found], [h, total])
