# SPDX-License-Identifier: Apache-2.0
"""The networks that are compared, and the cells that neap shares with each framework."""

TAU_MS = 16  # with Euler's rule the decay is 1 - 1/16, which every framework represents exactly
DECAY = 1 - 1 / TAU_MS

# Share of units that spike per step -> (scale of the input weights, width of the triangular surrogate). The same share of
# inputs spikes. The widths are chosen such that about 10% of the units have a non-zero surrogate gradient.
ACTIVITIES = {0.005: (2.82, 0.47), 0.02: (2.13, 0.4), 0.1: (3.0, 0.7), 0.125: (2.5, 0.32), 0.32: (3.5, 0.8), 0.5: (30.0, 5.0)}

# Name of a cell in the tables, and its part of neap's network specification.
CELLS = {
    "subtract": "reset=subtract:height=1",
    "subtract, detached": "reset=subtract:detach=1:height=1",
    "hard": "reset=hard:height={high}",
    "hard, detached": "reset=hard:detach=1:height=1",
}


def spiking(hidden=512, activity=0.02, steps=250, batch=64):
    scale, width = ACTIVITIES[activity]
    return {"name": f"700-{hidden}r-20 LIF, {100 * activity:g}%", "kind": "lif", "inputs": 700,
            "hidden": hidden, "steps": steps, "batch": batch, "classes": 20, "scale": scale,
            "width": width, "activity": activity}


def gated(kind, steps=1000):
    return {"name": f"512-512-20 {kind.upper()}", "kind": kind, "inputs": 512, "hidden": 512, "steps": steps,
            "batch": 32, "classes": 20, "activity": 0.02}


def data(case):
    """Smooth random manifolds of spike times, with a given number of spikes per unit."""
    spikes = max(1, round(case["activity"] * case["steps"]))
    return (f"randman:units={case['inputs']},steps={case['steps']},samples={case['batch']},"
            f"spikes={spikes},classes={case['classes']}")


def spec(case, cell):
    readout = f"li:tau={TAU_MS}ms"
    if case["kind"] != "lif":
        # normal weights, because the default has changed since the first versions that are compared
        return f"{case['kind']}:{case['hidden']}:scale=1:recurrent_scale=1,{readout}:scale=1"
    keys = CELLS[cell].format(high=1 / case["width"])
    return (f"lif:{case['hidden']}r:tau={TAU_MS}ms:scale={case['scale']}:recurrent_scale=0.5:"
            f"width={case['width']}:{keys},{readout}")


def chosen(full, steps, hidden, batch):
    """The default cases, or all of them."""
    cases = [spiking(hidden, steps=steps, batch=batch)]
    if full:
        cases += [spiking(hidden, a, steps, batch) for a in ACTIVITIES if a != 0.02]
        cases += [spiking(n, steps=steps, batch=batch) for n in (256, 1024, 4096)]
    return cases + [gated("lstm", steps), gated("gru", steps), gated("rnn", steps)]
