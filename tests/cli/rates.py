#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbers in physical units: nets learn alike at any `--dt`, rates are in Hz."""
import json
import os

from harness import Folder, Tap, neap, neap_json

DATA = "randman:steps=100,samples=400,classes=4"
TRAIN = ["--net", "lif:64r,li", "--scale", "2", "--memory", "20M", "--validation", "0.4", "--seed", "1"]


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
    for text, wants in (("20", "1000Hz is accepted"), ("20ms", "20Hz"), ("-5Hz", "20Hz"), ("2kHz", "1000Hz")):
        done = neap("train", DATA, "--rate-upper", text)
        if done.returncode != 2 or wants not in done.stderr or len(done.stderr.splitlines()) != 1:
            return f"{text}: {done.stderr}"
    return None


def fine_steps(folder):
    """Steps of 0.2 ms learn what steps of 1 ms do; not scaled they are far behind."""
    at = {given: train(folder, f"fine{i}", *given.split())["validation"]["accuracy"]
          for i, given in enumerate(("--dt 1ms", "--dt 2ms", "--dt 0.2ms", "--dt 0.2ms --time-unit 0"))}
    low, coarse, fine, old = min(list(at.values())[:3]), *list(at.values())[1:]
    return None if low > 0.85 and fine > old + 0.1 else str(at)


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
    return None if done.returncode == 2 and "time_unit" in done.stderr else done.stderr


def main():
    with Tap() as tap, Folder() as folder:
        tap.run("rates are in Hz at any step", hertz, folder)
        tap.run("what is no rate is refused", refuses)
        tap.run("fine steps learn as coarse ones do", fine_steps, folder)
        tap.run("what numbers are meant for is kept", is_kept, folder)


if __name__ == "__main__":
    main()
