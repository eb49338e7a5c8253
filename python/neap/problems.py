# SPDX-License-Identifier: Apache-2.0
"""Planning problems: a chain of steps, a budget, and slow tiers."""
import ctypes
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _abi, units
from ._lib import check, lib
from .errors import UsageError
from .units import Seconds, Size

INFINITE = 2**64 - 1
"""Value of a capacity or budget that has no limit."""


class Tier:
    """Slow memory, such as a disk, in a planning problem: its speed and capacity.

    In a problem that counts ``slots``, ``write`` and ``read`` are seconds per state, ``capacity`` is a number
    of states, and ``sync`` defaults to True.

    :param write: bytes per second, such as ``"500M"``; None: infinitely fast.
    :param read: bytes per second; None: infinitely fast.
    :param latency: seconds per transfer, in addition.
    :param capacity: bytes; None: no limit.
    :param name: name in tables, 1 to 23 bytes.
    :param cpu: seconds of computing time lost per byte transferred.
    :param cpu_fixed: seconds of computing time lost per transfer.
    :param staging: bytes of fast memory for buffers of transfers.
    :param sync: True: the computation waits for every transfer; None: False, with ``slots`` True.
    :param duplex: True: reads and writes do not share the bandwidth.
    :raises UsageError: if a value is invalid; raised when the tier is used in a problem.
    """

    def __init__(self, write: Optional[Size] = None, read: Optional[Size] = None,
                 latency: Seconds = 0, *, capacity: Optional[Size] = None, name: str = "slow",
                 cpu: Seconds = 0, cpu_fixed: Seconds = 0, staging: Size = 0,
                 sync: Optional[bool] = None, duplex: bool = False):
        self.write, self.read, self.latency = write, read, latency
        self.capacity, self.name, self.staging = capacity, name, staging
        self.cpu, self.cpu_fixed, self.sync, self.duplex = cpu, cpu_fixed, sync, duplex

    def __repr__(self) -> str:
        return (f"neap.Tier({self.write!r}, {self.read!r}, {self.latency!r}, "
                f"capacity={self.capacity!r}, name={self.name!r})")

    def spec(self, classic: bool = False) -> _abi.neap_tier_spec:
        """Returns libneap's struct of the tier; ``classic``: the problem counts slots."""
        name = self.name.encode()
        if not 0 < len(name) < 24 or b"\0" in name:
            raise UsageError(f"tier name {self.name!r} is not valid; it must have 1 to 23 bytes and no null byte")
        spec = _abi.neap_tier_spec(name=name, capacity=INFINITE)
        if self.capacity is not None:
            take = units.count if classic else units.size
            spec.capacity = take(self.capacity, "capacity")  # type: ignore[operator]
        latency = units.seconds(self.latency, "latency")
        spec.write_fixed = spec.read_fixed = latency
        if classic:
            spec.write_fixed += units.seconds(self.write or 0, "write")
            spec.read_fixed += units.seconds(self.read or 0, "read")
        else:
            spec.write_rate = units.rate(self.write, "write")
            spec.read_rate = units.rate(self.read, "read")
        spec.cpu = units.seconds(self.cpu, "cpu")
        spec.cpu_fixed = units.seconds(self.cpu_fixed, "cpu_fixed")
        spec.staging = units.size(self.staging, "staging")
        sync = classic if self.sync is None else self.sync
        spec.flags = (_abi.NEAP_TIER_SYNC if sync else 0) | \
            (_abi.NEAP_TIER_DUPLEX if self.duplex else 0)
        return spec


