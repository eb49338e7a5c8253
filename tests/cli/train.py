#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`neap train` and `neap eval`: learning, resuming, interruption, one result."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import NEAP, Folder, Tap, neap, neap_json, resuming

SETTINGS = ["--net", "lif:48r,li", "--batch", "16", "--epochs", "3", "--seed", "5", "--warmup",
            "5"]
DATA = "randman:classes=4,samples=600,units=40,steps=60,part=train"
TEST = "randman:classes=4,samples=200,units=40,steps=60,part=test"


def train(out, *more, data=DATA):
    return neap_json("train", data, *SETTINGS, "--memory", "2M", "--out", out, *more)


def weights(run):
    with open(os.path.join(run, "last.safetensors"), "rb") as f:
        whole = f.read()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = whole[8 + length + begin:8 + length + end]
    return tensors


def learns(folder):
    run = os.path.join(folder, "learns")
    train(run, "--test", TEST)
    rows = list(csv.DictReader(open(os.path.join(run, "metrics.csv"))))
    if len(rows) != 3:
        return f"{len(rows)} rows in metrics.csv"
    result = neap_json("eval", run, TEST)
    if not {"samples", "accuracy", "loss", "confusion", "rates"} <= result.keys():
        return f"keys {result.keys()}"
    if sum(map(sum, result["confusion"])) != result["samples"]:
        return "the confusion matrix does not add up"
    json.load(open(os.path.join(run, "run.json")))
    return None if result["accuracy"] > 0.5 else f"accuracy {result['accuracy']}"


def strategies_agree(folder, whole):
    slow = os.path.join(folder, "slow")
    os.makedirs(slow, exist_ok=True)
    for i, more in enumerate((["--strategy", "revolve", "--memory", "700K"], ["--threads", "1"],
                              ["--strategy", "double", "--slow", slow],
                              ["--strategy", "standard", "--threads", "2"])):
        run = os.path.join(folder, f"agree{i}")
        train(run, *more)
        if weights(run) != whole:
            return f"{more}: other weights"
    return None


def resumed_by_its_folder(folder):
    """`--resume --out RUN` goes on with all settings of the run; what is given changes them."""
    slow, run, plain = (os.path.join(folder, name) for name in ("tier", "settled", "plain"))
    os.makedirs(slow, exist_ok=True)
    given = ["--test", TEST, "--slow", slow, "--strategy", "standard", "--chunk", "7", "--clip",
             "0.7", "--threads", "1", "--inputs", "1M", "--patience", "inf"]
    train(plain, *given, "--epochs", "5")
    train(run, *given)
    begun = json.load(open(os.path.join(run, "run.json")))
    for grown in ("3", "5"):
        done = neap("train", "--resume", "--out", run, "--epochs", grown)
        if done.returncode != 0 or "resumed from" not in done.stderr:
            return f"--resume alone: {done.stderr}"
        now = json.load(open(os.path.join(run, "run.json")))
        for key in ("sweep", "costs"):
            if now[key] != begun[key]:
                return f"{key} was {begun[key]}, is {now[key]}"
        if now["results"]["test"]["samples"] != 200 or now["plan"]["params"] != {"chunk": 7}:
            return f"{now['results']['test']}, {now['plan']}"
        if now["plan"]["tiers"] != begun["plan"]["tiers"]:
            return f"tiers {now['plan']['tiers']}"
    if now["results"]["epochs_done"] != 5 or now["settings"]["clip"] != 0.7:
        return f"{now['results']['epochs_done']} epochs, clip {now['settings']['clip']}"
    done = neap("train", "--resume", "--out", run, "--memory", "3M", "--strategy", "revolve")
    now = json.load(open(os.path.join(run, "run.json")))["sweep"]
    if done.returncode != 0 or now["memory"] != 3 << 20 or now["strategy"] != "revolve":
        return f"given: {done.stderr} {now}"
    # What cannot change: one line that names all of it; of other data, only that.
    done = neap("train", "randman:samples=50,classes=4,units=40", "--resume", "--out", run)
    if done.returncode != 2 or "started with other data" not in done.stderr:
        return f"no word of other data: {done.stderr}"
    done = neap("train", "--resume", "--out", run, "--clip", "2", "--epochs", "4", "--net", "lif:9,li")
    for part in ("--net ", "--clip 0.7, not 2", "--epochs 5, not 4"):
        if done.returncode != 2 or part not in done.stderr or done.stderr.count("\n") != 1:
            return f"no word of {part}: {done.stderr}"
    return None


