# SPDX-License-Identifier: Apache-2.0
"""The bytes that autograd keeps for a graph, and the tensors that a graph reaches.

The bytes of a tape are the distinct storages that its graph saves, each in full, because a view keeps its base,
without those of parameters, buffers and inputs, which exist anyway; and the graph itself: nodes, and Python objects of
tensors (``GRAPH``). On an accelerator the graph is in other memory, the CPU's, and storages are rounded as by the
allocator of the device (``Memory``).
"""
import functools
import itertools
import threading
import types
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ..player import Outgrown
from .layouts import composed, parts

_MOST = 1000  # most parts of an object that are searched for tensors; chosen: more would take milliseconds
_OWN = __name__.rpartition(".")[0]
_ELSEWHERE = (type, types.ModuleType, types.FunctionType, types.MethodType, torch.nn.Module)  # not part of a graph
_open = threading.local()  # .counters: Counters of the records in progress in this thread


class Graph(NamedTuple):
    """Bytes of resident memory that a graph takes in addition to the storages that it saves."""

    node: int  # a node, with the tensor that its operation returned
    saved: int  # a saved tensor: its handle, and a tensor object without the history
    end: int  # a tensor of a state or an input at the beginning or end of a graph
    tape: int  # a graph as a whole
    tensor: int  # a tensor of a stored state: its objects, and rounding by the allocator
    state: int  # a state as a whole


# Measured by bench/peers/graph_bytes.py for 8 kinds of steps, with PyTorch 1.13 and 2.15, under glibc and jemalloc:
# resident memory of 60 MB of graphs and of states. Modelled bytes are 0.98 to 1.76 times the measured ones of graphs,
# 1.00 to 2.07 times those of states: an underestimate would exceed the budget, an overestimate costs recomputation.
GRAPH = Graph(node=1400, saved=450, end=1500, tape=1500, tensor=350, state=300)


