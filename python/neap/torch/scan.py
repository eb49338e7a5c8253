# SPDX-License-Identifier: Apache-2.0
"""Scans: a time loop in PyTorch with a memory budget and bit-identical gradients.

``forward`` of an autograd.Function performs a plan up to its TURN and keeps slots and tapes; ``backward`` performs the
rest. State, inputs and parameters are inputs of the function, so hooks, accumulation and optimizers get ordinary
gradients, once per scan.
"""
import contextlib
import functools
import gc
import threading
import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import torch

from ..errors import UsageError
from ..player import Counts
from ..reports import GRADIENTS, Report, stack_level
from ..scan_choice import Asked, Choice, Machine, enough, planned
from ..stores import Paths
from ..units import Size
from . import axes
from .arguments import Arguments, Options, arguments, options
from .around import Around, Leaf, Unregistered
from .calls import Call, ScanFunction
from .checks import Hashes
from .compiled import Compiler, Untraceable, not_compiled
from .device import generator_kept, memory_of, offloading, set_rng
from .facts import Facts, Known, known_of, nothing_known, tiers
from .heap import Heap, resident
from .loops import plain, unrolled
from .measure import addresses
from .repeatable import shared
from .runs import Again, Run
from .tiers.exhaustion import device_memory
from .transforms import transformed, uncompiled
from .trees import Tree, mapped, unflatten

__all__ = ["Scan", "report", "scan"]

TRIES = 20  # most restarts of one call because of leaves in the same step

_thread = threading.local()  # .report: of the last scan


def _note(leaves: List[Any], around: Around, attempt: Again) -> None:
    """Adds the leaves that an attempt found."""
    there = around.leaves() if attempt.leaves else ()
    leaves.extend(Leaf(leaf, id(leaf) in there) for leaf in attempt.leaves)


