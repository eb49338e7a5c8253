# SPDX-License-Identifier: Apache-2.0
"""Loads libneap-nn, the library of networks, when a layer is first used.

The library is the file in ``NEAP_NN_LIBRARY`` if that is set, else the one next to the libneap of this package, else an
installed ``libneap-nn.so.0``. Wheels contain it if they were built with the command-line tool.
"""
import ctypes
import functools
import os
from typing import Any, List

from . import _abi_nn
from ._lib import bundled, lib

__all__ = ["nn"]


def _paths() -> List[str]:
    named = os.environ.get("NEAP_LIBRARY", "")
    folder, name = os.path.split(named)
    near = [os.path.join(folder, name.replace("libneap", "libneap-nn", 1))] if named else []
    return [path for path in near if os.path.exists(path)] + bundled("libneap-nn*.so*") + ["libneap-nn.so.0"]


@functools.lru_cache(maxsize=None)
def nn() -> Any:
    """Returns libneap-nn with declared functions, those of layers at least; raises ImportError if it is not installed."""
    assert lib is not None  # libneap-nn uses the libneap that is already loaded
    named, reason = os.environ.get("NEAP_NN_LIBRARY"), ""
    for path in [named] if named else _paths():
        try:
            library = ctypes.CDLL(path)
            library.neap_net_set_ports  # of all that layers call, the newest function
            for name, (result, arguments) in _abi_nn.FUNCTIONS.items():
                function = getattr(library, name, None)  # in wheels, there are no functions that read files
                if function is not None:
                    function.restype, function.argtypes = result, arguments
            return library
        except (OSError, AttributeError) as error:
            reason = reason or str(error)
    source = f"NEAP_NN_LIBRARY={named}" if named else "this installation"
    raise ImportError(f"layers of neap.torch need libneap-nn, which {source} does not provide ({reason}). Install a wheel "
                      f"with the command-line tool, or build neap with -Dnn=enabled and set NEAP_NN_LIBRARY to "
                      f"libneap-nn.so; nt.scan works without it")
