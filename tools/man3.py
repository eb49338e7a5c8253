#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Generates manual pages of section 3 from the public headers: one per function, from the comment above it,
and one per header, NAME.h.3, with its text. Functions without a blank line between them share a comment; a
function without a comment gets the comment of the header.
    man3.py --names HEADERS         prints the names of the files
    man3.py FOLDER VERSION HEADERS  writes the files
"""
import os
import re
import sys

FUNCTION = re.compile(r"^NEAP_API\b.*?;", re.MULTILINE | re.DOTALL)


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def comment_lines(text):
    """The lines of a comment without its marks."""
    body = re.sub(r"\A/\*|\*/\Z", "", text)
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in body.strip().splitlines()]


def prose(lines):
    """Comment lines as troff; indented lines are code."""
    out, code = [], False
    for line in lines:
        if code != line.startswith("    ") and (line or not code):
            code = line.startswith("    ")
            out += [".PP", ".nf"] if code else [".fi", ".PP"] if line else [".fi"]
        out.append(escape(line) if line else ("" if code else ".PP"))
    return out + ([".fi"] if code else [])


def first_sentence(lines):
    paragraph = " ".join(lines).split("  ")[0].strip()
    return re.split(r"(?<=[a-z0-9)])[.:;](?:\s|$)", paragraph)[0] if paragraph else ""


def functions(text):
    """(name, declaration, comment or None) of each function of a header."""
    comment, end = None, 0
    for match in FUNCTION.finditer(text):
        between = text[end:match.start()]
        above = re.findall(r"/\*.*?\*/", between, re.DOTALL)
        if above and re.search(r"\*/\n\Z", between):
            comment = comment_lines(above[-1])
        elif not re.fullmatch(r"[^\n]*\n", between):
            comment = None
        end = match.end()
        declaration = re.sub(r"^NEAP_API\s+", "", match.group(0))
        name = re.search(r"\b(neap_\w+)\s*\(", declaration).group(1)
        yield name, " ".join(declaration.split()), comment


def head(text):
    comment = re.search(r"/\*.*?\*/", text.split("\n", 1)[1], re.DOTALL).group(0)
    lines = comment_lines(comment)
    return [re.sub(r"^\w+\.h: ", "", lines[0])] + lines[1:]


def page(name, version, about, header, body):
    return "\n".join([f'.TH {name.upper()} 3 "" "neap {version}" "neap manual"', ".SH NAME",
                      f"{escape(name)} \\- {escape(about)}", ".SH SYNOPSIS", ".nf",
                      f".B #include <neap/{header}>", *body, ".SH SEE ALSO"]) + "\n"


def pages(path, version):
    header = os.path.basename(path)
    with open(path) as file:
        text = file.read()
    top, stem = head(text), f"neap_{header}"
    said, names = first_sentence(top) or "the headers of neap", []
    library = "neap\\-nn" if header in ("net.h", "data.h", "peers.h", "train.h") else "neap"
    for name, declaration, comment in functions(text):
        names.append(name)
        declaration = declaration.replace(", ", ",\n    ") if len(declaration) > 72 else declaration
        body = [".PP", *(f".B {escape(line)}" if not line.startswith(" ") else f'.BI "{escape(line)}"'
                         for line in declaration.splitlines()), ".PP",
                f"cc ... $(pkg\\-config \\-\\-cflags \\-\\-libs {library})", ".fi", ".SH DESCRIPTION",
                *prose(comment or [f"See neap_{header}(3)."])]
        about = first_sentence(comment) if comment else said
        yield f"{name}.3", page(name, version, about[:200], header, body) + f".BR {stem} (3),\n.BR libneap (3)\n"
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