class Stages:
    """A chain of L stages that differ in size and cost, such as the layers of a network.

    Stage i computes x_{i+1} from x_i. Sizes may be strings such as ``"64K"``, times strings such as ``"2ms"``.

    :param state: L + 1 sizes in bytes: the states x_0 to x_L.
    :param tape: L sizes in bytes: the saved tensors of each stage.
    :param advance: L times in seconds: forward, saving nothing.
    :param backward: L + 1 times in seconds: backward of each stage, then the loss with its gradient.
    :param record: L times in seconds: forward, saving the tape; None: as ``advance``.
    :param advance_tmp: L sizes of temporary memory of ``advance``; None: 0.
    :param record_tmp: L sizes of temporary memory of ``record``; None: as ``advance_tmp``.
    :param backward_tmp: L + 1 sizes of temporary memory of ``backward``; None: 0.
    :param tape_holds_output: True: the tape of stage i contains x_{i+1}.
    :param backward_needs_input: True: the backward step of stage i reads x_i.
    :raises UsageError: if a list has the wrong length or a value is invalid.
    """

    def __init__(self, *, state: Sequence[Size], tape: Sequence[Size],
                 advance: Sequence[Seconds], backward: Sequence[Seconds],
                 record: Optional[Sequence[Seconds]] = None,
                 advance_tmp: Optional[Sequence[Size]] = None,
                 record_tmp: Optional[Sequence[Size]] = None,
                 backward_tmp: Optional[Sequence[Size]] = None,
                 tape_holds_output: bool = False, backward_needs_input: bool = False):
        self.steps = steps = len(tape)
        self._arrays: List[Any] = []
        self.raw = _abi.neap_stages()
        for name, values, more in (("advance", advance, 0), ("record", record, 0),
                                   ("backward", backward, 1)):
            self._fill(name, values, steps + more, ctypes.c_double, units.seconds)
        for name, sizes, more in (("state", state, 1), ("tape", tape, 0),
                                  ("advance_tmp", advance_tmp, 0), ("record_tmp", record_tmp, 0),
                                  ("backward_tmp", backward_tmp, 1)):
            self._fill(name, sizes, steps + more, ctypes.c_uint64, units.size)
        self.raw.flags = \
            (_abi.NEAP_STAGES_TAPE_HOLDS_OUTPUT if tape_holds_output else 0) | \
            (_abi.NEAP_STAGES_BACKWARD_NEEDS_INPUT if backward_needs_input else 0)

    def _fill(self, name: str, values: Optional[Sequence], length: int, kind: Any, take: Any) -> None:
        if values is None:
            return
        if len(values) != length:
            raise UsageError(f"Stages: {name} has {len(values)} entries; with {self.steps} tapes it must "
                             f"have {length}")
        array = (kind * max(length, 1))(*(take(value, f"{name}[{i}]")
                                          for i, value in enumerate(values)))
        self._arrays.append(array)
        setattr(self.raw, name, ctypes.cast(array, ctypes.POINTER(kind)))

    def __repr__(self) -> str:
        return f"<neap.Stages: {self.steps} stages>"


def owned(raw: _abi.neap_problem) -> "Problem":
    """Copies a problem and its stages from memory with a different owner."""
    copy = _abi.neap_problem.from_buffer_copy(raw)
    if not copy.chain.stages:
        return Problem(copy)
    given, count = copy.chain.stages.contents, copy.chain.steps
    stages, arrays = _abi.neap_stages(flags=given.flags), []
    for name, kind in _abi.neap_stages._fields_[:8]:
        pointer = getattr(given, name)
        if pointer:
            more = name in ("backward", "state", "backward_tmp")
            array = (pointer._type_ * (count + more))(*pointer[:count + more])
            arrays.append(array)
            setattr(stages, name, ctypes.cast(array, kind))
    copy.chain.stages = ctypes.pointer(stages)
    return Problem(copy, (stages, arrays))


Slow = Union[None, Tier, Sequence[Tier]]


class Problem:
    """libneap's struct of a problem, and everything that it points to."""

    def __init__(self, raw: _abi.neap_problem, keep: object = None):
        self.raw, self._keep = raw, keep

    @property
    def classic(self) -> bool:
        """True if memory counts slots."""
        return bool(self.raw.chain.flags & _abi.NEAP_CHAIN_CLASSIC)

    @property
    def steps(self) -> int:
        """Number of steps of the chain, or of both chains if two end in one loss."""
        return self.raw.chain.steps + self.raw.chain.join

    @property
    def tiers(self) -> List[str]:
        """Names of the slow tiers."""
        return [self.raw.tiers[i].name.decode("utf-8", "replace") for i in range(self.raw.ntiers)]

    @property
    def least(self) -> int:
        """The smallest budget that any strategy can work with (``neap_problem_least``)."""
        return lib.neap_problem_least(ctypes.byref(self.raw))


def _tiers(slow: Slow) -> Tuple[Tier, ...]:
    if slow is None:
        return ()
    found = (slow,) if isinstance(slow, Tier) else tuple(slow)
    if len(found) > _abi.NEAP_TIERS_MAX or not all(isinstance(tier, Tier) for tier in found):
        raise UsageError(f"slow={slow!r} is not valid; pass a neap.Tier, or a list of at most {_abi.NEAP_TIERS_MAX}, "
                         f"fastest first")
    return found


