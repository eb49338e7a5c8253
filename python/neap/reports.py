# SPDX-License-Identifier: Apache-2.0
"""What a scan, or another run of a Player, planned and did, in numbers and as text."""
import sys
import warnings
from typing import Optional

from .plans import Plan
from .player import Counts
from .show import show_size, show_time

__all__ = ["Report"]

SLOW = 4  # overhead of a plan from which on a user is warned
_INSIDE = ("neap", "torch", "jax")  # packages whose lines are not the user's


def stack_level() -> int:
    """The stack level of the user's line, as :func:`warnings.warn` counts it in the function that
    calls this one."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level


class Report:
    """Planned and counted numbers of one run; ``print(report)`` shows them.

    ``plan`` is None where no gradient was needed. Bytes: ``planned_peak`` and ``counted_peak`` of
    states, tapes and adjoint, ``charged`` of the budget for gradients of parameters, ``state`` and
    ``tape`` of a group. Steps: ``steps``, ``group``, ``extra_steps`` (forward steps beyond one a
    step). ``outgrown`` tapes took more than planned and had to go, ``recorded_again`` steps were
    recorded anew for it; ``replays`` backward calls after the first one. ``waits``: seconds
    that waited for slow tiers, ``recoveries`` states and tapes that did not come back from them.
    ``graph``: bytes of ``tape`` that are autograd's graph itself, estimated: its nodes, and objects of
    tensors. ``graphs``: bytes that the graphs of tapes on tiers take at most, about, within the budget.
    ``doubles``: second backward passes (``double_backward=True``); ``double_kept``: bytes of the states
    and adjoints that the last one kept in addition to the budget, ``double_tape``: bytes of the largest
    graph of one step and of its gradient, which is part of the budget.
    """

    def __init__(self, group: str = "graph", charge: str = "gradients of parameters") -> None:
        self._group = group  # what a group of steps is called
        self._charge = charge  # what a part of the budget is for beforehand
        self.plan: Optional[Plan] = None
        self.counts = Counts()
        self.steps = self.group = self.state = self.tape = self.charged = 0
        self.memory: Optional[int] = None
        self.replays = self.graphs = self.graph = self.doubles = self.double_kept = self.double_tape = 0
        self._peak: Optional[int] = None

    def planned(self, made: Plan, steps: int, group: int, state: int, tape: int, charged: int,
                memory: Optional[int], peak: Optional[int] = None) -> None:
        """Takes the plan of a run and what it counts with; ``peak``: where that is not the plan's."""
        if memory is not None and made.overhead > SLOW:
            warnings.warn(f"memory={show_size(memory)} makes a forward and backward pass about {made.overhead + 1:.0f} "
                          f"times slower than storing everything. Increase memory to make it faster; report() shows "
                          f"the plan", RuntimeWarning, stacklevel=stack_level())
        self.plan, self.steps, self.group, self.state = made, steps, group, state
        self.tape, self.charged, self.memory, self._peak = tape, charged, memory, peak

    @property
    def planned_peak(self) -> int:
        """Bytes of states, tapes and adjoint that the plan has at a time at most, and of graphs of tapes on
        tiers; of layers, of gradients of parameters as well."""
        return self._peak if self._peak is not None else self.plan.peak if self.plan is not None else 0

    @property
    def counted_peak(self) -> int:
        """The same as it was."""
        return self.counts.peak

    @property
    def waits(self) -> float:
        """Seconds that the computation waited for slow tiers."""
        return self.counts.waited

    @property
    def recoveries(self) -> int:
        """States and groups' tapes that did not come back from a tier and were made again."""
        return self.counts.recoveries

    @property
    def extra_steps(self) -> int:
        """Forward steps beyond one for each step."""
        return max(0, self.counts.advance_steps + self.counts.record_steps - self.steps)

    @property
    def outgrown(self) -> int:
        """Tapes that took more than planned and had no room."""
        return self.counts.outgrown

    @property
    def recorded_again(self) -> int:
        """Steps that were recorded at their backward for it."""
        return self.counts.recorded_again

    def __str__(self) -> str:
        if self.plan is None:
            return "plain loop: no gradient was needed"
        rows = [
            ("strategy", self.plan.chosen),
            ("steps", f"{self.steps}, {self.group} per {self._group}"),
            ("state", show_size(self.state)),
            ("tape", "not measured" if self.tape <= 1 else f"{show_size(self.tape)} per {self._group}" +
             (f", including {show_size(self.graph)} for nodes and tensor objects" if self.graph else "")),
            ("budget", "no limit" if self.memory is None else
             f"{show_size(self.memory)}, including {show_size(self.charged)} for {self._charge}"),
            ("peak", f"{show_size(self.counted_peak)}" +
             ("" if self.memory is None else f", planned {show_size(self.planned_peak)}")),
            ("extra steps", f"{self.extra_steps}"),
            ("overhead", f"{100 * self.plan.overhead:.1f}% (planned)"),
            ("waits", show_time(self.waits)),
        ]
        if self.counts.puts or self.counts.tape_puts:
            rows.append(("tiers", f"{self.counts.puts} states written, {self.counts.gets} read; "
                                  f"{self.counts.tape_puts} tapes written, {self.counts.tape_gets} read; "
                                  f"{self.recoveries} lost"))
        if self.graphs:
            rows.append(("graphs", f"about {show_size(self.graphs)} for tapes on tiers"))
        if self.outgrown:
            rows.append(("outgrown", f"{self.outgrown} tapes, {self.recorded_again} steps recomputed"))
        if self.replays:
            rows.append(("replays", str(self.replays)))
        if self.doubles:
            rows.append(("second", f"{self.doubles} second backward passes: {show_size(self.double_kept)} of states "
                                   f"and adjoints, {show_size(self.double_tape)} for the graph of one step"))
        return "\n".join(f"{name:<12} {text}" for name, text in rows)

    __repr__ = __str__
