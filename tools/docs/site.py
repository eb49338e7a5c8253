#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The documentation as one site: README and docs/*.md, the help of every command, the reference of
the Python package (mkdocstrings, from its docstrings) and of the C headers (Doxygen). Whatever
docs/ holds becomes a page. A warning of one of these programs, or a broken link, is an error.
    site.py BUILD    BUILD/neap is the tool; the site is BUILD/site
"""
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.abspath(sys.argv[1])
PAGES = os.path.join(BUILD, "site-pages")  # what mkdocs reads
SITE = os.path.join(BUILD, "site")
# Pages that teach, in the order in which they are read.
TEACH = [f"docs/{name}.md" for name in ("concepts", "first-network", "own-data", "pytorch", "own-code", "many-machines",
                                        "plans", "wrong-tool")]
# Pages for those who change neap, apart from those who use it.
PROJECT = ["CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md", "CHANGELOG.md", "SECURITY.md"]
PACKAGES = {"neap": "neap/__init__.py", "neap.schedules": None, "neap.torch": "neap/torch/__init__.py",
            "neap.jax": "neap/jax/__init__.py"}


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
    if name == "README.md":
        return "index.md"
    if name.startswith("docs/"):
        return name[len("docs/"):]
    if name.startswith("include/neap/") and name.endswith(".h"):
        return "c/" + os.path.basename(name).replace(".h", "_8h.html")
    if name in PROJECT:
        return name
    full = os.path.join(SOURCE, name)
    if os.path.isfile(full):
        end = "" if name.endswith((".svg", ".png")) else ".txt"
        write("tree/" + name + end, read(full))
        return "tree/" + name + end
    sys.exit(f"site: a page names {name}, which is not there")


def page(name):
    """A Markdown file of the tree, with links that hold within the site."""
    at = place(name)

    def link(match):
        target, _, anchor = match.group(2).partition("#")
        if not target or re.match(r"\w+:", target):
            return match.group(0)
        tree = os.path.normpath(os.path.join(os.path.dirname(name), target))
        there = os.path.relpath(place(tree), os.path.dirname(at) or ".")
        return match.group(1) + there + ("#" + anchor if anchor else "") + ")"

    parts = re.split(r"(^```.*?^```$|^    .*?$|`[^`\n]+`)", read(SOURCE, name), flags=re.DOTALL | re.MULTILINE)
    # Two brackets beside each other are text, and no link by name.
    return write(at, "".join(part if i % 2 else re.sub(r"(\]\()([^)\s]+)\)", link, part.replace("][", "]\\["))
                             for i, part in enumerate(parts)))


def title(name):
    match = re.search(r"^# (.*)$", read(SOURCE, name), re.MULTILINE)
    return match.group(1) if match else os.path.basename(name)


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
    rows = []
    for package, path in PACKAGES.items():
        text = [f"# {package}\n", f"::: {package}\n    options:\n      show_root_toc_entry: false\n" +
                ("      members: []\n" if path else "")]
        for module, names in sorted(exported(package, path).items()) if path else ():
            text += [f"::: {module}.{name}\n" for name in names]
        rows.append({package: write(f"reference/{package}.md", "\n".join(text))})
    return rows


def c_pages():
    """Doxygen's pages, and one of the site's own that lists the functions, for its search."""
    text = read(SOURCE, "tools/docs/Doxyfile.in")
    version = subprocess.run([os.path.join(SOURCE, "tools/version.py"), "--print"], check=True, text=True,
                             capture_output=True).stdout.strip()
    tags = os.path.join(BUILD, "site-tags.xml")
    text = text.replace("@VERSION@", version).replace("@OUT@", PAGES) + f"GENERATE_TAGFILE = {tags}\n"
    done = subprocess.run(["doxygen", "-"], input=text, cwd=SOURCE, text=True, stderr=subprocess.PIPE)
    if done.returncode or done.stderr:
        sys.exit(f"site: doxygen: {done.stderr}")
    out = ["# C reference\n", "[Headers](c/files.html), [structs](c/annotated.html), "
           "[all names](c/globals.html); `man 3 neap_sweep_run` has one function.\n"]
    for header in xml.parse(tags).getroot().findall("compound[@kind='file']"):
        functions = header.findall("member[@kind='function']")
        if not functions:
            continue
        out.append(f"## neap/{header.find('name').text}\n\n[The header](c/{header.find('filename').text})\n")
        for function in functions:
            said = {part: function.find(part).text or "" for part in ("type", "name", "arglist", "anchorfile", "anchor")}
            out.append(f"- `{said['type']}` [`{said['name']}`](c/{said['anchorfile']}#{said['anchor']})"
                       f"`{said['arglist']}`")
        out.append("")
    return write("c-reference.md", "\n".join(out))


shutil.rmtree(PAGES, ignore_errors=True)
shutil.rmtree(SITE, ignore_errors=True)
os.makedirs(PAGES)
for folder, _, names in os.walk(os.path.join(SOURCE, "docs")):
    for name in names:
        if not name.endswith(".md"):
            at = os.path.join(PAGES, os.path.relpath(os.path.join(folder, name), os.path.join(SOURCE, "docs")))
            os.makedirs(os.path.dirname(at), exist_ok=True)
            shutil.copy(os.path.join(folder, name), at)
guides = sorted((os.path.relpath(os.path.join(folder, name), SOURCE)
                 for folder, _, names in os.walk(os.path.join(SOURCE, "docs")) for name in names
                 if name.endswith(".md")), key=lambda name: title(name).lower())
nav = [{"neap": page("README.md")},
       {"Start": [{title(name): page(name)} for name in TEACH]},
       {"Guides": [{title(name): page(name)} for name in guides if name not in PROJECT + TEACH]},
       {"Commands": commands()}, {"Python": python_pages()}, {"C": c_pages()},
       {"Project": [{title(name).split(":")[0]: page(name)} for name in PROJECT]}]
settings = {
    "site_name": "neap", "docs_dir": PAGES, "site_dir": SITE, "use_directory_urls": False, "strict": True, "nav": nav,
    "theme": {"name": "material", "font": False, "language": "en",
              "features": ["navigation.top", "navigation.tracking", "search.highlight"],
              "palette": {"primary": "teal"}},
    "hooks": [os.path.join(SOURCE, "tools/docs/hooks.py")],
    "markdown_extensions": ["tables", "fenced_code", "sane_lists", {"toc": {"permalink": True}}, "pymdownx.highlight"],
    "plugins": ["search", "autorefs", {"mkdocstrings": {"default_handler": "python", "handlers": {"python": {
        "paths": [os.path.join(SOURCE, "python")],
        "options": {"show_source": False, "show_root_heading": True, "show_root_full_path": False,
                    "docstring_style": None, "heading_level": 2, "members_order": "source",
                    "show_if_no_docstring": False, "show_signature_annotations": True}}}}}],
}
# JSON is YAML.
with open(os.path.join(BUILD, "mkdocs.yml"), "w") as file:
    json.dump(settings, file, indent=1)
done = subprocess.run(["mkdocs", "build", "--quiet", "-f", os.path.join(BUILD, "mkdocs.yml")], stderr=subprocess.PIPE,
                      text=True)
if done.returncode or done.stderr.strip():
    sys.exit(f"site: mkdocs: {done.stderr}")
sys.exit(subprocess.run([sys.executable, os.path.join(SOURCE, "tools/docs/links.py"), SITE]).returncode)
