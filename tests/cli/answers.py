#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`neap eval` and `neap predict`: the same answers, in tables of 80 columns, CSV and JSON."""
import csv
import io
import json
import math
import os
import signal
import subprocess
import sys

from harness import NEAP, Folder, Tap, encode, neap, neap_json, write_recordings

WIDE = ["randman:classes=35,samples=210,units=30,steps=30,part=train", "--net", "lif:24,li"]


def train(folder, *args):
    run = os.path.join(folder, f"run{len(os.listdir(folder))}")
    done = neap("train", *args, "--epochs", "2", "--batch", "8", "--memory", "4M", "--out", run)
    assert done.returncode == 0, done.stderr
    return run


def cross_entropy(scores, label):
    top = max(scores)
    return top + math.log(sum(math.exp(x - top) for x in scores)) - scores[label]


def answers_add_up(run, data):
    """Counts, accuracies and the loss are those of the answers."""
    found = neap_json("eval", run, data, "--batch", 7)
    answers, classes = found["answers"], found["classes"]
    assert [a["sample"] for a in answers] == list(range(found["samples"])), "not in order"
    confusion = [[0] * len(classes) for _ in classes]
    for a in answers:
        assert a["scores"].index(max(a["scores"])) == a["prediction"], a
        assert a["name"] == classes[a["prediction"]]["name"], a
        confusion[a["label"]][a["prediction"]] += 1
    assert confusion == found["confusion"], confusion
    for i, kind in enumerate(classes):
        assert kind["samples"] == sum(confusion[i]), kind
        right = confusion[i][i] / kind["samples"] if kind["samples"] else None
        assert kind["accuracy"] == right, kind
    loss = sum(cross_entropy(a["scores"], a["label"]) for a in answers) / len(answers)
    assert abs(loss - found["loss"]) < 1e-12 * max(1, loss), (loss, found["loss"])


def predictions_are_answers(run, data):
    """CSV and lines of JSON say what eval says, to the digit."""
    answers = neap_json("eval", run, data)["answers"]
    lines = neap("predict", run, data, "--json", "--batch", 3, "--threads", 1).stdout.splitlines()
    assert [json.loads(line) for line in lines] == answers, lines[:2]
    rows = list(csv.reader(io.StringIO(neap("predict", run, data).stdout)))
    names = [kind["name"] or str(i) for i, kind in enumerate(neap_json("eval", run, data)["classes"])]
    assert rows[0] == ["sample", "label", "prediction", "name", *names], rows[0]
    for row, a in zip(rows[1:], answers):
        name = names[a["prediction"]]
        assert row[:4] == [str(a["sample"]), str(a["label"]), str(a["prediction"]), name], row
        assert list(map(float, row[4:])) == a["scores"], row
    assert len(rows) == len(answers) + 1, len(rows)


def named_classes(folder):
    """Names of classes stand in tables and in CSV, quoted where they have to be."""
    words = ["alpha, or \"a\"", "b" * 60, "drei"]
    for i, word in enumerate(words):
        write_recordings(os.path.join(folder, "words", word), i + 1, 6)
    done = neap("encode", os.path.join(folder, "words"), "--out", os.path.join(folder, "words.h5"),
                "--channels", "32")
    assert done.returncode == 0, done.stderr
    data = os.path.join(folder, "words.h5")
    run = train(folder, data, "--net", "lif:16,li", "--validation", "0")
    predictions_are_answers(run, data)
    answers_add_up(run, data)
    text = neap("eval", run, data).stdout
    assert 'alpha, or "a"' in text and "b" * 20 in text and "b" * 21 not in text, text


def fits_a_terminal(folder, run, data):
    """No line is wider than 80 columns; each label has one."""
    wide = train(folder, *WIDE)
    for made, source, count in ((run, data, 4), (wide, WIDE[0], 35)):
        lines = neap("eval", made, source).stdout.splitlines()
        assert max(map(len, lines)) <= 80, max(lines, key=len)
        at = next(i for i, line in enumerate(lines) if line.startswith("label"))
        assert [line.split()[0] for line in lines[at + 1:]] == [str(i) for i in range(count)], lines
    found = neap_json("eval", wide, WIDE[0])
    for label, line in enumerate(lines[at + 1:]):
        row = found["confusion"][label]
        assert line.split()[1] == str(sum(row)), line
        wrong = [(-n, j) for j, n in enumerate(row) if n and j != label]
        if wrong:
            most, j = min(wrong)
            assert f"%  {j} ({-most})" in line, (line, row)


