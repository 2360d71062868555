#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainers for GPUs, with the real libraries of CUDA, LibTorch and NCCL, on a
host without NVIDIA's driver: they start, refuse to train on a GPU with two
lines, and with `auto` train on the CPU and say why.

  no_driver_train_test.py --bin BIN --libraries DIR

BIN has millrace-train and millrace-train-cuda, and DIR the CUDA runtime that
LibTorch uses. Skipped (77) on a host with a driver.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIMIT = 120.0  # seconds, for anything
REASON = "cudaErrorInsufficientDriver"


class NoDriverTrainTest(unittest.TestCase):
    bin = None
    libraries = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="millrace-no-driver-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.run_program(
            "millrace", "import", "fake", "--nodes", "100", "--avg-degree", "4",
            "--features", "4", "--classes", "2", "--out", "graph", check=True)

    @classmethod
    def run_program(cls, program, *options, check=False):
        # Not the runtime of tests/ptxemu, which other tests run with.
        environment = {**os.environ, "LD_LIBRARY_PATH": str(cls.libraries)}
        return subprocess.run(
            [cls.bin / program, *options], cwd=cls.folder, env=environment,
            capture_output=True, text=True, check=check, timeout=LIMIT)

    def train(self, program, *options):
        return self.run_program(
            program, "--store", "graph", "--fanouts", "3,2", "--hidden", "8",
            "--epochs", "2", *options)

    def test_refuses_to_train_on_a_gpu(self):
        for command in (["millrace-train"], ["millrace-train-cuda"],
                        ["millrace-train", "--workers", "2"]):
            with self.subTest(command=command):
                run = self.train(*command, "--device", "cuda")
                self.assertEqual(run.returncode, 1, run.stderr)
                lines = [line for line in run.stderr.splitlines()
                         if " info train starting " not in line]
                self.assertEqual(len(lines), 2, run.stderr)
                self.assertIn(REASON, lines[0])
                self.assertIn("driver 580 or later", lines[1])
                self.assertEqual(run.stdout, "")

    def test_auto_trains_on_the_cpu_and_says_why(self):
        plain = self.train("millrace-train", "--device", "cpu")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        for program in "millrace-train", "millrace-train-cuda":
            with self.subTest(program=program):
                run = self.train(program, "--device", "auto")
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn("training on the CPU why=", run.stderr)
                self.assertIn(REASON, run.stderr)
                self.assertEqual(losses(run.stdout), losses(plain.stdout))

    def test_the_program_for_gpus_trains_on_the_cpu(self):
        plain = self.train("millrace-train")
        run = self.train("millrace-train-cuda", "--device", "cpu")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn(REASON, run.stderr)
        self.assertEqual(losses(run.stdout), losses(plain.stdout))


def losses(output):
    """The epochs' lines up to what differs between runs."""
    lines = [line.split("  ")[:2] for line in output.splitlines()
             if line.startswith("epoch ")]
    assert len(lines) == 2, output
    return lines


def has_driver():
    return pathlib.Path("/proc/driver/nvidia/version").exists()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    args, words = parser.parse_known_args()
    if has_driver():
        print("skipped: this host has NVIDIA's driver")
        sys.exit(77)
    NoDriverTrainTest.bin = args.bin.resolve()
    NoDriverTrainTest.libraries = args.libraries.resolve()
    unittest.main(argv=[sys.argv[0], *words])
