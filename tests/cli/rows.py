#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data sets of numbers: HDF5 files of h5py, every kind of target, against PyTorch in double; windows."""
import csv
import io
import json
import os
import struct

from harness import Folder, Tap, need, neap, neap_json

need("h5py", "numpy", "torch")
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
S, T, F, C = 14, 90, 5, 3
DT, TAU_OUT, TAU = 1e-3, 20e-3, 20e-3


def tensors(path):
    """Tensors of a safetensors file in double, and its metadata."""
    with open(path, "rb") as file:
        head = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    found = {}
    for name, t in head.items():
        if name != "__metadata__":
            a, b = t["data_offsets"]
            found[name] = torch.tensor(np.frombuffer(data[a:b], "f8" if t["dtype"] == "F64" else "f4").reshape(t["shape"]))
    return found, head["__metadata__"]


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.clamp(1 - ctx.saved_tensors[0].abs() / 0.5, min=0)


def outputs(w, x, cell, smooths=False):
    """The readout's outputs [steps, classes] of one sample x [steps, features]."""
    n = w["readout.weight"].shape[0]
    h, u, o, all_o = torch.zeros(n), torch.zeros(n), torch.zeros(w["readout.weight"].shape[1]), []
    beta, kappa = np.exp(-DT / TAU), np.exp(-DT / TAU_OUT) if smooths else 0
    for row in x:
        if cell == "lif":
            u = beta * u + row @ w["layer0.weight"] + h @ w["layer0.recurrent"] + w["layer0.bias"][0] - h
            h = Spike.apply(u - 1)
        else:
            b = w["layer0.bias"][0]
            i, g = row @ w["layer0.weight"] + b[:3 * n], h @ w["layer0.recurrent"] + b[3 * n:]
            r, z = torch.sigmoid(i[:2 * n] + g[:2 * n]).chunk(2)
            c = torch.tanh(i[2 * n:] + r * g[2 * n:])
            h = (1 - z) * c + z * h
        o = kappa * o + (1 - kappa) * (h @ w["readout.weight"] + w["readout.bias"][0])
        all_o.append(o)
    return torch.stack(all_o)


def loss_of(w, x, lengths, targets, kind, cell, deviation=1):
    losses = []
    for i, n in enumerate(lengths):
        o = outputs(w, x[i, :n], cell, cell == "lif" and kind == "label")
        answer = o[-1] if cell == "gru" else o.sum(0) if kind == "label" else o.mean(0)
        if kind == "label":
            losses.append(torch.nn.functional.cross_entropy(answer[None], targets[i:i + 1]))
        elif kind == "labels":
            losses.append(torch.nn.functional.cross_entropy(o, targets[i, :n], ignore_index=-1))
        elif kind == "numbers":
            losses.append((((answer - targets[i]) * deviation) ** 2).mean())
        else:
            there = ~torch.isnan(targets[i, :n, 0])
            losses.append((((o - targets[i, :n]) * deviation) ** 2)[there].mean())
    return torch.stack(losses).mean()


def data(kind):
    r = np.random.default_rng(3)
    x = r.normal(size=(S, T, F)) * [1, 5, 0.1, 100, 2] + [0, 3, 1, 1e4, -2]
    lengths = r.integers(20, T + 1, S)
    y = {"label": r.integers(0, C, S), "labels": r.integers(-1, C, (S, T)),
         "numbers": r.normal(size=(S, C)).astype("f4"), "series": r.normal(size=(S, T, C)).astype("f4")}[kind]
    if kind == "series":
        y[r.random((S, T)) < 0.3] = np.nan
    return x, lengths, y


def write(path, **arrays):
    if path.endswith(".npz"):
        (np.savez_compressed if "packed" in path else np.savez)(path, **arrays)
        return path
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


def own_units(kept, y):
    """Targets as they are learned, and the deviations that lead back; (y, 1) where there are none."""
    if "target_mean" not in kept:
        return y, np.ones(C)
    mean, deviation = (np.array(list(map(float, kept[k]))) for k in ("target_mean", "target_deviation"))
    return ((y.astype("f8") - mean) / deviation).astype("f4").astype("f8"), deviation


