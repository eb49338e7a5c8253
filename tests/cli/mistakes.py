#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Typical mistakes of people who come from other programs: one line that leads to the next step, and no answer that is wrong
without a word.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import wave

from harness import Folder, Tap, encode, neap, neap_json, need, write_recordings

need("numpy", "h5py")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

TRAIN = ["--epochs", "1", "--memory", "4M", "--threads", "1", "-q"]
NUMBERS = [*TRAIN, "--net", "gru:8,li"]

OPTIONS = (  # command, option, what the line says
    ("train", "--batch-size", "use '--batch'."), ("train", "--batch_size", "use '--batch'."),
    ("train", "--num-epochs", "use '--epochs'."), ("train", "--hidden", "use '--net', whose layers have a name and a size"),
    ("train", "--val-split", "use '--validation'."), ("train", "--output-dir", "use '--out'."),
    ("train", "--gpu", "use '--device', cuda or cuda:N"), ("train", "--cuda", "use '--device', cuda or cuda:N"),
    ("train", "--early-stopping", "does not stop early"), ("train", "--data", "an argument, not an option"),
    ("encode", "--target-column", "use '--target'."), ("encode", "--size", "use '--sensor'."),
    ("compare", "--hidden", "--net gru:64,li"), ("predict", "--proba", "use '--softmax'."), ("predict", "--text", "text:FILE"),
    ("train", "--seq_length", "text:steps=3:FILE"), ("train", "--steps", "text:steps=3:FILE"), ("train", "--shuffle", "--seed"),
    ("train", "--test-size", "--validation 0.2"), ("train", "--overwrite", "another --out"), ("train", "--prompt", "not supported"),
    ("encode", "--n-mels", "use '--channels'."), ("encode", "--group", "use '--sample-column'."), ("encode", "--height", "use '--sensor'"),
    ("encode", "--fs", "read from each recording"), ("encode", "--sep", "is recognized"), ("encode", "--regex", "use '--label'."),
    ("predict", "--checkpoint", "use '--from'."), ("predict", "--model", "neap predict RUN DATA"), ("predict", "--format", "ending of --out"),
    ("eval", "--confusion", "is printed always"), ("eval", "--format", "use '--json'."),
    ("predict", "--csv", "pass --out FILE.csv"), ("encode", "--y", "use '--target'."), ("encode", "--class", "'--label' for a part of the file names"),
    ("encode", "--features", "ignore columns with '--drop'"), ("encode", "--index", "use '--sample-column'"),
    ("train", "--target", "--out FILE.h5 --target COLUMN"), ("eval", "--label", "--out FILE.h5 --target COLUMN"),
    ("eval", "--text", "text:FILE"), ("eval", "--out", "neap predict RUN DATA --out FILE.csv"), ("plan", "--why", "listed with the reason"),
    ("encode", "--time-window", "it is --dt of 'neap train'"), ("train", "--gradient-checkpointing", "pass --memory BYTES"), ("train", "--text:steps", "write --text text:steps=64:FILE"), ("train", "--timesteps", "--dt sets the duration of a step"),
    ("train", "--time-window", "use '--dt'."), ("encode", "--fillna", "use '--missing', previous, zero or drop"),
    ("train", "--val", "or '--test' with a data set"), ("eval", "--test", "neap eval RUN DATA"), ("predict", "--data", "neap predict RUN DATA"),
    ("encode", "--level", "an option of 'neap predict'"), ("encode", "--threshold", "--channels, --low and --high"), ("export", "--out", "use '--nir'"))


def refused(folder, args, *needles, lacks="did you mean '--d"):
    """One line with all needles and exit code 2; nothing else is written."""
    before = sorted(os.listdir(folder))
    done = neap(*args, cwd=folder)
    missing = [needle for needle in needles if needle not in done.stderr]
    if done.returncode != 2 or done.stderr.count("\n") != 1 or done.stdout or missing or lacks in done.stderr:
        return f"exit {done.returncode}, lacks {missing}: {done.stderr}{done.stdout}"
    return None if sorted(os.listdir(folder)) == before else f"left {os.listdir(folder)}"


