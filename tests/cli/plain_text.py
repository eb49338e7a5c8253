#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Names of files and of tiers may hold anything; none of their control characters reaches a
terminal, neither in refusals nor where all is well, nor through JSON.
"""
import json
import os
import re
import sys

from harness import Folder, Tap, neap, write_recordings

ESCAPE = "a\x1b[31mb\u009bc\u0085"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(done):
    for text in (done.stdout, done.stderr):
        found = CONTROL.search(text)
        if found:
            return f"{found.group(0)!r} in {text[:300]!r}"
    return None


def case(folder, *args, code=0):
    done = neap(*args, cwd=folder)
    if done.returncode != code:
        return f"exit {done.returncode}: {done.stderr[:300]!r}"
    return clean(done)


def json_case(folder, *args):
    """JSON says the name as it is, in escapes."""
    problem = case(folder, *args, "--json")
    if problem:
        return problem
    names = json.dumps(json.loads(neap(*args, "--json", cwd=folder).stdout), ensure_ascii=False)
    return None if json.dumps(ESCAPE, ensure_ascii=False)[1:-1] in names else names[:300]


def main():
    tier = f"{ESCAPE}:write=1G,read=1G"
    plan = ["plan", "--steps", "1000", "--memory", "64", "--tape", "4", "--state", "1"]
    with Tap() as tap, Folder() as folder:
        write_recordings(os.path.join(folder, ESCAPE))
        tap.check("a name that is not there", case(folder, "plan", "--chain", ESCAPE + "x",
                                                   "--memory", "1M", code=2))
        tap.run("encode names its output", case, folder, "encode", ESCAPE, "--out",
                ESCAPE + ".h5", "--label", "([0-9]+)_.*", "--channels", "32")
        tap.run("train names its folder", case, folder, "train", ESCAPE + ".h5", "--out",
                ESCAPE + ".run", "--epochs", "1", "--net", "lif:8r,li", "--test", ESCAPE + ".h5")
        tap.run("train continues", case, folder, "train", "--resume", "--out", ESCAPE + ".run",
                "--epochs", "2")
        tap.run("eval", case, folder, "eval", ESCAPE + ".run", ESCAPE + ".h5")
        write_recordings(os.path.join(folder, "words", ESCAPE), 1, 8)
        tap.run("encode of a class of that name", case, folder, "encode", "words", "--out", "words.h5")
        tap.run("train on it", case, folder, "train", "words.h5", "--out", "words.run", "--epochs", "1",
                "--net", "lif:8r,li", "--validation", "0")
        tap.run("eval names it", case, folder, "eval", "words.run", "words.h5")
        tap.run("predict names it", case, folder, "predict", "words.run", "words.h5")
        os.mkdir(os.path.join(folder, ESCAPE + ".slow"))
        tap.run("compare names its tiers", case, folder, "compare", ESCAPE + ".h5", "--net",
                "lif:8r,li", "--max-steps", "64", "--memory", "1M", "--slow", ESCAPE + ".slow")
        tap.run("a tier's name", case, folder, *plan, "--tier", tier, "--strategy", "remote")
        tap.run("a tier's name in JSON", json_case, folder, *plan, "--tier", tier)
        tap.run("a tier's name in a saved plan", case, folder, *plan, "--tier", tier,
                "--strategy", "remote", "--save", "a.plan")
        with open(os.path.join(folder, "a.plan"), encoding="utf-8") as file:
            tap.check("which is plain", repr(CONTROL.search(file.read()) or "")[2:-1] or None)
        tap.run("and read back", case, folder, "plan", "--load", "a.plan")
        tap.run("a drawing", case, folder, *plan, "--tier", tier, "--strategy", "remote",
                "--draw", "a.svg")
        with open(os.path.join(folder, "a.svg"), encoding="utf-8") as file:
            tap.check("which is plain too", repr(CONTROL.search(file.read()) or "")[2:-1] or None)


if __name__ == "__main__":
    sys.exit(main())
