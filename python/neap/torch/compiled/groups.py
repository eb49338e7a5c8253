# SPDX-License-Identifier: Apache-2.0
"""Three compiled functions for groups of equally many steps: forward; forward with saved tensors; backward.

A group is first run as it is, then traced. Both must give the same results in two groups, because values that the step
takes from Python (a counter, NumPy's random numbers) would be constants of the graph.
"""
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch

from ...errors import UsageError
from ..device import get_rng, set_rng
from ..interrupts import imported, passed_on
from ..measure import GRAPH, address
from ..runs import State
from ..trees import equal
from .graphs import Replayed, buffers, graphs_of
from .partition import parts
from .tracing import Steps, Untraceable, reason, traced

__all__ = ["Group", "Groups"]

MOST = 16  # groups that are kept, the ones used last; and kinds of groups that cannot be compiled
CLOSE = 1e-5  # largest difference of traced from ordinary results, relative to the largest element
Tensors = Sequence[torch.Tensor]


def compiled(module: Any, given: Tensors) -> Callable[..., Any]:
    """Compiles a graph module for arguments like ``given``, without the guards of torch.compile, which take longer than
    a small group. Random numbers come from PyTorch's generators."""
    imported("torch._inductor.compile_fx")
    import torch._inductor as inductor
    with inductor.config.patch(fallback_random=True):
        if hasattr(inductor, "standalone_compile"):  # uses the caches on disk
            return inductor.standalone_compile(module, list(given), dynamic_shapes="from_example_inputs")
        return inductor.compile(module, list(given))


class _Lazy:
    """A graph module that is compiled when it is called first."""

    def __init__(self, module: Any):
        self._module, self._function = module, None

    def __call__(self, *given: torch.Tensor) -> Any:
        if self._function is None:
            ids = list(map(id, given))  # repeated tensors may be different ones in later calls
            self._function = compiled(self._module, [x.clone() if i in ids[:k] else x
                                                     for k, (i, x) in enumerate(zip(ids, given))])
            self._module = None
        return self._function(*given)


def _tape_bytes(own: int, count: int) -> int:
    """Returns the bytes of ``count`` tensors with ``own`` bytes of memory, and of their objects."""
    return own + GRAPH.saved * count + GRAPH.tape


