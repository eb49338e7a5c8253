#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--encode: numbers that become spikes: PyTorch's loss and gradient, the same bits however it is run, what models keep."""
import json
import os

from harness import Folder, Tap, need, neap, neap_json

need("h5py", "numpy", "torch")
import numpy as np  # noqa: E402
import torch  # noqa: E402

from rows import C, F, S, T, loss_of, tensors, write  # noqa: E402

F4 = np.float32
SGD = ["--optimizer", "sgd", "--momentum", 0, "--schedule", "constant", "--warmup", 0, "--clip", 0, "--rate-weight", 0,
       "--validation", 0, "--epochs", 1, "--gain", 0, "--memory", "4M"]
KINDS = ["delta:threshold=0.5", "latency:period=15", "rate", "threshold:level=0.2"]


def data():
    r = np.random.default_rng(3)
    x = np.cumsum(r.normal(size=(S, T, F)), 1) * [1, 5, 0.1, 100, 2] + [0, 3, 1, 1e4, -2]
    return x, r.integers(20, T + 1, S), r.integers(0, C, S)


def falling(rises, falls):
    return np.concatenate([rises, falls], axis=-1).astype("f8")


def spikes(coding, x):
    """Spikes [samples][steps][channels] of normalised values, by the formulae of snnTorch."""
    if coding.startswith("delta"):
        change = np.diff(x, axis=1, prepend=F4(0))
        return falling(change >= F4(0.5), change <= F4(-0.5))
    if coding.startswith("threshold"):
        above = x >= F4(0.2)
        was = np.concatenate([above[:, :1], above[:, :-1]], axis=1)
        return falling(above & ~was, was & ~above)
    made = np.zeros(x.shape)
    for t in range(0, T, 15):
        v = np.clip(0.25 * x[:, t].astype("f8") + 0.5, 0, 1).astype("f4")
        at = np.round(np.minimum(F4(-14) * (v - F4(1)), F4(14 * 0.99))).astype(int)
        made[:, t:t + 15] = np.arange(15)[None, :, None] == at[:, None, :]
    return made


def agrees(folder, coding, precision):
    """Loss and gradient of one step of SGD, and what eval says, are PyTorch's of the spikes that NumPy makes."""
    x, lengths, y = data()
    path = write(os.path.join(folder, "x.h5"), x=x, y=y, lengths=lengths)
    found = []
    for rate in 0, 1:
        run = os.path.join(folder, f"sgd-{coding[:4]}-{rate}")
        done = neap_json("train", path, "--encode", coding, "--net", "lif:9r,li", "--precision", precision, "--lr", rate, *SGD,
                         "--batch", S, "--scale", 2, "--out", run)
        found.append((done, *tensors(os.path.join(run, "model.safetensors"))))
    (done, w, meta), (_, after, _) = found
    kept = json.loads(meta["neap.inputs"])
    shift, scale = (np.array(list(map(float, kept[k]))) for k in ("shift", "scale"))
    given = torch.tensor(spikes(coding, ((x - shift) * scale).astype("f4")))
    leaves = {k: v.clone().requires_grad_() for k, v in w.items()}
    loss = loss_of(leaves, given, lengths, torch.tensor(y), "label", "lif")
    loss.backward()
    if abs(loss.item() - done["train_loss"]) > 1e-12 * loss.item():
        return f"loss {done['train_loss']}, PyTorch {loss.item()}"
    for name, leaf in leaves.items():
        off = (w[name] - after[name] - leaf.grad).abs().max().item() / max(leaf.grad.abs().max().item(), 1e-4)
        if off > 1e-11:
            return f"{name}: gradient off by {off}"
    again = neap_json("eval", os.path.join(folder, f"sgd-{coding[:4]}-0"), path)["loss"]
    return None if abs(again - loss.item()) < 1e-12 * loss.item() else f"eval: loss {again}, PyTorch {loss.item()}"


def same_bits(folder, coding):
    """Strategies, windows and threads: one hash of gradients."""
    r = np.random.default_rng(5)
    x = np.cumsum(r.normal(size=(3, 9000, 64)), 1).astype("f4")
    path = write(os.path.join(folder, "long.h5"), x=x, lengths=[9000, 5000, 7], y=[0, 1, 2])
    hashes, windows, runs = set(), set(), 0
    for inputs, threads in ("600K", 2), ("64M", 1), ("64M", 2):
        done = neap_json("compare", path, "--encode", coding.replace("15", "5"), "--net", "lif:20r,li", "--batch", 3, "--memory", "1M",
                         "--inputs", inputs, "--threads", threads, "--repeats", 1)
        found = [run["grad_hash"] for run in done["runs"] if run.get("grad_hash")]
        hashes |= set(found)
        runs += len(found)
        windows.add(done["window_steps"] > 0)
    if len(hashes) != 1 or runs < 9:
        return f"gradients {hashes} of {runs} runs"
    return None if windows == {True, False} else f"windows {windows}"


