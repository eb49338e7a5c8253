#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Arrays written by NumPy, read by neap: every type, order and kind of archive has the same elements.
    numpy_arrays.py PRINT_NPY
"""
import os
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.environ.get("NEAP_SOURCE", "."), "tests", "cli"))
from harness import Tap, Folder, need  # noqa: E402

need("numpy")

import numpy as np  # noqa: E402

NUMBERS = ["?", "b", "B", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8",
           "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]


def show(name, array):
    """What print_npy prints of the array."""
    names = array.dtype.names or ("",)
    lines = [" ".join(["array", name, str(len(names)), *map(str, array.shape)])]
    for field in names:
        part = array[field] if field else array
        lines.append(f"field {field}")
        if part.dtype.kind in "US":
            lines += [x.decode() if isinstance(x, bytes) else x for x in part.tolist()]
        elif part.dtype.kind == "f":
            lines.append("".join(c_hex(float(x)) + " " for x in part.ravel(order="C")))
        else:
            lines.append("".join(f"{int(x)} " for x in part.ravel(order="C")))
    return lines


def c_hex(x):
    """float.hex as printf's %a writes it."""
    if x != x or x in (float("inf"), -float("inf")):
        return str(x)
    if x == 0:
        return "-0x0p+0" if str(x)[0] == "-" else "0x0p+0"
    mantissa, exponent = x.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def read(path):
    done = subprocess.run([sys.argv[1], path], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def compare(path, arrays):
    """None, or the first line that differs."""
    want = [line for name, array in arrays.items() for line in show(name, array)]
    got = read(path)
    normal = [line.replace("-nan", "nan") for line in got]
    for i, line in enumerate(want):
        if i >= len(normal) or normal[i].rstrip() != line.rstrip():
            return f"line {i}: {(normal + ['none'])[min(i, len(normal))][:120]}, NumPy has {line[:120]}"
    return None if len(normal) == len(want) else f"{len(normal)} lines, NumPy has {len(want)}"


def some(dtype, shape, rng):
    kind = np.dtype(dtype).kind
    if kind == "f":
        return (rng.standard_normal(shape) * 100).astype(dtype)
    limits = (0, 1) if kind == "b" else (np.iinfo(dtype).min, min(np.iinfo(dtype).max, 2**63 - 1))
    return rng.integers(limits[0], limits[1], shape, dtype="i8", endpoint=True).astype(dtype)


def all_arrays(rng):
    arrays = {f"n{i}": some(dtype, (7, 3), rng) for i, dtype in enumerate(NUMBERS)}
    arrays |= {f"long{i}": some(dtype, 30011, rng) for i, dtype in enumerate(("<f4", ">i2", "?"))}
    arrays["scalar"] = np.array(3.5)
    arrays["empty"] = np.zeros((4, 0, 3))
    arrays["fortran"] = np.asfortranarray(some("<f4", (5, 7, 3), rng))
    arrays["transposed"] = some("<i8", (300, 40), rng).T
    arrays["half"] = np.arange(65536, dtype="<u2").view("<f2")
    arrays["text"] = np.array(["zero", "null", "größer", "二", ""])
    arrays["bytes"] = np.array([b"one", b"", b"three"])
    record = np.zeros(501, dtype=[("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "?")])
    for name in record.dtype.names:
        record[name] = some(record.dtype[name], 501, rng)
    arrays["events"] = record
    padded = np.zeros(9, dtype=np.dtype([("p", "?"), ("t", "<f8"), ("x", ">u2")], align=True))
    padded["t"] = np.arange(9)
    arrays["padded"] = padded
    return arrays


def refusals(folder):
    """What NumPy can write and neap does not read: a name for each, and a word of the line."""
    yield "objects", np.array([1, "a", None], dtype=object), "Python objects"
    yield "complex", np.zeros(3, dtype="c16"), "'<c16'"
    yield "dates", np.zeros(3, dtype="M8[us]"), "M8[us]"
    yield "long double", np.zeros(3, dtype="g"), "'<f16'"
    yield "raw", np.zeros(3, dtype="V5"), "V5"
    yield "shape in a field", np.zeros(3, dtype=[("a", "<i2", (2,))]), "is itself an array"
    yield "record in a record", np.zeros(3, dtype=[("a", [("b", "<i2")])]), "is itself a record"
    yield "nine dimensions", np.zeros((1,) * 9), "dimensions"


def zip64(path, arrays):
    """As numpy.savez writes beyond 4 GiB: sizes and offsets in the fields of 64 bits."""
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, 10
    try:
        np.savez(path, **arrays)
    finally:
        zipfile.ZIP64_LIMIT = limit


def main():
    rng = np.random.default_rng(5)
    arrays = all_arrays(rng)
    with Tap() as tap, Folder() as folder:
        for name, array in arrays.items():
            path = os.path.join(folder, "one.npy")
            np.save(path, array)
            tap.check(f"npy: {name} {array.dtype}", compare(path, {"-": array}))
        path = os.path.join(folder, "all.npz")
        for kind, write in ("stored", np.savez), ("deflated", np.savez_compressed):
            write(path, **arrays)
            tap.check(f"npz: {kind}", compare(path, arrays))
        zip64(path, arrays)
        tap.check("npz: zip64", compare(path, arrays))
        large = {"x": np.arange(700_000) % 1000}
        np.savez_compressed(path, **large)
        tap.check("npz: unpacked beyond memory", compare(path, large))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
            archive.write(os.path.join(folder, "one.npy"), "x.npy")
        tap.check("npz: another method is named", None if "method 12" in read(path)[0] else read(path))
        for name, array, word in refusals(folder):
            path = os.path.join(folder, "one.npy")
            np.save(path, array, allow_pickle=True)
            line = (read(path) or [""])[0]
            tap.check(f"refused: {name}", None if line.startswith("refused") and word in line else line)


main()
