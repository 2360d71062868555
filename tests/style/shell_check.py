#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs shellcheck over all shell scripts.

  tests/style/shell_check.py [ROOT]

A shell script is a file of ROOT (default: this repository) whose first line
names bash or sh, or has a directive of shellcheck. .shellcheckrc says what is
not checked. Exits with 1 if shellcheck finds anything or is not installed.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = {"build", ".git"}
SHELL = re.compile(rb"#!.*\b(?:ba)?sh\b|# shellcheck shell=")


def scripts(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED)
        for path in (pathlib.Path(folder, name) for name in sorted(files)):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    if SHELL.match(file.readline(200)):
                        yield path.relative_to(root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    found = list(scripts(root))
    if not found:
        sys.exit(f"no shell scripts below {root}")
    try:
        done = subprocess.run(["shellcheck", "--format=gcc", *found], cwd=root,
                              check=False)
    except FileNotFoundError:
        sys.exit("there is no shellcheck\n  install it: deploy/setup.sh --checks")
    sys.exit(1 if done.returncode else 0)


if __name__ == "__main__":
    main()
