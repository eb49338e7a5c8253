# SPDX-License-Identifier: Apache-2.0
"""Plans: the strategy, its predicted time and memory, and its schedule as a stream of actions."""
import contextlib
import ctypes
import os
import re
import tempfile
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from . import _abi, show, tables, units
from ._lib import check, lib, text
from .actions import Action, stream
from .errors import BudgetError, FormatError
from .problems import Problem, Slow, Stages, problem
from .units import Seconds, Size

_PARAMS = tuple(row[0] for row in _abi.neap_params._fields_ if row[0] not in ("effort", "reserved"))
_MARKS = 20000  # maximum number of marks of a drawing in a notebook


class TierUse(NamedTuple):
    """Use of a slow tier: ``peak`` bytes stored, bytes ``written`` and ``read``; states if the problem counts slots."""

    peak: int
    written: int
    read: int


class Verdict(NamedTuple):
    """Memory and steps of a valid schedule, counted action by action; see :meth:`Plan.verify`.

    ``peak``: most bytes in fast memory at a time; ``arena``: bytes that an executor allocates (both in
    slots if the problem counts slots); ``slots``: slots used; ``actions``: number of actions;
    ``advance_steps``, ``record_steps``, ``backward_steps``: steps by kind; ``transfers_in_flight``: most
    transfers at a time; ``tiers``: a :class:`TierUse` for each slow tier.
    """

    peak: int
    arena: int
    slots: int
    actions: int
    advance_steps: int
    record_steps: int
    backward_steps: int
    transfers_in_flight: int
    tiers: List[TierUse]


class Simulation(NamedTuple):
    """Seconds of a simulated schedule, with transfers overlapped with computation; see :meth:`Plan.simulate`.

    ``seconds``: total; ``advance``, ``record``, ``backward``: steps by kind; ``copies``: copies of states in
    fast memory; ``stall``: waiting for transfers; ``lost``: computing time lost to simultaneous transfers.
    """

    seconds: float
    advance: float
    record: float
    backward: float
    copies: float
    stall: float
    lost: float


def _uses(raw: Any, count: int) -> List[TierUse]:
    return [TierUse(use.peak_bytes, use.written, use.read) for use in raw[:count]]


