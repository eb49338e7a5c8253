# SPDX-License-Identifier: Apache-2.0
"""Hidden state inside modules, made explicit."""