def recordings(folder, wavs):
    """A recording is encoded as those of the training set were, and its scores are the same."""
    for more in ([], ["--low", "150", "--high", "3000"]):
        data = encode(wavs, os.path.join(folder, f"sounds{len(more)}.h5"), *more)
        run = train(folder, data, "--net", "lif:24,li")
        rows = list(csv.reader(io.StringIO(neap("predict", run, data).stdout)))[1:]
        for number in (0, len(rows) - 1):
            name = os.path.join(wavs, sorted(os.listdir(wavs))[number])
            alone = list(csv.reader(io.StringIO(neap("predict", run, name).stdout)))
            assert len(alone) == 2 and alone[1][:2] == ["0", ""], alone
            assert alone[1][2:] in [row[2:] for row in rows], (more, alone, rows[number])
            with open(name, "rb") as sound:
                piped = neap("predict", run, "-", stdin=sound)
            assert piped.stdout.splitlines()[1] == ",".join(alone[1]), piped
        answer = neap("eval", run, name)
        assert answer.returncode == 2 and "no labels" in answer.stderr, answer
        for text in ("hello", "RIFF1234WAVEfmt "):
            file = os.path.join(folder, "text")
            with open(file, "w", encoding="ascii") as out:
                out.write(text)
            with open(file, "rb") as sound:
                answer = neap("predict", run, "-", stdin=sound)
            assert answer.returncode == 2 and len(answer.stderr.splitlines()) == 1, answer
            assert answer.stdout == "", answer


def softmax(scores):
    top = [math.exp(x - max(scores)) for x in scores]
    return [x / sum(top) for x in top]


def probabilities(folder, run, data):
    """--softmax: scores of samples, steps and decisions become probabilities, the predictions stay."""
    text = os.path.join(folder, "text.txt")
    with open(text, "w", encoding="ascii") as file:
        file.write("a cab, a bad cab. " * 20)
    steps = train(folder, "--text", text, "--net", "gru:6,li")
    for made, source, more in ((run, data, []), (run, data, ["--every", "50ms"]), (steps, "text:" + text, [])):
        plain, made_so = ([json.loads(line) for line in neap("predict", made, source, "--json", *more, *option).stdout.splitlines()]
                          for option in ([], ["--softmax"]))
        assert plain and len(plain) == len(made_so), (len(plain), len(made_so))
        for a, b in zip(plain, made_so):
            assert max(abs(x - y) for x, y in zip(softmax(a["scores"]), b["scores"])) < 1e-15, (a, b)
            assert {**a, "scores": 0} == {**b, "scores": 0}, (a, b)
        rows = list(csv.reader(io.StringIO(neap("predict", made, source, "--softmax", *more).stdout)))[1:]
        assert [list(map(float, row[-len(b["scores"]):])) for row, b in zip(rows, made_so)] == [b["scores"] for b in made_so]


def text_by_name(folder):
    """--text takes the name of a data set of text, with its steps, as well as that of a file."""
    text = os.path.join(folder, "short.txt")
    with open(text, "w", encoding="ascii") as file:
        file.write("to be or not to be. " * 20)
    said = [neap("train", *data, "--net", "gru:4,li", "--epochs", 1, "--memory", "4M", "--out", os.path.join(folder, f"t{i}")).stderr
            for i, data in enumerate((["--text", text], ["--text", "text:" + text], ["--text", f"text:steps=64:{text}"],
                                      [f"text:steps=64:{text}"]))]
    sizes = [next((line.split(": ")[-1].split(";")[0] for line in one.splitlines() if " channels, " in line), one) for one in said]
    assert sizes[0] == sizes[1] and sizes[2] == sizes[3] and "2 samples" in sizes[0] and "7 samples" in sizes[2], sizes


def reader_leaves(folder, run, data):
    """`predict | head`: no line on standard error, and the exit code of a shell; archives are made."""
    def left(*args, ignored):
        read, write = os.pipe()
        os.close(read)
        ignore = (lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN)) if ignored else None
        with os.fdopen(write, "w") as out:
            done = subprocess.run([NEAP, *args], stdout=out, stderr=subprocess.PIPE, text=True, restore_signals=True,
                                  preexec_fn=ignore, timeout=60, check=False)
        return done.returncode, done.stderr
    predict = ["predict", run, data, "--quiet"]
    assert left(*predict, ignored=False) == (-signal.SIGPIPE, "")
    for args in (predict, [*predict, "--json"], ["eval", run, data, "--quiet"]):
        found = left(*args, ignored=True)
        assert found == (128 + signal.SIGPIPE, ""), (args, found)
    out = os.path.join(folder, "u.npz")
    assert left(*predict, "--membranes", out, ignored=False) == (0, "") and os.path.getsize(out) > 1000


def main():
    with Tap() as tap, Folder() as folder:
        write_recordings(os.path.join(folder, "wavs"))
        data = encode(os.path.join(folder, "wavs"), os.path.join(folder, "data.h5"))
        run = train(folder, data, "--net", "lif:24r,li")
        tap.run("answers add up", answers_add_up, run, data)
        tap.run("predict says what eval says", predictions_are_answers, run, data)
        tap.run("names of classes", named_classes, folder)
        tap.run("recordings", recordings, folder, os.path.join(folder, "wavs"))
        tap.run("--softmax", probabilities, folder, run, data)
        tap.run("--text text:steps=64:FILE", text_by_name, folder)
        tap.run("the reader leaves", reader_leaves, folder, run, data)
        tap.run("80 columns", fits_a_terminal, folder, run, data)
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
