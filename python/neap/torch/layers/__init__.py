# SPDX-License-Identifier: Apache-2.0
"""Layers that libneap-nn computes, on the CPU or on a CUDA device: ``functions`` has the functions, ``modules`` the modules with parameters,
``chains`` the steps of a layer for a Player, ``nets`` the networks of libneap-nn."""
from .functions import alif, gru, lif, lstm
from .modules import ALIF, GRU, LIF, LSTM

__all__ = ["ALIF", "GRU", "LIF", "LSTM", "alif", "gru", "lif", "lstm"]
