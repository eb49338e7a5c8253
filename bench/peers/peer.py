#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one framework in a separate process: reads commands as JSON lines, writes replies.

    {"do": "prepare", "way": W, "threads": N}   warms up; replies with the peak memory of the first step
    {"do": "step", "way": W, "threads": N}      replies with seconds and loss of a forward and backward pass
    {"do": "gradients", "way": W, "to": DIR}    the same; writes the gradients as doubles

An adapter is a module peer_NAME with `class Net(problem, precision)`: VERSION, WAYS,
warm(way), step(way) -> loss, gradients() -> {name: array in neap's layout}, threads(n).
Usage: peer.py NAME FOLDER float|double|bf16
"""
import gc
import importlib
import json
import os
import sys
import time

import highwater


def answer(net, ask):
    if "threads" in ask:
        net.threads(ask["threads"])
    way = ask["way"]
    if ask["do"] == "prepare":
        net.warm(way)
        return {"growth": highwater.growth(lambda: net.step(way))}
    if ask["do"] == "step":
        gc.collect()
        start = time.monotonic()
        loss = net.step(way)
        return {"seconds": time.monotonic() - start, "loss": float(loss)}
    if ask["do"] == "gradients":
        loss = net.step(way)
        for name, values in net.gradients().items():
            values.astype("float64").tofile(os.path.join(ask["to"], name + ".peer"))
        return {"loss": float(loss), "names": sorted(net.gradients())}
    raise ValueError(ask["do"])


def main():
    if len(sys.argv) != 4 or "--help" in sys.argv:
        print(__doc__.strip())
        return 0 if "--help" in sys.argv else 2
    from problem import Problem  # needs NumPy, which --help does not

    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # output of the framework goes to standard error
    try:
        net = importlib.import_module("peer_" + sys.argv[1]).Net(Problem(sys.argv[2]), sys.argv[3])
        print(json.dumps({"version": net.VERSION, "ways": net.WAYS}), file=out)
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), file=out)
        return 0
    for line in sys.stdin:
        try:
            reply = answer(net, json.loads(line))
        except Exception as error:  # a variant that fails becomes a row of the table
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(reply), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