class Group:
    """Functions for groups of ``count`` steps. Arguments are ``primals``: the first state, inputs [count, ...] and
    parameters.

    ``joint``: the traced graph; ``nbytes``: bytes of a tape; ``held``: the primals in a tape, which starts with them.
    """

    def __init__(self, steps: Steps, primals: List[torch.Tensor], tangents: List[torch.Tensor]):
        self.count, self.joint = steps.count, traced(steps, primals, tangents)
        states, params = steps.states, len(primals) - len(steps.run.params)
        exist = range(states if steps.run.inputs is not None else params, len(primals))
        cut = parts(self.joint, exist)
        self._functions: List[Callable[..., Any]] = [cut.advance, cut.record, cut.backward]
        self._kept, self.held = cut.kept, [k for k in cut.kept if k not in exist]
        whole, first = len(primals), len(primals) - len(steps.run.params)  # parameters come last
        rows = len(self._kept) + len(cut.saved) + len(tangents)
        constants = len(self.joint.constants)
        self._fixed = [[*range(first, whole + constants)]] * 2 + \
            [[*[n for n, k in enumerate(self._kept) if k >= first], *range(rows, rows + constants)]]
        memory = steps.run.memory
        # Static buffers of forward and recording functions, which may become one function that is captured twice.
        sizes = [buffers(module, fixed, memory) for module, fixed in zip((cut.advance, cut.record, cut.backward), self._fixed)]
        device = primals[0].device if primals else torch.device("cpu")
        self._buffers = [max(sizes[:2]), *sizes[1:]] if not self.joint.random and graphs_of(device) is not None else []
        self._loose: List[bool] = [False] * states  # states that share memory with other results
        self._rounded = memory.rounded
        own = sum([memory.rounded(x.numel() * x.element_size()) for x in (*[primals[k] for k in self.held], *cut.saved)])
        self.nbytes = _tape_bytes(own, len(self.held) + len(cut.saved))
        self._like = [(x.shape, x.dtype, x.device) for x in tangents]
        self.ready = False

    @property
    def static(self) -> int:
        """The bytes of the static buffers of its functions, if they are captured as graphs of launches."""
        return sum(self._buffers)

    def advance(self, primals: Tensors) -> List[torch.Tensor]:
        """Returns the last state and the outputs [count, ...]."""
        found = self._functions[0](*primals, *self.joint.constants)
        return self._apart(found[:self.joint.forward])

    def record(self, primals: Tensors) -> Tuple[List[torch.Tensor], List[torch.Tensor]]:
        """Returns the last state and the outputs, and the tensors of the tape."""
        found = self._functions[1](*primals, *self.joint.constants)
        return self._apart(found[:self.joint.forward]), [*[primals[k] for k in self.held],
                                                         *found[self.joint.forward:]]

    def _apart(self, results: Tensors) -> List[torch.Tensor]:
        return [x.clone() if loose else x for x, loose in zip(results, self._loose)] + list(results[len(self._loose):])

    def tangents(self, given: Sequence[Optional[torch.Tensor]]) -> List[torch.Tensor]:
        """Returns incoming gradients with zeros for those that are None."""
        return [torch.zeros(shape, dtype=dtype, device=device) if x is None else x
                for x, (shape, dtype, device) in zip(given, self._like)]

    def backward(self, primals: Sequence[Optional[torch.Tensor]], tape: Tensors, tangents: Tensors) -> List[Any]:
        """Returns the gradients of states, inputs and parameters that have some. ``primals`` held by the tape may be
        None."""
        rows = iter(tape)
        given = [next(rows) if k in self.held else primals[k] for k in self._kept]
        return list(self._functions[2](*given, *rows, *tangents, *self.joint.constants))

    def compile(self, primals: Tensors, reset: Callable[[], None], now: Callable[[], Any]) -> None:
        """Compiles the functions, and calls each once.

        :param reset: sets the generator to its state before the group; ``now`` returns its current state.
        :raises Untraceable: if the compiler fails.
        """
        if self.ready:
            return
        plain, made = self._functions, [_Lazy(module) for module in self._functions]
        try:
            self._functions = made[:]
            reset()
            first, after = self.advance(primals), now()
            reset()
            second, tape = self.record(primals)
            same = equal(after, now())
            self.backward(primals, tape, self.tangents([None] * len(self._like)))
        except Exception as error:
            passed_on(error)
            raise Untraceable(f"the compiler failed: {reason(error)}") from error
        finally:
            self._functions = plain  # until all is known: an interruption at any line leaves a traced group
        if not same or not all(map(equal, first, second)):  # kernels round differently
            made[0] = made[1]
        nbytes = _tape_bytes(sum(map(self._rounded, dict(map(address, tape)).values())), len(tape))
        sizes = [address(x) for x in (*second, *tape)]
        loose = [size != x.numel() * x.element_size() or sizes.count((at, size)) > 1
                 for x, (at, size) in zip(second[:len(self._loose)], sizes)]
        graphs = graphs_of(primals[0].device) if primals and not self.joint.random else None
        functions: List[Callable[..., Any]] = [*made]
        if graphs is not None:
            functions = [Replayed(function, fixed, graphs) for function, fixed in zip(made, self._fixed)]
        nbytes = max(self.nbytes, nbytes)
        self._functions, self._loose, self.nbytes, self.ready = functions, loose, nbytes, True


