#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the paths and headings named in the documentation exist.

  tests/style/doc_paths_check.py [ROOT]

Reads the Markdown files of ROOT (default: this repository) except CHANGELOG.md,
which mentions files that are gone. A path is text after a backtick that begins
with one of FOLDERS; one with wildcards must match something. A link leads to a
file, a heading, or a heading of a file. Exits with 1 if one leads nowhere.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = (".ci", "client", "cmake", "common", "deploy", "docs", "proto",
           "server", "tests")
SKIPPED = {"build", ".git", "CHANGELOG.md"}
PATH = re.compile(r"`((?:" + "|".join(map(re.escape, FOLDERS)) +
                  r")/[\w.*/-]*)[^`\n]*`")
LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def documents(root):
    for path in sorted(root.rglob("*.md")):
        if not SKIPPED.intersection(path.relative_to(root).parts):
            yield path


def anchors(document):
    """The names of the headings, as GitHub derives them."""
    names = set()
    for heading in HEADING.findall(CODE_BLOCK.sub("", document.read_text())):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.add(re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-"))
    return names


def leads_nowhere(document, path, anchor):
    target = document.parent / path if path else document
    if not target.exists():
        return True
    return bool(anchor) and target.suffix == ".md" and (
        anchor not in anchors(target))


def problems(root, document):
    for number, line in enumerate(document.read_text().split("\n"), 1):
        for path in PATH.findall(line):
            if not any(root.glob(path.rstrip("/"))):
                yield number, path
        for path, anchor in LINK.findall(line):
            if leads_nowhere(document, path, anchor):
                yield number, f"{path}#{anchor}" if anchor else path


def main(root):
    found = 0
    for document in documents(root):
        for number, target in problems(root, document):
            print(f"{document}:{number}: there is no {target}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else ROOT))
