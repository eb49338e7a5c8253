# SPDX-License-Identifier: Apache-2.0
"""The scripts of examples/python run, in small sizes, and print what they promise."""
import importlib.util
import json
import os
import re
import subprocess
import sys

import pytest

SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDER = os.path.join(SOURCE, "examples", "python")
NEEDS = {"gru_long": ["torch"], "snntorch_long": ["torch", "snntorch"], "spikingjelly_long": ["torch", "spikingjelly"],
         "exact_or_truncated": ["torch"], "long_context": ["torch"], "ode_numpy": ["numpy"],
         "jax_ode": ["jax"], "jax_spikes": ["jax"], "jax_rollout": ["jax"], "jax_equinox": ["jax", "equinox"],
         "pyadjoint_diffusion": ["numpy", "checkpoint_schedules", "pyadjoint"]}


def run(name, *arguments):
    """What an example prints; the test is skipped where a package that it needs is absent."""
    for package in NEEDS[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"no {package}")
    done = subprocess.run([sys.executable, os.path.join(FOLDER, name + ".py"), *map(str, arguments)],
                          capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_here():
    assert sorted(NEEDS) == sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py"))


HELP = """
import runpy, sys
for path in sys.argv[1:]:
    sys.argv = [path, "--help"]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        print(f"end {path}: {end.code}", flush=True)
"""


def test_help():
    """In one process, which imports PyTorch once."""
    paths = [os.path.join(FOLDER, name + ".py") for name, needs in NEEDS.items() if all(map(importlib.util.find_spec, needs))]
    done = subprocess.run([sys.executable, "-c", HELP, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left = done.stdout
    for path in paths:
        told, end, left = left.partition(f"end {path}: 0\n")
        assert end and "usage:" in told and len(told.splitlines()) > 5, (path, told)


def test_page():
    """The script of docs/pytorch.md: autograd runs out of memory, the scan does not."""
    script = os.path.join(SOURCE, "examples", "pages", "pytorch.py")
    without = subprocess.run([sys.executable, "-I", "-S", script], capture_output=True, text=True)
    assert without.returncode == 77 and "Install both with" in without.stderr and without.stderr.count("\n") == 1
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    done = subprocess.run([sys.executable, script, "260"], capture_output=True, text=True)  # 400 by default
    assert done.returncode == 0, done.stderr
    assert "40 steps: the gradients are bit-identical" in done.stdout and re.search("memory=1 KiB is too small .* are enough .error.least", done.stdout)
    assert re.search("260 steps with plain autograd in 128 MB: out of memory", done.stdout), done.stdout
    assert re.search("^peak .*MiB, planned", done.stdout, re.MULTILINE)


def test_gru_long(scratch):
    for more in ([], [scratch]):
        told = run("gru_long", 60, "4M", *more)
        assert "60 steps in" in told and re.search(r"budget +4 MiB", told)


@pytest.mark.parametrize("name", ["snntorch_long", "spikingjelly_long"])
def test_spiking_networks_lengthened(name):
    told = run(name, "--steps", 8, "--times", 50, "--hidden", 16, "--batch", 4)
    assert "bit-identical" in told and "400 steps: loss" in told and "steps        400" in told


def test_exact_learns_where_truncated_does_not(tmp_path):
    told = run("exact_or_truncated", "--steps", 16, "--updates", 150, "--windows", 4, "--memory", "128K",
               "--plot", tmp_path / "windows.svg")
    (_, cut), (_, exact) = re.findall(r"^ *(4|exact)  ([0-9.]+)%$", told, re.MULTILINE)
    assert float(cut) < 50 and float(exact) > 90
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "windows.svg").read_text().count("<svg") == 1
    else:
        assert "matplotlib is not installed" in told


@pytest.mark.parametrize("layer, more", [
    ("gla", ["--updates", 1, "--seeds", 0, 1]), ("mamba2", ["--dtype", "bfloat16"]), ("rwkv7", []), ("hybrid", [])])
def test_long_context(layer, more, scratch):
    folder = ["--slow", scratch] if layer == "gla" else []
    told = run("long_context", "--layer", layer, "--tokens", 160, "--chunk", 16, "--layers", 2, "--width", 16,
               "--vocabulary", 32, "--memory", "1500K", "--plain", "--truncate", 1, 4, *folder, *more)
    seeds = 1 + (layer == "gla")
    assert told.count("gradients of plain autograd: bit-identical") == seeds and "10 chunks of 16 tokens" in told
    assert re.search("extra steps  [1-9]", told) and ("update 1: loss" in told) == (layer == "gla")
    assert re.search(r"exact, memory=1500K: loss [0-9.]+ per token, [0-9.]+ s, \d+ tokens/s, .* grew by \d+ MB", told)
    found = re.findall(r"cosine ([0-9.]+), relative error ([0-9.]+), norm ([0-9.]+)", told)
    assert len(found) == 4 * seeds and all(0 < float(cosine) <= 1 and 0 < float(error) < 1 for cosine, error, _ in found)


WRONG_SIZES = [
    (["--tokens", "100"], "--tokens 100 is not a multiple of --chunk 64; pass a multiple"),
    (["--width", "50", "--heads", "4"], "--width 50 is not a multiple of 2 * --heads 4; pass a multiple"),
    (["--tokens", "64", "--chunk", "16", "--memory", "9K"], "long_context.py: memory=9 KiB is too small")]
REFUSALS = """
import contextlib, io, json, runpy, sys
path, found = sys.argv[1], []
for arguments in json.loads(sys.argv[2]):
    sys.argv = [path, *arguments]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            runpy.run_path(path, run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code
    found.append((code, said.getvalue()))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def refusals():
    """Exit code and standard error of long_context.py for each row of WRONG_SIZES, in one process, which imports
    PyTorch once."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    script = os.path.join(FOLDER, "long_context.py")
    done = subprocess.run([sys.executable, "-c", REFUSALS, script, json.dumps([row[0] for row in WRONG_SIZES])],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("number", range(len(WRONG_SIZES)))
def test_long_context_with_wrong_sizes(refusals, number):
    code, said = refusals[number]
    assert code == 2 and WRONG_SIZES[number][1] in said and "Traceback" not in said


def test_ode(scratch):
    for more in ([], ["--slow", scratch]):
        told = run("ode_numpy", "--steps", 400, "--memory", "3K", *more)
        assert "9600 bytes of tapes" in told and told.count("finite difference") == 3


def test_jax_ode():
    told = run("jax_ode", "--steps", 300, "--memory", "6K")
    pairs = re.findall(r"gradient ([-0-9.]+), finite difference ([-0-9.]+)", told)
    assert len(pairs) == 3 and all(abs(float(a) - float(b)) < 1e-5 for a, b in pairs)


def test_jax_spikes():
    told = run("jax_spikes", "--steps", 300, "--hidden", 16, "--batch", 8, "--updates", 12, "--memory", "64K")
    before, after = re.search(r"loss ([0-9.]+) before, ([0-9.]+) after", told).groups()
    assert float(after) < float(before) and "recomputed" in told


def test_jax_rollout():
    told = run("jax_rollout", "--steps", 200, "--rollouts", 4, "--updates", 6, "--memory", "32K")
    before, after = re.search(r"cost ([0-9.]+) before, ([0-9.]+) after", told).groups()
    assert float(after) < float(before) and "recomputed" in told


def test_jax_equinox():
    told = run("jax_equinox", "--steps", 100, "--hidden", 16, "--memory", "256K")
    assert float(told.rpartition(" ")[2]) < 1e-5


def test_pyadjoint():
    told = run("pyadjoint_diffusion", "--steps", 40, "--slots", 4, "--cells", 4)
    assert "4 checkpoints instead of 40: bit-identical" in told
