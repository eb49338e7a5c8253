# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a scan as compiled groups.

A tape is a list of tensors of known sizes, without a graph. Gradients are added in the order of groups and steps, but
not in the order of one graph of all steps, so they differ from plain autograd's by rounding.
"""
import contextlib
import itertools
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from ...errors import UsageError
from ...player import Outgrown
from ..device import set_rng
from ..measure import address
from ..runs import Run, State
from ..tapes import aligned, span
from ..transforms import check_compiled
from ..trees import flatten
from .groups import Group

__all__ = ["CompiledRun"]


class _Tape:
    """The tensors that the backward pass of a group needs. While they are on a tier, only their layout is known.

    :param spans: True: pieces are tensors of bytes, which a device copies, and come back in one block (``tapes.Keeper``);
        False: addresses.
    """

    __slots__ = ("t0", "t1", "tensors", "layout", "device", "spans", "keeper", "graph")

    def __init__(self, t0: int, t1: int, tensors: List[torch.Tensor], device: torch.device, spans: bool):
        self.t0, self.t1, self.tensors, self.device, self.spans = t0, t1, tensors, device, spans
        self.layout: List[Any] = []  # bytes of storages, and for each tensor its storage, dtype and layout, or itself
        self.keeper, self.graph = None, 0  # it has no graph

    def _storages(self) -> Dict[int, torch.Tensor]:
        """Returns a tensor of each storage that is offloaded, by address."""
        return {address(x)[0]: x for x in self.tensors if x.device == self.device and address(x)[1]}

    def pieces(self) -> List[Tuple[Any, int]]:
        """Returns the memory of the storages, (address or tensor of bytes, bytes)."""
        return [(span(x) if self.spans else at, address(x)[1]) for at, x in self._storages().items()]

    def shed(self) -> None:
        """Frees the memory."""
        found = self._storages()
        places = {at: k for k, at in enumerate(found)}
        self.layout = [[address(x)[1] for x in found.values()],
                       [(places[address(x)[0]], x.dtype, x.shape, x.stride(), x.storage_offset())
                        if address(x)[0] in places and x.device == self.device else x for x in self.tensors]]
        self.tensors = []

    def regain(self) -> List[Tuple[Any, int]]:
        """Allocates memory for the storages; returns it as ``pieces`` does, in the same order."""
        (sizes, rows), self.layout = self.layout, []
        starts = [0, *itertools.accumulate(map(aligned, sizes))]
        block = torch.empty(starts[-1] if self.spans else 0, dtype=torch.uint8, device=self.device)
        memory = [block[start:start + aligned(size)] if self.spans else
                  torch.empty(size, dtype=torch.uint8, device=self.device) for start, size in zip(starts, sizes)]
        self.tensors = [row if isinstance(row, torch.Tensor) else _placed(memory[row[0]], *row[1:]) for row in rows]
        if self.spans:
            return [(span(block), block.numel())] if sizes else []
        return [(x.data_ptr(), x.numel()) for x in memory]


def _placed(memory: torch.Tensor, dtype: torch.dtype, shape: Any, stride: Any, offset: int) -> torch.Tensor:
    """Returns a tensor in these bytes, which start at a multiple of its size."""
    made = torch.empty(0, dtype=dtype, device=memory.device)
    first = memory.storage_offset() // made.element_size()
    return made.set_(memory.untyped_storage(), first + offset, shape, stride)


class CompiledRun(Run):
    """A Run whose groups are compiled functions. Groups allocate the same sizes each time and no small objects, so the
    heap needs no attention (heap.py).

    ``size``: steps per group; groups start at its multiples. ``prepare(run, state, count)`` returns the functions for
    groups of ``count`` steps; ``groups``: those that were returned. ``casts``: the autocast mode in which steps
    run, False if it is off.
    """

    size = 1
    prepare: Callable[["CompiledRun", State, int], Group]
    groups: Dict[int, Group]
    casts: Any = False
    whole = reads_constants = True

    def chunks(self, t0: int, t1: int) -> List[torch.Tensor]:
        """Returns the inputs of the steps [t0, t1), as tensors [t1 - t0, ...]."""
        if self.inputs is not None:
            return [x[t0:t1].contiguous() for x in self.inputs]
        if self.give is None:
            return []
        rows = [flatten(self.input(t), "inputs") for t in range(t0, t1)]
        like, shape = [(x.shape, x.dtype) for x in rows[0][0]], rows[0][1]
        for t, row in enumerate(rows, t0):
            if row[1] != shape or [(x.shape, x.dtype) for x in row[0]] != like:
                raise UsageError(f"inputs({t}) has a different structure, shape or dtype than inputs({t0}), but "
                                 f"compile=True needs the same for all t. Pad the inputs, or remove compile=True")
        self.input_shape = shape
        return [torch.stack(column) for column in zip(*[leaves for leaves, _ in rows])]

    def kind(self, start: Sequence[torch.Tensor]) -> Any:
        """Returns what the graph of a group depends on, except objects in Python."""
        inputs = [x[:1] for x in self.inputs] if self.inputs is not None else self.chunks(0, 1)
        return (str(self.shape), str(self.input_shape), *[(x.shape, x.dtype, x.device) for x in start],
                *[(x.shape[1:], x.dtype, x.device) for x in inputs], *self.wants_input, self.casts,
                *[(x.shape, x.stride(), x.dtype, x.device) for x in self.params],
                torch.get_num_threads(), torch.get_default_dtype())

    def primals(self, leaves: Sequence[torch.Tensor], t0: int, t1: int) -> List[torch.Tensor]:
        """Returns the arguments of a group."""
        return [*[x if x.is_contiguous() else x.contiguous() for x in leaves], *self.chunks(t0, t1), *self.params]

    @contextlib.contextmanager
    def plain(self) -> Iterator[None]:
        """Context manager in which operations run as they were traced: without gradients and casts."""
        with torch.no_grad():
            if not self.casts:
                yield
                return
            with torch.autocast(self.device.type, enabled=False):
                yield

    def _group(self, state: State, count: int) -> Group:
        if count not in self.groups:
            self.groups[count] = self.prepare(self, state, count)
        return self.groups[count]

    def _forward(self, state: State, t0: int, t1: int, first: bool, record: bool) -> Tuple[State, List[torch.Tensor]]:
        """Runs one group. Returns the state at t1, and the tensors of its tape, if it is recorded."""
        self.unchanged(state)
        group = self._group(state, t1 - t0)
        if self.rng:
            set_rng(self.random, state.rng)
        primals, tape = self.primals(state.leaves, t0, t1), []
        with self.plain():
            if record:
                found, tape = group.record(primals)
            else:
                found = group.advance(primals)
        columns = found[len(state.leaves):]
        if first and self.emitting:
            self._emit(t0, t1, columns, group.joint.out_shape)
        if self.hashes is not None and any([self.hashes.watches(t) for t in range(t0, t1)]):
            self.hashes.see(t1 - 1, found)
        return self.state(found[:len(state.leaves)]), tape

    def _emit(self, t0: int, t1: int, columns: Sequence[torch.Tensor], shape: Any) -> None:
        self.structure(t0, shape)
        if self.out is None:
            self.out = [x.new_empty((self.steps, *x.shape[1:])) for x in columns]
        for place, column in zip(self.out, columns):
            place[t0:t1].copy_(column)

    # Operations for the Player

    def advance(self, state: State, t0: int, t1: int, first: bool) -> State:
        while t0 < t1:
            end = min(t1, t0 + self.size)
            if end - t0 not in self.groups:  # single steps of second derivatives (double.py)
                hashes, self.hashes = self.hashes, None
                try:
                    return super().advance(state, t0, t1, first)
                finally:
                    self.hashes = hashes
            state, _ = self._forward(state, t0, end, first, False)
            t0 = end
        return state

    def record(self, state: State, t0: int, t1: int, first: bool, room: Optional[int]) -> Tuple[State, Any, int]:
        nbytes = self._group(state, t1 - t0).nbytes
        if room is not None and nbytes > room:
            raise Outgrown(nbytes)
        after, tensors = self._forward(state, t0, t1, first, True)
        return after, _Tape(t0, t1, tensors, self.device, self.spans), nbytes

    def tape_bytes(self, state: State, t0: int, t1: int) -> Tuple[State, int]:
        return self.advance(state, t0, t1, False), self._group(state, t1 - t0).nbytes

    def tape_pieces(self, tape: Any) -> List[Tuple[Any, int]]:
        return tape.pieces()

    def shed(self, tape: Any) -> None:
        tape.shed()

    def regain(self, tape: Any) -> List[Tuple[Any, int]]:
        return tape.regain()

    def begin_backward(self, last: Sequence[Optional[torch.Tensor]],
                       outputs: Sequence[Optional[torch.Tensor]]) -> List[Optional[torch.Tensor]]:
        check_compiled()
        self.sums, self.out_grads = [None] * len(self.params), list(outputs)
        self.input_grads = [torch.zeros_like(x) if wanted else None
                            for x, wanted in zip(self.inputs or (), self.wants_input)]
        return [None if x is None else x.contiguous() for x in last]

    def reverse(self, tape: Any, adjoint: Sequence[Optional[torch.Tensor]]) -> List[Optional[torch.Tensor]]:
        """Reverses one group. Returns the gradients of the states, inputs and parameters that have some."""
        t0, t1, group = tape.t0, tape.t1, self.groups[tape.t1 - tape.t0]
        joint = group.joint
        rows = [self.out_grads[i] if i < len(self.out_grads) else None for i in joint.columns]
        given = [*[adjoint[j] for j in joint.adjoint], *[None if x is None else x[t0:t1].contiguous() for x in rows],
                 *[self.sums[n] for n in joint.used]]
        with self.plain():
            tangents = group.tangents(given)
            states: List[Any] = [None] * joint.states
            return group.backward([*states, *self.chunks(t0, t1), *self.params], tape.tensors, tangents)

    def backward(self, tape: Any, adjoint: List[Optional[torch.Tensor]], t0: int,
                 t1: int) -> List[Optional[torch.Tensor]]:
        joint, found = self.groups[t1 - t0].joint, self.reverse(tape, adjoint)[::-1]
        arrived: List[Optional[torch.Tensor]] = [None] * joint.states
        for j in joint.adjoint:
            arrived[j] = found.pop()
        for k in joint.wanted:
            self.input_grads[k][t0:t1].copy_(found.pop())  # type: ignore[index]
        for n in joint.used:
            self.sums[n] = found.pop()
        return arrived

    def trial(self, tape: Any) -> None:
        self.reverse(tape, [None] * self.groups[tape.t1 - tape.t0].joint.states)
