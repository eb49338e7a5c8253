# SPDX-License-Identifier: Apache-2.0
"""One row: a framework and neap run the same training step in turn."""
import os
import statistics
import sys
import time

from process import Broken, Neap, Peer

PAUSE = 0.05  # seconds between programs, so that threads of the other process become idle
LONGEST = 2.0  # seconds for which a program repeats a short step


class Absent(Exception):
    """A framework that is not installed."""


def timed(run, times, least=0.0):
    """Appends the mean time of a step that is repeated until it has run for `least` seconds; returns that time and the last reply."""
    total, count = 0.0, 0
    while count == 0 or total < min(least, LONGEST):
        reply = run()
        total, count = total + reply["seconds"], count + 1
    times.append(total / count)
    time.sleep(PAUSE)
    return times[-1], reply


class Bench:
    """Data shared by the rows of one case: neap's data and weights as files, written once per cell."""

    def __init__(self, helper, system_python, case, folder, rounds, before=None, precision="float"):
        self.helper, self.system_python, self.case = helper, system_python, case
        self.before = before  # the helper of an earlier version, which is timed in the same rounds
        self.precision = precision
        self.folder, self.rounds = folder, rounds
        self.losses = {}

    def cell_folder(self, cell):
        return os.path.join(self.folder, cell.replace(" ", "").replace(",", "-"))

    def export(self, cell, gradients):
        import agree  # needs NumPy, which --help does not
        if cell not in self.losses or (gradients and self.losses[cell] is None):
            self.losses[cell] = agree.export(self.helper, self.case, cell, self.cell_folder(cell),
                                             gradients)

    def environment(self, framework):
        """With two threads and the default BLAS, the system's PyTorch is twice as slow."""
        folder = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
        if framework.endswith("debian") and os.path.isdir(folder):
            return {"LD_LIBRARY_PATH": folder}
        return {}

    def open_peer(self, framework, cell, precision):
        python = self.system_python if framework.endswith("debian") else sys.executable
        peer = Peer(python, framework, self.cell_folder(cell), precision, 2,
                    self.environment(framework))
        if peer.absent:
            peer.close()
            raise Absent(f"{framework} ({peer.absent})")
        return peer

    def ways(self, framework, cell):
        """Version and program variants (ways) of a framework."""
        self.export(cell, False)
        peer = self.open_peer(framework, cell, "float")
        peer.close()
        return peer.hello["version"], peer.hello["ways"]

    def check(self, framework, cell, way):
        """Differences of loss and gradients in double precision."""
        import agree
        self.export(cell, True)
        peer = self.open_peer(framework, cell, "double")
        try:
            return {"check": agree.check(peer, way, self.cell_folder(cell), self.losses[cell])}
        finally:
            peer.close()

    def time(self, framework, cell, way, threads, fraction):
        """Medians, and the median ratio per round. fraction N: neap with 1/N of the memory.

        The speed of a machine changes within tenths of a second, so neap's shorter step is repeated for as long as the
        framework's step takes, and two versions of neap change places in every round."""
        self.export(cell, False)
        peer = self.open_peer(framework, cell, self.precision)
        nets = []
        try:
            growth = peer.ask("prepare", way, threads=threads)["growth"]
            for helper in [self.helper] + ([self.before] if self.before else []):
                nets.append(Neap(helper, self.case, cell, self.precision, threads))
        except Broken:
            for process in [peer, *nets]:
                process.close()
            raise
        net = nets[0]
        try:
            own_way = "auto" if fraction else "bptt"
            grown = [process.prepare(own_way, growth // fraction if fraction else 0) for process in nets]
            own, hashes = grown[0], set()
            theirs, ours, earlier = [], [], []
            pairs = list(zip(nets, (ours, earlier)))
            for _ in range(self.rounds):
                least, _ = timed(lambda: peer.ask("step", way, threads=threads), theirs)
                for process, times in pairs:
                    hashes.add(timed(lambda process=process: process.step(own_way), times, least)[1]["hash"])
                pairs.reverse()
        finally:
            for process in [peer, *nets]:
                process.close()
        middle = statistics.median
        found = {"seconds": middle(theirs), "spread": (max(theirs) - min(theirs)) / middle(theirs),
                "growth": growth, "neap_seconds": middle(ours), "neap_growth": own["growth"],
                "neap_spread": (max(ours) - min(ours)) / middle(ours), "rounds": self.rounds,
                "ratio": middle([a / b for a, b in zip(theirs, ours)]), "neap_plan": own["strategy"],
                "spikes": own["spikes"], "support": own["support"]}
        if earlier:
            found["before_seconds"] = middle(earlier)
            found["before_ratio"] = middle([a / b for a, b in zip(theirs, earlier)])
            found["before_growth"] = grown[1]["growth"]
            found["same_bits"] = len(hashes) == 1  # gradients of both versions in all rounds
        return found
