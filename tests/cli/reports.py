#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What train, eval and plot report: doubts about data, counts of steps, nothing that is not known."""
import csv
import os
import re
import sys

from harness import Folder, Tap, need, neap, neap_json

need("numpy")
import numpy as np  # noqa: E402

SAMPLES, STEPS, FEATURES = 60, 12, 3


def data(folder, name, y, samples=SAMPLES):
    """An archive of numbers with these targets, of the array of inputs."""
    x = np.random.default_rng(0).normal(size=(samples, STEPS, FEATURES)).astype("f4")
    path = os.path.join(folder, name + ".npz")
    np.savez(path, x=x, y=y(x))
    return path


def train(folder, path, *more, net="gru:8,li", memory=("--memory", "4M")):
    """A short run: its folder, and what train wrote."""
    run = os.path.join(folder, f"run{len(os.listdir(folder))}")
    done = neap("train", path, "--net", net, "--epochs", 2, *memory, "--out", run, *more)
    assert done.returncode == 0, done.stderr
    said = (done.stdout + done.stderr).replace(folder, "")
    return run, re.sub(r"weights [0-9a-f]{16}", "weights", said)


def steps_of(x):
    return (x[:, :, 0] > 0).astype("i4") + (x[:, :, 1] > 0)


def counts_of_steps(folder):
    """`eval --json` counts steps in the table of classes, as predict's lines do."""
    path = data(folder, "steps", steps_of)
    run, _ = train(folder, path)
    found = neap_json("eval", run, path)
    table = np.zeros((3, 3), int)
    for row in csv.DictReader(neap("predict", run, path).stdout.splitlines()):
        table[int(row["label"]), int(row["prediction"])] += 1
    assert found["confusion"] == table.tolist(), (found["confusion"], table)
    for label, kind in enumerate(found["classes"]):
        assert kind["steps"] == table[label].sum() and "samples" not in kind, kind
        assert kind["accuracy"] == table[label, label] / table[label].sum(), kind
    assert table.sum() == found["judged"] == SAMPLES * STEPS, found
    assert abs(np.trace(table) / table.sum() - found["accuracy"]) < 1e-12, found
    threaded = neap_json("eval", run, path, "--threads", 3, "--batch", 7)
    assert threaded["confusion"] == found["confusion"], threaded


def no_table_of_numbers(folder):
    """Numbers have no classes: no table, whose cells are the outputs squared, and no interval."""
    path = data(folder, "numbers", lambda x: np.repeat(x[:, :1, 0], 20000, 1), samples=6)
    run, _ = train(folder, path, memory=())
    done = neap("eval", run, path, env={"LC_ALL": "C"})
    assert done.returncode == 0 and "loss" in done.stdout, done
    found = neap_json("eval", run, path)
    assert found["classes"] == [] and found["confusion"] == [], found["classes"][:3]
    assert found["low"] is None and found["high"] is None, found["low"]


def no_rates_without_spikes(folder):
    """Layers of numbers have no share of units that spike: not in eval, metrics or figures."""
    path = data(folder, "plain", lambda x: (x.sum((1, 2)) > 0).astype("i4"))
    for net, spikes in (("gru:8,li", [0]), ("lif:8,lstm:8,li", [1, 0]), ("rnn:8,li", [0])):
        run, said = train(folder, path, net=net)
        text = neap("eval", run, path).stdout
        rates = neap_json("eval", run, path)["rates"]
        for layer, spiking in enumerate(spikes):
            assert (f"layer {layer}: " in text) == bool(spiking), text
            assert (rates[layer] is not None) == bool(spiking), rates
        row = list(csv.DictReader(open(os.path.join(run, "metrics.csv"), encoding="ascii")))[-1]
        assert (row["spikes"] != "") == any(spikes), row
        assert ("support" in said) == any(spikes), said
        assert neap("plot", run).returncode == 0
        with open(os.path.join(run, "metrics.svg"), encoding="utf-8") as file:
            assert ("units that spike" in file.read()) == any(spikes), net


def many_classes(folder):
    """Whole numbers that are as many classes as samples, and classes without samples, are named."""
    path = data(folder, "many", lambda x: (np.arange(SAMPLES) * 7).astype("i4"))
    _, said = train(folder, path, "--validation", 0)
    assert "y has 414 classes for 60 samples. If its whole numbers are quantities" in said, said
    assert "warning: 354 of 414 classes have no training sample: 1, 2, 3, 4, 5, 6, 8, 9, ..." in said, said
    path = data(folder, "gap", lambda x: np.where(x[:, 0, 0] > 0, 2, 0))
    _, said = train(folder, path)
    assert "warning: class 1 has no training sample\n" in said and "quantities" not in said, said
    _, said = train(folder, data(folder, "ones", lambda x: (1 + (x[:, 0, 0] > 0)).astype("i4")))
    assert "warning: class 0 has no training sample. If labels start at 1, subtract 1\n" in said, said
    path = data(folder, "all", lambda x: (x[:, 0, 0] > 0).astype("i4"))
    assert "no training sample" not in train(folder, path)[1]


