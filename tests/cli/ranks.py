#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Training and evaluating as several processes, started by a real mpirun: the same weights and metrics
as one process for any number of ranks and threads; a run that goes on with other ranks; ranks that
are killed, differ, or were started wrongly.
    ranks.py [all]      20 cases drawn by chance; all: the whole product, and more kills
"""
import atexit
import csv
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import NEAP, Folder, Tap, neap, write_recordings

DATA = "randman:part=train,classes=4,units=20,samples=54,steps=70"
# A rate that does not depend on the number of epochs, behind the usual warm-up: runs go on to more of them.
SETTINGS = ["--epochs", "2", "--batch", "20", "--seed", "5", "--memory", "1M", "--schedule", "constant"]
CASES = {
    "lif": ["--net", "lif:24r,li"],
    "dropout": ["--net", "lif:20,lif:12r:dropout=0.3,li"],
    "egru": ["--net", "egru:10,li"],
    "lstm": ["--net", "lstm:11,li", "--group", "4"],
    "odd": ["--net", "lif:16r,li", "--batch", "17", "--validation", "0.3"],
    "group": ["--net", "lif:16r,li", "--group", "3"],
    "few": ["--net", "lif:16r,li", "--batch", "6"],
}
TOKENS = itertools.count()
RANKS = (1, 2, 3, 4, 7)
MPI = os.environ.get("NEAP_MPIRUN") or shutil.which("mpirun.openmpi") or shutil.which("mpirun")
# Two mpiruns that start and end at once may trip over a folder that they share: each test has its own.
OWN = tempfile.mkdtemp(prefix="neap-test-")
atexit.register(shutil.rmtree, OWN, ignore_errors=True)
ENV = {"OMPI_MCA_orte_tmpdir_base": OWN, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
       # Ranks of one machine share memory: MPI looks for no network, a fifth of the CPU time of short runs.
       "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "^openib,ofi,tcp,uct,usnic",
       # There are more ranks than processors: one that waits leaves its own to the others.
       "OMPI_MCA_mpi_yield_when_idle": "1"}


def started(ranks, *args, cwd=None, env=None, wrap=(), program=NEAP):
    """A job of so many ranks; wrap: a script that each rank is started through."""
    token = f"{os.getpid()}.{next(TOKENS)}"
    process = subprocess.Popen([MPI, "-n", str(ranks), *wrap, program, *map(str, args)], cwd=cwd,
                               env=dict(os.environ, NEAP_TEST=token, **ENV, **(env or {})),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    process.token = token
    return process


def ended(process, timeout=120):
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run(ranks, *args, **more):
    return ended(started(ranks, *args, **more))


def ours(done):
    """Lines of neap, not of mpirun, about a failure."""
    return [line for line in done.stderr.splitlines() if line.startswith("neap")]


def metrics(folder):
    """The whole table, byte by byte; that of costs beside it has as many rows."""
    with open(os.path.join(folder, "metrics.csv"), encoding="utf-8") as file:
        whole = file.read()
    with open(os.path.join(folder, "costs.csv"), newline="", encoding="utf-8") as file:
        epochs = [row["epoch"] for row in csv.DictReader(file)]
    if epochs != [str(n) for n in range(1, whole.count("\n"))]:
        raise AssertionError(f"costs.csv has epochs {epochs} beside {whole}")
    return whole


def result(done, folder):
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout)["weights_hash"], metrics(folder)


class Trainings:
    """Runs of the product; the runs of one process are kept."""

    def __init__(self, folder):
        self.folder = folder
        self.alone = {}
        self.count = 0

    def train(self, case, precision, ranks, threads):
        self.count += 1
        out = os.path.join(self.folder, f"run{self.count}")
        args = ["train", DATA, *SETTINGS, *CASES[case], "--precision", precision, "--threads",
                threads, "--out", out, "--json", "-q"]
        done = run(ranks, *args) if ranks > 1 else neap(*args)
        found = result(done, out)
        shutil.rmtree(out)
        return found

    def check(self, case, precision, ranks, threads):
        key = case, precision
        if key not in self.alone:
            self.alone[key] = self.train(case, precision, 1, 1)
        found = self.train(case, precision, ranks, threads)
        if found == self.alone[key]:
            return None
        return f"{found} is not {self.alone[key]}"


def bfloat16(trainings):
    """Without the instructions, in plain C: its results are the same."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx512_bf16" in file.read():
            return trainings.check("lstm", "bf16", 3, 1)
    os.environ["NEAP_ISA"] = "lowered"
    try:
        return trainings.check("lstm", "bf16", 3, 1)
    finally:
        del os.environ["NEAP_ISA"]


