# SPDX-License-Identifier: Apache-2.0
"""millrace-train --device: millrace-train-cuda runs in its place, or it says
why not. Scripts take the place of millrace-train-cuda."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402

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

    def command(self, *options, cuda=None):
        """Puts a script in the place of millrace-train-cuda."""
        program = self.work / "millrace-train-cuda"
        program.unlink(missing_ok=True)
        if cuda is not None:
            program.write_text("#!/bin/sh\n" + cuda, encoding="utf-8")
            program.chmod(0o755)
        return [self.work / "millrace-train", "--store", "graph", "--fanouts",
                "2,2", "--hidden", "4", "--epochs", "1", *options]

    def run_command(self, *options, cuda=None):
        return subprocess.run(self.command(*options, cuda=cuda), cwd=self.work,
                              capture_output=True, text=True, check=False,
                              timeout=LIMIT)

    def train(self, device, *options, cuda=None):
        return self.run_command("--device", device, *options, cuda=cuda)

    def errors(self, run):
        """The lines of stderr but for the event at the start."""
        return [line for line in run.stderr.splitlines()
                if " info train starting " not in line]

    def check_refusal(self, run, *lines):
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(self.errors(run),
                         [f"millrace-train: {line}" for line in lines])

    def check_cpu(self, run, reason):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f'training on the CPU why="{reason}"\n', run.stderr)
        self.assertIn("epoch 0  loss", run.stdout)

    def test_says_that_the_program_for_gpus_is_missing(self):
        missing = (f"training on GPUs needs {self.work}/millrace-train-cuda, "
                   "which is not there")
        self.check_refusal(
            self.train("cuda"), missing,
            "install the package of this name, or build it with "
            "-DMILLRACE_CUDA=ON after deploy/setup.sh --cuda --torch cuda; or "
            "use --device cpu")
        self.check_cpu(self.train("auto"), missing)
        self.check_refusal(
            self.run_command("--workers", "gpus"), missing,
            "install the package of this name, or build it with "
            "-DMILLRACE_CUDA=ON after deploy/setup.sh --cuda --torch cuda; or "
            "use --device cpu")

    def test_says_why_the_program_for_gpus_cannot_train(self):
        script = ("echo a warning of a library >&2\n"
                  "echo millrace-train: no driver >&2\n"
                  "echo millrace-train: install it >&2\nexit 1\n")
        self.check_refusal(self.train("cuda", cuda=script), "no driver",
                           "install it")
        self.check_cpu(self.train("auto", cuda=script), "no driver")
        self.check_refusal(self.run_command("--workers", "gpus", cuda=script),
                           "no driver", "install it")
        run = self.train("auto", "--workers", "gpus", cuda=script)
        self.check_cpu(run, "no driver")
        self.assertEqual(run.stderr.count("training on the CPU"), 1)

    def test_auto_takes_the_cpu_whatever_the_backend(self):
        script = "echo millrace-train: no driver >&2\nexit 1\n"
        run = self.train("auto", "--backend", "nccl", "--workers", "2",
                         cuda=script)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn('training on the CPU, with gloo instead of nccl why="no '
                      'driver"\n', run.stderr)

    def test_tells_the_other_ranks_why_it_cannot_train(self):
        group = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        script = ("echo millrace-train: no driver on $LOCAL_RANK >&2\n"
                  "echo millrace-train: install it >&2\nexit 1\n")
        ranks = [
            subprocess.Popen(
                self.command("--device", device, cuda=script), cwd=self.work,
                env={**os.environ, **group, "RANK": str(rank),
                     "LOCAL_RANK": str(rank)}, text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for rank, device in enumerate(("cpu", "cuda"))]
        errors = [rank.communicate(timeout=LIMIT)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [1, 1], errors)
        self.assertIn("millrace-train: rank 1 failed: no driver on 1\n"
                      "millrace-train: install it\n", errors[0])
        self.assertIn("millrace-train: no driver on 1\n", errors[1])

    def test_probes_the_device_of_its_rank(self):
        script = 'echo "millrace-train: $*" >&2\nexit 1\n'
        for options, probe in (((), "--probe-device"),
                               (("--workers", "1"), "--probe-device alone"),
                               (("--workers", "gpus"), "--probe-device alone")):
            run = self.train("cuda", *options, cuda=script)
            self.assertEqual(self.errors(run)[0], f"millrace-train: {probe}")

    def test_says_which_library_is_missing(self):
        script = "echo cannot load libcublas.so.13 >&2\nexit 127\n"
        self.check_refusal(
            self.train("cuda", cuda=script),
            "millrace-train-cuda ended with status 127: cannot load "
            "libcublas.so.13",
            "install what it lacks with deploy/setup.sh --torch cuda, or use "
            "--device cpu")

    def test_runs_the_program_for_gpus_with_its_arguments(self):
        script = ('[ "$1" = --probe-device ] && exit 0\necho "$@"\nexit 7\n')
        for device in "cuda", "auto":
            run = self.train(device, "--workers", "2", cuda=script)
            self.assertEqual(run.returncode, 7, run.stderr)
            self.assertEqual(
                run.stdout, "--store graph --fanouts 2,2 --hidden 4 --epochs 1 "
                f"--device {device} --workers 2\n")
        run = self.run_command("--workers", "gpus", cuda=script)
        self.assertEqual(run.returncode, 7, run.stderr)
        self.assertEqual(run.stdout, "--store graph --fanouts 2,2 --hidden 4 "
                         "--epochs 1 --workers gpus\n")

    def test_wrong_options_show_first(self):
        script = "echo started >&2\nexit 0\n"
        for options in ("--device", "tpu"), ("--metric", "mrr"):
            run = self.train("cuda", *options, cuda=script)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(options[1], run.stderr)
            self.assertNotIn("started", run.stderr)
        for options in (("--workers", "gpus"), ("--backend", "nccl")):
            run = self.train("cpu", *options, cuda=script)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(" ".join(options), run.stderr)
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