def train(folder, name, path, *more):
    run = os.path.join(folder, name)
    return run, neap_json("train", path, "--net", "lif:12,li", "--batch", 5, "--memory", "4M", "--out", run, *more)


def kept(folder, coding):
    """Ranks of settings: run.json, --config, --resume, --from, --test, eval and predict use the same coding and seed."""
    x, lengths, y = data()
    path = write(os.path.join(folder, "kept.npz"), x=x, y=y, lengths=lengths)
    run, done = train(folder, "kept-" + coding[:4], path, "--encode", coding, "--epochs", 4, "--test", path, "--seed", 7)
    evaluated = neap_json("eval", run, path)
    if abs(done["test"]["loss"] - evaluated["loss"]) > 1e-12:
        return f"--test {done['test']['loss']}, eval {evaluated['loss']}"
    answers = neap("predict", run, path, "--batch", 3).stdout.splitlines()
    right = sum(line.split(",")[1] == line.split(",")[2] for line in answers[1:])
    if abs(right / S - evaluated["accuracy"]) > 1e-9:
        return f"predict: {right} of {S}, eval {evaluated['accuracy']}"
    settings = json.load(open(os.path.join(run, "run.json"), encoding="utf-8"))["settings"]
    if not settings["encode"].startswith(coding.split(":")[0] + ":") or "repeat=1" not in settings["encode"]:
        return f"run.json: {settings['encode']}"
    again = os.path.join(folder, "again-" + coding[:4])
    repeated = neap_json("train", "--config", os.path.join(run, "run.json"), "--out", again)
    if repeated["weights_hash"] != done["weights_hash"]:
        return "--config: other weights"
    half = os.path.join(folder, "half-" + coding[:4])
    neap_json("train", path, "--net", "lif:12,li", "--batch", 5, "--memory", "4M", "--out", half, "--encode", coding, "--epochs", 4,
              "--seed", 7, "--threads", 1, "--strategy", "revolve", "--inputs", "100K")
    if neap_json("eval", half, path)["loss"] != evaluated["loss"]:
        return "another strategy: other weights"
    graph = os.path.join(folder, f"kept-{coding[:4]}.nir")
    made = neap("export", run, "--nir", graph, "--metadata")
    if made.returncode or abs(neap_json("eval", "--from", graph, path)["loss"] - evaluated["loss"]) > 1e-6:
        return f"as a NIR graph: {made.stderr}"
    tuned, more = train(folder, "tuned-" + coding[:4], path, "--from", run, "--lr", 0, "--epochs", 1, "--seed", 9)
    tuned_as = json.load(open(os.path.join(tuned, "run.json"), encoding="utf-8"))["settings"]["encode"]
    if coding == "rate" and not tuned_as.endswith("seed=7"):
        return f"--from: {tuned_as}"
    if neap_json("eval", tuned, path)["loss"] != evaluated["loss"] or more["epochs"] != 1:
        return "--from: other answers"
    other = neap("train", path, "--net", "lif:12,li", "--batch", 5, "--memory", "4M", "--out", run, "--resume", "--encode",
                 coding.split(":")[0] + ":repeat=2")
    return None if other.returncode == 2 and "encode" in other.stderr else f"--resume with another: {other}"


def cut(folder):
    """Samples that are cut, in training and by the model; calibrate; a budget for the whole process."""
    r = np.random.default_rng(6)
    x = np.cumsum(r.normal(size=(12, 4000, 6)), 1)
    y = r.integers(0, 2, 12)
    path = write(os.path.join(folder, "long-cut.h5"), x=x, y=y)
    short = write(os.path.join(folder, "short-cut.h5"), x=x[:, :50], y=y)
    for coding in KINDS[0], "latency":
        run, done = train(folder, "cut-" + coding[:4], path, "--encode", coding, "--max-steps", 50, "--no-normalise", "--epochs", 2)
        _, same = train(folder, "same-" + coding[:4], short, "--encode", coding, "--no-normalise", "--epochs", 2)
        if done["weights_hash"] != same["weights_hash"]:
            return f"{coding}: cut at 50 steps, other weights than 50 steps"
        if neap_json("eval", run, path)["loss"] != neap_json("eval", run, short)["loss"]:
            return f"{coding}: eval does not cut"
        neap_json("calibrate", path, "--encode", coding, "--max-steps", 50, "--net", "lif:8,li", "--batch", 4, "--repeats", 1)
    run, done = train(folder, "total", path, "--encode", "rate", "--epochs", 1, "--memory-total", "64M", "--inputs", "500K")
    if done["window_steps"] == 0 or done["process"]["measured"] > 64 << 20:
        return f"windows of {done['window_steps']} steps, process {done['process']}"
    return None


