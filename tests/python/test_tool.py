# SPDX-License-Identifier: Apache-2.0
"""neap.train and neap.evaluate: results, errors, progress, Ctrl-C; a tool that is not there."""
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

import neap
from conftest import TOOL
from neap import specs

DATA = "randman:steps=60,samples=200,classes=4,part=train"
TEST = "randman:steps=60,samples=80,classes=4,part=test"


@pytest.fixture
def tool(monkeypatch):
    if not TOOL:
        pytest.skip("no tool")
    monkeypatch.setenv("NEAP_TOOL", TOOL)


def small(folder, **more):
    return dict(net="lif:16r:scale=2,li", memory="4M", epochs=2, seed=5, threads=1,
                out=os.path.join(folder, "run"), **more)


@pytest.mark.parametrize("net,names", [("none:4,li", (*specs.HIDDEN, "li")), ("lif:4:surrogate=none,li", specs.SURROGATES),
                                       ("lif:4:reset=none,li", specs.RESETS)])
def test_names_of_networks_are_those_of_the_tool(tool, tmp_path, net, names):
    done = subprocess.run([TOOL, "train", "randman", "--net", net, "--out", os.path.join(tmp_path, "run")], capture_output=True, text=True)
    listed = done.stderr.strip().split("one of ", 1)[1].split(". ", 1)[0]
    assert done.returncode == 2 and sorted(listed.split(", ")) == sorted(names)


def test_training_and_evaluation(tool, tmp_path, capfd):
    given = small(tmp_path, test=TEST)
    result = neap.train(DATA, **given)
    assert result.out == given["out"] and result.epochs == 2 and result.best_epoch in (1, 2)
    assert 0 < result.peak <= result.planned_peak <= 4 << 20 and result.loss > 0
    with open(os.path.join(result.out, "run.json")) as file:
        assert json.load(file)["results"]["test"]["accuracy"] == result.test.accuracy
    assert result.details["weights_hash"] and "test        accuracy" in str(result)
    out, told = capfd.readouterr()
    assert out == "" and "epoch 1/2: loss" in told and "epoch 2/2" in told
    found = neap.evaluate(result.out, TEST, batch=20, progress=False)
    assert (found.samples, found.accuracy, found.loss) == (80, result.test.accuracy, pytest.approx(result.test.loss))
    assert sum(map(sum, found.confusion)) == 80 and len(found.rates) == 1
    right = [answer["prediction"] == answer["label"] for answer in found.answers]
    assert len(right) == 80 and sum(right) / 80 == found.accuracy
    assert sum(kind["samples"] for kind in found.classes) == 80
    assert "of 80 samples" in str(found) and capfd.readouterr() == ("", "")


def test_progress_and_options(tool, tmp_path, capfd):
    lines = []
    given = small(tmp_path, slow=["mem:1M", "mem:2M"], euler=True, detach=False, chain=None, reset_value=-0.5)
    result = neap.train(DATA, progress=lines.append, **given)
    assert any(line.startswith("epoch 2/2") for line in lines) and result.test is None
    assert capfd.readouterr() == ("", "")
    with open(os.path.join(result.out, "run.json")) as file:
        settings = json.load(file)
    assert settings["settings"]["euler"] == 1 and settings["settings"]["reset_value"] == -0.5
    assert settings["sweep"]["slow"] == "mem:1M,mem:2M"


@pytest.mark.parametrize("change, kind, text", [
    (dict(memory="1K"), neap.BudgetError, "at least .* KiB.*error.least"), (dict(bogus=1), neap.UsageError, "unknown option"),
    (dict(memory="1Q"), neap.UsageError, "is not a size"), (dict(net="foo:3,li"), neap.UsageError, "unknown cell 'foo'"),
    (dict(json=True), neap.UsageError, "json= is not an option"),
    (dict(lr=1e6, clip=0), neap.Diverged, "Lower --lr")])
def test_errors(tool, tmp_path, capfd, change, kind, text):
    given = {**small(tmp_path), **change}
    if kind is neap.Diverged:
        given.update(net="rnn:16:activation=relu:scale=5:recurrent_scale=5,li", optimizer="sgd", warmup=0)
    with pytest.raises(kind, match=text) as caught:
        neap.train(DATA, **given)
    assert "\n" not in str(caught.value) and "neap train" not in capfd.readouterr().err
    if kind is neap.BudgetError:
        neap.train(DATA, **{**given, "memory": caught.value.least}, progress=False)


def test_progress_that_raises(tool, tmp_path):
    """The tool ends, with the run saved."""
    def told(line):
        if line.startswith("epoch 1/"):
            raise RuntimeError(line)
    given = {**small(tmp_path), "epochs": 100}
    with pytest.raises(RuntimeError):
        neap.train(DATA, progress=told, **given)
    assert neap.train(out=given["out"], resume=True, progress=False).epochs == 100


