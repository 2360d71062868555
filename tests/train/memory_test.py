# SPDX-License-Identifier: Apache-2.0
"""Numbers from a user that would take all memory: each program exits with
status 1, says what it needed, and takes little. A limit on address space stands
in for the memory of a small host."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from limited_run import run_within  # noqa: E402  (its folder comes first)

MB = 1 << 20
LIMIT = 8192 * MB  # address space, part of which the libraries take
LITTLE = 2048 * MB  # memory
SECONDS = 120  # then a program is killed


class MemoryTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-memory-")
        cls.folder = pathlib.Path(cls.directory.name)
        labels = np.arange(2000) % 7
        cls.make("plain", labels)
        labels[5] = 10_000_000
        cls.sentinel = cls.make("sentinel", labels)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @classmethod
    def make(cls, name, labels):
        """Imports a small graph; returns the import's messages."""
        random = np.random.default_rng(1)
        files = {"edges": random.integers(0, 2000, (2, 20000)),
                 "features": random.random((2000, 8), np.float32),
                 "labels": labels, "train": np.arange(1000)}
        command = ["import", "npy", "--json", "--out", cls.folder / name]
        for option, values in files.items():
            np.save(cls.folder / f"{option}.npy", values)
            command += [f"--{option}", cls.folder / f"{option}.npy"]
        return subprocess.run([cls.bin / "millrace", *map(str, command)],
                              capture_output=True, text=True, check=True)

    def run_limited(self, program, *arguments, limit=LIMIT):
        """Returns status and errors of a program that must take little memory."""
        command = [str(word) for word in (self.bin / program, *arguments)]
        ended = run_within(command, SECONDS, limit)
        self.assertLess(ended.peak, LITTLE)
        return ended.status, ended.errors

    def refused(self, program, *arguments, limit=LIMIT):
        status, errors = self.run_limited(program, *arguments, limit=limit)
        self.assertEqual(status, 1, errors)
        self.assertNotIn("bug", errors)
        return errors

    def sweep(self, message, program, *arguments):
        """Increases the memory until `message` appears: wherever the limit is
        hit, the program must end with a message."""
        for limit in range(64 * MB, LIMIT, 8 * MB):
            status, errors = self.run_limited(program, *arguments, limit=limit)
            if status == 127:  # too little even for the libraries
                continue
            self.assertEqual(status, 1, f"{limit}: {errors}")
            self.assertNotIn("bug", errors)
            if message in errors:
                return
        self.fail(f"no limit produced: {message}")

    def train(self, store, *more):
        return self.refused("millrace-train", "--store", self.folder / store,
                            "--fanouts", "5,5", "--batch-size", 256,
                            "--epochs", 1, "--threads", 1, *more)

    def test_import_and_inspect_count_classes(self):
        note = ("most of the 10000001 classes of node have no node: the "
                "largest label is 10000000, of node 5")
        self.assertIn(note, self.sentinel.stderr)
        summary = {"labelled": 2000, "classes": 10000001, "largest": 10000000,
                   "largest_node": 5, "sparse": True}
        self.assertEqual(json.loads(self.sentinel.stdout)["labels"]["node"],
                         summary)

        def inspect(store, *more):
            return subprocess.run(
                [self.bin / "millrace", "inspect", self.folder / store, *more],
                capture_output=True, text=True, check=True).stdout
        self.assertIn(note, inspect("sentinel"))
        label = json.loads(inspect("sentinel", "--json"))["node_types"][0]
        self.assertEqual(label["label"],
                         {"dtype": "int64", "shape": [], **summary})
        plain = inspect("plain")
        self.assertIn("label int64, labels of 2000 nodes in 7 classes", plain)
        self.assertNotIn("note:", plain)

    def test_training_refuses_absurd_sizes(self):
        errors = self.train("sentinel", "--hidden", 16)
        self.assertIn("node 5 has the label 10000000, but only 8 different "
                      "labels occur; labels above 4095 count as classes only "
                      "if at least one class in 16 occurs\n", errors)
        self.assertIn("import the labels with -1 for each node that has none",
                      errors)

    def test_model_must_fit(self):
        errors = self.train("sentinel", "--classes", 10000001)
        self.assertRegex(errors, "training a model with 8 features, "
                                 "256 hidden columns and 10000001 outputs in 1 "
                                 "trainer needs 114.7 GiB of memory, but "
                                 "[0-9.]+ [MG]iB is available")
        errors = self.train("plain", "--classes", 1 << 20, "--hidden", 1 << 20)
        self.assertRegex(
            errors, "1048576 hidden columns and 1048576 outputs .* needs ")
        errors = self.train("plain", "--classes", 1 << 40, "--hidden", 1 << 20)
        self.assertRegex(errors, "needs 16.0 EiB of memory")

    def test_each_worker_must_fit_by_itself(self):
        """The limit on address space applies to each process; here it is less
        than what all of them need together."""
        np.save(self.folder / "seeds.npy", np.arange(8))
        command = ("millrace-train", "--store", self.folder / "plain",
                   "--fanouts", "2,2,2", "--batch-size", 2, "--seeds-file",
                   self.folder / "seeds.npy", "--optimizer", "sgd", "--epochs",
                   2, "--threads", 1, "--workers", 4, "--hidden")
        status, errors = self.run_limited(*command, 4096, limit=2000 * MB)
        self.assertEqual(status, 0, errors)
        errors = self.refused(*command, 8192, limit=2000 * MB)
        self.assertRegex(errors, "training a model with 8 features, "
                                 "8192 hidden columns and 7 outputs in 4 "
                                 "trainers needs 2.0 GiB of memory in one "
                                 "process, but "
                                 "[0-9.]+ [MG]iB is available within "
                                 "ulimit -v\n")

    def test_batches_must_fit(self):
        np.save(self.folder / "seeds.npy", np.arange(2000))
        digest = ("digest", "--store", self.folder / "plain", "--batch-size",
                  2000, "--threads", 1, "--seeds-file",
                  self.folder / "seeds.npy")
        errors = self.refused("millrace", *digest, "--replace", "--fanouts",
                              1 << 20)
        self.assertRegex(errors, "hop 0 of a batch with 20[0-9]{8} neighbours "
                                 "of 2000 nodes needs 2[0-9.]+ GiB")
        self.assertIn("use a smaller batch size or fanouts", errors)
        errors = self.refused("millrace", *digest, "--method", "walk",
                              "--walks", 1 << 18, "--walk-length", 4)
        self.assertRegex(errors, "a batch of walks needs [0-9.]+ GiB of memory")

    def test_negatives_must_fit(self):
        np.save(self.folder / "pairs.npy", np.zeros((1000, 2), np.int64))
        subprocess.run([self.bin / "millrace", "split", self.folder / "plain",
                        "--name", "pairs", "--type", "node__to__node",
                        "--pairs", self.folder / "pairs.npy"], check=True)
        errors = self.refused(
            "millrace", "digest", "--store", self.folder / "plain", "--seeds",
            "edge", "--split", "pairs", "--batch-size", 1000, "--fanouts", 3,
            "--negatives", "binary:50000", "--threads", 1, limit=1024 * MB)
        self.assertIn("a batch with 50000000 negatives needs 1.9 GiB", errors)

    def test_processes_must_fit(self):
        errors = self.train("plain", "--workers", 10**9)
        self.assertIn("starting 1000000000 workers needs 46.6 PiB of memory",
                      errors)

    def test_threads_must_fit(self):
        for program, *more in (("millrace", "digest"), ("millrace-train",)):
            errors = self.refused(
                program, *more, "--store", self.folder / "plain", "--fanouts",
                5, "--batch-size", 256, "--threads", 1024, limit=2048 * MB)
            self.assertIn("the system cannot start more threads\n", errors)
            self.assertIn("use a smaller --threads", errors)

    def test_imports_must_fit(self):
        errors = self.refused("millrace", "import", "fake", "--nodes", 10**13,
                              "--avg-degree", 0, "--features", 1, "--classes",
                              2, "--out", self.folder / "fake")
        self.assertIn("importing 10000000000000 nodes needs 291.0 TiB", errors)
        self.assertFalse((self.folder / "fake").exists())

    def test_graph_must_fit(self):
        """Checks servers that load the graph into memory, and METIS."""
        subprocess.run([self.bin / "millrace", "import", "fake", "--nodes",
                        "100000", "--avg-degree", "15", "--features", "64",
                        "--classes", "2", "--out", self.folder / "wide"],
                       check=True, stderr=subprocess.DEVNULL)
        self.sweep("METIS on 100000 nodes and 1500000 edges needs "
                   "45.8 MiB of memory", "millrace", "partition",
                   self.folder / "wide", "--parts", 2, "--method", "metis",
                   "--out", self.folder / "wide-2")
        for option, what in (("--graph-memory", "the graph"),
                             ("--feature-memory", "features")):
            with self.subTest(what=what):
                self.sweep(f"{option} ram: holding {what} in RAM needs ",
                           "millrace-server", "--store", self.folder / "wide",
                           "--partition", 0, "--listen", "127.0.0.1:0",
                           option, "ram")

    def test_running_out_is_not_a_bug(self):
        """Running out of memory is not reported as a bug, even where it was
        not checked for in advance."""
        met = 0
        for limit in range(384 * MB, 1024 * MB, 64 * MB):
            status, errors = self.run_limited(
                "millrace-train", "--store", self.folder / "plain",
                "--fanouts", "10,10", "--hidden", 4096, "--threads", 1,
                "--epochs", 1, limit=limit)
            if status == 127 or "terminate called" in errors:
                continue  # too little even for the libraries
            with self.subTest(limit=limit):
                self.assertIn(status, (0, 1), errors)
                self.assertNotIn("bug", errors)
            met += status == 1
        self.assertGreater(met, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    MemoryTest.bin = args.bin
    unittest.main(argv=[sys.argv[0], *rest])
