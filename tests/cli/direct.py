#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file system that refuses O_DIRECT: one line that says so, and the page cache where it is asked
for, with the same gradients. The refusal comes from a library loaded before libc."""
import json
import os
import tempfile

from harness import Tap, neap, neap_json

REFUSING = os.environ["NEAP_REFUSING"]
RUN = ["compare", "randman:steps=200,samples=8", "--batch", "8", "--net", "lif:64r,li",
       "--memory", "256K", "--strategy", "remote"]


def loads():
    """The library works in front of this build (a sanitizer wants to be first itself)."""
    done = neap("--version", env={"LD_PRELOAD": REFUSING})
    return done.returncode == 0 and not done.stderr


def refused(folder):
    done = neap(*RUN, "--slow", folder, env={"LD_PRELOAD": REFUSING})
    lines = done.stderr.strip().splitlines()
    if done.returncode != 2 or len(lines) != 1:
        return f"exit {done.returncode}, {done.stderr}"
    if "O_DIRECT" not in lines[0] or folder not in lines[0]:
        return f"does not say what is wrong, and where: {lines[0]}"
    return None


def asked_for(folder):
    cached = neap(*RUN, "--slow", folder, "--page-cache", "--json",
                  env={"LD_PRELOAD": REFUSING})
    if cached.returncode != 0:
        return cached.stderr
    here = neap_json(*RUN, "--slow", folder, "--page-cache")
    there = json.loads(cached.stdout)
    hashes = {run["grad_hash"] for result in (here, there) for run in result["runs"]}
    return None if len(hashes) == 1 else f"gradients differ: {hashes}"


def said_once(folder):
    done = neap(*RUN, "--slow", folder, "--page-cache", "--repeats", "3",
                env={"LD_PRELOAD": REFUSING})
    count = (done.stdout + done.stderr).count("page-cached")
    return None if done.returncode == 0 and count == 1 else f"said {count} times: {done.stderr}"


def main():
    with Tap() as tap, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        if not loads():
            tap.skip("no O_DIRECT", "this build takes no library before its own")
            return
        tap.run("a refusal is one line, and exit code 2", refused, folder)
        tap.run("the page cache where it is asked for: the same gradients", asked_for, folder)
        tap.run("and it is said once", said_once, folder)


if __name__ == "__main__":
    main()