def counted(y, lengths):
    """All targets that have a loss, a row each."""
    if y.ndim < 3:
        return y.astype("f8")
    rows = np.concatenate([y[i, :n] for i, n in enumerate(lengths)])
    return rows[~np.isnan(rows[:, 0])].astype("f8")


def agrees(folder, kind, cell):
    """Loss and gradient of one step of SGD are PyTorch's to 1e-12; the loss is in the units of y."""
    x, lengths, y = data(kind)
    numbers = kind in ("numbers", "series")
    if numbers:
        y = y * [1, 1000, 0.01] + [0, 5e4, 3]
    path = write(os.path.join(folder, f"{kind}.h5"), x=x, y=y, lengths=lengths)
    found = []
    for rate in 0, 1:
        run = os.path.join(folder, f"{kind}-{cell}-{rate}")
        done = neap_json("train", path, "--net", {"lif": "lif:9r,li", "gru": "gru:7,li"}[cell], "--precision",
                         "double", "--optimizer", "sgd", "--momentum", 0, "--lr", rate, "--schedule", "constant",
                         "--warmup", 0, "--clip", 0, "--rate-weight", 0, "--validation", 0, "--batch", S, "--epochs", 1,
                         "--scale", 2, "--memory", "4M", "--out", run)
        found.append((done, *tensors(os.path.join(run, "model.safetensors"))))
    (done, w, meta), (_, after, _) = found
    kept = json.loads(meta["neap.inputs"])
    shift, scale = (np.array(list(map(float, kept[k]))) for k in ("shift", "scale"))
    rows = np.concatenate([x[i, :n] for i, n in enumerate(lengths)])
    if not np.allclose(shift, rows.mean(0), rtol=1e-12) or not np.allclose(scale, 1 / rows.std(0), rtol=1e-11):
        return f"normalised by {shift}, {scale}"
    given = torch.tensor(((x - shift) * scale).astype("f4").astype("f8"))
    learned, deviation = own_units(kept, y) if numbers else (y, np.ones(C))
    rows = counted(y, lengths)
    if numbers and not (np.allclose(list(map(float, kept["target_mean"])), rows.mean(0), rtol=1e-6, atol=1e-6) and
                        np.allclose(deviation, rows.std(0), rtol=1e-6)):
        return f"targets normalised by {kept['target_mean']}, {deviation}, not {rows.mean(0)}, {rows.std(0)}"
    leaves = {k: v.clone().requires_grad_() for k, v in w.items()}
    loss_of(leaves, given, lengths, torch.tensor(learned), kind, cell).backward()
    loss = loss_of(w, given, lengths, torch.tensor(learned), kind, cell, torch.tensor(deviation))
    if abs(loss.item() - done["train_loss"]) > 1e-12 * abs(loss.item()):
        return f"loss {done['train_loss']}, PyTorch {loss.item()}"
    for name, leaf in leaves.items():
        off = (w[name] - after[name] - leaf.grad).abs().max().item() / max(leaf.grad.abs().max().item(), 1e-4)
        if off > 1e-11:
            return f"{name}: gradient off by {off}"
    evaluated = neap_json("eval", os.path.join(folder, f"{kind}-{cell}-0"), path)
    if abs(evaluated["loss"] - loss.item()) > 1e-12 * abs(loss.item()):
        return f"eval: loss {evaluated['loss']}, PyTorch {loss.item()}"
    judged = {"label": S, "labels": sum(int((y[i, :n] >= 0).sum()) for i, n in enumerate(lengths))
              if kind == "labels" else 0}.get(kind, 0)
    return None if evaluated["judged"] == judged else f"judged {evaluated['judged']}, not {judged}"


