# SPDX-License-Identifier: Apache-2.0
"""A PyTorch step function as the backend of a Player: states, tapes, random numbers, outputs."""
import contextlib
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch

from ..errors import UsageError
from ..player import Backend
from .checks import Hashes
from .device import Cast, Generators, get_rng, set_rng, uncached
from .heap import Heap
from .interrupts import passed_on
from .layouts import bits, dense, flipped
from .leaves import alive, cut, differentiable, each, laid, leaves_of, packed, restored, summed
from .measure import (CPU, Counter, Reachable, Samples, Uncounted, Walked, address, addresses, behind, captured, hooked,
                      mark, refuses_hooks)
from .seeding import GroupTape, muted, pairs, reverse
from .sizing import Fixed, Sizer, apart, state_bytes, unchanged
from .tapes import Keeper, bare, hollow, inlet, packed_bytes
from .trees import LEAF, described, flatten, nbytes, unflatten
from .wrappers import signature_hint

__all__ = ["Again", "Cast", "Run", "State", "differentiable", "laid"]

HEAVY = 1 << 16  # bytes of gradients of parameters; copying more takes longer than the node that avoids it
SHOWN = 4  # most shapes of inputs in an error

_NONE = "no output yet"
# From PyTorch 2 on, hooks of a tensor run before torch.autograd.grad returns its gradient; before, they do not.
HOOKED = hasattr(torch, "func")


class Again(Exception):
    """Raised to restart the scan: its step reaches ``leaves`` that require gradients, or uses random numbers
    (``rng``); it computes gradients itself, or rounds differently without them (``grad``); or it uses torch.func,
    which rejects hooks (``walk``); or its state has another shape than the first one, so it cannot be offloaded
    (``grows``); or it changes a part of the state that the measured steps returned unchanged (``changes``)."""

    def __init__(self, leaves: Sequence[torch.Tensor] = (), rng: bool = False, t: int = 0, grad: bool = False,
                 walk: bool = False, grows: bool = False, changes: bool = False):
        super().__init__("the scan is restarted")
        self.changes = changes
        self.leaves, self.rng, self.t, self.grad, self.walk, self.grows = list(leaves), rng, t, grad, walk, grows


class State(NamedTuple):
    """The tensors of a state, their version counters, and the generator's state, or None. ``layouts``, for a state
    that is read from a tier: the strides and bits of its tensors, if they are not the default."""

    leaves: List[torch.Tensor]
    versions: List[int]
    rng: Optional[torch.Tensor]
    layouts: Sequence["_Layout"] = ()


class _Layout(NamedTuple):
    """Strides of a tensor (None: contiguous), and whether it is the conjugate or the negative of its memory."""

    stride: Optional[Tuple[int, ...]]
    bits: Tuple[bool, bool]