class Plan:
    """A strategy with its parameters and predictions; iterating over a plan yields its actions.

    Each ``for`` loop opens a new stream of actions in constant memory, so 10^9 steps need no list.
    Sizes are bytes of fast memory, or slots if the problem counts slots; times are seconds if the
    costs of the problem are. ``print(plan)`` prints the table of ``neap plan``; ``plan.draw()`` returns
    a drawing.

    A plan returned by :func:`plan` fits its budget. :func:`compare` also returns plans that do not
    fit: then ``feasible`` is False, ``why`` is the reason, and ``least`` is a sufficient budget or 0.

    Plans are immutable and may be used by several threads.
    """

    def __init__(self, question: Problem, raw: _abi.neap_plan, keep: object = None):
        self.problem, self._raw, self._keep = question, raw, keep

    @property
    def feasible(self) -> bool:
        """False if the strategy does not fit the budget (only in results of :func:`compare`)."""
        return bool(self._raw.feasible)

    @property
    def strategy(self) -> str:
        """The requested strategy."""
        return text(self._raw.strategy)

    @property
    def chosen(self) -> str:
        """The strategy that the plan uses; differs from ``strategy`` if that is ``auto``."""
        return text(self._raw.chosen)

    @property
    def about(self) -> str:
        """One line about ``strategy``, with its paper."""
        return text(lib.neap_strategy_about(self._raw.strategy))

    @property
    def about_chosen(self) -> str:
        """One line about ``chosen``, with its paper."""
        return text(lib.neap_strategy_about(self._raw.chosen))

    @property
    def params(self) -> Dict[str, int]:
        """The parameters of the strategy that are not 0, by name."""
        return {name: getattr(self._raw.params, name) for name in _PARAMS
                if getattr(self._raw.params, name)}

    @property
    def peak(self) -> int:
        """Peak of fast memory in bytes (or slots)."""
        return self._raw.peak_bytes

    @property
    def arena(self) -> int:
        """Bytes (or slots) that an executor allocates: the peak with room for the largest tape."""
        return self._raw.arena_bytes

    @property
    def slow(self) -> int:
        """Peak of all slow tiers together, in bytes."""
        return self._raw.slow_bytes

    @property
    def tiers(self) -> List[TierUse]:
        """The use of each slow tier of the problem."""
        return _uses(self._raw.tiers, self.problem.raw.ntiers)

    @property
    def tier(self) -> int:
        """Number of the slow tier that the plan uses, 1 for the first; 0: none."""
        return self._raw.tier

    @property
    def slots(self) -> int:
        """Number of checkpoints in fast memory that the plan uses."""
        return self._raw.slots

    @property
    def advance_steps(self) -> int:
        """Number of forward steps that save nothing, including recomputed ones."""
        return self._raw.advance_steps

    @property
    def record_steps(self) -> int:
        """Number of forward steps that save their tape."""
        return self._raw.record_steps

    @property
    def seconds(self) -> float:
        """Predicted seconds of the forward and backward pass (the makespan)."""
        return self._raw.makespan

    @property
    def stall(self) -> float:
        """Seconds of waiting for transfers, part of ``seconds``."""
        return self._raw.stall

    @property
    def lost(self) -> float:
        """Seconds of computing time lost to simultaneous transfers, part of ``seconds``."""
        return self._raw.lost

    @property
    def overhead(self) -> float:
        """Slowdown relative to storing everything: 0.1 is 10% slower."""
        return self._raw.overhead

    @property
    def bound(self) -> float:
        """Proved lower bound in seconds: no schedule of the problem is faster."""
        return self._raw.bound

    @property
    def estimate(self) -> float:
        """Expected makespan of the fastest schedule in seconds, at least ``bound``; not proved, a plan can be faster."""
        return lib.neap_estimate(ctypes.byref(self.problem.raw), self.bound)

    @property
    def gap(self) -> float:
        """Optimality gap: ``seconds / bound - 1``."""
        return self._raw.gap

    @property
    def model_bound(self) -> float:
        """Lower bound in seconds for schedules of the strategy's own model; 0: unknown."""
        return self._raw.model_bound

    @property
    def least(self) -> int:
        """If the plan does not fit: a sufficient budget in bytes (or slots), or 0 if none is known."""
        return self._raw.least_bytes

    @property
    def why(self) -> str:
        """If the plan does not fit: the reason."""
        return text(self._raw.why)

    @property
    def listed(self) -> int:
        """Number of actions if the plan is a list of actions, otherwise 0."""
        return self._raw.action_count if self._raw.actions else 0

    def _open(self) -> ctypes.c_void_p:
        if not self.feasible:
            raise _infeasible(self)
        schedule = ctypes.c_void_p()
        check(lib.neap_schedule_open(ctypes.byref(schedule), ctypes.byref(self.problem.raw),
                                     ctypes.byref(self._raw)))
        return schedule

    @contextlib.contextmanager
    def _opened(self) -> Iterator[ctypes.c_void_p]:
        schedule = self._open()
        try:
            yield schedule
        finally:
            lib.neap_schedule_close(schedule)

    def __iter__(self) -> Iterator[Action]:
        return stream(self._open)

    def verify(self) -> Verdict:
        """Checks every rule of ``include/neap/plan.h`` action by action, and counts memory and steps.

        :returns: a :class:`Verdict`.
        :raises IllegalSchedule: if a rule is broken; the message contains the action and the rule.
        :raises BudgetError: if the plan does not fit its budget.
        """
        verdict = _abi.neap_verdict(size=ctypes.sizeof(_abi.neap_verdict))
        with self._opened() as schedule:
            check(lib.neap_verify(ctypes.byref(verdict), ctypes.byref(self.problem.raw), schedule))
        return Verdict(verdict.peak_bytes, verdict.arena_bytes, verdict.slots, verdict.actions,
                       verdict.advance_steps, verdict.record_steps, verdict.backward_steps,
                       verdict.transfers_in_flight,
                       _uses(verdict.tiers, self.problem.raw.ntiers))

    def simulate(self) -> Simulation:
        """Simulates the schedule with the costs of the problem.

        :returns: a :class:`Simulation`, in seconds.
        :raises BudgetError: if the plan does not fit its budget.
        """
        found = _abi.neap_simulation(size=ctypes.sizeof(_abi.neap_simulation))
        with self._opened() as schedule:
            check(lib.neap_simulate(ctypes.byref(found), ctypes.byref(self.problem.raw), schedule))
        return Simulation(found.makespan, found.advance, found.record, found.backward, found.copies,
                          found.stall, found.lost)

    def draw(self, path: Union[None, str, "os.PathLike[str]"] = None, *, title: Optional[str] = None,
             limit: int = 0) -> str:
        """Draws the simulated schedule, step against time.

        :param path: file to write; None: none.
        :param title: title of the drawing; None: the strategy and the number of steps.
        :param limit: approximate maximum number of marks (0: 200,000); longer schedules are thinned.
        :returns: the drawing as SVG.
        :raises OSError: if the file cannot be written.
        :raises BudgetError: if the plan does not fit its budget.
        """
        pieces: List[bytes] = []
        write = _collector("neap_draw", pieces)
        name = title if title is not None else f"{self.chosen}, {self.problem.raw.chain.steps} steps"
        with self._opened() as schedule:
            check(lib.neap_draw(ctypes.byref(self.problem.raw), schedule, name.encode(), limit,
                                write, None))
        drawing = b"".join(pieces)
        if path is not None:
            _write_file(path, drawing)
        return drawing.decode("utf-8", "replace")

    def text(self, actions: bool = False) -> str:
        """Returns the plan and its problem as text, in the format of docs/plan-format.md.

        :param actions: True: with the list of actions.
        :raises UsageError: if the list would have more than 10^6 actions.
        """
        pieces: List[bytes] = []
        write = _collector("neap_plan_write", pieces)
        check(lib.neap_plan_write(ctypes.byref(self._raw), ctypes.byref(self.problem.raw),
                                  _abi.NEAP_WRITE_ACTIONS if actions else 0, write, None))
        return b"".join(pieces).decode()

    def save(self, path: Union[str, "os.PathLike[str]"], actions: bool = False) -> None:
        """Writes :meth:`text` to a file; an existing file is replaced only when the new one is complete.

        :param path: file to write.
        :param actions: as in :meth:`text`.
        :raises OSError: if the file cannot be written.
        """
        _write_file(path, self.text(actions).encode())

    def table(self) -> str:
        """Plans the problem with all strategies and returns their table."""
        return str(_compare(self.problem, _abi.neap_params()))

    def details(self) -> str:
        """All numbers of the plan as text, one per line."""
        return tables.details(self)

    def __str__(self) -> str:
        return self.table() if self.strategy == "auto" and not self.listed else self.details()

    def __repr__(self) -> str:
        if not self.feasible:
            return f"<neap.Plan {self.strategy}, infeasible: {tables.show_why(self)}>"
        return (f"<neap.Plan {self.strategy}"
                f"{'' if self.chosen == self.strategy else ' (' + self.chosen + ')'}: "
                f"{self.problem.steps} steps, peak {tables.show_room(self, self.peak)}, "
                f"{show.show_time(self.seconds)}>")

    def _repr_html_(self) -> str:
        lines = [line.split(None, 1) for line in self.details().splitlines()]
        text_ = "<table>" + "".join(f"<tr><td>{head}</td><td>{rest}</td></tr>"
                                    for head, rest in lines) + "</table>"
        if not self.feasible:
            return text_
        return text_ + self.draw(limit=_MARKS)


