#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The library of layers of neap.torch, as wheels have it, loads neither HDF5 nor other libraries that read files, and has the
functions that layers call.
"""
import re
import subprocess
import sys

library = sys.argv[1]
needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout)
symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.split()
readers = [name for name in needed if re.match(r"lib(hdf5|sndfile|samplerate|zip|z|pcre2)", name)]
there = {"neap_net_set_ports", "neap_net_backward", "neap_spikes_list"} <= set(symbols)
print(f"{'not ' * bool(readers)}ok 1 - no library that reads files: {', '.join(needed)}")
print(f"{'not ' * (not there)}ok 2 - the functions that layers call")
print("1..2")
sys.exit(bool(readers) or not there)
