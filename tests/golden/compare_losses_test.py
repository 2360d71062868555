#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_losses.py finds a build equal to itself, and another seed's losses
different."""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "compare_losses.py"


class CompareLossesTest(unittest.TestCase):
    bin = None

    def compare(self, other, only):
        return subprocess.run(
            [sys.executable, "-B", SCRIPT, self.bin, other, "--only", only],
            text=True, capture_output=True, check=False)

    def test_a_build_is_equal_to_itself(self):
        done = self.compare(self.bin, "^rgcn with|^resumed from")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 training runs, 0 different\n", done.stdout)

    def test_another_seed_is_different(self):
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder)
            for program in ("millrace", "millrace-server"):
                (other / program).symlink_to(self.bin / program)
            train = other / "millrace-train"
            train.write_text(
                f'#!/bin/sh\nexec "{self.bin}/millrace-train" "$@" --seed 2\n')
            train.chmod(0o755)
            done = self.compare(other, "^rgcn$")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("DIFFERENT  rgcn: metrics.json, line 1 differs: ",
                      done.stdout)
        self.assertIn("1 training runs, 1 different\n", done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    CompareLossesTest.bin = flags.bin.resolve()
    unittest.main(argv=[__file__, "-v", *rest])
