#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Phrases that make a text harder to read than standard technical English. Counts each phrase in each page and
compares the counts with tools/docs/phrases.txt: a count may only fall. Exits 1 if one rose.
    phrases.py [--root FOLDER] [--write] [--show PAGE...]
--write records the present counts; --show prints every match of the given pages with its line. LIMITS holds for README
and docs together. In pages, code blocks, code words and comments are not counted; headers, docstrings and messages are
counted whole.
"""
import argparse
import glob
import os
import re
import sys

# What "a step" means in "two bytes a step" is "per step". Words before it that are verbs or prepositions mean one step.
PER = ("step|second|sample|unit|sweep|batch|layer|epoch|synapse|recording|rank|thread|event|sequence|spike|group|row|"
       "class|tensor|minute|hour|record|call|minibatch|neuron|channel|character|machine|core|iteration")
NOT_PER = ("about|above|adds?|after|against|also|and|are|as|at|be|because|becomes|before|being|below|between|"
           "but|by|calls?|computes?|computing|contains?|costs?|counts?|creates?|defines?|describes?|drops?|"
           "during|every|executes|finds?|for|frees?|from|gives?|had|half|handles|has|have|holds?|if|in|"
           "includes?|inside|into|is|just|keeps?|like|loads?|makes?|means?|needs?|not|of|offloads?|on|only|or|"
           "over|passes|per|plans?|reaches|reads?|recomputes?|recomputing|records?|repeating|repeats?|replaces?|"
           "replays?|requires?|returns?|running|runs?|same|saves?|sends?|skips?|so|starts?|stores?|such|sums?|"
           "takes?|than|that|then|through|times|to|trains?|under|until|uses?|was|were|when|where|which|while|"
           "whose|with|within|without|writes?")

# phrase: (pattern, what to write instead)
PHRASES = {
    "where": (r"where", "if, when (for a condition)"),
    "a step": (rf"(?!(?:{NOT_PER})\b)[\w%]+ an? (?:{PER})(?![-\w])", "per step, each step"),
    "says": (r"says", "prints, reports, shows, specifies"),
    "said, tells": (r"said|tells?|told", "reported, specifies, passed"),
    "again": (r"again", "recompute, a second time"),
    "within": (r"within", "in, with a budget of, under a budget"),
    "beside": (r"besides?", "next to, in addition to, compared with, overlapped with"),
    "stands": (r"(?:stands?|stood)(?! for)", "is, is listed"),
    "mend": (r"mends?|mended|mending", "fix"),
    "reckon": (r"reckons?|reckoned|reckoning", "estimate"),
    "anew": (r"anew|afresh", "again, from scratch"),
    "at hand": (r"at hand", "available"),
    "of its own": (r"of (?:its|their|your|my|our) own", "its own"),
    "in place of": (r"in place of", "instead of"),
    "given back": (r"(?:given|gives|give) back|lent|lends?|hands? out", "returned, borrowed"),
    "as the first": (r"as the first", "of the same size as the first"),
    "go on": (r"goes on|go on|going on", "continue"),
    "drawn": (r"drawn anew|draws? from|drawn from", "sampled"),
    "so many": (r"so many|so much", "that number of"),
    "it wants": (r"wants", "requires"),
    "has to": (r"has to|have to|had to", "must"),
    "at least after": (r"\d[\w.,%]*(?: \w+)? at (?:least|most)", "at least N, at most N"),
    "deviation": (r"(?<!standard )deviations?", "standard deviation"),
    "processor time": (r"processor time|clock on the wall", "CPU time, wall-clock time"),
    "dear": (r"dear|dearly|dearer|dearest|it pays|pays off", "expensive; is faster"),
    "ours": (r"ours", "our own method"),
    "too at the end": (r"\w+, too(?=[.;:])", "also"),
    "alone": (r"alone", "only"),
    "is no": (r"(?<!there )(?:is|are) no", "is not a"),
    "that of": (r"(?:that|those) of", "repeat the noun"),
    "fraction of memory": (r"an? (?:tenth|fiftieth|twentieth|hundredth|fifth)", "1/10"),
    "away": (r"travels?|travelling|away", "offloaded, on slow memory"),
    "bit for bit": (r"bit for bit|same bits|other bits", "bit-identical"),
    "after this page": (r"after this page", "This page shows how to"),
    "names it": (r"(?:line|message|error) (?:that )?names", "shows its name"),
    "what": (r"(?:^|[.;:] )what (?!is\b|are\b|does\b|do\b|to\b|happens\b)", "name the thing"),
}

# README and docs together, at most. "None" means: only may not rise.
LIMITS = {"where": 60, "a step": 25, "says": 15, "again": 20, "within": 20, "beside": 5}


def markdown(text):
    """The text of a page without comments, code blocks and code words."""
    def blank(match):
        return "\n" * match.group(0).count("\n")
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`_`", text)


def sources(root):
    """{name of a page or of a folder of sources: its text}."""
    def join(pattern):
        names = sorted(glob.glob(os.path.join(root, pattern), recursive=True))
        return "\n".join(open(name, encoding="utf-8").read() for name in names)
    pages = {}
    for name in ["README.md", "CONTRIBUTING.md", *sorted(glob.glob("docs/*.md", root_dir=root))]:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            pages[name] = markdown(file.read())
    pages["include"] = join("include/neap/*.h")
    pages["man"] = join("man/*.[1-9]*")
    for folder in ("cli", "src/data", "src/train", "src/nn"):
        pages[folder] = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', join(folder + "/**/*.c")))
    pages["python"] = join("python/neap/**/*.py")
    pages["examples"] = join("examples/*.[cp]*")
    return pages


def matches(text, pattern):
    for match in re.finditer(rf"(?<![\w./-])(?:{pattern})(?![\w(/=-])", text, re.IGNORECASE | re.MULTILINE):
        yield match


def counts(pages):
    return {(name, phrase): sum(1 for _ in matches(text, pattern))
            for name, text in pages.items() for phrase, (pattern, _) in PHRASES.items()}


def show(pages, names):
    for name in names:
        for phrase, (pattern, instead) in PHRASES.items():
            for match in matches(pages[name], pattern):
                line = pages[name].count("\n", 0, match.start()) + 1
                near = pages[name][max(0, match.start() - 40):match.end() + 40].replace("\n", " ")
                print(f"{name}:{line}: {phrase} (write: {instead}): ... {near}")


def recorded(path):
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.strip() and not line.startswith("#"):
                    name, count, phrase = line.rstrip("\n").split("\t")
                    found[name, phrase] = int(count)
    return found


def write(path, now):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Counts of tools/docs/phrases.py, by page; they may only fall. Written by phrases.py --write\n")
        for (name, phrase), count in sorted(now.items()):
            if count:
                file.write(f"{name}\t{count}\t{phrase}\n")


def in_docs(now, phrase):
    return sum(count for (name, which), count in now.items()
               if which == phrase and (name == "README.md" or name.startswith("docs/")))


def main():
    parser = argparse.ArgumentParser(description="Count phrases that are hard to read; the counts may only fall.")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    parser.add_argument("--write", action="store_true", help="record the counts of today")
    parser.add_argument("--show", nargs="+", metavar="PAGE", help="print every match of these pages")
    options = parser.parse_args()
    path = os.path.join(options.root, "tools", "docs", "phrases.txt")
    pages = sources(options.root)
    if options.show:
        show(pages, options.show)
        return 0
    now, before, failed = counts(pages), recorded(path), 0
    for key, count in sorted(now.items()):
        if not options.write and count > before.get(key, 0):
            failed += 1
            print(f"phrases: {key[0]}: '{key[1]}' {count} times, {before.get(key, 0)} before. "
                  f"Write: {PHRASES[key[1]][1]}. See: tools/docs/phrases.py --show {key[0]}", file=sys.stderr)
    for phrase, limit in LIMITS.items():
        total = in_docs(now, phrase)
        print(f"phrases: README and docs: '{phrase}' {total} times, at most {limit}")
        failed += total > limit
    if options.write:
        write(path, now)
        return 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