class Memory(NamedTuple):
    """The memory that a budget is for: ``unit``: the bytes that its allocator rounds the size of a storage up to a
    multiple of; ``graphs``: True if it also contains the nodes of graphs and the objects of tensors."""

    unit: int = 1
    graphs: bool = True

    def rounded(self, nbytes: int) -> int:
        """Returns the bytes that a storage of ``nbytes`` takes."""
        return nbytes if self.unit == 1 else -(-nbytes // self.unit) * self.unit


CPU = Memory()
ACCELERATOR = Memory(512, False)  # blocks of PyTorch's CUDA caching allocator (kMinBlockSize)


if hasattr(torch.Tensor, "untyped_storage"):
    def _storage(tensor: torch.Tensor) -> Any:
        return tensor.untyped_storage()
else:  # before PyTorch 2.0
    def _storage(tensor: torch.Tensor) -> Any:
        return tensor.storage()


def address(tensor: torch.Tensor) -> Tuple[int, int]:
    """Returns the address and bytes of a tensor's storage."""
    storage = _storage(tensor)
    return storage.data_ptr(), storage.nbytes()


def addresses(tensors: Iterable[torch.Tensor]) -> Set[int]:
    """Returns the addresses of the storages of tensors."""
    return {_storage(part).data_ptr() for tensor in tensors for part in parts(tensor)}


class Counter:
    """Counts the bytes that graphs save while it is the innermost counter; raises Outgrown beyond ``limit``.

    ``with counter:`` counts graphs that are recorded inside; hooks from outside do not see them. Data of a graph that
    was dropped in the meantime is no longer counted: ``spare`` bytes are known to be dropped, and may exceed the limit
    temporarily.
    """

    counts = True
    nodes: Optional[int] = None  # required number of nodes; None: any number

    def __init__(self, excluded: Set[int], limit: Optional[int] = None, spare: int = 0, memory: Memory = CPU):
        self.excluded, self.limit, self.spare, self.memory = excluded, limit, spare, memory
        self.seen: Dict[int, List[int]] = {}  # by address of a storage: its bytes, and number of users
        self.total = self.most = 0
        self.visited = self.packs = 0  # nodes of the graph, and tensors that it saved
        self.outgrown = 0  # bytes at which the limit was exceeded
        self._hooks: Any = None

    def begin(self, tensors: Iterable[torch.Tensor]) -> None:
        """Counts the tensors at the beginning of a graph."""
        for tensor in tensors:
            self.add(tensor.detach())

    def pack(self, tensor: torch.Tensor) -> Any:
        """Returns the object that a graph stores instead of a saved tensor. The tensor is detached, because a graph
        that references its own end would never be freed."""
        self.packs += 1
        return Saved(tensor.detach(), self, self.add(tensor))

    @staticmethod
    def unpack(held: Any) -> torch.Tensor:
        """Returns the tensor of an object of ``pack``; raises RuntimeError if it was changed since, as autograd does.
        """
        tensor = held.tensor
        if tensor._version != held.version:
            raise RuntimeError(f"one of the variables needed for gradient computation has been modified by an inplace "
                               f"operation: a tensor of shape {tuple(tensor.shape)} is at version {tensor._version}; "
                               f"expected version {held.version}. Use an out-of-place operation, or modify a clone")
        return tensor

    def add(self, tensor: torch.Tensor) -> Any:
        """Counts a tensor's storage, once, and adds a user. Returns its address, or None if it is excluded; for a
        sparse tensor a tuple of addresses."""
        if composed(tensor):
            return tuple([at for at in map(self.add, parts(tensor)) if at is not None]) or None
        try:
            storage = _storage(tensor)
            at = storage.data_ptr()
        except (RuntimeError, NotImplementedError):  # NotImplementedError before PyTorch 2
            if tensor._is_zerotensor():
                return None  # zeros of forward-mode AD, which have no memory
            raise
        return None if at in self.excluded else self.stored(self.key(storage, at), storage.nbytes())

    def key(self, storage: Any, at: int) -> int:
        """Returns an identifier of this storage."""
        return at

    def stored(self, at: int, size: int) -> int:
        """Counts ``size`` bytes at an address, once, and adds a user. Returns the address."""
        entry = self.seen.setdefault(at, [0, 0])
        entry[1] += 1
        if size > entry[0]:
            more, entry[0] = self.memory.rounded(size) - self.memory.rounded(entry[0]), size
            self.more(more)
        return at

    def drop(self, at: Any) -> None:
        """Removes a user of a storage; without users it is no longer counted."""
        if isinstance(at, tuple):
            for one in at:
                self.drop(one)
            return
        entry = self.seen[at]
        entry[1] -= 1
        if entry[1] == 0:
            self.total -= self.memory.rounded(entry[0])
            del self.seen[at]

    def visit(self, node: Any) -> None:
        """Counts a node of the graph, and tensors in the attributes of a Function in Python."""
        self.visited += 1
        if isinstance(node, _FUNCTION) and not node._forward_cls.__module__.startswith(_OWN):
            self.keep(vars(node))

    def graph(self, ends: int) -> int:
        """Counts the graph itself, whose nodes were all visited; returns its bytes. ``ends``: the number of tensors at
        its beginning and end."""
        if not self.memory.graphs:
            return 0
        nbytes = GRAPH.node * self.visited + GRAPH.saved * self.packs + GRAPH.end * ends + GRAPH.tape
        self.more(nbytes)
        return nbytes

    def keep(self, item: Any, depth: int = 3) -> List[Any]:
        """Counts the contents of a Python object: tensors and arrays, in containers and attributes. Returns their
        addresses."""
        if isinstance(item, torch.Tensor):
            at = self.add(item.detach())
            return [] if at is None else [at]
        if isinstance(item, (bytes, bytearray)):
            return [self.stored(id(item), len(item))]
        if hasattr(item, "__array_interface__"):
            return [self.stored(item.__array_interface__["data"][0], item.nbytes)]
        parts = item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple, set)) else ()
        if depth and not isinstance(item, _ELSEWHERE):
            parts = parts or getattr(item, "__dict__", {}).values()
        return [at for part in itertools.islice(parts, _MOST) for at in self.keep(part, depth - 1)] if depth else []

    def charge(self, size: int) -> None:
        """Counts the bytes of a scan inside the step."""
        self.more(size)

    def more(self, size: int) -> None:
        """Counts ``size`` bytes."""
        self.total += size
        self.most = max(self.most, self.total)
        if self.limit is not None and self.total > self.limit + self.spare:
            self.outgrown = max(self.outgrown, self.total - self.spare)
            raise Outgrown(self.outgrown)

    def settle(self) -> None:
        """Raises Outgrown if the complete graph exceeds the limit, or exceeded it and the step caught the exception.
        Otherwise increases ``spare`` to the bytes that this graph dropped."""
        if self.limit is not None and self.total > self.limit:
            self.outgrown = max(self.outgrown, self.total)
        if self.outgrown:
            raise Outgrown(self.outgrown)
        self.spare = max(self.spare, self.most - self.total)

    def __enter__(self) -> "Counter":
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
        _enter(self._hooks)
        _watch(1)
        _open.__dict__.setdefault("counters", []).append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._hooks.__exit__(kind, error, trace)
        self._hooks = None  # which referenced this counter
        _watch(-1)
        _open.counters.pop()
        if self.outgrown and isinstance(error, Exception):
            raise Outgrown(self.outgrown) from None  # before PyTorch 2.0 it is raised as a RuntimeError


