# SPDX-License-Identifier: Apache-2.0
"""neap: memory-bounded backpropagation through chains of steps.

Say what a state and a tape take, what a step costs and how many bytes there are; neap says what
to keep, what to send to slow storage and what to compute again, what that costs, and gives the
actions one by one::

    import neap
    p = neap.plan(steps=100_000, state="64K", tape="256K", memory="64M",
                  advance=1e-3, backward=2e-3,
                  slow=neap.Tier(write=2e9, read=1e9, latency=1e-4))
    print(p)
    for action in p:
        ...

The package needs nothing but the libneap that it comes with. ``neap.sweep`` and ``neap.join`` want
NumPy, ``neap.schedules`` checkpoint_schedules, ``neap.train`` and ``neap.evaluate`` the ``neap``
tool.
"""
from typing import TYPE_CHECKING, Any

from ._lib import lib as _library
from ._lib import text as _text
from .actions import LIVE, Action, Kind, Payload
from .errors import (BudgetError, CorruptRecord, Diverged, Error, ForkedError, FormatError,
                     IllegalSchedule, Interrupted, LostRecord, ModelError, NumberTooLarge,
                     RecordError, ShortRecord, ToolMissing, UsageError)
from .plans import (Comparison, Online, Plan, Simulation, TierUse, Verdict, compare, load_plan,
                    online, plan, strategies)
from .problems import INFINITE, Stages, Tier
from .tool import Evaluation, Training, evaluate, train

ADVANCE, RECORD, TURN, BACKWARD, SAVE, LOAD, DROP, PUT, GET, WAIT, FORGET = Kind
STATE, TAPE, LOG = Payload

if TYPE_CHECKING:
    from .sweeps import ArrayStages, JoinSweep, StageSweep, Sweep, join, sweep

_OF_SWEEPS = ("sweep", "Sweep", "join", "StageSweep", "JoinSweep", "ArrayStages")


def __getattr__(name: str) -> Any:
    """neap.sweep, neap.join and what belongs to them want NumPy as soon as they are named."""
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
