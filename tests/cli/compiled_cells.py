#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--compile-cells: the results of the interpreter, a cache that only its user can have written, and one line for a compiler that is missing,
fails or is interrupted."""
import os
import shutil
import signal
import subprocess
import time

from harness import NEAP, SOURCE, Folder, Tap, neap, neap_json

DATA = "randman:steps=60,samples=60,units=30,classes=3"
COMPARE = ["compare", DATA, "--threads", "1", "--memory", "200K", "--strategy", "bptt", "--no-reference"]
NET = ["--net", "lif.cell:20r:scale=3,li"]
CC = shutil.which("cc")


class Compiler:
    """A folder with a program `cc` for PATH, which lists its calls in `calls`, and the user's cache directory."""

    def __init__(self, folder, name, script="exec {cc} \"$@\""):
        self.bin, self.cache = (os.path.join(folder, name, part) for part in ("bin", "cache"))
        self.calls = os.path.join(folder, name, "calls")
        self.code = os.path.join(self.cache, "neap", "code")
        os.makedirs(self.bin)
        os.makedirs(self.cache)
        if script is not None:
            path = os.path.join(self.bin, "cc")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\ncase \"$*\" in *-dM*) exec {CC} \"$@\";; esac\necho >> {self.calls}\n{script.format(cc=CC)}\n")
            os.chmod(path, 0o755)

    def env(self):
        return {"PATH": f"{self.bin}:{os.environ['PATH']}" if os.listdir(self.bin) else self.bin, "XDG_CACHE_HOME": self.cache}

    def compiled(self):
        return os.path.getsize(self.calls) if os.path.exists(self.calls) else 0

    def files(self):
        return os.listdir(self.code) if os.path.isdir(self.code) else []


def gradient(folder, cc, *more):
    done = neap_json(*COMPARE, *NET, *more, cwd=folder, env=cc.env())
    return done["runs"][-1]["grad_hash"]


def same_results(folder, cc):
    """A run that was trained with compiled cells continues without, and answers the same; it does not ask for a compiler itself."""
    train = ["--threads", "1", "--seed", "1", "--memory", "1M", "--batch", "20"]
    whole = neap_json("train", DATA, *train, *NET, "--epochs", "2", "--out", "whole", cwd=folder)["weights_hash"]
    neap_json("train", DATA, *train, *NET, "--epochs", "1", "--out", "run", "--compile-cells", cwd=folder, env=cc.env())
    calls = cc.compiled()
    shutil.rmtree(cc.code)
    resumed = neap_json("train", DATA, "--threads", "1", "--resume", "--epochs", "2", "--out", "run", cwd=folder, env=cc.env())["weights_hash"]
    if resumed != whole or cc.compiled() != calls:
        return f"{resumed}, not {whole}; {cc.compiled()} calls"
    here, there = (neap("eval", "run", DATA, *more, cwd=folder, env=cc.env()) for more in ([], ["--compile-cells"]))
    return None if calls == 1 and here.stdout == there.stdout and cc.compiled() == 2 else f"{here} {there} {calls} {cc.compiled()}"


