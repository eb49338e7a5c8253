# SPDX-License-Identifier: Apache-2.0
"""The C reference as Markdown: a page for each public header, in the order of the header, and one that lists them all.

Declarations are shown as the header has them, comments of fields included. Names of neap in text become links here,
those in code in hooks.py.
"""
import glob
import html
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.dont_write_bytecode = True
import headers  # noqa: E402

# In reading order; the others follow.
ORDER = ("neap.h", "sweep.h", "stages.h", "memory.h", "plan.h", "chain.h", "tier.h", "cuda.h", "train.h", "net.h", "ports.h", "data.h", "peers.h")
NETS = ("train.h", "net.h", "ports.h", "data.h", "peers.h")  # libneap-nn has these
WORDS = re.compile(r"(`[^`]*`|\b(?:neap|NEAP)_\w+(?:\(\))?|\b\w+\.h\b)")


def place(header):
    """The site's page of include/neap/HEADER."""
    return f"c/{header[:-2]}.md"


class Reference:
    """All public headers, and where each of their names is explained."""

    def __init__(self, source):
        paths = sorted(glob.glob(os.path.join(source, "include", "neap", "*.h")))
        self.headers = sorted((os.path.basename(path) for path in paths),
                              key=lambda name: (*(i for i, one in enumerate(ORDER) if one == name), len(ORDER))[0])
        self.text = {os.path.basename(path): headers.read(path) for path in paths}
        self.items = {name: list(headers.items(self.text[name])) for name in self.headers}
        self.home = {}  # name: the page that explains it
        for header, items in self.items.items():
            for kind, name, declaration, comment in items:
                if name and (kind != "opaque" or comment):
                    self.home.setdefault(name, header)
                if kind == "enum":
                    for value in re.findall(r"\bNEAP_\w+(?=\s*(?:=|,|\}|/\*))", declaration):
                        self.home.setdefault(value, header)

    def words(self, text, here):
        """Running text of a comment as Markdown; names of neap become links."""
        out = []
        for i, part in enumerate(WORDS.split(text)):
            name = part.strip("`").replace("()", "")
            home = self.home.get(name)
            if i % 2 == 0:
                out.append(re.sub(r"([\\*_\[\]<>#|`])", r"\\\1", part))
            elif part in self.text:
                out.append(f"[`neap/{part}`]({part[:-2]}.md)")
            elif home and (home != here or name != ""):
                anchor = f"#{name}" if any(name == one for _, one, *_ in self.items[home]) else ""
                out.append(f"[`{name}`]({home[:-2]}.md{anchor})")
            else:
                out.append(f"`{name}`")
        return "".join(out)

    def prose(self, lines, here):
        """Lines of a comment as Markdown: what is indented by four is code."""
        out, paragraph, code = [], [], []

        def flush():
            if paragraph:
                out.append(self.words("\n".join(paragraph), here) + "\n")
            if any(code):
                out.append("```c\n" + "\n".join(code).strip("\n") + "\n```\n")
            paragraph.clear()
            code.clear()

        for line in lines:
            if line.startswith("    ") and (code or not paragraph or not paragraph[-1].startswith((" ", "-"))):
                if paragraph:
                    flush()
                code.append(line[4:])
            elif not line:
                code.append("") if code else flush()
            elif line.startswith(" - ") or line.startswith("- "):
                flush()
                paragraph.append(line.strip())
            else:
                if code:
                    flush()
                paragraph.append(line.strip())
        flush()
        return "\n".join(out)

    def item(self, header, kind, name, declaration, comment):
        """One declaration: heading, text and code."""
        if kind == "text":
            return self.prose(comment, header)
        title = f"{kind} {name}" if kind in ("struct", "enum") else f"struct {name}" if kind == "opaque" else name
        code = f"```c\n{declaration}\n```\n"
        text = self.prose(comment, header) if comment else ""
        parts = (code, text) if kind in ("function", "opaque") else (text, code)
        return f"## {title} {{#{name}}}\n\n" + "\n".join(parts)

    def page(self, header):
        top = headers.head(self.text[header])
        top[0] = top[0][:1].upper() + top[0][1:]
        library = "neap-nn" if header in NETS else "neap-cuda" if header == "cuda.h" else "neap"
        out = [f"# neap/{header}\n", self.prose(top, header),
               f"```c\n#include <neap/{header}>   // cc ... $(pkg-config --cflags --libs {library})\n```\n"]
        nameless = ""
        for kind, name, declaration, comment in self.items[header]:
            if kind == "opaque" and not comment:
                continue
            if kind != "text" and not name:  # an enum of constants
                nameless += f"```c\n{declaration}\n```\n"
                continue
            out.append(self.item(header, kind, name, declaration, comment))
        return "\n".join(out) + ("\n## Constants\n\n" + nameless if nameless else "")

    def index(self):
        """All headers, and the functions and structs of each with their summaries."""
        out = ["# C reference\n", "libneap plans and runs forward and backward passes over any chain of steps; "
               "[`neap/neap.h`](neap.md) includes all of it. libneap-cuda ([`neap/cuda.h`](cuda.md)) lets a pass use "
               "the memory of a CUDA device. libneap-nn adds networks, data and training; start with "
               "[`neap/train.h`](train.md). [Your own time-stepping code in C](../own-code.md) is the tutorial. "
               "Each function also has a manual page, for example `man 3 neap_sweep_run`.\n"]
        for header in self.headers:
            about = self.words(headers.summary(headers.head(self.text[header])), "")
            out.append(f"## [neap/{header}]({header[:-2]}.md)\n\n{about[:1].upper() + about[1:]}.\n")
            rows = [(kind, name, comment) for kind, name, _, comment in self.items[header]
                    if kind in ("function", "struct") and name]
            if rows:
                out += ["| name | summary |", "|---|---|"]
            for kind, name, comment in rows:
                shown = name if kind == "function" else f"struct {name}"
                said = self.words(" ".join(headers.summary(comment).split()), "")
                out.append(f"| [`{shown}`]({header[:-2]}.md#{name}) | {said} |")
            out.append("")
        return "\n".join(out)


def write_pages(source, write):
    """Writes all pages by write(name, text); the rows of the navigation."""
    reference = Reference(source)
    rows = [{"Overview": write("c/index.md", reference.index())}]
    return rows + [{f"neap/{header}": write(place(header), reference.page(header))} for header in reference.headers]


def linked(code, source, cache={}):
    """A page of the reference as HTML with the names of neap in its code as links."""
    if source not in cache:
        cache[source] = Reference(source)
    home, items = cache[source].home, cache[source].items

    def link(match):
        name = html.unescape(match.group(2))
        header = home.get(name)
        if not header or all(name != one for _, one, *_ in items[header]):
            return match.group(0)
        return f'{match.group(1)}<a href="{header[:-2]}.html#{name}">{name}</a></span>'

    return re.sub(r'(<span class="n[cf]?">)((?:neap|NEAP)_\w+)</span>', link, code)
