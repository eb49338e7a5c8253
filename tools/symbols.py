#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The symbol maps against the public headers: src/libneap.map, src/libneap-nn.map and src/libneap-cuda.map list
the functions that the headers mark NEAP_API, each once, in order. Prints what differs and
exits 1; --write makes the maps anew.
    symbols.py [--write]
"""
import os
import re
import sys

NN = ("net.h", "data.h", "peers.h", "ports.h", "train.h")
CUDA = ("cuda.h",)
os.chdir(os.path.join(os.path.dirname(__file__), ".."))


def declared(headers):
    names = set()
    for header in headers:
        with open(os.path.join("include/neap", header)) as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
        for match in re.finditer(r"^NEAP_API\b([^;]*?)\b(neap_\w+)\s*\(", text, re.MULTILINE):
            names.add(match.group(2))
    return sorted(names)


def text_of(node, names):
    lines = "\n".join(f"\t\t{name};" for name in names)
    return (f"# The functions that the library exports: those of its public headers "
            f"(tools/symbols.py).\n{node} {{\n\tglobal:\n{lines}\n\tlocal:\n\t\t*;\n}};\n")


headers = sorted(os.listdir("include/neap"))
status = 0
for library, node, own in (
        ("libneap", "NEAP_0", [h for h in headers if h.endswith(".h") and h not in NN + CUDA]),
        ("libneap-nn", "NEAP_NN_0", NN),
        ("libneap-cuda", "NEAP_CUDA_0", CUDA)):
    path = f"src/{library}.map"
    wanted = text_of(node, declared(own))
    there = open(path).read() if os.path.exists(path) else ""
    if "--write" in sys.argv:
        with open(path, "w") as file:
            file.write(wanted)
    elif there != wanted:
        listed = set(re.findall(r"\t\t(neap_\w+);", there))
        for name in sorted(set(declared(own)) ^ listed):
            print(f"symbols: {name} is {'not in' if name not in listed else 'no function of the headers, but in'} {path}")
        print(f"symbols: {path} differs from the headers; tools/symbols.py --write makes it anew")
        status = 1
if status == 0:
    print("symbols: the maps list what the headers declare")
sys.exit(status)
