# SPDX-License-Identifier: Apache-2.0
"""Sequential: a stack of layers of different sizes with a memory budget and bit-identical gradients."""
import contextlib
import ctypes
import functools
import math
import time
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from .. import units
from ..actions import Action
from ..errors import BudgetError, UsageError, too_small
from ..places import StagePlaces, stage_places
from ..plans import Plan, plan
from ..player import Counts
from ..problems import Stages
from ..reports import Report
from ..show import show_least
from ..stage_player import StagePlayer, StageRefused, StageSizes, peak_of
from ..stores import ROOMS, OpenTier, Paths, measured_tiers
from ..units import Size
from .around import Around
from .device import Device, generator_kept, get_rng, memory_of, offloading, set_rng
from .double import Once
from .heap import give_back
from .layouts import dense
from .measure import addresses, charge
from .runs import Again, Cast, differentiable
from .stages import LayerRun, LayerState, kept_bytes
from .tapes import aligned
from .tiers.exhaustion import device_memory
from .tiers.offload import opened
from .tiers.rates import device_tiers
from .transforms import check_backward, transformed, uncompiled
from .trees import Tree, flatten, nbytes, unflatten

__all__ = ["Sequential"]

ROUNDS = 3  # timed runs of a layer on a first batch: one for warm-up; the fastest of the others counts
TRIES = 4  # budgets to plan with, if gradients of parameters need memory too: each takes 0.6 s for 56 layers
NEAR = 3e-3  # a plan that is slower by at most this fraction is good enough; chosen: costs are measured less exactly
SHRINKS = 4  # plans with smaller tiers, if the places of a plan take more than a tier has
TIMED = 0.05  # seconds of measuring a tier

_TWICE = ("trying to differentiate twice a neap.torch.Sequential, which has only first derivatives "
          "(once_differentiable). Use torch.nn.Sequential, with torch.utils.checkpoint.checkpoint(..., "
          "use_reentrant=False) to save memory")

class _Measured(NamedTuple):
    """Measurements of the layers on a first batch: bytes of states and tapes, seconds, and values that a run needs
    beforehand. ``records``: bytes of the records of tapes; empty if tapes are not offloaded. ``moving``: seconds of
    computation per byte of an offloaded tape, in each direction."""

    state: List[int]
    tape: List[int]
    advance: List[float]
    record: List[float]
    backward: List[float]
    extra: int
    needs: List[Any]
    spare: List[int]
    records: List[int]
    moving: float


class _Fit(NamedTuple):
    """A plan, its actions (stored, since generating them takes long), places on tiers, and bytes."""

    plan: Plan
    actions: List[Action]
    places: StagePlaces
    sizes: StageSizes


class _Function(torch.autograd.Function):
    """The layers as one node: a function from (first state, parameters) to the last state."""

    @staticmethod
    def forward(ctx: Any, call: "_Call", *tensors: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        ctx.call, ctx.player = call, None
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.player, last = call.forward()
        call.around.note()
        charge(ctx.player.held)
        results = tuple(leaf.clone() for leaf in last.leaves)
        ctx.mark_non_differentiable(*[x for x, wanted in zip(results, call.run.needs[-1] or [])
                                      if not wanted or not differentiable(x)])
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[torch.Tensor]) -> Tuple[Any, ...]:
        check_backward(ctx.call.report.memory, "a Sequential")
        call, player = ctx.call, ctx.player
        given = ctx.saved_tensors  # raises if versions have changed or the graph was freed
        ctx.player = None
        with torch.no_grad():
            found = call.backward(player, list(gradients))
        found = [x if wanted else None for x, wanted in zip(found, ctx.needs_input_grad[1:])]
        if torch.is_grad_enabled():
            found = list(Once.apply(_TWICE, len(found), *found, *given, *gradients))
        return (None, *found)


