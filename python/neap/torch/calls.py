# SPDX-License-Identifier: Apache-2.0
"""One call of a scan as a node of autograd: ``forward`` performs its plan up to TURN and keeps slots and tapes,
``backward`` performs the rest."""
import contextlib
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from ..errors import BudgetError, UsageError, too_small
from ..player import Player, Refused
from ..reports import Report
from ..scan_choice import Choice
from ..show import show_least
from .arguments import Arguments
from .device import generator_kept, get_rng, set_rng
from .double import Once, Second, second
from .leaves import leaves_of
from .measure import addresses, charge
from .runs import Again, Run, differentiable, laid
from .tiers.exhaustion import device_memory
from .tiers.offload import opened
from .transforms import check_backward
from .trees import flatten, nbytes, unflatten

__all__ = ["Call", "ScanFunction"]

_TWICE = ("trying to differentiate twice a scan of neap.torch, which has only first derivatives (once_differentiable) "
          "unless double_backward=True is passed. Pass it to nt.scan or nt.Scan")


class ScanFunction(torch.autograd.Function):
    """A scan as one node: a function from (first state, inputs, parameters) to (last state, outputs)."""

    @staticmethod
    def forward(ctx: Any, call: "Call", *tensors: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        run = call.run
        ctx.call, ctx.player = call, None
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        wanted = ctx.needs_input_grad[1 + call.states:1 + call.states + call.inputs]
        run.wants_input = [flag and differentiable(x) for flag, x in zip(wanted, run.inputs or ())]
        ctx.player, last = call.forward()
        call.around.check_state(call.first_step)
        call.around.note()
        charge(ctx.player.held)
        out, run.out, run.emitting = run.out or [], None, False
        call.outputs = len(out)
        results = (*[laid(leaf, leaf.stride()) for leaf in last.leaves], *out)
        ctx.mark_non_differentiable(*[x for x in results if not differentiable(x)])
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[torch.Tensor]) -> Tuple[Any, ...]:
        check_backward(ctx.call.memory, "a scan")
        call, player = ctx.call, ctx.player
        given = ctx.saved_tensors  # raises if versions have changed or the graph was freed
        ctx.player = None
        with torch.no_grad():
            states, inputs, params = call.backward(player, gradients[:call.states], gradients[call.states:])
        found = [x if wanted else None for x, wanted in zip((*states, *inputs, *params), ctx.needs_input_grad[1:])]
        if torch.is_grad_enabled():
            rows = len(found), *found, *given, *gradients
            found = list(Second.apply(call, *rows) if call.double else Once.apply(_TWICE, *rows))
        return (None, *found)


