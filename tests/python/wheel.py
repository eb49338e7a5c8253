#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The package as a user installs it: from a copy of the tree without a build folder or git, a wheel is
built and installed in a fresh virtual environment; what it holds, a plan, a sweep, and pyadjoint on
its schedules. Wants the network, or an index of packages; says what it skips where there is none.
"""
import glob
import os
import shutil
import subprocess
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from harness import SOURCE, Folder, Tap  # noqa: E402

USE = """
import neap
p = neap.plan(steps=100_000, state="64K", tape="256K", memory="64M", advance=1e-3, backward=2e-3,
              slow=neap.Tier(write=2e9, read=1e9, latency=1e-4))
print(p)
assert p.verify().peak == p.peak <= 64 << 20
assert sum(a.t1 - a.t0 for a in p if a.kind == neap.BACKWARD) == 100_000
print(neap.__version__, neap.__file__)
"""


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def tree(folder):
    """The files of the project, as an archive of a release has them."""
    copy = os.path.join(folder, "tree")
    shutil.copytree(SOURCE, copy, ignore=lambda where, names: [
        name for name in names if name == ".git" or name.startswith("build")])
    return copy


class Wheel:
    """A virtual environment, and the wheel that was built in it."""

    def __init__(self, folder):
        self.folder = folder
        self.python = os.path.join(folder, "venv", "bin", "python")
        run(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
        self.clean = {name: value for name, value in os.environ.items()
                      if not name.startswith(("NEAP_", "PYTHON"))}

    def build(self):
        run(self.python, "-m", "pip", "wheel", ".", "--no-deps", "-w", self.folder, cwd=tree(self.folder),
            env=self.clean)
        self.path, = glob.glob(self.folder + "/*.whl")

    def named(self):
        name = os.path.basename(self.path)
        return None if name.startswith("neap_bptt-") and "-py3-none-linux_" in name else name

    def holds(self):
        names = zipfile.ZipFile(self.path).namelist()
        wanted = ["/neap/__init__.py", "/neap/_abi.py", "/neap/py.typed", "libneap.so"]
        missing = [end for end in wanted if not any(name.endswith(end) for name in names)]
        strange = [name for name in names if name.endswith((".c", ".h", ".a", ".pc", ".1", ".3"))]
        return f"missing {missing}, strange {strange}" if missing or strange else None

    def works(self):
        run(self.python, "-m", "pip", "install", "--no-deps", self.path, env=self.clean)
        out = run(self.python, "-c", USE, cwd=self.folder, env=self.clean)
        return None if "site-packages" in out and "* auto" in out else out

    def needs_libc_alone(self):
        library, = glob.glob(self.folder + "/venv/lib/*/site-packages/.neap*/libneap.so")
        needed = [line for line in run("readelf", "-d", library).splitlines() if "NEEDED" in line]
        wrong = [line for line in needed if not any(name in line for name in ("libc.", "libm.", "ld-linux"))]
        return str(wrong) if wrong else None


    def serves_pyadjoint(self):
        """The tests of neap.schedules, with checkpoint_schedules and pyadjoint as they are today."""
        got = subprocess.run([self.python, "-m", "pip", "install", "-q", "pytest", "numpy", "checkpoint_schedules",
                              "pyadjoint-ad"], capture_output=True, env=self.clean)
        if got.returncode != 0:
            print("# no pyadjoint to be had: skipped")
            return None
        for name in ("test_schedules.py", "test_schedule_rules.py", "test_sweep.py"):
            run(self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                os.path.join(SOURCE, "tests/python", name), cwd=self.folder, env=self.clean)
        return None


    def with_the_tool(self):
        """The files of `make wheel`: names, licences, and a `neap` that trains where nothing else of neap is."""
        out = self.folder + "/dist"
        run(sys.executable, os.path.join(SOURCE, "tools", "wheel.py"), out, env=self.clean)
        (path,), (_,) = glob.glob(out + "/*.whl"), glob.glob(out + "/neap_bptt-*.tar.gz")
        if "-py3-none-manylinux_2_" not in path:
            return path
        names = zipfile.ZipFile(path).namelist()
        grafted = [os.path.basename(name).split("-")[0].split(".")[0] for name in names if "neap_bptt.libs/" in name]
        if not {"libsndfile", "libzip"} <= set(grafted) or any("libcurl" in name or "libmpi" in name for name in names):
            return f"libraries: {grafted}"
        licences = [os.path.basename(name) for name in names if ".dist-info/licenses/" in name]
        if not {"LICENSE", "NOTICE", "SOURCES", "libsndfile1", "libhdf5-dev"} <= set(licences):
            return f"licences: {licences}"
        run(sys.executable, "-m", "venv", self.folder + "/bare")
        run(self.folder + "/bare/bin/pip", "install", "-q", "--no-index", path, env=self.clean)
        for command in (["neap"], ["python", "-m", "neap"]):
            command[0] = f"{self.folder}/bare/bin/{command[0]}"
            told = run(*command, "train", "randman:steps=100,samples=40", "--epochs", "1", "--memory", "1M", "--out",
                       f"{self.folder}/run{len(command)}", env=self.clean)
            if "epochs      1" not in told:
                return told
        return None


with Folder() as folder:
    wheel = Wheel(folder)
    here = subprocess.run([wheel.python, "-m", "pip", "download", "-q", "--no-deps", "-d", folder + "/index",
                           "meson-python"], capture_output=True, env=wheel.clean).returncode == 0
    if not here:
        print("1..0 # SKIP no meson-python to be had")
        sys.exit(0)
    with Tap() as tap:
        tap.run("pip wheel, from a bare tree", wheel.build)
        tap.run("its name says py3-none", wheel.named)
        tap.run("it holds the package and libneap, nothing else", wheel.holds)
        tap.run("installed, it plans", wheel.works)
        tap.run("its libneap needs the C library alone", wheel.needs_libc_alone)
        if os.path.exists(os.path.join(SOURCE, ".git")) and os.path.exists("/usr/bin/dpkg-query"):
            tap.run("make wheel: its neap trains, alone in a virtual environment", wheel.with_the_tool)
        else:
            tap.skip("make wheel", "no git checkout on Debian")
        tap.run("pyadjoint runs on its schedules, NumPy models in its sweeps", wheel.serves_pyadjoint)
