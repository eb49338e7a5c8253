#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a convolutional spiking network on synthetic events of moving shapes, in neap and in snnTorch.

A square, a disk, a cross or a triangle of 9 to 13 pixels moves in a random direction over a sensor of 34 x 34 pixels; a
pixel that it covers or uncovers emits an event of polarity 1 or 0 (as N-MNIST, 2 x 34 x 34 channels). The shape is the
class. Both programs train the same network from the same initial weights with the same samples, batch size, Adam, learning
rate and number of epochs, one after the other, each in a process of its own with the same number of threads:

    python3 bench/learn/moving_shapes.py --seeds 3

With --norm, neap trains this network and one with four convolutions, each with and without batch normalisation.

Each row has the accuracy on the test samples, seconds per epoch, and the peak resident memory of the process. NEAP_BIN names
a build other than build/neap. Packages: numpy, h5py, torch, snntorch.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
NEAP = os.path.abspath(os.environ.get("NEAP_BIN", os.path.join(HERE, "..", "..", "build", "neap")))
SIDE, CLASSES, TAU = 34, 4, 20e-3
NET = ("lif:conv=5:stride=2:pad=2:channels=8,lif:conv=3:pad=1:pool=2:channels=16,li:pool=2")
MIDDLE = "lif:conv=3:pad=1:channels=8"


def shape(kind, size, dy, dx):
    """The mask of a shape of `size` pixels whose upper left corner is at (dy, dx)."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    y, x, half = y - dy - size / 2, x - dx - size / 2, size / 2
    inside = (abs(y) <= half) & (abs(x) <= half)
    if kind == 1:
        inside = y ** 2 + x ** 2 <= half ** 2
    elif kind == 2:
        inside &= (abs(y) <= half / 3) | (abs(x) <= half / 3)
    elif kind == 3:
        inside &= abs(x) <= (y + half) / 2
    return inside


def samples(count, steps, seed):
    """Events [sample][step, channel, y, x] as arrays of booleans, and labels."""
    random = np.random.default_rng(seed)
    events = np.zeros((count, steps, 2, SIDE, SIDE), bool)
    labels = random.integers(0, CLASSES, count)
    for i, kind in enumerate(labels):
        size, angle = random.uniform(9, 13), random.uniform(0, 2 * np.pi)
        middle, speed = random.uniform(8, SIDE - 8 - size, 2), random.uniform(0.3, 0.5)
        before = None
        for t in range(steps):
            dy, dx = middle + speed * (t - steps / 2) * np.array([np.sin(angle), np.cos(angle)])
            now = shape(kind, size, dy, dx)
            if before is not None:
                events[i, t, 1], events[i, t, 0] = now & ~before, before & ~now
            before = now
    return events, labels


def write(path, events, labels):
    """As neap encode writes events of a sensor."""
    import h5py
    with h5py.File(path, "w") as file:
        times, units = (file.create_dataset(f"spikes/{name}", len(labels), h5py.vlen_dtype(kind))
                        for name, kind in (("times", "f4"), ("units", "u2")))
        for i, sample in enumerate(events.reshape(len(labels), events.shape[1], -1)):
            t, c = np.nonzero(sample)
            times[i], units[i] = (t + 0.5) * 1e-3, c
        file["labels"] = labels
        file.attrs.update({"inputs": 2 * SIDE * SIDE, "longest": events.shape[1] * 1e-3, "columns": SIDE, "rows": SIDE,
                           "pool": 1, "polarity": 0, "sensor_width": SIDE, "sensor_height": SIDE, "crop_x": 0, "crop_y": 0})
        file["extra/duration"] = np.full(len(labels), events.shape[1] * 1e-3)


def measured(command):
    """The output of a command, and the peak resident memory of its process in MiB."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return output, usage.ru_maxrss / 1024


def neap(folder, seed, args, begin=False, net=NET):
    """One training by neap; `begin`: without learning, which leaves the initial weights in a file for snnTorch."""
    out = os.path.join(folder, f"begin{seed}" if begin else f"run{seed}.{net.count('conv=')}.{net.count('norm=')}")
    output, mib = measured([
        NEAP, "train", os.path.join(folder, "train.h5"), "--test", os.path.join(folder, "test.h5"), "--net", net, "--validation", "0",
        "--epochs", str(1 if begin else args.epochs), "--batch", str(args.batch), "--lr", str(0 if begin else args.lr),
        "--memory", args.memory, "--threads", str(args.threads), "--seed", str(seed), "--schedule", "constant", "--warmup", "0",
        "--clip", "0", "--rate-weight", "0", "--tau", f"{TAU}s", "--detach", "--out", out, "--quiet", "--json"])
    return json.loads(output), mib


def initial_weights(folder, seed):
    """neap's tensors in the order of PyTorch's: kernels [out, in, y, x], and units (channel, y, x)."""
    with open(os.path.join(folder, f"begin{seed}", "model.safetensors"), "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    w = {name: np.frombuffer(data[slice(*t["data_offsets"])], "f4").reshape(t["shape"])
         for name, t in head.items() if name != "__metadata__"}
    found = {name + ".bias": w[layer + ".bias"][0] for name, layer in
             (("conv1", "layer0"), ("conv2", "layer1"), ("out", "readout"))}
    for name, layer, shape in (("conv1", "layer0", (2, 5, 5, 8)), ("conv2", "layer1", (8, 3, 3, 16))):
        found[name + ".weight"] = w[layer + ".weight"].reshape(shape).transpose(3, 0, 1, 2)
    found["out.weight"] = w["readout.weight"].reshape(4, 4, 16, CLASSES).transpose(3, 2, 0, 1).reshape(CLASSES, -1)
    return {name: np.array(value) for name, value in found.items()}


