#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What programs depend on in the public headers, as rows of a C table (src/base/abi.h): every
struct with its size, every field with its offset, every constant, every function. The compiler
fills in the numbers; the names and types come from the preprocessed headers.
    abi_rows.py OUT INCLUDE_FOLDER HEADER[,HEADER...] [--but HEADER] -- CC [OPTION...]
--but leaves out what that header brings as well.
"""
import os
import re
import subprocess
import sys


def preprocessed(compiler, folder, headers):
    """The text of some headers and of all that they include, comments gone, macros expanded."""
    text = "".join(f"#include <{header}>\n" for header in headers)
    done = subprocess.run([*compiler, "-E", "-P", "-I", folder, "-xc", "-"], input=text,
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"abi_rows: {done.stderr}")
    return done.stdout


def split(text, at):
    """Cuts text at a character where no bracket is open."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == at and depth == 0:
            parts.append(text[last:i])
            last = i + 1
    return [part.strip() for part in [*parts, text[last:]] if part.strip()]


def tidy(kind):
    """A type in one way of writing."""
    kind = re.sub(r"\s+", " ", kind.strip())
    return re.sub(r"\s*([*(),\[\]])\s*", r"\1", kind)


def declared(text):
    """(name, type) of one declaration without an end: `int64_t x`, `double *x[4]`, `int (*x)(...)`."""
    text = text.strip()
    match = re.match(r"^(.*?)\(\s*\*\s*(\w*)\s*\)\s*\((.*)\)$", text, re.DOTALL)
    if match:
        result, name, arguments = match.groups()
        return name, f"{tidy(result)}(*)({','.join(types(arguments))})"
    match = re.match(r"^(.*?)(\w+)\s*((?:\[[^\]]*\])*)$", text, re.DOTALL)
    if not match:
        return "", tidy(text)
    before, name, after = match.groups()
    if not before.strip():
        return "", tidy(name)
    if name in ("char", "int", "double", "void", "float", "long", "unsigned", "const"):
        return "", tidy(text)
    return name, tidy(before) + tidy(after)


def types(arguments):
    """The types of a list of arguments; an array is passed as a pointer."""
    found = [declared(argument)[1] for argument in split(arguments, ",")]
    found = [re.sub(r"\[[^\]]*\]$", "*", kind) for kind in found]
    return [] if found == ["void"] else found


def fields(body):
    """(name, type) of each field of a struct."""
    for statement in split(body, ";"):
        first, *others = split(statement, ",")
        name, kind = declared(first)
        yield name, kind
        base = re.match(r"^((?:const )?(?:(?:struct|enum) )?\w+)", kind).group(1)
        for other in others:
            yield declared(f"{base} {other}")


def body_at(text, start):
    """What stands between the brace at start and the one that closes it."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return text[start + 1:i]
    sys.exit("abi_rows: a brace is not closed")


def structs(text):
    for match in re.finditer(r"\bstruct (neap_\w+)\s*\{", text):
        yield match.group(1), list(fields(body_at(text, match.end() - 1)))


def constants(text, folder, headers):
    """Names of enum constants, and of macros that are numbers, but the version."""
    for match in re.finditer(r"\benum (?:neap_\w+)?\s*\{", text):
        for constant in split(body_at(text, match.end() - 1), ","):
            yield constant.split("=")[0].strip()
    for header in headers:
        with open(os.path.join(folder, header)) as file:
            for match in re.finditer(r"^#define (NEAP_\w+) +(\(?-?[\w. ()<*+-]+\)?)",
                                     file.read(), re.MULTILINE):
                if match.group(1) != "NEAP_VERSION_NUMBER" and \
                        re.match(r"^\(?-?(\d|UINT64_MAX)", match.group(2)):
                    yield match.group(1)


def functions(text):
    api = r'__attribute__\(\(visibility\("default"\)\)\)'
    for match in re.finditer(api + r"\s*([^;]*?)\b(neap_\w+)\s*\(", text):
        arguments = text[match.end():text.index(";", match.end())].rstrip()
        yield match.group(2), f"{tidy(match.group(1))}({','.join(types(arguments[:-1]))})"


def rows(text, folder, headers):
    for name, inside in structs(text):
        yield ("struct", name), f'{{"struct", "{name}", "-", 0, sizeof(struct {name})}},'
        for field, kind in inside:
            at = f"struct {name}, {field}"
            yield ("field", f"{name}.{field}"), (
                f'{{"field", "{name}.{field}", "{kind}", offsetof({at}), '
                f"sizeof(((struct {name} *)0)->{field})}},")
    for name in constants(text, folder, headers):
        yield ("constant", name), f'{{"constant", "{name}", "-", (int64_t)({name}), 0}},'
    for name, kind in functions(text):
        yield ("function", name), f'{{"function", "{name}", "{kind}", 0, 0}},'


def included(folder, header, seen):
    """The public headers that a header includes, itself too."""
    if header in seen:
        return seen
    seen.append(header)
    with open(os.path.join(folder, header)) as file:
        for name in re.findall(r"^#include <(neap/\w+\.h)>", file.read(), re.MULTILINE):
            included(folder, name, seen)
    return seen


def all_rows(compiler, folder, headers):
    reached = []
    for header in headers:
        included(folder, header, reached)
    return dict(rows(preprocessed(compiler, folder, headers), folder, reached))


def main():
    end = sys.argv.index("--")
    out, folder, headers, *but = sys.argv[1:end]
    compiler, headers = sys.argv[end + 1:], headers.split(",")
    table = all_rows(compiler, folder, headers)
    without = all_rows(compiler, folder, but[1:]) if but else {}
    with open(out, "w") as file:
        file.write("/* Made by tools/abi_rows.py from the public headers. */\n")
        file.write("".join(f"#include <{header}>\n" for header in headers))
        file.write("#include <stddef.h>\n\n#define ABI_ROWS \\\n")
        file.write(" \\\n".join(f"\t{row}" for key, row in table.items() if key not in without))
        file.write("\n")


main()
