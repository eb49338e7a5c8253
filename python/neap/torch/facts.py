# SPDX-License-Identifier: Apache-2.0
"""What is known about the step of a scan, and the slow tiers of this machine: measured once, for the choice of a plan."""
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from .. import scan_choice
from ..backends import Sizes
from ..group_plans import Costs, Measured
from ..player import needed
from ..stores import OpenTier, measured_tiers
from .arguments import Arguments
from .compiled import Compiler, Groups
from .device import generator_kept, get_rng
from .measure import addresses
from .runs import Again, Run, differentiable
from .sizing import shared
from .tiers.offload import record_bytes
from .tiers.rates import device_tiers
from .timing import UNTIMED, measure
from .trees import nbytes

__all__ = ["Facts", "Known", "known_of", "nothing_known", "tiers"]

TIMED = 0.05  # seconds of measuring a tier


class Known(NamedTuple):
    """Results of previous calls of one step: leaves that were found, whether it uses random numbers, and measured
    groups by kind."""

    leaves: List[Any]
    rng: List[bool]
    measured: Dict[Any, Measured]
    plans: Dict[Any, Any]  # see scan_choice.Facts
    tiers: Dict[Any, List[OpenTier]]
    needs: Set[Any]  # "grad", "walk": see Again; "made": its steps create leaves that require gradients; Arguments.kind,
    # by itself or with "changes"
    groups: Groups  # compiled ones


def nothing_known() -> Known:
    """Returns the initial value, before the first call of a step."""
    return Known([], [False], {}, {}, {}, set(), Groups())


_METHODS = types.MethodType, types.BuiltinMethodType, types.MethodWrapperType
_steps: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # step -> reduce -> buffers -> Known


def known_of(step: Any, reduce: Any, buffers: Any) -> Known:
    """Returns the results of previous calls of a step with this ``reduce`` and ``buffers``, which belong to the state.
    Methods are new objects each time, so nothing is stored."""
    if type(step) in _METHODS or type(reduce) in _METHODS:
        return nothing_known()
    try:
        rows = _steps.setdefault(step, weakref.WeakKeyDictionary())
        key = known_of if reduce is None else reduce  # None has no weak references
        return rows.setdefault(key, {}).setdefault(buffers, nothing_known())
    except TypeError:  # not hashable, or without weak references
        return nothing_known()


class Facts(scan_choice.Facts):
    """Measurements of the steps of ``run``, stored in ``known``.

    :param compiler: of compiled groups, or None.
    :param fresh: returns another run over these steps.

    Its methods raise Again if the run must be restarted.
    """

    def __init__(self, given: Arguments, known: Known, compiler: Optional[Compiler], run: Run, fresh: Callable[[], Run]):
        super().__init__(known.plans)
        self.reserve = "parts of the state that no step changes" if compiler is None else "static buffers of compiled groups"
        self.given, self.known, self.compiler, self.run, self.fresh = given, known, compiler, run, fresh
        self.grad, self.walk, self.inputs = run.grad, run.walk, run.of_inputs()
        self._fix(())
        self.adjoint = nbytes(x for x in given.start if differentiable(x))
        self.gradients = 2 * sum(run.memory.rounded(nbytes([param])) for param in run.params)

    def _fix(self, places: Tuple[int, ...]) -> None:
        """Notes the places of the parts of the state that no step changes, which are not written to tiers."""
        given, run, self.fixed = self.given, self.run, places
        sizes = [nbytes([x]) for j, x in enumerate(given.start) if j not in places]
        sizes += [get_rng(given.random).numel()] if run.rng else []
        self.record = max(1, sum(sizes) if given.device is None else record_bytes(sizes))

    def aside(self, group: int) -> int:
        """Returns the bytes of static buffers of compiled groups: of this size, and of the last one. Of other groups, the
        bytes of the parts of the state that no step changes."""
        if self.compiler is None:
            return self.group(group).once
        state, self.run.size = self.run.state(self.given.start), group
        first = self.compiler.traced(self.run, state, group).static
        rest = self.given.steps % group if first else 0
        return first + (self.compiler.traced(self.run, state, rest).static if rest else 0)

    def group(self, group: int, offloaded: bool = False, timed: bool = True) -> Measured:
        found = self._measured(group, offloaded, self.given.options.costs if timed else UNTIMED, timed)
        self._fix(found.fixed)
        return found._replace(grows=True) if self.given.kind in self.known.needs else found

    def every(self, group: int) -> Measured:
        return self._measured(group, False, UNTIMED, True, True)

    def _measured(self, group: int, offloaded: bool, costs: Optional[Costs], ready: bool, every: bool = False) -> Measured:
        """Returns the measurements of a group. ``ready``: compiled groups are compiled, not only traced."""
        given, run = self.given, self.run
        if self.compiler is not None:
            state, run.size = run.state(given.start), group
            made = (self.compiler.ready if ready else self.compiler.traced)(run, state, group)
            if not ready:
                return Measured(made.nbytes, Costs(1, 1, 2), 0, 0, 0.0, *run.state_bytes(state))
        key = self._key(group, offloaded, costs, every)
        if key not in self.known.measured:
            run.travels, where = offloaded, given.random
            with generator_kept(where), given.around.attributes.restored(), given.cast():
                before = get_rng(where)
                found = measure(run, given.start, group, costs, every)
                if not run.rng and not torch.equal(before, get_rng(where)):
                    raise Again(rng=True)
                self.known.measured[key] = found
        return self.known.measured[key]

    def _key(self, group: int, offloaded: bool, costs: Optional[Costs], every: bool) -> Any:
        """Returns what measurements depend on."""
        given, run = self.given, self.run
        parts = () if given.module is None else given.module.modules()
        return (self.compiler is not None, group, offloaded, costs, every and given.steps, run.rng, run.grad, run.walk,
                run.fixes, run.views,
                run.memory, given.cast.key, tuple(getattr(part, "training", None) for part in parts),
                torch.get_num_threads(), len(run.params), shared(given.start, run.excluded) if run.fixes else (),
                tuple(x.requires_grad for x in given.inputs or ()),
                *[(x.shape, x.dtype, x.device) for x in given.start],
                *[(x.shape[1:], x.dtype, x.device) for x in given.inputs or ()])

    def largest(self, sizes: Sizes, offloaded: bool, stored: bool) -> int:
        given, run = self.given, self.fresh()
        run.travels, run.stored = offloaded, stored
        run.emitting, run.watches, run.caller = False, True, addresses(given.start)
        run.fix(given.start, self.fixed)
        with generator_kept(given.random), given.around.attributes.restored(), given.cast():
            return needed(run, run.state(given.start), given.steps, sizes)


def tiers(given: Arguments, known: Known, record: int) -> List[OpenTier]:
    """Returns the slow tiers of a call, for states of ``record`` bytes; each is measured once."""
    options, key = given.options, (record, given.options.tiers)
    if key not in known.tiers and given.device is not None:
        most = min(options.memory or sys.maxsize, options.host or sys.maxsize) // 4
        known.tiers[key] = device_tiers(given.device, given.cast.where, record, most, options.host, options.slow, TIMED)
    elif key not in known.tiers and options.slow is not None:
        known.tiers[key] = list(measured_tiers(options.slow, record, TIMED))
    return known.tiers.get(key, [])
