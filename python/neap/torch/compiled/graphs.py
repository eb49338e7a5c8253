# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of compiled groups: one launch replaces the launches of all kernels of a function.

A captured function reads and writes fixed memory. Arguments are copied to static buffers before each replay, and results
are cloned after it. Parameters and constants are read in place, and a function is captured once more if one of them has
moved. The static buffers, which hold the arguments and results of the three functions of a group, are part of the budget
(``buffers``).

What cannot be captured is called as before: functions that draw random numbers, whose generator would need to be
restored between replays; arguments that are not on the device; and whatever CUDA refuses. The first replays
and ordinary calls must have equal results.
"""
import warnings
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from ...errors import stack_level
from ..interrupts import passed_on
from ..measure import Memory
from ..trees import equal

__all__ = ["Cuda", "Replayed", "buffers", "graphs_of"]

COMPARED = 2  # replays of a function that are compared with ordinary calls; chosen: the second has other arguments
MOVES = 4  # most captures of a function; chosen: parameters that move in each call make captures slower than calls

Results = List[Optional[torch.Tensor]]


class Cuda:
    """Captures functions with torch.cuda.CUDAGraph."""

    def __init__(self, device: torch.device):
        self.device = device

    def capture(self, call: Callable[[], Results]) -> Tuple[Callable[[], None], Results]:
        """Returns a function that replays ``call``, and the results in whose memory each replay leaves its results.

        :raises RuntimeError: if CUDA cannot capture it.
        """
        with torch.cuda.device(self.device):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):  # libraries allocate their workspaces in the first call on a stream
                call()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                results = call()
        return graph.replay, results


def graphs_of(device: torch.device) -> Any:
    """Returns the interface to the graphs of a device; None: it has none."""
    return Cuda(device) if device.type == "cuda" and hasattr(torch.cuda, "CUDAGraph") else None


def buffers(module: Any, fixed: Sequence[int], memory: Memory) -> int:
    """Returns the bytes of the static buffers of a traced function: of arguments that are not ``fixed``, and of results.
    Memory for other results is used as in an ordinary call."""
    nodes = list(module.graph.nodes)
    given = [node for k, node in enumerate(node for node in nodes if node.op == "placeholder") if k not in fixed]
    values = [node.meta.get("val") for node in (*given, *[x for x in nodes[-1].args[0] if x is not None])]
    return sum([memory.rounded(x.numel() * x.element_size()) for x in values if isinstance(x, torch.Tensor)])


def _layout(x: Any) -> Any:
    return (x.shape, x.stride(), x.dtype, x.device) if isinstance(x, torch.Tensor) else None


class Replayed:
    """A function that is captured when it is called first.

    :param function: takes tensors and returns a list of tensors or None.
    :param fixed: indices of the arguments that stay at their place.
    :param graphs: an interface like Cuda.
    """

    def __init__(self, function: Callable[..., Any], fixed: Sequence[int], graphs: Any):
        self._function, self._fixed, self._graphs = function, frozenset(fixed), graphs
        self._replay: Optional[Callable[[], None]] = None
        self._given: List[torch.Tensor] = []  # static buffers, and the fixed arguments
        self._results: Results = []
        self._layouts: List[Any] = []
        self._places: List[int] = []  # addresses of the fixed arguments
        self._moves = self._compared = 0

    def __call__(self, *given: torch.Tensor) -> Results:
        if self._graphs is None:
            return list(self._function(*given))
        layouts = [_layout(x) for x in given]
        if self._replay is None:
            if any([not isinstance(x, torch.Tensor) or x.device != self._graphs.device for x in given]):
                return self._without("an argument is not on the device", given)
            self._layouts = layouts
        elif layouts != self._layouts:
            return list(self._function(*given))
        places = [given[k].data_ptr() for k in sorted(self._fixed)]
        if self._replay is None or places != self._places:
            if self._moves == MOVES:
                return self._without(f"parameters moved {MOVES} times", given)
            try:
                self._capture(given, places)
            except RuntimeError as error:
                passed_on(error)
                return self._without(str(error).strip().split("\n")[0].rstrip("."), given)
        loose = [k for k in range(len(given)) if k not in self._fixed]
        for k in loose:
            self._given[k].copy_(given[k])
        assert self._replay is not None
        self._replay()
        found = [None if x is None else x.clone() for x in self._results]
        if self._compared < COMPARED:
            wanted = list(self._function(*given))
            if not all([a is b is None or a is not None and b is not None and equal(a, b)
                        for a, b in zip(found, wanted)]):
                return self._without("a replay has other results than an ordinary call", given)
            self._compared += 1
        return found

    def _capture(self, given: Sequence[torch.Tensor], places: List[int]) -> None:
        self._replay, self._given, self._results = None, [], []  # an interrupted capture leaves none
        static = [x.detach() if k in self._fixed else x.detach().clone() for k, x in enumerate(given)]
        replay, results = self._graphs.capture(lambda: list(self._function(*static)))
        if any([x is not None and x.device != self._graphs.device for x in results]):
            raise RuntimeError("a result is not on the device")
        self._moves, self._compared, self._places = self._moves + 1, 0, places
        self._given, self._replay, self._results = static, replay, results

    def _without(self, why: str, given: Sequence[torch.Tensor]) -> Results:
        """Calls the function, now and from now on, without a graph."""
        self._graphs = self._replay = None
        self._given, self._results = [], []
        warnings.warn(f"compile=True: a group of steps is not captured as a CUDA graph, so its kernels are launched one by "
                      f"one: {why}. Results do not change", RuntimeWarning, stacklevel=stack_level())
        return list(self._function(*given))