def evaluates(folder, model):
    """eval says the same bytes, answers included."""
    for more in (["--batch", "20"], ["--batch", "9", "--json"]):
        alone = neap("eval", model, DATA, *more)
        for ranks in (2, 3):
            done = run(ranks, "eval", model, DATA, *more, cwd=folder)
            if done.returncode or done.stdout != alone.stdout:
                return f"{ranks} ranks: exit {done.returncode}, {done.stderr[-300:]}: " \
                       f"{done.stdout[:300]} is not {alone.stdout[:300]}"
    return None


def encodes(folder):
    """encode writes the same bytes, with recordings that are skipped, end to end or one a sample."""
    sounds = os.path.join(folder, "sounds")
    write_recordings(sounds, 4, 9)
    for number, name in enumerate(sorted(os.listdir(sounds))):
        if number == 5 and name.endswith(".wav"):
            with open(os.path.join(sounds, name), "wb") as file:
                file.write(b"no sound")
    base = ["--force", "--threads", "1", "--label", "([0-9]+)_.*", "--channels", "32"]
    for more in ([], ["--concat", "300ms"]):
        alone = neap("encode", sounds, "--out", "one.h5", *base, *more, cwd=folder)
        for ranks in (2, 3):
            done = run(ranks, "encode", sounds, "--out", "many.h5", *base, *more, cwd=folder)
            if done.returncode or alone.returncode:
                return f"{ranks} ranks: exit {done.returncode}: {done.stderr[-300:]}, " \
                       f"alone {alone.returncode}: {alone.stderr[-300:]}"
            with open(os.path.join(folder, "one.h5"), "rb") as one, \
                    open(os.path.join(folder, "many.h5"), "rb") as many:
                if one.read() != many.read():
                    return f"{ranks} ranks, {more}: other bytes"
    return None


def series(folder):
    """A file of arrays: 40 samples of 2 features, of two classes."""
    draw = random.Random(4)
    with open(os.path.join(folder, "series.csv"), "w", encoding="utf-8") as file:
        file.write("id,a,b,y\n")
        for sample in range(40):
            level = 0.0
            for t in range(25 + sample % 7):
                level += draw.gauss(0.1 if sample % 2 else -0.1, 0.5)
                file.write(f"{sample},{level:.6f},{draw.gauss(0, 1) + t % 5:.6f},{sample % 2}\n")
    neap("encode", "series.csv", "--out", "series.h5", "--sample-column", "id", "--target", "y", cwd=folder)
    return os.path.join(folder, "series.h5")


def codes(folder, coding):
    """Numbers become the same spikes on all ranks: weights, metrics, a run that goes on, eval."""
    path = series(folder)
    options = ["train", path, "--encode", coding, "--net", "lif:16r,li", "--epochs", "3", "--batch", "13", "--memory", "1M",
               "--json", "-q"]
    one, many, parts = (os.path.join(folder, f"{name}-{coding[:4]}") for name in ("one", "many", "parts"))
    alone = result(neap(*options, "--out", one), one)
    found = result(run(3, *options, "--out", many), many)
    if found != alone:
        return f"{found} is not {alone}"
    result(run(2, *options[:-2], "--json", "-q", "--out", parts, "--epochs", "2", "--schedule", "constant"), parts)
    on = result(run(3, "train", "--resume", "--epochs", "3", "--out", parts, "--json", "-q"), parts)
    shutil.rmtree(one)
    constant = result(neap(*options, "--out", one, "--schedule", "constant"), one)
    if on != constant:
        return f"resumed: {on} is not {constant}"
    said = [done.stdout for done in (neap("eval", many, path), run(2, "eval", many, path))]
    return None if said[0] == said[1] and "accuracy" in said[0] else f"{said}"


