#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What data sets and models keep about their data agrees, or a line says that it does not: features are matched by their names,
units of time are compared.
"""
import os
import sys

from harness import Folder, Tap, neap, neap_json, need

need("numpy", "h5py")
import h5py  # noqa: E402
import numpy as np  # noqa: E402

TRAIN = ["--net", "gru:8,li", "--lr", "0.02", "--epochs", "4", "--memory", "4M", "--threads", "1"]
MATCHED = "has the features az, ay, ax, and {} ax, ay, az; they are matched by name"
OTHER = ("has the features p, q, r, but {} ax, ay, az (feature 0 is 'p', not 'ax'). Pass data with the same features, or ignore this "
         "if only the names differ")


def write_tables(folder):
    """One table three times: as it is, with the columns in another order, with other names."""
    random, rows = np.random.default_rng(1), []
    for i in range(80):
        for _ in range(6):
            ax, ay, az = random.normal(size=3) + ((4, 0, 0) if i % 2 else (0, 0, 2))
            rows.append((i, f"{ax:.4f}", f"{ay:.4f}", f"{az:.4f}", "walk" if i % 2 else "sit"))
    for name, header, order in ("a", "ax,ay,az", (1, 2, 3)), ("reversed", "az,ay,ax", (3, 2, 1)), ("other", "p,q,r", (1, 2, 3)):
        with open(os.path.join(folder, name + ".csv"), "w") as out:
            out.write(f"id,{header},state\n")
            out.writelines(",".join(str(row[k]) for k in (0, *order, 4)) + "\n" for row in rows)
        done = neap("encode", name + ".csv", "--out", name + ".h5", "--sample-column", "id", "--target", "state", cwd=folder)
        if done.returncode:
            return f"said: {done.stderr}"
    x = np.random.default_rng(2).normal(size=(20, 6, 3))
    np.savez(os.path.join(folder, "nameless.npz"), x=x, y=np.arange(20) % 2)
    done = neap("train", "a.h5", *TRAIN, "--out", "run", cwd=folder)
    return done.stderr if done.returncode else None


def about(done):
    """The lines about names of features."""
    return [line for line in done.stderr.splitlines() if "has the features" in line]


def evaluated(folder):
    """neap eval and predict read features in the model's order."""
    was, matched = neap_json("eval", "run", "a.h5", cwd=folder), neap("eval", "run", "reversed.h5", "--json", cwd=folder)
    answers = [neap("predict", "run", name, cwd=folder) for name in ("a.h5", "reversed.h5")]
    says = MATCHED.format("the model was trained on")
    if f"'reversed.h5' {says}" not in matched.stderr or says not in answers[1].stderr or about(answers[0]):
        return f"said: {matched.stderr}{answers[1].stderr}"
    if was["accuracy"] < 0.9 or neap_json("eval", "run", "reversed.h5", cwd=folder) != was:
        return f"{was['accuracy']}: {matched.stdout}"
    return None if answers[0].stdout == answers[1].stdout else answers[1].stdout


def trained(folder):
    """neap train reads the test set in the order of its data, and its data in that of --from; a resumed run does as well."""
    done = neap("train", "a.h5", *TRAIN, "--test", "reversed.h5", "--out", "tested", cwd=folder)
    said = [MATCHED.format("the training data 'a.h5' has") in done.stderr]
    plain, tuned = (neap("train", name, *TRAIN[4:], "--from", "run", "--out", "of-" + name, "--json", cwd=folder)
                    for name in ("a.h5", "reversed.h5"))
    said += [MATCHED.format("the model was trained on") in tuned.stderr, not about(plain)]
    a, b = (neap_json("eval", "of-" + name, name, cwd=folder) for name in ("a.h5", "reversed.h5"))
    resumed = neap("train", "--out", "of-reversed.h5", "--resume", "--epochs", "5", cwd=folder)
    longer = neap_json("eval", "of-reversed.h5", "reversed.h5", cwd=folder)
    said += [a == b, resumed.returncode == 0, len(about(resumed)) == 1, longer["accuracy"] >= 0.9,
             not about(neap("eval", "of-reversed.h5", "a.h5", cwd=folder))]
    return None if all(said) else f"{said}: {done.stderr}{tuned.stderr}{resumed.stderr}"


