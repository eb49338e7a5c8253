# SPDX-License-Identifier: Apache-2.0
"""live_bytes.py: the most bytes that PyTorch's allocator holds at a time, by its profiler; budgets for neap by it."""
from torch.profiler import ProfilerActivity, profile

import neap


def top(run):
    """Most bytes alive at a time while ``run()`` runs, beyond what was alive before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    live = most = 0
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    return most


def within(most, budget, make, measure, tries=8):
    """Of ``make(bytes)`` the one whose ``measure`` is not above ``most``, but for 1%, and near it; None: none.
    ``budget`` is where the search begins."""
    best = None
    for _ in range(tries):
        made = make(max(1, budget))
        try:
            slack = most + most // 100 - measure(made)
        except neap.BudgetError as error:
            if best or budget == error.least:
                break
            budget = error.least
            continue
        if slack >= 0:
            best = made
        if 0 <= slack < most // 30:
            break
        budget += slack if slack > 0 else min(slack, -most // 40)
    return best
