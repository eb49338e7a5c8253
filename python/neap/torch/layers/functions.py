# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers as functions of tensors: ``lif`` and ``alif`` spike, ``lstm`` and ``gru`` are PyTorch's."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from ... import _abi_nn, specs, units
from ...errors import UsageError
from ...reports import Report
from ...stores import Paths
from ...units import Size
from ..scan import reported
from ..transforms import transformed, uncompiled
from .chains import Budget, Steps
from . import nets
from .nets import Kind, spikes_of

__all__ = ["RESETS", "SURROGATES", "alif", "gru", "lif", "lstm"]

# The values of the choices in neap/net.h, by their names.
SURROGATES: Dict[str, int] = {name: getattr(_abi_nn, f"NEAP_{name.upper()}") for name in specs.SURROGATES}
SURROGATES.update({alias: SURROGATES[name] for alias, name in specs.SURROGATE_ALIASES.items()})
RESETS: Dict[str, int] = {name: getattr(_abi_nn, f"NEAP_RESET_{name.upper()}") for name in specs.RESETS}
UNITS = 65535  # of a layer of libneap-nn

Rows = Sequence[torch.Tensor]


class Cell(NamedTuple):
    """The kind of a layer. ``gates``: rows of the weights per unit; ``smooth``: outputs are numbers, and the state has a
    gradient; ``sums_biases``: the network has the sum of all biases, instead of one after the other."""

    name: str
    gates: int = 1
    smooth: bool = False
    sums_biases: bool = False


LIF, ALIF = Cell("lif"), Cell("alif")
LSTM, GRU = Cell("lstm", 4, True, True), Cell("gru", 3, True)


class Call(NamedTuple):
    """One call of a layer."""

    cell: Cell
    kind: Kind
    budget: Budget
    events: Any
    report: Report

    def weights(self, w_in: torch.Tensor, w_rec: Optional[torch.Tensor],
                biases: Sequence[Optional[torch.Tensor]]) -> List[Tuple[str, torch.Tensor]]:
        """Returns the parameters of the network, [rows, columns]."""
        found = [("layer0.weight", w_in.t())]
        if w_rec is not None:
            found.append(("layer0.recurrent", w_rec.t()))
        zeros = w_in.new_zeros(self.cell.gates * self.kind.units)
        rows = [zeros if bias is None else bias.detach() for bias in biases]
        bias = sum(rows[1:], rows[0]) if self.cell.sums_biases else torch.cat(rows)
        return [*found, ("layer0.bias", bias.view(1, -1))]

    def bias_gradients(self, whole: torch.Tensor, count: int) -> List[torch.Tensor]:
        """Splits ``whole`` [1, columns], the gradient of the network's bias, into the gradients of the biases."""
        if self.cell.sums_biases:
            return [whole.view(-1).clone() for _ in range(count)]
        return [part.clone() for part in whole.view(count, -1).unbind(0)]


class _Layer(torch.autograd.Function):
    """``apply(call, x, w_in, w_rec, count, *biases, *state)`` returns the outputs and the last state."""

    @staticmethod
    def forward(ctx: Any, call: Call, x: torch.Tensor, w_in: torch.Tensor, w_rec: Optional[torch.Tensor], count: int,
                *others: Optional[torch.Tensor]) -> Tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.call, ctx.count = call, count
        ctx.save_for_backward(x, w_in, w_rec, *others)
        outputs = x.new_empty(x.shape[0], x.shape[1], call.kind.units)
        with nets.turn(call.kind.device):
            ctx.steps, ctx.player, last = _forward(call, outputs, x, w_in, w_rec, others[:count], others[count:])
            return (outputs, *ctx.steps.net.get_state(last))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_outputs: Optional[torch.Tensor], *d_state: Optional[torch.Tensor]) -> Tuple[Any, ...]:
        with nets.turn(ctx.call.kind.device):
            return _Layer._backward(ctx, d_outputs, d_state)

    @staticmethod
    def _backward(ctx: Any, d_outputs: Optional[torch.Tensor], d_state: Rows) -> Tuple[Any, ...]:
        call, count = ctx.call, ctx.count
        x, w_in, w_rec, *others = ctx.saved_tensors
        given = others[count:]
        if not call.cell.smooth and any(row is not None for row in d_state):
            raise UsageError(f"the loss depends on the last state of nt.{call.cell.name}, whose gradient is not computed. "
                             f"Use the outputs, or the state after .detach()")
        if ctx.steps is None:  # a further backward pass through the same graph
            ctx.steps, ctx.player, _ = _forward(call, None, x, w_in, w_rec, others[:count], given)
            call.report.replays += 1
        steps, player, net = ctx.steps, ctx.player, ctx.steps.net
        ctx.steps = ctx.player = None
        try:
            rows = None
            if any(row is not None for row in d_state):
                zeros = x.new_zeros(x.shape[1], call.kind.units)
                rows = [zeros if row is None else row for row in d_state]
                d_outputs = x.new_zeros(x.shape[0], *zeros.shape) if d_outputs is None else d_outputs.clone()
                d_outputs[-1] += rows[-1]
            needs = ctx.needs_input_grad
            d_x = torch.empty_like(x) if needs[1] else None
            net.gradients(None if d_outputs is None else d_outputs.contiguous(), d_x)
            adjoint = steps.bytes(steps.adjoint)
            net.put_adjoint(adjoint, rows)
            adjoint = player.backward(adjoint)
            d_given: List[Optional[torch.Tensor]] = [None] * len(given)
            if given and call.cell.smooth and any(needs[5 + count:]):
                d_given = list(net.state_gradient(adjoint))
            net.end()
            d_in = net.gradient("layer0.weight").to(x.device).t() if needs[2] else None
            d_rec = net.gradient("layer0.recurrent").to(x.device).t() if needs[3] else None
            d_bias: List[Optional[torch.Tensor]] = [None] * count
            if any(needs[5:5 + count]):
                d_bias = list(call.bias_gradients(net.gradient("layer0.bias").to(x.device), count))
            wanted = [row if need else None for row, need in zip([*d_bias, *d_given], needs[5:])]
        finally:
            player.close()
            steps.close()
        return (None, d_x, d_in, d_rec, None, *wanted)


