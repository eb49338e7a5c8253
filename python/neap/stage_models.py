# SPDX-License-Identifier: Apache-2.0
"""A NumPy model of non-uniform stages, in one chain or in branches that end in one loss, as the callbacks of libneap's
executor (``include/neap/sweep.h``)."""
import ctypes
from typing import Any, List, Optional, Sequence

import numpy as np

from . import _abi
from .errors import UsageError
from .models import Guard, Tape, element, view, real_bytes
from .problems import Stages
from .units import Seconds, Size

__all__ = ["ArrayStages", "Elements", "JoinCallbacks", "StageCallbacks"]


class ArrayStages(Stages):
    """L stages, specified by the shapes of their arrays, for :func:`neap.sweep` and :func:`neap.join`.

    :param states: L + 1 shapes of the states x_0 to x_L, or ``numpy.dtype`` objects with a shape.
    :param tapes: L shapes of the tapes, or ``numpy.dtype`` objects with a shape.
    :param dtype: dtype of states and tapes that are specified by a shape only.
    :param advance: L times in seconds, forward; None: 1 for each stage.
    :param backward: L + 1 times in seconds, backward and the loss; None: 2 for each stage, 0 for the loss.
    :param record: L times in seconds, forward with tape; None: as ``advance``.
    :param advance_tmp: L sizes of temporary memory in bytes; None: 0.
    :param record_tmp: L sizes of temporary memory in bytes; None: as ``advance_tmp``.
    :param backward_tmp: L + 1 sizes of temporary memory in bytes; None: 0.
    :param tape_holds_output: True: the tape of stage i contains x_{i+1}.
    :param backward_needs_input: True: the backward step of stage i reads x_i.
    :raises UsageError: if a list has the wrong length or a dtype is not numeric.
    """

    def __init__(self, states: Sequence[Tape], tapes: Sequence[Tape], *, dtype: Any = float,
                 advance: Optional[Sequence[Seconds]] = None,
                 backward: Optional[Sequence[Seconds]] = None,
                 record: Optional[Sequence[Seconds]] = None,
                 advance_tmp: Optional[Sequence[Size]] = None,
                 record_tmp: Optional[Sequence[Size]] = None,
                 backward_tmp: Optional[Sequence[Size]] = None,
                 tape_holds_output: bool = False, backward_needs_input: bool = False):
        like, count = np.empty(0, dtype), len(tapes)
        self.states = [element(like, shape) for shape in states]
        self.tapes = [element(like, shape) for shape in tapes]
        if any(kind.hasobject for kind in (*self.states, *self.tapes)):
            raise UsageError("states or tapes have dtype object, but they must be numbers. Pass a numeric dtype, such "
                             "as float")
        super().__init__(
            state=[kind.itemsize for kind in self.states], tape=[kind.itemsize for kind in self.tapes],
            advance=[1] * count if advance is None else advance,
            backward=[2] * count + [0] if backward is None else backward, record=record,
            advance_tmp=advance_tmp, record_tmp=record_tmp, backward_tmp=backward_tmp,
            tape_holds_output=tape_holds_output, backward_needs_input=backward_needs_input)


