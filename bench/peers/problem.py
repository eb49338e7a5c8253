# SPDX-License-Identifier: Apache-2.0
"""A net and a batch as peerstep wrote them: events, labels, weights, gradients.

The data are made by neap (`randman`), the weights by its generator; every framework
computes with these. Arrays are in neap's layout: a row of a weight matrix is an input.
"""
import json
import os

import numpy


class Problem:
    """What a folder holds; `meta` are the keys that the driver wrote to meta.json."""

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
        """A parameter as neap made it, in double precision."""
        return self.read(name + ".data").reshape(self.shape(name))

    def has(self, name):
        return any(tensor["name"] == name for tensor in self.tensors)

    def dense(self, kind):
        """The inputs as zeros and ones: [step][sample][unit]."""
        x = numpy.zeros((self.steps, self.batch, self.inputs), kind)
        x[self.events[:, 0], self.events[:, 1], self.events[:, 2]] = 1
        return x