def _forward(call: Call, outputs: Optional[torch.Tensor], x: torch.Tensor, w_in: torch.Tensor,
             w_rec: Optional[torch.Tensor], biases: Sequence[Optional[torch.Tensor]], state: Rows) -> Tuple[Any, Any, Any]:
    steps = Steps(call.kind, x, call.events, call.weights(w_in, w_rec, biases), state)
    try:
        return (steps, *steps.forward(call.budget, outputs, call.report))
    except BaseException:
        steps.close()
        raise


def _run(cell: Cell, x: torch.Tensor, w_in: torch.Tensor, w_rec: Optional[torch.Tensor],
         biases: Sequence[Optional[torch.Tensor]], state: Rows, spec: str, keys: Any, spikes: Optional[bool],
         memory: Optional[Size], strategy: str, slow: Optional[Paths], threads: Optional[int]) -> Any:
    """Runs a layer; returns the outputs and the tensors of the last state."""
    name = f"nt.{cell.name}"
    tensors = {"x": x, "w_in": w_in, "w_rec": w_rec, **{f"bias {i}": bias for i, bias in enumerate(biases)},
               **{f"state {i}": row for i, row in enumerate(state)}}
    _check(name, tensors)
    if transformed([row for row in tensors.values() if row is not None], None, name):
        raise UsageError(f"{name} inside a transform of torch.func, or while PyTorch traces or uses forward-mode AD, is not "
                         f"supported. Call it outside, or use nt.scan, which is a plain loop there")
    count = _shapes(name, cell, x, w_in, w_rec, biases, state)
    graded = torch.is_grad_enabled()
    if graded and not cell.smooth and any(row.requires_grad for row in state):
        raise UsageError(f"the initial state of {name} requires a gradient, which is not computed for cells that spike. "
                         f"Pass the state after .detach()")
    x = x.contiguous()
    if threads is not None and units.count(threads, "threads") < 1:
        raise UsageError(f"threads={threads} is not valid. Pass 1 or more, or None for torch.get_num_threads()")
    events = None if spikes is False else spikes_of(x.detach(), len(state) > 0)
    if spikes and events is None:
        raise UsageError("spikes=True, but x has numbers other than 0 and 1. Pass spikes=False, or None to detect spikes")
    device = nets.place(x)
    if device and events is None and not bool(torch.isfinite(x.detach()).all()):
        raise UsageError(f"x of {name} has a number that is not finite. Check the inputs")
    if device and slow is not None:
        raise UsageError(f"slow= of {name} is for tensors on the CPU, and x is on {device}. Remove slow=, or use nt.scan, which "
                         f"offloads from it")
    kind = Kind(f"{spec.format(n=count, r='r' if w_rec is not None else '')}", x.shape[2], count, x.dtype,
                events is not None, threads or torch.get_num_threads(), tuple(sorted(keys.items())),
                device)
    budget = Budget(None if memory is None else units.size(memory, "memory"), strategy, slow)
    call = Call(cell, kind, budget, events, Report("call", "a buffer for a tape"))
    reported(call.report)
    if graded and any(row is not None and row.requires_grad for row in tensors.values()):
        return _Layer.apply(call, x, w_in, w_rec, len(biases), *biases, *state)
    with torch.no_grad(), nets.turn(device):
        return _advanced(call, x, w_in, w_rec, biases, state)


