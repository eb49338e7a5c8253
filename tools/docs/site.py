#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The documentation as one site: README and docs/*.md, the help of every command, the reference of the Python package
(mkdocstrings, from its docstrings) and of the C headers (c_pages.py). Whatever docs/ holds becomes a page. A warning of
one of these programs, or a broken link, is an error.
    site.py BUILD    BUILD/neap is the tool; the site is BUILD/site
"""
import ast
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import c_pages  # noqa: E402

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(sys.argv[1])
PAGES = os.path.join(BUILD, "site-pages")  # what mkdocs reads
SITE = os.path.join(BUILD, "site")
# Pages of docs/ in reading order, by heading of the navigation. A page that is not listed comes last among the guides.
ORDER = {
    "Start": ("index", "README", "concepts", "pytorch", "first-network", "own-code", "wrong-tool"),
    "Guides": ("python", "long-contexts", "jax", "own-data", "data", "events", "speech", "cells", "cell-files", "answers",
               "runs", "long-sequences", "journal", "weights", "gpu", "many-machines"),
    "Reference": ("plan-format", "glossary"),
    "Background": ("plans", "performance", "compare-checkpoint", "compare-jax", "compare-petsc", "measurements", "learning",
                   "planning-benchmark", "lower-bound", "study", "expectations"),
    "Development": ("CONTRIBUTING", "architecture", "CHANGELOG", "SECURITY"),
}
TOP = ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")  # pages of the project's root
TITLES = {"README": "Overview", "index": "neap"}  # where the page's own title is not what the navigation shows
PACKAGES = {"neap.torch": "neap/torch/__init__.py", "neap.jax": "neap/jax/__init__.py", "neap": "neap/__init__.py",
            "neap.schedules": None}
FIRST = ("scan", "Scan", "value_and_grad", "plan")  # what most readers look for, first on its page


def read(*path):
    with open(os.path.join(*path)) as file:
        return file.read()


def write(name, text):
    path = os.path.join(PAGES, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    return name


def place(name):
    """Where the site has a file of the tree; a file that is no page is copied to tree/."""
    for package, path in PACKAGES.items():
        if name == f"python/{path}":
            return f"reference/{package}.md"
    if name in [f"{one}.md" for one in TOP]:
        return name.replace("README", "overview")
    if name.startswith("docs/"):
        return name[len("docs/"):]
    if name.startswith("include/neap/") and name.endswith(".h"):
        return c_pages.place(os.path.basename(name))
    full = os.path.join(SOURCE, name)
    if name.endswith(".ipynb"):
        return f"notebooks/{os.path.basename(name)[:-len('.ipynb')]}.md"
    if os.path.isfile(full):
        end = "" if name.endswith((".svg", ".png")) else ".txt"
        write("tree/" + name + end, read(full))
        return "tree/" + name + end
    sys.exit(f"site: a page names {name}, which is not there")


def page(name, text=None):
    """A Markdown file of the tree, or another text in its place, with links that hold within the site."""
    at = place(name)

    def link(match):
        target, _, anchor = match.group(2).partition("#")
        if not target or re.match(r"\w+:", target):
            return match.group(0)
        tree = os.path.normpath(os.path.join(os.path.dirname(name), target))
        there = os.path.relpath(place(tree), os.path.dirname(at) or ".")
        return match.group(1) + there + ("#" + anchor if anchor else "") + ")"

    parts = re.split(r"(^```.*?^```$|^    .*?$|`[^`\n]+`)", text or read(SOURCE, name), flags=re.DOTALL | re.MULTILINE)
    # Two brackets beside each other are text, and no link by name.
    return write(at, "".join(part if i % 2 else re.sub(r"(\]\()([^)\s]+)\)", link, part.replace("][", "]\\["))
                             for i, part in enumerate(parts)))


def notebooks():
    """A page for each notebook: its cells, with the output that the file contains."""
    rows = []
    for name in sorted(os.listdir(os.path.join(SOURCE, "examples", "notebooks"))):
        path, stem = f"examples/notebooks/{name}", os.path.splitext(name)[0]
        parts, pictures = [], 0
        shutil.copy(os.path.join(SOURCE, path), os.path.join(PAGES, os.path.dirname(place(path)), name))
        for cell in json.loads(read(SOURCE, path))["cells"]:
            source = "".join(cell["source"])
            parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
            for out in cell.get("outputs", ()):
                drawing = "".join(out.get("data", {}).get("image/svg+xml", ""))
                if out["output_type"] == "stream":
                    parts.append("```text\n" + "".join(out["text"]).rstrip("\n") + "\n```")
                elif drawing:
                    pictures += 1
                    write(f"notebooks/{stem}-{pictures}.svg", drawing)
                    parts.append(f'<p><img alt="drawing {pictures}" src="{stem}-{pictures}.svg"></p>')
        heading, _, first = parts[0].partition("\n")
        parts[0] = f"{heading}\n\nThis page shows a notebook with its output: <a href=\"{name}\">{name}</a>.\n{first}"
        rows.append({heading.strip("# "): page(path, "\n\n".join(parts))})
    return rows


def file_of(name):
    """The file of a page that ORDER names."""
    return f"{name}.md" if name in TOP else f"docs/{name}.md"


def title(name):
    match = re.search(r"^# (.*)$", read(SOURCE, file_of(name)), re.MULTILINE)
    return TITLES.get(name) or (match.group(1).split(":")[0] if match else name)


def commands():
    """A page for each manual page of the tool: both have the tool's own help."""
    def text(*command):
        return subprocess.run([os.path.join(BUILD, "neap"), *command, "--help"], capture_output=True, text=True,
                              check=True).stdout
    main = text()
    names = re.findall(r"^  (\S+) +", main, re.MULTILINE)
    rows = []
    for name in names:
        rows.append({name: write(f"commands/{name}.md", f"# neap {name}\n\n`man neap-{name}` has the same.\n\n"
                                                        f"```text\n{text(name)}```\n")})
    linked = "\n".join(f"- [neap {name}]({name}.md)" for name in names)
    return [{"neap": write("commands/index.md", f"# Commands\n\n{linked}\n\n```text\n{main}```\n")}, *rows]


