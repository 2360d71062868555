#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs gather_rates; does not check how fast anything is: gather_rates_test.py
BUILD."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop()).resolve()


class GatherRatesTest(unittest.TestCase):

    def test_prints_a_table(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [BUILD / "bin/millrace", "import", "fake", "--nodes", "200",
                 "--avg-degree", "2", "--features", "6", "--classes", "2",
                 "--out", f"{folder}/store"], check=True, capture_output=True)
            run = subprocess.run(
                [BUILD / "bench/gather_rates", f"{folder}/store", "50", "2"],
                check=True, capture_output=True, text=True)
        lines = run.stdout.splitlines()
        self.assertIn("50 rows of 24 bytes a call", lines[0])
        self.assertEqual(len(lines), 7, run.stdout)
        for line in lines[1:]:
            self.assertRegex(line, r"^[a-zA-Z' ]+ [0-9.]+ GB/s$")


if __name__ == "__main__":
    unittest.main()
