# SPDX-License-Identifier: Apache-2.0
"""Provides the compiled groups of one call of a scan."""
import contextlib
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Sequence

import torch

from ...errors import stack_level
from ..around import Around, values_around
from ..device import Cast, Generators, generator_kept, get_rng, set_rng
from ..runs import State
from .groups import Group, Groups
from .runs import CompiledRun
from .tracing import Untraceable, reason

__all__ = ["Compiler", "not_compiled"]

_LOCK = threading.RLock()  # PyTorch's tracer and compiler are not thread-safe


def not_compiled(known: Groups, error: Untraceable) -> str:
    """Warns that a step is not compiled for the arguments of this call, once for each reason. Returns the reason."""
    why = reason(error)
    if known.new(why):
        warnings.warn(f"compile=True has no effect in this call, because the step cannot be compiled: {why}. Calls with "
                      f"other arguments are compiled if possible. Change the step, or remove compile=True",
                      RuntimeWarning, stacklevel=stack_level())
    return why


class Compiler:
    """Traces and compiles groups of the steps of one call.

    :param steps: the functions that are traced.
    """

    def __init__(self, known: Groups, around: Around, cast: Cast, random: Generators,
                 steps: Sequence[Callable[..., Any]]):
        self._known, self._around, self._cast, self._random, self._steps = known, around, cast, random, steps
        self._values = values_around(*steps)
        self._groups: Dict[int, Group] = {}
        self._traced: Dict[int, Group] = {}  # of this call

    def made(self, *given: Any) -> CompiledRun:
        """Returns a run with these arguments of ``Run``."""
        run = CompiledRun(*given)
        run.prepare, run.groups, run.casts = self.ready, self._groups, self._cast.enabled and (self._cast.key or True)
        run.chooses = False  # steps are traced with gradients enabled
        return run

    def traced(self, run: CompiledRun, state: State, count: int) -> Group:
        """Returns the group of ``count`` steps, whose sizes are known, but which may not be compiled yet.

        :raises Untraceable: if that is not possible.
        """
        if count in self._traced:
            return self._traced[count]
        outside = contextlib.nullcontext
        if run.casts:
            def outside() -> Any:  # type: ignore[misc]
                return torch.autocast(run.device.type, enabled=False)
        with _LOCK, generator_kept(self._random), self._around.attributes.restored(), self._cast(), \
                self._refusing(run, state, count):
            found = self._known.get(run, state, count, outside, self._values, lambda: values_around(*self._steps))
        self._traced[count] = found
        return found

    @contextlib.contextmanager
    def _refusing(self, run: CompiledRun, state: State, count: int) -> Iterator[None]:
        """Context manager that stores the reason if groups of this kind cannot be compiled."""
        try:
            yield
        except Untraceable as error:
            self._known.refuse(run, state, count, self._values, reason(error))
            raise

    def ready(self, run: CompiledRun, state: State, count: int) -> Group:
        """Returns the group of ``count`` steps, compiled.

        :raises Untraceable: if that is not possible.
        """
        group = self.traced(run, state, count)
        if not group.ready:
            with _LOCK, generator_kept(self._random), run.plain(), self._refusing(run, state, count):
                before = get_rng(self._random)
                group.compile(run.primals(state.leaves, 0, count), lambda: set_rng(self._random, before),
                              lambda: get_rng(self._random))
        self._groups[count] = group
        return group
