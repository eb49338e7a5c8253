# SPDX-License-Identifier: Apache-2.0
"""figure.py: plots as SVG in the look of all figures of the project, whose colours src/base/svg.h has.

    draw("memory.svg", "Memory", [Panel("Counted bytes", "MB", "steps", lines, rule=("budget", 64))], columns=2)
"""
import html
import math
import os
import re
from typing import NamedTuple, Optional, Sequence, Tuple

HEADER = os.path.join(os.path.dirname(__file__), "..", "src", "base", "svg.h")
FONT, WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 19, 380, 400, 78, 42, 62, 58  # px; of a panel
MARKS = ("M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z", "M-.9-.9H.9V.9H-.9z", "M0-1.3 1.3 0 0 1.3-1.3 0z", "M0-1.2 1.1.8H-1.1z",
         "M0 1.2 1.1-.8H-1.1z")


class Line(NamedTuple):
    label: str
    colour: str  # RED, ORANGE, BLUE, ...: a name of svg.h
    points: Sequence[Tuple[float, float]]


class Panel(NamedTuple):
    title: str
    unit: str  # below the title, of the axis upwards
    x: str
    lines: Sequence[Line]  # five at most
    log: bool = True  # upwards; to the right always
    rule: Optional[Tuple[str, float]] = None  # a dotted line across


def look():
    """Colours by name, and the style that replaces them on a dark page."""
    with open(HEADER, encoding="utf-8") as file:
        text = file.read()
    colours = dict(re.findall(r'#define NEAP__SVG_(\w+) "(#\w+)"', text))
    rows = re.findall(r'X\((?:NEAP__SVG_(\w+)|"(#\w+)"), "(#\w+)"\)', text)
    style = "".join(f'[fill="{colours.get(name, light)}" i]{{fill:{dark}}} [stroke="{colours.get(name, light)}" i]'
                    f"{{stroke:{dark}}}\n" for name, light, dark in rows)
    return colours, f"<style>@media (prefers-color-scheme: dark) {{\n{style}}}</style>"


def mark(colour, which, x, y):
    path = MARKS[which % len(MARKS)]
    return f'<path transform="translate({x:.1f} {y:.1f}) scale(5.5)" d="{path}" fill="{colour}"/>'


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{html.escape(words)}</text>'


def panel(of, colours, left, top):
    """The parts of one panel, whose upper left corner is given."""
    points = [point for line in of.lines for point in line.points] + ([(math.nan, of.rule[1])] if of.rule else [])
    xs = [math.log10(x) for x, _ in points if x == x]
    ys = [math.log10(y) if of.log else y for _, y in points]
    low, high = (min(ys), max(ys)) if of.log else (0, max(ys))
    room = 0.06 * (high - low)
    x0, x1, y0, y1 = min(xs) - 0.1, max(xs) + 0.1, low - (room if of.log else 0), high + room
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x, y):
        return (left + LEFT + wide * (math.log10(x) - x0) / (x1 - x0),
                top + TOP + tall * (1 - ((math.log10(y) if of.log else y) - y0) / (y1 - y0)))

    out = [text(left + 12, top + 24, of.title), text(left + 12, top + 48, of.unit, ' font-size="17"')]
    step = 10 ** math.floor(math.log10(y1 or 1)) if not of.log else 1
    ticks = [10 ** n for n in range(math.ceil(y0), math.floor(y1) + 1)] if of.log else \
        [step * n / 2 for n in range(int(2 * y1 / step) + 1)]
    for y in ticks:
        _, v = at(10, y)
        out += [f'<path d="M{left + LEFT} {v:.1f}h{wide}" stroke="{colours["GRID"]}"/>',
                text(left + LEFT - 8, v + 6, f"{y:,g}".replace("e+0", "e"), ' text-anchor="end"')]
    for n in range(math.ceil(x0), math.floor(x1) + 1):
        h, _ = at(10 ** n, ticks[-1])
        out += [f'<path d="M{h:.1f} {top + TOP + tall}v6" stroke="{colours["INK"]}"/>',
                text(h, top + TOP + tall + 25, f"{10 ** n:,}", ' text-anchor="middle"')]
    out += [f'<rect x="{left + LEFT}" y="{top + TOP}" width="{wide}" height="{tall}" fill="none" '
            f'stroke="{colours["INK"]}"/>',
            text(left + LEFT + wide / 2, top + HEIGHT - 6, of.x, ' text-anchor="middle"')]
    if of.rule:
        _, v = at(10, of.rule[1])
        out.append(f'<path d="M{left + LEFT} {v:.1f}h{wide}" stroke="{colours["INK"]}" stroke-width="2" '
                   'stroke-dasharray="3 5"/>')
    for number, line in enumerate(of.lines):
        colour, places = colours[line.colour], [at(*point) for point in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out += [f'<polyline fill="none" stroke="{colour}" stroke-width="2.5" points="{path}"/>',
                *(mark(colour, number, x, y) for x, y in places)]
    return out


def draw(path, title, panels, columns=2):
    """Panels in rows, and in the place behind the last one the legend of the first."""
    colours, style = look()
    rows = len(panels) // columns + 1
    wide, tall = columns * WIDTH, rows * HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}" '
           f'font-family="sans-serif" font-size="{FONT}" fill="{colours["INK"]}" role="img">',
           f"<title>{html.escape(title)}</title>", style,
           f'<rect width="100%" height="100%" fill="{colours["PAPER"]}"/>']
    for number, one in enumerate(panels):
        out += panel(one, colours, number % columns * WIDTH, number // columns * HEIGHT)
    left, y = len(panels) % columns * WIDTH + LEFT, (rows - 1) * HEIGHT + TOP + 40
    for number, line in enumerate(panels[0].lines):
        out += [f'<path d="M{left} {y}h36" stroke="{colours[line.colour]}" stroke-width="2.5"/>',
                mark(colours[line.colour], number, left + 18, y), text(left + 48, y + 6, line.label)]
        y += 38
    if panels[0].rule:
        out += [f'<path d="M{left} {y}h36" stroke="{colours["INK"]}" stroke-width="2" stroke-dasharray="3 5"/>',
                text(left + 48, y + 6, panels[0].rule[0])]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n</svg>\n")
