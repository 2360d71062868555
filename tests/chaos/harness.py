# SPDX-License-Identifier: Apache-2.0
"""Servers that can be killed, training from them, and comparing two runs."""
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from free_port import free_port  # noqa: E402  (its folder comes first)

SEEDS = 20_000  # per epoch


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, text=True,
                          capture_output=True)


def make_store(binary, folder, parts):
    """Makes a store of `parts` partitions whose features reveal the classes.
    """
    random_ = np.random.default_rng(3)
    nodes, edges, classes = 30_000, 300_000, 8
    label = random_.integers(0, classes, nodes)
    feature = random_.normal(size=(nodes, 64)).astype(np.float32)
    feature[np.arange(nodes), label] += 2
    arrays = {"edges": random_.integers(0, nodes, (2, edges)),
              "features": feature, "labels": label,
              "train": np.arange(SEEDS), "valid": np.arange(SEEDS, 22_000)}
    words = []
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        words += [f"--{name}", folder / f"{name}.npy"]
    run(binary / "millrace", "import", "npy", *words, "--out", folder / "data")
    run(binary / "millrace", "partition", folder / "data", "--parts", parts,
        "--method", "random", "--out", folder / "store")
    return folder / "store"


class Server:
    """A millrace-server that can be killed and restarted at its address."""

    def __init__(self, binary, store, part, log, address="127.0.0.1",
                 prefix=()):
        self.address, self.port = address, free_port()
        self.command = [
            *prefix, binary / "millrace-server", "--store", store,
            "--partition", part, "--listen", f"{self.address}:{self.port}",
            "--threads", 2, "--plaintext"]
        self.log = log
        self.part = part
        self.process = None
        self.listed = f"{self.address}:{self.port}"

    def start(self, peers):
        self.process = subprocess.Popen(
            [str(word) for word in (*self.command, "--peers", f"@{peers}")],
            stderr=self.log, stdout=self.log)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.check()
        self.process.kill()
        self.process.wait()
        self.process = None

    def last_words(self):
        return pathlib.Path(self.log.name).read_text().splitlines()[-40:]

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def check(self):
        """Fails if the server was ended by anything other than this test."""
        status = self.process.poll() if self.process else None
        if status is not None:
            raise RuntimeError(f"a server of partition {self.part} ended with "
                               f"{status}; its last words:\n"
                               + "\n".join(self.last_words()))


@contextlib.contextmanager
def running(servers, peers):
    """Runs servers until the block ends, and writes their addresses to the file
    `peers`."""
    peers.write_text("".join(f"{server.listed}\n" for server in servers))
    with contextlib.ExitStack() as stack:
        for server in servers:
            stack.callback(server.end)
            server.start(peers)
        yield


@contextlib.contextmanager
def running_store(binary, folder, parts):
    """Makes a store of `parts` partitions in `folder` and runs a server for
    each until the block ends. Yields the servers and the file of their
    addresses, which train() reads."""
    store = make_store(binary, folder, parts)
    peers = folder / "list"
    with open(folder / "servers.log", "w") as log:
        servers = [Server(binary, store, part, log) for part in range(parts)]
        with running(servers, peers):
            yield servers, peers


def train(binary, folder, name, epochs, workers=2):
    """Trains from the list of servers; returns (batches, losses, seconds)."""
    log, metrics = folder / f"{name}.consumed", folder / f"{name}.metrics"
    command = [binary / "millrace-train", "--servers", f"@{folder / 'list'}",
               "--workers", workers, "--epochs", epochs, "--fanouts", "5,5",
               "--batch-size", 256, "--hidden", 16, "--threads", 1,
               "--eval-every", 0, "--log-every", 1, "--partition-wait", "2m",
               "--consumed-log", log, "--metrics-json", metrics]
    start = time.monotonic()
    with open(folder / f"{name}.log", "w") as output:
        process = subprocess.Popen([str(word) for word in command],
                                   stdout=output, stderr=output)
        try:
            status = process.wait(timeout=60 + 20 * epochs)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
            status = "a timeout"
    seconds = time.monotonic() - start
    if status != 0:
        tail = (folder / f"{name}.log").read_text().splitlines()[-40:]
        sys.exit("\n".join(tail) + f"\nthe {name} run ended with {status}")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    batches = sorted((line["epoch"], line["batch"], line["rank"],
                      line["digest"]) for line in lines if "batch" in line)
    losses = [(line["epoch"], line["step"], line["loss"]) for line in
              map(json.loads, metrics.read_text().splitlines())
              if "loss" in line]
    return batches, losses, seconds


class Faults(threading.Thread):
    """Disturbs a run of train(); `log` is the run's log of consumed batches.
    """

    def __init__(self, log):
        super().__init__(daemon=True)
        self.log = log
        self.ended = threading.Event()  # set when the run ends
        self.error = None

    def act(self):
        raise NotImplementedError

    def run(self):
        try:
            self.act()
        except Exception as error:  # reported by the test
            self.error = error

    def batches(self):
        """The epochs of the batches consumed so far."""
        if not self.log.exists():
            return []
        whole, _, _ = self.log.read_text().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line["epoch"] for line in lines if "batch" in line]

    def await_batches(self, count):
        while len(self.batches()) < count:
            self.pause(0.002)

    def pause(self, seconds):
        if self.ended.wait(seconds):
            raise RuntimeError("the run ended before all was done to it")

    def stop(self):
        """Must be called when the run has ended."""
        self.ended.set()
        self.join()


def train_with(faults, servers, *arguments):
    """Runs train(*arguments) with faults; all servers must be alive afterwards.
    """
    faults.start()
    try:
        result = train(*arguments)
    except SystemExit as failed:
        faults.stop()
        words = [f"{failed}", f"the faults ended with {faults.error!r}"]
        for server in servers:
            words += [f"partition {server.part}, last words:",
                      *server.last_words()]
        sys.exit("\n".join(words))
    faults.stop()
    if faults.error:
        raise faults.error
    for server in servers:
        server.check()
    return result


def compare(baseline, other, what):
    if baseline == other:
        return
    for one, two in zip(baseline, other):
        if one != two:
            sys.exit(f"{what} differ first at {one} (baseline) and {two}")
    sys.exit(f"{len(baseline)} {what} of the baseline run, {len(other)} of the "
             "other")
