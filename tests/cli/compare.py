#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`neap compare` on real batches: one gradient, honest peaks, broken slow memory. With `all` every net
is run by every strategy; else most nets by some of them."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from harness import NEAP, Folder, Tap, encode, neap, neap_json, write_recordings

NET = ["--net", "lif:64r,li", "--batch", "16"]
RUN_KEYS = {"strategy", "feasible", "params", "peak_bytes", "slow_bytes", "peak_measured",
            "seconds", "stall_measured", "resident_growth", "recoveries", "late", "overflows",
            "grad_hash", "overhead"}


def compare(data, *more, memory="1M", slow=None):
    args = ["compare", data, *NET, "--memory", memory, *more]
    if slow:
        args += ["--slow", slow]
    if "--threads" not in more:  # a second thread of such small batches mostly waits, at full load
        args += ["--threads", 1]
    return neap_json(*args)


# One of each kind: kept states, chunks on a tier, both, tapes that travel, the best.
SOME = [word for name in ("standard", "remote", "double", "stream", "replay", "auto") for word in ("--strategy", name)]


def ran(result):
    return [r for r in result["runs"] if r["grad_hash"]]


def one_gradient(data, slow, more):
    result = compare(data, *more, slow=slow)
    names = {r["strategy"] for r in ran(result)}
    hashes = {r["grad_hash"] for r in ran(result)}
    wanted = {"standard", "remote", "double", "auto"}
    if "--strategy" not in more:
        wanted |= {"hierarchical", "revolve"}
    if not wanted <= names:
        return f"ran only {sorted(names)}"
    return None if len(hashes) == 1 else f"{len(hashes)} different gradients"


def thread_counts(data, slow):
    hashes = set()
    for threads in (1, 3):
        result = compare(data, "--threads", threads, *SOME, slow=slow)
        hashes |= {r["grad_hash"] for r in ran(result)}
    return None if len(hashes) == 1 else f"{hashes}"


def keys(data):
    for run in compare(data)["runs"]:
        if not RUN_KEYS <= run.keys():
            return f"{run['strategy']}: no {RUN_KEYS - run.keys()}"
    return None


def peaks(data, slow, dense):
    """Fixed-size tapes: dense, and samples of one length."""
    more = ["--dense", "--max-steps", "150"] if dense else []
    result = compare(data, *more, slow=slow)
    for run in ran(result):
        if run.get("role") == "reference":
            continue
        if dense and run["peak_measured"] != run["peak_bytes"] and \
                "replay" not in (run["strategy"], run.get("chosen")):  # logs vary
            return f"{run['strategy']}: {run['peak_measured']} is not {run['peak_bytes']}"
        if run["peak_measured"] > run["arena_bytes"] or run["arena_bytes"] > result["budget"]:
            return f"{run['strategy']}: {run['peak_measured']} {run['arena_bytes']}"
    return None


def resident(data, slow):
    result = compare(data, memory="6M", slow=slow)
    for run in ran(result):
        limit = run["arena_bytes"] + (2 << 20)
        if run["resident_growth"] > limit:
            return f"{run['strategy']}: grew by {run['resident_growth']}, at most {limit}"
    return None


def least_budget_works(data):
    done = neap("compare", data, *NET, "--memory", "1K")
    if done.returncode != 2 or "at least" not in done.stderr:
        return f"{done.returncode} {done.stderr}"
    words = done.stderr.replace(",", " ").replace(";", " ").split()
    numbers = [int(w) for w in words if w.isdigit() and int(w) > 1024]
    if not numbers:
        return f"no least budget named: {done.stderr}"
    result = compare(data, "--no-reference", memory=str(numbers[0]))
    return None if ran(result) else f"{numbers[0]} bytes do not work"


def bursts_overflow_and_stay_exact(data):
    """A net whose activity comes in bursts: tapes outgrow the plan; no bit changes."""
    result = compare(data, "--scale", "6", "--rate-weight", "0", memory="300K")
    hashes = {r["grad_hash"] for r in ran(result)}
    if len(hashes) != 1:
        return f"{hashes}"
    over = [r for r in ran(result) if r["peak_measured"] > result["budget"]
            and r.get("role") != "reference"]
    return f"{over}" if over else None


def full_disk(data, folder):
    mount = os.path.join(folder, "small")
    os.mkdir(mount)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", mount],
                      capture_output=True).returncode != 0:
        return "skip"
    try:
        done = neap("compare", data, *NET, "--memory", "1M", "--strategy", "remote", "--slow",
                    mount, "--slow-in-memory", "--chunk", "2")
        refused = neap("compare", data, *NET, "--memory", "1M", "--slow", mount)
        left = os.listdir(mount)
    finally:
        subprocess.run(["umount", mount], check=False)
    if left:
        return f"left behind: {left}"
    if refused.returncode != 2 or len(refused.stderr.splitlines()) != 1:
        return f"tmpfs was accepted unasked: {refused.stderr}"
    if done.returncode == 0:
        return None  # recovered: compare checks the gradients itself
    lines = done.stderr.splitlines()
    return None if len(lines) == 1 and done.returncode in (1, 2) else done.stderr


