# SPDX-License-Identifier: Apache-2.0
"""live_bytes.py: peak of live bytes in PyTorch's allocator, from its profiler, and budgets for neap at equal peaks."""
from torch.profiler import ProfilerActivity, profile

import neap


def top(run):
    """Peak of live bytes during ``run()``, in addition to the bytes that were live before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    live = most = 0
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    return most


def within(most, budget, make, measure, tries=8):
    """The result of ``make(bytes)`` whose ``measure`` is near ``most`` and at most 1% above it, or None.
    The search starts at ``budget``."""
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
