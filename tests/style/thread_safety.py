#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Has Clang analyse the locks of the sources that include LibTorch.

No build with Clang compiles client/tensor, client/nn and client/train, so
their thread annotations would not be checked otherwise. This checks the syntax of each of
their sources that sees an annotation, directly or through a header of the
project, with the flags of a build folder's compile_commands.json.

Usage: tests/style/thread_safety.py [BUILD_FOLDER] (default: build/release)
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ('client/tensor/', 'client/nn/', 'client/train/')
INCLUDE = re.compile(r'^#include "((?:client|common|server)/[^"]+)"', re.M)
ANNOTATION = re.compile(r'\bABSL_(GUARDED_BY|PT_GUARDED_BY|LOCKS_EXCLUDED|'
                        r'EXCLUSIVE_LOCKS_REQUIRED|SHARED_LOCKS_REQUIRED)\b')


@functools.cache
def is_annotated(path):
    """Whether the file, or a header of ours that it includes, is annotated."""
    text = (ROOT / path).read_text(encoding='utf-8')
    return bool(ANNOTATION.search(text)) or any(
        is_annotated(header) for header in INCLUDE.findall(text)
        if (ROOT / header).is_file())


def preprocessor_flags(command):
    """The flags that decide what Clang reads; the others are GCC's."""
    words = iter(shlex.split(command))
    flags = []
    for word in words:
        if word == '-isystem':
            flags += [word, next(words)]
        elif word.startswith(('-I', '-D', '-std=')) or word == '-pthread':
            flags.append(word)
    return flags


def analyse(entry):
    """Returns Clang's complaints about one source, '' for none."""
    result = subprocess.run(
        ['clang++-14', '-fsyntax-only', '-Wthread-safety', '-Werror',
         *preprocessor_flags(entry['command']), entry['file']],
        cwd=entry['directory'], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return ''
    return result.stderr or f'{entry["file"]}: status {result.returncode}\n'


def main():
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else (
        ROOT / 'build' / 'release')
    database = json.loads((build / 'compile_commands.json').read_text())
    sources = []
    for entry in database:
        file = pathlib.Path(entry['file'])
        path = (file.relative_to(ROOT).as_posix()
                if file.is_relative_to(ROOT) else '')
        if path.startswith(FOLDERS) and is_annotated(path):
            sources.append(entry)
    if not sources:
        sys.exit(f'{build}: it compiles no annotated source of '
                 f'{", ".join(FOLDERS)}; is LibTorch missing?')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = ''.join(pool.map(analyse, sources))
    print(complaints + f'{len(sources)} sources analysed')
    sys.exit(1 if complaints else 0)


if __name__ == '__main__':
    main()
