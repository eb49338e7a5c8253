# SPDX-License-Identifier: Apache-2.0
"""Compiled groups of steps, for ``compile=True``.

``tracing`` records a group and its backward pass as one graph of operations, ``partition`` divides it into three,
``groups`` compiles and compares these, ``runs`` runs the steps of a scan with them, ``calls`` provides them for a call.
"""
from .calls import Compiler, not_compiled
from .groups import Groups
from .tracing import Untraceable

__all__ = ["Compiler", "Groups", "Untraceable", "not_compiled"]
