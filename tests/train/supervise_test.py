# SPDX-License-Identifier: Apache-2.0
"""deploy/supervise.py restarts a program that dies, and nothing else."""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402  (its folder comes first)

LIMIT = 90.0  # seconds, for anything
NODES = 2708  # nodes of Cora


def children_of(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


class SuperviseTest(unittest.TestCase):
    bin = data = deploy = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="millrace-supervise-")
        self.addCleanup(directory.cleanup)
        self.work = pathlib.Path(directory.name)

    def start(self, command, *options, **more):
        process = subprocess.Popen(
            [str(word) for word in (
                sys.executable, self.deploy / "supervise.py", "--backoff",
                0.05, *options, "--", *command)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        process.communicate(timeout=LIMIT)

    def script(self, text):
        """A command that runs `text`; $n is the number of the start."""
        count = self.work / "count"
        return ["sh", "-c", f'echo "$@" >>{count}; n=$(wc -l <{count}); {text}',
                "sh", "--checkpoint", "x"]

    def starts(self):
        return (self.work / "count").read_text().splitlines()

    def supervise(self, text, *options):
        process = self.start(self.script(text), *options)
        _, stderr = process.communicate(timeout=LIMIT)
        return process.returncode, stderr

    def test_restarts_what_dies(self):
        status, stderr = self.supervise(
            "case $n in 1) exit 1;; 2) kill -9 $$;; *) exit 0;; esac")
        self.assertEqual(status, 0, stderr)
        self.assertEqual(self.starts(), [
            "--checkpoint x", "--checkpoint x --resume",
            "--checkpoint x --resume"])
        self.assertIn("attempt 1 of 11 ended with status 1; starting again "
                      "with --resume in ", stderr)
        self.assertIn("attempt 2 of 11 was killed by signal 9 (SIGKILL); "
                      "starting again with --resume in ", stderr)
        self.assertIn("attempt 3 of 11 ended with status 0; done", stderr)

    def test_gives_up(self):
        status, stderr = self.supervise("exit 1", "--max-restarts", 2)
        self.assertEqual(status, 1)
        self.assertEqual(len(self.starts()), 3)
        self.assertIn("attempt 3 of 3 ended with status 1; giving up after 2 "
                      "restarts", stderr)
        status, _ = self.supervise("kill -9 $$", "--max-restarts", 0)
        self.assertEqual(status, 128 + 9)

    def test_continues_without_its_log(self):
        with open("/dev/full", "w") as full:
            process = subprocess.Popen(
                [sys.executable, self.deploy / "supervise.py", "--backoff",
                 "0.05", "--", *self.script("[ $n = 3 ]")], stderr=full)
            self.assertEqual(process.wait(timeout=LIMIT), 0)
        self.assertEqual(len(self.starts()), 3)

    def test_does_not_restart_after_permanent_errors(self):
        for code, word in ((2, "wrong usage"), (130, "interrupted")):
            (self.work / "count").unlink(missing_ok=True)
            status, stderr = self.supervise(f"exit {code}")
            self.assertEqual(status, code)
            self.assertEqual(len(self.starts()), 1)
            self.assertIn(f"({word}); not started again", stderr)
        process = self.start([self.work / "absent", "--checkpoint", "x"])
        _, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 127)
        self.assertIn("No such file", stderr)

    def test_names_wrong_usage(self):
        for command, word in (([], "no command"),
                              (["millrace-train"], "--checkpoint DIR")):
            process = self.start(command)
            _, stderr = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 2)
            self.assertIn(word, stderr)

    def test_passes_signals_on(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            (self.work / "count").unlink(missing_ok=True)
            process = self.start(self.script(
                "trap 'exit 130' TERM INT; echo up; "
                "while :; do sleep 0.01; done"))
            self.assertEqual(process.stdout.readline(), "up\n")
            process.send_signal(number)
            _, stderr = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 130, stderr)
            self.assertEqual(len(self.starts()), 1)
            self.assertIn(f"stopped by {signal.Signals(number).name}", stderr)

    def test_kills_a_command_that_ignores_sigterm(self):
        process = self.start(self.script(
            "trap '' TERM; echo up; while :; do sleep 0.01; done"),
            "--grace", 0.1)
        self.assertEqual(process.stdout.readline(), "up\n")
        process.terminate()
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + 9)

    def test_signal_ends_the_wait_for_a_restart(self):
        process = self.start(self.script("exit 1"), "--backoff", 1000,
                             "--backoff-max", 1000)
        while "starting again" not in process.stderr.readline():
            pass
        process.terminate()
        _, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 128 + 15)
        self.assertEqual(len(self.starts()), 1)

    def test_command_dies_with_the_supervisor(self):
        process = self.start(self.script(
            f"echo $$; trap 'touch {self.work}/ended; exit' TERM; "
            "while :; do sleep 0.01; done"))
        int(process.stdout.readline())
        time.sleep(0.1)  # for the trap, which follows the line
        process.kill()
        process.communicate(timeout=LIMIT)
        until = time.monotonic() + LIMIT
        while not (self.work / "ended").exists():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def train(self, *more):
        store = self.work / "cora"
        if not store.exists():
            subprocess.run(
                [self.bin / "millrace", "import", "ogb", self.data / "cora",
                 "--out", store, "--undirected", "--coalesce"],
                check=True, capture_output=True)
            np.save(self.work / "all.npy", np.arange(NODES))
        return [self.bin / "millrace-train", "--store", store, "--fanouts",
                "3,3", "--batch-size", 4, "--hidden", 16, "--threads", 1,
                "--seeds-file", self.work / "all.npy", "--epochs", 1,
                "--checkpoint", self.work / "checkpoint", "--checkpoint-every",
                1, "--consumed-log", self.work / "log", *more]

    def await_lines(self, lines):
        """Waits until the log has `lines` more lines."""
        log, until = self.work / "log", time.monotonic() + LIMIT
        size = log.stat().st_size if log.exists() else 0
        while True:
            if log.exists():
                with log.open("rb") as file:
                    file.seek(min(size, log.stat().st_size))
                    if file.read().count(b"\n") >= lines:
                        return
            self.assertLess(time.monotonic(), until)
            time.sleep(0.002)

    def check_lineage(self, attempts):
        done = subprocess.run(
            [self.bin / "millrace", "lineage", self.work / "log", "--seeds",
             str(NODES)], text=True, capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("attempt "), attempts, done.stdout)

    def test_restarts_a_launcher(self):
        process = self.start(self.train("--workers", 2))
        for victim in (1, None):  # a rank, and the launcher itself
            self.await_lines(30)
            launcher, = children_of(process.pid)
            os.kill(launcher if victim is None
                    else children_of(launcher)[victim], signal.SIGKILL)
        _, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 0, stderr)
        self.assertEqual(stderr.count("starting again"), 2, stderr)
        self.check_lineage(3)

    def test_wrong_options_are_not_retried(self):
        # The ranks notice what the launcher cannot: the store.
        process = self.start(self.train(
            "--workers", 2, "--inference", "sampled", "--eval-fanouts", 5))
        _, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 2, stderr)
        self.assertNotIn("starting again", stderr)

    def test_never_continues_from_another_run(self):
        """A new run that would overwrite an older one's checkpoint, or resume
        from it."""
        subprocess.run([str(word) for word in self.train()], check=True,
                       capture_output=True)
        last, log = self.work / "checkpoint" / "last.pt", self.work / "log"
        before = last.read_bytes(), log.read_bytes()
        for workers in ((), ("--workers", 2)):
            process = self.start(self.train("--lr", 0.1, *workers))
            _, stderr = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 2, stderr)
            self.assertIn(f"{last} is from an earlier run", stderr)
            self.assertNotIn("starting again", stderr)
            self.assertEqual((last.read_bytes(), log.read_bytes()), before)

    def start_hosts(self, *options):
        """One supervisor per rank, as on several hosts."""
        port = free_port()
        return [
            self.start(self.train(*options), env=dict(
                os.environ, RANK=str(rank), WORLD_SIZE="2",
                MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)))
            for rank in range(2)]

    def test_wrong_options_end_all_hosts(self):
        # Only rank 0 looks for checkpoints.
        subprocess.run([str(word) for word in self.train()], check=True,
                       capture_output=True)
        secret = self.work / "secret"
        secret.write_text("sixteen bytes or more")
        said = []
        for host in self.start_hosts("--lr", 0.1, "--rendezvous-secret",
                                     secret):
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 2, stderr)
            self.assertNotIn("starting again", stderr)
            said.append(stderr)
        self.assertIn("(reported by rank 0)", said[1])

    def test_hosts_meet_again_at_the_same_port(self):
        hosts = self.start_hosts()
        for lost in (1, 0):
            self.await_lines(30)
            rank, = children_of(hosts[lost].pid)
            os.kill(rank, signal.SIGKILL)
        told = ""
        for host in hosts:
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 0, stderr)
            # It restarts once for each loss, and once more if the old store
            # closes just when it is found.
            self.assertIn(stderr.count("starting again"), (2, 3), stderr)
            told += stderr
        self.assertIn("rank 1 failed: it was started again", told)
        self.check_lineage(3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--deploy", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    SuperviseTest.bin, SuperviseTest.data = flags.bin, flags.data
    SuperviseTest.deploy = flags.deploy
    unittest.main(argv=[__file__, "-v", *rest])
