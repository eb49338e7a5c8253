#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
examples/11_wave_ranks under a real mpirun: any number of ranks gives the same bits; a job whose ranks
are killed, or told to end, goes on from the commit that all have, when it is started again, to the
same bits; the job script for Slurm, with commands in place of Slurm's.
    ranks_wave.py [all]      three kills; all: 20 kills
"""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from harness import SOURCE, Tap
from ranks import ENV, MPI, ended, left_of, ranks_of, started

WAVE = os.environ["NEAP_WAVE"]
NAME = os.path.basename(WAVE)
SHORT = 200
SECONDS = 3  # that a run to be killed takes, about


def start(ranks, steps, *args):
    return started(ranks, "--steps", steps, *args, program=WAVE)


def said(done):
    """Misfit and gradient, as printed."""
    if done.returncode:
        raise AssertionError(f"exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return next(line for line in done.stdout.splitlines() if "gradient" in line)


def spared(done):
    """The part of the steps that was done before, 0 to 1; above a half the sweep was going back."""
    done_before, of = re.search(r": (\d+) of (\d+) steps were done in earlier runs", done.stderr).groups()
    return int(done_before) / int(of)


def same(folder, alone, ranks, *args):
    found = said(ended(start(ranks, SHORT, *args), 250))
    if os.listdir(folder):
        return f"files are left: {os.listdir(folder)}"
    return None if found == alone else f"{found} is not {alone}"


def stopped_at_commit(process, folder, draw, victim, number, writes=3):
    """Sends a signal to a rank after writes of its journal and a time by chance; whether in time."""
    path, seen, changes = os.path.join(folder, f"neap.journal.{victim}"), None, 0
    end = time.monotonic() + 120
    while changes < writes and process.poll() is None and time.monotonic() < end:
        try:
            now = os.stat(path).st_mtime_ns
        except OSError:
            now = seen
        changes += now != seen
        seen = now
        time.sleep(0.002)
    time.sleep(draw.random() * 0.3)
    pid = ranks_of(process, NAME).get(victim)
    if pid is None or process.poll() is not None:
        return False
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


class Kills:
    """Jobs that are killed and started again, until they end; of each its commit counts."""

    def __init__(self, folder, draw):
        self.folder = folder
        self.draw = draw
        self.steps = SHORT
        self.alone = self.ranks = None
        self.resumed = 0

    def measure(self):
        """
        So many steps that a run takes some seconds here. Commits do not count, because a slow disk
        is to have time for several of them.
        """
        begin = time.monotonic()
        said(ended(start(3, SHORT, "--slow", self.folder), 250))
        took = time.monotonic() - begin
        self.take(max(SHORT, min(40000, int(SHORT * SECONDS / took))))

    def take(self, steps):
        """Jobs of so many steps from now on; what one rank says of them."""
        self.steps = steps
        self.alone = said(ended(start(1, steps), 250))

    def args(self):
        return ["--slow", self.folder, "--journal", self.folder, "--every", "0.01"]

    def end(self, process):
        """A job that nothing stopped: the bits of one rank, and no file is left."""
        done = ended(process, 250)
        self.ranks = None
        found = said(done)
        self.resumed += spared(done) > 0
        if os.listdir(self.folder):
            return f"files are left: {os.listdir(self.folder)}"
        return None if found == self.alone else f"{found} is not {self.alone}"

    def stop(self, number, writes=3):
        """
        One job, and a signal to one rank of it; starts new jobs until one comes in time, which are
        longer where two were too short for it.
        """
        for tried in range(10):
            if tried and tried % 2 == 0 and self.ranks is None:
                self.take(2 * self.steps)
            self.ranks = self.ranks or self.draw.choice((2, 3))
            victim = self.draw.randrange(self.ranks)
            process = start(self.ranks, self.steps, *self.args())
            if not stopped_at_commit(process, self.folder, self.draw, victim, number, writes):
                problem = self.end(process)
                if problem:
                    return problem
                continue
            done = ended(process, 60)
            if done.returncode == 0:  # it was at its end
                self.ranks = None
                if said(done) != self.alone:
                    return f"{said(done)} is not {self.alone}"
                continue
            left = left_of(process, NAME)
            return f"still there: {left}" if left else None
        return "no signal came in time"

    def terms(self):
        """SIGTERM again and again, each after a commit, until a job ends that resumed going back."""
        for _ in range(40):
            process = start(2, self.steps, *self.args())
            writes = self.draw.randint(2, 4)
            if not stopped_at_commit(process, self.folder, self.draw, 1, signal.SIGTERM, writes):
                done = ended(process, 250)
            else:
                done = ended(process, 60)
                if done.returncode:
                    if done.returncode != 3 or "the sweep was interrupted" not in done.stderr:
                        return f"exit {done.returncode}: {done.stderr[-400:]}"
                    continue
            if said(done) != self.alone:
                return f"{said(done)} is not {self.alone}"
            if spared(done) > 0.5:
                return None
        return "no job resumed going back"

    def lost(self):
        """A rank whose journal is gone says so in a line, and all start over, to the same bits."""
        problem = self.end(start(self.ranks, self.steps, *self.args())) if self.ranks else None
        if problem:
            return problem
        self.ranks = 3
        for tried in range(12):  # a signal ends a job after a commit, unless it comes at the end
            if tried and tried % 2 == 0:
                self.take(2 * self.steps)
            process = start(self.ranks, self.steps, *self.args())
            stopped_at_commit(process, self.folder, self.draw, 2, signal.SIGTERM)
            done = ended(process, 250)
            if done.returncode == 3:
                break
            if said(done) != self.alone:
                return f"{said(done)} is not {self.alone}"
        else:
            return "no job was interrupted"
        names = [f"neap.journal.{rank}" for rank in range(self.ranks)]
        missing = [name for name in names if not os.path.exists(os.path.join(self.folder, name))]
        if missing:
            return f"interrupted, but {missing} are not among {os.listdir(self.folder)}"
        path = os.path.join(self.folder, "neap.journal.1")
        os.unlink(path)
        done = ended(start(self.ranks, self.steps, *self.args()), 250)
        lines = [line for line in done.stderr.splitlines() if "over" in line]
        if len(lines) != 1 or not lines[0].startswith(f"rank 1 has no journal in '{self.folder}'"):
            return f"{lines} in {done.stderr[-400:]}"
        self.ranks = None
        if spared(done) or said(done) != self.alone:
            return f"{spared(done)} spared, {said(done)} is not {self.alone}"
        return f"files are left: {os.listdir(self.folder)}" if os.listdir(self.folder) else None

    def last(self):
        """What was killed last ends; a kill before the first commit leaves none: again then."""
        for i in range(1, 11):
            if self.ranks:
                problem = self.end(start(self.ranks, self.steps, *self.args()))
                if problem:
                    return problem
            if self.resumed:
                return None
            problem = self.stop(signal.SIGKILL, 3 + 2 * i)
            if problem:
                return problem
        return "no job went on from a commit"


def slurm(folder, alone):
    """The job script: a run, and one that a signal stops, which asks for the job again."""
    bin_folder, work = os.path.join(folder, "bin"), os.path.join(folder, "work")
    os.mkdir(bin_folder)
    os.mkdir(work)
    for name, text in (("srun", 'while [ "${1#-}" != "$1" ]; do shift; done\n'
                                f'[ -n "$STOP" ] && exit 3\nexec {MPI} -n 2 "$@"'),
                       ("scontrol", f'echo "$@" >> {folder}/asked')):
        path = os.path.join(bin_folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
    env = dict(os.environ, **ENV, PATH=bin_folder + ":" + os.environ["PATH"], WAVE=WAVE,
               STEPS=str(SHORT), SCRATCH=work, SLURM_JOB_ID="17")
    script = ["bash", os.path.join(SOURCE, "examples", "wave_ranks.slurm")]
    done = subprocess.run(script, env=env, capture_output=True, text=True, timeout=250, check=False)
    if said(done) != alone:
        return f"{said(done)} is not {alone}"
    if os.path.exists(os.path.join(folder, "asked")) or os.listdir(work):
        return f"asked again, or left: {os.listdir(work)}"
    subprocess.run(script, env=dict(env, STOP="1"), capture_output=True, timeout=60, check=False)
    with open(os.path.join(folder, "asked"), encoding="utf-8") as file:
        asked = file.read()
    return None if asked == "requeue 17\n" else f"asked: {asked}"


def usage():
    """Arguments that are wrong: one line of ours, exit code 2."""
    for args in (["--steps", "3"], ["--steps"], ["--what", "1"], ["--every", "-1"]):
        done = ended(started(2, *args, program=WAVE))
        lines = [line for line in done.stderr.splitlines() if "11_wave_ranks [" in line]
        if done.returncode != 2 or len(lines) != 1:
            return f"{args}: exit {done.returncode}: {done.stderr[-400:]}"
    return None


def main():
    draw = random.Random(5)
    with Tap() as tap, \
            tempfile.TemporaryDirectory(prefix="neap-test-", dir="/var/tmp") as disk:
        works = MPI and subprocess.run([MPI, "-n", "2", "true"], env=dict(os.environ, **ENV),
                                       stdin=subprocess.DEVNULL, capture_output=True,
                                       timeout=60, check=False).returncode == 0
        if not works:
            tap.skip("a state that is spread over ranks", "there is no mpirun that works")
            return tap.failed
        alone = said(ended(start(1, SHORT), 250))
        for ranks in (1, 2, 3):
            tap.run(f"{ranks} ranks, a slow file: the same bits", same, disk, alone, ranks, "--slow",
                    disk)
        kills = Kills(disk, draw)
        kills.measure()
        for i in range(20 if sys.argv[1:] == ["all"] else 3):
            tap.run(f"kill {i + 1} of a rank", kills.stop, signal.SIGKILL)
        tap.run("after kills: the same bits", kills.last)
        tap.run("a rank without a journal", kills.lost)
        tap.run("SIGTERM to one rank ends all after a commit; the same bits", kills.terms)
        if shutil.which("bash"):
            tap.run("the job script for Slurm", slurm, disk, alone)
        tap.run("bad usage", usage)
        return tap.failed


if __name__ == "__main__":
    sys.exit(main() > 0)