def _advanced(call: Call, x: torch.Tensor, w_in: torch.Tensor, w_rec: Optional[torch.Tensor],
              biases: Sequence[Optional[torch.Tensor]], state: Rows) -> Tuple[torch.Tensor, ...]:
    """Runs a layer without gradients."""
    call.report.plain = True
    outputs = x.new_empty(x.shape[0], x.shape[1], call.kind.units)
    steps = Steps(call.kind, x, call.events, call.weights(w_in, w_rec, biases), state)
    try:
        steps.begin(outputs)
        last = steps.start()
        steps.net.advance(last, 0, x.shape[0], True)
        return (outputs, *steps.net.get_state(last))
    finally:
        steps.close()


def _check(name: str, tensors: Any) -> None:
    """Raises UsageError for a tensor that libneap-nn cannot read."""
    x = tensors["x"]
    for key, tensor in tensors.items():
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
            raise UsageError(f"{key} of {name} is not a dense tensor: {type(tensor).__name__}. Pass a dense tensor")
        if tensor.device.type not in ("cpu", "cuda"):
            raise UsageError(f"{key} of {name} is on {tensor.device}, but layers are computed on the CPU and on CUDA devices. "
                             f"Move the tensors with .cpu(), or use nt.scan, which runs on {tensor.device}")
        if tensor.device != x.device:
            raise UsageError(f"{key} of {name} is on {tensor.device}, and x is on {x.device}. Move all tensors to one device")
        if tensor.dtype not in (torch.float32, torch.float64) or tensor.dtype != x.dtype:
            raise UsageError(f"{key} of {name} has dtype {tensor.dtype}; all tensors need the same dtype, float32 or "
                             f"float64. Convert it")
    if nets.place(x) and x.dtype != torch.float32:
        raise UsageError(f"x of {name} has dtype {x.dtype}, but layers compute in float32 on {nets.place(x)}. Convert all tensors, "
                         f"or move them with .cpu()")


def _shapes(name: str, cell: Cell, x: torch.Tensor, w_in: torch.Tensor, w_rec: Optional[torch.Tensor],
            biases: Sequence[Optional[torch.Tensor]], state: Rows) -> int:
    """Returns the number of units; raises UsageError for a wrong shape."""
    if x.dim() != 3 or not all(x.shape):
        raise UsageError(f"x of {name} has shape {list(x.shape)}; it needs [T, B, features] with at least one of each. "
                         f"Reshape it; time is the first dimension")
    columns, n = w_in.shape[0] if w_in.dim() == 2 else 0, 0
    n = columns // cell.gates
    if w_in.dim() != 2 or n < 1 or columns != n * cell.gates or w_in.shape[1] != x.shape[2] or n > UNITS:
        rows = "units" if cell.gates == 1 else f"{cell.gates} * units"
        raise UsageError(f"w_in of {name} has shape {list(w_in.shape)}; it needs [{rows}, {x.shape[2]}], as x has "
                         f"{x.shape[2]} features, and at most {UNITS} units")
    wanted = {"w_rec": (w_rec, [columns, n]), **{f"bias {i}": (row, [columns]) for i, row in enumerate(biases)},
              **{f"state {i}": (row, [x.shape[1], n]) for i, row in enumerate(state)}}
    for key, (tensor, shape) in wanted.items():
        if tensor is not None and list(tensor.shape) != shape:
            raise UsageError(f"{key} of {name} has shape {list(tensor.shape)}; it needs {shape}")
    return n


def _named(table: Any, value: str, key: str) -> int:
    if value not in table:
        raise UsageError(f"{key}={value!r} is not known. Pass one of {', '.join(table)}")
    return table[value]


def _spiking(tau: float, dt: float, threshold: float, detach: bool, surrogate: str, width: float, height: float,
             support: float) -> Any:
    for key, value in dict(tau=tau, dt=dt, threshold=threshold, width=width, height=height).items():
        if not 0 < value < float("inf"):
            raise UsageError(f"{key}={value!r} is not valid. Pass a number above 0")
    return dict(tau=float(tau), dt=float(dt), threshold=float(threshold), detach=int(detach), width=float(width),
                height=float(height), support=float(support), surrogate=_named(SURROGATES, surrogate, "surrogate"))


