# SPDX-License-Identifier: Apache-2.0
"""Plans: which strategy, what it costs, and its schedule as a stream of actions."""
import contextlib
import ctypes
import os
import tempfile
import weakref
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

from . import _abi, show, tables, units
from ._lib import check, lib, text
from .actions import Action, of, stream
from .errors import BudgetError, FormatError
from .problems import Problem, Slow, Stages, problem
from .units import Seconds, Size

_PARAMS = tuple(row[0] for row in _abi.neap_params._fields_ if row[0] not in ("effort", "reserved"))
_MARKS = 20000  # of a drawing in a notebook, at most


class TierUse(NamedTuple):
    """Bytes (or states, where slots are counted) that a schedule has on a tier at most, and moves."""

    peak: int
    written: int
    read: int


class Verdict(NamedTuple):
    """What a legal schedule takes, counted action by action (``neap_verify``). Bytes, or slots."""

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
    """Seconds of a schedule on one computing stream with its tiers beside it (``neap_simulate``)."""

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
    """A strategy with its parameters and predicted numbers; iterating over it gives its actions.

    Each ``for`` opens a stream of its own, in constant memory, so that 10^9 steps need no list.
    Bytes are bytes of fast memory, or slots in a problem that counts these; seconds are as the
    problem's. ``print(plan)`` is what ``neap plan`` prints, ``plan.draw()`` a drawing.

    A plan of :func:`plan` fits its budget. In :func:`compare` there are others as well:
    ``feasible`` is False, ``why`` says why, and ``least`` is a budget that would do, or 0.

    A plan does not change: several threads may use one.
    """

    def __init__(self, question: Problem, raw: _abi.neap_plan, keep: object = None):
        self.problem, self._raw, self._keep = question, raw, keep

    @property
    def feasible(self) -> bool:
        """False for a row of :func:`compare` that does not fit."""
        return bool(self._raw.feasible)

    @property
    def strategy(self) -> str:
        """The strategy that was asked for."""
        return text(self._raw.strategy)

    @property
    def chosen(self) -> str:
        """The strategy that it stands for: another one where ``strategy`` is ``auto``."""
        return text(self._raw.chosen)

    @property
    def about(self) -> str:
        """One line about the strategy and its paper."""
        return text(lib.neap_strategy_about(self._raw.strategy))

    @property
    def about_chosen(self) -> str:
        """The same of ``chosen``."""
        return text(lib.neap_strategy_about(self._raw.chosen))

    @property
    def params(self) -> Dict[str, int]:
        """Its parameters that are not 0, by name."""
        return {name: getattr(self._raw.params, name) for name in _PARAMS
                if getattr(self._raw.params, name)}

    @property
    def peak(self) -> int:
        """The most that is in fast memory at a time, in bytes (or slots)."""
        return self._raw.peak_bytes

    @property
    def arena(self) -> int:
        """The same with one largest tape kept free: what a sweep allocates."""
        return self._raw.arena_bytes

    @property
    def slow(self) -> int:
        """The most that is on slow tiers, in bytes."""
        return self._raw.slow_bytes

    @property
    def tiers(self) -> List[TierUse]:
        """What it does with each slow tier of the problem."""
        return _uses(self._raw.tiers, self.problem.raw.ntiers)

    @property
    def tier(self) -> int:
        """The slow tier that it uses, 1 for the first; 0: none."""
        return self._raw.tier

    @property
    def slots(self) -> int:
        """Slots of fast memory that it uses."""
        return self._raw.slots

    @property
    def advance_steps(self) -> int:
        """Forward steps without tape."""
        return self._raw.advance_steps

    @property
    def record_steps(self) -> int:
        """Forward steps with tape."""
        return self._raw.record_steps

    @property
    def seconds(self) -> float:
        """From the first action to the last."""
        return self._raw.makespan

    @property
    def stall(self) -> float:
        """Seconds of it that wait for transfers."""
        return self._raw.stall

    @property
    def lost(self) -> float:
        """Seconds of computing lost to transfers beside it."""
        return self._raw.lost

    @property
    def overhead(self) -> float:
        """Seconds over those of a plan that keeps every tape, less 1."""
        return self._raw.overhead

    @property
    def bound(self) -> float:
        """Seconds that no schedule of the problem can beat."""
        return self._raw.bound

    @property
    def gap(self) -> float:
        """Seconds over the bound, less 1."""
        return self._raw.gap

    @property
    def model_bound(self) -> float:
        """Seconds that no schedule of the strategy's own model can beat; 0: not known."""
        return self._raw.model_bound

    @property
    def least(self) -> int:
        """Of a plan that does not fit: a budget that would do, or 0."""
        return self._raw.least_bytes

    @property
    def why(self) -> str:
        """Of a plan that does not fit: why."""
        return text(self._raw.why)

    @property
    def listed(self) -> int:
        """Actions, where the plan is a list of them; else 0."""
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
        """Walks the schedule and checks every rule of the language of actions.

        :raises IllegalSchedule: naming the action and the rule.
        """
        verdict = _abi.neap_verdict(size=ctypes.sizeof(_abi.neap_verdict))
        with self._opened() as schedule:
            check(lib.neap_verify(ctypes.byref(verdict), ctypes.byref(self.problem.raw), schedule))
        return Verdict(verdict.peak_bytes, verdict.arena_bytes, verdict.slots, verdict.actions,
                       verdict.advance_steps, verdict.record_steps, verdict.backward_steps,
                       verdict.transfers_in_flight,
                       _uses(verdict.tiers, self.problem.raw.ntiers))

    def simulate(self) -> Simulation:
        """Walks the schedule against the simulated clock; seconds, by kind."""
        found = _abi.neap_simulation(size=ctypes.sizeof(_abi.neap_simulation))
        with self._opened() as schedule:
            check(lib.neap_simulate(ctypes.byref(found), ctypes.byref(self.problem.raw), schedule))
        return Simulation(found.makespan, found.advance, found.record, found.backward, found.copies,
                          found.stall, found.lost)

    def draw(self, path: Union[None, str, "os.PathLike[str]"] = None, *, title: Optional[str] = None,
             limit: int = 0) -> str:
        """The simulated schedule as SVG, step against time; written to ``path`` where that is given.

        :param limit: about so many marks at most, 0: 200,000; a longer schedule is thinned.
        :raises OSError: where the file cannot be written.
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
        """The plan and its problem as text (docs/plan-format.md), with the list of actions where
        ``actions`` says so (10^6 of them at most, else UsageError)."""
        pieces: List[bytes] = []
        write = _collector("neap_plan_write", pieces)
        check(lib.neap_plan_write(ctypes.byref(self._raw), ctypes.byref(self.problem.raw),
                                  _abi.NEAP_WRITE_ACTIONS if actions else 0, write, None))
        return b"".join(pieces).decode()

    def save(self, path: Union[str, "os.PathLike[str]"], actions: bool = False) -> None:
        """Writes :meth:`text` to a file, which is whole or as it was before. OSError."""
        _write_file(path, self.text(actions).encode())

    def table(self) -> str:
        """The table of all strategies of the problem, which are planned for it."""
        return str(_compare(self.problem, _abi.neap_params()))

    def details(self) -> str:
        """This plan in full, a number a line."""
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
    """Plans of one problem, a strategy each, ``auto`` last; ``print`` shows them as a table."""

    def __init__(self, plans: List[Plan]):
        self._plans = plans

    def __len__(self) -> int:
        return len(self._plans)

    def __getitem__(self, key: Any) -> Any:
        """The plan of a number or of a strategy's name (KeyError)."""
        if not isinstance(key, str):
            return self._plans[key]
        for row in self._plans:
            if row.strategy == key:
                return row
        raise KeyError(f"{key!r} is not a strategy. Pass one of {', '.join(row.strategy for row in self._plans)}")

    @property
    def best(self) -> Plan:
        """The fastest plan that fits, or the one that needs the least budget."""
        return tables.sort(self._plans)[0]

    def __str__(self) -> str:
        return tables.table(self._plans)

    def __repr__(self) -> str:
        return f"<neap.Comparison of {len(self)} strategies, best: {self.best!r}>"

    def _repr_html_(self) -> str:
        return tables.html_table(self._plans)