def exported(package, path):
    """The names that a package offers, by the module that defines each; its own in None."""
    tree = ast.parse(read(SOURCE, "python", path))
    names = next(ast.literal_eval(node.value) for node in tree.body
                 if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__")
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
            for alias in node.names:
                if alias.name in names or node.module == "sweeps":
                    modules.setdefault(f"{base}.{node.module}", []).append(alias.name)
    return modules


def python_pages():
    """A page for each package: its head, then what it offers, the most used first."""
    rows = []
    for package, path in PACKAGES.items():
        text = [f"# {package}\n", f"::: {package}\n    options:\n      show_root_toc_entry: false\n"
                "      show_root_heading: false\n" + ("      members: []\n" if path else "")]
        offered = [(module, name) for module, names in exported(package, path).items() for name in names] if path else []
        for module, name in sorted(offered, key=lambda one: (FIRST.index(one[1]) if one[1] in FIRST else len(FIRST),
                                                             one[1].lower())):
            text += [f"::: {module}.{name}\n"]
        rows.append({package: write(f"reference/{package}.md", "\n".join(text))})
    return rows


def navigation():
    """Every page, under the headings of ORDER; the references come first under theirs."""
    listed = {name for names in ORDER.values() for name in names}
    others = sorted(os.path.relpath(os.path.join(folder, name), os.path.join(SOURCE, "docs"))[:-3]
                    for folder, _, names in os.walk(os.path.join(SOURCE, "docs")) for name in names if name.endswith(".md"))
    rows = []
    for heading, names in ORDER.items():
        if heading == "Guides":
            names = [*names, *(name for name in others if name not in listed)]
        under = [{title(name): page(file_of(name))} for name in names]
        if heading == "Reference":
            under = [{"Python": python_pages()}, {"C": c_pages.write_pages(SOURCE, write)}, {"Commands": commands()},
                     *under]
        rows.append({heading: under + (notebooks() if heading == "Start" else [])})
    return rows


shutil.rmtree(PAGES, ignore_errors=True)
shutil.rmtree(SITE, ignore_errors=True)
os.makedirs(os.path.join(PAGES, "notebooks"))
for folder, _, names in os.walk(os.path.join(SOURCE, "docs")):
    for name in names:
        if not name.endswith(".md"):
            at = os.path.join(PAGES, os.path.relpath(os.path.join(folder, name), os.path.join(SOURCE, "docs")))
            os.makedirs(os.path.dirname(at), exist_ok=True)
            shutil.copy(os.path.join(folder, name), at)
shutil.copy(os.path.join(SOURCE, "tools/docs/site.css"), os.path.join(PAGES, "site.css"))


def palette(scheme, prefers, icon, other):
    """One of two colour schemes; the first visit follows the system, then the choice of the toggle is kept."""
    return {"media": f"(prefers-color-scheme: {prefers})", "scheme": scheme, "primary": "teal", "accent": "teal",
            "toggle": {"icon": icon, "name": f"Switch to {other} mode"}}


settings = {
    "site_name": "neap", "docs_dir": PAGES, "site_dir": SITE, "use_directory_urls": False, "strict": True,
    "nav": navigation(), "extra_css": ["site.css"],
    "theme": {"name": "material", "font": False, "language": "en",
              "features": ["navigation.top", "navigation.tracking", "navigation.tabs", "navigation.sections",
                           "search.highlight"],
              "palette": [palette("default", "light", "material/weather-night", "dark"),
                          palette("slate", "dark", "material/weather-sunny", "light")]},
    "hooks": [os.path.join(SOURCE, "tools/docs/hooks.py")],
    "markdown_extensions": ["tables", "sane_lists", "attr_list", {"toc": {"permalink": True}},
                            {"pymdownx.highlight": {"guess_lang": False}}, "pymdownx.superfences"],
    "plugins": ["search", "autorefs", {"mkdocstrings": {"default_handler": "python", "handlers": {"python": {
        "paths": [os.path.join(SOURCE, "python")],
        "options": {"show_source": False, "show_root_heading": True, "show_root_full_path": False,
                    "docstring_style": "sphinx", "docstring_section_style": "table", "heading_level": 2,
                    "members_order": "source", "filters": ["!^_"], "separate_signature": True, "line_length": 80,
                    "show_if_no_docstring": False, "show_signature_annotations": True,
                    "merge_init_into_class": True}}}}}],
}
# JSON is YAML.
with open(os.path.join(BUILD, "mkdocs.yml"), "w") as file:
    json.dump(settings, file, indent=1)
done = subprocess.run(["mkdocs", "build", "--quiet", "-f", os.path.join(BUILD, "mkdocs.yml")], stderr=subprocess.PIPE,
                      text=True)
if done.returncode or done.stderr.strip():
    sys.exit(f"site: mkdocs: {done.stderr}")
sys.exit(any([subprocess.run([sys.executable, os.path.join(SOURCE, "tools/docs", check), SITE]).returncode
              for check in ("links.py", "narrow.py")]))