def units_of_targets(folder):
    """Targets of size 1000 are learned as those of size 1 are; as they are by --no-normalise-targets, and by old models."""
    r = np.random.default_rng(8)
    x = r.normal(size=(300, 20, 3)).astype("f4")
    y = x[:, :, :2].sum(1)
    explained = {}
    for name, target, more in (("one", y, []), ("large", 5000 + 1000 * y, []), ("small", 1e-3 * y - 7, []),
                               ("raw", 5000 + 1000 * y, ["--no-normalise-targets"])):
        path, run = write(os.path.join(folder, name + ".npz"), x=x, y=target.astype("f8")), os.path.join(folder, "units-" + name)
        done = neap_json("train", path, "--net", "gru:12,li", "--epochs", 15, "--lr", 0.02, "--memory", "4M", "--out", run,
                         "--test", path, *more)
        explained[name] = done["test"]["loss"] / target.var(0).mean()
        scores = np.array([a["scores"] for a in neap_json("eval", run, path)["answers"]])
        if abs(((scores - target) ** 2).mean() - done["test"]["loss"]) > 1e-4 * done["test"]["loss"]:
            return f"{name}: answers are off by {((scores - target) ** 2).mean()}, told {done['test']['loss']}"
        again = neap_json("train", path, "--from", run, "--epochs", 1, "--lr", 0, "--memory", "4M", "--test", path,
                          "--out", run + "-again")["test"]["loss"]
        if abs(again - done["test"]["loss"]) > 1e-9 * again:
            return f"{name}: --from has loss {again}, not {done['test']['loss']}"
    known = "target_mean" in json.loads(tensors(os.path.join(folder, "units-raw", "model.safetensors"))[1]["neap.inputs"])
    learned = [explained[k] for k in ("one", "large", "small")]
    if known or max(learned) > 0.5 or max(learned) > 1.2 * min(learned) or explained["raw"] < 2:
        return f"{explained}"
    constant = write(os.path.join(folder, "constant.npz"), x=x, y=np.stack([y[:, 0], np.full(300, 1e6)], 1))
    done = neap_json("train", constant, "--net", "gru:4,li", "--epochs", 1, "--memory", "4M", "--out", os.path.join(folder, "constant"))
    return None if done["train_loss"] < 100 else f"a constant output: loss {done['train_loss']}"


def goes_on_as_begun(folder):
    """A run of a version that did not normalise targets, or by another choice, goes on without."""
    r = np.random.default_rng(9)
    x = r.normal(size=(40, 9, 2)).astype("f4")
    path = write(os.path.join(folder, "begun.npz"), x=x, y=100 * x[:, :, 0].sum(1).astype("f8"))
    args = ["--net", "gru:4,li", "--memory", "4M", "--snapshot", 0]
    runs = [os.path.join(folder, f"begun{i}") for i in range(2)]
    for run, epochs in zip(runs, (4, 2)):
        neap_json("train", path, *args, "--epochs", epochs, "--schedule", "constant", "--no-normalise-targets", "--out", run)
    kept = os.path.join(runs[1], "run.json")
    with open(kept, encoding="utf-8") as file:
        older = json.load(file)
    del older["settings"]["no_normalise_targets"]
    with open(kept, "w", encoding="utf-8") as file:
        json.dump(older, file)
    losses = [neap_json("train", "--out", runs[1], "--resume", "--epochs", 4)["train_loss"], neap_json(
        "train", "--out", runs[0], "--resume", "--epochs", 4)["validation"]["loss"], neap_json("eval", runs[1], path)["loss"],
        neap_json("eval", runs[0], path)["loss"]]
    return None if losses[2] == losses[3] else f"{losses}"


def same_bits(folder):
    """Strategies, windows and threads: one hash of gradients."""
    r = np.random.default_rng(5)
    x = r.normal(size=(3, 1500, 64)).astype("f4")
    path = write(os.path.join(folder, "long.h5"), x=x, lengths=[1500, 1000, 7],
                 y=(np.cumsum(x[:, :, 0], 1) > 0).astype(int))
    seen, windows = set(), set()
    for net in "lif:20r,li", "gru:9,li":
        hashes = set()
        for inputs, threads in ("600K", 2), ("64M", 1):
            done = neap_json("compare", path, "--net", net, "--batch", 3, "--memory", "1M", "--inputs", inputs,
                             "--threads", threads, "--repeats", 1)
            hashes |= {run["grad_hash"] for run in done["runs"] if run.get("grad_hash")}
            windows.add(done["window_steps"] > 0)
        if len(hashes) != 1:
            return f"{net}: gradients {hashes}"
        seen |= hashes
    return None if windows == {True, False} else f"windows {windows}"