class Saved:
    """A tensor in a graph, its version, and the counter that counts it; ``at`` None: not counted."""

    __slots__ = ("tensor", "version", "counter", "at")

    def __init__(self, tensor: torch.Tensor, counter: Counter, at: Optional[int]):
        self.tensor, self.version, self.counter, self.at = tensor, tensor._version, counter, at

    def __del__(self) -> None:
        if self.at is not None:
            self.counter.drop(self.at)
            self.counter.packs -= 1


class _Packed:
    """The result of a step's own hook for a tensor, and the addresses of its contents."""

    __slots__ = ("held", "counter", "at")

    def __init__(self, held: Any, counter: Counter):
        self.held, self.counter, self.at = held, counter, counter.keep(held)
        counter.packs += 1

    def __del__(self) -> None:
        for at in self.at:
            self.counter.drop(at)
        self.counter.packs -= 1


_HOOKS = torch.autograd.graph.saved_tensors_hooks
_enter = _HOOKS.__enter__
_lock = threading.Lock()
_watching = 0  # number of open counters in all threads


def _watch(more: int) -> None:
    """While counters are open, replaces the method that enters hooks for saved tensors (``_entered``)."""
    global _watching
    with _lock:
        _watching += more
        _HOOKS.__enter__ = _entered if _watching else _enter  # type: ignore[method-assign]


def _entered(hooks: Any) -> Any:
    """Enters hooks for saved tensors. Hooks that a step enters replace those of its Counter, so in a record their
    results are counted. In other threads, hooks are entered unchanged."""
    counters = getattr(_open, "counters", None)
    if not counters:
        return _enter(hooks)
    pack, unpack, counter = hooks.pack_hook, hooks.unpack_hook, counters[-1]
    hooks.pack_hook, hooks.unpack_hook = lambda x: _Packed(pack(x), counter), lambda packed: unpack(packed.held)
    try:
        return _enter(hooks)
    finally:
        hooks.pack_hook, hooks.unpack_hook = pack, unpack