LONG = ["train", DATA, *SETTINGS, "--net", "lif:24r,li", "--epochs", "6", "--snapshot", "1ms"]


def resumes(folder, hashes):
    """Interrupted as three ranks, the run goes on as two and as one to the same weights."""
    first = os.path.join(folder, "first")
    whole = result(neap(*LONG, "--out", os.path.join(folder, "whole"), "--json", "-q"),
                   os.path.join(folder, "whole"))
    hashes["long"] = whole
    done = run(3, *LONG, "--epochs", "3", "--out", first, "-q")
    if done.returncode:
        return done.stderr
    for ranks in (2, 1, 4):
        copy = os.path.join(folder, f"resumed{ranks}")
        shutil.copytree(first, copy)
        args = ["train", "--resume", "--epochs", "6", "--out", copy, "--json", "-q"]
        found = result(run(ranks, *args) if ranks > 1 else neap(*args), copy)
        if found != whole:
            return f"{ranks} ranks: {found} is not {whole}"
    return None


def wide(folder):
    """A net of more than a million weights: several rounds of sums, moments in several windows."""
    args = ["train", DATA, *SETTINGS, "--net", "lif:1100r,li", "--memory", "64M", "--group", "3"]
    whole, parts = os.path.join(folder, "wide"), os.path.join(folder, "wide3")
    alone = result(neap(*args, "--out", whole, "--json", "-q"), whole)
    done = run(3, *args, "--epochs", "1", "--out", parts, "-q")
    if done.returncode:
        return done.stderr[-500:]
    shutil.copytree(parts, parts + "copy")
    for ranks, copy in ((1, parts), (2, parts + "copy")):
        more = ["train", "--resume", "--epochs", "2", "--out", copy, "--json", "-q"]
        found = result(run(ranks, *more) if ranks > 1 else neap(*more), copy)
        if found != alone:
            return f"{ranks} ranks: {found[0]} is not {alone[0]}"
    return None


def ranks_of(process, name="neap-mpi"):
    """Processes of the program of that name that this mpirun started, by rank."""
    found = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                env = dict(part.split(b"=", 1) for part in file.read().split(b"\0") if b"=" in part)
            program = os.readlink(f"/proc/{number}/exe")
        except OSError:
            continue
        rank = env.get(b"OMPI_COMM_WORLD_RANK", env.get(b"PMI_RANK"))
        if env.get(b"NEAP_TEST") == process.token.encode() and rank is not None and \
                os.path.basename(program) == name:
            found[int(rank)] = int(number)
    return found


def left_of(process, name="neap-mpi"):
    """Ranks that stay after mpirun ended. On busy processors, a rank that it killed needs a moment to end."""
    end = time.monotonic() + 20
    while ranks_of(process, name) and time.monotonic() < end:
        time.sleep(0.05)
    return ranks_of(process, name)


def killed(folder, draw, ranks, victim, number, hashes):
    """A rank that is killed ends all; the run goes on to the same weights."""
    out = os.path.join(folder, f"killed{number}")
    process = started(ranks, *LONG, "--epochs", "60", "--out", out, "-q")
    end = time.monotonic() + 60
    snapshot = os.path.join(out, "last.safetensors")
    while not os.path.exists(snapshot) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(draw.random() * 0.2)
    pids = ranks_of(process)
    if victim not in pids:
        os.killpg(process.pid, signal.SIGKILL)
        return f"no rank {victim} among {pids}: {ended(process).stderr[-300:]}"
    os.kill(pids[victim], signal.SIGKILL)
    done = ended(process, 60)
    if done.returncode == 0:
        return "exit 0"
    left = left_of(process)
    if left:
        return f"still there: {left}"
    args = ["train", "--resume", "--out", out, "--json", "-q"]
    found = result(neap(*args), out)
    if "killed" not in hashes:
        hashes["killed"] = result(neap(*LONG, "--epochs", "60", "--out",
                                       os.path.join(folder, "unharmed"), "--json", "-q"),
                                  os.path.join(folder, "unharmed"))
    return None if found == hashes["killed"] else f"{found} is not {hashes['killed']}"


