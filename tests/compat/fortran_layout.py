#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the types of the Fortran module with the table of sizes and offsets of the headers.

    fortran_layout.py NEAP.F90 ABI.TXT
"""
import re
import sys

SIZES = {"integer(c_int64_t)": 8, "integer(c_size_t)": 8, "integer(c_int)": 4, "integer(c_int32_t)": 4, "real(c_double)": 8,
         "type(c_ptr)": 8, "type(c_funptr)": 8}
TABLE_KINDS = {"real(c_double)": "double", "type(c_funptr)": "(*)", "type(c_ptr)": "*"}


def components(text):
    """(type, component, offset, size, kind) of each component of each interoperable type, in order."""
    sizes = dict(SIZES)
    for name, body in re.findall(r"^  type, bind\(c\), public :: (\w+)\n(.*?)^  end type", text, re.M | re.S):
        at = 0
        for kind, names in re.findall(r"^    (\S+) :: (.*)$", body, re.M):
            for component, count in re.findall(r"(\w+)(?:\((\d+)\))?(?: = \w+)?(?:, |$)", names):
                align = min(sizes[kind], 8)
                at += -at % align
                yield name, component, at, sizes[kind] * int(count or 1), kind
                at += sizes[kind] * int(count or 1)
        sizes[f"type({name})"] = at + -at % 8


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = list(components(file.read()))
    names = {row[0] for row in found}
    wanted = []
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            words = line.split(None, 4)
            if words and words[0] == "field" and words[1].split(".")[0] in names:
                wanted.append((*words[1].split("."), int(words[2]), int(words[3]), words[4].strip()))
    wrong = [f"{a} is not {b}" for a, b in zip(found, wanted)
             if a[:4] != b[:4] or TABLE_KINDS.get(a[4], "") not in b[4]]
    if [row[:2] for row in found] != [row[:2] for row in wanted]:
        wrong.append(f"{len(found)} components in the module, {len(wanted)} fields in the headers")
    print(f"{'not ok' if wrong or not found else 'ok'} 1 - {len(found)} components of {len(names)} types")
    print("".join(f"# {line}\n" for line in wrong[:20]) + "1..1")


main()
