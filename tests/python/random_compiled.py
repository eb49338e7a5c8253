# SPDX-License-Identifier: Apache-2.0
"""Random steps with compile=True, each compared with the plain loop to 1e-12 in double precision, and bit by bit with
the other scans of the same case whose groups have as many steps. The graphs run without a compiler unless
``--compiler`` is given. Steps that cannot be traced run as they are. As a program:
    random_compiled.py [--compiler] and the options of random_steps.py
"""
import collections
import contextlib
import sys

import torch

import neap.torch.compiled.groups as groups
from random_checks import like_bits, main
from random_steps import Case

COUNTS = collections.Counter()  # groups of graphs, by the number of steps
REFUSED = (r"^compile=True: the traced steps", r"^inputs\(\d+\) has a different structure", r"compile=True got batched")


@contextlib.contextmanager
def without_compiler():
    """Graphs run as they are."""
    kept, groups.compiled = groups.compiled, lambda module, given: module
    try:
        yield
    finally:
        groups.compiled = kept


class CompiledCase(Case):
    """A case whose scans are compiled."""

    ample = {"memory": "1T", "group": 4}

    def __init__(self, seed, without=()):
        super().__init__(seed, without)
        self.loose, self.sizes.dtype = True, torch.float64
        self.results = {}

    def choose(self, name, values):
        """Mostly steps that can be traced: without the number of the step, without complex tensors."""
        never = {"inputs": ["none"], "output": ["sometimes", "constant", "complex"]}.get(name, [])
        return super().choose(name, [value for value in values if value not in never])

    def build(self):
        found = super().build()
        self.accept += REFUSED
        return found

    def scanned(self, **row):
        made = []

        class Group(groups.Group):
            def __init__(self, *given):
                super().__init__(*given)
                made.append(self)
        kept, groups.Group = groups.Group, Group
        try:
            found, told = super().scanned(**{**row, "compile": True})
        finally:
            groups.Group = kept
        COUNTS["compiled" if made and told.plan is not None else "not compiled"] += 1
        if made and not told.uncompiled and self.end != "second":
            before = self.results.setdefault(told.group, found)
            differ = [name for name, x in found.items() if x is not None and before.get(name) is not None
                      and not like_bits(x, before[name])]
            if differ:
                raise AssertionError(f"other bits than with another budget: {differ[:4]}")
        return found, told

    def plans(self, peak, charged, least):
        pick = self.random("sizes")
        rows = super().plans(peak, charged, least)
        for row in rows:
            row["group"] = pick.choice([4, 4, 4, 8, 3, None])
            if row["group"] is None:
                del row["group"]
        return rows


if __name__ == "__main__":
    with contextlib.nullcontext() if "--compiler" in sys.argv else without_compiler():
        sys.argv = [word for word in sys.argv if word != "--compiler"]
        answer = main(CompiledCase, __doc__)
    print(dict(COUNTS))
    sys.exit(answer)
