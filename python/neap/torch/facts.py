# SPDX-License-Identifier: Apache-2.0
"""What is known about the step of a scan, and the slow tiers of this machine: measured once, for the choice of a plan."""
import sys
from typing import Any, Callable, List, Optional

import torch

from .. import scan_choice
from ..backends import Sizes
from ..group_plans import Costs, Measured
from ..player import needed
from ..stores import OpenTier, measured_tiers
from .arguments import Arguments
from .compiled import Compiler
from .device import generator_kept, get_rng
from .known import Known
from .measure import addresses
from .runs import Again, Run, differentiable
from .tiers.offload import record_bytes
from .tiers.rates import device_tiers
from .timing import UNTIMED, measure
from .trees import nbytes

__all__ = ["Facts", "Machine"]

TIMED = 0.05  # seconds of measuring a tier


class Facts(scan_choice.Facts):
    """Measurements of the steps of ``run``, stored in ``known``.

    :param compiler: of compiled groups, or None.
    :param fresh: returns another run over these steps.

    Its methods raise Again if the run must be restarted.
    """

    def __init__(self, given: Arguments, known: Known, compiler: Optional[Compiler], run: Run, fresh: Callable[[], Run]):
        super().__init__(known.plans)
        self.given, self.known, self.compiler, self.run, self.fresh = given, known, compiler, run, fresh
        self.grad, self.walk, self.inputs = run.grad, run.walk, run.of_inputs()
        sizes = [nbytes([x]) for x in given.start] + ([get_rng(given.random).numel()] if run.rng else [])
        self.record = max(1, sum(sizes) if given.device is None else record_bytes(sizes))
        self.adjoint = nbytes(x for x in given.start if differentiable(x))
        self.gradients = 2 * sum(run.memory.rounded(nbytes([param])) for param in run.params)

    def group(self, group: int, travels: bool = False, timed: bool = True) -> Measured:
        found = self._measured(group, travels, self.given.options.costs if timed else UNTIMED, timed)
        return found._replace(grows=True) if self.given.kind in self.known.needs else found

    def every(self, group: int) -> Measured:
        return self._measured(group, False, UNTIMED, True, True)

    def _measured(self, group: int, travels: bool, costs: Optional[Costs], ready: bool, every: bool = False) -> Measured:
        """Returns the measurements of a group. ``ready``: compiled groups are compiled, not only traced."""
        given, run = self.given, self.run
        if self.compiler is not None:
            state, run.size = run.state(given.start), group
            made = (self.compiler.ready if ready else self.compiler.traced)(run, state, group)
            if not ready:
                return Measured(made.nbytes, Costs(1, 1, 2), 0, 0, 0.0, *run.state_bytes(state))
        key = self._key(group, travels, costs, every)
        if key not in self.known.measured:
            run.travels, where = travels, given.random
            with generator_kept(where), given.around.attributes.restored(), given.cast():
                before = get_rng(where)
                found = measure(run, given.start, group, costs, every)
                if not run.rng and not torch.equal(before, get_rng(where)):
                    raise Again(rng=True)
                self.known.measured[key] = found
        return self.known.measured[key]

    def _key(self, group: int, travels: bool, costs: Optional[Costs], every: bool) -> Any:
        """Returns what measurements depend on."""
        given, run = self.given, self.run
        parts = () if given.module is None else given.module.modules()
        return (self.compiler is not None, group, travels, costs, every and given.steps, run.rng, run.grad, run.walk,
                run.memory, given.cast.key, tuple(getattr(part, "training", None) for part in parts),
                torch.get_num_threads(), len(run.params), tuple(x.requires_grad for x in given.inputs or ()),
                *[(x.shape, x.dtype, x.device) for x in given.start],
                *[(x.shape[1:], x.dtype, x.device) for x in given.inputs or ()])

    def largest(self, sizes: Sizes, travels: bool, stored: bool) -> int:
        given, run = self.given, self.fresh()
        run.travels, run.stored = travels, stored
        run.emitting, run.caller = False, addresses(given.start)
        with generator_kept(given.random), given.around.attributes.restored(), given.cast():
            return needed(run, run.state(given.start), given.steps, sizes)


class Machine(scan_choice.Machine):
    """The tiers of a call, stored in ``known``."""

    def __init__(self, given: Arguments, known: Known):
        self.given, self.known = given, known

    def tiers(self, record: int) -> List[OpenTier]:
        given, options = self.given, self.given.options
        key = record, options.tiers
        if key not in self.known.tiers and given.device is not None:
            most = min(options.memory or sys.maxsize, options.host or sys.maxsize) // 4
            self.known.tiers[key] = device_tiers(given.device, given.cast.where, record, most, options.host, options.slow,
                                                 TIMED)
        elif key not in self.known.tiers and options.slow is not None:
            self.known.tiers[key] = list(measured_tiers(options.slow, record, TIMED))
        return self.known.tiers.get(key, [])