def _apart(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Returns the largest difference, relative to the largest element of the same tensor. Gradients that are None are
    skipped; tensors with infinities or NaN are equal or infinitely far apart."""
    worst = 0.0
    for a, b in zip(found, wanted):
        if a is None or b is None or a.numel() == 0 or equal(a, b):
            continue
        a, b = a.double(), b.double()
        gap = ((a - b).abs().max() / b.abs().max().clamp(min=1e-30)).item()
        worst = max(worst, gap if math.isfinite(gap) else math.inf)
    return worst


class Groups:
    """The groups of a step, kept from call to call."""

    def __init__(self) -> None:
        self._found: Dict[Any, Group] = {}
        self._volatile: Optional[Set[int]] = set()  # positions of ``values`` that steps change; None: of all
        self._refused: Dict[Any, str] = {}  # why groups of a kind cannot be compiled
        self._reported: Set[str] = set()  # reasons of which the caller was warned

    def refuse(self, run: Any, start: State, count: int, before: List[str], why: str) -> None:
        """Stores why groups of this kind cannot be compiled, so that later calls with arguments like these do not try
        it. Calls with other arguments do."""
        self._refused[self._key(run, start, count, before)] = why
        while len(self._refused) > MOST:
            del self._refused[next(iter(self._refused))]

    def new(self, why: str) -> bool:
        """True if this reason was not reported before."""
        found = why not in self._reported
        self._reported.add(why)
        return found

    def _key(self, run: Any, start: State, count: int, before: List[str]) -> Any:
        return count, run.kind(start.leaves), self._stable(before)

    def get(self, run: Any, start: State, count: int, outside: Callable[[], Any], before: List[str],
            values: Callable[[], List[str]]) -> Group:
        """Returns the group of the first ``count`` steps of a CompiledRun, traced.

        :param outside: returns a context manager for the autocast mode of backward passes.
        :param before: ``values()`` before the call: a description of objects in Python that steps may depend on.
        :raises Untraceable: if that is not possible.
        """
        why = self._refused.get(self._key(run, start, count, before))
        if why is not None:
            raise Untraceable(why)
        try:
            made = _Making(run, start, count, outside)
        except Untraceable:
            self._learn(before, values())
            raise
        self._learn(before, values())
        key = self._key(run, start, count, before)
        group = self._found.get(key)
        # Values cannot show everything that a step depends on (a replaced function, a frozen parameter, a class
        # attribute), so results and gradients of an existing group are compared with the step in each call.
        found = group if group is not None and made.fits(group) else made.group()
        self._found.pop(key, None)
        self._found[key] = found
        while len(self._found) > MOST:
            del self._found[next(iter(self._found))]
        return found

    def _learn(self, before: List[str], after: List[str]) -> None:
        """Notes which values complete steps changed."""
        if len(after) != len(before):
            self._volatile = None
        elif self._volatile is not None:
            self._volatile |= {i for i, (a, b) in enumerate(zip(before, after)) if a != b}

    def _stable(self, values: List[str]) -> Tuple[str, ...]:
        hidden = self._volatile
        return () if hidden is None else tuple([value for i, value in enumerate(values) if i not in hidden])


class _Making:
    """Runs, traces and compares the first groups of a scan."""

    def __init__(self, run: Any, start: State, count: int, outside: Callable[[], Any]):
        self.run, self.count = run, count
        self.steps = steps = Steps(run, count, outside)
        self.before = get_rng(run.random)
        given = run.state([x.contiguous() for x in start.leaves])
        self.inputs = [run.chunks(0, count)]
        versions = [x._version for x in self.inputs[0]]
        tape, out = steps.forward(given.leaves, self.inputs[0], range(count))
        self.after = [get_rng(run.random)]
        run.unchanged(given)
        if [x._version for x in self.inputs[0]] != versions:
            raise Untraceable("it modifies its input in place")
        steps.learn(tape, out)
        self.tangents = steps.ones(tape, out)
        self.states = [given.leaves, [x.detach().contiguous() for x in tape.last]]
        self.wanted = [[x.detach() for x in (*tape.last, *out)]]
        if run.steps >= 2 * count:
            self.inputs.append(run.chunks(count, 2 * count))
            second, out = steps.forward(self.states[1], self.inputs[1], range(count, 2 * count))
            self.after.append(get_rng(run.random))
            self.wanted.append([x.detach() for x in (*second.last, *out)])
            del second
        self.gradients = steps.backward(tape, self.tangents)

    def primals(self, k: int) -> List[torch.Tensor]:
        return [*self.states[k], *self.inputs[k], *self.run.params]

    def group(self) -> Group:
        """Returns the group. Raises UsageError if it differs from the steps."""
        run = self.run
        set_rng(run.random, self.before)
        group = Group(self.steps, self.primals(0), self.tangents)
        self._check(group)
        return group

    def _check(self, group: Group) -> None:
        """Raises an error if results, gradients or random numbers of the group differ from the step."""
        run = self.run
        with torch.no_grad():
            for k, wanted in enumerate(self.wanted):
                set_rng(run.random, self.after[0] if k else self.before)
                found, tape = group.record(self.primals(k))
                if not equal(get_rng(run.random), self.after[k]):
                    raise Untraceable("it draws random numbers that do not change its results")
                self._compare(found, wanted, f"steps {k * self.count} to {(k + 1) * self.count - 1}", "results")
                if k == 0:
                    found = group.backward(self.primals(0), tape, self.tangents)
                    self._compare(found, self.gradients, f"steps 0 to {self.count - 1}", "gradients")

    def fits(self, group: Group) -> bool:
        """True if a group that was traced in an earlier call has the results and gradients of the step."""
        try:
            self._check(group)
        except (UsageError, Untraceable):
            return False
        return True

    @staticmethod
    def _compare(found: Sequence[Any], wanted: Sequence[Any], which: str, what: str) -> None:
        half = any([x is not None and x.dtype in (torch.float16, torch.bfloat16) for x in wanted])
        gap = _apart(found, wanted)
        if gap > (0.02 if half else CLOSE):
            raise UsageError(f"compile=True: the traced {which} have {what} that differ by {gap:.1g} of the largest "
                             f"element from results without compile. The step depends on Python values that change "
                             f"while it runs, such as NumPy's random numbers or a counter, which tracing replaces by "
                             f"constants. Use torch's random numbers, make the value part of the state or of the "
                             f"inputs, or remove compile=True")