def texts_and_masks(folder):
    """A mask and classes that are texts are the same as lengths and numbers."""
    x, lengths, y = data("label")
    mask = np.arange(T) < lengths[:, None]
    losses = set()
    for name, arrays in {"a": {"y": y, "lengths": lengths}, "b": {"y": np.array(["abc"[i] for i in y], "S3"), "mask": mask},
                         "c": {"y": y, "mask": mask.astype("f4"), "classes": np.array([b"a", b"b", b"c"])},
                         "d": {"y": y.astype("u1"), "lengths": lengths.astype("f8")}}.items():
        file = {"b": "b.npz", "c": "packed.npz"}.get(name, name + ".h5")
        path = write(os.path.join(folder, file), x=x, **arrays)
        done = neap_json("train", path, "--net", "gru:5,li", "--epochs", 2, "--batch", 5, "--memory", "4M",
                         "--out", os.path.join(folder, "run-" + name))
        losses.add(done["train_loss"])
    return None if len(losses) == 1 else f"losses {losses}"


def next_step(folder):
    """The targets are the normalised values of the step after; answers are in the features' own units."""
    x, lengths, _ = data("label")
    path = write(os.path.join(folder, "next.h5"), x=x, lengths=lengths)
    run = os.path.join(folder, "run-next")
    done = neap_json("train", path, "--next-step", "--net", "gru:6,li", "--precision", "double", "--lr", 0, "--batch", S,
                     "--epochs", 1, "--validation", 0, "--memory", "4M", "--out", run)
    w, _ = tensors(os.path.join(run, "model.safetensors"))
    rows = np.concatenate([x[i, :n] for i, n in enumerate(lengths)])
    answer = np.array(neap("predict", run, path).stdout.splitlines()[1].split(",")[2:], "f8")
    given = torch.tensor(((x - rows.mean(0)) / rows.std(0)).astype("f4").astype("f8"))
    loss = loss_of(w, given, lengths - 1, given[:, 1:], "series", "gru").item()
    again = neap_json("eval", run, path)["loss"]
    wanted = outputs(w, given[0, :1], "gru").numpy()[0] * rows.std(0) + rows.mean(0)
    if np.abs(answer - wanted).max() > 1e-6 * np.abs(wanted).max():
        return f"answers {answer}, not {wanted}"
    off = max(abs(loss - done["train_loss"]), abs(loss - again))
    return None if off < 1e-6 * loss else f"loss {done['train_loss']}, {again}, PyTorch {loss}"


def text(folder):
    """Characters are spikes of a channel each, their successors labels of steps; other texts are read alike."""
    path = os.path.join(folder, "text")
    with open(path, "w", encoding="utf-8") as file:
        file.write("the néxt character ☃ is not the first of any\n" * 3)
    said = open(path, encoding="utf-8").read()
    symbols = sorted(set(said))
    run = os.path.join(folder, "run-text")
    done = neap_json("train", "--text", path, "--net", "gru:6,li", "--precision", "double", "--lr", 0, "--epochs", 1,
                     "--validation", 0, "--memory", "4M", "--out", run)
    w, _ = tensors(os.path.join(run, "model.safetensors"))
    ids = torch.tensor([symbols.index(c) for c in said])
    given = torch.nn.functional.one_hot(ids, len(symbols)).to(torch.float64)
    loss = loss_of(w, given[None, :-1], [len(said) - 1], ids[None, 1:], "labels", "gru").item()
    if abs(loss - done["train_loss"]) > 1e-12 * loss:
        return f"loss {done['train_loss']}, PyTorch {loss}"
    with open(path, "w", encoding="utf-8") as file:
        file.write("not the first")
    ids = torch.tensor([symbols.index(c) for c in "not the first"[:12]] + [symbols.index("t")])
    given = torch.nn.functional.one_hot(ids, len(symbols)).to(torch.float64)
    loss = loss_of(w, given[None, :-1], [12], ids[None, 1:], "labels", "gru").item()
    found = neap_json("eval", run, "text:" + path)
    if abs(loss - found["loss"]) > 1e-12 * loss or found["judged"] != 12:
        return f"eval: loss {found['loss']} of {found['judged']}, PyTorch {loss}"
    for bytes_, says in ((b"xyz", "contains 1 character that the training text does not: 'z'. Remove it"), (b"no \xff", "byte 3"), (b"n", "at least 2 characters"), (b"", "at least 2 characters")):
        with open(path, "wb") as file:
            file.write(bytes_)
        refused = neap("eval", run, "text:" + path)
        if refused.returncode != 2 or says not in refused.stderr:
            return f"{bytes_}: code {refused.returncode}, {refused.stderr}"
    return None


