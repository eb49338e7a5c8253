# SPDX-License-Identifier: Apache-2.0
"""neap.torch: time loops in PyTorch with a memory budget, by gradient checkpointing::

    import neap.torch as nt
    last, outputs = nt.scan(step, h0, x, memory="1G")    # step(state, input, t) -> (state, output); x: [T, ...]
    criterion(readout(outputs), target).backward()       # recomputes steps; the gradient is bit-identical
    print(nt.report())

``Scan`` is ``scan`` as a module, ``Sequential`` a stack of layers, ``lift`` makes hidden states explicit, ``load``
reads a network trained by the ``neap`` tool. ``lif``, ``alif``, ``lstm`` and ``gru``, and the modules ``LIF``, ``ALIF``,
``LSTM`` and ``GRU``, are recurrent layers over all steps that libneap-nn computes. The documentation has a tutorial, "Long time loops in PyTorch", and a guide
to all arguments and special cases, "neap for Python".
"""
try:
    import torch  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise ImportError("neap.torch needs PyTorch, which is not installed: pip install 'neap-bptt[torch]'") from error

from ..reports import Report
from .checks import NotDeterministic
from .layers.functions import alif, gru, lif, lstm
from .layers.modules import ALIF, GRU, LIF, LSTM
from .lift import Lifted, lift
from .load import Net, load
from .scan import Scan, report, scan
from .sequential import Sequential

__all__ = ["ALIF", "GRU", "LIF", "LSTM", "Lifted", "Net", "NotDeterministic", "Report", "Scan", "Sequential", "alif", "gru",
           "lif", "lift", "load", "lstm", "report", "scan"]
