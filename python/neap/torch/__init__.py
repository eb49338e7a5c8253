# SPDX-License-Identifier: Apache-2.0
"""neap.torch: time loops in PyTorch within a budget of bytes::

    import neap.torch as nt
    scan = nt.Scan(cell, memory="1G")            # cell(state, input, t) -> (state, output)
    last, outputs = scan(h0, x)                  # x: [T, ...]
    criterion(readout(outputs), target).backward()
    print(scan.report())

Each call says what it takes; docs/python.md says when to use which.
"""
try:
    import torch  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.torch needs PyTorch, which is not installed: pip install 'neap-bptt[torch]'") from error

from ..reports import Report
from .checks import NotDeterministic
from .lift import Lifted, lift
from .load import Net, load
from .scan import Scan, report, scan
from .sequential import Sequential

__all__ = ["Lifted", "Net", "NotDeterministic", "Report", "Scan", "Sequential", "lift", "load", "report",
           "scan"]
