#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Numbers in physical units: nets learn alike at any `--dt`, rates are in Hz. Weights that suit what arrives, and layers
that are silent or saturated.
    rates.py [all]      all: with sets that take longer
"""
import json
import os
import sys

from harness import Folder, Tap, neap, neap_json

DATA = "randman:steps=100,samples=400,classes=4"
ONE = ["--threads", "1"]  # a second thread of such small batches mostly waits, at full load
TRAIN = [*ONE, "--net", "lif:64r,li", "--scale", "2", "--memory", "20M", "--validation", "0.4", "--seed", "1"]


def train(folder, name, *given, epochs=12):
    done = neap_json("train", DATA, *TRAIN, "--epochs", str(epochs), "--out", os.path.join(folder, name), *given)
    return done


def hertz(folder):
    """20Hz is 0.02 a millisecond, also at other steps, and the default; 0.02 a step of earlier versions is not."""
    found = [train(folder, f"hz{i}", "--dt", "0.5ms", "--rate-l1", "0.01", *given, epochs=1)["weights_hash"]
             for i, given in enumerate(([], ["--rate-upper", "20Hz"], ["--rate-upper", "0.02"],
                                        ["--rate-upper", "0.02kHz"], ["--rate-upper", "5Hz"], ["--time-unit", "0"]))]
    if len(set(found[:4])) != 1 or found[4] == found[0] or found[5] == found[0]:
        return str(found)
    at_1ms = [train(folder, f"ms{i}", *given, epochs=1)["weights_hash"]
              for i, given in enumerate(([], ["--time-unit", "0"]))]
    return None if at_1ms[0] == at_1ms[1] else str(at_1ms)


def refuses():
    for text, wants in (("20", "'20' has no unit"), ("20ms", "20Hz"), ("-5Hz", "20Hz"), ("2kHz", "1000Hz")):
        done = neap("train", DATA, "--rate-upper", text)
        if done.returncode != 2 or wants not in done.stderr or len(done.stderr.splitlines()) != 1:
            return f"{text}: {done.stderr}"
    return None


def fine_steps(folder):
    """Steps of 0.2 ms learn what steps of 1 ms do; not scaled they are far behind. So they do with the default readout."""
    at = {given: train(folder, f"fine{i}", "--readout", "mean", *given.split())["validation"]["accuracy"]
          for i, given in enumerate(("--dt 1ms", "--dt 2ms", "--dt 0.2ms", "--dt 0.2ms --time-unit 0"))}
    low, coarse, fine, old = min(list(at.values())[:3]), *list(at.values())[1:]
    if not (low > 0.85 and fine > old + 0.1):
        return str(at)
    usual = {dt: train(folder, f"usual{dt}", "--dt", dt)["validation"]["accuracy"] for dt in ("1ms", "0.2ms")}
    return None if min(usual.values()) > 0.85 else f"the default readout: {usual}"


def is_kept(folder):
    """run.json and the model say what the numbers are meant for; the run goes on with it."""
    out = os.path.join(folder, "kept")
    train(folder, "kept", "--dt", "0.5ms", "--time-unit", "2ms", epochs=1)
    settings = json.load(open(os.path.join(out, "run.json")))["settings"]
    if settings["time_unit"] != 0.002:
        return f"time_unit {settings.get('time_unit')}"
    done = neap("train", "--out", out, "--resume", "--epochs", "2")
    if done.returncode:
        return done.stderr
    done = neap("train", "--out", out, "--resume", "--epochs", "3", "--time-unit", "1ms")
    return None if done.returncode == 2 and "--time-unit 0.002, not 0.001" in done.stderr else done.stderr


LAYERS = (  # options, lines about layers
    (("--net", "lif:40r,lif:40r,li"), ()),
    (("--net", "lif:40r,lif:40r:scale=0.01,li"),
     ("warning: layer1 (lif) is silent: 0.0 Hz after the first epoch, so it does not learn. Increase its scale (now 0.01) or "
      "decrease its threshold (now 1)",)),
    (("--gain", "0.01", "--validation", "0"),
     ("warning: layer0 (lif) is silent: 0.0 Hz after the first epoch, so it does not learn. Increase --gain (now 0.01) or "
      "decrease its threshold (now 1)",)),
    (("--scale", "0.01", "--threshold", "2"),
     ("warning: layer0 (lif) is silent: 0.0 Hz after the first epoch, so it does not learn. Increase its scale (now 0.01) or "
      "decrease its threshold (now 2)",)),
    (("--gain", "200", "--rate-weight", "0"), ("warning: layer0 (lif) is saturated: ",)),
    (("--gain", "200", "--rate-weight", "0", "--dt", "10ms"), ("warning: layer0 (lif) is saturated: ",)),
    (("--net", "lstm:12,li"), ()),
)


def names_layers(folder):
    for i, (given, wanted) in enumerate(LAYERS):
        net = () if "--net" in given else ("--net", "lif:40r,li")
        done = neap("train", "randman:samples=200,part=train", *net, *given, "--memory", "20M", "--epochs", "2", *ONE,
                    "--out", os.path.join(folder, f"layers{i}"))
        found = [line for line in done.stderr.splitlines() if line.startswith("warning: layer")]
        if done.returncode or len(found) != len(wanted) or not all(map(str.startswith, found, wanted)):
            return f"{given}: {done.stderr}"
        if any("is silent" in line for line in found) and "nothing was learned" in done.stderr:
            return f"advice that cannot help a silent net: {done.stderr}"
        if any("Decrease --gain (now 200) or increase --rate-weight (now 0)" not in line for line in found
               if "200" in given):
            return str(found)
    return None


def gains(folder):
    """Weights are scaled for the data once, the same in every way; a scale that is said stands."""
    plain = train(folder, "gain0", epochs=1)
    cases = {"--scale": train(folder, "gain1", "--scale", "2", "--gain", "0.55", epochs=1)["weights_hash"]}
    for i, given in enumerate((("--gain", "0"), ("--gain", "1.1"), ("--net", "lif:64r:scale=2,li"))):
        cases[" ".join(given)] = train(folder, f"gain{i + 2}", *given, epochs=1)["weights_hash"]
    said = plain["weights_hash"]  # TRAIN says --scale 2
    wanted = {"--scale": False, "--gain 0": True, "--gain 1.1": False, "--net lif:64r:scale=2,li": True}
    found = {name: hash == said for name, hash in cases.items()}
    return None if found == wanted else str(found)


SMALL = ["randman:classes=4,units=20,steps=60,samples=200,seed=3", *ONE, "--memory", "4M", "--batch", "1", "--epochs", "2"]


def readout_gain(folder):
    """--readout-gain: 1 changes no bit, another number does; the run goes on with it, and with no other."""
    at = {gain: train(folder, f"readout{gain}", "--readout-gain", gain, epochs=2)["weights_hash"] for gain in ("0", "1", "0.1")}
    train(folder, "readout", "--readout-gain", "0.1", "--schedule", "constant", epochs=1)
    run = os.path.join(folder, "readout")
    done = neap("train", "--out", run, "--resume", "--epochs", "2", "--readout-gain", "0.2")
    at["resumed"] = neap_json("train", "--out", run, "--resume", "--epochs", "2")["weights_hash"]
    at["whole"] = train(folder, "readout2", "--readout-gain", "0.1", "--schedule", "constant", epochs=2)["weights_hash"]
    right = at["0"] == at["1"] != at["0.1"] and at["resumed"] == at["whole"]
    return None if right and done.returncode == 2 and "--readout-gain 0.1, not 0.2" in done.stderr else f"{at} {done.stderr}"


MANY = ["randman:classes=4,units=50,steps=100,spikes=10,samples=90,seed=3", "--memory", "8M", "--batch", "4", "--lr", "0.02",
        "--schedule", "constant", "--seed", "5", "--readout-gain", "auto"]


def chosen_gain(folder):
    """--readout-gain auto: the same for any threads, kept by the run, off for what it is not meant for."""
    def one(name, *given, epochs=2):
        run = os.path.join(folder, f"chosen-{name}")
        found = neap_json("train", *MANY, "--epochs", str(epochs), "--out", run, *given)
        return found["weights_hash"], json.load(open(os.path.join(run, "run.json")))["settings"]["readout_gain"]
    plain, gain = one("plain", "--threads", "2")
    if not 0.001 < gain < 0.5:
        return f"chosen: {gain}"
    same = {"auto": one("auto", *ONE, "--readout-gain", "auto"), "number": one("number", *ONE, "--readout-gain", repr(gain)),
            "config": one("config", *ONE, "--config", os.path.join(folder, "chosen-plain", "run.json"))}
    part = one("part", *ONE, epochs=1)
    resumed = neap_json("train", "--out", os.path.join(folder, "chosen-part"), "--resume", "--epochs", "2")["weights_hash"]
    off = {" ".join(given): one(f"off{i}", *ONE, *given)[1] for i, given in enumerate((
        ["--readout", "mean"], ["--optimizer", "sgd"], ["--scale", "2"], ["--gain", "0"], ["--lr", "1e-6"],
        ["--net", "gru:8,li", "--readout", "sum"]))}
    tuned = one("tuned", *ONE, "--from", os.path.join(folder, "chosen-plain"))[1]  # measured with its weights
    right = (set(same.values()) == {(plain, gain)} and part[1] == gain and resumed == plain
             and set(off.values()) == {1} and 0.001 < tuned <= 1 and tuned != gain)
    refused = neap("train", *MANY, "--readout-gain", "much")
    asks = refused.returncode == 2 and "auto chooses it from the data" in refused.stderr
    return None if right and asks else f"{plain} {gain}: {same} {part} {resumed} {off} {tuned} {refused.stderr}"


def overshot(folder):
    """A note about outputs that are far too large in the first epoch: of many updates and of the readout `sum` alone."""
    told = []
    for i, given in enumerate((["--net", "lif:8,li:scale=60"], ["--net", "lif:8,li:scale=60", "--readout-gain", "0.5"], ["--net", "lif:8,li"],
                               ["--net", "lif:8,li:scale=60", "--batch", "4"], ["--net", "lif:8,li:scale=60", "--readout", "last"])):
        done = neap("train", *SMALL, *given, "--out", os.path.join(folder, f"overshot{i}"))
        told.append([line[-23:] for line in done.stderr.splitlines() if "exceeds the loss of guessing, 1.386" in line])
    return None if told == [["try --readout-gain 0.03"], ["try --readout-gain 0.05"], [], [], []] else str(told)


SETS = {  # spikes a sample and channels
    "420 of 70": ("randman:units=70,spikes=6,samples=400,classes=4", 14),
    "400 of 400": ("randman:units=400,spikes=1,samples=400,classes=4", 6),
    "2000 of 2000": ("randman:units=2000,spikes=1,samples=240,classes=4", 4),
}
MORE = {"7000 of 70": ("randman:units=70,spikes=100,steps=1000,samples=600,classes=2", 20),
        "8000 of 2000": ("randman:units=2000,spikes=4,samples=240,classes=4", 8)}


def learns(folder, name, data, epochs):
    done = neap_json("train", data, *ONE, "--net", "lif:64r,li", "--memory", "20M", "--validation", "0.4", "--epochs",
                     str(epochs), "--out", os.path.join(folder, name.replace(" ", "-")))
    found = done["validation"]["accuracy"]
    return None if found > 0.85 else f"{found:.1%}"


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("rates are in Hz at any step", hertz, folder)
        tap.run("what is no rate is refused", refuses)
        tap.run("fine steps learn as coarse ones do", fine_steps, folder)
        tap.run("what numbers are meant for is kept", is_kept, folder)
        tap.run("weights are scaled for what arrives", gains, folder)
        tap.run(readout_gain.__doc__, readout_gain, folder)
        tap.run(chosen_gain.__doc__, chosen_gain, folder)
        tap.run(overshot.__doc__, overshot, folder)
        tap.run("silent and saturated layers are named, with the mend", names_layers, folder)
        for name, (data, epochs) in {**SETS, **(MORE if "all" in sys.argv else {})}.items():
            tap.run(f"{name} channels: learnt with the defaults", learns, folder, name, data, epochs)


if __name__ == "__main__":
    main()
