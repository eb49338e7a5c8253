#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make install` leaves, used as a stranger would: pkg-config with no module but ours,
headers that stand alone in C and C++, libraries that export their public functions only
and need nothing that they should not.
    install.py BUILD"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from harness import SOURCE, Folder, Tap  # noqa: E402

BUILD = sys.argv[1]
CC = os.environ.get("CC", "cc").split()
MAY_NEED = r"lib(c|m|pthread|xxhash|uring|asan|ubsan|tsan)\.so|ld-linux"
MAY_NEED_NN = MAY_NEED + r"|lib(neap|hdf5_serial|sndfile|samplerate|pcre2-8|z|jansson|zip|lz4|zstd)\.so"


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


class Installed:
    """The files below a staging folder, as pkg-config finds them."""

    def __init__(self, stage):
        self.stage = stage
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", stage)
        modules = glob.glob(stage + "/**/pkgconfig", recursive=True)
        assert len(modules) == 1, f"pkgconfig folders: {modules}"
        self.env = dict(os.environ, PKG_CONFIG_LIBDIR=modules[0], PKG_CONFIG_PATH="",
                        PKG_CONFIG_SYSROOT_DIR=stage)
        self.library = os.path.dirname(modules[0])

    def flags(self, *what, module="neap"):
        return run("pkg-config", *what, module, env=self.env).split()

    def compile(self, source, program, module="neap", cc=CC):
        run(*cc, "-Wall", "-Wextra", "-Werror", source, "-o", program,
            *self.flags("--cflags", "--libs", module=module), "-lm",
            f"-Wl,-rpath,{self.library}", *os.environ.get("NEAP_CFLAGS", "").split())
        return run(program)


def modules(there):
    """`--cflags --libs` with no other module on the machine."""
    flags = there.flags("--cflags", "--libs")
    return None if "-lneap" in flags else f"flags: {flags}"


def versions(there, folder):
    source = os.path.join(folder, "version.c")
    with open(source, "w") as file:
        file.write('#include <neap/neap.h>\n#include <stdio.h>\nint main(void)\n{\n'
                   '\tprintf("%s %d\\n", neap_version(), NEAP_VERSION_NUMBER);\n}\n')
    text, number = there.compile(source, os.path.join(folder, "version")).split()
    asked = there.flags("--modversion")[0]
    parts = [int(x) for x in text.split(".")]
    if text != asked or int(number) != 10000 * parts[0] + 100 * parts[1] + parts[2]:
        return f"library {text}, pkg-config {asked}, number {number}"
    return None


def documents(there):
    """The licence, how to cite, and every example, as they stand in the tree."""
    prefix = run("pkg-config", "--variable=prefix", "neap", env=there.env).strip()
    doc = os.path.join(there.stage + prefix.removeprefix(there.stage), "share/doc/neap")
    wanted = ["LICENSE", "CITATION.cff", "README.md", "CHANGELOG.md"] + [
        os.path.relpath(name, SOURCE) for kind in ("*.c", "*.sh", "*.py", "python/*.py")
        for name in glob.glob(os.path.join(SOURCE, "examples", kind))]
    for name in wanted:
        path = os.path.join(doc, name)
        if not os.path.exists(path) or open(path).read() != open(os.path.join(SOURCE, name)).read():
            return f"{path} is not {name}"
        if os.access(path, os.X_OK) != os.access(os.path.join(SOURCE, name), os.X_OK):
            return f"{path} has other permissions than {name}"
    return None


def manual(there):
    """A page of section 3 for each function that the headers declare, with its declaration."""
    pages = {os.path.basename(path): open(path).read()
             for path in glob.glob(there.stage + "/**/man/man3/*.3", recursive=True)}
    libraries = ["libneap", "libneap-cuda"] + ["libneap-nn"] * os.path.exists(os.path.join(there.library, "libneap-nn.so"))
    for library in libraries:
        for name in re.findall(r"\t\t(neap_\w+);", open(f"{SOURCE}/src/{library}.map").read()):
            text = pages.get(name + ".3", "")
            if f"{name}(" not in text or not re.search(r"^\.SH DESCRIPTION\n.*\w", text, re.MULTILINE):
                return f"{name}.3: {text[:200] or 'not there'}"
    run_page = pages["neap_sweep_run.3"]
    return None if "is borrowed and must not change" in run_page and ".BR neap_sweep.h (3)" in run_page else run_page


def example(there, folder):
    out = there.compile(os.path.join(SOURCE, "examples/01_foreign_model.c"),
                        os.path.join(folder, "model"))
    return None if out.strip() else "it printed nothing"


def exported(there, more=None):
    """The lines that `make install` ends with, in a shell that knows no neap; more: variables that it has."""
    env = {"PATH": os.environ["PATH"], "DESTDIR": there.stage, "HOME": "/", **(more or {})}
    return run("sh", os.path.join(SOURCE, "tools/installed.sh"), BUILD, env=env)


