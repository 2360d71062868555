# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of groups of millrace-train."""
import argparse
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402  (its folder comes first)

LIMIT = 30.0  # seconds


def sockets(pid):
    """A process's TCP sockets: (local address, port, remote port, state)."""
    links = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.add(os.readlink(descriptor))
    found = []
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text()
        for words in map(str.split, lines.splitlines()[1:]):
            if f"socket:[{words[9]}]" not in links:
                continue
            address, port = words[1].split(":")
            # 32-bit words in the byte order of this host.
            packed = b"".join(
                int(address[at:at + 8], 16).to_bytes(4, sys.byteorder)
                for at in range(0, len(address), 8))
            found.append((socket.inet_ntop(family, packed), int(port, 16),
                          int(words[2].split(":")[1], 16), words[3]))
    return found


class GroupCase(unittest.TestCase):
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

    def start_rank(self, rank, world, port, *more, epochs=1000000, **variables):
        environment = dict(
            os.environ, RANK=str(rank), WORLD_SIZE=str(world),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)) | variables
        process = subprocess.Popen(
            self.command("--epochs", epochs, "--eval-every", 0, *more),
            env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.communicate()

    def run_ranks(self, *options, epochs=1000000):
        """Runs ranks, each with its options; returns (status, stderr) for
        each."""
        port = free_port()
        ranks = [self.start_rank(rank, len(options), port, *more, epochs=epochs)
                 for rank, more in enumerate(options)]
        ends = [rank.communicate(timeout=LIMIT) for rank in ranks]
        return [(rank.returncode, stderr)
                for rank, (_, stderr) in zip(ranks, ends)]

    def secret(self, content="sixteen bytes or more"):
        """The options of a rank in a group with this secret."""
        path = pathlib.Path(self.directory.name) / f"secret of {content}"
        path.write_text(content)
        path.chmod(0o600)
        return "--rendezvous-secret", path

    def launch(self, *more):
        launcher = subprocess.Popen(
            self.command("--workers", 2, "--epochs", 1000000, "--eval-every",
                         0, *more),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, launcher)
        self.assertIn("epoch 0", launcher.stdout.readline())
        children = [int(pid) for pid in pathlib.Path(
            f"/proc/{launcher.pid}/task/{launcher.pid}/children"
        ).read_text().split()]
        self.assertEqual(len(children), 2)
        return launcher, children


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    GroupCase.bin, GroupCase.data = flags.bin, flags.data
    unittest.main(argv=[__file__, "-v", *rest])
