#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that only the programs know their command lines.

  tests/style/option_names_check.py [ROOT]

Libraries name fields and reasons (common/base/field_error.h); a program turns
fields into its options and has advice for each reason. Prints each string of a
library of ROOT (default: this repository) that names an option such as
"--lr" or a program such as `millrace verify`, each call in a library of a
function meant only for programs, each reason without advice in any program, and
each advised reason that no library gives. Exits with 1 if there are
any."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("common", "server", "client")
SUFFIXES = {".h", ".cc", ".cpp", ".cu", ".cuh"}
# The programs, and what only they use.
PROGRAMS = re.compile(r"client/(cli|flags|train/main)/|common/cli/|"
                      r"server/main\.cc$")
# Declares the functions for programs.
DECLARES = re.compile(r"common/base/field_error\.(cc|h)$")

# Comments are skipped, and strings as well, where a match could begin in them.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)'|"""
                   r"""R"(?P<tag>[^\s()]*)\((?P<raw>.*?)\)(?P=tag)"|"""
                   r""""(?P<text>(?:[^"\\\n]|\\.)*)"|"""
                   r"\b(?P<call>UsageError|UnsupportedError)\(|"
                   r'\bReason\b[^;"(]*\{\s*(?P<given>[^;{}]*)\}', re.DOTALL)
ESCAPE = re.compile(r"\\.")
OPTION = re.compile(r"(?<![\w-])--[a-z]")
PROGRAM = re.compile(r"`millrace\b|\bmillrace-(train|server)\b")
WORD = re.compile(r'"(\w+)"')
ADVICE = re.compile(r'\{\{"(\w+)"\}')


def sources(root):
    """Yields (path, text) of the sources, with paths relative to `root`."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path.relative_to(root).as_posix(), path.read_text()


def problems(root):
    given, advised = {}, {}
    for path, text in sources(root):
        if PROGRAMS.match(path):
            for match in ADVICE.finditer(text):
                advised[match[1]] = path
            continue
        for match in TOKEN.finditer(text):
            line = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
            literal = match["raw"] or match["text"] or ""
            if OPTION.search(ESCAPE.sub(" ", literal)):
                yield f"{line}: names an option: \"{literal}\""
            elif PROGRAM.search(ESCAPE.sub(" ", literal)):
                yield f"{line}: names a program: \"{literal}\""
            elif match["call"] and not DECLARES.match(path):
                yield f"{line}: {match['call']} is for programs"
            for word in WORD.findall(match["given"] or ""):
                given[word] = line
    for word in sorted(given.keys() - advised.keys()):
        yield f"{given[word]}: no program has advice for \"{word}\""
    for word in sorted(advised.keys() - given.keys()):
        yield f"{advised[word]}: no library gives the reason \"{word}\""


def main(root):
    found = list(problems(root))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else ROOT))