def values():
    """Arguments behind `train classes.npz`, and what the line has."""
    yield ["--net", "GRU:64,li"], ("unknown cell 'GRU'", "did you mean 'gru'?")
    yield ["--net", "gru:64"], ("the last layer is 'gru:64'", "Use gru:64,li")
    yield ["--net", "64"], ("'64' is a size without a cell", "such as lif:64,li")
    yield ["--net", "gru:64x2"], ("not '64x2'", "such as gru:64,gru:64,li")
    yield ["--patience", "3"], ("'3' has no unit", "30s", "set --epochs")
    yield ["-lr", "0.1"], ("did you mean '--lr'?",)
    yield ["--text", "a.txt", "--text", "b.txt"], ("--text is given twice, 'a.txt' and 'b.txt'. Pass it once",)
    yield ["--test", "a.h5", "--test", "b.h5"], ("--test is given twice, 'a.h5' and 'b.h5'", "Pass it once")
    yield ["--beta", "0.9", "--tau", "5ms"], ("--beta 0.9 and --tau 5ms set the same number", "Pass only one of them")
    yield ["--width=1", "--slope", "25"], ("--width 1 and --slope 25 set the same number",)
    yield ["--freeze", "layer0", "--freeze", "layer1"], ("a comma between the names of a list: layer0,layer1",)
    yield ["--out", "there", "--memory-total", "1K"], ("1 KiB is too small",)
    yield ["--net", "lif:8:tua=3ms,li"], ("no key 'tua'", "did you mean 'tau'?")
    yield ["--net", "lif:8:tau=20,li"], ("tau=20 has no unit", "tau=20ms or tau=20s?")
    yield ["--net", "lif:8,cubalif:8:threshold=2:tau_syn=5,li"], ("tau_syn=5 has no unit",)
    yield ["--validation", "10%"], ("'10%' is not a fraction", "Did you mean 0.1 (10 percent)?")
    yield ["--validation", "10"], ("'10' is not a fraction", "Did you mean 0.1")
    yield ["--dropout", "50%"], ("Did you mean 0.5",)
    yield ["--validation", "1"], ("must be between 0 and 0.99",)
    yield ["--validation", "ten%"], ("'ten%' is not a number",)
    yield ["--out", "a/b/c"], ("no folder 'a'", "mkdir -p", "--out")
    yield ["--out", "there/b/c"], ("no folder 'there/b'",)
    yield ["--config", "epoch.json"], ("unknown option 'epoch'", "did you mean 'epochs'?")
    yield ["--config", "batch_size.json"], ("unknown option 'batch_size'", "did you mean 'batch'?")
    yield ["--classes", "bird,cat"], ("'bird,cat' is not a whole number", "The names of the classes are in DATA", "remove --classes")
    yield ["--validation", "a.h5"], ("'a.h5' is not a number. For a data set, pass --test DATA",)
    yield ["--config", "there"], ("'there' is a folder", "--config 'there/run.json'")
    yield ["--channels", "9", "--classes", "9"], ("Remove them, or pass --channels 2 --classes 2",)
    yield ["--optimizer", "Adam"], ("did you mean 'adam'?",)


KINDS = (  # model, data, words of the line
    ("spikes", "classes.npz", ("'classes.npz' contains real numbers", "trained on sound. Use another model, or pass a recording")),
    ("spikes", "table.csv", ("'table.csv' is a table of numbers", "neap encode DIR --out FILE.h5 --channels 32\n")),
    ("events0", "pool1.h5", ("has 128 input channels", "neap encode ... --pool 2\n")),
    ("classes", "-", ("can only be a recording", "trained on real numbers")),
    ("there", "classes.npz", ("'there' is not the folder of a run",)),
    ("spikes", "text:t.txt", ("is a text", "trained on sound")),
    ("classes", "text:t.txt", ("is a text", "trained on real numbers")),
    ("classes", "t.txt", ("'t.txt' is a text file", "an array (.npz, .h5) or a table (.csv, .tsv) of numbers\n")),
    ("classes", "sounds/0_a_0.wav", ("is a recording", "trained on real numbers")),
    ("classes", "numbers.npz", ("numbers per sample as targets", "one class per sample")),
    ("numbers", "classes.npz", ("one class per sample as targets", "trained on numbers per sample")),
    ("text", "spikes.h5", ("was encoded from sound", "trained on a text", "pass a text: text:FILE\n")),
    ("text", "sounds/0_a_0.wav", ("is a recording", "trained on a text")),
    ("text", "classes.npz", ("contains real numbers", "trained on a text")),
    ("text", "table.csv", ("a table of numbers", "trained on a text")),
    ("text", "-", ("can only be a recording", "trained on a text")),
    ("events", "spikes.h5", ("was encoded from sound", "trained on events")),
    ("events", "table.csv", ("a table of numbers", "trained on events", "neap encode DATA --out FILE.h5 --sensor 8x8\n")),
    ("events", "sounds/0_a_0.wav", ("is a recording", "trained on events")),
    ("spikes", "pool1.h5", ("was encoded from events", "trained on sound")),
    ("classes", "wide.npz", ("has 3 features, but the model was trained on 2",)),
    ("classes", "narrow.npz", ("has 1 feature, but the model was trained on 2",)),
)


def neap_out(folder, data, out, *more):
    """Encodes; returns the file."""
    done = neap("encode", data, "--out", out, *more, cwd=folder)
    assert done.returncode == 0, done.stderr
    return out