class Comparison(Sequence[Plan]):
    """The plans of all strategies for one problem, ``auto`` last; ``print`` shows them as a table.

    ``comparison[name]`` is the plan of a strategy, ``comparison[i]`` the i-th one.
    """

    def __init__(self, plans: List[Plan]):
        self._plans = plans

    def __len__(self) -> int:
        return len(self._plans)

    def __getitem__(self, key: Any) -> Any:
        """The plan with an index, or of the strategy with a name (KeyError if there is none)."""
        if not isinstance(key, str):
            return self._plans[key]
        for row in self._plans:
            if row.strategy == key:
                return row
        raise KeyError(f"{key!r} is not a strategy. Pass one of {', '.join(row.strategy for row in self._plans)}")

    @property
    def best(self) -> Plan:
        """The fastest plan that fits; if none fits, the plan with the smallest sufficient budget."""
        return tables.sort(self._plans)[0]

    def __str__(self) -> str:
        return tables.table(self._plans)

    def __repr__(self) -> str:
        return f"<neap.Comparison of {len(self)} strategies, best: {self.best!r}>"

    def _repr_html_(self) -> str:
        return tables.html_table(self._plans)


def _collector(function: str, pieces: List[bytes]) -> Any:
    """Returns a libneap callback ``write`` that appends the text to ``pieces``."""
    kind: Any = _abi.FUNCTIONS[function][1][-2]  # type: ignore[index]

    def write(_user: object, at: int, length: int) -> int:
        pieces.append(ctypes.string_at(at, length))
        return 0

    return kind(write)


