# SPDX-License-Identifier: Apache-2.0
"""Second gradients of a scan: the derivative of its gradients, by recomputation (prototype).

``plain``: the loop and its backward as one differentiable graph, all tapes at once.
``scan``: states of all steps are kept; the backward is a scan over them within the budget.
"""
from typing import Any, List, Optional, Sequence

import torch

from ..errors import UsageError
from .device import set_rng
from .runs import differentiable, generator_kept
from .trees import flatten, unflatten

METHOD = "scan"


class Once(torch.autograd.Function):
    """Gradients that depend on all that they were computed from, and may not be differentiated."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Optional[torch.Tensor]) -> Any:
        return tuple(None if x is None else x.detach() for x in tensors[:count])  # a view_as of a sparse one would fail

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a scan, which has first gradients alone "
                           "(once_differentiable): give it double_backward=True")


class Second(torch.autograd.Function):
    """First gradients as a function of all that a scan was given and of gradients of its results."""

    @staticmethod
    def forward(ctx: Any, call: Any, count: int, *tensors: Optional[torch.Tensor]) -> Any:
        ctx.call, ctx.count = call, count
        ctx.save_for_backward(*tensors[count:])
        ctx.set_materialize_grads(False)
        return tuple(None if x is None else x.view_as(x) for x in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *cots: Optional[torch.Tensor]) -> Any:
        call, rest = ctx.call, ctx.saved_tensors
        given, gradients = rest[:ctx.count], rest[ctx.count:]
        if any(x.grad_fn is not None for x in call.run.params):
            raise UsageError("double_backward: parameters that were computed (prototype)")
        run = _plain if METHOD == "plain" else _scan
        with generator_kept(call.run.random), call.cast():
            found = run(call, given, gradients, cots)
        if torch.is_grad_enabled():
            found = list(Once.apply(len(found), *found, *rest, *cots))
        return (None, None, *[None] * ctx.count, *found)


def _leaf(x: Optional[torch.Tensor], wanted: bool = True) -> Optional[torch.Tensor]:
    if x is None:
        return None
    return x.detach().requires_grad_(wanted and differentiable(x))


def _grad(outs: Sequence[Any], ins: Sequence[Any], given: Sequence[Any], create: bool) -> List[Any]:
    pairs = [(o, g) for o, g in zip(outs, given) if o is not None and g is not None and o.requires_grad]
    wanted = [x for x in ins if x is not None and x.requires_grad]
    if not pairs or not wanted:
        return [None] * len(ins)
    found = list(torch.autograd.grad([o for o, _ in pairs], wanted, [g for _, g in pairs], create_graph=create,
                                     allow_unused=True))[::-1]
    return [found.pop() if x is not None and x.requires_grad else None for x in ins]


def _parts(call: Any, given: Sequence[torch.Tensor]) -> Any:
    s, i = call.states, call.inputs
    wants = call.run.wants_input
    return ([_leaf(x) for x in given[:s]], [_leaf(x, w) for x, w in zip(given[s:s + i], wants)], call.run.params)


def _plain(call: Any, given: Any, gradients: Any, cots: Any) -> List[Any]:
    run = call.run
    start, inputs, params = _parts(call, given)
    if run.rng:
        set_rng(run.random, call.first.rng)
    with torch.enable_grad():
        grads = [_leaf(g) for g in gradients]
        rows = list(zip(*[x.unbind(0) for x in inputs])) if inputs else None
        tree, outs = unflatten(run.shape, start), []
        for t in range(run.steps):
            x = unflatten(run.input_shape, list(rows[t])) if rows is not None else run.input(t)
            tree, out = run._called(tree, x, t)
            outs.append(flatten(out)[0])
        results = [*flatten(tree)[0], *[torch.stack(c) for c in zip(*outs)]]
        ins = [*start, *inputs, *params]
        first = _grad(results, ins, grads, True)
        return _grad(first, [*ins, *grads], cots, False)


def _scan(call: Any, given: Any, gradients: Any, cots: Any) -> List[Any]:
    scan = call.double  # the budget holds for each of the two scans
    run, s, i = call.run, call.states, call.inputs
    if run.rng:
        raise UsageError("double_backward: random numbers (prototype)")
    start, inputs, params = _parts(call, given)
    T, memory = run.steps, call.memory
    kw = dict(steps=T, params=params, memory=memory, strict=call.strict, rng=False)
    cot_s, cot_x, cot_p = cots[:s], cots[s:s + i], cots[s + i:]
    with torch.enable_grad():
        grads = [_leaf(g) for g in gradients]

        def forth(tree: Any, x: Any, t: int) -> Any:
            after, _ = run._called(tree, x, t)
            return after, list(flatten(tree)[0])

        _, H = scan(forth, unflatten(run.shape, start), unflatten(run.input_shape, inputs) if inputs else run.give, **kw)
        gout = grads[s:]
        at = [k for k, g in enumerate(gout) if g is not None]
        cx = [k for k, c in enumerate(cot_x) if c is not None]

        def back(adjoint: Any, rows: Any, k: int) -> Any:
            t, make = T - 1 - k, torch.is_grad_enabled()
            with torch.enable_grad():
                ready = lambda x: x if x.requires_grad or not differentiable(x) else x.detach().requires_grad_()
                h = [ready(x) for x in rows[0]]
                xs = [ready(x) if w else x for x, w in zip(rows[1], run.wants_input)] if inputs else []
                x = unflatten(run.input_shape, xs) if inputs else run.input(t)
                tree, out = run._called(unflatten(run.shape, h), x, t)
                outs = flatten(out)[0]
                found = _grad([*flatten(tree)[0], *[outs[k] for k in at]], [*h, *xs, *params],
                              [*adjoint, *rows[2]], make)
                gx, gp = found[s:s + len(xs)], found[s + len(xs):]
                terms = [(g * c).sum() for g, c in zip(gp, cot_p) if g is not None and c is not None]
                terms += [(gx[k] * c).sum() for k, c in zip(cx, rows[3]) if gx and gx[k] is not None]
                total = sum(terms) if terms else h[0].new_zeros(())
            return [torch.zeros_like(a) if g is None else g for a, g in zip(h, found[:s])], total

        adjoint = [g if g is not None else torch.zeros_like(x) for g, x in zip(grads[:s], start)]
        rows = ([x.flip(0) for x in H], [x.flip(0) for x in inputs], [gout[k].flip(0) for k in at],
                [cot_x[k].flip(0) for k in cx])
        last, totals = scan(back, adjoint, rows, **kw)
        whole = totals.sum() + sum((a * c).sum() for a, c in zip(last, cot_s) if c is not None)
        return _grad([whole], [*start, *inputs, *params, *grads], [torch.ones_like(whole)], False)
