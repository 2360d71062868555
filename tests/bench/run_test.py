#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs run.py in a checkout where nothing is built: run_test.py BUILD.

A stand-in for cmake "builds" by linking to the programs in the folder BUILD.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
NODES = 2000
CMAKE = """#!/bin/bash
echo "$*" >>"$CHECKOUT/cmake.txt"
[[ $1 == --build ]] || exit 0
while [[ $1 != --target ]]; do shift; done
for target in "${@:2}"; do
  for folder in bin bench; do
    [[ -x $BUILD/$folder/$target ]] || continue
    mkdir -p "$CHECKOUT/build/release/$folder"
    ln -s "$BUILD/$folder/$target" "$CHECKOUT/build/release/$folder"
  done
done
"""


def write_graph(folder):
    folder.mkdir()
    rng = np.random.default_rng(1)
    arrays = {"edge_index": rng.integers(0, NODES, (2, 5 * NODES)),
              "node_feat": rng.random((NODES, 4), np.float32),
              "node_label": rng.integers(0, 3, NODES),
              "train_idx": np.arange(0, NODES, 2)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


class RunTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.checkout = pathlib.Path(temporary.name)
        for file in ("tests/bench/run.py", "deploy/lib.sh"):
            copy = self.checkout / file
            copy.parent.mkdir(parents=True)
            shutil.copy(ROOT / file, copy)
        (self.checkout / "tools").mkdir()
        for tool in ("bash", "awk", "nproc", "dirname", "mkdir", "ln", "tail"):
            os.symlink(shutil.which(tool), self.checkout / "tools" / tool)
        write_graph(self.checkout / "graph")

    def add_cmake(self, text=CMAKE):
        cmake = self.checkout / "tools" / "cmake"
        cmake.write_text(text)
        cmake.chmod(0o755)

    def run_it(self, *options):
        """Runs run.py with only the checkout's tools added to PATH."""
        return subprocess.run(
            [sys.executable, "-B", self.checkout / "tests/bench/run.py",
             self.checkout / "graph", "--batches", "2", "--repeat", "1",
             *options], check=False, text=True, capture_output=True,
            env={"PATH": str(self.checkout / "tools"), "BUILD": str(BUILD),
                 "CHECKOUT": str(self.checkout),
                 # Where ctest finds libraries for the programs.
                 "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})

    def assert_fails(self, done, *texts):
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_builds_what_it_runs(self):
        self.add_cmake()
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("building millrace millrace-server baseline",
                      done.stderr)
        calls = (self.checkout / "cmake.txt").read_text().splitlines()
        self.assertEqual(len(calls), 2, calls)
        self.assertIn("--preset release", calls[0])
        self.assertIn("--target millrace millrace-server baseline ", calls[1])
        for row in ("2 server(s) of 2 partition(s), 1 client",
                    "1 server, features as float16",
                    "1 server, float16 / float32"):
            self.assertIn(f"| {row} |", done.stdout)

    def test_builds_nothing_where_programs_are_named(self):
        self.add_cmake()
        done = self.run_it("--bin", BUILD / "bin",
                           "--bench", BUILD / "bench")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.checkout / "cmake.txt").exists())

    def test_says_what_to_do_without_cmake(self):
        self.assert_fails(self.run_it(), "cmake is not in PATH",
                          "run deploy/setup.sh")

    def test_says_what_to_do_when_the_build_fails(self):
        self.add_cmake("#!/bin/bash\necho no compiler\nexit 1\n")
        self.assert_fails(self.run_it(), "no compiler",
                          "millrace millrace-server baseline could not be built")

    def test_names_programs_that_are_missing(self):
        self.assert_fails(self.run_it("--bin", self.checkout),
                          f"there is no program {self.checkout}/millrace\n",
                          "--bin")

    def test_passes_on_errors_of_programs(self):
        os.remove(self.checkout / "graph/train_idx.npy")
        self.assert_fails(self.run_it("--bin", BUILD / "bin",
                                      "--bench", BUILD / "bench"),
                          "train_idx.npy", "millrace import failed")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