def readme_example(there, folder):
    """README's line for C, after the lines of `make install` alone; a shell that has them gets none."""
    text = open(os.path.join(SOURCE, "README.md")).read()
    commands = re.findall(r"^    (cc .*pkg-config.*)$", text, re.MULTILINE)
    assert len(commands) == 1, commands
    told = exported(there)
    lines = [line.strip() for line in told.splitlines()[1:]]
    wanted = ["PATH"] * bool(glob.glob(there.stage + "/**/bin/neap", recursive=True)) + ["PKG_CONFIG_PATH", "LD_LIBRARY_PATH"]
    names = [line.split("=")[0].removeprefix("export ") for line in lines]
    if names != wanted:
        return told
    flags = os.environ.get("NEAP_CFLAGS", "")
    script = "\n".join(["set -eu", *lines, f"cd {SOURCE}", commands[0].replace("cc ", f"{' '.join(CC)} {flags} ").replace(
        "-o model && ./model", f"-o {folder}/readme && {folder}/readme")])
    env = {"PATH": os.environ["PATH"], "PKG_CONFIG_SYSROOT_DIR": there.stage}
    out = run("sh", "-c", script, env=env)
    known = run("sh", "-c", "\n".join([*lines, "env"]), env=env)
    again = exported(there, dict(line.split("=", 1) for line in known.splitlines() if line.split("=")[0] in wanted))
    return None if "loss" in out and again == "" else f"{out}{again}"


def headers(there, folder, cc, end):
    """Each header alone, in one language."""
    if not shutil.which(cc[0]):
        return None
    where = [flag[2:] for flag in there.flags("--cflags") if flag.startswith("-I")] or \
        [os.path.join(there.stage, "usr/include")]
    found = glob.glob(where[0] + "/neap/*.h")
    assert len(found) >= 9, f"{where[0]}: {found}"
    for header in found:
        source = os.path.join(folder, "alone" + end)
        with open(source, "w") as file:
            file.write(f"#include <neap/{os.path.basename(header)}>\n")
        run(*cc, "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", where[0], "-fsyntax-only", source)
        text = open(header).read()
        assert not re.search(r"\bneap__[a-z]", text), f"{header} tells of internals"
    return None


def exports(there, library):
    path = os.path.join(there.library, library + ".so")
    there_are = set(re.findall(r" [TDBRi] (\w+)@@", run("nm", "-D", "--defined-only", path)))
    listed = set(re.findall(r"\t\t(neap_\w+);", open(f"{SOURCE}/src/{library}.map").read()))
    if there_are != listed:
        return f"exported and listed differ: {sorted(there_are ^ listed)}"
    return "neap__ is asked for" if " neap__" in run("nm", "-D", path) else None


def needs(there, library, allowed):
    text = run("readelf", "-d", os.path.join(there.library, library + ".so"))
    wrong = [name for name in re.findall(r"NEEDED.*\[(.*)\]", text) if not re.match(allowed, name)]
    return f"it needs {wrong}" if wrong else None


with Tap() as tap, Folder() as folder:
    tap.run("the maps list what the headers declare", lambda: run(
        sys.executable, os.path.join(SOURCE, "tools/symbols.py")) and None)
    there = Installed(os.path.join(folder, "stage"))
    tap.run("pkg-config with no other module", modules, there)
    tap.run("one version: header, library, pkg-config", versions, there, folder)
    tap.run("one version: citation, change log, Debian's", lambda: run(
        sys.executable, os.path.join(SOURCE, "tools/version.py")) and None)
    tap.run("licence, citation, examples", documents, there)
    tap.run("a manual page for each function", manual, there)
    tap.run("an example, as a stranger compiles it", example, there, folder)
    tap.run("README's example, by the lines that make install prints", readme_example, there, folder)
    tap.run("headers alone, in C", headers, there, folder, [*CC, "-std=c11"], ".c")
    tap.run("headers alone, in C++", headers, there, folder, ["g++"], ".cpp")
    tap.run("libneap exports its public functions only", exports, there, "libneap")
    tap.run("libneap needs nothing else", needs, there, "libneap", MAY_NEED)
    tap.run("libneap-cuda exports its public functions only", exports, there, "libneap-cuda")
    tap.run("libneap-cuda needs nothing else", needs, there, "libneap-cuda", MAY_NEED + r"|libneap\.so\.0")
    if os.path.exists(os.path.join(there.library, "libneap-nn.so")):
        tap.run("libneap-nn exports its public functions only", exports, there, "libneap-nn")
        tap.run("libneap-nn needs nothing else", needs, there, "libneap-nn", MAY_NEED_NN)
