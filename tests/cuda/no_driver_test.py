#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for GPUs on a host without NVIDIA's driver: they start, refuse what
needs a GPU with two lines, and with `auto` do without one. For a build with the
static runtime, of which `.ci/run gpu` makes one.

  no_driver_test.py --bin BIN

Skipped (77) on a host with a driver.
"""
import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest


class NoDriverTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="millrace-no-driver-")
        cls.addClassCleanup(directory.cleanup)
        cls.folder = pathlib.Path(directory.name)
        subprocess.run(
            [cls.bin / "millrace", "import", "fake", "--nodes", "100",
             "--avg-degree", "4", "--features", "4", "--classes", "2", "--out",
             "graph"], cwd=cls.folder, check=True, capture_output=True)

    def digest(self, *options):
        return subprocess.run(
            [self.bin / "millrace", "digest", "--store", "graph", "--fanouts",
             "3,2", *options], cwd=self.folder, capture_output=True, text=True,
            check=False, timeout=120)

    def expect_two_lines(self, status, errors, program):
        self.assertEqual(status, 1, errors)
        lines = [line for line in errors.splitlines()
                 if line.startswith(f"{program}: ")]
        self.assertEqual(len(lines), 2, errors)
        self.assertIn("cudaErrorInsufficientDriver", lines[0])
        self.assertIn("driver 580 or later", lines[1])

    def test_refuses_what_needs_a_gpu(self):
        for option in ("--graph-memory", "--feature-memory"):
            for memory in ("cuda", "pinned"):
                with self.subTest(option=option, memory=memory):
                    run = self.digest(option, memory)
                    self.expect_two_lines(run.returncode, run.stderr,
                                          "millrace digest")

    def test_auto_does_without(self):
        plain = self.digest()
        run = self.digest("--graph-memory", "auto", "--feature-memory", "auto")
        self.assertEqual((run.returncode, run.stdout), (0, plain.stdout),
                         run.stderr)
        self.assertEqual(run.stderr.count("cudaErrorInsufficientDriver"), 4,
                         run.stderr)

    def serve(self, memory):
        return subprocess.Popen(
            [self.bin / "millrace-server", "--store", "graph", "--partition",
             "all", "--listen", "127.0.0.1:0", "--port-file", "port",
             "--graph-memory", memory], cwd=self.folder, text=True,
            stderr=subprocess.PIPE)

    def test_servers(self):
        with self.serve("cuda") as server:
            _, errors = server.communicate(timeout=60)
            self.expect_two_lines(server.returncode, errors, "millrace-server")
        with self.serve("auto") as server:
            lines = []
            for line in server.stderr:
                lines.append(line)
                if "serving partitions" in line:
                    break
            server.send_signal(signal.SIGTERM)
            _, rest = server.communicate(timeout=60)
        errors = "".join(lines) + rest
        self.assertEqual(server.returncode, 0, errors)
        self.assertIn("memory not used content=graph memory=cuda why=", errors)


def has_driver():
    return pathlib.Path("/proc/driver/nvidia/version").exists()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, words = parser.parse_known_args()
    if has_driver():
        print("skipped: this host has NVIDIA's driver")
        sys.exit(77)
    NoDriverTest.bin = args.bin.resolve()
    unittest.main(argv=[sys.argv[0], *words])