def _rows(state: Any, count: int, name: str, what: str) -> Rows:
    """Returns the tensors of a given state."""
    if state is None:
        return ()
    rows = [state] if isinstance(state, torch.Tensor) else list(state)
    if len(rows) != count:
        raise UsageError(f"the state of {name} has {len(rows)} tensors; it needs {what}")
    return rows


@uncompiled
def lif(x: torch.Tensor, w_in: torch.Tensor, w_rec: Optional[torch.Tensor] = None,
        bias: Optional[torch.Tensor] = None, *, state: Any = None, tau: float = 20e-3, dt: float = 1e-3,
        threshold: float = 1.0, reset: str = "subtract", reset_value: float = 0.0, detach: bool = False,
        surrogate: str = "triangle", width: float = 0.5, height: float = 1.0, support: float = 0.0,
        spikes: Optional[bool] = None, memory: Optional[Size] = None, strategy: str = "auto",
        slow: Optional[Paths] = None, threads: Optional[int] = None) -> Tuple[torch.Tensor, Tuple[torch.Tensor, ...]]:
    """A layer of leaky integrate-and-fire neurons over all steps, computed by libneap-nn, on CUDA devices in float32.

    With ``reset="subtract"`` and beta = exp(-dt/tau), step t computes
    U = beta U + W x[t] + V S + b - threshold S, then S = (U > threshold), from the membrane potentials U and spikes S of
    the step before. docs/cells.md has the equations of the other resets. The derivative of S by U is the surrogate
    derivative; by default ``max(0, 1 - |U - threshold|/0.5)``, as in ``neap train``.

    :param x: inputs [T, B, features], float32 or float64.
    :param w_in: weights W [units, features].
    :param w_rec: recurrent weights V [units, units]; None: a feed-forward layer.
    :param bias: b [units]; None: zeros.
    :param state: the last state of an earlier call, to continue from it; None: zeros. It gets no gradient.
    :param tau: membrane time constant in seconds.
    :param dt: seconds per step.
    :param threshold: membrane potential above which a neuron spikes.
    :param reset: ``"subtract"``, ``"zero"`` (one step later), ``"hard"`` (to ``reset_value``) or ``"soft"`` (at once).
    :param reset_value: membrane potential after a spike with ``reset="hard"``.
    :param detach: True: no gradient through the reset.
    :param surrogate: the surrogate derivative: ``"triangle"``, ``"boxcar"``, ``"superspike"`` (``"fast_sigmoid"``),
        ``"sigmoid"``, ``"atan"``, ``"gaussian"``, ``"slayer"`` or ``"double_gaussian"``; docs/cells.md has the formulas.
    :param width: width of the surrogate derivative.
    :param height: factor of ``triangle``, ``slayer`` and ``double_gaussian``.
    :param support: the surrogate derivative is 0 if ``|U - threshold| > support``; 0: no cutoff.
    :param spikes: True: all inputs are 0 or 1, which is checked; False: they are computed as numbers; None: detected.
    :param memory: budget for states, tapes, the adjoint and the buffer of a tape, such as ``"16M"``; None: all tapes are
        kept. Inputs, outputs, weights and their gradients, and the work memory of libneap-nn, are not included.
    :param strategy: the planner's strategy, as of :func:`neap.torch.scan`.
    :param slow: directories or ``"mem:4G"`` for offloaded states and tapes, as of :func:`neap.torch.scan`; on the CPU only.
    :param threads: number of threads; None: ``torch.get_num_threads()``. Results do not depend on it.
    :returns: spikes [T, B, units], and the last state: membrane potentials [B, units] and, if the next step depends on
        them, the last spikes [B, units].
    :raises UsageError: for an invalid argument, tensors on other devices than the CPU or one CUDA device, or if a gradient of a
        state is needed.
    :raises BudgetError: if no plan fits the budget; ``error.least`` is a sufficient one.
    :raises ImportError: if libneap-nn is not installed.
    """
    keys = _spiking(tau, dt, threshold, detach, surrogate, width, height, support)
    keys.update(reset=_named(RESETS, reset, "reset"), reset_value=float(reset_value))
    rows = 2 if w_rec is not None or reset in ("subtract", "zero") else 1
    given = _rows(state, rows, "nt.lif", "(membrane, spikes)" if rows == 2 else "(membrane,)")
    outputs, *last = _run(LIF, x, w_in, w_rec, [bias], given, "lif:{n}{r}", keys, spikes, memory, strategy, slow, threads)
    return outputs, tuple(last)


