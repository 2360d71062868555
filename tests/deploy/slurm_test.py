#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The batch scripts of deploy/slurm/ under Debian's Slurm: munged, slurmctld
and two slurmd (-N node1, -N node2) on this machine, with configuration of their
own. Jobs run to the end with the losses of a run by hand; a trainer that is
killed makes its job run again, from the last checkpoint.

Runs as root on Debian 12, and installs the packages that it needs. Has two more
lines in /etc/hosts, which others do not see.

Usage: slurm_test.py [--bin DIR] [--data DIR]
  --bin DIR    the programs (default: those of the newest build, or in /usr/bin)
"""
import argparse
import atexit
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "deploy/slurm"
NODES = {"node1": "127.0.0.2", "node2": "127.0.0.3"}
CPUS = 4  # of each node, whatever this machine has
LIMIT = 240.0  # seconds, for anything

sys.path.append(str(ROOT / "tests/support"))
import deploy  # noqa: E402  (its folder comes first)
from free_port import free_port  # noqa: E402

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={work}/munge/socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=15
SlurmdSpoolDir={work}/%n
StateSaveLocation={work}/state
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/%n.pid
SlurmctldLogFile={work}/slurmctld.log
SlurmdLogFile={work}/%n.log
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP
"""


class SlurmTest(unittest.TestCase):
    bin = data = None

    @classmethod
    def setUpClass(cls):
        # Slurm starts the scripts of jobs there.
        directory = tempfile.TemporaryDirectory(
            prefix="millrace-slurm-", dir=deploy.folder_for_programs())
        atexit.register(directory.cleanup)
        cls.work = pathlib.Path(directory.name)
        cls.work.chmod(0o755)
        os.environ["PATH"] = f"{cls.bin}:{os.environ['PATH']}"
        cls.start_slurm()
        cls.store = deploy.make_cora_store(cls.bin, cls.data, cls.work)

    @classmethod
    def start_slurm(cls):
        hosts = cls.work / "hosts"
        hosts.write_text(pathlib.Path("/etc/hosts").read_text() + "".join(
            f"{address} {name}\n" for name, address in NODES.items()))
        deploy.enter_namespaces()
        deploy.run_quietly("mount", "--bind", hosts, "/etc/hosts")
        # In a chroot, others may see it (enter_namespaces()).
        atexit.register(subprocess.run, ["umount", "/etc/hosts"])
        host = socket.gethostname()
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr={address} "
            f"Port={free_port()} CPUs={CPUS}" for name, address in NODES.items())
        for name in ("state", "munge", "disk",
                     *(f"{node}/disk" for node in NODES)):
            (cls.work / name).mkdir(parents=True)
        shutil.chown(cls.work / "munge", "munge", "munge")
        config = cls.work / "slurm.conf"
        config.write_text(CONFIGURATION.format(
            host=host, control_port=free_port(), work=cls.work, nodes=nodes))
        os.environ["SLURM_CONF"] = str(config)
        munge = cls.work / "munge"
        cls.start_daemon("runuser", "-u", "munge", "--", "munged",
                         "--foreground", "--force", f"--socket={munge}/socket",
                         f"--pid-file={munge}/pid", f"--log-file={munge}/log",
                         f"--seed-file={munge}/seed")
        cls.await_true(lambda: (munge / "socket").exists(), "munged")
        cls.start_daemon("slurmctld", "-D")
        for name in NODES:
            cls.start_daemon(*deploy.SEE_INSTEAD, cls.work / "disk",
                             cls.work / name / "disk", "slurmd", "-D", "-N",
                             name)
        cls.await_true(
            lambda: subprocess.run(
                ["sinfo", "--noheader", "--format=%D %t"], text=True,
                capture_output=True).stdout.split() == ["2", "idle"],
            "Slurm's nodes")

    @classmethod
    def start_daemon(cls, *command):
        daemon = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)
        # Also after Ctrl-C, when unittest cleans up nothing.
        atexit.register(daemon.wait)
        atexit.register(daemon.terminate)

    @staticmethod
    def await_true(condition, what):
        deploy.await_true(what, condition, LIMIT)

    def setUp(self):
        self.folder = self.work / self._testMethodName
        self.folder.mkdir()
        self.json = self.folder / "run.json"
        self.addCleanup(subprocess.run, ["scancel", "--user=root"])

    def tearDown(self):
        subprocess.run(["scancel", "--user=root"])
        self.await_true(lambda: not subprocess.run(
            ["squeue", "--noheader"], capture_output=True).stdout, "the queue")
        self.await_true(lambda: not self.processes(), "programs to end")

    def training(self, epochs=4):
        return [*deploy.TRAINING, "--epochs", str(epochs), "--metrics-json",
                self.json]

    def by_hand(self, workers, epochs=4):
        path = self.folder / "by-hand.json"
        deploy.run_quietly("millrace-train", "--store", self.store,
                           *self.training(epochs), "--metrics-json", path,
                           "--workers", workers)
        return deploy.losses(path)

    def submit(self, script, *arguments, options=(), **variables):
        done = subprocess.run(
            ["sbatch", "--parsable", f"--chdir={self.folder}", *options,
             SCRIPTS / script,
             *(str(argument) for argument in arguments)],
            text=True, check=True, stdout=subprocess.PIPE,
            env={**os.environ, "STORE": str(self.store),
                 "PORT": str(free_port()), "CHECKPOINT":
                 str(self.folder / "checkpoint"),
                 "LIST": str(self.folder / "servers"), **variables})
        return done.stdout.strip()

    def state(self, job):
        done = subprocess.run(["scontrol", "show", "job", job], text=True,
                              capture_output=True)
        found = re.search(r"JobState=(\w+).* ExitCode=(\d+)", done.stdout,
                          re.DOTALL)
        return (found[1], int(found[2])) if found else ("GONE", 0)

    @staticmethod
    def cpus(job):
        """How many CPUs a job has or had, on all nodes."""
        done = subprocess.run(["scontrol", "show", "job", job], text=True,
                              stdout=subprocess.PIPE, check=True)
        return int(re.search(r"NumCPUs=(\d+)", done.stdout)[1])

    def output(self):
        return "".join(path.read_text(errors="replace")
                       for path in sorted(self.folder.glob("*.out")))

    def expect_end(self, job, state="COMPLETED", status=0):
        self.await_true(lambda: self.state(job)[0] not in (
            "PENDING", "RUNNING", "COMPLETING", "CONFIGURING"), f"job {job}")
        self.assertEqual(self.state(job), (state, status), self.output())

    def processes(self, *programs):
        return deploy.processes(self.work, *programs)

    def await_steps(self, count):
        self.await_true(lambda: self.json.exists() and len(
            self.json.read_text().splitlines()) >= count, "steps")

    def test_fleet_and_trainers_in_one_job(self):
        job = self.submit("one_job.sbatch", *self.training(), TRAINERS="2")
        self.expect_end(job)
        self.assertEqual(deploy.losses(self.json), self.by_hand(workers=4))
        self.assertEqual(self.cpus(job), 2 * CPUS)

    def test_more_trainers_than_cpus(self):
        job = self.submit(
            "one_job.sbatch", *self.training(), TRAINERS="3",
            options=["--oversubscribe", "--cpus-per-task=1"])
        self.expect_end(job)
        self.assertEqual(deploy.losses(self.json), self.by_hand(workers=6))
        self.assertEqual(self.cpus(job), 2)

    def test_fleet_and_trainers_in_two_jobs(self):
        share = ["--oversubscribe"]
        trainers = self.submit("train.sbatch", *self.training(), options=share)
        fleet = self.submit("fleet.sbatch", options=share)
        self.expect_end(trainers)
        self.assertEqual(deploy.losses(self.json), self.by_hand(workers=2))
        self.assertEqual(self.state(fleet)[0], "RUNNING", self.output())
        subprocess.run(["scancel", fleet], check=True)
        self.expect_end(fleet, "CANCELLED")

    def test_own_partitions(self):
        # Each node has and serves its own part, so both are needed.
        job = self.submit("own_partitions.sbatch", *self.training(),
                          options=["--ntasks-per-node=2"],
                          STORE=self.disk_with_own_parts())
        self.expect_end(job)
        self.assertEqual(deploy.losses(self.json), self.by_hand(workers=4))

    def disk_with_own_parts(self):
        """A path under which each node has a store with one part."""
        for index, node in enumerate(NODES):
            shutil.copytree(
                self.store, self.work / node / "disk/store", dirs_exist_ok=True,
                ignore=shutil.ignore_patterns(f"part-{1 - index:05}"))
        return str(self.work / "disk/store")

    def kill_and_resume(self, script, **variables):
        job = self.submit(script, "--checkpoint-every", 5, *self.training(20),
                          **variables)
        self.await_steps(15)
        os.kill(self.processes("millrace-train")[-1], signal.SIGKILL)
        self.expect_end(job)
        self.assertIn("running the job again", self.output())
        # On a busy machine a rank may seem lost, and the job runs once more.
        self.assertRegex(subprocess.run(
            ["scontrol", "show", "job", job], text=True,
            capture_output=True).stdout, r"Restarts=[1-3] ")
        self.assertEqual(deploy.losses(self.json), self.by_hand(2, epochs=20))
        resumed = re.findall(r"resumed checkpoint=\S+ epoch=(\d+) batch=(\d+)",
                             self.output())
        self.assertIn(len(resumed), (1, 2, 3), self.output())
        self.assertNotEqual(resumed[0], ("0", "0"))

    def test_a_killed_trainer_resumes_in_one_job(self):
        self.kill_and_resume("one_job.sbatch")

    def test_a_killed_trainer_resumes_with_own_partitions(self):
        self.kill_and_resume("own_partitions.sbatch",
                             STORE=self.disk_with_own_parts())

    def expect_wrong_usage(self, job):
        self.expect_end(job, "FAILED", 2)
        self.assertNotIn("running the job again", self.output())

    def test_wrong_options_are_not_tried_again(self):
        self.expect_wrong_usage(
            self.submit("one_job.sbatch", "--no-such-option", 1))

    def test_wrong_options_of_servers_end_a_fleet(self):
        self.expect_wrong_usage(
            self.submit("fleet.sbatch", "--no-such-option", 1))

    def test_wrong_options_of_servers_end_a_job(self):
        script = (SCRIPTS / "one_job.sbatch").read_text()
        changed = self.folder / "one_job.sbatch"
        changed.write_text(script.replace("SERVER_OPTIONS=(--plaintext)",
                                          "SERVER_OPTIONS=(--no-such-option)"))
        self.expect_wrong_usage(self.submit(changed, *self.training()))

    def server_of_one_node(self):
        """A PATH on which millrace-server ends with status 2 on one node."""
        script = self.folder / "millrace-server"
        script.write_text(f"""#!/bin/sh
[ "$SLURMD_NODENAME" != node2 ] || exit 2
exec {self.bin}/millrace-server "$@"
""")
        script.chmod(0o755)
        return f"{self.folder}:{os.environ['PATH']}"

    def test_wrong_options_on_one_node_end_a_fleet(self):
        self.expect_wrong_usage(
            self.submit("fleet.sbatch", PATH=self.server_of_one_node()))

    def test_wrong_options_on_one_node_end_a_job(self):
        self.expect_wrong_usage(
            self.submit("one_job.sbatch", *self.training(),
                        PATH=self.server_of_one_node()))

    def test_missing_programs_end_a_fleet_and_a_job(self):
        path = ":".join(folder for folder in os.environ["PATH"].split(":")
                        if folder != str(self.bin))
        for script in ("fleet.sbatch", "one_job.sbatch"):
            with self.subTest(script):
                self.expect_end(self.submit(script, PATH=path), "FAILED", 127)
                self.assertNotIn("again", self.output())

    def test_a_server_that_dies_is_started_again(self):
        job = self.submit("one_job.sbatch", *self.training(20))
        self.await_steps(5)
        os.kill(self.processes("millrace-server")[0], signal.SIGKILL)
        self.expect_end(job)
        self.assertEqual(deploy.losses(self.json), self.by_hand(2, epochs=20))
        self.assertNotIn("running the job again", self.output())

    def test_what_scripts_share_is_the_same(self):
        """Each script is copied alone, so some text is in several."""
        texts = {path.name: path.read_text()
                 for path in SCRIPTS.glob("*.sbatch")}
        for first, last, count in (("serve='\n", "\ndone'\n", 2),
                                   ("# Another try does not mend", "\nesac\n", 3)):
            found = [re.search(f"{first}.*?{last}", text, re.DOTALL)
                     for text in texts.values() if first in text]
            self.assertEqual(len(found), count)
            self.assertEqual(len({match[0] for match in found}), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=deploy.find_programs())
    parser.add_argument("--data", type=pathlib.Path,
                        default=ROOT / "tests/data")
    flags, rest = parser.parse_known_args()
    SlurmTest.bin, SlurmTest.data = flags.bin.resolve(), flags.data
    deploy.install("slurmctld", "slurmd", "slurm-client", "munge",
                   *deploy.LIBRARIES)
    deploy.use_pretended_cuda(SlurmTest.bin)
    unittest.main(argv=[__file__, "-v", *rest])
