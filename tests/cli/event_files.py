#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Recordings in the formats of event cameras and their software: DAT and RAW of Prophesee, AEDAT 4, HDF5 of
Metavision, DSEC and N-TIDIGITS, and text. The files are written here from the descriptions of the formats;
`neap encode` reads the events that went in. Files that are cut are refused by name.
"""
import json
import os
import struct

from events import channels, check_file, encode, refused, some
from harness import Folder, Tap, neap

import h5py
import numpy as np

SENSOR = ["--sensor", "34x34"]


def later(events, first):
    """The events on a clock that shows `first` at time 0."""
    out = events.copy()
    out["t"] += first
    return out


def dat(events, lines=b"% Data file containing CD events.\n% Version 2\n% Height 34\n% Width 34\n", kind=12, size=8):
    out = bytearray(lines + bytes((kind, size)))
    for x, y, t, p in events.tolist():
        out += struct.pack("<II", t & 0xffffffff, x | y << 14 | int(p) << 28)
    return bytes(out)


def highs(before, now):
    """Each value of the upper bits of the time between two events, as cameras write them."""
    return range(now, now + 1) if before is None else range(before + 1, now + 1)


def evt2(events, lines=b"% evt 2.0\n% geometry 34x34\n"):
    out, high = bytearray(lines), None
    for x, y, t, p in events.tolist():
        for high in ([t >> 6] if high != t >> 6 else []):
            out += struct.pack("<I", 8 << 28 | high & 0xfffffff)
        out += struct.pack("<I", int(p) << 28 | (t & 63) << 22 | x << 11 | y)
    return bytes(out) + struct.pack("<I", 10 << 28 | 5)  # a trigger


def evt21(events, swapped):
    """Pixels of the same row, time and polarity, up to 31 columns apart, share a word."""
    out = bytearray(b"% format EVT21;height=34;width=34" + (b";endianness=legacy" if swapped else b"") + b"\n% end\n")

    def word(head, valid):
        out.extend(struct.pack("<II", *((head, valid) if swapped else (valid, head))))
    high = None
    for x, y, t, p, valid in rows(events):
        if high != t >> 6:
            high = t >> 6
            word(8 << 28 | high, 0)
        word(p << 28 | (t & 63) << 22 | x << 11 | y, valid)
    return bytes(out)


def rows(events):
    """(x, y, t, p, bits of the pixels from x on) of events that follow each other."""
    out = []
    for x, y, t, p in events.tolist():
        last = out[-1] if out else None
        if last and last[1:4] == [y, t, int(p)] and 0 < x - last[0] < 32:
            last[4] |= 1 << (x - last[0])
        else:
            out.append([x, y, t, int(p), 1])
    return out


def evt3(events, lines=b"% evt 3.0\n% format EVT3;height=34;width=34\n% end\n"):
    out, high, low, row = bytearray(lines), None, None, None

    def word(kind, value):
        out.extend(struct.pack("<H", kind << 12 | value))
    for x, y, t, p, valid in rows(events):
        for high in highs(high, t >> 12):
            word(8, high & 0xfff)
        if low != t & 0xfff:
            low = t & 0xfff
            word(6, low)
        if row != y:
            row = y
            word(0, y)
        if valid == 1:
            word(2, p << 11 | x)
        else:
            word(3, p << 11 | x)
            for kind, value in (4, valid & 0xfff), (4, valid >> 12 & 0xfff), (5, valid >> 24):
                word(kind, value)
    return bytes(out) + struct.pack("<HH", 14 << 12, 7 << 12)  # a counter and what continues it


def table(identifier, fields, tail):
    """A FlatBuffers table with its size in front: fields of (format, value), and what offsets lead to."""
    places, body = [], b""
    for form, value in fields:
        body += bytes(-(4 + len(body)) % struct.calcsize(form))
        places.append(4 + len(body))
        body += struct.pack("<" + form, value)
    listed = struct.pack(f"<{2 + len(places)}H", 4 + 2 * len(places), 4 + len(body), *places)
    listed = bytes(-len(listed) % 4) + listed
    at = 8 + len(listed)
    whole = struct.pack("<I4s", at, identifier) + listed + struct.pack("<i", 4 + 2 * len(places)) + body + tail
    return struct.pack("<I", len(whole)) + whole


def packet_table(events, identifier=b"EVTS"):
    vector = struct.pack("<I", len(events)) + b"".join(
        struct.pack("<qhh?3x", t, x, y, p) for x, y, t, p in events.tolist())
    return table(identifier, [("I", 4)], vector)


def lz4(data):
    """A frame of LZ4 whose blocks are stored, each with its length."""
    return bytes.fromhex("04224d18604082") + b"".join(
        struct.pack("<I", 1 << 31 | len(data[i:i + 60000])) + data[i:i + 60000] for i in range(0, len(data), 60000)) + bytes(4)


def zstandard(data):
    """A frame of Zstandard whose blocks are stored."""
    starts = range(0, len(data), 100000)
    return bytes.fromhex("28b52ffda0") + struct.pack("<I", len(data)) + b"".join(
        struct.pack("<I", int(i == starts[-1]) | len(data[i:i + 100000]) << 3)[:3] + data[i:i + 100000] for i in starts)


def aedat4(events, compression=0, at_once=40, has_index=True):
    pack = [bytes, lz4, lz4, zstandard, zstandard][compression]
    packets = b""
    for i in range(0, len(events), at_once):
        for stream, identifier in (0, b"IMUS"), (1, b"EVTS"):
            data = pack(packet_table(events[i:i + at_once], identifier))
            packets += struct.pack("<II", stream, len(data)) + data
    xml = b'<dv version="2.0"><node name="outInfo">'
    for number, kind in enumerate((b"IMUS", b"EVTS")):
        xml += b'<node name="%d"><attr key="typeIdentifier" type="string">%s</attr><node name="info">' % (number, kind)
        xml += b'<attr key="sizeX" type="int">%d</attr><attr key="sizeY" type="int">34</attr></node></node>' % (33 + number)
    tail = struct.pack("<I", len(xml) + 16) + xml + b"</node></dv>    \0"

    def header(place):  # the offset leads behind the 8 bytes of the place
        return b"#!AER-DAT4.0\r\n" + table(b"IOHE", [("i", compression), ("q", place), ("I", 4)], tail)
    place = len(header(0)) + len(packets)
    return header(place if has_index else -1) + packets + (b"an index" if has_index else b"")


def text(events, form="{:.6f} {} {} {}\n", head="# time x y polarity\n", unit=1e6, off=0):
    return (head + "".join(form.format(t / unit, x, y, 1 if p else off) for x, y, t, p in events.tolist())).encode()


def save(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def from_first(events, bits=0):
    """Times since the first one, without its lower bits."""
    return later(events, -(int(events["t"][0]) >> bits << bits))


def recordings(tap, folder, rng):
    events = some(rng, 300)
    crowd = some(rng, 600, last=40)  # of which many share a word
    crowd = crowd[np.lexsort((crowd["x"], crowd["p"], crowd["y"], crowd["t"]))]
    crowd = np.unique(crowd)[np.lexsort([np.unique(crowd)[k] for k in ("x", "p", "y", "t")])]
    slow = some(rng, 300, last=40_000_000)
    late = later(slow, 2**34 - 20_000_000)
    dv = later(events, 1_700_000_000_000_000)
    whole = {"DAT": ("a.dat", dat(events), events), "DAT: 32 bits of time start again": ("a.dat", dat(later(slow, 2**32 - 20_000_000)), later(slow, 2**32 - 20_000_000)),
             "DAT of an older type": ("a.dat", dat(events, kind=0), events),
             "EVT2": ("a.raw", evt2(events), from_first(events, 6)), "EVT2: the time starts again": ("a.raw", evt2(late), from_first(late, 6)),
             "EVT2.1": ("a.raw", evt21(crowd, False), from_first(crowd, 6)), "EVT2.1, legacy": ("a.raw", evt21(crowd, True), from_first(crowd, 6)),
             "EVT3": ("a.raw", evt3(events), from_first(events, 12)), "EVT3 in vectors": ("a.raw", evt3(later(crowd, 9_999_999)), from_first(later(crowd, 9_999_999), 12)),
             "EVT3: the time starts again twice": ("a.raw", evt3(later(slow, 10_000_000)), from_first(later(slow, 10_000_000), 12)),
             "AEDAT 4": ("a.aedat4", aedat4(dv), from_first(dv)), "AEDAT 4 without an index": ("a.aedat4", aedat4(dv, has_index=False), from_first(dv)),
             "text of a sensor's size": ("events.txt", text(events, head="34 34\n"), events),
             "text of microseconds": ("a_events.txt", text(events, "{:.0f},{},{},{}\n", "% a comment\n34 34\n", 1, -1), events)}
    for name, (file, data, want) in whole.items():
        path = save(folder, os.path.join("cat", file), data)
        tap.check(name, encode(folder, path, [channels(want)], [0], ["cat"], 2312))
    path = save(folder, "cat/v2e.events.txt", text(events))
    tap.check("text", encode(folder, path, [channels(events)], [0], ["cat"], 2312, *SENSOR))
    for compression, name in (1, "LZ4"), (2, "LZ4 of high compression"), (3, "Zstandard"), (4, "Zstandard of high compression"):
        path = save(folder, "cat/packed.aedat4", aedat4(dv, compression))
        done = neap("encode", path, "--out", os.path.join(folder, "out.h5"), "--force")
        if "but this build of neap has no lib" in done.stderr:
            tap.check(f"AEDAT 4, {name}: refused by name", None if done.returncode == 2 and done.stderr.count("\n") == 1 else done.stderr)
        else:
            tap.check(f"AEDAT 4, {name}", done.stderr if done.returncode else
                      check_file(os.path.join(folder, "out.h5"), [channels(from_first(dv))], [0], ["cat"], 2312))
    tap.check("--time-unit of text", encode(folder, save(folder, "cat/ms.events.txt", text(later(events, -events["t"].min()), "{:.3f} {} {} {}\n", unit=1e3)),
                                            [channels(later(events, -events["t"].min()))], [0], ["cat"], 2312, "--time-unit", "1ms", *SENSOR))


def folders(tap, folder, rng):
    """A folder for each class; the kind of most files counts."""
    samples = [some(rng, 100 + i) for i in range(4)]
    want = [channels(s) for s in samples]
    for name, write in ("dat", dat), ("raw", lambda s: evt3(later(s, -(int(s["t"][0]) >> 12 << 12)))):
        root = os.path.join(folder, name + "s")
        shift = 0 if name == "dat" else 12
        for k, sample in enumerate(samples):
            save(root, f"{'ab'[k // 2]}/{k}.{name}", write(sample))
            save(root, f"{'ab'[k // 2]}/{k}_box.npy" if k == 0 else f"{'ab'[k // 2]}/{k}.txt", b"")
        tap.check(f"a folder of .{name}", encode(folder, root, want if shift == 0 else [channels(from_first(s, 12)) for s in samples],
                                                 [0, 0, 1, 1], ["a", "b"], 2312))
    for k, sample in enumerate(samples):
        save(folder, f"texts/{'ab'[k // 2]}/{k}_events.txt", text(sample, head="34 34\n"))
    save(folder, "texts/README.txt", b"recorded today")
    tap.check("a folder of text", encode(folder, os.path.join(folder, "texts"), want, [0, 0, 1, 1], ["a", "b"], 2312))


def archives(tap, folder, rng):
    """HDF5 of Metavision and DSEC."""
    events = some(rng, 5000)
    path = os.path.join(folder, "cat", "metavision.hdf5")
    for name, more, geometry in (("", {}, "34x34"), (", chunks", {"chunks": (1000,), "compression": "gzip"}, np.bytes_("34x34"))):
        with h5py.File(path, "w") as file:
            file.create_dataset("CD/events", data=np.array(events.tolist(), dtype=[("x", "<u2"), ("y", "<u2"), ("t", "<i8"), ("p", "<i2")])[["x", "y", "p", "t"]], **more)
            file.attrs["geometry"] = geometry
        tap.check("HDF5 of Metavision" + name, encode(folder, path, [channels(events)], [0], ["cat"], 2312))
    with h5py.File(path, "w") as file:
        file["events"] = events
    tap.check("HDF5: records with a boolean", encode(folder, path, [channels(events)], [0], ["cat"], 2312, *SENSOR))
    for number, word in (36559, "Metavision ECF (36559)"), (32001, "Blosc (32001)"):
        with h5py.File(path, "w") as file:
            how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            how.set_chunk((5000,))
            how.set_filter(number, h5py.h5z.FLAG_OPTIONAL)
            kind = np.dtype([("x", "<u2"), ("y", "<u2"), ("p", "<i2"), ("t", "<i8")])
            h5py.h5d.create(h5py.h5g.create(file.id, b"CD"), b"events", h5py.h5t.py_create(kind), h5py.h5s.create_simple((5000,)), how)
        refused(tap, f"HDF5 packed by {word}", word, path, *SENSOR)
    path = os.path.join(folder, "cat", "dsec.h5")
    with h5py.File(path, "w") as file:
        for name, kind in ("x", "u2"), ("y", "u2"), ("t", "u4"), ("p", "u1"):
            file["events/" + name] = events[name].astype(kind)
        file["t_offset"] = 52_387_000_000
        file["ms_to_idx"] = np.searchsorted(events["t"], np.arange(300) * 1000)
    tap.check("HDF5 of DSEC: times since t_offset", encode(folder, path, [channels(events)], [0], ["cat"], 2312, *SENSOR))


def digits(tap, folder, rng):
    path = os.path.join(folder, "n-tidigits.hdf5")
    names = {"train": ["man-ah-1", "man-ah-oz", "girl-b-1", "girl-b-o"], "test": ["boy-c-1", "boy-c-9"]}
    want = {}
    with h5py.File(path, "w") as file:
        for part, samples in names.items():
            file[part + "_labels"] = np.array(samples, dtype="S20")
            for name in samples:
                t, x = np.sort(rng.uniform(0, 1, 400)), rng.integers(0, 64, 400)
                file[f"{part}_timestamps/{name}"], file[f"{part}_addresses/{name}"] = t, x
                want[name] = sorted(zip(t.astype("f4").tolist(), x.tolist()))
    tap.check("N-TIDIGITS", encode(folder, path, [want[n] for n in names["train"]], [0, 2, 0, 1], ["1", "o", "oz"], 64, "--split", "train"))
    tap.check("N-TIDIGITS: the test part", encode(folder, path, [want[n] for n in names["test"]], [0, 1], ["1", "9"], 64, "--split", "test"))
    listed = save(folder, "digits.txt", b"o\n1\n")
    tap.check("N-TIDIGITS: the classes of a list", encode(folder, path, [want[n] for n in ("man-ah-1", "girl-b-1", "girl-b-o")], [1, 1, 0], ["o", "1"],
                                                         64, "--split", "train", "--classes", listed))
    tap.check("N-TIDIGITS: --label", encode(folder, path, [want[n] for n in names["train"]], [1, 1, 0, 0], ["girl", "man"], 64, "--split", "train",
                                            "--label", "^([a-z]+)-"))
    refused(tap, "N-TIDIGITS without --split", "Pass --split train or --split test", path)
    with h5py.File(path, "a") as file:
        del file["train_addresses/man-ah-oz"]
    refused(tap, "N-TIDIGITS: an array is missing", "has no array 'train_addresses/man-ah-oz'", path, "--split", "train")


def cuts(tap, folder, rng):
    """A file that ends anywhere is skipped by name, but behind an event of formats that do not count them."""
    events = some(rng, 5)
    for name, data, may_end in (
            ("a.dat", dat(events), lambda n, whole: n >= whole - 40 and (whole - n) % 8 == 0),
            ("a.raw", evt2(events), lambda n, whole: n > 27 and (n - 27) % 4 == 0),
            ("b.raw", evt21(events, False), lambda n, whole: n > 40 and (n - 40) % 8 == 0),
            ("c.raw", evt3(events), lambda n, whole: n > 49 and (n - 49) % 2 == 0),
            ("a.aedat4", aedat4(later(events, 10**15), at_once=3), lambda n, whole: n > whole - 8),
            ("b.aedat4", aedat4(later(events, 10**15), at_once=3, has_index=False), None),
            ("a_events.txt", text(events, head="34 34\n"), None)):
        if name == "b.aedat4":  # between packets a recording that was interrupted may end
            body = data.index(b"    \0") + 5
            ends, at = {body}, body
            while at < len(data):
                at += 8 + struct.unpack("<II", data[at:at + 8])[1]
                ends.add(at)
            may_end = lambda n, whole, ends=ends: n in ends  # noqa: E731
        elif name == "a_events.txt":
            may_end = lambda n, whole: data[:n].count(b"\n") >= 1 and data[n - 1:n].isdigit() and data[:n].split(b"\n")[-1].count(b" ") == 3 or data[n - 1:n] == b"\n" or data[:n].strip() in (b"34 3", b"34 34") or data[n:n + 1] == b"\n"  # noqa: E501,E731
        root, good = os.path.join(folder, "cut", name), 1
        save(root, "k/whole." + name, data)
        for n in range(len(data)):
            if may_end(n, len(data)):
                good += 1
            save(root, f"k/{n}.{name}", data[:n])
        done = neap("encode", root, "--out", os.path.join(folder, "cut.h5"), "--force", "--json", *SENSOR)
        report = json.loads(done.stdout) if done.returncode == 0 else done.stderr
        right = done.returncode == 0 and (report["samples"], report["skipped_damaged"]) == (good, len(data) + 1 - good)
        tap.check(f"{name}: cut at each of {len(data)} bytes", None if right else f"{good} should be whole: {report}")
        refused(tap, f"{name} is cut", "'" + root, save(root, f"k/{len(data) - 1}.{name}", data[:-11]), "--strict", *SENSOR)


def hostile(tap, folder, rng):
    events = some(rng, 5)
    packed = aedat4(later(events, 10**15))
    at = packed.index(b"    \0") + 5
    first = at + 8 + struct.unpack("<I", packed[at + 4:at + 8])[0]  # the packet of events
    vector = packed.index(struct.pack("<I", 5) + struct.pack("<q", 10**15 + int(events["t"][0])), first)

    def put(place, data):
        return packed[:place] + data + packed[place + len(data):]
    for name, word, file, data in (
            ("DAT of events of 16 bytes", "events of type 12 with 16 bytes", "a.dat", dat(events, size=16)), ("DAT of triggers", "type 14", "a.dat", dat(events, kind=14)),
            ("DAT, version 1", "version 1", "a.dat", dat(events, b"% Version 1\n")), ("DAT without a header", "does not begin with", "a.dat", dat(events, b"")),
            ("DAT whose header does not end", "line 1 of its header does not end", "a.dat", b"% " + b"a" * 9000),
            ("RAW without a format", "no line '% format'", "a.raw", evt2(events, b"% Date 1\n")), ("RAW of EVT4", "'EVT4'", "a.raw", evt2(events, b"% evt 4.0\n")),
            ("RAW without words", "nothing behind its header", "a.raw", evt2(events)[:27]),
            ("AEDAT 2 by the name of AEDAT 4", "its first line is not '#!AER-DAT4.0'", "a.aedat4", b"#!AER-DAT2.0\r\n" + bytes(99)),
            ("AEDAT 4: a header of 4 GB", "more than 16 MiB", "a.aedat4", put(14, b"\xff\xff\xff\xff")), ("AEDAT 4: a packet of 4 GB", "truncated in a packet", "a.aedat4", put(first + 4, b"\xff\xff\xff\xff")),
            ("AEDAT 4: 4 billion events", "a packet of events is not a table", "a.aedat4", put(vector, b"\xff\xff\xff\xff")),
            ("AEDAT 4: times that descend", "us after the first one", "a.aedat4", put(vector + 4 + 16, struct.pack("<q", 5))),
            ("text of three numbers", "line 2: '0.5 1 2' is not an event", "events.txt", b"34 34\n0.5 1 2\n"), ("text of five numbers", "line 1", "events.txt", b"0.5 1 2 1 1\n"),
            ("text with a polarity of 2", "line 1", "events.txt", b"0.5 1 2 2\n"), ("text with x of 70000", "line 1", "events.txt", b"0.5 70000 2 1\n"),
            ("text of times since 1970", "Pass --from-first-event", "events.txt", b"1468939993.067416 1 2 1\n"), ("text with a time of nan", "not a finite number", "events.txt", b"nan 1 2 1\n"),
            ("text of integers and reals", "so the unit is not known", "events.txt", b"1 1 2 1\n2.5 1 2 1\n"), ("text in one line", "longer than", "events.txt", b"0" * 5000), ("empty text", "has no events", "events.txt", b"# t x y p\n")):
        refused(tap, name, word, save(folder, os.path.join("bad", file), data), "--strict", *SENSOR)
    refused(tap, "AEDAT 2", "has an extension that encode does not read", save(folder, "bad/a.aedat2", b"#!AER-DAT2.0\r\n"))
    save(folder, "bad/b.raw", evt2(events, b"% evt 2.0\n"))
    refused(tap, "RAW without the size of its sensor", "Pass --sensor 32x34", os.path.join(folder, "bad", "b.raw"))


def main():
    rng = np.random.default_rng(7)
    with Tap() as tap, Folder() as folder:
        for part in (recordings, folders, archives, digits, cuts, hostile):
            tap.run(part.__name__, part, tap, folder, rng)


if __name__ == "__main__":
    main()
