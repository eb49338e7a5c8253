#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/concepts.md as a program. Draws one schedule, then prints the sizes of state, tape and adjoint for three
networks and plans 100,000 steps of each in 1/10 of the memory of all tapes.
Lines "# %%" separate the cells for editors that run a script cell by cell.
"""
# %% The tool: NEAP_BIN, or the build folder, or the PATH
import argparse
import json
import os
import pathlib
import subprocess
import sys

BUILT = pathlib.Path(__file__).resolve().parent / "../../build/neap"
NEAP = os.environ.get("NEAP_BIN") or (str(BUILT) if BUILT.exists() else "neap")


def neap(*words):
    """Runs a command of the tool and returns its output."""
    done = subprocess.run([NEAP, *map(str, words)], stdout=subprocess.PIPE, text=True)
    if done.returncode:  # the tool has printed the reason
        sys.exit(done.returncode)
    return done.stdout


# %% One schedule: 24 steps, memory for eleven states or tapes
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", nargs="?", type=pathlib.Path, default=".", help="gets the drawing, concepts.svg (default: .)")
drawing = parser.parse_args().folder / "concepts.svg"
print(neap("plan", "--steps", 24, "--state", "1M", "--tape", "1M", "--adjoint", "1M", "--advance", "1ms", "--backward",
           "2ms", "--memory", "12M", "--strategy", "standard", "--chunk", 6, "--draw", drawing))
print(f"Drawing: {drawing}. First actions of the schedule:")
print("\n".join(neap("plan", "--steps", 24, "--state", "1M", "--tape", "1M", "--adjoint", "1M", "--memory", "12M",
                     "--strategy", "standard", "--chunk", 6, "--actions", "--quiet").splitlines()[:12]))

# %% Sizes of state, tape and adjoint in bytes, for 32 sequences and 256 units
DATA = "randman:units=64,steps=128,spikes=4,classes=4,samples=64"
STEPS = 100_000
print("\nSizes for 32 sequences in bytes, and plans for 100,000 steps in 1/10 of the memory of all tapes:\n")
print(f"{'net':<12} {'state':>9} {'tape/step':>12} {'adjoint':>9} {'all tapes':>11} {'peak':>10}  {'steps forward':>13}")
for net in ("lif:256r,li", "gru:256,li", "lstm:256,li"):
    chain = json.loads(neap("calibrate", DATA, "--net", net, "--scale", 2, "--batch", 32, "--timed", 64, "--json", "--quiet"))["chain"]
    tapes = STEPS * chain["tape"]
    sizes = [word for name in ("state", "tape", "adjoint") for word in ("--" + name, chain[name])]
    times = [word for name in ("advance", "record", "backward") for word in ("--" + name, f"{chain[name]}s")]
    plan = json.loads(neap("plan", "--steps", STEPS, *sizes, *times, "--memory", tapes // 10, "--strategy", "auto",
                           "--json", "--quiet"))["plans"][0]
    forward = (plan["advance_steps"] + plan["record_steps"]) / STEPS
    print(f"{net:<12} {chain['state']:>9,} {chain['tape']:>12,} {chain['adjoint']:>9,} {tapes / 1e9:>8.2f} GB "
          f"{plan['peak_bytes'] / 1e6:>7.1f} MB  {forward:>13.2f}")