def _collector(function: str, pieces: List[bytes]) -> Any:
    """A `write` of libneap's that gathers pieces of text."""
    kind: Any = _abi.FUNCTIONS[function][1][-2]  # type: ignore[index]

    def write(_user: object, at: int, length: int) -> int:
        pieces.append(ctypes.string_at(at, length))
        return 0

    return kind(write)


def _write_file(path: Union[str, "os.PathLike[str]"], content: bytes) -> None:
    """The file has the content, or is as it was."""
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
    """The names of the strategies, ``auto`` last, and a line about each."""
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
        remedy = "Increase the budget, or the capacity of slow tiers" if made.strategy == "auto" else \
            "Pass slow=, or another strategy" if "needs a slow tier" in why else \
            "Change the problem accordingly, or pass another strategy"
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
    """Plans a chain of steps under a budget.

    Give the problem in one of three ways: ``state``, ``tape`` and ``memory`` in bytes; ``slots``,
    a number of checkpoints, as in the literature; or ``stages`` with ``memory``.

    :param steps: T, or (A, B) with ``slots``: two chains that meet in one loss.
    :param state: bytes of a state. :param tape: bytes of a step's tape.
    :param memory: the budget, bytes of fast memory (``"64M"``); None: no limit.
    :param advance: seconds of a forward step without tape; ``record`` with (None: the same);
        ``backward`` of a backward step.
    :param slow: a :class:`Tier`, or a list of them, fastest first.
    :param strategy: a name of :func:`strategies`; ``auto`` is the fastest of all.
    :param adjoint: bytes of the adjoint (None: those of a state). :param live: bytes of the state
        that is stepped (None: the same).
    :param tape_max: where tapes vary, the largest; ``tape`` is what a plan counts, ``tape_mean``
        what transfers take.
    :param log: bytes a step of a log from which ``replay`` seconds make its tape again.
    :param slot_write: seconds to copy a state into a slot; ``slot_read`` out of it; ``call`` that
        a call of the model takes besides its steps.
    :param last: the last step's seconds over those of the others, where steps are groups that do
        not divide a sequence evenly. Its tape has the room of a whole one.
    :param tapes_stay: only states travel to slow tiers.
    :param chunk: parameters of strategies, 0: the best; also ``checkpoints``, ``remote_chunk`` and
        ``effort``, the simulations that a search may take.
    :raises BudgetError: where nothing fits; ``error.least`` is a budget that would do.
    :raises UsageError: for an unknown strategy, or a number that makes no sense.
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
    """The plans of all strategies for a problem, which is given as to :func:`plan`.

    Where a strategy does not fit, its row says what it needs (``plan.why``, ``plan.least``).

    :raises UsageError: for a number that makes no sense.
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
    """A plan from a file of :meth:`Plan.save` or ``neap plan --save``, or of another program.

    Nothing is searched: the schedule is verified and simulated, and what the file says of it is
    compared.

    :param walk: actions that the schedule may have; 0: any number.
    :raises FormatError: with the file's name and the line's number, also where the file claims
        what is not so.
    :raises OSError: where the file cannot be read.
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
    # Whoever holds problem or plan holds `saved`, whose memory they lie in.
    weakref.finalize(saved, _free_saved, ctypes.cast(saved, ctypes.c_void_p).value or 0)
    return loaded


class Online:
    """Actions for a chain whose length nobody knows before it ends; see :func:`online`."""

    def __init__(self, question: Problem):
        self.problem = question
        self._raw = _abi.neap_action()
        self._online = ctypes.c_void_p()
        check(lib.neap_online_create(ctypes.byref(self._online), ctypes.byref(question.raw)))
        self._free = weakref.finalize(self, lib.neap_online_free, self._online)
        self._told = False

    def __iter__(self) -> "Online":
        return self

    def __next__(self) -> Action:
        if not self._free.alive or check(lib.neap_online_next(
                self._online, ctypes.byref(self._raw))) == 0:
            raise StopIteration
        return of(self._raw)

    def finish(self, at: int, steps: Optional[int] = None) -> None:
        """Tells that the chain has ``steps`` steps (None: ``at``), while the live state stands at
        step ``at``, within the last ADVANCE or RECORD. The actions that follow reverse it.

        :raises UsageError: for other numbers.
        """
        check(lib.neap_online_finish(self._online, units.count(at, "at"),
                                     units.count(at if steps is None else steps, "steps")))

    def close(self) -> None:
        """Frees the planner's memory; so does the end of the object."""
        self._free()


