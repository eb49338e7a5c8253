# SPDX-License-Identifier: Apache-2.0
"""What autograd keeps of a graph, in bytes, and which tensors a graph reaches.

A tape's bytes are the distinct storages that its graph saves, each whole, since a view keeps its
base, without those of parameters, buffers and inputs, which are there anyway.
"""
import contextlib
import threading
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

import torch

from ..player import Outgrown

_open = threading.local()  # .counters: the Counters of records that are under way, in this thread


if hasattr(torch.Tensor, "untyped_storage"):
    def _storage(tensor: torch.Tensor) -> Any:
        return tensor.untyped_storage()
else:  # before PyTorch 2.0
    def _storage(tensor: torch.Tensor) -> Any:
        return tensor.storage()


def address(tensor: torch.Tensor) -> Tuple[int, int]:
    """Address and bytes of a tensor's storage."""
    storage = _storage(tensor)
    return storage.data_ptr(), storage.nbytes()


def addresses(tensors: Iterable[torch.Tensor]) -> Set[int]:
    """Addresses of the storages of tensors."""
    return {_storage(tensor).data_ptr() for tensor in tensors}


class Counter:
    """Counts the bytes that graphs save while it is the one on top; ``limit``: Outgrown beyond.

    ``with counter:`` graphs that are made inside are counted; hooks from outside do not see them.
    """

    def __init__(self, excluded: Set[int], limit: Optional[int] = None):
        self.excluded, self.limit = excluded, limit
        self.seen: Dict[int, int] = {}
        self.total = 0
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self.add, _same)

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        """Counts a tensor's storage, once. What it returns may go into the graph that the tensor
        is the end of, without a cycle."""
        storage = _storage(tensor)
        at = storage.data_ptr()
        if at not in self.excluded:
            size, before = storage.nbytes(), self.seen.get(at, 0)
            if size > before:
                self.seen[at] = size
                self.more(size - before)
        return tensor.detach()

    def charge(self, size: int) -> None:
        """Counts what a scan inside the step holds."""
        self.more(size)

    def more(self, size: int) -> None:
        """Counts so many bytes."""
        self.total += size
        if self.limit is not None and self.total > self.limit:
            raise Outgrown(self.total)

    @property
    def outgrown(self) -> bool:
        """True where the limit was passed."""
        return self.limit is not None and self.total > self.limit

    def __enter__(self) -> "Counter":
        _open.__dict__.setdefault("counters", []).append(self)
        self._hooks.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._hooks.__exit__(kind, error, trace)
        _open.counters.pop()
        if self.outgrown and isinstance(error, Exception):
            raise Outgrown(self.total) from None  # before PyTorch 2.0 it comes as a RuntimeError


def hooked() -> bool:
    """True where hooks from outside may see what graphs save (before PyTorch 2.5: always)."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is None or top(True) is not None


class Uncounted(Counter):
    """Knows the bytes already, and does not look."""

    def __init__(self, total: int):
        self.total, self.limit = total, None

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def more(self, size: int) -> None:
        pass

    def __enter__(self) -> "Counter":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@contextlib.contextmanager
def charged_to(counter: Any) -> Iterator[None]:
    """Bytes of scans that run inside go to ``counter.charge(size)``."""
    counters = _open.__dict__.setdefault("counters", [])
    counters.append(counter)
    try:
        yield
    finally:
        counters.pop()


def charge(size: int) -> None:
    """Counts what a scan inside a step holds as tape of the scan around it."""
    counters = getattr(_open, "counters", None)
    if counters:
        counters[-1].charge(size)


def mark() -> int:
    """The place of the next node in autograd's order; 0 before PyTorch 2.1, which does not tell."""
    with torch.enable_grad():
        node = torch.zeros((), requires_grad=True).view(())
    return getattr(node.grad_fn, "_sequence_nr", lambda: 0)()


def captured(roots: Iterable[torch.Tensor], known: Iterable[torch.Tensor],
             begin: int) -> Tuple[List[torch.Tensor], List[Any]]:
    """What the graph of ``roots``, made since the mark ``begin``, reaches outside itself.

    Returns leaves that need a gradient and are not among ``known``, in the order found, and nodes
    that were there before.
    """
    given = list(known)
    leaves = {id(tensor) for tensor in given}
    ends = {tensor.grad_fn for tensor in given if tensor.grad_fn is not None}
    found: List[torch.Tensor] = []
    foreign: List[Any] = []
    stack = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if node in ends:
            continue
        variable = getattr(node, "variable", None)
        if variable is not None:
            if id(variable) not in leaves:
                leaves.add(id(variable))
                found.append(variable)
            continue
        if getattr(node, "_sequence_nr", lambda: begin)() < begin:
            foreign.append(node)
            continue
        for follower, _ in node.next_functions:
            if follower is not None and follower not in seen:
                seen.add(follower)
                stack.append(follower)
    return found, foreign