@uncompiled
def alif(x: torch.Tensor, w_in: torch.Tensor, w_rec: Optional[torch.Tensor] = None,
         bias: Optional[torch.Tensor] = None, *, state: Any = None, tau: float = 20e-3, tau_adapt: float = 100e-3,
         adapt: float = 0.1, dt: float = 1e-3, threshold: float = 1.0, detach: bool = False, surrogate: str = "triangle",
         width: float = 0.5, height: float = 1.0, support: float = 0.0, spikes: Optional[bool] = None,
         memory: Optional[Size] = None, strategy: str = "auto", slow: Optional[Paths] = None,
         threads: Optional[int] = None) -> Tuple[torch.Tensor, Tuple[torch.Tensor, ...]]:
    """A layer of leaky integrate-and-fire neurons whose spikes raise their threshold.

    With beta = exp(-dt/tau) and rho = exp(-dt/tau_adapt), step t computes a = rho a + S,
    U = beta U + W x[t] + V S + b - threshold S, and then S = (U > threshold + adapt a), from the potentials U,
    adaptations a and spikes S of the step before (Bellec et al. 2018, with reset by subtraction).

    :param tau_adapt: time constant of the adaptation in seconds.
    :param adapt: increase of the threshold per unit of a.
    :returns: spikes [T, B, units], and the last state: membrane potentials, adaptations and spikes, [B, units] each.

    See :func:`lif` for the other parameters and the errors.
    """
    keys = _spiking(tau, dt, threshold, detach, surrogate, width, height, support)
    if not 0 < tau_adapt < float("inf") or not 0 <= adapt < float("inf"):
        raise UsageError(f"tau_adapt={tau_adapt!r} and adapt={adapt!r}: the time constant must be above 0, and the factor "
                         f"at least 0. Pass such numbers")
    given = _rows(state, 3, "nt.alif", "(membrane, adaptation, spikes)")
    spec = f"alif:{{n}}{{r}}:tau_adapt={float(tau_adapt)!r}s:adapt={float(adapt)!r}"
    outputs, *last = _run(ALIF, x, w_in, w_rec, [bias], given, spec, keys, spikes, memory, strategy, slow, threads)
    return outputs, tuple(last)


@uncompiled
def lstm(x: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: Optional[torch.Tensor] = None,
         b_hh: Optional[torch.Tensor] = None, *, state: Any = None, spikes: Optional[bool] = None,
         memory: Optional[Size] = None, strategy: str = "auto", slow: Optional[Paths] = None,
         threads: Optional[int] = None) -> Tuple[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    """An LSTM layer over all steps, computed by libneap-nn, on CUDA devices in float32: equations and order of the gates as in
    :class:`torch.nn.LSTM` with one layer.

    :param x: inputs [T, B, features].
    :param w_ih: weights [4 units, features].
    :param w_hh: recurrent weights [4 units, units].
    :param b_ih: bias [4 units]; None: zeros.
    :param b_hh: a second bias [4 units], which is added to the first; None: zeros.
    :param state: (h, c), [B, units] each, which may require gradients; None: zeros.
    :returns: outputs [T, B, units] and the last state (h, c), through which gradients flow.

    See :func:`lif` for the other parameters and the errors.
    """
    h_c = _rows(state, 2, "nt.lstm", "(h, c)")
    outputs, c, h = _run(LSTM, x, w_ih, w_hh, [b_ih, b_hh], h_c[::-1], "lstm:{n}", {}, spikes, memory, strategy, slow,
                         threads)
    return outputs, (h, c)


@uncompiled
def gru(x: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: Optional[torch.Tensor] = None,
        b_hh: Optional[torch.Tensor] = None, *, state: Any = None, spikes: Optional[bool] = None,
        memory: Optional[Size] = None, strategy: str = "auto", slow: Optional[Paths] = None,
        threads: Optional[int] = None) -> Tuple[torch.Tensor, torch.Tensor]:
    """A GRU layer over all steps, computed by libneap-nn, on CUDA devices in float32: equations and order of the gates as in
    :class:`torch.nn.GRU` with one layer.

    :param x: inputs [T, B, features].
    :param w_ih: weights [3 units, features].
    :param w_hh: recurrent weights [3 units, units].
    :param b_ih: bias [3 units] of the products with inputs; None: zeros.
    :param b_hh: bias [3 units] of the products with the state; None: zeros.
    :param state: h [B, units], which may require a gradient; None: zeros.
    :returns: outputs [T, B, units] and the last state h, through which gradients flow.

    See :func:`lif` for the other parameters and the errors.
    """
    given = _rows(state, 1, "nt.gru", "one: h")
    outputs, h = _run(GRU, x, w_ih, w_hh, [b_ih, b_hh], given, "gru:{n}", {}, spikes, memory, strategy, slow, threads)
    return outputs, h
