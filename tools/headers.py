#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Reads the public headers for the manual pages (man3.py) and the C reference of the site (docs/c_pages.py). As a program,
it prints every function, struct and enum that has no comment directly above it, and exits 1 if there is one.
    headers.py [FOLDER_OF_THE_PROJECT]
"""
import glob
import os
import re
import sys

# What a header declares, in the order in which it is tried. A comment that touches a declaration belongs to it.
ITEM = re.compile(r"""
    (?P<comment>/\*.*?\*/)
  | ^\#define\ (?P<macro>\w+)(?:[^\n]*\\\n)*[^\n]*
  | ^(?P<type>struct|enum)\ ?(?P<tag>\w*)\ \{(?:[^\n]*\};|.*?^\};)
  | ^(?P<opaque>struct)\ (?P<hidden>\w+);
  | ^(?P<function>NEAP_API\b).*?;
  | ^(?P<typedef>typedef)\b.*?;
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
NAME = re.compile(r"\b(neap_\w+)\s*\(")
WORK = re.compile(r"NEAP_X|NEAP_API|NEAP_\w+_H")  # macros that are no part of the interface


def comment_lines(text):
    """The lines of a comment without its marks."""
    body = re.sub(r"\A/\*|\*/\Z", "", text)
    return [re.sub(r"^\s*\* ?", "", line).rstrip() for line in body.strip().splitlines()]


def summary(lines):
    """The first sentence of a comment."""
    paragraph = " ".join(lines).split("  ")[0].strip()
    sentence = re.split(r"(?<=[a-zA-Z0-9)])[.;](?:\s|$)", paragraph)[0]
    return sentence if len(sentence) < 120 else sentence.split(": ")[0]


def head(text):
    """The lines of the comment at the top of a header, without the header's name."""
    lines = comment_lines(re.search(r"/\*.*?\*/", text.split("\n", 1)[1], re.DOTALL).group(0))
    return [re.sub(r"^\w+\.h: ", "", lines[0])] + lines[1:]


def items(text):
    """(kind, name, declaration, comment lines or None) of each declaration; ("text", None, None, lines) of a comment
    that belongs to none."""
    comment, end = None, 0
    for match in ITEM.finditer(text, text.index("*/", text.index("*/") + 2) + 2):
        touches = comment is not None and text[end:match.start()] == "\n"
        kind = next(name for name in ("comment", "macro", "type", "opaque", "function", "typedef") if match.group(name))
        declaration = match.group(0)
        if declaration.startswith("/* clang-format"):
            end = match.end()
            continue
        if kind == "macro" and WORK.fullmatch(match.group("macro")):
            continue
        own, free = (comment, None) if touches and kind != "comment" else (None, comment)
        comment, end = None, match.end()
        if free:
            yield "text", None, None, free
        if kind == "comment":
            comment = comment_lines(declaration)
            continue
        name = {"macro": match.group("macro"), "type": match.group("tag"), "opaque": match.group("hidden")}.get(kind)
        if kind in ("function", "typedef"):
            declaration = re.sub(r"^NEAP_API\s+", "", declaration)
            name = NAME.search(declaration).group(1)
        yield (match.group("type") if kind == "type" else kind), name, declaration, own


def read(path):
    with open(path) as file:
        return file.read()


if __name__ == "__main__":
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    missing = [(path, kind, name) for path in sorted(glob.glob(os.path.join(root, "include", "neap", "*.h")))
               for kind, name, _, comment in items(read(path))
               if kind in ("function", "struct", "enum") and name and not comment]
    for path, kind, name in missing:
        print(f"{os.path.relpath(path, root)}: {kind} {name} has no comment directly above it. Add one that begins with "
              "its summary")
    sys.exit(bool(missing))