class _Call:
    """One call: its run, its plan, and their execution."""

    def __init__(self, run: LayerRun, first: LayerState, params: List[torch.Tensor], fit: _Fit,
                 strict: bool, cast: Cast, told: Report, slow: Optional[Paths], around: Around,
                 again: Callable[[StageRefused], _Fit], device: Optional[Device], host: Optional[int]):
        self.device, self.host = device, host
        self.explained: Callable[[], Any] = contextlib.nullcontext  # of a device without memory
        self.run, self.first, self.params, self.fit, self.again = run, first, params, fit, again
        self.strict, self.cast, self.report, self.slow, self.around = strict, cast, told, slow, around

    @property
    def redoes(self) -> bool:
        """True if the plan recomputes layers."""
        return self.fit.plan.advance_steps + self.fit.plan.record_steps > len(self.run.layers)

    def forward(self) -> Tuple[StagePlayer, LayerState]:
        """Runs the forward pass; returns a player at TURN and the last state."""
        fit, places, states = self.fit, self.fit.places, self.fit.sizes.state
        self.run.sends = places.sent
        store = opened(self.device, self.slow, self.host, max(states) if self.device is None else _record(states), places,
                       places.nbytes)
        self.report.host = getattr(store, "host_bytes", 0)
        player = StagePlayer(self.run, fit.actions, fit.sizes, self.strict, self.report.counts, store)
        before, begins = get_rng(self.run.device), not any(self.run.done)
        try:
            with self.cast():
                return player, player.forward(self.first)
        except StageRefused:
            if begins:  # the repetition changes the buffers and uses the same random numbers
                self.run.undo()
                set_rng(self.run.device, before)
            raise
        except Again as again:
            player.close()
            raise _late(again) from None
        except BaseException:
            player.close()
            raise

    def backward(self, player: Optional[StagePlayer],
                 adjoint: List[Optional[torch.Tensor]]) -> List[Optional[torch.Tensor]]:
        """Returns the gradients of the first state and of the parameters. Without a player, first repeats the forward
        pass."""
        run = self.run
        if self.redoes or player is None:
            self.around.check_tensors()
        with self.explained(), generator_kept(run.device), self.around.modules_as_noted():
            self.report.replays += player is None
            while True:
                try:
                    if player is None:
                        player, _ = self.forward()
                    run.reversing = self.cast.outside()
                    with self.cast():
                        found = player.backward(list(adjoint))
                    return [*found, *[run.sums.get(id(param)) for param in self.params]]
                except Again as again:
                    raise _late(again) from None
                except StageRefused as error:
                    refused = error
                finally:
                    if player is not None:
                        player.close()
                    self.around.note_tensors()
                    run.sums = {}
                player, self.fit = None, self.again(refused)
                self.around.check_tensors()


def _late(again: Again) -> UsageError:
    """Returns the error for leaves that a layer did not use on the first batch."""
    shapes = ", ".join(str(tuple(leaf.shape)) for leaf in again.leaves)
    return UsageError(f"layer {again.t} uses a tensor of shape {shapes} that requires a gradient and that it did not "
                      f"use on the first batch. Make it a parameter of the layer")


