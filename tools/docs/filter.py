#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A public header with its comments as Doxygen wants them: /** before what they tell of, /**< behind.
    filter.py HEADER"""
import re
import sys

with open(sys.argv[1]) as file:
    text = file.read().replace("/* SPDX-License-Identifier: Apache-2.0 */\n", "", 1)
text = re.sub(r"\A/\*\n \* \w+\.h: ", "/**\n * @file\n * ", text)


def told(match):
    """One comment; the marks of Doxygen's own language in it are plain signs."""
    before, body = match.groups()
    at_file = body.startswith("*\n * @file")
    body = re.sub(r"([\\@<>#%])", r"\\\1", body if not at_file else body[10:])
    return before + "/*" + ("*\n * @file" if at_file else "*<" if before.strip() else "*") + body + "*/"


text = re.sub(r"(?m)^([^\n]*?)/\*(.*?)\*/", told, text, flags=re.DOTALL)
print(text, end="")
