# SPDX-License-Identifier: Apache-2.0
"""Groups of millrace-train: if a rank dies or stops, the others end within 30
seconds with an error that names it; no process outlives its launcher."""
import os
import pathlib
import select
import signal
import subprocess
import time

from group_case import GroupCase, LIMIT, free_port, main, sockets

ESTABLISHED = "01"


def connections(pid, port):
    """The number of connections to `port` that a process has."""
    return sum(remote == port and state == ESTABLISHED
               for _, _, remote, state in sockets(pid))


class GroupTest(GroupCase):
    def start_ranks(self, world):
        """Waits until all ranks have finished an epoch."""
        port = free_port()
        ranks = [self.start_rank(rank, world, port) for rank in range(world)]
        self.assertIn("epoch 0", ranks[0].stdout.readline())
        return ranks

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
            self.assertNotIn("c10d", stderr)

    def test_killed_rank(self):
        self.lose(3, 1, signal.SIGKILL)

    def test_writing_to_a_killed_rank_ends_no_other(self):
        ranks = self.start_ranks(2)
        # As if it had written to a socket whose other end is gone.
        for process in ranks:
            process.send_signal(signal.SIGPIPE)
        self.assertIn("epoch ", ranks[0].stdout.readline())
        ranks[1].kill()
        _, stderr = ranks[0].communicate(timeout=LIMIT)
        self.assertEqual(ranks[0].returncode, 1, stderr)
        self.assertIn("rank 1", stderr)

    def test_killed_rank_zero(self):
        self.lose(2, 0, signal.SIGKILL)

    def test_stopped_rank(self):
        self.lose(3, 2, signal.SIGSTOP)

    def test_stopped_rank_zero(self):
        self.lose(3, 0, signal.SIGSTOP)

    def test_stopped_rank_zero_before_all_joined(self):
        port = free_port()
        zero = self.start_rank(0, 3, port)
        one = self.start_rank(1, 3, port)
        # Rank 1 has found rank 0's store and waits for rank 2.
        until = time.monotonic() + LIMIT
        while not connections(one.pid, port):
            self.assertIsNone(one.poll())
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        zero.send_signal(signal.SIGSTOP)
        _, stderr = one.communicate(timeout=LIMIT)
        self.assertEqual(one.returncode, 1, stderr)
        self.assertIn("rank 0", stderr)

    def test_ranks_have_the_same_options(self):
        log = pathlib.Path(self.directory.name) / "one_alone.log"
        for option, first, other in (("--lr", "0.1", "0.25"),
                                     ("--seed", "7", "8"),
                                     ("--patience", "3", "4"),
                                     ("--consumed-log", None, log)):
            first_options = () if first is None else (option, first)
            zero, one = self.run_ranks((*first_options, *self.secret()),
                                       (option, other, *self.secret()))
            self.assertEqual(one[0], 2, one[1])
            self.assertIn(f"{option} on rank 1: ", one[1])
            self.assertIn("start every rank with the same options", one[1])
            # All ranks exit with the status of wrong usage, so that their
            # supervisors do not restart them.
            self.assertEqual(zero[0], 2, zero[1])
            self.assertIn(f"{option} on rank 1: ", zero[1])
            self.assertIn("(reported by rank 1)", zero[1])

    def test_without_a_secret_only_the_rank_itself_knows_of_wrong_usage(self):
        zero, one = self.run_ranks(("--lr", "0.1"), ("--lr", "0.25"))
        self.assertEqual(one[0], 2, one[1])
        self.assertEqual(zero[0], 1, zero[1])
        self.assertIn("rank 1 failed: --lr on rank 1: ", zero[1])

    def test_rank_zero_decides_about_resume(self):
        """Each supervisor adds --resume for the ranks of its own host."""
        folder = ("--checkpoint", pathlib.Path(self.directory.name) / "both")
        resume = (*folder, "--resume")
        for epochs, zero, one, told in (
                (1, folder, resume, ""),
                (2, resume, folder, " epoch=1 batch=0"),
                (3, resume, resume, " epoch=2 batch=0")):
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
            # Only rank 0 prints, for both.
            self.assertEqual("epoch 0" in stdout, rank == 0)

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
        # Waits through descriptors, because the ranks are not this test's
        # children.
        waits = [os.pidfd_open(pid) for pid in children]
        launcher.kill()
        for descriptor in waits:
            self.assertTrue(select.select([descriptor], [], [], LIMIT)[0])
            os.close(descriptor)


if __name__ == "__main__":
    main()