def chosen(folder):
    """Smoothing and readout by targets and cells, unless they are given; the model keeps them."""
    for kind, net, options, wanted in (("label", "gru:4,li", [], ("0", "last")), ("numbers", "lstm:4,li", [], ("0", "last")),
                                       ("label", "egru:4,li", [], ("0", "mean")), ("label", "lif:4r,li", [], ("0.02", "sum")),
                                       ("numbers", "lif:4r,li", [], ("0", "mean")), ("labels", "lif:4r,li", [], ("0", "step")),
                                       ("series", "gru:4,li", [], ("0", "step")), ("label", "gru:4,li", ["--readout", "max"], ("0", "max")),
                                       ("series", "gru:4,li", ["--tau-out", "2ms"], ("0.002", "step")),
                                       ("label", "lif:4r,li", ["--tau-out", "none"], ("0", "sum")),
                                       ("label", "lif:4r,li", ["--tau-out", "0"], ("0", "sum")),
                                       ("labels", "lif:4r,li", ["--learn", "tau"], ("0.02", "step")),
                                       ("numbers", "lif:4r,li:learn=tau", [], ("0.02", "mean")),
                                       ("series", "gru:4,li:learn=tau", [], ("0.02", "step"))):
        run = os.path.join(folder, f"chosen{len(os.listdir(folder))}")
        done = neap("train", os.path.join(folder, f"{kind}.h5"), "--net", net, "--epochs", 1, "--memory", "4M", "--out", run,
                    "--validation", 0, *options)
        if done.returncode:
            return f"{kind} {net} {options}: {done.stderr}"
        kept = json.loads(tensors(os.path.join(run, "model.safetensors"))[1]["neap.net"])
        if (kept["tau_out"], kept["readout"]) != wanted:
            return f"{kind} {net} {options}: {kept['tau_out']}, {kept['readout']}"
    return None


def predictions(folder):
    """Numbers are written as such, and are as far from the targets as eval says."""
    run, path = os.path.join(folder, "numbers-gru-0"), os.path.join(folder, "numbers.h5")
    lines = [line.split(",") for line in neap("predict", run, path).stdout.splitlines()]
    with h5py.File(path) as file:
        wanted = np.array(file["y"], "f4").astype("f8").reshape(S, -1)
    if lines[0] != ["sample", *map(str, range(wanted.shape[1]))] or [line[0] for line in lines[1:]] != list(map(str, range(S))):
        return f"{lines[:2]}"
    found = np.array([line[1:] for line in lines[1:]], "f8")
    loss = neap_json("eval", run, path)["loss"]
    if abs(((found - wanted) ** 2).mean() - loss) > 1e-5 * loss:
        return f"{((found - wanted) ** 2).mean()}, eval {loss}"
    one = json.loads(neap("predict", run, path, "--json").stdout.splitlines()[0])
    if set(one) != {"sample", "steps", "scores"} or one["scores"] != list(found[0]):
        return f"{one}"
    with h5py.File(path) as file:
        bare = write(os.path.join(folder, "bare.h5"), x=file["x"][:], lengths=file["lengths"][:])
    asked = neap("predict", run, bare).stdout
    return None if [line.split(",") for line in asked.splitlines()] == lines else f"without y: {asked[:200]}"