def configured(folder):
    """--config: the options of a run.json, or an object of options, are those of the command line."""
    first, config = os.path.join(folder, "first"), os.path.join(folder, "config.json")
    plain = train(first, "--rate-upper", "15Hz", "--beta", "0.95", "--slope", "4", "--surrogate", "fast_sigmoid")
    with open(config, "w") as f:
        json.dump({"net": "lif:48r:beta=0.95:slope=4,li", "batch": 16, "epochs": 9, "seed": 5, "warmup": 5.0,
                   "memory": "2M", "rate-upper": "15Hz", "surrogate": "fast_sigmoid", "tau_out": "20ms",
                   "detach": False}, f)
    for name, given in (("again", [os.path.join(first, "run.json")]), ("of_options", [config, "--epochs", "3"])):
        run = os.path.join(folder, name)
        done = neap_json("train", DATA, "--config", *given, "--out", run)
        kept = json.load(open(os.path.join(run, "run.json")))
        if done["weights_hash"] != plain["weights_hash"] or kept["settings"]["epochs"] != 3:
            return f"{name}: {done['weights_hash']}, not {plain['weights_hash']}"
    if not {"channels", "rate_weight", "next_step"} <= kept["settings"].keys() or "snapshot" not in kept["sweep"]:
        return f"run.json names options otherwise: {kept['settings'].keys()}"
    for text, told in (("{", "not valid JSON"), ("[]", "not a JSON object"), ('{"tua": 1}', "unknown option 'tua'"),
                       ('{"tau": "20Hz"}', 'setting tau is "20Hz"; expected a time'),
                       ('{"memory": "lots"}', 'setting memory is "lots"; expected a size'),
                       ('{"inputs": -1}', "setting inputs is -1; expected a size"),
                       ('{"reset": "off"}', 'setting reset is "off"; expected one of subtract, zero, hard, soft'),
                       ('{"gain": -1}', "setting gain is -1; expected a number between 0 and 1"),
                       ('{"epochs": true, "seed": {}}', "setting seed is {}; expected a whole number"),
                       ('{"settings": {"nett": 1}}', "unknown setting 'nett'")):
        with open(config, "w") as f:
            f.write(text)
        done = neap("train", DATA, "--config", config, "--out", os.path.join(folder, "none"))
        if done.returncode != 2 or told not in done.stderr or done.stderr.count("\n") != 1:
            return f"{text}: {done.returncode} {done.stderr}"
    return None


def config_is_complete(folder):
    """Each option of the command line is a setting of a configuration, or is refused there by its name with what to do instead."""
    config = os.path.join(folder, "config.json")
    options = set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]+)", neap("train", "--help").stdout, re.MULTILINE)) - {"help"}
    if not {"beta", "slope", "tau", "width", "text", "out"} <= options:
        return f"options {options}"
    for option in sorted(options):
        key = option.replace("-", "_")
        with open(config, "w") as f:
            json.dump({"tau": "5ms", "width": 1, key: []}, f)
        done = neap("train", DATA, "--config", config, "--out", os.path.join(folder, "none"))
        alone = f"'{key}' is an option of the command line only. Remove it from the file, and pass --{option} to 'neap train'"
        if done.returncode != 2 or done.stderr.count("\n") != 1 or (" is [];" not in done.stderr and alone not in done.stderr):
            return f"{option}: {done.returncode} {done.stderr}"
        if key in ("beta", "slope") and '"tau"' not in done.stderr and '"width"' not in done.stderr:
            return f"{option}: {done.stderr}"
    return None


def refuses_to_resume(folder):
    """No run, or a damaged run.json: one line, and nothing is changed."""
    run = os.path.join(folder, "damaged")
    done = neap("train", "--resume", "--out", run)
    if done.returncode != 2 or "DATA" not in done.stderr or os.path.exists(run):
        return f"no run: {done.stderr}"
    os.makedirs(run)
    for folder_there in True, False:
        if not folder_there:
            os.rmdir(run)
        done = neap("train", DATA, "--resume", "--out", run)
        if done.returncode != 2 or done.stderr.count("\n") != 1 or f"there is no run in '{run}'" not in done.stderr:
            return f"DATA, but no run: {done.returncode} {done.stderr}"
        if os.path.exists(run) != folder_there or (folder_there and os.listdir(run)):
            return "DATA, but no run: the folder changed"
    os.makedirs(run)
    for text in ("{", "[]", "{}", '{"settings": {"net": null}}', '{"settings": {"clip": "x"}}',
                 '{"settings": {}, "sweep": {"threads": -2}}',
                 '{"settings": {}, "costs": {"advance": 1e999}}',
                 '{"settings": {}, "costs": {"advance": -1}}'):
        with open(os.path.join(run, "run.json"), "w") as f:
            f.write(text)
        done = neap("train", DATA, "--resume", "--out", run)
        if done.returncode != 2 or done.stderr.count("\n") != 1 or "run.json" not in done.stderr:
            return f"{text}: {done.returncode} {done.stderr}"
        if os.listdir(run) != ["run.json"]:
            return f"{text}: {os.listdir(run)}"
    return None


