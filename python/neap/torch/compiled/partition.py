# SPDX-License-Identifier: Apache-2.0
"""Divides the graph of a group and its backward pass into three: forward; forward with saved tensors; backward.

The saved tensors are a minimum cut: the fewest bytes from which the backward graph can be computed, if elementwise
operations and views may be recomputed there, and all other operations may not. The capacity of a tensor is its
bytes; parameters, inputs and constants exist anyway and have none. (The same idea is in PyTorch's own partitioner:
H. He and S. Yu, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware", MLSys 2023.)
"""
import operator
from typing import Any, List, NamedTuple, Sequence, Set

import torch

from .tracing import Joint, Untraceable, is_random

__all__ = ["Parts", "parts"]

_VIEWS = ("alias", "as_strided", "detach", "diagonal", "expand", "permute", "select", "slice", "squeeze", "t",
          "transpose", "unsqueeze", "view", "_unsafe_view", "split", "split_with_sizes", "unbind", "unsafe_chunk",
          "unsafe_split", "unsafe_split_with_sizes")
_OTHERS = ("_to_copy", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "scalar_tensor",
           "lift_fresh_copy", "stack", "cat")


class Parts(NamedTuple):
    """Three graph modules, and what the last one takes: the primals with the indices ``kept``, then ``saved`` tensors
    (their values while tracing), then incoming gradients and constants."""

    advance: Any
    record: Any
    backward: Any
    kept: List[int]
    saved: List[torch.Tensor]


def _bytes(node: Any) -> int:
    """Returns the bytes of a node's tensor; -1 if it has several results or none."""
    value = node.meta.get("val")
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else -1


def _view(node: Any) -> bool:
    """True for an operation whose result shares the memory of its argument."""
    if node.target is operator.getitem:
        return _view(node.args[0])
    return getattr(getattr(node.target, "overloadpacket", None), "__name__", "") in _VIEWS


def _cheap(node: Any) -> bool:
    """True for an elementwise operation or a view, which a compiler merges with the use of its result."""
    if node.target is operator.getitem:
        return _cheap(node.args[0])
    name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
    return not is_random(node) and (_view(node) or name in _OTHERS or
                                    torch.Tag.pointwise in getattr(node.target, "tags", ()))


def _reached(nodes: Sequence[Any], until: Any = ()) -> Set[Any]:
    """Returns the nodes that ``nodes`` are computed from, with these, not beyond ``until``."""
    found: Set[Any] = set()
    stack = [node for node in nodes if isinstance(node, torch.fx.Node)]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [] if node in until else node.all_input_nodes
    return found


def _cut(ends: Set[Any], free: Set[Any]) -> Set[Any]:
    """Returns the nodes to be saved.

    :param ends: the nodes without incoming gradients that the backward pass uses.
    :param free: arguments that cost nothing.
    """
    import networkx  # a dependency of PyTorch 2
    flow = networkx.DiGraph()  # from the backward pass to the arguments, so the cut is as late as possible
    flow.add_nodes_from(("source", "sink"))
    nodes = _reached(list(ends))
    for node in nodes:
        size = 0 if node in free else _bytes(node)
        flow.add_edge((node, 1), (node, 0), **({} if size < 0 else {"capacity": size}))
        if node.op == "placeholder" or not _cheap(node):
            flow.add_edge((node, 0), "sink")
        for before in node.all_input_nodes:
            flow.add_edge((node, 0), (before, 1))
    for node in ends:
        flow.add_edge("source", (node, 1))
    _, (late, _) = networkx.minimum_cut(flow, "source", "sink")
    found = set()
    for node in nodes:
        if (node, 1) in late and (node, 0) not in late:
            while _view(node) and _bytes(node.all_input_nodes[0]) == _bytes(node):
                node = node.all_input_nodes[0]
            found.add(node)
    return found


def _extract(inputs: Sequence[Any], outputs: Sequence[Any], order: Sequence[Any], copied: Any = ()) -> Any:
    """Returns a graph module that computes ``outputs`` from ``inputs``, with the operations in their ``order``. The
    outputs in ``copied`` are copies, which do not share memory."""
    graph, env = torch.fx.Graph(), {}
    for node in inputs:
        env[node] = graph.placeholder(node.name)
        env[node].meta = dict(node.meta)
    needed = _reached(outputs, set(inputs))
    for node in order:
        if node in needed and node not in env:
            env[node] = graph.node_copy(node, lambda old: env[old])
    for node in copied:
        env[node] = graph.call_function(torch.ops.aten.clone.default, (env[node],))
    graph.output(tuple([env[node] if isinstance(node, torch.fx.Node) else None for node in outputs]))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def parts(joint: Joint, free: Sequence[int]) -> Parts:
    """Partitions the graph of one group. ``free``: indices of the primals that exist during the backward pass anyway.

    :raises Untraceable: if the steps draw random numbers that they do not use.
    """
    nodes = list(joint.graph.nodes)
    holders = [node for node in nodes if node.op == "placeholder"]
    count = len(holders) - joint.tangents - len(joint.constants)
    primals, tangents = holders[:count], holders[count:count + joint.tangents]
    constants = holders[count + joint.tangents:]
    results = list(nodes[-1].args[0])
    forward, backward = results[:joint.forward], results[joint.forward:]
    used = _reached(forward)
    if any([is_random(node) for node in nodes if node not in used]):
        raise Untraceable("it draws random numbers that do not change its results")
    late = set(tangents)
    for node in nodes[:-1]:
        if not late.isdisjoint(node.all_input_nodes):
            late.add(node)
    used = _reached(backward)
    ends = {before for node in used & late for before in node.all_input_nodes if before not in late}
    ends |= {node for node in backward if node in used - late}
    exist = {primals[k] for k in free} | set(constants)
    saved = sorted(_cut(ends, exist), key=nodes.index)
    kept = [k for k, node in enumerate(primals) if node in saved]
    tensors = [node for node in saved if node.op != "placeholder"]
    given = [*primals, *constants]
    return Parts(_extract(given, forward, nodes),
                 _extract(given, [*forward, *tensors], nodes, [node for node in tensors if _view(node)]),
                 _extract([*[primals[k] for k in kept], *tensors, *tangents, *constants], backward, nodes),
                 kept, [node.meta["val"] for node in tensors])
