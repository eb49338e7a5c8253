#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Generates the man pages of the tool from its `--help`, so the two cannot differ.
    man.py NEAP VERSION [COMMAND] > page
"""
import re
import subprocess
import sys


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def help_of(neap, *command):
    return subprocess.run([neap, *command, "--help"], capture_output=True, text=True,
                          check=True).stdout


def command_page(neap, version, command):
    text = help_of(neap, command)
    title, rest = text.split("\n\nusage: ", 1)
    usage, rest = rest.split("\n\n", 1)
    options, examples = rest.split("\n\nexamples:\n", 1)
    title, usage = (" ".join(part.split()) for part in (title, usage))
    out = [f'.TH NEAP\\-{command.upper()} 1 "" "neap {version}" "neap manual"', ".SH NAME",
           f"neap\\-{command} \\- {escape(title.split(': ', 1)[1])}", ".SH SYNOPSIS",
           f".B {escape(usage)}", ".SH OPTIONS"]
    for line in options.splitlines():
        option = re.match(r"  ((?:-\w, )?\S+(?: \S+)?)(?: {2,}(.*))?$", line)
        if line.endswith(":") and not line.startswith(" "):
            out += [f".SS {escape(line[:-1])}"]
        elif option:
            out += [".TP", f".B {escape(option.group(1))}"]
            out += [escape(option.group(2))] if option.group(2) else []
        elif line.strip():
            out.append(escape(line.strip()))
    out += [".SH EXAMPLES", ".nf", ".in 2n", *(escape(line[2:]) for line in examples.splitlines()), ".in", ".fi", ".SH EXIT STATUS",
            "0: success; 1: failure at run time; 2: invalid usage or input.", ".SH SEE ALSO",
            ".BR neap (1)"]
    return "\n".join(out) + "\n"


def main_page(neap, version):
    text = help_of(neap)
    commands = re.findall(r"^  (\S+)\s+(.*)$", text, re.MULTILINE)
    out = [f'.TH NEAP 1 "" "neap {version}" "neap manual"', ".SH NAME",
           "neap \\- train recurrent and spiking neural networks on long sequences in a fixed amount of "
           "memory, by gradient checkpointing", ".SH SYNOPSIS", ".B neap COMMAND", "[options]",
           ".SH DESCRIPTION",
           "neap trains networks with a memory budget in bytes. From the budget and the measured speed of "
           "the machine it plans which states and saved activations of a sequence to keep in memory, which "
           "to offload to slow memory such as a disk, and which to recompute. Transfers are overlapped with "
           "computation. The gradient is bit-identical to that of plain backpropagation through time.", ".SH COMMANDS"]
    for name, about in commands:
        out += [".TP", f".BR neap\\-{name} (1)", escape(about)]
    out += [".SH UNITS", "Sizes accept the suffixes K, M, G, T and P (powers of 1024); times accept s, ms and us; a rate "
            "is a size per second.", ".SH ENVIRONMENT", ".TP", ".B NEAP_ISA",
            "Instruction set of the kernels: plain, avx2 or avx512 (default: the widest that the processor has), or lowered, "
            "which has the results of avx512 on every processor and is 10 to 60 times slower. "
            "Gradients computed with the same instruction set are bit-identical.", ".TP", ".B NEAP_IO",
            "I/O engine for slow memory in files: uring, threads or sync, which overlaps nothing with "
            "computation (default: the first that works).", ".SH EXIT STATUS",
            "0: success; 1: failure at run time; 2: invalid usage or input.", ".SH SEE ALSO",
            ".BR libneap (3)"]
    return "\n".join(out) + "\n"


neap, version, *command = sys.argv[1:]
print(command_page(neap, version, command[0]) if command else main_page(neap, version), end="")
