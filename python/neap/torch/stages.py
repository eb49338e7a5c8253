# SPDX-License-Identifier: Apache-2.0
"""PyTorch layers as the backend of a StagePlayer: states, tapes, random numbers, buffers.

A state consists of the tensors between two layers, with their storages, each in full. The tape of a layer is what its
graph saves, without parameters, buffers and the layer's input: the input is connected to the graph when it is reversed,
so a tape contains no state but its own output. Of a tape on a tier, the graph stays in memory (tapes.py). A recomputed
layer uses the random numbers of the first time, and works on copies of its earlier buffers: the module's own buffers
change once, as in a plain pass.
"""
import contextlib
import sys
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from ..errors import UsageError
from ..stage_player import StageBackend
from .device import get_rng, set_rng, uncached
from .layouts import bits, composed, dense, flipped
from .measure import CPU, Counter, Memory, Reachable, Saved, address, addresses, captured, mark
from .runs import Again, differentiable
from .seeding import GroupTape, muted, reverse
from .tapes import Keeper, aligned, bare, hollow, span
from .trees import equal, flatten, unflatten

__all__ = ["LayerRun", "LayerState", "LayerTape", "kept_bytes"]

Buffers = List[Tuple[torch.nn.Module, str, torch.Tensor]]


class LayerState(NamedTuple):
    """The tensors of a state, and their version counters."""

    leaves: List[torch.Tensor]
    versions: List[int]


class _Input:
    """The input of a graph, which is set only while the graph is reversed."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state: Optional[LayerState] = None


class LayerTape:
    """A layer's graph: ``group`` has its ends, ``input`` gives the graph access to its input, ``output`` is the
    computed state; None while the tape is on a tier. Of a tape that can be offloaded, ``keeper`` has the storages, and
    ``ends`` the handles of the output."""

    def __init__(self, group: GroupTape):
        self.group, self.input = group, _Input()
        self.output: Optional[LayerState] = None
        self.keeper: Optional["_Packer"] = None
        self.ends: List[Saved] = []


class _OfInput(NamedTuple):
    """A saved tensor in the storage of leaf ``k`` of the input, ``offset`` elements after the leaf's first one."""

    input: _Input
    k: int
    size: torch.Size
    stride: Tuple[int, ...]
    offset: int
    bits: Tuple[bool, bool]


class _Kept(Saved):
    """A saved tensor, and its version at that time."""

    __slots__ = ("version",)

    def __init__(self, tensor: torch.Tensor, counter: Counter, at: Optional[int]):
        super().__init__(tensor.detach(), counter, at)
        self.version = tensor._version


def kept_bytes(leaves: Sequence[torch.Tensor], memory: Memory = CPU) -> int:
    """Returns the bytes of the storages of tensors, each in full and once."""
    return sum(map(memory.rounded, dict(map(address, leaves)).values()))


def _layout(x: torch.Tensor) -> Any:
    """Returns dtype, shape and layout of a tensor in its storage, followed by the storage's address and bytes."""
    return x.dtype, x.shape, x.stride(), x.storage_offset(), bits(x), address(x)