def penalty_is_told(folder):
    """The penalty on rates stands beside the loss, and only layers that spike have one."""
    told = {}
    for name, net, *more in (("lif", "lif:48r:scale=3,li"), ("lstm", "lstm:16,li"), ("asked", "lstm:16,li", "--rate-upper", "10Hz")):
        run = os.path.join(folder, "penalty-" + name)
        done = neap("train", DATA, "--net", net, "--epochs", "1", "--memory", "4M", "--out", run, *more)
        row = next(csv.DictReader(open(os.path.join(run, "metrics.csv"))))
        told[name] = (" + penalty " in done.stdout and "\r" not in done.stdout + done.stderr, "no layer spikes" in done.stderr,
                         float(row["train_penalty"]) > 0)
    if told != {"lif": (True, False, True), "lstm": (False, False, False), "asked": (False, True, False)}:
        return str(told)
    text = " ".join(neap("train", "--help", "--rate-upper", "3").stdout.split())
    for line in ("in spikes per ms (default 20Hz)", "above --rate-upper (default 1)",
                 "cosine, cooldown, constant (default cooldown)"):
        if line not in text:
            return f"--help has no '{line}'"
    return None


def windows(folder):
    """Long samples: inputs in windows give the weights and the scores of inputs held whole."""
    long = "randman:classes=3,samples=24,units=20,steps=3000,spikes=100"
    runs = {}
    for inputs in ("64M", "150K"):
        run = os.path.join(folder, f"windows{inputs}")
        done = neap_json("train", long, "--net", "lif:16r,li", "--batch", "8", "--epochs", "2",
                         "--seed", "5", "--validation", "0.3", "--memory", "500K", "--inputs",
                         inputs, "--out", run)
        told = json.load(open(os.path.join(run, "run.json")))
        memory = told["memory"]
        if (done["window_steps"] > 0) != (inputs == "150K"):
            return f"{inputs}: windows of {done['window_steps']} steps"
        if inputs == "150K" and not 0 < memory["input_bytes"] <= 150 << 10:
            return f"inputs take {memory['input_bytes']} bytes"
        runs[inputs] = done["weights_hash"], told["results"]["best_validation"], weights(run)
    return None if runs["64M"] == runs["150K"] else "other weights"


def learned_by_an_option(folder):
    """--learn, beside the specification, is part of the model."""
    run = os.path.join(folder, "learned")
    train(run, "--learn", "tau")
    if "layer0.leak" not in weights(run):
        return "nothing learned"
    if neap_json("eval", run, TEST)["samples"] != 200:
        return "not evaluated"
    run += "-all"  # without --learn, this readout does not smooth and has no time constant
    done = neap("train", "volleys:samples=20", "--net", "rnn:4,li", "--learn", "all", "--epochs", "1", "--memory", "4M", "--out", run)
    return None if "readout.leak" in weights(run) else f"--learn all: {done.stderr}"


def augmented(folder):
    """What is drawn for a sample depends on the seed, the epoch and the sample alone."""
    vary = ["--shift", "3", "--jitter", "2ms", "--stretch", "0.8:1.2"]
    hashes = {}
    for i, more in enumerate((vary, vary[:4] + ["--stretch", "0.2", "--threads", "1", "--strategy",
                              "revolve"], vary[:4], vary[2:], [])):
        done = train(os.path.join(folder, f"augmented{i}"), *more)
        hashes.setdefault(done["weights_hash"], []).append(i)
    return None if sorted(hashes.values()) == [[0, 1], [2], [3], [4]] else str(hashes)