def events(folder, name, *more):
    neap_out(folder, "cams", name, "--sensor", "8x8", *more)


def prepare(folder):
    """Data of every kind, and a model for each."""
    rng = np.random.default_rng(1)
    x, two = rng.normal(size=(60, 9, 2)), np.arange(60) % 2
    for name, arrays in {"classes": {"x": x, "y": two}, "numbers": {"x": x, "y": x.mean(1)}, "wide": {"x": rng.normal(size=(9, 9, 3))},
                         "narrow": {"x": x[:, :, :1]}}.items():
        np.savez(os.path.join(folder, name + ".npz"), **arrays)
    for kind in "ab":
        os.makedirs(os.path.join(folder, "cams", kind))
        for i in range(6):
            at = np.sort(rng.integers(0, 50000, 99))
            np.savez(os.path.join(folder, "cams", kind, f"{i}.npz"), t=at, x=rng.integers(0, 8, 99), y=rng.integers(0, 8, 99),
                     p=rng.integers(0, 2, 99))
    events(folder, "pool1.h5")
    events(folder, "pool2.h5", "--pool", "2")
    events(folder, "merged.h5", "--polarity", "merge")
    write_recordings(os.path.join(folder, "sounds"), classes=2, each=6)
    encode(os.path.join(folder, "sounds"), os.path.join(folder, "spikes.h5"))
    shutil.copytree(os.path.join(folder, "sounds"), os.path.join(folder, "sevens"))
    for name in sorted(os.listdir(os.path.join(folder, "sevens")))[:3]:
        os.rename(os.path.join(folder, "sevens", name), os.path.join(folder, "sevens", "7_" + name.split("_", 1)[1]))
    encode(os.path.join(folder, "sevens"), os.path.join(folder, "sevens.h5"))
    for name in "there", "hollow":
        os.mkdir(os.path.join(folder, name))
    for name, text in {"t.txt": "abc, abc. " * 90, "table.csv": "a,b\n" + "1,2\n" * 9, "epoch.json": '{"epoch": 3}',
                       "batch_size.json": '{"batch_size": 3}', "there/notes": "?"}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for name, data in {"classes": "classes.npz", "numbers": "numbers.npz", "spikes": "spikes.h5", "events": "pool1.h5", "events0": "pool2.h5",
                       "text": "text:steps=20:t.txt"}.items():
        done = neap("train", data, *NUMBERS, "--out", name, cwd=folder)
        assert done.returncode == 0, done.stderr