class _Packer(Keeper):
    """Takes the tensors that the graph of one layer saves; those in its input are not part of the tape.

    :param sends: True: the tape can be offloaded, unless ``stays`` is set.
    """

    def __init__(self, given_in: _Input, excluded: Any, given: Sequence[torch.Tensor],
                 limit: Optional[int], spare: int, memory: Memory, device: torch.device, spans: bool, sends: bool):
        super().__init__(excluded, limit, spare, memory, device, spans)
        self.input, self.sends = given_in, sends
        self.given = {address(x)[0]: k for k, x in reversed(list(enumerate(given)))}
        self.types = [x.dtype for x in given]
        self.offsets = [0 if composed(x) else x.storage_offset() for x in given]

    def pack(self, tensor: torch.Tensor) -> Any:
        k = None if composed(tensor) else self.given.get(address(tensor)[0])
        if k is not None and tensor.dtype == self.types[k]:
            return _OfInput(self.input, k, tensor.shape, tensor.stride(), tensor.storage_offset() - self.offsets[k],
                            bits(tensor))
        if k is not None:
            self.stays = True  # it references the input
        elif self.sends:
            return super().pack(tensor)
        return _Kept(tensor, self, self.add(tensor) if k is None else None)

    def pack_end(self, tensor: torch.Tensor) -> Saved:
        """Returns a handle of a tensor of the output."""
        return super().pack(tensor)

    def packed(self, nbytes: int) -> Optional[Tuple[int, int]]:
        """Returns the bytes of the tape's record, and how many of its ``nbytes`` stay in memory; None if it cannot be
        offloaded."""
        sizes = [size for _, size in self.pieces()]
        if not sum(sizes):
            return None
        return sum(map(aligned, sizes)), nbytes - sum(map(self.memory.rounded, sizes))

    @staticmethod
    def unpack(saved: Any) -> torch.Tensor:
        if isinstance(saved, _OfInput):
            assert saved.input.state is not None
            base = saved.input.state.leaves[saved.k]
            if (base.shape, base.stride(), 0, bits(base)) == saved[2:]:
                return base
            whole = flipped(base, bits(base))
            return flipped(whole.as_strided(saved.size, saved.stride, base.storage_offset() + saved.offset), saved.bits)
        if saved.tensor is None:
            return Keeper.unpack(saved)  # raises the error of a tape on a tier
        if saved.tensor._version != saved.version:
            raise RuntimeError(
                f"one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: a tensor of shape {tuple(saved.tensor.shape)} is at version "
                f"{saved.tensor._version}; expected version {saved.version}. Use an out-of-place operation, or "
                f"modify a clone")
        return saved.tensor


def _references() -> int:
    """Returns the number of references to a leaf in a list at the beginning of a graph, if Python has no others."""
    with torch.enable_grad():
        leaves = [torch.zeros(2, requires_grad=True)]
        graph = leaves[0].sin()
    count = sys.getrefcount(leaves[0])
    del graph
    return count


_REFERENCES = _references()


