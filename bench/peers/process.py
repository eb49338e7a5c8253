# SPDX-License-Identifier: Apache-2.0
"""The compared processes: neap's helper and one process per framework."""
import json
import os
import subprocess

import cases

HERE = os.path.dirname(os.path.abspath(__file__))


class Broken(Exception):
    """The error message of a process that ended or failed."""


class Process:
    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace",
                                        env=dict(os.environ, **(env or {})))
        try:
            self.hello = self.read()
        except Broken:
            self.close()
            raise

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.stdin.close()
            last = self.process.stderr.read().strip().splitlines()
            raise Broken(last[-1] if last else "the process ended without a message")
        reply = json.loads(line)
        if "error" in reply:
            raise Broken(reply["error"])
        return reply

    def say(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # read() reports the reason
        return self.read()

    def close(self):
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait()


class Neap(Process):
    """peerstep with one cell of a case."""

    def __init__(self, helper, case, cell, precision="float", threads=2):
        super().__init__([helper, cases.data(case), cases.spec(case, cell), f"batch={case['batch']}",
                          f"threads={threads}", f"precision={precision}", f"steps={case['steps']}"])

    def prepare(self, way, memory=0):
        return self.say(f"prepare {way} {memory}")

    def step(self, way):
        return self.say(f"step {way}")


class Peer(Process):
    """peer.py with one framework; .absent is the missing module, or None."""

    def __init__(self, python, name, folder, precision="float", threads=2, env=None):
        more = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "JAX_PLATFORMS": "cpu",
                "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        super().__init__([python, os.path.join(HERE, "peer.py"), name, folder, precision], dict(more, **(env or {})))
        self.absent = self.hello.get("absent")
        self.threads = threads

    def ask(self, do, way, **more):
        return self.say(json.dumps(dict({"do": do, "way": way}, **more)))
