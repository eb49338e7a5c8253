#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
`neap predict --every`: decisions about a recording or standard input while it is heard. The last one
is the answer of `predict` without it, to the bit; memory does not grow with the length; lines come
while the sound does.
"""
import csv
import glob
import io
import json
import os
import random
import resource
import select
import signal
import struct
import subprocess
import sys
import time
import wave

from harness import NEAP, Folder, Tap, data_dir, encode, neap, write_recordings, write_tone

READOUTS = ("mean", "sum", "last", "max", "softmax", "step")


def rows(text):
    return list(csv.reader(io.StringIO(text)))


def predict(*args, **more):
    done = neap("predict", "-q", *args, **more)
    assert done.returncode == 0 and done.stderr == "", done
    return rows(done.stdout)


def write_noise(path, seconds, rate=8000, channels=1, seed=1):
    draw = random.Random(seed)
    level, frames = 0.0, bytearray()
    for i in range(int(seconds * rate) * channels):
        if i % 400 == 0:
            level = draw.uniform(0, 9000)
        frames += struct.pack("<h", int(200 + draw.uniform(-level, level)))
    with wave.open(path, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(bytes(frames))
    return path


def train(folder, data, name, *more):
    run = os.path.join(folder, name)
    done = neap("train", data, "--epochs", "1", "--net", "lif:24r,li", "--batch", "8", "--memory", "4M", "--out", run, *more)
    assert done.returncode == 0, done.stderr
    return run


def check_times(lines, every, dt=0.001):
    """Decisions stand at every k-th step that ends by k times `every`, the last one at the end."""
    times = [float(row[1]) for row in lines]
    for k, at in enumerate(times[:-1]):
        assert abs(at - int((k + 1) * every / dt + 1e-6) * dt) < 1e-9, (k, at, every)
    assert times == sorted(set(times)), times
    return times


def last_is_the_answer(runs, sounds):
    for run in runs:
        for sound in sounds:
            whole = predict(run, sound)
            for every in ("1ms", "7.3ms", "100ms", "20s"):
                head, *lines = predict(run, sound, "--every", every)
                assert head == ["sample", "time", *whole[0][1:]], head
                assert lines[-1][0] == whole[1][0] and lines[-1][2:] == whole[1][1:], (run, sound, every)
                check_times(lines, float(every.rstrip("ms")) * (1 if every == "20s" else 1e-3))


def outputs_add_up(runs, sound):
    """With the same weights, what the readout `last` answers after each step makes what others do."""
    outputs = [list(map(float, row[5:])) for row in predict(runs["last"], sound, "--every", "1ms")[1:]]
    for kind in ("mean", "sum", "max"):
        found = predict(runs[kind], sound, "--every", "10ms")[1:]
        for row in found:
            steps = round(float(row[1]) * 1000)
            for c, score in enumerate(map(float, row[5:])):
                seen = [o[c] for o in outputs[:steps]]
                wanted = max(seen) if kind == "max" else sum(seen) / (steps if kind == "mean" else 1)
                assert abs(score - wanted) <= 1e-9 * max(map(abs, seen)) * (steps if kind == "sum" else 1), (kind, row, wanted)


def windows(runs, sound):
    """The answer to a window is made of the outputs of its steps alone."""
    outputs = [list(map(float, row[5:])) for row in predict(runs["last"], sound, "--every", "1ms")[1:]]
    for kind in ("mean", "sum", "max", "last"):
        found = predict(runs[kind], sound, "--every", "7ms", "--window", "70ms")[1:]
        assert len(found) > 100
        for k, row in enumerate(found):
            steps = round(float(row[1]) * 1000)
            for c, score in enumerate(map(float, row[5:])):
                seen = [o[c] for o in outputs[max(0, 7 * (k - 9)):steps]]
                wanted = {"max": max(seen), "sum": sum(seen), "mean": sum(seen) / len(seen), "last": seen[-1]}[kind]
                assert abs(score - wanted) <= 1e-9 * max(map(abs, seen)) * len(seen), (kind, row, wanted)
    for kind in READOUTS:  # a window that nothing leaves
        plain = predict(runs[kind], sound, "--every", "50ms")
        wide = predict(runs[kind], sound, "--every", "50ms", "--window", "1h")
        assert [row[:5] for row in plain] == [row[:5] for row in wide], kind
        for a, b in zip(plain[1:], wide[1:]):
            assert all(abs(float(x) - float(y)) <= 1e-9 * max(1e-9, abs(float(x))) for x, y in zip(a[5:], b[5:])), (kind, a, b)


def json_lines(run, sound):
    lines = neap("predict", run, sound, "--every", "50ms", "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    table = predict(run, sound, "--every", "50ms")[1:]
    assert [[str(a["sample"]), a["time"], str(a["prediction"]), a["scores"]] for a in found] == [
        [row[0], float(row[1]), row[3], list(map(float, row[5:]))] for row in table], found[0]
    assert all(abs(a["steps"] * 1e-3 - a["time"]) < 1e-9 and a["label"] == -1 for a in found), found


def piped(run, data, *args, piece=0):
    """The answers to bytes that come in pieces."""
    with subprocess.Popen([NEAP, "predict", run, "-", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        draw = random.Random(3)
        at = 0
        while piece and at < len(data):
            size = draw.randrange(1, piece)
            process.stdin.write(data[at:at + size])
            process.stdin.flush()
            at += size
        out, err = process.communicate(None if piece else data, timeout=120)
    return process.returncode, out.decode(), err.decode()


def adpcm(blocks=9):
    """A file of IMA ADPCM: blocks of 256 bytes that have 505 samples each."""
    draw = random.Random(1)
    data = b"".join(struct.pack("<hBB", 0, 20, 0) + draw.randbytes(252) for _ in range(blocks))
    parts = ((b"fmt ", struct.pack("<HHIIHHHH", 0x11, 1, 8000, 4055, 256, 4, 2, 505)), (b"fact", struct.pack("<I", 505 * blocks)), (b"data", data))
    body = b"WAVE" + b"".join(name + struct.pack("<I", len(part)) + part for name, part in parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def compressed_input(folder, run):
    """A file of blocks is answered for as a whole from a pipe, as from a file."""
    path = os.path.join(folder, "blocks.wav")
    with open(path, "wb") as file:
        file.write(adpcm())
    return None if piped(run, adpcm())[1] == neap("predict", run, path).stdout else "other answers"


def standard_input(folder, run, sound):
    with open(sound, "rb") as file:
        data = file.read()
    code, base, err = piped(run, data, "--every", "30ms")
    assert code == 0 and err == "" and len(base.splitlines()) > 10, (code, err)
    for piece in (40, 3000, 100000):
        assert piped(run, data, "--every", "30ms", piece=piece) == (0, base, ""), piece
    with open(sound, "rb") as file:
        assert neap("predict", run, "-", "--every", "30ms", stdin=file).stdout == base, "a file as standard input"
    # What a line says depends on what came before alone.
    begin = piped(run, data[:len(data) // 2 * 2 // 3], "--every", "30ms")[1].splitlines()
    assert begin[:-1] == base.splitlines()[:len(begin) - 1] and len(begin) > 5, begin[-2:]
    # Levels: a recording with one is read as standard input is.
    given = predict(run, sound, "--every", "30ms", "--level", "0.02")
    assert rows(piped(run, data, "--every", "30ms", "--level", "0.02")[1]) == given
    assert given != rows(base) and predict(run, sound, "--every", "30ms", "--level", "0.03") != given
    # Headers of programs that do not know how long they will record, and other kinds.
    for size in (0x7fffffff, 0x80000000, 0xffffffff):
        endless = data[:40] + struct.pack("<I", size) + data[44:]
        assert piped(run, endless, "--every", "30ms") == (0, base, ""), hex(size)
    extra = data[:36] + b"LIST" + struct.pack("<I", 70000) + bytes(70000) + data[36:]
    assert piped(run, extra, "--every", "30ms") == (0, base, ""), "a chunk before the sound"
    for bad, word in ((b"", "is not a recording"), (b"RIFF", "is not a recording"), (b"fLaC" + bytes(100), "is not a recording"),
                      (data[:44], "no samples"), (data[:30], "recording"), (adpcm(), "has compressed samples (IMA ADPCM)")):
        code, out, err = piped(run, bad, "--every", "30ms")
        assert code == 2 and out == "" and len(err.splitlines()) == 1 and word in err, (bad[:20], code, out, err)


def level_of(run, folder):
    """A recording's level is told, and standard input at that level is nearly the recording: but for the mean."""
    path = os.path.join(folder, "tone.wav")
    write_tone(path, 500, 1.0)
    done = neap("predict", run, path, "--every", "100ms")
    assert done.returncode == 0 and done.stderr.startswith("level ") and len(done.stderr.splitlines()) == 1, done.stderr
    level = done.stderr.split()[1]
    with wave.open(path) as file:
        x = struct.unpack("<8000h", file.readframes(8000))
    mean = sum(x) / len(x)
    y = [(b - mean - 0.95 * (a - mean)) / 32768 for a, b in zip((mean, *x), x)]
    assert abs(float(level) - (sum(v * v for v in y) / len(y)) ** 0.5) <= 1e-3 * float(level), level
    a, b = rows(done.stdout)[-1], predict(run, path, "--every", "100ms", "--level", level)[-1]
    a, b = list(map(float, a[5:])), list(map(float, b[5:]))
    assert a != b and all(abs(p - q) < 0.3 * max(map(abs, a)) for p, q in zip(a, b)), (a, b)
    two = os.path.join(folder, "two.wav")
    write_tone(two, 900, 1.0)
    both = neap("predict", run, path, two, "--every", "100ms").stderr.splitlines()
    assert [line.split(" of ")[1] for line in both] == [f"'{name}' (--level)" for name in (path, two)], both
    quiet = neap("predict", run, path, "--every", "100ms", "--quiet")
    assert quiet.stderr == "" and quiet.stdout == done.stdout