class LayerRun(StageBackend):
    """The layers of one call.

    :param params: by layer, the parameters that require a gradient.
    :param excluded: addresses of storages that are not part of a tape.
    :param first: the tree shape of the first state.
    :param wanted: which of its tensors require a gradient. ``needs`` contains this for all states, after each layer
        was recorded.
    :param device: the device whose random number generator is restored, in addition to that of the CPU.
    :param memory: how its memory is counted.
    :param spans: True: pieces of states and tapes are tensors of bytes; False: addresses.

    ``sends``: the layers whose tapes may be offloaded; None: all. ``packed``: by layer, the bytes of the record of such
    a tape, and the bytes of the tape that stay in memory; None: the tape cannot be offloaded.
    """

    def __init__(self, layers: Sequence[Callable[..., Any]], params: List[List[torch.Tensor]],
                 excluded: Any, first: Any, wanted: Sequence[bool], device: torch.device, memory: Memory = CPU,
                 spans: bool = False):
        self.layers, self.params, self.excluded, self.device = layers, params, excluded, device
        self.memory, self.spans = memory, spans
        self.known = [Reachable(row) for row in params]
        count = len(layers)
        self.shapes: List[Any] = [first] + [None] * count
        self.needs: List[Optional[List[bool]]] = [list(wanted)] + [None] * count
        self.rng: List[Optional[torch.Tensor]] = [None] * count
        self.buffers: List[Buffers] = [[] for _ in layers]
        self.done = [False] * count
        self.spare = [0] * count  # bytes that layers save in graphs that they drop
        self.layouts: List[Any] = [None] * (count + 1)  # layouts of the tensors of states
        self.sums: Dict[int, Optional[torch.Tensor]] = {}
        self.sends: Optional[FrozenSet[int]] = frozenset()
        self.packed: List[Optional[Tuple[int, int]]] = [None] * count
        self.reversing: Callable[[], Any] = contextlib.nullcontext  # autocast mode in which backward was called

    @property
    def extra(self) -> int:
        """Bytes kept in addition to states and tapes: states of generators, copies of buffers."""
        rows = [x for x in self.rng if x is not None] + [x for row in self.buffers for _, _, x in row]
        return sum(x.numel() * x.element_size() for x in rows)

    def begin(self, leaves: Sequence[torch.Tensor]) -> LayerState:
        """Returns the first state."""
        self.layouts[0] = [_layout(x) for x in leaves]
        return self.state(leaves)

    @staticmethod
    def state(leaves: Sequence[torch.Tensor]) -> LayerState:
        """Returns a state of tensors."""
        cut = [leaf.detach() for leaf in leaves]
        return LayerState(cut, [leaf._version for leaf in cut])

    def _unchanged(self, state: LayerState, i: int) -> None:
        for leaf, version in zip(state.leaves, state.versions):
            if leaf._version != version:
                raise RuntimeError(
                    f"layer {i} has its input modified by an inplace operation, so the stored input would be lost. "
                    f"Use an out-of-place layer (inplace=False), or combine it with the layer before it")

    # One layer

    @contextlib.contextmanager
    def _first_time(self, i: int) -> Iterator[None]:
        """Context manager that notes whether the layer uses random numbers, and how it changes its buffers."""
        before = get_rng(self.device)
        layer = self.layers[i]
        parts = layer.modules() if isinstance(layer, torch.nn.Module) else ()
        rows = [(part, name, buffer, buffer.clone()) for part in parts
                for name, buffer in part._buffers.items() if buffer is not None]
        try:
            yield
        except BaseException:
            _put_back([(part, name, kept) for part, name, _, kept in rows])
            set_rng(self.device, before)
            raise
        if not torch.equal(before, get_rng(self.device)):
            self.rng[i] = before
        self.buffers[i] = [(part, name, kept) for part, name, buffer, kept in rows
                           if part._buffers[name] is not buffer or not equal(buffer, kept)]
        self.done[i] = True

    @contextlib.contextmanager
    def _again(self, i: int) -> Iterator[None]:
        """Context manager with the original random numbers and copies of the buffers; restores both at the end."""
        generator = get_rng(self.device)
        own = [(part, name, part._buffers[name]) for part, name, _ in self.buffers[i]]
        known = self.excluded
        try:
            if self.rng[i] is not None:
                set_rng(self.device, self.rng[i])
            for part, name, kept in self.buffers[i]:
                part._buffers[name] = kept.clone()
            self.excluded = known | addresses(part._buffers[name] for part, name, _ in own)
            yield
        finally:
            self.excluded = known
            set_rng(self.device, generator)
            for part, name, buffer in own:
                part._buffers[name] = buffer

    def undo(self) -> None:
        """Restores the values of the buffers before the first call of the layers."""
        for row in reversed(self.buffers):
            _put_back(row)

    def _called(self, i: int, leaves: List[torch.Tensor]) -> List[torch.Tensor]:
        try:
            returned = uncached(self.layers[i], unflatten(self.shapes[i], leaves))
        except RuntimeError as error:
            if "leaf Variable that requires grad" not in str(error):
                raise
            raise RuntimeError(f"layer {i} ({type(self.layers[i]).__name__}) modifies its input in-place, but the input "
                               f"may be stored for recomputation. Pass inplace=False to the layer, or combine it with the "
                               f"layer before it: torch.nn.Sequential(layer, {type(self.layers[i]).__name__}(...))") \
                from error
        found, shape = flatten(returned, f"the output of layer {i}")
        dense(found, f"the output of layer {i}")
        if self.shapes[i + 1] is not None and self.shapes[i + 1] != shape:
            raise UsageError(f"layer {i} returned a different structure (dict keys, tuple length) than in its first "
                             f"call. It must return the same structure each time")
        self.shapes[i + 1], self.layouts[i + 1] = shape, [_layout(x) for x in found]
        return found

    def _once(self, i: int) -> Any:
        return self._again(i) if self.done[i] else self._first_time(i)

    def advance(self, state: LayerState, t0: int, t1: int, first: bool) -> LayerState:
        with self._once(t0), torch.no_grad():
            leaves = self._called(t0, state.leaves)
        self._unchanged(state, t0)
        return self.state(leaves)

    def record(self, state: LayerState, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[LayerState, LayerTape, int]:
        needs = self.needs[t0] or [True] * len(state.leaves)
        given = [x.detach().requires_grad_() if wanted and differentiable(x) else x.detach()
                 for x, wanted in zip(state.leaves, needs)]
        tape = LayerTape(GroupTape(t0, t1, given))
        group = tape.group
        begin = mark()
        sends = self.sends is None or t0 in self.sends
        with self._once(t0):
            packer = _Packer(tape.input, self.excluded, given, room, self.spare[t0], self.memory, self.device,
                             self.spans, sends)
            with packer, torch.enable_grad():
                results = self._called(t0, given)
                group.last = hollow(results) if sends else results
                tape.ends = [packer.pack_end(x) for x in results] if sends else []
        after, wanted = [x.detach() for x in results], [x.requires_grad for x in results]
        del results  # a leaf among them is not held by the layer
        self._unchanged(state, t0)
        self._look(group.last, given, begin, t0)
        # Leaves that the layer references, because its graph needs them.
        held = [k for k in range(len(given)) if sys.getrefcount(given[k]) > _REFERENCES]
        for leaf in (*after, *[given[k] for k in held]):
            packer.add(leaf.detach())
        packer.settle()
        self.spare[t0] = packer.spare
        if self.needs[t0 + 1] is None:
            self.needs[t0 + 1] = wanted
        tape.output = self.state(after)
        nbytes = max(packer.total, kept_bytes(tape.output.leaves, self.memory))
        if sends:
            tape.keeper = packer
            packer.stays = packer.stays or bool(held)
            self.packed[t0] = packer.packed(nbytes)
        for k, leaf in enumerate(given):  # a leaf would keep the input; its shape is enough
            if k not in held and not any(leaf is end for end in group.last):
                if leaf.requires_grad:
                    leaf.data = bare(leaf)
                else:
                    given[k] = bare(leaf)
        return tape.output, tape, nbytes

    def _look(self, roots: List[torch.Tensor], given: List[torch.Tensor], begin: int, i: int) -> None:
        """Raises Again for leaves that layer i uses and that are not among its parameters; UsageError for tensors that
        were computed outside it."""
        leaves, foreign, _ = captured(roots, set(map(id, given)), self.known[i], begin)
        if foreign:
            raise UsageError(f"layer {i} ({type(self.layers[i]).__name__}) uses a tensor that requires a gradient and "
                             f"was computed outside the layer (by {foreign[0].name()}). Compute it in the layer's "
                             f"forward()")
        if leaves:
            raise Again(leaves, t=i)

    def output(self, tape: LayerTape) -> LayerState:
        assert tape.output is not None
        return tape.output

    def reverse(self, tape: LayerTape, state: LayerState, adjoint: List[Optional[torch.Tensor]],
                i: int) -> List[Optional[torch.Tensor]]:
        self._unchanged(state, i)
        params, tape.input.state = self.params[i], state
        sums = [self.sums.get(id(param)) for param in params]
        try:
            with muted(params), self.reversing():
                before, _ = reverse(tape.group, params, sums, adjoint, _no_output, ())
        finally:
            tape.input.state = None
        self.sums.update(zip(map(id, params), sums))
        return before

    def state_bytes(self, state: LayerState) -> Tuple[int, int]:
        found = kept_bytes(state.leaves, self.memory)
        return found, found

    # Transfers: whole storages, so that states and tapes keep their layout

    def tape_pieces(self, tape: LayerTape) -> List[Tuple[Any, int]]:
        return [] if tape.keeper is None else tape.keeper.pieces()

    def shed(self, tape: LayerTape) -> None:
        assert tape.keeper is not None
        tape.keeper.shed()
        tape.output = None

    def regain(self, tape: LayerTape) -> List[Tuple[Any, int]]:
        assert tape.keeper is not None
        pieces = tape.keeper.regain()
        tape.output = self.state([end.tensor for end in tape.ends])
        return pieces

    def pieces(self, state: LayerState) -> Tuple[LayerState, List[Tuple[Any, int]]]:
        rows = {address(x): x for x in state.leaves}
        return state, [(span(x) if self.spans else at, size) for (at, size), x in rows.items() if size]

    def empty(self, t: int) -> LayerState:
        rooms: Dict[int, torch.Tensor] = {}
        leaves = []
        for dtype, shape, stride, offset, bit, (at, size) in self.layouts[t]:
            if at not in rooms:
                rooms[at] = torch.empty(size, dtype=torch.uint8, device=self.device)
            whole = torch.empty(0, dtype=dtype, device=self.device) if not size else rooms[at].view(dtype)
            leaves.append(flipped(whole.as_strided(shape, stride, offset), bit))
        return self.state(leaves)


def _put_back(rows: Buffers) -> None:
    """Copies values back to the buffers of modules."""
    with torch.no_grad():
        for part, name, kept in rows:
            buffer = part._buffers[name]
            if buffer is not None and (buffer.shape, buffer.dtype) == (kept.shape, kept.dtype):
                buffer.copy_(kept)
            else:
                part._buffers[name] = kept.clone()


def _no_output(i: int, t: int) -> None:
    return None