def kept(folder, cc):
    """A net is compiled once; files that are not what was compiled are compiled again."""
    alif = Compiler(folder, "alif")
    neap_json(*COMPARE, "--net", "alif.cell:20r:scale=3,li", "--compile-cells", cwd=folder, env=alif.env())
    want = gradient(folder, cc)
    for number, spoil in enumerate((None, "same", "cut", "other", "link", "open")):
        before = cc.compiled()
        files = [os.path.join(cc.code, name) for name in cc.files()]
        for path in files:
            if spoil == "cut":
                os.truncate(path, os.path.getsize(path) // 2)
            elif spoil == "other":  # code of another text under this name
                shutil.copy(os.path.join(alif.code, alif.files()[0]), path)
            elif spoil == "link":
                os.rename(path, os.path.join(folder, "moved.so"))
                os.symlink(os.path.join(folder, "moved.so"), path)
            elif spoil == "open":
                os.chmod(path, 0o666)
        if spoil and len(files) != 1:
            return f"{files}"
        if gradient(folder, cc, "--compile-cells") != want:
            return f"{spoil}: another gradient"
        new = cc.compiled() - before
        if new != (spoil != "same"):
            return f"{spoil}, case {number}: {new} calls"
        if any(not name.endswith(".so") for name in cc.files()):
            return f"{cc.files()}"
    return None


def refused(folder, cc):
    """The command ends with one line and status 2, and leaves nothing."""
    broken = Compiler(folder, "broken", "cat > /dev/null; echo 'x.c: In function f:' >&2; echo 'x.c:7: error: no \\033memory' >&2; exit 3")
    empty = Compiler(folder, "empty", "cat > /dev/null; exit 0")
    none = Compiler(folder, "none", None)
    opened = Compiler(folder, "opened")
    os.makedirs(opened.code)
    os.chmod(opened.code, 0o777)
    linked = Compiler(folder, "linked")
    os.makedirs(os.path.join(linked.cache, "neap"))
    os.symlink(cc.code, linked.code)
    file = Compiler(folder, "file")
    with open(os.path.join(file.cache, "neap"), "w", encoding="ascii"):
        pass
    cases = [(broken, NET, "the C compiler 'cc' failed (status 3): 'x.c:7: error: no ?memory'"),
             (empty, NET, "cannot write compiled code to"),
             (none, NET, "there is no C compiler 'cc' in PATH"),
             (opened, NET, "other users can access the directory"),
             (linked, NET, "cannot use the directory"),
             (file, NET, "cannot use the directory"),
             (cc, ["--net", "lif:20,li"], "no layer of the network is a cell file")]
    if os.geteuid() == 0:
        foreign = Compiler(folder, "foreign")
        os.makedirs(foreign.code, 0o700)
        os.chown(foreign.code, 12345, 12345)
        cases.append((foreign, NET, "other users can access the directory"))
    for one, net, words in cases:
        done = neap(*COMPARE, *net, "--compile-cells", cwd=folder, env=one.env())
        if done.returncode != 2 or words not in done.stderr or len(done.stderr.splitlines()) != 1 or "--compile-cells" not in done.stderr:
            return f"{words}: {done.returncode} {done.stderr}"
        if one is not cc and not os.path.islink(one.code) and one.files():
            return f"{words}: {one.files()}"
    return None


def interrupted(folder):
    """A signal ends the compiler; its files are removed."""
    cc = Compiler(folder, "slow", "while [ \"$1\" != -o ]; do shift; done; echo begun > \"$2\"; exec sleep 60")
    for number in (signal.SIGINT, signal.SIGTERM):
        run = subprocess.Popen([NEAP, *COMPARE, *NET, "--compile-cells"], cwd=folder, env=dict(os.environ, **cc.env()), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while not cc.files() and time.monotonic() < end and run.poll() is None:
            time.sleep(0.01)
        begun = cc.files()
        run.send_signal(number)
        _, errors = run.communicate(timeout=30)
        if len(begun) != 1 or cc.files() or run.returncode == 0 or "was interrupted" not in errors:
            return f"{begun} {cc.files()} {run.returncode} {errors}"
    left = os.path.join(cc.code, "0.1.tmp")  # of a process that was killed
    for name, age in ((left, 7200), (left + ".tmp", 0)):
        with open(name, "w", encoding="ascii"):
            pass
        os.utime(name, (time.time() - age,) * 2)
    other = Compiler(folder, "after")
    neap(*COMPARE, *NET, "--compile-cells", cwd=folder, env={**other.env(), "XDG_CACHE_HOME": cc.cache})
    return None if not os.path.exists(left) and os.path.exists(left + ".tmp") else f"{cc.files()}"


def main():
    with Tap() as tap, Folder() as folder:
        if not CC:
            tap.skip("compiled cells", "no cc")
            return
        for name in ("lif", "alif"):
            shutil.copy(os.path.join(SOURCE, f"examples/cells/{name}.cell"), folder)
        tap.run("compiled cells give the results of the interpreter", same_results, folder, Compiler(folder, "first"))
        cc = Compiler(folder, "real")
        tap.run("compiled code is kept, and checked before it is used", kept, folder, cc)
        tap.run("what is wrong with a compiler or a cache is one line", refused, folder, cc)
        tap.run("an interrupt removes what the compiler wrote", interrupted, folder)


if __name__ == "__main__":
    main()