def gain(folder):
    """What --gain says arrives: spikes of a channel and second, of rows and of characters, a millisecond each."""
    path = write(os.path.join(folder, "gain.h5"), x=np.full((20, 1, 4), 0.3), y=np.arange(20) % 2)
    said = neap("train", path, "--encode", "rate:gain=1,offset=0,repeat=2000", "--no-normalise", "--net", "lif:8,li", "--epochs", 1,
                "--memory", "4M", "--out", os.path.join(folder, "gain")).stderr
    hertz = float(said.split("mean input rate ")[1].split(" Hz")[0])
    if abs(hertz - 300) > 4:
        return f"{hertz} Hz arrive of rate 0.3 in steps of 1 ms"
    text = os.path.join(folder, "gain.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write("abcdefghij" * 100)
    said = neap("train", "--text", text, "--net", "lif:8,li", "--epochs", 1, "--memory", "4M", "--out", os.path.join(folder, "gain-text")).stderr
    hertz = float(said.split("mean input rate ")[1].split(" Hz")[0])
    return None if abs(hertz - 100) < 1 else f"{hertz} Hz arrive of 10 characters"


def goes_on(folder):
    """--resume of more epochs ends in the weights of a run that was not interrupted."""
    x, lengths, y = data()
    path = write(os.path.join(folder, "on.npz"), x=x, y=y, lengths=lengths)
    options = ["--encode", "rate", "--schedule", "constant", "--warmup", 0]
    run, _ = train(folder, "two", path, *options, "--epochs", 2)
    resumed = neap_json("train", "--resume", "--out", run, "--epochs", 4)
    _, whole = train(folder, "four", path, *options, "--epochs", 4)
    return None if resumed["weights_hash"] == whole["weights_hash"] else "other weights"


def static(folder):
    """Rows that last 40 steps: what snnTorch calls num_steps; classes of features that never change are learned."""
    r = np.random.default_rng(8)
    y = r.integers(0, 3, 240)
    x = (np.eye(3)[y].repeat(4, 1) + r.normal(size=(240, 12)) * 0.3)[:, None]
    path = write(os.path.join(folder, "static.h5"), x=x, y=y)
    for coding in "rate:repeat=40", "latency:repeat=40":
        run, done = train(folder, "static-" + coding[:4], path, "--encode", coding, "--epochs", 12)
        found = neap_json("eval", run, path)["accuracy"]
        if found < 0.95 or done["validation"]["accuracy"] < 0.8:
            return f"{coding}: accuracy {found}, {done['validation']}"
    return None


def next_step(folder):
    """Inputs are spikes, targets the normalised values of the step after."""
    x, lengths, _ = data()
    path = write(os.path.join(folder, "next.h5"), x=x, lengths=lengths)
    run, done = train(folder, "next", path, "--next-step", "--encode", "delta:threshold=0.5", "--precision", "double", "--net",
                      "lif:6r,li", "--lr", 0, "--batch", S, "--epochs", 1, "--validation", 0, "--rate-weight", 0)
    w, _ = tensors(os.path.join(run, "model.safetensors"))
    rows = np.concatenate([x[i, :n] for i, n in enumerate(lengths)])
    normal = ((x - rows.mean(0)) / rows.std(0)).astype("f4")
    given = torch.tensor(spikes("delta", normal))
    loss = loss_of(w, given, lengths - 1, torch.tensor(normal[:, 1:].astype("f8")), "series", "lif").item()
    again = neap_json("eval", run, path)["loss"]
    off = max(abs(loss - done["train_loss"]), abs(loss - again))
    return None if off < 1e-9 * loss else f"loss {done['train_loss']}, {again}, PyTorch {loss}"


def learns(folder):
    """Curves of three classes under noise: as well learned from spikes as from numbers, nearly."""
    r = np.random.default_rng(4)
    y = r.integers(0, 3, 300)
    t = np.arange(80)[None, :, None]
    curves = np.sin(t * r.uniform(0.05, 0.2, (3, 1, 8)) + r.uniform(0, 6.28, (3, 1, 8)))
    x = curves[y] + r.normal(size=(300, 80, 8)) * 0.05
    path = write(os.path.join(folder, "learn.h5"), x=x[:240], y=y[:240])
    test = write(os.path.join(folder, "learn-test.h5"), x=x[240:], y=y[240:])
    found = {}
    for coding in ["none", *KINDS]:
        _, done = train(folder, "learn-" + coding[:4], path, "--encode", coding, "--net", "lif:64r,li", "--epochs", 15, "--test", test)
        found[coding] = done["test"]["accuracy"]
    low = [c for c in found if found[c] < found["none"] - 0.1]
    return f"accuracies {found}" if low or found["none"] < 0.9 else None


def refused(folder):
    """What cannot be: one line, code 2, nothing written."""
    x, lengths, y = data()
    path = write(os.path.join(folder, "ok.h5"), x=x, y=y, lengths=lengths)
    steps = write(os.path.join(folder, "steps.h5"), x=x, y=np.zeros((S, T), int), lengths=lengths)
    spiking, _ = train(folder, "spiking", path, "--encode", "delta", "--epochs", 1)
    plain, _ = train(folder, "plain", path, "--epochs", 1)
    fewer = write(os.path.join(folder, "fewer.h5"), x=x[:, :, :4], y=y)
    never = ["--out", os.path.join(folder, "never")]
    whole = open(os.path.join(spiking, "model.safetensors"), "rb").read()
    for i, (old, new) in enumerate(((b"delta:thr", b"dalta:thr"), (b"off=1", b"off=7"), (b"repeat=1", b"repeat=x"))):
        bad = os.path.join(folder, f"bad{i}.safetensors")
        with open(bad, "wb") as file:
            file.write(whole.replace(old, new))
        for command in ["eval", "--from", bad, path], ["train", path, "--from", bad, *never]:
            done = neap(*command)
            if done.returncode != 2 or bad not in done.stderr or done.stderr.count("\n") != 1:
                return f"{command[0]} with {new}: code {done.returncode}, {done.stderr}"
    cases = [("is not one of none, delta, latency, rate, threshold; did you mean 'delta'?", ["train", path, "--encode", "dleta", *never]),
             ("has no key 'x'", ["train", path, "--encode", "delta:x=1", *never]),
             ("threshold=0 is not valid", ["train", path, "--encode", "delta:threshold=0", *never]),
             ("already are spikes", ["train", "randman", "--encode", "delta", *never]),
             ("already are spikes", ["train", "--text", os.path.abspath(__file__), "--encode", "rate", *never]),
             ("already are spikes", ["compare", "randman", "--encode", "delta"]),
             ("targets per step", ["train", steps, "--encode", "delta:repeat=2", *never]),
             ("augment spikes, but the samples", ["train", path, "--encode", "delta", "--jitter", "2ms", *never]),
             ("4 features, but the model was trained on 5", ["eval", spiking, fewer]),
             ("4 features", ["train", path, "--encode", "delta", "--test", fewer, *never]),
             ("'randman' contains spikes, but the model was trained on real numbers. Use another model, or pass an array", ["eval", spiking, "randman"]),
             ("'randman' contains spikes, but the model was trained on real numbers. Use another model, or pass an array", ["eval", plain, "randman"])]
    for says, command in cases:
        done = neap(*command)
        if done.returncode != 2 or says not in done.stderr or len(done.stderr.strip().splitlines()) != 1:
            return f"{says}: code {done.returncode}, {done.stderr}"
        if os.path.exists(never[1]):
            return f"{says}: something was written"
    return None


def helped(folder):
    """The help has the keys and defaults that run.json then has."""
    x, lengths, y = data()
    path = write(os.path.join(folder, "help.h5"), x=x, y=y, lengths=lengths)
    text = " ".join(neap("help", "train").stdout.split())
    for kind in "delta", "latency", "rate", "threshold":
        run, _ = train(folder, "help-" + kind, path, "--encode", kind, "--epochs", 1)
        written = json.load(open(os.path.join(run, "run.json"), encoding="utf-8"))["settings"]["encode"]
        keys = written.split(":")[1].split(",")
        said = text.split(f" {kind}, ")[1][:240] + text[text.index("repeat=1"):]
        lacks = [key for key in keys if key not in said]
        if lacks:
            return f"help of {kind} lacks {lacks}: {said[:200]}"
    return None


def main():
    with Folder() as folder, Tap() as tap:
        for coding in KINDS:
            if coding != "rate":
                tap.run(f"{coding}: PyTorch's loss and gradient of NumPy's spikes", agrees, folder, coding, "double")
            tap.run(f"{coding}: strategies, windows, threads: the same bits", same_bits, folder, coding)
            tap.run(f"{coding}: kept by run.json, model, --config, --from", kept, folder, coding)
        tap.run("--resume", goes_on, folder)
        tap.run("what --gain finds to arrive", gain, folder)
        tap.run("samples that are cut, calibrate, --memory-total", cut, folder)
        tap.run("rows that last many steps", static, folder)
        tap.run("the next step's values", next_step, folder)
        tap.run("learning", learns, folder)
        tap.run("what cannot be is refused", refused, folder)
        tap.run("help", helped, folder)


if __name__ == "__main__":
    main()