def torch_side(args):
    """One training by snnTorch; prints accuracy and seconds."""
    import snntorch
    import torch
    torch.manual_seed(args.torch)
    torch.set_num_threads(args.threads)
    beta, kappa = np.exp(-1e-3 / TAU), np.exp(-1e-3 / 20e-3)

    def surrogate(x, grad, _spikes):
        return grad * torch.clamp(1 - x.abs() / 0.5, min=0)

    def leaky():
        return snntorch.Leaky(beta=beta, reset_mechanism="subtract",
                              spike_grad=snntorch.surrogate.custom_surrogate(surrogate))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = torch.nn.Conv2d(2, 8, 5, 2, 2), torch.nn.Conv2d(8, 16, 3, 1, 1)
            self.lif1, self.lif2, self.out = leaky(), leaky(), torch.nn.Linear(256, CLASSES)

        def forward(self, x):
            u1, u2, o, total = self.lif1.init_leaky(), self.lif2.init_leaky(), 0, 0
            pool = torch.nn.functional.avg_pool2d
            for now in x.unbind(1):
                s, u1 = self.lif1(self.conv1(now), u1)
                s, u2 = self.lif2(self.conv2(4 * pool(s, 2)), u2)
                o = kappa * o + (1 - kappa) * self.out(4 * pool(s, 2).flatten(1))
                total = total + o
            return total

    data = np.load(os.path.join(args.folder, "data.npz"))
    net, order = Net(), np.random.default_rng(args.torch)
    given = initial_weights(args.folder, args.torch)
    net.load_state_dict({name: torch.from_numpy(value) for name, value in given.items()}, strict=False)
    optimizer = torch.optim.Adam(net.parameters(), args.lr)

    def batch(part, index):
        events = torch.from_numpy(data[part + "_events"][index]).float()
        return events, torch.from_numpy(data[part + "_labels"][index])

    data = {name: data[name] for name in data.files}
    began = time.perf_counter()
    for _ in range(args.epochs):
        permuted = order.permutation(len(data["train_labels"]))
        for first in range(0, len(permuted), args.batch):
            x, y = batch("train", permuted[first:first + args.batch])
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    seconds = (time.perf_counter() - began) / args.epochs
    with torch.no_grad():
        x, y = batch("test", np.arange(len(data["test_labels"])))
        right = sum((net(a).argmax(1) == b).sum().item() for a, b in zip(x.split(64), y.split(64)))
    print(json.dumps({"accuracy": right / len(y), "seconds": seconds}))


def normalised(net):
    *layers, readout = net.split(",")
    return ",".join([layer + ":norm=batch" for layer in layers] + [readout])


def norms(folder, args):
    """Nets of two and of four convolutions, with and without batch normalisation."""
    first, second, readout = NET.split(",")
    print("convolutions  norm   accuracy: mean, and of each seed  s/epoch")
    for net in (NET, ",".join([first, MIDDLE, MIDDLE, second, readout])):
        for norm in (False, True):
            runs = [neap(folder, seed, args, net=normalised(net) if norm else net)[0] for seed in range(1, args.seeds + 1)]
            found = [100 * run["test"]["accuracy"] for run in runs]
            seconds = sum(run["seconds_per_epoch"] for run in runs) / len(runs)
            print(f"{net.count('conv='):12}  {'batch' if norm else 'none':5}  {np.mean(found):14.1f}  {' '.join(f'{a:5.1f}' for a in found)}"
                  f"  {seconds:7.2f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--samples", type=int, default=800)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--memory", default="64M", help="neap's memory budget")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--norm", action="store_true", help="compare nets with and without batch normalisation, in neap alone")
    p.add_argument("--torch", type=int, help=argparse.SUPPRESS)
    p.add_argument("--folder", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.torch is not None:
        return torch_side(args)
    folder = tempfile.mkdtemp(prefix="moving-")
    train, test = samples(args.samples, args.steps, 1), samples(args.samples // 2, args.steps, 2)
    write(os.path.join(folder, "train.h5"), *train)
    write(os.path.join(folder, "test.h5"), *test)
    np.savez(os.path.join(folder, "data.npz"), train_events=train[0], train_labels=train[1], test_events=test[0],
             test_labels=test[1])
    print(f"{NET}; {train[0].mean() * 100:.2f}% of inputs spike per step")
    if args.norm:
        return norms(folder, args)
    print("seed  program   accuracy  s/epoch  peak MiB")
    for seed in range(1, args.seeds + 1):
        run, mib = neap(folder, seed, args)
        print(f"{seed:4}  neap      {run['test']['accuracy']:8.3f}  {run['seconds_per_epoch']:7.2f}  {mib:8.0f}", flush=True)
        neap(folder, seed, args, begin=True)
        given = [f"--{name}={getattr(args, name)}" for name in ("epochs", "batch", "lr", "threads")]
        output, mib = measured([sys.executable, os.path.abspath(__file__), f"--torch={seed}", f"--folder={folder}", *given])
        other = json.loads(output)
        print(f"{seed:4}  snnTorch  {other['accuracy']:8.3f}  {other['seconds']:7.2f}  {mib:8.0f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