def refuses(folder, code, words, lines, ranks, *args, **more):
    """One line of ours, with these words; nothing is left."""
    done = run(ranks, *args, cwd=folder, **more)
    said = ours(done)
    if done.returncode != code:
        return f"exit {done.returncode}, not {code}: {done.stderr[-500:]}"
    if len(said) != lines or any(word not in said[0] for word in words):
        return f"{words}: {said} in {done.stderr[-500:]}"
    left = [name for name in os.listdir(folder) if name == "bad" or ".part" in name]
    return f"left behind: {left}" if left else None


def wrapper(folder, text):
    """A script that starts the tool otherwise on rank 1; returns how it is called."""
    path = os.path.join(folder, "start.sh")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nrank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n" + text + "\nexec \"$@\"\n")
    os.chmod(path, 0o755)
    return [path]


def bad_starts(tap, folder):
    base = ["train", DATA, *SETTINGS, "--net", "lif:8,li", "--out", "bad"]
    isa = wrapper(folder, "[ $rank = 1 ] && export NEAP_ISA=plain")
    tap.run("another instruction set on a rank is refused",
            lambda: refuses(folder, 2, ["rank 1 (", "computes with plain", "NEAP_ISA=plain"], 1, 3,
                            *base, wrap=isa))
    options = wrapper(folder, "[ $rank = 2 ] && set -- \"$@\" --lr 0.5")
    tap.run("another option on a rank is refused",
            lambda: refuses(folder, 2, ["rank 2 (", "learning_rate"], 1, 3, *base, wrap=options))
    data = wrapper(folder, f"[ $rank = 1 ] && shift 3 && set -- {NEAP} train "
                           f"{DATA.replace('units=20', 'units=20,seed=9')} \"$@\"")
    tap.run("another data set on a rank is refused",
            lambda: refuses(folder, 2, ["rank 1 (", "other samples than on rank 0"], 1, 3, *base,
                            wrap=data))
    tap.run("a data set that is nowhere is one line",
            lambda: refuses(folder, 2, ["neap train: ", "nowhere.h5"], 1, 3, "train", "nowhere.h5",
                            "--out", "bad"))
    tap.run("a mistyped option is one line",
            lambda: refuses(folder, 2, ["neap train: "], 1, 3, *base, "--epochz", "3"))
    os.mkdir(os.path.join(folder, "there"))
    open(os.path.join(folder, "there", "notes"), "w").close()
    tap.run("a folder that is there is one line",
            lambda: refuses(folder, 2, ["output folder 'there' already exists"], 1, 3, *base[:-1], "there"))


def missing_on_a_rank(folder):
    """Targets of steps, from a file; and one that a rank does not see: the line names it."""
    with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{i * i} is the square of {i}.\n" for i in range(90))
    base = ["train", "text:steps=40:text.txt", "--net", "lstm:8,li", "--epochs", "1", "--batch", "20",
            "--group", "4"]
    alone = neap(*base, "--out", "one", "--json", "-q", cwd=folder)
    three = run(3, *base, "--out", "three", "--json", "-q", cwd=folder)
    if result(alone, os.path.join(folder, "one")) != result(three, os.path.join(folder, "three")):
        return "a text: other weights"
    away = os.path.join(folder, "away")
    os.mkdir(away)
    wrap = wrapper(folder, f"[ $rank = 1 ] && cd {away}")
    return refuses(folder, 2, ["neap train: rank 1 (", "text.txt"], 1, 3, *base, "--out", "bad",
                   wrap=wrap)


def compiled(folder):
    """Ranks compile a cell file for themselves or take what another has compiled; a rank without a compiler is named."""
    if not shutil.which("cc"):
        return None
    base = ["train", DATA, *SETTINGS, "--epochs", "1", "--net", "cell c;state u;u=0.9*u+in;spike u-1;reset u=0:20r:scale=3,li"]
    env = {"XDG_CACHE_HOME": os.path.join(folder, "cache")}
    alone = neap(*base, "--out", "interpreted", "--json", "-q", cwd=folder)
    two = run(2, *base, "--compile-cells", "--out", "compiled", "--json", "-q", cwd=folder, env=env)
    if result(alone, os.path.join(folder, "interpreted")) != result(two, os.path.join(folder, "compiled")):
        return "other weights"
    if any(not name.endswith(".so") for name in os.listdir(os.path.join(folder, "cache/neap/code"))):
        return str(os.listdir(os.path.join(folder, "cache/neap/code")))
    wrap = wrapper(folder, "[ $rank = 1 ] && PATH=/nowhere")
    return refuses(folder, 2, ["neap train: rank 1 (", "there is no C compiler 'cc' in PATH"], 1, 2, *base, "--compile-cells", "--out", "bad",
                   wrap=wrap, env=env)


