# SPDX-License-Identifier: Apache-2.0
"""Groups of millrace-train: a rank that dies or stops ends the others within
30 seconds with an error that names it; no process outlives its launcher."""
import argparse
import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest

LIMIT = 30.0  # seconds


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connections(pid, port):
    """How many connections to `port` a process has."""
    links = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.add(os.readlink(descriptor))
    count = 0
    for family in ("tcp", "tcp6"):
        table = pathlib.Path(f"/proc/{pid}/net/{family}").read_text()
        for words in map(str.split, table.splitlines()):
            if (words[2].endswith(f":{port:04X}") and words[3] == "01"
                    and f"socket:[{words[9]}]" in links):
                count += 1
    return count


class GroupTest(unittest.TestCase):
    bin = data = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-group-")
        cls.store = pathlib.Path(cls.directory.name) / "cora"
        subprocess.run(
            [cls.bin / "millrace", "import", "ogb", cls.data / "cora",
             "--out", cls.store, "--undirected", "--coalesce"],
            check=True, stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def command(self, *more):
        return [str(word) for word in (
            self.bin / "millrace-train", "--store", self.store, "--fanouts",
            "5,5", "--batch-size", 32, "--hidden", 16, "--threads", 1,
            *more)]

    def start_rank(self, rank, world, port, *more, epochs=1000000):
        environment = dict(
            os.environ, RANK=str(rank), WORLD_SIZE=str(world),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        process = subprocess.Popen(
            self.command("--epochs", epochs, "--eval-every", 0, *more),
            env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def start_ranks(self, world):
        """Returns when all ranks have made an epoch."""
        port = free_port()
        ranks = [self.start_rank(rank, world, port) for rank in range(world)]
        self.assertIn("epoch 0", ranks[0].stdout.readline())
        return ranks

    def end(self, process):
        process.kill()
        process.communicate()

    def lose(self, world, lost, number):
        ranks = self.start_ranks(world)
        start = time.monotonic()
        ranks[lost].send_signal(number)
        for rank, process in enumerate(ranks):
            if rank == lost:
                continue
            _, stderr = process.communicate(timeout=LIMIT + 30)
            self.assertLessEqual(time.monotonic() - start, LIMIT)
            self.assertEqual(process.returncode, 1, stderr)
            self.assertIn(f"rank {lost}", stderr)

    def test_killed_rank(self):
        self.lose(3, 1, signal.SIGKILL)

    def test_killed_rank_zero(self):
        self.lose(2, 0, signal.SIGKILL)

    def test_stopped_rank(self):
        self.lose(3, 2, signal.SIGSTOP)

    def test_stopped_rank_zero(self):
        self.lose(3, 0, signal.SIGSTOP)

    def test_stopped_rank_zero_before_all_came(self):
        port = free_port()
        zero = self.start_rank(0, 3, port)
        one = self.start_rank(1, 3, port)
        # Rank 1 has found rank 0's store, and waits for rank 2.
        until = time.monotonic() + LIMIT
        while not connections(one.pid, port):
            self.assertIsNone(one.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        zero.send_signal(signal.SIGSTOP)
        _, stderr = one.communicate(timeout=LIMIT)
        self.assertEqual(one.returncode, 1, stderr)
        self.assertIn("rank 0", stderr)

    def run_ranks(self, *options, epochs=1000000):
        """Ranks with options of their own, to their end: (status, stderr)."""
        port = free_port()
        ranks = [self.start_rank(rank, len(options), port, *more, epochs=epochs)
                 for rank, more in enumerate(options)]
        ends = [rank.communicate(timeout=LIMIT) for rank in ranks]
        return [(rank.returncode, stderr)
                for rank, (_, stderr) in zip(ranks, ends)]

    def test_ranks_have_the_same_options(self):
        log = pathlib.Path(self.directory.name) / "one_alone.log"
        for option, first, other in (("--lr", "0.1", "0.25"),
                                     ("--seed", "7", "8"),
                                     ("--patience", "3", "4"),
                                     ("--consumed-log", None, log)):
            first_options = () if first is None else (option, first)
            zero, one = self.run_ranks(first_options, (option, other))
            self.assertEqual(one[0], 2, one[1])
            self.assertIn(f"{option} of rank 1: ", one[1])
            self.assertIn("start every rank with the same options", one[1])
            # Wrong usage of one is that of all, to their supervisors too.
            self.assertEqual(zero[0], 2, zero[1])
            self.assertIn(f"{option} of rank 1: ", zero[1])
            self.assertIn("(says rank 1)", zero[1])

    def test_resume_is_what_rank_zero_says(self):
        """Supervisors add --resume, each to the ranks of its own host."""
        folder = ("--checkpoint", pathlib.Path(self.directory.name) / "both")
        resume = (*folder, "--resume")
        for epochs, zero, one, told in (
                (1, folder, resume, ""),
                (2, resume, folder, "resumed from epoch 1"),
                (3, resume, resume, "resumed from epoch 2")):
            ends = self.run_ranks(zero, one, epochs=epochs)
            self.assertEqual([status for status, _ in ends], [0, 0], ends)
            self.assertIn(told, ends[0][1])

    def test_srun_starts_a_group(self):
        port = str(free_port())
        ranks = [subprocess.Popen(
            self.command("--epochs", 1),
            env=dict(os.environ, SLURM_PROCID=str(rank), SLURM_NODEID="0",
                     SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="2",
                     SLURM_STEP_TASKS_PER_NODE="2", MASTER_PORT=port),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for rank in range(2)]
        for rank, process in enumerate(ranks):
            self.addCleanup(self.end, process)
            stdout, stderr = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 0, stderr)
            self.assertIn(f"rank {rank} of 2 (SLURM_PROCID, ", stderr)
            # Rank 0 prints for both.
            self.assertEqual("epoch 0" in stdout, rank == 0)

    def launch(self):
        launcher = subprocess.Popen(
            self.command("--workers", 2, "--epochs", 1000000, "--eval-every",
                         0),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, launcher)
        self.assertIn("epoch 0", launcher.stdout.readline())
        children = [int(pid) for pid in pathlib.Path(
            f"/proc/{launcher.pid}/task/{launcher.pid}/children"
        ).read_text().split()]
        self.assertEqual(len(children), 2)
        return launcher, children

    def assert_gone(self, pids):
        for pid in pids:
            self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_launcher_names_the_killed_rank(self):
        launcher, children = self.launch()
        os.kill(children[1], signal.SIGKILL)
        _, stderr = launcher.communicate(timeout=LIMIT)
        self.assertEqual(launcher.returncode, 1)
        self.assertIn("rank 1 of 2 was killed by signal 9", stderr)
        self.assert_gone(children)

    def test_stopped_rank_under_the_launcher(self):
        launcher, children = self.launch()
        start = time.monotonic()
        os.kill(children[1], signal.SIGSTOP)
        _, stderr = launcher.communicate(timeout=LIMIT + 15)
        self.assertEqual(launcher.returncode, 1)
        self.assertIn("rank 1 is lost", stderr)
        self.assertLessEqual(time.monotonic() - start, LIMIT)
        self.assert_gone(children)

    def test_interrupt_ends_all(self):
        launcher, children = self.launch()
        launcher.send_signal(signal.SIGINT)
        _, stderr = launcher.communicate(timeout=LIMIT)
        self.assertEqual(launcher.returncode, 130, stderr)
        self.assert_gone(children)

    def test_ranks_die_with_the_launcher(self):
        launcher, children = self.launch()
        # Wait on the ranks themselves: they are not ours to wait for.
        waits = [os.pidfd_open(pid) for pid in children]
        launcher.kill()
        for descriptor in waits:
            self.assertTrue(select.select([descriptor], [], [], LIMIT)[0])
            os.close(descriptor)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    GroupTest.bin, GroupTest.data = flags.bin, flags.data
    unittest.main(argv=[__file__, "-v", *rest])
