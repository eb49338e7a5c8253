#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Generates manual pages of section 3 from the public headers: one per function, from the comment above it,
and one per header, NAME.h.3, with its text.
    man3.py --names HEADERS         prints the names of the files
    man3.py FOLDER VERSION HEADERS  writes the files
"""
import os
import sys

sys.dont_write_bytecode = True  # the source folder may be read-only
import headers  # noqa: E402


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def prose(lines):
    """Comment lines as troff; indented lines are code."""
    out, code = [], False
    for line in lines:
        if code != line.startswith("    ") and (line or not code):
            code = line.startswith("    ")
            out += [".PP", ".nf"] if code else [".fi", ".PP"] if line else [".fi"]
        out.append(escape(line) if line else ("" if code else ".PP"))
    return out + ([".fi"] if code else [])


def page(name, version, about, header, body):
    return "\n".join([f'.TH {name.upper()} 3 "" "neap {version}" "neap manual"', ".SH NAME",
                      f"{escape(name)} \\- {escape(about)}", ".SH SYNOPSIS", ".nf",
                      f".B #include <neap/{header}>", *body, ".SH SEE ALSO"]) + "\n"


def pages(path, version):
    header = os.path.basename(path)
    text = headers.read(path)
    top, stem = headers.head(text), f"neap_{header}"
    said, names = headers.summary(top) or "the headers of neap", []
    library = "neap\\-nn" if header in ("net.h", "data.h", "peers.h", "ports.h", "train.h") else \
        "neap\\-cuda" if header == "cuda.h" else "neap"
    for kind, name, declaration, comment in headers.items(text):
        if kind != "function":
            continue
        names.append(name)
        declaration = " ".join(declaration.split())
        declaration = declaration.replace(", ", ",\n    ") if len(declaration) > 72 else declaration
        body = [".PP", *(f".B {escape(line)}" if not line.startswith(" ") else f'.BI "{escape(line)}"'
                         for line in declaration.splitlines()), ".PP",
                f"cc ... $(pkg\\-config \\-\\-cflags \\-\\-libs {library})", ".fi", ".SH DESCRIPTION",
                *prose(comment)]
        text_of = page(name, version, headers.summary(comment)[:200], header, body)
        yield f"{name}.3", f"{text_of}.BR {stem} (3),\n.BR libneap (3)\n"
    listed = [f".BR {name} (3)," for name in names]
    rest = text[text.index("*/", text.index("\n")) + 3:]
    body = [".fi", ".SH DESCRIPTION", *prose(top), ".SH THE HEADER", ".nf", *map(escape, rest.splitlines()), ".fi"]
    yield f"{stem}.3", page(stem, version, said, header, body) + "\n".join([*listed, ".BR libneap (3)"]) + "\n"


if sys.argv[1] == "--names":
    for path in sys.argv[2:]:
        print("\n".join(name for name, _ in pages(path, "")))
else:
    for path in sys.argv[3:]:
        for name, text in pages(path, sys.argv[2]):
            with open(os.path.join(sys.argv[1], name), "w") as file:
                file.write(text)