def _usual(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


class Run(Backend):
    """The steps of one scan.

    :param step: ``step(state, input, t)`` returns the next state and an output, as trees.
    :param shape: the tree shape of the state.
    :param inputs: tensors [T, ...] of the inputs, or None.
    :param give: ``give(t)`` for inputs that are a function of t.
    :param params: tensors that require gradients.
    :param excluded: addresses of storages that are not part of a tape.
    :param rng: True: the generator's state is part of the state.
    """

    whole = False  # groups of each size are compiled
    reads_constants = False  # its backward pass reads tensors that are not in the tape and have no version there

    def __init__(self, step: Callable[..., Any], steps: int, shape: Any,
                 inputs: Optional[List[torch.Tensor]], input_shape: Any,
                 give: Optional[Callable[[int], Any]], params: List[torch.Tensor],
                 excluded: Set[int], rng: bool):
        self.step, self.steps, self.shape = step, steps, shape
        self.inputs, self.input_shape, self.give = inputs, input_shape, give
        self.params, self.excluded, self.rng = params, excluded, rng
        self.known, self.heavy = Reachable(params), nbytes(params) > HEAVY
        self.input_grads: List[Optional[torch.Tensor]] = []  # buffers for the requested gradients
        self.sums: List[Optional[torch.Tensor]] = [None] * len(params)
        self.samples = Samples()
        self.cuts: Dict[Tuple[int, ...], List[Any]] = {}  # by the parameters that a group uses
        self.emitting, self.count, self.heap = True, True, Heap()
        self.grad = self.walk = False  # grad: advanced steps record graphs; walk: graphs are counted without hooks
        self.hint = ""  # possible cause of an error in the step
        self.called = step  # the caller's own step, without wrappers
        self.chooses = True  # ``grad`` may be changed by the behaviour of steps
        self.outside: Optional[Set[int]] = None  # ids of leaves outside a step that creates leaves
        self.layouts: Dict[int, List[_Layout]] = {}  # by step, if not the default
        self.same: Dict[int, List[Tuple[int, int]]] = {}  # by step: parts of the state that are an earlier part
        self.held: Dict[int, List[Tuple[int, int]]] = {}  # by step: parts of the state that are parameters, and which
        self.carried: Optional[Dict[int, Tuple[bool, int]]] = None  # see _carry
        self.travels = self.spans = self.stored = False  # tapes are offloaded; as tensors of bytes; states on tiers
        self.replans = False  # the scan is planned from scratch if the shape of its state changes
        self.caller: Set[int] = set()  # addresses of the first state's storages
        self.fixes = self.views = False  # unchanged parts of the state are counted once; only if their views are the same
        self.watches = False  # a part that changes late restarts the scan, also outside of the forward pass
        self.fixed = Fixed()
        self.sent: Optional[Set[int]] = None  # first steps of the groups with offloaded tapes; None: all
        self.device, self.memory = torch.device("cpu"), CPU
        self.random = Generators([])
        self.hooked: Dict[int, List[int]] = {}  # by step: parts of the state with hooks
        self.hashes: Optional[Hashes] = None  # of results, if recomputed steps are compared
        self.spare = 0  # bytes that steps save in graphs that they drop
        self.counted: Dict[int, int] = {}  # bytes of the first tape, by number of steps
        self.out: Optional[List[torch.Tensor]] = None
        self.out_shape: Any = _NONE
        self.out_grads: List[Optional[torch.Tensor]] = []
        self.pairs: Optional[Tuple[Tuple[int, int], ...]] = None
        self.odd: Dict[int, Tuple[Tuple[int, int], ...]] = {}
        self.reversing: Callable[[], Any] = contextlib.nullcontext  # autocast mode in which backward was called
        self.like: List[torch.Tensor] = []  # tensors of the first state's shapes and types
        self.wants_input = [False] * len(inputs or ())

    def of_inputs(self) -> str:
        """Returns an addition to budget errors: sizes that show whether time is the first dimension of the inputs."""
        if not self.inputs:
            return ""
        shapes = ", ".join(str(tuple(x.shape[1:])) for x in self.inputs[:SHOWN])
        more = ", ..." if len(self.inputs) > SHOWN else ""
        which = "shape of one step's input" if len(self.inputs) == 1 else "shapes of one step's inputs"
        return f" (steps: {self.steps}, {which}: {shapes}{more})"

    # States

    def state(self, leaves: Sequence[torch.Tensor], t: Optional[int] = None) -> State:
        """Returns a state of tensors, at step t, with the current state of the generator."""
        places = self.known.places
        self._note_hooks(t or 0, leaves)
        if t is not None and any([id(x) in places for x in leaves]):
            self.held[t] = [(j, places[id(x)]) for j, x in enumerate(leaves) if id(x) in places]
        if len(leaves) == 1:
            cut = [leaves[0].detach() if leaves[0].requires_grad else leaves[0]]
        else:
            cut = each(lambda leaf: leaf.detach() if leaf.requires_grad else leaf, leaves)
            if t is not None:
                self._note_same(t, cut)
        if t is not None and self.stored and not all([_usual(leaf) for leaf in cut]):
            self.layouts[t] = [_Layout(None if leaf.is_contiguous() else leaf.stride(), bits(leaf)) for leaf in cut]
        return State(cut, [leaf._version for leaf in cut], get_rng(self.random) if self.rng else None)

    def _note_same(self, t: int, leaves: List[torch.Tensor]) -> None:
        places: Dict[int, int] = {}
        found = [(k, places[id(x)]) for k, x in enumerate(leaves) if places.setdefault(id(x), k) != k]
        if found:
            self.same[t] = found

    def fix(self, first: Sequence[torch.Tensor], places: Tuple[int, ...]) -> None:
        """Counts the parts of the state at these places once: in no state, and in no tape."""
        excluded = self.excluded - self.fixed.at
        self.fixed = Fixed(first, places, excluded, self.memory)
        self.excluded = excluded | self.fixed.at

    def same_parts(self, first: Sequence[torch.Tensor], later: State) -> Tuple[int, ...]:
        """Returns the places of the parts of a state that share the memory of the first one's."""
        return unchanged(first, later.leaves, self.views)

    def moved(self, state: State) -> Tuple[int, ...]:
        """Returns the places of the parts that are counted once, and that are another tensor in this state."""
        if not self.fixed.places:
            return ()
        there = self.same_parts(self.fixed.first, state)
        return tuple([j for j in self.fixed.places if j not in there])

    def state_bytes(self, state: State) -> Tuple[int, int]:
        """Returns the bytes of a state, and of its adjoint, whose tensors are dense with separate storages."""
        if self.fixed.places and (self.emitting or self.watches) and self.moved(state):  # before the backward pass
            raise Again(changes=True)
        whole, adjoint = state_bytes(state.leaves, self.excluded, self.caller, self.memory, self.fixed.at)
        return whole + (0 if state.rng is None else state.rng.numel()), adjoint

    def unchanged(self, state: State) -> None:
        """Raises RuntimeError if a tensor of the state was modified since."""
        for leaf, version in zip(state.leaves, state.versions):
            if leaf._version != version:
                raise RuntimeError(
                    f"one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: a state of shape {tuple(leaf.shape)} is at version "
                    f"{leaf._version}; expected version {version}. The step modifies its "
                    f"state in place. Return a new tensor instead: h = h + dh, not h += dh")

    def flat(self, tree: Any, t: int) -> List[torch.Tensor]:
        """Returns the tensors of a state that a step returned; raises UsageError for a different tree shape."""
        leaves, shape = flatten(tree, "the state")
        dense(leaves, f"the state that step {t} returned")
        if shape != self.shape and not (shape is LEAF and self.shape is LEAF):
            raise UsageError(f"step {t} was given a state of structure {described(self.shape)} and returned "
                             f"{described(shape)} as the next one. A step must return (state, output), and its state "
                             f"must have the structure of the given one. If the output is missing, write, for example: "
                             f"return (h, c), h. Otherwise change the initial state or the returned state")
        return leaves

    def pieces(self, state: State) -> Tuple[State, List[Any]]:
        self.unchanged(state)
        if self.moved(state):
            if self.emitting:
                raise Again(changes=True)
            raise OSError("a part of the state is another tensor than in the first steps. The state is recomputed")
        stay = {id(state.leaves[j]) for j in self.fixed.places}  # these parts are never offloaded
        # a tier stores only the bytes
        memory = [leaf if id(leaf) in stay else flipped(leaf, bits(leaf)) for leaf in state.leaves]
        cut = [leaf if id(leaf) in stay or leaf.is_contiguous() or packed(leaf) else leaf.contiguous() for leaf in memory]
        for leaf, like in zip(cut, self.like):
            if leaf.shape != like.shape or leaf.dtype != like.dtype:
                if self.replans and self.emitting:  # before the backward pass
                    raise Again(grows=True)
                raise OSError("states have different shapes or dtypes, and only equal ones are offloaded. It is "
                              "recomputed")
        copy = State(cut, [leaf._version for leaf in cut], state.rng, state.layouts)
        rows = [leaf for leaf in cut if id(leaf) not in stay] if stay else cut
        rows = rows if state.rng is None else [*rows, state.rng]
        return copy, [(packed_bytes(row) if self.spans else row.data_ptr(), row.numel() * row.element_size())
                      for row in rows if row.numel()]

    def empty(self, t: int) -> State:
        fixed = set(self.fixed.places)
        leaves = [x if j in fixed else torch.empty(x.shape, dtype=x.dtype, device=x.device)
                  for j, x in enumerate(self.like)]
        layouts = list(self.layouts.get(t, ()))
        for i, (stride, bit) in enumerate(layouts):
            if stride is not None and i not in fixed:
                laid = leaves[i].new_empty_strided(leaves[i].shape, stride)
                if packed(laid):
                    leaves[i], layouts[i] = laid, _Layout(None, bit)
        for k, j in self.same.get(t, ()):
            leaves[k] = leaves[j]
        for j in self.fixed.places:
            there, stays = leaves[j], self.like[j]
            for k in [k for k, x in enumerate(leaves) if x is there]:
                leaves[k] = stays
                if layouts:
                    layouts[k] = _Layout(None, (False, False))
        return State(leaves, [leaf._version for leaf in leaves],
                     torch.empty_like(get_rng(self.random)) if self.rng else None, layouts)

    def filled(self, state: State) -> State:
        layouts = dict(zip(map(id, state.leaves), state.layouts))

        def placed(leaf: torch.Tensor) -> torch.Tensor:
            stride, bit = layouts[id(leaf)]
            return flipped(leaf if stride is None else restored(leaf, stride), bit)
        leaves = each(placed, state.leaves) if layouts else list(state.leaves)
        return State(leaves, [leaf._version for leaf in leaves], state.rng)

    def tape_pieces(self, tape: GroupTape) -> List[Tuple[Any, int]]:
        return tape.keeper.pieces()

    def shed(self, tape: GroupTape) -> None:
        tape.keeper.shed()

    def regain(self, tape: GroupTape) -> List[Tuple[Any, int]]:
        return tape.keeper.regain()

    # Inputs and outputs

    def input(self, t: int) -> Any:
        """Returns the input of step t."""
        if self.inputs is not None:
            return unflatten(self.input_shape, [x[t] for x in self.inputs])
        if self.give is None:
            return None
        try:
            return self.give(t)
        except StopIteration as error:
            raise UsageError(f"inputs({t}) raised StopIteration: inputs looks like an iterator. It is called several "
                             f"times per step and must return the same value for the same t. Pass a tensor, or a "
                             f"function that indexes by t") from error

    def leaf_input(self, t: int, tape: Optional[GroupTape] = None) -> Any:
        """Returns the input of step t as leaves of a graph, if their gradients are requested."""
        if not any(self.wants_input):
            return self.input(t)
        row = [x[t].requires_grad_() if wanted else x[t]
               for x, wanted in zip(self.inputs or (), self.wants_input)]
        if tape is not None:
            tape.inputs[t] = row
        return unflatten(self.input_shape, row)

    def structure(self, t: int, shape: Any) -> None:
        """Stores the structure of the first output; raises UsageError if another output has a different structure."""
        if self.out_shape is _NONE:
            self.out_shape = shape
        if shape != self.out_shape:
            raise UsageError(f"step {t} returned an output with a different structure (dict keys, tuple length) than "
                             f"step 0. All steps must return outputs of the same structure")

    def emit(self, t: int, leaves: List[torch.Tensor], shape: Any) -> None:
        """Copies an output to its place; raises UsageError if its shape or dtype differs from those of the first one.
        """
        self.structure(t, shape)
        if self.out is None:
            dense(leaves, f"the output of step {t}")
            self.out = [leaf.new_empty((self.steps, *leaf.shape)) for leaf in leaves]
        for place, leaf in zip(self.out, leaves):
            if place.shape[1:] != leaf.shape or place.dtype != leaf.dtype or leaf.layout is not torch.strided:
                dense([leaf], f"the output of step {t}")
                raise UsageError(f"step {t} returned an output of shape {tuple(leaf.shape)} {leaf.dtype}; step 0 "
                                 f"returned {tuple(place.shape[1:])} {place.dtype}. All outputs are stacked, so they "
                                 f"need the same shape and dtype. Pad them, or use reduce=")
            place[t].copy_(leaf.detach())

    def _note_pairs(self, t: int, found: Tuple[Tuple[int, int], ...]) -> None:
        if self.pairs is None:
            self.pairs = found
        elif found != self.pairs:
            self.odd[t] = found

    def _carry(self, before: List[torch.Tensor], after: List[torch.Tensor], outputs: List[torch.Tensor]) -> None:
        """Notes the outputs of a step that are a part of the state which the step returns unchanged (True, place), or
        a parameter (False, place), if this was so in all steps before. In one loop, the gradients of these outputs are
        added one after the other, first step first, before the gradients of all uses."""
        now = {}
        for i, output in enumerate(outputs):
            at = [j for j, (old, new) in enumerate(zip(before, after)) if output is old and output is new]
            if id(output) in self.known.places:
                now[i] = False, self.known.places[id(output)]
            elif at:
                now[i] = True, at[0]
        self.carried = now if self.carried is None else \
            {i: place for i, place in self.carried.items() if now.get(i) == place}

    def pairs_of(self, t: int) -> Tuple[Tuple[int, int], ...]:
        """Returns the pairs (i, j) for which output i of step t is part j of its state."""
        return self.odd.get(t, self.pairs or ())

    # Operations for the Player

    def advance(self, state: State, t0: int, t1: int, first: bool) -> State:
        self.unchanged(state)
        if self.rng:
            set_rng(self.random, state.rng)
        emit = first and self.emitting
        with torch.set_grad_enabled(self.grad):
            start = leaves_of(state.leaves) if self.grad else state.leaves
            tree, out = unflatten(self.shape, start), None
            for t in range(t0, t1):
                before, shape = flatten(tree) if self.grad and t > t0 or emit and self.carried != {} else ([], None)
                if self.grad and t > t0:  # a graph of one step
                    self._note_hooks(t, before)
                    start, out = each(cut, before), None
                    before, tree = start, unflatten(shape, start)
                given = self.leaf_input(t) if self.grad else self.input(t)
                tree, out = self._called_first(start, tree, given, t)
                if emit:
                    leaves, shape = flatten(out, "the output")
                    self.emit(t, leaves, shape)
                    if self.carried != {}:
                        self._carry(before, flatten(tree)[0], leaves)
                if self.hashes is not None and self.hashes.watches(t):
                    self.hashes.see(t, [*flatten(tree)[0], *flatten(out)[0]])
        leaves = self.flat(tree, t1 - 1)
        self._note_pairs(t1 - 1, pairs(leaves, flatten(out)[0]))
        self.unchanged(state)
        self.heap.look()
        return self.state(leaves, t1)

    def _note_hooks(self, t: int, leaves: Sequence[torch.Tensor]) -> None:
        if any([x._backward_hooks for x in leaves]):
            self.hooked[t] = [j for j, x in enumerate(leaves) if x._backward_hooks]

    def _called_first(self, start: Sequence[torch.Tensor], tree: Any, given: Any, t: int) -> Tuple[Any, Any]:
        """Calls a step whose state starts a graph at ``start``, without the hooks of the state. In a plain loop, these
        run if the step differentiates with respect to its state: that is an error."""
        if t not in self.hooked or not start or not HOOKED:
            return self._called(tree, given, t)
        ran: List[int] = []
        handles = [start[j].register_hook(lambda _: ran.append(t)) for j in self.hooked[t] if start[j].requires_grad]
        try:
            answer = self._called(tree, given, t)
        finally:
            for handle in handles:
                handle.remove()
        if ran:
            raise UsageError(f"step {t} calls torch.autograd.grad with respect to its state, on which a hook was registered "
                             f"before. In a plain loop, the hook changes this gradient as well; in a scan, only if the "
                             f"step is not the first one of its graph. Differentiate with respect to an alias, such "
                             f"as h = h.view_as(h) at the start of the step, which no hook changes")
        return answer

    def _called(self, tree: Any, given: Any, t: int) -> Tuple[Any, Any]:
        try:
            answer = uncached(self.step, tree, given, t)
        except RuntimeError as error:
            if not self.walk and refuses_hooks(error):
                raise Again(t=t, walk=True) from None
            if self.chooses and not self.grad and not torch.is_grad_enabled() and \
                    ("does not require grad" in str(error) or "doesn't require gradient" in str(error)):
                raise Again(t=t, grad=True) from None
            if "a leaf Variable that requires grad" in str(error):
                raise RuntimeError(f"step {t} modifies its state or a parameter in place. Steps are recomputed from "
                                   f"the old state, so a step must return a new one: "
                                   f"h = h + dh, not h += dh") from error
            raise
        except (AttributeError, TypeError, ValueError) as error:
            hint = signature_hint(self.called) or self.hint
            if hint and not isinstance(error, UsageError):
                raise UsageError(f"step {t} raised {type(error).__name__}: {error}. {hint}") from error
            raise
        if not isinstance(answer, tuple) or len(answer) != 2:
            parts = f" of {len(answer)}" if isinstance(answer, tuple) else ""
            raise UsageError(f"step {t} returned a {type(answer).__name__}{parts}; it must return a pair (state, "
                             f"output). If the state is the output, write: return h, h")
        return answer

    def record(self, state: State, t0: int, t1: int, first: bool,
               room: Optional[int]) -> Tuple[State, GroupTape, int]:
        self.unchanged(state)
        kind = self._kind(state, t1 - t0)
        found = self._recorded(state, t0, t1, first, self._counter(t0, t1, room, kind), kind)
        if found is None:  # its number of nodes differs from the other groups of its kind
            found = self._recorded(state, t0, t1, first, self._counting(room), kind)
        self.unchanged(state)
        assert found is not None
        return found

    def tape_bytes(self, state: State, t0: int, t1: int) -> Tuple[State, int]:
        kind = self._kind(state, t1 - t0)
        sizer = Sizer(self.excluded, self._goes(t0), self.memory)
        try:
            found = self._recorded(state, t0, t1, False, self._counting(None) if self.walk else sizer, kind)
        except Exception as error:
            if not sizer.asked:
                raise
            passed_on(error)
            found = self._recorded(state, t0, t1, False, self._counting(None), kind)
        assert found is not None
        separate = [x for x in state.leaves if address(x)[0] not in self.fixed.at] if self.stored else []
        return found[0], found[2] + (apart(separate, self.excluded, self.caller, self.memory) if self.stored else 0)

    def _kind(self, state: State, count: int) -> Any:
        """Returns what the bytes of a group of ``count`` steps usually depend on (Samples)."""
        return count, tuple([x.shape for x in state.leaves]), self.moved(state)

    def _recorded(self, state: State, t0: int, t1: int, first: bool, counter: Counter,
                  kind: Any) -> Optional[Tuple[State, GroupTape, int]]:
        """Records a group with one counter. Returns None if an uncounted group must be counted after all."""
        if self.rng:
            set_rng(self.random, state.rng)
        begin, emit = mark(), first and self.emitting
        tape, given = self._begun(state, t0, t1)
        shape, leaves = None, []
        with counter, torch.enable_grad():
            counter.begin(given)
            tree = unflatten(self.shape, given)
            for t in range(t0, t1):
                before = flatten(tree)[0] if emit and self.carried != {} else []
                start = given if t == t0 else ()
                tree, out = self._called_first(start, tree, self.leaf_input(t, tape), t)
                leaves, shape = flatten(out, "the output")
                if t == t0 > 0 and (leaves or len(given) > 1 or not HOOKED):
                    self.no_hooks(t, given)
                if emit:
                    self.emit(t, leaves, shape)
                    if self.carried != {}:
                        self._carry(before, flatten(tree)[0], leaves)
                if self.hashes is not None and self.hashes.watches(t):
                    self.hashes.see(t, [*flatten(tree)[0], *leaves])
                if any([leaf.requires_grad for leaf in leaves]):
                    tape.outputs[t] = leaves
            made = mark() - begin
            if counter.nodes is not None and counter.nodes != made:
                return None
            last = self.flat(tree, t1 - 1)
            tape.last, tape.pairs = last, pairs(last, leaves)
            if not emit:  # emit() checks them
                dense([leaf for row in tape.outputs.values() for leaf in row], "an output")
            self._check(tape, begin, given, counter)
            tape.graph = counter.graph(len(tape.first) + sum(map(len, tape.inputs.values())))
            if isinstance(counter, Keeper):
                self._hollow(tape, given, counter)
            elif tape.outputs and counter.counts:
                self._count_outputs(counter, tape)
            counter.settle()
        self._note_pairs(t1 - 1, tape.pairs)
        if counter.counts:
            self.spare = max(self.spare, counter.spare)
            self.samples.learn(kind, counter.total, made)
            self.counted.setdefault(t1 - t0, counter.total)
        self.heap.look()
        return self.state(last, t1), tape, counter.total

    def no_hooks(self, t: int, given: List[torch.Tensor]) -> None:
        """Rejects hooks of the state that a group receives: the gradients of outputs, and of other parts of the state, that
        the step before computed from it are added after them. A state of one tensor without outputs has no others."""
        held = {j for j, _ in self.held.get(t, ())}
        if any(x._backward_hooks for j, x in enumerate(given) if j not in held):
            raise UsageError(f"step {t} registers a hook on the state that it receives. In the backward pass, the hook "
                             f"would not see the gradient of the output of step {t - 1}. Register it on the new state "
                             f"that the step returns")

    def _goes(self, t0: int) -> bool:
        """True if the tape of the group that starts with step t0 is offloaded."""
        return self.travels and not self.walk and (self.sent is None or t0 in self.sent)

    def _begun(self, state: State, t0: int, t1: int) -> Tuple[GroupTape, List[torch.Tensor]]:
        """Returns a tape to be recorded, and the beginning of its graph: leaves, or tensors that depend on them."""
        if not self._goes(t0):
            first = leaves_of(state.leaves)
            return self._with_params(GroupTape(t0, t1, first), list(first))
        with torch.enable_grad():
            both = each(lambda x: inlet(x) if differentiable(x) else (bare(x), x), state.leaves)
        return self._with_params(GroupTape(t0, t1, [leaf for leaf, _ in both]), [x for _, x in both])

    def _with_params(self, tape: GroupTape, given: List[torch.Tensor]) -> Tuple[GroupTape, List[torch.Tensor]]:
        """Inserts the parameters that are part of the state: their gradients are added to them in plain autograd's
        order."""
        held = self.held.get(tape.t0, ())
        if held:
            tape.taking = list(tape.first)
        for j, n in held:
            given[j] = tape.taking[j] = self.params[n]
            tape.first[j] = tape.first[j].detach()
        return tape, given

    def _hollow(self, tape: GroupTape, given: List[torch.Tensor], keeper: Keeper) -> None:
        """Replaces the tensors of a tape, so that it references only the memory of the storages that its graph saved.
        """
        tape.keeper = keeper
        taking = {j for _, j in self.pairs_of(tape.t0 - 1)} if tape.t0 > 0 else set()
        tape.taking = [x if j in taking else leaf for j, (x, leaf) in enumerate(zip(given, tape.first))]
        columns = list(zip(*tape.outputs.values()))[::-1]  # in the order of their gradients (seeding.reverse)
        rows = iter(hollow([*tape.last, *[leaf for column in columns for leaf in column], *tape.taking]))
        tape.last = [next(rows) for _ in tape.last]
        columns = [[next(rows) for _ in column] for column in columns]
        tape.outputs = dict(zip(tape.outputs, map(list, zip(*columns[::-1]))))
        tape.taking = list(rows)

    @staticmethod
    def _count_outputs(counter: Counter, tape: GroupTape) -> None:
        """Counts outputs, which are kept too; an output that is the last state is counted with the next group."""
        after = addresses(tape.last)
        for row in tape.outputs.values():
            for leaf in row:
                if leaf.data_ptr() not in after:
                    counter.add(leaf.detach())

    def _counter(self, t0: int, t1: int, room: Optional[int], kind: Any) -> Counter:
        """Returns the counter for the saved tensors of a group. Without a budget only the first group is counted."""
        if self._goes(t0):
            return Keeper(self.excluded, room, self.spare, self.memory, self.device, self.spans)
        if not hooked():
            if t1 - t0 in self.counted and (room is None or not self.count):
                return Uncounted(self.counted[t1 - t0])
            known = self.samples.known(kind, room) if t1 < self.steps else None  # the last group may be the largest
            if known is not None:
                return Uncounted(*known)
        return self._counting(room)

    def _counting(self, room: Optional[int]) -> Counter:
        return (Walked if self.walk else Counter)(self.excluded, room, self.spare, self.memory)

    def _check(self, tape: GroupTape, begin: int, given: List[torch.Tensor], counter: Counter) -> None:
        """Counts nodes. Raises Again if the graph reaches unknown leaves, and UsageError for tensors that were
        computed outside. Every graph is checked, because a step may first use a parameter late."""
        roots, own = tape.last, {id(x) for x in given}
        if tape.outputs:
            roots = roots + [leaf for row in tape.outputs.values() for leaf in row]
        if tape.first is not given:
            own.update(map(id, tape.first))
        for row in tape.inputs.values():
            own.update(map(id, row))
        reached, made = self.look(roots, own, begin, tape.t0, counter.visit if counter.counts else None)
        if made:
            tape.made = [weakref.ref(leaf) for leaf in made]
        if len(reached) < len(self.params) or self.known.ends:
            tape.params = sorted(reached)
            tape.cut = self._cut(tuple(tape.params))

    def _cut(self, used: Tuple[int, ...]) -> List[Any]:
        """Returns the nodes that computed parameters from others of these parameters, and that the engine would enter
        on the way to those. Raises UsageError if the engine cannot be kept from entering them."""
        if used not in self.cuts:
            nodes: Dict[Any, None] = {}
            for param in [self.params[n] for n in used if self.params[n].grad_fn is not None]:
                found, python = behind(param, self.known)
                if not found.isdisjoint(used):
                    if python:
                        raise UsageError(f"the step uses a parameter of shape {tuple(param.shape)} and also "
                                         f"the parameter x that it was computed from by a custom autograd.Function. "
                                         f"Their gradients cannot be separated. Use y = x.view_as(x) instead of x in "
                                         f"the step, and add y to params")
                    nodes[param.grad_fn] = None
            self.cuts[used] = list(nodes)
        return self.cuts[used]

    def look(self, roots: List[torch.Tensor], own: Set[int], begin: int, t0: int,
             visit: Any = None) -> Tuple[Set[int], List[torch.Tensor]]:
        """Checks the graph of ``roots`` from step t0 on, whose own leaves have the ids ``own``. Returns the indices of
        the parameters that it reaches, and the leaves that the step created, whose gradients are dropped, as in a
        plain loop."""
        leaves, foreign, reached = captured(roots, own, self.known, begin, visit)
        if foreign:
            raise UsageError(f"the step uses a tensor that requires a gradient and was computed outside the step (by "
                             f"{foreign[0].name()}). Pass it as params=[tensor], or as part of the state or the inputs")
        found = [leaf for leaf in leaves if self.outside is None or id(leaf) in self.outside]
        if found:
            raise Again(found, t=t0)
        return reached, leaves

    @staticmethod
    def _dropped(tape: GroupTape) -> None:
        """Raises UsageError if leaves that the steps created outlive the graph of a tape, because they are referenced
        elsewhere."""
        tape.clear()
        found = alive(tape.made)
        if found:
            raise UsageError(f"steps {tape.t0} to {tape.t1 - 1} use a tensor of shape {tuple(found[0].shape)} with "
                             f"requires_grad=True that is none of their arguments and still exists after the backward "
                             f"pass. If it was created outside the step, pass it in params=[...]; if a step creates "
                             f"it, do not keep it, or keep tensor.detach()")

    def reversed(self, tape: GroupTape, sums: List[Optional[torch.Tensor]], adjoint: List[Optional[torch.Tensor]],
                 gradients: Any, before: Tuple[Tuple[int, int], ...]) -> Any:
        """Returns the result of ``reverse``; raises RuntimeError if steps share a graph."""
        try:
            with muted(self.params):
                return reverse(tape, self.params, sums, adjoint, gradients, before, self.heavy)
        except RuntimeError as error:
            if "backward through the graph a second time" in str(error):
                raise RuntimeError(f"steps {tape.t0} to {tape.t1 - 1} use a tensor that an earlier step computed but "
                                   f"did not return, for example one stored in a module attribute. Return it as part "
                                   f"of the state. For snnTorch, SpikingJelly and Norse modules use neap.torch.lift"
                                   ) from error
            raise

    def backward(self, tape: GroupTape, adjoint: List[Optional[torch.Tensor]], t0: int,
                 t1: int) -> List[Optional[torch.Tensor]]:
        before = self.pairs_of(t0 - 1) if t0 > 0 else ()
        with self.reversing():
            arrived, at = self.reversed(tape, self.sums, adjoint, self._out_grad, before)
        for t, row in at.items():
            for place, gradient in zip(self.input_grads, row):
                if gradient is not None and place is not None:
                    place[t].copy_(gradient)
        if tape.made:
            self._dropped(tape)
        self.heap.look()
        return arrived

    def trial(self, tape: GroupTape) -> None:
        """Runs the backward step of a group with gradients of ones, and drops the results."""
        def gradients(i: int, t: int) -> Any:
            return torch.ones_like(tape.outputs[t][i]) if t in tape.outputs else None
        self.reversed(tape, [None] * len(self.params),
                      [torch.ones_like(x) if differentiable(x) else None for x in tape.last], gradients, ())

    def _out_grad(self, i: int, t: int) -> Optional[torch.Tensor]:
        gradient = self.out_grads[i] if i < len(self.out_grads) else None
        return None if gradient is None else gradient[t]

    def begin_backward(self, last: Sequence[Optional[torch.Tensor]],
                       outputs: Sequence[Optional[torch.Tensor]]) -> List[Optional[torch.Tensor]]:
        """Returns the adjoint of the last state, from the gradients of a scan's results."""
        self.sums = [None] * len(self.params)
        self.out_grads = list(outputs)
        like = next((x for x in (*last, *outputs) if x is not None), torch.empty(0))  # batched if it is
        self.input_grads = [like.new_zeros(x.shape, dtype=x.dtype, device=x.device) if wanted else None
                            for x, wanted in zip(self.inputs or (), self.wants_input)]
        adjoint = list(last)
        for k, j in self.same.get(self.steps, ()):
            adjoint[j], adjoint[k] = summed(adjoint[j], adjoint[k]), None
        for j, n in self.held.get(self.steps, ()):
            self.sums[n], adjoint[j] = summed(self.sums[n], adjoint[j]), None
        for i in sorted(self.carried or (), reverse=True):
            state, at = (self.carried or {})[i]
            totals, rows, self.out_grads[i] = adjoint if state else self.sums, self.out_grads[i], None
            for row in () if rows is None else rows:
                totals[at] = summed(totals[at], row)
        for i, j in reversed(self.pairs_of(self.steps - 1)):  # in autograd's order, the last node first
            gradient = self._out_grad(i, self.steps - 1)
            if gradient is not None:
                adjoint[j] = summed(adjoint[j], gradient)
        return adjoint