class Call:
    """One call of a scan: its run, its plan, and their execution."""

    def __init__(self, run: Run, given: Arguments, made: Choice, learn: Callable[[Again], None],
                 enough: Callable[[int], Tuple[int, int]], told: Report):
        self.run, self.made, self.options, self.device = run, made, given.options, given.device
        self.cast, self.around, self.learn, self.enough, self.report = given.cast, given.around, learn, enough, told
        self.states, self.inputs, self.outputs = len(given.start), len(run.inputs or ()), 0
        self.first = run.state(given.start, 0)
        run.like, run.caller = self.first.leaves, addresses(given.start)
        plan = made.chosen.plan
        self.redoes = plan.advance_steps + plan.record_steps > -(-run.steps // made.group)
        self.double, self.memory = self.options.double, self.options.memory

    def _player(self) -> Player:
        made, options, chosen = self.made, self.options, self.made.chosen
        self.run.spans = self.device is not None and made.stored
        store = opened(self.device, options.slow, options.host, made.record, made.places,
                       [count * made.sizes.tape for count in made.places.groups], chosen.spill)
        self.report.host = getattr(store, "host_bytes", 0)
        return Player(self.run, chosen.actions or chosen.plan, self.run.steps, made.group, made.sizes, options.strict,
                      self.report.counts, store)

    def first_step(self) -> List[torch.Tensor]:
        """Recomputes the first step; returns its results."""
        run = self.run
        with generator_kept(run.random), torch.enable_grad(), self.cast():
            if run.rng:
                set_rng(run.random, self.first.rng)
            tree, out = run._called(unflatten(run.shape, leaves_of(self.first.leaves)), run.leaf_input(0), 0)
        return [x.detach() for x in (*flatten(tree, "the state")[0], *flatten(out, "the output")[0])]

    def forward(self) -> Tuple[Player, Any]:
        """Runs the forward pass; returns a player at TURN and the last state. The generator's state is that after a
        plain loop."""
        player, hashes = self._player(), self.run.hashes
        where = self.run.random
        before = None if self.run.rng else get_rng(where)

        def drawn() -> None:
            if before is not None and not torch.equal(before, get_rng(where)):
                raise Again(rng=True)
        try:
            with self.cast(), hashes.explained(drawn) if hashes is not None else contextlib.nullcontext():
                last = player.forward(self.first)
            drawn()
        except BaseException as error:
            player.close()
            if isinstance(error, (Again, Refused)):  # the repetition uses the same random numbers
                set_rng(where, self.first.rng if before is None else before)
            if isinstance(error, Refused):
                raise self._too_small(error) from None
            raise
        if before is None:
            set_rng(where, last.rng)
        return player, last

    def _too_small(self, error: Refused) -> BudgetError:
        """Completes the error of a player, which does not know the reserved bytes, nor the plans of other budgets."""
        least = error.least + self.made.aside
        with contextlib.suppress(Again):
            least = self.enough(least)[1] or least
        least += self.report.charged
        why, charged = str(error).rpartition(". ")[0], self.report.charged
        if charged:
            why += f"; {show_least(charged)} more are reserved for the gradients of the parameters"
        if self.made.aside:
            why += f"; {show_least(self.made.aside)} more are reserved for {self.made.reserve}"
        return too_small(self.report.memory or 0, least, why + self.run.of_inputs())

    def backward(self, player: Optional[Player], last: Sequence[Optional[torch.Tensor]],
                 outputs: Sequence[Optional[torch.Tensor]]) -> Tuple[List, List, List]:
        """Returns the gradients of states, inputs and parameters. Without a player, first repeats the forward pass
        from the first state."""
        run = self.run
        if self.redoes or self.double or player is None or run.reads_constants:
            self.around.check_tensors()
        with device_memory(self.memory, run.device, self.enough, self.report), generator_kept(run.random), \
                self.around.modules_as_noted():
            if player is None:
                self.report.replays += 1
                player, _ = self.forward()
            run.reversing = self.cast.outside()
            try:
                with self.cast():
                    found = player.backward(run.begin_backward(last, outputs))
                return found, run.input_grads, run.sums
            except Again as again:
                self.learn(again)
                if again.grad:
                    raise UsageError(f"step {again.t} computes gradients itself, but the steps that were compared did "
                                     f"not. Pass enable_grad=True") from again.__context__
                shapes = ", ".join(str(tuple(leaf.shape)) for leaf in again.leaves)
                raise UsageError(f"the step first uses a tensor of shape {shapes} that requires a gradient in step "
                                 f"{again.t}, after the steps that were inspected for parameters. Name it: "
                                 f"params=[..., tensor]") from None
            except Refused as error:
                raise self._too_small(error) from None
            finally:
                player.close()
                self.around.note_tensors()
                run.sums, run.out_grads, run.input_grads = [], [], []
                run.heap.over()

    def second(self, gradients: Sequence[Optional[torch.Tensor]], cotangents: Sequence[Optional[torch.Tensor]],
               wanted: Sequence[bool]) -> List[Optional[torch.Tensor]]:
        """Returns the gradients with respect to everything that the first gradients were computed from (double.py)."""
        report = self.report
        self.around.check_tensors()
        with generator_kept(self.run.random), self.around.modules_as_noted():
            try:
                found, report.double_kept, report.double_tape = second(
                    self.run, self.first, self.cast, gradients, cotangents, wanted,
                    report.memory - report.charged if report.memory is not None and self.options.strict else None)
            except BudgetError as error:
                error.least += report.charged
                raise
            finally:
                self.around.note_tensors()
        report.doubles += 1
        return found