class Sequential(torch.nn.Sequential):
    """A ``torch.nn.Sequential`` with a memory budget: ``net = Sequential(*layers, memory="2G")``.

    The input of a layer is the output of the layer before it: a tensor, or nested tuples, lists and dicts of tensors.
    The size and run time of each layer are measured on the first batch of each shape, which runs every layer several
    times; a plan then determines which states and tapes are stored and which layers are recomputed. Gradients are
    bit-identical to a plain pass: dropout uses the same random numbers, buffers such as those of BatchNorm change once,
    and a parameter may be in several layers. If no gradient is needed, a plain pass runs.

    :param layers: modules, applied one after the other.
    :param memory: bytes for states, tapes, adjoint and gradients of parameters, such as ``"2G"``; None: no limit. The
        input, the output and the memory that one layer allocates while it runs are not included.
    :param slow: a directory, ``"mem:4G"``, or a list of them, fastest first: states and tapes are offloaded there,
        overlapped with computation; from a CUDA or ROCm device through pinned host memory. A lost record is recomputed.
    :param host: bytes of host memory, such as ``"64G"``, to which states and tapes of a CUDA or ROCm device are
        offloaded, in addition to ``memory``; it is pinned. With ``slow`` also given, host memory is used first. On the CPU it is
        ordinary memory in addition to the budget.
    :param strategy: ``auto``, ``chain`` or ``pofo``; see :func:`neap.strategies`.
    :param strict: False: a tape that is larger than on the first batch is kept anyway and exceeds the budget; True: a
        new plan is made for it if it does not fit.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget.
    :raises UsageError: if an argument is invalid.
    :raises RuntimeError: if a layer modifies its input in place.
    """

    def __init__(self, *layers: torch.nn.Module, memory: Optional[Size] = None,
                 slow: Optional[Paths] = None, strategy: str = "auto", strict: bool = True,
                 host: Optional[Size] = None):
        super().__init__(*layers)
        self._host = None if host is None else units.size(host, "host")
        self._memory = None if memory is None else units.size(memory, "memory")
        self._slow, self._strategy, self._strict = slow, strategy, strict
        self._known: Dict[Any, _Measured] = {}
        self._plans: Dict[Any, _Fit] = {}
        self._tiers: Dict[Any, List[OpenTier]] = {}
        self._leaves: Dict[int, List[Any]] = {}  # by layer: weak references
        self._report = _report()

    def __getstate__(self) -> Dict[str, Any]:
        """For copies and files: excludes measurements and plans."""
        return dict(self.__dict__, _known={}, _plans={}, _tiers={}, _leaves={}, _report=_report())

    def report(self) -> Report:
        """The :class:`Report` of the last call, including its backward pass once that has run."""
        return self._report

    @uncompiled
    def forward(self, x: Tree) -> Tree:
        """Applies the layers to x and returns the output of the last one."""
        told = self._report = _report()
        leaves, shape = flatten(x, "the input")
        params, once = self._params()
        if not torch.is_grad_enabled() or not len(self) or \
                not any(t.requires_grad for t in (*leaves, *once)):
            self._report.plain = True
            return super().forward(x)
        if transformed((*leaves, *once), self._memory, "a Sequential"):
            self._report.plain = True
            return super().forward(x)
        dense(leaves, "the input")
        device = offloading(self._host, self._slow, leaves)
        cast, around = Cast(_where(leaves)), Around(*self)
        found = None
        while found is None:
            try:
                with cast():
                    found = self._measured(leaves, shape, params, cast, device)
            except Again as again:
                self._learn(again)
                params, once = self._params()
        while True:
            fit = self._planned(found, params, told, device, _where(leaves))
            run = self._run(leaves, shape, params, device)
            run.needs, run.spare = list(found.needs), list(found.spare)
            told.counts = Counts()
            call = _Call(run, run.begin(leaves), once, fit, self._strict, cast, told, self._slow, around,
                         functools.partial(self._replanned, found, run, params, told, device),
                         device, self._host)
            call.explained = functools.partial(device_memory, self._memory, run.device, functools.partial(
                self._enough, found, params, device, run.device), told)
            try:
                with call.explained():
                    results = _Function.apply(call, *leaves, *once)
                return unflatten(run.shapes[-1], list(results if isinstance(results, tuple) else (results,)))
            except StageRefused as error:
                self._grown(found, run, error)

    def _replanned(self, found: _Measured, run: LayerRun, params: List[List[torch.Tensor]], told: Report,
                   device: Optional[Device], error: StageRefused) -> _Fit:
        """Makes a plan for larger states and tapes."""
        self._grown(found, run, error)
        return self._planned(found, params, told, device, run.device)

    @staticmethod
    def _grown(found: _Measured, run: LayerRun, error: StageRefused) -> None:
        """Stores sizes that are larger than on the first batch."""
        before = [list(row) for row in (found.state, found.tape, found.spare)]
        found.state[:], found.tape[:] = error.sizes.state, error.sizes.tape
        found.spare[:] = map(max, found.spare, run.spare)
        if before == [found.state, found.tape, found.spare]:
            raise error

    def _params(self) -> Tuple[List[List[torch.Tensor]], List[torch.Tensor]]:
        """Returns the tensors that require gradients: by layer, parameters and leaves that the layer was found to use;
        and a list with each of them once."""
        rows = [[p for p in (*_parameters(layer), *[ref() for ref in self._leaves.get(i, ())])
                 if p is not None and p.requires_grad] for i, layer in enumerate(self)]
        return rows, list({id(p): p for row in rows for p in row}.values())

    def _learn(self, again: Again) -> None:
        """Stores leaves that a layer uses; raises UsageError for leaves that it created."""
        leaves, i = [weakref.ref(leaf) for leaf in again.leaves], again.t
        self._leaves.setdefault(i, []).extend(leaves)
        again.leaves.clear()
        again.__traceback__ = None
        if all(ref() is None for ref in leaves):
            raise UsageError(f"layer {i} ({type(self[i]).__name__}) creates a tensor with requires_grad=True. Detach "
                             f"what depends on it, or make it a parameter of the layer")

    def _run(self, leaves: List[torch.Tensor], shape: Any, params: List[List[torch.Tensor]],
             device: Optional[Device]) -> LayerRun:
        excluded = addresses([*self.parameters(), *self.buffers(), *[p for row in params for p in row]])
        place = _where(leaves)
        return LayerRun(list(self), params, excluded, shape, [x.requires_grad for x in leaves], place,
                        memory_of(place) if device is None else device.memory, device is not None)

    # Sizes and the plan

    def _measured(self, leaves: List[torch.Tensor], shape: Any, params: List[List[torch.Tensor]],
                  cast: Cast, device: Optional[Device]) -> _Measured:
        key = (shape, device, cast.key, torch.get_num_threads(),
               tuple(getattr(m, "training", None) for m in self.modules()),
               *[(id(layer), *[p.shape for p in row]) for layer, row in zip(self, params)],
               *[(x.shape, x.stride(), x.dtype, x.device, x.requires_grad) for x in leaves])
        if key not in self._known:
            with generator_kept(_where(leaves)), _buffers_kept(self):  # the copies are not counted in the run
                run = self._run(leaves, shape, params, device)
                if self._memory is not None and (device is not None or self._slow is not None):
                    run.sends = None
                self._known[key] = _measure(run, leaves)
        return self._known[key]

    def _planned(self, found: _Measured, params: List[List[torch.Tensor]], told: Report,
                 device: Optional[Device], place: torch.device) -> _Fit:
        """Returns the plan of a call.

        :raises BudgetError: with ``least``, a sufficient budget.
        """
        left = None if self._memory is None else self._memory - found.extra
        tiers = self._measured_tiers(found, device, place) if left is not None else []
        sizes = StageSizes(found.state, found.tape, *_gradients(params), memory=left)
        key = tuple(map(tuple, sizes[:4])), left
        if key not in self._plans:
            self._plans[key] = _fitting(self._stages(found), sizes, self._strategy, tiers, found.extra, found.records,
                                        _record(found.state) if device is not None else max(found.state))
        fit = self._plans[key]
        told.planned(fit.plan, len(found.tape), 1, max(found.state), max(found.tape), found.extra,
                     self._memory, fit.sizes.peak)
        return fit

    def _enough(self, found: _Measured, params: List[List[torch.Tensor]], device: Optional[Device],
                place: torch.device, _: int) -> Tuple[int, int]:
        """Returns, as its second result, a sufficient budget, without the reserved bytes."""
        tiers = self._measured_tiers(found, device, place) if self._memory is not None else []
        sizes = StageSizes(found.state, found.tape, *_gradients(params), memory=0)
        try:
            _fitting(self._stages(found), sizes, self._strategy, tiers, 0, found.records, max(found.state))
        except BudgetError as error:
            return 1, error.least
        return 1, 1

    @staticmethod
    def _stages(found: _Measured) -> Stages:
        return Stages(state=found.state, tape=found.tape, advance=found.advance, record=found.record,
                      backward=[*found.backward, 0], tape_holds_output=True, backward_needs_input=True)

    def _measured_tiers(self, found: _Measured, device: Optional[Device], place: torch.device) -> List[OpenTier]:
        """Returns the slow tiers for the planner; each is measured once."""
        state, states = max(found.state), found.state
        largest = max([_record(states), *found.records])
        key = state, device, largest
        if key not in self._tiers and device is not None:
            room = ROOMS * largest if self._slow is not None else 0  # for records on their way to files
            host = None if self._host is None else max(1, self._host - room)
            self._tiers[key] = device_tiers(device, place, _record(states), (self._memory or 0) // 4, host,
                                            self._slow, TIMED)
        elif key not in self._tiers:
            self._tiers[key] = [] if self._slow is None else measured_tiers(self._slow, state, TIMED)
        return [tier.bounded(None, found.moving) for tier in self._tiers[key]]


