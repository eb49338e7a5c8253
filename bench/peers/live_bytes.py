# SPDX-License-Identifier: Apache-2.0
"""live_bytes.py: the most bytes that PyTorch's allocator holds at a time, by its profiler."""
from torch.profiler import ProfilerActivity, profile


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
