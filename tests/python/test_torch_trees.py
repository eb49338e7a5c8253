# SPDX-License-Identifier: Apache-2.0
"""States that are dataclasses, or types registered as pytrees: fields that are tensors are states, others constant."""
import dataclasses
import functools
import sys
from typing import Any, Optional

import pytest

torch = pytest.importorskip("torch")
from torch.utils import _pytree  # noqa: E402

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N, flat, same  # noqa: E402
from neap.torch.trees import described, flatten, tensors_in, unflatten  # noqa: E402

T = 16
OPTIONS = [dict(), dict(memory="6K", group=1, strategy="revolve"), dict(memory="24K", group=4),
           dict(memory="24K", group=1, slow="mem:4M", strategy="stream")]


@dataclasses.dataclass
class Plain:
    h: torch.Tensor
    c: torch.Tensor
    name: str = "lstm"
    size: int = N


@dataclasses.dataclass(frozen=True)
class Frozen:
    h: torch.Tensor
    c: torch.Tensor
    more: Optional[Any] = None
    sizes: tuple = (1, 2)


@dataclasses.dataclass(frozen=True, **({"slots": True} if sys.version_info >= (3, 10) else {}))
class Slotted:
    h: torch.Tensor
    c: torch.Tensor
    scale: float = 1.0


@dataclasses.dataclass
class Derived:
    """An argument that is no field, a field that is no argument, a check that may run once alone."""

    h: torch.Tensor
    c: torch.Tensor
    width: dataclasses.InitVar[int] = N
    calls: int = dataclasses.field(init=False, default=0)

    def __post_init__(self, width):
        assert self.h.shape[-1] == width
        self.calls += 1
        self.half = width // 2

    @functools.cached_property
    def total(self):
        return self.h.sum()


class Registered:
    def __init__(self, h, c, label):
        self.h, self.c, self.label = h, c, label


register = getattr(_pytree, "register_pytree_node", None) or _pytree._register_pytree_node
register(Registered, lambda one: ([one.h, one.c], one.label), lambda parts, label: Registered(*parts, label))


KINDS = {"plain": Plain, "frozen": Frozen, "slots": Slotted, "derived": Derived,
         "registered": lambda h, c: Registered(h, c, "x")}


def wrapped(make, state, after):
    """The next state, of the same kind, with the attributes that are no tensors."""
    if isinstance(state, Registered):
        return Registered(*after, state.label)
    if isinstance(state, Derived):
        assert state.half == N // 2 and state.calls == 1
        state.total  # which is no field
        return Derived(*after)
    return dataclasses.replace(state, h=after[0], c=after[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("nested", [False, True])
def test_states(kind, options, nested):
    torch.manual_seed(0)
    cell, x = torch.nn.LSTMCell(I, N), torch.randn(T, B, I)
    h, c = (torch.randn(B, N, requires_grad=True) for _ in range(2))

    def step(state, x, t):
        held = state[1]["held"] if nested else state
        after = wrapped(KINDS[kind], held, cell(x, (held.h, held.c)))
        out = dataclasses.replace(after) if kind == "plain" else after.h
        return (state[0] + 1, {"held": after}) if nested else after, out
    state = KINDS[kind](h, c)
    state = (torch.zeros((), dtype=torch.long), {"held": state}) if nested else state
    rows = []
    for scan in (False, True):
        if scan:
            last, out = nt.scan(step, state, x, costs=COSTS, **options)
            out = out.h if kind == "plain" else out
        else:
            last, found = state, []
            for t in range(T):
                last, out = step(last, x[t], t)
                found.append(out.h if kind == "plain" else out)
            out = torch.stack(found)
        held = last[1]["held"] if nested else last
        assert type(held) is type(state[1]["held"] if nested else state)
        rows.append([out.detach(), *torch.autograd.grad(out.pow(2).sum() + held.c.sum(), [h, c, *cell.parameters()])])
    same(rows[1], rows[0])
    if nested:
        assert int(last[0]) == T


def test_shapes():
    a, b = torch.zeros(2), torch.ones(3)
    tree = [Frozen(a, b, {"k": (None, 3, "text")}), Plain(a, b), Derived(torch.zeros(N), b)]
    leaves, shape = flatten(tree)
    assert [id(leaf) for leaf in leaves[:4]] == [id(a), id(b)] * 2 and flatten(tree)[1] == shape
    made = unflatten(shape, leaves)
    assert made[0].more == {"k": (None, 3, "text")} and made[0].h is a and made[1].name == "lstm"
    assert made[2].half == N // 2 and made[2].calls == 1
    assert flatten(Plain(a, b, size=3))[1] != flatten(Plain(a, b, size=4))[1]
    assert flatten(Plain(a, b, size=float("nan")))[1] != flatten(Plain(a, b))[1]
    assert described(flatten(Plain(a, b))[1]) == f"Plain(h=tensor, c=tensor, name='lstm', size={N})"
    assert len(tensors_in(tree)) == len(leaves) == len(flat([a, b, a, b, a, b]))


def test_what_changes_is_refused():
    a = torch.zeros(2, requires_grad=True)

    def counting(state, x, t):
        return dataclasses.replace(state, size=state.size + 1), None
    for options in (dict(), dict(memory="1K", group=1, strategy="revolve", costs=COSTS)):
        with pytest.raises(neap.UsageError, match=rf"Plain\(h=tensor, c=tensor, name='lstm', size={N + 1}\)"):
            nt.scan(counting, Plain(a, a), steps=1, **options)
    with pytest.raises(neap.UsageError, match="contains an item of type int.*lists, dicts and dataclasses of these"):
        nt.scan(lambda s, x, t: (s, None), (a, 3), steps=2)
    numpy = pytest.importorskip("numpy")
    with pytest.raises(neap.UsageError, match=r"ndarray.*torch.tensor\(...\)"):
        nt.scan(lambda s, x, t: (s, None), Plain(a, a, numpy.zeros(2)), steps=2)