def windows(data, slow):
    """Inputs in windows of a few steps: the same bits, in the memory that was allowed."""
    hashes = set()
    names = ("standard", "stream", "auto") if "all" not in sys.argv else ("standard", "double", "stream", "auto")
    some = [word for name in names for word in ("--strategy", name)]
    for inputs in ("64M", "50K"):
        for more in ([], ["--dense", "--readout", "step"]):
            for source in (data, "randman:steps=600,spikes=30,samples=40,units=30,noise=5"):
                result = compare(source, "--dt", "0.5ms" if source == data else "1ms",
                                 "--inputs", inputs, *more, *some, memory="1M",
                                 slow=slow if source == data else "mem:64M")
                found = {r["grad_hash"] for r in ran(result)}
                if len(found) != 1 or len(ran(result)) < len(names):
                    return f"{inputs} {more}: {len(ran(result))} ran, {found}"
                hashes |= found
                if (result["window_steps"] > 0) != (inputs == "50K"):
                    return f"{inputs}: windows of {result['window_steps']} steps"
                if inputs == "50K" and result["input_bytes"] > 50 << 10:
                    return f"inputs take {result['input_bytes']} bytes"
    return None if len(hashes) == 4 else f"{hashes}"


def reference_of_first_steps(slow):
    """Store-all over what fits the memory given; strategies against its seconds a step."""
    result = compare("randman:steps=6500,spikes=130,samples=16,units=30", "--strategy", "double",
                     "--reference-memory", "600K", slow=slow, memory="300K")
    reference, double = result["runs"]
    if not 64 <= reference["steps"] < 6500 or reference["arena_bytes"] > 600 << 10:
        return f"{reference['steps']} steps in {reference['arena_bytes']} bytes"
    if reference["peak_measured"] < 400 << 10:
        return f"only {reference['peak_measured']} bytes are used"
    over = double["seconds_per_step"] / reference["seconds_per_step"] - 1
    if abs(over - double["overhead"]) > 1e-6 * abs(over) + 1e-9 or double["steps"] != 6500:
        return f"overhead {double['overhead']}, {over} a step"
    pieces = double["pieces"]
    ratios = [pieces[way]["last_tenth"] / pieces[way]["first_tenth"] / pieces[way]["ratio"]
              for way in ("forward", "backward")]
    return None if pieces["steps"] == 65 and all(abs(r - 1) < 1e-6 for r in ratios) else f"{pieces}"