def arrays(folder, run, sound):
    try:
        import numpy
    except ImportError:
        return
    path = os.path.join(folder, "answers.npz")
    done = neap("predict", run, sound, "--every", "40ms", "--out", path, "-q")
    assert done.returncode == 0 and done.stderr == "", done
    found, table = numpy.load(path), predict(run, sound, "--every", "40ms")[1:]
    assert found["time"].tolist() == [float(row[1]) for row in table], found["time"]
    assert found["prediction"].tolist() == [int(row[3]) for row in table]
    assert found["scores"].tolist() == [list(map(float, row[5:])) for row in table]


def by_sample(lines, columns):
    found = {}
    for row in lines:
        found.setdefault(row[0], []).append(row[columns:])
    return found


def data_sets(folder, run, data):
    """Samples of a data set: a decision every so often in each, the last one is its answer."""
    whole = predict(run, data)
    for every, each in (("30ms", 9), ("1s", 1)):  # recordings last 0.25 s
        head, *lines = predict(run, data, "--every", every)
        assert head == ["sample", "time", *whole[0][1:]], head
        found = by_sample(lines, 2)
        assert list(found) == [row[0] for row in whole[1:]], list(found)
        assert all(len(answers) == each for answers in found.values()), found
        assert [answers[-1] for answers in found.values()] == [row[1:] for row in whole[1:]]
    try:
        import numpy
    except ImportError:
        return
    chance = numpy.random.default_rng(5)
    values = chance.normal(size=(12, 40, 3))
    targets = {"label": chance.integers(0, 3, 12), "labels": chance.integers(0, 3, (12, 40)),
               "numbers": chance.normal(size=(12, 2)), "series": chance.normal(size=(12, 40, 2))}
    for kind, y in targets.items():
        path = os.path.join(folder, kind + ".npz")
        numpy.savez(path, x=values, y=y)
        steps = kind in ("labels", "series")
        more = ["--loss", "mse"] if kind in ("numbers", "series") else []
        made = train(folder, path, "run_" + kind, *more, "--readout", "step" if steps else "mean", "--validation", "0")
        whole = predict(made, path)
        head, *lines = predict(made, path, "--every", "15ms")
        assert head == ["sample", "time", *whole[0][1:]], (kind, head)
        assert [row[1] for row in lines[:3]] == ["0.015", "0.03", "0.04"] and len(lines) == 36, (kind, lines[:4])
        for sample, answers in by_sample(lines, 2).items():
            mine = [row[1:] for row in whole[1:] if row[0] == sample]
            if steps:
                assert answers == [mine[14], mine[29], mine[39]], (kind, sample, answers)
            else:
                assert answers[-1] == mine[0], (kind, sample, answers)


