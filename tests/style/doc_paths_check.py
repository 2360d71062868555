#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the paths named in the documentation exist.

  tests/style/doc_paths_check.py [ROOT]

Reads the Markdown files of ROOT (default: this repository) except CHANGELOG.md,
which mentions files that are gone. A path is text after a backtick that begins
with one of FOLDERS; one with wildcards must match something. Exits with 1 if a
path leads nowhere.
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


def documents(root):
    for path in sorted(root.rglob("*.md")):
        if not SKIPPED.intersection(path.relative_to(root).parts):
            yield path


def main(root):
    found = 0
    for document in documents(root):
        for number, line in enumerate(document.read_text().split("\n"), 1):
            for path in PATH.findall(line):
                if not any(root.glob(path.rstrip("/"))):
                    print(f"{document}:{number}: there is no {path}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else ROOT))
