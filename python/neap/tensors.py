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
    """One tensor of a file: ``dtype`` (``"F32"``, ...), ``shape``, and ``data``, its bytes in row-major order,
    little-endian."""

    dtype: str
    shape: Tuple[int, ...]
    data: memoryview


def read_tensors(path: str) -> Tuple[Dict[str, str], Dict[str, Tensor]]:
    """Returns the metadata and the tensors of a safetensors file, both by name.

    :raises FormatError: if the file is malformed; the text has the reason.
    :raises OSError: if the file cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        return _parsed(data)
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}. The file is damaged or has another format: pass a .safetensors "
                          f"file, such as model.safetensors of a run, or copy it again") from None


def _parsed(data: bytes) -> Tuple[Dict[str, str], Dict[str, Tensor]]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _HEADER_MOST):
        raise FormatError(f"a header of {length} bytes is longer than the file of {len(data)} bytes, or than 100 MiB")
    try:
        header = json.loads(data[8:8 + length].decode("utf-8"))
    except (ValueError, RecursionError):
        raise FormatError("the header is not valid JSON") from None
    if not isinstance(header, dict):
        raise FormatError("the header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise FormatError("__metadata__ in the header is not an object of strings")
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
    """Parses one entry of the header; returns the begin and end of its data, and the tensor."""
    if not isinstance(entry, dict) or entry.get("dtype") not in _WIDTHS:
        raise FormatError(f"tensor {name!r}: the dtype is missing, or none of {', '.join(_WIDTHS)}")
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_count, shape)):
        raise FormatError(f"tensor {name!r}: the shape is not a list of at most 64 nonnegative integers")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise FormatError(f"tensor {name!r}: data_offsets are not two nonnegative integers")
    begin, end = offsets
    size = _WIDTHS[entry["dtype"]]
    for n in shape:
        size *= n
    if not begin <= end <= len(values):
        raise FormatError(f"tensor {name!r}: data_offsets {begin} to {end} are not within the {len(values)} bytes of "
                          f"data")
    if end - begin != size:
        raise FormatError(f"tensor {name!r}: shape and dtype need {size} bytes, but data_offsets span {end - begin}")
    return begin, end, Tensor(entry["dtype"], tuple(shape), values[begin:end])


def _check_cover(places: List[Tuple[int, int, str]], room: int) -> None:
    """Raises FormatError if the data has gaps, overlaps, or bytes at its end that belong to no tensor."""
    at = 0
    for begin, end, name in sorted(places):
        if begin != at:
            raise FormatError(f"tensor {name!r}: the data begins at byte {begin}, but the data before it ends at byte "
                              f"{at}; tensors must neither overlap nor leave gaps")
        at = end
    if at != room:
        raise FormatError(f"the tensors take {at} bytes, but {room} follow the header")
