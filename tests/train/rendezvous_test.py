# SPDX-License-Identifier: Apache-2.0
"""How the ranks of millrace-train find each other, and what strangers who reach
their port cannot do."""
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import time

from group_case import GroupCase, LIMIT, free_port, main, sockets

LISTEN = "0A"
LONG = 200.0  # seconds, for a whole run
# A rank reports a wrong option like this, as INVALID_ARGUMENT.
LIE = b"3 --lr 1e99 is not allowed"
KINDS = ("rank", "hello", "welcome", "failed", "end", "beat", "failures")
KEYS = [f"/millrace/{kind}/{rank}".encode()
        for kind in KINDS for rank in (0, 1)]


class Stranger:
    """A client that speaks the protocol of c10d's TCPStore to rank 0."""

    (VALIDATE, SET, COMPARE_SET, GET, ADD, CHECK, WAIT, COUNT, DELETE, APPEND,
     MULTI_GET, MULTI_SET, CANCEL_WAIT, PING, QUEUE_PUSH, QUEUE_POP,
     QUEUE_LENGTH, LIST) = range(18)
    MAGIC = 0x3C85F7CE
    # What follows each command: keys, values, a number, or first the count 2.
    ARGUMENTS = {
        SET: "kv", COMPARE_SET: "kvv", GET: "k", ADD: "kn", CHECK: "2kk",
        WAIT: "2kk", COUNT: "", DELETE: "k", APPEND: "kv", MULTI_GET: "2kk",
        MULTI_SET: "2kvkv", CANCEL_WAIT: "", QUEUE_PUSH: "kv",
        QUEUE_POP: "kn", QUEUE_LENGTH: "k", LIST: ""}

    def __init__(self, test, port):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        test.addCleanup(self.socket.close)
        self.socket.sendall(struct.pack("<BI", self.VALIDATE, self.MAGIC))

    @staticmethod
    def bytes(value):
        return struct.pack("<Q", len(value)) + value

    def receive(self, size):
        got = b""
        while len(got) < size:
            more = self.socket.recv(size - len(got))
            if not more:
                raise ConnectionError
            got += more
        return got

    def ping(self):
        self.socket.sendall(struct.pack("<BI", self.PING, 4711))
        assert self.receive(4) == struct.pack("<I", 4711)

    def set(self, key, value):
        self.socket.sendall(bytes([self.SET]) + self.bytes(key)
                            + self.bytes(value))

    def delete(self, key):
        self.socket.sendall(bytes([self.DELETE]) + self.bytes(key))
        return struct.unpack("<q", self.receive(8))[0]

    def tell_lies(self):
        """Sends messages that would end ranks, in the old and the current
        protocol."""
        for rank in (0, 1):
            for kind in ("rank", "hello", "welcome"):
                self.set(f"/millrace/{kind}/{rank}".encode(),
                         b"\0" * 32 + b"99999999 0 " + LIE)
            self.set(f"/millrace/failed/{rank}".encode(), LIE)
            for kind in ("end", "beat"):
                self.set(f"/millrace/{kind}/{rank}".encode(), b"99999999")
        self.set(b"/millrace/failures", b"1")

    def tell_anything(self, choices):
        """Sends random commands until rank 0 has accepted or refused them all.
        """
        make = {"k": lambda: self.bytes(choices.choice(KEYS)),
                "v": lambda: self.bytes(
                    choices.randbytes(choices.randrange(64))),
                "n": lambda: struct.pack("<q", choices.randrange(-9, 9)),
                "2": lambda: struct.pack("<Q", 2)}
        sent = b""
        for _ in range(25):
            command, arguments = choices.choice(list(self.ARGUMENTS.items()))
            sent += bytes([command]) + b"".join(
                make[argument]() for argument in arguments)
        try:
            self.socket.sendall(sent)
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(4096):
                pass
        except ConnectionError:
            pass  # refused