class _Job:
    """One call: its arguments, and what its attempts have found."""

    def __init__(self, step: Any, given: Arguments, known: Known, memory: int):
        self.given, self.known, self.options = given, known, given.options
        self.resident = memory  # of the process at the beginning
        self.proper = False  # inputs were verified to be a function of t
        self.compiler: Optional[Compiler] = None
        self.found: List[Any] = []  # weak references to the leaves that the last attempt found
        self.tries: Dict[int, int] = {}  # number of attempts that found leaves, by step
        if self.options.reduce is not None:
            with axes.explained(given.start, given.inputs, self.swapped):
                given.reduced(self._zero_total())
        self.rng = known.rng[0] if self.options.rng is None else self.options.rng
        given.device = offloading(self.options.host, self.options.slow, given.start)
        if self.options.compile:
            steps = [one for one in (step, self.options.reduce) if one is not None]
            self.compiler = Compiler(known.groups, given.around, given.cast, given.random, steps)

    def _zero_total(self) -> Tree:
        """Returns zeros of the shape that reduce returns, from a step that runs only for this."""
        run, state = self._apart(), self.given.tree
        with generator_kept(self.given.random), self.given.around.attributes.restored():
            if not torch.is_grad_enabled():  # the step may modify its state
                state = mapped(torch.clone, state)
            after, output = run._called(state, run.input(0), 0)
            run.flat(after, 0)
            return mapped(torch.zeros_like, self.options.reduce(output, 0), "the result of reduce")

    def _run(self, params: List[torch.Tensor], excluded: List[torch.Tensor], rng: bool) -> Run:
        given, needs, chosen = self.given, self.known.needs, self.options.enable_grad
        made = Run if self.compiler is None else self.compiler.made
        run = made(given.step, given.steps, given.shape,
                   None if given.inputs is None else [x.detach() for x in given.inputs],
                   given.input_shape, given.give, params, addresses(excluded), rng)
        run.called, run.hint = given.called, given.hint
        run.count, run.device, run.random = self.options.count, given.cast.where, given.random
        run.memory = given.device.memory if given.device is not None else memory_of(run.device)
        run.grad, run.walk = "grad" in needs if chosen is None else chosen, "walk" in needs
        run.chooses = chosen is None and self.compiler is None
        run.fixes = self.compiler is None and ("changes", given.kind) not in needs
        run.views = self.options.slow is not None or self.options.host is not None
        run.outside = given.around.leaves() if "made" in needs else None
        return run

    def _apart(self) -> Run:
        """Returns a run for plain calls of the step, whose errors are those of the step."""
        run = self._run([], [], False)
        run.chooses, run.walk = False, True
        return run

    def swapped(self) -> bool:
        """True if the step works only with its first two arguments swapped; called after a failure."""
        if self.given.step is not self.given.called:
            return False
        x = self._apart().input(0)
        with torch.no_grad():
            with contextlib.suppress(Exception):
                self.given.called(self.given.tree, x, 0)
                return False
            answer = self.given.called(x, self.given.tree, 0)
        return isinstance(answer, tuple) and len(answer) == 2

    def params(self) -> List[torch.Tensor]:
        """Returns the tensors that require gradients."""
        return self.given.params(self.known.leaves)

    def learn(self, again: Again) -> None:
        """Stores the results of an attempt."""
        _note(self.known.leaves, self.given.around, again)
        if again.rng:
            if self.options.rng is False:
                raise UsageError("rng=False, but the step draws random numbers (for example dropout), which must be "
                                 "restored when it is recomputed. Remove rng=False")
            self.known.rng[0] = self.rng = True
        needs = {"grad": "grad", "walk": "walk", "grows": self.given.kind, "changes": ("changes", self.given.kind)}
        self.known.needs.update(key for name, key in needs.items() if getattr(again, name))
        self.found = [weakref.ref(leaf) for leaf in again.leaves]
        if self.found:
            self.tries[again.t] = self.tries.get(again.t, 0) + 1

    def settle(self) -> None:
        """Checks the leaves that an attempt found after its graph was freed: leaves that were freed with it were
        created by the step, and need no gradient of the scan."""
        if self.found and max(self.tries.values()) == 2:
            gc.collect()  # frees reference cycles
        if any(ref() is None for ref in self.found):
            self.known.needs.add("made")
        for t, count in self.tries.items():
            if count > TRIES:
                raise UsageError(f"step {t} creates a tensor with requires_grad=True in each call and keeps it. A scan "
                                 f"returns gradients of states, inputs and parameters only. Do not keep the tensor, "
                                 f"keep tensor.detach(), or create it outside the step")

    def run(self) -> Run:
        """Returns a run over all steps."""
        given, params = self.given, self.params()
        run = self._run(params, [*params, *given.around.buffers, *(given.inputs or ())], self.rng)
        run.excluded |= self._shared()
        run.wants_input = [x.requires_grad for x in given.inputs or ()]
        return run

    def _shared(self) -> Set[int]:
        """Returns the storages of inputs that are owned by the caller, if inputs are a function of t."""
        if self.given.give is None or self.given.steps < 2:
            return set()
        found = shared(self._run([], [], False), self.given.random, self.proper)
        self.proper = True
        return found

    def needed(self) -> bool:
        """True if a gradient may be requested."""
        given = self.given
        if not torch.is_grad_enabled():
            return False
        if any(x.requires_grad for x in (*given.start, *(given.inputs or ()), *self.params())):
            return True
        if given.module is not None or self.options.params is not None:
            return False
        given.dense()
        # Leaves that the step uses in addition to its arguments.
        with generator_kept(given.random), given.around.attributes.restored(), given.cast():
            run = self.run()
            try:
                run.emitting = False
                Run.record(run, run.state(given.start), 0, 1, True, None)
            except Again as again:
                self.learn(again)
        self.settle()
        return bool(self.params())

    def transformed(self) -> bool:
        """True if PyTorch transforms or traces the scan, so it is a plain loop; raises UsageError with a budget."""
        given = self.given
        tensors = *given.start, *(given.inputs or ()), *self.params(), *given.around.tensors
        return transformed(tensors, self.options.memory, "a scan")

    def loop(self) -> Tuple[Tree, Tree]:
        """Runs the plain loop (loops.py)."""
        return plain(self._apart(), self.given.tree, self.given.random)

    def unrolled(self) -> Tuple[Tree, Tree]:
        """Runs the plain loop in operations that transforms and tracers support."""
        run = self._apart()
        run.inputs = self.given.inputs
        return unrolled(run, self.given.tree)

    def _question(self, run: Run) -> Tuple[Asked, Facts, Machine]:
        """Returns what the choice of a plan depends on. ``run`` is for measurements."""
        asked, known = self.options, self.known
        slow = None if asked.slow is None else repr(asked.slow)
        return (Asked(run.steps, asked.memory, asked.strategy, asked.group, asked.strict, asked.host, slow,
                      self.compiler is not None),
                Facts(self.given, known, self.compiler, run, self.run), functools.partial(tiers, self.given, known))

    def _planned(self, report: Report) -> Choice:
        """Returns the plan.

        :raises BudgetError: with ``least``, a budget for which a plan was found.
        """
        run = self.run()
        made = planned(*self._question(run))
        for count in {made.group, self.given.steps % made.group} - {0} if self.compiler is not None else ():
            self.compiler.ready(self.run(), run.state(self.given.start), count)
        plan, found = made.chosen.plan, made.chosen.found
        report.graph, report.graphs = found.graph, made.graphs
        if run.grad and made.charged:
            report.charge = GRADIENTS + " and the graph of one step"
        report.planned(plan, self.given.steps, made.group, max(made.sizes.state, found.state), made.sizes.tape, made.charged,
                     self.options.memory, made.peak, *((0, made.aside) if self.compiler is None else (made.aside, 0)))
        return made

    def _enough(self, run: Run, least: int) -> Tuple[int, int]:
        """Returns steps per group, and a number of bytes from ``least`` on, for which a plan was found."""
        return enough(*self._question(run), least)

    def call(self, told: Report) -> Tuple[Tree, Tree]:
        """Runs the scan as one node of autograd."""
        self.given.dense()
        with device_memory(self.options.memory, self.given.cast.where,
                           functools.partial(self._enough, self.run()), told):
            return self._call(told)

    def _call(self, told: Report) -> Tuple[Tree, Tree]:
        given = self.given
        while True:
            if self.transformed():  # because of parameters that were found
                return self.unrolled()
            try:
                made = self._planned(told)
                told.counts = Counts()
                call = self._prepared(self.run(), made, told)
                results = ScanFunction.apply(call, *given.start, *(given.inputs or ()), *call.run.params)
                break
            except Again as again:
                self.learn(again)
            except Untraceable as error:
                self.compiler, told.uncompiled = None, not_compiled(self.known.groups, error)
            self.settle()
        count = len(given.start)
        return (unflatten(given.shape, list(results[:count])),
                unflatten(call.run.out_shape, list(results[count:])))

    def _prepared(self, run: Run, made: Choice, told: Report) -> Call:
        """Returns the call of a plan, for this run."""
        run.heap = Heap(self.resident, self.options.memory if run.memory.graphs else None)
        run.stored = made.stored
        run.replans = self.options.strategy == "auto" and self.given.kind not in self.known.needs
        run.fix(self.given.start, made.chosen.found.fixed)
        call = Call(run, self.given, made, functools.partial(_note, self.known.leaves, self.given.around),
                    functools.partial(self._enough, self.run()), told)
        redoes = call.redoes or call.double
        if self.options.check:
            run.hashes = Hashes()
            if not redoes:
                why = "without memory=" if self.options.memory is None else "with this budget"
                warnings.warn(f"check=True has no effect: {why} no step is recomputed. Pass a smaller "
                              f"memory to check the step", RuntimeWarning, stacklevel=stack_level())
        elif redoes and run.device.type == "cpu":
            run.hashes = Hashes({0, 1, run.steps // 2, max(0, run.steps - 2)})
        run.travels, run.spare = made.chosen.travels, made.chosen.found.spare
        run.sent, run.size = {g * made.group for g in made.places.sent}, made.group
        return call


def _scan(step: Any, state: Tree, inputs: Any, steps: Optional[int], options: Options,
          known: Known, told: Report) -> Tuple[Tree, Tree]:
    _thread.report = told
    if isinstance(step, Scan):
        raise UsageError("step is already a neap.torch.Scan. Call it directly, scan(state, inputs), or pass its "
                         "cell to nt.scan")
    memory = resident()
    given = arguments(step, state, inputs, steps, options, known.leaves)
    job = _Job(step, given, known, memory)
    found = None
    with axes.explained(given.start, given.inputs, job.swapped):
        try:
            found = job.unrolled() if job.transformed() else job.call(told) if job.needed() else job.loop()
        except Again as again:  # raised by the plain loop
            job.learn(again)
        job.settle()
        last, out = found or job.call(told)
    told.plain = told.plan is None
    axes.look(given.start, given.inputs, last)
    if given.buffered is not None:
        both = last[0] if options.reduce is not None else last
        given.buffered.take(both[1])
        last = (both[0], last[1]) if options.reduce is not None else both[0]
    return last if options.reduce is not None else (last, out)


@uncompiled
def scan(step: Callable[..., Any], state: Tree, inputs: Any = None, *, steps: Optional[int] = None,
         params: Union[None, torch.nn.Module, Sequence[torch.Tensor]] = None,
         memory: Optional[Size] = None, group: Optional[int] = None, strategy: str = "auto",
         reduce: Optional[Callable[[Tree, int], Tree]] = None, rng: Optional[bool] = None,
         strict: bool = True, costs: Optional[Sequence[float]] = None,
         slow: Optional[Paths] = None, host: Optional[Size] = None, check: bool = False,
         count: bool = True, buffers: Optional[str] = None,
         double_backward: bool = False, enable_grad: Optional[bool] = None,
         compile: bool = False) -> Tuple[Tree, Tree]:
    """Runs ``state, output = step(state, input, t)`` for t = 0 .. T - 1 with a memory budget.

    Some states are checkpointed, and steps are recomputed in the backward pass. The gradient is bit-identical to that
    of plain autograd over the same loop, for every budget; the guide "neap for Python" lists exceptions. If no
    gradient is needed, a plain loop runs.
    States, inputs and outputs are tensors, None, or nested tuples, lists, dicts and dataclasses of these.

    :param step: a function or ``nn.Module`` that does not modify its arguments and returns the same values for
        the same arguments. The structure of the state and the shapes of outputs do not change from step to step.
        Or one of PyTorch's recurrent modules, such as ``nn.GRUCell``, which are called with ``(input, state)``.
    :param state: the initial state.
    :param inputs: tensors [T, ...]; or a function of t, through which no gradient flows; or None. The function is
        called several times for each t and must return the same values, in a newly allocated tensor or as
        views of an array that the caller holds, which is not counted.
    :param steps: T, if the inputs do not determine it.
    :param params: tensors that require a gradient and that the step uses in addition to the parameters of its
        module. Leaves are found automatically; tensors computed from parameters must be named.
    :param memory: bytes for checkpointed states, saved tensors (tapes) and adjoint, and for two gradients of all
        parameters, such as ``"64M"``; None: no limit. Inputs, outputs and the memory that the backward pass of one
        group allocates temporarily are not included.
    :param group: steps per autograd graph; None: as many as fit in 1/8 of the budget, at most 20, or 8
        with ``compile=True``.
    :param strategy: a name of :func:`neap.strategies`.
    :param reduce: ``reduce(output, t)``; the sum of its results over the steps is returned instead of the outputs,
        which are not stored.
    :param rng: True: the states of the random number generators (of the CPU, of other devices of the scan's
        tensors, and ``torch.Generator`` objects that the step reaches) are part of the state; None: if the step
        uses them; False: random numbers in the step are an error.
    :param strict: False: a step whose tape does not fit is recorded anyway and exceeds the budget.
    :param costs: seconds of ``group`` steps (advance, record, backward); None: measured in the first call with a
        budget, in which the steps of the first two groups run up to 16 times more (32 with ``slow`` or ``host``),
        and stored for this step, ``reduce`` and these shapes.
    :param slow: a directory, ``"mem:4G"``, or a list of them, fastest first: states and tapes are offloaded there,
        overlapped with computation; from a CUDA or ROCm device through pinned host memory. A lost record is recomputed.
    :param host: bytes of host memory, such as ``"64G"``, to which states and tapes of a CUDA or ROCm device are
        offloaded, in addition to ``memory``; it is pinned. With ``slow`` also given, host memory is used first. On
        the CPU it is ordinary memory in addition to the budget.
    :param check: True: all states and outputs are hashed, and NotDeterministic is raised if a recomputed step
        returns different ones. False: on the CPU four steps are compared, and a RuntimeWarning reports a difference.
    :param count: False: only the first tape is counted; a larger one later is not detected.
    :param buffers: ``"state"``: the buffers of the module are part of the state and end with the values of a plain
        loop; None: a step that changes them is an error.
    :param double_backward: True: gradients of this scan can be differentiated once more (``create_graph=True``,
        gradient penalties, Hessian-vector products). The second backward pass keeps two states per step in memory,
        in addition to the budget. False: differentiating them raises a RuntimeError.
    :param enable_grad: True: steps that are not recorded run with gradients enabled, as in ``torch.enable_grad()``;
        the graph of each is freed after the step, and one of them is included in ``memory``. False: they run under
        ``torch.no_grad()``. None: under ``torch.no_grad()``, unless the step calls ``torch.autograd.grad`` or the
        first steps round differently there.
    :param compile: True: the steps of a group, and its backward pass, are compiled with ``torch.compile``. The
        gradient differs from autograd's by about 1e-5, and is bit-identical for all budgets with the same ``group``. The step
        must not use ``t`` or branch on values of tensors: otherwise the call is not compiled, with a warning. On CUDA
        devices the functions are captured as CUDA graphs. Requires PyTorch 2.
    :returns: the last state and the outputs [T, ...]; with ``reduce`` the last state and the sum.
    :raises BudgetError: if no plan fits, before the first step; in the forward or backward pass if a single step
        does not fit. ``error.least`` is a sufficient budget. To determine it, all steps are measured, which takes
        about as long as a forward pass.
    :raises UsageError: if an argument is invalid, or the step returns something invalid.
    :raises NotDeterministic: with ``check=True``, see there.
    """
    given = options(params, memory, group, strategy, reduce, rng, strict, costs, slow, host, check,
                    count, buffers, double_backward, enable_grad, compile)
    return _scan(step, state, inputs, steps, given, known_of(step, reduce, buffers), Report())


class Scan(Unregistered):
    """:func:`scan` as a module: ``last, outputs = Scan(cell, memory="1G")(state, inputs)``.

    The size and cost of a step are measured in the first call and reused. The parameters of the cell are parameters
    of this module if the cell is a module. The parameters that a function uses are not: pass them to the optimizer, and
    save them, yourself. ``parameters()`` and ``state_dict()`` then issue a warning.

    :param cell: ``cell(state, input, t)`` returns ``(state, output)``; a module becomes the submodule ``cell``.

    The other arguments are those of :func:`scan`.
    """

    def __init__(self, cell: Callable[..., Any], *, params: Any = None, memory: Optional[Size] = None,
                 group: Optional[int] = None, strategy: str = "auto", reduce: Any = None,
                 rng: Optional[bool] = None, strict: bool = True,
                 costs: Optional[Sequence[float]] = None, slow: Optional[Paths] = None,
                 host: Optional[Size] = None, check: bool = False, count: bool = True,
                 buffers: Optional[str] = None, double_backward: bool = False,
                 enable_grad: Optional[bool] = None, compile: bool = False):
        super().__init__()
        self.cell = cell
        self._options = options(params, memory, group, strategy, reduce, rng, strict, costs, slow, host,
                                check, count, buffers, double_backward, enable_grad, compile)
        self._known, self._report = nothing_known(), Report()

    @uncompiled
    def forward(self, state: Tree, inputs: Any = None, steps: Optional[int] = None) -> Tuple[Tree, Tree]:
        """Runs the loop.

        :param state: the initial state.
        :param inputs: tensors [T, ...], a function of t, or None.
        :param steps: T, if the inputs do not determine it.
        :returns: the last state and the outputs [T, ...]; with ``reduce`` the last state and the sum.
        :raises Exception: as :func:`scan`.
        """
        self._report = Report()
        return _scan(self.cell, state, inputs, steps, self._options, self._known, self._report)

    def __getstate__(self) -> Dict[str, Any]:
        """Without measurements: copies and loaded modules measure again."""
        return {**self.__dict__, "_known": nothing_known(), "_report": Report()}

    def report(self) -> Report:
        """The :class:`Report` of the last call, including its backward pass once that has run."""
        return self._report


def reported(made: Report) -> None:
    """Makes this the report of the current thread."""
    _thread.report = made


def report() -> Report:
    """The :class:`Report` of the last scan, or call of a layer, of the current thread."""
    return getattr(_thread, "report", None) or Report()
