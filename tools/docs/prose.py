#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Each teaching page links a term of the glossary where it first uses it. Prints one line per page; exits 1 if a link is missing.
    prose.py [FOLDER_OF_THE_PROJECT]
Only running text is checked, not tables, code, headings and comments. A term counts as linked if the link leads to the
glossary or to a part of a page; docs/concepts.md may define it instead, in bold letters. The length of sentences is not
checked, since limits on it lead to fragments that are harder to read.
"""
import os
import re
import sys

TEACHING = ("docs/concepts.md", "docs/first-network.md", "docs/own-data.md", "docs/pytorch.md")
# Words of the glossary that these pages also use as everyday ones.
EVERYDAY = {"call", "live state", "action", "level", "gap", "record", "backward", "place", "piece", "request", "event", "group",
            "rank", "peer", "hole", "pace", "log", "block", "dense", "support", "turn", "engine", "problem", "stage", "advance",
            "commit", "agreement", "event list", "record (stored)", "cell", "recover"}


def read(root, name):
    with open(os.path.join(root, name)) as file:
        return file.read()


def terms(root):
    """The terms of the glossary: the first cells of its tables."""
    found = set()
    for cell in re.findall(r"^\| ([^|]+?) \|", read(root, "docs/glossary.md"), re.MULTILINE):
        found.update(word.strip() for word in cell.split(","))
    return sorted(found - {"term", "---"} - EVERYDAY)


def running(text):
    """Paragraphs and items of lists, without code, tables, headings and comments."""
    text = re.sub(r"<!--.*?-->|^```.*?^```|^ {4}.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", text):
        if part.strip() and not part.lstrip().startswith(("#", "|", "!")):
            yield " ".join(part.split())


def unlinked(text, words, defines):
    """Terms whose first use on a page is no link, and is not where the page defines them."""
    text = "\n\n".join(running(text))
    text = re.sub(r"`[^`]*`", lambda match: "_" * len(match.group(0)), text)
    links = [match.span() for match in re.finditer(r"\[[^\]]*\]\([^)\s]*(?:\.md|#)[^)]*\)", text)]
    links += [match.span() for match in re.finditer(r"\*\*[^*]+\*\*", text)] if defines else []
    for word in words:
        first = re.search(r"(?<![\w/#.-])" + re.escape(word) + r"(?:s|es)?(?![\w-])", text, re.IGNORECASE)
        if first and not any(start <= first.start() < end for start, end in links):
            yield word, text[max(0, first.start() - 30):first.end() + 20].replace("\n", " ")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    failed, words = 0, terms(root)
    for page in TEACHING:
        found = list(unlinked(read(root, page), words, page == "docs/concepts.md"))
        print(f"prose: {page}: {len(found)} missing links to the glossary")
        for word, where in found:
            print(f"prose: {page}: '{word}' is not a link where it is first used: ... {where}", file=sys.stderr)
        failed += len(found)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
