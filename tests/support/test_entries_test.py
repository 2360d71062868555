#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that ctest runs each GoogleTest test exactly once.

  test_entries_test.py FOLDER

FOLDER holds the test programs, and entries.txt with a line for each ctest
entry: the program, the name of the entry, and its --gtest_filter. Programs that
have not been built are skipped.
"""
import collections
import fnmatch
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop())


def tests_of(program):
    lines = subprocess.run(
        [FOLDER / program, "--gtest_list_tests"], check=True,
        capture_output=True, text=True).stdout.splitlines()
    tests, suite = [], ""
    for line in lines:
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        else:
            tests.append(suite + name)
    return tests


def matches(test, filters):
    """Whether --gtest_filter chooses the test. The patterns have no wildcards
    but `*`."""
    return any(fnmatch.fnmatchcase(test, pattern)
               for pattern in filters.split(":"))


class TestEntries(unittest.TestCase):

    def test_each_test_is_run_once(self):
        programs = collections.defaultdict(list)
        for line in (FOLDER / "entries.txt").read_text().splitlines():
            program, entry, filters = line.split(" ")
            programs[program].append((entry, filters))
        built = [name for name in programs if (FOLDER / name).exists()]
        self.assertTrue(built, f"no test program in {FOLDER}")
        for program in built:
            runs = collections.Counter()
            tests = tests_of(program)
            for entry, filters in programs[program]:
                chosen = [test for test in tests if matches(test, filters)]
                self.assertTrue(chosen, f"{entry} runs no test of {program}")
                runs.update(chosen)
            for test in tests:
                self.assertEqual(runs[test], 1, f"{program}: {test}")


if __name__ == "__main__":
    unittest.main()
