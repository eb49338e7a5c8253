#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Makes neap/_abi.py, the structs, constants and functions of libneap's headers for ctypes, of what
print_abi says, a program that was compiled against them. Every size and offset that ctypes comes
to is compared with the compiler's before the file is written.
    make_abi.py PRINT_ABI OUT
"""
import re
import subprocess
import sys

SCALARS = {"char": "c_char", "int": "c_int", "double": "c_double", "size_t": "c_size_t",
           "uint8_t": "c_uint8", "uint16_t": "c_uint16", "uint32_t": "c_uint32",
           "uint64_t": "c_uint64", "int32_t": "c_int32", "int64_t": "c_int64"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The structs, constants and functions of libneap's headers, for ctypes. Made by make_abi.py."""
import ctypes as C

'''


def arguments(text):
    """Cuts a list of types at its outer commas."""
    found, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            found.append(text[last:i])
            last = i + 1
    return [part for part in [*found, text[last:]] if part]


class Types:
    """Types of C as expressions of ctypes."""

    def __init__(self, structs):
        self.structs = structs

    def size(self, name):
        if name.startswith("enum "):
            return 4
        if name.startswith("struct "):
            return self.structs[name[7:]]
        return {"char": 1, "int": 4, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "int32_t": 4}.get(name, 8)

    def base(self, name):
        if name.startswith("enum "):
            return "C.c_int"
        if name.startswith("struct "):
            return name[7:] if name[7:] in self.structs else None
        return f"C.{SCALARS[name]}" if name in SCALARS else None

    def pointer(self, name, stars, callback):
        inside = self.base(name)
        if name == "char" and stars == 1:  # of callbacks: text that a length goes with
            return "C.c_void_p" if callback else "C.c_char_p"
        if name == "void" or inside is None:
            stars -= 1
            inside = "C.c_void_p"
        for _ in range(stars):
            inside = f"C.POINTER({inside})"
        return inside

    def function(self, result, inside):
        kinds = [self.of(kind, callback=True) for kind in arguments(inside)]
        return f"C.CFUNCTYPE({', '.join([self.of(result), *kinds])})"

    def of(self, kind, size=0, callback=False):
        """`size`: bytes of a field, which an array needs."""
        match = re.match(r"^(.*?)\(\*\)\((.*)\)$", kind)
        if match:
            return self.function(*match.groups())
        if kind == "void":
            return "None"
        match = re.match(r"^(.*)\[.*\]$", kind)
        if match:
            name = match.group(1)
            return f"{self.base(name)} * {size // self.size(name)}"
        kind = kind.replace("*const", "*").replace("const ", "")
        name, stars = kind.rstrip("*"), kind.count("*")
        return self.pointer(name, stars, callback) if stars else self.base(name)


def source(rows, number):
    structs = {name: size for kind, name, _, size, _ in rows if kind == "struct"}
    types = Types(structs)
    text = HEAD if number else HEAD.replace("libneap's headers", "headers of libneap-nn")
    text += f"HASH = 0x{number}\n\n" if number else ""
    text += "".join(f"\nclass {name}(C.Structure):\n    pass\n\n" for name in structs)
    for struct in structs:
        text += f"\n{struct}._fields_ = [\n"
        for kind, name, _, size, of in rows:
            if kind == "field" and name.split(".")[0] == struct:
                text += f'    ("{name.split(".")[1]}", {types.of(of, size)}),\n'
        text += "]\n"
    text += "\n" + "".join(f"{name} = {value}\n" for kind, name, value, _, _ in rows
                           if kind == "constant")
    text += "\n# name: (what it returns, its arguments)\nFUNCTIONS = {\n"
    for kind, name, _, _, of in rows:
        if kind == "function":
            result, inside = of.split("(", 1)
            kinds = ", ".join(types.of(argument) for argument in arguments(inside[:-1]))
            text += f'    "{name}": ({types.of(result)}, [{kinds}]),\n'
    return text + "}\n"


def differences(text, rows):
    """Where ctypes lays a struct out in another way than the compiler."""
    there = {}
    exec(compile(text, "_abi.py", "exec"), there)  # pylint: disable=exec-used
    size = there["C"].sizeof
    for kind, name, at, bytes_, _ in rows:
        if kind == "struct" and size(there[name]) != bytes_:
            yield f"{name}: {size(there[name])} bytes, the compiler says {bytes_}"
        if kind == "field":
            field = getattr(there[name.split(".")[0]], name.split(".")[1])
            if (field.offset, field.size) != (at, bytes_):
                yield f"{name}: {field.size} at {field.offset}, the compiler says {bytes_} at {at}"


def main():
    lines = subprocess.run([sys.argv[1]], capture_output=True, text=True, check=True).stdout.split("\n")
    rows = []
    for line in lines:
        if line and not line.startswith("hash "):
            kind, name, at, size, of = line.split(" ", 4)
            rows.append((kind, name, int(at), int(size), of))
    number = next((line.split()[1] for line in lines if line.startswith("hash ")), "")
    text = source(rows, number)
    wrong = list(differences(text, rows))
    if wrong:
        sys.exit("make_abi: " + "\n".join(wrong))
    with open(sys.argv[2], "w") as file:
        file.write(text)


main()
