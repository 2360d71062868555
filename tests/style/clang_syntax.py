#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Clang's analysis on code that no Clang build compiles.

* The product's sources that need LibTorch, which the sanitizers' build leaves
  out.
* With --headers: each header by itself. It must include all that it needs. This
  takes several minutes.

Both are only checked for errors and for warnings about locks, with the flags of
the compile_commands.json of build folders, whose generated headers must have
been built. A unity build compiles many sources as one unit, which is read as a
whole. Precompiled headers are not used, so a source must not rely on what they
happen to include.

Usage: tests/style/clang_syntax.py [--headers] BUILD_FOLDER...
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
FOLDERS = ('client', 'common', 'server', 'tests')
TORCH_FOLDERS = ('client/tensor/', 'client/nn/', 'client/train/')
# Builds without CUDA compile only some of the sources in these.
CUDA_FOLDERS = ('common/cuda/', 'server/cuda/', 'tests/cuda/', 'tests/ptxemu/')
INCLUDE = re.compile(r'^#include "((?:client|common|server|tests)/[^"]+)"',
                     re.M)
UNIT_INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


@functools.cache
def included_headers(path):
    """The project's headers that a file includes, directly or not."""
    headers = set()
    for header in INCLUDE.findall((ROOT / path).read_text(encoding='utf-8')):
        if (ROOT / header).is_file() and header not in headers:
            headers |= {header} | included_headers(header)
    return frozenset(headers)


def preprocessor_flags(command):
    """The flags that decide what Clang reads; the others are GCC's."""
    words = iter(shlex.split(command))
    flags = []
    for word in words:
        if word == '-isystem':
            flags += [word, next(words)]
        elif word.startswith(('-I', '-D', '-std=', '-m')) or word == '-pthread':
            flags.append(word)
    return flags


def complaints_about(path, entry):
    """Returns Clang's complaints about one file, '' for none. The flags are
    those of `entry`, a command of compile_commands.json."""
    result = subprocess.run(
        ['clang++-14', '-fsyntax-only', '-fdelayed-template-parsing',
         '-Wthread-safety', '-Werror',
         '-Wno-pragma-once-outside-header', '-x', 'c++',
         *preprocessor_flags(entry['command']), str(ROOT / path)],
        cwd=entry['directory'], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return ''
    return result.stderr or f'{path}: status {result.returncode}\n'


def sources_in(unit):
    """The sources that a unit of a build has the compiler read: itself, or
    those that it includes if CMake has written it for a unity build."""
    if unit.parent.name != 'Unity':
        return [unit]
    return map(pathlib.Path,
               UNIT_INCLUDE.findall(unit.read_text(encoding='utf-8')))


def sources_of(builds):
    """The project's sources, each with the command of the first build that
    compiles it."""
    sources = {}
    for build in builds:
        database = pathlib.Path(build) / 'compile_commands.json'
        for entry in json.loads(database.read_text(encoding='utf-8')):
            for file in sources_in(pathlib.Path(entry['file'])):
                if file.is_relative_to(ROOT):
                    path = file.relative_to(ROOT).as_posix()
                    if path.startswith(FOLDERS):
                        sources.setdefault(path, entry)
    return sources


def headers_with_flags(sources):
    """Each header that a source includes, with the command of one: that of its
    own folder if there is one."""
    users = {}
    for source, entry in sources.items():
        folder = os.path.dirname(source)
        for header in included_headers(source):
            if header not in users or os.path.dirname(header) == folder:
                users[header] = entry
    return users


def headers_for_cuda(sources):
    """The headers of CUDA sources that the builds do not compile."""
    return {header for folder in CUDA_FOLDERS
            for pattern in ('*.cu', '*.cc')
            for path in (ROOT / folder).rglob(pattern)
            if path.relative_to(ROOT).as_posix() not in sources
            for header in included_headers(path.relative_to(ROOT).as_posix())}


def report(kind, complaints, files):
    print(f'{"".join(complaints)}{len(files)} {kind} read')
    sys.exit(1 if any(complaints) else 0)


def read_all(files):
    """Returns Clang's complaints about files: a command that compiles each, by
    their paths."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda item: complaints_about(*item),
                             sorted(files.items())))


def check_headers(sources):
    headers = headers_with_flags(sources)
    unused = ({path.relative_to(ROOT).as_posix() for folder in FOLDERS
               for path in (ROOT / folder).rglob('*.h')}
              - set(headers) - headers_for_cuda(sources))
    report('headers', [f'{path}: no source includes it\n'
                       for path in sorted(unused)] + read_all(headers), headers)


def check_torch_sources(sources):
    torch_sources = {path: entry for path, entry in sources.items()
                     if path.startswith(TORCH_FOLDERS)}
    if not torch_sources:
        sys.exit('the builds compile no source of '
                 f'{", ".join(TORCH_FOLDERS)}; is LibTorch missing?')
    units = {entry['file']: entry for entry in torch_sources.values()}
    report('sources', read_all(units), torch_sources)


def main():
    words = sys.argv[1:]
    check = check_torch_sources
    if words[:1] == ['--headers']:
        check = check_headers
        del words[0]
    check(sources_of(words))


if __name__ == '__main__':
    main()
