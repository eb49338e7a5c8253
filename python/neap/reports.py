# SPDX-License-Identifier: Apache-2.0
"""Reports of scans, loops and stacks: planned and counted memory, time and steps."""
import warnings
from typing import Optional

from .errors import stack_level
from .plans import Plan
from .player import Counts
from .show import show_size, show_time

__all__ = ["GRADIENTS", "Report"]

GRADIENTS = "gradients of parameters"
SLOW = 4  # overhead of a plan above which the user is warned


class Report:
    """Planned and counted numbers of one run; ``print(report)`` shows them.

    - ``plan``: the :class:`neap.Plan`; None if no gradient was needed
    - ``memory``: the budget in bytes, or None; ``charged``: its part for the gradients of parameters
    - ``planned_peak``, ``counted_peak``: bytes of states, tapes and adjoint
    - ``state``, ``tape``: bytes of a state, and of the tape of a group of steps
    - ``graph``: estimated bytes of ``tape`` for nodes of autograd's graph and tensor objects
    - ``graphs``: estimated maximum of bytes in the budget for the graphs of offloaded tapes
    - ``static``: bytes of the budget for static buffers of CUDA graphs (``compile=True``), in addition to the peaks
    - ``unchanged``: bytes of the budget for the parts of the state that no step changes, in addition to the peaks
    - ``host``: bytes of host memory for offloaded states and tapes (``host=``), and for records on their way to files
    - ``charge``: the use of ``charged``, in words
    - ``steps``, ``group``: number of steps, and of steps per group
    - ``extra_steps``: recomputed forward steps
    - ``outgrown``: tapes that were larger than planned and were freed; ``recorded_again``: steps recomputed
      for them
    - ``replays``: backward passes through the scan after the first one, each of which repeats the forward pass
    - ``waits``: seconds spent waiting for slow tiers
    - ``recoveries``: states and tapes that were lost on a slow tier and recomputed
    - ``uncompiled``: why the steps were not compiled although ``compile=True`` was passed; empty if they were
    - ``doubles``: second backward passes (``double_backward=True``); ``double_kept``: bytes of states and adjoints
      that the last one stored in addition to the budget; ``double_tape``: bytes, part of the budget, of the
      largest graph of one step and its gradient
    """

    def __init__(self, group: str = "graph", charge: str = GRADIENTS) -> None:
        self._group = group  # name of a group of steps
        self.charge = charge  # use of the part of the budget that is reserved
        self.plan: Optional[Plan] = None
        self.counts = Counts()
        self.steps = self.group = self.state = self.tape = self.charged = 0
        self.memory: Optional[int] = None
        self.static = self.unchanged = 0
        self.replays = self.graphs = self.graph = self.host = self.doubles = self.double_kept = self.double_tape = 0
        self._peak: Optional[int] = None
        self.uncompiled = ""
        self.plain = False  # a plain loop ran instead of a plan

    def planned(self, made: Plan, steps: int, group: int, state: int, tape: int, charged: int,
                memory: Optional[int], peak: Optional[int] = None, static: int = 0, unchanged: int = 0) -> None:
        """Stores the plan of a run with the sizes it is based on; ``peak``: if it differs from the plan's; ``static`` and
        ``unchanged``: see above."""
        if memory is not None and made.overhead > SLOW:
            warnings.warn(f"memory={show_size(memory)} makes a forward and backward pass about {made.overhead + 1:.0f} "
                          f"times slower than storing everything. Increase memory to make it faster; report() shows "
                          f"the plan", RuntimeWarning, stacklevel=stack_level())
        self.plan, self.steps, self.group, self.state = made, steps, group, state
        self.tape, self.charged, self.memory, self._peak = tape, charged, memory, peak
        self.static, self.unchanged = static, unchanged

    @property
    def planned_peak(self) -> int:
        """Planned peak in bytes of states, tapes, adjoint and graphs of offloaded tapes; for layers also of the
        gradients of parameters."""
        return self._peak if self._peak is not None else self.plan.peak if self.plan is not None else 0

    @property
    def counted_peak(self) -> int:
        """Counted peak in bytes of the same data during the run."""
        return self.counts.peak

    @property
    def waits(self) -> float:
        """Seconds that the computation spent waiting for slow tiers."""
        return self.counts.waited

    @property
    def recoveries(self) -> int:
        """Number of states and tapes that were lost or damaged on a slow tier and recomputed."""
        return self.counts.recoveries

    @property
    def extra_steps(self) -> int:
        """Number of recomputed forward steps."""
        return max(0, self.counts.advance_steps + self.counts.record_steps - self.steps)

    @property
    def outgrown(self) -> int:
        """Number of tapes that were larger than planned and did not fit."""
        return self.counts.outgrown

    @property
    def recorded_again(self) -> int:
        """Number of steps that were recomputed in the backward pass because their tape did not fit."""
        return self.counts.recorded_again

    def __str__(self) -> str:
        if self.plan is None:
            return "plain loop: no gradient was needed" if self.plain else "no report yet: nothing has run"
        rows = [
            ("strategy", self.plan.chosen),
            ("steps", f"{self.steps}, {self.group} per {self._group}"),
            ("state", show_size(self.state)),
            ("tape", "not measured" if self.tape <= 1 else f"{show_size(self.tape)} per {self._group}" +
             (f", including {show_size(self.graph)} for nodes and tensor objects" if self.graph else "")),
            ("budget", "no limit" if self.memory is None else
             f"{show_size(self.memory)}, including {show_size(self.charged)} for {self.charge}"),
            ("peak", f"{show_size(self.counted_peak)}" +
             ("" if self.memory is None else f", planned {show_size(self.planned_peak)}")),
            ("extra steps", f"{self.extra_steps}"),
            ("overhead", f"{100 * self.plan.overhead:.1f}% (planned)"),
            ("waits", show_time(self.waits)),
        ]
        if self.static:
            rows.insert(5, ("static", f"{show_size(self.static)} of the budget, in addition to the peak"))
        if self.unchanged:
            rows.insert(5, ("unchanged", f"{show_size(self.unchanged)} of the state and of the budget, in addition to the peak"))
        if self.counts.puts or self.counts.tape_puts:
            rows.append(("tiers", f"{self.counts.puts} states written, {self.counts.gets} read; "
                                  f"{self.counts.tape_puts} tapes written, {self.counts.tape_gets} read; "
                                  f"{self.recoveries} lost"))
        if self.host:
            rows.append(("host", f"{show_size(self.host)} of host memory"))
        if self.graphs:
            rows.append(("graphs", f"about {show_size(self.graphs)} for tapes on tiers"))
        if self.outgrown:
            rows.append(("outgrown", f"{self.outgrown} tapes, {self.recorded_again} steps recomputed"))
        if self.uncompiled:
            rows.append(("compiled", f"no: {self.uncompiled}"))
        if self.replays:
            rows.append(("replays", str(self.replays)))
        if self.doubles:
            rows.append(("doubles", f"{self.doubles}; the last one stored {show_size(self.double_kept)} of states and adjoints, "
                                    f"and {show_size(self.double_tape)} for the graph of one step"))
        return "\n".join(f"{name:<12} {text}" for name, text in rows)

    __repr__ = __str__
