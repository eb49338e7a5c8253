#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Tables of text: files that Python's csv and NumPy write become arrays, which h5py reads; the arrays are those that
Python makes of the same files. Nets learn from them, and tables that are wrong are refused by file and line.
"""
import csv
import os
import re
import random

from harness import Folder, Tap, need, neap, neap_json

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402


def write(path, rows, header=None, **style):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, **style)
        out.writerows(([header] if header else []) + rows)
    return path


def same(path, samples, y=None, classes=None):
    """None, or how the arrays of a file differ from lists of rows."""
    with h5py.File(path) as file:
        lengths = [len(s) for s in samples]
        if file["lengths"][()].tolist() != lengths:
            return f"lengths {file['lengths'][()]}, not {lengths}"
        if file["x"].shape[1] != max(lengths):
            return f"x of shape {file['x'].shape}"
        for i, sample in enumerate(samples):
            if not np.array_equal(file["x"][i, :lengths[i]], np.array(sample, dtype=float)):
                return f"sample {i} differs"
        if (y is None) != ("y" not in file):
            return "y is there, or is not"
        if y is not None and not (file["y"].dtype.kind == np.asarray(y).dtype.kind
                                  and np.array_equal(file["y"][()], y, equal_nan=file["y"].dtype.kind == "f")):
            return f"y is {file['y'][()].tolist()} ({file['y'].dtype}), not {np.asarray(y).tolist()}"
        found = [c.decode() for c in file["classes"][()]] if "classes" in file else None
        return None if found == classes else f"classes {found}, not {classes}"


def encode(folder, source, *options):
    out = os.path.join(folder, "out.h5")
    done = neap("encode", source, "--out", out, "--force", *options)
    assert done.returncode == 0, done.stderr.strip()
    return out


def some(rng, n, features):
    return [[repr(v) for v in row] for row in rng.normal(0, 1e3, (n, features)) * 10.0 ** rng.integers(-300, 300)]


def folders(tap, folder, rng):
    """A file a sample."""
    top = os.path.join(folder, "classes")
    want = []
    for k, name in enumerate(("cat", "dog", "été")):
        for i in range(4):
            rows = some(rng, int(rng.integers(1, 40)), 3)
            write(os.path.join(top, name, f"{i}_{name}_.csv"), rows, ["u", "v, w", 'x "y"'], delimiter=",;\t"[k],
                  quoting=csv.QUOTE_ALL if i % 2 else csv.QUOTE_MINIMAL, lineterminator="\n" if i % 3 else "\r\n")
            want.append((rows, k))
    y = np.array([k for _, k in want])
    samples = [[[float(v) for v in row] for row in rows] for rows, _ in want]
    tap.run("a folder a class", lambda: same(encode(folder, top), samples, y, ["cat", "dog", "été"]))
    tap.run("--label", lambda: same(encode(folder, top, "--label", "([0-9])_.*"), samples, np.arange(12) % 4, list("0123")))
    tap.run("--drop", lambda: same(encode(folder, top, "--drop", "v, w"), [[[r[0], r[2]] for r in s] for s in samples], y,
                                   ["cat", "dog", "été"]))
    names = [f"{name}/{i}_{name}_.csv" for name in ("cat", "dog", "été") for i in range(4)]
    numbers = rng.normal(0, 1, (12, 2))
    write(os.path.join(folder, "labels.csv"), [[n if i % 2 else n[:-4].split("/")[-1], *map(repr, v)]
                                               for i, (n, v) in enumerate(zip(names, numbers.tolist()))], ["file", "p", "q"])
    tap.run("--labels, numbers", lambda: same(encode(folder, top, "--labels", os.path.join(folder, "labels.csv")),
                                              samples, numbers))
    open(os.path.join(folder, "list"), "w", encoding="utf-8").write("\n".join(names[::2]) + "\n")
    tap.run("--split", lambda: same(encode(folder, top, "--split", os.path.join(folder, "list")), samples[::2], y[::2],
                                    ["cat", "dog", "été"]))


def one_file(tap, folder, rng):
    """All samples in one table."""
    def target(name, values, *options, wanted, classes=None, header=("sample", "a", "b", "y")):
        samples = [some(rng, n, 2) for n in (5, 1, 30, 2)]
        rows, at = [], 0
        for i, sample in enumerate(samples):
            for row in sample:
                rows.append([f"s{i}", *row, values(i, at)])
                at += 1
        path = write(os.path.join(folder, "one.csv"), rows, header)
        want = [[[float(v) for v in row] for row in s] for s in samples]
        column, y = ("sample", "y") if header else ("1", "4")
        tap.run(name, lambda: same(encode(folder, path, "--sample-column", column, "--target", y, *options), want,
                                   wanted, classes))

    def steps(values, padding):
        """(samples, steps) of values of consecutive rows."""
        out, at = np.full((4, 30), padding), 0
        for i, n in enumerate((5, 1, 30, 2)):
            out[i, :n] = values[at:at + n]
            at += n
        return out
    random.seed(3)
    texts = [random.choice(["on", "off", "a \"b\",\nc"]) for _ in range(38)]
    names = sorted(set(texts))
    target("classes of steps", lambda i, t: texts[t], wanted=steps([names.index(x) for x in texts], -1), classes=names)
    target("classes of samples, whole numbers", lambda i, t: (-1, 10, 2, 10)[i], wanted=np.array([0, 2, 1, 2]),
           classes=["-1", "2", "10"])
    target("no header", lambda i, t: (1, 0, 0, 1)[i], "--header", "no", wanted=np.array([1, 0, 0, 1]),
           classes=["0", "1"], header=None)
    target("masked classes", lambda i, t: "" if t % 3 else "x", wanted=steps([-1 if t % 3 else 0 for t in range(38)], -1),
           classes=["x"])
    target("masked classes, --classes", lambda i, t: "" if t % 3 else "x", "--classes", os.path.join(folder, "classes.txt"),
           wanted=steps([-1 if t % 3 else 1 for t in range(38)], -1), classes=["w", "x"])
    target("numbers of steps", lambda i, t: "nan" if t % 5 == 1 else t / 4,
           wanted=steps([np.nan if t % 5 == 1 else t / 4 for t in range(38)], np.nan)[:, :, None])
    target("numbers of samples", lambda i, t: i / 3, wanted=np.arange(4) / 3)
    target("--numbers", lambda i, t: i, "--numbers", wanted=np.arange(4.0))
    long = rng.normal(0, 1, (200_000, 1))
    np.savetxt(os.path.join(folder, "long.csv"), long, header="v", comments="", fmt="%.17g")
    tap.run("numpy.savetxt, one sample", lambda: same(encode(folder, os.path.join(folder, "long.csv")), [long.tolist()]))
    np.savetxt(os.path.join(folder, "many.tsv"), rng.normal(0, 1, (30, 700)), delimiter="\t", fmt="%.17g")
    wide = np.loadtxt(os.path.join(folder, "many.tsv"))
    tap.run("tabs, 700 columns", lambda: same(encode(folder, os.path.join(folder, "many.tsv")), [wide.tolist()]))
    text = "\ufeffa;b\r1;2\r3;4\r\r\r"
    open(os.path.join(folder, "odd.csv"), "w", newline="", encoding="utf-8").write(text)
    tap.run("a byte order mark, CR, empty lines behind", lambda: same(encode(folder, os.path.join(folder, "odd.csv")),
                                                                      [[[1, 2], [3, 4]]]))


def learn(folder):
    """train, eval and predict on what encode wrote: classes come by their names."""
    rng = np.random.default_rng(5)
    for part, names in (("train", ("down", "up")), ("test", ("up", "down"))):
        for name in names:
            for i in range(20):
                slope = 1 if name == "up" else -1
                rows = [[repr(float(slope * t / 10 + rng.normal(0, 0.1)))] for t in range(int(rng.integers(5, 15)))]
                write(os.path.join(folder, part, name, f"{i}.csv"), rows, ["v"])
        assert neap("encode", os.path.join(folder, part), "--out", os.path.join(folder, part + ".h5")).returncode == 0
    run = os.path.join(folder, "run")
    done = neap("train", os.path.join(folder, "train.h5"), "--net", "gru:8,li", "--memory", "8M", "--epochs", "20",
                "--batch", "8", "--lr", "0.02", "--out", run)
    assert done.returncode == 0, done.stderr
    accuracy = neap_json("eval", run, os.path.join(folder, "test.h5"))["accuracy"]
    return None if accuracy > 0.9 else f"accuracy {accuracy}"


def answer_tables(tap, folder):
    """predict reads one table: its columns by the names that the model knows, the same bits as of what encode writes."""
    rng = np.random.default_rng(8)
    names = ["ax", "ay, raw", "été"]
    for label in "ab":
        for i in range(6):
            rows = [[i, *map(repr, rng.normal(ord(label) - 97, 1, 3)), t / 7] for t in range(5 + i)]
            write(os.path.join(folder, "walk", label, f"{i}.csv"), rows, ["n", *names, "speed"])
    top, one = os.path.join(folder, "walk"), os.path.join(folder, "walk", "b", "3.csv")
    train = ["--memory", "4M", "--epochs", 2, "--quiet"]
    runs = {}
    for name, encoded, net, more in (("classes", ["--drop", "n,speed"], "gru:4,li", []), ("steps", ["--target", "speed", "--drop", "n"], "gru:4,li", []),
                                     ("next", ["--drop", "n,speed"], "gru:4,li", ["--next-step"]),
                                     ("spikes", ["--drop", "n,speed"], "lif:4,li", ["--encode", "delta"])):
        data = os.path.join(folder, name + ".h5")
        done = neap("encode", top, "--out", data, *encoded)
        assert done.returncode == 0, done.stderr
        runs[name] = os.path.join(folder, "run-" + name)
        done = neap("train", data, "--net", net, *more, *train, "--out", runs[name])
        assert done.returncode == 0, done.stderr
        with h5py.File(data) as file:
            assert [x.decode() for x in file["features"][()]] == names, file["features"][()]

    def columns(run, path, *more):
        """Rows of answers without the label, which a table has not."""
        done = neap("predict", runs[run], path, *more)
        assert done.returncode == 0, done.stderr
        head, *rows = list(csv.reader(done.stdout.splitlines()))
        keep = [i for i, name in enumerate(head) if name not in ("sample", "label")]
        return [[row[i] for i in keep] for row in rows], done.stderr

    def same_answers(run):
        want, _ = columns(run, os.path.join(folder, run + ".h5"), "--sample", 9)
        got, said = columns(run, one)
        assert got == want and len(got) == (1 if run in ("classes", "spikes") else 7 if run == "next" else 8), (got, want)
        assert "'n'" in said and "ignored" in said and said.count("\n") == 1, said
    for run in runs:
        tap.run(f"predict on one table: {run}", same_answers, run)
    with open(one, encoding="utf-8") as file:
        head, *rows = list(csv.reader(file))

    def other_columns():
        want, _ = columns("classes", one)
        order = [3, 1, 2]
        path = write(os.path.join(folder, "order.tsv"), [[row[k] for k in order] for row in rows], [head[k] for k in order], delimiter="\t")
        assert columns("classes", path) == (want, ""), "columns in another order"
        path = write(os.path.join(folder, "bare.csv"), [row[1:4] for row in rows], delimiter=";")
        assert columns("classes", path) == (want, ""), "no names"
        path = write(os.path.join(folder, "more.csv"), [["x", *row, "walk"] for row in rows], ["", *head, "label"])
        got, said = columns("classes", path)
        assert got == want and "'', 'n', 'speed', 'label'" in said, said
    tap.run("predict on one table: other columns", other_columns)

    def refuse(word, run, path, *more):
        done = neap("predict", runs[run], path, *more)
        assert done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done.stderr
    short = write(os.path.join(folder, "short.csv"), [row[1:3] for row in rows], head[1:3])
    bare = write(os.path.join(folder, "two.csv"), [row[1:3] for row in rows])
    odd = write(os.path.join(folder, "odd.csv"), [row[1:4] for row in rows] + [["1", "", "2"]], head[1:4])
    tap.run("predict on one table: a column is missing", refuse, "no column 'été'", "classes", short)
    tap.run("predict on one table: too few columns", refuse, "2 columns without names", "classes", bare)
    tap.run("predict on one table: --out is the table", refuse, "would replace the data that is read", "classes", short, "--out", short)
    tap.run("predict on one table: an empty field", refuse, "line 10", "classes", odd)
    tap.run("predict on one table: the command that encodes it", refuse, "encode the table with --missing", "classes", odd)

    def folder_answers():
        got, _ = columns("classes", top)
        want, _ = columns("classes", os.path.join(folder, "classes.h5"))
        files = [os.path.join(top, label, f"{i}.csv") for label in "ab" for i in range(6)]
        assert got == [[name, *row] for name, row in zip(files, want)], got
    tap.run("predict on a folder of tables", folder_answers)
    tap.run("--softmax of numbers", refuse, "remove --softmax", "steps", write(os.path.join(folder, "exact.csv"),
            [row[1:4] for row in rows], head[1:4]), "--softmax")
    done = neap("eval", runs["classes"], one)
    tap.check("eval of one table", None if done.returncode == 2 and "no labels" in done.stderr else done.stderr)
    np.savez(os.path.join(folder, "plain.npz"), x=rng.normal(size=(12, 5, 3)), y=np.arange(12) % 2, features=rng.normal(size=7))
    runs["plain"] = os.path.join(folder, "run-plain")
    done = neap("train", os.path.join(folder, "plain.npz"), "--net", "gru:4,li", *train, "--out", runs["plain"])
    assert done.returncode == 0, done.stderr
    tap.run("predict on one table: a model without names", lambda: None if len(columns("plain", os.path.join(folder, "order.tsv"))[0]) == 1
            else "no answer")
    tap.run("predict on one table: a model without names, other columns", refuse, "5 features", "plain", one)


def refusals(tap, folder):
    """One line that names file and line, exit code 2, and no file."""
    odd = os.path.join(folder, "bad.csv")
    sample = ["--sample-column", "s", "--target", "y"]
    cases = [("an empty field", b"a,b\n1,2\n3,\n", [], "line 3"), ("nan", b"a\n1\nnan\n", [], "line 3"),
             ("inf", b"a\n1\ninf\n", [], "line 3"), ("too large", b"a\n1e999\n", [], "line 2"),
             ("hexadecimal", b"a\n0x10\n", [], "line 2"), ("a decimal comma", b'a;b\n1,5;2\n', [], "line 2"),
             ("a short row", b"a,b\n1,2\n3\n", [], "line 3"), ("a long row", b"a,b\n1,2,3\n", [], "line 2"),
             ("an open quote", b'a,b\n1,"2\n3,4\n', [], "line 2"), ("text behind a quote", b'a\n"1"2\n', [], "line 2"),
             ("a zero byte", b"a\n1\0\n", [], "line 2"), ("UTF-16", "a\n1\n".encode("utf-16"), [], "iconv -f UTF-16 -t UTF-8"),
             ("Latin-1 in a name", b"gr\xf6\xdfe,b\n1,2\n", [], "line 1: 'gr??e' is not UTF-8"),
             ("Latin-1 in a label", b"v,y\n1,nord\n2,s\xfcd\n", ["--target", "y"], "iconv -f LATIN1 -t UTF-8 '" + odd + "'"),
             ("Latin-1 in --labels", b"s,v\na,1\n", ["--sample-column", "s", "--labels", os.path.join(folder, "latin.csv")], "latin.csv', line 1"),
             ("a text", b"id,v,state\n1,2,run\n", [], "line 2: column 'state' is 'run', which is not a finite number. Pass --target state "
              "if it is the target, --sample-column state if it names the samples, or --drop state to ignore it"),
             ("a text next to a target", b"s,v,y\na,x,1\n", sample, "finite number. No column that is left has numbers to learn from"),
             ("an empty feature", b"a,b\n1,\n", [], "column 'b' is empty. The file has 1 such cell. Fill it in, remove the row, pass --missing previous"),
             ("a gap of R", b"a,b\n1,2\n1,NA\n", [], "is 'NA', which is not a finite number. The file has 1 such cell. Fill it in"),
             ("blanks between", b"a b\n1 2\n", [], "Separate the fields by commas"), ("a comma", b"a;b\n1,5;2\n", [], "Write decimals with a point"),
             ("--classes of reals", b"s,v,y\na,1,1.0\nb,1,0.0\n", [*sample, "--classes", "2"], "whole numbers (1, not 1.0)"),
             ("--classes and --numbers", b"s,v,y\na,1,1\n", [*sample, "--classes", "2", "--numbers"], "Remove --numbers"),
             ("--classes of two targets", b"v,y,z\n1,1,1\n", ["--target", "y,z", "--classes", "2"], "Pass one target"),
             ("--classes without a target", b"a,b\n1,2\n", ["--classes", "2"], "has no target. Pass --target NAME"),
             ("columns by name", b"a,b\n1,2\n", ["--target", "c"], "Its columns are a, b"),
             ("an empty line", b"a\n1\n\n2\n", [], "line 3"), ("no row", b"a,b\n", [], "no rows"),
             ("empty", b"", [], "no rows"), ("a sample apart", b"s,v,y\na,1,0\nb,1,0\na,2,0\n", sample, "line 4"),
             ("a nameless sample", b"s,v,y\n,1,0\n", sample, "line 2"), ("no such column", b"s,v\na,1\n", sample, "'y'"),
             ("texts and reals", b"s,v,y\na,1,0.5\na,1,x\n", sample, "line 3"),
             ("reals and texts", b"s,v,y\na,1,x\na,1,0.5\n", sample, "line 3"),
             ("no target at all", b"s,v,y\na,1,\n", sample, "all targets are empty"), ("no feature", b"s,y\na,1\n", sample, "features"),
             ("not of --classes", b"s,v,y\na,1,7\n", [*sample, "--classes", "3"], "line 2"),
             ("twice", b"a,b\n1,2\n", ["--target", "a", "--drop", "a"], "twice"),
             ("a name of two columns", b"ax,ay,ax\n1,2,3\n", ["--drop", "ax"], "line 1: two columns are named 'ax'. Rename one of them; if the first line is data"),
             ("a name of two columns, --header yes", b"ax,ay,ax\n1,2,3\n", ["--header", "yes"], "are named 'ax'. Rename one of them\n"),
             ("a class that is listed twice", b"s,v,y\na,1,w\n", [*sample, "--classes", os.path.join(folder, "doubled.txt")],
              "names the class 'w' twice. Remove one of the lines"),
             ("two kinds of targets", b"a,b\n1,2\n", ["--target", "a", "--label", "(.)"], "--label"),
             ("--sensor", b"a,b\n1,2\n", ["--sensor", "3x3"], "--sensor"),
             ("half of two targets", b"a,b,c\n1,2.5,\n", ["--target", "b,c"], "line 2"),
             ("a label too few", b"s,v\na,1\nc,2\n", ["--sample-column", "s", "--labels", os.path.join(folder, "two.csv")],
              "'c'")]
    open(os.path.join(folder, "two.csv"), "w").write("a,1\nb,2\n")
    open(os.path.join(folder, "doubled.txt"), "w").write("w\nx\nw\n")
    open(os.path.join(folder, "latin.csv"), "wb").write(b"a,s\xfcd\n")
    for name, content, options, needle in cases:
        open(odd, "wb").write(content)
        out = os.path.join(folder, "none.h5")

        def refused():
            done = neap("encode", odd, "--out", out, *options)
            if done.returncode != 2 or done.stderr.count("\n") != 1 or needle not in done.stderr:
                return f"{done.returncode}: {done.stderr}"
            left = [x for x in os.listdir(folder) if x.startswith("none")]
            return f"left {left}" if left else None
        tap.run(f"refused: {name}", refused)
    done = neap("train", odd, "--net", "li", "--memory", "1M")
    tap.check("train says what encode is for", None if done.returncode == 2 and "neap encode" in done.stderr else done.stderr)


def doubts(tap, folder):
    """Tables that are read, but are probably meant otherwise: one line of warning, and none if an option says what is meant."""
    path, out = os.path.join(folder, "doubt.csv"), os.path.join(folder, "doubt.h5")
    by = ["--sample-column", "s", "--target", "y"]

    def walks(cells, other):
        """Five samples of seven rows with class w; these have another one."""
        odd = [cells[i:i + 2] for i in range(0, len(cells), 2)]
        return ("s,v,y\n" + "".join(f"{s},{i / 3:.2f},{other if f'{s}{i}' in odd else 'w'}\n" for s in "abcde" for i in range(7))).encode()
    events = b"t,xs,y,p\n" + b"".join(b"%d,%d,3,1\n" % (i, i) for i in range(9))
    for name, content, options, needle in (
            ("plain", b"a,b\n1,2\n", [], None), ("labels of floats", b"v,y\n1,1.0\n2,0.0\n", ["--target", "y"], "such as 1.0, and are read as numbers"),
            ("floats as numbers", b"v,y\n1,1.0\n2,0.0\n", ["--target", "y", "--numbers"], None),
            ("fractions", b"v,y\n1,1.5\n2,0.0\n", ["--target", "y"], None),
            ("a first row that counts", b"0,1,2\n5,6,7\n", [], "pass --header yes"), ("a header that counts", b"0,1,2\n5,6,7\n", ["--header", "yes"], None),
            ("a row of data as header", b"1.5,2,cat\n2.5,3,cat\n", ["--target", "cat"], "its field '1.5' is a number. If it is data, pass --header no"),
            ("an empty class", walks("a3", ""), by, "line 5: the target is empty, but 'w' in the other rows of the sample, so the data set has one class per step"),
            ("another class", walks("b0", "run"), by, "line 9: the target is 'run', but 'w' in the other rows"),
            ("a last class", walks("e4", "q"), by, "line 34: the target is 'q'"), ("two cells of a sample", walks("b1b4", "run"), by, "line 10: "),
            ("no odd cell", walks("", ""), by, None), ("cells of many samples", walks("a1b1c1", "run"), by, None),
            ("three cells of a sample", walks("b0b2b5", "run"), by, None), ("classes that change", walks("b3b4", "run"), by, None),
            ("a last step of each sample", walks("".join(f"{s}{i}" for s in "abcde" for i in range(6)), ""), by, None),
            ("one sample, a cell", b"v,y\n" + b"1,3\n" * 6 + b"1,\n" + b"1,3\n" * 6, ["--target", "y"], "line 8: the target is empty, but '3'"),
            ("samples without a class", b"s,v,y\na,1,w\na,2,w\nb,1,\nb,2,\nc,1,x\nd,1,\n", by, "2 of 4 samples have no class in any row (the first begins in '"
             + path + "', line 4), so the data set has one class per step instead of one per sample. Fill in the class, or remove these samples"),
            ("samples without a number", b"s,v,y\na,1,0.5\nb,1,\n", by, "1 of 2 samples has no target in any row (the first begins in '" + path
             + "', line 3), so the data set has one target per step"),
            ("masked steps and a sample without a class", b"s,v,y\na,1,w\na,2,w\na,2,x\na,2,x\nb,1,\nb,2,\n", by, "line 6): a network cannot learn from it. Fill in"),
            ("one sample, short", b"v,y\n1,3\n2,3\n3,\n4,3\n", ["--target", "y"], None),
            ("one sample, a step", b"v,y\n" + b"1,a\n" * 9 + b"1,b\n" * 9, ["--target", "y"], None),
            ("a column of classes", b"v,Label\n0.5,1\n0.2,2\n", [], "column 'Label' has whole numbers and is read as a feature. If it is the class, pass --target Label"),
            ("a column of classes that is named", b"v,label\n0.5,1\n0.2,2\n", ["--target", "label"], None),
            ("a column of one class", b"v,label\n0.5,1\n0.2,1\n", [], None), ("a column of numbers", b"v,label\n0.5,1.5\n0.2,1\n", [], None),
            ("a number per sample", b"s,v,kind\na,1,1\na,2,1\nb,1,2\nb,2,2\n", ["--sample-column", "s"], "that are constant in each sample and is read as a feature. If "
             "it is the class, pass --target kind"), ("samples of one row", b"s,v,kind\na,1.5,1\nb,1,2\nc,2,2\n", ["--sample-column", "s"], None),
            ("a number that varies", b"s,v,kind\na,1,1\na,2,2\nb,1,2\nb,2,2\n", ["--sample-column", "s"], None),
            ("the index of pandas", b",a\n0,5\n1,6\n", [], "Pass --drop 1"), ("the index is dropped", b",a\n0,5\n1,6\n", ["--drop", "1"], None),
            ("events of a camera", events, [], "look like events of a camera"), ("t and x alone", b"t,x,y\n1,2,3\n", [], None)):
        open(path, "wb").write(content)
        done = neap("encode", path, "--out", out, "--force", *options)
        good = done.returncode == 0 and (done.stderr.count("\n") == 1 and "neap encode: warning: " in done.stderr and needle in done.stderr
                                         if needle else not done.stderr)
        tap.check(f"doubt: {name}", None if good else f"{done.returncode}: {done.stderr}")
    open(path, "wb").write(events)
    line = neap("encode", path, "--out", out, "--force").stderr
    here = os.getcwd()
    os.chdir(folder)
    exec(re.search(r'python3 -c "(.*)"', line).group(1), {})
    os.chdir(here)
    report = neap_json("encode", path[:-4] + ".npz", "--out", out, "--force", "--sensor", "9x9")
    tap.check("doubt: events of a camera, after the advice", None if report["events"] == 9 else str(report))
    out = os.path.join(folder, "bare.h5")
    open(path, "wb").write(b"a,b\n1,2\n3,4\n")
    done = neap("encode", path, "--out", out)
    tap.check("one table is one sample", None if "pass --sample-column NAME" in done.stdout else done.stdout)
    tap.check("a table without targets: encode", None if "no targets (--target or --labels adds them" in done.stdout else done.stdout)
    done = neap("train", out, "--out", os.path.join(folder, "never"))
    tap.check("a table without targets: train", None if done.returncode == 2 and "encode them again with --target NAME or --labels" in
              done.stderr and "numpy" not in done.stderr and "--next-step" in done.stderr else done.stderr)


def chunks(folder):
    """Compressed chunks of many samples are named, with the command that mends them."""
    rng = np.random.default_rng(2)
    path = os.path.join(folder, "packed.h5")
    train = ["--net", "gru:4,li", "--epochs", "1", "--memory", "8M", "--batch", "16"]
    x, y = rng.normal(0, 1, (64, 500, 9)), np.arange(64) % 2
    for name, options in (("several", {"chunks": (32, 500, 9), "compression": "gzip"}), ("one", {"chunks": (1, 500, 9), "compression": "gzip"}),
                          ("plain", {"chunks": (32, 500, 9)})):
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=x, **options)
            file["y"] = y
        done = neap("train", path, *train, "--out", os.path.join(folder, "chunks-" + name))
        said = "x:CHUNK=1x500x9 " in done.stderr and "32 samples" in done.stderr
        if done.returncode or said != (name == "several"):
            return f"{name}: {done.stderr}"
    return None


def main():
    with Tap() as tap, Folder() as folder:
        rng = np.random.default_rng(1)
        open(os.path.join(folder, "classes.txt"), "w").write("w\nx\n")
        folders(tap, folder, rng)
        one_file(tap, folder, rng)
        tap.run("train, eval", learn, os.path.join(folder, "learn"))
        answer_tables(tap, os.path.join(folder, "answers"))
        refusals(tap, folder)
        doubts(tap, folder)
        tap.run("compressed chunks of many samples are named", chunks, folder)


main()
