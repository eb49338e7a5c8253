#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Event data: files written by NumPy and h5py, folders as N-MNIST and DVS Gesture are published, SHD and
SSC as distributed. `neap encode` makes one file of each, which h5py reads: the events are those
that went in, and those that tonic reads from the same files (python of NEAP_PYTHON, where it has tonic).
"""
import glob
import os
import re
import struct
import subprocess
import sys

from harness import Folder, Tap, need, neap, neap_json, write_tone

need("h5py", "numpy")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

EVENT = np.dtype([("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "?")])
TONIC = """
import sys, numpy as np
from tonic import io
kind, path, out = sys.argv[1:]
if kind == "nmnist":
    events = io.read_mnist_file(path, np.dtype([("x", int), ("y", int), ("t", int), ("p", int)]))
else:
    version, start = io.read_aedat_header_from_file(path)[:2]  # read_dvs_ibm of 1.7 wants two of these three
    raw = io.get_aer_events_from_file(path, version, start)
    a = raw["address"]
    events = {"x": a >> 17 & 0x1fff, "y": a >> 2 & 0x1fff, "p": a >> 1 & 1, "t": raw["timeStamp"]}
np.savez(out, **{name: events[name].astype("i8") for name in "xytp"})
"""


def with_tonic():
    """An interpreter that has tonic, or None."""
    for python in filter(None, (os.environ.get("NEAP_PYTHON"), sys.executable)):
        if subprocess.run([python, "-c", "import tonic"], capture_output=True).returncode == 0:
            return python
    return None


def some(rng, n, width=34, height=34, last=300_000):
    events = np.zeros(n, dtype=EVENT)
    events["x"], events["y"] = rng.integers(0, width, n), rng.integers(0, height, n)
    events["t"], events["p"] = np.sort(rng.integers(0, last, n)), rng.integers(0, 2, n)
    return events


def channels(events, width=34, height=34, pool=1, crop=None, polarity="split"):
    """(seconds, channel) of each event, sorted, as docs/events.md says."""
    x0, y0, across, down = crop or (0, 0, width, height)
    x, y, p = (events[k].astype("i8") for k in "xyp")
    keep = (x >= x0) & (y >= y0) & (x < x0 + across) & (y < y0 + down)
    keep &= {"on": p == 1, "off": p == 0}.get(polarity, p >= 0)
    columns, rows = -(-across // pool), -(-down // pool)
    unit = (y - y0) // pool * columns + (x - x0) // pool
    unit = unit + (p * columns * rows if polarity == "split" else 0)
    times = (events["t"] / 1e6).astype("f4")
    return sorted(zip(times[keep].tolist(), unit[keep].tolist()))


def check_file(path, wanted, labels, keys, inputs):
    """None, or how the encoded file differs."""
    with h5py.File(path) as file:
        if file.attrs["inputs"] != inputs:
            return f"{file.attrs['inputs']} channels, not {inputs}"
        if [x.decode() for x in file["extra/keys"][()]] != keys:
            return f"classes {file['extra/keys'][()]}"
        if file["labels"][()].tolist() != labels:
            return f"labels {file['labels'][()]}, not {labels}"
        for i, want in enumerate(wanted):
            got = sorted(zip(file["spikes/times"][i].tolist(), file["spikes/units"][i].tolist()))
            if got != want:
                return f"sample {i}: {len(got)} events {got[:2]}, not {len(want)} {want[:2]}"
    return None


def encode(folder, source, wanted, labels, keys, inputs, *options):
    out = os.path.join(folder, "out.h5")
    done = neap("encode", source, "--out", out, "--force", *options)
    if done.returncode:
        return done.stderr.strip()
    return check_file(out, wanted, labels, keys, inputs)


def durations(tap, folder, rng):
    """Durations that no recording has: one line of warning that names --time-unit; polarities and units by other names."""
    path, out = os.path.join(folder, "units.npz"), os.path.join(folder, "units.h5")
    t = np.sort(rng.integers(0, 400000, 50))
    t[-1] = 400000
    for name, times, options, needle in (
            ("microseconds", t, [], None), ("microseconds, from the last", t[::-1], [], None), ("seconds", t / 1e6, [], None), ("milliseconds", t // 1000, ["--time-unit", "1ms"], None),
            ("milliseconds as microseconds", t // 1000, [], "lasts 400 us, less than 10 time steps of 1 ms. Times that are integers are read as microseconds and "
             "others as seconds, unless --time-unit specifies the unit. They are probably in another one; pass --time-unit 1ms\n"),
            ("seconds as microseconds", t / 1e6, ["--time-unit", "1us"], "lasts 400 ns, less than 10 time steps of 1 ms. Times that are integers are read as "
             "microseconds and others as seconds, unless --time-unit (now 1 us) specifies the unit. They are probably in another one; pass --time-unit 1s\n"),
            ("microseconds as seconds", t, ["--time-unit", "1s"], "more than an hour. "), ("floats of microseconds", t * 1.0, [], "pass --time-unit 1us\n")):
        np.savez(path, t=times, x=rng.integers(0, 8, 50), y=rng.integers(0, 8, 50), p=rng.integers(0, 2, 50))
        done = neap("encode", path, "--out", out, "--sensor", "8x8", "--force", "-q", *options)
        good = done.returncode == 0 and (done.stderr.count("\n") == 1 and needle in done.stderr if needle else not done.stderr)
        tap.check(f"times: {name}", None if good else f"{done.returncode}: {done.stderr}")
    for options, needle in ((["--polarity", "none"], "is not one of split, merge, on, off. split and merge keep all events; on and off drop one polarity\n"),
                            (["--time-unit", "us"], "'us' is a unit without a number. Did you mean 1us?"),
                            (["--time-unit", "1"], "'1' has no unit. Did you mean 1us or 1s?"), (["--concat", "10"], "'10' has no unit. Did you mean 10s or 10ms?")):
        done = neap("encode", path, "--out", out, "--sensor", "8x8", "--force", *options)
        tap.check(f"encode {' '.join(options)}", None if done.returncode == 2 and needle in done.stderr else done.stderr)
    done = neap("encode", out, "--out", out, "--force")
    tap.check("encode: --out is the data", None if done.returncode == 2 and "would replace the data that is read" in done.stderr else done.stderr)


def from_first(tap, folder, rng):
    """With --from-first-event, times of a clock (also in no order, and before its 0) are those from the first event of each sample, crop or not."""
    samples = [some(rng, n) for n in (50, 0, 5000, 3)]
    shifted = []
    for i, sample in enumerate(samples):
        clock = sample.copy()
        clock["t"] += (1_700_000_000_000_000, 0, 77, -900_000)[i]
        shifted.append(clock[rng.permutation(len(clock))])
        sample["t"] -= sample["t"].min() if len(sample) else 0
    flat = np.concatenate(shifted)
    more = {"offsets": np.cumsum([0] + [len(s) for s in samples]), "labels": np.array([0, 1, 0, 1]), "classes": np.array(["a", "b"]), "sensor_size": (34, 34)}
    path = os.path.join(folder, "clock.npz")
    np.savez(path, **{name: flat[name] for name in "xytp"}, **more)
    crop = (3, 4, 20, 10)
    for name, options, want in (("offsets", [], {}), ("a crop", ["--crop", "20x10+3+4", "--polarity", "on"], {"crop": crop, "polarity": "on"})):
        wanted = [channels(s, **want) for s in samples]
        inputs = 200 if want else 34 * 34 * 2
        tap.check(f"from the first event: {name}", encode(folder, path, wanted, [0, 1, 0, 1], ["a", "b"], inputs, "--from-first-event", *options))
    with h5py.File(os.path.join(folder, "out.h5")) as file:
        tap.check("from the first event: kept in the file", None if file.attrs["from_first_event"] == 1 else "no attribute")
    one = os.path.join(folder, "clocks")
    for i, clock in enumerate(shifted):
        os.makedirs(os.path.join(one, "ab"[i % 2]), exist_ok=True)
        with open(os.path.join(one, "ab"[i % 2], f"{i}_events.txt"), "w", encoding="utf-8") as file:
            file.write("34 34\n" + "".join(f"{e['t']} {e['x']} {e['y']} {int(e['p'])}\n" for e in clock))
    order = [0, 2, 1, 3]
    wanted = [channels(samples[i]) for i in order]
    tap.check("from the first event: text", encode(folder, one, wanted, [0, 0, 1, 1], ["a", "b"], 34 * 34 * 2, "--from-first-event"))
    run = ["train", "out.h5", "--net", "lif:4,li", "--epochs", "1", "--validation", "0", "--memory", "4M", "-q", "--out", "first-run"]
    neap(*run, cwd=folder)
    events = some(rng, 60)
    os.makedirs(os.path.join(folder, "late-one", "a"), exist_ok=True)
    np.savez(os.path.join(folder, "late-one", "a", "0.npz"), **{n: events[n] for n in "xyp"}, t=events["t"] + 50_000)
    line = neap("eval", "first-run", "late-one", cwd=folder).stderr
    tap.check("from the first event: in the command of a model", None if "--sensor 34x34 --from-first-event\n" in line else line)
    neap("encode", "late-one", "--out", "late-one.h5", "--sensor", "34x34", cwd=folder)
    line = neap("predict", "first-run", "late-one.h5", cwd=folder).stderr
    tap.check("from the first event: a warning without it", None if "was encoded without --from-first-event" in line else line)


def arrays(tap, folder, rng):
    samples = [some(rng, n) for n in (50, 0, 7000, 3)]
    labels, keys = [2, 0, 1, 2], ["cat", "dog", "eel"]
    flat = np.concatenate(samples)
    offsets = np.cumsum([0] + [len(s) for s in samples])
    want = [channels(s) for s in samples]
    columns = {name: flat[name] for name in "xytp"}
    more = {"offsets": offsets, "labels": np.array(labels), "classes": np.array(keys), "sensor_size": (34, 34, 2)}
    one = {str(i): s for i, s in enumerate(samples)}
    path = os.path.join(folder, "data.npz")
    texts = {**more, "labels": np.array([keys[k] for k in labels])}
    for name, kind, content in (
            ("columns", np.savez, {**columns, **more}), ("columns, deflated", np.savez_compressed, {**columns, **more}),
            ("records", np.savez, {"events": flat, **more}), ("a record a sample", np.savez, {**one, **more}),
            ("labels of text", np.savez, {**columns, **texts}),
            ("big-endian", np.savez, {**columns, **more, "x": flat["x"].astype(">u4"), "t": flat["t"].astype(">i8")}),
            ("p of -1 and 1", np.savez, {**columns, **more, "p": flat["p"].astype("i1") * 2 - 1})):
        kind(path, **content)
        tap.check(f"npz: {name}", encode(folder, path, want, labels, keys, 2312))
    np.savez(path, **columns, **more)
    for options, settings, inputs in (
            (("--pool", 4), {"pool": 4}, 162), (("--polarity", "merge"), {"polarity": "merge"}, 1156),
            (("--polarity", "on", "--pool", 3), {"polarity": "on", "pool": 3}, 144),
            (("--polarity", "off"), {"polarity": "off"}, 1156),
            (("--crop", "30x28+2+3", "--pool", 2), {"crop": (2, 3, 30, 28), "pool": 2}, 420),
            (("--sensor", "40x50"), {"width": 40, "height": 50}, 4000)):
        tap.check(f"npz: {' '.join(map(str, options))}",
                  encode(folder, path, [channels(s, **settings) for s in samples], labels, keys, inputs, *options))
    tap.check("npz: --classes N keeps N names", encode(folder, path, want, labels, keys, 2312, "--classes", 3))
    del more["classes"], more["sensor_size"]
    np.savez(path, **columns, **more)
    tap.check("npz: --sensor, --classes N", encode(folder, path, want, labels, list("0123"), 2312, "--sensor", "34x34",
                                                   "--classes", 4))
    seconds = {"t": flat["t"] / 1e3, **{k: columns[k] for k in "xyp"}}
    np.savez(path, **seconds, **more)
    tap.check("npz: --time-unit", encode(folder, path, want, labels, list("012"), 2312, "--sensor", "34x34",
                                         "--classes", 3, "--time-unit", "1ms"))
    np.savez(path, **{**seconds, "t": flat["t"] * 1.0}, **more)
    hours = [neap("encode", path, "--out", os.path.join(folder, "hours.h5"), "--force", "--sensor", "34x34", "--classes", 3, *unit)
             for unit in ([], ["--time-unit", "1us"])]
    tap.check("npz: over an hour, a line names --time-unit", None if all(done.returncode == 0 for done in hours) and
              ["--time-unit" in done.stderr for done in hours] == [True, False] else str(hours))
    units = [[(float(np.float32(t)), x) for t, x in zip(s["t"] / 1e6, s["x"].tolist())] for s in samples]
    np.savez(path, units=flat["x"], times=(flat["t"] / 1e6), inputs=40, **more)
    tap.check("npz: units and times", "inputs" if encode(folder, path, [], [], [], 0, "--classes", 3) is None else None)
    np.savez(path, units=flat["x"], times=(flat["t"] / 1e6), **more)
    largest, done = max(flat["x"]), neap("encode", path, "--out", os.path.join(folder, "none.h5"), "--classes", "3")
    tap.check("npz: units without --inputs", None if done.returncode == 2 and f"the largest one that it uses is {largest}. Pass --inputs {largest + 1}," in done.stderr
              else done.stderr)
    tap.check("npz: units, --inputs", encode(folder, path, [sorted(u) for u in units], labels, list("012"), 40,
                                             "--classes", 3, "--inputs", 40))
    more |= {"classes": np.array(keys, dtype="S3"), "sensor_size": (34, 34, 2)}
    path = os.path.join(folder, "data.h5")
    with h5py.File(path, "w") as file:
        for name, array in {**columns, **more}.items():
            file.create_dataset(name, data=array, **({"compression": "gzip"} if name in columns else {}))
    tap.check("HDF5: columns", encode(folder, path, want, labels, keys, 2312))
    with h5py.File(path, "w") as file:
        for i, s in enumerate(samples):
            for name in "xytp":
                file[f"{i}/{name}"] = s[name]
        for name in ("labels", "classes", "sensor_size"):
            file[name] = more[name]
    tap.check("HDF5: a group a sample", encode(folder, path, want, labels, keys, 2312))


def records(events, **types):
    out = np.zeros(len(events), np.dtype(list(types.items()), align=True))
    for name in types:
        out[name] = events[name]
    return out


def save_recording(path, events, how):
    """One recording, as the libraries of event cameras and their users write it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    columns = {name: events[name] for name in "txyp"}
    if how == "columns":
        np.savez(path + ".npz", **columns)
    elif how == "deflated, names of dv-processing":
        np.savez_compressed(path + ".npz", timestamp=columns["t"], x=columns["x"], y=columns["y"], polarity=columns["p"])
    elif how == "an array without a name":
        np.savez(path + ".npz", events)
    elif how == "records of tonic":
        np.save(path + ".npy", events)
    elif how == "records of expelliarmus":
        np.save(path + ".npy", np.array(records(events, t="<i8", x="<i2", y="<i2", p="u1").tolist(),
                                        dtype=[("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "u1")]))
    elif how == "aligned records, big-endian":
        np.save(path + ".npy", records(events, p="i1", t=">u8", y=">u2", x=">u2"))
    else:
        with h5py.File(path + ".h5", "w") as file:
            for name in columns:
                file["events/" + name] = columns[name]


WAYS = ["columns", "deflated, names of dv-processing", "an array without a name", "records of tonic",
        "records of expelliarmus", "aligned records, big-endian", "HDF5"]


def recordings(tap, folder, rng):
    """A file is a recording: by itself, or in a folder for each class."""
    names, labels = ["left", "right"], [0] * 3 + [1] * 3
    samples = [some(rng, 200 + i) for i in range(6)]
    want = [channels(s) for s in samples]
    for i, how in enumerate(WAYS):
        root = os.path.join(folder, f"way{i}")
        for k, sample in enumerate(samples):
            save_recording(os.path.join(root, names[labels[k]], f"r{k}"), sample, how)
        tap.check(f"a folder for each class: {how}", encode(folder, root, want, labels, names, 2312, "--sensor", "34x34"))
        one = os.path.join(root, "right")
        one = os.path.join(one, sorted(os.listdir(one))[0])
        tap.check(f"one recording: {how}", encode(folder, one, want[3:4], [0], ["right"], 2312, "--sensor", "34x34"))
    flat = os.path.join(folder, "flat")
    for k, sample in enumerate(samples):
        save_recording(os.path.join(flat, f"{names[labels[k]]}_{k}"), sample, WAYS[k % 2])
    tap.check("--label of a flat folder", encode(folder, flat, want[:3] + want[3:], labels, names, 2312, "--sensor", "34x34",
                                                 "--label", "([a-z]+)_.*"))
    refused(tap, "a flat folder without --label", "--label", flat, "--sensor", "34x34")
    refused(tap, "recordings without a sensor", "Pass --sensor ", os.path.join(folder, "way0"))
    sized = os.path.join(folder, "sized", "a")
    os.makedirs(sized)
    np.savez(os.path.join(sized, "r.npz"), **{name: samples[0][name] for name in "txyp"}, sensor_size=(34, 34))
    tap.check("a sensor_size in the files", encode(folder, os.path.dirname(sized), want[:1], [0], ["a"], 2312))
    np.savez(os.path.join(sized, "q.npz"), t=[1, 2], units=[3, 4])
    report = neap_json("encode", os.path.dirname(sized), "--out", os.path.join(folder, "out.h5"), "--force")
    tap.check("a file of another sort is skipped", None if (report["samples"], report["skipped_damaged"]) == (1, 1) else str(report))
    np.savez(os.path.join(sized, "q.npz"), t=[1, 2], x=[3, 4], y=[0, 0], offsets=[0, 1, 2], labels=[0, 0], classes=["b"])
    refused(tap, "a file of several samples in a folder", "by itself", os.path.dirname(sized), "--strict")


def strays(tap, folder, rng):
    """Files that are no recordings are skipped and counted, whatever lies in a folder of them."""
    events, sounds = os.path.join(folder, "stray"), os.path.join(folder, "wavs")
    for k in range(2):
        save_recording(os.path.join(events, str(k), "r"), some(rng, 50), "records of tonic")
        os.makedirs(os.path.join(sounds, str(k)))
        write_tone(os.path.join(sounds, str(k), "s.wav"), 300 + 200 * k)
    tables = os.path.join(folder, "tables")
    for k in range(2):
        os.makedirs(os.path.join(tables, str(k)))
        with open(os.path.join(tables, str(k), "t.csv"), "w", encoding="ascii") as file:
            file.write(f"a,b\n{k},1.5\n")
    out = os.path.join(folder, "stray.h5")
    for root, sensor, kind in ((events, ["--sensor", "34x34"], "npy"), (sounds, [], "wav"), (tables, [], "csv")):
        for name in ("0/.DS_Store", "1/._r." + kind, "0/SHA256SUMS", "0/r.md5", "zz/notes.docx"):
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            open(os.path.join(root, name), "w").close()
        os.makedirs(os.path.join(root, ".git"), exist_ok=True)
        open(os.path.join(root, ".git", "config." + kind), "w").close()
        command = ["encode", root, "--out", out, "--force", *sensor]
        hidden = ["0/.DS_Store", "1/._r." + kind]
        report = neap_json(*command)
        files = report["files" if root != events else "samples"]
        tap.check(f"stray files beside {kind}", None if (files, report["skipped_others"], report["classes"]) == (2, 5, 2) else str(report))
        said = neap(*command).stdout.strip().splitlines()[-1]
        tap.check(f"a line about stray files beside {kind}", None if said ==
                  f"skipped files: 5 of other kinds (for example '{hidden[0]}')" else said)
        done = neap(*command, "--strict")
        tap.check(f"--strict refuses stray files beside {kind}", None if done.returncode == 2 and "SHA256SUMS" in done.stderr
                  and "Remove --strict" in done.stderr else done.stderr)
        for name in ("0/SHA256SUMS", "0/r.md5", "zz/notes.docx"):
            os.unlink(os.path.join(root, name))
        done = neap(*command, "--strict")
        tap.check(f"--strict and hidden files beside {kind}", done.stderr if done.returncode else None)
        os.symlink("nowhere", os.path.join(root, "0", "gone." + kind))
        os.mkfifo(os.path.join(root, "0", "pipe." + kind))
        report = neap_json(*command)
        tap.check(f"a link to nothing and a pipe beside {kind}", None if report["skipped_others"] == 4 else str(report))
    only = os.path.join(folder, "only")
    os.makedirs(only)
    open(os.path.join(only, "a.mat"), "w").close()
    refused(tap, "a folder of one unknown kind", "such as 'a.mat'. It reads recordings (.wav, .flac", only)


def mixed(tap, folder, rng):
    """Folders and files of events that are not quite as they should be: none is wrong in silence."""
    samples = [some(rng, 40 + i) for i in range(4)]
    want, labels = [channels(s) for s in samples], [0, 0, 1, 1]
    root, out = os.path.join(folder, "mixed"), os.path.join(folder, "mixed.h5")
    for k, sample in enumerate(samples):
        save_recording(os.path.join(root, "ab"[labels[k]], f"r{k}"), sample, "columns")
    write_tone(os.path.join(root, "a", "note.wav"), 440)
    with open(os.path.join(root, "b", "notes.csv"), "w", encoding="ascii") as file:
        file.write("1,2\n")
    sensor = ["--sensor", "34x34"]
    tap.check("a sound and a table among events", encode(folder, root, want, labels, ["a", "b"], 2312, *sensor))
    done = neap("encode", root, "--out", out, "--force", *sensor)
    tap.check("no warning if each sample has events", None if done.returncode == 0 and "warning" not in done.stderr else done.stderr)
    for k in range(2):
        save_recording(os.path.join(root, "ab"[k], "empty"), samples[0][:0], "columns")
    done = neap("encode", root, "--out", out, "--force", *sensor)
    tap.check("samples without events are counted", None if done.returncode == 0 and done.stderr.count("warning: ") == 1 and
              "warning: 2 of 6 samples have no events: 'a/empty.npz', 'b/empty.npz'. A network" in done.stderr else done.stderr)
    report = neap_json("encode", root, "--out", out, "--force", *sensor, "--polarity", "on", "--crop", "1x1")
    tap.check("and after --crop and --polarity", None if 2 < report["samples_empty"] <= 6 else str(report))
    done = neap("encode", root, "--out", out, "--force", "--channels", 9)
    tap.check("an option of sounds", None if done.returncode == 2 and "--channels applies to recordings of sound" in done.stderr and
              "contains events. " in done.stderr else done.stderr)

    flat, offsets = np.concatenate(samples), np.cumsum([0] + [len(s) for s in samples])
    more = {"offsets": offsets, "labels": labels, "classes": ["a", "b"], "sensor_size": (34, 34)}
    path = os.path.join(folder, "alias.npz")
    for t, x, y, p in ("ts", "xs", "ys", "ps"), ("time", "xs", "ys", "pol"), ("timestamps", "x", "y", "polarities"):
        np.savez(path, **{t: flat["t"], x: flat["x"], y: flat["y"], p: flat["p"]}, **more)
        tap.check(f"columns {t}, {x}, {y}, {p}", encode(folder, path, want, labels, ["a", "b"], 2312))
    with h5py.File(path[:-3] + "h5", "w") as file:
        for name, array in {"events/ts": flat["t"], "events/xs": flat["x"], "events/ys": flat["y"], "events/pol": flat["p"], **more}.items():
            file[name] = array
    tap.check("columns of other names, HDF5", encode(folder, path[:-3] + "h5", want, labels, ["a", "b"], 2312))
    several = os.path.join(folder, "several")
    os.makedirs(os.path.join(several, "a"))
    np.savez(os.path.join(several, "a", "all.npz"), events=flat, offsets=offsets, labels=labels)
    refused(tap, "several samples in a file of a folder", "holds 4 samples, but each file of the folder", several, *sensor)
    line = os.path.join(folder, "line")
    os.makedirs(os.path.join(line, "a"))
    for k in range(2):
        np.savez(os.path.join(line, "a", f"{k}.npz"), t=[1, 2], x=[3, 4])
    tap.check("no y on a sensor of one row", encode(folder, line, [[(np.float32(1e-6), 3), (np.float32(2e-6), 4)]] * 2, [0, 0], ["a"],
                                                    34, "--sensor", "34x1"))
    refused(tap, "no y on a sensor of rows", "has 34 rows", line, *sensor, "--strict")
    grids = os.path.join(folder, "grids")
    for k in range(2):
        os.makedirs(os.path.join(grids, "ab"[k]))
        np.save(os.path.join(grids, "ab"[k], "r.npy"), np.stack([samples[k][n].astype("i8") for n in "txyp"], 1))
    done = neap("encode", grids, "--out", out, "--force", *sensor)
    exec(re.search('python3 -c "(.*)"', done.stderr).group(1), {})
    tap.check("a folder of matrices, after the advice", encode(folder, grids, want[:2], [0, 1], ["a", "b"], 2312, *sensor))


def nmnist_bytes(events):
    """As published: 23 bits of time, and an event at y = 240 for each 2^13 us beyond."""
    out, late = bytearray(), 0
    for x, y, t, p in events.tolist():
        while t - late >= 1 << 23:
            out += bytes((0, 240, 0, 0, 0))
            late += 1 << 13
        t -= late
        out += bytes((x, y, int(p) << 7 | t >> 16, t >> 8 & 255, t & 255))
    return bytes(out)


def aedat_bytes(events, at_once=1000):
    """AEDAT 3.1 in packets of some events."""
    out = bytearray(b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n")
    for first in range(0, len(events), at_once):
        part = events[first:first + at_once]
        out += struct.pack("<HHIIIIII", 1, 1, 8, 4, 0, len(part), len(part), len(part))
        for x, y, t, p in part.tolist():
            out += struct.pack("<II", x << 17 | y << 2 | int(p) << 1 | 1, t)
    return bytes(out)


def tonic_reads(python, kind, path, events, folder):
    """None, or how tonic's events differ from those that were written."""
    out = os.path.join(folder, "tonic.npz")
    done = subprocess.run([python, "-c", TONIC, kind, path, out], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()[-200:]
    got = np.load(out)
    same = all(np.array_equal(got[name], events[name].astype("i8")) for name in "xytp")
    return None if same else "tonic reads other events"


def nmnist(tap, folder, rng, python):
    root = os.path.join(folder, "Train")
    samples = []
    for label in range(10):
        os.makedirs(os.path.join(root, str(label)))
        for i in range(2):
            samples.append(some(rng, 4000, last=9_500_000 if label == 3 else 300_000))
            with open(os.path.join(root, str(label), f"{i:05d}.bin"), "wb") as file:
                file.write(nmnist_bytes(samples[-1]))
    labels, keys = [k // 2 for k in range(20)], [str(k) for k in range(10)]
    tap.check("N-MNIST: the folder as published",
              encode(folder, root, [channels(s) for s in samples], labels, keys, 2312))
    tap.check("N-MNIST: --pool 4 --polarity merge",
              encode(folder, root, [channels(s, pool=4, polarity="merge") for s in samples], labels, keys, 81,
                     "--pool", 4, "--polarity", "merge"))
    path = os.path.join(root, "3", "00001.bin")
    if python:
        tap.check("N-MNIST: tonic reads the same", tonic_reads(python, "nmnist", path, samples[7], folder))
    else:
        tap.skip("N-MNIST: tonic reads the same", "no tonic (PyPI) in NEAP_PYTHON")
    with open(path, "ab") as file:
        file.write(b"123")
    out = os.path.join(folder, "out.h5")
    report = neap_json("encode", root, "--out", out, "--force")
    tap.check("a damaged file is skipped and counted",
              None if (report["samples"], report["skipped_damaged"]) == (19, 1) else str(report))
    done = neap("encode", root, "--out", out, "--force", "--strict")
    tap.check("--strict refuses it by name", None if done.returncode == 2 and "00001.bin" in done.stderr else done.stderr)


def gestures(tap, folder, rng, python):
    root = os.path.join(folder, "DvsGesture")
    os.makedirs(root)
    recordings = {}
    for user in 1, 2:
        name = f"user0{user}_fluorescent"
        events = recordings[name] = some(rng, 5000, 128, 128, 9_000_000)
        events["t"] += 1_000_000
        with open(os.path.join(root, name + ".aedat"), "wb") as file:
            file.write(aedat_bytes(events, (1000, 5000)[user - 1]))  # neap reads 4096 at a time
        with open(os.path.join(root, name + "_labels.csv"), "w") as file:
            file.write("class,startTime_usec,endTime_usec\n2,1500000,3000000\n11,3500000,9000000\n")
    for part, user in ("train", 1), ("test", 2):
        with open(os.path.join(root, f"trials_to_{part}.txt"), "w") as file:
            file.write(f"user0{user}_fluorescent.aedat\n\n")
    want = []
    for first, last in (1_500_000, 3_000_000), (3_500_000, 9_000_000):
        e = recordings["user02_fluorescent"]
        e = e[(e["t"] >= first) & (e["t"] <= last)].copy()
        e["t"] -= first
        want.append(channels(e, 128, 128, pool=4))
    keys = [str(k + 1) for k in range(11)]
    options = ("--pool", 4, "--split", os.path.join(root, "trials_to_test.txt"))
    tap.check("DVS Gesture: a list of trials", encode(folder, root, want, [1, 10], keys, 2048, *options))
    with open(os.path.join(root, "gesture_mapping.csv"), "w") as file:
        file.write("action,label\n" + "".join(f"gesture_{k},{k}\n" for k in range(1, 12)))
    keys = [f"gesture_{k}" for k in range(1, 12)]
    tap.check("DVS Gesture: named classes", encode(folder, root, want, [1, 10], keys, 2048, *options))
    if python:
        name = "user01_fluorescent"
        tap.check("DVS Gesture: tonic reads the same",
                  tonic_reads(python, "dvs", os.path.join(root, name + ".aedat"), recordings[name], folder))
    else:
        tap.skip("DVS Gesture: tonic reads the same", "no tonic (PyPI) in NEAP_PYTHON")
    refusals(tap, folder, root, aedat_bytes(recordings["user02_fluorescent"][:20]))


def refused(tap, name, word, *arguments):
    done = neap("encode", *arguments, "--out", os.path.join(arguments[0] + ".out.h5"), "--force")
    lines = done.stderr.strip().splitlines()
    good = done.returncode == 2 and len(lines) == 1 and word in lines[0]
    tap.check(f"refused: {name}", None if good else f"{done.returncode} {done.stderr[:300]}")


def refusals(tap, folder, root, whole):
    path = os.path.join(root, "user02_fluorescent.aedat")
    bad = []
    head = whole.index(b"END-HEADER\r\n") + 12
    for n in range(len(whole)):  # between two packets a file may end
        if n == head:
            continue
        with open(path, "wb") as file:
            file.write(whole[:n])
        if n % 7 == 0 or n < head + 40:
            done = neap("encode", root, "--out", os.path.join(folder, "t.h5"), "--force", "--strict", "--split",
                        os.path.join(root, "trials_to_test.txt"))
            if done.returncode != 2 or len(done.stderr.strip().splitlines()) != 1:
                bad.append(f"{n} bytes: {done.returncode} {done.stderr[:100]}")
    tap.check("AEDAT cut short is refused", bad[0] if bad else None)
    good = {"x": np.arange(4), "y": np.arange(4), "t": np.arange(4), "p": np.zeros(4, "?"), "offsets": [0, 1, 4],
            "labels": [0, 1], "classes": ["a", "b"], "sensor_size": [5, 5]}
    npz = os.path.join(folder, "bad.npz")
    for name, word, change in (
            ("no offsets", "no 'offsets'", {"offsets": None}), ("offsets that descend", "'offsets'[2]", {"offsets": [0, 3, 1]}),
            ("offsets that end early", "must begin with 0", {"offsets": [0, 1, 3]}),
            ("no sensor", "--sensor", {"sensor_size": None}), ("a sensor too small", "pixel (3, 3)", {"sensor_size": [3, 3]}),
            ("a sensor too large", "65536", {"sensor_size": [40000, 40000]}),
            ("a label beyond", "'labels'[1] is 2", {"labels": [0, 2]}), ("no classes", "--classes", {"classes": None}),
            ("an unknown name", "'cow'", {"labels": ["a", "cow"]}), ("too few labels", "'labels' has 1 entries, but there are 2 samples", {"labels": [0]}),
            ("x of another length", "'x' has 3 entries, but 't' has 4", {"x": np.arange(3)}), ("x below 0", "is -1", {"x": [0, -1, 0, 0]}),
            ("times that are NaN", "nan", {"t": [0.0, 1.0, np.nan, 2.0]}), ("times in ns", "--time-unit 1ns",
                                                                           {"t": np.arange(4) * 10**14}),
            ("times since 1970", "Pass --from-first-event", {"t": np.arange(4) + 1_700_000_000_000_000}),
            ("times of floats in us", "--time-unit 1us", {"t": np.arange(4) * 1e6}),
            ("no y", "no 'y', but the sensor of 5x5 pixels has 5 rows. Add the array 'y', or pass --sensor 5x1", {"y": None}),
            ("objects", "numpy.concatenate(d[k])", {"t": np.array([None] * 4)}), ("no labels", "no array 'labels'", {"labels": None}),
            ("no events", "contains no events", {"x": None, "t": None, "y": None, "p": None})):
        np.savez(npz, **{k: v for k, v in {**good, **change}.items() if v is not None})
        refused(tap, name, word, npz)
    np.savez(npz, **good)
    refused(tap, "more --classes than the array", "array 'classes' with 2 names, and --classes has 10 other ones", npz, "--classes", "10")
    with open(os.path.join(folder, "others.txt"), "w") as file:
        file.write("0\nb\n")
    refused(tap, "other --classes than the array", "array 'classes' with 2 names, and --classes has 2 other ones", npz, "--classes", file.name)
    refused(tap, "a crop beyond", "--crop", npz, "--crop", "6x5")
    refused(tap, "a sensor of one number", "--sensor", npz, "--sensor", "34")


def write_two(path, names, labels, rng):
    """Samples whose class shows in x, as events of a small sensor."""
    events = [some(rng, 60, 8, 1, 50_000) for _ in labels]
    for e, label in zip(events, labels):
        e["x"] = "abc".index(names[label]) * 2 + e["x"] % 2
    np.savez(path + ".npz", events=np.concatenate(events), offsets=np.cumsum([0] + [60] * len(events)),
             labels=labels, classes=np.array(names), sensor_size=(8, 1))
    done = neap("encode", path + ".npz", "--out", path, "--force")
    return done.stderr.strip() if done.returncode else None


def names(tap, folder, rng):
    """A test set that lacks a class, or has them in another order, is read by its names."""
    train, test = os.path.join(folder, "train.h5"), os.path.join(folder, "test.h5")
    run = os.path.join(folder, "run")
    tap.check("encode for training", write_two(train, list("abc"), [0, 1, 2] * 20, rng))
    write_two(test, ["c", "a"], [0, 1] * 10, rng)
    done = neap("train", train, "--test", test, "--net", "lif:32,li", "--epochs", 40, "--lr", "1e-2", "--out", run)
    report = neap_json("eval", run, train)
    tap.check("it learns", None if report["accuracy"] > 0.9 else f"accuracy {report['accuracy']}")
    tap.check("train with --test of fewer classes", done.stderr.strip() if done.returncode else None)
    report = neap_json("eval", run, test)
    tap.check("eval maps classes by name", None if report["accuracy"] > 0.9 else f"accuracy {report['accuracy']}")
    write_two(test, ["c", "b", "a"], [0, 1, 2] * 10, rng)
    report = neap_json("eval", run, test)
    tap.check("eval of another order", None if report["accuracy"] > 0.9 else f"accuracy {report['accuracy']}")
    with h5py.File(test, "a") as file:
        file["extra/keys"][0] = b"d"
    done = neap("eval", run, test)
    tap.check("an unknown class is named", None if done.returncode == 2 and "class 'd'" in done.stderr and
              len(done.stderr.strip().splitlines()) == 1 else done.stderr)


def said(tap, folder, rng):
    """Channels come from the file, its layout or --channels, never from the largest alone."""
    path, run = os.path.join(folder, "said.h5"), os.path.join(folder, "said")
    model = os.path.join(folder, "wide")
    tap.check("a file that says 16 channels", write_two(path, list("abc"), [0, 1, 2] * 10, rng))
    train = ["train", path, "--net", "lif:8,li", "--epochs", 1, "--memory", "8M", "--batch", 8, "--out"]
    neap(*train, model, "--channels", 900)
    with h5py.File(path, "a") as file:
        del file.attrs["inputs"]

    def refuse(name, word, *arguments):
        done = neap(*arguments)
        good = done.returncode == 2 and word in done.stderr and done.stderr.count("\n") == 1 and path in done.stderr
        tap.check(f"refused: {name}", None if good else f"{done.returncode} {done.stderr}")

    def last_unit(unit):
        with h5py.File(path, "a") as file:
            units = file["spikes/units"][0]
            before, units[-1] = units[-1], unit
            file["spikes/units"][0] = units
        return before

    refuse("the names of classes of SHD, and few channels", "pass --channels 14, or more", *train, run)
    unit = last_unit(350)
    report = neap(*train, run + "700")
    tap.check("the layout of SHD has 700", None if " 700 channels" in report.stdout + report.stderr else report.stderr)
    last_unit(unit)
    with h5py.File(path, "a") as file:
        del file["extra/keys"]
    done = neap("encode", path, "--out", path + ".h5")
    tap.check("encode names the command that reads SHD", None if done.returncode == 2 and f"neap train '{path}'" in done.stderr
              and done.stderr.count("\n") == 1 else done.stderr)
    for command in (train + [run], ["compare", path, "--net", "lif:8,li", "--memory", "8M"]):
        refuse(f"{command[0]}: neither said nor SHD", "largest one used is 13", *command)
    refuse("--channels 13 of 14", "Pass --channels 14, or more", *train, run, "--channels", 13)
    done = neap(*train, run + "14", "--channels", 14)
    tap.check("--channels 14", done.stderr if done.returncode else None)
    done = neap("eval", model, path)
    tap.check("eval of a model of more", done.stderr if done.returncode else None)
    with h5py.File(path, "a") as file:
        file.attrs["inputs"] = 5
        file["extra"].create_dataset("keys", data=[b"a", b"b", b"c"])
    refuse("more than the file says", "'inputs'", *train, run)
    with h5py.File(path, "a") as file:
        del file.attrs["inputs"]
    last_unit(700)
    refuse("more than SHD has", "largest one used is 700", *train, run)
    done = neap("eval", model, path)
    tap.check("eval of a model of 900", done.stderr if done.returncode else None)
    with h5py.File(path, "w") as file:
        file["z"] = [1.0]
    refuse("HDF5 of another layout", "array 'x'", *train, run)
    with h5py.File(path, "w") as file:
        file["x"], file["t"] = [1], [2]
    refuse("HDF5 of events", "neap encode", *train, run)


def ragged(items):
    out = np.empty(len(items), object)
    out[:] = items
    return out


def advised(tap, folder, rng):
    """A file of arrays that are not read: the line lists them, and its Python makes a file that is read."""
    x, y = rng.normal(size=(20, 9, 3)), np.arange(20) % 2
    short = [s[:3 + i % 5] for i, s in enumerate(x)]
    padded = np.stack([np.pad(s, [(0, 7 - len(s)), (0, 0)]) for s in short])
    events = [some(rng, 5 + i) for i in range(20)]
    grid = np.stack([events[0][name].astype("i8") for name in "txyp"], 1)
    here = os.path.join(folder, "advised")
    os.makedirs(here)

    def follow(name, save, found, want, *command):
        def run():
            path = save()
            done = neap(*(command or ("train",)), path, "--out", "never", cwd=here)
            assert done.returncode == 2 and done.stderr.count("\n") == 1 and "It contains " + found in done.stderr, done.stderr
            line = done.stderr.strip()
            code = re.search(r"(?: reads|as floats\)|another folder|each sample|order t, x, y, p): (.*)", line).group(1)
            command_line = re.match(r'python3 -c "(.*)"$', code)  # which names the file after the one that was given
            code, name_made = (command_line.group(1), path[:-4] + ".npz") if command_line else (code, "neap.npz")
            before = os.getcwd()
            os.chdir(here)
            try:
                exec(re.split(r", where y|\. Each row|\. If it is|\. With ", code)[0], {"numpy": np, "h5py": h5py, "glob": glob, "y": y, "labels": y})
            finally:
                os.chdir(before)
            made = np.load(os.path.join(here, name_made))
            for key, value in want.items():
                assert np.array_equal(made[key], value), key
            if not command:
                done = neap("train", "neap.npz", "--net", "gru:2,li", "--epochs", 1, "--memory", "4M", "--out", "run-" + name.replace(" ", "-"), cwd=here)
            else:
                done = neap("encode", name_made, "--out", "e.h5", "--force", "--sensor", "34x34",
                            *(["--classes", 2] if "labels" in want else []), cwd=here)
            assert done.returncode == 0, done.stderr
        tap.run("advice: " + name, run)

    def npz(**arrays):
        return lambda: (np.savez(os.path.join(here, "a.npz"), **arrays), "a.npz")[1]

    def npy(array):
        return lambda: (np.save(os.path.join(here, "a.npy"), array), "a.npy")[1]

    def h5(**arrays):
        def save():
            with h5py.File(os.path.join(here, "a.h5"), "w") as file:
                for name, array in arrays.items():
                    file[name.replace("__", "/")] = array
            return "a.h5"
        return save
    numbers = {"x": x, "y": y}
    follow("X and y", npz(X=x, y=y), "X float64 (20, 9, 3), y int64 (20). ", numbers)
    follow("data and labels", npz(data=x.astype("f4"), labels=y), "data float32 (20, 9, 3), labels", {"x": x.astype("f4"), "y": y})
    follow("train and test", npz(X_train=x, y_train=y, X_test=x[:2], y_test=y[:2]), "X_train", numbers)
    follow("arrays without names", lambda: (np.savez(os.path.join(here, "a.npz"), x, y), "a.npz")[1], "arr_0", numbers)
    follow("x and labels", npz(x=x, labels=y), "x float64", numbers)
    follow("no targets", npz(x=x), "x float64", numbers)
    follow("one array", npy(x), "float64 (20, 9, 3). ", numbers)
    follow("four dimensions", npz(x=x.reshape(20, 9, 3, 1), y=y), "x float64 (20, 9, 3, 1)", numbers)
    follow("objects, ragged", npz(x=ragged(short), y=y), "x object (20)",
           {"x": padded, "y": y, "lengths": [len(s) for s in short]})
    follow("objects of a number", npz(x=x.astype(object), y=y), "x object (20, 9, 3)", numbers)
    follow("objects as names", npz(x=x, y=np.array(["a", "b"], object)[y]), "x float64 (20, 9, 3), y object (20)",
           {"x": x, "y": np.array(["a", "b"])[y]})
    follow("HDF5, four dimensions", h5(data=x.reshape(20, 9, 3, 1), labels=y), "data float64 (20, 9, 3, 1), labels", numbers)
    follow("a row of features", npz(X=x[:, 0], y=y), "X float64 (20, 3)", {"x": x[:, 0], "y": y})
    follow("HDF5, X and y", h5(X=x, y=y), "X float64 (20, 9, 3), y int64", numbers)
    follow("HDF5, groups", h5(train__x=x, train__labels=y), "train/labels int64 (20), train/x", numbers)
    follow("events of objects", npz(events=ragged(events), labels=y), "events object (20), labels",
           {"t": np.concatenate(events)["t"], "labels": y}, "encode")
    follow("columns of objects", npz(**{n: ragged([e[n] for e in events]) for n in "txyp"}, labels=y), "t object",
           {"t": np.concatenate(events)["t"], "labels": y}, "encode")
    follow("a matrix of events", npy(grid), "int64 (5, 4)", {"t": grid[:, 0], "x": grid[:, 1], "p": grid[:, 3]}, "encode")
    follow("HDF5, as v2e writes", h5(events=grid.astype("u4")), "events", {"t": grid[:, 0], "y": grid[:, 2]}, "encode")
    for name, save, command, words in (
            ("events", npz(t=[1], x=[2], y=[3], p=[0]), "train", "neap encode FOLDER --out FILE.h5 --sensor 3x4"),
            ("records of events", npy(events[0]), "train", "neap encode 'a.npy' --out FILE.h5 --sensor"),
            ("numbers", npz(x=x, y=y), "encode", "neap train 'a.npz'"), ("numbers of HDF5", h5(x=x, y=y), "encode", "neap train 'a.h5'"),
            ("other names of columns", npz(time=[1], col=[2], row=[3]), "encode", "Save the columns of the events as t, x, y and p"),
            ("records of other names", npy(np.zeros(3, [("time", "i8"), ("col", "i4")])), "encode", "as t, x, y and p"),
            ("nothing like it", npz(names=["a"]), "train", "docs/data.md"), ("a folder", lambda: ".", "train", "Pass the data set in it: './a.h5'"),
            ("many arrays", npz(**{f"a{i}": x for i in range(40)}), "train", " more. ")):
        done = neap(command, save(), "--out", "never", cwd=here)
        tap.check(f"advice for {command}: {name}", None if done.returncode == 2 and words in done.stderr and
                  done.stderr.count("\n") == 1 else done.stderr)


def main():
    rng = np.random.default_rng(11)
    python = with_tonic()
    with Tap() as tap, Folder() as folder:
        arrays(tap, folder, rng)
        durations(tap, folder, rng)
        from_first(tap, folder, rng)
        recordings(tap, folder, rng)
        strays(tap, folder, rng)
        mixed(tap, folder, rng)
        nmnist(tap, folder, rng, python)
        gestures(tap, folder, rng, python)
        advised(tap, folder, rng)
        names(tap, folder, rng)
        said(tap, folder, rng)


if __name__ == "__main__":
    main()
