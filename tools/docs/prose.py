#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a newcomer reads stays readable: in README and the teaching pages sentences have fewer than 20 words on average and 25 at
most, and each page links a term of the glossary where it first uses it. Prints a line a page; exits 1 where one of them fails.
    prose.py [FOLDER_OF_THE_PROJECT]
A sentence is one of running text: tables, code, headings and comments are left out. A term counts as linked where the
link leads to the glossary or to a part of a page; docs/concepts.md may define it instead, in bold letters.
"""
import os
import re
import sys

MEAN_MAX = 20  # words
WORDS_MAX = 25
TEACHING = ("docs/concepts.md", "docs/first-network.md", "docs/own-data.md", "docs/pytorch.md")
PAGES = ("README.md", *TEACHING)
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


def sentences(text):
    for part in running(text):
        part = re.sub(r"\]\([^)]*\)|[*\[]", "", part)
        part = re.sub(r"`[^`]*`", "Code", part)
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z\d]|neap )", part):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if words:
                yield words


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
    for page in PAGES:
        text = read(root, page)
        lengths = [len(sentence) for sentence in sentences(text)]
        mean = sum(lengths) / len(lengths)
        print(f"prose: {page}: {len(lengths)} sentences of {mean:.1f} words on average, {max(lengths)} at most")
        if mean >= MEAN_MAX:
            print(f"prose: {page}: below {MEAN_MAX} words on average is the aim", file=sys.stderr)
            failed += 1
        for sentence in sentences(text):
            if len(sentence) > WORDS_MAX:
                print(f"prose: {page}: {len(sentence)} words, {WORDS_MAX} at most: {' '.join(sentence)}", file=sys.stderr)
                failed += 1
        for word, where in unlinked(text, words, page == "docs/concepts.md") if page in TEACHING else ():
            print(f"prose: {page}: '{word}' is no link where it is first used: ... {where}", file=sys.stderr)
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