class Elements:
    """Dtypes of the states and tapes of a chain, and sizes of its temporaries."""

    def __init__(self, stages: Stages, x0: np.ndarray, name: str):
        raw, count = stages.raw, stages.steps
        if isinstance(stages, ArrayStages):
            self.states, self.tapes = stages.states, stages.tapes
        elif isinstance(stages, Stages):
            self.states = [self._flat(raw.state[i], x0.dtype) for i in range(count + 1)]
            self.tapes = [self._flat(raw.tape[i], x0.dtype) for i in range(count)]
            if self.states[0].itemsize == x0.nbytes:
                self.states[0] = np.dtype((x0.dtype, x0.shape))
        first = self.states[0]
        if (first.base, first.shape) != (x0.dtype, x0.shape):
            raise UsageError(f"{name} has dtype {x0.dtype} and shape {x0.shape}, but the first of the stages' states "
                             f"has {first.base} {first.shape}. Convert {name}, or change states[0]")
        none = [0] * (count + 1)
        self.advance_tmp = raw.advance_tmp or none
        self.record_tmp = raw.record_tmp or self.advance_tmp
        self.backward_tmp = raw.backward_tmp or none
        self.needs_input = bool(raw.flags & _abi.NEAP_STAGES_BACKWARD_NEEDS_INPUT)

    @staticmethod
    def _flat(size: int, dtype: np.dtype) -> np.dtype:
        """Returns a flat dtype of ``size`` bytes: numbers, or bytes if the size is not a multiple of theirs."""
        whole = size % dtype.itemsize == 0
        return np.dtype((dtype, (size // dtype.itemsize,)) if whole else (np.uint8, (size,)))


def _bytes(at: Optional[int], size: int) -> np.ndarray:
    return view(at, np.dtype((np.uint8, (size,))))


class JoinCallbacks(Guard):
    """The callbacks of a model of branches, whose first arguments are the numbers of branch and stage."""

    def __init__(self, model: Any, chains: List[Elements], ops: Any = None):
        self.chains = chains
        super().__init__(model, ops or _abi.neap_join_ops(size=ctypes.sizeof(_abi.neap_join_ops)))
        self.ops.adjoint_real = real_bytes([state for of in chains for state in of.states])
        self._more = {name: [word for word in ("tmp", "first") if self._takes(name, word)]
                      for name in ("advance", "record", "turn", "backward")}

    def _with(self, name: str, **values: Any) -> Any:
        return {word: values[word] for word in self._more[name] if word in values}

    def _numbers(self, branch: int, i: int) -> Any:
        """Returns the numbers with which the model is called."""
        return branch, i

    def _advance(self, branch: int, i: int, x: int, y: int, tmp: int, first: int) -> int:
        of = self.chains[branch]
        more = self._with("advance", tmp=_bytes(tmp, of.advance_tmp[i]), first=bool(first))
        self.model.advance(*self._numbers(branch, i), view(x, of.states[i], writable=False),
                           view(y, of.states[i + 1]), **more)
        return 0

    def _record(self, branch: int, i: int, x: int, y: int, tape: int, tmp: int, first: int) -> int:
        of = self.chains[branch]
        more = self._with("record", tmp=_bytes(tmp, of.record_tmp[i]), first=bool(first))
        self.model.record(*self._numbers(branch, i), view(x, of.states[i], writable=False),
                          view(y, of.states[i + 1]), view(tape, of.tapes[i]), **more)
        return 0

    def _turn(self, x: Any, dx: Any, tmp: int, loss: Any) -> int:
        more = self._with("turn", tmp=_bytes(tmp, self.chains[0].backward_tmp[len(self.chains[0].tapes)]))
        loss[0] = float(self.model.turn(
            [view(x[b], of.states[-1], writable=False) for b, of in enumerate(self.chains)],
            [view(dx[b], of.states[-1]) for b, of in enumerate(self.chains)], **more))
        return 0

    def _backward(self, branch: int, i: int, x: int, tape: int, dy: int, dx: int, tmp: int) -> int:
        of = self.chains[branch]
        more = self._with("backward", tmp=_bytes(tmp, of.backward_tmp[i]))
        given = view(x, of.states[i], writable=False) if of.needs_input else None
        self.model.backward(*self._numbers(branch, i), given, view(tape, of.tapes[i], writable=False),
                            view(dy, of.states[i + 1]), view(dx, of.states[i]), **more)
        return 0


class StageCallbacks(JoinCallbacks):
    """The callbacks of a model of one chain, whose first argument is the number of a stage."""

    def __init__(self, model: Any, chain: Elements):
        super().__init__(model, [chain], _abi.neap_stage_ops(size=ctypes.sizeof(_abi.neap_stage_ops)))

    def _numbers(self, branch: int, i: int) -> Any:
        return (i,)

    def _advance(self, *arguments: Any) -> int:
        return super()._advance(0, *arguments)

    def _record(self, *arguments: Any) -> int:
        return super()._record(0, *arguments)

    def _turn(self, x: int, dx: int, tmp: int, loss: Any) -> int:
        of = self.chains[0]
        more = self._with("turn", tmp=_bytes(tmp, of.backward_tmp[len(of.tapes)]))
        loss[0] = float(self.model.turn(view(x, of.states[-1], writable=False),
                                        view(dx, of.states[-1]), **more))
        return 0

    def _backward(self, *arguments: Any) -> int:
        return super()._backward(0, *arguments)
