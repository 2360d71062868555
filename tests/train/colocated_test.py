# SPDX-License-Identifier: Apache-2.0
"""Trainers that keep a server beside them (--serve), on two pretended hosts
that have the files of one partition each: the losses are those of --store, and
no server is left, whatever happens."""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402  (its folder comes first)

LIMIT = 90.0  # seconds, for anything


def command_of(pid):
    """The words of a process's command; none if it has ended."""
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        return text.split("\0")
    return []


def servers_of(pid):
    """Servers that a process has started, by process id."""
    path = pathlib.Path(f"/proc/{pid}/task")
    children = []
    with contextlib.suppress(OSError):
        for task in path.iterdir():
            children += (task / "children").read_text().split()
    return [int(child) for child in children
            if pathlib.Path(command_of(child)[:1][0] if command_of(child)
                            else "-").name == "millrace-server"]


def losses(path):
    return [json.loads(line)["loss"] for line in path.read_text().splitlines()]


class ColocatedTest(unittest.TestCase):
    bin = data = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-beside-")
        cls.work = pathlib.Path(cls.directory.name)
        quiet = {"check": True, "stderr": subprocess.DEVNULL,
                 "stdout": subprocess.DEVNULL}
        subprocess.run([cls.bin / "millrace", "import", "ogb",
                        cls.data / "cora", "--split", "public", "--out",
                        cls.work / "cora"], **quiet)
        subprocess.run([cls.bin / "millrace", "partition", cls.work / "cora",
                        "--parts", "2", "--out", cls.work / "store"], **quiet)
        # A host has its own part only.
        for part in range(2):
            own = cls.work / f"host-{part}"
            shutil.copytree(cls.work / "store", own)
            shutil.rmtree(own / f"part-0000{1 - part}")
        # The answer: both trainers read the whole store themselves.
        subprocess.run(cls.command(cls.work / "store", "--workers", "2",
                                   "--metrics-json", cls.work / "one.json"),
                       **quiet)
        cls.expected = losses(cls.work / "one.json")

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def setUp(self):
        self.folder = self.work / self._testMethodName
        self.folder.mkdir()
        self.ports = [free_port(), free_port()]
        self.master = free_port()

    @classmethod
    def command(cls, store, *more, epochs=8):
        return [str(word) for word in (
            cls.bin / "millrace-train", "--store", store, "--fanouts", "5,5",
            "--batch-size", 8, "--hidden", 16, "--threads", 1, "--log-every",
            1, "--epochs", epochs, *more)]

    def start(self, command, **variables):
        process = subprocess.Popen(
            command, text=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env={**os.environ, **variables})
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate(timeout=LIMIT)

    def serve(self, host):
        address = [f"127.0.0.1:{port}" for port in self.ports]
        return ["--partition", host, "--serve", address[host], "--peers",
                ",".join(address)]

    def start_host(self, host, *more, **options):
        return self.start(
            self.command(self.work / f"host-{host}", *self.serve(host),
                         "--metrics-json", self.folder / "run.json", *more,
                         **options),
            RANK=str(host), WORLD_SIZE="2", LOCAL_RANK="0",
            LOCAL_WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(self.master),
            # The trainer's variables are not the server's.
            MILLRACE_THREADS="77777")

    def wait(self, condition, what):
        until = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.01)

    def await_lines(self, count):
        path = self.folder / "run.json"
        self.wait(lambda: path.exists()
                  and len(path.read_text().splitlines()) >= count, "no steps")

    def await_servers(self, hosts):
        self.wait(lambda: all(servers_of(host.pid) for host in hosts),
                  "no servers")
        return [server for host in hosts for server in servers_of(host.pid)]

    def await_end_of(self, servers):
        self.wait(lambda: not any(command_of(pid) for pid in servers),
                  "a server is left")

    def test_two_hosts(self):
        hosts = [self.start_host(host) for host in range(2)]
        servers = self.await_servers(hosts)
        self.assertEqual(len(servers), 2)
        for host in hosts:
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 0, stderr)
            self.assertIn("[server] ", stderr)
        self.assertEqual(losses(self.folder / "run.json"), self.expected)
        self.await_end_of(servers)

    def make_certificates(self):
        """Returns the options of TLS for both sides."""
        path = self.folder / "host"
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes")
        for command in (
                ("req", "-x509", *key, "-keyout", f"{path}-ca.key", "-out",
                 f"{path}-ca.pem", "-days", "30", "-subj", "/CN=our CA"),
                ("req", *key, "-keyout", f"{path}.key", "-out", f"{path}.csr",
                 "-subj", "/CN=host", "-addext",
                 "subjectAltName=IP:127.0.0.1"),
                ("x509", "-req", "-in", f"{path}.csr", "-CA",
                 f"{path}-ca.pem", "-CAkey", f"{path}-ca.key", "-days", "30",
                 "-CAcreateserial", "-copy_extensions", "copy", "-out",
                 f"{path}.pem")):
            subprocess.run(["openssl", *command], check=True,
                           stderr=subprocess.DEVNULL)
        return ["--tls-cert", f"{path}.pem", "--tls-key", f"{path}.key",
                "--tls-ca", f"{path}-ca.pem"]

    def test_two_hosts_with_tls(self):
        tls = self.make_certificates()
        hosts = [self.start_host(host, *tls) for host in range(2)]
        servers = self.await_servers(hosts)
        # Without a certificate, a client is not admitted.
        stranger = subprocess.run(
            [self.bin / "millrace", "status", "--servers",
             f"127.0.0.1:{self.ports[0]}", "--timeout", "5"],
            capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(stranger.returncode, 1, stranger.stderr)
        for host in hosts:
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 0, stderr)
        self.assertEqual(losses(self.folder / "run.json"), self.expected)
        self.await_end_of(servers)

    def test_workers_share_a_server(self):
        trainer = self.start(self.command(
            self.work / "store", "--partition", "all", "--serve",
            f"127.0.0.1:{self.ports[0]}", "--workers", 2, "--metrics-json",
            self.folder / "run.json"))
        servers = self.await_servers([trainer])
        self.assertEqual(len(servers), 1)
        _, stderr = trainer.communicate(timeout=LIMIT)
        self.assertEqual(trainer.returncode, 0, stderr)
        self.assertNotIn("[rank 1] [server] ", stderr)
        self.assertEqual(losses(self.folder / "run.json"), self.expected)
        self.await_end_of(servers)

    def test_a_killed_server_is_started_again(self):
        hosts = [self.start_host(host, epochs=40) for host in range(2)]
        killed = []
        for steps, host in ((5, 0), (30, 1), (60, 1)):
            self.await_lines(steps)
            before = self.await_servers([hosts[host]])
            os.kill(before[0], signal.SIGKILL)
            killed += before
        told = ""
        for host in hosts:
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 0, stderr)
            told += stderr
        self.assertEqual(told.count("was killed by signal 9 (Killed)"), 3)
        self.assertEqual(told.count("has ended and is started again "), 3)
        one = self.folder / "one.json"
        subprocess.run(self.command(self.work / "store", "--workers", 2,
                                    "--metrics-json", one, epochs=40),
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        self.assertEqual(losses(self.folder / "run.json"), losses(one))

    def test_a_killed_trainer_leaves_no_server(self):
        hosts = [self.start_host(host, epochs=10000) for host in range(2)]
        self.await_lines(5)
        servers = self.await_servers(hosts)
        hosts[1].kill()
        _, stderr = hosts[0].communicate(timeout=LIMIT)
        self.assertEqual(hosts[0].returncode, 1, stderr)
        self.assertIn("rank 1", stderr)
        self.await_end_of(servers)

    def test_an_interrupt_ends_the_server_too(self):
        hosts = [self.start_host(host, epochs=10000) for host in range(2)]
        self.await_lines(5)
        servers = self.await_servers(hosts)
        for host in hosts:
            host.send_signal(signal.SIGINT)
        for host in hosts:
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 130, stderr)
        self.await_end_of(servers)

    def test_a_server_that_cannot_start(self):
        # The second host's port is taken; both hosts say so.
        blocker = self.start([
            str(self.bin / "millrace-server"), "--store",
            str(self.work / "store"), "--partition", "1", "--listen",
            f"127.0.0.1:{self.ports[1]}", "--port-file",
            str(self.folder / "port")])
        self.wait(lambda: (self.folder / "port").exists(), "no blocker")
        hosts = [self.start_host(host) for host in range(2)]
        for host in hosts:
            _, stderr = host.communicate(timeout=LIMIT)
            self.assertEqual(host.returncode, 1, stderr)
            self.assertIn("the server of --partition 1 ended with status 1: "
                          f"--listen 127.0.0.1:{self.ports[1]}: cannot listen "
                          "there", stderr)
        self.end(blocker)

    def test_a_server_that_refuses_its_options(self):
        config = self.folder / "server.conf"
        config.write_text("no-such-option = 1\n")
        host = self.start(self.command(
            self.work / "store", "--partition", "all", "--serve",
            f"127.0.0.1:{self.ports[0]}", "--serve-config", config))
        _, stderr = host.communicate(timeout=LIMIT)
        self.assertEqual(host.returncode, 2, stderr)
        self.assertIn("ended with status 2: ", stderr)
        self.assertIn("no-such-option", stderr)

    def test_a_log_in_json(self):
        def run(address):
            trainer = self.start(self.command(
                self.work / "store", "--partition", "all", "--serve", address,
                "--plaintext", "--log-format", "json", epochs=1))
            _, stderr = trainer.communicate(timeout=LIMIT)
            return trainer.returncode, [json.loads(line)
                                        for line in stderr.splitlines()]
        status, events = run(f"127.0.0.1:{self.ports[0]}")
        self.assertEqual(status, 0, events)
        self.assertIn("server", [event["component"] for event in events])
        status, events = run("192.0.2.1:1")
        self.assertEqual(status, 1, events)
        self.assertIn("the server of --partition all ended with status 1: "
                      "--listen 192.0.2.1:1: cannot listen there",
                      events[-1]["message"])
        self.assertIn("give an address of this host", events[-1]["advice"])

    def test_some_partitions_need_peers(self):
        host = self.start(self.command(
            self.work / "host-1", "--partition", 1, "--serve",
            f"127.0.0.1:{self.ports[0]}"))
        _, stderr = host.communicate(timeout=LIMIT)
        self.assertEqual(host.returncode, 2, stderr)
        self.assertIn("--partition 1 is 1 of the 2 partitions", stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    ColocatedTest.bin, ColocatedTest.data = flags.bin, flags.data
    unittest.main(argv=[__file__, "-v", *rest])
