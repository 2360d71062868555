#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""millrace-launch on two hosts, 127.0.0.2 and 127.0.0.3: fleets, trainers with
the losses of a run by hand, lost servers, trainers and connections, interrupts.

Without --fake-ssh the hosts are reached through Debian's sshd, one for each
address, with keys and configuration of their own; as root on Debian 12 this
installs the packages that it needs. With --fake-ssh a script takes the place of
ssh, which needs no root.

Usage: launch_test.py [--bin DIR] [--data DIR] [--fake-ssh]
  --bin DIR    the programs (default build/cuda/bin or build/release/bin)
"""
import argparse
import atexit
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "deploy/launch/millrace-launch"
HOSTS = ("127.0.0.2", "127.0.0.3")
LIMIT = 120.0  # seconds, for anything
PACKAGES = ("openssh-server", "openssh-client", "libgrpc++1.51",
            "libspdlog1.10", "libmetis5", "libxxhash0", "libcivetweb1",
            "libprometheus-cpp-core1.0", "libgomp1")

sys.path.append(str(ROOT / "tests/support"))
from free_port import free_port  # noqa: E402  (its folder comes first)


def load_launch():
    loader = importlib.machinery.SourceFileLoader("launch", str(LAUNCH))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("launch", loader))
    sys.modules["launch"] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


launch = load_launch()


def install():
    installed = subprocess.run(["dpkg-query", "--show", *PACKAGES],
                               capture_output=True)
    if installed.returncode == 0:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-qq", "update"], check=True, env=environment)
    subprocess.run(["apt-get", "-qq", "-y", "--no-install-recommends",
                    "install", *PACKAGES], check=True, env=environment,
                   stdout=subprocess.DEVNULL)


def use_pretended_cuda(folder):
    """Programs built with tests/ptxemu need its libraries."""
    library = folder.parent / "tests/ptxemu/lib"
    if library.exists() and "LD_LIBRARY_PATH" not in os.environ:
        os.environ["LD_LIBRARY_PATH"] = str(library)


def losses(path):
    return [json.loads(line)["loss"] for line in path.read_text().splitlines()]


class PlacementTest(unittest.TestCase):
    """What needs no host."""

    def place(self, hosts, parts, replicas):
        hosts = [launch.Host(f"h{i}", f"h{i}") for i in range(hosts)]
        return launch.place_servers(hosts, parts, replicas, 7000)

    def test_replicas_are_on_different_hosts(self):
        for hosts in range(1, 7):
            for parts in range(1, 9):
                for replicas in range(1, hosts + 1):
                    servers = self.place(hosts, parts, replicas)
                    self.assertEqual(len(servers), parts * replicas)
                    for part in range(parts):
                        self.assertEqual(len({
                            server.host for server in servers
                            if server.partition == part}), replicas)
                    self.assertEqual(len({server.address
                                          for server in servers}),
                                     len(servers))

    def test_servers_are_spread_evenly(self):
        for hosts in range(1, 7):
            servers = self.place(hosts, 6, 1)
            loads = [sum(server.host.target == f"h{i}" for server in servers)
                     for i in range(hosts)]
            self.assertLessEqual(max(loads) - min(loads), 1)

    def test_every_partition_has_a_host(self):
        for hosts in range(1, 6):
            for parts in range(1, 6):
                served = [part for index in range(hosts) for part in
                          launch.own_partitions(index, hosts, parts).split(",")]
                self.assertEqual({int(part) for part in served},
                                 set(range(parts)))

    def test_hosts_in_a_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("# hosts\nme@node1 10.0.0.1\n\nnode2  # the other\n")
            file.flush()
            self.assertEqual(launch.read_hosts(f"@{file.name}", "--hosts"),
                             [launch.Host("me@node1", "10.0.0.1"),
                              launch.Host("node2", "node2")])
        self.assertEqual(launch.read_hosts("me@a,::1", "--hosts"),
                         [launch.Host("me@a", "a"), launch.Host("::1", "::1")])
        self.assertEqual(launch.Host("x", "::1").at(5), "[::1]:5")

    def refuse(self, line, *expected):
        done = subprocess.run(
            [sys.executable, LAUNCH, *shlex.split(line)], text=True,
            capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2, done.stderr)
        for text in expected:
            self.assertIn(text, done.stderr)

    def test_refusals(self):
        self.refuse("--hosts a", "--store is needed")
        self.refuse("--hosts a --store s --parts 1", "no --tls-cert")
        self.refuse("--hosts a --store s --tls-ca c", "need --tls-cert")
        self.refuse("--hosts a --store s --plaintext --tls-ca c", "together")
        self.refuse("--hosts a,a --store s --plaintext", "twice")
        self.refuse("--hosts , --store s --plaintext", "no host")
        self.refuse("--hosts a --store s --plaintext --parts 1 "
                    "--servers-per-partition 2", "as many hosts")
        self.refuse("train --hosts a", "--servers LIST")
        self.refuse("train --hosts a --servers b:1 --colocated", "--colocated")
        self.refuse("--hosts a --store s --plaintext -- --workers 2",
                    "--workers after --", "--trainers-per-host")
        self.refuse("--hosts a --store s --plaintext --dry-run", "--parts")
        self.refuse("--hosts @/none --store s", "No such file")
        self.refuse("--hosts a --store s --env A", "NAME=VALUE")

    def test_dry_run(self):
        done = subprocess.run(
            [sys.executable, LAUNCH, "--hosts", "a,me@b", "--store", "a b",
             "--parts", "2", "--trainers-per-host", "2", "--tls-cert", "c",
             "--tls-key", "k", "--tls-ca", "ca", "--prefix", "/p", "--dry-run",
             "--", "--fanouts", "5"],
            text=True, capture_output=True, timeout=LIMIT, check=True)
        tls = "--tls-cert c --tls-key k --tls-ca ca"
        self.assertEqual(done.stdout.splitlines(), [
            "a$ /p/bin/millrace-server --store 'a b' --partition 0 --listen "
            f"a:7000 --peers a:7000,b:7000 {tls}",
            "me@b$ /p/bin/millrace-server --store 'a b' --partition 1 --listen "
            f"b:7000 --peers a:7000,b:7000 {tls}",
            "a$ /p/bin/millrace status --servers a:7000,b:7000 --wait 60s "
            + tls,
            *(f"{target}$ env RANK={rank} WORLD_SIZE=4 LOCAL_RANK={rank % 2} "
              "LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=29500 "
              f"/p/bin/millrace-train --servers a:7000,b:7000 {tls} "
              "--fanouts 5"
              for rank, target in enumerate(["a", "a", "me@b", "me@b"]))])


class LaunchTest(unittest.TestCase):
    bin = data = None
    fake = False

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="millrace-launch-")
        cls.addClassCleanup(directory.cleanup)
        # Remote shells must get every character as it is.
        cls.work = pathlib.Path(directory.name) / "it's $HOME \"here\""
        cls.work.mkdir()
        cls.ssh = (cls.fake_ssh(directory.name) if cls.fake
                   else cls.start_sshd(pathlib.Path(directory.name)))
        quiet = {"check": True, "stdout": subprocess.DEVNULL,
                 "stderr": subprocess.DEVNULL}
        subprocess.run([cls.bin / "millrace", "import", "ogb",
                        cls.data / "cora", "--split", "public", "--out",
                        cls.work / "cora"], **quiet)
        cls.store = cls.work / "store"
        subprocess.run([cls.bin / "millrace", "partition", cls.work / "cora",
                        "--parts", "2", "--out", cls.store], **quiet)
        subprocess.run([cls.bin / "millrace-train", "--store", cls.store,
                        *cls.training(), "--workers", "2", "--metrics-json",
                        cls.work / "by-hand.json"], **quiet)
        cls.expected = losses(cls.work / "by-hand.json")

    @staticmethod
    def fake_ssh(folder):
        script = pathlib.Path(folder) / "ssh"
        script.write_text('#!/bin/sh\ncd / && exec sh -c "$2"\n')
        script.chmod(0o755)
        return str(script)

    @classmethod
    def start_sshd(cls, folder):
        """Returns the ssh command that reaches the hosts."""
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "",
                            "-f", folder / name], check=True)
        port = free_port()
        os.makedirs("/run/sshd", exist_ok=True)
        for host in HOSTS:
            config = folder / f"sshd-{host}"
            config.write_text(
                f"ListenAddress {host}:{port}\nHostKey {folder}/host\n"
                f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\n"
                "PermitRootLogin yes\nUsePAM no\nPasswordAuthentication no\n"
                f"PidFile {folder}/pid-{host}\n")
            daemon = subprocess.Popen(
                ["/usr/sbin/sshd", "-D", "-f", config],
                stderr=subprocess.DEVNULL)
            # Also after Ctrl-C, when unittest cleans up nothing.
            atexit.register(daemon.wait)
            atexit.register(daemon.terminate)
            until = time.monotonic() + LIMIT
            while time.monotonic() < until:
                with socket.socket() as probe:
                    if probe.connect_ex((host, port)) == 0:
                        break
                time.sleep(0.05)
        return (f"ssh -p {port} -i {folder}/user -o BatchMode=yes -o "
                f"UserKnownHostsFile={folder}/known -o LogLevel=ERROR -o "
                "StrictHostKeyChecking=no")

    @staticmethod
    def training(epochs=6):
        return ["--fanouts", "5,5", "--batch-size", "8", "--hidden", "16",
                "--threads", "1", "--log-every", "1", "--epochs", str(epochs)]

    def setUp(self):
        self.json = self.work / f"{self._testMethodName}.json"
        self.master = free_port()

    def tearDown(self):
        self.wait_until(lambda: not self.processes(), "a process is left")

    def start(self, *command, options=(), epochs=6):
        environment = [f"LD_LIBRARY_PATH={os.environ['LD_LIBRARY_PATH']}"] if (
            "LD_LIBRARY_PATH" in os.environ) else []
        trains = "servers" not in command
        words = [sys.executable, LAUNCH, *command, "--hosts", ",".join(HOSTS),
                 "--ssh", self.ssh, "--prefix", self.bin.parent,
                 "--master-port", self.master, "--grace", 20,
                 *(word for variable in environment
                   for word in ("--env", variable)),
                 *(["--", *self.training(epochs), "--metrics-json", self.json,
                    *options] if trains else [])]
        process = subprocess.Popen(
            [str(word) for word in words], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.communicate(timeout=LIMIT)

    def start_all(self, *more, **options):
        return self.start("--store", self.store, "--port", free_port(), *more,
                          **options)

    def processes(self, *programs):
        """Programs of ours that run, whoever started them, by process id."""
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (folder / "cmdline").read_bytes().split(b"\0")
                name = pathlib.Path(words[0].decode()).name
                if (name.startswith("millrace") and any(
                        os.fsencode(self.work) in word for word in words)
                        and (not programs or name in programs)):
                    found.append(int(folder.name))
        return found

    def wait_until(self, condition, what):
        until = time.monotonic() + LIMIT
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.05)

    def await_steps(self, count):
        self.wait_until(lambda: self.json.exists() and len(
            self.json.read_text().splitlines()) >= count, "no steps")

    def finish(self, process, status=0):
        stdout, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, status, stdout + stderr)
        return stdout, stderr

    def test_fleet_and_trainers(self):
        stdout, stderr = self.finish(self.start_all())
        self.assertEqual(losses(self.json), self.expected)
        self.assertIn("[127.0.0.2 rank 0] epoch 0  loss ", stdout)
        self.assertIn("[127.0.0.3 server 1] ", stderr)

    def test_colocated(self):
        self.finish(self.start_all("--colocated"))
        self.assertEqual(losses(self.json), self.expected)

    def test_replicas_and_several_trainers_on_a_host(self):
        self.finish(self.start_all(
            "--servers-per-partition", 2, "--trainer-hosts", HOSTS[1],
            "--trainers-per-host", 2))
        self.assertEqual(losses(self.json), self.expected)

    def test_fleet_alone_and_trainers_alone(self):
        fleet = self.start("servers", "--store", self.store, "--port",
                           free_port())
        servers = fleet.stdout.readline().strip()
        self.finish(self.start("train", "--servers", servers))
        self.assertEqual(losses(self.json), self.expected)
        self.assertEqual(len(self.processes("millrace-server")), 2)
        fleet.send_signal(signal.SIGTERM)
        self.finish(fleet)

    def test_a_server_that_dies_is_started_again(self):
        process = self.start_all(epochs=30)
        self.await_steps(5)
        os.kill(self.processes("millrace-server")[0], signal.SIGKILL)
        _, stderr = self.finish(process)
        self.assertIn("(signal 9); starting it again", stderr)
        again = self.work / "long.json"
        subprocess.run([self.bin / "millrace-train", "--store", self.store,
                        *self.training(30), "--workers", "2",
                        "--metrics-json", again], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertEqual(losses(self.json), losses(again))

    def test_a_trainer_that_dies_ends_all(self):
        process = self.start_all(epochs=10000)
        self.await_steps(5)
        os.kill(self.processes("millrace-train")[0], signal.SIGKILL)
        _, stderr = self.finish(process, status=1)
        self.assertIn("rank ", stderr)
        self.assertIn("ended with status", stderr)

    def test_wrong_options_of_trainers(self):
        _, stderr = self.finish(self.start_all(options=["--no-such"]), 2)
        self.assertIn("--no-such", stderr)

    def test_a_store_that_is_not_there(self):
        _, stderr = self.finish(self.start("--store", self.work / "none"), 1)
        self.assertRegex(stderr, "127.0.0.2: .*none/store.json.*: No such file")

    def test_an_interrupt_ends_all(self):
        process = self.start_all(epochs=10000)
        self.await_steps(5)
        process.send_signal(signal.SIGINT)
        _, stderr = self.finish(process, status=130)
        self.assertEqual(self.processes(), [])
        self.assertEqual(stderr.count("draining"), 2, stderr)

    def test_nothing_outlives_a_killed_launcher(self):
        process = self.start_all("--colocated", epochs=10000)
        self.await_steps(5)
        self.assertEqual(len(self.processes("millrace-server")), 2)
        process.kill()
        process.communicate(timeout=LIMIT)

    def test_nothing_outlives_a_lost_connection(self):
        process = self.start_all(epochs=10000)
        self.await_steps(5)
        # The trainers' ssh processes came last.
        path = pathlib.Path(f"/proc/{process.pid}/task")
        children = [int(pid) for task in path.iterdir()
                    for pid in (task / "children").read_text().split()]
        os.kill(max(children), signal.SIGKILL)
        _, stderr = self.finish(process, status=1)
        self.assertIn("rank ", stderr)


def find_programs():
    for preset in ("cuda", "release"):
        folder = ROOT / "build" / preset / "bin"
        if (folder / "millrace-train").exists():
            return folder
    return pathlib.Path("/usr/bin")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=find_programs())
    parser.add_argument("--data", type=pathlib.Path,
                        default=ROOT / "tests/data")
    parser.add_argument("--fake-ssh", action="store_true")
    flags, rest = parser.parse_known_args()
    LaunchTest.bin, LaunchTest.data = flags.bin.resolve(), flags.data
    LaunchTest.fake = flags.fake_ssh
    use_pretended_cuda(LaunchTest.bin)
    if not flags.fake_ssh:
        install()
    unittest.main(argv=[__file__, "-v", *rest])
