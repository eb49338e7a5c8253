#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The version stands in include/neap/version.h; Meson reads it there, and the libraries, pkg-config,
the wheel and the manual pages get it from Meson. CITATION.cff, CHANGELOG.md and debian/changelog
are texts that name it as well: prints where one disagrees and exits 1.
    version.py             checks
    version.py --print     the version alone
    version.py --set X.Y.Z writes it, with the date of today, and opens CHANGELOG.md's heading
"""
import datetime
import email.utils
import os
import re
import sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
HEADER = "include/neap/version.h"
NUMBER = r"(#define NEAP_VERSION_NUMBER )(\d+)"
# file, the pattern whose second group is the version
PLACES = {
    HEADER: r'(#define NEAP_VERSION ")([^"]*)',
    "CITATION.cff": r"(?m)(^version: )(\S+)",
    "CHANGELOG.md": r"(?m)(^## )(\S+)$",
    "debian/changelog": r"(\Aneap \()([^)]*)",
}


def read(name):
    with open(name) as file:
        return file.read()


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


def number(version):
    major, minor, patch = map(int, version.split("."))
    return 10000 * major + 100 * minor + patch


def found(name):
    match = re.search(PLACES[name], read(name))
    return match.group(2) if match else "no version"


def set_to(version):
    today = datetime.datetime.now(datetime.timezone.utc)
    text = re.sub(PLACES[HEADER], rf"\g<1>{version}", read(HEADER))
    write(HEADER, re.sub(NUMBER, rf"\g<1>{number(version)}", text))
    text = re.sub(PLACES["CITATION.cff"], rf"\g<1>{version}", read("CITATION.cff"))
    write("CITATION.cff", re.sub(r"(?m)^date-released: \S+", f"date-released: {today:%Y-%m-%d}", text))
    if found("CHANGELOG.md") != version:
        write("CHANGELOG.md", read("CHANGELOG.md").replace("\n## ", f"\n## {version}\n\n## ", 1))
    if found("debian/changelog") != version:
        entry = re.match(r"neap.*?\n -- .*?>", read("debian/changelog"), re.DOTALL).group(0)
        entry = re.sub(PLACES["debian/changelog"], rf"\g<1>{version}", entry)
        write("debian/changelog",
              f"{entry}  {email.utils.format_datetime(today)}\n\n{read('debian/changelog')}")


if sys.argv[1:2] == ["--set"]:
    if len(sys.argv) != 3 or not re.fullmatch(r"\d+\.\d\d?\.\d\d?", sys.argv[2]):
        sys.exit("usage: version.py --set X.Y.Z, with Y and Z below 100")
    set_to(sys.argv[2])
version = found(HEADER)
if sys.argv[1:] == ["--print"]:
    print(version)
wrong = [f"{name} says {found(name)}, {HEADER} {version}" for name in PLACES if found(name) != version]
if re.search(NUMBER, read(HEADER)).group(2) != str(number(version)):
    wrong.append(f"{HEADER}: NEAP_VERSION_NUMBER is not {number(version)}")
for line in wrong:
    print(f"version: {line}", file=sys.stderr)
sys.exit(bool(wrong))