def not_installed(folder):
    """neap without neap-mpi beside it says what is missing."""
    lone = os.path.join(folder, "neap")
    shutil.copy(NEAP, lone)
    process = subprocess.Popen([MPI, "-n", "2", lone, "train", DATA, "--out", "bad"], cwd=folder,
                               env=dict(os.environ, **ENV), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    done = ended(process)
    said = ours(done)
    if done.returncode != 2 or len(said) != 1 or \
            "started as one of 2 processes, but neap-mpi is not installed" not in said[0]:
        return f"exit {done.returncode}: {done.stderr}"
    return None


def more_ranks_than_groups(folder):
    """Ranks without samples are told of in one line, with the remedy."""
    args = ["train", DATA, "--net", "lif:8,li", "--batch", "8", "--epochs", "1", "--memory", "1M"]
    done = run(3, *args, "--out", "crowd", cwd=folder)
    said = [line for line in done.stderr.splitlines() if "no samples" in line]
    wanted = "warning: 2 of 3 ranks have no samples, because a batch of 8 has 1 group of 8. Lower --group, or raise --batch"
    return None if done.returncode == 0 and said == [wanted] else f"{done.returncode} {done.stderr}"


def folder_missing(folder):
    """
    The folder of a run that goes on is not seen by a rank: the line names it and the mend. Freed
    memory is overwritten, at which an mpirun that is to print what MPI_Abort says may crash.
    """
    away = os.path.join(folder, "elsewhere")
    os.mkdir(away)
    wrap = wrapper(folder, f"[ $rank = 1 ] && cd {away}")
    return refuses(folder, 2, ["neap train: rank 1 (", "there is no run in 'crowd'", "all ranks see it"],
                   1, 2, "train", "--resume", "--epochs", "2", "--out", "crowd", wrap=wrap,
                   env={"MALLOC_PERTURB_": "169"})


def other_mpirun(folder):
    """An mpirun of another library starts every rank by itself: one line."""
    names = [name for name in ("mpirun.openmpi", "mpirun.mpich") if shutil.which(name)]
    other = [name for name in names if os.path.realpath(shutil.which(name)) != os.path.realpath(MPI)]
    if len(names) < 2 or len(other) != 1:
        return None
    process = subprocess.Popen([other[0], "-n", "2", NEAP, "train", DATA, "--out", "bad"], cwd=folder,
                               env=dict(os.environ, **ENV), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    done = ended(process)
    said = ours(done)
    if done.returncode != 2 or len(said) != 1 or "use the mpirun of that" not in said[0]:
        return f"exit {done.returncode}: {done.stderr}"
    return "left behind" if os.path.exists(os.path.join(folder, "bad")) else None


def commands_alone(folder):
    """Commands that ranks do not share run on rank 0; the others end."""
    args = ["plan", "--steps", "100", "--state", "1K", "--tape", "4K", "--memory", "64K", "--strategy",
            "revolve"]
    alone, done = neap(*args), run(3, *args, cwd=folder)
    return None if done.returncode == 0 and done.stdout == alone.stdout else \
        f"exit {done.returncode}: {done.stdout} {done.stderr}"


def impatient(folder):
    """A rank that hangs: the others end after their patience, and say so."""
    process = started(2, *LONG, "--epochs", "100000", "--patience", "4s", "--out", "hangs", "-q",
                      cwd=folder)
    end = time.monotonic() + 60
    snapshot = os.path.join(folder, "hangs", "last.safetensors")
    while not os.path.exists(snapshot) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    pids = ranks_of(process)
    if 1 not in pids:
        os.killpg(process.pid, signal.SIGKILL)
        return f"no rank 1 among {pids}: {ended(process).stderr[-300:]}"
    os.kill(pids[1], signal.SIGSTOP)
    try:
        done = ended(process, 60)
    finally:
        try:
            os.kill(pids[1], signal.SIGKILL)
        except OSError:
            pass
    said = ours(done)
    if done.returncode == 0 or len(said) != 1 or "waited" not in said[0] or \
            "rank 0 (" not in said[0]:
        return f"exit {done.returncode}: {done.stderr[-500:]}"
    return None


def interrupted(folder, hashes):
    """SIGINT to one rank ends all with a snapshot; the run goes on to the same weights."""
    out = os.path.join(folder, "interrupted")
    process = started(3, *LONG, "--epochs", "60", "--out", out, "-q")
    end = time.monotonic() + 60
    while not os.path.exists(os.path.join(out, "last.safetensors")) and process.poll() is None and \
            time.monotonic() < end:
        time.sleep(0.01)
    pids = ranks_of(process)
    if 2 not in pids:
        os.killpg(process.pid, signal.SIGKILL)
        return f"no rank 2 among {pids}: {ended(process).stderr[-300:]}"
    os.kill(pids[2], signal.SIGINT)
    done = ended(process, 60)
    said = ours(done)
    if done.returncode != 1 or len(said) != 1 or "interrupted after" not in said[0]:
        return f"exit {done.returncode}: {done.stderr[-500:]}"
    found = result(neap("train", "--resume", "--out", out, "--json", "-q"), out)
    return None if found == hashes["killed"] else f"{found} is not {hashes['killed']}"


def works(folder):
    """Whether this mpirun starts two processes here at all: None, or why not."""
    if not MPI:
        return "there is no mpirun"
    if not os.path.exists(os.path.join(os.path.dirname(NEAP), "neap-mpi")):
        return "neap-mpi was not built"
    done = subprocess.run([MPI, "-n", "2", "true"], cwd=folder, env=dict(os.environ, **ENV),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    return None if done.returncode == 0 else f"{MPI} fails: {done.stderr.strip()[:100]}"


def main():
    whole = sys.argv[1:] == ["all"]
    draw = random.Random(11)
    product = [(case, precision, ranks, threads)
               for case, precision, ranks, threads in itertools.product(
                   CASES, ("float", "double"), RANKS, (1, 2)) if (ranks, threads) != (1, 1)]
    hashes = {}
    with Tap() as tap, Folder() as folder:
        missing = works(folder)
        if missing:
            tap.skip("several processes train as one", missing)
            return tap.failed
        trainings = Trainings(folder)
        for case in product if whole else draw.sample(product, 20):
            tap.run("%s in %s as %d ranks of %d threads" % case, trainings.check, *case)
        tap.run("lstm in bf16 as ranks", bfloat16, trainings)
        tap.run("a run goes on with more or fewer ranks", resumes, folder, hashes)
        if whole:
            tap.run("a wide net", wide, folder)
        for coding in ("delta:threshold=0.3", "latency:period=6", "rate", "threshold"):
            tap.run(f"numbers become spikes as ranks: {coding}", codes, folder, coding)
        tap.run("encode as ranks", encodes, folder)
        tap.run("eval as ranks", evaluates, folder, os.path.join(folder, "first"))
        for i in range(30 if whole else 2):
            ranks = draw.choice((2, 3))
            victim = draw.randrange(ranks)
            tap.run(f"rank {victim} of {ranks} is killed", killed, folder, draw, ranks, victim, i,
                    hashes)
        tap.run("one rank is interrupted", interrupted, folder, hashes)
        tap.run("a rank that hangs", impatient, folder)
        bad_starts(tap, folder)
        tap.run("a text, and one that a rank does not see", missing_on_a_rank, folder)
        tap.run("compiled cell files", compiled, folder)
        tap.run("without neap-mpi", not_installed, folder)
        tap.run("an mpirun of another library", other_mpirun, folder)
        tap.run("more ranks than groups", more_ranks_than_groups, folder)
        tap.run("a run's folder that a rank does not see", folder_missing, folder)
        tap.run("commands that ranks do not share", commands_alone, folder)
        return tap.failed


if __name__ == "__main__":
    sys.exit(main() > 0)