def killed_and_resumed(folder, whole, delay, kind):
    run = os.path.join(folder, f"killed-{kind}-{delay}")
    command = [NEAP, "train", DATA, *SETTINGS, "--memory", "2M", "--out", run, "--snapshot",
               "50ms"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(delay)
    process.send_signal(kind)
    _, text = process.communicate(timeout=60)
    if kind == signal.SIGINT and process.returncode not in (0, 1):
        return f"exit {process.returncode}: {text}"
    part = [name for name in os.listdir(run) if name.endswith(".part")] \
        if os.path.isdir(run) else []
    if kind == signal.SIGINT and part:
        return f"half-written: {part}"
    train(run, *resuming(run))
    if weights(run) != whole:
        return "other weights after --resume"
    return None


def killed_while_measuring(folder):
    """A run that is killed before its first plan keeps its options; a folder that is empty may be used."""
    given = ["train", "randman:samples=16,steps=300,classes=4", "--net", "lif:1024r:tau=15ms,li", "--batch", "16", "--seed",
             "7", "--epochs", "1"]
    whole = neap_json(*given, "--out", os.path.join(folder, "unkilled"))["weights_hash"]
    run = os.path.join(folder, "measuring")
    for _ in range(5):  # a kill may come late, as the machine may be busy
        shutil.rmtree(run, ignore_errors=True)
        os.mkdir(run)
        process = subprocess.Popen([NEAP, *given, "--out", run], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not os.path.exists(os.path.join(run, "run.json")):
            time.sleep(0.001)
        process.kill()
        process.communicate()
        if os.listdir(run) == ["run.json"]:
            break
    if os.listdir(run) != ["run.json"]:
        return f"it wrote {os.listdir(run)} before it could be killed"
    done = neap("train", "--resume", "--out", run, "--memory", "1K")
    if done.returncode != 2 or os.listdir(run) != ["run.json"]:
        return f"a small budget: {done.returncode} {done.stderr} {os.listdir(run)}"
    resumed = neap_json("train", "--resume", "--out", run)["weights_hash"]
    return None if resumed == whole else f"weights {resumed}, not {whole}"


def takes_back_its_options(folder):
    """A new run whose budget is too small leaves no run.json behind, nor the folder that it created."""
    run = os.path.join(folder, "small")
    for before in False, True:
        if before:
            os.mkdir(run)
        done = neap("train", DATA, *SETTINGS, "--memory", "1K", "--out", run)
        if done.returncode != 2 or os.path.isdir(run) != before or (before and os.listdir(run)):
            return f"{done.returncode} {done.stderr}"
    return None


def refuses_an_existing_run(folder, run):
    before = sorted(os.listdir(run))
    done = neap("train", DATA, *SETTINGS, "--memory", "2M", "--out", run)
    if done.returncode != 2 or "--resume" not in done.stderr:
        return f"{done.returncode} {done.stderr}"
    return None if sorted(os.listdir(run)) == before else "the folder changed"


def peak_within_budget(folder):
    result = train(os.path.join(folder, "peak"))
    text = json.dumps(result)
    peaks = [result.get("peak_measured"), result.get("peak_planned")]
    if None in peaks:
        return f"no peaks in {text[:300]}"
    return None if peaks[0] <= 2 << 20 and peaks[1] <= 2 << 20 else f"{peaks}"


def counts_samples(folder):
    """Progress is told in samples, also where the last batch of an epoch is not full."""
    for batch in ("70", "4096"):
        done = neap("train", DATA, "--net", "lif:16r,li", "--epochs", "2", "--batch", batch,
                    "--memory", "4M", "--out", os.path.join(folder, "counts" + batch))
        if "training 1080/1080 samples" not in done.stderr:
            return f"batches of {batch}: {done.stderr[-300:]}"
    return None


def main():
    with Tap() as tap, Folder() as folder:
        run = os.path.join(folder, "whole")
        train(run)
        whole = weights(run)
        tap.run("learns, and evaluates", learns, folder)
        tap.run("strategies, budgets and threads agree", strategies_agree, folder, whole)
        tap.run("inputs in windows", windows, folder)
        tap.run("time constants that an option has learned", learned_by_an_option, folder)
        tap.run("augmented", augmented, folder)
        for delay in (0.02, 0.1, 0.25, 0.5):
            tap.run(f"SIGKILL after {delay} s", killed_and_resumed, folder, whole, delay,
                    signal.SIGKILL)
        for delay in (0.1, 0.3):
            tap.run(f"SIGINT after {delay} s", killed_and_resumed, folder, whole, delay,
                    signal.SIGINT)
        tap.run("SIGKILL while costs are measured", killed_while_measuring, folder)
        tap.run("a budget that is too small leaves nothing", takes_back_its_options, folder)
        tap.run("an existing run is refused", refuses_an_existing_run, folder, run)
        tap.run("a run is resumed by its folder alone", resumed_by_its_folder, folder)
        tap.run("a configuration", configured, folder)
        tap.run("options of a configuration", config_is_complete, folder)
        tap.run("no run, a damaged run", refuses_to_resume, folder)
        tap.run("the penalty is told", penalty_is_told, folder)
        tap.run("progress counts samples", counts_samples, folder)
        tap.run("peaks within the budget", peak_within_budget, folder)


if __name__ == "__main__":
    main()
