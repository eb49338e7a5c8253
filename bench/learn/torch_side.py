# SPDX-License-Identifier: Apache-2.0
"""GRU and LSTM of PyTorch, and the training that they share with snnTorch's net.

The model is what a PyTorch user writes: nn.GRU or nn.LSTM with its initial weights, and nn.Linear on the last state, or
on every state if there is a target per step. Learning rate, schedule, warm-up, clipping and batch are neap's defaults.
"""
import math

import numpy as np
import torch

RATE, BATCH, WARMUP, CLIP = 4e-3, 32, 50, 1.0
HELD = 0.6  # of the updates after the warm-up, before the rate of "cooldown" falls
SHARES = {  # of the learning rate, when a share of the updates after the warm-up is done: src/train/learning_rate.c
    "cooldown": lambda done: min(1, (1 - done) / (1 - HELD)),
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "constant": lambda done: 1,
}


class Recurrent(torch.nn.Module):
    def __init__(self, cell, features, units, outputs, readout):
        super().__init__()
        self.cell = getattr(torch.nn, cell.upper())(features, units, batch_first=True)
        self.out, self.readout = torch.nn.Linear(units, outputs), readout

    def forward(self, x, lengths):
        states = self.cell(x)[0]
        if self.readout == "last":
            states = states[torch.arange(len(x)), lengths - 1]
        elif self.readout == "mean":
            inside = (torch.arange(x.shape[1]) < lengths[:, None])[..., None]
            states = (states * inside).sum(1) / lengths[:, None]
        return self.out(states)


def tensors(part, mean, deviation, target_mean, target_deviation, classes):
    x = torch.tensor((part.x - mean) / deviation, dtype=torch.float32)
    y = torch.tensor(part.y) if classes else torch.tensor((part.y - target_mean) / target_deviation).float()
    return x, torch.tensor(part.lengths), y


def rows(part, array):
    """The rows of all samples without padding."""
    return np.concatenate([a[:n] for a, n in zip(array, part.lengths)])


def prepare(problem):
    """Tensors of both parts, normalised over the training samples, and the unit of the loss."""
    mean, deviation, target_mean, target_deviation = 0, 1, 0, 1
    if problem.normalise and problem.kind != "next":
        inputs = rows(problem.train, problem.train.x)
        mean, deviation = inputs.mean(0), inputs.std(0)
        if not problem.classes:
            targets = rows(problem.train, problem.train.y) if problem.per_step else problem.train.y
            target_mean, target_deviation = targets.mean(), targets.std()
    parts = [tensors(part, mean, deviation, target_mean, target_deviation, problem.classes)
             for part in (problem.train, problem.test)]
    return parts, target_deviation ** 2


def loss_of(problem, answers, y):
    if not problem.classes:
        return torch.nn.functional.mse_loss(answers, y)
    return torch.nn.functional.cross_entropy(answers.flatten(0, -2), y.flatten())


def train(problem, model, loss, seed, schedule):
    """Trains `model`, whose loss of a batch (x, lengths, y) is `loss`; returns the tensors of the test samples."""
    ((x, lengths, y), test), _ = prepare(problem)
    parameters, batches = list(model.parameters()), math.ceil(len(x) / BATCH)
    optimizer = torch.optim.Adam(parameters, RATE)
    warmup, total = min(WARMUP, 2 * batches), problem.epochs * batches
    share, after = SHARES[schedule], max(total - warmup, 1)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: (i + 1) / warmup if i < warmup else share((i - warmup) / after))
    order = torch.Generator().manual_seed(seed)
    for _ in range(problem.epochs):
        for at in torch.randperm(len(x), generator=order).split(BATCH):
            most = int(lengths[at].max())
            optimizer.zero_grad()
            loss(x[at, :most], lengths[at], y[at, :most] if problem.per_step else y[at]).backward()
            torch.nn.utils.clip_grad_norm_(parameters, CLIP)
            optimizer.step()
            rates.step()
    return test


def score(problem, answers, y):
    """What the table shows: accuracy, or the loss in the unit of the targets."""
    if problem.measure == "accuracy":
        return (answers.argmax(-1) == y).float().mean().item()
    return loss_of(problem, answers, y).item() * prepare(problem)[1]


def run(problem, cell, seed, schedule):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    readout = "step" if problem.per_step else problem.readout
    model = Recurrent(cell, problem.train.x.shape[2], problem.units, problem.classes or 1, readout)
    x, lengths, y = train(problem, model, lambda x, n, y: loss_of(problem, model(x, n), y), seed, schedule)
    with torch.no_grad():
        return score(problem, model(x, lengths), y)
