# SPDX-License-Identifier: Apache-2.0
"""Pages of millrace-train --metrics: what they show while it trains, and that
whoever reads them changes nothing."""
import argparse
import base64
import contextlib
import hashlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402  (its folder comes first)

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
LIMIT = 120.0  # seconds
ADDRESS = re.compile(r"listening for metrics url=http://([0-9.]+):(\d+)/")
# Asks this host itself, even if http_proxy is set.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(port, path="/metrics", method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}",
                                     method=method)
    with OPENER.open(request, timeout=LIMIT) as response:
        return response.read().decode(), response.headers


def metrics(port):
    """The samples by name and labels."""
    samples = {}
    for line in get(port)[0].splitlines():
        if line.startswith("#"):
            continue
        name, value = line.rsplit(" ", 1)
        samples[name] = float(value)
    return samples


def families(port):
    """The types of all metrics, by name."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", get(port)[0], re.M))


def documented(page):
    """What the tables of a page say of the types of metrics, by name."""
    types = {}
    for line in (DOCS / page).read_text().splitlines():
        cells = line.split("|")
        if line.startswith("| `") and len(cells) > 3:
            for name in re.findall(r"`((?:millrace|process)_\w+)", cells[1]):
                types[name] = cells[2]
    return types


class MetricsTest(unittest.TestCase):
    bin = data = None

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="millrace-metrics-")
        cls.folder = pathlib.Path(cls.directory.name)
        subprocess.run(
            [cls.bin / "millrace", "import", "ogb", cls.data / "cora", "--out",
             cls.folder / "cora", "--undirected", "--coalesce"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def command(self, *more, store="--store"):
        source = () if store is None else (store, self.folder / "cora")
        return [str(word) for word in (
            self.bin / "millrace-train", *source, "--fanouts", "5,5",
            "--batch-size", 32, "--hidden", 16, "--threads", 1, *more)]

    def start(self, *more, addresses=1, **options):
        """Starts a trainer; returns it and the ports of its pages."""
        path = self.folder / f"{self.id()}.log"
        with path.open("w") as log:
            process = subprocess.Popen(self.command(*more, **options),
                                       stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(self.end, process)

        def ports():
            text = path.read_text()
            self.assertIsNone(process.poll(), text)
            found = [int(port) for _, port in ADDRESS.findall(text)]
            return found if len(found) == addresses else None

        return process, self.wait_for(ports)

    def end(self, process):
        process.kill()
        process.wait()

    def wait_for(self, condition):
        until = time.monotonic() + LIMIT
        while True:
            value = condition()
            if value:
                return value
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def test_run_is_shown(self):
        checkpoint = self.folder / "shown"
        _, (port,) = self.start(
            "--metrics", "127.0.0.1:0", "--epochs", 1000000, "--checkpoint",
            checkpoint)
        self.wait_for(lambda: "millrace_trainer_best_metric{"
                      'metric="accuracy",split="valid"}' in metrics(port))
        self.wait_for(lambda: metrics(port).get(
            "millrace_trainer_last_checkpoint_timestamp_seconds"))
        before = metrics(port)
        self.assertEqual(before['millrace_trainer_info{rank="0",world_size="1",'
                                'device="cpu",model="sage",task="single",'
                                'source="store",checkpoints="yes"}'], 1)
        self.assertEqual(before["millrace_trainer_ranks"], 1)
        self.assertGreater(before["millrace_trainer_loss"], 0)
        self.assertAlmostEqual(
            before["millrace_trainer_last_step_timestamp_seconds"],
            time.time(), delta=LIMIT)
        for phase in "wait", "copy", "compute", "evaluate", "checkpoint":
            name = f'millrace_trainer_seconds_total{{phase="{phase}"}}'
            self.assertGreater(before[name], 0, phase)
        after = self.wait_for(lambda: self.later(port, before))
        # 140 seeds in batches of 32: the last of 5 batches has 12.
        for samples in before, after:
            steps = samples["millrace_trainer_steps_total"]
            self.assertEqual(samples["millrace_trainer_batches_total"], steps)
            self.assertEqual(samples["millrace_trainer_seeds_total"],
                             140 * (steps // 5) + 32 * (steps % 5))
        for name in before:
            if "_total" in name:
                self.assertGreaterEqual(after[name], before[name], name)
        self.check_status(port)

    def later(self, port, before):
        samples = metrics(port)
        epoch = "millrace_trainer_epoch"
        return samples if samples[epoch] > before[epoch] else None

    def check_status(self, port):
        body, headers = get(port, "/status.json")
        self.assertEqual(headers["Content-Type"], "application/json")
        status = json.loads(body)
        self.assertEqual(status["kind"], "trainer")
        self.assertIn(status["state"], ("training", "evaluating"))
        self.assertEqual(status["run"]["source"],
                         f"store {self.folder / 'cora'}")
        steps = [step for step, _ in status["loss_curve"]]
        self.assertEqual(steps, sorted(steps))
        self.assertGreater(len(steps), 4)
        self.assertEqual(status["valid_curve"][0][0], 0)
        self.assertIsNone(status["fleet"])

    def test_page_is_for_browsers(self):
        _, (port,) = self.start("--metrics", "127.0.0.1:0", "--epochs", 1000000)
        page, headers = get(port, "/")
        policy = headers["Content-Security-Policy"]
        for tag in "script", "style":
            (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
            digest = hashlib.sha256(content.encode()).digest()
            self.assertIn(f"{tag}-src 'sha256-"
                          f"{base64.b64encode(digest).decode()}'", policy)
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        # Nothing comes from elsewhere, and no text becomes markup.
        without_names = page.replace("http://www.w3.org/2000/svg", "")
        for never in ("http:", "https:", "innerHTML", "outerHTML",
                      "insertAdjacentHTML", "document.write", "eval(",
                      " style="):
            self.assertNotIn(never, without_names)
        body, headers = get(port, "/", "HEAD")
        self.assertEqual(body, "")
        self.assertEqual(int(headers["Content-Length"]), len(page.encode()))
        for path in "/healthz", "/status", "/status.json/":
            with self.assertRaises(urllib.error.HTTPError) as raised:
                get(port, path)
            self.assertEqual(raised.exception.code, 404)
            raised.exception.close()

    def losses(self, name, *more):
        path = self.folder / f"{name}.json"
        subprocess.run(
            self.command("--epochs", 20, "--log-every", 1, "--metrics-json",
                         path, *more),
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=LIMIT * 3)
        return [(line["epoch"], line["step"], line["loss"], line["valid"])
                for line in map(json.loads, path.read_text().splitlines())]

    def test_losses_are_the_same_with_readers_that_hang(self):
        port = free_port()
        hanging = []
        done = threading.Event()

        def hang():
            # Asks for a page and never reads it, again and again.
            while not done.wait(0.01):
                with contextlib.suppress(OSError):
                    client = socket.create_connection(("127.0.0.1", port))
                    hanging.append(client)
                    client.sendall(b"GET /metrics HTTP/1.1\r\n")
                if len(hanging) == 200:
                    return

        reader = threading.Thread(target=hang)
        reader.start()
        watched = self.losses("watched", "--metrics", f"127.0.0.1:{port}")
        done.set()
        reader.join()
        self.assertTrue(hanging)
        for client in hanging:
            client.close()
        self.assertEqual(watched, self.losses("alone"))

    def test_each_rank_has_a_port(self):
        port = free_port()
        _, ports = self.start("--metrics", f"127.0.0.1:{port}", "--workers", 2,
                              "--epochs", 1000000, addresses=2)
        self.assertEqual(sorted(ports), [port, port + 1])
        for rank in range(2):
            own = (f'millrace_trainer_info{{rank="{rank}",world_size="2",'
                   'device="cpu",model="sage",task="single",source="store",'
                   'checkpoints="no"}')
            samples = self.wait_for(
                lambda: (lambda all: own in all and all)(metrics(port + rank)))
            self.assertEqual(samples["millrace_trainer_ranks"], 2)

    def test_each_rank_finds_a_free_port(self):
        _, ports = self.start("--metrics", "127.0.0.1:0", "--workers", 2,
                              "--epochs", 1000000, addresses=2)
        self.assertNotEqual(ports[0], ports[1])

    def failure(self, *more):
        done = subprocess.run(self.command("--epochs", 1, *more), text=True,
                              capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_wrong_addresses(self):
        self.assertIn("add --metrics-plaintext",
                      self.failure("--metrics", "0.0.0.0:0"))
        self.assertIn("need port 65536", self.failure(
            "--metrics", "127.0.0.1:65535", "--workers", 2))

    def test_other_hosts_may_read_on_request(self):
        _, (port,) = self.start("--metrics", "0.0.0.0:0", "--metrics-plaintext",
                                "--epochs", 1000000)
        self.assertIn("millrace_trainer_steps_total", metrics(port))

    def test_port_in_use_ends_the_run(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = subprocess.run(
                self.command("--epochs", 1, "--metrics",
                             f"127.0.0.1:{taken.getsockname()[1]}"),
                text=True, capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--metrics", done.stderr)
        self.assertIn("cannot listen there", done.stderr)

    def serve(self, *more):
        """Starts a server; returns it and its address."""
        port = self.folder / f"{self.id()}.port"
        server = subprocess.Popen(
            [self.bin / "millrace-server", "--store", self.folder / "cora",
             "--partition", "0", "--listen", "127.0.0.1:0", "--port-file",
             port, *map(str, more)], stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, server)
        self.wait_for(port.exists)
        return server, f"127.0.0.1:{port.read_text().strip()}"

    def check_documented(self, exported, types, absent=()):
        """Compares names and types, in both directions."""
        self.assertEqual(set(exported), set(types) - set(absent))
        for name, kind in exported.items():
            self.assertIn(kind, types[name], name)

    def test_metrics_are_those_of_the_documentation(self):
        page = free_port()
        _, address = self.serve("--metrics", f"127.0.0.1:{page}", "--peers",
                                "127.0.0.1:1", "--scrub", "100M")
        _, (port,) = self.start(
            "--servers", address, "--metrics", "127.0.0.1:0", "--epochs",
            1000000, "--cache-ratio", "0.5", "--checkpoint",
            self.folder / "documented", store=None)
        self.wait_for(lambda: "millrace_trainer_last_checkpoint_timestamp_"
                      "seconds" in metrics(port))
        self.wait_for(lambda: "millrace_trainer_best_metric" in families(port))
        servers = documented("protocol.md")
        self.check_documented(
            families(page), servers,
            # Without GPUs and TLS.
            ("millrace_gpu_memory_bytes", "millrace_gpu_memory_free_bytes",
             "millrace_tls_certificate_expiry_timestamp_seconds"))
        trainers = documented("training.md")
        trainers.update((name, kind) for name, kind in servers.items()
                        if name.startswith("process_") or
                        name == "millrace_build_info")
        self.check_documented(families(port), trainers)

    def test_fleet_is_shown(self):
        server, address = self.serve()
        _, (port,) = self.start(
            "--servers", address, "--metrics", "127.0.0.1:0", "--epochs",
            1000000, "--cache-ratio", "0.5", store=None)
        samples = self.wait_for(
            lambda: (lambda all: all["millrace_trainer_steps_total"] > 9 and
                     all)(metrics(port)))
        self.assertGreaterEqual(samples["millrace_client_calls_total"], 10)
        self.assertEqual(samples['millrace_client_servers{state="ready"}'], 1)
        self.assertGreater(
            samples['millrace_client_cache_rows_total{result="hit"}'], 0)
        self.assertGreater(samples["millrace_client_received_bytes_total"], 0)
        fleet = json.loads(get(port, "/status.json")[0])["fleet"]
        self.assertEqual(fleet["servers"][0]["address"], address)
        server.kill()
        self.wait_for(lambda: metrics(port)[
            'millrace_client_servers{state="unreachable"}'] == 1)
        self.wait_for(lambda: metrics(port)["millrace_client_retries_total"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    flags, rest = parser.parse_known_args()
    MetricsTest.bin, MetricsTest.data = flags.bin, flags.data
    unittest.main(argv=[__file__, "-v", *rest])
