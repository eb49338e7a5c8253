#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""neap encode of folders: the official parts of a data set from lists, sensors that do not fit, files
that are empty; neap train with more channels and classes than its data."""
import os
import re
import shutil
import struct
import subprocess

from harness import Folder, Tap, need, neap, neap_json, write_recordings, write_tone

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

WORDS = ("yes", "no", "up")


def words(folder):
    """Four recordings of each of three words, and two lists as the Speech Commands have them."""
    for k, word in enumerate(WORDS):
        os.makedirs(os.path.join(folder, word))
        for n in range(4):
            write_tone(os.path.join(folder, word, f"{n}.wav"), 300 * (1 + k) + 10 * n)
    for name, lines in (("testing_list.txt", "yes/3.wav\nno/3.wav\nup/3.wav\r\n\n"), ("validation_list.txt", "yes/2.wav\nno/2.wav\n"),
                        ("words", "\n".join(WORDS))):
        with open(os.path.join(folder, name), "w") as out:
            out.write(lines)


def labels(path):
    """Names of the classes, and the class of every sample, as h5py reads them."""
    with h5py.File(path) as file:
        names = [x.decode() if isinstance(x, bytes) else x for x in file["extra/keys"][:]]
        return names, [names[i] for i in file["labels"][:]]


def parts(folder):
    """The three parts have the same classes, share nothing, and make the whole."""
    lists = {"test": ["--split", "words/testing_list.txt"], "validation": ["--split", "words/validation_list.txt"],
             "train": ["--without", "words/testing_list.txt", "--without", "words/validation_list.txt"],
             "both": ["--split", "words/testing_list.txt", "--split", "words/validation_list.txt"]}
    counts = {}
    for name, options in lists.items():
        done = neap("encode", "words", "--out", f"{name}.h5", "--classes", "words/words", *options, cwd=folder)
        assert done.returncode == 0, done.stderr
        names, found = labels(os.path.join(folder, f"{name}.h5"))
        assert names == list(WORDS), names
        counts[name] = len(found)
    return None if counts == {"test": 3, "validation": 2, "train": 7, "both": 5} else counts


def list_twice(folder):
    done = neap("encode", "words", "--out", "twice.h5", "--split", "words/testing_list.txt", "--split",
                "words/testing_list.txt", cwd=folder)
    return None if done.returncode == 2 and "twice" in done.stderr else done.stderr


def write_bin(path, pixels):
    with open(path, "wb") as out:
        for i, (x, y) in enumerate(pixels):
            out.write(bytes([x, y, 128 * (i % 2), 0, i]))


def sensor(folder):
    """A sensor that is too small is refused at once; a single file with pixels beyond it is passed over."""
    for k in range(3):
        os.makedirs(os.path.join(folder, "shapes", str(k)))
        write_bin(os.path.join(folder, "shapes", str(k), "a.bin"), [(n, 50) for n in range(60)])
    done = neap("encode", "shapes", "--out", "shapes.h5", cwd=folder)
    if done.returncode != 2 or len(done.stderr.splitlines()) != 1 or "--sensor" not in done.stderr:
        return done.stderr
    write_bin(os.path.join(folder, "shapes", "1", "a.bin"), [(200, 200)])
    report = neap_json("encode", "shapes", "--sensor", "60x60", "--out", "shapes.h5", cwd=folder)
    return None if (report["samples"], report["skipped_damaged"]) == (2, 1) else report


def empty(folder):
    """Files cut short are passed over, whatever their folder is called."""
    open(os.path.join(folder, "shapes", "1", "a.bin"), "wb").close()
    with open(os.path.join(folder, "shapes", "2", "a.bin"), "wb") as out:
        out.write(b"1234567")
    report = neap_json("encode", "shapes", "--sensor", "60x60", "--out", "shapes.h5", "--force", cwd=folder)
    return None if (report["samples"], report["skipped_damaged"]) == (1, 2) else report


def many(folder):
    """Of many files with the same fault the first are named, all are counted."""
    for n in range(40):
        open(os.path.join(folder, "shapes", "1", f"{n}.bin"), "wb").close()
    done = neap("encode", "shapes", "--sensor", "60x60", "--out", "shapes.h5", "--force", cwd=folder)
    named = done.stderr.count("skipped")
    alike = re.search("skipped for the same reason: 40 more files, such as 'shapes/1/1.bin', 'shapes/1/10.bin'", done.stderr)
    return None if named == 3 and alike and "42 damaged" in done.stdout else f"{named} named, {done.stderr}{done.stdout}"


def cut_short(folder):
    """Sound that ends before its header says is damaged; classes of damaged files alone are left out."""
    sounds = os.path.join(folder, "cut")
    for label in "a", "b", "c":
        write_recordings(os.path.join(sounds, label), 1, 2)
    names = sorted(os.listdir(os.path.join(sounds, "b")))
    for name in names:
        path = os.path.join(sounds, "b", name)
        os.truncate(path, os.path.getsize(path) // 2)
    whole = os.path.join(sounds, "c", names[0])
    with open(whole, "rb") as file:
        wav = file.read()
    at = wav.index(b"data") + 4
    piped = wav[:at] + b"\xff\xff\xff\xff" + wav[at + 4:]
    kinds = {"odd.wav": wav[:at] + (len(wav) - at - 4 + 1).to_bytes(4, "little") + wav[at + 4:], "piped.wav": piped,
             "more.wav": wav + b"LIST\x04\0\0\0abcd"}
    frames = wav[at + 4:]
    swapped = bytes(frames[i ^ 1] for i in range(len(frames)))
    common = b"COMM" + (18).to_bytes(4, "big") + struct.pack(">hIh", 1, len(frames) // 2, 16) + b"\x40\x0b\xfa\0\0\0\0\0\0\0"
    sound = b"SSND" + (8 + len(frames)).to_bytes(4, "big") + bytes(8) + swapped
    aiff = b"FORM" + (4 + len(common) + len(sound)).to_bytes(4, "big") + b"AIFF" + common + sound
    kinds.update({"whole.aiff": aiff, "short.aiff": aiff[:-100]})
    for name, data in kinds.items():
        with open(os.path.join(sounds, "c", name), "wb") as file:
            file.write(data)
    done = neap("encode", "cut", "--channels", 16, "--out", "cut.h5", cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in "b/" + names[0], "b/" + names[1], "c/odd.wav", "c/short.aiff":
        assert f"cut/{name}'" in done.stderr, done.stderr
    assert re.search(f"{names[0]}' is truncated: it has [0-9]+ of [0-9]+ bytes of sound", done.stderr), done.stderr
    assert "class 'b' is left out" in done.stderr and "4 damaged" in done.stdout, done
    found = labels(os.path.join(folder, "cut.h5"))
    assert found == (["a", "c"], ["a"] * 2 + ["c"] * 5), found
    done = neap("encode", "cut", "--channels", 16, "--out", "none.h5", "--strict", cwd=folder)
    assert done.returncode == 2 and "is truncated" in done.stderr and not os.path.exists(os.path.join(folder, "none.h5")), done
    with open(os.path.join(folder, "abc"), "w") as out:
        out.write("c\nb\na\n")
    done = neap("encode", "cut", "--channels", 16, "--out", "given.h5", "--classes", "abc", cwd=folder)
    found = labels(os.path.join(folder, "given.h5"))
    assert found == (["c", "b", "a"], ["a"] * 2 + ["c"] * 5), found
    report = neap_json("encode", "cut", "--channels", 16, "--out", "cut.h5", "--force", "--speaker", "(.*)[.]", cwd=folder)
    if report["classes"] != 2 or report["samples"] != 7 or report["speakers"] != 5:
        return report
    with open(os.path.join(sounds, "b", names[0]), "rb") as half:
        done = neap("predict", "wide", "-", cwd=folder, stdin=half)
    return None if done.returncode == 2 else done.stdout


def damaged_events(folder):
    """A folder whose files are all damaged is no class."""
    for label in "left", "middle", "right":
        os.makedirs(os.path.join(folder, "moves", label))
        write_bin(os.path.join(folder, "moves", label, "a.bin"), [(n, 5) for n in range(30)])
    os.truncate(os.path.join(folder, "moves", "middle", "a.bin"), 7)
    report = neap_json("encode", "moves", "--sensor", "60x60", "--out", "moves.h5", cwd=folder)
    found = labels(os.path.join(folder, "moves.h5"))
    good = found == (["left", "right"], ["left", "right"]) and report["classes"] == 2 and report["skipped_damaged"] == 1
    return None if good else (found, report)


def stated(folder):
    """A net with more channels and classes than its data takes data that has them; numbers refuse it."""
    small, large = "randman:units=20,classes=3,samples=30", "randman:units=25,classes=5,samples=30,part=test"
    base = ["train", small, "--net", "lif:8r,li", "--epochs", "1", "--batch", "10", "--memory", "4M"]
    done = neap(*base, "--channels", "25", "--classes", "5", "--out", "wide", cwd=folder)
    assert done.returncode == 0, done.stderr
    report = neap_json("eval", "wide", large, cwd=folder)
    assert report["samples"] == 30 and len(report["classes"]) == 5, report
    done = neap(*base, "--channels", "25", "--classes", "5", "--out", "wide", "--resume", cwd=folder)
    assert done.returncode == 0, done.stderr
    for option, value in (("--channels", "19"), ("--classes", "2")):
        done = neap(*base, option, value, "--out", "none", cwd=folder)
        assert done.returncode == 2 and "20 channels and 3 classes" in done.stderr, done.stderr
    np.savez(os.path.join(folder, "rows.npz"), x=np.zeros((4, 5, 3)), y=np.array([0, 1, 0, 1]))
    done = neap("train", "rows.npz", "--net", "gru:4,li", "--epochs", "1", "--channels", "4", "--out", "none", cwd=folder)
    return None if done.returncode == 2 and "--channels" in done.stderr else done.stderr


def patterns(folder):
    """--label matches the name without its extension, and the extension only if the pattern asks for it."""
    write_recordings(os.path.join(folder, "plain"), 2, 2)  # 0_a_0.wav
    for label, wanted in (("([a-z]+)", ["a", "b"]), ("([0-9]+)_.*", ["0", "1"]), ("[0-9]_([a-z])_[0-9][.]wav$", ["a", "b"]),
                          ("_([0-9]+)$", ["0", "1"])):
        done = neap("encode", "plain", "--out", "plain.h5", "--force", "--channels", 16, "--label", label, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert labels(os.path.join(folder, "plain.h5"))[0] == wanted, (label, labels(os.path.join(folder, "plain.h5"))[0])
    for label in "([a-z]{2,})", "(wav)", "(xyz)":
        done = neap("encode", "plain", "--out", "never.h5", "--label", label, cwd=folder)
        needle = "does not match" if label == "(xyz)" else "matches only the extension of 'plain/0_a_0.wav'"
        assert done.returncode == 2 and needle in done.stderr and done.stderr.count("\n") == 1, done.stderr
    return None


def flat(folder):
    """Recordings in one folder: the line tells what to do, and its command sorts them by a table."""
    sounds = os.path.join(folder, "one folder")
    write_recordings(sounds, 2, 2)
    done = neap("encode", "one folder", "--out", "flat.h5", cwd=folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "--label" in done.stderr and "shell" not in done.stderr, done.stderr
    table = "file,class\r\n" + "".join(f"{name},{'cat' if name[0] == '0' else 'dog'}\r\n" for name in sorted(os.listdir(sounds)))
    done = neap("encode", "one folder", "--out", "flat.h5", "--labels", "labels.csv", cwd=folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "--labels applies to tables" in done.stderr, done.stderr
    for place in folder, sounds:
        with open(os.path.join(place, "labels.csv"), "w", newline="", encoding="ascii") as out:
            out.write(table)
        done = neap("encode", "one folder", "--out", "flat.h5", "--force", cwd=folder)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        command = re.search("sorts copies: (.*)", done.stderr).group(1)
        shutil.rmtree(os.path.join(folder, "sorted"), ignore_errors=True)
        subprocess.run(["sh", "-c", command], cwd=folder, check=False)
        done = neap("encode", "sorted", "--out", "flat.h5", "--force", "--channels", 16, cwd=folder)
        assert done.returncode == 0 and "4 recordings (" in done.stdout and "2 classes" in done.stdout, done.stderr
        assert labels(os.path.join(folder, "flat.h5"))[0] == ["cat", "dog"], labels(os.path.join(folder, "flat.h5"))
        os.unlink(os.path.join(place, "labels.csv"))
    return None


def single(folder):
    """One recording is not several; a file of another kind leads to the command that reads it."""
    write_recordings(os.path.join(folder, "single"), 1, 1)
    done = neap("encode", "single", "--label", "([0-9])", "--out", "single.h5", cwd=folder)
    assert "1 recording (" in done.stdout and "1 class\n" in done.stdout, done.stdout
    for name, needle in (("README.md", "neap train --text 'README.md'"), ("a.txt", "rename it to .csv"), ("a.mp3", "--any-sound"),
                         ("a.mat", "save it as .csv"), ("noending", "docs/own-data.md")):
        open(os.path.join(folder, name), "w").close()
        done = neap("encode", name, "--out", "never.h5", cwd=folder)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and needle in done.stderr and "''" not in done.stderr, done.stderr
    return None


def alone(folder):
    """The class of a file that is encoded by itself is the folder it is in, however its path is written."""
    inner = os.path.join(folder, "alone", "word")
    os.makedirs(os.path.join(inner, "below"))
    os.symlink("word", os.path.join(folder, "alone", "link"))
    write_tone(os.path.join(inner, "r0.wav"), 440)
    events = np.zeros(2, [("t", "i8"), ("x", "i2"), ("y", "i2"), ("p", "i1")])
    np.save(os.path.join(inner, "r0.npy"), events)
    with open(os.path.join(inner, "r0.events.txt"), "w") as file:
        file.write("0.1 1 1 1\n0.2 2 2 0\n")
    paths = "", "./", ".//", "below/../", "../word/", "../link/", inner + "/", inner + "//", inner + "/./"
    for name, more in ("r0.wav", ()), ("r0.npy", ("--sensor", "4x4")), ("r0.events.txt", ("--sensor", "4x4")):
        for path in paths if name == "r0.npy" else paths[:2] + paths[-1:]:
            out = os.path.join(folder, "alone.h5")
            done = neap("encode", path + name, "--out", out, "--force", *more, cwd=inner)
            assert done.returncode == 0, (path, done.stderr)
            assert labels(out) == (["word"], ["word"]), (path, name, labels(out))
    done = neap("encode", "r0.npy", "--out", out, "--force", "--sensor", "4x4", "--label", "(r)", cwd=inner)
    assert labels(out) == (["r"], ["r"]), done.stderr
    return None


def events_of(path):
    """Times and units of the samples, and the attributes."""
    with h5py.File(path) as file:
        return ([np.asarray(x) for x in file["spikes/times"][:]], [np.asarray(x) for x in file["spikes/units"][:]],
                {**file.attrs})


def pooled(folder):
    """--pool joins the spikes of adjacent channels and changes nothing else; what a model was trained on is applied to recordings."""
    for name, more in (("whole", ()), ("pooled", ("--pool", "5")), ("one", ("--pool", "1"))):
        done = neap("encode", "words", "--out", f"{name}.h5", "--channels", "32", *more, cwd=folder)
        assert done.returncode == 0, done.stderr
    path = {name: os.path.join(folder, name + ".h5") for name in ("whole", "pooled", "one")}
    times, units, attrs = events_of(path["whole"])
    pooled_times, pooled_units, pooled_attrs = events_of(path["pooled"])
    assert open(path["whole"], "rb").read() == open(path["one"], "rb").read()
    assert sum(len(x) for x in times) > 100
    for a, b, c, d in zip(times, pooled_times, units, pooled_units):
        assert np.array_equal(a, b) and np.array_equal(c // 5, d)
    assert pooled_attrs["inputs"] == 7 and pooled_attrs["encoder_pool"] == 5 and pooled_attrs["encoder_channels"] == 32, pooled_attrs
    assert "encoder_pool" not in attrs
    done = neap("train", "pooled.h5", "--net", "lif:16,li", "--epochs", "1", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    model = os.path.join("run", "model.safetensors")
    from_file = neap("predict", model, "pooled.h5", "--json", cwd=folder)
    from_sound = neap("predict", model, "words/no/0.wav", "--json", cwd=folder)
    assert from_file.returncode == 0 and from_sound.returncode == 0, from_file.stderr + from_sound.stderr
    assert "warning" not in from_sound.stderr, from_sound.stderr
    done = neap("eval", model, "whole.h5", cwd=folder)
    assert done.returncode == 2 and "--pool 5" in done.stderr, done.stderr
    with open(os.path.join(folder, "t.csv"), "w") as out:
        out.write("a,b\n1,2\n3,4\n")
    for args, needle in ((("words", "--channels", "32", "--pool", "33"), "joins more channels than the 32"),
                         (("t.csv", "--pool", "2"), "contains tables")):
        done = neap("encode", *args, "--out", "never.h5", cwd=folder)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and needle in done.stderr, done.stderr
    return None


def main():
    with Tap() as tap, Folder() as folder:
        words(os.path.join(folder, "words"))
        tap.run("official parts from lists", parts, folder)
        tap.run("pooled channels of recordings", pooled, folder)
        tap.run("a list that is given twice", list_twice, folder)
        tap.run("a sensor that does not fit", sensor, folder)
        tap.run("empty files", empty, folder)
        tap.run("many damaged files", many, folder)
        tap.run("sound that is cut short", cut_short, folder)
        tap.run("--label and extensions", patterns, folder)
        tap.run("recordings in one folder", flat, folder)
        tap.run("one recording, and files of other kinds", single, folder)
        tap.run("the class of one file", alone, folder)
        tap.run("classes of damaged files", damaged_events, folder)
        tap.run("channels and classes that are stated", stated, folder)


main()
