# SPDX-License-Identifier: Apache-2.0
"""Loads libneap and declares its functions.

The library is the file in ``NEAP_LIBRARY`` if that is set, else the one in this package, else an installed
``libneap.so.0``. A library that was built from other headers than the package is rejected: ``neap_abi_hash`` must
return the number in ``_abi``.
"""
import ctypes
import importlib.metadata
import os
from pathlib import Path
from typing import Any, List

from . import _abi
from .errors import exception

DISTRIBUTION = "neap-bptt"


def bundled(name: str) -> List[str]:
    """Returns the paths of an installed package's library or tool: the files that match a glob pattern."""
    site = Path(__file__).parent.parent
    found = list(site.glob(f".neap_bptt.mesonpy.libs/{name}"))
    found += site.glob(f"neap_bptt.libs/{name}")  # folder of auditwheel
    if found:
        return [str(path) for path in found]
    try:
        files = importlib.metadata.files(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [str(file.locate()) for file in files if file.match(f"*.libs/{name}")]


def _load() -> ctypes.CDLL:
    named = os.environ.get("NEAP_LIBRARY")
    packed = [path for path in bundled("libneap*.so*") if not os.path.basename(path).startswith("libneap-nn")]
    for path in [named] if named else [*packed, "libneap.so.0"]:
        try:
            library = ctypes.CDLL(path)
            answer = library.neap_abi_hash
        except (OSError, AttributeError) as error:
            if named:
                raise ImportError(f"NEAP_LIBRARY={named} cannot be loaded as libneap: {error}. Set it to the path of "
                                  f"libneap.so, or unset it") from None
            continue
        answer.restype = ctypes.c_uint64
        if answer() == _abi.HASH:
            return library
        if named:
            raise ImportError(f"NEAP_LIBRARY={named} was built from other headers than this Python package. Use a "
                              f"library and a package of the same version, or unset NEAP_LIBRARY")
    raise ImportError("no libneap of this package's version was found. Reinstall the package (pip install "
                      "--force-reinstall neap-bptt), or set NEAP_LIBRARY to the path of libneap.so")


lib = _load()
for _name, (_result, _arguments) in _abi.FUNCTIONS.items():
    _function: Any = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments


def detail() -> str:
    """Returns the line about the last failure of libneap in the calling thread."""
    return (lib.neap_detail() or b"").decode("utf-8", "replace")


def check(answer: int) -> int:
    """Returns a result of libneap unchanged, or raises the exception for its code."""
    if answer < 0:
        raise exception(answer, detail())
    return answer


def text(value: bytes) -> str:
    """Decodes a string of libneap."""
    return (value or b"").decode("utf-8", "replace")
