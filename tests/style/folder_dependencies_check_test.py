#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests folder_dependencies_check.py on trees of a few files."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("folder_dependencies_check.py")
CODE_MAP = """
| folder | what it is |
|---|---|
| `common/low/`, `common/zip/` | two folders |
| `common/high/` | `one/`, `two/` |
| `server/` | a program |
| `client/` | another |
"""


def check(dependencies):
    """Checks files that include each other; returns status and output."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"README.md": CODE_MAP}
        for source, target in dependencies:
            files.setdefault(target, "")
            files[source] = files.get(source, "") + f'#include "{target}"\n'
        for name, content in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        done = subprocess.run([sys.executable, "-B", CHECK, folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class FolderDependenciesCheckTest(unittest.TestCase):
    def test_allows_upward_dependencies_and_those_within_a_row(self):
        self.assertEqual(check([("common/high/a.cc", "common/low/a.h"),
                                ("common/high/one/a.cc", "common/high/a.h"),
                                ("common/high/two/a.h", "common/high/one/a.h"),
                                ("common/zip/a.cc", "common/low/a.h"),
                                ("client/a.cc", "client/b.h"),
                                ("client/b.h", "common/zip/a.h")]), (0, ""))

    def test_finds_downward_dependencies(self):
        self.assertEqual(
            check([("common/low/a.cc", "common/high/one/a.h")]),
            (1, "common/low/a.cc includes common/high/one/a.h: "
                "below it in the code map\n"))

    def test_finds_cycles_within_a_row(self):
        status, output = check([("common/high/one/a.h", "common/high/two/a.h"),
                                ("common/high/two/b.h", "common/high/b.h"),
                                ("common/high/c.cc", "common/high/one/c.h")])
        self.assertEqual(status, 1)
        self.assertEqual(output.count("part of a cycle\n"), 3)

    def test_finds_dependencies_between_the_programs(self):
        status, output = check([("client/a.cc", "server/a.h")])
        self.assertEqual(status, 1)
        self.assertIn("the other program's", output)

    def test_finds_folders_that_the_map_lacks(self):
        self.assertEqual(check([("common/new/a.cc", "common/low/a.h")]),
                         (1, "common/new/a.cc: not in the code map\n"))


if __name__ == "__main__":
    unittest.main()
