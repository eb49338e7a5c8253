# SPDX-License-Identifier: Apache-2.0
"""PyTorch of the system interpreter: the loop over steps alone."""
from peer_torch import Net as TorchNet


class Net(TorchNet):
    WAYS = ["eager"]
