#!python
# SPDX-License-Identifier: Apache-2.0
"""The command `neap` of a wheel that contains the tool."""
from neap.__main__ import main

main()
