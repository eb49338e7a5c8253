# SPDX-License-Identifier: Apache-2.0
"""PyTorch of the system interpreter: its LSTM, GRU and RNN."""
from peer_gated import Net  # noqa: F401
