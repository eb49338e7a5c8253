# SPDX-License-Identifier: Apache-2.0
"""Sweeps of NumPy models: gradients against finite differences, the same bits within every budget and
over every tier, kills, faults, exceptions, signals, threads, forks."""
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

import neap

np = pytest.importorskip("numpy")
import models_of_tests as models  # noqa: E402

T = 400


def run(memory=None, steps=T, model=None, **arguments):
    model = model or models.Lorenz96()
    result = neap.sweep(model, models.start(), steps=steps, memory=memory, **arguments)
    return result, model


def bits(result, model):
    return result.loss.hex(), result.dx0.tobytes(), model.force.tobytes(), model.passed


def test_gradient_is_that_of_finite_differences():
    result, model = run("20K")
    loss, dx0 = result
    assert result.loss == loss and result.dx0 is dx0 and dx0.shape == models.start().shape
    assert result.stats.peak_measured <= 20 << 10
    rng = np.random.default_rng(3)
    for _ in range(4):
        way, h = rng.standard_normal(dx0.shape), 1e-6
        up, down = (models.plain(models.start() + s * h * way, T)[0] for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(float((dx0 * way).sum()), rel=1e-6)
    for i in range(3):
        up, down = (models.plain(models.start(), T, force=s * 1e-6, at=i)[0] for s in (1, -1))
        assert (up - down) / 2e-6 == pytest.approx(model.force[i], rel=1e-6)


def test_same_bits_within_every_budget(scratch):
    plain = bits(*run())
    loss, gradient, force = models.plain(models.start(), T)
    assert plain == (loss.hex(), gradient.tobytes(), force.tobytes(), T)
    for strategy in ("auto", "bptt", "revolve", "mixed", "standard"):
        assert bits(*run("1M" if strategy == "bptt" else "30K", strategy=strategy)) == plain, strategy
    for slow in (scratch, "mem:64M", [scratch, "mem:64M"]):
        for strategy in ("auto", "double", "async", "stream") if slow == scratch else ("auto", "disk-revolve"):
            result, model = run("16K", slow=slow, strategy=strategy, advance=1e-5, backward=2e-5)
            assert bits(result, model) == plain, (slow, strategy)
    assert os.listdir(scratch) == []


def test_a_smaller_budget_is_refused():
    with pytest.raises(neap.BudgetError, match="at least 512 B.*error.least.") as caught:
        run(500)
    run(caught.value.least)


def test_run_again_and_the_plan_outlives():
    with neap.Sweep(models.Lorenz96(), models.start(), steps=T, memory="30K") as sweep:
        first, again = sweep.run(), sweep.run()
        assert first.dx0.tobytes() == again.dx0.tobytes()
        other = sweep.run(models.start() + 1)
        assert other.loss != first.loss
        assert sweep.plan.verify().peak <= 30 << 10
        with pytest.raises(neap.UsageError, match="x0 has dtype float64 and shape .3,., but the sweep was created with"):
            sweep.run(np.zeros(3))
        plan = sweep.plan
    with pytest.raises(neap.UsageError, match="closed"):
        sweep.run()
    assert plan.verify().backward_steps == T
    result, _ = run("30K")
    gc.collect()
    assert result.plan.verify().backward_steps == T and result.plan.chosen in neap.strategies()


def test_a_plan_that_was_made_before():
    with neap.Sweep(models.Lorenz96(), models.start(), steps=T, memory="30K", strategy="revolve") as sweep:
        text = sweep.plan.text()
        wanted = sweep.run()
        plan = sweep.plan
        with neap.Sweep(models.Lorenz96(), models.start(), steps=T, memory="30K", plan=plan) as second:
            assert second.run().dx0.tobytes() == wanted.dx0.tobytes()
            assert second.plan.text() == text
    other = neap.plan(T, state=128, tape=64, memory="30K")
    with pytest.raises(neap.Error):
        neap.Sweep(models.Lorenz96(), models.start(), steps=T, memory="30K", plan=other)


class Wrong(models.Lorenz96):
    """A model whose loss, or gradient, is not finite."""

    loss = gradient = 0.0

    def turn(self, x, dx):
        found = super().turn(x, dx)
        dx[2] += self.gradient
        return found + self.loss


def test_a_loss_or_gradient_that_is_not_finite():
    for name, value, match in (("loss", np.nan, "turn returned the loss nan after 400 steps"),
                               ("gradient", np.inf, "adjoint at step 400, which turn wrote.* number 2 is inf")):
        model = Wrong()
        setattr(model, name, value)
        with pytest.raises(neap.Diverged, match=match):
            run("20K", model=model)


def test_a_running_sweep_refuses_other_calls():
    class Intrudes(models.Lorenz96):
        refused = 0

        def call(self):
            for call in (sweep.run, sweep.close):
                with pytest.raises(neap.UsageError, match="while the sweep runs"):
                    call()
                self.refused += 1

        def turn(self, x, dx):
            self.call()
            thread = threading.Thread(target=self.call)
            thread.start()
            thread.join()
            return super().turn(x, dx)

    model = Intrudes()
    with neap.Sweep(model, models.start(), steps=T, memory="20K") as sweep:
        result = sweep.run()
        assert model.refused == 4
    assert result.dx0.tobytes() == run("20K")[0].dx0.tobytes()


def test_unknown_length(scratch):
    class Ends(models.Lorenz96):
        def ended(self, x, t):
            return t >= 137

    loss, gradient, _ = models.plain(models.start(), 137)
    for slow in (None, scratch):
        result = neap.sweep(Ends(), models.start(), memory="30K", slow=slow)
        assert (result.loss, result.dx0.tobytes()) == (loss, gradient.tobytes())
        assert result.plan.problem.steps == 137


def test_structured_states_and_tapes():
    """A leapfrog whose state has two fields and a step count of another type."""
    kind = np.dtype([("q", float, 3), ("p", float, 3), ("n", np.int32)])
    x0 = np.zeros((), kind)
    x0["q"], x0["p"] = [1, 2, 3], [0.5, 0, -0.5]

    class Leapfrog:
        tape = np.dtype((np.float64, (2, 3)))

        def advance(self, x, t0, t1):
            for _ in range(t0, t1):
                x["p"] -= 0.01 * np.sin(x["q"])
                x["q"] += 0.01 * x["p"]
                x["n"] += 1

        def record(self, x, t0, t1, tape):
            for t in range(t1 - t0):
                tape[t, 0], tape[t, 1] = x["q"], x["p"]
                self.advance(x, t0 + t, t0 + t + 1)

        def turn(self, x, dx):
            assert x["n"] == 300 and not x.flags.writeable
            dx["q"], dx["p"] = x["q"], 0
            return 0.5 * (x["q"] ** 2).sum()

        def backward(self, dx, t1, t0, tape):
            assert tape.shape == (t1 - t0, 2, 3) and not tape.flags.writeable
            for t in reversed(range(t1 - t0)):
                dx["p"] += 0.01 * dx["q"]
                dx["q"] -= 0.01 * np.cos(tape[t, 0]) * dx["p"]

    wide = neap.sweep(Leapfrog(), x0, steps=300)
    small = neap.sweep(Leapfrog(), x0, steps=300, memory="3K")
    assert wide.dx0.tobytes() == small.dx0.tobytes() and small.dx0.shape == ()
    moved = x0.copy()
    moved["q"][1] += 1e-6
    h = (neap.sweep(Leapfrog(), moved, steps=300).loss - wide.loss) / 1e-6
    assert h == pytest.approx(float(wide.dx0["q"][1]), rel=1e-4)


def test_trace(tmp_path):
    path = tmp_path / "sweep.json"
    run("30K", strategy="multistage", slow="mem:1M", trace=path)
    names = {event.get("name") for event in json.loads(path.read_text())["traceEvents"]}
    assert {"advance", "record", "backward", "turn"} <= names


def test_calibrated():
    result, model = run("64K", slow="mem:1M", calibrate=0.2)
    loss, gradient, force = models.plain(models.start(), T)
    assert result.dx0.tobytes() == gradient.tobytes() and model.force.tobytes() == force.tobytes()
    assert result.plan.simulate().advance + result.plan.simulate().record > 0


class Odd(Exception):
    pass


@pytest.mark.parametrize("where", ["advance", "record", "turn", "backward"])
def test_exceptions_come_out(where):
    model = models.Lorenz96()
    error, calls = Odd("mine"), []

    def fails(*arguments):
        calls.append(1)
        raise error

    setattr(model, where, fails)
    with neap.Sweep(model, models.start(), steps=T, memory="20K", strategy="revolve") as sweep:
        with pytest.raises(Odd) as caught:
            sweep.run()
        assert caught.value is error and len(calls) == 1
        delattr(model, where)
        model.force[:] = 0
        assert sweep.run().dx0.tobytes() == models.plain(models.start(), T)[1].tobytes()


def test_what_an_exception_shows_outlives_the_arena():
    seen = []

    class Fails(models.Lorenz96):
        def backward(self, dx, t1, t0, tape):
            part = tape[:1]
            if t0 < 100:
                seen.extend((dx.copy(), part.copy()))
                raise Odd("half way")
            super().backward(dx, t1, t0, tape)

    with pytest.raises(Odd) as caught:
        run("20K", model=Fails())
    trace = caught.value.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    shown = [trace.tb_frame.f_locals[name] for name in ("dx", "part")]
    assert all(array.flags.owndata for array in shown)
    assert all(np.array_equal(a, b) for a, b in zip(shown, seen))


class Slow(models.Lorenz96):
    """A model that takes a millisecond a call, and says when it was called."""

    def __init__(self):
        super().__init__()
        self.called = threading.Event()

    def advance(self, x, t0, t1, first=False):
        self.called.set()
        time.sleep(1e-3)
        super().advance(x, t0, t1, first)


def kill_soon(model, number=signal.SIGINT, times=1):
    def kill():
        model.called.wait(10)
        for _ in range(times):
            time.sleep(0.05)
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def test_ctrl_c_comes_out_between_two_calls():
    for _ in range(5):
        model = Slow()
        with neap.Sweep(model, models.start(), steps=20_000, memory="20K", strategy="revolve") as sweep:
            thread = kill_soon(model)
            with pytest.raises(KeyboardInterrupt):
                sweep.run()
            thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_leaves_a_call_that_does_not_end():
    class Endless(Slow):
        def advance(self, x, t0, t1, first=False):
            self.called.set()
            for _ in range(1000):
                time.sleep(0.01)

    model = Endless()
    thread, start = kill_soon(model, times=2), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run("20K", model=model, strategy="revolve")
    thread.join()
    assert time.monotonic() - start < 5


def test_other_signals_raise_what_they_raise():
    def handler(number, frame):
        raise Odd("alarm")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        model = Slow()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Odd, match="alarm"):
            run("20K", steps=20_000, model=model, strategy="revolve")
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_with_a_journal_is_resumed(scratch):
    loss, gradient, force = models.plain(models.start(), T)
    model = Slow()
    thread = kill_soon(model)
    with pytest.raises(KeyboardInterrupt):
        run("20K", model=model, strategy="revolve", journal=scratch)
    thread.join()
    assert "neap.journal" in os.listdir(scratch)
    result, model = run("20K", strategy="revolve", journal=scratch)
    assert (result.loss, result.dx0.tobytes()) == (loss, gradient.tobytes())
    assert model.force.tobytes() == force.tobytes()
    assert result.stats.spared > 0 and os.listdir(scratch) == []