def steps_of(folder, kind, cell):
    """A line a step of every sample, with the outputs that PyTorch has; the same without targets."""
    x, lengths, y = data(kind)
    if kind == "series":
        y = y * [1, 1000, 0.01] + [0, 5e4, 3]
    run, path = os.path.join(folder, f"{kind}-{cell}-0"), os.path.join(folder, f"{kind}.h5")
    w, meta = tensors(os.path.join(run, "model.safetensors"))
    kept = json.loads(meta["neap.inputs"])
    shift, scale = (np.array(list(map(float, kept[k]))) for k in ("shift", "scale"))
    given = torch.tensor(((x - shift) * scale).astype("f4").astype("f8"))
    wanted = np.concatenate([outputs(w, given[i, :n], cell) for i, n in enumerate(lengths)])
    if "target_mean" in kept:
        wanted = wanted * own_units(kept, y)[1] + list(map(float, kept["target_mean"]))
    lines = [line.split(",") for line in neap("predict", run, path).stdout.splitlines()]
    bare = write(os.path.join(folder, "bare.h5"), x=x, lengths=lengths)
    asked = [line.split(",") for line in neap("predict", run, bare, "--batch", 5).stdout.splitlines()]
    classes = kind == "labels"
    if lines[0][:5 if classes else 2] != ["sample", "step", "label", "prediction", "name"][:5 if classes else 2]:
        return f"{lines[0]}"
    places = [[str(i), str(t)] for i, n in enumerate(lengths) for t in range(n)]
    if [line[:2] for line in lines[1:]] != places or [line[:2] for line in asked[1:]] != places:
        return f"{len(lines)}, {len(asked)} lines, not {len(places) + 1}"
    scores = np.array([line[-C:] for line in lines[1:]], "f8")
    if np.abs(scores - wanted).max() > 1e-12 * np.abs(wanted).max() or [line[-C:] for line in asked] != [line[-C:] for line in lines]:
        return f"off by {np.abs(scores - wanted).max()}"
    if classes:
        labels = ["" if y[i, t] < 0 else str(y[i, t]) for i, n in enumerate(lengths) for t in range(n)]
        if [line[2] for line in lines[1:]] != labels or [int(line[3]) for line in lines[1:]] != list(scores.argmax(1)):
            return "labels or predictions"
        if any(line[2] for line in asked[1:]) or [line[3:] for line in asked] != [line[3:] for line in lines]:
            return "without y"
        right = sum(line[2] == line[3] for line in lines[1:])
        if abs(neap_json("eval", run, path)["accuracy"] * sum(map(bool, labels)) - right) > 1e-6:
            return f"{right} steps are right"
    one = json.loads(neap("predict", run, path, "--json").stdout.splitlines()[1])
    keys = {"sample", "step", "scores"} | ({"label", "prediction", "name"} if classes else set())
    return None if set(one) == keys and one["step"] == 1 and one["scores"] == list(scores[1]) else f"{one}"