def hooked() -> bool:
    """True if hooks from outside may see what graphs save (before PyTorch 2.5: always)."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is None or top(True) is not None


def objects(memory: Memory, tensors: int, state: bool = False) -> int:
    """Returns the bytes of the objects of ``tensors`` stored tensors, and of the state that contains them."""
    if not memory.graphs:
        return 0
    return GRAPH.tensor * tensors + (GRAPH.state if state else 0)


class Uncounted(Counter):
    """A counter with a known number of bytes, for a graph of ``nodes`` nodes (None: any number); counts nothing."""

    counts = False

    def __init__(self, total: int, nodes: Optional[int] = None):
        self.total, self.nodes = total, nodes

    def begin(self, tensors: Iterable[torch.Tensor]) -> None:
        pass

    def graph(self, ends: int) -> int:
        return 0

    def more(self, size: int) -> None:
        pass

    def settle(self) -> None:
        pass

    def __enter__(self) -> "Counter":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass


class Samples:
    """Selects the groups of steps whose saved tensors are counted, because counting one saved tensor takes about as
    long as the smallest operation.

    Groups are of one kind if they have the same number of steps and states of the same shapes. After two groups of a
    kind with equal numbers of bytes and of nodes, one in EVERY is counted, and every group with a different number of
    nodes. After two that differ, EVERY consecutive equal ones are required first. Not detected are up to EVERY - 1
    groups that save more bytes with the same number of nodes, after equal groups.
    """

    EVERY = 8

    def __init__(self) -> None:
        self._kinds: Dict[Any, List[int]] = {}  # bytes, nodes, groups until the next count, equal ones still needed

    def known(self, kind: Any, room: Optional[int]) -> Optional[Tuple[int, int]]:
        """Returns bytes and nodes of a group that need not be counted, if they fit ``room``; else None."""
        entry = self._kinds.get(kind)
        if entry is None or entry[3] or not _ORDERED:
            return None
        entry[2] -= 1
        return (entry[0], entry[1]) if entry[2] > 0 and (room is None or entry[0] <= room) else None

    def learn(self, kind: Any, nbytes: int, nodes: int) -> None:
        """Stores the bytes and nodes of a group that was counted."""
        entry = self._kinds.get(kind)
        if entry is None:
            self._kinds[kind] = [nbytes, nodes, self.EVERY, 1]
        elif entry[0] == nbytes and entry[1] == nodes:
            entry[2:] = self.EVERY, max(0, entry[3] - 1)
        else:
            entry[:] = nbytes, nodes, self.EVERY, self.EVERY


class Walked(Counter):
    """A Counter without hooks, which torch.func rejects: it counts a complete graph, node by node (``visit``), and
    does not see graphs that the step dropped."""

    def visit(self, node: Any) -> None:
        """Counts the tensors that a node saved."""
        self.visited += 1
        kept = [getattr(node, name) for name in _saved_by(type(node))]
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            kept += [*node.saved_tensors, *vars(node).values()]
        for item in kept:
            for tensor in item if isinstance(item, (tuple, list)) else (item,):
                if isinstance(tensor, torch.Tensor):
                    self.add(tensor.detach())

    def __enter__(self) -> "Counter":
        _open.__dict__.setdefault("counters", []).append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _open.counters.pop()


@functools.lru_cache(maxsize=None)
def _saved_by(kind: type) -> List[str]:
    """Returns the names of the attributes with saved tensors of a node type."""
    return [name for name in dir(kind) if name.startswith("_saved_")]


def refuses_hooks(error: RuntimeError) -> bool:
    """True if an error is raised by torch.func because of hooks for saved tensors, or by such hooks for tensors of
    torch.func, which have no memory."""
    return "support saved tensor hooks" in str(error) or "invalid python storage" in str(error)


def charge(size: int) -> None:
    """Counts the bytes of a scan inside a step as tape of the outer scan."""
    counters = getattr(_open, "counters", None)
    if counters:
        counters[-1].charge(size)


def _node() -> Any:
    with torch.enable_grad():
        return torch.zeros((), requires_grad=True).view(()).grad_fn


_LEAF = type(_node().next_functions[0][0])  # the node of a leaf
_FUNCTION = torch.autograd.function.BackwardCFunction  # the node of a Function in Python, its ctx
_ORDERED = hasattr(_node(), "_sequence_nr")  # since PyTorch 2.1
_next = getattr(torch._C._autograd, "_get_sequence_nr", None)


def mark() -> int:
    """Returns the sequence number of autograd's next node; 0 if PyTorch does not provide it."""
    if _next is not None:
        return _next()
    return _node()._sequence_nr() if _ORDERED else 0