def _write_file(path: Union[str, "os.PathLike[str]"], content: bytes) -> None:
    """Writes a temporary file and renames it, so an existing file is replaced completely or not at all."""
    folder, name = os.path.split(os.path.abspath(os.fspath(path)))
    handle, beside = tempfile.mkstemp(prefix=name + ".", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def strategies() -> Dict[str, str]:
    """The names of the strategies, ``auto`` last, with one line about each."""
    found, i = {}, 0
    while lib.neap_strategy_name(i):
        name = lib.neap_strategy_name(i)
        found[text(name)] = text(lib.neap_strategy_about(name))
        i += 1
    return found


def _make(question: Problem, strategy: str, params: _abi.neap_params,
          bound: Optional[float] = None) -> Plan:
    raw = _abi.neap_plan(size=ctypes.sizeof(_abi.neap_plan))
    arguments = (ctypes.byref(raw), ctypes.byref(question.raw), strategy.encode(),
                 ctypes.byref(params))
    if bound is None:
        check(lib.neap_plan_make(*arguments))
    else:
        check(lib.neap_plan_make_bounded(*arguments, bound))
    return Plan(question, raw)


def _infeasible(made: Plan) -> BudgetError:
    """The error for a plan that does not fit: the budget, why it is too small, and a budget that is large enough."""
    memory, classic = made.problem.raw.memory, made.problem.classic
    why = tables.show_why(made)
    if not made.least:
        why = re.sub(r" \((--steps|a chain|bytes)[^)]*\)", "", why)  # words of the command line
        needs_tier = "slow tier" in why or ("offloaded" in why and not made.problem.raw.ntiers)
        remedy = "Increase the budget, or the capacity of slow tiers" if made.strategy == "auto" else \
            "Pass slow=, or another strategy" if needs_tier else "Pass another strategy, such as 'auto'"
        return BudgetError(f"strategy {made.strategy!r} is infeasible: {why}. {remedy}")
    budget, unit = (f"slots={memory}", " slots") if classic else (f"memory={show.show_most(memory)}", "")
    reason = "" if made.strategy == "auto" else f": {why}"
    return BudgetError(f"{budget} is too small for strategy {made.strategy!r}{reason}. At least "
                       f"{tables.show_least(made, made.least)}{unit} are needed (error.least)", least=made.least)


def _params(chunk: int, checkpoints: int, remote_chunk: int, effort: int) -> _abi.neap_params:
    return _abi.neap_params(chunk=units.count(chunk, "chunk"),
                            checkpoints=units.count(checkpoints, "checkpoints"),
                            remote_chunk=units.count(remote_chunk, "remote_chunk"),
                            effort=units.count(effort, "effort"))


def _compare(question: Problem, params: _abi.neap_params) -> Comparison:
    rows: List[Plan] = []
    for name in strategies():
        rows.append(_make(question, name, params, rows[0].bound if rows else None))
    return Comparison(rows)


def plan(steps: Any = None, *, state: Optional[Size] = None, tape: Optional[Size] = None,
         memory: Optional[Size] = None, slots: Optional[int] = None,
         stages: Optional[Stages] = None, advance: Seconds = 1.0, backward: Seconds = 2.0,
         record: Optional[Seconds] = None, slow: Slow = None, strategy: str = "auto",
         adjoint: Optional[Size] = None, live: Optional[Size] = None,
         tape_max: Optional[Size] = None, tape_mean: Optional[Size] = None,
         log: Optional[Size] = None, replay: Optional[Seconds] = None, slot_write: Seconds = 0,
         slot_read: Seconds = 0, call: Seconds = 0, last: float = 1.0, tapes_stay: bool = False,
         chunk: int = 0, checkpoints: int = 0, remote_chunk: int = 0, effort: int = 0) -> Plan:
    """Plans the forward and backward pass of a chain of steps with a memory budget.

    The problem is specified in one of three ways: ``state``, ``tape`` and ``memory`` in bytes; ``slots``,
    a number of checkpoints; or ``stages`` with ``memory``. Sizes may be strings such as ``"64K"``, times
    strings such as ``"20ms"``.

    :param steps: number of steps T, or a pair (A, B): two chains of equal steps that meet in one loss, without
        ``slow``, ``log`` and ``last``.
    :param state: bytes of a state.
    :param tape: bytes of the saved tensors of one step (its tape), as planned for.
    :param memory: the budget in bytes of fast memory, such as ``"64M"``; None: no limit.
    :param slots: instead of sizes in bytes: the number of checkpoints, as in the literature.
    :param stages: instead of ``state``, ``tape`` and seconds: :class:`Stages`, for steps that differ.
    :param advance: seconds of a forward step that saves nothing.
    :param backward: seconds of a backward step.
    :param record: seconds of a forward step that saves its tape; None: as ``advance``.
    :param slow: a :class:`Tier`, or a list of them, fastest first.
    :param strategy: a name of :func:`strategies`; ``auto`` plans with all of them and picks the fastest plan.
    :param adjoint: bytes of the gradient with respect to the state; None: as ``state``.
    :param live: bytes of the current state, which the steps work on; None: as ``state``.
    :param tape_max: bytes of the largest tape, if tapes vary.
    :param tape_mean: bytes of the average tape, which transfers move, if tapes vary.
    :param log: bytes per step of a log from which a tape can be restored.
    :param replay: seconds to restore the tape of a step from its log.
    :param slot_write: seconds to copy a state into a slot.
    :param slot_read: seconds to copy a state out of a slot.
    :param call: seconds per call of the model, in addition to the steps of the call.
    :param last: seconds of the last step divided by seconds of the others, if steps are groups and the last
        group is shorter. Its tape has the size of a full one.
    :param tapes_stay: True: only states are offloaded to slow tiers.
    :param chunk: parameter of a strategy (steps per segment); 0: the best value.
    :param checkpoints: parameter of a strategy (number of checkpoints); 0: the best value.
    :param remote_chunk: parameter of a strategy (steps per segment on the slow tier); 0: the best value.
    :param effort: maximum number of simulations of a search; 0: the default.
    :returns: a :class:`Plan` that fits the budget.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget, or 0 if none is known.
    :raises UsageError: if the strategy is unknown or an argument is invalid.
    """
    given = {"state": state, "tape": tape, "adjoint": adjoint, "live": live, "tape_max": tape_max,
             "tape_mean": tape_mean, "log": log, "replay": replay, "advance": advance,
             "record": record, "backward": backward, "slot_write": slot_write,
             "slot_read": slot_read, "call": call, "last": last}
    mixed = bool(lib.neap_strategy_traits(strategy.encode()) & _abi.NEAP_STRATEGY_TAPE_SLOTS)
    question = problem(steps, stages, memory, slots, slow, mixed, tapes_stay, given)
    made = _make(question, strategy, _params(chunk, checkpoints, remote_chunk, effort))
    if not made.feasible:
        raise _infeasible(made)
    return made


def compare(steps: Any = None, *, state: Optional[Size] = None, tape: Optional[Size] = None,
            memory: Optional[Size] = None, slots: Optional[int] = None,
            stages: Optional[Stages] = None, advance: Seconds = 1.0, backward: Seconds = 2.0,
            record: Optional[Seconds] = None, slow: Slow = None, adjoint: Optional[Size] = None,
            live: Optional[Size] = None, tape_max: Optional[Size] = None,
            tape_mean: Optional[Size] = None, log: Optional[Size] = None,
            replay: Optional[Seconds] = None, slot_write: Seconds = 0, slot_read: Seconds = 0,
            call: Seconds = 0, last: float = 1.0, tapes_stay: bool = False, chunk: int = 0,
            checkpoints: int = 0, remote_chunk: int = 0, effort: int = 0) -> Comparison:
    """Plans a problem, specified as in :func:`plan`, with all strategies.

    If a strategy does not fit, ``why`` of its plan is the reason and ``least`` a sufficient budget.

    :param steps: number of steps T, or a pair (A, B): two chains of equal steps that meet in one loss, without
        ``slow``, ``log`` and ``last``.
    :param state: bytes of a state.
    :param tape: bytes of the saved tensors of one step (its tape), as planned for.
    :param memory: the budget in bytes of fast memory, such as ``"64M"``; None: no limit.
    :param slots: instead of sizes in bytes: the number of checkpoints, as in the literature.
    :param stages: instead of ``state``, ``tape`` and seconds: :class:`Stages`, for steps that differ.
    :param advance: seconds of a forward step that saves nothing.
    :param backward: seconds of a backward step.
    :param record: seconds of a forward step that saves its tape; None: as ``advance``.
    :param slow: a :class:`Tier`, or a list of them, fastest first.
    :param adjoint: bytes of the gradient with respect to the state; None: as ``state``.
    :param live: bytes of the current state, which the steps work on; None: as ``state``.
    :param tape_max: bytes of the largest tape, if tapes vary.
    :param tape_mean: bytes of the average tape, which transfers move, if tapes vary.
    :param log: bytes per step of a log from which a tape can be restored.
    :param replay: seconds to restore the tape of a step from its log.
    :param slot_write: seconds to copy a state into a slot.
    :param slot_read: seconds to copy a state out of a slot.
    :param call: seconds per call of the model, in addition to the steps of the call.
    :param last: seconds of the last step divided by seconds of the others, if steps are groups and the last
        group is shorter. Its tape has the size of a full one.
    :param tapes_stay: True: only states are offloaded to slow tiers.
    :param chunk: parameter of a strategy (steps per segment); 0: the best value.
    :param checkpoints: parameter of a strategy (number of checkpoints); 0: the best value.
    :param remote_chunk: parameter of a strategy (steps per segment on the slow tier); 0: the best value.
    :param effort: maximum number of simulations of a search; 0: the default.
    :returns: a :class:`Comparison`.
    :raises UsageError: if an argument is invalid.
    """
    given = {"state": state, "tape": tape, "adjoint": adjoint, "live": live, "tape_max": tape_max,
             "tape_mean": tape_mean, "log": log, "replay": replay, "advance": advance,
             "record": record, "backward": backward, "slot_write": slot_write,
             "slot_read": slot_read, "call": call, "last": last}
    question = problem(steps, stages, memory, slots, slow, False, tapes_stay, given)
    return _compare(question, _params(chunk, checkpoints, remote_chunk, effort))


def _free_saved(address: int) -> None:
    lib.neap_saved_free(ctypes.cast(address, ctypes.POINTER(_abi.neap_saved)))


def load_plan(path: Union[str, "os.PathLike[str]"], walk: int = 0) -> Plan:
    """Reads a plan from a file written by :meth:`Plan.save`, ``neap plan --save`` or another program.

    The schedule is verified and simulated, and the numbers in the file are compared with the result.

    :param path: file to read (format: docs/plan-format.md).
    :param walk: maximum number of actions of the schedule; 0: no limit.
    :returns: the :class:`Plan`.
    :raises FormatError: if the file is malformed or a number in it is wrong; the message contains the
        file and the line.
    :raises OSError: if the file cannot be read.
    """
    with open(path, "rb") as file:
        content = file.read()
    saved = ctypes.POINTER(_abi.neap_saved)()
    try:
        check(lib.neap_plan_read(ctypes.byref(saved), content, len(content), walk))
    except FormatError as error:
        raise FormatError(f"{os.fspath(path)}: {error}") from None
    question = Problem(saved.contents.problem.contents, saved)
    loaded = Plan(question, saved.contents.plan.contents, saved)
    # Problem and plan reference `saved`, which owns their memory.
    weakref.finalize(saved, _free_saved, ctypes.cast(saved, ctypes.c_void_p).value or 0)
    return loaded
