# SPDX-License-Identifier: Apache-2.0
"""Scans: a time loop in PyTorch with a memory budget and bit-identical gradients.

``forward`` of an autograd.Function performs a plan up to its TURN and keeps slots and tapes; ``backward`` performs the
rest. State, inputs and parameters are inputs of the function, so hooks, accumulation and optimizers get ordinary
gradients, once per scan.
"""
import contextlib
import functools
import gc
import sys
import threading
import warnings
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Union

import torch

from .. import units
from ..errors import BudgetError, UsageError, too_small
from ..plans import Plan
from ..player import Counts, Sizes, needed
from ..reports import Report, stack_level
from ..show import show_least
from ..stores import OpenTier, Paths, measured_tiers
from ..units import Size
from . import axes
from .around import Around, Unregistered
from .calls import Call, ScanFunction
from .checks import Hashes
from .compiled import LARGEST, Compiler, Untraceable, group_size, not_compiled
from .device import Device, Generators, generator_kept, get_rng, memory_of, offloading, set_rng
from .heap import Heap, resident
from .known import Known, known_of, nothing_known
from .layouts import dense
from .loops import plain, unrolled
from .measure import addresses
from .options import Options, options
from .places import places_of
from .planning import Chain, differs, fastest, through_host
from .repeatable import shared
from .runs import Again, Cast, Run, differentiable
from .tiers.exhaustion import device_memory
from .tiers.offload import record_bytes
from .tiers.rates import device_tiers
from .timing import UNTIMED, Costs, Measured, measure
from .transforms import transformed, uncompiled
from .trees import Tree, flatten, mapped, nbytes, tensors_in, unflatten
from .wrappers import Buffered, argument_hint, listed, recurrent, reducing

__all__ = ["Scan", "report", "scan"]

GROUP = 20  # steps per graph, unless the budget requires fewer: 3% slower than plain autograd
TIMED = 0.05  # seconds of measuring a tier
LARGER = 40  # candidates for error.least, each 1/8 larger: the last is 100 times the first
SHARE = 8  # the tape of a group is at most 1/SHARE of the budget
TRIES = 20  # most restarts of one call because of leaves in the same step

_thread = threading.local()  # .report: of the last scan


def _note(leaves: List[Any], again: Again) -> None:
    """Adds the leaves that an attempt found."""
    leaves.extend(weakref.ref(leaf) for leaf in again.leaves)


