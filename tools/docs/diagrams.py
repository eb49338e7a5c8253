#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Draws the diagrams of docs/architecture.md in the look of the other figures (bench/figure.py), for narrow screens too.
    diagrams.py [FOLDER]    FOLDER/floors.svg and FOLDER/sweep_life.svg (default: docs)
"""
import html
import os
import sys

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "bench"))
sys.dont_write_bytecode = True
import figure  # noqa: E402

WIDTH, TALL, GAP = 480, 52, 12  # px: of the picture, of a box, between boxes
COLOURS, STYLE = figure.look()
FLOORS = [  # number, boxes: name, what it holds, colour of the library that has it
    (6, [("cli", "the tool", "ORANGE"), ("examples", "example models", "ORANGE"),
         ("apps/study", "experiments", "ORANGE"), ("apps/bench", "benchmarks", "ORANGE")]),
    (5, [("src/train", "optimizers, epochs", "BLUE"), ("src/measure", "costs on this machine", "BLUE")]),
    (4, [("src/sweep", "runs a schedule on a model", "GREEN"), ("src/device", "nets on GPUs", "BLUE")]),
    (3, [("src/store", "slow tiers", "GREEN"), ("src/cuda", "memory of GPUs", "SKY"), ("src/nn", "cells, gradients", "BLUE")]),
    (2, [("src/plan", "strategies, bounds", "GREEN"), ("src/kern", "kernels", "BLUE"), ("src/data", "readers", "BLUE")]),
    (1, [("src/sys", "calls of the operating system", "GREEN")]),
    (0, [("src/base", "status, sizes, text, random numbers", "GREEN")])]


def text(x, y, words, size=15, anchor="middle", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{html.escape(words)}</text>")


def box(x, y, wide, name, about, colour):
    return [f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{TALL}" rx="5" fill="{COLOURS["BAND"]}" '
            f'stroke="{COLOURS[colour]}" stroke-width="2"/>',
            text(x + wide / 2, y + 22, name, weight="bold"), text(x + wide / 2, y + 41, about, 13)]


def arrow(path, dashed=False):
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (f'<path d="{path}" fill="none" stroke="{COLOURS["INK"]}" stroke-width="1.5" marker-end="url(#end)"{dash}/>')


def write(path, title, tall, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{tall}" viewBox="0 0 {WIDTH} {tall}" '
            f'font-family="sans-serif" fill="{COLOURS["INK"]}" role="img">\n<title>{title}</title>\n{STYLE}\n'
            '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{COLOURS["INK"]}"/></marker></defs>\n'
            f'<rect width="100%" height="100%" fill="{COLOURS["PAPER"]}"/>\n')
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + "\n".join(parts) + "\n</svg>\n")


def floors(path):
    parts, y = [text(14, 26, "A file includes its own floor and lower ones.", 15, "start")], 44
    for number, boxes in FLOORS:
        for first in range(0, len(boxes), 2 if len(boxes) == 4 else 3):
            row = boxes[first:first + (2 if len(boxes) == 4 else 3)]
            wide = (WIDTH - 48 - GAP * len(row)) / len(row)
            for i, (name, about, colour) in enumerate(row):
                parts += box(48 + i * (wide + GAP), y, wide, name, about, colour)
            if first == 0:
                parts.append(text(24, y + 33, str(number), 20, weight="bold"))
            y += TALL + GAP
    x = 48
    for name, colour in (("libneap", "GREEN"), ("libneap-cuda", "SKY"), ("libneap-nn", "BLUE"), ("in no library", "ORANGE")):
        parts += [f'<rect x="{x}" y="{y + 4}" width="16" height="14" rx="3" fill="{COLOURS["BAND"]}" '
                  f'stroke="{COLOURS[colour]}" stroke-width="2"/>', text(x + 22, y + 16, name, 13, "start")]
        x += 34 + 7 * len(name)
    write(path, "Floors: what may include what", y + 34, parts)


def sweep_life(path):
    parts = [text(12, 24, "create: neap_sweep_create", 15, "start", "bold"),
             *box(12, 36, 140, "problem", "sizes, costs, budget", "BLUE"),
             *box(170, 36, 140, "plan", "strategy, or saved", "BLUE"),
             *box(328, 36, 140, "schedule", "list of actions", "BLUE"),
             arrow("M152 62H168"), arrow("M310 62H326"), arrow("M398 88V138H300V156"),
             text(12, 140, "run: neap_sweep_run", 15, "start", "bold"),
             *box(140, 158, 200, "perform the action", "checked, then done", "GREEN"),
             *box(12, 260, 216, "model", "advance, record, turn, backward", "ORANGE"),
             *box(252, 260, 216, "tiers", "put and get return at once", "ORANGE"),
             arrow("M170 210V258"), arrow("M204 260V212"), text(162, 240, "calls", 13, "end"),
             arrow("M276 210V258"), arrow("M310 260V212"), text(318, 240, "requests, waits", 13, "start"),
             *box(90, 362, 300, "arena", "live state, adjoint, slots, tapes, staging", "GREEN"),
             arrow("M240 210V360"),
             *box(22, 464, 206, "repair", "lost records are recomputed", "RED"),
             *box(252, 464, 216, "commit", "a journal, at most 3% of time", "GREEN"),
             arrow("M140 184H4V490H20", True), arrow("M320 414V462", True),
             arrow("M60 464V314", True),
             *box(90, 566, 300, "loss and gradient", "bit-identical to storing everything", "BLUE"),
             arrow("M340 184H476V592H392"), text(470, 546, "the schedule ends", 13, "end")]
    write(path, "The life of a sweep", 632, parts)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs")
    floors(os.path.join(folder, "floors.svg"))
    sweep_life(os.path.join(folder, "sweep_life.svg"))