def arrays(folder):
    """--out F.npz: what the lines say, as NumPy arrays; refused and interrupted runs leave no file."""
    for kind in "label", "labels", "numbers", "series":
        run, path, out = (os.path.join(folder, name) for name in (f"{kind}-gru-0", f"{kind}.h5", "answers.npz"))
        done = neap("predict", run, path, "--out", out)
        rows = list(csv.reader(io.StringIO(neap("predict", run, path).stdout)))
        if done.returncode != 0 or not done.stdout.startswith(f"{out}: answers for ") or done.stderr:
            return f"{kind}: {done}"
        head, body = rows[0][:-C], rows[1:]
        with np.load(out, allow_pickle=False) as found:
            if sorted(found) != sorted([*(c for c in head if c != "name"), "scores", "names"]):
                return f"{kind}: {list(found)}"
            if list(found["names"]) != rows[0][-C:] or found["scores"].dtype != "f8" or found["sample"].dtype != "i8":
                return f"{kind}: names {found['names']}"
            if not np.array_equal(found["scores"], np.array([row[-C:] for row in body], "f8")):
                return f"{kind}: scores"
            for k, column in enumerate(head):
                if column != "name" and list(found[column]) != [int(row[k] or -1) for row in body]:
                    return f"{kind}: {column}"
        os.remove(out)
    names = write(os.path.join(folder, "named.h5"), x=data("label")[0], y=data("label")[2],
                  classes=np.array([s.encode() for s in ("a", "zwölf", "☃, 雪𝄞")]))
    neap("train", names, "--net", "gru:3,li", "--epochs", 1, "--memory", "4M", "--out", os.path.join(folder, "named"))
    neap("predict", os.path.join(folder, "named"), names, "--out", out)
    if list(np.load(out)["names"]) != ["a", "zwölf", "☃, 雪𝄞"]:
        return f"names {np.load(out)['names']}"
    os.remove(out)
    for more, says in (["--json"], "--json"), (["--out", "/dev/null/x.npz"], "/dev/null/x.npz"):
        done = neap("predict", run, path, "--out", out, *more)
        if done.returncode != 2 or says not in done.stderr or done.stderr.count("\n") != 1:
            return f"{more}: {done}"
    left = [name for name in os.listdir(folder) if name.startswith("answers")]
    return f"left behind: {left}" if left else None


def refused(folder):
    """What does not fit is refused in one line that says what is accepted; exit code 2."""
    x, lengths, y = data("label")
    nan = x.copy()
    nan[2, 3, 1] = np.nan
    gap = (np.arange(T) < lengths[:, None]).astype(int)
    gap[1, 2] = 0
    for kind in "h5", "npz":
        problem = refused_of(folder, kind, x, lengths, y, nan, gap)
        if problem:
            return problem
    return refused_elsewhere(folder, x, y)


def refused_of(folder, kind, x, lengths, y, nan, gap):
    cases = {"feature 1 is nan": {"x": nan, "y": y}, "from 1 to 90, the steps of 'x'": {"x": x, "y": y, "lengths": lengths + 90},
             "has both": {"x": x, "y": y, "lengths": lengths, "mask": gap}, "is 0 at step 2 and 1 after it": {"x": x, "y": y, "mask": gap},
             "13 targets for 14 samples. Save one target per sample": {"x": x, "y": y[:13]}, "'y'[0] is": {"x": x, "y": y - 9},
             "save x.transpose(1, 0, 2)": {"x": x.transpose(1, 0, 2), "y": y}, "save x.T": {"x": x[:, :, 0].T, "y": y},
             "save y[None]": {"x": x[:1], "y": np.arange(x.shape[1]) % 2}, "Save y[:, 0]": {"x": x, "y": y[:, None]},
             "save y.argmax(1)": {"x": x, "y": np.eye(3, dtype=int)[y]},
             "save y.argmax(2)": {"x": x, "y": np.eye(3, dtype=int)[np.tile(y[:, None], x.shape[1])]},
             "Remove the array 'classes'": {"x": x, "y": np.array([b"a", b"b"])[y % 2], "classes": np.array([b"a", b"b"])},
             "'mask' contains integers of shape (14, 89)": {"x": x, "y": y, "mask": gap[:, :89]},
             "'classes' contains integers": {"x": x, "y": y, "classes": y}, "has no array 'y' of targets": {"x": x},
             "whole numbers from 0 to 1": {"x": x, "y": y, "classes": np.array([b"a", b"b"])}}
    for says, arrays in cases.items():
        done = neap("train", write(os.path.join(folder, "bad." + kind), **arrays), "--out", os.path.join(folder, "never"))
        if done.returncode != 2 or says not in done.stderr or len(done.stderr.strip().splitlines()) != 1:
            return f"{says}: code {done.returncode}, {done.stderr}"
        if os.path.exists(os.path.join(folder, "never")):
            return f"{says}: something was written"
    return None


