#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What whoever starts the tool may do to it: close its streams, limit its files, hang up, interrupt
it at any moment, give it a narrow terminal or one that moves no cursor."""
import fcntl
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import termios
import threading
import time

from harness import NEAP, Folder, Tap, write_recordings

# Whoever started the tests may ignore signals, as nohup does, and programs inherit that.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(ignored, signal.SIG_DFL)

DATA = "randman:steps=500,samples=600,classes=4"
LONG = ["train", DATA, "--net", "lif:64r,li", "--epochs", "1000", "--memory", "1M"]
SHORT = ["train", DATA, "--net", "lif:64r,li", "--epochs", "1", "--memory", "1M"]


def started(*args, cwd, **more):
    return subprocess.Popen([NEAP, *args], cwd=cwd, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            errors="replace", **more)


def until(process, seen, seconds=60):
    """Waits until seen() or the process ends."""
    end = time.monotonic() + seconds
    while process.poll() is None and not seen() and time.monotonic() < end:
        time.sleep(0.02)
    return process.poll() is None and seen()


def closed(folder):
    """No file takes the number of a stream that is closed: what is printed would go there."""
    def close():
        for fd in (0, 1, 2):
            os.close(fd)
    process = subprocess.Popen([NEAP, *LONG, "--out", "closed", "--slow", folder], cwd=folder,
                               preexec_fn=close)
    began = until(process, lambda: os.path.exists(os.path.join(folder, "closed/run.json")))
    found = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in (0, 1, 2)] if began else None
    process.kill()
    process.wait()
    return None if found == ["/dev/null"] * 3 else f"0, 1 and 2 are {found}"


def limited(folder):
    """Writes beyond RLIMIT_FSIZE: one line, nothing half-written."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    plan = ["plan", "--steps", "1000", "--state", "1K", "--tape", "1K", "--memory", "64K",
            "--strategy", "revolve", "--actions", "--save", "x.plan"]
    for args, code in ((plan, 1), (SHORT + ["--out", "limited"], 1)):
        process = started(*args, cwd=folder, preexec_fn=limit)
        said = process.communicate(timeout=60)[1].splitlines()
        if process.returncode != code or "File too large" not in said[-1]:
            return f"{args[0]}: exit {process.returncode}: {said}"
    left = [name for _, _, names in os.walk(folder) for name in names if ".part" in name]
    return f"left behind: {left}" if left else None


def full(folder):
    """Standard output that takes nothing ends what is printed."""
    with open("/dev/full", "w") as out:
        done = subprocess.run([NEAP, "plan", "--steps", "1000000000", "--slots", "1000", "--strategy",
                               "revolve", "--actions"], stdout=out, stderr=subprocess.PIPE,
                              text=True, timeout=60, check=False)
    return None if done.returncode == 1 and "cannot write to standard output" in done.stderr \
        else f"exit {done.returncode}: {done.stderr}"


def stopped(folder, number):
    """A snapshot is what is left of training, and a line that says so."""
    out = f"stopped{number}"
    process = started(*LONG, "--out", out, cwd=folder)
    if not until(process, lambda: os.path.exists(os.path.join(folder, out, "model.safetensors"))):
        return f"did not begin: {process.communicate()[1]}"
    process.send_signal(number)
    said = process.communicate(timeout=60)[1].splitlines()
    if process.returncode != 1 or "Continue with --resume: neap train --out '" not in said[-1]:
        return f"exit {process.returncode}: {said[-1:]}"
    found = sorted(os.listdir(os.path.join(folder, out)))
    return None if found == ["costs.csv", "last.safetensors", "metrics.csv", "model.safetensors",
                             "run.json"] else f"left behind: {found}"


