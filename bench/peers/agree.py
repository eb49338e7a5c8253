# SPDX-License-Identifier: Apache-2.0
"""Compares loss and gradients of a framework and neap, in double precision.

In single precision, a membrane potential within rounding error of the threshold may spike in one of them only, and networks
that differ in one spike soon differ in many. Agreement is therefore checked in double precision, and times are measured in
single precision.
"""
import json
import os

import numpy

from process import Neap

LIMIT = 1e-4


def export(helper, case, cell, folder, gradients):
    """Writes neap's data and weights to `folder`, and its gradients if requested; returns the loss, or None."""
    os.makedirs(folder, exist_ok=True)
    net = Neap(helper, case, cell, "double")
    net.say(f"export {folder}")
    loss = None
    if gradients:
        net.prepare("bptt")
        loss = net.step("bptt")["loss"]
        net.say(f"gradients {folder}")
    describe(case, net.hello, folder, shared=True)
    net.close()
    return loss


def describe(case, hello, folder, shared):
    import cases
    meta = dict(case, inputs=hello["inputs"], batch=hello["batch"], steps=hello["steps"],
                tensors=hello["tensors"], decay=cases.DECAY, shared=shared)
    with open(os.path.join(folder, "meta.json"), "w", encoding="ascii") as file:
        json.dump(meta, file)


def difference(ours, theirs):
    """Norm of the difference divided by the norm, over whole tensors."""
    size = numpy.linalg.norm(ours)
    return float(numpy.linalg.norm(ours - theirs) / size) if size else float(numpy.linalg.norm(theirs))


def check(peer, way, folder, loss):
    """Relative differences of the loss and of the gradient that differs most."""
    reply = peer.ask("gradients", way, to=folder)
    worst = 0.0
    for name in reply["names"]:
        worst = max(worst, difference(numpy.fromfile(os.path.join(folder, name + ".grad")),
                                      numpy.fromfile(os.path.join(folder, name + ".peer"))))
    return {"loss": abs(reply["loss"] / loss - 1), "gradients": worst, "tensors": len(reply["names"]),
            "agrees": abs(reply["loss"] / loss - 1) < LIMIT and worst < LIMIT}
