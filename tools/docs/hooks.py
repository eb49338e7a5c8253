# SPDX-License-Identifier: Apache-2.0
"""What mkdocs does in addition to its plugins."""
import html
import os
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
sys.dont_write_bytecode = True
import c_pages  # noqa: E402
from pygments import highlight  # noqa: E402
from pygments.formatters import HtmlFormatter  # noqa: E402
from pygments.lexers import PythonLexer  # noqa: E402

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
LONG = 34  # characters of code that a narrow screen has room for
PRIVATE = re.compile(r'<p class="doc doc-class-bases">\s*Bases: <code><span[^>]*>_\w+</span></code></p>')  # a base class
CODE = re.compile(r"(<pre\b.*?</pre>)|<code>(.*?)</code>", re.DOTALL)


def unbroken(word):
    """A word of code that no line break divides; a very long one may be divided behind a slash, a comma or a dot."""
    if len(re.sub(r"&\w+;", "x", word)) <= LONG:
        return word if re.fullmatch(r"[\w.]*", word) else f'<span class="w">{word}</span>'  # browsers do not break \w
    return "<wbr>".join(f'<span class="w">{part}</span>' for part in re.split(r"(?<=[/,=+.])(?=[^/])", word))


def inline(match):
    """Code in running text; blocks stay as they are."""
    if match.group(1) or "<" in match.group(2):
        return match.group(0)
    return "<code>" + re.sub(r"\S+", lambda word: unbroken(word.group(0)), match.group(2)) + "</code>"


def python(match):
    """Code of a docstring, which names no language."""
    code = highlight(html.unescape(match.group(2)), PythonLexer(), HtmlFormatter(nowrap=True))
    return f"{match.group(1)}{code}</code>"


def table(match):
    """A table of figures gets a class: on a narrow screen its cells are one below the other."""
    return match.group(0).replace("<table>", '<table class="figures">', 1) if "<img" in match.group(0) else match.group(0)


def on_page_content(text, page, **_):
    text = re.sub(r"<table>.*?</table>", table, text, flags=re.DOTALL)
    text = re.sub(r"<p>(<img [^>]*>)</p>", r'<p class="figure">\1</p>', text)  # scrolls on a narrow screen
    text = re.sub(r"::(</p>\s*<(?:div|pre))", r":\1", text)  # docstrings end a paragraph before code with "::"
    text = PRIVATE.sub("", text)
    text = re.sub(r":(?:func|meth|class|attr|mod):(?=<code>)", "", text)  # roles of Sphinx
    if page.file.src_path.startswith("c/"):
        text = c_pages.linked(text, SOURCE)
    if page.file.src_path.startswith("reference/"):
        text = re.sub(r"(<pre><span></span><code>)([^<]*)</code>", python, text)
    return CODE.sub(inline, text)
