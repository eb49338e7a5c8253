#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Help, manual, completions: every page within 80 columns and under headings, every option of the tables in
all of them, completion in a real bash; short options, what was probably meant, numbers without a unit.
"""
import os
import re
import shutil
import subprocess
import sys

from harness import NEAP, Folder, Tap, neap

SOURCE = os.environ["NEAP_SOURCE"]
NUMBERS = {"N", "X", "P", "C", "BYTES", "TIME", "RATE", "SHARE", "HZ", "KIND"}
COMMANDS = re.findall(r"^  (\w+) ", neap("--help").stdout, re.MULTILINE)


def made(tool, *arguments):
    return subprocess.run([sys.executable, os.path.join(SOURCE, "tools", tool), *arguments],
                          capture_output=True, text=True, check=True).stdout


def listed(command):
    return [line.split("\t") for line in neap(command, "--list-options").stdout.splitlines()]


def pages():
    """80 columns, headings, every option in help and man; what is a number has a default or a word for none."""
    for command in COMMANDS:
        text = neap(command, "--help").stdout
        wide = [line for line in text.splitlines() if len(line) > 80]
        if wide:
            return f"{command}: beyond 80 columns: {wide[0]}"
        if not re.search(r"^[A-Z][^\n]*:$", text, re.MULTILINE) or "\nexamples:\n  neap" not in text:
            return f"{command}: no headings or no examples"
        page = made("man.py", NEAP, "0", command)
        for name, letter, argument, _, _ in listed(command):
            left = (f"-{letter}, " if letter else "") + f"--{name}" + (f" {argument}" if argument else "")
            if f"\n  {left}" not in text:
                return f"{command} --help has no '{left}'"
            if f".B {left}".replace("-", "\\-") not in page:
                return f"the manual of {command} has no '{left}'"
        if neap("help", command).stdout != text or neap(command, "-h").stdout != text:
            return f"neap help {command}, neap {command} -h: other texts"
    return None


def defaults():
    """What is a number, a size, a time or a choice says its default, or that it is required."""
    for command in COMMANDS:
        text = neap(command, "--help").stdout.split("\nUnits:\n")[0]
        rows = (row.split(None, 2) for row in re.split(r"\n  (?:-\w, )?--", text)[1:])
        for name, argument, text in (row for row in rows if len(row) == 3):
            if argument in NUMBERS and not re.search(r"default|required", text):
                return f"{command} --{name} {argument} says no default: {text}"
    return None


def shown():
    """`man` shows the pages within 80 columns, without a warning."""
    if not shutil.which("man"):
        print("# SKIP of pages as man shows them: there is no man")
        return None
    for command in COMMANDS:
        done = subprocess.run(["man", "--warnings=w", "-P", "cat", "-l", "-"], text=True,
                              input=made("man.py", NEAP, "0", command), capture_output=True,
                              env=dict(os.environ, MANWIDTH="80", LC_ALL="C"))
        wide = [line for line in done.stdout.splitlines() if len(line) > 80]
        if done.returncode or done.stderr or wide:
            return f"{command}: {done.stderr or wide[0]}"
    return None


def completions():
    """Every option in both; bash completes commands, options and names."""
    bash, zsh = made("completion.py", NEAP, "bash"), made("completion.py", NEAP, "zsh")
    for command in COMMANDS:
        words = re.search(rf"^    {command}\) words=\"(.*)\" ;;$", bash, re.MULTILINE).group(1).split()
        of_zsh = zsh.split(f"\n    {command}) ", 1)[1].split(";;", 1)[0]
        for name, *_ in listed(command):
            if f"--{name}" not in words or not re.search(rf"'\*--{name}[=\[]", of_zsh):
                return f"{command} --{name} is completed nowhere"
    wanted = {("neap", "tra"): ["train"], ("neap", "help", "ev"): ["eval"],
              ("neap", "train", "--rate-u"): ["--rate-upper"],
              ("neap", "train", "--surrogate", "su"): ["superspike"],
              ("neap", "train", "--optimizer", "="): ["adam", "adamw", "sgd"],
              ("neap", "train", "--optimizer", "=", "s"): ["sgd"],
              ("neap", "plan", "--strategy", "h"): ["hierarchical", "h-revolve"]}
    for line, answer in wanted.items():
        words = " ".join(f"'{word}'" for word in line)
        script = f"{bash}\nCOMP_WORDS=({words}); COMP_CWORD={len(line) - 1}; _neap; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True)
        if done.stdout.split() != answer:
            return f"{line}: {done.stdout.split()} {done.stderr}"
    if shutil.which("zsh"):
        done = subprocess.run(["zsh", "-f", "-n"], input=zsh, capture_output=True, text=True)
        if done.returncode:
            return done.stderr
    else:
        print("# SKIP of zsh -n: there is no zsh")
    return None


def mistakes():
    """What was probably meant; a number without a unit; letters."""
    for arguments, told in (
            (["trian"], "did you mean 'train'?"),
            (["train", "x", "--epoch", "3"], "did you mean '--epochs'?"),
            (["train", "x", "--rate_upper", "3"], "did you mean '--rate-upper'?"),
            (["train", "x", "--mem", "3"], "did you mean '--memory'?"),
            (["train", "x", "--surrogate", "super-spike"], "did you mean 'superspike'?"),
            (["train", "x", "--optimizer", "adam-w"], "did you mean 'adamw'?"),
            (["train", "x", "--strategy", "revolv"], "did you mean 'revolve'?"),
            (["train", "x", "--loss", "crossentropy"], "did you mean 'cross-entropy'?"),
            (["compare", "x", "--strategy", "bptt", "--strategy", "h_revolve"], "did you mean 'h-revolve'?"),
            (["bench", "kernel"], "did you mean 'kernels'?"),
            (["study", "schedule", "--out", "x"], "did you mean 'schedules'?"),
            (["train", "x", "--epoch", "3"], "'--epochs'? 'neap train --help' lists them"),
            (["train", "x", "--config", "absent"], "there is no file 'absent'"),
            (["train", "x", "--resume", "--config", "x"], "--config cannot be combined with --resume"),
            (["train", "x", "--beta", "1"], "--beta: '1' is out of range"),
            (["train", "x", "--tau", "20"], "'20' has no unit. Did you mean 20ms or 20s?"),
            (["train", "x", "--dt", "1"], "'1' has no unit. Did you mean 1ms or 1s?"),
            (["train", "x", "-z"], "unknown option '-z'"),
            (["train", "x", "-out", "y"], "did you mean '--out'?"),
            (["train", "x", "-epochs=3"], "did you mean '--epochs'?"),
            (["train", "x", "-o"], "--out: the value (FOLDER) is missing"),
            (["train", "-qo", "absent", "--resume"], "there is no run in 'absent'")):
        done = neap(*arguments)
        if done.returncode != 2 or told not in done.stderr or done.stderr.count("\n") != 1:
            return f"{arguments}: {done.returncode} {done.stderr}"
    if "did you mean" in neap("train", "x", "--wobble").stderr:
        return "a name that is near none is taken for one"
    return None


def quiet(folder):
    """-q: no progress and no notes on standard error, but warnings and the report; -o is --out."""
    run = os.path.join(folder, "run")
    done = neap("train", "randman:steps=20,samples=40,classes=2", "--net", "lif:8,li", "--epochs", "1",
                "--memory", "4M", "-q", "-o", run)
    lines = done.stderr.splitlines()
    if done.returncode or not lines or not all(line.startswith("warning: ") for line in lines) or "model " not in done.stdout or \
            not os.path.isdir(run):
        return f"{done.returncode} {done.stderr} {done.stdout}"
    return None


def main():
    with Tap() as tap, Folder() as folder:
        tap.check("pages: 80 columns, headings, every option", pages())
        tap.check("a default for each number and choice", defaults())
        tap.check("pages as man shows them", shown())
        tap.check("completions of bash and zsh", completions())
        tap.check("what was meant, units, letters", mistakes())
        tap.check("--quiet and -o", quiet(folder))
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())
