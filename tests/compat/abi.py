#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Sizes of the public structs, offsets and types of their fields, constants and functions, as a
program prints them that was built from the headers, against a table that is changed on purpose
only: a struct that grows at its end adds rows and changes its size, anything else breaks programs
and has to be meant.
    abi.py PROGRAM TABLE [--write]
"""
import difflib
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from harness import Tap  # noqa: E402

program, table = sys.argv[1:3]
text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
lines = [line for line in text.splitlines() if not line.startswith("hash ")]
with open(table) as file:
    known = file.read().splitlines()


def in_padding(before, after):
    """
    New fields that lie in what was padding at the end of their struct: programs built from the header before leave arbitrary
    bytes there, and their size includes them. A field `reserved`, which is 0, may be replaced.
    """
    size, fields, found = {}, {}, []
    for line in before:
        kind, name, offset, bytes_, _ = line.split(" ", 4)
        if kind == "struct":
            size[name] = int(bytes_)
        elif kind == "field":
            fields[name] = int(offset), int(bytes_)
    for line in after:
        kind, name, offset, bytes_, _ = line.split(" ", 4)
        struct = name.split(".")[0]
        if kind == "field" and name not in fields and not name.endswith(".reserved") and int(offset) < size.get(struct, 0) and \
                fields.get(struct + ".reserved") != (int(offset), int(bytes_)):
            found.append(line)
    return found


def padding():
    """The test of new fields, of the headers and of a struct that grew into its padding, past it, and into a reserved field."""
    found = in_padding(known, lines)
    if found:
        return f"in the padding of the header before, so insert a field `reserved`: {found}"
    old = ["struct a 0 16 -", "field a.size 0 8 uint64_t", "field a.b 8 4 int"]
    grown = in_padding(old, [*old, "field a.c 12 4 int"]), in_padding(old, [*old, "field a.c 16 4 int"]), \
        in_padding([*old, "field a.reserved 12 4 int"], [*old, "field a.c 12 4 int"])
    return None if [len(g) for g in grown] == [1, 0, 0] else str(grown)


if "--write" in sys.argv and not in_padding(known, lines):
    with open(table, "w") as file:
        file.write("\n".join(lines) + "\n")
    known = lines


def same():
    differs = [line for line in difflib.unified_diff(known, lines, table, "the headers", n=0,
                                                     lineterm="")]
    if differs:
        return "\n".join(differs[:40]) + f"\nwhere that is meant: abi.py {program} {table} --write"
    return None


def struct_of_each():
    """Fields lie within their struct, in their order."""
    size, at = {}, {}
    for line in lines:
        kind, name, offset, bytes_, _ = line.split(" ", 4)
        if kind == "struct":
            size[name] = int(bytes_)
        if kind != "field":
            continue
        struct = name.split(".")[0]
        if int(offset) < at.get(struct, 0) or int(offset) + int(bytes_) > size[struct]:
            return line
        at[struct] = int(offset) + int(bytes_)
    return None if len(size) > 20 else f"{len(size)} structs"


with Tap() as tap:
    tap.run(f"{os.path.basename(table)} is what the headers say", same)
    tap.run("no new field lies in padding", padding)
    tap.run("fields lie in their order within their struct", struct_of_each)