class RendezvousTest(GroupCase):
    def train(self, name, **more):
        """Runs a group of two workers; each epoch's loss goes to a file."""
        losses = pathlib.Path(self.directory.name) / f"{name}.json"
        process = subprocess.Popen(
            self.command("--workers", 2, "--epochs", 150, "--eval-every", 0,
                         "--metrics-json", losses),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, process)
        return process, losses

    @staticmethod
    def losses(path):
        lines = map(json.loads, path.read_text().splitlines())
        return [line["loss"] for line in lines if "loss" in line]

    @staticmethod
    def port_of(pid):
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return int(dict(word.split(b"=", 1) for word in words if word)
                   [b"MASTER_PORT"])

    @staticmethod
    def children(process):
        return [int(pid) for pid in pathlib.Path(
            f"/proc/{process.pid}/task/{process.pid}/children"
        ).read_text().split()]

    def test_one_host_listens_on_loopback_alone(self):
        _, children = self.launch()
        for rank, pid in enumerate(children):
            listening = {(address, port)
                         for address, port, _, state in sockets(pid)
                         if state == LISTEN}
            self.assertEqual({address for address, _ in listening},
                             {"127.0.0.1"})
            # All ranks meet at rank 0's port; each has another one for Gloo.
            self.assertEqual(("127.0.0.1", self.port_of(pid)) in listening,
                             rank == 0)

    def test_strangers_change_nothing_in_a_run(self):
        baseline, losses = self.train("baseline")
        _, stderr = baseline.communicate(timeout=LONG)
        self.assertEqual(baseline.returncode, 0, stderr)
        expected = self.losses(losses)
        self.assertGreaterEqual(len(expected), 150)

        # Rank 0 blocks in the middle of the run, because it cannot print any
        # more.
        attacked, losses = self.train("attacked", pipesize=4096)
        self.assertIn("epoch 0", attacked.stdout.readline())
        port = self.port_of(self.children(attacked)[0])
        stranger = Stranger(self, port)
        # This is long enough for each rank to check, and too short to lose one.
        end = time.monotonic() + 4
        choices = random.Random(1)
        while time.monotonic() < end:
            stranger.tell_lies()
            Stranger(self, port).tell_anything(choices)
            stranger = Stranger(self, port)
        for rank in (0, 1):
            stranger.delete(b"/millrace/rank/%d" % rank)
        # Garbage is sent that is not even a command.
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", bytes([Stranger.SET]) * 99,
                        b"\xff" * 1000):
            Stranger(self, port).socket.sendall(garbage)
        stranger.ping()
        stdout, stderr = attacked.communicate(timeout=LONG)
        self.assertEqual(attacked.returncode, 0, stderr)
        self.assertEqual(self.losses(losses), expected)
        for text in ("1e99", "c10d", "frame #"):
            self.assertNotIn(text, stdout + stderr)

    def test_strangers_do_not_keep_ranks_from_meeting(self):
        port = free_port()
        zero = self.start_rank(0, 2, port, *self.secret(), epochs=1)
        told = self.stderr_until(zero, 'waiting for="rank 1 ')
        Stranger(self, port).tell_lies()
        choices = random.Random(2)
        for _ in range(20):
            Stranger(self, port).tell_anything(choices)
        Stranger(self, port).tell_lies()
        one = self.start_rank(1, 2, port, *self.secret(), epochs=1)
        for rank in (zero, one):
            stdout, stderr = rank.communicate(timeout=LIMIT)
            self.assertEqual(rank.returncode, 0, told + stderr)
            for text in ("1e99", "c10d", "frame #"):
                self.assertNotIn(text, told + stdout + stderr)

    def test_different_secrets_are_reported(self):
        other = self.secret("another secret, of 16 bytes or more")
        for zero, one in ((self.secret(), ()), ((), self.secret()),
                          (self.secret(), other)):
            for rank, (status, stderr) in enumerate(self.run_ranks(zero, one)):
                self.assertEqual(status, 1, stderr)
                self.assertIn(f"rank {1 - rank} has a", stderr)
                self.assertIn("secret", stderr)
                self.assertIn("give every rank the same --rendezvous-secret",
                              stderr)

    def test_refuses_a_secret_that_is_too_short(self):
        option, path = self.secret("short")
        rank = self.start_rank(0, 2, free_port(), option, path)
        _, stderr = rank.communicate(timeout=LIMIT)
        self.assertEqual(rank.returncode, 2, stderr)
        self.assertIn("has 5 bytes; at least 16 are needed", stderr)

    def test_workers_make_their_own_secret(self):
        done = subprocess.run(
            self.command("--workers", 2, *self.secret()), text=True,
            capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--rendezvous-secret", done.stderr)

    def stderr_until(self, process, text):
        told = ""
        while text not in told:
            line = process.stderr.readline()
            self.assertNotEqual(line, "", told)
            told += line
        return told

    def interrupt(self, process, number):
        """The process ends at once, without messages of c10d."""
        process.send_signal(number)
        _, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertIn("interrupted", stderr)
        self.assertNotIn("c10d", stderr)

    def test_a_rank_names_the_ranks_it_waits_for(self):
        port = free_port()
        for rank, waits_for in (
                (1, rf"rank 0 at 127\.0\.0\.1:{port}: Connection refused"),
                (0, "rank 1 of 2")):
            for number in (signal.SIGTERM, signal.SIGINT):
                process = self.start_rank(rank, 2, port)
                told = self.stderr_until(process, "waiting for=")
                self.assertRegex(told, rf'waiting for="{waits_for}" seconds_left=\d+')
                self.interrupt(process, number)

    def test_says_that_the_master_has_no_address(self):
        port = free_port()
        for rank in (0, 1):
            process = self.start_rank(rank, 2, port, MASTER_ADDR="host.invalid")
            told = self.stderr_until(process, "waiting for=")
            self.assertRegex(told, r'waiting for=".*host\.invalid.*" seconds_left=\d+')
            self.assertNotIn("c10d", told)
            self.interrupt(process, signal.SIGTERM)

    def test_names_an_interface_that_is_not_there(self):
        done = subprocess.run(
            self.command("--workers", 2), text=True, capture_output=True,
            timeout=LIMIT, env=dict(os.environ, GLOO_SOCKET_IFNAME="nosuch0"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('GLOO_SOCKET_IFNAME is "nosuch0"', done.stderr)
        self.assertRegex(done.stderr, r"set it to one or more of .*\blo\b")
        self.assertNotIn("bug", done.stderr)

    def test_warns_about_a_group_without_a_secret(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
            except OSError:
                self.skipTest("this host has no address but loopback")
            address = probe.getsockname()[0]
        for options, warned in (((), True), (self.secret(), False)):
            process = self.start_rank(0, 2, free_port(), *options,
                                      MASTER_ADDR=address)
            told = self.stderr_until(process, "waiting for=")
            self.assertEqual("without a secret" in told, warned, told)
            self.assertEqual({local for local, _, _, state
                              in sockets(process.pid) if state == LISTEN},
                             {address})
            self.interrupt(process, signal.SIGTERM)


if __name__ == "__main__":
    main()