def program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def resident_peak(*args):
    """VmHWM of a run of the tool, looked at all the time from when it is no copy of this script."""
    with subprocess.Popen([os.environ["NEAP_BIN"], *args], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as child:
        peak, mine = 0, os.readlink("/proc/self/exe")
        while child.poll() is None:
            if peak == 0 and program(child.pid) in (None, mine):
                continue
            with open(f"/proc/{child.pid}/status", encoding="ascii", errors="replace") as status:
                for line in status:
                    if line.startswith("VmHWM"):
                        peak = max(peak, int(line.split()[1]) << 10)
            time.sleep(0.002)
    assert child.returncode == 0, f"{args}: {child.returncode}"
    return peak


def memory_does_not_grow(slow):
    """Five times the steps in the memory of the first; a batch held whole would take 2 MB more."""
    peaks = [resident_peak("compare", f"randman:steps={steps},spikes={steps // 50},samples=8,"
                           "units=20,alpha=4", "--net", "lif:32r,li", "--batch", "8", "--memory",
                           "1M", "--inputs", "300K", "--strategy", "auto", "--no-reference",
                           "--slow", slow) for steps in (10000, 50000)]
    grown = peaks[1] - peaks[0]
    return None if grown < 1 << 20 else f"{peaks[0]} and {peaks[1]} bytes"


def small_tier():
    """Slow memory with less room than the records that it would be measured with."""
    runs = neap_json("compare", "randman:steps=3000,spikes=60,samples=8", "--net", "lif:32r,li",
                     "--memory", "400K", "--slow", "mem:300K", "--strategy", "auto")["runs"]
    return None if runs[-1]["grad_hash"] == runs[0]["grad_hash"] else "the gradients differ"


def refused_tapes():
    """A strategy that does not fit is an answer, whatever bytes tapes have on average."""
    runs = neap_json("compare", "randman:steps=2000,spikes=41,samples=8", "--net", "lif:256r,li",
                     "--scale", "4", "--memory", 1664000, "--threads", 1, "--strategy", "bptt",
                     "--strategy", "standard")["runs"]
    ran = [run["strategy"] for run in runs if run.get("seconds")]
    return None if ran == ["bptt", "standard"] else f"{ran}"


def interrupted(command, journal):
    """Starts a pass and interrupts it after its first commit; returns its exit code."""
    process = subprocess.Popen([NEAP, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if os.path.exists(journal) and os.path.getsize(journal) > 1 << 16:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.005)
    return process.wait(60)


def journal_continues():
    """A pass that continues from a commit prints a line about it, unless --quiet; one that begins does not."""
    with tempfile.TemporaryDirectory(prefix="neap-test-", dir="/var/tmp") as disk:
        command = ["compare", "randman:steps=6000,samples=16,units=50", "--net", "lif:64r,li", "--memory", "1M", "--strategy",
                   "revolve", "--threads", "1", "--journal", disk, "--journal-every", "1ms"]
        for quiet in ([], ["--quiet"]):
            if interrupted(command, disk + "/neap.journal") == 0:
                return "not interrupted"
            done = neap(*command, *quiet)
            said = re.findall(r"revolve: continues from the last commit in (.*): (\d+) of (\d+) forward and backward steps are done",
                              done.stderr)
            if done.returncode or bool(said) == bool(quiet):
                return f"exit {done.returncode}: {done.stderr}"
            if said and not (said[0][0] == disk and 0 < int(said[0][1]) < int(said[0][2])):
                return f"{said}"
        done = neap(*command)
    return f"{done.stderr}" if done.returncode or "continues" in done.stderr else None


def journal_of_other_sums():
    """A pass does not continue from a commit of products in another order or precision."""
    with tempfile.TemporaryDirectory(prefix="neap-test-", dir="/var/tmp") as disk:
        command = ["compare", "randman:steps=2500,samples=8,units=50", "--net", "egru:32,lif:48r,li", "--memory", "1M", "--strategy",
                   "revolve", "--threads", "1", "--journal", disk, "--journal-every", "1ms"]
        os.environ["NEAP_ISA"] = "lowered"
        try:
            if interrupted(command, disk + "/neap.journal") == 0:
                return "not interrupted"
            done = neap(*command, "--products", "tiles")
        finally:
            del os.environ["NEAP_ISA"]
    return f"{done.returncode} {done.stderr}" if "continues" in done.stderr else None


def main():
    with Tap() as tap, Folder() as folder:
        write_recordings(os.path.join(folder, "wavs"))
        data = encode(os.path.join(folder, "wavs"), os.path.join(folder, "train.h5"))
        slow = os.path.join(folder, "slow")
        os.mkdir(slow)
        for name, more in (
                ("sparse", []), ("dense", ["--dense"]), ("no recurrence", ["--net", "lif:48,li"]),
                ("two layers", ["--net", "lif:32r,lif:24r:reset=hard,li"]),
                ("spiking cells", ["--net", "cubalif:32r,alif:24r,seadlif:20:scale=9:a=1..9:learn=all,brf:9:scale=900:omega=50..90,adlif:16r:scale=10,li"]),
                ("gated cells", ["--net", "lstm:16,egru:16:threshold=0.2,gru:16,li"]),
                ("zero reset", ["--reset", "zero"]), ("sigmoid", ["--surrogate", "sigmoid"]),
                ("a loss a step", ["--readout", "step"]), ("sparse weights", ["--density", "0.2"]),
                ("fine steps", ["--dt", "0.25ms"]), ("double", ["--precision", "double"])):
            memory = [] if name != "double" else ["--memory", "2M"]
            whole = "all" in sys.argv or name in ("sparse", "dense", "gated cells")
            tap.run(f"one gradient, {name}", one_gradient, data, slow, more + memory + ([] if whole else SOME))
        tap.run("one gradient over threads", thread_counts, data, slow)
        tap.run("the contract's keys", keys, data)
        tap.run("inputs in windows", windows, data, slow)
        tap.run("reference of the first steps", reference_of_first_steps, slow)
        tap.run("a small tier", small_tier)
        tap.run("tapes that do not fit", refused_tapes)
        tap.run("a journal that continues", journal_continues)
        tap.run("a journal of other sums", journal_of_other_sums)
        tap.run("memory does not grow with the steps", memory_does_not_grow, slow)
        tap.run("dense peaks are the plan's", peaks, data, slow, True)
        tap.run("sparse peaks are within it", peaks, data, slow, False)
        tap.run("resident memory grows by the arena", resident, data, slow)
        tap.run("the least budget works", least_budget_works, data)
        tap.run("bursts", bursts_overflow_and_stay_exact, data)
        answer = full_disk(data, folder)
        if answer == "skip":
            tap.skip("a full disk", "mounting needs root")
        else:
            tap.check("a full disk", answer)
        tap.check("the slow directory is empty", os.listdir(slow) and str(os.listdir(slow)) or None)


main()
