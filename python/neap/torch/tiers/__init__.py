# SPDX-License-Identifier: Apache-2.0
"""States and tapes of a device on slow tiers: ``offload`` moves them to host memory and files, ``slabs`` allocates the
host memory, ``rates`` measures copies for the planner, ``exhaustion`` explains a device without memory."""
