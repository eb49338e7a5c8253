# SPDX-License-Identifier: Apache-2.0
"""A network and a batch as written by peerstep: events, labels, weights, gradients.

neap generates the data (`randman`) and the weights; every framework uses them. Arrays have neap's layout: a row of a weight
matrix belongs to an input.
"""
import json
import os

import numpy


class Problem:
    """The content of a folder; `meta` has the keys of meta.json, which the driver wrote."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "meta.json"), encoding="ascii") as file:
            self.__dict__.update(json.load(file))
        self.labels = self.read("labels", numpy.int32).astype(numpy.int64)
        self.events = self.read("events", numpy.int32).reshape(-1, 3)

    def read(self, name, kind=numpy.float64):
        return numpy.fromfile(os.path.join(self.folder, name), kind)

    def shape(self, name):
        for tensor in self.tensors:
            if tensor["name"] == name:
                return tensor["rows"], tensor["columns"]
        raise KeyError(name)

    def weight(self, name):
        """A parameter of neap, in double precision."""
        return self.read(name + ".data").reshape(self.shape(name))

    def has(self, name):
        return any(tensor["name"] == name for tensor in self.tensors)

    def dense(self, kind):
        """The inputs as zeros and ones: [step][sample][unit]."""
        x = numpy.zeros((self.steps, self.batch, self.inputs), kind)
        x[self.events[:, 0], self.events[:, 1], self.events[:, 2]] = 1
        return x