def _record(states: List[int]) -> int:
    """Returns the bytes of a record that holds any of the states: counted sizes, but for their alignment."""
    return aligned(max(states))


def _report() -> Report:
    return Report("layer", "generators and buffers")


def _where(leaves: List[torch.Tensor]) -> torch.device:
    """Returns the device of an input, whose generator is restored for recomputed layers."""
    return leaves[0].device if leaves else torch.device("cpu")


def _parameters(layer: Any) -> List[torch.Tensor]:
    return list(layer.parameters()) if isinstance(layer, torch.nn.Module) else []


def _gradients(params: List[List[torch.Tensor]]) -> Tuple[List[int], List[int]]:
    """Returns the bytes of the gradients of parameters that the backward step of each layer allocates, and of second
    terms for gradients that a later layer allocated."""
    made: Dict[int, torch.Tensor] = {}
    rows = []
    for row in reversed(params):
        new = [p for p in row if id(p) not in made]
        rows.append((nbytes(new), nbytes(p for p in row if id(p) in made)))
        made.update((id(p), p) for p in new)
    return [first for first, _ in reversed(rows)], [second for _, second in reversed(rows)]


def _fitting(stages: Stages, sizes: StageSizes, strategy: str, tiers: List[OpenTier],
             extra: int, records: List[int], record: int) -> _Fit:
    """Returns the fastest plan that fits together with the gradients that are allocated during the backward pass.

    :param records: bytes of the records of tapes; empty if tapes are not offloaded. ``record``: bytes of a state's.
    """
    def ask(memory: Optional[int]) -> _Fit:
        found, failed = [], []
        # With "pofo", plans that offload only states are faster if memory is small; "auto" finds them itself.
        for rows in ([records, []] if records and tiers and strategy == "pofo" else [records]):
            try:
                found.append(_asked(stages, sizes, strategy, tiers, rows, record, memory))
            except BudgetError as error:
                failed.append(error)
        if not found:
            raise min(failed, key=lambda error: error.least or math.inf)
        return min(found, key=lambda fit: fit.plan.seconds)

    if sizes.memory is None:
        return ask(None)
    most = max(0, sizes.memory)
    grads = sum(sizes.grads) + max(sizes.terms)
    best, least = _best(ask, most, grads)
    if best is not None:
        return best
    if not least:
        ask(most)  # raises
    would_do = max(most + 1, ask(least).sizes.peak)
    while _best(ask, would_do, grads)[0] is None:
        would_do += would_do // 8 + 1
    would_do += extra
    why = f"gradients of parameters take up to {show_least(grads)}"
    if extra:
        why = f"{show_least(extra)} are reserved for the states of generators and copies of buffers, and {why}"
    raise too_small(sizes.memory + extra, would_do, why, strategy)