def hung_up(folder):
    """nohup: the signal is ignored, and stays so."""
    process = started(*LONG, "--out", "nohup", cwd=folder,
                      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    if not until(process, lambda: os.path.exists(os.path.join(folder, "nohup/metrics.csv"))):
        return f"did not begin: {process.communicate()[1]}"
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    lives = process.poll() is None
    process.kill()
    process.communicate()
    return None if lives else "it ended"


def encoding(folder):
    """Encoding that is hung up leaves no half of a file."""
    process = started("encode", "wavs", "--out", "x.h5", "--label", "([0-9]+)_.*", "--threads", "1",
                      cwd=folder)
    time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    said = process.communicate(timeout=60)[1]
    left = [name for name in os.listdir(folder) if ".part" in name]
    if process.returncode not in (0, 1, -signal.SIGHUP) or left:
        return f"exit {process.returncode}, left behind {left}: {said}"
    return None


def measuring(folder):
    """A benchmark that is interrupted says so."""
    process = started("bench", "planner", "--runs", "101", cwd=folder)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    return None if process.returncode == 1 and said == "neap bench: interrupted\n" \
        else f"exit {process.returncode}: {said}"


def within_a_sample(folder, command, number):
    """A bar is drawn while one sample of days is run, and a signal ends it there."""
    ours, its = pty.openpty()
    process = subprocess.Popen([NEAP, command, "short", DATA.replace("steps=500,samples=600", "steps=100000000,samples=2"), "--threads", "1"],
                               cwd=folder, stdout=subprocess.DEVNULL, stderr=its, env={**os.environ, "TERM": "xterm"})
    os.close(its)
    watch = threading.Timer(60, process.kill)
    watch.start()
    text, sent = b"", False
    try:
        while more := os.read(ours, 4096):
            text += more
            if not sent and b"[." in text:
                process.send_signal(number)
                sent = True
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    code = process.wait()
    watch.cancel()
    line = rf"neap {command}: interrupted after 0 samples and [1-9]\d* of 100000000 steps\r\n"
    return None if code == 1 and re.search(line, text.decode()) else f"exit {code}: {text}"


def on_terminal(folder, columns, name):
    """What training prints on a terminal of so many columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([NEAP, *SHORT, "--epochs", "12", "--out", f"w{columns}{name}"],
                               cwd=folder, stdout=subprocess.DEVNULL, stderr=its,
                               env={**os.environ, "TERM": name})
    os.close(its)
    text = b""
    try:
        while more := os.read(ours, 4096):
            text += more
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    return text.decode() if process.wait() == 0 else f"exit {process.returncode}: {text}"


def narrow(folder, columns):
    text = on_terminal(folder, columns, "xterm")
    drawn = re.findall(r"\r\x1b\[K([^\r\n]+)(?=\r)", text)
    bars = [line for line in drawn if line.startswith("training")]
    wide = [line for line in bars if len(line) >= columns]
    if not bars:
        return f"nothing is drawn: {text[-300:]}"
    return f"{columns} columns: {wide[0]}" if wide else None


def plain(folder):
    text = on_terminal(folder, 80, "dumb")
    return "moves the cursor" if "\x1b" in text else None


def main():
    with Tap() as tap, Folder() as folder:
        write_recordings(os.path.join(folder, "wavs"))
        tap.run("closed streams", closed, folder)
        tap.run("a limit on the size of files", limited, folder)
        tap.run("a full standard output", full, folder)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            tap.run(f"train, {number.name}", stopped, folder, number)
        tap.run("nohup", hung_up, folder)
        tap.run("encode, hung up", encoding, folder)
        tap.run("bench, interrupted", measuring, folder)
        subprocess.run([NEAP, *SHORT, "--out", "short"], cwd=folder, check=True, capture_output=True)
        for command, number in ("eval", signal.SIGTERM), ("predict", signal.SIGINT):
            tap.run(f"{command} of a sample of days, {number.name}", within_a_sample, folder, command, number)
        for columns in (120, 80, 40, 12):
            tap.run(f"progress in {columns} columns", narrow, folder, columns)
        tap.run("progress where no cursor moves", plain, folder)


main()
