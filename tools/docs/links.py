#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Every link of a built site: its file is there, its anchor is in that file, and scripts, styles,
fonts and pictures come from the site itself. Prints what is broken and exits 1.
    links.py SITE
"""
import html.parser
import os
import re
import sys
import urllib.parse

SITE = os.path.abspath(sys.argv[1])
LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("object", "data")}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or name == "name" and tag == "a":
                self.anchors.add(value)
            if name in ("href", "src", "data") and tag != "meta" and value:
                outside = tag == "link" and dict(attributes).get("rel") in ("canonical", "next", "prev")
                self.links.append((tag, value, (tag, name) in LOADS and not outside))


pages, broken, count = {}, [], 0
for folder, _, names in os.walk(SITE):
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".html"):
            with open(path, errors="replace") as file:
                pages[path] = Page(file.read())
        elif name.endswith(".css"):
            with open(path, errors="replace") as file:
                for url in re.findall(r"(?:url\(|@import )\s*['\"]?((?:https?:)?//[^'\")]+)", file.read()):
                    broken.append(f"{os.path.relpath(path, SITE)}: loads {url}")
for path, page in sorted(pages.items()):
    for tag, value, loads in page.links:
        count += 1
        parts = urllib.parse.urlsplit(value)
        here = os.path.relpath(path, SITE)
        if parts.scheme or parts.netloc:
            if loads and parts.scheme not in ("data", "javascript"):
                broken.append(f"{here}: loads {value}")
            continue
        to = urllib.parse.unquote(parts.path)
        target = os.path.normpath(os.path.join(SITE if to.startswith("/") else os.path.dirname(path), to.lstrip("/"))) \
            if to else path
        if os.path.isdir(target):
            target = os.path.join(target, "index.html")
        anchor = urllib.parse.unquote(parts.fragment)
        if not os.path.exists(target):
            broken.append(f"{here}: {value} is not there")
        elif anchor and target in pages and anchor not in pages[target].anchors and anchor != "top":
            broken.append(f"{here}: {value}: no such anchor")
for line in broken:
    print(f"links: {line}", file=sys.stderr)
print(f"links: {count} in {len(pages)} pages, {len(broken)} broken")
sys.exit(bool(broken) or not pages)
