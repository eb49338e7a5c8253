#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each public header alone, and each of its NAME_INIT macros, without warnings in every standard of C and C++
that the installed compilers have. Nothing is run: the compiler only checks.

    headers.py INCLUDE      the folder that has neap/
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

INCLUDE = os.path.abspath(sys.argv[1])
WARNINGS = ["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror"]
COMPILERS = {".c": (("gcc", "clang"), ("c99", "c11", "c17", "c2x")),
             ".cc": (("g++", "clang++"), ("c++11", "c++14", "c++17", "c++20", "c++2b"))}


def initialized(text):
    """A function for each NAME_INIT of a header, which returns the structure `name` with its initial values."""
    for macro, name in re.findall(r"^#define (NEAP_(\w+)_INIT)\b(?!\()", text, re.M):
        struct = "neap_" + name.lower()
        yield f"struct {struct} {struct}_made(void);\n" \
              f"struct {struct} {struct}_made(void)\n{{\n\tstruct {struct} made = {macro};\n\treturn made;\n}}\n"


def write_sources(folder):
    """One file for each header in C and in C++; returns the number of NAME_INIT macros."""
    macros = 0
    for header in sorted(os.listdir(os.path.join(INCLUDE, "neap"))):
        if not header.endswith(".h"):
            continue
        with open(os.path.join(INCLUDE, "neap", header), encoding="utf-8") as file:
            functions = list(initialized(file.read()))
        macros += len(functions)
        for end in COMPILERS:
            with open(os.path.join(folder, header[:-2] + end), "w", encoding="utf-8") as file:
                file.write(f"#include <neap/{header}>\n" + "".join(functions))
    return macros


def check(folder, compiler, standard, end):
    """None, or "" if the compiler does not know the standard, or its first lines about a header."""
    files = sorted(name for name in os.listdir(folder) if name.endswith(end) and name != "empty" + end)
    known = subprocess.run([compiler, "-std=" + standard, "-fsyntax-only", "empty" + end], cwd=folder, capture_output=True)
    if known.returncode != 0:
        return ""
    done = subprocess.run([compiler, "-std=" + standard, *WARNINGS, "-I", INCLUDE, *files], cwd=folder, capture_output=True,
                          text=True)
    return None if done.returncode == 0 else done.stderr[:1000]


def main():
    tests = 0
    with tempfile.TemporaryDirectory(prefix="neap-test-") as folder:
        macros = write_sources(folder)
        for end, (compilers, standards) in COMPILERS.items():
            open(os.path.join(folder, "empty" + end), "w", encoding="utf-8").close()
            for compiler in filter(shutil.which, compilers):
                for standard in standards:
                    tests += 1
                    wrong = check(folder, compiler, standard, end)
                    skipped = f" # SKIP {compiler} does not know it" if wrong == "" else ""
                    print(f"{'not ok' if wrong else 'ok'} {tests} - {compiler} {standard}{skipped}")
                    if wrong:
                        print("# " + wrong.replace("\n", "\n# "))
    tests += 1
    print(f"{'ok' if macros >= 3 else 'not ok'} {tests} - {macros} macros that initialize structures")
    print(f"1..{tests}")


main()
