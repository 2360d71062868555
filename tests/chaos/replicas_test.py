# SPDX-License-Identifier: Apache-2.0
"""Replicas come and go under load without restarting anything else: two more
increase the throughput of a fleet limited by its servers' links; killing one
causes no pause; all are restarted in turn."""
import argparse
import contextlib
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

from fault_proxy import Network


def run(*words):
    subprocess.run([str(word) for word in words], check=True,
                   capture_output=True)


class ReplicasTest(unittest.TestCase):
    bin = None

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(
            tempfile.TemporaryDirectory(prefix="millrace-replicas-")))
        random = np.random.default_rng(3)
        arrays = {"edges": random.integers(0, 20_000, (2, 200_000)),
                  "features": random.normal(size=(20_000, 64)).astype("f4"),
                  "train": np.arange(20_000)}
        words = []
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
            words += [f"--{name}", self.folder / f"{name}.npy"]
        run(self.bin / "millrace", "import", "npy", *words,
            "--out", self.folder / "store")
        self.network = Network()
        self.proxies, self.servers = [], []
        self.list = self.folder / "list"
        self.list.write_text("")

    def start(self, *command):
        process = subprocess.Popen([str(word) for word in command],
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.stack.callback(process.communicate)
        self.stack.callback(process.kill)
        return process

    def serve(self, port=0):
        """Starts a server; returns it and its port once it is ready."""
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        server = self.start(
            self.bin / "millrace-server", "--store", self.folder / "store",
            "--partition", 0, "--listen", f"127.0.0.1:{port}", "--threads", 1,
            "--port-file", port_file)
        deadline = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().strip()):
            self.assertIsNone(server.poll(), "the server ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return server, int(port_file.read_text())

    def add_replica(self, rate=None):
        server, port = self.serve()
        self.servers.append(server)
        proxy = self.network.proxy(("127.0.0.1", 0), ("127.0.0.1", port), rate)
        self.proxies.append(proxy)
        port = proxy.server.sockets[0].getsockname()[1]
        with open(self.list, "a") as file:
            file.write(f"127.0.0.1:{port}\n")

    def load(self):
        return self.start(
            self.bin / "millrace", "bench", "--servers", f"@{self.list}",
            "--fanouts", "10,5", "--batch-size", 256, "--threads", 1,
            "--batches", 1_000_000, "--prefetch-batches", 12)

    def bytes(self):
        return sum(proxy.bytes for proxy in self.proxies)

    def rate(self, seconds):
        start, before = time.monotonic(), self.bytes()
        time.sleep(seconds)
        return (self.bytes() - before) / (time.monotonic() - start)

    def longest_pause(self, seconds):
        end, longest = time.monotonic() + seconds, 0
        seen, since = self.bytes(), time.monotonic()
        while time.monotonic() < end:
            time.sleep(0.01)
            now, count = time.monotonic(), self.bytes()
            longest = max(longest, now - since)
            if count != seen:
                seen, since = count, now
        return longest

    def await_load(self, client):
        deadline = time.monotonic() + 60
        while self.bytes() < 2_000_000:
            self.assertIsNone(client.poll(), "the client ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_two_more_raise_the_throughput(self):
        self.add_replica(rate=2e6)
        client = self.load()
        self.await_load(client)
        before = self.rate(5)
        self.add_replica(rate=2e6)
        self.add_replica(rate=2e6)
        time.sleep(3)  # the list is read every second
        after = self.rate(5)
        print(f"1 replica {1e-6 * before:.1f} MB/s, 3 replicas "
              f"{1e-6 * after:.1f} MB/s")
        self.assertIsNone(client.poll())
        self.assertGreater(after, 1.5 * before)

    def test_a_killed_replica_leaves_no_pause(self):
        self.add_replica()
        self.add_replica()
        client = self.load()
        self.await_load(client)
        self.servers[0].send_signal(signal.SIGKILL)
        pause = self.longest_pause(5)
        print(f"longest pause {pause:.2f} s")
        self.assertIsNone(client.poll())
        self.assertLess(pause, 2)

    def test_rolling_restart(self):
        digest = [str(word) for word in (
            self.bin / "millrace", "digest", "--servers", f"@{self.list}",
            "--fanouts", "10,5", "--batch-size", 4,
            "--threads", 1)]
        self.add_replica()
        self.add_replica()
        want = subprocess.run(digest, check=True, text=True,
                              capture_output=True).stdout
        output = self.stack.enter_context(open(self.folder / "out", "w+"))
        client = subprocess.Popen(digest, text=True, stdout=output,
                                  stderr=subprocess.PIPE)
        self.stack.callback(client.kill)
        seen = self.bytes()
        while self.bytes() < seen + 1_000_000:
            time.sleep(0.02)
        restarts, slowest = 0, 0
        while client.poll() is None:
            number = restarts % 2
            self.servers[number].send_signal(signal.SIGTERM)
            self.assertEqual(self.servers[number].wait(60), 0)
            start = time.monotonic()
            self.servers[number], _ = self.serve(
                self.proxies[number].target[1])
            slowest = max(slowest, time.monotonic() - start)
            restarts += 1
            time.sleep(0.3)
        _, errors = client.communicate()
        output.seek(0)
        print(f"{restarts} restarts, ready within {slowest:.2f} s")
        self.assertEqual(client.returncode, 0, errors)
        self.assertEqual(output.read(), want)
        self.assertGreaterEqual(restarts, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    ReplicasTest.bin = options.bin
    unittest.main(argv=[__file__, *rest], verbosity=2)