def warned(folder, command, *args):
    """Standard error without progress, of a command that succeeds."""
    done = neap(command, *args, "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def encodings(folder):
    """Events encoded with other settings, and fewer channels, are named; also those of a test set."""
    small = "randman:units=20,classes=2,samples=40,steps=20,part=train"
    warned(folder, "train", small, *TRAIN[:-1], "--net", "lif:8,li", "--channels", "50", "--out", "more")
    warned(folder, "train", small, *TRAIN[:-1], "--net", "lif:8,li", "--out", "exact")
    fewer = small.replace("units=20", "units=10")
    found = {
        "same": warned(folder, "eval", "events", "pool1.h5"),
        "pool": warned(folder, "eval", "events", "pool2.h5"),
        "polarity": warned(folder, "predict", "events", "merged.h5"),
        "more": warned(folder, "eval", "more", small),
        "fewer": warned(folder, "eval", "exact", fewer)}
    lines = {
        "same": "", "more": "",
        "pool": "warning: pool2.h5 was encoded with pool 2, but the model was trained on events encoded with 1, so its answers are "
                "unreliable. Encode the data as the training data was\n",
        "polarity": "warning: merged.h5 was encoded with polarity merge, but the model was trained on events encoded with split, so its "
                    "answers are unreliable. Encode the data as the training data was\n",
        "fewer": f"warning: {fewer} has 10 input channels, but the model was trained on 20; the other inputs get no spikes, so its "
                 "answers are unreliable. Encode the data as the training data was\n"}
    if found != lines:
        return str(found)
    test = warned(folder, "train", "pool1.h5", *TRAIN[:-1], "--net", "gru:8,li", "--test", "pool2.h5", "--out", "tested")
    return None if lines["pool"] in test else test


def other_kind(folder):
    """The command for a model of events encodes data that the model takes without a warning."""
    line = neap("predict", "events0", "table.csv", cwd=folder).stderr
    done = neap(*proposed(line, DATA="cams", **{"FILE.h5": "proposed.h5"}), cwd=folder)
    again = warned(folder, "predict", "events0", "proposed.h5") if done.returncode == 0 else done.stderr
    return again or refused(folder, ["train", "text:t.txt", "--from", "spikes", "--out", "x"], "is a text", "trained on sound")


def run_missing(folder):
    """A data set without a run, in its place or alone, is not taken for one."""
    for args, needles in ((["s.csv"], ("RUN is missing", "neap {} RUN 's.csv'")), (["text:t.txt"], ("neap {} RUN 'text:t.txt'",)),
                          (["classes"], ("DATA is missing",)), (["classes", "spikes"], ("are runs", "neap {} 'classes' DATA")), (["nowhere"], ("no file or folder 'nowhere'", "neap {} RUN DATA")),
                          (["spikes.h5", "classes.npz"], ("'spikes.h5'", "not a graph in NIR", "the folder of a run")),
                          (["table.csv", "classes.npz"], ("not a safetensors file", "the folder of a run"))):
        for command in "predict", "eval":
            wrong = refused(folder, [command, *args], *[needle.format(command) for needle in needles])
            if wrong:
                return wrong
    return None


def proposed(line, **values):
    """The command at the end of a line, its words in capitals replaced."""
    assert "neap encode" in line, line
    command = line[line.index("neap encode"):].strip()
    for name, value in values.items():
        command = command.replace(name, value)
    return shlex.split(command)[1:]


def no_labels(folder):
    """eval of tables, recordings and folders without labels: the command that it proposes gives data that it evaluates."""
    path = os.path.join(folder, "s.csv")
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,u,v,class\n" + "".join(f"s{i // 9},{i % 7},{i % 5},{'ab'[i // 9 % 2]}\n" for i in range(540)))
    small = [*TRAIN[:-1], "--net", "gru:8,li", "--out"]
    warned(folder, "train", neap_out(folder, "s.csv", "s.h5", "--sample-column", "id", "--target", "class"), *small, "tables")
    os.mkdir(os.path.join(folder, "flat"))
    for i, name in enumerate(sorted(os.listdir(os.path.join(folder, "sounds")))):
        shutil.copy(os.path.join(folder, "sounds", name), os.path.join(folder, "flat", f"{i:03}_{'zero' if name[0] == '0' else 'one'}.wav"))
    warned(folder, "train", neap_out(folder, "flat", "flat.h5", "--channels", "32", "--label", "_([a-z]+)"), *small, "heard")
    for run, data, values in (("tables", "s.csv", {"COLUMN": "class"}), ("heard", "flat/000_zero.wav", {"DIR": "flat", "FILE.h5": "FILE.h5 --label '_([a-z]+)'"}),
                              ("heard", "flat", {})):
        done = neap("eval", run, data, cwd=folder)
        out = f"labelled-{run}{len(values)}.h5"
        again = neap(*[word.replace("FILE.h5", out) for word in proposed(done.stderr, **values)], cwd=folder)
        said = neap("eval", run, out, "-q", cwd=folder)
        if done.returncode != 2 or again.returncode or said.returncode or said.stderr or "accuracy" not in said.stdout:
            return f"{done.stderr}{again.stderr}{said.stderr}{said.stdout}"
    return None


def strangers(folder):
    """All characters that a text model does not know are listed at once."""
    with open(os.path.join(folder, "other.txt"), "w", encoding="utf-8") as file:
        file.write("abc xyz\t1 abc")
    return refused(folder, ["predict", "text", "text:other.txt"], "5 characters", r": '\t', '1', 'x', 'y', 'z'. Remove them")


def units(folder):
    """Bare numbers below 1 are seconds, as neap writes them; the specification of a run is accepted."""
    hashes = set()
    for number, tau in enumerate(("20ms", "0.02", "0.02s")):
        hashes.add(neap_json("train", "classes.npz", *TRAIN, "--net", f"lif:8:tau={tau},li", "--out", f"unit{number}", cwd=folder)["weights_hash"])
    net = json.load(open(os.path.join(folder, "unit0", "run.json")))["settings"]["net"]
    hashes.add(neap_json("train", "classes.npz", *TRAIN, "--net", net, "--out", "unit3", cwd=folder)["weights_hash"])
    return None if len(hashes) == 1 else str(hashes)


def fresh_readout(folder):
    """A new readout is chosen by its targets, and what is given stands."""
    warned(folder, "train", "classes.npz", *TRAIN[:-1], "--net", "lif:8,li", "--out", "spiking")
    found = {}
    for name, data, more in (("numbers", "numbers.npz", []), ("classes", "classes.npz", []), ("given", "numbers.npz", ["--readout", "last", "--tau-out", "5ms"])):
        run = "fresh-" + name
        warned(folder, "train", data, *TRAIN[:-1], "--from", "spiking", "--fresh-readout", *more, "--out", run)
        settings = json.load(open(os.path.join(folder, run, "run.json")))["settings"]
        found[name] = settings["readout"], settings["tau_out"]
    return None if found == {"numbers": ("mean", 0), "classes": ("sum", 0.02), "given": ("last", 0.005)} else str(found)


def nothing_validated(folder):
    """Without validation samples no accuracy of them is printed."""
    done = neap("train", "classes.npz", *TRAIN[:-1], "--net", "gru:8,li", "--validation", "0.001", "--out", "none", cwd=folder)
    said = [line for line in done.stderr.splitlines() if "warning: --validation 0.001 holds out none of 60 samples" in line]
    shown = "epoch 1/1: loss" in done.stdout and ", validation" not in done.stdout + done.stderr
    return None if done.returncode == 0 and len(said) == 1 and shown else f"{done.stdout}{done.stderr}"


def finished(folder):
    """--resume of a run that is complete says so, and how to train longer."""
    done = neap("train", "--resume", "--out", "classes", cwd=folder)
    more = neap("train", "--resume", "--out", "classes", "--epochs", "2", cwd=folder)
    line = "; the run is complete. To train longer, raise --epochs\n"
    return None if (line in done.stderr, line in more.stderr, more.returncode) == (True, False, 0) else done.stderr + more.stderr


def damaged_metrics(folder):
    """--resume of a run whose metrics.csv lost a row tells of it and keeps the file; a whole one, and none, is not told of."""
    args = ["train", "--resume", "--out", "damaged", "-q", "--epochs"]
    path = os.path.join(folder, "damaged", "metrics.csv")
    shutil.copytree(os.path.join(folder, "numbers"), os.path.join(folder, "damaged"))
    whole = neap(*args, "3", cwd=folder).stderr
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    damaged = "\n".join([lines[0], "x" + lines[1], *lines[2:]]) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(damaged)
    done = neap(*args, "4", cwd=folder)
    line = "warning: 'damaged/metrics.csv' has no valid rows for 1 of the 3 epochs so far, and continues without them. The file as it was " \
        "is in 'damaged/metrics.csv.old'\n"
    with open(path, encoding="utf-8") as file, open(path + ".old", encoding="utf-8") as old:
        kept = [row.split(",")[0] for row in file.read().splitlines()], old.read()
    if done.returncode or line not in done.stderr or line in whole or kept != (["epoch", "2", "3", "4"], damaged):
        return f"{whole}{done.stderr}{kept}"
    os.remove(path)
    gone = neap(*args, "5", cwd=folder)
    return gone.stderr if gone.returncode or "valid rows" in gone.stderr else None


def other_test(folder):
    """--resume with another test set is refused with the command that evaluates it; the same file, and one that was moved, are not."""
    shutil.copy(os.path.join(folder, "numbers.npz"), os.path.join(folder, "test.npz"))
    shutil.copy(os.path.join(folder, "numbers.npz"), os.path.join(folder, "other.npz"))
    warned(folder, "train", "numbers.npz", *NUMBERS[:-2], "--net", "gru:8,li", "--test", "test.npz", "--out", "with-test")
    resume = ["train", "--resume", "--out", "with-test", "--epochs", "2", "--test"]
    command = "neap eval 'with-test' 'other.npz'"
    wrong = refused(folder, [*resume, "other.npz"], "was started with --test test.npz, not other.npz. Remove --test; ", f"run {command}\n")
    if wrong or neap(*shlex.split(command)[1:], cwd=folder).returncode:
        return wrong or command
    same = neap(*resume, "./test.npz", cwd=folder)
    os.rename(os.path.join(folder, "test.npz"), os.path.join(folder, "moved.npz"))
    moved = neap(*resume, "moved.npz", cwd=folder)
    return None if same.returncode == moved.returncode == 0 else same.stderr + moved.stderr


def least_budget(folder):
    """The least budget of a message is enough, as it is written: also the rounded size."""
    done = neap("train", "classes.npz", "--memory", "1K", "--threads", "1", cwd=folder)
    least, size = re.search(r"at least (\d+) bytes \(([\d.]+) KiB\)", done.stderr).groups()
    if not int(least) <= float(size) * 1024 < 1.01 * int(least):
        return done.stderr
    return neap("train", "classes.npz", "--epochs", "1", "--memory", size + "K", "--threads", "1", "--out", "least", cwd=folder).stderr \
        .partition("neap train: ")[2] or None


def skipped(folder):
    """A folder with files that cannot be read: the others are answered for, one line counts them, also with --out."""
    rows = "f0,f1\n" + "1,2\n" * 9
    os.mkdir(os.path.join(folder, "stray"))
    for name, text in {"a.csv": rows, "b.csv": rows, "aa.csv": "f0,f1\n1\n", "labels.csv": "name,class\na,1\n", "README": "?"}.items():
        with open(os.path.join(folder, "stray", name), "w", encoding="utf-8") as file:
            file.write(text)
    found = [neap("predict", "classes", "stray", *more, "-q", cwd=folder) for more in ([], ["--out", "stray.csv"])]
    answers = [found[0].stdout, open(os.path.join(folder, "stray.csv"), encoding="utf-8").read()]
    for done, text in zip(found, answers):
        if done.returncode != 0 or done.stderr.count("\n") != 1 or "3 of 5 files skipped, also 'stray/labels.csv'. The first: 'stray/aa.csv'" not in done.stderr:
            return f"{done.returncode}: {done.stderr}"
        if [line.split(",")[0] for line in text.splitlines()] != ["file", "stray/a.csv", "stray/b.csv"]:
            return text
    return refused(folder, ["predict", "classes", "stray/labels.csv"], "labels.csv") or \
        refused(folder, ["predict", "classes", "stray/aa.csv", "stray/labels.csv"], "aa.csv")


def other_run(folder):
    """--resume with other data or options names them; a run is no data set; a folder that exists hides no other mistake, and may be empty."""
    with open(os.path.join(folder, "u.txt"), "w", encoding="utf-8") as file:
        file.write("uvwxyz 0123. " * 90)
    resume = ["train", "--resume", "--out"]
    for run, was, other in (("spikes", "spikes.h5", "classes.npz"), ("classes", "classes.npz", "numbers.npz"), ("classes", "classes.npz", "wide.npz"),
                            ("text", "text:steps=20:t.txt", "classes.npz"), ("classes", "classes.npz", "spikes.h5")):
        wrong = refused(folder, [*resume, run, other], f"other data ('{was}'), not '{other}'", f"neap train '{other}' --out NEW")
        if wrong:
            return wrong
    run = os.path.join(folder, "changed")
    shutil.copytree(os.path.join(folder, "classes"), run)
    shutil.copy(os.path.join(folder, "classes.npz"), os.path.join(folder, "kept.npz"))
    shutil.copy(os.path.join(folder, "numbers.npz"), os.path.join(folder, "classes.npz"))
    wrong = refused(folder, [*resume, "changed"], "the contents of 'classes.npz' have changed")
    os.replace(os.path.join(folder, "kept.npz"), os.path.join(folder, "classes.npz"))
    return wrong or \
        refused(folder, [*resume, "classes", "--next-step"], "--next-step differs from the run's", "Remove it") or \
        refused(folder, [*resume, "text", "--text", "u.txt"], "other data ('text:steps=20:t.txt'), not 'text:u.txt'", "neap train 'text:u.txt' --out NEW") or \
        refused(folder, [*resume, "classes", "--lr", "0.01"], "--lr 0.004, not 0.01", "--from 'classes'") or \
        refused(folder, ["train", "--resume", "classes"], "neap train --out 'classes' --resume") or \
        refused(folder, ["compare", "classes"], "'classes' is a run") or \
        refused(folder, ["train", "classes.npz", "--out", "there", "--memory", "1K"], "Use at least") or \
        refused(folder, ["train", "classes.npz", "--out", "there", "--memory", "4M"], "'there' already exists") or \
        neap("train", "classes.npz", *NUMBERS, "--out", "hollow", cwd=folder).stderr.partition("neap train: ")[2] or None


def regression(folder):
    """Errors of numbers are printed with the standard deviation of the targets; a net that learns nothing is reported; classes need another loss."""
    args = ["train", "numbers.npz", *TRAIN[:-1], "--net", "gru:8,li"]
    nothing = neap(*args, "--lr", "0", "--out", "still", cwd=folder)
    shown = neap("eval", "numbers", "numbers.npz", cwd=folder).stdout
    if "nothing was learned" not in nothing.stderr or "; standard deviation of the training targets 0." not in shown:
        return nothing.stderr + shown
    return refused(folder, [*args, "--loss", "cross-entropy", "--out", "x"], "needs classes", "--loss mse")


def enough(folder):
    """The share that is proposed for a validation set that is too small suffices."""
    args = ["train", "classes.npz", *TRAIN[:-1], "--net", "gru:8,li"]
    share = re.search(r"or pass --validation ([\d.]+) \(now", neap(*args, "--out", "few", cwd=folder).stderr).group(1)
    said = neap(*args, "--validation", share, "--out", "many", cwd=folder).stderr
    return said if "too few" in said else None


ARGUMENTS = (  # a call, and what the line has
    (["encode", "sounds", "new.h5"], "neap encode 'sounds' --out 'new.h5'"), (["encode", "sounds", "--out", "new.h5", "--split", "0.8"], "--validation 0.2 to 'neap train'"),
    (["train", "sounds/0_a_0.wav", "sounds/0_a_1.wav"], "neap encode FOLDER --out FILE.h5"), (["train", "text", "t.txt"], "neap train --text 't.txt'"),
    (["train", "classes.npz", "numbers.npz"], "neap train 'classes.npz' --test 'numbers.npz'"), (["train", "text:seq=64:t.txt"], "text:steps=64:t.txt\n"),
    (["train", "--text", "sounds/0_a_0.wav"], "is a recording, not a text"), (["compare", "classes"], "neap compare DATA"), (["plot", "spikes.h5"], "neap plot RUN"),
    (["train", "batch_size.json"], "has an extension that encode does not read"), (["predict", "classes", "epoch.json"], "has an extension that encode does not read"),
    (["predict", "spikes", "spikes.wav"], "is an HDF5 file by its first bytes, such as encode writes, but its name ends in .wav. Rename it to end in .h5"),
    (["predict", "spikes", "cams/a/0.npz"], "contains events, but the model was trained on sound"),
    (["predict", "classes", "cams/a/0.npz"], "contains events, but the model was trained on real numbers"),
    (["train", "bare.h5"], "has no data set '/labels'. Add it"), (["train", "far.h5", "--channels", "9"], "--channels 9 is too small: the largest channel that 'far.h5' uses is 39. Pass --channels 40"),
    (["train", "--resume", "--out", "classes", "--net", "lstm:8,li"], "or start a new run: neap train 'classes.npz' --net lstm:8,li --out NEW\n"),
    (["compare", "classes.npz", "--net", "gru:8,li", "--memory", "8M", "--strategy", "bptt", "--strategy", "revolve", "--journal", "j"], "Pass exactly one --strategy"),
    (["compare", "classes.npz", "--net", "gru:8,li", "--memory", "8M", "--strategy", "bptt", "--repeats", "2", "--journal", "j"], "Pass exactly one --strategy"),
    (["train", "one.npz", "--validation", "0.9", "--out", "x"], "Pass --validation 0, or add samples"))


def meant(folder):
    """An argument in the wrong place, data of another kind or under another name: the line names the option, the command or the value."""
    shutil.copy(os.path.join(folder, "spikes.h5"), os.path.join(folder, "spikes.wav"))
    np.savez(os.path.join(folder, "one.npz"), x=np.zeros((1, 9, 2)), y=np.zeros(1, int))
    for name in "bare", "far":
        with h5py.File(os.path.join(folder, name + ".h5"), "w") as file:
            for part, kind, values in ("times", np.float64, [0.1, 0.2]), ("units", np.int64, [3, 39]):
                rows = file.create_dataset("spikes/" + part, (4,), dtype=h5py.vlen_dtype(kind))
                for i in range(4):
                    rows[i] = np.array(values, kind)
            if name == "far":
                file["labels"] = np.arange(4) % 2
    for args, needle in ARGUMENTS:
        wrong = refused(folder, args, needle)
        if wrong:
            return f"{args}: {wrong}"
    warned(folder, "train", "text:steps=64:t.txt", *NUMBERS[:-3], "--net", "gru:8,li", "--out", "steps")
    warned(folder, "train", "far.h5", "--channels", "40", "--validation", "0", *TRAIN[:-1], "--net", "lif:8,li", "--out", "far")
    return warned(folder, "predict", "spikes", "spikes.h5") or None


def too_fast(folder):
    """A loss that rose is not answered by a higher learning rate, and one sample not by a larger share."""
    args = ["train", "classes.npz", *TRAIN[:-1], "--net", "gru:8,li"]
    rose = warned(folder, *args, "--lr", "100", "--out", "fast")
    flat = warned(folder, "train", "numbers.npz", *args[2:], "--lr", "0", "--out", "slow")
    one = warned(folder, "train", "one.npz", *TRAIN[:-1], "--net", "gru:8,li", "--out", "one")
    found = "Decrease --lr (now 100), or" in rose, "Increase --epochs (now 1) or --lr (now 0), or" in flat, "Add samples, or pass --validation 0\n" in one
    return None if all(found) else f"{found}: {rose}{flat}{one}"


def model_settings(folder):
    """eval of a folder of tables and of events with labels: the command has the columns to drop, and the classes of the model."""
    rng = np.random.default_rng(1)
    for i in range(12):
        path = os.path.join(folder, "walks", "ab"[i % 2], f"{i}.csv")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("time,u,v\n" + "".join(f"{k},{a},{b}\n" for k, (a, b) in enumerate(rng.normal(size=(9, 2)))))
    warned(folder, "train", neap_out(folder, "walks", "walks.h5", "--drop", "time"), *TRAIN[:-1], "--net", "gru:8,li", "--out", "walker")
    n = 40
    np.savez(os.path.join(folder, "four.npz"), t=np.tile(np.arange(n) * 1000, 4), x=rng.integers(0, 8, 4 * n), y=rng.integers(0, 8, 4 * n),
             p=rng.integers(0, 2, 4 * n), offsets=np.arange(5) * n, labels=np.array([1, 0, 1, 0]))
    for run, data, needle in ("walker", "walks", "--drop time"), ("events", "four.npz", "--sensor 8x8 --classes classes.txt"):
        done = neap("eval", run, data, cwd=folder)
        for part in re.findall("printf .*?; ", done.stderr):
            subprocess.run(part, shell=True, cwd=folder, check=True)
        again = neap(*proposed(done.stderr, **{"FILE.h5": f"for-{run}.h5"}), cwd=folder)
        said = neap("eval", run, f"for-{run}.h5", "-q", cwd=folder)
        if done.returncode != 2 or needle not in done.stderr or again.returncode or said.returncode or said.stderr or "accuracy" not in said.stdout:
            return f"{done.stderr}{again.stderr}{said.stderr}{said.stdout}"
    with open(os.path.join(folder, "spaces.csv"), "w", encoding="utf-8") as file:
        file.write("u v\n1 2\n3 4\n")
    return refused(folder, ["predict", "walker", "spaces.csv"], "Separate the fields by commas")


def commands(folder):
    """Commands as other programs name them."""
    for name, ours in {"test": "neap eval", "fit": "neap train", "evaluate": "neap eval", "inference": "neap predict", "sample": "not supported"}.items():
        wrong = refused(folder, [name], "unknown command; ", ours)
        if wrong:
            return wrong
    return None


def quiet(folder):
    """-q hides notes and keeps warnings."""
    args = ["train", "classes.npz", *NUMBERS]
    said = [neap(*args, "--out", "quiet", cwd=folder).stderr, neap(*[a for a in args if a != "-q"], "--out", "loud-too", cwd=folder).stderr]
    first = [line for line in said[0].splitlines() if line.startswith("warning: ")]
    second = [line for line in said[1].splitlines() if line.startswith("warning: ")]
    return None if first and first == second and said[0].splitlines() == first and len(said[1].splitlines()) > len(second) else str(said)


def own_test(folder):
    """A test set that is the training data is reported, by its name and by another name of the same file."""
    shutil.copy(os.path.join(folder, "classes.npz"), os.path.join(folder, "copy.npz"))
    os.link(os.path.join(folder, "classes.npz"), os.path.join(folder, "linked.npz"))
    says = "warning: --test '{}' is the training data, so its results do not show how the network answers new data"
    for test, same in ("classes.npz", True), ("linked.npz", True), ("copy.npz", False):
        said = warned(folder, "train", "classes.npz", *NUMBERS, "--test", test, "--out", "by-" + test)
        if (says.format(test) in said) != same or ("is the training data" in said) != same:
            return f"{test}: {said}"
    return None


def silent(folder):
    """An answer to a recording without a spike is reported."""
    with wave.open(os.path.join(folder, "silent.wav"), "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", ""))
        out.writeframes(bytes(8000))
    sounding = sorted(os.listdir(os.path.join(folder, "sounds")))[0]
    said = warned(folder, "predict", "spikes", "silent.wav"), warned(folder, "predict", "spikes", os.path.join("sounds", sounding))
    return None if "warning: 'silent.wav' has no spikes" in said[0] and "has no spikes" not in said[1] else str(said)


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("data and models", prepare, folder)
        for command, option, text in OPTIONS:
            tap.check(f"{command} {option}", refused(folder, [command, *(["x"] if command != "plan" else []), option, "3"], f"unknown option '{option}'; ", text))
        for args, needles in values():
            tap.check("train " + " ".join(args), refused(folder, ["train", "classes.npz", *([] if "--memory-total" in args else ["--memory", "4M"]), *args], *needles))
        for model, data, needles in KINDS:
            tap.check(f"a model of {model}, {data}", refused(folder, ["predict", model, data], *needles))
        tap.check("encode --classes a,b", refused(folder, ["encode", "sounds", "--out", "x.h5", "--classes", "tone,chirp"],
                                                  "'tone,chirp' is not a file", "one name per line", "echo 'tone,chirp' | tr"))
        for name in "x.wav", "x.flac", "x.tsv":
            tap.check("encode --out " + name, refused(folder, ["encode", "sounds", "--out", name], f"--out: '{name}' has the extension of another kind of file",
                                                      "encode writes HDF5. Use .h5"))
        for test in (least_budget, skipped, other_run, other_kind, no_labels, run_missing, strangers, regression, enough, commands, meant,
                     too_fast, model_settings, encodings, units, fresh_readout, nothing_validated, finished, damaged_metrics, other_test, quiet, own_test, silent):
            tap.run(test.__doc__, test, folder)


if __name__ == "__main__":
    sys.exit(main())
