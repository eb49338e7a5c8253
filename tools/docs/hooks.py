# SPDX-License-Identifier: Apache-2.0
"""What mkdocs is asked to do beside its plugins: docstrings end a paragraph before code with `::`."""
import re


def on_page_content(html, **_):
    return re.sub(r"::(</p>\s*<(?:div|pre))", r":\1", html)