class _Job:
    """The arguments of one call, with flat lists instead of trees, and the methods that process them."""

    def __init__(self, step: Any, state: Tree, inputs: Any, steps: Optional[int], options: Options,
                 known: Known):
        if isinstance(step, Scan):
            raise UsageError("step is already a neap.torch.Scan. Call it directly, scan(state, inputs), or pass its "
                             "cell to nt.scan")
        self.resident = resident()
        self.module = step if isinstance(step, torch.nn.Module) else None
        self.proper = False  # inputs were verified to be a function of t
        self.step, cell = step, recurrent(step)
        if cell is not None:
            self.step, inputs = cell, cell.inputs(inputs)
            state = cell.start(inputs) if state is None else state
        self.called, self.hint = self.step, argument_hint(state, inputs)
        self.options, self.known = options, known
        self.around = Around(step, *[one for one in (options.reduce, inputs) if callable(one)],
                             buffered=options.buffers is not None)
        self.give = inputs if callable(inputs) and not isinstance(inputs, torch.Tensor) else None
        self.inputs: Optional[List[torch.Tensor]] = None
        self.input_shape: Any = None
        if inputs is not None and self.give is None:
            self.inputs, self.input_shape = flatten(inputs, "inputs")
        self.steps = self._steps(steps, listed(inputs))
        self.device: Optional[Device] = None  # whose states and tapes are offloaded through host memory
        self.compiler: Optional[Compiler] = None
        self.travels = self.spill = False  # tapes may be offloaded; see Chosen
        self.buffered: Optional[Buffered] = None
        if options.buffers is not None:
            if self.module is None:
                raise UsageError("buffers='state' needs a torch.nn.Module, but step is a function. Pass the module "
                                 "itself instead of a function that calls it")
            self.buffered = self.step = Buffered(self.module, self.step)
            state = (state, self.buffered.start())
        self.start, self.shape = flatten(state, "the state")
        self.cast = Cast((self.start or self.inputs or [torch.empty(0)])[0].device)
        self.tree, self.random = state, self._generators(state)
        if options.reduce is not None:
            with axes.explained(self.start, self.inputs, self.swapped):
                state = (state, self._zero_total(state))
            self.step = reducing(self.step, options.reduce)
            self.tree, (self.start, self.shape) = state, flatten(state)
        self.rng = known.rng[0] if options.rng is None else options.rng
        self.device = offloading(options.host, options.slow, self.start)
        self.found: List[Any] = []  # weak references to the leaves that the last attempt found
        self.tries: Dict[int, int] = {}  # number of attempts that found leaves, by step
        if options.compile:
            steps = [one for one in (step, options.reduce) if one is not None]
            self.compiler = Compiler(known.groups, self.around, self.cast, self.random, steps)

    def _generators(self, state: Tree) -> Generators:
        """Returns the generators of all devices of the scan's tensors, and those that the step uses."""
        tensors = [*tensors_in(state), *(self.inputs or ()), *self.params()]
        return Generators([x.device for x in tensors], self.around.generators, self.options.rng is not False)

    def _steps(self, steps: Optional[int], hint: str) -> int:
        lengths = {x.shape[0] if x.dim() else -1 for x in self.inputs or ()}
        try:
            return units.steps_of(lengths, steps, "tensor")
        except UsageError as error:
            if hint:
                raise UsageError(f"{error}. {hint}") from None
            raise

    def _zero_total(self, state: Tree) -> Tree:
        """Returns zeros of the shape that reduce returns, from a step that runs only for this."""
        run = self._apart()
        with generator_kept(self.random), self.around.attributes.restored():
            if not torch.is_grad_enabled():  # the step may modify its state
                state = mapped(torch.clone, state)
            after, output = run._called(state, run.input(0), 0)
            run.flat(after, 0)
            return mapped(torch.zeros_like, self.options.reduce(output, 0), "the result of reduce")

    def _run(self, params: List[torch.Tensor], excluded: List[torch.Tensor], rng: bool) -> Run:
        made = Run if self.compiler is None else self.compiler.made
        run = made(self.step, self.steps, self.shape,
                   None if self.inputs is None else [x.detach() for x in self.inputs],
                   self.input_shape, self.give, params, addresses(excluded), rng)
        run.called, run.hint = self.called, self.hint
        run.count, run.device, run.random = self.options.count, self.cast.where, self.random
        run.memory = self.device.memory if self.device is not None else memory_of(run.device)
        needs, chosen = self.known.needs, self.options.enable_grad
        run.grad, run.walk = "grad" in needs if chosen is None else chosen, "walk" in needs
        run.chooses = chosen is None and self.compiler is None
        run.outside = self.around.leaves() if "made" in needs else None
        return run

    def _apart(self) -> Run:
        """Returns a run for plain calls of the step, whose errors are those of the step."""
        run = self._run([], [], False)
        run.chooses, run.walk = False, True
        return run

    def swapped(self) -> bool:
        """True if the step works only with its first two arguments swapped; called after a failure."""
        if self.step is not self.called:
            return False
        x = self._apart().input(0)
        with torch.no_grad():
            with contextlib.suppress(Exception):
                self.called(self.tree, x, 0)
                return False
            answer = self.called(x, self.tree, 0)
        return isinstance(answer, tuple) and len(answer) == 2

    def params(self) -> List[torch.Tensor]:
        """Returns the tensors that require gradients: those of the module, those in ``params``, and those found."""
        rows: List[torch.Tensor] = [] if self.module is None else list(self.module.parameters())
        rows += self.options.params or []
        rows += [leaf for leaf in (ref() for ref in self.known.leaves) if leaf is not None]
        once = {id(row): row for row in rows if row.requires_grad}
        return list(once.values())

    def learn(self, again: Again) -> None:
        """Stores the results of an attempt."""
        _note(self.known.leaves, again)
        if again.rng:
            if self.options.rng is False:
                raise UsageError("rng=False, but the step draws random numbers (for example dropout), which must be "
                                 "restored when it is recomputed. Remove rng=False")
            self.known.rng[0] = self.rng = True
        needs = {"grad": "grad", "walk": "walk", "grows": self._kind()}
        self.known.needs.update(key for name, key in needs.items() if getattr(again, name))
        self.found = [weakref.ref(leaf) for leaf in again.leaves]
        if self.found:
            self.tries[again.t] = self.tries.get(again.t, 0) + 1

    def _kind(self) -> Any:
        """Returns what the sizes of the states may depend on."""
        return ("grows", self.steps, *[(x.shape, x.dtype) for x in (*self.start, *(self.inputs or ()))])

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
        params = self.params()
        run = self._run(params, [*params, *self.around.buffers, *(self.inputs or ())], self.rng)
        run.excluded |= self._shared()
        run.wants_input = [x.requires_grad for x in self.inputs or ()]
        return run

    def _shared(self) -> Set[int]:
        """Returns the storages of inputs that are owned by the caller, if inputs are a function of t."""
        if self.give is None or self.steps < 2:
            return set()
        found = shared(self._run([], [], False), self.random, self.proper)
        self.proper = True
        return found

    def needed(self) -> bool:
        """True if a gradient may be requested."""
        if not torch.is_grad_enabled():
            return False
        if any(x.requires_grad for x in (*self.start, *(self.inputs or ()), *self.params())):
            return True
        if self.module is not None or self.options.params is not None:
            return False
        self.dense()
        # Leaves that the step uses in addition to its arguments.
        with generator_kept(self.random), self.around.attributes.restored(), self.cast():
            run = self.run()
            try:
                run.emitting = False
                Run.record(run, run.state(self.start), 0, 1, True, None)
            except Again as again:
                self.learn(again)
        self.settle()
        return bool(self.params())

    def transformed(self) -> bool:
        """True if PyTorch transforms or traces the scan, so it is a plain loop; raises UsageError with a budget."""
        tensors = *self.start, *(self.inputs or ()), *self.params(), *self.around.tensors
        return transformed(tensors, self.options.memory, "a scan")

    def loop(self) -> Tuple[Tree, Tree]:
        """Runs the plain loop (loops.py)."""
        return plain(self._apart(), self.tree, self.random)

    def unrolled(self) -> Tuple[Tree, Tree]:
        """Runs the plain loop in operations that transforms and tracers support."""
        run = self._apart()
        run.inputs = self.inputs
        return unrolled(run, self.tree)

    # Sizes and the plan

    def _measured(self, run: Run, group: int, travels: bool = False, timed: bool = True,
                  every: bool = False) -> Measured:
        """Returns the measurements of a group, without its costs if ``timed`` is False; or all sizes (``every``)."""
        costs = self.options.costs if timed and not every else UNTIMED
        if self.compiler is not None:
            state, run.size = run.state(self.start), group
            made = (self.compiler.ready if timed else self.compiler.traced)(run, state, group)
            if not timed:
                return Measured(made.nbytes, Costs(1, 1, 2), 0, 0, 0.0, *run.state_bytes(state))
        key = (self.compiler is not None, group, travels, costs, every and self.steps, self.rng, run.grad,
               run.walk, run.memory, self.cast.key,
               self.module is not None and tuple(getattr(part, "training", None) for part in self.module.modules()),
               torch.get_num_threads(), len(run.params), tuple(x.requires_grad for x in self.inputs or ()),
               *[(x.shape, x.dtype, x.device) for x in self.start],
               *[(x.shape[1:], x.dtype, x.device) for x in self.inputs or ()])
        if key not in self.known.measured:
            run.travels, where = travels, self.random
            with generator_kept(where), self.around.attributes.restored(), self.cast():
                before = get_rng(where)
                found = measure(run, self.start, group, costs, every)
                if not run.rng and not torch.equal(before, get_rng(where)):
                    raise Again(rng=True)
                self.known.measured[key] = found
        return self.known.measured[key]

    def _one(self, run: Run) -> int:
        """Returns the bytes of the tape of one step, the largest if states grow."""
        one = self._measured(run, 1, timed=False)
        if self._kind() in self.known.needs:
            one = one._replace(grows=True)
        every = self._measured(run, 1, every=True).tapes if differs(self.options.strategy, one) else ()
        return max(1, one.tape, *every)

    def planned(self, told: Report) -> Tuple[Plan, int, Sizes]:
        """Returns a plan, the steps per group, and the planned sizes.

        :raises BudgetError: with ``least``, a budget for which a plan was found.
        """
        run, memory = self.run(), self.options.memory
        charged = 2 * sum(run.memory.rounded(nbytes([param])) for param in run.params)
        if run.grad and memory is not None and self.compiler is None:
            charged += self._one(run)  # the graph of an advanced step
        left = None if memory is None else memory - charged
        try:
            group, sizes, made, found, self.travels = self._choice(run, left)
        except BudgetError as error:
            raise self._too_small(run, error, charged) from None
        for count in {group, self.steps % group} - {0} if self.compiler is not None else ():
            self.compiler.ready(self.run(), run.state(self.start), count)
        self.spare, told.graph, told.graphs = found.spare, found.graph, self.places.away * found.graph
        told.planned(made, self.steps, group, max(sizes.state, found.state), sizes.tape, charged, memory,
                     made.peak + told.graphs)
        return made, group, sizes

    def _too_small(self, run: Run, error: BudgetError, charged: int) -> BudgetError:
        """Returns the error of the planner, for the whole budget."""
        group, least = self.enough(run, error.least)
        if not group:
            return error
        least += charged
        more = " and the graph of one step" if run.grad else ""
        why = f"the saved tensors of {group} step{'' if group == 1 else 's'} take " \
              f"{show_least(self._measured(run, group).tape)}"
        if self.options.strategy == "bptt":
            why += f", and 'bptt' stores the saved tensors of all {self.steps} steps"
        elif group > 1 and self.options.group is not None:
            why += f" (group={group}; a smaller group needs less)"
        if charged:
            why = f"{show_least(charged)} are reserved for the gradients of the parameters{more}, and {why}"
        return too_small(self.options.memory or 0, least, why + run.of_inputs(), self.options.strategy)

    def enough(self, run: Run, least: int) -> Tuple[int, int]:
        """Returns the steps per group, and a number of bytes from ``least`` on, for which there is a plan in which
        each step fits; zeros if none is found. A planner's own bound is for one kind of plan and for steps that all
        equal the first ones; and groups, planned sizes and tiers change with the budget."""
        fits: Dict[Any, int] = {}
        for _ in range(LARGER if least else 0):
            try:
                group, sizes, _, _, travels = self._choice(run, least)
            except BudgetError as again:
                least = max(least + least // 8 + 1, again.least)
                continue
            key = sizes.state, sizes.adjoint, sizes.staging, travels, any(self.places.used)
            if self.options.strict and key not in fits:
                fits[key] = self._largest(sizes, travels)
            if fits.get(key, 0) <= least:
                return group, least
            least = fits[key]
        return 0, 0

    def _largest(self, sizes: Sizes, travels: bool) -> int:
        """Returns the largest number of bytes that a single step needs, in a plan of these sizes."""
        if self.compiler is not None:
            return sizes.state + sizes.adjoint + sizes.tape + sizes.staging
        run = self.run()
        run.travels, run.stored = travels, any(self.places.used)
        run.emitting, run.caller = False, addresses(self.start)
        with generator_kept(self.random), self.around.attributes.restored(), self.cast():
            return needed(run, run.state(self.start), self.steps, sizes)

    def _record(self) -> int:
        """Returns the bytes of a state on a tier."""
        sizes = [nbytes([x]) for x in self.start] + ([get_rng(self.random).numel()] if self.rng else [])
        return max(1, sum(sizes) if self.device is None else record_bytes(sizes))

    def _choice(self, run: Run, left: Optional[int]) -> Tuple[int, Sizes, Plan, Measured, bool]:
        """Returns steps per group, sizes, plan, measurements, and whether tapes are offloaded, for ``left`` bytes."""
        options = self.options
        free = left is None and options.strategy in ("auto", "bptt")
        group = options.group
        if group is None:
            group = most = GROUP if self.compiler is None else min(LARGEST, self.steps)
            if left is not None:
                group = max(1, min(most, max(0, left) // SHARE // self._one(run)))
            if self.compiler is not None:
                group = group_size(self.steps, group)
        group = min(group, self.steps)
        while True:
            try:
                if self.compiler is not None and not free:
                    self._planned(run, group, left, free, timed=False)  # raises before a group is compiled
                return (group, *self._planned(run, group, left, free))
            except BudgetError:
                if group == 1 or options.group is not None:
                    raise
                group //= 2

    def _planned(self, run: Run, group: int, left: Optional[int], free: bool,
                 timed: bool = True) -> Tuple[Sizes, Plan, Measured, bool]:
        """Returns the plan for ``group`` steps per graph."""
        options, record = self.options, self._record()
        stays = None if free else self._measured(run, group, timed=timed)
        if stays and self._kind() in self.known.needs:
            stays = stays._replace(grows=True)
        state, adjoint = (stays.state, stays.adjoint) if stays else \
            (record, nbytes(x for x in self.start if differentiable(x)))
        state = max(1, state)
        tiers = [] if free else self._tiers(record)
        key = self.steps, group, state, adjoint, left, options.strategy, options.tiers, stays
        if key not in self.known.plans:
            chain = Chain(self.steps, group, options.strategy, state, adjoint, left)
            goes = self._measured(run, group, True, timed) if tiers and not run.walk else None
            both = tiers and options.host is not None and options.slow is not None
            every = functools.partial(self._measured, run, group, every=True)
            self.known.plans[key] = through_host(chain, tiers, stays, goes, every, options.host, record) if both else \
                fastest(chain, tiers, stays, goes, every)
        made, found, travels, self.actions, self.spill = self.known.plans[key]
        if key not in self.known.places:
            self.known.places[key] = places_of(made)
        self.places = self.known.places[key]
        staging = sum(tier.spec().staging for tier, used in zip(tiers, self.places.used) if used)
        adjoint, memory = found.adjoint if stays else adjoint, None if free else left
        return Sizes(state, adjoint, max(1, found.tape), memory, staging, found.graph), made, found, travels

    def _tiers(self, state: int) -> List[OpenTier]:
        """Returns the slow tiers for the planner; each is measured once."""
        options, key = self.options, (state, self.options.tiers)
        if key not in self.known.tiers and self.device is not None:
            most = min(options.memory or sys.maxsize, options.host or sys.maxsize) // 4
            self.known.tiers[key] = device_tiers(self.device, self.cast.where, state, most, options.host, options.slow,
                                                 TIMED)
        elif key not in self.known.tiers and options.slow is not None:
            self.known.tiers[key] = list(measured_tiers(options.slow, state, TIMED))
        return self.known.tiers.get(key, [])

    def dense(self) -> None:
        """Raises UsageError for states, and inputs that require gradients, that are not plain dense tensors."""
        dense(self.start, "the initial state (of buffers= and reduce=, too)")
        dense([x for x in self.inputs or () if x.requires_grad or x.is_nested], "inputs")

    def call(self, told: Report) -> Tuple[Tree, Tree]:
        """Runs the scan as one node of autograd."""
        self.dense()
        with device_memory(self.options.memory, self.cast.where, functools.partial(self.enough, self.run()), told):
            return self._call(told)

    def _call(self, told: Report) -> Tuple[Tree, Tree]:
        while True:
            if self.transformed():  # because of parameters that were found
                return self.unrolled()
            try:
                made, group, sizes = self.planned(told)
                told.counts = Counts()
                run = self.run()
                run.heap = Heap(self.resident, self.options.memory if run.memory.graphs else None)
                run.stored = any(self.places.used)
                run.replans = self.options.strategy == "auto" and self._kind() not in self.known.needs
                call = Call(run, self.start, made, group, sizes, self.options.strict, self.cast,
                             self.around, functools.partial(_note, self.known.leaves), told)
                call.actions = self.actions or made
                call.double, call.memory = self.options.double, self.options.memory
                call.enough = functools.partial(self.enough, self.run())
                call.slow, call.host, call.record = self.options.slow, self.options.host, self._record()
                call.places, call.device, call.spill = self.places, self.device, self.spill
                if self.options.check:
                    run.hashes = Hashes()
                    if not call.redoes and not call.double:
                        why = "without memory=" if self.options.memory is None else "with this budget"
                        warnings.warn(f"check=True has no effect: {why} no step is recomputed. Pass a smaller "
                                      f"memory to check the step", RuntimeWarning, stacklevel=stack_level())
                elif (call.redoes or call.double) and run.device.type == "cpu":
                    run.hashes = Hashes({0, 1, self.steps // 2, max(0, self.steps - 2)})
                run.travels, run.spare = self.travels, self.spare
                run.sent, run.size = {g * group for g in self.places.sent}, group
                results = ScanFunction.apply(call, *self.start, *(self.inputs or ()), *run.params)
                break
            except Again as again:
                self.learn(again)
            except Untraceable as error:
                self.compiler, told.uncompiled = None, not_compiled(self.known.groups, error)
            self.settle()
        count = len(self.start)
        return (unflatten(self.shape, list(results[:count])),
                unflatten(run.out_shape, list(results[count:])))


def _scan(step: Any, state: Tree, inputs: Any, steps: Optional[int], options: Options,
          known: Known, told: Report) -> Tuple[Tree, Tree]:
    _thread.report = told
    job = _Job(step, state, inputs, steps, options, known)
    found = None
    with axes.explained(job.start, job.inputs, job.swapped):
        try:
            found = job.unrolled() if job.transformed() else job.call(told) if job.needed() else job.loop()
        except Again as again:  # raised by the plain loop
            job.learn(again)
        job.settle()
        last, out = found or job.call(told)
    told.plain = told.plan is None
    axes.look(job.start, job.inputs, last)
    if job.buffered is not None:
        both = last[0] if options.reduce is not None else last
        job.buffered.take(both[1])
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
        called several times for each t and must return the same values in a newly allocated tensor. It may return
        views of an array that the caller holds, which is not counted.
    :param steps: T, if the inputs do not determine it.
    :param params: tensors that require a gradient and that the step uses in addition to the parameters of its
        module. Leaves are found automatically; tensors computed from parameters must be named.
    :param memory: bytes for checkpointed states, saved tensors (tapes) and adjoint, and for two gradients of all
        parameters, such as ``"64M"``; None: no limit. Inputs, outputs and the memory that the backward pass of one
        group allocates temporarily are not included.
    :param group: steps per autograd graph; None: as many as fit in 1/8 of the budget, at most 20.
    :param strategy: a name of :func:`neap.strategies`.
    :param reduce: ``reduce(output, t)``; the sum of its results over the steps is returned instead of the outputs,
        which are not stored.
    :param rng: True: the states of the random number generators (of the CPU, of other devices of the scan's
        tensors, and ``torch.Generator`` objects that the step reaches) are part of the state; None: if the step
        uses them; False: random numbers in the step are an error.
    :param strict: False: a step whose tape does not fit is recorded anyway and exceeds the budget.
    :param costs: seconds of ``group`` steps (advance, record, backward); None: measured in the first call with a
        budget, in which the steps of the first two groups run up to 16 times more (32 with ``slow``), and stored for
        this step, ``reduce`` and these shapes.
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
