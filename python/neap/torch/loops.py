# SPDX-License-Identifier: Apache-2.0
"""Scans without a plan: plain loops over the steps of a run."""
import weakref
from typing import Any, List, Tuple

import torch

from ..errors import UsageError
from .device import Generators, get_rng, set_rng
from .leaves import alive, cut
from .measure import mark
from .runs import Again, Run
from .trees import Tree, flatten, mapped, unflatten

__all__ = ["plain", "unrolled"]


def plain(run: Run, tree: Tree, random: Generators) -> Tuple[Tree, Tree]:
    """Runs all steps from the state ``tree``; returns the last state and the outputs. If a step reaches a leaf that
    requires a gradient, restores the generators ``random`` and raises Again."""
    watched, begin = torch.is_grad_enabled(), mark()
    before = get_rng(random) if watched else None
    for t in range(run.steps):
        tree, out = run._called(tree, run.input(t), t)
        leaves, shape = flatten(out, "the output")
        if watched:
            try:
                made = _made(run, [*flatten(tree, "the state")[0], *leaves], begin, t)
                if made:  # a graph without other leaves
                    tree, leaves, out = mapped(cut, tree, "the state"), [leaf.detach() for leaf in leaves], None
                    if alive(made):
                        raise Again(alive(made), t=t)
            except (Again, UsageError):
                set_rng(random, before)
                raise
        run.emit(t, leaves, shape)
    return tree, unflatten(run.out_shape, run.out or [])


def _made(run: Run, leaves: List[torch.Tensor], begin: int, t: int) -> List[Any]:
    """Returns weak references to leaves that step t created and its graph reaches; other leaves are an exception."""
    roots = [leaf for leaf in leaves if leaf.requires_grad]
    return [weakref.ref(leaf) for leaf in run.look(roots, set(), begin, t)[1]] if roots else []


def unrolled(run: Run, tree: Tree) -> Tuple[Tree, Tree]:
    """Runs all steps in operations that transforms and tracers support: without detach and in-place writes."""
    rows = []
    for t in range(run.steps):
        tree, out = run._called(tree, run.input(t), t)
        leaves, shape = flatten(out, "the output")
        run.structure(t, shape)
        rows.append(leaves)
    return tree, unflatten(run.out_shape, [torch.stack(column) for column in zip(*rows)])