class Reachable:
    """The tensors that graphs may reach: ``params``, each with its index, and the nodes that computed some of them."""

    def __init__(self, params: Sequence[torch.Tensor]):
        self.places = {id(param): n for n, param in enumerate(params)}
        self.ends = {(x.grad_fn, x.output_nr): n for n, x in enumerate(params) if x.grad_fn is not None}
        self.older = history(params)


def captured(roots: Iterable[torch.Tensor], own: Set[int], known: Reachable, begin: int,
             visit: Optional[Callable[[Any], None]] = None) -> Tuple[List[torch.Tensor], List[Any], Set[int]]:
    """Finds the tensors and nodes outside a graph that the graph reaches.

    :param roots: ends of the graph.
    :param own: ids of its own leaves.
    :param known: parameters; the graphs that computed them are not searched.
    :param begin: the mark at which the graph's recording began.
    :param visit: called for each node of the graph.
    :returns: leaves that require gradients and are neither its own nor known, in the order found; nodes older than
        ``begin``; the indices of the parameters that it reaches.
    """
    places, ends, older = known.places, known.ends, known.older
    reached: Set[int] = set()
    found: Dict[int, torch.Tensor] = {}
    foreign: List[Any] = []
    nodes: List[Any] = []

    def leaf(tensor: torch.Tensor) -> None:
        at = id(tensor)
        if at in places:
            reached.add(places[at])
        elif at not in own:
            found[at] = tensor
    for root in roots:
        node = root.grad_fn
        if node is None:
            if root.requires_grad:
                leaf(root)
        elif ends and (node, root.output_nr) in ends:
            reached.add(ends[node, root.output_nr])
        else:
            nodes.append(node)
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if type(node) is _LEAF:
            leaf(node.variable)
            continue
        if begin and node._sequence_nr() < begin or older and node in older:
            foreign.append(node)
            continue
        if visit is not None:
            visit(node)
        for edge in node.next_functions:
            follower = edge[0]
            if ends and edge in ends:
                reached.add(ends[edge])
            elif follower is not None and follower not in seen:
                seen.add(follower)
                nodes.append(follower)
    return list(found.values()), foreign, reached


def history(tensors: Iterable[torch.Tensor]) -> Set[Any]:
    """Returns the nodes that computed tensors, if PyTorch has no sequence numbers to compare; else an empty set."""
    found: Set[Any] = set()
    stack = [] if _ORDERED else [tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node is not None and node not in found and not isinstance(node, _LEAF):
            found.add(node)
            stack += [follower for follower, _ in node.next_functions]
    return found


def behind(tensor: torch.Tensor, known: Reachable) -> Tuple[Set[int], bool]:
    """Returns the indices of the parameters that a computed tensor depends on, and True if a Python Function is on the
    way."""
    found: Set[int] = set()
    nodes, python = [tensor.grad_fn], False
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if type(node) is _LEAF:
            if id(node.variable) in known.places:
                found.add(known.places[id(node.variable)])
            continue
        python = python or isinstance(node, torch.autograd.function.BackwardCFunction)
        for edge in node.next_functions:
            if edge in known.ends:
                found.add(known.ends[edge])
            if edge[0] is not None and edge[0] not in seen:
                seen.add(edge[0])
                nodes.append(edge[0])
    return found, python