def header(rate=8000):
    return (b"RIFF\xff\xff\xff\x7fWAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data\xff\xff\xff\x7f")


def peak(run, seconds):
    """Bytes that a sound of so many seconds takes, and how many decisions it got."""
    block = os.urandom(16000)
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen([NEAP, "predict", run, "-", "--every", "500ms", "--threads", "1"],
                                   stdin=subprocess.PIPE, stdout=nothing)
        process.stdin.write(header())
        for _ in range(seconds):
            process.stdin.write(block)
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return usage.ru_maxrss * 1024


def memory(folder, run):
    short, long = peak(run, 5), peak(run, 180)
    print(f"# {short / 2**20:.1f} MiB for 5 s, {long / 2**20:.1f} MiB for 180 s", flush=True)
    assert long < short + (2 << 20), (short, long)
    path = os.path.join(folder, "long.wav")
    write_noise(path, 5)
    with open(path, "r+b") as file:  # the same noise again and again: 10 minutes
        frames = file.read()[44:]
        file.seek(0)
        file.write(header()[:40] + struct.pack("<I", 24 * len(frames)))
        for _ in range(24):
            file.write(frames)
    process = subprocess.Popen([NEAP, "predict", run, path, "-q", "--every", "60s", "--threads", "1"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 and usage.ru_maxrss * 1024 < short + (2 << 20), (usage.ru_maxrss, short)
    os.unlink(path)


def read_line(process, seconds=20):
    """A line that is there before the sound ends."""
    assert select.select([process.stdout], [], [], seconds)[0], "no line came"
    return process.stdout.readline()


def while_it_is_heard(run):
    """Lines come with the sound; an interrupt ends a wait for more, a closed output the process."""
    sound = os.urandom(16000)
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([NEAP, "predict", run, "-", "--every", "250ms"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
            process.stdin.write(header() + sound)
            got = [read_line(process) for _ in range(4)]
            assert got[0].startswith(b"sample,time") and got[3].startswith(b"0,0.75,"), got
            process.stdin.write(sound)
            got = [read_line(process) for _ in range(4)]
            assert got[3].startswith(b"0,1.75,"), got
            process.send_signal(number)
            started = time.time()
            err = process.stderr.read().decode()
            assert process.wait(timeout=30) == 1 and len(err.splitlines()) == 1 and "interrupted" in err, err
            assert time.time() - started < 20
    for begin in (b"", b"RIFF", header()[:30]):  # a wait for the head ends, too
        with subprocess.Popen([NEAP, "predict", run, "-", "--every", "250ms"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
            process.stdin.write(begin)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            err = process.stderr.read().decode()
            assert process.wait(timeout=30) == 1 and "interrupted" in err, (begin, err)
    with subprocess.Popen([NEAP, "predict", run, "-", "--every", "10ms"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(header() + sound)
        read_line(process)
        process.stdout.close()
        try:
            for _ in range(40):
                process.stdin.write(sound)
        except BrokenPipeError:
            pass
        assert process.wait(timeout=30) == -signal.SIGPIPE and process.stderr.read() == b"", process.returncode


def refusals(folder, run, data, sound):
    for args, word in ((["--every", "0"], "out of range"), (["--every", "-1s"], "-1s"), (["--every", "100"], "no unit"),
                       (["--every", "0.5ms"], "step"), (["--level", "0.1"], "--every"),
                       (["--every", "1s", "--level", "0"], "out of range")):
        done = neap("predict", run, sound, *args)
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1, (args, done)
        assert word in done.stderr, (args, done.stderr)
    for source, word in ((os.path.join(folder, "missing.wav"), "missing.wav"), (os.path.join(folder, "fifo.wav"), "fifo.wav")):
        if word == "fifo.wav":
            os.mkfifo(source)
        out = os.path.join(folder, "out.csv")
        done = neap("predict", run, source, "--every", "1s", "--out", out)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and word in done.stderr, done
        assert not [name for name in os.listdir(folder) if name.startswith("out.csv")], os.listdir(folder)


def other_encoder(folder, run, data):
    """Recordings encoded with other settings than the training data get a warning, those with the same none."""
    for name, more, says in (("few", ["--channels", "16"], "encoded with channels 16"), ("high", ["--high", "3000"], "encoded with high 3000")):
        path = encode(os.path.join(folder, "wavs"), os.path.join(folder, name + ".h5"), *more)
        for command in "eval", "predict":
            done = neap(command, run, path)
            if done.returncode or says not in done.stderr:
                return f"{command} {more}: {done.returncode} {done.stderr}"
    done = neap("eval", run, data)
    return done.stderr if "encoded with" in done.stderr else None


def main():
    with Tap() as tap, Folder() as folder:
        wavs = os.path.join(folder, "wavs")
        write_recordings(wavs)
        data = encode(wavs, os.path.join(folder, "data.h5"))
        first = train(folder, data, "first", "--epochs", "2")
        # From there at so small a rate that the weights of all readouts are alike, but for rounding.
        runs = {kind: train(folder, data, kind, "--readout", kind, "--from", first, "--lr", "1e-15") for kind in READOUTS}
        tones = sorted(glob.glob(os.path.join(wavs, "*.wav")))[:1]
        noise = [write_noise(os.path.join(folder, "noise.wav"), 1.2),
                 write_noise(os.path.join(folder, "stereo.wav"), 0.51, 44100, 2),
                 write_noise(os.path.join(folder, "slow.wav"), 0.3, 16000)]
        tap.run("the last decision is the answer", last_is_the_answer, runs.values(), tones + noise)
        tap.run("decisions are those of the outputs", outputs_add_up, runs, noise[0])
        tap.run("windows", windows, runs, noise[0])
        tap.run("lines of JSON", json_lines, runs["mean"], noise[0])
        tap.run("standard input", standard_input, folder, runs["mean"], noise[0])
        tap.run("standard input in blocks", compressed_input, folder, runs["mean"])
        tap.run("a level is told", level_of, runs["mean"], folder)
        tap.run("arrays", arrays, folder, runs["mean"], noise[0])
        tap.run("samples of data sets", data_sets, folder, runs["mean"], data)
        tap.run("memory does not grow", memory, folder, runs["mean"])
        tap.run("lines come while it is heard", while_it_is_heard, runs["mean"])
        tap.run("refusals", refusals, folder, runs["mean"], data, noise[0])
        tap.run("another encoder", other_encoder, folder, runs["mean"], data)
        digits = data_dir() and sorted(glob.glob(os.path.join(data_dir(), "data", "fsdd", "test", "*.wav")))
        if digits:
            tap.run("real recordings", last_is_the_answer, [runs["mean"], runs["max"]], digits[::60])
        else:
            tap.skip("real recordings", "no NEAP_DATA")
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