def memory_without_a_budget(folder):
    """Half of the free memory is what sweeps might take, not what the process takes."""
    path = data(folder, "free", steps_of)
    _, said = train(folder, path, memory=())
    assert "upper bound" not in said and "the process uses at most 1" not in said.replace("budget, the", ""), said
    assert "without --memory, the budget was" in said, said
    beside = float(re.search(r"in addition to the memory budget, .* at most ([0-9.]+) MiB", said).group(1))
    assert beside < 200, said
    assert "at most" in train(folder, path)[1]


def figures(folder):
    """No exponents, no negative zeros, no plural of one."""
    path = data(folder, "large", lambda x: 1e6 * x[:, 0, :1].astype("f8"))
    run, said = train(folder, path)
    said += neap("eval", run, path).stdout
    assert not re.search(r"[0-9]e[+-]?[0-9]|-0\.0\b|\bnan\b|\b1 (outputs|samples|features)", said), said
    assert " 1 output," in said, said
    path = data(folder, "small", lambda x: 1e-3 * x[:, 0, :1])
    run, said = train(folder, path)
    assert "loss 0.0000," not in said and not re.search(r"[0-9]e-[0-9]", said), said


def no_overhead_below_none(folder):
    """A plan that takes less time than keeping every tape has no overhead, and none below 0."""
    del folder
    costs = ["--steps", 1000, "--state", "64K", "--tape", "1M", "--memory", "2G", "--advance", "1ms",
             "--record", "3ms", "--backward", "2ms", "--log", "1K", "--replay", "1ms"]
    table = neap("plan", *costs).stdout
    assert re.search(r"^\* auto .* faster ", table, re.M) and "-20" not in table, table
    one = neap("plan", *costs, "--strategy", "replay").stdout
    assert "overhead      none: 20.0% less time than storing everything" in one, one


def mend_of_a_reset(folder):
    """A reset that NIR has no node for is refused with the option that mends it, and that one does."""
    for kind, code in (("subtract", 2), ("hard", 0)):
        run, graph = os.path.join(folder, "reset-" + kind), os.path.join(folder, kind + ".nir")
        neap("train", "randman:samples=40", "--net", "lif:6r,li", "--reset", kind, "--epochs", 1, "--memory", "4M", "--out", run)
        done = neap("export", run, "--nir", graph)
        assert done.returncode == code and os.path.exists(graph) == (code == 0), done
        assert code == 0 or ("Train with --reset hard" in done.stderr and done.stderr.count("\n") == 1), done.stderr
        assert code or neap("eval", graph, "randman:samples=40,part=test").returncode == 0


def data_options_of_measurements(folder):
    """compare and calibrate take the data that train takes: more channels and classes, the next step, numbers as they are."""
    small = "randman:units=20,classes=3,samples=32,steps=40"
    more = ["--net", "lif:8r,li", "--batch", 8, "--memory", "4M"]
    for command, options in (("compare", ["--strategy", "revolve", "--no-reference"]), ("calibrate", ["--repeats", 1])):
        sizes = [neap_json(command, small, *more, *options, *given) for given in ([], ["--channels", 25, "--classes", 40])]
        states = [found["chain"]["state"] for found in sizes]
        assert states[0] < states[1], (command, states)
        done = neap(command, small, *more, *options, "--channels", 19)
        assert done.returncode == 2 and done.stderr.count("\n") <= 2 and "20 channels and 3 classes" in done.stderr, done
        rows = data(folder, command, lambda x: x[:, :, :1])
        net = ["--net", "gru:4,li", "--batch", 8, "--memory", "4M", *options]
        done = neap(command, rows, *net, "--next-step", "--no-normalise")
        assert done.returncode == 0, done
        assert neap(command, rows, *net, "--channels", 4).returncode == 2


def decisions(folder):
    """NEAP_LOG=debug prints costs, tiers and plans; any other value, nothing."""
    options = ["train", "randman:units=20,classes=3,samples=32,steps=400", "--net", "lif:8r,li", "--epochs", 1, "--threads", 1,
               "--memory", "200K", "--slow", folder]
    said = {}
    for level in "debug", "none":
        done = neap(*options, "--out", os.path.join(folder, "log-" + level), env={**os.environ, "NEAP_LOG": level})
        assert done.returncode == 0, done.stderr
        said[level] = [line for line in done.stderr.splitlines() if line.startswith("neap debug: ")]
    assert not said["none"], said
    for pattern in (r"net 'lif:8r,li': kernels \w+, 1 threads", r"plan for 400 steps in 200 KiB: state [\d.]+ \w+, tape ",
                    r"costs of a step: advance [\d.]+ \w+, record ", r"tier .* file in .*: room for .*, writes [\d.]+ \w+/s",
                    r"strategy auto chose \w+: predicted .* against storing everything; memory [\d.]+ KiB",
                    r"batch: \d+ groups of at most \d+ samples"):
        assert any(re.match("neap debug: " + pattern, line) for line in said["debug"]), (pattern, said["debug"])


def main():
    with Tap() as tap, Folder() as folder:
        for case in (counts_of_steps, no_table_of_numbers, no_rates_without_spikes, many_classes,
                     memory_without_a_budget, figures, no_overhead_below_none, mend_of_a_reset, decisions,
                     data_options_of_measurements):
            tap.run(case.__doc__.splitlines()[0], case, folder)
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
