#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice of `encode` and `train --text` about data: its commands work as they stand, and doubts are warned of."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import wave

from harness import Folder, Tap, neap, need

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

SENSOR = ["--sensor", "8x8"]


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(content if isinstance(content, bytes) else content.encode())


def sound(path, rate=8000, silent=False):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with wave.open(path, "wb") as out:
        out.setparams((1, 2, rate, 0, "NONE", ""))
        tone = 9000 * np.sin(np.arange(rate // 4) * 3000 / rate) * (not silent)
        out.writeframes(tone.astype("<i2").tobytes())


def recordings(folder, name, make, save=np.savez):
    """Two classes of two event recordings each."""
    rng = np.random.default_rng(1)
    for i in range(4):
        path = os.path.join(folder, name, "left" if i % 2 else "right", f"r{i}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        t, x, y = np.sort(rng.integers(0, 10**5, 40)), rng.integers(0, 8, 40), rng.integers(0, 8, 40)
        made = make(t, x, y, rng.integers(0, 2, 40))
        save(path, **made) if isinstance(made, dict) else save(path, made)


def run(folder, *args):
    return neap(*args, cwd=folder)


def follow(folder, args, *needles, pattern="(?:python3|find|perl|sed|iconv) .*"):
    """One line with the needles, and a command that is run: the line."""
    done = run(folder, *args)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("encode ")]
    assert done.returncode == 2 and len(lines) == 1, done.stderr
    assert all(needle in lines[0] for needle in needles), (needles, lines[0])
    command = re.search(pattern, lines[0]).group()
    path = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
    subprocess.run(["sh", "-c", command], cwd=folder, check=True, env={**os.environ, "PATH": path})


def events(folder):
    """event recordings: other names, no names, frames"""
    kinds = (("names", lambda t, x, y, p: {"ts_us": t, "col": x, "row": y, "pol": p}, np.savez, "d['ts_us']"),
             ("rows", lambda t, x, y, p: {"events": np.stack([t, x, y, p], 1)}, np.savez, "t, x, y, p"),
             ("npy", lambda t, x, y, p: np.stack([t, x, y, p], 1), np.save, "t, x, y, p"))
    for name, make, save, needle in kinds:
        recordings(folder, name, make, save)
        args = ["encode", name, "--out", name + ".h5", *SENSOR]
        follow(folder, args, needle)
        done = run(folder, *args)
        if done.returncode or "4 samples, 2 classes" not in done.stdout or "classes: left, right\n" not in done.stdout:
            return name + ": " + done.stderr + done.stdout
    recordings(folder, "frames", lambda t, x, y, p: {"frames": np.zeros((5, 2, 3, 3)) + x[0]})
    follow(folder, ["encode", "frames", "--out", "f.h5"], "5 steps")
    made = np.load(os.path.join(folder, "neap.npz"))
    return None if made["x"].shape == (4, 5, 18) and sorted(made["y"]) == ["left"] * 2 + ["right"] * 2 else str(made["x"].shape)


def texts(folder):
    """a text in UTF-16 or Latin-1 is converted to a new file"""
    for code in "utf-16", "latin-1":
        write(os.path.join(folder, "utf8.txt"), ("größer " * 50).encode(code))
        follow(folder, ["train", "--text", "utf8.txt", "--out", "t"], "'utf8-utf8.txt'")
        with open(os.path.join(folder, "utf8-utf8.txt"), encoding="utf-8") as text:
            assert text.read() == "größer " * 50
        assert os.path.getsize(os.path.join(folder, "utf8.txt")) > 300
    return None


def tables(folder):
    """tables: gaps, decimal commas, another order, time columns, many whole numbers, headers, bad cells, swapped labels"""
    for i in range(4):
        path = os.path.join(folder, "gaps", "ab"[i % 2], f"{i}.csv")
        write(path, "".join(f"{row}\n" for row in ["u,v", "1,2", ",3", "4,NA", "5,6"]))
    args = ["encode", "gaps", "--out", "gaps.h5"]
    done = run(folder, *args)
    assert done.returncode == 2 and "2 such cells" in done.stderr, done.stderr
    done = run(folder, *args, "--missing", "previous")
    assert "missing values: 8 filled in, 0 rows left out" in done.stdout, done.stdout
    assert "4 samples, 2 features" in done.stdout and "features: u, v\n" in done.stdout, done.stderr
    shutil.copytree(os.path.join(folder, "gaps"), os.path.join(folder, "order"))
    write(os.path.join(folder, "order", "b", "1.csv"), "v,u\n2,1\n3,1\n3,4\n6,5\n")
    assert run(folder, "encode", "order", "--out", "order.h5", "--missing", "previous").returncode == 0
    for name in "gaps", "order":
        shutil.rmtree(os.path.join(folder, name))
    with open(os.path.join(folder, "gaps.h5"), "rb") as one, open(os.path.join(folder, "order.h5"), "rb") as other:
        assert one.read() == other.read(), "another order of columns"
    write(os.path.join(folder, "comma.csv"), "u;v\n0,5;1\n1,5;2\n")
    follow(folder, ["encode", "comma.csv", "--out", "comma.h5"], "decimals with a point")
    assert run(folder, "encode", "comma.csv", "--out", "comma.h5").returncode == 0
    write(os.path.join(folder, "many.csv"), "time,u,y\n" + "".join(f"{i / 10},{i % 3},{i}\n" for i in range(40)))
    done = run(folder, "encode", "many.csv", "--out", "many.h5", "--target", "y")
    assert "--drop time" in done.stderr and "40 different whole numbers" in done.stderr and "--numbers" in done.stderr, done.stderr
    for name, text, needle in (("units", "id,u,v\n,m,\n" + "a,1,2\nb,3,4\n", "has the units"), ("percent", "id,u\na,5%\nb,6.5%\n", "percent signs")):
        write(os.path.join(folder, name + ".csv"), text)
        args = ["encode", name + ".csv", "--out", name + ".h5", "--sample-column", "id"]
        follow(folder, args, needle)
        done = run(folder, *args)
        assert "2 samples" in done.stdout, done.stderr
    done = run(folder, "encode", "units.csv", "--out", "units.h5", "--force", "--header", "no", "--sample-column", "id")
    assert done.returncode == 2 and done.stderr.endswith("Remove --header no\n"), done.stderr
    write(os.path.join(folder, "thousands.csv"), 'u,v\n1,"1,000.5"\n')
    done = run(folder, "encode", "thousands.csv", "--out", "thousands.h5")
    assert done.returncode == 2 and "without separators of thousands" in done.stderr, done.stderr
    write(os.path.join(folder, "bad.csv"), "u,v\n1,2\n3,4x\n")
    write(os.path.join(folder, "swap.csv"), "run,a\nrun,b\n")
    for args, needle in ((["bad.csv"], "Correct line 3"), (["bad.csv", "--header", "no"], "remove --header no"),
                         (["bad.csv", "--labels", "swap.csv"], "the name of the sample comes first")):
        done = run(folder, "encode", *args, "--out", "bad.h5")
        assert done.returncode == 2 and needle in done.stderr, done.stderr
    return None


def headers(folder):
    """tables: a first line of data is not taken for names; options and a line of names that are proposed work"""
    rows = [f"{i / 7 + 0.5:.3f},{i % 3},{i * 5 % 9},{'run' if i > 9 else 'walk'}" for i in range(20)]
    write(os.path.join(folder, "bare.csv"), "".join(row + "\n" for row in rows))
    write(os.path.join(folder, "named.csv"), "ax,ay,az,label\n" + "".join(row + "\n" for row in rows))
    data = "looks like data ('0.500' is a number), not names. Pass --header no"
    for args, *needles in ((["bare.csv", "--target", "label"], data, "--header no --target 4"), (["bare.csv", "--target", "4"], data, "--header no --target 4"),
                           (["bare.csv"], data, "--target 4 if it is the target"), (["bare.csv", "--header", "no"], "Pass --target 4 if it is the target"),
                           (["named.csv", "--header", "no"], "remove --header no"),
                           (["bare.csv", "--header", "no", "--target", "label"], "from 1 to 4, such as --target 4"),
                           (["named.csv", "--target", "lab"], "Its columns are ax, ay, az, label\n")):
        done = run(folder, "encode", *args, "--out", "bare.h5")
        assert done.returncode == 2 and all(needle in done.stderr for needle in needles), done.stderr
    done = run(folder, "encode", "bare.csv", "--header", "no", "--target", "4", "--out", "bare.h5")
    assert "3 features per step, 2 classes" in done.stdout, done.stderr
    for i in range(8):
        write(os.path.join(folder, "named", "ab"[i % 2], f"{i}.csv"), "ax,ay,az\n" + "".join(row.rsplit(",", 1)[0] + "\n" for row in rows))
    assert run(folder, "encode", "named", "--out", "named.h5").returncode == 0
    assert run(folder, "train", "named.h5", "--net", "gru:4,li", "--epochs", "1", "--memory", "4M", "--out", "named-run").returncode == 0
    write(os.path.join(folder, "more.csv"), "".join(f"{i},{i % 4};1\n".replace(",", ";") for i in range(1, 9)) + "1;2;3\n")
    write(os.path.join(folder, "four.csv"), "".join(f"{i};2;3;4\n" for i in range(5)))
    write(os.path.join(folder, "two.csv"), "1,2\n3,4\n")
    for name, needle in ("bare.csv", "Insert a first line with the names of the columns: sed"), ("four.csv", "for example, if the features come first: sed"):
        follow(folder, ["predict", "named-run", name], "trained on 3 features: ax, ay, az.", needle)
        done = run(folder, "predict", "named-run", name)
        assert done.returncode == 0 and done.stdout.count("\n") == 2, done.stderr
    done = run(folder, "predict", "named-run", "two.csv")
    return None if done.returncode == 2 and "Add the missing columns" in done.stderr and "sed" not in done.stderr else done.stderr


def sounds(folder):
    """recordings: a low sampling rate is skipped; silence, parts, one class and classes by case are warned of"""
    for part in "train", "test":
        for name in "run", "Run":
            sound(os.path.join(folder, "parts", part, name, "a.wav"), silent=name == "Run")
    done = run(folder, "encode", "parts", "--out", "parts.h5")
    for needle in ("neap encode 'parts/train' --out train.h5", "merged", "2 of 4 recordings are silent", "'Run' and 'run' differ only in case"):
        assert needle in done.stderr, done.stderr
    done = run(folder, "encode", "parts/train", "--out", "one.h5", "--label", "(a)")
    assert "has 2 folders. Remove --label" in done.stderr, done.stderr
    sound(os.path.join(folder, "parts", "train", "run", "low.wav"), rate=4000)
    done = run(folder, "encode", "parts/train", "--out", "low.h5")
    assert done.returncode == 0 and "skipped files: 1 with too low a sampling rate\n" in done.stdout and "warning: skipped: " in done.stderr and "Resample the recording to at least 8000 Hz" in done.stderr, done.stderr
    return None


def unlabelled(folder):
    """event recordings without classes: predict proposes encode with the settings of the training data, and answers what it wrote"""
    recordings(folder, "seen", lambda t, x, y, p: {"t": t, "x": x, "y": y, "p": p})
    made = run(folder, "encode", "seen", "--out", "seen.h5", *SENSOR, "--pool", "2", "--polarity", "merge")
    assert made.returncode == 0, made.stderr
    made = run(folder, "train", "seen.h5", "--net", "lif:4,li", "--epochs", "1", "--memory", "4M", "--out", "seen-run")
    assert made.returncode == 0, made.stderr
    os.mkdir(os.path.join(folder, "flat"))
    for i in range(4):
        shutil.copy(os.path.join(folder, "seen", "left" if i % 2 else "right", f"r{i}.npz"), os.path.join(folder, "flat"))
    for data, more, names in ("flat", " --label '(.*)'", ["r0", "r1", "r2", "r3"]), ("flat/r1.npz", " --label '(.*)'", ["r1"]), ("seen", "", None):
        done = run(folder, "predict", "seen-run", data)
        command = f"neap encode '{data}' --out FILE.h5 --pool 2 --polarity merge --sensor 8x8{more}"
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stderr.endswith(f"the training data: {command}\n"), done.stderr
        done = run(folder, *shlex.split(command)[1:], "--force")
        assert done.returncode == 0, done.stderr
        done = run(folder, "predict", "seen-run", "FILE.h5")
        rows = [line.split(",") for line in done.stdout.splitlines()]
        if done.returncode or names and [row[1] for row in rows] != ["recording", *names] or "no class of 'FILE.h5'" in done.stderr:
            return f"{data}: {done.stderr}{done.stdout}"
    done = run(folder, "eval", "seen-run", "flat")
    return None if done.returncode == 2 and done.stderr.endswith("--sensor 8x8 --label '^([A-Za-z]+)'\n") else done.stderr


def patterns(folder):
    """--label and --speaker search the file name: a pattern with a folder is told so"""
    for name in "dogs", "cats":
        sound(os.path.join(folder, "pets", name, "a.wav"))
    for option, needle in ("--label", "Remove --label to use the folder that each file is in as its class"), ("--speaker", "a part of the file name"):
        done = run(folder, "encode", "pets", "--out", "pets.h5", option, "([a-z]+)/")
        assert done.returncode == 2 and "only the file name 'a.wav' is searched, not its folders" in done.stderr and needle in done.stderr, done.stderr
    done = run(folder, "encode", "pets", "--out", "pets.h5")
    return None if "classes: cats, dogs\n" in done.stdout else done.stderr


def listed(folder):
    """--labels and --target for recordings: the command sorts them by the table; without a table, the option is removed"""
    for i in range(4):
        sound(os.path.join(folder, "unsorted", f"r{i}.wav"))
    write(os.path.join(folder, "list.csv"), "name,class\r\n" + "".join(f"r{i}{'.wav' * (i > 1)},{'ab'[i % 2]}\r\n" for i in range(4)))
    done = run(folder, "encode", "unsorted", "--out", "listed.h5", "--target", "class")
    assert done.returncode == 2 and "Remove the option" in done.stderr, done.stderr
    follow(folder, ["encode", "unsorted", "--out", "listed.h5", "--labels", "list.csv"], "encode the folder 'sorted'", pattern="tr .*")
    done = run(folder, "encode", "sorted", "--out", "listed.h5")
    return None if "4 recordings" in done.stdout and "classes: a, b\n" in done.stdout else done.stderr + done.stdout


PATTERNS = (  # names of recordings, and the classes that the pattern of the line finds
    (("bird1", "bird2", "cat1", "cat2"), "bird, cat"), (("0_a_0", "0_b_1", "7_a_0", "7_b_1"), "0, 7"),
    (("001-dog", "002-dog", "003-cat", "004-cat"), "cat, dog"), (("s1_yes", "s1_no", "s2_yes", "s2_no"), "no, yes"),
    (("r1", "r2"), "r"), (("Ж1", "Щ1", "Ж2", "Щ2"), "Ж, Щ"), (("Möwe-1", "Mönch-1", "Möwe-2", "Mönch-2"), "Mönch, Möwe"))


def nameless(folder):
    """names of recordings that differ in all parts: no pattern that makes each file a class is proposed"""
    for i, names in enumerate((("001", "002", "003"), ("Ж", "Щ", "Ы", "Э"))):
        for name in names:
            sound(os.path.join(folder, f"nameless{i}", name + ".wav"))
        for args in ["encode", f"nameless{i}", "--out", "nameless.h5"], ["train", f"nameless{i}"]:
            done = run(folder, *args)
            if done.returncode != 2 or "--label" in done.stderr or "one folder per class" not in done.stderr:
                return done.stderr
    return None


def proposals(folder):
    """the pattern for --label that a line shows fits the files, also in the command for a folder of recordings"""
    for i, (names, classes) in enumerate(PATTERNS):
        for name in names:
            sound(os.path.join(folder, f"flat{i}", name + ".wav"))
        shown = run(folder, "encode", f"flat{i}", "--out", "flat.h5").stderr
        done = run(folder, "encode", f"flat{i}", "--out", f"flat{i}.h5", "--label", re.search("pass --label '([^']+)'", shown).group(1))
        command = re.search("neap (encode .*--label '(.*)')\n", run(folder, "train", f"flat{i}").stderr)
        if f"classes: {classes}\n" not in done.stdout or f"'{command.group(2)}'" not in shown:
            return shown + done.stderr + done.stdout
    return None


def confused(folder):
    """--label, --labels and --classes with a column, and --labels with a pattern: the option that is meant"""
    write(os.path.join(folder, "column.csv"), "id,u,kind\n" + "".join(f"s{i // 3},{i % 2},{'ab'[i // 3 % 2]}\n" for i in range(24)))
    args = ["encode", "column.csv", "--out", "column.h5", "--sample-column", "id"]
    for option in "--label", "--labels", "--classes":
        done = run(folder, *args, option, "kind")
        if done.returncode != 2 or done.stderr.count("\n") != 1 or "pass --target kind" not in done.stderr:
            return done.stderr
    write(os.path.join(folder, "named", "a1.csv"), "u,v\n1,2\n")
    for data in "flat0", "named":
        done = run(folder, "encode", data, "--out", "column.h5", "--labels", "^([a-z]+)")
        if done.returncode != 2 or "--label" not in done.stderr.replace("--labels", "") or "pattern of file names" not in done.stderr:
            return done.stderr
    done = run(folder, *args, "--target", "kind")
    return None if "classes: a, b\n" in done.stdout else done.stderr


def heads(folder):
    """a recording whose first bytes do not fit its name: renamed only if they are those of another kind"""
    sound(os.path.join(folder, "heads", "a", "good.wav"))
    with open(os.path.join(folder, "heads", "a", "good.wav"), "rb") as file:
        good = file.read()
    for name, content, needle in (("x.flac", good, "is a wav file by its first bytes"), ("x.wav", b"RIFF" + bytes(4) + b"JUNK" + good[12:], "damaged or of another format"),
                                  ("y.wav", bytes(8) + good[8:], "Restore it")):
        write(os.path.join(folder, "heads", "a", name), content)
        done = run(folder, "encode", os.path.join("heads", "a", name), "--out", "heads.h5")
        if done.returncode != 2 or needle not in done.stderr or ("Rename it to end in .wav" in done.stderr) != (name == "x.flac"):
            return done.stderr
        os.remove(os.path.join(folder, "heads", "a", name))
    return None


def among_arrays(folder):
    """a recording among HDF5 files, from which the proposed command takes the size of the sensor"""
    for kind in "ab":
        os.makedirs(os.path.join(folder, "among", kind))
        for i in range(3):
            with h5py.File(os.path.join(folder, "among", kind, f"{i}.h5"), "w") as file:
                for name, values in (("t", range(5)), ("x", range(5)), ("y", [7] * 5), ("p", [0, 1, 0, 1, 0])):
                    file[name] = np.array(list(values))
        write(os.path.join(folder, "among", kind, "x.dat"), "% Data file\n")
    for args in (["train", "among/a/x.dat"], ["compare", "among/b/x.dat"]):
        done = neap(*args, cwd=folder, timeout=60)
        if done.returncode != 2 or "neap encode 'among'" not in done.stderr or "--sensor 5x8" not in done.stderr:
            return done.stderr
    return None


ARGUMENTS = ((["parts", "--out", "parts"], "--out 'parts/train.h5'"), (["parts", "--out", "nowhere/x.h5"], "no folder 'nowhere'"),
             (["a.wav", "b.wav", "--out", "x.h5"], "Pass the folder"), (["parts/train", "--out", "x.h5", "--classes", "3"], "classes found are Run, run"))


def main():
    with Tap() as tap, Folder() as folder:
        for test in events, texts, tables, headers, unlabelled, patterns, sounds, proposals, nameless, confused, heads, listed, among_arrays:
            tap.run(test.__doc__, test, folder)
        for args, needle in ARGUMENTS:
            done = run(folder, "encode", *args)
            tap.check("encode " + " ".join(args), None if done.returncode == 2 and needle in done.stderr else done.stderr)
        np.savez(os.path.join(folder, "short.npz"), x=np.zeros((6, 30, 2)), y=np.zeros((6, 20), int))
        done = run(folder, "train", "short.npz")
        tap.check("20 targets for 30 steps", None if "of 30 steps like 'x'" in done.stderr and "not of 20" in done.stderr else done.stderr)


main()
