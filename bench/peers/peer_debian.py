# SPDX-License-Identifier: Apache-2.0
"""PyTorch of the system interpreter: only the loop over steps."""
from peer_torch import Net as TorchNet


class Net(TorchNet):
    WAYS = ["eager"]
