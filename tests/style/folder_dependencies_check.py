#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that folders depend on each other as the README's code map says.

  tests/style/folder_dependencies_check.py [ROOT]

A file may include headers of its own row of the map and of rows above it, and
the folders of one row must not include each other cyclically. server/ and
client/ never include each other. Prints each include of ROOT (default: this
repository) that violates this, and exits with 1 if there are any."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("common", "server", "client")
SUFFIXES = {".h", ".cc", ".cpp", ".cu", ".cuh"}
ROW = re.compile(r"^\| ((?:`[\w/]+/`(?:, )?)+) \|", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include "([\w./]+)"', re.MULTILINE)


def code_map(root):
    """Returns {folder: number of its row}."""
    rows = ROW.findall((root / "README.md").read_text())
    return {folder: number for number, row in enumerate(rows)
            for folder in re.findall(r"`([^`]+)`", row)}


def row_of(path, rows):
    """The row of the deepest folder that holds the path; None if none does."""
    holders = [folder for folder in rows if path.startswith(folder)]
    return rows[max(holders, key=len)] if holders else None


def includes(root):
    """Yields (file, included file) between files of FOLDERS."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                for target in INCLUDE.findall(path.read_text()):
                    if target.startswith(FOLDERS) and (root / target).exists():
                        yield path.relative_to(root).as_posix(), target


def folder_of(path):
    return path.rpartition("/")[0]


def reaches(dependencies, start, goal):
    seen, waiting = set(), [start]
    while waiting:
        folder = waiting.pop()
        if folder == goal:
            return True
        if folder not in seen:
            seen.add(folder)
            waiting += dependencies[folder]
    return False


def problems(root):
    rows = code_map(root)
    found = list(includes(root))
    dependencies = collections.defaultdict(set)
    for source, target in found:
        if folder_of(source) != folder_of(target):
            dependencies[folder_of(source)].add(folder_of(target))
    for source, target in found:
        at, to = row_of(source, rows), row_of(target, rows)
        if at is None or to is None:
            yield f"{source if at is None else target}: not in the code map"
        elif {source.split("/")[0], target.split("/")[0]} == {"server", "client"}:
            yield f"{source} includes {target}: the other program's"
        elif to > at:
            yield f"{source} includes {target}: below it in the code map"
        elif (folder_of(source) != folder_of(target) and
              reaches(dependencies, folder_of(target), folder_of(source))):
            yield f"{source} includes {target}: part of a cycle"


def main(root):
    found = list(problems(root))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else ROOT))
