#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Completions of bash and zsh from the tool's own tables of options, so that they cannot disagree.
    completion.py NEAP bash|zsh > file
An option that takes one of some names proposes these, one that takes a file or a folder proposes paths.
"""
import re
import subprocess
import sys

PATHS = {"FILE", "DIR", "FOLDER", "DATA", "LIST", "FILE.h5", "FILE.svg", "F.svg|F.png"}


def run(neap, *arguments):
    return subprocess.run([neap, *arguments], capture_output=True, text=True, check=True).stdout


def commands_of(neap):
    """[(name, what it is for)]"""
    return re.findall(r"^  (\w+) +(.*)$", run(neap, "--help"), re.MULTILINE)


def options_of(neap, command):
    """[(name, letter, argument, names that it takes, meaning)]"""
    for line in run(neap, command, "--list-options").splitlines():
        name, letter, argument, values, meaning = line.split("\t")
        yield name, letter, argument, values.split(",") if values else [], meaning


def strip(values):
    return [value.strip() for value in values]


def bash(neap):
    names = [name for name, _ in commands_of(neap)]
    out = ["# bash completion of neap, made from its tables of options.", "_neap()", "{",
           '    local word="${COMP_WORDS[COMP_CWORD]}" last="${COMP_WORDS[COMP_CWORD-1]}"',
           '    local command="${COMP_WORDS[1]}" words=""', "    COMPREPLY=()",
           '    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then',
           f'        COMPREPLY=($(compgen -W "{" ".join(names)} help --help --version" -- "$word"))',
           "        return", "    fi",
           # readline cuts --name=value into three words
           '    if [ "$word" = "=" ]; then word=""; elif [ "$last" = "=" ]; then',
           '        last="${COMP_WORDS[COMP_CWORD-2]}"', "    fi",
           '    case "$command $last" in']
    for command in names:
        for name, letter, argument, values, _ in options_of(neap, command):
            pattern = f'"{command} --{name}"' + (f'|"{command} -{letter}"' if letter else "")
            if values:
                out += [f'    {pattern}) COMPREPLY=($(compgen -W "{" ".join(strip(values))}" -- "$word")); return ;;']
            elif argument in PATHS:
                out += [f'    {pattern}) compopt -o filenames 2>/dev/null; '
                        'COMPREPLY=($(compgen -f -- "$word")); return ;;']
            elif argument:
                out += [f"    {pattern}) return ;;"]
    out += ["    esac", '    case "$command" in']
    for command in names:
        words = " ".join(f"--{name}" for name, *_ in options_of(neap, command))
        out += [f'    {command}) words="{words}" ;;']
    out += ["    esac", '    case "$word" in',
            '    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;',
            '    *) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$word")) ;;',
            "    esac", "}", "complete -F _neap neap"]
    return out


def zsh_text(text):
    """Within '[...]' of a specification in single quotes."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text.replace("'", "'\\''"))


def zsh(neap):
    commands = commands_of(neap)
    out = ["#compdef neap", "# zsh completion of neap, made from its tables of options.", "_neap() {",
           "    local -a commands", "    commands=("]
    out += [f"        '{name}:{zsh_text(about)}'" for name, about in commands]
    out += ["    )", "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then",
            "        _describe command commands", "        return", "    fi",
            "    local command=$words[2]", "    shift words", "    (( CURRENT-- ))", "    case $command in"]
    for command, _ in commands:
        out += [f"    {command}) _arguments -s \\"]
        for name, letter, argument, values, meaning in options_of(neap, command):
            action = f"({' '.join(strip(values))})" if values else "_files" if argument in PATHS else " "
            value = f":{zsh_text(argument)}:{action}" if argument else ""
            out += [f"        '*--{name}{'=' if argument else ''}[{zsh_text(meaning)}]{value}' \\"]
            if letter:
                out += [f"        '*-{letter}{'+' if argument else ''}[{zsh_text(meaning)}]{value}' \\"]
        out += ["        '*:file:_files' ;;"]
    out += ["    esac", "}", '_neap "$@"']
    return out


neap, shell = sys.argv[1:]
print("\n".join(bash(neap) if shell == "bash" else zsh(neap)))
