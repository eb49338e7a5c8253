#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
docs/first-network.md as a program: from recordings to predictions. Encodes recordings, trains with two memory
budgets and compares the weights, evaluates the network, and predicts the class of one recording. Without recordings,
synthetic tones are used.
"""
# %% The tool: NEAP_BIN, or the build folder, or the PATH
import argparse
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import wave

BUILT = pathlib.Path(__file__).resolve().parent / "../../build/neap"
NEAP = os.environ.get("NEAP_BIN") or (str(BUILT) if BUILT.exists() else "neap")


def neap(*words):
    """Runs a command of the tool and returns its output; its progress is shown."""
    print("$ neap", *words, flush=True)
    done = subprocess.run([NEAP, *map(str, words)], stdout=subprocess.PIPE, text=True)
    if done.returncode:  # the tool has printed the reason
        sys.exit(done.returncode)
    return done.stdout


# %% The recordings
def tones(folder, numbers):
    """Files of half a second for four "digits": decaying tones with a harmonic, slightly out of tune."""
    folder.mkdir(parents=True, exist_ok=True)
    for digit in range(4):
        for number in numbers:
            hertz, frames = 200 * 1.6 ** digit * (1 + 0.01 * number), bytearray()
            for i in range(4000):
                t = i / 8000
                x = math.exp(-4 * t) * (math.sin(2 * math.pi * hertz * t) + 0.4 * math.sin(4 * math.pi * hertz * t))
                frames += struct.pack("<h", int(9000 * x))
            with wave.open(str(folder / f"{digit}_tone_{number}.wav"), "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes(bytes(frames))


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("recordings", nargs="?", help="folder with train/ and test/, which contain files "
                    "DIGIT_SPEAKER_NUMBER.wav (default: $NEAP_DATA/data/fsdd if it exists)")
parser.add_argument("folder", nargs="?", type=pathlib.Path, default="first-network",
                    help="gets all output (default: first-network)")
arguments = parser.parse_args()
out, given = arguments.folder, [arguments.recordings] if arguments.recordings else []
out.mkdir(exist_ok=True)
if os.environ.get("NEAP_DATA"):
    given.append(os.environ["NEAP_DATA"] + "/data/fsdd")
recordings = next((pathlib.Path(path) for path in given if os.path.isdir(path)), None)
if recordings is None:
    recordings = out / "tones"
    tones(recordings / "train", range(5, 17))
    tones(recordings / "test", range(5))
print(f"Recordings: {recordings}")

# %% From sound to spikes
for part in ("train", "test"):
    (out / f"{part}.h5").unlink(missing_ok=True)
    neap("encode", recordings / part, "--out", out / f"{part}.h5", "--label", "([0-9]+)_.*")

# %% Train with memory for all tapes and with little memory: the weights are bit-identical
runs = {}
for memory in ("16M", "400K"):
    run = out / f"run-{memory}"
    shutil.rmtree(run, ignore_errors=True)
    told = json.loads(neap("train", out / "train.h5", "--memory", memory, "--epochs", 5, "--out", run, "--json", "--quiet"))
    runs[memory] = (run / "model.safetensors").read_bytes()
    print(f"{memory}: {told['plan']['chosen']}, peak {told['peak_measured']:,} bytes, {told['seconds']:.1f} s, "
          f"training accuracy {100 * told['train_accuracy']:.1f}%")
if runs["16M"] != runs["400K"]:
    sys.exit("The weights differ")
print("The weights are bit-identical")

# %% Evaluate and predict
print(neap("eval", out / "run-16M", out / "test.h5"))
recording = sorted((recordings / "test").glob("*.wav"))[0]
answer = json.loads(neap("predict", out / "run-16M", recording, "--json"))
print(f"{recording.name} is classified as {answer['name']}")
