# SPDX-License-Identifier: Apache-2.0
"""The package and its libneap: layouts are the compiler's, another library is refused, codes are
exceptions."""
import ctypes
import errno
import os
import subprocess
import sys

import pytest

import neap
from neap import _abi, errors
from neap._lib import check, lib

PRINT_ABI = os.environ.get("NEAP_PRINT_ABI", "")


def rows():
    if not PRINT_ABI:
        pytest.skip("no print_abi")
    for line in subprocess.run([PRINT_ABI], capture_output=True, text=True, check=True).stdout.splitlines():
        yield line.split(" ", 4)


def test_offsets_are_the_compilers():
    seen = 0
    for kind, name, *rest in rows():
        if kind == "struct":
            assert ctypes.sizeof(getattr(_abi, name)) == int(rest[1]), name
        elif kind == "field":
            struct, field = name.split(".")
            found = getattr(getattr(_abi, struct), field)
            assert (found.offset, found.size) == (int(rest[0]), int(rest[1])), name
            seen += 1
        elif kind == "constant":
            assert getattr(_abi, name) == int(rest[0]), name
        elif kind == "function":
            assert getattr(lib, name).argtypes == _abi.FUNCTIONS[name][1]
        else:
            assert int(name, 16) == _abi.HASH == lib.neap_abi_hash()
    assert seen > 200


def imported(**environment):
    code = "import neap; print(neap.__version__)"
    path = os.path.dirname(os.path.dirname(neap.__file__))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, **environment})


def test_another_library_is_refused(tmp_path):
    done = imported(NEAP_LIBRARY=str(tmp_path / "none.so"))
    assert done.returncode == 1 and "cannot be loaded as libneap" in done.stderr
    other = ctypes.util.find_library("c") if hasattr(ctypes, "util") else "libc.so.6"
    done = imported(NEAP_LIBRARY=other or "libc.so.6")
    assert done.returncode == 1 and "cannot be loaded as libneap" in done.stderr
    source = tmp_path / "old.c"
    source.write_text("unsigned long neap_abi_hash(void) { return 7; }\n")
    old = str(tmp_path / "old.so")
    built = subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o", old, str(source)],
                           capture_output=True)
    if built.returncode != 0:
        pytest.skip("no compiler")
    done = imported(NEAP_LIBRARY=old)
    assert done.returncode == 1 and "other headers" in done.stderr


def test_every_code_is_an_exception():
    codes = {name: value for name, value in vars(_abi).items() if name.startswith("NEAP_E") and -5100 < value < -5000}
    assert len(codes) >= 12
    for name, code in codes.items():
        found = errors.exception(code, "a line")
        assert type(found) is not errors.Error, name
        assert found.code == code and str(found) == "a line"
    assert isinstance(errors.exception(-errno.ENOENT, "x"), FileNotFoundError)
    assert isinstance(errors.exception(-errno.ENOMEM, "x"), MemoryError)
    assert errors.exception(-errno.EIO, "x").errno == errno.EIO
    assert errors.exception(-9999, "x").code == -9999
    assert isinstance(errors.exception(-errno.ETIMEDOUT, "x"), TimeoutError)


def test_the_line_is_libneaps():
    with pytest.raises(neap.UsageError, match="neap_plan_write: plan is NULL"):
        check(lib.neap_plan_write(None, None, 0, _abi.FUNCTIONS["neap_plan_write"][1][-2](), None))


def test_everything_is_documented():
    for name in neap.__all__:
        thing = getattr(neap, name)
        assert name in dir(neap)
        if isinstance(thing, type) or callable(thing):
            assert (thing.__doc__ or "").strip(), name
            for inner, member in vars(thing).items() if isinstance(thing, type) else ():
                if not inner.startswith("_") and (callable(member) or isinstance(member, property)) and \
                        getattr(member, "__module__", "neap").startswith("neap"):
                    assert (member.__doc__ or "").strip(), f"{name}.{inner}"
