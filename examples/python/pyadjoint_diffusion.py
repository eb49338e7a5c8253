#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A reaction-diffusion model recorded by pyadjoint (without Firedrake), with checkpoints placed by neap's schedules. The
derivative is bit-identical to the one of a pyadjoint tape that stores everything.
"""
import argparse

import numpy as np
import pyadjoint
from pyadjoint import AdjFloat, Control, ReducedFunctional, Tape, continue_annotation, set_working_tape

from neap.schedules import Schedule

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--slots", type=int, default=10, help="number of checkpoints (default 10)")
parser.add_argument("--cells", type=int, default=8)
given = parser.parse_args()


def derivative(schedule):
    """Loss, and its derivative with respect to the diffusivity and the rate."""
    continue_annotation()
    with set_working_tape(Tape()) as tape:
        if schedule is not None:
            tape.enable_checkpointing(schedule)
        diffusivity, rate = AdjFloat(0.2), AdjFloat(0.05)
        u = [AdjFloat(np.exp(-(i - given.cells / 2) ** 2)) for i in range(given.cells)]
        for _ in tape.timestepper(iter(range(given.steps))):
            left, right = [u[0], *u[:-1]], [*u[1:], u[-1]]
            u = [b + diffusivity * (a - 2.0 * b + c) + rate * b * (1.0 - b) for a, b, c in zip(left, u, right)]
        loss = AdjFloat(0.0)
        for value in u:
            loss += value * value
        with pyadjoint.stop_annotating():
            found = ReducedFunctional(loss, [Control(diffusivity), Control(rate)]).derivative()
        return float(loss), [float(g) for g in found]


schedule = Schedule(given.steps, slots=given.slots)
plain, found = derivative(None), derivative(schedule)
print(f"loss {found[0]:.12g}, derivative {found[1]}")
print(f"{given.slots} checkpoints instead of {given.steps}: {'bit-identical' if plain == found else 'DIFFERENT'}")
