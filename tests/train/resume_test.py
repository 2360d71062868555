# SPDX-License-Identifier: Apache-2.0
"""Trainers that are killed (SIGKILL) at random steps and resumed with the same
and with other world sizes; and disks that fill up while a checkpoint is
written.

--kills N: how many times all trainers are killed in an epoch (default 20; CI:
6); after every fourth time only one of several is. --seed S: the seed for the
random steps; printed, and different each time by default."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import subprocess
import tempfile
import time
import unittest

import numpy as np

LIMIT = 60.0  # seconds, for anything
NODES = 2708  # nodes of Cora


def lines_of(path):
    """The complete lines of a file as objects."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def children_of(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def batches_of(lines):
    """The lines with a batch; the others mark the start of an attempt."""
    return [line for line in lines if "batch" in line]


def valid_lines(lines):
    """The lines of batches that count, as docs/training.md defines them."""
    start = {line["attempt"]: tuple(map(int, line["checkpoint"].split(":")))
             for line in lines}
    return [line for line in batches_of(lines)
            if not any(attempt > line["attempt"]
                       and begin <= (line["epoch"], line["batch"])
                       for attempt, begin in start.items())]


class ResumeTest(unittest.TestCase):
    bin = data = None
    kills, seed = 20, None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-resume-")
        cls.work = pathlib.Path(cls.directory.name)
        subprocess.run(
            [cls.bin / "millrace", "import", "ogb", cls.data / "cora",
             "--out", cls.work / "cora", "--undirected", "--coalesce"],
            check=True, stderr=subprocess.DEVNULL)
        np.save(cls.work / "all.npy", np.arange(NODES))
        print(f"seed {cls.seed}, {cls.kills} kills", flush=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def setUp(self):
        self.random = random.Random(self.seed)
        self.folder = self.work / self._testMethodName
        self.folder.mkdir()

    def command(self, world, *more, name="run"):
        """Names of the run's files start with `name`."""
        path = self.folder / name
        return [str(word) for word in (
            self.bin / "millrace-train", "--store", self.work / "cora",
            "--fanouts", "3,3", "--batch-size", 4, "--hidden", 16, "--threads",
            1, "--seeds-file", self.work / "all.npy", "--epochs", 1, "--norm",
            "batch", "--dropout", 0.5, "--workers", world, "--log-every", 1,
            "--metrics-json", f"{path}.json", "--consumed-log", f"{path}.log",
            *more)]

    def checkpointing(self, world, *more):
        return self.command(world, "--checkpoint", self.folder / "checkpoint",
                            "--checkpoint-every", 1, "--resume", *more)

    def run_to_the_end(self, command, **options):
        done = subprocess.run(command, text=True, capture_output=True,
                              timeout=LIMIT, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def baseline_run(self, world):
        self.run_to_the_end(self.command(world, name="baseline"))
        return self.folder / "baseline.log", self.folder / "baseline.json"

    def kill_after(self, lines, process, everyone):
        """Kills trainers when the log has `lines` more lines with batches."""
        log = self.folder / "run.log"
        # The first line is that of the attempt.
        count, offset, until = -1, 0, time.monotonic() + LIMIT
        with contextlib.suppress(FileNotFoundError):
            offset = log.stat().st_size
        while count < lines:
            self.assertIsNone(process.poll(), process.stderr)
            self.assertLess(time.monotonic(), until)
            time.sleep(0.001)
            with contextlib.suppress(FileNotFoundError):
                with log.open("rb") as file:
                    file.seek(min(offset, log.stat().st_size))
                    more = file.read()
                offset += len(more)
                count += more.count(b"\n")
        workers = children_of(process.pid)
        victims = ([process.pid, *workers] if everyone
                   else [self.random.choice(workers)])
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        process.communicate(timeout=LIMIT)
        self.assertNotEqual(process.returncode, 0)
        for pid in workers:  # they hold the lock of the folder
            while pathlib.Path(f"/proc/{pid}").exists():
                time.sleep(0.001)

    def start_and_kill(self, world, everyone):
        process = subprocess.Popen(
            self.checkpointing(world), text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        lines = self.random.randint(1, 400 // self.kills)
        self.kill_after(lines, process, everyone)
        self.attempts += 1

    def kill_and_resume(self, worlds):
        """An epoch in which all are killed self.kills times, cycling through
        worlds."""
        self.attempts = 1
        for kill in range(self.kills):
            self.start_and_kill(worlds[kill % len(worlds)], everyone=True)
            if kill % 4 == 3:
                self.start_and_kill(worlds[-1], everyone=False)
        self.run_to_the_end(self.checkpointing(worlds[-1]))
        self.assertEqual(
            sorted(os.listdir(self.folder / "checkpoint")), ["last.pt"])

    def check_lineage(self, baseline):
        log = self.folder / "run.log"
        lines = lines_of(log)
        self.assertEqual(log.read_bytes()[-1:], b"\n")
        kept = valid_lines(lines)
        self.assertEqual(
            sorted(seed for line in kept for seed in line["seeds"]),
            list(range(NODES)))
        told = {line["batch"]: (line["seeds"], line["digest"])
                for line in kept}
        self.assertEqual(told, {line["batch"]: (line["seeds"], line["digest"])
                                for line in batches_of(lines_of(baseline))})
        batches = batches_of(lines)
        print(f"{len(batches)} lines from {self.attempts} attempts, "
              f"{len(batches) - len(kept)} void", flush=True)
        self.assertEqual(sorted(line["attempt"] for line in lines
                                if "batch" not in line),
                         list(range(self.attempts)))
        done = self.run_to_the_end(
            [self.bin / "millrace", "lineage", log, "--seeds", str(NODES)])
        self.assertIn(f"epoch 0: {len(kept)} batches, {NODES} seeds\n",
                      done.stdout)
        done = self.run_to_the_end(
            [self.bin / "millrace", "lineage", log, "--valid"])
        self.assertEqual(
            [json.loads(line) for line in done.stdout.splitlines()], kept)

    def test_killed_and_resumed_in_other_worlds(self):
        baseline, _ = self.baseline_run(1)
        self.kill_and_resume([1, 2, 3])
        self.check_lineage(baseline)

    def test_losses_of_the_same_world(self):
        baseline, baseline_metrics = self.baseline_run(2)
        self.kill_and_resume([2])
        self.check_lineage(baseline)
        losses = {(line["step"], line["seconds"] > 0): line["loss"]
                  for line in lines_of(baseline_metrics)}
        lines = lines_of(self.folder / "run.json")
        self.assertGreaterEqual(len(lines), len(losses))
        # This holds also for the steps that were lost and repeated.
        for line in lines:
            key = (line["step"], line["seconds"] > 0)
            self.assertEqual(line["loss"], losses[key], key)
        self.assertEqual(
            {(line["step"], line["seconds"] > 0) for line in lines},
            set(losses))

    def test_torn_lines_are_cut_off(self):
        process = subprocess.Popen(
            self.checkpointing(1), stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        self.kill_after(50, process, everyone=True)
        for name in ("run.log", "run.json"):
            with (self.folder / name).open("ab") as file:
                file.write(b'{"attempt":0,"checkpoint":"0:0","ep')
        (self.folder / "checkpoint" / "last.pt.tmp").write_bytes(b"half")
        self.run_to_the_end(self.checkpointing(2))
        lines_of(self.folder / "run.json")
        self.run_to_the_end([self.bin / "millrace", "lineage", self.folder
                             / "run.log", "--seeds", str(NODES)])
        self.assertEqual(os.listdir(self.folder / "checkpoint"), ["last.pt"])

    def expect_full(self, command, reason, **options):
        """The run fails when writing last.pt, which stays unchanged."""
        last = self.folder / "checkpoint" / "last.pt"
        before = last.read_bytes()
        done = subprocess.run(command, text=True, capture_output=True,
                              timeout=LIMIT, **options)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(str(last), done.stderr)
        self.assertIn(reason, done.stderr)
        self.assertIn("--resume", done.stderr)
        self.assertEqual(last.read_bytes(), before)
        self.assertEqual(os.listdir(last.parent), ["last.pt"])

    def small_run(self, *more):
        """A run without logs, which would hit the limit too."""
        return [str(word) for word in (
            self.bin / "millrace-train", "--store", self.work / "cora",
            "--fanouts", "3,3", "--hidden", 16, "--threads", 1, "--checkpoint",
            self.folder / "checkpoint", "--resume", *more)]

    def test_file_size_limit(self):
        self.run_to_the_end(self.small_run("--epochs", 1))
        size = (self.folder / "checkpoint" / "last.pt").stat().st_size

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
        for workers in (1, 2):
            self.expect_full(
                self.small_run("--epochs", 100000, "--workers", workers),
                "File too large", preexec_fn=limit)
        self.run_to_the_end(self.small_run("--epochs", 2))

    def test_full_disk(self):
        disk = self.folder / "checkpoint"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", disk],
            capture_output=True, text=True)
        if mounted.returncode != 0:
            print("skipped: test_full_disk: cannot mount a tmpfs: "
                  f"{mounted.stderr.strip()}", flush=True)
            self.skipTest("no tmpfs")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        self.run_to_the_end(self.small_run("--epochs", 1))
        # The file fits, but not a second one next to it.
        size = (disk / "last.pt").stat().st_size
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize
        self.assertGreater(size, free)
        self.expect_full(self.small_run("--epochs", 100000),
                         "No space left on device")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int,
                        default=random.SystemRandom().randrange(1 << 32))
    flags, rest = parser.parse_known_args()
    ResumeTest.bin, ResumeTest.data = flags.bin, flags.data
    ResumeTest.kills, ResumeTest.seed = flags.kills, flags.seed
    unittest.main(argv=[__file__, "-v", *rest])