def others(folder):
    """Other names are reported, and data without names is not."""
    whose = OTHER.format("the model was trained on")
    for args in ["eval", "run", "other.h5"], ["predict", "run", "other.h5"], ["train", "other.h5", *TRAIN[4:], "--from", "run", "--out", "p"]:
        done = neap(*args, cwd=folder)
        if done.returncode or about(done) != [f"warning: 'other.h5' {whose}"]:
            return f"{args}: {done.stderr}"
    done = neap("train", "a.h5", *TRAIN, "--test", "other.h5", "--out", "q", cwd=folder)
    if about(done) != ["warning: 'other.h5' " + OTHER.format("the training data 'a.h5' has")]:
        return f"said: {done.stderr}"
    done = neap("eval", "run", "nameless.npz", cwd=folder)
    return about(done)[0] if about(done) else done.stderr if done.returncode else None


def write_events(folder, name, scale, dtype, pixels=True):
    random = np.random.default_rng(3)
    t = np.sort(random.integers(0, 100000, size=(20, 40)), axis=1)
    arrays = {"t": (t.reshape(-1) * scale).astype(dtype), "x": random.integers(0, 8, 800), "offsets": np.arange(0, 801, 40),
              "labels": np.arange(20) % 2}
    if pixels:
        arrays |= {"y": random.integers(0, 8, 800), "p": random.integers(0, 2, 800)}
    np.savez(os.path.join(folder, name + ".npz"), **arrays)


def encode_events(folder, name, out, *options):
    done = neap("encode", name + ".npz", "--out", out, "--sensor", "8x8", "--classes", "2", *options, cwd=folder)
    return done.stderr if done.returncode else None


def units(folder):
    """Events of another --time-unit than the training data are reported by train, eval and predict; those of the same are not."""
    write_events(folder, "whole", 1, np.int64)
    write_events(folder, "seconds", 1e-6, np.float64)
    for name, out, options in (("whole", "us.h5", ()), ("whole", "ms.h5", ("--time-unit", "1ms")), ("whole", "1us.h5", ("--time-unit", "1us")),
                               ("seconds", "s.h5", ())):
        wrong = encode_events(folder, name, out, *options)
        if wrong:
            return wrong
    net = ["--net", "lif:8,li", "--epochs", "1", "--memory", "8M", "--threads", "1", "--validation", "0", "--max-steps", "200"]
    trained = [neap("train", data, *net, "--test", test, "--out", "of-" + data, cwd=folder) for data, test in (("us.h5", "ms.h5"), ("ms.h5", "us.h5"))]
    want = ["warning: ms.h5 was encoded with --time-unit 1ms, but the model was trained on events encoded without --time-unit. If",
            "warning: us.h5 was encoded without --time-unit, but the model was trained on events encoded with --time-unit 1ms. If"]
    said = [line in done.stderr for line, done in zip(want, trained)]
    said += [want[0] in neap(command, "of-us.h5", "ms.h5", cwd=folder).stderr for command in ("eval", "predict")]
    said += [want[1] in neap("eval", "of-ms.h5", "us.h5", cwd=folder).stderr]
    said += ["time-unit" not in neap("eval", "of-us.h5", data, cwd=folder).stderr for data in ("us.h5", "1us.h5", "s.h5")]
    for unit, name in (2, "2s"), (0.05, "50ms"), (1e-6, "1us"), (5e-9, "5ns"), (1e-10, "0.1ns"):
        with h5py.File(os.path.join(folder, "ms.h5"), "r+") as data:
            data.attrs["time_unit"] = float(unit)
        said += [f"ms.h5 was encoded with --time-unit {name}, but" in neap("eval", "of-us.h5", "ms.h5", cwd=folder).stderr]
    return None if all(said) else f"{said} {[done.stderr for done in trained]}"


def without_units(folder):
    """Files and models that do not say their unit, as those of earlier versions, are not reported."""
    with h5py.File(os.path.join(folder, "ms.h5"), "r+") as data:
        del data.attrs["time_unit"]
    done = neap("eval", "of-us.h5", "ms.h5", cwd=folder)
    return done.stderr if done.returncode or "time-unit" in done.stderr else None


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("tables and a model", write_tables, folder)
        for test in (evaluated, trained, others, units, without_units):
            tap.run(test.__doc__, test, folder)


if __name__ == "__main__":
    sys.exit(main())