def refused_elsewhere(folder, x, y):
    run = os.path.join(folder, "label-gru-0")
    for says, arrays in {"4 features, but the model was trained on 5": {"x": x[:, :, :4], "y": y}}.items():
        done = neap("eval", run, write(os.path.join(folder, "bad.h5"), **arrays))
        if done.returncode != 2 or says not in done.stderr:
            return f"{says}: code {done.returncode}, {done.stderr}"
    fewer = write(os.path.join(folder, "fewer.h5"), x=x, y=np.zeros((len(x), C - 1)))
    for args in (["eval", os.path.join(folder, "numbers-gru-0"), fewer],
                 ["train", os.path.join(folder, "numbers.h5"), "--test", fewer, "--out", os.path.join(folder, "never")]):
        done = neap(*args)
        if done.returncode != 2 or "has 2 outputs" not in done.stderr or done.stderr.count("\n") > 2:
            return f"{args}: code {done.returncode}, {done.stderr}"
    for says, options in {"only the readout 'step'": ["--readout", "last"], "augment spikes": ["--jitter", "2ms"]}.items():
        done = neap("train", os.path.join(folder, "labels.h5"), *options, "--out", os.path.join(folder, "never"))
        if done.returncode != 2 or says not in done.stderr:
            return f"{says}: code {done.returncode}, {done.stderr}"
    return None


def damaged(folder):
    """Files that are cut or have bytes changed train, or are refused in one line."""
    x, lengths, y = data("labels")
    path = os.path.join(folder, "whole.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x[:3].astype("f4"), chunks=(1, 45, 5), compression="gzip")
        file["y"], file["lengths"] = y[:3], lengths[:3]
    whole = open(path, "rb").read()
    r = np.random.default_rng(7)
    for k in range(24):
        bad = bytearray(whole[:len(whole) * k // 12] if k < 12 else whole)
        for at in r.integers(0, min(len(bad), 4096) or 1, 3) if k >= 12 else ():
            bad[at] ^= 1 << int(r.integers(0, 8))
        with open(path, "wb") as file:
            file.write(bad)
        done = neap("compare", path, "--net", "gru:4,li", "--batch", 3, "--memory", "4M", "--strategy", "bptt", "--repeats", 1)
        if done.returncode not in (0, 1, 2) or done.returncode and done.stderr.count("\n") > 2:
            return f"damage {k}: code {done.returncode}, {done.stderr}"
    np.savez(os.path.join(folder, "whole.npz"), x=x[:3], y=y[:3], lengths=lengths[:3])
    whole, cut = open(os.path.join(folder, "whole.npz"), "rb").read(), os.path.join(folder, "cut.npz")
    for length in range(0, len(whole), len(whole) // 12):
        with open(cut, "wb") as file:
            file.write(whole[:length])
        done = neap("train", cut)
        if done.returncode != 2 or done.stderr.count("\n") != 1 or "HDF5" in done.stderr or cut not in done.stderr:
            return f"{length} bytes: code {done.returncode}, {done.stderr}"
    return None


def main():
    with Folder() as folder, Tap() as tap:
        for cell in "gru", "lif":
            for kind in "label", "labels", "numbers", "series":
                tap.check(f"{cell}, {kind}: PyTorch's loss and gradient", agrees(folder, kind, cell))
        tap.check("units of targets", units_of_targets(folder))
        tap.check("runs go on as they were begun", goes_on_as_begun(folder))
        tap.check("strategies, windows, threads: the same bits", same_bits(folder))
        tap.check("masks and texts are lengths and classes", texts_and_masks(folder))
        tap.check("the next step's values", next_step(folder))
        tap.check("text", text(folder))
        tap.check("what does not fit is refused", refused(folder))
        tap.check("damaged files", damaged(folder))
        tap.check("smoothing and readout by targets and cells", chosen(folder))
        tap.check("predict", predictions(folder))
        tap.check("predict writes NumPy arrays", arrays(folder))
        for cell in "gru", "lif":
            for kind in "labels", "series":
                tap.check(f"predict a line a step: {cell}, {kind}", steps_of(folder, kind, cell))


if __name__ == "__main__":
    main()
