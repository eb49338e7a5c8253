#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Slips with data, listed in slips_data.txt: each row is a call as a new user may type it. An error is one line with exit code
2 that leaves no file; a warning is one line of a command that succeeds. Each line shows what was given and what to do: options
that exist, and commands that work as they stand.

Rows: `CODE | ARGUMENTS | WORDS | WORDS ...`, where the line has all WORDS. Below a row, `+ shell` (or the last one: `+ shell last`) and `+ python` run the shell
command or the Python of the line, `+ proposed NAME=VALUE ...` its `neap` command, with words in capitals replaced, and `+ ARGUMENTS` a call of neap. All of them
must succeed without a warning.
"""
import os
import re
import shlex
import subprocess
import sys
import unicodedata
import wave

from harness import Folder, Tap, neap, need

need("numpy", "h5py")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = ["--epochs", "1", "--memory", "4M", "--threads", "1", "-q", "--net", "gru:4,li", "--validation", "0"]
STEPS = re.compile(  # what to do, or what is accepted
    r"\b(add|change|check|convert|copy|correct|create|cut|decrease|delete|encode|encodes|fill|increase|insert|join|leave|list|lower|make|makes|move|name|needs|number"
    r"|pass|passed|put|reduce|remove|rename|resample|restore|rewrite|save|separate|shorten|sort|split|subtract|unpack|use|write)\b|did you mean|must be|such as"
    r"|between|was filled in by|is not one of|its columns are|expected|has examples|lists|text:steps=", re.IGNORECASE)
rng = np.random.default_rng(1)


def write(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())


def sound(path, hertz=600, rate=8000, silent=False, count=1200):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with wave.open(path, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        tone = 9000 * np.sin(np.arange(count) * 2 * np.pi * hertz / rate) * (not silent)
        out.writeframes(tone.astype("<i2").tobytes())


def sounds():
    """Folders of recordings, and what is put among them by mistake."""
    for k, kind in enumerate(("cat", "dog")):
        for i in range(3):
            for folder in "pets", "torn", "slow", "mute", "parts/train", "parts/test":
                sound(f"{folder}/{kind}/{i}.wav", 500 + 700 * k + 20 * i)
            sound(f"flat/{kind}_{i}.wav", 500 + 700 * k + 20 * i)
            sound(f"num/{k * 3 + i:03}.wav", 500 + 700 * k + 20 * i)
    for i in range(6):
        sound(f"sorted-by/{i}.wav", 500 + 200 * i)
        sound(f"dated/2026_site_{('cat', 'dog')[i % 2]}-{i}.wav", 500 + 700 * (i % 2) + 20 * i)
    write("labels.csv", "".join(f"{i}.wav,{'ab'[i % 2]}\n" for i in range(6)))
    with open("pets/cat/0.wav", "rb") as file:
        good = file.read()
    write("torn/cat/1.wav", good[:900])
    write("torn.wav", good[:900])
    write("head.wav", good[:30])
    write("text.wav", "not a sound\n")
    write("zero.wav", b"")
    write("wav.flac", good)
    write("song.mp3", b"ID3" + bytes(99))
    write("notes.txt", "cat, dog\n" * 9)
    sound("slow/dog/3.wav", rate=4000)
    sound("slow.wav", rate=4000)
    sound("mute/dog/1.wav", silent=True)
    sound("none.wav", count=0)
    for i in range(2):
        sound(f"wild/bird/{i}.wav", 600)
        sound(f"wild/fish/{i}.wav", 1200)
        sound(f"some/{('cat', 'fish')[i]}/{i}.wav", 600 + 600 * i)
    os.makedirs("hollow", exist_ok=True)
    write("papers/a/one.pdf", b"%PDF")
    write("stray/cat/readme.md", "# cats\n")
    sound("stray/cat/0.wav")
    sound("stray/dog/0.wav", 1200)
    sound("case/Dog/0.wav")
    sound("case/dog/0.wav", 1200)
    for name, text in {"bird.txt": "bird\n", "empty.txt": "", "twice.txt": "cat\ndog\ncat\n", "pets.txt": "cat\ndog\n", "moves.txt": "jump\nwalk\nfall\n", "nofile.txt": "cat/0.wav\nnowhere.wav\n",
                       "listed.txt": "cat/0.wav\ncat/9.wav\n", "all.txt": "".join(f"{k}/{i}.wav\n" for k in ("cat", "dog") for i in range(3))}.items():
        write(name, text)


def table(path, names, samples=24, steps=5, sep=",", change=lambda i, t, row: row):
    """Two classes by an id; `change` makes the slip in a row."""
    rows = [sep.join(["id", *names, "state"])]
    for i in range(samples):
        for t in range(steps):
            row = [f"s{i}", *(f"{x:.3f}" for x in rng.normal(size=len(names)) + 3 * (i % 2)), "ab"[i % 2]]
            rows.append(sep.join(change(i, t, row)))
    write(path, "\n".join(rows) + "\n")


def tables():
    axes = ["ax", "ay", "az"]
    table("walk.csv", axes)
    with open("walk.csv", encoding="utf-8") as file:  # ids and numbers, in thousandths of their unit
        head, *rows = file.read().splitlines()
    parts = [row.split(",") for row in rows]
    write("kilo.csv", "\n".join([head, *(",".join([a, *(str(float(x) * 1000) for x in numbers), kind]) for a, *numbers, kind in parts)]) + "\n")
    for name, number in ("rounded", lambda i, t: (i + t) % 3 / 2), ("unlike", lambda i, t: i * 5 + t + 0.5):
        write(name + ".csv", "id,u,state\n" + "".join(f"{i},{number(i, t)},{'ab'[i % 2]}\n" for i in range(6) for t in range(5)))
    table("piped.csv", axes, sep="|")
    table("spaced.csv", axes, sep="  ")
    write("quoted.csv", "".join(f'"{row}"\n' for row in [head, *rows]))
    write("comment.csv", "\n".join(["# steps of walkers", head, *rows]) + "\n")
    table("dots.csv", ["u"], change=lambda i, t, row: [row[0], "n.a." if t == 3 else row[1], row[2]])
    table("more.csv", [*axes, "temp"])
    table("less.csv", axes[:2])
    blocks = [(c, i, t) for c in "ab" for i in range(4) for t in range(5)]
    orders = {"again": blocks, "merged": sorted(blocks, key=lambda b: (b[1], b[0], b[2])), "mixed": sorted(blocks, key=lambda b: (b[2], b[0], b[1]))}
    for name, order in orders.items():
        ids = "c{0}{1}" if name == "mixed" else "{1}"
        write(name + ".csv", "id,u,w,state\n" + "".join(f"{ids.format(c, i)},{rng.normal():.3f},{t},{c}\n" for c, i, t in order))
    write("blocks.csv", "id,u,w\n" + "".join(f"{i % 2},{i},{t * t % 5}\n" for i in range(4) for t in range(4)))
    for name, cell in {"volts": "{:.1f}V", "speed": "{:.1f} m/s", "share": "{:.0f}%", "degrees": "{:.0f}°C"}.items():
        table(name + ".csv", ["u"], change=lambda i, t, row, cell=cell: [row[0], cell.format(i + t), row[2]])
    table("two-units.csv", ["u", "v"], change=lambda i, t, row: [row[0], f"{i}mm", f"{t}mm", row[3]])
    table("pointed.csv", ["u", "temp.", "w"], change=lambda i, t, row: [row[0], row[1], f"x{t}", f"y{i}", row[4]])
    table("truth.csv", ["u", "v", "w"], change=lambda i, t, row: [row[0], ("TRUE", "FALSE")[t % 2], row[2], ("true", "false")[i % 2], row[4]])
    table("blanks.csv", ["u"], change=lambda i, t, row: [row[0], f"{i + 1} 234.5", row[2]])
    write("plain-walk.csv", "\n".join([",".join(axes), *(",".join(row[1:-1]) for row in parts)]) + "\n")
    table("one-unit.csv", ["u"], change=lambda i, t, row: [row[0], "7V" if (i, t) == (3, 3) else row[1], row[2]])
    clock = [f"{t / 10},{rng.normal():.3f}\n" for t in range(12)]
    write("clock.csv", "".join(clock))
    write("named-clock.csv", "time,u\n" + "".join(clock))
    write("stamps.csv", "timestamp;u\n" + "".join(f"2024-05-01 10:00:{t:02};{t % 3}\n" for t in range(12)))
    for i in range(6):
        steps = rng.normal(size=(5, 3)) + 3 * (i % 2)
        write(f"walks/{'ab'[i % 2]}/{i}.csv", "ax,ay,az\n" + "".join("{:.3f},{:.3f},{:.3f}\n".format(*step) for step in steps))
        write("loose.csv", "".join(f"l{k}.csv,{'ab'[k % 2]}\n" for k in range(6)))
        write(f"loose/l{i}.csv", "ax,ay,az\n" + "1,2,3\n4,5,6\n")
        write(f"odd/{'ab'[i % 2]}/{i}.csv", ("ax,ay,az\n" if i else "ax,ay,aw\n") + "1,2,3\n4,5,6\n")
        part = "train" if i < 4 else "test"
        write(f"signs/{part}/{part[:2]}{i}.csv", "ax,ay\n1,2\n3,4\n")
        write(f"signs/labels.csv", "file,sign\n" + "".join(f"{'tr' if k < 4 else 'te'}{k}.csv,{'ab'[k % 2]}\n" for k in range(6)))
        write("few-signs.csv", "file,sign\ntr0.csv,a\n")
    write("one.txt", "".join(f"{1000 * k} {k % 8} {3 * k % 8} {k % 2}\n" for k in range(1, 20)))
    write("targets.csv", "".join(f"s{i},{'ab'[i % 2]}\n" for i in range(24)))
    write("few.csv", "s0,a\ns1,b\n")
    write("headed.csv", "id,state\ns0,a\ns1,b\n")
    write("by-class.csv", "".join(f"{'ab'[i % 2]},s{i}\n" for i in range(24)))
    write("wide.csv", "id,u\na,1,2\n")
    write("gap.csv", "id,u,v\na,1,2\na,,3\nb,2,2\n")
    write("comma.csv", "id;u\na;1,5\na;2,5\nb;3,5\n")
    write("empty.csv", "")
    write("head.csv", "id,u,v\n")
    write("words.csv", "id,u,place\na,1,home\na,2,home\nb,3,work\nb,4,work\n")
    write("constant.csv", "id,u,state\n" + "".join(f"s{i},{i},a\n" for i in range(6)))
    write("book.xlsx", b"PK\3\4" + bytes(60))
    write("packed.csv.gz", b"\x1f\x8b" + bytes(60))
    write("frame.parquet", b"PAR1" + bytes(60))
    write("hollow-tables/a/0.csv", "u\n")
    write("bad-class.txt", "a\n")
    gaps_and_names()


def gaps_and_names():
    """Missing values, spikes in rows, classes in first rows, names that a shell would take apart."""
    write("none.csv", "id,a,b,state\n1,.,0.5,none\n1,2,,none\n1,3,0.7,none\n2,2,,fall\n2,4,#N/A,fall\n2,4,5,fall\n")
    write("two-names.csv", "day,id,u\n1,x,1\n1,x,2\n2,y,3\n2,y,5\n")
    write("first-gap.csv", "id,u,state\n1,,jump\n1,2,\n1,3,\n2,1,fall\n2,4,\n")
    write("only-gap.csv", "id,u,state\n1,,jump\n1,2,walk\n1,3,walk\n2,1,fall\n2,4,fall\n")
    write("steady.csv", "u,v\n1,missing\n1,2\n2,3\n")
    write("humid.csv", "id,date,t,humidity (%),state\n" + "".join(f"{i},d{t},{i * 1.5 + t * t % 3},{'' if t else 5},{'ab'[i % 2]}\n" for i in range(4) for t in range(4)))
    write("o'brien.csv", "id;u\na;1,5\na;2,5\nb;3,5\n")
    first = [f"{i},{i * 1.5 + t * t % 3},{('ab'[i % 2], '')[t > 0]}\n" for i in range(6) for t in range(5)]
    write("first.csv", "id,u,state\n" + "".join(first))
    for name, classes in ("eat-sleep", ("eat", "sleep")), ("rest-eat", ("rest", "eat")):
        write(name + ".csv", "id,u,state\n" + "".join(f"{i},{i * 1.5 + t * t % 3},{classes[t % 2]}\n" for i in range(6) for t in range(5)))
    for i in range(4):
        times, neurons = np.sort(rng.random(20 + i)), rng.integers(0, 20, 20 + i)
        rows = "".join(f"{n},{t:.4f}\n" for t, n in zip(times, neurons))
        for folder in "neurons", "nerves", "bird's":
            write(f"{folder}/{'ab'[i % 2]}/{i}.csv", "neuron,time\n" + rows)
        for folder in "two-columns", "o'two":
            os.makedirs(f"{folder}/{'ab'[i % 2]}", exist_ok=True)
            np.save(f"{folder}/{'ab'[i % 2]}/{i}.npy", np.stack([times, neurons], 1))
        os.makedirs(f"cells/{'ab'[i % 2]}", exist_ok=True)
        np.savez(f"cells/{'ab'[i % 2]}/{i}.npz", times=times, units=neurons)
        write(f"logs/s{i}.csv", "t,ax,ay,az\n" + "".join(f"{t},{i % 2 + t / 9},{'' if t == 2 else t},3\n" for t in range(4)))
        write("logs/labels.csv", "file,state\n" + "".join(f"s{k}.csv,{'ab'[k % 2]}\n" for k in range(4)))
        write(f"holes/{i}.csv", "ax,ay,az\n1,2,3\n4,5,6\n" if i == 2 else "ax,ay,az\n1,2,3\n,5,6\n")
    with open("walk.csv", encoding="utf-8") as file:
        head, *rows = file.read().splitlines()
    write("timed.csv", "\n".join([head + ",time_s", *(f"{row},{t % 5}" for t, row in enumerate(rows))]) + "\n")
    write("cased.csv", "\n".join([head, *(row[:-1] + row[-1].replace("a", "A") for row in rows)]) + "\n")
    write("semicolons.csv", "file;kind\n" + "".join(f"{i}.wav;{'xy'[i % 2]}\n" for i in range(6)))
    write("xy.txt", "x\ny\n")
    write("sexes.csv", "id,sex,u,state\n" + "".join(f"{i},{'MF'[i % 3 > 0]},{i * 1.5 + t * t % 3},{'ab'[i % 2]}\n" for i in range(6) for t in range(5)))
    write("backwards.csv", "id,at,u,state\n" + "".join(f"{i},2026-03-{9 - t:02},{i + t * t % 3},{'ab'[i % 2]}\n" for i in range(6) for t in range(5)))
    write("caps.csv", "id,u,state\n" + "".join(f"{i},{i + t * t % 3},{'eE'[t > 2 and i == 3]}{'ab'[i % 2]}\n" for i in range(6) for t in range(5)))
    table("shifted.csv", ["ax", "ay", "az"], change=lambda i, t, row: [*row[:2], str(float(row[2]) + 40), *row[3:]])
    for name, step in ("holes-1", 2), ("holes-2", 3):
        table(name + ".csv", ["ax", "ay", "az"], change=lambda i, t, row, step=step: [row[0], "" if t == step else row[1], *row[2:]])
    for i in range(4):
        for part in "train", "test":
            rows = [[t / 10, *rng.normal(size=3).round(3) + i % 2] for t in range(4)]
            rows[1][2] = ""
            write(f"fits/{part}/{'ab'[i % 2]}/{i}.csv", "clock,ax,ay,az\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def arrays(path, events, save=np.savez, **more):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    save(path, **dict(zip("txyp", events)), **more)


def draw(count=60, span=10**5, side=8):
    return np.sort(rng.integers(0, span, count)), rng.integers(0, side, count), rng.integers(0, side, count), rng.integers(0, 2, count)


def events():
    changes = {"cams": lambda t, x, y, p: (t, x, y, p), "nano": lambda t, x, y, p: (t * 1000, x, y, p), "epoch": lambda t, x, y, p: (t + 17 * 10**14, x, y, p),
               "late": lambda t, x, y, p: (t + 9 * 10**9, x, y, p), "on255": lambda t, x, y, p: (t, x, y, p * 255), "sign": lambda t, x, y, p: (t, x, y, 2 * p - 1),
               "odd-p": lambda t, x, y, p: (t, x, y, p + 1), "wide-x": lambda t, x, y, p: (t, x + 200, y, p), "half-x": lambda t, x, y, p: (t, x + 0.5, y, p),
               "tardy": lambda t, x, y, p: (t + 2 * 10**6, x, y, p), "below": lambda t, x, y, p: (t - 50000, x, y, p), "seconds": lambda t, x, y, p: (t.astype(float), x, y, p),
               "swapped": lambda t, x, y, p: (x, t, y, p), "same-time": lambda t, x, y, p: (0 * t, x, y, p),
               "below-x": lambda t, x, y, p: (t, x - 5, y, p), "float-ms": lambda t, x, y, p: (t / 1000, x, y, p),
               "no-time": lambda t, x, y, p: (np.where(np.arange(len(t)) == 3, np.nan, t), x, y, p)}
    for name, change in changes.items():
        for i in range(4):
            arrays(f"{name}/{'ab'[i % 2]}/{i}.npz", change(*draw()))
    for i in range(4):
        arrays(f"quiet/{'ab'[i % 2]}/{i}.npz", draw(60 * (i > 1)))
        arrays(f"still/{i}.npz", draw())
        for part in "train", "test":
            arrays(f"fields/{part}/{'ab'[i % 2]}/{i}.npz", draw())
        arrays(f"views/{'ab'[i % 2]}_{i}.npz", draw())
        t, x, y, p = draw()
        for folder, saved in {"upper": {"t": t, "X": x, "Y": y, "P": p}, "pairs": {"t": t, "xy": np.stack([x, y], 1), "p": p}}.items():
            os.makedirs(f"{folder}/{'ab'[i % 2]}", exist_ok=True)
            np.savez(f"{folder}/{'ab'[i % 2]}/{i}.npz", **saved)
    parts = [draw() for _ in range(4)]
    whole = [np.concatenate(part) for part in zip(*parts)]
    offsets = np.arange(5) * 60
    names = np.array(["left", "right"] * 2)
    for name, more in {"one-behind": {}, "no-offsets": {"labels": np.arange(4) % 2}, "no-labels": {"offsets": offsets}, "named": {"offsets": offsets, "labels": names},
                       "numbered": {"offsets": offsets, "labels": np.arange(4) % 3}, "from-one": {"offsets": offsets, "labels": np.arange(4) % 3 + 1}, "three": {"offsets": offsets, "labels": np.arange(3) % 2},
                       "short": {"offsets": offsets[:4], "labels": np.arange(3) % 2}, "down": {"offsets": offsets[::-1], "labels": np.arange(4) % 2},
                       "below-0": {"offsets": offsets, "labels": np.arange(4) - 1}, "own": {"offsets": offsets, "labels": names, "classes": np.array(["up", "down"])},
                       "sized": {"offsets": offsets, "labels": names, "sensor_size": np.array([4, 4])}}.items():
        arrays(name + ".npz", whole, **more)
        with h5py.File(name + ".h5", "w") as file:
            for key, value in {**dict(zip("txyp", whole)), **more}.items():
                file[key] = value if value.dtype.kind != "U" else [str(text) for text in value]
    arrays("lone.npz", draw())
    t, x, y, p = draw()
    np.savez("no-t.npz", x=x, y=y, p=p)
    np.savez("no-x.npz", t=t, y=y, p=p)
    np.savez("uneven.npz", t=t, x=x[:50], y=y, p=p)
    np.savez("no-y.npz", t=t, x=x, p=p)
    np.savez("square.npz", t=t.reshape(6, 10), x=x.reshape(6, 10), y=y.reshape(6, 10), p=p.reshape(6, 10))
    np.savez("words.npz", t=t, x=x.astype(str), y=y, p=p)
    np.savez("frames.npz", frames=np.zeros((5, 2, 8, 8)))
    np.savez("channels.npz", times=t, units=x)
    np.savez("below-units.npz", times=t, units=x - 9)
    np.savez("uneven-units.npz", times=t, units=x[:50])
    with h5py.File("packed.h5", "w") as file:
        file.create_dataset("x", data=rng.random((6, 20, 3)), compression="lzf")
        file["y"] = np.arange(6) % 2
    for name, size in {"one-size": 8, "deep-size": [[8]]}.items():
        np.savez(name + ".npz", times=t, units=x, inputs=size)
        with h5py.File(name + ".h5", "w") as file:
            file["times"], file["units"], file["inputs"] = t, x, size
    for i in range(4):  # the class is in the name, and the folders are parts
        for part in "train", "val":
            arrays(f"parted/{part}/{'ab'[i % 2]}-{i}.npz", draw())
    for i, kind in enumerate("aabb"):  # the first file has no high channel
        os.makedirs(f"trains/{kind}", exist_ok=True)
        np.savez(f"trains/{kind}/{i}.npz", times=np.sort(rng.random(9)), units=np.arange(9) + 4 * i)
    np.save("rows.npy", np.stack([t, x, y, p], 1))
    kind = np.dtype([("t", "i8"), ("x", "i2"), ("y", "i2"), ("p", "i1")])
    for name, make in ("objects", lambda part: np.stack(part, 1)), ("records", lambda part: np.array(list(zip(*part)), kind)):
        objects = np.empty(4, object)
        for i, part in enumerate(parts):
            objects[i] = make(part)
        np.save(name + ".npy", objects, allow_pickle=True)
    write("torn.npz", open("cams/a/0.npz", "rb").read()[:200])
    write("text.npz", "t,x,y,p\n")
    write("camera.aedat4", b"#!AER-DAT4.0" + bytes(50))
    write("camera.raw", b"% evt 3.0\n" + bytes(50))
    write("camera.dat", b"% Data\n" + bytes(50))
    for path in "events.csv", "event-tables/a/0.csv", "event-tables/b/1.csv":
        write(path, "t,x,y,p\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in zip(t, x, y, p)))


def spikes(path, **change):
    """A file in the layout of the Heidelberg Digits without one of its data sets, or with another one."""
    times, labels = change.get("times", 3), change.get("labels", np.arange(3) % 2)
    units = change.get("units", 3)
    with h5py.File(path, "w") as file:
        for name, kind, count in ("times", np.float64, times), ("units", np.int64, units):
            if count:
                rows = file.create_dataset("spikes/" + name, (count,), dtype=h5py.vlen_dtype(kind))
            for i in range(count):
                rows[i] = np.arange(4).astype(kind) / (1 if name == "units" else 50)
        if labels is not None:
            file["labels"] = labels


def files():
    """HDF5 files and arrays for `train` that lack something."""
    for name, change in {"no-times": {"times": 0}, "no-units": {"units": 0}, "no-class": {"labels": None}, "two-labels": {"labels": np.arange(2)},
                         "two-units": {"units": 2}, "text-labels": {"labels": [b"a", b"b", b"a"]}, "real-labels": {"labels": np.zeros(3)},
                         "below-labels": {"labels": np.arange(3) - 1}}.items():
        spikes(name + "-spikes.h5", **change)
    x, y = rng.normal(size=(8, 5, 3)), np.arange(8) % 2
    np.savez("bare.npz", x=rng.normal(size=(8, 5, 1)), y=np.arange(8) % 2)
    for name in "part-1", "part-2":
        np.savez(name + ".npz", x=x, y=y)
    for name, parts in {"only-x": {"x": x}, "only-y": {"y": y}, "y-short": {"x": x, "y": y[:5]}, "lengths-short": {"x": x, "y": y, "lengths": np.full(5, 3)},
                        "lengths-long": {"x": x, "y": y, "lengths": np.full(8, 9)}, "grouped": {"train/x": x, "train/y": y}, "other-names": {"X": x, "labels": y}}.items():
        with h5py.File(name + "-array.h5", "w") as file:
            for key, value in parts.items():
                file[key] = value
    write("text-array.h5", "x,y\n")


def misplaced():
    """Data sets in folders, file names in other letters and forms of Unicode, and files that are not what their names say."""
    for path in "kept/train.h5", "packed/ok.npz":
        os.makedirs(os.path.dirname(path), exist_ok=True)
        parts = {"x": rng.normal(size=(8, 5, 3)), "y": np.arange(8) % 2}
        if path.endswith(".npz"):
            np.savez(path, **parts)
            continue
        with h5py.File(path, "w") as file:
            for key, value in parts.items():
                file[key] = value
    write("junk.h5", "no data set\n")
    write("empty.h5", "")
    for k, bird in enumerate(("Amsel", "Grünfink", "Mönch", "Möwe")):
        for i in range(4):
            sound(f"birds/2026-05-01_{bird}_{i}.wav", 500 + 200 * k)
            sound(f"forms/{unicodedata.normalize('NFD' if i % 2 else 'NFC', bird)}-{i // 2}.wav", 500 + 200 * k)


def clinic():
    """A table of patients with a date per row, and what export programs and people do to it."""
    names, rows = "patient,day,hr,temp,kind", []
    for i in range(12):
        for t in range(5):
            rows.append(f"P{i:02},2026-03-{t + 1:02},{70 + 9 * (i % 2) + rng.normal():.2f},{37 + rng.normal() / 5:.2f},{'well ill'.split()[i % 2]}")
    write("clinic.csv", "\n".join([names, *rows]) + "\n")
    write("comments.csv", "\n".join(["# units: bpm, degC", "# exported", names, *rows]) + "\n")
    for name in "nameless.csv", "nameless-too.csv":
        write(name, "\n".join(rows) + "\n")
    write("renamed.csv", "\n".join(["who,day,hr,temp,kind", *rows]) + "\n")
    gaps = [re.sub(r",7[0-9][.0-9]*,", ",,", row) if k % 9 == 4 else row for k, row in enumerate(rows)]
    write("gaps.csv", "\n".join([names, *gaps]) + "\n")
    write("codes.csv", "\n".join([names, *(row.replace(",,", ",-99,") for row in gaps)]) + "\n")
    bare = [",".join(row.split(",")[i] for i in (0, 2, 3)) for row in (names, *gaps)]
    write("codes-bare.csv", "\n".join(row.replace(",,", ",-99,") for row in bare) + "\n")
    for i in range(4):
        part = [",".join(row.split(",")[1:4]) for row in rows if row.startswith(f"P{i:02}")]
        write(f"clinics/wards/P{i:02}.csv", "\n".join(["day,hr,temp", *part]) + "\n")
        write(f"moves/{'ab'[i % 2]}/{i}.txt", "".join(f"{1000 * k} {k % 8} {3 * k % 8} {k % 2}\n" for k in range(1, 20)))
        for name in "wrist", "wrist-0":
            write(f"{name}/P{i:02}.csv", "\n".join(["hr,temp", *(row.split(",", 1)[1] for row in part)]) + "\n")
    write("ages.csv", "file,kind,age\n" + "".join(f"P{i:02}.csv,{'well ill'.split()[i % 2]},{20 + i}\n" for i in range(12)))
    for name in "wrist/labels", "wrist/P02-copy", "wrist-0/0-copy":
        write(f"{name}.csv", "file,kind\n" + "".join(f"P{i:02}.csv,{'well ill'.split()[i % 2]}\n" for i in range(4)))
    write("copy.txt", "P02-copy.csv\n")
    write("clinics/labels.csv", "".join(f"P{i:02}.csv,{'well ill'.split()[i % 2]}\n" for i in range(4)))
    by_patient = ["--sample-column", "patient", "--target", "kind", "--drop", "day"]
    for args in (["encode", "clinic.csv", "--out", "clinic.h5", *by_patient], ["train", "clinic.h5", "--out", "doctor", *TRAIN]):
        done = neap(*args)
        assert done.returncode == 0, done.stderr


def texts():
    plain = "The cat sat on the mat, and the dog ran. " * 12
    write("novel.txt", plain)
    write("notes.log", plain)
    write("other.txt", plain.replace("cat", "Żaba"))
    write("tilde.txt", plain.replace("cat", "c~t'\\"))
    write("wide.txt", plain.encode("utf-16"))
    write("latin.txt", (plain + "größer").encode("latin-1"))
    write("nothing.txt", "")
    write("letter.txt", "a")
    write("zeros.txt", b"ab\0cd" * 40)
    write("mixed.txt", "die Brücke am Fluß\n".encode() * 9 + "die Brücke\n".encode("latin-1") * 9)
    write("joined.txt", "die Brücke\n".encode() + "de fa\u00e9\n".encode("latin-1"))
    write("cut.txt", "die Brücke am Fluß\n".encode()[:-2] + b"")
    write("page.html", "<p>" + plain)
    write("book.pdf", b"%PDF-1.4\n\xff\xfe" + bytes(50))
    write("book.docx", b"PK\3\4\xff" + bytes(60))
    for name in "abcdefg":
        write(f"prog/{name}.py", "def f(x):\n    return x + 1\n" * 9)
        write(f"two words/{name}.py", "def f(x):\n    return x + 1\n" * 9)
    write("prog/notes.md", "# notes\n")
    os.makedirs("library", exist_ok=True)
    write("library/one.txt", plain)


def models():
    """A model of each kind; the data sets that they are trained on."""
    by_id = ["--sample-column", "id", "--target", "state"]
    made = (["encode", "pets", "--out", "pets.h5", "--channels", "32"], ["encode", "walk.csv", "--out", "walk.h5", *by_id],
            ["encode", "walks", "--out", "walks.h5"], ["encode", "cams", "--out", "cams.h5", "--sensor", "8x8"],
            ["encode", "wild", "--out", "wild.h5", "--channels", "32"], ["encode", "some", "--out", "some.h5", "--channels", "32"],
            ["encode", "kilo.csv", "--out", "kilo.h5", *by_id],
            ["encode", "cells", "--out", "cells.h5", "--inputs", "20"], ["encode", "cased.csv", "--out", "cased.h5", *by_id],
            ["encode", "eat-sleep.csv", "--out", "eat-sleep.h5", *by_id], ["encode", "rest-eat.csv", "--out", "rest-eat.h5", *by_id],
            ["encode", "more.csv", "--out", "more.h5", *by_id], ["encode", "less.csv", "--out", "less.h5", *by_id],
            ["encode", "shifted.csv", "--out", "shifted.h5", *by_id], ["encode", "holes-1.csv", "--out", "holes-1.h5", "--missing", "previous", *by_id],
            ["encode", "holes-2.csv", "--out", "holes-2.h5", "--missing", "zero", *by_id])
    runs = (["pets.h5", "--out", "ear"], ["walk.h5", "--out", "walker"], ["walks.h5", "--out", "folded"], ["cams.h5", "--out", "eye"], ["cells.h5", "--out", "counter"],
            ["holes-1.h5", "--out", "filled"], ["bare.npz", "--out", "bare"],
            ["text:steps=20:novel.txt", "--out", "reader"])
    for args in (*made, *(["train", *run, *TRAIN] for run in runs)):
        done = neap(*args)
        assert done.returncode == 0, done.stderr


def known_options():
    """All options that a help has."""
    helps = (neap(command, "--help").stdout for command in ("encode", "train", "eval", "predict", "export"))
    return {option for text in helps for option in re.findall(r"--[a-z][a-z-]+", text)}


def rows():
    """(kind, code, arguments, words, steps) of slips_data.txt."""
    found, kind = [], ""
    with open(os.path.join(HERE, "slips_data.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("# ") or not line.strip():
                kind = line[2:].strip() or kind
            elif line.startswith("+ "):
                found[-1][4].append(line[2:].strip())
            else:
                code, args, *words = line.rstrip("\n").split(" | ")
                found.append((kind, int(code), shlex.split(args), words, []))
    return found


OWN = re.compile(r"neap (?:encode|train|predict|eval) [^ ].*")
SHELL = re.compile(r"(?:cat [^;]* > all\.txt|(?:python3|perl|sed|find|head|iconv|tr|printf) .*|\(head .*)")


def lines_of(done):
    """Standard error without progress."""
    return [line for line in done.stderr.splitlines() if not re.match(r"encode +\d", line)]


def follow(step, line):
    """Runs what the line proposes, or a call that is expected to work behind it: None, or what it printed."""
    word, *rest = shlex.split(step)
    from_there = line.rfind("python3 -c") if rest == ["last"] else 0
    found = {"shell": SHELL, "proposed": OWN}.get(word, OWN).search(line, from_there)
    if not found and word in ("shell", "proposed"):
        return f"no command: {line}"
    if word == "python":
        code = re.search(r"[de] = (numpy|h5py)\..*", line).group().split(". Set labels")[0].split(", where ")[0].split(". If the objects")[0]
        exec(code, {"numpy": np, "h5py": h5py, "labels": ["a", "b"] * 2, "y": [0, 1]})  # pylint: disable=exec-used
        return None
    if word == "shell":
        command = found.group().split("; neap ")[0]
        for end in (" If its rows", " If each block", " If its columns", "; if they are classes",
                    "; if it is the target"):
            command = command.split(end)[0].rstrip(".") if end in command else command
        env = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
        done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
    elif word == "proposed":
        command = found.group().split("; neap")[0]
        for pair in rest:
            command = command.replace(*pair.split("=", 1))
        done = neap(*shlex.split(command)[1:])
    else:
        done = neap(word, *rest)
    warned = word != "train" and "warning" in done.stderr  # a net of one epoch has learned nothing
    return None if done.returncode == 0 and not warned else f"{step}: {done.stderr}"


def slip(code, args, words, steps, options):
    """None, or what is wrong with the line of a call."""
    before = sorted(os.listdir("."))
    done = neap(*args)
    lines = lines_of(done)
    line = re.sub(r"^neap \w+: ", "", lines[0]) if lines else ""
    if os.environ.get("SLIPS_SHOW"):
        print(f"## {shlex.join(args)} -> {done.returncode}\n   " + "\n   ".join(lines), flush=True)
    left = sorted(set(os.listdir(".")) - set(before)) if code == 2 else []
    for name in left:
        subprocess.run(["rm", "-r", name], check=True)
    if left:
        return f"exit {done.returncode}, left {left}"
    if done.returncode != code or len(lines) != 1 or (code == 2 and done.stdout):
        return f"exit {done.returncode}: {done.stderr}{done.stdout}"
    missing = [word for word in words if word not in line]
    strange = [option for option in re.findall(r"(?<![\w'-])--[a-z][a-z-]+", line) if option not in options and option not in args]
    if missing or strange or not STEPS.search(line):
        return f"lacks {missing}, options {strange}: {line}"
    return next((wrong for wrong in (follow(step, line) for step in steps) if wrong), None)


def nested():
    """Recordings of equal names in different subfolders that a table lists stay apart when they are sorted by class."""
    names = [f"s{i // 3}/{i % 3}.wav" for i in range(6)] + ["./s2/50%.wav", "s2%2F50.wav"]
    for name in names:
        sound("nest/" + name)
    write("nest.csv", "".join(f"{name},{'xy'[i % 2]}\n" for i, name in enumerate(names)))
    os.rename("sorted", "sorted-before")
    wrong = follow("shell", neap("encode", "nest", "--labels", "nest.csv", "--out", "nest.h5").stderr)
    found = sorted(os.path.join(path, file) for path, _, files in os.walk("sorted") for file in files)
    want = sorted(f"sorted/{'xy'[i % 2]}/" + name.removeprefix("./").replace("%", "%25").replace("/", "%2F") for i, name in enumerate(names))
    return wrong or (None if found == want else str(found))


def lengths():
    """Commands are never cut: a path that is too long for a line is replaced by three dots, or is there as a whole."""
    for parts in 1, 2, 4, 8:
        folder = "/".join(["a" * 120] * parts)
        sound(f"{folder}/cat/0.wav")
        arrays(f"{folder}/events/x/0.npz", draw())
        arrays(f"{folder}/events/y/1.npz", draw())
        np.savez(f"{folder}/no-y.npz", x=rng.normal(size=(4, 5, 2)))
        for args in (["train", folder + "/events"], ["encode", folder + "/events", "--out", "x.h5"], ["train", folder + "/no-y.npz"], ["train", "--text", folder + "/none.txt"]):
            done = neap(*args)
            line = done.stderr.strip()
            quoted = re.findall(r"'([^']*)'", line.split(": ", 1)[1])
            wrong = [text for text in quoted if "aaa" in text and text not in (folder, folder + "/events", folder + "/no-y.npz", folder + "/none.txt")]
            if done.returncode != 2 or "\n" in line or line.count("'") % 2 or line.count('"') % 2 or wrong:
                return f"{parts} {args[0]}: {line}"
    return None


def dropped():
    """Of a table, a model drops the rows that its training data lost, to the same answers as for the encoded table."""
    by_id = ["--sample-column", "id", "--target", "state", "--missing", "drop"]
    for done in (neap("encode", "holes-1.csv", "--out", "drop-1.h5", *by_id), neap("train", "drop-1.h5", "--out", "dropper", *TRAIN),
                 neap("encode", "holes-2.csv", "--out", "drop-2.h5", *by_id), neap("predict", "dropper", "drop-2.h5", "--out", "drop-2.csv"),
                 neap("predict", "dropper", "holes-2.csv", "--out", "drop-too.csv")):
        assert done.returncode == 0, done.stderr
    if "24 rows with missing values were left out by --missing drop, as in the training data" not in done.stderr:
        return done.stderr
    one, other = ([line.split(",")[-2:] for line in open(name, encoding="utf-8")] for name in ("drop-2.csv", "drop-too.csv"))
    line = neap("eval", "dropper", "holes-2.csv").stderr
    return None if one == other and len(one) == 25 and "--target state --missing drop\n" in line else f"{one[:2]} {other[:2]} {line}"


def main():
    with Tap() as tap, Folder() as folder:
        os.chdir(folder)
        for prepare in sounds, tables, events, files, misplaced, clinic, texts, models:
            tap.run("data: " + prepare.__name__, prepare)
        options = known_options()
        for kind, code, args, words, steps in rows():
            tap.run(f"{kind}: neap {shlex.join(args)}", slip, code, args, words, steps, options)
        tap.run(nested.__doc__, nested)
        tap.run(dropped.__doc__, dropped)
        tap.run(lengths.__doc__, lengths)
        os.chdir(HERE)


main()
