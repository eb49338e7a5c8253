#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time series of unequal length: compares a network of neap with a PyTorch model of the same size.

    pip install --no-deps sktime; pip install numpy torch
    examples/series.py JapaneseVowels      (12 speech coefficients per step, nine speakers)
    examples/series.py PLAID               (currents of eleven kinds of appliances, 16 values per step)

The data is part of the package sktime. Both models are a GRU of 64 units and a linear layer on its last state, trained with
Adam and a cosine learning-rate schedule. neap uses its default options except for the network, the schedule and the
number of epochs.
"""
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch

NEAP = os.environ.get("NEAP_BIN", "neap")
UNITS, BATCH, RATE = 64, 32, 4e-3  # batch and learning rate are neap's defaults
TOGETHER = {"PLAID": 16}  # values of a series per step


def read(name, part):
    """Samples [steps, features] and names of classes of a .ts file: dimensions separated by colons, then the class."""
    folder = os.path.dirname(importlib.util.find_spec("sktime").origin)
    path = os.path.join(folder, "datasets", "data", name, f"{name}_{part}.ts")
    samples, labels, k = [], [], TOGETHER.get(name, 1)
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and line[0] not in "#@":
                *dimensions, label = line.strip().split(":")
                x = np.array([d.split(",") for d in dimensions], float)
                x = x[:, :x.shape[1] // k * k].reshape(len(dimensions), -1, k)
                samples.append(x.transpose(1, 0, 2).reshape(x.shape[1], -1))
                labels.append(label)
    return samples, np.array(labels)


def pad(samples):
    lengths = np.array([len(s) for s in samples])
    x = np.zeros((len(samples), lengths.max(), samples[0].shape[1]))
    for i, s in enumerate(samples):
        x[i, :len(s)] = s
    return x, lengths


def of_neap(folder, epochs):
    """Accuracy on the test set."""
    done = subprocess.run(
        [NEAP, "train", os.path.join(folder, "train.npz"), "--test", os.path.join(folder, "test.npz"), "--net",
         f"gru:{UNITS},li", "--epochs", str(epochs), "--schedule", "cosine", "--validation", "0", "--memory", "16M", "--out",
         os.path.join(folder, "run"), "--json"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)["test"]["accuracy"]


class Model(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.gru = torch.nn.GRU(features, UNITS, batch_first=True)
        self.out = torch.nn.Linear(UNITS, classes)

    def forward(self, x, lengths):
        return self.out(self.gru(x)[0][torch.arange(len(x)), lengths - 1])


def of_torch(train, test, epochs):
    torch.manual_seed(1)
    (x, lengths, y), rows = train, np.concatenate([s[:n] for s, n in zip(train[0], train[1])])
    mean, deviation = rows.mean(0), rows.std(0)

    def prepare(x, lengths, y):
        return torch.tensor((x - mean) / deviation).float(), torch.tensor(lengths), torch.tensor(y)

    x, lengths, y = prepare(x, lengths, y)
    model = Model(x.shape[2], int(y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    updates = epochs * math.ceil(len(y) / BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    for _ in range(epochs):
        for at in torch.randperm(len(y)).split(BATCH):
            optimizer.zero_grad()
            n = lengths[at]
            torch.nn.functional.cross_entropy(model(x[at, :n.max()], n), y[at]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            schedule.step()
    x, lengths, y = prepare(*test)
    with torch.no_grad():
        return (model(x, lengths).argmax(1) == y).float().mean().item()


def main():
    name, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    parts = [read(name, part) for part in ("TRAIN", "TEST")]
    classes = sorted(set(parts[0][1]))
    sets = [(*pad(samples), np.searchsorted(classes, labels)) for samples, labels in parts]
    with tempfile.TemporaryDirectory() as folder:
        for part, (x, lengths, y) in zip(("train", "test"), sets):
            np.savez(os.path.join(folder, part + ".npz"), x=x, lengths=lengths, y=y, classes=np.array(classes))
        print(f"{name}: {len(sets[0][2])} training samples, {len(sets[1][2])} test samples, {len(classes)} classes, "
              f"{sets[0][0].shape[2]} features, {sets[0][1].min()} to {sets[0][1].max()} steps")
        print(f"neap     {100 * of_neap(folder, epochs):.1f}%")
        print(f"PyTorch  {100 * of_torch(*sets, epochs):.1f}%")


if __name__ == "__main__":
    main()
