# SPDX-License-Identifier: Apache-2.0
"""PyTorch of the system interpreter: its LSTM and GRU."""
from peer_gated import Net  # noqa: F401
