#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The norm of the difference of the weights of two models, relative to the norm of the second one's.
    weights_error.py MODEL.safetensors DOUBLE.safetensors
"""
import array
import json
import math
import sys

TYPES = {"F32": "f", "F64": "d"}


def tensors(path):
    """The numbers of each tensor by name."""
    with open(path, "rb") as file:
        head = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {name: array.array(TYPES[about["dtype"]], data[slice(*about["data_offsets"])]) for name, about in head.items()
            if name != "__metadata__" and about["dtype"] in TYPES}


def main():
    found, exact = tensors(sys.argv[1]), tensors(sys.argv[2])
    pairs = [(a, b) for name, numbers in exact.items() for a, b in zip(found[name], numbers, strict=True)]
    print(f"error {math.sqrt(sum((a - b) ** 2 for a, b in pairs) / sum(b * b for _, b in pairs)):.3g}")


if __name__ == "__main__":
    main()
