#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Bad input of every kind: each case must end with exit code 2 and one line on
standard error that names the command, print nothing on standard output and
leave nothing behind. Options are read from --help, so a new one is covered by
being there.
"""
import io
import json
import os
import re
import shutil
import struct
import sys
import zipfile

from harness import Folder, Tap, encode, neap, write_recordings, write_tone

BIG = "9223372036854775808"
NUMBER_ARGUMENTS = {"N", "T", "C", "BYTES", "TIME", "NUMBER", "RATE", "HZ", "X", "SHARE", "P"}
NEGATIVE_IS_FINE = {"reset-value", "lower"}
ZERO_IS_BAD = {
    "plan": ["state", "chunk", "checkpoints", "remote-chunk"],
    "train": ["epochs", "batch", "dt", "memory", "chunk", "width", "tau", "density"],
    "compare": ["batch", "dt", "memory", "chunk", "repeats"],
    "encode": ["channels"],
    "eval": ["dt"],
    "predict": ["dt", "every", "level", "window"],
    "calibrate": ["batch", "dt", "memory", "timed", "repeats"],
    "bench": ["runs"],
}


def snapshot(folder):
    """Paths below the folder and their sizes."""
    found, folders = [], [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                found.append((entry.path[len(folder) + 1:], entry.stat().st_size if entry.is_file() else 0))
    return sorted(found)


def clean(folder, before):
    """Removes what a case left behind, so that the next one starts from the same."""
    for path, _ in sorted(set(snapshot(folder)) - set(before), reverse=True):
        whole = os.path.join(folder, path)
        if os.path.isdir(whole):
            shutil.rmtree(whole, ignore_errors=True)
        elif os.path.exists(whole):
            os.unlink(whole)


def refused(folder, before, *args, needle=None, env=None):
    """before: the snapshot of the folder, the same for all cases."""
    problem = one_line(folder, before, *args, needle=needle, env=env)
    if problem:
        clean(folder, before)
    return problem


def one_line(folder, before, *args, needle=None, env=None):
    done = neap(*args, cwd=folder, timeout=60, env=env)
    lines = done.stderr.splitlines()
    after = snapshot(folder)
    if done.returncode != 2:
        return f"exit {done.returncode}, stderr: {done.stderr[-300:]}"
    if len(lines) != 1 or not lines[0].startswith("neap"):
        return f"{len(lines)} lines: {done.stderr[-300:]}"
    if done.stdout:
        return f"standard output: {done.stdout[:100]}"
    if needle and needle not in lines[0]:
        return f"'{needle}' is not named: {lines[0]}"
    if after != before:
        return f"left behind: {set(after) ^ set(before)}"
    return None


def options_of(command):
    """[(name, argument or None)] from --help."""
    found = []
    for line in neap(command, "--help").stdout.splitlines():
        match = re.match(r"  (?:-\w, )?--([a-z0-9-]+)(?: (\S+))?  ", line + "  ")
        if match and match.group(1) not in ("help", "quiet"):
            found.append((match.group(1), match.group(2)))
    return found


def option_cases(command, base):
    """(arguments, needle) for every option of a command and every bad value."""
    for name, argument in options_of(command):
        option = f"--{name}"
        rest = list(base)
        if option in rest:  # said by the base already: take it out
            at = rest.index(option)
            del rest[at:at + 2]
        if argument is None:
            yield rest + [f"{option}=1"], option
            continue
        yield rest + [option], option
        yield rest + [option, ""], option
        if argument in NUMBER_ARGUMENTS:
            for value in ("banana", "nan", BIG + "000000000000", "1x"):
                yield rest + [option, value], option
            if name not in NEGATIVE_IS_FINE:
                yield rest + [option, "-1"], option
            if name in ZERO_IS_BAD.get(command, ()):
                yield rest + [option, "0"], option
    yield list(base) + ["--no-such-option"], "--no-such-option"
    yield list(base) + ["-x"], "-x"
    yield list(base) + ["one", "two", "three", "four"], \
        "one" if command in ("study", "plot", "predict", "encode") else "unexpected"  # several names: other messages


def small_cases():
    """What the tables do not reach: (arguments, needle)."""
    plan = ["plan", "--steps", "10", "--state", "1K", "--tape", "1K", "--memory", "1M"]
    yield ["frobnicate"], "frobnicate"
    yield ["plan"], "--steps"
    yield [*plan, "--alpha", "1us"], "require --ranks P"
    yield [*plan, "--ranks", "2", "--beta", "fast"], "--beta: 'fast' is not a rate"
    yield [*plan, "--ranks", "0"], "--ranks: '0' is out of range"
    yield [*plan, "--ranks", "2", "--parameters", "-1"], "--parameters"
    yield plan + ["--strategy", "banana"], "banana"
    yield plan + ["--slots", "3"], "--slots"
    yield plan + ["--json", "--actions"], "--actions"
    yield plan + ["--draw", "/nonexistent/dir/x.svg"], "/nonexistent"
    yield plan + ["--draw", "."], "."
    for tier in (":", "disk:capacity=", "disk:capacity=x", "disk:write=0", "disk:write=nan",
                 "disk:speed=1", "disk:latency=-1", "disk:slots=3", "disk:write",
                 "a-name-that-is-far-too-long-for-a-tier:", "disk:sync=1"):
        yield plan + ["--tier", tier], "--tier"
    yield plan + ["--tier", "a"] * 9, "--tier"
    for state in ("1Q", "K", "1KK", "0x10", " 1", "1 ", "1e400", "--state"):
        yield ["plan", "--steps", "10", "--state", state, "--tape", "1K", "--memory", "1M"], \
            "--state"
    for net in ("lif", "lif:256r", "lif:0,li", "lif:-1,li", "lif:99999999r,li",
                "banana:256,li", "lif:256r,,li", "lif:256r,li,li", "li,lif:256r", ",", "lif:xr,li",
                "lif:256r:reset=banana,li", "lif:256r:tau=0,li", "lif:256r:nokey=1,li",
                "lif:256r:tau,li", "lif:256rr,li", "cubalif:256r:reset=zero,li",
                "alif:256r:tau_adapt=0,li", "adlif:256r:b=banana,li",
                "rnn:256:activation=gelu,li", "lstm:256:tau=1ms,li", "egru:256:reset=zero,li"):
        yield ["train", "train.h5", "--net", net, "--epochs", "1", "--memory", "8M"], "--net"
        yield ["compare", "train.h5", "--net", net, "--memory", "8M"], "--net"
    for name in ("missing.h5", "empty", "text", "folder", "tone.wav", "pipe", "randman:",
                 "randman:classes=0", "randman:banana=1", "randman:classes", "randman:steps=50,steps=60",
                 "randman:part=test,part=test", "randman:units=-1", "volleys:", "volleys:task=and", "volleys:gap=-1",
                 "volleys:gap", "volleys:banana=1", "volleys:units=0", "volleys:classes=1.5", "volleys:part=both",
                 "volleys:task=lag,task=xor", "volleys:gap=5,gap=6", "volleys:samples=" + BIG,
                 "randman:samples=" + BIG):
        yield ["train", name, "--epochs", "1", "--memory", "8M"], name.split(":")[0]
        yield ["compare", name, "--memory", "8M"], name.split(":")[0]
        yield ["eval", "run", name], name.split(":")[0]
    for run in ("missing", "folder", "text", "empty", "tone.wav", "pipe"):
        yield ["eval", run, "train.h5"], run
    yield ["eval"], "missing"
    yield ["eval", "run"], "missing"
    yield ["predict", "run"], "missing"
    yield ["predict", "run", "train.h5", "--spikes", "s.npz", "--layer", "7"], "no layer '7'"
    yield ["predict", "run", "train.h5", "--membranes", "m.npz", "--layer", "layer0x"], "no layer 'layer0x'"
    yield ["predict", "run", "train.h5", "--spikes", "s.npz", "--layer", "readout"], "no spikes"
    yield ["predict", "run", "train.h5", "--spikes", "s.npz", "--out", "s.npz"], "two archives"
    yield ["predict", "run", "train.h5", "--spikes", "s.csv"], ".npz"
    yield ["predict", "run", "train.h5", "--membranes", "/nonexistent/m.npz"], "/nonexistent/m.npz"
    yield ["predict", "run", "train.h5", "--plot", "f.pdf"], ".svg"
    yield ["predict", "run", "train.h5", "--plot", "/nonexistent/f.png"], "--plot: "
    yield ["predict", "run", "train.h5", "--sample", "24", "--spikes", "s.npz"], "no sample 24"
    yield ["predict", "run", "tone.wav", "--every", "100"], "no unit"
    yield ["predict", "run", "tone.wav", "--every", "0.9ms"], "a time step of the model"
    yield ["predict", "run", "tone.wav", "--level", "0.1"], "--every"
    yield ["predict", "run", "tone.wav", "--window", "1s"], "--every"
    yield ["predict", "run", "tone.wav", "--every", "30ms", "--window", "100ms"], "--window is 0.1 s"
    yield ["predict", "run", "tone.wav", "--every", "30ms", "--window", "10ms"], "--window is 0.01 s"
    yield ["predict", "run", "train.h5", "--every", "1s", "--level", "0.1"], "applies to a recording or to standard input"
    yield ["predict", "run", "train.h5", "--every", "0.9ms"], "a time step of the model"
    yield ["predict", "run", "missing.wav", "--every", "1s"], "missing.wav"
    yield ["predict", "run", "-", "--every", "1s"], "is not a recording"
    yield ["predict", "run", "tone.wav", "--every", "1s", "--spikes", "s.npz"], "cannot be combined with --spikes"
    yield ["predict", "run", "tone.wav", "--every", "1s", "--out", "folder"], "folder"
    yield ["train"], "missing"
    yield ["compare"], "missing"
    yield ["encode"], "missing"
    yield ["train", "train.h5", "--out", "broken"], "broken"
    yield ["train", "train.h5", "--out", "text"], "text"
    yield ["train", "train.h5", "--out", "/nonexistent/dir/run"], "/nonexistent"
    yield ["train", "train.h5", "--out", "/proc/run"], "/proc/run"
    yield ["train", "train.h5", "--out", "r", "--memory", "1K"], "Use at least"
    yield ["train", "randman:steps=100000000,samples=8192,spikes=20,units=10", "--net", "lif:64r,li", "--batch", "8192",
           "--memory", "1000T", "--strategy", "bptt", "--out", "r"], "but this machine has "
    yield ["train", "train.h5", "--out", "r", "--memory", "8M", "--slow", "/nonexistent"], \
        "/nonexistent"
    yield ["train", "train.h5", "--out", "r", "--memory", "8M", "--slow", "mem:"], "mem:"
    yield ["train", "train.h5", "--out", "r", "--memory", "8M", "--slow", "mem:banana"], "banana"
    yield ["train", "train.h5", "--out", "r", "--memory", "8M", "--slow", "pinned:1M"], "needs a CUDA device"
    yield ["train", "train.h5", "--out", "r", "--memory", "8M", "--slow", "/dev/shm"], "/dev/shm"
    yield ["train", "train.h5", "--out", "r", "--memory", "8M", "--slow", "mem:1K"], "Use at least"
    yield ["train", "train.h5", "--out", "r", "--holdout", "nobody"], "nobody"
    for span in ("banana", "1.2:0.8", "0.9:", ":1.1", "0.9:1.1x", "0.9:nan", "1", "-0.1", "0:1"):
        yield ["train", "train.h5", "--out", "r", f"--stretch={span}"], "--stretch"
    yield ["train", "train.h5", "--out", "r", "--stretch", "0.001:1"], "stretch"
    yield ["train", "train.h5", "--out", "r", "--stretch", "1:1000"], "stretch"
    yield ["train", "train.h5", "--out", "r", "--test", "missing.h5"], "missing.h5"
    yield ["train", "train.h5", "--out", "r", "--strategy", "banana"], "banana"
    yield ["train", "train.h5", "--out", "r", "--optimizer", "banana"], "banana"
    yield ["train", "train.h5", "--out", "r", "--strategy", "double", "--memory", "8M"], \
        "double: needs a slow tier"
    yield ["train", "train.h5", "--out", "r", "--stretch", "0.5:1000"], "--stretch"
    yield ["compare", "train.h5", "--memory", "1K"], "Use at least"
    yield ["compare", "train.h5", "--strategy", "banana"], "banana"
    yield ["encode", "missing", "--out", "x.h5"], "missing"
    yield ["encode", "empty", "--out", "x.h5"], "empty"
    yield ["encode", "folder", "--out", "x.h5"], "folder"
    label = ["--label", "([0-9]+)_.*"]
    yield ["encode", "wavs", "--out", "/nonexistent/x.h5", *label], "/nonexistent"
    yield ["encode", "wavs", "--out", "folder", *label], "folder"
    yield ["encode", "wavs", "--out", "train.h5", *label], "train.h5"
    yield ["encode", "wavs", "--out", "x.h5", "--label", "("], "--label"
    yield ["encode", "wavs", "--out", "x.h5", "--label", "nothing(x)"], "nothing(x)"
    yield ["encode", "wavs", "--out", "x.h5", "--label", "[0-9]_.*"], "--label"
    yield ["encode", "wavs", "--out", "x.h5", "--channels", "701"], "--channels"
    yield ["encode", "wavs", "--out", "x.h5", "--low", "4000"], "low"
    yield ["encode", "broken", "--out", "x.h5", "--label", "([0-9]+)_.*", "--strict"], "0_a_0.wav"
    yield ["encode", "wavs", "--out", "x.h5", *label, "--split", "missing"], "missing"
    yield ["encode", "wavs", "--out", "x.h5", *label, "--classes", "0"], "--classes"
    yield ["encode", "wavs", "--out", "x.h5", *label, "--classes", "missing"], "missing"
    yield ["encode", "wavs", "--out", "x.h5", *label, "--sensor", "34x34"], "--sensor"
    yield ["encode", "wavs", "--out", "x.h5", "--crop", "x"], "--crop"


def cut(path, out, bytes_kept):
    with open(path, "rb") as whole, open(out, "wb") as part:
        part.write(whole.read(bytes_kept))


def patched(path, out, old, new):
    with open(path, "rb") as whole:
        data = whole.read()
    assert old in data, old
    with open(out, "wb") as part:
        part.write(data.replace(old, new))


def file_cases(folder):
    """Every format cut at many places, and with parts missing: (arguments, needle)."""
    size = os.path.getsize(os.path.join(folder, "train.h5"))
    places = sorted({0, 1, 7, 8, 9, 16, 24, 40, 48, 56, 95, 96, 97, 100, 136, size - 1, size - 2}
                    | {size * k // 24 for k in range(1, 24)})
    for n in places:
        name = f"cut{n}.h5"
        cut(os.path.join(folder, "train.h5"), os.path.join(folder, name), n)
        yield ["train", name, "--out", "r", "--epochs", "1", "--memory", "8M"], name
    for old, new in ((b"labels", b"lxbels"), (b"spikes", b"spxkes"), (b"times", b"txmes"),
                     (b"units", b"uxits")):
        name = f"no-{old.decode()}.h5"
        patched(os.path.join(folder, "train.h5"), os.path.join(folder, name), old, new)
        yield ["train", name, "--out", "r", "--epochs", "1", "--memory", "8M"], name
    model = os.path.join(folder, "run", "model.safetensors")
    whole = open(model, "rb").read()
    header = 8 + int.from_bytes(whole[:8], "little")
    marks = {m.start() + d for m in re.finditer(rb'[{}:,"\[\]]', whole[:header]) for d in (0, 1)}
    marks = sorted(marks)[:: max(1, len(marks) // 40)]
    for n in sorted({0, 1, 7, 8, 9, header - 1, header, header + 1, len(whole) - 1, *marks}):
        name = f"cut{n}.safetensors"
        cut(model, os.path.join(folder, name), n)
        yield ["eval", name, "train.h5"], name
    for name, data in (("long", whole + b"\0"), ("huge", b"\xff" * 8 + whole[8:]),
                       ("json", whole[:8] + b"[" + whole[9:])):
        with open(os.path.join(folder, name + ".safetensors"), "wb") as out:
            out.write(data)
        yield ["eval", name + ".safetensors", "train.h5"], name
    wav = os.path.join(folder, "wavs", "0_a_0.wav")
    for n in (0, 1, 4, 8, 12, 16, 20, 24, 36, 40):
        name = f"cutwav{n}"
        os.mkdir(os.path.join(folder, name))
        cut(wav, os.path.join(folder, name, "0_a_0.wav"), n)
        yield ["encode", name, "--out", "x.h5", "--label", "([0-9]+)_.*", "--strict"], "0_a_0.wav"


def dense_cases(folder):
    """Arrays, texts and tables that are cut or not what they should be."""
    base = ["--net", "gru:4,li", "--out", "r", "--epochs", "1", "--memory", "8M"]

    def write(name, data):
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data)
        return name
    table = b'id,v,"w ""x""",y\na,1,2,0\na,3,"4",0\nb,5,6e0,1\n'
    write("good.csv", table)
    neap("encode", "good.csv", "--out", "dense.h5", "--sample-column", "id", "--target", "y", cwd=folder)
    whole = open(os.path.join(folder, "dense.h5"), "rb").read()
    for n in sorted({len(whole) - 1, *(len(whole) * k // 24 for k in range(24))}):
        yield ["train", write(f"dense{n}.h5", whole[:n]), *base], f"dense{n}.h5"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, shape, code, values in (("x", "(2, 2, 1)", "<f8", struct.pack("<4d", 1, 2, 3, 4)),
                                          ("y", "(2,)", "<i4", struct.pack("<2i", 0, 1))):
            head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)
    whole = packed.getvalue()
    for n in sorted({len(whole) - 1, *(len(whole) * k // 24 for k in range(24))}):
        yield ["train", write(f"dense{n}.npz", whole[:n]), *base], f"dense{n}.npz"
    for shape in (b"(2, 2, 9)", b"(9, 2, 1)", b"(2, 2,-1)"):
        name = f"shape{shape[1:8:3].decode()}.npz"
        yield ["train", write(name, whole.replace(b"(2, 2, 1)", shape)), *base], name
    for name, data in (("empty.txt", b""), ("one.txt", b"a"), ("latin1.txt", b"caf\xe9 caf\xe9"), ("zero.txt", b"a\0b"),
                       ("cut.txt", "a→".encode()[:-1]), ("surrogate.txt", b"ab\xed\xa0\x80")):
        yield ["train", "text:" + write(name, data), *base], name
    yield ["train", "text:missing.txt", *base], "missing.txt"
    yield ["train", "text:steps=0:empty.txt", *base], "steps=N"
    yield ["train", "text:steps=9", *base], "steps=N"
    for n in range(len(table)):  # a cut at a line's end is a shorter table
        if table[n - 1:n + 1].find(b"\n") < 0 and n < table.index(b"0"):
            yield ["encode", write(f"cut{n}.csv", table[:n]), "--out", "x.h5", "--sample-column", "id", "--target",
                   "y"], f"cut{n}.csv"
    yield ["train", "good.csv", *base], "neap encode"
    spiking = ["train", "dense.h5", "--net", "lif:4,li", "--out", "r", "--epochs", "1", "--memory", "8M", "--encode"]
    for coding, said in (("banana", "banana"), ("", "the value is empty"), ("delta:", "KEY=VALUE"), ("delta:off", "KEY=VALUE"),
                         ("delta:off=2", "off=2"), ("delta:x=1", "no key 'x'"), ("delta:threshold=nan", "threshold=nan"),
                         ("rate:gain=1,gain=1", "twice"), ("rate:seed=-1", "seed=-1"), ("latency:period=-1", "period=-1"),
                         ("latency:linear=0,threshold=0", "linear=0"), ("threshold:level=", "level="), ("delta:repeat=0", "repeat=0"),
                         ("delta:repeat=1e300", "repeat=1e300")):
        yield [*spiking, coding], said
    yield ["train", "train.h5", *base, "--encode", "rate"], "already are spikes"
    yield ["train", "text:good.csv", *base, "--encode", "rate"], "already are spikes"
    yield ["compare", "train.h5", "--memory", "8M", "--encode", "rate"], "already are spikes"
    yield ["calibrate", "train.h5", "--encode", "rate"], "already are spikes"
    for number, config in enumerate(('{"encode": "banana"}', '{"encode": 1}', '{"encode": "delta:off=9"}')):
        write(f"coding{number}.json", config.encode())
        yield ["train", "dense.h5", "--out", "r", "--config", f"coding{number}.json"], ("banana", "encode", "off=9")[number]
    yield ["encode", "good.csv", "--out", "x.h5", "--sensor", "3x3"], "--sensor"
    yield ["encode", "wavs", "--out", "x.h5", "--target", "y"], "--target"
    for option in ["--channels", "3"], ["--low", "90"], ["--concat", "1s"]:  # once taken and without effect
        yield ["encode", "good.csv", "--out", "x.h5", *option], option[0] + " applies to recordings of sound"
    for option in ["--polarity", "on"], ["--time-unit", "1ms"], ["--header", "no"], ["--numbers"]:
        yield ["encode", "wavs", "--out", "x.h5", *option], option[0] + " applies to "
    yield ["encode", "good.csv", "--out", "x.h5", "--labels", "missing.csv"], "missing.csv"


def nir_cases(folder):
    """Graphs in NIR cut at many places, with other names and types inside, and what cannot be exported."""
    whole = os.path.join(folder, "sound.nir")
    neap("export", "hard", "--nir", "sound.nir", cwd=folder)
    size = os.path.getsize(whole)
    for n in sorted({0, 1, 7, 8, 9, 48, 95, 96, size - 1, size - 2} | {size * k // 24 for k in range(1, 24)}):
        cut(whole, os.path.join(folder, f"cut{n}.nir"), n)
        yield ["eval", f"cut{n}.nir", "train.h5"], f"cut{n}.nir"
    for i, (old, new, said) in enumerate(((b"NIRGraph", b"NIRgraph", "NIRGraph"), (b"Affine\0", b"Affino\0", "Affino"),
                                          (b"LIF\0", b"LIX\0", "LIX"), (b"LI\0", b"XI\0", "XI"),
                                          (b"layer0.cell\0", b"layer9.cell\0", "not a node"))):
        patched(whole, os.path.join(folder, f"other{i}.nir"), old, new)
        yield ["eval", "--from", f"other{i}.nir", "train.h5"], said
        yield ["train", "train.h5", "--from", f"other{i}.nir", "--out", "r"], said
    yield ["eval", "--from", "sound.nir", "randman:units=50"], "channels"
    yield ["eval", "run", "--from", "sound.nir", "train.h5"], "--from"
    yield ["eval", "--from", "train.h5", "train.h5"], "train.h5"
    yield ["eval", "--dt", "1ms", "run", "train.h5"], "NIR"
    yield ["eval", "--from", "sound.nir", "--dt", "1s", "train.h5"], "specifies a time step of"
    yield ["train", "train.h5", "--from", "sound.nir", "--dt", "1s", "--out", "r"], "shorter than the time step"
    yield ["train", "train.h5", "--from", "missing.nir"], "missing.nir"
    yield ["export", "run", "--nir", "x.nir"], "layer0 has reset=subtract"
    yield ["export", "hard"], "--nir"
    yield ["export", "missing", "--nir", "x.nir"], "missing"
    yield ["export", "hard", "--nir", "/nonexistent/x.nir"], "/nonexistent"
    yield ["export", "hard", "--nir", "folder"], "folder"
    yield ["export", "hard", "--nir", "pipe"], "pipe"


def resume_cases(folder):
    """A run folder whose snapshot is damaged or belongs to other settings."""
    base = ["train", "train.h5", "--net", "lif:16r,li", "--epochs", "1", "--memory", "8M",
            "--batch", "8"]
    for n in (0, 5, 8, 60):
        name = f"run-cut{n}"
        shutil.copytree(os.path.join(folder, "run"), os.path.join(folder, name))
        last = os.path.join(folder, name, "last.safetensors")
        cut(os.path.join(folder, "run", "last.safetensors"), last, n)
        yield base + ["--out", name, "--resume"], "last.safetensors"
    for option, value in (("--net", "lif:17r,li"), ("--seed", "99"), ("--batch", "9"),
                          ("--dt", "2ms"), ("--optimizer", "sgd")):
        yield base + [option, value, "--out", "run", "--resume"], option.lstrip("-")


GOOD_CHAIN = {"advance": [1, 2], "backward": [1, 1, 1], "state": [1, 2, 3], "tape": [4, 5]}


def chain_cases(folder):
    """Chain files with one thing wrong: (arguments, the file's name and the place)."""
    bad = [("tape", None), ("tape", [4]), ("tape", [4, 5, 6]), ("tape", [4, -1]),
           ("tape", [4, 0.5]), ("tape", [4, 1e30]), ("tape", "4"), ("tape", [1, 5]),
           ("state", []), ("state", [1, 2, [3]]), ("advance", [1, -1]), ("advance", {}),
           ("backward", [1, 1]), ("record", [True, 1]), ("advance_tmp", [1]),
           ("backward_tmp", [0, 0, 1e19]), ("steps", 3), ("steps", -1), ("steps", 1.5),
           ("tape_holds_output", 1), ("adjoint", "x"), ("slot_read", -1), ("tiers", {}),
           ("tiers", [1]), ("tiers", [{}]), ("tiers", [{"name": ""}]),
           ("tiers", [{"name": "d", "write": 0}]), ("tiers", [{"name": "d", "speed": 1}]),
           ("tiers", [{"name": "d", "capacity": -1}]), ("tiers", [{"name": "d"}] * 9),
           ("banana", 1)]
    texts = [(key, json.dumps({k: v for k, v in {**GOOD_CHAIN, key: value}.items()
                               if v is not None})) for key, value in bad]
    texts += [("not valid JSON", text) for text in ("", "{", "{} x", "[1", '{"steps": nan}')]
    texts += [("object", "[]"), ("object", "1"), ("advance is missing", "{}"),
              ("twice", '{"steps": 1, "steps": 1}'),
              ("line 2", '{"tiers": [{"name": "d",\n"name": "e"}]}'),
              ("line 3", '{"steps":\n\n1,}'), ("integer", '{"steps": 18446744073709551616}'), ("not a text file", json.dumps(GOOD_CHAIN) + "\0")]
    for i, (place, text) in enumerate(texts):
        name = f"chain{i}.json"
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        yield ["plan", "--chain", name, "--memory", "100"], place
    with open(os.path.join(folder, "good.json"), "w") as file:
        json.dump(GOOD_CHAIN, file)
    yield ["plan", "--chain", "good.json"], "--memory"
    yield ["plan", "--chain", "good.json", "--memory", "100", "--steps", "2"], "--chain"
    for name in ("missing.json", "folder", "tone.wav"):
        yield ["plan", "--chain", name, "--memory", "100"], name
    for steps in ("1,", ",1", "1,2,3", "0,1", "1,0", "1,-1", "1,x"):
        yield ["plan", "--steps", steps, "--slots", "5"], "--steps"
    yield ["plan", "--steps", "4,4", "--state", "1K", "--tape", "1K", "--memory", "1M", "--slots", "3"], "--slots"


def main():
    with Tap() as tap, Folder() as folder:
        write_recordings(os.path.join(folder, "wavs"))
        os.mkdir(os.path.join(folder, "folder"))
        os.mkdir(os.path.join(folder, "broken"))
        open(os.path.join(folder, "broken", "0_a_0.wav"), "w").write("not a recording at all\n")
        open(os.path.join(folder, "empty"), "w").close()
        open(os.path.join(folder, "text"), "w").write("hello\nworld\n" * 100)
        write_tone(os.path.join(folder, "tone.wav"), 440)
        os.mkfifo(os.path.join(folder, "pipe"))
        encode(os.path.join(folder, "wavs"), os.path.join(folder, "train.h5"))
        done = neap("train", "train.h5", "--net", "lif:16r,li", "--epochs", "1", "--memory",
                    "8M", "--batch", "8", "--out", "run", cwd=folder)
        hard = neap("train", "train.h5", "--net", "lif:9:reset=hard,li", "--epochs", "1", "--memory", "8M", "--out",
                    "hard", cwd=folder)
        if done.returncode != 0 or hard.returncode != 0:
            tap.check("small runs to damage", done.stderr + hard.stderr)
            return
        bases = {
            "plan": ["plan", "--steps", "10", "--state", "1K", "--tape", "1K", "--memory", "1M"],
            "train": ["train", "train.h5", "--net", "lif:16r,li", "--epochs", "1", "--memory",
                      "8M", "--out", "r"],
            "compare": ["compare", "train.h5", "--net", "lif:16r,li", "--memory", "8M"],
            "eval": ["eval", "run", "train.h5"],
            "predict": ["predict", "run", "train.h5"],
            "plot": ["plot", "run", "--out", "x.svg"],
            "export": ["export", "hard", "--nir", "x.nir"],
            "encode": ["encode", "wavs", "--out", "x.h5", "--label", "([0-9]+)_.*"],
            "calibrate": ["calibrate", "train.h5", "--net", "lif:16r,li", "--out", "c.json"],
            "bench": ["bench", "planner", "--only", "revolve"],
            "study": ["study", "schedules", "--tiny", "--out", "s"],
        }
        commands = set(re.findall(r"^  (\w+) ", neap("--help").stdout, re.MULTILINE))
        tap.check("every command has cases", None if commands == set(bases) else f"{commands ^ set(bases)}")
        cases = list(small_cases())
        for command, base in bases.items():
            cases += option_cases(command, base)
        cases += chain_cases(folder)
        cases += file_cases(folder)
        cases += nir_cases(folder)
        cases += dense_cases(folder)
        cases += resume_cases(folder)
        before = snapshot(folder)
        for args, needle in cases:
            tap.run(" ".join(args)[-150:], lambda a=args, n=needle: refused(folder, before, *a, needle=n))
        for command in ("train", "compare", "eval", "calibrate"):
            tap.run(f"NEAP_ISA=sse9 {command}",
                    lambda c=command: refused(folder, before, *bases[c], needle="NEAP_ISA='sse9'",
                                              env={"NEAP_ISA": "sse9"}))
        enough = len(cases) >= 150
        tap.check("at least 150 cases", None if enough else f"{len(cases)}")


main()