def test_damaged_records_are_made_again(scratch):
    """What lies on the disk is damaged while the sweep is away."""
    loss, gradient, force = models.plain(models.start(), T)
    arguments = dict(strategy="disk-revolve", slow=scratch, journal=scratch, advance=1e-2, backward=2e-2)
    model = Slow()
    model.turn = lambda x, dx: (os.kill(os.getpid(), signal.SIGINT), models.Lorenz96.turn(model, x, dx))[1]
    with pytest.raises(KeyboardInterrupt):
        run("9K", model=model, **arguments)
    path = os.path.join(scratch, "neap.slow")
    with open(path, "r+b") as file:
        head = file.read(4096)
        size = os.path.getsize(path)
        file.write(b"\x55" * (size - len(head)))
    result, model = run("9K", **arguments)
    assert (result.loss, result.dx0.tobytes()) == (loss, gradient.tobytes())
    assert model.force.tobytes() == force.tobytes()
    assert result.stats.recoveries > 0 and result.stats.spared > 0
    assert os.listdir(scratch) == []


def written(path):
    """When a file was written to last, in nanoseconds; 0: it is not there."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def test_kills_are_resumed_to_the_bit(scratch):
    """kill -9 at random moments after the process wrote to its journal; the same command goes on."""
    wanted = bits(*run(steps=models.STEPS))
    command = [sys.executable, models.__file__, scratch]
    journal, seed = os.path.join(scratch, "neap.journal"), np.random.default_rng(7)
    wanted_kills, kills, resumed = int(os.environ.get("NEAP_KILLS", "3")), 0, 0
    for _ in range(20 * wanted_kills):
        began, kill = time.time_ns(), kills < wanted_kills
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while kill and process.poll() is None and written(journal) < began:
            time.sleep(1e-3)
        if kill:
            time.sleep(float(seed.uniform(0, 0.1)))
            process.kill()
        out, _ = process.communicate()
        if process.returncode != 0:
            assert process.returncode == -signal.SIGKILL
            kills += 1
            continue
        found = json.loads(out)
        assert (found["loss"], found["dx0"], found["force"]) == (wanted[0], wanted[1].hex(), wanted[2].hex())
        assert os.listdir(scratch) == []
        resumed += found["spared"] > 0
        if kills >= wanted_kills and resumed:
            break
        kills = min(kills, wanted_kills - 1)  # it was killed before its first commit: once more
    assert kills >= wanted_kills and resumed


def test_full_and_damaged_media(scratch):
    """A tier that has no room is done without: the same bits."""
    plain = bits(*run())
    result, model = run("20K", slow="mem:4K", strategy="auto", advance=1e-3, backward=2e-3)
    assert bits(result, model) == plain
    with pytest.raises(OSError):
        run("20K", slow=os.path.join(scratch, "none"))
    with pytest.raises(neap.Error, match="memory|tmpfs"):
        run("20K", slow="/dev/shm")


def test_refusals(scratch):
    with pytest.raises(neap.UsageError, match="steps is required because .*Pass steps=T"):
        neap.sweep(models.Lorenz96(), models.start())
    with pytest.raises(neap.UsageError, match="a M, has no method record\\(\\)"):
        neap.sweep(type("M", (), {"advance": lambda *a: None})(), models.start(), steps=3)
    with pytest.raises(neap.UsageError, match="x0 is empty.*Pass an array"):
        neap.sweep(models.Lorenz96(), np.zeros(0), steps=3)
    with pytest.raises(neap.UsageError, match="dtype object.*Convert"):
        neap.sweep(models.Lorenz96(), np.array([object()]), steps=3)
    with pytest.raises(neap.UsageError, match="memory=0 is not valid.*or None for no limit"):
        run(0)
    with pytest.raises(neap.UsageError, match="strategy|is none of"):
        run("20K", strategy="nonsense")
    bare = models.Lorenz96()
    bare.gathered = None
    with pytest.raises(neap.UsageError, match="no attribute 'gathered'. Set model.gathered"):
        neap.sweep(bare, models.start(), steps=3, journal=scratch)
    bare.gathered = [np.zeros((4, 4))[:, 1]]
    with pytest.raises(neap.UsageError, match="contains an array that is not contiguous. .*Convert it"):
        neap.sweep(bare, models.start(), steps=T, memory="20K", journal=scratch, journal_seconds=-1)


def test_threads_run_side_by_side():
    plain, found = bits(*run()), []
    threads = [threading.Thread(target=lambda: found.append(bits(*run("20K", slow="mem:1M")) == plain))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside threads, on purpose
def test_fork(scratch):
    with neap.Sweep(models.Lorenz96(), models.start(), steps=T, memory="16K", slow=scratch,
                    strategy="double", advance=1e-5, backward=2e-5) as sweep:
        wanted = sweep.run().dx0.tobytes()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            answer = 1
            try:
                sweep.run()
            except neap.ForkedError:
                sweep.close()
                answer = 0
            os._exit(answer)
        assert os.waitpid(child, 0)[1] == 0
        assert sweep.run().dx0.tobytes() == wanted


def test_nothing_is_left_behind(scratch):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    gone = []
    for i in range(60):
        model = models.Lorenz96()
        gone.append(weakref.ref(model))
        run("6K", steps=50, model=model, slow=[scratch, "mem:1M"])
        if i == 20:
            before, files = resident(), len(os.listdir("/proc/self/fd"))
    del model
    gc.collect()
    assert resident() - before < 3 << 20 and len(os.listdir("/proc/self/fd")) == files
    assert not any(ref() for ref in gone)