def _asked(stages: Stages, sizes: StageSizes, strategy: str, tiers: List[OpenTier], records: List[int],
           record: int, memory: Optional[int]) -> _Fit:
    """Returns the plan for ``memory`` bytes without gradients. Places on a tier are all as large as the largest record,
    so plans may need more than the capacity that they know; then they get less of it, and at last no tier."""
    rows = tiers
    for attempt in range(SHRINKS + 1):
        made = plan(stages=stages, memory=memory, strategy=strategy, slow=rows or None, tapes_stay=not records)
        actions = list(made)
        places = stage_places(actions, len(rows), records)
        rooms = [places.room(i, record) for i in range(len(rows))]
        if all(room <= tier.raw.capacity for room, tier in zip(rooms, tiers)):
            break
        rows = [] if attempt == SHRINKS - 1 else \
            [now.bounded(max(1, now.raw.capacity * tier.raw.capacity // max(room, tier.raw.capacity)), 0.0)
             for now, tier, room in zip(rows, tiers, rooms)]
    staging = sum(tier.raw.staging for i, tier in enumerate(rows) if places.states[i] or places.tapes[i])
    taken = sizes._replace(staging=staging)
    return _Fit(made, actions, places, taken._replace(peak=peak_of(actions, taken)))


def _best(ask: Callable[[int], _Fit], most: int, grads: int) -> Tuple[Optional[_Fit], int]:
    """Returns the fastest plan whose peak is at most ``most``, or None and the least budget of a planner. Most states and
    tapes are stored before the gradients exist, so a plan may get a larger budget than the gradients leave. Plans for
    more memory are faster, so the largest budget whose plan fits is searched."""
    best: Optional[_Fit] = None

    def beyond(memory: int) -> Optional[_Fit]:
        """Returns the plan if it takes too much, else None."""
        nonlocal best
        found = ask(memory)
        if found.sizes.peak > most:
            return found
        if best is None or found.plan.seconds < best.plan.seconds:
            best = found
        return None
    try:
        fastest = beyond(most)
    except BudgetError as error:
        return None, error.least
    if fastest is None:
        return best, 0
    low, above, over = max(0, most - grads), most, fastest.sizes.peak - most
    for _ in range(TRIES):
        if above - low < 2 or best is not None and best.plan.seconds <= fastest.plan.seconds * (1 + NEAR):
            break
        # The gradients that exist at the peak hardly change with the budget, so the first try is usually close.
        memory = (low + above) // 2 if best is not None else max(low, above - over)
        try:
            found = beyond(memory)
        except BudgetError as error:
            low = max(low, min(above, error.least))
            continue
        if found is None:
            low = memory
        else:
            above, over = memory, max(1, found.sizes.peak - most)
    if best is None:
        try:
            beyond(low)
        except BudgetError as error:
            return None, error.least
    return best, low


class _buffers_kept:
    """Context manager that replaces the buffers of a module by copies, and restores them at the end."""

    def __init__(self, module: torch.nn.Module):
        self._own = [(part, name, buffer) for part in module.modules()
                     for name, buffer in part._buffers.items() if buffer is not None]

    def __enter__(self) -> None:
        copies: Dict[int, torch.Tensor] = {}
        for part, name, buffer in self._own:
            part._buffers[name] = copies.setdefault(id(buffer), buffer.clone())

    def __exit__(self, *unused: object) -> None:
        for part, name, buffer in self._own:
            part._buffers[name] = buffer


def _clock(run: LayerRun) -> float:
    """Returns the time in seconds, after an accelerator has finished its work."""
    if run.device.type == "cuda":
        torch.cuda.synchronize(run.device)
    return time.perf_counter()


def _measure(run: LayerRun, leaves: List[torch.Tensor]) -> _Measured:
    """Runs the forward pass layer by layer; each layer is also recorded several times and reversed with gradients of
    ones."""
    found = _Measured([], [], [], [], [], 0, [], [], [], 0.0)
    moving: List[Tuple[int, float]] = []
    state = run.begin(leaves)
    found.state.append(max(1, kept_bytes(state.leaves, run.memory)))
    for i in range(len(run.layers)):
        best = [math.inf] * 3
        for timed in range(ROUNDS):
            clock = [_clock(run)]
            if timed:
                run.advance(state, i, i + 1, False)
            clock.append(_clock(run))
            after, tape, taken = run.record(state, i, i + 1, False, None)
            clock.append(_clock(run))
            ones = [torch.ones_like(x) if wanted else None
                    for x, wanted in zip(after.leaves, run.needs[i + 1] or [])]
            run.reverse(tape, state, ones, i)
            clock.append(_clock(run))
            run.sums = {}
            if timed:
                best = [min(old, later - sooner) for old, sooner, later in zip(best, clock, clock[1:])]
        for row, value in zip((found.advance, found.record, found.backward), best):
            row.append(max(1e-9, value))
        found.tape.append(taken)
        found.state.append(max(1, kept_bytes(after.leaves, run.memory)))
        if run.sends is None and run.memory.graphs and run.packed[i] is not None:
            moving.append((taken, _moving(run, state, i, found.record[-1])))
        state = after
        del tape
    packed = [row for row in run.packed if row is not None]
    goes = packed if len(packed) == len(found.tape) else []  # a tape that cannot leave would be lost
    return found._replace(extra=run.extra + sum(rest for _, rest in goes), needs=list(run.needs), spare=list(run.spare),
                          records=[nbytes for nbytes, _ in goes],
                          moving=max(moving)[1] if goes and moving else 0.0)


def _moving(run: LayerRun, state: LayerState, i: int, record: float) -> float:
    """Returns the seconds per byte that the tape of a layer costs, in addition to its record, if its memory is freed
    and restored: the system must provide new pages, for the following records and for the tape."""
    rows = []
    for _ in range(2):
        begin = time.perf_counter()
        _, tape, nbytes = run.record(state, i, i + 1, False, None)
        run.tape_pieces(tape)
        run.shed(tape)
        give_back()
        for at, size in run.regain(tape):
            if run.spans:
                at.zero_()
            else:
                ctypes.memset(at, 0, size)
        rows.append(time.perf_counter() - begin)
    return max(0.0, min(rows) - record) / (2 * max(1, nbytes))