def test_errors_of_files(tool, tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.h5"):
        neap.train(tmp_path / "nothing.h5", out=tmp_path / "run", progress=False)
    with pytest.raises(FileNotFoundError):
        neap.evaluate(tmp_path / "nothing", DATA)
    neap.train(DATA, **small(tmp_path), progress=False)
    with pytest.raises(neap.UsageError, match="exists"):
        neap.train(DATA, **small(tmp_path), progress=False)


def test_without_a_tool(monkeypatch, tmp_path):
    monkeypatch.delenv("NEAP_TOOL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(neap.ToolMissing, match="not installed"):
        neap.train(DATA)
    monkeypatch.setenv("NEAP_TOOL", str(tmp_path / "neap"))
    with pytest.raises(neap.ToolMissing, match="NEAP_TOOL=.* is not an executable program"):
        neap.evaluate("run", DATA)


@pytest.fixture
def wheel(tool, monkeypatch, tmp_path):
    """The package, libneap and the tool where a wheel has them; the environment of a process that uses it."""
    site = tmp_path / "site"
    shutil.copytree(os.path.dirname(neap.__file__), site / "neap")
    (site / ".neap_bptt.mesonpy.libs").mkdir()
    shutil.copy(os.environ["NEAP_LIBRARY"], site / ".neap_bptt.mesonpy.libs" / "libneap.so")
    shutil.copy(TOOL, site / ".neap_bptt.mesonpy.libs" / "neap")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NEAP_")}
    shutil.copy(os.path.join(os.environ["NEAP_SOURCE"], "python", "neap_script.py"), tmp_path / "neap")
    assert os.access(tmp_path / "neap", os.X_OK)  # pip keeps the mode of the file
    return dict(clean, PYTHONPATH=str(site), PATH=str(tmp_path))


def test_tool_of_a_wheel(wheel, tmp_path):
    """The command, `python -m neap` and neap.train, though no PATH leads to the tool."""
    script = tmp_path / "neap"
    assert script.read_text().startswith("#!python\n")  # pip replaces it
    for command in ([script], ["-m", "neap"]):
        told = subprocess.run([sys.executable, *command, "--help"], env=wheel, capture_output=True, text=True)
        assert told.returncode == 0 and "usage: neap" in told.stdout, told.stderr
        wrong = subprocess.run([sys.executable, *command, "train", "--bogus"], env=wheel, capture_output=True, text=True)
        assert wrong.returncode == 2 and "unknown option" in wrong.stderr
    given = small(tmp_path)
    train = f"import neap; print(neap.train({DATA!r}, progress=False, **{given!r}).epochs)"
    done = subprocess.run([sys.executable, "-c", train], env=wheel, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_script_without_a_tool(wheel, tmp_path):
    """One line and exit code 2; the script on the PATH is not taken for the tool, which would start it for ever."""
    os.remove(tmp_path / "site" / ".neap_bptt.mesonpy.libs" / "neap")
    script = tmp_path / "neap"
    done = subprocess.run([sys.executable, script, "train"], env=wheel, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "not installed" in done.stderr
    shutil.copy(TOOL, tmp_path / "tool")
    found = subprocess.run([sys.executable, script, "--version"], env=dict(wheel, NEAP_TOOL=str(tmp_path / "tool")),
                           capture_output=True, text=True)
    assert found.returncode == 0 and neap.__version__ in found.stdout


def test_tools_that_fail(monkeypatch, tmp_path):
    fake = tmp_path / "neap"
    monkeypatch.setenv("NEAP_TOOL", str(fake))
    for script, kind, text in (
            ("kill -9 $$", neap.Error, "killed by signal 9 .SIGKILL.*resume=True"), ("echo neap eval: broken >&2; exit 1", neap.Error, "broken"),
            ("echo neap eval: interrupted after 3 samples >&2; exit 1", neap.Interrupted, "after 3")):
        fake.write_text("#!/bin/sh\n" + script + "\n")
        fake.chmod(0o755)
        with pytest.raises(kind, match=text):
            neap.evaluate("run", DATA)


INTERRUPTED = """
import os, signal, sys, neap
def line(text):
    if text.startswith("epoch 1/"):
        os.kill(os.getpid(), signal.SIGINT)
    print(text, flush=True)
try:
    neap.train({data!r}, progress=line, **{given!r})
except KeyboardInterrupt:
    print("KeyboardInterrupt")
"""


def test_ctrl_c_is_passed_on(tool, tmp_path):
    """The tool saves the run, and the run goes on to what an uninterrupted one gives."""
    given = {**small(tmp_path), "epochs": 40}
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.format(data=DATA, given=given)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "KeyboardInterrupt"
    assert "interrupted after" in lines[-2] and "resume" in lines[-2]
    resumed = neap.train(out=given["out"], resume=True, progress=False)
    whole = neap.train(DATA, **{**given, "out": str(tmp_path / "whole")}, progress=False)
    assert resumed.epochs == whole.epochs == 40
    assert resumed.details["weights_hash"] == whole.details["weights_hash"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
