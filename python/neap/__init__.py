# SPDX-License-Identifier: Apache-2.0
"""neap: gradient checkpointing of long chains of steps with a memory budget.

From the size of a state, the size of the saved tensors of a step (its tape), the time per step and a
budget in bytes, neap plans which states to store, what to offload to slow memory and what to
recompute, predicts time and memory, and iterates over the actions of the schedule::

    import neap
    p = neap.plan(steps=100_000, state="64K", tape="256K", memory="64M",
                  advance=1e-3, backward=2e-3,
                  slow=neap.Tier(write=2e9, read=1e9, latency=1e-4))
    print(p)
    for action in p:
        ...

``neap.torch.scan`` runs a PyTorch time loop with a memory budget, ``neap.jax.scan`` a JAX loop.

The package itself needs only its own libneap. ``neap.sweep`` and ``neap.join`` need NumPy,
``neap.schedules`` needs checkpoint_schedules, ``neap.train`` and ``neap.evaluate`` need the ``neap`` tool.
"""
from typing import TYPE_CHECKING, Any

from ._lib import lib as _library
from ._lib import text as _text
from .actions import LIVE, Action, Kind, Payload
from .errors import (BudgetError, CorruptRecord, Diverged, Error, ForkedError, FormatError,
                     IllegalSchedule, Interrupted, LostRecord, ModelError, NumberTooLarge,
                     RecordError, ShortRecord, ToolMissing, UsageError)
from .online_plans import Online, online
from .plans import Comparison, Plan, Simulation, TierUse, Verdict, compare, load_plan, plan, strategies
from .problems import INFINITE, Stages, Tier
from .tool import Evaluation, Training, evaluate, train

ADVANCE, RECORD, TURN, BACKWARD, SAVE, LOAD, DROP, PUT, GET, WAIT, FORGET = Kind
STATE, TAPE, LOG = Payload

if TYPE_CHECKING:
    from .sweeps import ArrayStages, JoinSweep, StageSweep, Sweep, join, sweep

_OF_SWEEPS = ("sweep", "Sweep", "join", "StageSweep", "JoinSweep", "ArrayStages")


def __getattr__(name: str) -> Any:
    """Imports ``neap.sweep``, ``neap.join`` and related names, which need NumPy, on first use."""
    if name in _OF_SWEEPS:
        from . import sweeps
        return getattr(sweeps, name)
    raise AttributeError(f"module 'neap' has no attribute {name!r}")


__version__ = _text(_library.neap_version())

__all__ = [
    "plan", "compare", "online", "load_plan", "strategies", "Tier", "Stages", "Plan", "Comparison",
    "Online", "Verdict", "Simulation", "TierUse", "Action", "Kind", "Payload", "LIVE", "INFINITE",
    "ADVANCE", "RECORD", "TURN", "BACKWARD", "SAVE", "LOAD", "DROP", "PUT", "GET", "WAIT", "FORGET",
    "STATE", "TAPE", "LOG", "Error", "UsageError", "FormatError", "BudgetError", "IllegalSchedule",
    "RecordError", "LostRecord", "ShortRecord", "CorruptRecord", "ModelError", "NumberTooLarge",
    "Interrupted", "Diverged", "ForkedError", "ToolMissing", "train", "evaluate", "Training", "Evaluation",
]