def online(*, state: Optional[Size] = None, tape: Optional[Size] = None,
           memory: Optional[Size] = None, slots: Optional[int] = None, advance: Seconds = 1.0,
           backward: Seconds = 2.0, record: Optional[Seconds] = None, slow: Slow = None,
           adjoint: Optional[Size] = None, live: Optional[Size] = None,
           tape_max: Optional[Size] = None) -> Online:
    """Plans a chain of unknown length while it runs: adaptive time steps, an event that ends it.

    The caller performs action after action; within an ADVANCE or RECORD it may stop early, and
    tells so::

        run = neap.online(state="64K", tape="256K", memory="64M")
        for a in run:
            if a.kind in (neap.ADVANCE, neap.RECORD):
                t = as_far_as_it_goes(a.t0, a.t1)
                if ended:
                    run.finish(t)
            else:
                perform(a)

    Arguments are those of :func:`plan`. Memory is O(slots), with a tier O(slots + its records).

    :raises BudgetError: where x_0 and a tape do not fit. :raises UsageError: as :func:`plan`.
    """
    given = {"state": state, "tape": tape, "adjoint": adjoint, "live": live, "tape_max": tape_max,
             "tape_mean": None, "log": None, "replay": None, "advance": advance, "record": record,
             "backward": backward, "slot_write": 0, "slot_read": 0, "call": 0}
    return Online(problem(0, None, memory, slots, slow, False, False, given))
