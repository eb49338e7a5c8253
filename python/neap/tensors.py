# SPDX-License-Identifier: Apache-2.0
"""Reads files of tensors in the safetensors format, such as the models of ``neap train``.

Every length in the file is checked before it is used: the header against the file, each tensor's
bytes against its shape, and all of them against the file's end. Needs no other package.
"""
import json
import os
from typing import Dict, List, NamedTuple, Tuple

from .errors import FormatError

_WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8,
           "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
_HEADER_MOST = 100 << 20  # bytes, the format's own limit


class Tensor(NamedTuple):
    """One tensor of a file: ``dtype`` (``"F32"``, ...), ``shape``, and ``data``, its bytes in the
    order of rows, little-endian."""

    dtype: str
    shape: Tuple[int, ...]
    data: memoryview


def read_tensors(path: str) -> Tuple[Dict[str, str], Dict[str, Tensor]]:
    """The metadata and the tensors of a safetensors file, both by name.

    :raises FormatError: where the file is malformed, with what is wrong; OSError where it cannot
        be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _parsed(data)
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from None


def _parsed(data: bytes) -> Tuple[Dict[str, str], Dict[str, Tensor]]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _HEADER_MOST):
        raise FormatError(f"{len(data)} bytes are no safetensors file, or one that was cut off")
    try:
        header = json.loads(data[8:8 + length].decode("utf-8"))
    except (ValueError, RecursionError):
        raise FormatError("its header is no JSON") from None
    if not isinstance(header, dict):
        raise FormatError("its header is no object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise FormatError("its metadata is more than texts by name")
    values = memoryview(data)[8 + length:]
    tensors, places = {}, []
    for name, entry in header.items():
        begin, end, tensor = _tensor(name, entry, values)
        tensors[name] = tensor
        places.append((begin, end, name))
    _check_cover(places, len(values))
    return metadata, tensors


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _tensor(name: str, entry: object, values: memoryview) -> Tuple[int, int, Tensor]:
    """One entry of the header, and where its data stands."""
    if not isinstance(entry, dict) or entry.get("dtype") not in _WIDTHS:
        raise FormatError(f"tensor {name!r}: its type is not known")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
        raise FormatError(f"tensor {name!r}: its shape is no list of whole numbers")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise FormatError(f"tensor {name!r}: its data_offsets are not two whole numbers")
    begin, end = offsets
    size = _WIDTHS[entry["dtype"]]
    for n in shape:
        size *= n
    if not begin <= end <= len(values):
        raise FormatError(f"tensor {name!r}: its data ends at byte {end} of {len(values)}: truncated?")
    if end - begin != size:
        raise FormatError(f"tensor {name!r}: its shape takes {size} bytes, its data has {end - begin}")
    return begin, end, Tensor(entry["dtype"], tuple(shape), values[begin:end])


def _check_cover(places: List[Tuple[int, int, str]], room: int) -> None:
    """FormatError where the data has holes, overlaps, or a rest that no tensor owns."""
    at = 0
    for begin, end, name in sorted(places):
        if begin != at:
            raise FormatError(f"tensor {name!r}: {'an overlap' if begin < at else 'a hole before it'}")
        at = end
    if at != room:
        raise FormatError(f"the tensors take {at} bytes, the file has {room} behind its header")
