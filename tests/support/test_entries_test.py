#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that ctest runs each GoogleTest test exactly once.

  test_entries_test.py FOLDER

FOLDER holds the test programs, and entries.txt with a line for each ctest
entry: the program, the name of the entry, and its --gtest_filter. Programs that
have not been built are skipped.
"""
import collections
import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop())


def tests_of(program, *options):
    lines = subprocess.run(
        [FOLDER / program, "--gtest_list_tests", *options], check=True,
        capture_output=True, text=True).stdout.splitlines()
    tests, suite = [], ""
    for line in lines:
        name = line.split("#")[0].strip()
        if not line.startswith(" "):
            suite = name
        else:
            tests.append(suite + name)
    return tests


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
            for entry, filters in programs[program]:
                tests = tests_of(program, f"--gtest_filter={filters}")
                self.assertTrue(tests, f"{entry} runs no test of {program}")
                runs.update(tests)
            for test in tests_of(program):
                self.assertEqual(runs[test], 1, f"{program}: {test}")


if __name__ == "__main__":
    unittest.main()
