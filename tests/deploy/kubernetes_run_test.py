#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the pods of deploy/kubernetes/overlays/two-by-two and trainers on this
machine without a cluster (pods.py): with their command lines, options, volumes,
users, probes, mutual TLS and the names of their services. Replaces servers,
loses a node and a rank, and lets servers copy their store (local-store).

Runs on Debian 12 as root (otherwise it ends with 77); installs what
kubernetes_test.py installs, and `openssl`, `iproute2`, `python3-numpy` and the
libraries of the programs, if they are missing.

Usage: kubernetes_run_test.py [--bin DIR]      DIR has the programs
"""
import argparse
import importlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

import kubernetes_test
import pods

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests/chaos"), str(ROOT / "tests/support"),
             str(kubernetes_test.VALIDATOR_DIR)]
import deploy  # noqa: E402  (its folder comes first)

USER = 10001
OPERATOR = "millrace-operator-tls"
JOB = ["--split", "train", "--fanouts", "5,5", "--batch-size", "512"]


def install():
    if not kubernetes_test.is_complete():
        kubernetes_test.install()
        importlib.invalidate_caches()
    deploy.install("openssl", "iproute2", "python3-numpy", *deploy.LIBRARIES)


# Puts the files of a secret into a folder of its name.
KUBECTL = """
  kubectl() {  # -n NS create secret generic NAME --from-file=[KEY=]FILE...
    mkdir "$6"
    for word in "${@:7}"; do
      file=${word#--from-file=}
      cp "${file#*=}" "$6/${file%%=*}"
    done
  }"""
# A certificate of the same CA with a name that is not let in.
STRANGER = """
  mkdir stranger; cp stranger.pem stranger/tls.crt
  cp stranger.key stranger/tls.key; cp ca.pem stranger/ca.crt"""


def documented(text):
    """The block of docs/kubernetes.md that contains `text`."""
    page = (ROOT / "docs/kubernetes.md").read_text()
    blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    return next(block for block in blocks if text in block)


def make_secrets(folder):
    """Runs what docs/kubernetes.md says about secrets. Returns folders by their
    names, as the kubelet mounts them."""
    certificates = documented("millrace-$secret-tls")
    rendezvous = documented("millrace-rendezvous").split("kubectl apply")[0]
    script = "\n".join((KUBECTL, certificates, rendezvous, STRANGER,
                        f"chgrp -R {USER} */; chmod 0440 */*"))
    deploy.make_certificates(folder, {"stranger": "DNS:stranger"})
    deploy.run_quietly("bash", "-euc", script, cwd=folder)
    return {path.name: path for path in folder.iterdir() if path.is_dir()}


class PodsTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        from harness import make_store
        from kubernetes_checks import Overlay
        folder = tempfile.TemporaryDirectory(prefix="millrace-pods-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)
        for name in ("secrets", "store", "checkpoints"):
            (cls.folder / name).mkdir()
        os.chown(cls.folder / "checkpoints", USER, USER)
        make_store(cls.bin, cls.folder / "store", 2)
        cls.secrets = make_secrets(cls.folder / "secrets")
        cls.fleet, cls.copying, cls.group = (
            Overlay(kubernetes_test.render(kubernetes_test.OVERLAYS / name))
            for name in ("two-by-two", "local-store", "trainers"))
        maps = {one["metadata"]["name"]: one["data"]
                for overlay in (cls.fleet, cls.copying, cls.group)
                for one in overlay.of("ConfigMap")}
        cls.node = pods.Node(
            cls.folder, cls.bin, secrets=cls.secrets, config_maps=maps,
            claims={"millrace-store": cls.folder / "store",
                    "millrace-checkpoints": cls.folder / "checkpoints"})
        cls.addClassCleanup(cls.end_all)
        cls.servers = {}
        for one in cls.fleet.of("StatefulSet"):
            for index in range(one["spec"]["replicas"]):
                pod = pods.Pod(cls.node, one, index)
                cls.servers[pod.name] = cls.node.start(pod)
        for pod in cls.servers.values():
            pod.await_probe("startupProbe", 60)
            pod.await_probe("readinessProbe", 60)
            pod.await_probe("livenessProbe", 10)
        cls.expected = cls.millrace("digest", "--store",
                                    cls.folder / "store/store", *JOB)

    @classmethod
    def end_all(cls):
        for pod in list(cls.node.pods.values()):
            if pod.process:
                pod.kill()

    @classmethod
    def millrace(cls, command, *words, secret=None, status=0,
                 servers="millrace-servers"):
        """Output of `millrace`, on the node; with the certificate of `secret`
        it asks the servers of this name."""
        if secret:
            folder = cls.secrets[secret]
            words = [*words, "--servers", f"dns:///{servers}:7000",
                     "--tls-ca", folder / "ca.crt", "--tls-cert",
                     folder / "tls.crt", "--tls-key", folder / "tls.key"]
        done = subprocess.run(
            [*pods.UNSHARE, "bash", "-c",
             'mount --bind "$0" /etc/hosts; exec "$@"', cls.node.hosts,
             cls.bin / "millrace", command, *map(str, words)],
            text=True, capture_output=True, timeout=120)
        if done.returncode != status:
            raise AssertionError(f"{done.returncode}: {done.stdout}"
                                 f"{done.stderr}")
        return done.stdout if status == 0 else done.stderr

    def replace(self, name, overlay):
        """Ends a server; a new pod of an overlay, with another address, takes
        its place."""
        old = self.servers[name]
        status = old.terminate()
        self.assertEqual(status, 0, old.log.read_text())
        workload = overlay.named["StatefulSet", name.rpartition("-")[0]]
        new = pods.Pod(self.node, workload, name.rpartition("-")[2])
        self.servers[name] = self.node.start(new)
        new.await_probe("readinessProbe", 60)

    def start_trainers(self, *args):
        (job,) = self.group.of("Job")
        return [self.node.start(pods.Pod(self.node, job, rank, args))
                for rank in range(job["spec"]["completions"])]

    def await_checkpoint(self, ranks):
        deadline = time.monotonic() + 120
        while not (self.folder / "checkpoints/run/last.pt").exists():
            for rank in ranks:
                self.assertIsNone(rank.process.poll(), rank.log.read_text())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)

    def test_1_operators_see_the_fleet_and_strangers_do_not(self):
        told = self.millrace("status", "--wait", "60s", secret=OPERATOR)
        for pod in self.servers.values():
            self.assertIn(f"{pod.address}:7000", told)
        self.millrace("status", secret="millrace-server-tls")
        # As clients in other namespaces call them.
        self.millrace("status", secret=OPERATOR,
                      servers="millrace-servers.millrace.svc")
        digest = self.millrace("digest", *JOB, secret=OPERATOR)
        self.assertEqual(digest, self.expected)
        refused = self.millrace("digest", *JOB, "--partition-wait", "5s",
                                secret="stranger", status=1)
        self.assertIn("does it want a certificate", refused)
        logs = "".join(pod.log.read_text() for pod in self.servers.values())
        self.assertRegex(logs, "stranger.*has no allowed name")

    def test_2_replacing_every_server_changes_no_batch(self):
        for name in list(self.servers):
            self.replace(name, self.fleet)
            self.assertEqual(
                self.millrace("digest", *JOB, secret=OPERATOR),
                self.expected)

    def test_3_a_lost_node_changes_no_batch(self):
        for name in ("millrace-server-0-0", "millrace-server-1-0"):
            self.servers.pop(name).kill()
        self.assertEqual(self.millrace("digest", *JOB, secret=OPERATOR),
                         self.expected)

    def test_4_servers_copy_only_their_own_partition(self):
        for name in list(self.servers):
            self.replace(name, self.copying)
            copy = self.servers[name].folder / "local/store"
            self.assertEqual(len(list(copy.glob("part-*"))), 1)
        self.assertEqual(self.millrace("digest", *JOB, secret=OPERATOR),
                         self.expected)

    def test_5_a_lost_rank_ends_the_group_which_then_continues(self):
        ranks = self.start_trainers("--epochs", "200", "--checkpoint-every",
                                    "1")
        self.await_checkpoint(ranks)
        for rank in ranks:
            there, metrics = rank.get("/metrics", "metrics")
            self.assertTrue(there, metrics)
            self.assertIn("millrace_trainer_steps_total", metrics)
        ranks[1].kill()
        self.assertEqual(ranks[0].wait(60), 1, ranks[0].log.read_text())
        ranks = self.start_trainers("--epochs", "1")
        for rank in ranks:
            self.assertEqual(rank.wait(120), 0, rank.log.read_text())
        self.assertIn('"message":"resumed","checkpoint":',
                      ranks[0].log.read_text())


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: only root can make namespaces")
        sys.exit(77)
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path,
                        default=deploy.find_programs())
    flags, rest = parser.parse_known_args()
    PodsTest.bin = flags.bin.resolve()
    deploy.use_pretended_cuda(PodsTest.bin)
    install()
    pods.enter_namespaces()
    unittest.main(argv=["kubernetes_run_test.py", *rest])
