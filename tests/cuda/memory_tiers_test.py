#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs with their store in all kinds of memory, and where a device is
missing, too small or lost, under tests/ptxemu.

  memory_tiers_test.py --bin BIN

Skipped (77) unless the runtime is tests/ptxemu.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

JOB = ("--fanouts", "3,2", "--batch-size", "40")
ON_GPU = ("--graph-memory", "cuda", "--device-fallback", "forbid")
TIERS = (
    ("--graph-memory", "ram", "--feature-memory", "ram"), ON_GPU,
    ("--graph-memory", "pinned", "--feature-memory", "pinned"),
    ("--graph-memory", "auto", "--feature-memory", "auto"),
    (*ON_GPU, "--feature-memory", "cuda"), (*ON_GPU, "--cache-ratio", "0.25"),
    ("--feature-memory", "cuda"), (*ON_GPU, "--gpus", "1"),
    ("--graph-memory", "pinned", "--cache-ratio", "0.5", "--gpus", "0,1"))


class MemoryTiersTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-tiers-")
        cls.folder = pathlib.Path(cls.directory.name)
        for words in (("import", "fake", "--nodes", "160", "--avg-degree", "5",
                       "--features", "6", "--classes", "2", "--out", "one"),
                      ("partition", "one", "--parts", "2", "--out", "two"),
                      ("import", "fake", "--nodes", "80000", "--avg-degree",
                       "6", "--features", "2", "--classes", "2", "--out",
                       "wide")):
            subprocess.run([cls.bin / "millrace", *words], cwd=cls.folder,
                           check=True, capture_output=True)
        cls.total = cls.run_program("digest", "--store", "one").stdout

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @classmethod
    def run_program(cls, command, *options, **variables):
        return subprocess.run(
            [cls.bin / "millrace", command, *JOB, *options], cwd=cls.folder,
            capture_output=True, text=True, check=False, timeout=120,
            env=os.environ | {"PTXEMU_DEVICES": "2"} | variables)

    def expect_right(self, run):
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, self.total)

    def expect_refused(self, run, *words):
        """Exit status 1 and two lines, what is wrong and what to do."""
        self.assertEqual(run.returncode, 1, run.stderr)
        lines = [line for line in run.stderr.splitlines()
                 if line.startswith("millrace digest: ")]
        self.assertEqual(len(lines), 2, run.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def test_digests_are_equal(self):
        for store in ("one", "two"):
            for tier in TIERS:
                with self.subTest(store=store, tier=tier):
                    self.expect_right(
                        self.run_program("digest", "--store", store, *tier))

    def test_gpus_that_cannot_reach_each_other_use_pinned_memory(self):
        run = self.run_program("digest", "--store", "two", "--feature-memory",
                               "cuda", "--gpus", "0,1", "--json",
                               PTXEMU_PEER="0")
        self.assertEqual(run.returncode, 0, run.stderr)
        line = json.loads(run.stdout.splitlines()[-1])
        self.assertEqual(f"total {line['total']}", self.total.splitlines()[-1])
        self.assertGreater(line["gpu_rows"], 0)
        self.assertGreater(line["gpu_pinned_rows"], 0)

    def test_samples_are_equal(self):
        plain = self.run_program("sample", "--store", "two", "--with-features")
        for tier in TIERS:
            with self.subTest(tier=tier):
                run = self.run_program("sample", "--store", "two",
                                       "--with-features", *tier)
                self.assertEqual((run.returncode, run.stdout),
                                 (0, plain.stdout), run.stderr)

    def counts(self, command, *options):
        run = self.run_program(command, "--store", "two", "--json", *options)
        self.assertEqual(run.returncode, 0, run.stderr)
        line = json.loads(run.stdout.splitlines()[-1])
        return [line[name] for name in ("gpu_hops", "cpu_hops", "gpu_rows",
                                        "gpu_pinned_rows", "cpu_rows")]

    def test_digest_counts_by_place(self):
        gpu_hops, hops, gpu_rows, pinned_rows, rows = self.counts("digest")
        self.assertEqual((gpu_hops, gpu_rows, pinned_rows), (0, 0, 0))
        self.assertGreater(hops, 1)
        self.assertGreater(rows, 100)
        self.assertEqual(self.counts("digest", *ON_GPU),
                         [hops, 0, 0, 0, rows])
        self.assertEqual(
            self.counts("digest", *ON_GPU, "--feature-memory", "cuda"),
            [hops, 0, rows, 0, 0])
        gpu_hops, cpu_hops, gpu_rows, pinned_rows, cpu_rows = self.counts(
            "digest", "--cache-ratio", "0.25", "--gpus", "0,1")
        self.assertEqual((gpu_hops, cpu_hops, cpu_rows), (0, hops, 0))
        self.assertGreater(gpu_rows, 0)
        self.assertGreater(pinned_rows, 0)
        self.assertEqual(gpu_rows + pinned_rows, rows)

    def test_bench_counts_by_place(self):
        """Also what was prefetched."""
        options = ("--batches", "4")
        gpu_hops, cpu_hops, *_, cpu_rows = self.counts("bench", *options)
        self.assertEqual(gpu_hops, 0)
        self.assertGreaterEqual(cpu_hops, 8)
        self.assertGreater(cpu_rows, 100)
        gpu_hops, cpu_hops, gpu_rows, _, cpu_rows = self.counts(
            "bench", *options, *ON_GPU, "--feature-memory", "cuda")
        self.assertGreaterEqual(gpu_hops, 8)
        self.assertGreater(gpu_rows, 100)
        self.assertEqual((cpu_hops, cpu_rows), (0, 0))

    def epoch(self, batch_size):
        """Returns how many batches an epoch has, and how often the host waits in
        each function of the CUDA runtime meanwhile."""
        run = self.run_program("digest", "--store", "two", *ON_GPU,
                               "--threads", "1", "--batch-size",
                               str(batch_size), PTXEMU_STATISTICS="1")
        self.assertEqual(run.returncode, 0, run.stderr)
        waits = re.search(r"the host waited: ([^;]*);", run.stderr)[1]
        return (len(run.stdout.splitlines()) - 1, collections.Counter(
            {function: int(count) for count, function in
             (word.split() for word in waits.split(", "))}))

    def test_waits_once_for_a_batch(self):
        """Starting the program and ending it take the same waits, but for the
        pinned blocks that it frees at its end."""
        few, waits = self.epoch(160)
        many, more_waits = self.epoch(20)
        self.assertGreater(many, few + 4)
        for counts in (waits, more_waits):
            self.assertLess(counts.pop("cudaFreeHost"), 5)
        waits["cudaStreamSynchronize"] += many - few
        self.assertEqual(more_waits, waits)

    def test_bench_runs_in_all_tiers(self):
        for tier in TIERS:
            with self.subTest(tier=tier):
                run = self.run_program("bench", "--store", "two", "--batches",
                                       "2", *tier)
                self.assertEqual(run.returncode, 0, run.stderr)

    def test_refuses_without_a_device(self):
        for variables, words in (
                ({"PTXEMU_DRIVER": "0"}, "cudaErrorInsufficientDriver"),
                ({"PTXEMU_DEVICES": "0"}, "cudaErrorNoDevice")):
            for options in (ON_GPU, ("--graph-memory", "pinned"),
                            ("--feature-memory", "cuda"),
                            ("--feature-memory", "pinned"),
                            ("--cache-ratio", "0.5")):
                with self.subTest(words=words, options=options):
                    self.expect_refused(
                        self.run_program("digest", "--store", "one", *options,
                                         **variables), "CUDA", words)

    def test_refuses_a_device_that_is_not_there(self):
        self.expect_refused(
            self.run_program("digest", "--store", "one", *ON_GPU, "--gpus",
                             "2"), "CUDA device 2")

    def test_auto_uses_memory_of_the_host_and_says_why(self):
        run = self.run_program("digest", "--store", "one", "--graph-memory",
                               "auto", "--feature-memory", "auto",
                               PTXEMU_DRIVER="0")
        self.expect_right(run)
        for words in ("content=graph memory=cuda", "content=graph memory=pinned",
                      "content=features memory=cuda"):
            self.assertEqual(run.stderr.count(f"memory not used {words} why="),
                             1, run.stderr)

    def test_what_does_not_fit_is_refused_with_both_numbers(self):
        for options in (ON_GPU, ("--feature-memory", "cuda")):
            with self.subTest(options=options):
                run = self.run_program("digest", "--store", "one", *options,
                                       PTXEMU_MEMORY="2000")
                self.expect_refused(run, "2000")
                self.assertRegex(run.stderr, r"[0-9]+ .*2000")

    def test_auto_uses_pinned_memory_where_the_device_is_small(self):
        """The batches' arrays fit, but not the graph beside a tenth that is
        left."""
        run = self.run_program("digest", "--store", "wide", "--graph-memory",
                               "auto", "--json", "--batches", "1",
                               PTXEMU_MEMORY="3000000")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("memory not used content=graph memory=cuda why=",
                      run.stderr)
        self.assertRegex(run.stderr, "a GPU samples gpu=0 .* memory=pinned ")
        self.assertGreater(json.loads(run.stdout.splitlines()[-1])["gpu_hops"],
                           0)

    def test_auto_leaves_a_device_that_others_have_filled(self):
        run = self.run_program("digest", "--store", "one", "--graph-memory",
                               "auto", PTXEMU_MEMORY="10000000",
                               PTXEMU_TAKEN="9500000")
        self.expect_right(run)
        for memory in ("cuda", "pinned"):
            self.assertRegex(
                run.stderr, f'content=graph memory={memory} why="only '
                "[0-9]+ of 10000000 bytes of CUDA device 0 would be left")

    def test_a_lost_device(self):
        """Also by errors that would mean, before a device is open, that it
        cannot be used."""
        for error, name in ((719, "cudaErrorLaunchFailure"),
                            (46, "cudaErrorDevicesUnavailable")):
            lost = {"PTXEMU_FAIL": f"cudaLaunchKernel:60={error}!"}
            self.expect_refused(
                self.run_program("digest", "--store", "one", *ON_GPU, **lost),
                "CUDA device 0 has failed", name)
            run = self.run_program("digest", "--store", "one",
                                   "--graph-memory", "auto",
                                   "--feature-memory", "auto", **lost)
            self.expect_right(run)
            self.assertEqual(
                run.stderr.count("from now on the CPU does its work"), 1,
                run.stderr)

    def test_wrong_usage(self):
        for options in (("--cache-ratio", "0.5", "--feature-memory", "cuda"),
                        ("--gpus", "0,0"), ("--gpus", "x"),
                        ("--device-fallback", "forbid"),
                        ("--cache-ratio", "2")):
            with self.subTest(options=options):
                run = self.run_program("digest", "--store", "one", *options)
                self.assertEqual(run.returncode, 2, run.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    MemoryTiersTest.bin = args.bin.resolve()
    with tempfile.TemporaryDirectory() as empty:
        absent = subprocess.run(
            [MemoryTiersTest.bin / "millrace", "import", "fake", "--nodes",
             "9", "--avg-degree", "2", "--features", "2", "--classes", "2",
             "--out", f"{empty}/tiny"], check=True, capture_output=True)
        absent = subprocess.run(
            [MemoryTiersTest.bin / "millrace", "digest", "--store",
             f"{empty}/tiny", *ON_GPU, *JOB], capture_output=True, text=True,
            check=False, env=os.environ | {"PTXEMU_DRIVER": "0"})
    if "cudaErrorInsufficientDriver" not in absent.stderr:
        print("skipped: the CUDA runtime is not ptxemu")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