def _uniform(chain: _abi.neap_chain, classic: bool, given: dict) -> None:
    """Sets sizes and costs of a chain with uniform steps."""
    if classic and any(given[name] is not None for name in ("state", "tape", "adjoint", "log")):
        raise UsageError("slots counts checkpoints, not bytes, so state, tape, adjoint and log cannot be combined with "
                         "it. Pass either slots, or the sizes in bytes with memory")
    if not classic and (given["state"] is None or given["tape"] is None):
        raise UsageError("state and tape are required: pass their sizes in bytes (or slots, or stages)")
    if classic:
        chain.state = 1
    else:
        chain.state = chain.live = units.size(given["state"], "state")
        chain.tape = units.size(given["tape"], "tape")
        chain.adjoint = chain.state if given["adjoint"] is None else \
            units.size(given["adjoint"], "adjoint")
        for name in ("tape_max", "tape_mean", "log"):
            setattr(chain, name, units.size(given[name] or 0, name))
        if given["live"] is not None:
            chain.live = units.size(given["live"], "live")
    chain.advance = units.seconds(given["advance"], "advance")
    chain.backward = units.seconds(given["backward"], "backward")
    record, replay = given["record"], given["replay"]
    chain.record = chain.advance if record is None else units.seconds(record, "record")
    if replay is not None and not chain.log:
        raise UsageError("replay is given, but there is nothing to replay without log. Pass the size of a log, or "
                         "remove replay")
    if chain.log:
        chain.replay = chain.record if replay is None else units.seconds(replay, "replay")
    for name in ("slot_write", "slot_read", "call"):
        setattr(chain, name, units.seconds(given[name], name))
    last = given.get("last", 1.0)
    if not 0 < last <= 1:
        raise UsageError(f"last={last} is not valid: it is a fraction of a step, above 0 and at most 1")
    chain.last = 0 if last == 1 else last


def _lengths(chain: _abi.neap_chain, steps: Any) -> None:
    """Sets the number of steps: T, or (A, B) for two chains that end in one loss."""
    if isinstance(steps, (tuple, list)):
        if len(steps) != 2:
            raise UsageError(f"steps={steps!r} is not valid: pass one number, or a pair (A, B) for two chains")
        chain.steps, chain.join = (units.count(part, "steps") for part in steps)
        if chain.steps < 1 or chain.join < 1:
            raise UsageError(f"steps={steps!r} is not valid: each of the two chains needs at least 1 step")
    else:
        chain.steps = units.count(steps, "steps")


def problem(steps: Any, stages: Optional[Stages], memory: Optional[Size], slots: Optional[int],
            slow: Slow, mixed: bool, tapes_stay: bool, given: dict) -> Problem:
    """Returns the problem for the arguments of :func:`neap.plan`, checked by libneap."""
    raw = _abi.neap_problem(size=ctypes.sizeof(_abi.neap_problem))
    chain, classic = raw.chain, slots is not None
    if classic and (memory is not None or stages is not None):
        raise UsageError("slots counts checkpoints, not bytes, so memory and stages cannot be combined with it. Pass "
                         "either slots or memory")
    if stages is not None:
        if steps is not None and steps != stages.steps:
            raise UsageError(f"steps={steps}, but there are {stages.steps} stages. Remove steps, or pass "
                             f"{stages.steps}")
        chain.steps = stages.steps
        chain.stages = ctypes.pointer(stages.raw)
        if given["adjoint"] is not None:
            chain.adjoint = units.size(given["adjoint"], "adjoint")
    else:
        if steps is None:
            raise UsageError("steps is required: pass the number of steps, or stages")
        _lengths(chain, steps)
        _uniform(chain, classic, given)
    if classic:
        raw.memory = units.count(slots, "slots")
    else:
        raw.memory = INFINITE if memory is None else units.size(memory, "memory")
    chain.flags = (_abi.NEAP_CHAIN_CLASSIC if classic else 0) | \
        (_abi.NEAP_CHAIN_MIXED if classic and mixed else 0) | \
        (_abi.NEAP_CHAIN_TAPES_STAY if tapes_stay else 0)
    found = _tiers(slow)
    raw.ntiers = len(found)
    for i, tier in enumerate(found):
        raw.tiers[i] = tier.spec(classic)
    check(lib.neap_problem_check(ctypes.byref(raw)))
    return Problem(raw, stages)
