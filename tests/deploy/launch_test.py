#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""millrace-launch on two hosts, 127.0.0.2 and 127.0.0.3: fleets, trainers with
the losses of a run by hand, lost servers, trainers and connections, interrupts.

Without --fake-ssh the hosts are reached through Debian's sshd, one for each
address, with keys and configuration of their own; as root on Debian 12 this
installs the packages that it needs. With --fake-ssh a script takes the place of
ssh, which needs no root.

Usage: launch_test.py [--bin DIR] [--data DIR] [--fake-ssh]
  --bin DIR    the programs (default: those of the newest build, or in /usr/bin)
"""
import argparse
import atexit
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "deploy/launch/millrace-launch"
HOSTS = ("127.0.0.2", "127.0.0.3")
LIMIT = 120.0  # seconds, for anything

sys.path.append(str(ROOT / "tests/support"))
import deploy  # noqa: E402  (its folder comes first)
from free_port import free_port  # noqa: E402


def load_launch():
    loader = importlib.machinery.SourceFileLoader("launch", str(LAUNCH))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("launch", loader))
    sys.modules["launch"] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


launch = load_launch()


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


class RestartTest(unittest.TestCase):
    """Servers that die, as processes of this host."""

    def pauses(self, script, restarts, **constants):
        """The pauses before a server that runs `script` is started again."""
        one = launch.Launch(argparse.Namespace(dry_run=False))
        lines = []
        with unittest.mock.patch.multiple(launch, log=lines.append,
                                          **constants):
            one.start(launch.Process("h server 0", ["sh", "-c", script],
                                     one.events))
            for _ in range(restarts):
                ended = one.next_event(time.monotonic() + LIMIT)
                one.start_again(ended)
        return [float(re.search(r"starting it again in ([0-9.]+) s", line)[1])
                for line in lines]

    def test_pauses_grow_while_a_server_dies_at_once(self):
        self.assertEqual(
            self.pauses("exit 1", 5, SHORTEST_PAUSE=0.1, LONGEST_PAUSE=0.5),
            [0.1, 0.2, 0.4, 0.5, 0.5])

    def test_pauses_begin_anew_after_a_steady_run(self):
        self.assertEqual(
            self.pauses("sleep 0.3; exit 1", 3, SHORTEST_PAUSE=0.1,
                        STEADY=0.2), [0.1, 0.1, 0.1])

    def test_what_another_try_does_not_mend_is_not_tried_again(self):
        for script, status in (("exit 2", 2), ("exec /none", 1),
                               ("exec /", 1)):
            with self.subTest(script):
                with self.assertRaises(launch.Failure) as caught:
                    self.pauses(script, 1)
                self.assertEqual(caught.exception.status, status)


class SilentHostTest(unittest.TestCase):
    def test_interrupts_end_the_wait_for_a_host(self):
        with tempfile.TemporaryDirectory() as folder:
            started = pathlib.Path(folder, "started")
            ssh = pathlib.Path(folder, "ssh")
            ssh.write_text(f"echo >{started}; exec sleep 60\n")
            process = subprocess.Popen(
                [LAUNCH, "--hosts", "h", "--store", "s", "--plaintext",
                 "--ssh", f"sh {ssh}", "--grace", "1"], text=True,
                stderr=subprocess.PIPE)
            self.addCleanup(process.kill)
            deploy.await_true("ssh", started.exists, LIMIT)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=10)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertIn("interrupted", stderr)


class LaunchTest(unittest.TestCase):
    bin = data = None
    fake = False
    logs = []  # paths of those of sshd

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="millrace-launch-")
        cls.addClassCleanup(directory.cleanup)
        # Remote shells must get every character as it is.
        cls.work = pathlib.Path(directory.name) / "it's $HOME \"here\""
        cls.work.mkdir()
        cls.ssh = (cls.fake_ssh(directory.name) if cls.fake
                   else cls.start_sshd(pathlib.Path(directory.name)))
        cls.store = deploy.make_cora_store(cls.bin, cls.data, cls.work)
        cls.expected = cls.by_hand(epochs=6)

    @classmethod
    def by_hand(cls, epochs):
        path = cls.work / f"by-hand-{epochs}.json"
        deploy.run_quietly(cls.bin / "millrace-train", "--store", cls.store,
                           *cls.training(epochs), "--workers", 2,
                           "--metrics-json", path)
        return deploy.losses(path)

    @staticmethod
    def fake_ssh(folder):
        script = pathlib.Path(folder) / "ssh"
        script.write_text('cd / && exec sh -c "$2"\n')
        return f"sh {shlex.quote(str(script))}"

    @classmethod
    def start_sshd(cls, folder):
        """Returns the ssh command that reaches the hosts."""
        # Without PAM, sshd lets in nobody whose account is locked.
        sshd = ["/usr/sbin/sshd"]
        if re.search("^root:!", pathlib.Path("/etc/shadow").read_text(), re.M):
            shadow = folder / "shadow"
            shadow.write_text("root:*:19000:0:99999:7:::\n")
            sshd = [*deploy.SEE_INSTEAD, "/etc/shadow", shadow, *sshd]
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
            cls.logs.append(folder / f"log-{host}")
            daemon = subprocess.Popen(
                [*sshd, "-D", "-f", config, "-E", cls.logs[-1]])
            # Also after Ctrl-C, when unittest cleans up nothing.
            atexit.register(daemon.wait)
            atexit.register(daemon.terminate)
            deploy.await_true(
                "sshd", lambda at=(host, port):
                socket.create_connection(at).close() is None, LIMIT,
                report=cls.ssh_logs)
        return (f"ssh -p {port} -i {folder}/user -o BatchMode=yes -o "
                f"UserKnownHostsFile={folder}/known -o LogLevel=ERROR -o "
                "StrictHostKeyChecking=no")

    @classmethod
    def ssh_logs(cls):
        return "".join(f"\n{path.name}:\n{path.read_text()}"
                       for path in cls.logs if path.exists())

    @staticmethod
    def training(epochs=6):
        return [*deploy.TRAINING, "--epochs", str(epochs)]

    def setUp(self):
        self.json = self.work / f"{self._testMethodName}.json"
        self.master = free_port()

    def tearDown(self):
        self.wait_until(lambda: not self.processes(), "the end of all processes")

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
        return deploy.processes(self.work, *programs)

    @staticmethod
    def wait_until(condition, what):
        deploy.await_true(what, condition, LIMIT)

    def await_steps(self, count):
        self.wait_until(lambda: self.json.exists() and len(
            self.json.read_text().splitlines()) >= count, "steps")

    def finish(self, process, status=0):
        stdout, stderr = process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, status,
                         stdout + stderr + self.ssh_logs())
        return stdout, stderr

    def test_fleet_and_trainers(self):
        stdout, stderr = self.finish(self.start_all())
        self.assertEqual(deploy.losses(self.json), self.expected)
        self.assertIn("[127.0.0.2 rank 0] epoch 0  loss ", stdout)
        self.assertIn("[127.0.0.3 server 1] ", stderr)

    def test_colocated(self):
        self.finish(self.start_all("--colocated"))
        self.assertEqual(deploy.losses(self.json), self.expected)

    def test_replicas_and_several_trainers_on_a_host(self):
        self.finish(self.start_all(
            "--servers-per-partition", 2, "--trainer-hosts", HOSTS[1],
            "--trainers-per-host", 2))
        self.assertEqual(deploy.losses(self.json), self.expected)

    def test_fleet_alone_and_trainers_alone(self):
        fleet = self.start("servers", "--store", self.store, "--port",
                           free_port())
        servers = fleet.stdout.readline().strip()
        self.finish(self.start("train", "--servers", servers))
        self.assertEqual(deploy.losses(self.json), self.expected)
        self.assertEqual(len(self.processes("millrace-server")), 2)
        fleet.send_signal(signal.SIGTERM)
        self.finish(fleet)

    def test_a_server_that_dies_is_started_again(self):
        process = self.start_all(epochs=30)
        self.await_steps(5)
        os.kill(self.processes("millrace-server")[0], signal.SIGKILL)
        _, stderr = self.finish(process)
        self.assertIn("(signal 9); starting it again", stderr)
        self.assertEqual(deploy.losses(self.json), self.by_hand(epochs=30))

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
        self.assertRegex(stderr, r"\[127.0.0.2 cat\] .*none/store.json.*: No "
                         "such file")
        self.assertIn("give a --store that all hosts have", stderr)

    def test_an_interrupt_ends_all(self):
        process = self.start_all(epochs=10000)
        self.await_steps(5)
        process.send_signal(signal.SIGINT)
        _, stderr = self.finish(process, status=130)
        self.assertEqual(self.processes(), [])
        self.assertEqual(stderr.count(" server draining why="), 2, stderr)

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=deploy.find_programs())
    parser.add_argument("--data", type=pathlib.Path,
                        default=ROOT / "tests/data")
    parser.add_argument("--fake-ssh", action="store_true")
    flags, rest = parser.parse_known_args()
    LaunchTest.bin, LaunchTest.data = flags.bin.resolve(), flags.data
    LaunchTest.fake = flags.fake_ssh
    deploy.use_pretended_cuda(LaunchTest.bin)
    if not flags.fake_ssh:
        deploy.install("openssh-server", "openssh-client", *deploy.LIBRARIES)
    unittest.main(argv=[__file__, "-v", *rest])
