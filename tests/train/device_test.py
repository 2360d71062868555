# SPDX-License-Identifier: Apache-2.0
"""millrace-train --device: millrace-train-cuda runs in its place, or it says
why not. Scripts take the place of millrace-train-cuda."""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT = 90.0  # seconds, for anything


class DeviceTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="millrace-device-")
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        shutil.copy(cls.bin / "millrace-train", cls.work)
        subprocess.run(
            [cls.bin / "millrace", "import", "fake", "--nodes", "60",
             "--avg-degree", "3", "--features", "4", "--classes", "2", "--out",
             "graph"], cwd=cls.work, check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def train(self, device, *options, cuda=None):
        """Runs the program beside a millrace-train-cuda that is this script."""
        program = self.work / "millrace-train-cuda"
        program.unlink(missing_ok=True)
        if cuda is not None:
            program.write_text("#!/bin/sh\n" + cuda, encoding="utf-8")
            program.chmod(0o755)
        return subprocess.run(
            [self.work / "millrace-train", "--store", "graph", "--fanouts",
             "2,2", "--hidden", "4", "--epochs", "1", "--device", device,
             *options], cwd=self.work, capture_output=True, text=True,
            check=False, timeout=LIMIT)

    def check_refusal(self, run, *lines):
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(run.stderr.splitlines(),
                         [f"millrace-train: {line}" for line in lines])

    def check_cpu(self, run, reason):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"training on the CPU: {reason}\n", run.stderr)
        self.assertIn("epoch 0  loss", run.stdout)

    def test_says_that_the_program_for_gpus_is_missing(self):
        missing = (f"training on GPUs needs {self.work}/millrace-train-cuda, "
                   "which is not there")
        self.check_refusal(
            self.train("cuda"), missing,
            "build it with -DMILLRACE_CUDA=ON after deploy/setup.sh --cuda "
            "--torch cuda, or use --device cpu")
        self.check_cpu(self.train("auto"), missing)

    def test_says_why_the_program_for_gpus_cannot_train(self):
        script = ("echo a warning of a library >&2\n"
                  "echo millrace-train: no driver >&2\n"
                  "echo millrace-train: install it >&2\nexit 1\n")
        self.check_refusal(self.train("cuda", cuda=script), "no driver",
                           "install it")
        self.check_cpu(self.train("auto", cuda=script), "no driver")

    def test_says_which_library_is_missing(self):
        script = "echo cannot load libcublas.so.13 >&2\nexit 127\n"
        self.check_refusal(
            self.train("cuda", cuda=script),
            "millrace-train-cuda ended with status 127: cannot load "
            "libcublas.so.13",
            "install what it lacks with deploy/setup.sh --torch cuda, or use "
            "--device cpu")

    def test_runs_the_program_for_gpus_with_its_arguments(self):
        script = ('[ "$*" = --probe-device ] && exit 0\necho "$@"\nexit 7\n')
        for device in "cuda", "auto":
            run = self.train(device, "--workers", "2", cuda=script)
            self.assertEqual(run.returncode, 7, run.stderr)
            self.assertEqual(
                run.stdout, "--store graph --fanouts 2,2 --hidden 4 --epochs 1 "
                f"--device {device} --workers 2\n")

    def test_wrong_options_show_first(self):
        script = "echo started >&2\nexit 0\n"
        for options in ("--device", "tpu"), ("--metric", "mrr"):
            run = self.train("cuda", *options, cuda=script)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(options[1], run.stderr)
            self.assertNotIn("started", run.stderr)

    def test_the_cpu_needs_no_other_program(self):
        run = self.train("cpu", cuda="echo started >&2\nexit 1\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("started", run.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    DeviceTest.bin = flags.bin.resolve()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
